//! The working directory of `-n`: where `varnishadm -n` finds the management port and its secret, and where a secret is
//! made when nobody named one.
//!
//! What lies in it has the form of Varnish's shared memory, but holds only the arguments: there are no counters in it and no
//! log.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use varnishd::Secret;
use varnishd::limits::SECRET_BYTES_MAX;

use crate::say::say;

/// Where relative names are, as Debian's varnishd has it.
const STATE_FOLDER: &str = "/var/lib/varnish";
const NAME_DEFAULT: &str = "varnishd";
const ARGUMENTS_FOLDER: &str = "_.vsm_mgt";
const PID_FILE: &str = "_.pid";
/// What a reader maps into its memory.
const SEGMENT_BYTES: usize = 4096;

pub struct Workdir {
    /// `None`: there is none, and nobody asked for one.
    folder: Option<PathBuf>,
}

impl Workdir {
    pub fn make(asked: Option<&str>) -> Result<Workdir, String> {
        let folder = Path::new(STATE_FOLDER).join(asked.unwrap_or(NAME_DEFAULT));
        let made = make_folder(&folder).and_then(|()| {
            let number = format!("{}\n", std::process::id());
            // What a process left that was killed may be of another user.
            let _ = std::fs::remove_dir_all(folder.join(ARGUMENTS_FOLDER));
            let _ = std::fs::remove_file(folder.join(PID_FILE));
            std::fs::write(folder.join(PID_FILE), number)
        });
        match made {
            Ok(()) => Ok(Workdir { folder: Some(folder) }),
            Err(error) if asked.is_some() => Err(format!("-n {}: {error}", folder.display())),
            Err(error) => {
                say!("warning: {}: {error}: going on without a working directory (-n)", folder.display());
                Ok(Workdir { folder: None })
            }
        }
    }

    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// One that nobody knows but who may read the file.
    pub fn make_secret(&self) -> Result<Secret, String> {
        let Some(folder) = &self.folder else {
            return Err("there is no working directory to make a secret in: -n DIR, -S FILE, or -T none".to_owned());
        };
        let mut random = [0; 64];
        let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
        std::fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut random)).map_err(failed)?;
        let mut text: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        text.push('\n');
        let path = self.secret_path();
        // An old one may be somebody else's, with other rights.
        let _ = std::fs::remove_file(&path);
        let made = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        made.and_then(|mut file| file.write_all(text.as_bytes())).map_err(failed)?;
        Ok(Secret::new(text.into_bytes()))
    }

    fn secret_path(&self) -> PathBuf {
        self.folder.clone().unwrap_or_default().join("_.secret")
    }

    /// Says where the management port is, and where its secret.
    pub fn publish(&self, management: &[SocketAddr], secret: Option<&str>) -> Result<(), String> {
        let Some(folder) = &self.folder else { return Ok(()) };
        let ports: String = management.iter().map(|address| format!("{} {}\n", address.ip(), address.port())).collect();
        let secret = match secret {
            Some("none") => None,
            Some(path) => Some(std::path::absolute(path).map_err(|error| error.to_string())?),
            None if management.is_empty() => None,
            None => Some(self.secret_path()),
        };
        let secret = secret.map(|path| path.display().to_string());
        let arguments = [("-T", Some(ports).filter(|ports| !ports.is_empty())), ("-S", secret)];
        write_arguments(&folder.join(ARGUMENTS_FOLDER), &arguments)
            .map_err(|error| format!("-n {}: {error}", folder.display()))
    }
}

impl Drop for Workdir {
    /// Who looks here must not find a process that is gone. The secret stays for the next one to replace.
    fn drop(&mut self) {
        if let Some(folder) = &self.folder {
            let _ = std::fs::remove_dir_all(folder.join(ARGUMENTS_FOLDER));
            let _ = std::fs::remove_file(folder.join(PID_FILE));
        }
    }
}

fn make_folder(folder: &Path) -> std::io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o755).create(folder)
}

/// An index with a line for each segment: file, place, size, class, name. It is there whole or not at all.
fn write_arguments(folder: &Path, arguments: &[(&str, Option<String>)]) -> std::io::Result<()> {
    make_folder(folder)?;
    let mut index = format!("# {} {}\n", std::process::id(), proxy::wall_now_ms() / 1000);
    for (name, value) in arguments {
        let Some(value) = value else { continue };
        let file = format!("_.Arg.{}", name.trim_start_matches('-'));
        let bytes = (value.len() + 1).next_multiple_of(8);
        let mut segment = value.clone().into_bytes();
        segment.resize(bytes.next_multiple_of(SEGMENT_BYTES), 0);
        std::fs::write(folder.join(&file), segment)?;
        index.push_str(&format!("+ {file} 0 {bytes} Arg {name}\n"));
    }
    lab::write_whole(&folder.join("_.index"), index.as_bytes()).map_err(std::io::Error::other)
}

pub fn read_secret(path: &Path) -> Result<Secret, String> {
    let read = read_limited(path, SECRET_BYTES_MAX);
    read.map(Secret::new).map_err(|why| format!("Can not open secret-file \"{}\": {why}", path.display()))
}

pub fn read_limited(path: &Path, bytes_max: u64) -> Result<Vec<u8>, String> {
    let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    file.take(bytes_max + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > bytes_max {
        return Err(format!("it is longer than {bytes_max} bytes"));
    }
    Ok(bytes)
}
