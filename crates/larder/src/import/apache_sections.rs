//! What one container of Apache's says (`<Location>`, `<Directory>`), or a host for all of its paths: who may come, with which links and
//! files, and who is asked. A word that is not understood closes it.

use std::path::Path;

use crate::config::is_index_name;
use crate::import::apache_access::{AccessRule, AccessWords};
use crate::import::apache_conf::{is_undecided, name_of};
use crate::import::apache_fields::ApacheFields;
use crate::import::apache_proxy::{self, ProxyWord};
use crate::import::apache_words::is_harmless;
use crate::import::import_findings::Findings;
use crate::import::nginx_conf::Directive;

/// What a section says; later ones take the place of it word by word.
#[derive(Clone, Debug, Default)]
pub struct SectionWords {
    pub is_closed: bool,
    pub rule: Option<AccessRule>,
    links: Option<LinkWord>,
    /// Files of the directories may say more, and be asked.
    pub has_overrides: Option<bool>,
    pub index: Option<Vec<String>>,
    pub fields: ApacheFields,
    pub proxy: Option<ProxyWord>,
    pub fallback: Option<String>,
    /// The fallback is a rule's, and a section may end the rules of those around it.
    is_rewritten: bool,
    stops_rewriting: bool,
    pub needs_tls: bool,
    pub keeps_host: Option<bool>,
}

/// Whether links are followed: said anew, or of what holds around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LinkWord {
    Anew(bool),
    Changed(Option<bool>),
}

/// Where a section may stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SectionKind {
    Host,
    Location,
    Directory,
}

/// A section as it is read.
pub struct SectionReading {
    kind: SectionKind,
    words: SectionWords,
    access: AccessWords,
    /// What rewrites paths, for a look at all of it together.
    rewrites: Vec<Directive>,
}

impl SectionReading {
    pub fn new(kind: SectionKind) -> SectionReading {
        SectionReading { kind, words: SectionWords::default(), access: AccessWords::default(), rewrites: Vec::new() }
    }

    /// Takes a directive in. False: it is not understood here.
    pub fn take(&mut self, directive: &Directive, findings: &mut Findings) -> bool {
        let (name, first) = (name_of(directive), directive.argument(0));
        if directive.arguments.iter().any(|word| word.contains("${")) && !is_harmless(directive) {
            return false;
        }
        let is_directory = self.kind == SectionKind::Directory;
        match name.as_str() {
            "options" if !is_harmless(directive) => match links(&directive.arguments) {
                Some(word) => self.words.links = Some(and_links(self.words.links, word)),
                None => return false,
            },
            "allowoverride" if is_directory => {
                self.words.has_overrides = Some(directive.arguments.len() != 1 || !first.eq_ignore_ascii_case("none"));
            }
            // A list of its own, which no other word takes back.
            "allowoverridelist" if is_directory => {
                return directive.arguments.len() == 1 && first.eq_ignore_ascii_case("none");
            }
            "directoryindex" if self.kind != SectionKind::Location => {
                let is_name = |name: &String| {
                    is_index_name(name) && !name.starts_with('.') && !name.eq_ignore_ascii_case("disabled")
                };
                if directive.arguments.is_empty() || !directive.arguments.iter().all(is_name) {
                    return false;
                }
                self.words.index.get_or_insert_default().extend(directive.arguments.iter().cloned());
            }
            "fallbackresource" if self.kind != SectionKind::Location => {
                if first.eq_ignore_ascii_case("disabled") || directive.arguments.len() != 1 || first.len() < 2 {
                    return false;
                }
                self.words.fallback = Some(first.to_owned());
            }
            "header" | "requestheader" => match self.words.fields.take(directive) {
                Some(true) => {}
                Some(false) => findings.note(directive, "larder writes this field by itself"),
                None => return false,
            },
            "proxypass" if self.kind == SectionKind::Location => {
                self.words.proxy = Some(apache_proxy::word(&directive.arguments));
            }
            "proxypreservehost" => match first.to_ascii_lowercase().as_str() {
                "on" => self.words.keeps_host = Some(true),
                "off" => self.words.keeps_host = Some(false),
                _ => return false,
            },
            "sslrequiressl" if self.kind != SectionKind::Host => self.words.needs_tls = true,
            "setoutputfilter" if first.eq_ignore_ascii_case("deflate") => {
                findings.note(directive, "larder compresses by itself")
            }
            "rewriteengine" if first.eq_ignore_ascii_case("off") && self.rewrites.is_empty() => {
                self.words.stops_rewriting = self.kind != SectionKind::Host;
            }
            "rewriteengine" | "rewritecond" | "rewriterule" | "rewritebase" if is_directory => {
                self.rewrites.push(directive.clone());
            }
            _ if self.kind != SectionKind::Host && self.access.take(directive) => {}
            _ if is_harmless(directive) || is_undecided(directive) && directive.children().iter().all(is_harmless) => {
                say_harmless(directive, findings);
            }
            _ => return false,
        }
        true
    }

    /// What it says. `at`: the container, to speak of it.
    pub fn finish(mut self, at: &Directive, home: &Path, findings: &mut Findings) -> SectionWords {
        let mut close = |why: &'static str| {
            findings.leave(at, why);
            self.words.is_closed = true;
        };
        match self.access.rule(home) {
            Ok(rule) => self.words.rule = rule,
            Err(why) => close(why),
        }
        if !self.rewrites.is_empty() {
            match front_controller(&self.rewrites) {
                Some(file) if self.words.fallback.is_none() => {
                    self.words.fallback = Some(file);
                    self.words.is_rewritten = true;
                }
                _ => close("closed: of its rewriting larder knows one script for what is no file"),
            }
        }
        self.words
    }
}

impl SectionWords {
    pub fn closed() -> SectionWords {
        SectionWords { is_closed: true, ..SectionWords::default() }
    }

    /// What a later section makes of it.
    pub fn then(&mut self, later: &SectionWords) {
        self.is_closed |= later.is_closed;
        self.needs_tls |= later.needs_tls;
        self.fields.then(&later.fields);
        if let Some(links) = later.links {
            self.links = Some(and_links(self.links, links));
        }
        // What is beneath is rewritten by the rules above it, unless it has its own word on that.
        if later.stops_rewriting && self.is_rewritten {
            (self.fallback, self.is_rewritten) = (None, false);
        }
        self.stops_rewriting = later.fallback.is_none() && (self.stops_rewriting || later.stops_rewriting);
        self.is_rewritten = if later.fallback.is_some() { later.is_rewritten } else { self.is_rewritten };
        let SectionWords { rule, has_overrides, index, proxy, fallback, keeps_host, .. } = later.clone();
        self.rule = rule.or(self.rule.take());
        self.has_overrides = has_overrides.or(self.has_overrides);
        self.index = index.or(self.index.take());
        self.proxy = proxy.or(self.proxy.take());
        self.fallback = fallback.or(self.fallback.take());
        self.keeps_host = keeps_host.or(self.keeps_host);
    }

    pub fn follows_links(&self) -> bool {
        match self.links {
            Some(LinkWord::Anew(follows)) => follows,
            Some(LinkWord::Changed(follows)) => follows.unwrap_or(true),
            None => true,
        }
    }
}

pub fn say_harmless(directive: &Directive, findings: &mut Findings) {
    match name_of(directive).as_str() {
        "errordocument" => findings.leave(directive, "errors are larder's own: see error_pages"),
        "expiresactive" | "expiresbytype" | "expiresdefault" => {
            findings
                .leave(directive, "how long others keep an answer is what its origin says: see cache_control and ttl");
        }
        "limitrequestbody" => findings.leave(directive, "request_body_max of a route says it"),
        "proxypassreverse" => findings.note(directive, "a redirect that names the origin is passed on as it is"),
        "setenv" | "passenv" => findings.leave(directive, "params of [origin.NAME] says what a script is told"),
        _ => findings.note(directive, "not carried over: it changes nothing of who may read what"),
    }
}

/// `None`: a word that is none.
fn links(words: &[String]) -> Option<LinkWord> {
    let is_change = |word: &String| word.starts_with(['+', '-']);
    let are_changes = words.first().is_some_and(is_change);
    if words.is_empty() || words.iter().any(|word| is_change(word) != are_changes) {
        return None;
    }
    let mut follows = None;
    for word in words {
        match word.trim_start_matches(['+', '-']).to_ascii_lowercase().as_str() {
            "followsymlinks" => follows = Some(!word.starts_with('-')),
            "all" if !are_changes => follows = Some(true),
            "none" if !are_changes => {}
            "all" | "none" => return None,
            "indexes" | "multiviews" | "execcgi" | "includes" | "includesnoexec" | "symlinksifownermatch" => {}
            _ => return None,
        }
    }
    Some(match are_changes {
        true => LinkWord::Changed(follows),
        false => LinkWord::Anew(follows.unwrap_or(false)),
    })
}

fn and_links(earlier: Option<LinkWord>, later: LinkWord) -> LinkWord {
    match (earlier, later) {
        (_, LinkWord::Anew(_)) | (None, _) => later,
        (Some(earlier), LinkWord::Changed(None)) => earlier,
        (Some(LinkWord::Anew(_)), LinkWord::Changed(Some(follows))) => LinkWord::Anew(follows),
        (Some(LinkWord::Changed(_)), LinkWord::Changed(_)) => later,
    }
}

/// Lines that a script needs no more, or that lead to the same page without its last slash.
const LEFT_OUT: [&[&str]; 7] = [
    &["rewritebase /"],
    &[r"rewriterule ^index\.php$ - [L]"],
    &[r"rewriterule ^index\.html$ - [L]"],
    &["rewriterule .* - [E=HTTP_AUTHORIZATION:%{HTTP:Authorization}]"],
    &["rewritecond %{HTTP:Authorization} .", "rewriterule .* - [E=HTTP_AUTHORIZATION:%{HTTP:Authorization}]"],
    &["rewritecond %{HTTP:Authorization} ^(.*)", "rewriterule .* - [E=HTTP_AUTHORIZATION:%{HTTP:Authorization}]"],
    &["rewritecond %{REQUEST_FILENAME} !-d", "rewritecond %{REQUEST_URI} (.+)/$", "rewriterule ^ %1 [L,R=301]"],
];

/// `RewriteCond %{REQUEST_FILENAME} !-f` and `!-d` with one `RewriteRule` to a script: the script. `None`: it is something else.
fn front_controller(lines: &[Directive]) -> Option<String> {
    let lines: Vec<String> =
        lines.iter().map(|line| format!("{} {}", name_of(line), line.arguments.join(" "))).collect();
    let mut rest: Vec<&str> = lines.iter().map(String::as_str).collect();
    // It is on before anything else is said.
    let on = rest.first()?.eq_ignore_ascii_case("rewriteengine on");
    rest.remove(0);
    while let Some(known) = LEFT_OUT.iter().find(|known| rest.starts_with(known)) {
        rest.drain(..known.len());
    }
    let mut conditions: Vec<&str> = rest.iter().take(2).copied().collect();
    conditions.sort_unstable();
    let expect = ["rewritecond %{REQUEST_FILENAME} !-d", "rewritecond %{REQUEST_FILENAME} !-f"];
    let &[_, _, rule] = &rest[..] else { return None };
    let words: Vec<&str> = rule.split(' ').collect();
    let (all, to, flags) = match &words[..] {
        ["rewriterule", all, to] => (all, to, ""),
        ["rewriterule", all, to, flags] => (all, to, *flags),
        _ => return None,
    };
    let is_all = matches!(*all, "." | "^" | ".*" | "^(.*)$" | "^.*$" | "^(.+)$");
    let are_known = matches!(flags, "" | "[L]" | "[QSA,L]" | "[L,QSA]" | "[END]" | "[QSA]");
    let file = to.strip_prefix('/').unwrap_or(to);
    let is_file = matches!(file, "index.php" | "index.html");
    (on && conditions == expect && is_all && are_known && is_file).then(|| format!("/{file}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::nginx_conf::directive;

    fn read(kind: SectionKind, lines: &[&str]) -> SectionWords {
        let (mut reading, mut findings) = (SectionReading::new(kind), Findings::default());
        let taken: Vec<bool> = lines.iter().map(|line| reading.take(&directive(line), &mut findings)).collect();
        let mut words = reading.finish(&directive("<Directory /x"), Path::new("/"), &mut findings);
        words.is_closed |= taken.contains(&false);
        words
    }

    #[test]
    fn links_are_followed_as_options_say() {
        for (lines, expect) in [
            (&["Options None"][..], false),
            (&["Options Indexes FollowSymLinks"], true),
            (&["Options -Indexes"], true),
            (&["Options Indexes"], false),
            (&["Options -FollowSymLinks"], false),
            (&["Options None", "Options +FollowSymLinks -Indexes"], true),
            (&["Options SymLinksIfOwnerMatch"], false),
            (&[], true),
        ] {
            assert_eq!(read(SectionKind::Directory, lines).follows_links(), expect, "{lines:?}");
        }
        assert!(read(SectionKind::Directory, &["Options Indexes +FollowSymLinks"]).is_closed);
    }

    #[test]
    fn words_that_are_not_understood_close() {
        for line in [
            "SetHandler server-status",
            "Order deny,allow",
            "Deny from all",
            "<If true",
            "<Limit GET",
            "Redirect /a /b",
            "Satisfy any",
            "AuthMerging And",
        ] {
            assert!(read(SectionKind::Location, &[line]).is_closed, "{line}");
            assert!(read(SectionKind::Directory, &[line]).is_closed, "{line}");
        }
        assert!(!read(SectionKind::Directory, &["LogLevel warn", "AllowOverride None"]).is_closed);
    }

    #[test]
    fn one_script_for_what_is_no_file() {
        let conds = ["RewriteEngine On", "RewriteCond %{REQUEST_FILENAME} !-f", "RewriteCond %{REQUEST_FILENAME} !-d"];
        let with = |rule: &'static str| {
            let lines: Vec<&str> = conds.into_iter().chain([rule]).collect();
            let words = read(SectionKind::Directory, &lines);
            words.fallback.filter(|_| !words.is_closed)
        };
        assert_eq!(with("RewriteRule ^ index.php [L]").as_deref(), Some("/index.php"));
        assert_eq!(with("RewriteRule . /index.php [QSA,L]").as_deref(), Some("/index.php"));
        assert_eq!(with("RewriteRule ^(.*)$ index.php?q=$1 [L]"), None);
        let usual = [
            "RewriteEngine On",
            "RewriteCond %{HTTP:Authorization} .",
            "RewriteRule .* - [E=HTTP_AUTHORIZATION:%{HTTP:Authorization}]",
            "RewriteCond %{REQUEST_FILENAME} !-d",
            "RewriteCond %{REQUEST_URI} (.+)/$",
            "RewriteRule ^ %1 [L,R=301]",
            "RewriteCond %{REQUEST_FILENAME} !-d",
            "RewriteCond %{REQUEST_FILENAME} !-f",
            "RewriteRule ^ index.php [L]",
        ];
        assert_eq!(read(SectionKind::Directory, &usual).fallback.as_deref(), Some("/index.php"));
        assert!(read(SectionKind::Directory, &usual[1..]).is_closed);
        assert_eq!(with("RewriteRule ^ - [F]"), None);
        assert!(read(SectionKind::Directory, &["RewriteEngine On", "RewriteRule ^x - [F]"]).is_closed);
        assert!(!read(SectionKind::Directory, &["RewriteEngine Off"]).is_closed);
    }

    #[test]
    fn rules_end_where_they_are_taken_off() {
        let rules = [
            "RewriteEngine On",
            "RewriteCond %{REQUEST_FILENAME} !-f",
            "RewriteCond %{REQUEST_FILENAME} !-d",
            "RewriteRule ^ index.php",
        ];
        let beneath = |above: &[&str], kind: SectionKind, own: &[&str]| {
            let mut words = read(SectionKind::Directory, above);
            // As those of a place are, which are folded by themselves first.
            let mut of_place = SectionWords::default();
            of_place.then(&read(kind, own));
            words.then(&of_place);
            words.fallback
        };
        for kind in [SectionKind::Directory, SectionKind::Location] {
            assert_eq!(beneath(&rules, kind, &["RewriteEngine Off"]), None);
            assert_eq!(beneath(&["FallbackResource /a.php"], kind, &["RewriteEngine Off"]).as_deref(), Some("/a.php"));
        }
        assert_eq!(beneath(&rules, SectionKind::Directory, &["Options None"]).as_deref(), Some("/index.php"));
    }
}
