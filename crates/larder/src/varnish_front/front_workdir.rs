//! The working directory of `-n`: where `varnishadm -n` finds the management port and its secret, where a secret is made when
//! nobody named one, and where the tools that read shared memory find it.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use varnishd::Secret;
use varnishd::limits::SECRET_BYTES_MAX;
use vsm::{Segment, VsmFolder};

use super::front_figures::SharedSets;
use crate::kernel_random;
use crate::say::say;

/// Where relative names are, as Debian's varnishd has it.
const STATE_FOLDER: &str = "/var/lib/varnish";
const NAME_DEFAULT: &str = "varnishd";

pub struct Workdir {
    /// `None`: there is none, and nobody asked for one.
    folder: Option<PathBuf>,
    is_asked: bool,
    arguments: Vec<Segment>,
    shared: Option<VsmFolder>,
}

impl Workdir {
    /// Only the folder: who makes it may become somebody else before anything is in it.
    pub fn make(asked: Option<&str>) -> Result<Workdir, String> {
        let folder = Path::new(STATE_FOLDER).join(asked.unwrap_or(NAME_DEFAULT));
        let is_asked = asked.is_some();
        // Before a secret is made: somebody may be using the one that there is.
        let made = make_folder(&folder).and_then(|()| VsmFolder::is_free(&folder));
        let mut workdir = Workdir { folder: Some(folder), is_asked, arguments: Vec::new(), shared: None };
        workdir.or_go_without(made)?;
        Ok(workdir)
    }

    /// Keeps others out of it, and begins what is shared with its readers.
    pub fn take(&mut self) -> Result<(), String> {
        let Some(folder) = &self.folder else { return Ok(()) };
        let taken = VsmFolder::take(folder, proxy::wall_now_ms() / 1_000);
        self.shared = self.or_go_without(taken)?;
        Ok(())
    }

    /// An error, where somebody asked for this folder; else a warning, and there is none.
    fn or_go_without<T>(&mut self, done: std::io::Result<T>) -> Result<Option<T>, String> {
        let shown = self.folder.as_deref().unwrap_or(Path::new("")).display();
        match done {
            Ok(done) => Ok(Some(done)),
            Err(error) if self.is_asked => Err(format!("-n {shown}: {error}")),
            Err(error) => {
                say!("warning: {shown}: {error}: going on without a working directory (-n)");
                self.folder = None;
                Ok(None)
            }
        }
    }

    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// Where figures are shown.
    pub fn shared_sets(&self) -> Option<SharedSets> {
        let shared = self.shared.as_ref()?;
        Some(SharedSets { management: shared.management.clone(), work: shared.work.clone() })
    }

    /// One that nobody knows but who may read the file.
    pub fn make_secret(&self) -> Result<Secret, String> {
        let Some(folder) = &self.folder else {
            return Err("there is no working directory to make a secret in: -n DIR, -S FILE, or -T none".to_owned());
        };
        let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
        let text = kernel_random::text::<64>() + "\n";
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

    /// Says where the management port is, where its secret, and who we are: the host, unless a name was given.
    pub fn publish(
        &mut self,
        management: &[SocketAddr],
        secret: Option<&str>,
        identity: Option<&str>,
    ) -> Result<(), String> {
        let (Some(folder), Some(shared)) = (&self.folder, &self.shared) else { return Ok(()) };
        let ports: String = management.iter().map(|address| format!("{} {}\n", address.ip(), address.port())).collect();
        let secret = match secret {
            Some("none") => None,
            Some(path) => Some(std::path::absolute(path).map_err(|error| error.to_string())?),
            None if management.is_empty() => None,
            None => Some(self.secret_path()),
        };
        let secret = secret.map(|path| path.display().to_string());
        let system = rustix::system::uname();
        let identity = identity.map_or_else(|| system.nodename().to_string_lossy().into_owned(), str::to_owned);
        let ports = Some(ports).filter(|ports| !ports.is_empty());
        for (name, value) in [("-T", ports), ("-S", secret), ("-i", Some(identity))] {
            let Some(value) = value else { continue };
            let mut content = value.into_bytes();
            content.resize((content.len() + 1).next_multiple_of(8), 0);
            let told = shared.management.add("Arg", name, &content);
            self.arguments.push(told.map_err(|error| format!("-n {}: {error}", folder.display()))?);
        }
        Ok(())
    }
}

fn make_folder(folder: &Path) -> std::io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o755).create(folder)
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
