//! One `location` of nginx as a `[[route]]`: what is inherited from the server around it, and the keys that come of it.

use std::path::{Path, PathBuf};

use crate::import::import_findings::{Findings, quoted};
use crate::import::nginx_conf::Directive;
use crate::import::nginx_guards::{self, AccessRules};
use crate::import::nginx_memcached::{MemcachedLevel, Pass};
use crate::import::nginx_types::Types;
use crate::import::nginx_upstream::ProxyLevel;

/// What a level says and the levels inside it inherit.
#[derive(Clone, Debug, Default)]
pub struct Level {
    root: Option<PathBuf>,
    index: Option<Vec<String>>,
    types: Types,
    /// As lines of `error_pages`, with the paths.
    error_pages: Option<Vec<(String, String)>>,
    listing: Option<&'static str>,
    cache_control: Option<String>,
    precompressed: Option<bool>,
    fallback: Option<String>,
    /// The location that answers where there is no file, by its name.
    pub named: Option<String>,
    /// Which files these are cannot be said: none are shown.
    hides_files: bool,
    pub proxy: ProxyLevel,
    pub memcached: MemcachedLevel,
}

/// What a location is besides what it inherits.
#[derive(Clone, Debug, Default)]
pub struct Location {
    pub level: Level,
    pub stub_status: bool,
    pub proxy_pass: Option<Directive>,
    rules: AccessRules,
    /// memcached answers in place of files.
    pub pass: Option<Pass>,
    /// Something that answers in place of files, and that larder was not given.
    pub answered_otherwise: bool,
}

/// Directives that change nothing of what is answered, or that larder does by itself.
const NEEDS_NOTHING: [&str; 30] = [
    "sendfile",
    "sendfile_max_chunk",
    "tcp_nopush",
    "tcp_nodelay",
    "aio",
    "directio",
    "output_buffers",
    "postpone_output",
    "server_names_hash_bucket_size",
    "server_names_hash_max_size",
    "types_hash_max_size",
    "types_hash_bucket_size",
    "open_file_cache_min_uses",
    "open_file_cache_errors",
    "log_not_found",
    "log_format",
    "server_tokens",
    "etag",
    "reset_timedout_connection",
    "keepalive_requests",
    "client_body_temp_path",
    "proxy_temp_path",
    "fastcgi_temp_path",
    "uwsgi_temp_path",
    "scgi_temp_path",
    "read_ahead",
    "gzip_vary",
    "connection_pool_size",
    "request_pool_size",
    "break",
];

/// Is it more than files that a location with this in it answers with?
fn answers_by_itself(directive: &Directive) -> bool {
    directive.name.ends_with("_pass") || directive.name == "stub_status"
}

/// Does it keep people out, or answer in place of files? With a word on it, if so.
pub fn guards(directive: &Directive, findings: &mut Findings) -> bool {
    let is_guard = nginx_guards::is_guard(directive);
    if is_guard {
        findings.leave(directive, "closed: only files for everybody are carried over");
    }
    is_guard
}

impl Level {
    pub fn within(self, outer: &Level) -> Level {
        Level {
            hides_files: self.hides_files || outer.hides_files && self.root.is_none(),
            root: self.root.or_else(|| outer.root.clone()),
            index: self.index.or_else(|| outer.index.clone()),
            types: self.types.within(&outer.types),
            error_pages: self.error_pages.or_else(|| outer.error_pages.clone()),
            listing: self.listing.or(outer.listing),
            cache_control: self.cache_control.or_else(|| outer.cache_control.clone()),
            precompressed: self.precompressed.or(outer.precompressed),
            // nginx hands try_files down to no location.
            fallback: self.fallback,
            named: self.named,
            proxy: self.proxy.within(&outer.proxy),
            memcached: self.memcached.within(&outer.memcached),
        }
    }

    /// Are there files that nobody may be shown, because nginx shows others?
    pub fn hides_files(&self) -> bool {
        self.hides_files
    }

    pub fn has_root_of(&self, other: &Level) -> bool {
        self.root == other.root
    }

    pub fn trust_larder_types(&mut self) {
        self.types.trust_larder();
    }

    /// Takes a directive in that may stand at any level. False: it is another one.
    pub fn take(&mut self, directive: &Directive, prefix: &Path, findings: &mut Findings) -> bool {
        if self.types.take(directive)
            || self.proxy.take(directive, findings)
            || self.memcached.take(directive, findings)
        {
            return true;
        }
        let first = directive.argument(0);
        match directive.name.as_str() {
            "root" if first.contains('$') => {
                self.hides_files = true;
                findings.leave(directive, "closed: a root cannot have variables");
            }
            "root" => self.root = Some(prefix.join(first)),
            "index" => self.take_index(directive, findings),
            "error_page" => self.take_error_page(directive, findings),
            "autoindex" => self.listing = Some(if first == "on" { "html" } else { "off" }),
            "autoindex_format" if first == "json" => self.listing = Some("json"),
            "autoindex_format" if first == "html" => {}
            "autoindex_exact_size" | "autoindex_localtime" => {
                findings.note(directive, "listings give lengths in bytes and times in GMT");
            }
            "gzip_static" => {
                self.precompressed = Some(first != "off");
                findings.note(directive, "precompressed = true sends .br and .zst files too, where they are");
            }
            "try_files" => self.take_try_files(directive, findings),
            "expires" => self.take_expires(directive, findings),
            "add_header" if first.eq_ignore_ascii_case("cache-control") && !directive.argument(1).contains('$') => {
                self.cache_control = Some(directive.argument(1).to_owned());
            }
            "access_log" if first == "off" => {
                findings.note(directive, "there is one access log for all routes, and none unless [log] asks for it");
            }
            name if NEEDS_NOTHING.contains(&name) => findings.note(directive, "larder does so by itself"),
            _ => return false,
        }
        true
    }

    fn take_index(&mut self, directive: &Directive, findings: &mut Findings) {
        let is_name = |name: &&String| !name.contains(['/', '$']);
        let (names, others): (Vec<_>, Vec<_>) = directive.arguments.iter().partition(is_name);
        if !others.is_empty() {
            findings.leave(directive, "an index file must be a plain name");
        }
        self.index = Some(names.into_iter().cloned().collect());
    }

    fn take_error_page(&mut self, directive: &Directive, findings: &mut Findings) {
        let Some((page, statuses)) = directive.arguments.split_last() else { return };
        if !page.starts_with('/') || page.contains(['$', '%', '?']) || statuses.iter().any(|word| word.starts_with('='))
        {
            return findings.leave(directive, "an error page must be the path of a file, and keeps the error's status");
        }
        let pages = self.error_pages.get_or_insert_default();
        for status in statuses {
            match status.parse() {
                Ok(400..=493u16 | 500..=599) => pages.push((status.clone(), page.clone())),
                _ => findings.leave(directive, "error_pages are for the statuses 400 to 599"),
            }
        }
    }

    fn take_try_files(&mut self, directive: &Directive, findings: &mut Findings) {
        let words: Vec<&str> = directive.arguments.iter().map(String::as_str).collect();
        let (tries, last) = words.split_at(words.len().saturating_sub(1));
        let is_usual = !tries.is_empty() && tries.iter().all(|word| matches!(*word, "$uri" | "$uri/"));
        match last {
            ["=404"] if is_usual => findings.note(directive, "larder does so by itself"),
            [path] if is_usual && path.starts_with('/') && !path.contains('$') => {
                self.fallback = Some((*path).to_owned())
            }
            [name] if nginx_guards::tries_its_own_file(directive) && name.starts_with('@') => {
                self.named = Some((*name).to_owned());
            }
            _ if !nginx_guards::tries_its_own_file(directive) => {
                self.hides_files = true;
                findings.leave(directive, "closed: larder shows files under their own path only");
            }
            _ => findings.leave(directive, "try_files may have $uri, $uri/ and one file only"),
        }
    }

    fn take_expires(&mut self, directive: &Directive, findings: &mut Findings) {
        let seconds = match directive.argument(0) {
            "off" => return,
            "epoch" => None,
            "max" => Some(315_360_000),
            text => match seconds(text) {
                Some(seconds) => Some(seconds),
                None => return findings.leave(directive, "a time must be a plain number with a unit"),
            },
        };
        self.cache_control = Some(seconds.map_or("no-cache".to_owned(), |seconds| format!("max-age={seconds}")));
        findings.note(directive, "Cache-Control says it; no Expires is sent beside it");
    }

    /// The keys of a route that serves files.
    ///
    /// Files that are closed are shown under no other path either: as an index, or in place of what is not there.
    pub fn root_lines(
        &self,
        prefix: &Path,
        exact_path: Option<&str>,
        hides_dotfiles: bool,
        closes: &dyn Fn(&str) -> bool,
    ) -> Vec<String> {
        let root = self.root.clone().unwrap_or_else(|| prefix.join("html"));
        let mut lines = vec![format!("root = {}", quoted(&root.display().to_string()))];
        let index = self.index.as_deref().unwrap_or_default();
        let is_open = |name: &&String| !closes(&format!("/{name}"));
        let names: Vec<String> = index.iter().filter(is_open).map(|name| quoted(name)).collect();
        // nginx would run it, and list nothing.
        let has_closed_index = names.len() < index.len();
        if !names.is_empty() {
            lines.push(format!("index = [{}]", names.join(", ")));
        }
        let fallback = self.fallback.clone().filter(|path| !closes(path));
        let end = exact_path.and_then(|path| path.rsplit('/').next()?.rsplit_once('.')).map(|(_, end)| end);
        lines.extend(self.types.lines(end));
        for (key, value) in [("cache_control", &self.cache_control), ("fallback", &fallback)] {
            lines.extend(value.as_ref().map(|value| format!("{key} = {}", quoted(value))));
        }
        if self.precompressed == Some(true) {
            lines.push("precompressed = true".to_owned());
        }
        if let Some(listing) = self.listing.filter(|listing| *listing != "off" && !has_closed_index) {
            lines.push(format!("listing = {}", quoted(listing)));
        }
        // nginx hides nothing unless it is told to.
        if !hides_dotfiles {
            lines.push("dotfiles = true".to_owned());
        }
        lines
    }

    /// The keys that say what an item's name makes of its type.
    pub fn type_lines(&self) -> Vec<String> {
        self.types.lines(None)
    }

    /// Pages and their statuses.
    pub fn error_pages(&self) -> &[(String, String)] {
        self.error_pages.as_deref().unwrap_or_default()
    }

    /// For `alias`, whose directory stands in the place of the location's own path.
    fn take_alias(&mut self, directive: &Directive, path: &str, prefix: &Path, findings: &mut Findings) {
        let alias = prefix.join(directive.argument(0)).display().to_string();
        match alias.strip_suffix(path) {
            Some(root) if path != "/" => self.root = Some(PathBuf::from(if root.is_empty() { "/" } else { root })),
            _ if path == "/" => self.root = Some(PathBuf::from(alias)),
            _ => {
                self.hides_files = true;
                let why = "the whole path of a request is a path beneath a root: name the directory above";
                findings.leave(directive, why);
            }
        }
    }
}

impl Location {
    /// What stands in a location with this path.
    pub fn read(block: &Directive, path: &str, prefix: &Path, findings: &mut Findings) -> Location {
        let mut location = Location::default();
        let has_files = !block.children().iter().any(answers_by_itself);
        for directive in block.children() {
            match directive.name.as_str() {
                "alias" => location.level.take_alias(directive, path, prefix, findings),
                "stub_status" => location.stub_status = directive.argument(0) != "off",
                // What it closes is looked at by who makes the route.
                "location" => {}
                "proxy_pass" => location.proxy_pass = Some(directive.clone()),
                "allow" | "deny" => drop(location.rules.take(directive)),
                "memc_pass" | "memcached_pass" => location.pass = Pass::read(directive),
                // A page for errors, as a rule. What asks others was asked by nginx alone: it has no route of its own.
                "internal" if has_files && block.argument(0) == "=" => {
                    findings.note(directive, "it can be asked for by its own name")
                }
                _ if guards(directive, findings) => location.answered_otherwise = true,
                _ if location.level.take(directive, prefix, findings) => {}
                _ => findings.leave(directive, "larder has no setting that this becomes"),
            }
        }
        if !location.stub_status && !location.rules.admit_all() {
            location.answered_otherwise = true;
            findings.leave(block, "closed: larder cannot limit a route to some clients");
        }
        location
    }

    /// The keys of a page of numbers.
    pub fn status_lines(&self) -> Vec<String> {
        let from: Vec<String> = self.rules.admitted().iter().map(|network| quoted(network)).collect();
        vec!["stub_status = true".to_owned(), format!("allow_from = [{}]", from.join(", "))]
    }
}

/// `30d`, `1h30m`, `3600`.
pub fn seconds(text: &str) -> Option<u64> {
    let (mut total, mut number) = (0u64, String::new());
    for c in text.chars() {
        let unit = match c {
            '0'..='9' => {
                number.push(c);
                continue;
            }
            's' => 1,
            'm' => 60,
            'h' => 3_600,
            'd' => 86_400,
            'w' => 604_800,
            'M' => 2_592_000,
            'y' => 31_536_000,
            _ => return None,
        };
        total = total.checked_add(number.parse::<u64>().ok()?.checked_mul(unit)?)?;
        number.clear();
    }
    match number.is_empty() {
        true => (!text.is_empty()).then_some(total),
        false => total.checked_add(number.parse().ok()?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: Option<u64>) {
        assert_eq!(seconds(text), expect, "{text}");
    }

    #[test]
    fn times_are_numbers_with_units() {
        check("60", Some(60));
        check("1h30m", Some(5_400));
        check("1h 30m", None);
        check("30d", Some(2_592_000));
        check("1d12", Some(86_412));
        check("", None);
        check("d", None);
        check("99999999999999999999y", None);
        check("9999999999999999y", None);
        check("modified", None);
    }
}
