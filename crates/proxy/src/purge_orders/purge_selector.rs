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
use wire::read_request;

use crate::asker::Asker;
use crate::cache_groups;
use crate::clock::{Clock, Moment};
use crate::core::{Core, Shared};
use crate::exchange_opening::{is_program_s, ruled};
use crate::peer::Peer;
use crate::policy;
use crate::receive;
use crate::response_tags;
use crate::settings::ListenMode;
use crate::transaction::purge::by_each_scheme;
use crate::vcl_story::bans::ProgramBan;

/// What is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PurgeSelector {
    /// A URL with all its variants. The head of a GET for it, as it goes over the wire.
    Url { head: Vec<u8>, scheme: Scheme },
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

/// What of the store that is.
pub(super) enum Meant {
    Keys(Vec<Key>),
    Banned(ProgramBan),
    Tagged(Vec<Key>),
    Grouped(Vec<Key>),
}

/// No request, URL or pattern is that.
const NO_URL: &str = "larder takes no request for this URL";

impl PurgeSelector {
    /// The error is a sentence for who selected.
    pub(super) fn meant(&self, shared: &Arc<Shared>, now: Now) -> Result<Meant, String> {
        let cache = &shared.cache;
        let ban = |text: String| Ok(Meant::Banned(ProgramBan::parse(text.as_bytes())?.issued_at(now)));
        match self {
            PurgeSelector::Url { head, scheme } => of_url(shared, head, *scheme, now),
            PurgeSelector::Prefix(prefix) => ban(format!("{}", Begins(&plain(prefix)?))),
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
            PurgeSelector::Group { name, head, scheme } => with_request(shared, head, *scheme, |_, [request, _]| {
                let keys = by_each_scheme(request.clone()).map(|request| cache_groups::key(cache, &request, name));
                Ok(Meant::Grouped(keys.into()))
            }),
            PurgeSelector::All => ban("obj.status != 0".to_owned()),
        }
    }
}

/// By the steps of a request for it. Where a program says by what its pages are found, they are found by their URL.
fn of_url(shared: &Arc<Shared>, head: &[u8], scheme: Scheme, now: Now) -> Result<Meant, String> {
    with_request(shared, head, scheme, |is_program_s, [request, as_proxy]| {
        if is_program_s {
            let text = format!("obj.full_url == {}", full_url(&request));
            return Ok(Meant::Banned(ProgramBan::parse(text.as_bytes())?.issued_at(now)));
        }
        let mut keys = Vec::new();
        for request in by_each_scheme(request).into_iter().chain(by_each_scheme(as_proxy)) {
            policy::invalidate(shared, &request, |key| keys.push(key));
        }
        Ok(Meant::Keys(keys))
    })
}

/// The request as its route leaves it, the same as a proxy is asked, and whether a program decides about the first.
fn with_request<T>(
    shared: &Arc<Shared>,
    head: &[u8],
    scheme: Scheme,
    then: impl FnOnce(bool, [Request<'_>; 2]) -> Result<T, String>,
) -> Result<T, String> {
    let core = Core::that_only_looks(Arc::clone(shared), Clock::read());
    let site = core.site();
    let mut spans = Vec::new();
    let received = read_request(head, &mut spans, &site.settings.limits.request_head, scheme);
    let mut received = received.ok().flatten().ok_or_else(|| NO_URL.to_owned())?;
    let peer = Peer::of((Ipv4Addr::LOCALHOST, 0).into());
    let asker = Asker { peer, mode: ListenMode::Accelerate, tls: None };
    let fields_at_origin = receive::fields_at_origin(&site, &asker, &received.request);
    receive::at_origin(&mut received.request, fields_at_origin.as_ref());
    // A proxy's pages lie under keys of their own, and no route is asked about them.
    let as_proxy = Request { form: TargetForm::Absolute, ..received.request.clone() };
    let mut room = core.room_to_rewrite();
    let (_, _, ruling) = ruled(&core, &site, &asker, (&mut received, Moment::now()), &mut room);
    if let Some(rewritten) = room.rewritten() {
        rewritten.put_into(&mut received.request);
    }
    let is_program_s = site.program.is_some() && is_program_s(&site, &ruling);
    then(is_program_s, [received.request.clone(), as_proxy])
}

/// Host, port if it is none that goes without saying, path and query, as bans see them.
fn full_url(request: &Request<'_>) -> String {
    let mut url = Vec::new();
    request.authority.write_to(&mut url);
    request.write_target(&mut url);
    String::from_utf8_lossy(&url).into_owned()
}

/// A host as requests name it in the end.
fn host_of(host: &str) -> Result<String, String> {
    let authority = Authority::parse_as_given(host.as_bytes());
    let mut authority = authority.ok_or_else(|| format!("`{host}` is no host: write NAME or NAME:PORT"))?;
    authority.port = authority.port.filter(|port| ![80, 443].contains(port));
    let mut text = Vec::new();
    authority.write_to(&mut text);
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Without a scheme, and with its host in the form that requests have in the end.
fn plain(pattern: &str) -> Result<String, String> {
    if pattern.is_empty() || !pattern.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("no URL has blanks, control characters or letters beyond ASCII: write them as %XX".to_owned());
    }
    let rest = pattern.strip_prefix("http://").or_else(|| pattern.strip_prefix("https://")).unwrap_or(pattern);
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
        assert!(host_of("a.test/x").is_err() && host_of("").is_err());
    }
}
