//! What a `varnishtest` that was killed leaves behind: servers and readers of theirs that nobody ends, and that take the
//! machine's time from every test after them. Each test has a folder of its own, and who names it on its command line is of that
//! test.

use std::fs;
use std::path::{Path, PathBuf};

use crate::process_signal;

/// Of one test, until it is dropped.
pub struct OwnFolder(PathBuf);

impl OwnFolder {
    /// Its path is short: sockets are made in it.
    pub fn make(number: usize) -> Result<OwnFolder, String> {
        let path = std::env::temp_dir().join(format!("lv{}.{number}", std::process::id()));
        fs::create_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(OwnFolder(path))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for OwnFolder {
    fn drop(&mut self) {
        for process in processes_that_name(&self.0) {
            // One that ended meanwhile is as good.
            process_signal::send("KILL", &process);
        }
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn processes_that_name(folder: &Path) -> Vec<String> {
    let name = format!("{}/", folder.display()).into_bytes();
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let numbers = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let is_of_it = |number: &String| {
        number.bytes().all(|byte| byte.is_ascii_digit())
            && fs::read(format!("/proc/{number}/cmdline"))
                .is_ok_and(|line| line.windows(name.len()).any(|part| part == name))
    };
    numbers.filter(is_of_it).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn who_names_the_folder_of_a_test_ends_with_it() {
        let folder = OwnFolder::make(usize::MAX).expect("a folder can be made");
        let path = folder.path().to_path_buf();
        let script = format!("echo up; read line; : {}/v1", path.display());
        let mut command = Command::new("sh");
        command.args(["-c", &script]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut left = command.spawn().unwrap();
        // Until it runs it has no command line.
        left.stdout.as_mut().unwrap().read_exact(&mut [0; 3]).unwrap();
        assert_eq!(processes_that_name(&path), [left.id().to_string()]);
        drop(folder);
        assert!(!left.wait().unwrap().success());
        assert!(!path.exists());
    }
}
