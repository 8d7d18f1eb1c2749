//! A file that is there whole or not at all.

use std::fs;
use std::path::Path;

/// Written beside it first and then renamed: nobody reads half of it, and an interruption leaves what was there before.
/// The error names the file.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), String> {
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    fs::write(&part, bytes)
        .and_then(|()| fs::rename(&part, path))
        .map_err(|error| format!("cannot write {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_beside_it() {
        let dir = std::env::temp_dir().join(format!("larder-whole-file-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let path = dir.join("ports.txt");
        for text in ["first", "second"] {
            write_whole(&path, text.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 1);
        fs::remove_dir_all(&dir).unwrap();
        let error = write_whole(&path, b"x").unwrap_err();
        assert!(error.starts_with(&format!("cannot write {}: ", path.display())), "{error}");
    }
}
