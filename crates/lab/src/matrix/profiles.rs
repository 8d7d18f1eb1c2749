//! The servers that the lab knows: which binary, what it can do, and how it is told to serve one site.
//!
//! A profile writes a configuration of ours, tuned as the server's own manual says and the same in what matters for
//! all: no access log, no compression, connections kept without end, memory for everything that a row asks for, so
//! many workers as there are processors for servers. It starts nothing itself. All of it lands in the results.

mod apache_profile;
mod haproxy_profile;
mod larder_profile;
mod nginx_profile;
mod squid_profile;
mod static_profiles;
mod traffic_server_profile;
mod varnish_profile;

use std::collections::BTreeMap;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

pub(crate) use larder_profile::LAB_ORIGIN;
pub(crate) use nginx_profile::NGINX_ORIGIN;

use crate::matrix::planned_rows::PlannedRow;
use crate::results::{NamedText, RowKind};

#[derive(Debug)]
pub(crate) struct Profile {
    pub(crate) name: &'static str,
    /// None: larder's own, the binary that runs the lab.
    pub(crate) binary: Option<&'static str>,
    pub(crate) install: &'static str,
    pub(crate) version_argument: &'static str,
    pub(crate) role: Role,
    /// What `[server.options]` may set, and what stands there otherwise.
    pub(crate) options: &'static [(&'static str, &'static str)],
    /// Its children live as long as it does: one that is replaced has crashed.
    pub(crate) keeps_children: bool,
    pub(crate) launch: fn(&Site<'_>) -> Result<Launch, String>,
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

/// Where a gateway is asked: the key is the argument `key`.
pub(crate) const GATEWAY_PATH: &str = "/memc";

/// The place of one server in one run.
pub(crate) struct Site<'a> {
    /// Its own, writable by everybody, because many servers drop their rights first.
    pub(crate) dir: &'a Path,
    pub(crate) docroot: &'a Path,
    pub(crate) port: u16,
    pub(crate) origin: SocketAddr,
    pub(crate) workers: usize,
    pub(crate) open_files: u64,
    /// Nothing may be stored in this row, so waiting for somebody else's fetch is only waiting.
    pub(crate) passes: bool,
    pub(crate) size_bytes: Option<u64>,
    pub(crate) options: &'a BTreeMap<String, String>,
    pub(crate) defaults: &'static [(&'static str, &'static str)],
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

pub(crate) const PROFILES: &[&Profile] = &[
    &larder_profile::LARDER,
    &larder_profile::LARDER_STATIC,
    &larder_profile::LARDER_FORWARD,
    &larder_profile::LARDER_MEMC,
    &larder_profile::NULL,
    &nginx_profile::NGINX_CACHE,
    &nginx_profile::NGINX_STATIC,
    &nginx_profile::NGINX_MEMC,
    &varnish_profile::VARNISH,
    &squid_profile::SQUID,
    &squid_profile::SQUID_FORWARD,
    &haproxy_profile::HAPROXY,
    &apache_profile::APACHE,
    &apache_profile::APACHE_STATIC,
    &static_profiles::H2O,
    &static_profiles::LIGHTTPD,
    &traffic_server_profile::TRAFFIC_SERVER,
    &static_profiles::MEMCACHED,
];

pub(crate) fn profile(name: &str) -> Option<&'static Profile> {
    PROFILES.iter().copied().find(|profile| profile.name == name)
}

impl Profile {
    /// Why it cannot do this row.
    pub(crate) fn refusal(&self, row: &PlannedRow) -> Option<String> {
        let (name, passes) = (self.name, row.used.kind == RowKind::Pass);
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
            Role::Null if passes => Some("the null server has no origin to pass to".to_owned()),
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

/// Words as the arguments of a program.
pub(crate) fn words<const N: usize>(words: [&str; N]) -> Vec<String> {
    words.map(str::to_owned).to_vec()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::matrix::lab_file::tests::source;
    use crate::matrix::planned_rows::planned_rows;

    #[test]
    fn profiles_are_named_once_and_say_how_to_get_them() {
        for (n, profile) in PROFILES.iter().enumerate() {
            assert!(!PROFILES[..n].iter().any(|other| other.name == profile.name), "{}", profile.name);
            assert_eq!(profile.binary.is_some(), profile.install.contains("apt-get install"), "{}", profile.name);
        }
    }

    #[test]
    fn a_row_is_asked_of_those_who_can_answer_it() {
        let text = "title = \"t\"\nreference = \"a\"\n[[row]]\nname = \"r\"\nconnections = 1\n";
        let check = |row: &str, name: &str, expect: Option<&str>| {
            let text = format!("{text}{row}\n");
            let source = source(&text);
            let row = &planned_rows(&source.read().unwrap().row, &[], &source).unwrap()[0];
            let refusal = profile(name).unwrap().refusal(row);
            match expect {
                None => assert_eq!(refusal, None, "{name}"),
                Some(part) => assert!(refusal.as_ref().is_some_and(|why| why.contains(part)), "{name}: {refusal:?}"),
            }
        };
        let page = "size = 1000";
        let gets = "items = { keys = 10, key_bytes = 8, value_bytes = 8 }";
        let sets = "items = { keys = 10, key_bytes = 8, value_bytes = 8, set_share = 0.1 }";
        check(gets, "larder-memc", None);
        check(gets, "memcached", None);
        check(sets, "memcached", None);
        check(sets, "nginx-memc", Some("set_share = 0"));
        check(page, "nginx-memc", Some("stands before a memcached"));
        check(gets, "larder", Some("speaks HTTP"));
        check(page, "memcached", Some("speaks memcached's protocol"));
        check(page, "larder-forward", Some("forward = true"));
        check("size = 1000\nforward = true", "larder-forward", None);
        check("size = 1000\nforward = true", "larder", Some("forwards to none"));
    }

    #[test]
    fn every_profile_writes_what_it_starts_with() {
        let dir = std::env::temp_dir().join(format!("larder-lab-profiles-{}", std::process::id()));
        for profile in PROFILES.iter().chain(&[&NGINX_ORIGIN, &LAB_ORIGIN]) {
            open_directory(&dir).unwrap();
            // A module need not be installed for its name to be written down.
            let options = BTreeMap::from([("module".to_owned(), "/dev/null".to_owned())]);
            let site = Site {
                dir: &dir,
                docroot: &dir,
                port: 12345,
                origin: "127.0.0.1:23456".parse().unwrap(),
                workers: 1,
                open_files: 20_000,
                passes: false,
                size_bytes: Some(10),
                options: &options,
                defaults: profile.options,
            };
            let launch = (profile.launch)(&site).unwrap_or_else(|error| panic!("{}: {error}", profile.name));
            let texts: String = launch.configs.iter().map(|config| config.text.as_str()).collect();
            let all = format!("{texts} {:?}", launch.arguments);
            assert!(all.contains("12345"), "{}: {all}", profile.name);
            let asks = matches!(profile.role, Role::Cache | Role::Gateway);
            assert_eq!(all.contains("23456"), asks, "{}: {all}", profile.name);
            fs::remove_dir_all(&dir).unwrap();
        }
    }
}
