//! What the file says for all hosts, or one `<VirtualHost>` for its own: its sections, who is asked, what is led away. Only what is
//! understood is taken in; a container with anything else in it closes what it matches, and any other word the whole host.

use std::path::{Path, PathBuf};

use crate::import::apache_conf::{is_undecided, name_of};
use crate::import::apache_paths::{
    PathBeginning, before_wildcards, is_expression, of_extensions, of_names, of_wildcards,
};
use crate::import::apache_proxy::{self, Balancers, ProxyWord};
use crate::import::apache_redirects::{self, RedirectWord, leads_to_tls, sockets_led};
use crate::import::apache_sections::{SectionKind, SectionReading, SectionWords, say_harmless};
use crate::import::apache_words::is_harmless;
use crate::import::import_findings::Findings;
use crate::import::imported_fields::lets_store;
use crate::import::nginx_conf::Directive;

/// What stands at the level of the file, or of a host.
#[derive(Debug, Default)]
pub struct ApacheScope {
    /// Words outside of sections.
    pub words: SectionWords,
    /// By the path of the directory, without a slash at its end.
    pub directories: Vec<(String, SectionWords)>,
    pub locations: Vec<(PathBeginning, SectionWords)>,
    pub proxies: Vec<(PathBeginning, ProxyWord)>,
    pub redirects: Vec<(PathBeginning, RedirectWord)>,
    /// Where a beginning of paths lies; `None`: it is closed.
    pub aliases: Vec<(PathBeginning, Option<String>)>,
    /// Expressions of paths that are closed.
    pub closed_paths: Vec<String>,
    pub closed_names: Vec<NamesOf<String>>,
    pub scripts: Vec<NamesOf<ScriptWord>>,
    pub root: Option<String>,
    pub name: Option<String>,
    pub aliases_of_host: Vec<String>,
    pub balancers: Balancers,
    pub verifies: bool,
    pub has_tls: bool,
    pub certificate: Option<PathBuf>,
    pub key: Option<PathBuf>,
    /// All of it is led to `https://` by a `RewriteRule`.
    pub leads_to_tls: bool,
    /// A `RewriteRule` hands WebSockets to who is asked for everything.
    pub leads_sockets: bool,
    pub is_closed: bool,
}

/// Something about names of files, in all directories or beneath one.
#[derive(Clone, Debug)]
pub struct NamesOf<T> {
    pub beneath: Option<String>,
    pub said: T,
}

/// Scripts that an application runs, and where it was said.
#[derive(Clone, Debug)]
pub struct ScriptWord {
    pub application: Option<String>,
}

/// How names of scripts are asked for that an application runs.
const SCRIPT_NAMES: [&str; 7] = [
    r"\.php$",
    r".+\.php$",
    r".+\.ph(?:ar|p|tml)$",
    r".+\.ph(ar|p|tml)$",
    r"\.(php|phar)$",
    r"\.(?:php|phar)$",
    r"\.ph(?:ar|p|tml)$",
];

/// Reads one scope.
pub struct ScopeReading<'w> {
    pub scope: ApacheScope,
    words: SectionReading,
    rewrites: Vec<Directive>,
    is_host: bool,
    home: &'w Path,
    findings: &'w mut Findings,
}

impl<'w> ScopeReading<'w> {
    pub fn new(is_host: bool, home: &'w Path, findings: &'w mut Findings) -> ScopeReading<'w> {
        let (scope, words) = (ApacheScope::default(), SectionReading::new(SectionKind::Host));
        ScopeReading { scope, words, rewrites: Vec::new(), is_host, home, findings }
    }

    pub fn read(mut self, at: &Directive, directives: &[Directive]) -> ApacheScope {
        for directive in directives {
            self.take(directive, true);
        }
        self.rewriting();
        let reading = std::mem::replace(&mut self.words, SectionReading::new(SectionKind::Host));
        self.scope.words = reading.finish(at, self.home, self.findings);
        self.scope
    }

    /// Nobody is answered in this scope.
    fn close(&mut self, directive: &Directive, why: &'static str) {
        self.findings.leave(directive, why);
        self.scope.is_closed = true;
    }

    /// `is_sure`: it holds; else only what it would be about is closed.
    fn take(&mut self, directive: &Directive, is_sure: bool) {
        let name = name_of(directive);
        if is_undecided(directive) {
            let says_more = |child: &Directive| !is_harmless(child);
            if directive.children().iter().any(says_more) {
                self.findings.leave(directive, "nobody knows here whether this holds: what it is about is closed");
            }
            return directive.children().iter().for_each(|child| self.take(child, false));
        }
        if is_harmless(directive) {
            return say_harmless(directive, self.findings);
        }
        let has_variable = directive.arguments.iter().any(|word| word.contains("${"));
        if has_variable {
            return self.close(directive, "closed: a variable of which nobody knows here what it stands for");
        }
        match name.as_str() {
            "<location" if directive.argument(0) != "~" => self.location(directive, is_sure),
            "<location" | "<locationmatch" => self.location_match(directive, is_sure),
            "<directory" => self.directory(directive, is_sure),
            "<directorymatch" => self.directory_at("/", directive, false),
            "<files" | "<filesmatch" => self.names(directive, None, is_sure),
            "alias" | "scriptalias" => self.alias(directive, is_sure),
            "aliasmatch" | "scriptaliasmatch" => self.close_paths(directive, directive.arguments.first().cloned()),
            "redirectmatch" => self.close_paths(directive, apache_redirects::expression(directive).map(str::to_owned)),
            "redirect" | "redirectpermanent" | "redirecttemp" => self.redirect(directive, is_sure),
            "proxypass" => self.proxy_pass(directive, is_sure),
            "<proxy" if is_sure => {
                if !apache_proxy::take_container(directive, &mut self.scope.balancers) {
                    self.close(directive, "closed: larder has no such word of who is asked");
                }
            }
            "addhandler" | "addtype" | "addoutputfilter" => self.handler_of_names(directive),
            _ if !is_sure => self.close(directive, "closed: nobody knows here whether this holds"),
            "rewriteengine" | "rewritecond" | "rewriterule" => self.rewrites.push(directive.clone()),
            _ => self.plain(directive, &name),
        }
    }

    /// A word of a host, or one of those that a section may have, too.
    fn plain(&mut self, directive: &Directive, name: &str) {
        let first = directive.argument(0);
        let file = |home: &Path| home.join(first);
        match name {
            "documentroot" => self.scope.root = Some(first.to_owned()),
            "servername" => self.scope.name = Some(first.to_owned()),
            "serveralias" if self.is_host => self.scope.aliases_of_host.extend(directive.arguments.iter().cloned()),
            "sslengine" if self.is_host && first.eq_ignore_ascii_case("on") => self.scope.has_tls = true,
            "sslengine" if first.eq_ignore_ascii_case("off") => {}
            "sslcertificatefile" if self.is_host => self.scope.certificate = Some(file(self.home)),
            "sslcertificatekeyfile" if self.is_host => self.scope.key = Some(file(self.home)),
            "sslproxyverify" if first.eq_ignore_ascii_case("require") => self.scope.verifies = true,
            _ if self.words.take(directive, self.findings) => {}
            _ => self.close(directive, "closed: not understood, and it may say who may read what"),
        }
    }

    /// The words of a section; one that is not sure, or has what is not understood, is closed.
    fn section(&mut self, container: &Directive, kind: SectionKind, is_sure: bool) -> SectionWords {
        let mut reading = SectionReading::new(kind);
        let mut is_closed = !is_sure && !container.children().iter().all(is_harmless);
        for child in container.children() {
            if kind == SectionKind::Directory && matches!(name_of(child).as_str(), "<files" | "<filesmatch") {
                self.names(child, Some(plain_path(container.argument(0))), is_sure);
                continue;
            }
            if !reading.take(child, self.findings) {
                self.findings.leave(child, "closed: not understood, and so is all that its section is about");
                is_closed = true;
            }
        }
        let mut words = reading.finish(container, self.home, self.findings);
        words.is_closed |= is_closed;
        if !is_sure && is_closed {
            self.findings.leave(container, "closed: nobody knows here whether this holds");
        }
        words
    }

    fn location(&mut self, container: &Directive, is_sure: bool) {
        let written = container.argument(0);
        let mut words = self.section(container, SectionKind::Location, is_sure);
        let plain = before_wildcards(written);
        if plain.len() < written.len() && !container.children().iter().all(is_harmless) {
            self.findings.leave(container, "closed: a path with wildcards, from its last slash before them on");
            words.is_closed = true;
        }
        match PathBeginning::new(plain) {
            Some(beginning) if container.arguments.len() == 1 => self.scope.locations.push((beginning, words)),
            _ => self.close(container, "closed: a path that may be spelt in several ways"),
        }
    }

    fn location_match(&mut self, container: &Directive, is_sure: bool) {
        if is_sure && only_opens(container) {
            return self.left_out(container);
        }
        self.close_paths(container, container.arguments.last().cloned());
    }

    fn left_out(&mut self, container: &Directive) {
        self.findings.note(container, "left out: it only lets in who is let in anyway, or is kept out by others");
        for header in container.children().iter().filter(|child| name_of(child) == "header") {
            self.findings.leave(header, "left out: a route says its fields for all that it answers");
        }
    }

    /// Closes the paths that an expression matches.
    fn close_paths(&mut self, directive: &Directive, regex: Option<String>) {
        match regex.filter(|regex| is_expression(regex)) {
            Some(regex) => {
                self.findings.leave(directive, "closed: the paths that its expression matches");
                self.scope.closed_paths.push(regex);
            }
            None => self.close(directive, "closed: an expression that larder cannot read"),
        }
    }

    fn directory(&mut self, container: &Directive, is_sure: bool) {
        let written = container.argument(0);
        if container.arguments.len() != 1
            || !written.starts_with('/')
            || written.split('/').any(|part| matches!(part, "." | ".."))
        {
            return match written.starts_with("proxy:") {
                true => self.close(container, "closed: not understood, and it may say who may read what"),
                false => self.directory_at("/", container, false),
            };
        }
        let plain = before_wildcards(written);
        self.directory_at(plain, container, is_sure && plain.len() == written.len());
    }

    fn directory_at(&mut self, path: &str, container: &Directive, is_sure: bool) {
        let words = self.section(container, SectionKind::Directory, is_sure);
        let path = plain_path(path);
        self.scope.directories.push((path, words));
    }

    /// `<Files>` and `<FilesMatch>`.
    fn names(&mut self, container: &Directive, beneath: Option<String>, is_sure: bool) {
        let (written, is_regex) = match (name_of(container) == "<filesmatch", container.argument(0)) {
            (false, "~") => (container.argument(1), true),
            (is_regex, first) => (first, is_regex),
        };
        if is_sure && only_opens(container) {
            return self.left_out(container);
        }
        if let Some(application) = self.application(container, written).filter(|_| is_sure && is_regex) {
            return self.scope.scripts.push(NamesOf { beneath, said: ScriptWord { application: Some(application) } });
        }
        let regex = if is_regex { of_names(written) } else { of_wildcards(written) };
        let is_refusal = |child: &Directive| {
            let words: Vec<String> = child.arguments.iter().map(|word| word.to_ascii_lowercase()).collect();
            name_of(child) == "require" && words == ["all", "denied"]
        };
        if !container.children().iter().all(is_refusal) {
            self.findings.leave(container, "closed: the files that it names");
        }
        match regex {
            Some(said) => self.scope.closed_names.push(NamesOf { beneath, said }),
            None => {
                self.findings.leave(container, "closed, with all files: larder cannot say which names it means");
                let path = beneath.unwrap_or_default();
                self.scope.directories.push((path, SectionWords::closed()));
            }
        }
    }

    /// The application of a `SetHandler` that is all that a container of names of scripts says.
    fn application(&self, container: &Directive, written: &str) -> Option<String> {
        let mut others = container.children().iter().filter(|child| !is_harmless(child));
        let handler = others.next().filter(|child| name_of(child) == "sethandler" && child.arguments.len() == 1)?;
        (others.next().is_none() && SCRIPT_NAMES.contains(&written))
            .then(|| apache_proxy::application(handler.argument(0)))?
    }

    /// Files with these ends are run or changed by something that larder has not.
    fn handler_of_names(&mut self, directive: &Directive) {
        let ends: Vec<&str> = directive.arguments.iter().skip(1).map(String::as_str).collect();
        if ends.is_empty() {
            return self.close(directive, "closed: not understood, and it may say who may read what");
        }
        self.findings.leave(directive, "closed: files whose names end so");
        self.scope.closed_names.push(NamesOf { beneath: None, said: of_extensions(ends) });
    }

    fn alias(&mut self, directive: &Directive, is_sure: bool) {
        let to = directive.argument(1);
        let Some(from) = PathBeginning::new(directive.argument(0)).filter(|_| directive.arguments.len() == 2) else {
            return self.close(directive, "closed: a path that may be spelt in several ways");
        };
        let is_files = name_of(directive) == "alias" && is_sure && to.starts_with('/');
        let fits = !from.is_directory() || to.ends_with('/');
        if !is_files || !fits {
            self.findings.leave(directive, "closed: larder runs no programs, and knows no such place of files");
        }
        self.scope.aliases.push((from, (is_files && fits).then(|| to.to_owned())));
    }

    fn redirect(&mut self, directive: &Directive, is_sure: bool) {
        let Some((from, word)) = apache_redirects::read(directive) else {
            return self.close(directive, "closed: a path that may be spelt in several ways");
        };
        let word = if is_sure { word } else { RedirectWord { to: None, ..word } };
        if word.to.is_none() {
            self.findings
                .leave(directive, "closed: a redirect that larder cannot say, or a status that keeps people out");
        }
        self.scope.redirects.push((from, word));
    }

    fn proxy_pass(&mut self, directive: &Directive, is_sure: bool) {
        let Some(from) = PathBeginning::new(directive.argument(0)).filter(|_| directive.arguments.len() > 1) else {
            return self.close(directive, "closed: a path that may be spelt in several ways");
        };
        let word = if is_sure { apache_proxy::word(&directive.arguments[1..]) } else { ProxyWord::Closed };
        if word == ProxyWord::Closed {
            self.findings.leave(
                directive,
                "closed: an origin is http://, https://, a socket or a balancer, with options that larder knows",
            );
        }
        self.scope.proxies.push((from, word));
    }

    /// Without the rule that leads WebSockets to who is asked for everything: larder passes them on by itself.
    fn without_sockets(&mut self, lines: Vec<Directive>) -> Vec<Directive> {
        let all = PathBeginning::new("/");
        let of_all = self.scope.proxies.iter().find(|(from, _)| Some(from) == all.as_ref());
        let Some((_, ProxyWord::Asks(asked))) = of_all else { return lines };
        let Some(url) = asked.socket_url() else { return lines };
        let found = (0..lines.len()).find_map(|at| Some((at, sockets_led(&lines[at..], &url)?)));
        match found {
            Some((at, count)) => {
                self.scope.leads_sockets = true;
                lines[..at].iter().chain(&lines[at + count..]).cloned().collect()
            }
            None => lines,
        }
    }

    /// What of `RewriteRule` is understood for a host: all of it is led to `https://`.
    fn rewriting(&mut self) {
        let lines = std::mem::take(&mut self.rewrites);
        let Some(first) = lines.first().cloned() else { return };
        let lines = self.without_sockets(lines);
        let mut engine = lines.iter().map(|line| (name_of(line), line.argument(0).to_ascii_lowercase()));
        if engine.all(|(name, word)| name == "rewriteengine" && matches!(word.as_str(), "on" | "off")) {
            return;
        }
        match leads_to_tls(&lines) {
            Some(asks) if self.is_host => {
                // By TLS the condition never holds; without one it would for ever.
                if self.scope.has_tls && !asks {
                    return self.close(&first, "closed: a rule that leads https:// to https://");
                }
                self.scope.leads_to_tls = !self.scope.has_tls;
            }
            _ => self.close(&first, "closed: of rules for a host larder knows the one that leads to https://"),
        }
    }
}

/// One slash for many, and none at the end.
fn plain_path(written: &str) -> String {
    written.split('/').filter(|part| !part.is_empty()).map(|part| format!("/{part}")).collect()
}

/// Does a container say nothing but that all are let in, or what has nothing to do with that? What a field says of caches counts.
fn only_opens(container: &Directive) -> bool {
    container.children().iter().all(|child| {
        let words: Vec<String> = child.arguments.iter().map(|word| word.to_ascii_lowercase()).collect();
        let grants = name_of(child) == "require" && words == ["all", "granted"];
        is_harmless(child) || grants || name_of(child) == "header" && only_adds(child)
    })
}

/// Does a `Header` say a field, and not one by which answers become somebody's own, or take one out?
fn only_adds(header: &Directive) -> bool {
    let words: Vec<&str> = header.arguments.iter().map(String::as_str).collect();
    let words = match &words[..] {
        [first, rest @ ..] if matches!(first.to_ascii_lowercase().as_str(), "always" | "onsuccess") => rest,
        all => all,
    };
    matches!(words, [action, name, value]
        if matches!(action.to_ascii_lowercase().as_str(), "set" | "add" | "append" | "merge" | "setifempty")
            && lets_store(name.trim_end_matches(':'), value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::nginx_conf::directive;

    fn read(lines: &[Directive]) -> ApacheScope {
        let mut findings = Findings::default();
        ScopeReading::new(true, Path::new("/etc/apache2"), &mut findings).read(&directive("<VirtualHost *:80"), lines)
    }

    fn within(head: &str, lines: &[&str]) -> Directive {
        Directive { block: Some(lines.iter().map(|line| directive(line)).collect()), ..directive(head) }
    }

    #[test]
    fn what_is_not_understood_closes_the_host() {
        for line in [
            "ProxyPassMatch ^/x http://a/",
            "UserDir public_html",
            "RemoteIPHeader X-Forwarded-For",
            "SetHandler x",
            "Satisfy any",
            "MergeSlashes Off",
            "php_admin_value x y",
            "WSGIScriptAlias / /x",
            "RewriteRule ^ - [F]",
            "SSLVerifyClient require",
            "ProxyRequests On",
            "CacheEnable disk /",
            "SecRuleEngine On",
            "Location ${X}",
            "Nonsense",
            "AccessFileName .other",
            "SSLOptions +StrictRequire",
            "Alias /a%20b /x",
            "RewriteOptions Inherit",
            "ProxyErrorOverride On",
            "Action x /y",
            "Require all denied",
        ] {
            assert!(read(&[directive(line)]).is_closed, "{line}");
        }
        for line in [
            "ServerAdmin a@b",
            "LogLevel warn",
            "Timeout 5",
            "SSLProtocol all",
            "ServerName a",
            "Protocols h2 http/1.1",
        ] {
            assert!(!read(&[directive(line)]).is_closed, "{line}");
        }
    }

    #[test]
    fn sections_close_what_they_match() {
        let scope = read(&[within("<Location /x", &["SetHandler server-status", "Require all granted"])]);
        assert!(!scope.is_closed && scope.locations[0].1.is_closed);
        let scope = read(&[within("<Location /x/a*", &["Require all granted"])]);
        assert!(scope.locations[0].0.text() == "/x/" && scope.locations[0].1.is_closed);
        assert!(read(&[within("<Location /a%20b", &["Require all denied"])]).is_closed);
        let scope = read(&[within("<LocationMatch ^/x", &["Require ip 10.0.0.1"])]);
        assert_eq!(scope.closed_paths, ["^/x"]);
        let scope = read(&[within("<Directory /var/*/www", &["Require all granted"])]);
        assert!(scope.directories[0].0 == "/var" && scope.directories[0].1.is_closed);
        let scope = read(&[within("<DirectoryMatch ^/srv", &["Require all denied"])]);
        assert!(scope.directories[0].0.is_empty() && scope.directories[0].1.is_closed);
        assert!(read(&[within("<Proxy *", &["Order deny,allow"])]).is_closed);
        assert!(!read(&[within("<Proxy *", &["Require all granted"])]).is_closed);
        assert!(read(&[within("<If true", &["Require all denied"])]).is_closed);
        for (line, expect) in [
            ("RedirectMatch 403 private", "private"),
            ("RedirectMatch gone ^/x", "^/x"),
            ("RedirectMatch ^/x https://a/$1", "^/x"),
            ("RedirectMatch 301 ^/x https://a/", "^/x"),
            ("AliasMatch ^/x /y", "^/x"),
        ] {
            assert_eq!(read(&[directive(line)]).closed_paths, [expect], "{line}");
        }
        assert!(read(&[directive("RedirectMatch (x /y")]).is_closed);
    }

    #[test]
    fn names_of_files_are_closed_or_run() {
        let scope = read(&[within("<FilesMatch \\.php$", &["SetHandler proxy:unix:/run/php.sock|fcgi://localhost"])]);
        assert!(scope.scripts.len() == 1 && scope.closed_names.is_empty());
        let scope = read(&[within("<FilesMatch \\.php$", &["SetHandler application/x-httpd-php"])]);
        assert!(scope.scripts.is_empty() && scope.closed_names.len() == 1);
        let scope = read(&[within("<FilesMatch ^(?!index)", &["Require all denied"])]);
        assert!(scope.directories[0].1.is_closed);
        let scope = read(&[within("<FilesMatch \\.css$", &["Header set X-A b"])]);
        assert!(scope.closed_names.is_empty());
        for header in
            ["Header unset X-A", "Header set Cache-Control private", "Header edit X-A b c", "Header set Vary X-A"]
        {
            assert_eq!(read(&[within("<LocationMatch ^/x", &[header])]).closed_paths, ["^/x"], "{header}");
        }
        let nested = Directive {
            block: Some(vec![within("<Files *.a", &["Require all denied"])]),
            ..directive("<Directory /srv//x/")
        };
        assert_eq!(read(&[nested]).closed_names[0].beneath.as_deref(), Some("/srv/x"));
    }

    #[test]
    fn redirects_lead_where_they_are_written() {
        let to = |line: &str| {
            read(&[directive(line)]).redirects.pop().and_then(|(_, word)| word.to.map(|to| (to, word.status)))
        };
        assert_eq!(to("Redirect permanent / https://a/"), Some(("https://a/".to_owned(), 301)));
        assert_eq!(to("Redirect /x https://a/y"), Some(("https://a/y".to_owned(), 302)));
        for closed in [
            "Redirect / https://a",
            "Redirect /x https://a",
            "Redirect /x https://a/",
            "Redirect gone /x",
            "Redirect 403 /x",
            "Redirect /x /",
        ] {
            assert_eq!(to(closed), None, "{closed}");
        }
    }

    #[test]
    fn rules_lead_to_tls() {
        let on = "RewriteEngine On";
        let leads = |lines: &[&str]| {
            let scope = read(&lines.iter().map(|line| directive(line)).collect::<Vec<_>>());
            assert_eq!(scope.leads_to_tls, !scope.is_closed);
            scope.leads_to_tls
        };
        assert!(leads(&[on, "RewriteCond %{HTTPS} off", "RewriteRule ^ https://%{HTTP_HOST}%{REQUEST_URI} [R=301,L]"]));
        assert!(leads(&[on, "RewriteRule ^/?(.*) https://%{SERVER_NAME}/$1 [R,L]"]));
        assert!(!leads(&[
            on,
            "RewriteCond %{HTTP_HOST} =a",
            "RewriteRule ^ https://%{HTTP_HOST}%{REQUEST_URI} [R=301,L]"
        ]));
        assert!(!leads(&[on, "RewriteRule ^/a https://%{HTTP_HOST}%{REQUEST_URI} [R]"]));
        let sockets = [
            on,
            "RewriteCond %{HTTP:Upgrade} websocket [NC]",
            "RewriteCond %{HTTP:Connection} upgrade [NC]",
            "RewriteRule ^/?(.*) ws://127.0.0.1:1/$1 [P,L]",
        ];
        let is_closed = |url: &str| {
            let lines = sockets.iter().map(|line| directive(line)).chain([directive(&format!("ProxyPass / {url}"))]);
            read(&lines.collect::<Vec<_>>()).is_closed
        };
        assert!(!is_closed("http://127.0.0.1:1/") && is_closed("http://127.0.0.1:2/") && is_closed("!"));
        assert!(!leads(&["RewriteRule ^ https://%{HTTP_HOST}%{REQUEST_URI} [R]"]));
    }

    #[test]
    fn what_may_not_hold_closes_what_it_is_about() {
        let inner = [
            directive("ScriptAlias /cgi-bin/ /usr/lib/cgi-bin/"),
            within("<Directory /usr/lib/cgi-bin", &["Require all granted"]),
            directive("LogLevel warn"),
        ];
        let scope = read(&[Directive { block: Some(inner.to_vec()), ..directive("<IfDefine X") }]);
        assert!(!scope.is_closed && scope.aliases[0].1.is_none() && scope.directories[0].1.is_closed);
        assert!(read(&[within("<IfModule mod_x.c", &["SecRuleEngine On"])]).is_closed);
        assert!(read(&[within("<IfModule mod_x.c", &["Header unset X"])]).is_closed);
    }
}
