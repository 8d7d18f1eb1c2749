//! The servers of a run: those of the lab file and the reference's second copy, each with its binary, or with the
//! reason why it takes no part.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::matrix::lab_file::{LabFile, Source};
use crate::matrix::profiles::{PROFILES, profile};
use crate::matrix::server_process::run_tool;
use crate::matrix::server_profile::Profile;
use crate::results::ServerUsed;

#[derive(Clone, Debug)]
pub(crate) struct PlannedServer {
    pub(crate) name: String,
    pub(crate) profile: &'static Profile,
    pub(crate) args: Vec<String>,
    pub(crate) options: BTreeMap<String, String>,
    pub(crate) workers: Option<usize>,
    pub(crate) port: Option<u16>,
    pub(crate) binary: Option<String>,
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) twin_of: Option<String>,
}

/// What the second copy of a server is called.
fn twin_name(name: &str) -> String {
    format!("{name}-again")
}

pub(crate) fn planned_servers(file: &LabFile, source: &Source<'_>) -> Result<Vec<PlannedServer>, String> {
    let mut servers: Vec<PlannedServer> = Vec::new();
    for name in &file.servers {
        let word = name.as_ref();
        // A section of this name says more than the name alone.
        if !file.server.iter().any(|section| section.name.as_ref() == word) {
            let profile = profile_named(word, |what| source.complain_at(name, what), source)?;
            servers.push(PlannedServer::plain(word, profile));
        }
    }
    for section in &file.server {
        let named = section.profile.as_ref().unwrap_or(&section.name);
        let profile = profile_named(named.as_ref(), |what| source.complain_at(named, what), source)?;
        let known: Vec<&str> = profile.options.iter().map(|(name, _)| *name).collect();
        if let Some(wrong) = section.options.keys().find(|key| !known.contains(&key.as_ref().as_str())) {
            let what = source.unknown(&format!("option of {}", profile.name), wrong.as_ref(), &known);
            return Err(source.complain_at(wrong, &what));
        }
        if section.workers == Some(0) {
            return Err(source.complain_at(&section.name, "workers = 0: at least one"));
        }
        servers.push(PlannedServer {
            args: section.args.clone(),
            options: section.options.iter().map(|(key, value)| (key.as_ref().clone(), value.to_string())).collect(),
            workers: section.workers,
            port: section.port,
            binary: section.binary.clone(),
            environment: section.environment.clone(),
            ..PlannedServer::plain(section.name.as_ref(), profile)
        });
    }
    // In the order in which the file names them, where it does.
    let place = |name: &str| file.servers.iter().position(|other| other.as_ref() == name).unwrap_or(usize::MAX);
    servers.sort_by_key(|server| place(&server.name));
    let reference = file.reference.as_ref();
    let names: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
    let Some(first) = servers.iter().find(|server| server.name == *reference) else {
        return Err(source.complain_at(&file.reference, &source.unknown("server", reference, &names)));
    };
    let twin = PlannedServer {
        name: twin_name(reference),
        twin_of: Some(reference.clone()),
        // The first one has it.
        port: None,
        ..first.clone()
    };
    let at = servers.iter().position(|server| server.name == *reference).map_or(0, |at| at + 1);
    servers.insert(at, twin);
    for (n, server) in servers.iter().enumerate() {
        let is_second = servers[..n].iter().any(|other| other.name == server.name);
        if is_second {
            return Err(format!("{}: two servers named `{}`", source.name, server.name));
        }
        if !server.name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
            || server.name.starts_with('.')
        {
            let form = "letters, digits, - _ and . make a name";
            return Err(format!("{}: `{}` cannot name a server: {form}", source.name, server.name));
        }
    }
    Ok(servers)
}

fn profile_named(name: &str, place: impl Fn(&str) -> String, source: &Source<'_>) -> Result<&'static Profile, String> {
    let known: Vec<&str> = PROFILES.iter().map(|profile| profile.name).collect();
    profile(name).ok_or_else(|| place(&source.unknown("profile", name, &known)))
}

impl PlannedServer {
    pub(crate) fn plain(name: &str, profile: &'static Profile) -> PlannedServer {
        PlannedServer {
            name: name.to_owned(),
            profile,
            args: Vec::new(),
            options: BTreeMap::new(),
            workers: None,
            port: None,
            binary: None,
            environment: BTreeMap::new(),
            twin_of: None,
        }
    }

    /// What stands behind it and is a part of it.
    pub(crate) fn behind(&self) -> Option<PlannedServer> {
        self.profile.behind.map(|profile| PlannedServer::plain(&format!("{}-behind", self.name), profile))
    }

    /// The program that it is, or the words on why it, or what stands behind it, is not here.
    pub(crate) fn find_binary(&self, ours: &Path, directories: &[PathBuf]) -> Result<PathBuf, String> {
        if let Some(behind) = self.behind() {
            behind.find_binary(ours, directories)?;
        }
        match (&self.binary, self.profile.binary) {
            (Some(path), _) => {
                let path = fs::canonicalize(path).map_err(|error| format!("{}: {path}: {error}", self.name))?;
                Ok(path)
            }
            (None, None) => Ok(ours.to_owned()),
            (None, Some(name)) => {
                search(name, directories).ok_or_else(|| format!("{name} is not installed: {}", self.profile.install))
            }
        }
    }

    /// What is known of it before it runs.
    pub(crate) fn used(&self, binary: &Path, dir: &Path) -> ServerUsed {
        let asked = [binary.to_string_lossy().into_owned(), self.profile.version_argument.to_owned()];
        let said = run_tool(&asked, dir).unwrap_or_else(|error| error);
        let version = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("unknown").trim().to_owned();
        let binary_sha256 = fs::read(binary).map_or_else(|error| error.to_string(), |bytes| sha256_hex(&bytes));
        ServerUsed { version, binary_sha256, ..self.skipped(None) }
    }

    pub(crate) fn skipped(&self, why: Option<String>) -> ServerUsed {
        ServerUsed {
            name: self.name.clone(),
            profile: self.profile.name.to_owned(),
            twin_of: self.twin_of.clone(),
            skipped: why,
            ..ServerUsed::default()
        }
    }
}

/// As 64 hexadecimal digits.
pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn search(name: &str, directories: &[PathBuf]) -> Option<PathBuf> {
    let mut all = directories.iter().map(|dir| dir.join(name));
    all.find(|file| fs::metadata(file).is_ok_and(|meta| meta.is_file()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::lab_file::tests::source;

    fn servers(text: &str) -> Result<Vec<PlannedServer>, String> {
        let text = format!("title = \"t\"\nreference = \"larder\"\n{text}");
        let source = source(&text);
        planned_servers(&source.read()?, &source)
    }

    #[test]
    fn the_reference_runs_twice() {
        let all = servers(
            "servers = [\"nginx-cache\", \"larder\", \"log\"]\n[[server]]\nname = \"log\"\nprofile = \"larder\"\nargs = [\"--log\", \"x\"]\n",
        );
        let all = all.unwrap();
        let names: Vec<&str> = all.iter().map(|server| server.name.as_str()).collect();
        assert_eq!(names, ["nginx-cache", "larder", "larder-again", "log"]);
        assert_eq!((all[2].twin_of.as_deref(), all[3].args.len()), (Some("larder"), 2));
    }

    #[test]
    fn slips_name_what_was_meant() {
        let check = |text: &str, part: &str| {
            let error = servers(text).map(|all| all.len()).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        };
        check("servers = [\"larder\", \"varnsh\"]\n", "a.toml:3: unknown profile `varnsh`: did you mean `varnish`?");
        check("servers = [\"nginx-cache\"]\n", "a.toml:2: unknown server `larder`");
        check(
            "servers = [\"larder\"]\n[[server]]\nname = \"v\"\nprofile = \"varnish\"\noptions = { stroage = \"x\" }\n",
            "option of varnish `stroage`",
        );
        check("servers = [\"larder\", \"larder\"]\n", "two servers named `larder`");
        check("servers = [\"larder\"]\n[[server]]\nname = \"a/b\"\nprofile = \"null\"\n", "cannot name a server");
    }

    #[test]
    fn a_missing_binary_says_how_to_get_it() {
        let bin = [PathBuf::from("/bin")];
        assert!(search("sh", &bin).is_some() && search("no-such-program", &bin).is_none());
        let server = PlannedServer { binary: Some("/no/such".to_owned()), ..PlannedServer::plain("x", PROFILES[0]) };
        assert!(server.find_binary(Path::new("/bin/sh"), &bin).unwrap_err().contains("/no/such"));
    }
}
