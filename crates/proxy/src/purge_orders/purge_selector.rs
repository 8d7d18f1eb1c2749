//! What is to be invalidated, as operators say it, and what of the store is meant by that: keys, tags, groups, or whatever a ban's
//! conditions hit.
//!
//! A prefix, a host, a pattern: of these no index knows. They become bans on the URL that a response was fetched for, and so they hold
//! for what is stored, arriving, on a disk, and after a restart.

use std::fmt::Write;
use std::net::Ipv4Addr;
use std::sync::Arc;

use cache::{Key, Now};
use message::{Authority, Request, Scheme, TargetForm};

use crate::asker::Asker;
use crate::cache_groups;
use crate::clock::Clock;
use crate::core::{Core, Shared};
use crate::exchange_opening::is_program_s;
use crate::peer::Peer;
use crate::policy;
use crate::purge_tally::SelectorKind;
use crate::response_tags;
use crate::ruled_request::{self, RuledRequest};
use crate::settings::ListenMode;
use crate::site::Site;
use crate::transaction::purge::by_each_scheme;
use crate::vcl_site::VclSite;
use crate::vcl_story::bans::{ProgramBan, USUAL_PORTS};
use crate::vcl_story::program_key;

/// What is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PurgeSelector {
    /// URLs with all their variants.
    Urls(Vec<OrderedUrl>),
    /// `host/path…`, with or without a scheme, or `/path…` of any host.
    Prefix(String),
    /// `host`, or `host:port`.
    Host(String),
    /// A pattern with `*` over `host/path?query`, or over `/path?query` of any host.
    Glob(String),
    /// A regular expression over `host/path?query`.
    Regex(String),
    /// Conditions, as bans have them.
    Ban(String),
    /// Tags, any of them.
    Tags(Vec<String>),
    /// A cache group of the origin that this request is for.
    Group { name: String, head: Vec<u8>, scheme: Scheme },
    /// Everything.
    All,
}

/// A URL as clients ask for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderedUrl {
    pub url: String,
    /// The head of a GET for it, as it goes over the wire.
    pub head: Vec<u8>,
    pub scheme: Scheme,
}

/// What of the store that is.
pub(super) enum Meant {
    Urls(Vec<MeantUrl>),
    Banned(ProgramBan),
    Tagged(Vec<Key>),
    Grouped(Vec<Key>),
}

/// Where what answers a URL lies.
pub(super) struct MeantUrl {
    pub places: Vec<MeantPlace>,
    /// Under a program: the URL as it leaves it. A vcl_hash that looks at more than the URL knows other keys for other clients.
    pub also: Option<ProgramBan>,
}

/// A key, and the URL by which a client would find it; none where only a proxy's client does.
pub(super) struct MeantPlace {
    pub key: Key,
    pub url: Option<String>,
}

impl PurgeSelector {
    /// The error is a sentence for who selected.
    pub(super) fn meant(&self, shared: &Arc<Shared>, now: Now) -> Result<Meant, String> {
        let cache = &shared.cache;
        let ban = |text: String| Ok(Meant::Banned(ProgramBan::parse(text.as_bytes())?.issued_at(now)));
        match self {
            PurgeSelector::Urls(urls) => {
                Ok(Meant::Urls(urls.iter().map(|url| of_url(shared, url, now)).collect::<Result<_, _>>()?))
            }
            PurgeSelector::Prefix(prefix) => ban(format!("{}", Begins(&of_one_host(prefix)?))),
            PurgeSelector::Host(host) => ban(format!("obj.host == {}", host_of(host)?)),
            PurgeSelector::Glob(glob) => ban(format!("{}", Globbed(&plain(glob)?))),
            PurgeSelector::Regex(regex) if regex.contains(char::is_whitespace) => {
                Err("no URL has a blank: write \\s or %20 in the regex".to_owned())
            }
            PurgeSelector::Regex(regex) => ban(format!("obj.full_url ~ {regex}")),
            PurgeSelector::Ban(text) => ban(text.clone()),
            PurgeSelector::Tags(tags) => {
                Ok(Meant::Tagged(tags.iter().flat_map(|t| response_tags::keys_of(cache, t)).collect()))
            }
            PurgeSelector::Group { name, head, scheme } => {
                let keys_of = |request: &Request<'_>| {
                    by_each_scheme(request.clone()).map(|request| cache_groups::key(cache, &request, name))
                };
                let keys = with_request(shared, (head, *scheme), |_, ruled| keys_of(&ruled.received.request))?;
                Ok(Meant::Grouped(keys.into()))
            }
            PurgeSelector::All => ban("obj.status != 0".to_owned()),
        }
    }

    pub(super) fn kind(&self) -> SelectorKind {
        match self {
            PurgeSelector::Urls(_) => SelectorKind::Url,
            PurgeSelector::Prefix(_) => SelectorKind::Prefix,
            PurgeSelector::Host(_) => SelectorKind::Host,
            PurgeSelector::Glob(_) => SelectorKind::Glob,
            PurgeSelector::Regex(_) => SelectorKind::Regex,
            PurgeSelector::Ban(_) => SelectorKind::Ban,
            PurgeSelector::Tags(_) => SelectorKind::Tags,
            PurgeSelector::Group { .. } => SelectorKind::Group,
            PurgeSelector::All => SelectorKind::All,
        }
    }

    /// Is it held against URLs as they are stored: under a VCL, as that leaves them?
    pub fn is_pattern(&self) -> bool {
        use PurgeSelector::{Glob, Host, Prefix, Regex};
        matches!(self, Prefix(_) | Host(_) | Glob(_) | Regex(_))
    }
}

/// By the steps of a request for it; where a program decides, by what that makes of it.
fn of_url(shared: &Arc<Shared>, ordered: &OrderedUrl, now: Now) -> Result<MeantUrl, String> {
    with_request(shared, (&ordered.head, ordered.scheme), |(core, site), ruled| {
        let request = &ruled.received.request;
        match site.program.as_ref().filter(|_| is_program_s(site, &ruled.ruling)) {
            Some(program) => of_programs_url((core, site), program, (ordered, request), now),
            None => Ok(MeantUrl { places: places(shared, request, ruled.came), also: None }),
        }
    })?
}

fn of_programs_url(
    (core, site): (&Core, &Arc<Site>),
    program: &Arc<VclSite>,
    (ordered, request): (&OrderedUrl, &Request<'_>),
    now: Now,
) -> Result<MeantUrl, String> {
    let found_by = program_key::of(core, site, program, request).ok_or_else(|| {
        let (name, url) = (&program.name, &ordered.url);
        format!("the VCL {name} fails with a request for {url}: `larder vcl explain` shows where; a prefix, a host or a ban means what is stored")
    })?;
    let text = format!("obj.full_url == {}", full_url(&found_by.head.request()));
    let also = ProgramBan::parse(text.as_bytes())?.issued_at(now);
    let place = MeantPlace { key: found_by.key, url: Some(ordered.url.clone()) };
    Ok(MeantUrl { places: vec![place], also: Some(also) })
}

/// The request as its route leaves it, and the same as a proxy is asked: its pages lie under keys of their own, and no route is asked about them.
fn places(shared: &Shared, request: &Request<'_>, came: &Request<'_>) -> Vec<MeantPlace> {
    let mut places = Vec::new();
    for request in by_each_scheme(request.clone()) {
        let mut url = Vec::new();
        request.write_url(&mut url);
        let url = String::from_utf8_lossy(&url);
        policy::invalidate(shared, &request, |key| {
            places.push(MeantPlace { key, url: Some(url.clone().into_owned()) })
        });
    }
    for request in by_each_scheme(Request { form: TargetForm::Absolute, ..came.clone() }) {
        policy::invalidate(shared, &request, |key| places.push(MeantPlace { key, url: None }));
    }
    places
}

/// As its route leaves it. The error is a sentence.
fn with_request<T>(
    shared: &Arc<Shared>,
    asked: (&[u8], Scheme),
    then: impl FnOnce((&Core, &Arc<Site>), RuledRequest<'_, '_>) -> T,
) -> Result<T, String> {
    let core = Core::that_only_looks(Arc::clone(shared), Clock::read());
    let site = core.site();
    let peer = Peer::of((Ipv4Addr::LOCALHOST, 0).into());
    let asker = Asker { peer, mode: ListenMode::Accelerate, tls: None };
    let ruled = ruled_request::with((&core, &site), &asker, asked, |ruled| then((&core, &site), ruled));
    ruled.map_err(|refusal| {
        let setting = refusal.limit.map(|limit| format!(" (limits.{limit})")).unwrap_or_default();
        format!("larder takes no request for this URL: it would answer {}, {}{setting}", refusal.status, refusal.token)
    })
}

/// Host, port if it is none that goes without saying, path and query, as bans see them.
fn full_url(request: &Request<'_>) -> String {
    let authority = without_usual_port(request.authority.clone());
    let mut url = Vec::new();
    authority.write_to(&mut url);
    request.write_target(&mut url);
    String::from_utf8_lossy(&url).into_owned()
}

/// A host as bans see it.
fn host_of(host: &str) -> Result<String, String> {
    if host.contains('*') {
        return Err(format!("`{host}` has a star, and a host is no pattern: write it as a `glob`, `{host}/*`"));
    }
    let authority = Authority::parse_as_given(host.as_bytes());
    let authority = authority.ok_or_else(|| format!("`{host}` is no host: write NAME or NAME:PORT"))?;
    let mut text = Vec::new();
    without_usual_port(authority).write_to(&mut text);
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// 80 and 443 go without saying, whatever the scheme: who purges a host means it by either.
fn without_usual_port(authority: Authority<'_>) -> Authority<'_> {
    Authority { port: authority.port.filter(|port| !USUAL_PORTS.contains(port)), ..authority }
}

/// The same as `plain`, of one host or of any: a prefix is no pattern.
fn of_one_host(prefix: &str) -> Result<String, String> {
    let plain = plain(prefix)?;
    match plain.split('/').next().is_some_and(|host| host.contains('*')) {
        true => Err(format!("a prefix has no star in its host: write it as a `glob`, `{prefix}*`")),
        false => Ok(plain),
    }
}

/// Without a scheme, and with its host in the form that requests have in the end.
fn plain(pattern: &str) -> Result<String, String> {
    if pattern.is_empty() || !pattern.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("no URL has blanks, control characters or letters beyond ASCII: write them as %XX".to_owned());
    }
    let is_scheme = |word: &str| ["http", "https"].iter().any(|scheme| word.eq_ignore_ascii_case(scheme));
    let rest = pattern.split_once("://").filter(|(word, _)| is_scheme(word)).map_or(pattern, |(_, rest)| rest);
    let Some(slash) = rest.find('/') else {
        return Err("write it with a path: HOST/PATH, or /PATH for any host; `host` means a whole host".to_owned());
    };
    let (host, path) = rest.split_at(slash);
    match host.is_empty() || host.contains('*') {
        true => Ok(rest.to_ascii_lowercase().get(..slash).unwrap_or_default().to_owned() + path),
        false => Ok(host_of(host)? + path),
    }
}

/// The condition that a URL begins so.
struct Begins<'a>(&'a str);

impl std::fmt::Display for Begins<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ~ ^", field_for(self.0))?;
        self.0.chars().try_for_each(|letter| escape(f, letter))
    }
}

/// The condition that the whole of a URL is like this.
struct Globbed<'a>(&'a str);

impl std::fmt::Display for Globbed<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ~ ^", field_for(self.0))?;
        for letter in self.0.chars() {
            match letter {
                '*' => f.write_str(".*")?,
                letter => escape(f, letter)?,
            }
        }
        f.write_char('$')
    }
}

fn field_for(pattern: &str) -> &'static str {
    if pattern.starts_with('/') { "obj.url" } else { "obj.full_url" }
}

fn escape(f: &mut std::fmt::Formatter<'_>, letter: char) -> std::fmt::Result {
    if !letter.is_ascii_alphanumeric() && !"/-_~=&%:,@".contains(letter) {
        f.write_char('\\')?;
    }
    f.write_char(letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: &str) {
        let got = match text.contains('*') {
            true => format!("{}", Globbed(&plain(text).unwrap())),
            false => format!("{}", Begins(&plain(text).unwrap())),
        };
        assert_eq!(got, expect, "{text}");
    }

    #[test]
    fn patterns_become_conditions_on_the_url() {
        check("www.Example.org/news/", r"obj.full_url ~ ^www\.example\.org/news/");
        check("https://www.example.org:443/a?b", r"obj.full_url ~ ^www\.example\.org/a\?b");
        check("http://[::1]:8080/A", r"obj.full_url ~ ^\[::1\]:8080/A");
        check("HTTP://a.test/A", r"obj.full_url ~ ^a\.test/A");
        check("a.test/?to=http://b.test/", r"obj.full_url ~ ^a\.test/\?to=http://b\.test/");
        check("/news/", "obj.url ~ ^/news/");
        check("*.Example.org/*.css", r"obj.full_url ~ ^.*\.example\.org/.*\.css$");
        check("/*/print?*", r"obj.url ~ ^/.*/print\?.*$");
    }

    #[test]
    fn what_is_no_pattern_is_refused_with_a_word_of_how() {
        for (text, word) in [
            ("www.example.org", "`host` means a whole host"),
            ("", "%XX"),
            ("a.test/ä", "%XX"),
            ("a.test/a b", "%XX"),
            ("a_b@c/x", "is no host"),
        ] {
            let why = plain(text).unwrap_err();
            assert!(why.contains(word), "{text}: {why}");
        }
        assert_eq!(host_of("WWW.example.org:80").as_deref(), Ok("www.example.org"));
        assert_eq!(host_of("a.test:8443").as_deref(), Ok("a.test:8443"));
        assert!(host_of("*.test").unwrap_err().contains("`*.test/*`"));
        assert!(of_one_host("*.test/").unwrap_err().contains("`*.test/*`"));
        assert_eq!(of_one_host("/a*b").as_deref(), Ok("/a*b"));
        assert!(host_of("a.test/x").is_err() && host_of("").is_err());
    }
}
