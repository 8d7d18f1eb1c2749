//! Files that are read whole. What a path leads to may be a device or a pipe that never ends, and whose size nobody knows beforehand,
//! so the limit holds while it is read.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The whole of a file that has at most `bytes_max` bytes. The error does not name the file.
pub fn read(path: &Path, bytes_max: u64) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes));
    read.map_err(|error| error.to_string())?;
    match bytes.len() as u64 > bytes_max {
        true => Err(format!("more than {bytes_max} bytes, which is all that such a file may have")),
        false => Ok(bytes),
    }
}

/// The same for a text.
pub fn read_text(path: &Path, bytes_max: u64) -> Result<String, String> {
    String::from_utf8(read(path, bytes_max)?).map_err(|error| error.utf8_error().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_never_ends_is_read_up_to_the_limit() {
        let why = read(Path::new("/dev/zero"), 1_000).unwrap_err();
        assert!(why.contains("more than 1000 bytes"), "{why}");
        assert_eq!(read(Path::new("/dev/null"), 0), Ok(Vec::new()));
        assert!(read(Path::new("/"), 1_000).is_err());
    }
}
