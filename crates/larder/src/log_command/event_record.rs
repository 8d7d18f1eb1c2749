//! A record of exchanges in a file, bounded: what is full becomes FILE.1, what was that FILE.2, and the oldest goes.

use std::fs::{File, OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

pub struct EventRecord {
    path: PathBuf,
    file: File,
    bytes: u64,
    bytes_max: u64,
    kept_max: u32,
}

impl EventRecord {
    /// Goes on where a record of that name ended. Others may not read it: it has addresses and URLs of clients.
    pub fn open(path: &Path, bytes_max: u64, kept_max: u32) -> Result<EventRecord, String> {
        let file = open(path)?;
        let bytes = file.metadata().map_err(|error| said(path, &error))?.len();
        let mut record = EventRecord { path: path.to_owned(), file, bytes, bytes_max, kept_max };
        if record.ends_within_a_line().map_err(|error| said(path, &error))? {
            record.write(b"\n")?;
        }
        Ok(record)
    }

    /// A crash, or a full disk, has cut it.
    fn ends_within_a_line(&self) -> std::io::Result<bool> {
        let Some(last) = self.bytes.checked_sub(1) else { return Ok(false) };
        let mut byte = [0];
        let read = self.file.read_at(&mut byte, last)?;
        Ok(read == 1 && byte != *b"\n")
    }

    /// A whole line, line feed included. It is in the file when this returns.
    pub fn write(&mut self, line: &[u8]) -> Result<(), String> {
        if self.bytes > 0 && self.bytes + line.len() as u64 > self.bytes_max {
            self.rotate()?;
        }
        self.file.write_all(line).map_err(|error| said(&self.path, &error))?;
        self.bytes += line.len() as u64;
        Ok(())
    }

    fn rotate(&mut self) -> Result<(), String> {
        for number in (1..self.kept_max).rev() {
            let (from, to) = (self.numbered(number), self.numbered(number + 1));
            if from.exists() {
                std::fs::rename(&from, &to).map_err(|error| said(&from, &error))?;
            }
        }
        let gone = match self.kept_max {
            0 => std::fs::remove_file(&self.path),
            _ => std::fs::rename(&self.path, self.numbered(1)),
        };
        gone.map_err(|error| said(&self.path, &error))?;
        (self.file, self.bytes) = (open(&self.path)?, 0);
        Ok(())
    }

    fn numbered(&self, number: u32) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(format!(".{number}"));
        name.into()
    }
}

/// A regular file is its owner's alone, whatever it was before.
fn open(path: &Path) -> Result<File, String> {
    let opened = || {
        let file = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)?;
        if file.metadata()?.is_file() {
            file.set_permissions(Permissions::from_mode(0o600))?;
        }
        Ok(file)
    };
    opened().map_err(|error| said(path, &error))
}

fn said(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_keeps_its_last_files_and_no_more() {
        let folder = std::env::temp_dir().join(format!("larder-record-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("r.json");
        let mut record = EventRecord::open(&path, 8, 2).unwrap();
        for line in ["one\n", "two\n", "three\n", "four\n", "five\n"] {
            record.write(line.as_bytes()).unwrap();
        }
        let read = |name: &str| std::fs::read_to_string(folder.join(name)).ok();
        assert_eq!(read("r.json").as_deref(), Some("five\n"));
        assert_eq!(read("r.json.1").as_deref(), Some("four\n"));
        assert_eq!(read("r.json.2").as_deref(), Some("three\n"));
        assert_eq!(read("r.json.3"), None);
        let mode = || std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(), 0o600);
        std::fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        // It goes on where it ended.
        EventRecord::open(&path, 100, 2).unwrap().write(b"six\n").unwrap();
        assert_eq!((read("r.json").as_deref(), mode()), (Some("five\nsix\n"), 0o600));
        // What a crash has cut does not run together with what follows.
        std::fs::write(&path, "cu").unwrap();
        EventRecord::open(&path, 100, 2).unwrap().write(b"next\n").unwrap();
        assert_eq!(read("r.json").as_deref(), Some("cu\nnext\n"));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
