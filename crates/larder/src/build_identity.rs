//! Which build of the program this is, and where its file is mapped in memory: with both an address in a crash report can be named later, by
//! a program of the same build. It is read once, before the process gives up its files, for the hook of `panics` and for `larder support`.
//! It knows no names; `named_backtrace` does.

use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::sync::OnceLock;

use object::read::{Object, ReadCache};

/// Of no build.
pub const UNKNOWN: &str = "unknown";

const RUNNING: &str = "/proc/self/exe";

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildIdentity {
    /// What the linker has written into the file, in hexadecimal digits; [`UNKNOWN`] where it has not.
    pub id: String,
    /// Where the program's own code may be; empty where that is not known.
    pub mapping: Range<usize>,
}

impl BuildIdentity {
    /// Of the program that runs. To be asked first before the process gives up its files.
    pub fn of_this_program() -> &'static BuildIdentity {
        static KNOWN: OnceLock<BuildIdentity> = OnceLock::new();
        KNOWN.get_or_init(|| BuildIdentity {
            id: build_id(Path::new(RUNNING)).unwrap_or_else(|| UNKNOWN.to_owned()),
            mapping: mapping().unwrap_or_default(),
        })
    }

    /// How far into the program an address lies. `None`: it is a library's.
    pub fn offset_of(&self, address: usize) -> Option<usize> {
        self.mapping.contains(&address).then(|| address - self.mapping.start)
    }
}

fn build_id(path: &Path) -> Option<String> {
    let cache = ReadCache::new(File::open(path).ok()?);
    let file = object::File::parse(&cache).ok()?;
    let id = file.build_id().ok()??;
    Some(id.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// From the first to the last page of this program's file.
fn mapping() -> Option<Range<usize>> {
    let path = std::fs::read_link(RUNNING).ok()?;
    mapping_in(&std::fs::read_to_string("/proc/self/maps").ok()?, path.to_str()?)
}

/// `maps`: as proc(5) has it.
fn mapping_in(maps: &str, path: &str) -> Option<Range<usize>> {
    let mut pages = maps.lines().filter(|line| line.ends_with(path)).filter_map(|line| {
        let (start, end) = line.split_once(' ')?.0.split_once('-')?;
        Some(usize::from_str_radix(start, 16).ok()?..usize::from_str_radix(end, 16).ok()?)
    });
    let first = pages.next()?;
    Some(first.start..pages.next_back().unwrap_or(first.clone()).end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_that_runs_knows_its_build_and_its_mapping() {
        let identity = BuildIdentity::of_this_program();
        assert!(identity.id.len() >= 16 && identity.id.bytes().all(|b| b.is_ascii_hexdigit()), "{identity:?}");
        let own = BuildIdentity::of_this_program as *const () as usize;
        assert!(identity.offset_of(own).is_some_and(|offset| offset < own), "{identity:?}");
        assert_eq!(identity.offset_of(0), None);
    }

    #[test]
    fn its_mapping_goes_from_its_first_page_to_its_last() {
        let maps = "1000-2000 r--p 00000000 fe:00 7 /usr/bin/larder\n\
                    2000-5000 r-xp 00001000 fe:00 7 /usr/bin/larder\n\
                    9000-a000 rw-p 00000000 00:00 0\n\
                    f000-ffff r-xp 00000000 fe:00 8 /lib/libc.so.6\n";
        assert_eq!(mapping_in(maps, "/usr/bin/larder"), Some(0x1000..0x5000));
        assert_eq!(mapping_in(maps, "/usr/bin/other"), None);
    }
}
