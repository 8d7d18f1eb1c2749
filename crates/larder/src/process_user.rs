//! Whose rights the process has: `[process] user`, `--user`. Root binds addresses and then becomes that user for good, with all threads
//! and without any capability; what it opens afterwards it opens as that user.
//!
//! It knows users, and nothing of what larder binds or opens.

use std::ffi::CString;
use std::path::{Path, PathBuf};

use nix::unistd::{
    Gid, Group, Uid, User, getgrouplist, getgroups, getresgid, getresuid, setgroups, setresgid, setresuid,
};
use rustix::fs::{Access, AtFlags, CWD, accessat};

use crate::say::say;

/// A user as it is written: NAME or NAME:GROUP, each also as a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserWord {
    user: String,
    group: Option<String>,
}

pub const USER_FORM: &str = "NAME or NAME:GROUP, each a name or a number";

impl UserWord {
    pub fn parse(text: &str) -> Result<UserWord, String> {
        let (user, group) = match text.split_once(':') {
            Some((user, group)) => (user, Some(group)),
            None => (text, None),
        };
        let is_name =
            |name: &str| !name.is_empty() && !name.contains([':', '/', '\0']) && !name.contains(char::is_whitespace);
        if !is_name(user) || !group.is_none_or(is_name) {
            return Err(format!("must be {USER_FORM}, such as larder or www-data:adm"));
        }
        Ok(UserWord { user: user.to_owned(), group: group.map(str::to_owned) })
    }

    /// Who that is on this machine.
    pub fn resolve(&self) -> Result<ProcessUser, String> {
        let failed = |what: &str, error: nix::Error| format!("the {what} cannot be looked up: {error}");
        let number = |text: &str| text.parse::<u32>().ok();
        let known = match number(&self.user) {
            Some(uid) => User::from_uid(Uid::from_raw(uid)),
            None => User::from_name(&self.user),
        };
        let known = known.map_err(|error| failed(&format!("user {}", self.user), error))?;
        let uid = match (&known, number(&self.user)) {
            (Some(user), _) => user.uid,
            (None, Some(uid)) => Uid::from_raw(uid),
            (None, None) => return Err(format!("this machine has no user {} (adduser --system makes one)", self.user)),
        };
        let gid = match (&self.group, &known) {
            (Some(group), _) => match number(group) {
                Some(gid) => Gid::from_raw(gid),
                None => {
                    let found = Group::from_name(group).map_err(|error| failed(&format!("group {group}"), error))?;
                    found.ok_or_else(|| format!("this machine has no group {group}"))?.gid
                }
            },
            (None, Some(user)) => user.gid,
            (None, None) => {
                return Err(format!("this machine has no user {}: a number alone needs a group, {0}:GROUP", self.user));
            }
        };
        let mut groups = match known.and_then(|user| CString::new(user.name).ok()) {
            Some(name) => getgrouplist(&name, gid).map_err(|error| failed("groups of the user", error))?,
            None => vec![gid],
        };
        groups.sort_unstable_by_key(|gid| gid.as_raw());
        groups.dedup();
        Ok(ProcessUser { shown: self.to_string(), uid, gid, groups })
    }
}

impl std::fmt::Display for UserWord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.group {
            Some(group) => write!(f, "{}:{group}", self.user),
            None => f.write_str(&self.user),
        }
    }
}

/// A user that the process may become.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessUser {
    shown: String,
    uid: Uid,
    gid: Gid,
    /// Sorted, each once.
    groups: Vec<Gid>,
}

/// The setting, for what is said of it.
const SETTING: &str = "([process] user, --user)";

impl ProcessUser {
    /// As it was written.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// Becomes it with every thread, and looks whether that holds. Whoever is it already stays as it is.
    pub fn become_it(&self) -> Result<(), String> {
        let failed = |what: &str, error: nix::Error| match error {
            nix::Error::EPERM => {
                format!("only root may become another user, and larder was started by another {SETTING}")
            }
            error => format!("larder cannot become {}: {what}: {error} {SETTING}", self.shown),
        };
        let now = getresuid().map_err(|error| failed("getresuid", error))?;
        let is_it = (now.real, now.effective, now.saved) == (self.uid, self.uid, self.uid);
        if is_it && !self.uid.is_root() {
            return Ok(());
        }
        setgroups(&self.groups).map_err(|error| failed("setgroups", error))?;
        setresgid(self.gid, self.gid, self.gid).map_err(|error| failed("setresgid", error))?;
        setresuid(self.uid, self.uid, self.uid).map_err(|error| failed("setresuid", error))?;
        if self.uid.is_root() {
            return Ok(());
        }
        // No program that this one might start gets rights back by a bit of its file.
        rustix::thread::set_no_new_privs(true)
            .map_err(|error| format!("larder cannot give up new rights: {error} {SETTING}"))?;
        self.verify().map_err(|why| format!("larder is not {} after all: {why} {SETTING}", self.shown))
    }

    /// What must hold once root was given up: of the process, and of each of its threads.
    fn verify(&self) -> Result<(), String> {
        let failed = |error: nix::Error| error.to_string();
        let (users, groups) = (getresuid().map_err(failed)?, getresgid().map_err(failed)?);
        if (users.real, users.effective, users.saved) != (self.uid, self.uid, self.uid) {
            return Err("it has another user".to_owned());
        }
        if (groups.real, groups.effective, groups.saved) != (self.gid, self.gid, self.gid) {
            return Err("it has another group".to_owned());
        }
        let mut others = getgroups().map_err(failed)?;
        others.sort_unstable_by_key(|gid| gid.as_raw());
        others.dedup();
        if others != self.groups {
            return Err("it has other groups besides".to_owned());
        }
        let root = Uid::from_raw(0);
        if setresuid(root, root, root).is_ok() {
            return Err("it may become root again".to_owned());
        }
        let unreadable = |error: std::io::Error| format!("its threads cannot be looked at: {error}");
        for thread in std::fs::read_dir("/proc/self/task").map_err(unreadable)?.flatten() {
            let Ok(status) = std::fs::read_to_string(thread.path().join("status")) else { continue }; // it has ended
            self.verify_thread(&status)?;
        }
        Ok(())
    }

    /// `status`: what /proc says of a thread.
    fn verify_thread(&self, status: &str) -> Result<(), String> {
        let words = |name: &str| -> Vec<&str> {
            let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.unwrap_or_default().split_whitespace().collect()
        };
        let (uid, gid) = (self.uid.to_string(), self.gid.to_string());
        let (name, ids) = (words("Name").join(" "), [words("Uid"), words("Gid")]);
        let is_other = |ids: &[&str], id: &str| ids.len() != 4 || ids.iter().any(|other| *other != id);
        if is_other(&ids[0], &uid) || is_other(&ids[1], &gid) {
            return Err(format!("the thread {name} has another user or group"));
        }
        for set in ["CapPrm", "CapEff", "CapAmb"] {
            if !words(set).iter().all(|bits| bits.chars().all(|digit| digit == '0')) {
                return Err(format!("the thread {name} has capabilities left"));
            }
        }
        Ok(())
    }

    /// Gives it the path of a socket that was bound before.
    pub fn give(&self, path: &Path) -> Result<(), String> {
        std::os::unix::fs::lchown(path, Some(self.uid.as_raw()), Some(self.gid.as_raw())).map_err(|error| {
            format!("the socket {} cannot be given to {}: {error} {SETTING}", path.display(), self.shown)
        })
    }
}

/// Those of the files that larder read as root and that it cannot read any more.
pub fn cannot_read(files: &[PathBuf]) -> Vec<&PathBuf> {
    let is_lost = |file: &&PathBuf| {
        let asked = accessat(CWD, file.as_path(), Access::READ_OK, AtFlags::EACCESS);
        asked == Err(rustix::io::Errno::ACCESS)
    };
    files.iter().filter(is_lost).collect()
}

/// Has the process root's rights?
pub fn is_root() -> bool {
    Uid::effective().is_root()
}

/// Said at the start of a larder that is and stays root without having been told so.
pub fn warn_of_root() {
    say!(
        "warning: larder runs as root, and whoever got hold of it would have the whole machine: --user NAME, or user in [process], has it become \
         that user once its addresses are bound"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: Option<(&str, Option<&str>)>) {
        let expect = expect.map(|(user, group)| UserWord { user: user.to_owned(), group: group.map(str::to_owned) });
        assert_eq!(UserWord::parse(text).ok(), expect, "{text}");
    }

    #[test]
    fn users_are_written_with_and_without_a_group() {
        check("larder", Some(("larder", None)));
        check("www-data:adm", Some(("www-data", Some("adm"))));
        check("65532:65532", Some(("65532", Some("65532"))));
        for wrong in ["", ":", "a:", ":b", "a:b:c", "a b", "a/b"] {
            check(wrong, None);
        }
    }

    #[test]
    fn numbers_need_no_entry_but_a_group() {
        let unknown = "4000000000";
        assert!(UserWord::parse(unknown).unwrap().resolve().unwrap_err().contains("4000000000:GROUP"));
        let user = UserWord::parse("4000000000:4000000001").unwrap().resolve().unwrap();
        assert_eq!((user.uid.as_raw(), user.gid.as_raw()), (4_000_000_000, 4_000_000_001));
        assert_eq!(user.groups, [user.gid]);
        assert!(UserWord::parse("no-such-user").unwrap().resolve().unwrap_err().contains("no user no-such-user"));
        assert!(UserWord::parse("0:no-such-group").unwrap().resolve().unwrap_err().contains("no group no-such-group"));
        assert!(UserWord::parse("root").unwrap().resolve().unwrap().uid.is_root());
    }

    #[test]
    fn a_thread_that_kept_anything_is_found() {
        let id = 65_534;
        let user =
            ProcessUser { shown: "x".to_owned(), uid: Uid::from_raw(id), gid: Gid::from_raw(id), groups: Vec::new() };
        let status = |uids: &str, gids: &str, set: &str| {
            format!(
                "Name:\tlarder-0\nUid:\t{uids}\nGid:\t{gids}\nCapPrm:\t0000000000000000\nCapEff:\t{set}\nCapAmb:\t0000000000000000\n"
            )
        };
        let (all, none) = ("65534\t65534\t65534\t65534", "0000000000000000");
        assert_eq!(user.verify_thread(&status(all, all, none)), Ok(()));
        let saved = "65534\t65534\t0\t65534";
        assert!(user.verify_thread(&status(saved, all, none)).unwrap_err().contains("another user or group"));
        assert!(user.verify_thread(&status(all, saved, none)).unwrap_err().contains("larder-0"));
        assert!(user.verify_thread(&status(all, all, "0000000000000400")).unwrap_err().contains("capabilities"));
        // What cannot be read is no proof.
        assert!(user.verify_thread("Name:\tx\n").is_err());
    }
}
