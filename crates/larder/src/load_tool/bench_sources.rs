//! The source addresses of `larder bench`, from its flags and a file.

use std::net::IpAddr;
use std::path::Path;

use crate::load_tool::bench_flags::BenchFlags;
use crate::{bounded_file, limits};

/// What one `--source` names.
#[derive(Clone, Debug)]
pub struct SourceList(Vec<IpAddr>);

impl SourceList {
    pub fn parse(text: &str) -> Result<SourceList, String> {
        lab::parse_sources(text).map(SourceList)
    }
}

/// All of them, in the order in which users take them.
pub fn sources(flags: &BenchFlags) -> Result<Vec<IpAddr>, String> {
    let mut sources: Vec<IpAddr> = flags.sources.iter().flat_map(|list| list.0.iter().copied()).collect();
    if let Some(path) = &flags.sources_file {
        sources.extend(read_list(path).map_err(|what| format!("{}: {what}", path.display()))?);
    }
    Ok(sources)
}

fn read_list(path: &Path) -> Result<Vec<IpAddr>, String> {
    let text = bounded_file::read_text(path, limits::SOURCES_FILE_BYTES_MAX)?;
    lab::parse_sources_list(&text)
}
