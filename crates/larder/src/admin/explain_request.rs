//! What a request would come to: `GET /explain?url=URL[&header=NAME: VALUE]…[&method=M][&client=IP][&as_if_ms=N]`, and the answer as JSON.
//!
//! Whether somebody may ask that is judged before, in `admin_request`. The proxy explains; here its words are read and written.

use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, UNIX_EPOCH};

use message::{Method, Request, Scheme};
use proxy::{ExplainQuestion, Explanation, GivenReason, Proxy, StoredResponse, WouldBe};
use serde_json::{Value, json};

use super::purge_hints;
use super::vcl_requests::{NotVcl, VclReply, query_value, query_values};

/// A hundred years: more would run into the end of dates.
const AHEAD_MS_MAX: u64 = 100 * 366 * 86_400_000;

/// The last second of the year 9999: dates have no fifth digit.
const DATE_S_MAX: u64 = 253_402_300_799;

/// The request that is to be explained.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainRequest {
    head: Vec<u8>,
    scheme: Scheme,
    client: IpAddr,
    ahead_ms: u64,
    /// As it was written.
    url: String,
}

impl ExplainRequest {
    pub fn of(request: &Request<'_>) -> Result<ExplainRequest, NotVcl> {
        let refused = |why| NotVcl::Refused(400, why);
        if request.path != b"/explain" {
            return Err(NotVcl::Elsewhere);
        }
        if !matches!(request.method, Method::Get | Method::Head) {
            return Err(NotVcl::Refused(405, "this path takes GET"));
        }
        let value = |key| query_value(request.query, key);
        let url = value("url").ok_or(refused("write /explain?url=URL, with the URL percent-encoded"))?;
        let lines = query_values(request.query, "header").ok_or(refused("a header is UTF-8, percent-encoded"))?;
        let method = value("method").unwrap_or_else(|| "GET".to_owned());
        let client = match value("client") {
            None => Ok(Ipv4Addr::LOCALHOST.into()),
            Some(text) => text.parse().map_err(|_| refused("client is an IP address: client=192.0.2.7")),
        }?;
        let ahead_ms = match value("as_if_ms").map(|text| text.parse()) {
            None => 0,
            Some(Ok(ms)) if ms <= AHEAD_MS_MAX => ms,
            Some(_) => {
                return Err(refused("as_if_ms is a number of milliseconds from now, of a hundred years at most"));
            }
        };
        let (scheme, head) = head_of(&url, &method, &lines).map_err(refused)?;
        Ok(ExplainRequest { head, scheme, client, ahead_ms, url })
    }

    pub fn act(self, proxy: &Proxy) -> VclReply {
        let ExplainRequest { head, scheme, client, ahead_ms, url } = self;
        match proxy.explain(&ExplainQuestion { head, scheme, client, ahead_ms }) {
            Ok(mut explained) => {
                if explained.key.is_some() && explained.stored.is_empty() {
                    explained.notes.extend(purge_hints::under_another_port(proxy, &url));
                }
                VclReply { status: 200, body: format!("{}\n", explanation_json(&explained)) }
            }
            Err(refusal) => {
                let setting = refusal.limit.map(|limit| format!(" (limits.{limit})")).unwrap_or_default();
                let sentence = format!(
                    "larder takes no such request: it answers {} before anything is looked at, {}{setting}",
                    refusal.status, refusal.token
                );
                VclReply { status: 422, body: format!("{}\n", json!({ "error": sentence })) }
            }
        }
    }
}

/// The head of a request for a URL, as it goes over the wire.
pub(super) fn head_of(url: &str, method: &str, lines: &[String]) -> Result<(Scheme, Vec<u8>), &'static str> {
    if !url.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("a URL has no spaces, no control characters and no letters beyond ASCII: write them as %XX");
    }
    let (scheme, rest) = match url.split_once("://") {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => (Scheme::Http, rest),
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => (Scheme::Https, rest),
        _ => return Err("a URL begins with http:// or https://, as a client of a site asks for it"),
    };
    // What stands behind # stays with the client.
    let rest = rest.split('#').next().unwrap_or_default();
    let (authority, target) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    if authority.is_empty() {
        return Err("the URL names no host");
    }
    if authority.contains('@') {
        return Err("a client sends name and password in a header, and not in the URL: header=Authorization: Basic …");
    }
    if method.is_empty() || !method.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
        return Err("a method is a word: GET, HEAD, POST …");
    }
    let names_host = lines.iter().any(|line| name_of(line).is_some_and(|name| name.eq_ignore_ascii_case("host")));
    let slash = if target.starts_with('/') { "" } else { "/" };
    let mut head = format!("{method} {slash}{target} HTTP/1.1\r\n");
    if !names_host {
        head.push_str(&format!("Host: {authority}\r\n"));
    }
    for line in lines {
        if line.bytes().any(|byte| matches!(byte, b'\r' | b'\n' | 0)) {
            return Err("a header is one line: without CR, LF and NUL");
        }
        name_of(line).ok_or("a header has a name and a colon: header=Name: value")?;
        head.push_str(line);
        head.push_str("\r\n");
    }
    head.push_str("\r\n");
    Ok((scheme, head.into_bytes()))
}

fn name_of(line: &str) -> Option<&str> {
    let (name, _) = line.split_once(':')?;
    (!name.is_empty()).then_some(name)
}

fn explanation_json(explained: &Explanation) -> Value {
    let chosen = explained.chosen.as_ref().map(|(at, because)| json!({ "number": at + 1, "because": because }));
    let answer = match &explained.would_be {
        WouldBe::Answered { status, token, text } => json!({ "status": status, "word": token, "text": text }),
        _ => Value::Null,
    };
    json!({
        "would_be": explained.would_be.word(),
        "says": sentence(&explained.would_be),
        "answer": answer,
        "route": explained.route.as_ref().map(|route| json!({ "name": route.name, "target": route.target })),
        "key": explained.key,
        "stored": explained.stored.iter().map(stored_json).collect::<Vec<_>>(),
        "chosen": chosen,
        "reasons": explained.reasons.iter().map(reason_json).collect::<Vec<_>>(),
        "notes": explained.notes,
        "at": date(explained.wall_ms),
        "at_ms": explained.wall_ms,
    })
}

/// What it means, for people.
fn sentence(would_be: &WouldBe) -> String {
    match would_be {
        WouldBe::Hit => "answered from the store".to_owned(),
        WouldBe::Stale { refreshes: true } => {
            "answered from the store, stale as its origin allows, and refreshed meanwhile".to_owned()
        }
        WouldBe::Stale { refreshes: false } => "answered from the store, stale, and not refreshed".to_owned(),
        WouldBe::Revalidated => "the origin is asked whether what is stored still holds".to_owned(),
        WouldBe::Miss => "the origin is asked, and its answer is stored if it may be".to_owned(),
        WouldBe::Coalesced => "it waits for the fetch of another request".to_owned(),
        WouldBe::Pass => "the origin is asked past the store".to_owned(),
        WouldBe::Disk => {
            "a disk is read first, and the origin is asked if that has nothing for this request".to_owned()
        }
        WouldBe::Answered { status, token, .. } => format!("larder answers {status} itself ({token})"),
        WouldBe::File(shown) => format!("{shown} answers"),
        WouldBe::Memcached => "memcached is asked".to_owned(),
        WouldBe::Purge => "what is stored under this URL is dropped, with all its variants".to_owned(),
        WouldBe::Tunnel => "bytes flow both ways between client and origin".to_owned(),
        WouldBe::Program(name) => format!("the VCL {name} decides"),
    }
}

fn reason_json(given: &GivenReason) -> Value {
    let reason = given.reason;
    json!({
        "word": reason.token(),
        "means": given.means(),
        "way_out": given.way_out(),
        "page": format!("docs/{}", reason.page()),
        "about": given.about,
    })
}

fn stored_json(stored: &StoredResponse) -> Value {
    json!({
        "status": stored.status,
        "vary": stored.vary,
        "coding": stored.coding,
        "etag": stored.etag,
        "body_bytes": stored.body_bytes,
        "part": stored.part.map(|(from, to)| json!([from, to])),
        "hits": stored.hits,
        "received": date(stored.received_wall_ms),
        "age_s": stored.age_s,
        "lifetime_ms": stored.lifetime_ms,
        "fresh": stored.is_fresh && !stored.always_confirmed,
        "fresh_by": stored.fresh_by,
        "fresh_until": date(stored.fresh_until_wall_ms),
        "fresh_until_ms": stored.fresh_until_wall_ms,
        "always_confirmed": stored.always_confirmed,
        "stale_while_revalidate_ms": stored.stale_while_revalidate_ms,
        "stale_if_error_ms": stored.stale_if_error_ms,
        "says_shared": stored.says_shared,
        "on_disk": stored.is_on_disk,
    })
}

/// As HTTP writes it.
fn date(wall_ms: u64) -> String {
    httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs((wall_ms / 1_000).min(DATE_S_MAX)))
}

#[cfg(test)]
mod tests {
    use wire::limits::HeadLimits;
    use wire::read_request;

    use super::*;

    fn asked(target: &str) -> Result<ExplainRequest, NotVcl> {
        let head = format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n");
        let mut spans = Vec::new();
        let received = read_request(head.as_bytes(), &mut spans, &HeadLimits::REQUEST, Scheme::Http).unwrap().unwrap();
        ExplainRequest::of(&received.request)
    }

    fn check(query: &str, head: &str, scheme: Scheme) {
        let request = asked(&format!("/explain?{query}")).unwrap_or_else(|why| panic!("{query}: {why:?}"));
        assert_eq!((String::from_utf8_lossy(&request.head).as_ref(), request.scheme), (head, scheme), "{query}");
    }

    #[test]
    fn a_url_becomes_a_request() {
        check("url=http://a.test", "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n", Scheme::Http);
        check("url=HTTPS://a.test:8443/x%3Fy%23z", "GET /x?y HTTP/1.1\r\nHost: a.test:8443\r\n\r\n", Scheme::Https);
        check("url=http://a.test%3Fb", "GET /?b HTTP/1.1\r\nHost: a.test\r\n\r\n", Scheme::Http);
        check(
            "url=http://a.test/&method=HEAD&header=A:%20b&header=Cookie:c%3Dd",
            "HEAD / HTTP/1.1\r\nHost: a.test\r\nA: b\r\nCookie:c=d\r\n\r\n",
            Scheme::Http,
        );
        check("url=http://a.test/&header=host:b.test", "GET / HTTP/1.1\r\nhost:b.test\r\n\r\n", Scheme::Http);
        let request = asked("/explain?url=http://a.test/&client=192.0.2.7&as_if_ms=3600000").unwrap();
        assert_eq!((request.client.to_string().as_str(), request.ahead_ms), ("192.0.2.7", 3_600_000));
    }

    #[test]
    fn what_is_no_request_is_refused_with_a_word_of_how() {
        for (query, word) in [
            ("", "write /explain?url=URL"),
            ("url=%FF", "write /explain?url=URL"),
            ("url=ftp://a.test/", "http:// or https://"),
            ("url=a.test/", "http:// or https://"),
            ("url=javascript:alert(1)", "http:// or https://"),
            ("url=http:///x", "names no host"),
            ("url=http://user:pw@a.test/", "in a header"),
            ("url=http://a.test/%20x", "%XX"),
            ("url=http://a.test/%0D%0AX:1", "%XX"),
            ("url=http://a.test/%00", "%XX"),
            ("url=http://a.test/%C3%A4", "%XX"),
            ("url=http://a.test/&header=A%3A%20b%0D%0AEvil%3A%20c", "one line"),
            ("url=http://a.test/&header=A%3A%20b%00", "one line"),
            ("url=http://a.test/&header=%FF", "UTF-8"),
            ("url=http://a.test/&header=novalue", "a name and a colon"),
            ("url=http://a.test/&header=%3A%20x", "a name and a colon"),
            ("url=http://a.test/&method=GET%20/x", "a method is a word"),
            ("url=http://a.test/&method=", "a method is a word"),
            ("url=http://a.test/&client=nobody", "an IP address"),
            ("url=http://a.test/&as_if_ms=-1", "milliseconds"),
            ("url=http://a.test/&as_if_ms=99999999999999999", "milliseconds"),
        ] {
            match asked(&format!("/explain?{query}")) {
                Err(NotVcl::Refused(400, why)) => assert!(why.contains(word), "{query}: {why}"),
                other => panic!("{query}: {other:?}"),
            }
        }
        assert_eq!(asked("/explained?url=http://a.test/"), Err(NotVcl::Elsewhere));
    }
}
