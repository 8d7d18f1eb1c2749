//! `userlist` of HAProxy as files of users that larder reads: a line each, with a hash by bcrypt.
//!
//! A password that stands there in the clear is hashed. A hash of another kind cannot be turned into one: whoever asks for such a
//! list lets nobody in.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::import::haproxy_conf::HaproxySection;

/// What `htpasswd -B` might take, and a few milliseconds.
const COST: u32 = 10;

/// What bcrypt reads of a password.
const PASSWORD_BYTES_MAX: usize = 72;

/// The lists of a configuration.
#[derive(Clone, Debug, Default)]
pub struct UserLists {
    lists: BTreeMap<String, Vec<ListedUser>>,
}

#[derive(Clone, Debug)]
struct ListedUser {
    name: String,
    password: Password,
    groups: BTreeSet<String>,
}

#[derive(Clone, Debug)]
enum Password {
    InTheClear(String),
    ByBcrypt(String),
    Unreadable,
}

impl UserLists {
    pub fn take(&mut self, section: &HaproxySection) {
        let mut users: Vec<ListedUser> = Vec::new();
        for line in section.lines.iter().filter(|line| line.name == "user") {
            let behind =
                |word: &str| line.arguments.iter().position(|known| known == word).map(|at| line.argument(at + 1));
            let password = match (behind("insecure-password"), behind("password")) {
                (Some(password), _) if (1..=PASSWORD_BYTES_MAX).contains(&password.len()) => {
                    Password::InTheClear(password.to_owned())
                }
                (None, Some(hash)) if hash.starts_with("$2") => Password::ByBcrypt(hash.to_owned()),
                _ => Password::Unreadable,
            };
            let groups = behind("groups").unwrap_or_default().split(',').map(str::to_owned).collect();
            users.push(ListedUser { name: line.argument(0).to_owned(), password, groups });
        }
        for line in section.lines.iter().filter(|line| line.name == "group") {
            let at = line.arguments.iter().position(|word| word == "users");
            let names = at.map(|at| line.argument(at + 1)).unwrap_or_default();
            for user in users.iter_mut().filter(|user| names.split(',').any(|name| name == user.name)) {
                user.groups.insert(line.argument(0).to_owned());
            }
        }
        self.lists.insert(section.name.clone(), users);
    }

    fn members(&self, list: &str, groups: Option<&[String]>) -> Vec<&ListedUser> {
        let is_member =
            |user: &&ListedUser| groups.is_none_or(|groups| groups.iter().any(|group| user.groups.contains(group)));
        self.lists.get(list).into_iter().flatten().filter(is_member).collect()
    }

    /// The name of a file of those. `None`: there are none, or larder cannot read how one of them is known.
    pub fn file_for(&self, list: &str, groups: Option<&[String]>) -> Option<String> {
        let members = self.members(list, groups);
        let is_sayable = |user: &&ListedUser| {
            !matches!(user.password, Password::Unreadable) && !user.name.is_empty() && !user.name.contains([':', '\n'])
        };
        let is_file_name = |name: &str| name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b));
        let parts: Vec<&str> = [list].into_iter().chain(groups.into_iter().flatten().map(String::as_str)).collect();
        (!members.is_empty() && members.iter().all(is_sayable) && parts.iter().all(|part| is_file_name(part)))
            .then(|| format!("{}.users", parts.join(".")))
    }

    /// Writes these files into a folder, for nobody else to read.
    pub fn write(&self, files: &BTreeSet<String>, folder: &Path) -> Result<(), String> {
        for file in files {
            let parts: Vec<String> = file.trim_end_matches(".users").split('.').map(str::to_owned).collect();
            let Some((list, groups)) = parts.split_first() else { continue };
            let mut text = String::new();
            for user in self.members(list, (!groups.is_empty()).then_some(groups)) {
                let hash = match &user.password {
                    Password::ByBcrypt(hash) => hash.clone(),
                    Password::InTheClear(password) => {
                        bcrypt::hash(password, COST).map_err(|error| format!("{file}: {error}"))?
                    }
                    Password::Unreadable => continue,
                };
                text.push_str(&format!("{}:{hash}\n", user.name));
            }
            let path = folder.join(file);
            write_private(&path, &text).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        Ok(())
    }
}

/// A file that is there already is somebody's.
fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::nginx_conf::directive;

    fn lists() -> UserLists {
        let lines = [
            "group admins users ann",
            "user ann insecure-password open",
            "user ben password $2y$05$abcdefghijklmnopqrstuu groups staff,guests",
            "user old password $5$abc$def groups legacy",
        ];
        let section = |name: &str, lines: &[&str]| HaproxySection {
            kind: "userlist".into(),
            name: name.into(),
            head: directive("userlist x"),
            lines: lines.iter().map(|line| directive(line)).collect(),
        };
        let mut lists = UserLists::default();
        lists.take(&section("all", &lines));
        lists.take(&section("known", &lines[..3]));
        lists
    }

    #[test]
    fn a_list_is_a_file_where_larder_can_read_every_hash() {
        let of = |list: &str, groups: &[&str]| {
            let groups: Vec<String> = groups.iter().map(|&group| group.to_owned()).collect();
            lists().file_for(list, (!groups.is_empty()).then_some(&groups))
        };
        assert_eq!(of("known", &[]).as_deref(), Some("known.users"));
        assert_eq!(of("all", &[]), None);
        assert_eq!(of("all", &["admins"]).as_deref(), Some("all.admins.users"));
        assert_eq!(of("all", &["legacy"]), None);
        assert_eq!(of("none", &[]), None);
    }

    #[test]
    fn passwords_are_hashed_and_files_private() {
        use std::os::unix::fs::PermissionsExt;
        let folder = std::env::temp_dir().join(format!("larder-users-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        lists().write(&["known.users".to_owned(), "known.admins.users".to_owned()].into(), &folder).unwrap();
        let text = std::fs::read_to_string(folder.join("known.users")).unwrap();
        let hash = text.lines().find_map(|line| line.strip_prefix("ann:")).unwrap();
        assert!(bcrypt::verify("open", hash).unwrap() && text.contains("\nben:$2y$05$"), "{text}");
        assert!(!text.contains("open"));
        let admins = std::fs::read_to_string(folder.join("known.admins.users")).unwrap();
        assert_eq!(admins.lines().count(), 1);
        let mode = std::fs::metadata(folder.join("known.users")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
