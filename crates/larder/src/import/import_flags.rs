//! The flags of `larder import`.

use std::path::PathBuf;

use clap::Args;

use crate::import::import_kind::ImportKind;

#[derive(Clone, Debug, Args)]
pub struct ImportFlags {
    /// A VCL file for Varnish 1, 2 or 3, or an nginx.conf, httpd.conf, haproxy.cfg, Caddyfile or
    /// squid.conf, of which larder.toml is made
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// Where to write the new file [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Which Varnish the file is for; up to 2, `%22` within a string is a character [default: by what it holds]
    #[arg(long, value_name = "1|2|3", value_parser = clap::value_parser!(u8).range(1..=3))]
    pub from: Option<u8>,

    /// Search this directory for included VCL files; repeatable [default: the file's own]
    #[arg(long, value_name = "DIR")]
    pub vcl_path: Vec<PathBuf>,

    /// Where relative names of an nginx.conf begin [default: the directory that holds conf/, or the
    /// file's own], and of an httpd.conf [default: its ServerRoot, or the file's own]
    #[arg(long, value_name = "DIR")]
    pub prefix: Option<PathBuf>,

    /// Whose configuration the file is [default: by its name, else by what it holds]
    #[arg(long, value_name = "KIND", value_enum)]
    pub kind: Option<ImportKind>,

    /// Print the new text and the notes as JSON
    #[arg(long)]
    pub json: bool,
}
