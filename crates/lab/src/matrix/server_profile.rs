//! What a profile of a server is: what it can be asked, what it speaks, and a function that writes how it is started, for one
//! place in one run.

use std::collections::BTreeMap;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::answer_coding::ContentCoding;
use crate::matrix::planned_rows::{Pages, PlannedRow};
use crate::matrix::row_protocol::Spoken;
use crate::matrix::run_certificate::CertificateFiles;
use crate::results::{NamedText, RowKind};

#[derive(Debug)]
pub(crate) struct Profile {
    pub(crate) name: &'static str,
    /// None: larder's own, the binary that runs the lab.
    pub(crate) binary: Option<&'static str>,
    pub(crate) install: &'static str,
    pub(crate) version_argument: &'static str,
    pub(crate) role: Role,
    pub(crate) speaks: Speaks,
    /// The content codings that it answers in as the lab starts it, for a row that asks for one.
    pub(crate) codings: &'static [ContentCoding],
    /// The server that is started behind it, and counted as a part of it.
    pub(crate) behind: Option<&'static Profile>,
    /// What `[server.options]` may set, and what stands there otherwise.
    pub(crate) options: &'static [(&'static str, &'static str)],
    /// Its children live as long as it does: one that is replaced has crashed.
    pub(crate) keeps_children: bool,
    pub(crate) launch: fn(&Site<'_>) -> Result<Launch, String>,
}

/// What its clients may speak to a server, as the lab starts it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Speaks {
    pub(crate) all: &'static [Spoken],
    /// The end of a sentence that begins with its name: why no more than that.
    pub(crate) no_more: &'static str,
}

impl Speaks {
    pub(crate) const EVERYTHING: Speaks = Speaks { all: &Spoken::ALL, no_more: "speaks all of it" };
    pub(crate) const HTTP1_IN_THE_CLEAR: Speaks =
        Speaks { all: &[Spoken::CLEAR], no_more: "is started in the clear and for HTTP/1.1 alone" };
}

/// What a server can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// It asks the origin and keeps what it may.
    Cache,
    /// A cache that asks whichever origin a request names.
    Forward,
    /// It serves files.
    Static,
    /// It answers the same to everything.
    Null,
    /// It does not speak HTTP.
    Memcached,
    /// It is asked over HTTP for what a memcached holds.
    Gateway,
}

/// The place of one server in one run.
pub(crate) struct Site<'a> {
    /// Its own, writable by everybody, because many servers drop their rights first.
    pub(crate) dir: &'a Path,
    pub(crate) docroot: &'a Path,
    pub(crate) port: u16,
    pub(crate) origin: SocketAddr,
    pub(crate) front: Frontend<'a>,
    pub(crate) workers: usize,
    pub(crate) open_files: u64,
    /// Nothing may be stored in this row, so waiting for somebody else's fetch is only waiting.
    pub(crate) passes: bool,
    pub(crate) size_bytes: Option<u64>,
    /// In which its answers are to be; none: as they are.
    pub(crate) encoding: Option<ContentCoding>,
    pub(crate) options: &'a BTreeMap<String, String>,
    pub(crate) defaults: &'static [(&'static str, &'static str)],
}

/// How a server meets its clients.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frontend<'a> {
    /// None: in the clear.
    pub(crate) tls: Option<&'a CertificateFiles>,
    /// HTTP/2: over TLS by ALPN, in the clear by prior knowledge.
    pub(crate) http2: bool,
}

/// How it is started.
#[derive(Clone, Debug, Default)]
pub(crate) struct Launch {
    /// Without the binary.
    pub(crate) arguments: Vec<String>,
    pub(crate) configs: Vec<NamedText>,
    /// Its own logs, beside what it prints.
    pub(crate) logs: Vec<PathBuf>,
    /// Programs that prepare its directory, each run to its end first.
    pub(crate) before: Vec<Vec<String>>,
}

impl Profile {
    /// Why it cannot do this row.
    pub(crate) fn refusal(&self, row: &PlannedRow) -> Option<String> {
        let (name, passes) = (self.name, row.used.kind == RowKind::Pass);
        let needs_cache = row.used.kind == RowKind::Miss || matches!(row.pages, Pages::WithParts(_));
        match self.role {
            Role::Memcached if row.is_of_memcached() => None,
            Role::Memcached => Some(format!("{name} speaks memcached's protocol, this row asks over HTTP")),
            Role::Gateway if row.sets() => Some(format!("{name} is asked for values: `set_share = 0` asks it")),
            Role::Gateway if row.is_of_memcached() => None,
            Role::Gateway => Some(format!("{name} stands before a memcached: `items = {{ … }}` asks it")),
            _ if row.is_of_memcached() => Some(format!("{name} speaks HTTP, this row asks a memcached")),
            Role::Forward if !row.forward => Some(format!("{name} is a forward proxy: `forward = true` asks it")),
            Role::Cache | Role::Static if row.forward => {
                Some(format!("{name} stands for one site, and forwards to none"))
            }
            Role::Static if passes => Some(format!("{name} serves files: there is no origin to pass to")),
            Role::Static if needs_cache => Some(format!("{name} serves files: nothing is fetched or put together")),
            Role::Null if needs_cache => Some("the null server fetches nothing".to_owned()),
            Role::Null if passes => Some("the null server has no origin to pass to".to_owned()),
            _ if row.encoding.is_some_and(|coding| !self.codings.contains(&coding)) => {
                Some(format!("{name} is started without that coding, or has none"))
            }
            _ if !self.speaks.all.contains(&Spoken::of(&row.used)) => Some(format!("{name} {}", self.speaks.no_more)),
            _ => None,
        }
    }
}

impl Site<'_> {
    pub(crate) fn option(&self, name: &str) -> &str {
        let default = || self.defaults.iter().find(|(option, _)| *option == name).map_or("", |(_, value)| value);
        self.options.get(name).map_or_else(default, String::as_str)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.port))
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.dir.join(name).to_string_lossy().into_owned()
    }

    /// Writes a file of its directory.
    pub(crate) fn write(&self, name: &str, text: String) -> Result<NamedText, String> {
        let path = self.dir.join(name);
        fs::write(&path, &text).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(NamedText { name: name.to_owned(), text })
    }

    /// Makes a directory in it that everybody may write to.
    pub(crate) fn directory(&self, name: &str) -> Result<String, String> {
        open_directory(&self.dir.join(name))?;
        Ok(self.path(name))
    }
}

/// A directory that everybody may write to.
pub(crate) fn open_directory(path: &Path) -> Result<(), String> {
    fs::create_dir_all(path)
        .and_then(|()| fs::set_permissions(path, fs::Permissions::from_mode(0o777)))
        .map_err(|error| format!("{}: {error}", path.display()))
}

/// Some servers want to be told that they keep the rights they have.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Words as the arguments of a program.
pub(crate) fn words<const N: usize>(words: [&str; N]) -> Vec<String> {
    words.map(str::to_owned).to_vec()
}
