//! Who has a file locked, as /proc tells it: a disk belongs to one process at a time. Nothing is locked for that, so nobody who starts meanwhile is
//! kept from it.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The process that has an exclusive lock of the file; none where there is no file, or nobody is seen.
pub fn of(file: &Path) -> Option<u32> {
    let inode = std::fs::metadata(file).ok()?.ino();
    holder_in(&std::fs::read_to_string("/proc/locks").ok()?, inode)
}

/// Lines such as `1: FLOCK  ADVISORY  WRITE 4711 08:01:131 0 EOF`. The device is not compared: some file systems name another one there.
fn holder_in(table: &str, inode: u64) -> Option<u32> {
    table.lines().find_map(|line| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let [_, "FLOCK", _, "WRITE", process, place, ..] = words[..] else { return None };
        let is_it = place.rsplit(':').next().and_then(|number| number.parse().ok()) == Some(inode);
        process.parse().ok().filter(|_| is_it)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_who_has_the_lock_is_found() {
        let table = "1: FLOCK  ADVISORY  WRITE 4711 08:01:131 0 EOF\n1: -> FLOCK  ADVISORY  WRITE 12 08:01:132 0 EOF\n\
                     2: POSIX  ADVISORY  WRITE 13 08:01:133 0 EOF\n3: FLOCK  ADVISORY  READ 14 08:01:134 0 EOF\n";
        let found: Vec<Option<u32>> = (131..136).map(|inode| holder_in(table, inode)).collect();
        assert_eq!(found, [Some(4711), None, None, None, None]);
    }

    #[test]
    fn a_lock_of_this_process_is_seen() {
        let file = tempfile();
        assert_eq!(of(&file.0), None);
        file.1.lock().expect("it can be locked");
        assert_eq!(of(&file.0), Some(std::process::id()));
        std::fs::remove_file(&file.0).expect("it is ours");
    }

    fn tempfile() -> (std::path::PathBuf, std::fs::File) {
        let path = std::env::temp_dir().join(format!("larder-lock-holder-{}", std::process::id()));
        let file = std::fs::File::create(&path).expect("the temporary folder can be written");
        (path, file)
    }
}
