//! Files that are read whole. What a path leads to may be a device or a pipe that never ends, and whose size nobody knows beforehand,
//! so the limit holds while it is read.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

use crate::sandbox::fence;

/// The whole of a file that has at most `bytes_max` bytes. The error does not name the file.
pub fn read(path: &Path, bytes_max: u64) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes));
    read.map_err(|error| match fence::reason(path).filter(|_| error.kind() == ErrorKind::PermissionDenied) {
        Some(reason) => format!("{error}: {reason}"),
        None => sentence(&error, || user_name(rustix::process::geteuid().as_raw())),
    })?;
    match bytes.len() as u64 > bytes_max {
        true => Err(format!("more than {bytes_max} bytes, which is all that such a file may have")),
        false => Ok(bytes),
    }
}

/// Who may not read it, and what to do about it.
fn sentence(error: &std::io::Error, user: impl FnOnce() -> String) -> String {
    match error.kind() {
        ErrorKind::PermissionDenied => format!(
            "{error}: the user {} may not read it; chgrp GROUP FILE, with a group of that user's, and chmod 640 FILE let it, and its folders need an x",
            user()
        ),
        _ => error.to_string(),
    }
}

/// As /etc/passwd has it, or the number.
fn user_name(id: u32) -> String {
    let known = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let found = known.lines().find_map(|line| {
        let mut parts = line.split(':');
        let (name, number) = (parts.next()?, parts.nth(1)?);
        (number.parse() == Ok(id)).then(|| name.to_owned())
    });
    found.unwrap_or_else(|| id.to_string())
}

/// The same for a text.
pub fn read_text(path: &Path, bytes_max: u64) -> Result<String, String> {
    String::from_utf8(read(path, bytes_max)?).map_err(|error| error.utf8_error().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_not_read_is_named_with_a_way_out() {
        let denied = std::io::Error::from_raw_os_error(13);
        let said = sentence(&denied, || "larder".to_owned());
        assert!(said.starts_with("Permission denied (os error 13): the user larder may not read it; chgrp"), "{said}");
        assert_eq!(user_name(0), "root");
    }

    #[test]
    fn what_never_ends_is_read_up_to_the_limit() {
        let why = read(Path::new("/dev/zero"), 1_000).unwrap_err();
        assert!(why.contains("more than 1000 bytes"), "{why}");
        assert_eq!(read(Path::new("/dev/null"), 0), Ok(Vec::new()));
        assert!(read(Path::new("/"), 1_000).is_err());
    }
}
