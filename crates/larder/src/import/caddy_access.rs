//! Who may come, as Caddy's `basic_auth` and `forward_auth` say it, as words of a route. What cannot be said closes what it guards.

use std::path::{Path, PathBuf};

use crate::import::caddy_fields::{FieldEdits, FieldsOf};
use crate::import::caddy_origin;
use crate::import::caddy_text::TextScope;
use crate::import::import_findings::{Findings, quoted};
use crate::import::nginx_conf::Directive;
use crate::import::nginx_order::escaped;
use crate::import::nginx_upstream::Origins;

/// Files of users, which Caddy has in its configuration and larder beside it.
#[derive(Debug, Default)]
pub struct UserFiles {
    /// Where larder.toml will be: without it nobody knows where to put them.
    beside: Option<PathBuf>,
    made: Vec<(PathBuf, String)>,
}

/// A service that is asked, and what it says of who comes.
#[derive(Debug, PartialEq, Eq)]
pub struct AskedService {
    pub line: String,
    pub requests: FieldEdits,
}

impl UserFiles {
    pub fn beside(output: Option<&Path>) -> UserFiles {
        UserFiles {
            beside: output.map(|output| std::path::absolute(output).unwrap_or(output.to_owned())),
            made: Vec::new(),
        }
    }

    /// The file with these users, the same one for the same users.
    fn file(&mut self, users: String) -> Option<PathBuf> {
        if let Some((file, _)) = self.made.iter().find(|(_, known)| *known == users) {
            return Some(file.clone());
        }
        let output = self.beside.as_ref()?;
        let name = output.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let number = self.made.len() + 1;
        let file = output.with_file_name(format!("{name}.users-{number}"));
        self.made.push((file.clone(), users));
        Some(file)
    }

    /// Writes them, for their owner alone. What is there is somebody's: a file with other users stays as it is, and is an error.
    pub fn write(&self) -> Result<(), String> {
        use std::io::Write;
        use std::os::unix::fs::OpenOptionsExt;
        for (file, users) in &self.made {
            let wrong = |error: std::io::Error| format!("{}: {error}", file.display());
            if std::fs::read_to_string(file).is_ok_and(|known| known == *users) {
                continue;
            }
            let opened = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(file);
            opened.and_then(|mut file| file.write_all(users.as_bytes())).map_err(wrong)?;
        }
        Ok(())
    }

    /// The patterns of larder.toml and of these files beneath a root, with those of sites that come later.
    pub fn files(&self, root: &Path) -> Option<String> {
        let output = self.beside.as_ref()?;
        let folder = output.parent()?.strip_prefix(root).ok()?.display().to_string();
        let folder = if folder.is_empty() { folder } else { format!("{}/", escaped(&folder)) };
        let name = |name: Option<&std::ffi::OsStr>| escaped(&name.unwrap_or_default().to_string_lossy());
        let (whole, stem) = (name(output.file_name()), name(output.file_stem()));
        Some(format!("^/{folder}(?:{whole}|{stem}\\.users-[0-9]+)(?:/|$)"))
    }

    /// The line of a route for a `basic_auth`, whose words are its hash and realm. `None`: it cannot be said, which has been said.
    pub fn login(&mut self, directive: &Directive, words: &[String], findings: &mut Findings) -> Option<String> {
        let (hash, realm) = match words {
            [] => ("bcrypt", "restricted"),
            [hash] => (hash.as_str(), "restricted"),
            [hash, realm, ..] => (hash.as_str(), realm.as_str()),
        };
        let is_plain = realm.bytes().all(|byte| (b' '..=b'~').contains(&byte) && !b"\"\\".contains(&byte));
        let users: Option<Vec<String>> = directive.children().iter().map(user).collect();
        match users {
            Some(users) if hash == "bcrypt" && is_plain && !realm.is_empty() && !users.is_empty() => {
                let file = self.file(users.concat());
                if file.is_none() {
                    findings.leave(
                        directive,
                        "closed: say -o larder.toml, and its users are written to a file beside that",
                    );
                }
                let file = quoted(&file?.display().to_string());
                Some(format!("basic_auth = {{ file = {file}, realm = {} }}", quoted(realm)))
            }
            _ => {
                findings
                    .leave(directive, "closed: passwords have to be in bcrypt, in its own form that begins with $2");
                None
            }
        }
    }
}

/// A line of a file of users.
fn user(line: &Directive) -> Option<String> {
    let (name, hash) = (&line.name, line.argument(0));
    let is_bcrypt = ["$2a$", "$2b$", "$2y$"].iter().any(|kind| hash.starts_with(kind)) && hash.len() == 60;
    let is_name = !name.is_empty() && !name.contains([':', '{', '#']) && !name.contains(char::is_control);
    (is_bcrypt && is_name && line.arguments.len() == 1).then(|| format!("{name}:{hash}\n"))
}

/// Fields by which larder tells a service what was asked for, with the words by which Caddy says the same.
const SAID_ANYWAY: [(&str, &[&str]); 5] = [
    ("X-Forwarded-Uri", &["{uri}", "{http.request.uri}"]),
    ("X-Forwarded-Method", &["{method}", "{http.request.method}"]),
    ("X-Forwarded-Host", &["{host}", "{http.request.host}"]),
    ("X-Forwarded-Proto", &["{scheme}", "{http.request.scheme}"]),
    ("X-Forwarded-For", &["{remote_host}", "{http.request.remote.host}"]),
];

fn is_said_anyway(line: &Directive) -> bool {
    let [name, value] = &line.arguments[..] else { return false };
    SAID_ANYWAY.iter().any(|(known, words)| known.eq_ignore_ascii_case(name) && words.contains(&value.as_str()))
}

/// The lines of a route for a `forward_auth`. `None`: it cannot be said, which has been said.
pub fn service(
    directive: &Directive,
    words: &[String],
    folder: &Path,
    origins: &mut Origins,
    findings: &mut Findings,
) -> Option<AskedService> {
    let (mut path, mut copied, mut rest) = (None, Vec::new(), Vec::new());
    let mut requests = FieldEdits::default();
    for line in directive.children() {
        match line.name.as_str() {
            "uri" => path = Some(line.argument(0).to_owned()),
            "copy_headers" => {
                copied.extend(line.arguments.iter().cloned());
                copied.extend(line.children().iter().map(|child| child.name.clone()));
            }
            "header_up" if is_said_anyway(line) => {}
            // What the service is asked with cannot be said for it alone.
            "header_up" => {
                findings.leave(line, "closed: a service is asked with the fields of the request");
                return None;
            }
            _ => rest.push(line.clone()),
        }
    }
    let path = path.unwrap_or_else(|| "/".to_owned());
    let is_path =
        path.starts_with('/') && path.bytes().all(|b| b.is_ascii_graphic() && b != b'#') && !path.contains('{');
    if !is_path {
        findings.leave(directive, "closed: a service is asked for a path without placeholders");
        return None;
    }
    let asked = Directive { block: Some(rest), ..directive.clone() };
    let asked = caddy_origin::of(&asked, words, TextScope::default(), folder, origins, findings)?;
    let mut names = Vec::new();
    for field in &copied {
        let (from, to) = field.split_once('>').unwrap_or((field, field));
        if !crate::config::may_be_set_in_requests(from) || !crate::config::may_be_set_in_requests(to) {
            findings.leave(directive, "closed: it copies a field that larder does not write");
            return None;
        }
        names.push(quoted(from));
        if from != to {
            let value = format!("{{http.request.header.{from}}}");
            let words = [to.to_owned(), value];
            requests.take(&words, FieldsOf::Requests, TextScope::default(), (directive, findings));
        }
    }
    for (from, to) in copied.iter().map(|field| field.split_once('>').unwrap_or((field, field))) {
        requests.is_written_elsewhere(from);
        requests.is_written_elsewhere(to);
    }
    findings.note(directive, "an answer that is neither 2xx, 401, 403 nor a redirect is 502");
    let copy = if names.is_empty() { String::new() } else { format!(", copy = [{}]", names.join(", ")) };
    let line = format!("auth_request = {{ origin = {}, path = {}{copy} }}", quoted(&asked.origin), quoted(&path));
    Some(AskedService { line, requests })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::nginx_conf::directive;

    const HASH: &str = "$2a$14$Zkx19XLiW6VYouLHR5NmfOFU0z2GTNmpkT/5qqR7hx4IjWJPDhjvG";

    fn login(user: &str, words: &[&str], output: Option<&str>) -> (Option<String>, usize, UserFiles) {
        let block = Directive { block: Some(vec![directive(user)]), ..directive("basic_auth") };
        let (mut users, mut findings) = (UserFiles::beside(output.map(Path::new)), Findings::default());
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        let line = users.login(&block, &words, &mut findings);
        (line, findings.left_count(), users)
    }

    #[test]
    fn users_are_in_a_file_beside_the_output() {
        let (line, left, users) = login(&format!("ann {HASH}"), &[], Some("/x/larder.toml"));
        let expect = "basic_auth = { file = \"/x/larder.users-1\", realm = \"restricted\" }";
        assert_eq!((line.as_deref(), left), (Some(expect), 0));
        assert_eq!(users.made, [(PathBuf::from("/x/larder.users-1"), format!("ann:{HASH}\n"))]);
        let (line, ..) = login(&format!("ann {HASH}"), &["bcrypt", "us"], Some("/x/a.toml"));
        assert!(line.is_some_and(|line| line.ends_with("realm = \"us\" }")));
        for (user, words, output) in [
            ("ann JDJhJDE0JA==", &[][..], Some("/x/a.toml")),
            (&format!("a:b {HASH}"), &[], Some("/x/a.toml")),
            (&format!("ann {HASH}"), &["argon2id"], Some("/x/a.toml")),
            (&format!("ann {HASH}"), &[], None),
        ] {
            let (line, left, _) = login(user, words, output);
            assert_eq!((line, left), (None, 1), "{user}");
        }
    }

    #[test]
    fn what_is_written_beneath_a_root_is_shown_to_nobody() {
        let users = UserFiles::beside(Some(Path::new("/srv/conf/larder.toml")));
        let pattern = users.files(Path::new("/srv")).expect("a pattern");
        let closed = proxy::settings::ClosedPaths::new([pattern.as_str()]).expect("a regex");
        for (path, expect) in [
            ("/conf/larder.toml", true),
            ("/conf/larder.users-2", true),
            ("/larder.toml", false),
            ("/conf/larder.html", false),
        ] {
            assert_eq!(closed.close(path.as_bytes()), expect, "{path}");
        }
        assert_eq!(users.files(Path::new("/other")), None);
    }

    #[test]
    fn a_file_of_other_users_stays() {
        let folder = std::env::temp_dir().join(format!("larder-caddy-users-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let output = folder.join("larder.toml");
        let (_, _, users) = login(&format!("ann {HASH}"), &[], output.to_str());
        assert_eq!((users.write(), users.write()), (Ok(()), Ok(())));
        let (_, _, others) = login(&format!("bob {HASH}"), &[], output.to_str());
        assert!(others.write().is_err());
        let _ = std::fs::remove_dir_all(&folder);
    }

    #[test]
    fn a_service_is_asked() {
        let lines = |lines: &[&str]| Some(lines.iter().map(|line| directive(line)).collect());
        let asked = |block| {
            let directive = Directive { block, ..directive("forward_auth auth:9091") };
            let (mut origins, mut findings) = (Origins::default(), Findings::default());
            let asked = service(&directive, &directive.arguments, Path::new(""), &mut origins, &mut findings);
            (asked.map(|asked| (asked.line, asked.requests.names("X-B"))), findings.left_count())
        };
        let line = "auth_request = { origin = \"auth:9091\", path = \"/verify\", copy = [\"X-A\", \"X-C\"] }";
        let done = asked(lines(&["uri /verify", "copy_headers X-A X-C>X-B"]));
        assert_eq!(done, (Some((line.to_owned(), true)), 0));
        let said = asked(lines(&["uri /v", "header_up X-Forwarded-Uri {uri}"]));
        assert!(said.0.is_some_and(|(_, names_b)| !names_b) && said.1 == 0);
        for closes in [
            "uri /{x}",
            "header_up X-Key secret",
            "header_up X-Forwarded-Need admin",
            "header_up X-Forwarded-Uri /",
            "copy_headers Host",
            "handle_response",
        ] {
            assert_eq!(asked(lines(&[closes])), (None, 1), "{closes}");
        }
    }
}
