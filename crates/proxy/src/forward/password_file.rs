//! A password file as `htpasswd -B` writes it: `USER:HASH` a line. Only bcrypt is read: the other forms that the tool knows
//! can be guessed at by the million.

use std::collections::HashMap;
use std::io::Read;
use std::path::Path;

use crate::limits::{BCRYPT_COST_MAX, PASSWORD_FILE_BYTES_MAX};

/// Users and their hashes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PasswordFile(HashMap<String, String>);

/// Would a server read this file of users? The error says what is wrong with it, and in which line.
pub fn check_password_file(path: &Path) -> Result<(), String> {
    PasswordFile::read(path).map(drop)
}

impl PasswordFile {
    /// What is wrong is a sentence that names the line.
    pub(crate) fn read(path: &Path) -> Result<PasswordFile, String> {
        let named = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
        let mut text = String::new();
        let file = std::fs::File::open(path).map_err(|why| named(&why))?;
        file.take(PASSWORD_FILE_BYTES_MAX + 1).read_to_string(&mut text).map_err(|why| named(&why))?;
        if text.len() as u64 > PASSWORD_FILE_BYTES_MAX {
            return Err(named(&format_args!("more than {PASSWORD_FILE_BYTES_MAX} bytes")));
        }
        PasswordFile::parse(&text).map_err(|why| named(&why))
    }

    fn parse(text: &str) -> Result<PasswordFile, String> {
        let mut users = HashMap::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim_end();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let wrong = |why: &str| Err(format!("line {}: {why}", index + 1));
            // What stands behind a second colon is a comment.
            let Some((user, rest)) = line.split_once(':') else { return wrong("no colon between user and hash") };
            let hash = rest.split(':').next().unwrap_or(rest);
            if user.is_empty() {
                return wrong("no user before the colon");
            }
            match cost(hash) {
                None => return wrong("not a bcrypt hash (htpasswd -B writes them)"),
                Some(cost) if cost > BCRYPT_COST_MAX => {
                    return wrong(&format!("a cost of {cost} takes too long: at most {BCRYPT_COST_MAX}"));
                }
                Some(_) => {}
            }
            if users.insert(user.to_owned(), hash.to_owned()).is_some() {
                return wrong("this user stands here twice");
            }
        }
        Ok(PasswordFile(users))
    }

    /// Is this the user's password? Takes as long for a user that there is not.
    pub(crate) fn verify(&self, user: &str, password: &[u8]) -> bool {
        let hash = self.0.get(user);
        let Some(compared) = hash.or_else(|| self.0.values().next()) else { return false };
        // Reads what does not verify, and what is no hash, alike.
        let is_right = bcrypt::verify(password, compared).unwrap_or(false);
        is_right && hash.is_some()
    }
}

/// The cost in `$2y$10$…`, of a hash that is whole.
fn cost(hash: &str) -> Option<u32> {
    let rest = ["$2y$", "$2a$", "$2b$"].iter().find_map(|start| hash.strip_prefix(start))?;
    let (cost, salted) = rest.split_once('$')?;
    let is_whole = salted.len() == 53 && salted.bytes().all(|b| b.is_ascii_alphanumeric() || b"./".contains(&b));
    let cost: u32 = cost.parse().ok().filter(|_| cost.len() == 2)?;
    (is_whole && cost >= 4).then_some(cost)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `htpasswd -nbB -C 4 ann secret`
    const ANN: &str = "ann:$2y$04$5NSSZIpLDFpBBYhR/Sbade1CozX8FF/a1rpjazVCxqeWISC5WrWKC";

    fn check(text: &str, expect: Result<usize, &str>) {
        let found = PasswordFile::parse(text);
        assert_eq!(found.as_ref().map(|file| file.0.len()).map_err(|why| &**why), expect, "{text}");
    }

    #[test]
    fn a_line_is_a_user_and_a_bcrypt_hash() {
        check(&format!("# who may\n\n{ANN}\nbob:{}\n", &ANN[4..]), Ok(2));
        check("", Ok(0));
        check("ann", Err("line 1: no colon between user and hash"));
        check(&ANN[3..], Err("line 1: no user before the colon"));
        check(&format!("{ANN}\n{ANN}"), Err("line 2: this user stands here twice"));
        let not_bcrypt = Err("line 1: not a bcrypt hash (htpasswd -B writes them)");
        for hash in ["secret", "$apr1$x$y", "{SHA}abc", &ANN[4..40], "$2y$4$x"] {
            check(&format!("ann:{hash}"), not_bcrypt);
        }
        let costly = ANN.replace("$04$", "$20$");
        check(&costly, Err("line 1: a cost of 20 takes too long: at most 15"));
    }

    #[test]
    fn the_password_of_a_user_is_that_users_alone() {
        let file = PasswordFile::parse(ANN).unwrap();
        assert!(file.verify("ann", b"secret"));
        for (user, password) in [("ann", "Secret"), ("ann", ""), ("bob", "secret"), ("", "secret")] {
            assert!(!file.verify(user, password.as_bytes()), "{user}:{password}");
        }
        assert!(!PasswordFile::default().verify("ann", b"secret"));
    }
}
