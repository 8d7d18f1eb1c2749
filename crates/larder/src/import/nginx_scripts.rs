//! `fastcgi_pass` of nginx: which scripts an application runs, those of a root or always the same one, and what it is told.
//! It knows no routes.

use std::path::Path;

use crate::import::import_findings::{Findings, quoted};
use crate::import::nginx_conf::Directive;
use crate::import::nginx_fields::inline_table;
use crate::import::nginx_upstream::Origins;

/// What a level says of applications and the levels inside it inherit. Variables are inherited all together or not at all.
#[derive(Clone, Debug, Default)]
pub struct ScriptLevel {
    params: Option<Vec<Directive>>,
    index: Option<String>,
    /// What stands behind a script's name is handed to it, and no part of the name.
    splits: Option<bool>,
    keeps_connections: Option<bool>,
}

/// What an application runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Runs {
    /// Scripts of the location's root, by their paths.
    OfRoot { origin: String },
    /// The same one, whatever is asked for: its path beneath the origin's document root.
    One { origin: String, script: String },
}

/// Variables that larder gives by itself, of nginx's `fastcgi_params` and what else they say there.
const GIVEN: [&str; 27] = [
    "QUERY_STRING",
    "REQUEST_METHOD",
    "CONTENT_TYPE",
    "CONTENT_LENGTH",
    "SCRIPT_FILENAME",
    "SCRIPT_NAME",
    "REQUEST_URI",
    "DOCUMENT_URI",
    "DOCUMENT_ROOT",
    "SERVER_PROTOCOL",
    "REQUEST_SCHEME",
    "HTTPS",
    "GATEWAY_INTERFACE",
    "SERVER_SOFTWARE",
    "REMOTE_ADDR",
    "REMOTE_PORT",
    "REMOTE_USER",
    "SERVER_ADDR",
    "SERVER_PORT",
    "SERVER_NAME",
    "REDIRECT_STATUS",
    "PATH_INFO",
    "PATH_TRANSLATED",
    "HTTP_PROXY",
    "HTTP_HOST",
    "HTTP_X_FORWARDED_FOR",
    "HTTP_X_FORWARDED_PROTO",
];

const NEEDS_NOTHING: [&str; 13] = [
    "fastcgi_buffers",
    "fastcgi_buffer_size",
    "fastcgi_busy_buffers_size",
    "fastcgi_buffering",
    "fastcgi_request_buffering",
    "fastcgi_max_temp_file_size",
    "fastcgi_temp_file_write_size",
    "fastcgi_ignore_client_abort",
    "fastcgi_intercept_errors",
    "fastcgi_send_timeout",
    "fastcgi_next_upstream",
    "fastcgi_param_unset",
    "fastcgi_socket_keepalive",
];

impl ScriptLevel {
    pub fn within(self, outer: &ScriptLevel) -> ScriptLevel {
        ScriptLevel {
            params: self.params.or_else(|| outer.params.clone()),
            index: self.index.or_else(|| outer.index.clone()),
            splits: self.splits.or(outer.splits),
            keeps_connections: self.keeps_connections.or(outer.keeps_connections),
        }
    }

    /// Takes a directive in. False: it is another one.
    pub fn take(&mut self, directive: &Directive, findings: &mut Findings) -> bool {
        let first = directive.argument(0);
        match directive.name.as_str() {
            "fastcgi_param" => self.params.get_or_insert_default().push(directive.clone()),
            "fastcgi_split_path_info" => self.splits = Some(true),
            "fastcgi_index" => self.index = Some(first.to_owned()),
            "fastcgi_keep_conn" => self.keeps_connections = Some(first == "on"),
            name if NEEDS_NOTHING.contains(&name) => {
                findings.note(directive, "larder does so by itself; how long it waits is in [limits]");
            }
            _ => return false,
        }
        true
    }

    /// The script that answers for a directory.
    pub fn index(&self) -> Option<&str> {
        self.index.as_deref().filter(|index| !index.contains(['/', '$']))
    }

    /// May something stand behind a script's name?
    pub fn splits(&self) -> bool {
        self.splits == Some(true)
    }

    /// What runs behind a `fastcgi_pass`. `None`: nothing that can be said, which has been said.
    pub fn runs(&self, pass: &Directive, root: &Path, origins: &mut Origins, findings: &mut Findings) -> Option<Runs> {
        let (document_root, script) = self.script(pass, root, findings)?;
        let mut keys = self.keys(findings)?;
        let document_root = match (&script, document_root) {
            (Some(_), None) => Some(root.display().to_string()),
            (_, document_root) => document_root,
        };
        keys.extend(document_root.map(|root| format!("document_root = {}", quoted(&root))));
        keys.extend(script.as_ref().map(|script| format!("index = {}", quoted(script))));
        let origin = origins.of_application(pass, keys, findings)?;
        Some(match script {
            Some(script) => Runs::One { origin, script },
            None => Runs::OfRoot { origin },
        })
    }

    /// The origin that always runs a script of the root, given by its path.
    pub fn always(
        &self,
        (pass, script): (&Directive, &str),
        root: &Path,
        origins: &mut Origins,
        findings: &mut Findings,
    ) -> Option<String> {
        let (document_root, _) = self.script(pass, root, findings)?;
        let mut keys = self.keys(findings)?;
        let document_root = document_root.unwrap_or_else(|| root.display().to_string());
        keys.push(format!("document_root = {}", quoted(&document_root)));
        keys.push(format!("index = {}", quoted(script.trim_start_matches('/'))));
        origins.of_application(pass, keys, findings)
    }

    /// Where the application has its scripts, if that is said, and the one that always runs.
    fn script(
        &self,
        pass: &Directive,
        root: &Path,
        findings: &mut Findings,
    ) -> Option<(Option<String>, Option<String>)> {
        let mut params = self.params.iter().flatten();
        let Some(named) = params.rfind(|param| param.argument(0) == "SCRIPT_FILENAME") else {
            findings.leave(pass, "closed: nothing says which script is run (SCRIPT_FILENAME), so nginx runs none");
            return None;
        };
        let root = root.display().to_string();
        let value = named.argument(1).replace("$realpath_root", "$document_root");
        if value == "$request_filename" {
            return Some((None, None));
        }
        if let Some(place) = value.strip_suffix("$fastcgi_script_name").or(value.strip_suffix("$uri")) {
            let place = place.trim_end_matches('/');
            match place {
                "$document_root" => return Some((None, None)),
                place if place.starts_with('/') && !place.contains('$') => {
                    return Some((Some(place.to_owned()).filter(|place| *place != root), None));
                }
                _ => {}
            }
        }
        let path = value.replace("$document_root", &root);
        let within = path.strip_prefix(&format!("{}/", root.trim_end_matches('/')));
        match (within, Path::new(&path).parent(), Path::new(&path).file_name()) {
            _ if path.contains('$') || !path.ends_with(".php") || path.contains("/.") => {
                findings.leave(named, "closed: larder cannot say which script this is");
                findings.note(pass, "closed");
                None
            }
            (Some(script), ..) => Some((Some(root.clone()), Some(script.to_owned()))),
            (None, Some(folder), Some(name)) if path.starts_with('/') => {
                Some((Some(folder.display().to_string()), Some(name.to_string_lossy().into_owned())))
            }
            _ => {
                findings.leave(named, "closed: larder cannot say which script this is");
                None
            }
        }
    }

    /// The keys of the origin that say what it is told. `None`: something that guards cannot be.
    fn keys(&self, findings: &mut Findings) -> Option<Vec<String>> {
        // Some look for nginx here before they write links without a script's name.
        let mut told = vec![("SERVER_SOFTWARE".to_owned(), "nginx".to_owned())];
        for param in self.params.iter().flatten() {
            let (name, value) = (param.argument(0), param.argument(1));
            if GIVEN.contains(&name) {
                continue;
            }
            let is_name = name.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_');
            let is_value = !value.contains('$') && !value.contains(char::is_control);
            match is_name && is_value && !name.starts_with(|c: char| c.is_ascii_digit()) {
                true => {
                    told.retain(|(known, _)| known != name);
                    told.push((name.to_owned(), value.to_owned()));
                }
                false if name.starts_with("PHP_") => {
                    findings.leave(param, "closed: PHP would run without these settings");
                    return None;
                }
                false if name.starts_with("HTTP_") => {
                    findings.leave(param, "closed: the application would believe a client's own field");
                    return None;
                }
                false => {
                    findings.leave(param, "a variable's name is in capitals, and its value one line without others")
                }
            }
        }
        let mut keys = vec![format!("params = {}", inline_table(&told))];
        if self.keeps_connections == Some(true) {
            keys.push("keep_alive = true".to_owned());
        }
        Some(keys)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::nginx_conf::directive;

    fn check(params: &[&str], expect: Option<Runs>, section: &str, left: usize) {
        let (mut level, mut origins, mut findings) = (ScriptLevel::default(), Origins::default(), Findings::default());
        assert!(params.iter().all(|param| level.take(&directive(param), &mut findings)));
        let pass = directive("fastcgi_pass unix:/run/php.sock");
        assert_eq!(level.runs(&pass, Path::new("/srv/www"), &mut origins, &mut findings), expect, "{params:?}");
        let mut text = String::new();
        origins.write(&mut text);
        let text = text.replace("\"SERVER_SOFTWARE\" = \"nginx\", ", "");
        let is_more = |line: &&str| *line != "params = { \"SERVER_SOFTWARE\" = \"nginx\" }";
        assert_eq!(text.lines().skip(3).filter(is_more).collect::<Vec<_>>().join("|"), section, "{params:?}");
        assert_eq!(findings.left_count(), left, "{params:?}: {findings:?}");
    }

    #[test]
    fn scripts_are_those_of_the_root_or_one() {
        let of_root = || Some(Runs::OfRoot { origin: "php".to_owned() });
        let one = |script: &str| Some(Runs::One { origin: "php".to_owned(), script: script.to_owned() });
        // Nothing runs, whatever else is said; fastcgi_params says no more than this.
        check(&[], None, "", 1);
        check(&["fastcgi_param SCRIPT_NAME $fastcgi_script_name"], None, "", 1);
        check(&["fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name"], of_root(), "", 0);
        check(&["fastcgi_param SCRIPT_FILENAME $realpath_root/$fastcgi_script_name"], of_root(), "", 0);
        let elsewhere = "document_root = \"/app/public\"";
        check(&["fastcgi_param SCRIPT_FILENAME /app/public$fastcgi_script_name"], of_root(), elsewhere, 0);
        let front = "document_root = \"/srv/www\"|index = \"a/index.php\"";
        check(&["fastcgi_param SCRIPT_FILENAME $document_root/a/index.php"], one("a/index.php"), front, 0);
        let front = "document_root = \"/app\"|index = \"index.php\"";
        check(&["fastcgi_param SCRIPT_FILENAME /app/index.php"], one("index.php"), front, 0);
        for unknown in ["$script", "/app$x/a.php", "/app/.hidden/a.php", "/app/a.cgi"] {
            check(&[&format!("fastcgi_param SCRIPT_FILENAME {unknown}")], None, "", 1);
        }
    }

    #[test]
    fn what_scripts_are_told_is_carried_over() {
        let of_root = || Some(Runs::OfRoot { origin: "php".to_owned() });
        let check = |lines: &[&str], expect, section: &str, left| {
            let lines = [&["fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name"], lines].concat();
            check(&lines, expect, section, left);
        };
        let lines = ["fastcgi_param APP_ENV prod", "fastcgi_param QUERY_STRING $query_string", "fastcgi_keep_conn on"];
        check(&lines, of_root(), "params = { \"APP_ENV\" = \"prod\" }|keep_alive = true", 0);
        check(&["fastcgi_param USER $user"], of_root(), "", 1);
        check(&["fastcgi_param HTTP_REMOTE_USER $user"], None, "", 1);
        // What confines PHP is a guard.
        check(&["fastcgi_param PHP_ADMIN_VALUE open_basedir=$document_root"], None, "", 1);
    }
}
