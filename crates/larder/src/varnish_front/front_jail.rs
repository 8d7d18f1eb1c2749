//! `-j`: the user that serves. Varnish serves from a child of another user; larder, which is one process, becomes that user
//! before it opens anything: what needs more rights is done first, and then the program begins anew.
//!
//! The process keeps its number. Of root's rights it keeps at most the one to listen on a port below 1024, and the secret
//! comes through a pipe.

use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::{Gid, Uid, geteuid};
use rustix::thread::{CapabilitySet, CapabilitySets};
use varnishd::limits::SECRET_BYTES_MAX;
use varnishd::{CommandLine, ListenPlace, Secret};

use crate::say::say;

/// Users that a package of Varnish makes, the one that serves first.
const USERS_BY_DEFAULT: [&str; 2] = ["vcache", "varnish"];
const PRIVILEGED_PORT_MAX: u16 = 1023;

/// Who is to serve.
#[derive(Debug, PartialEq, Eq)]
pub struct Jail {
    user: String,
    number: u32,
    group: u32,
}

impl Jail {
    /// `None`: whoever we are already.
    pub fn of(line: &CommandLine) -> Result<Option<Jail>, String> {
        if line.is_jailed {
            return if geteuid().is_root() { Err("the jail has not held: this is root".to_owned()) } else { Ok(None) };
        }
        let wanted = user_of(line.jail.as_deref())?;
        if !geteuid().is_root() {
            return Ok(None);
        }
        let Some(candidates) = wanted else {
            if line.jail.is_none() {
                say!("warning: this runs as root; -j unix,user=NAME gives that up");
            }
            return Ok(None);
        };
        if line.is_debug {
            say!("warning: -j: with -d, which needs standard input, it stays the user it is");
            return Ok(None);
        }
        let found = candidates.iter().find_map(|user| Some((user, user_number(user).ok()?)));
        let (user, (number, group)) =
            found.ok_or_else(|| format!("-j: there is no user `{}`", candidates.join("`, `")))?;
        Ok(Some(Jail { user: user.clone(), number, group }))
    }

    /// Gives a folder to who is to serve.
    pub fn own(&self, folder: &std::path::Path) -> Result<(), String> {
        let given = std::os::unix::fs::chown(folder, Some(self.number), Some(self.group));
        given.map_err(|error| format!("{}: {error}", folder.display()))
    }

    /// Begins anew as that user; comes back only if that failed, with a sentence.
    pub fn enter(&self, words: &[String], line: &CommandLine, secret: Option<&Secret>) -> String {
        match self.prepare(words, line, secret) {
            Ok(mut command) => format!("-j: cannot begin anew as {}: {}", self.user, command.exec()),
            Err(why) => format!("-j: cannot become {}: {why}", self.user),
        }
    }

    fn prepare(&self, words: &[String], line: &CommandLine, secret: Option<&Secret>) -> Result<Command, String> {
        let failed = |error: std::io::Error| error.to_string();
        let (reader, mut writer) = std::io::pipe().map_err(failed)?;
        // A pipe holds as much as a secret may have, so nobody has to read meanwhile.
        writer.write_all(secret.map(Secret::bytes).unwrap_or_default()).map_err(failed)?;
        let program = std::env::current_exe().map_err(failed)?;
        let mut command = Command::new(program);
        command.arg("varnishd").arg("--jailed").args(words).stdin(reader);
        self.become_user(needs_privileged_port(line)).map_err(|error| error.to_string())?;
        Ok(command)
    }

    /// Of this thread alone, which is the one that begins the program anew; the others end with that.
    fn become_user(&self, keeps_ports: bool) -> rustix::io::Result<()> {
        let (user, group) = (Uid::from_raw(self.number), Gid::from_raw(self.group));
        rustix::thread::set_keep_capabilities(keeps_ports)?;
        rustix::thread::set_thread_groups(&[group])?;
        rustix::thread::set_thread_gid(group)?;
        rustix::thread::set_thread_uid(user)?;
        if keeps_ports {
            let ports = CapabilitySet::NET_BIND_SERVICE;
            let sets = CapabilitySets { effective: ports, permitted: ports, inheritable: ports };
            rustix::thread::set_capabilities(None, sets)?;
            rustix::thread::configure_capability_in_ambient_set(ports, true)?;
        }
        Ok(())
    }
}

/// What was handed over by who had more rights.
pub fn handed_secret() -> Result<Secret, String> {
    let mut bytes = Vec::new();
    std::io::stdin().take(SECRET_BYTES_MAX).read_to_end(&mut bytes).map_err(|error| format!("the secret: {error}"))?;
    Ok(Secret::new(bytes))
}

fn needs_privileged_port(line: &CommandLine) -> bool {
    let is_privileged = |port: u16| (1..=PRIVILEGED_PORT_MAX).contains(&port);
    let listens = line.listen.iter().any(|listen| match listen.place {
        ListenPlace::Port { port, .. } => is_privileged(port),
        ListenPlace::Path { .. } => false,
    });
    // Port 80 is where it listens when nobody says where.
    listens || line.listen.is_empty() || line.management.iter().flatten().any(|(_, port)| is_privileged(*port))
}

/// Users of whom the first that exists is meant. `None`: nobody else is to serve.
fn user_of(asked: Option<&str>) -> Result<Option<Vec<String>>, String> {
    let Some(asked) = asked else { return Ok(None) };
    let mut words = asked.split(',');
    match words.next() {
        Some("unix") => {}
        Some("none") => return Ok(None),
        kind => return Err(format!("Unknown jail method \"{}\"", kind.unwrap_or_default())),
    }
    let (mut user, mut work_user) = (None, None);
    for word in words {
        match word.split_once('=') {
            Some(("user", name)) => user = Some(name),
            Some(("workuser", name)) => work_user = Some(name),
            // The group of a C compiler, of which there is none.
            Some(("ccgroup", _)) => {}
            _ => return Err(format!("-j {asked}: Unknown unix jail sub-argument \"{word}\"")),
        }
    }
    Ok(Some(match work_user.or(user) {
        Some(user) => vec![user.to_owned()],
        None => USERS_BY_DEFAULT.map(str::to_owned).to_vec(),
    }))
}

/// Number and first group of a user.
pub fn user_number(name: &str) -> Result<(u32, u32), String> {
    let table = std::fs::read_to_string("/etc/passwd").map_err(|error| error.to_string())?;
    let numbers =
        fields_of(&table, name).and_then(|fields| Some((fields.get(2)?.parse().ok()?, fields.get(3)?.parse().ok()?)));
    numbers.ok_or_else(|| format!("there is no user `{name}`"))
}

pub fn group_number(name: &str) -> Result<u32, String> {
    let table = std::fs::read_to_string("/etc/group").map_err(|error| error.to_string())?;
    let number = fields_of(&table, name).and_then(|fields| fields.get(2)?.parse().ok());
    number.ok_or_else(|| format!("there is no group `{name}`"))
}

fn fields_of<'a>(table: &'a str, name: &str) -> Option<Vec<&'a str>> {
    table.lines().map(|line| line.split(':').collect::<Vec<_>>()).find(|fields| fields.first() == Some(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jails_name_users() {
        let check = |asked: &str, expect: Result<Option<&[&str]>, &str>| {
            let expect = expect.map(|users| users.map(|users| users.iter().map(|u| (*u).to_owned()).collect()));
            match (user_of(Some(asked)), expect) {
                (Err(why), Err(part)) => assert!(why.contains(part), "{asked}: {why}"),
                (got, expect) => assert_eq!(got, expect.map_err(str::to_owned), "{asked}"),
            }
        };
        check("none", Ok(None));
        check("unix", Ok(Some(&USERS_BY_DEFAULT)));
        check("unix,user=vcache", Ok(Some(&["vcache"])));
        check("unix,user=a,ccgroup=b,workuser=c", Ok(Some(&["c"])));
        check("unix,colour=red", Err("sub-argument \"colour=red\""));
        check("solaris", Err("Unknown jail method \"solaris\""));
        assert_eq!(user_of(None), Ok(None));
    }

    #[test]
    fn a_right_is_kept_only_for_ports_that_need_it() {
        let check = |typed: &str, expect: bool| {
            let line = CommandLine::parse(typed.split(' ').map(str::to_owned).collect()).unwrap();
            assert_eq!(needs_privileged_port(&line), expect, "{typed}");
        };
        check("-b none -a :6081 -T localhost:6082", false);
        check("-b none -a :0", false);
        check("-b none -a :6081 -a :80", true);
        check("-b none", true);
        check("-b none -a /l.sock -T :82", true);
    }
}
