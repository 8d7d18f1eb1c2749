//! What a level of an nginx configuration says and the levels inside it inherit: the files that it shows, and what the other
//! parts of the import keep of it. It makes no routes.

use std::path::{Path, PathBuf};

use crate::config::is_index_name;
use crate::import::import_findings::{Findings, quoted};
use crate::import::nginx_access::AccessLevel;
use crate::import::nginx_caching::CachingLevel;
use crate::import::nginx_conf::Directive;
use crate::import::nginx_fields::FieldLevel;
use crate::import::nginx_memcached::MemcachedLevel;
use crate::import::nginx_scripts::ScriptLevel;
use crate::import::nginx_service::ServiceLevel;
use crate::import::nginx_substitute::Substitute;
use crate::import::nginx_timeouts::TimeoutLevel;
use crate::import::nginx_types::Types;
use crate::import::nginx_upstream::ProxyLevel;

#[derive(Clone, Debug, Default)]
pub struct Level {
    root: Option<PathBuf>,
    index: Option<Vec<String>>,
    types: Types,
    error_pages: Option<Vec<ErrorPageLine>>,
    /// Statuses that a line of this very level is about.
    paged: Vec<String>,
    listing: Option<&'static str>,
    precompressed: Option<bool>,
    /// What answers where there is no file: a path.
    pub fallback: Option<Substitute>,
    /// The location that answers there, by its name.
    pub named: Option<String>,
    /// Where nginx leads who has to log in.
    pub login_page: Option<Directive>,
    /// `try_files` names no directories: they are no files.
    pub passes_directories_by: bool,
    /// A script is run only where its whole path is a file's.
    pub looks_for_whole_path: bool,
    /// Which files these are cannot be said: none are shown.
    hides_files: bool,
    /// Links are not followed as larder follows them within a root, or not at all.
    refuses_links: Option<bool>,
    /// Something keeps people out that larder has not.
    is_guarded: bool,
    pub access: AccessLevel,
    pub fields: FieldLevel,
    pub caching: CachingLevel,
    pub scripts: ScriptLevel,
    pub proxy: ProxyLevel,
    pub memcached: MemcachedLevel,
    pub service: ServiceLevel,
    pub timeouts: TimeoutLevel,
}

/// A page for a status.
#[derive(Clone, Debug)]
pub struct ErrorPageLine {
    pub status: String,
    pub page: String,
    pub directive: Directive,
}

/// Which files a route shows, and under which names.
pub struct FilesShown<'a> {
    pub prefix: &'a Path,
    /// Of a route that is about a single path: that.
    pub only: Option<&'a str>,
    pub shows_dotfiles: bool,
    /// Names that answer for a directory, as far as they may.
    pub index: &'a [String],
    pub fallback: Option<&'a str>,
    pub may_list: bool,
}

/// Directives that change nothing of what is answered, or that larder does by itself.
const NEEDS_NOTHING: [&str; 43] = [
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
    "variables_hash_max_size",
    "variables_hash_bucket_size",
    "map_hash_bucket_size",
    "map_hash_max_size",
    "open_file_cache_min_uses",
    "open_file_cache_errors",
    "log_not_found",
    "log_format",
    "server_tokens",
    "server_name_in_redirect",
    "port_in_redirect",
    "absolute_redirect",
    "merge_slashes",
    "etag",
    "reset_timedout_connection",
    "keepalive_requests",
    "keepalive_disable",
    "client_body_temp_path",
    "client_body_buffer_size",
    "client_body_in_file_only",
    "proxy_temp_path",
    "fastcgi_temp_path",
    "uwsgi_temp_path",
    "scgi_temp_path",
    "read_ahead",
    "connection_pool_size",
    "request_pool_size",
    "break",
    "rewrite_log",
    "resolver",
    "resolver_timeout",
];

/// What is said of a page for logins that no service's 401 leads to.
pub const NOT_LED: &str = "who is to log in is told so by whom larder asks: login of auth_request leads there";

/// What is said of a log that larder does not write.
pub const ONE_LOG: &str = "not written: there is one access log for all routes ([log] path)";

/// Whatever such directives say of coding, larder codes by itself.
const OF_CODING: [&str; 3] = ["gzip", "brotli", "zstd"];

impl Level {
    pub fn within(self, outer: &Level) -> Level {
        Level {
            hides_files: self.hides_files || outer.hides_files && self.root.is_none(),
            refuses_links: self.refuses_links.or(outer.refuses_links),
            is_guarded: self.is_guarded || outer.is_guarded,
            root: self.root.or_else(|| outer.root.clone()),
            index: self.index.or_else(|| outer.index.clone()),
            types: self.types.within(&outer.types),
            error_pages: self.error_pages.or_else(|| outer.error_pages.clone()),
            paged: self.paged,
            listing: self.listing.or(outer.listing),
            precompressed: self.precompressed.or(outer.precompressed),
            // nginx hands try_files down to no location.
            fallback: self.fallback,
            named: self.named,
            login_page: self.login_page.or_else(|| outer.login_page.clone()),
            passes_directories_by: self.passes_directories_by,
            looks_for_whole_path: self.looks_for_whole_path,
            access: self.access.within(&outer.access),
            fields: self.fields.within(&outer.fields),
            caching: self.caching.within(&outer.caching),
            scripts: self.scripts.within(&outer.scripts),
            proxy: self.proxy.within(&outer.proxy),
            memcached: self.memcached.within(&outer.memcached),
            service: self.service.within(&outer.service),
            timeouts: self.timeouts.within(&outer.timeouts),
        }
    }

    /// Are there files that nobody may be shown, because nginx shows others?
    pub fn hides_files(&self) -> bool {
        self.hides_files || self.refuses_links == Some(true)
    }

    /// Is somebody kept out in a way that larder has not?
    pub fn is_guarded(&self) -> bool {
        self.is_guarded
    }

    pub fn close(&mut self) {
        self.is_guarded = true;
    }

    pub fn root(&self, prefix: &Path) -> PathBuf {
        self.root.clone().unwrap_or_else(|| prefix.join("html"))
    }

    /// Are its files those of nginx's own folder, which nothing names and which is not there? A larder does not start with a root that is not.
    pub fn has_no_files(&self, prefix: &Path) -> bool {
        self.root.is_none() && !self.root(prefix).is_dir()
    }

    /// Names that answer for a directory.
    pub fn index(&self) -> Vec<String> {
        self.index.clone().unwrap_or_else(|| vec!["index.html".to_owned()])
    }

    pub fn default_type(&self) -> &str {
        self.types.default_type()
    }

    pub fn trust_larder_types(&mut self) {
        self.types.trust_larder();
    }

    /// Takes a directive in that may stand at any level. False: it is another one.
    pub fn take(&mut self, directive: &Directive, prefix: &Path, findings: &mut Findings) -> bool {
        self.service.look_at(directive);
        self.access.look_at(directive);
        if self.types.take(directive)
            || self.access.take(directive, findings)
            || self.fields.take(directive, findings)
            || self.caching.take(directive, findings)
            || self.timeouts.take(directive, findings)
            || self.scripts.take(directive, findings)
            || self.proxy.take(directive, findings)
            || self.memcached.take(directive, findings)
            || self.service.take(directive)
        {
            return true;
        }
        let first = directive.argument(0);
        match directive.name.as_str() {
            "root" if first.contains('$') => {
                self.hides_files = true;
                findings.leave(directive, "closed: a root cannot have variables");
            }
            "root" if first.is_empty() || directive.block.is_some() => {
                self.hides_files = true;
                findings.leave(directive, "closed: no folder is named");
            }
            "root" => self.root = Some(prefix.join(first)),
            "disable_symlinks" if first == "off" => self.refuses_links = Some(false),
            "disable_symlinks" => {
                self.refuses_links = Some(true);
                findings.leave(directive, "closed where files answer: larder follows links within a root");
            }
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
            "access_log" if first == "off" => {
                findings.note(directive, "there is one access log for all routes, and none unless [log] asks for it");
            }
            "access_log" => findings.leave(directive, ONE_LOG),
            "set" => findings.note(directive, "where a constant is used it stands itself"),
            name if NEEDS_NOTHING.contains(&name) => findings.note(directive, "larder does so by itself"),
            name if OF_CODING.iter().any(|coding| name.starts_with(coding)) => {
                findings.note(directive, "larder compresses by itself: [compress]");
            }
            _ => return false,
        }
        true
    }

    fn take_index(&mut self, directive: &Directive, findings: &mut Findings) {
        let is_name = |name: &&String| is_index_name(name) && !name.contains('$');
        let (names, others): (Vec<_>, Vec<_>) = directive.arguments.iter().partition(is_name);
        if !others.is_empty() {
            findings.leave(directive, "an index file must be a plain name");
        }
        self.index = Some(names.into_iter().cloned().collect());
    }

    fn take_error_page(&mut self, directive: &Directive, findings: &mut Findings) {
        let Some((page, written)) = directive.arguments.split_last() else { return };
        // `=` and `=302` say how the page is answered, and are no statuses that a line before may have been about.
        let is_status = |word: &String| !word.starts_with('=');
        let (known, statuses): (Vec<String>, Vec<String>) =
            written.iter().cloned().partition(|word| is_status(word) && self.paged.contains(word));
        if !known.is_empty() {
            findings.note(directive, "of two pages for a status nginx takes the first, and so does this");
        }
        if !statuses.iter().any(is_status) {
            return;
        }
        self.paged.extend(statuses.iter().filter(|word| is_status(word)).cloned());
        let is_login =
            matches!(&statuses[..], [status, how] if status == "401" && matches!(how.as_str(), "=" | "=302"));
        if is_login && (page.starts_with('@') || page.contains("://")) {
            self.login_page = Some(directive.clone());
            return;
        }
        if !page.starts_with('/') || page.contains(['$', '%', '?']) || statuses.iter().any(|word| word.starts_with('='))
        {
            let why = match statuses.iter().any(|status| status == "401") {
                true => NOT_LED,
                false => "an error page must be the path of a file, and keeps the error's status",
            };
            return findings.leave(directive, why);
        }
        let pages = self.error_pages.get_or_insert_default();
        for status in &statuses {
            match status.parse() {
                Ok(400..=493u16 | 500..=599) => {
                    let (status, page) = (status.clone(), page.clone());
                    pages.push(ErrorPageLine { status, page, directive: directive.clone() });
                }
                _ => findings.leave(directive, "error_pages are for the statuses 400 to 599"),
            }
        }
    }

    fn take_try_files(&mut self, directive: &Directive, findings: &mut Findings) {
        let words: Vec<&str> = directive.arguments.iter().map(String::as_str).collect();
        let (tries, last) = words.split_at(words.len().saturating_sub(1));
        let is_own = |word: &&str| {
            matches!(
                *word,
                "$uri"
                    | "$fastcgi_script_name"
                    | "$document_root$fastcgi_script_name"
                    | "$document_root$uri"
                    | "$request_filename"
            )
        };
        if !tries.iter().any(|word| is_own(word) || *word == "$uri/") {
            self.hides_files = true;
            return findings.leave(directive, "closed: larder shows files under their own path only");
        }
        self.passes_directories_by = !words.contains(&"$uri/");
        self.looks_for_whole_path = !words[0].contains("$fastcgi_script_name");
        if tries.iter().any(|word| !is_own(word) && *word != "$uri/") {
            findings.leave(directive, "of try_files larder knows $uri, $uri/ and what is last");
        }
        match last {
            ["=404"] => findings.note(directive, "larder does so by itself"),
            [word] if is_own(word) || *word == "$uri/" => {}
            [status] if status.starts_with('=') => findings.note(directive, "404 where there is no file"),
            [name] if name.starts_with('@') => self.named = Some((*name).to_owned()),
            [path] if path.starts_with('/') => match Substitute::last_tried(path) {
                Some(path) => self.fallback = Some(path),
                None => findings.leave(directive, "what answers where there is no file must be a path"),
            },
            _ => findings.leave(directive, "what answers where there is no file must be a path"),
        }
    }

    /// The keys of a route that serves files.
    ///
    /// Files that are closed are shown under no other path either: as an index, or in place of what is not there.
    pub fn root_lines(&self, shown: &FilesShown<'_>) -> Vec<String> {
        let mut lines = vec![format!("root = {}", quoted(&self.root(shown.prefix).display().to_string()))];
        let names: Vec<String> = shown.index.iter().map(|name| quoted(name)).collect();
        lines.push(format!("index = [{}]", names.join(", ")));
        let end = shown.only.and_then(|path| path.rsplit('/').next()?.rsplit_once('.')).map(|(_, end)| end);
        lines.extend(self.types.lines(end));
        let cache_control = self.fields.cache_control();
        for (key, value) in [("cache_control", cache_control.as_deref()), ("fallback", shown.fallback)] {
            lines.extend(value.map(|value| format!("{key} = {}", quoted(value))));
        }
        if self.precompressed == Some(true) {
            lines.push("precompressed = true".to_owned());
        }
        if let Some(listing) = self.listing.filter(|listing| *listing != "off" && shown.may_list) {
            lines.push(format!("listing = {}", quoted(listing)));
        }
        // nginx hides nothing unless it is told to.
        if shown.shows_dotfiles {
            lines.push("dotfiles = true".to_owned());
        }
        lines
    }

    /// The keys that say what an item's name makes of its type.
    pub fn type_lines(&self) -> Vec<String> {
        self.types.lines(None)
    }

    /// Pages and their statuses.
    pub fn error_pages(&self) -> &[ErrorPageLine] {
        self.error_pages.as_deref().unwrap_or_default()
    }

    /// For `alias`, whose directory stands in the place of the location's own path. `path`: that, where there is one.
    pub fn take_alias(&mut self, directive: &Directive, path: Option<&str>, prefix: &Path, findings: &mut Findings) {
        let alias = prefix.join(directive.argument(0)).display().to_string();
        match path.and_then(|path| Some((path, alias.strip_suffix(path)?))) {
            Some((path, root)) if path != "/" => {
                self.root = Some(PathBuf::from(if root.is_empty() { "/" } else { root }));
                self.hides_files = false;
            }
            _ if path == Some("/") => self.root = Some(PathBuf::from(alias)),
            _ => {
                self.hides_files = true;
                let why = "closed: the whole path of a request is a path beneath a root: name the directory above";
                findings.leave(directive, why);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::nginx_conf::directive;

    fn level(lines: &[&str]) -> Level {
        let (mut level, mut findings) = (Level::default(), Findings::default());
        for line in lines {
            assert!(level.take(&directive(line), Path::new("/"), &mut findings), "{line}");
        }
        level
    }

    /// How a page is answered is no status: a line before that says so, too, takes nothing from it.
    #[test]
    fn a_login_page_counts_behind_other_pages() {
        for before in ["error_page 404 = /n.html", "error_page 404 =302 /n.html", "error_page 404 /n.html"] {
            for login in ["error_page 401 = @login", "error_page 401 =302 https://a.test/"] {
                assert!(level(&[before, login]).login_page.is_some(), "{before} {login}");
            }
        }
        assert!(level(&["error_page 401 /c.html", "error_page 401 = @login"]).login_page.is_none());
    }

    #[test]
    fn where_links_are_refused_no_files_are_shown() {
        let hides = |own: &[&str]| level(own).within(&level(&["disable_symlinks if_not_owner"])).hides_files();
        assert!(hides(&[]) && hides(&["root /srv"]) && hides(&["disable_symlinks on from=/srv"]));
        assert!(!hides(&["disable_symlinks off"]) && !level(&["root /srv"]).hides_files());
    }
}
