//! One request to the admin address: what it asks, whether it may, and the bytes of the answer.
//!
//! A function of bytes; the socket is the caller's.

use message::{Method, Request, Scheme, Status};
use wire::limits::HeadLimits;
use wire::{Persistence, ReceivedRequest, RequestBody, read_request, whole_answer};

use super::admin_rights::{Door, host_fits, may_change};
use super::dashboard_files::{self, DashboardFile};
use super::event_stream::EventsWanted;
use super::explain_request::ExplainRequest;
use super::history::HistoryRequest;
use super::invalidation_requests::InvalidationRequest;
use super::observation::Observation;
use super::origin_requests::OriginRequest;
use super::probe_request::{self, Probe};
use super::vcl_requests::{NotVcl, VclReply, VclRequest};
use super::{
    Rights, config_request, fleet_request, is_loopback, metrics_text, note_request, reload_request, status_json,
    upgrade_request,
};

/// How far reading came.
pub enum Read {
    More,
    Done(Answer),
}

/// What is answered, before the figures are gathered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Page {
        page: Page,
        head_only: bool,
    },
    /// The clocks of freshness go forward.
    Advance {
        ms: u64,
    },
    Refusal {
        status: u16,
        why: &'static str,
    },
    /// Something is to be done first, and what comes of it is the answer.
    Vcl {
        request: VclRequest,
        body: Body,
    },
    /// The same about origins.
    Origin {
        request: OriginRequest,
        head_only: bool,
    },
    /// What a request would come to.
    Explain {
        request: ExplainRequest,
        head_only: bool,
    },
    /// What goes, what is fetched again, and tags.
    Invalidation {
        request: InvalidationRequest,
        body: Body,
    },
    /// The config that holds.
    Config {
        head_only: bool,
    },
    /// How the fleet stands.
    Fleet {
        head_only: bool,
    },
    /// Whether it lives, and takes requests.
    Probe {
        probe: Probe,
        head_only: bool,
    },
    /// Plain text.
    Word {
        status: u16,
        word: &'static str,
        head_only: bool,
    },
    /// The config is to be read again.
    Reload,
    Upgrade,
    /// An operator writes something down.
    Note(String),
    /// What is drawn of the last hour, or day.
    History {
        request: HistoryRequest,
        head_only: bool,
    },
    /// Goes on as long as both want.
    Events(EventsWanted),
    Json {
        status: u16,
        body: String,
        head_only: bool,
    },
}

/// What follows a request's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Body {
    /// It begins here.
    pub from: usize,
    pub bytes: usize,
    /// The client waits to be told.
    pub expects_continue: bool,
    pub head_only: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Page {
    /// A file of the dashboard.
    Dashboard(&'static DashboardFile),
    Metrics,
    Status,
    /// What is inside.
    Debug,
}

impl Answer {
    /// What of it is still to be read.
    pub fn body(&self) -> Option<Body> {
        match self {
            Answer::Vcl { body, .. } | Answer::Invalidation { body, .. } => Some(*body),
            _ => None,
        }
    }

    pub const fn refusal(status: u16, why: &'static str) -> Answer {
        Answer::Refusal { status, why }
    }
}

/// What to answer to what has been received so far.
pub fn answer(head: &[u8], door: Door, rights: &Rights) -> Read {
    let mut spans = Vec::new();
    match read_request(head, &mut spans, &HeadLimits::REQUEST, Scheme::Http) {
        Ok(None) => Read::More,
        Ok(Some(received)) => Read::Done(judge(&received, door, rights)),
        Err(refusal) => Read::Done(Answer::refusal(refusal.status, refusal.token)),
    }
}

fn judge(received: &ReceivedRequest<'_>, door: Door, rights: &Rights) -> Answer {
    let request = &received.request;
    if !host_fits(&request.authority.host, door) {
        return Answer::refusal(
            403,
            "the admin address does not serve this Host: use localhost, or the address as it is listened on",
        );
    }
    match VclRequest::of(request) {
        Ok(wanted) if wanted.changes() && !may_change(&request.fields, door, rights) => return needs_rights(),
        Ok(wanted) => return with_body(wanted, received),
        Err(NotVcl::Refused(status, why)) => return Answer::refusal(status, why),
        Err(NotVcl::Elsewhere) => {}
    }
    let head_only = request.method == Method::Head;
    match probe_request::is_asked_by(request) {
        Ok(probe) => return Answer::Probe { probe, head_only },
        Err(NotVcl::Refused(status, why)) => return Answer::refusal(status, why),
        Err(NotVcl::Elsewhere) => {}
    }
    match OriginRequest::of(request) {
        Ok(wanted) if wanted.changes() && !may_change(&request.fields, door, rights) => return needs_rights(),
        Ok(request) => return Answer::Origin { request, head_only },
        Err(NotVcl::Refused(status, why)) => return Answer::refusal(status, why),
        Err(NotVcl::Elsewhere) => {}
    }
    match ExplainRequest::of(request) {
        // It tells what is stored, and of what names.
        Ok(_) if !may_change(&request.fields, door, rights) => return needs_rights_to_explain(),
        Ok(request) => return Answer::Explain { request, head_only },
        Err(NotVcl::Refused(status, why)) => return Answer::refusal(status, why),
        Err(NotVcl::Elsewhere) => {}
    }
    match InvalidationRequest::of(request) {
        // Tags, too, tell what is stored.
        Ok(_) if !may_change(&request.fields, door, rights) => return needs_rights(),
        Ok(wanted) => return with_json(wanted, received),
        Err(NotVcl::Refused(status, why)) => return Answer::refusal(status, why),
        Err(NotVcl::Elsewhere) => {}
    }
    match config_request::is_asked_by(request) {
        Ok(()) if !may_change(&request.fields, door, rights) => return needs_rights(),
        Ok(()) => return Answer::Config { head_only },
        Err(NotVcl::Refused(status, why)) => return Answer::refusal(status, why),
        Err(NotVcl::Elsewhere) => {}
    }
    match fleet_request::is_asked_by(request) {
        Ok(()) => return Answer::Fleet { head_only },
        Err(NotVcl::Refused(status, why)) => return Answer::refusal(status, why),
        Err(NotVcl::Elsewhere) => {}
    }
    match reload_request::is_asked_by(request) {
        Ok(()) if !may_change(&request.fields, door, rights) => return needs_rights(),
        Ok(()) => return Answer::Reload,
        Err(NotVcl::Refused(status, why)) => return Answer::refusal(status, why),
        Err(NotVcl::Elsewhere) => {}
    }
    match upgrade_request::is_asked_by(request) {
        Ok(()) if !may_change(&request.fields, door, rights) => return needs_rights(),
        Ok(()) => return Answer::Upgrade,
        Err(NotVcl::Refused(status, why)) => return Answer::refusal(status, why),
        Err(NotVcl::Elsewhere) => {}
    }
    match note_request::text_of(request) {
        Ok(_) if !may_change(&request.fields, door, rights) => return needs_rights(),
        Ok(text) => return Answer::Note(text),
        Err(NotVcl::Refused(status, why)) => return Answer::refusal(status, why),
        Err(NotVcl::Elsewhere) => {}
    }
    match HistoryRequest::of(request) {
        Ok(request) => return Answer::History { request, head_only },
        Err(NotVcl::Refused(status, why)) => return Answer::refusal(status, why),
        Err(NotVcl::Elsewhere) => {}
    }
    let reads = matches!(request.method, Method::Get | Method::Head);
    let page = match request.path {
        path if let Some(file) = dashboard_files::at(path) => Page::Dashboard(file),
        b"/metrics" => Page::Metrics,
        b"/status" => Page::Status,
        b"/debug" => Page::Debug,
        b"/log" if request.method == Method::Get => return events(request, door, rights),
        b"/log" => return Answer::refusal(405, "this path takes GET"),
        b"/debug/advance" if request.method == Method::Post => return advance(request, door, rights),
        b"/debug/advance" => return Answer::refusal(405, "this path takes POST"),
        _ => {
            return Answer::refusal(
                404,
                "there are /, /status, /metrics, /healthz, /readyz, /history, /log, /origins, /vcl, /backends, /bans, /config, /explain, /fleet, /purge, /refresh, /reload, /upgrade, /notes, /warm and /tags",
            );
        }
    };
    match reads {
        true => Answer::Page { page, head_only },
        false => Answer::refusal(405, "this path takes GET"),
    }
}

fn needs_rights() -> Answer {
    Answer::refusal(
        403,
        "to change anything, or to see what is stored or set, send the token of [admin] (Authorization: Bearer TOKEN) or use its UNIX socket",
    )
}

fn needs_rights_to_explain() -> Answer {
    Answer::refusal(
        403,
        "what is explained tells what is stored: send the token of [admin] (Authorization: Bearer TOKEN) or use its UNIX socket",
    )
}

/// Addresses, users and URLs are nobody's business who may not change anything.
fn events(request: &Request<'_>, door: Door, rights: &Rights) -> Answer {
    if !may_change(&request.fields, door, rights) {
        return Answer::refusal(
            403,
            "to read along, send the token of [admin] (Authorization: Bearer TOKEN) or use its UNIX socket",
        );
    }
    match EventsWanted::of(request.query) {
        Ok(wanted) => Answer::Events(wanted),
        Err(why) => Answer::refusal(400, why),
    }
}

/// A request that may have a body, of a length that is known beforehand.
fn with_body(request: VclRequest, received: &ReceivedRequest<'_>) -> Answer {
    let bytes = match received.body {
        RequestBody::Length(bytes) if bytes > vcl::limits::FILE_BYTES_MAX as u64 => {
            return Answer::refusal(413, "the VCL is larger than a VCL may be");
        }
        RequestBody::Length(bytes) if request.takes_body() => bytes as usize,
        RequestBody::Chunked if request.takes_body() => {
            return Answer::refusal(411, "send the VCL with its Content-Length");
        }
        _ => 0,
    };
    Answer::Vcl { request, body: body_of(received, bytes) }
}

/// An order, whose body is JSON.
fn with_json(request: InvalidationRequest, received: &ReceivedRequest<'_>) -> Answer {
    if !request.takes_type_of(&received.request) {
        return Answer::refusal(415, "send it as Content-Type: application/json");
    }
    let bytes = match (received.body, request.body_bytes_max()) {
        (RequestBody::Length(bytes), Some(max)) if bytes > max => {
            return Answer::refusal(413, "the order is longer than an order may be: 64 KiB, a list of URLs 1 MiB");
        }
        (RequestBody::Length(bytes), Some(_)) => bytes as usize,
        (RequestBody::Chunked, Some(_)) => return Answer::refusal(411, "send the order with its Content-Length"),
        _ => 0,
    };
    Answer::Invalidation { request, body: body_of(received, bytes) }
}

fn body_of(received: &ReceivedRequest<'_>, bytes: usize) -> Body {
    Body {
        from: received.head_bytes,
        bytes,
        expects_continue: received.expects_continue,
        head_only: received.request.method == Method::Head,
    }
}

/// `POST /debug/advance?ms=N`
fn advance(request: &Request<'_>, door: Door, rights: &Rights) -> Answer {
    if !rights.debug {
        return Answer::refusal(404, "/debug/advance needs [admin] debug = true");
    }
    // In debug mode anybody on this machine may, whose request is not a web page's.
    let from_page = request.fields.get_all_named(b"origin").next().is_some();
    let is_near = matches!(door, Door::Tcp(local) if is_loopback(&local) && !from_page);
    if !is_near && !may_change(&request.fields, door, rights) {
        return needs_rights();
    }
    let ms = request.query.and_then(|query| std::str::from_utf8(query).ok()?.strip_prefix("ms=")?.parse().ok());
    match ms {
        Some(ms) if ms <= ADVANCE_MS_MAX => Answer::Advance { ms },
        _ => Answer::refusal(400, "write /debug/advance?ms=N, in milliseconds"),
    }
}

/// A hundred years: more would run into the end of dates.
const ADVANCE_MS_MAX: u64 = 100 * 366 * 86_400_000;

impl Answer {
    /// The whole answer. The figures are gathered only when somebody may see them.
    pub fn bytes(self, observe: impl FnOnce() -> Observation, advance_clock: impl FnOnce(u64)) -> Vec<u8> {
        const TEXT: &str = "text/plain; charset=utf-8";
        let (status, content_type, body, head_only) = match self {
            Answer::Page { page: Page::Dashboard(file), head_only } => {
                (200, file.content_type, file.text.to_owned(), head_only)
            }
            Answer::Page { page: Page::Metrics, head_only } => {
                (200, metrics_text::CONTENT_TYPE, metrics_text::metrics(&observe()), head_only)
            }
            Answer::Page { page: Page::Debug, head_only } => {
                (200, metrics_text::CONTENT_TYPE, metrics_text::debug(&observe()), head_only)
            }
            Answer::Page { page: Page::Status, head_only } => {
                (200, "application/json", status_json::status(&observe()), head_only)
            }
            Answer::Advance { ms } => {
                advance_clock(ms);
                (200, TEXT, format!("advanced by {ms} ms\n"), false)
            }
            Answer::Refusal { status, why } => (status, TEXT, format!("{why}\n"), false),
            Answer::Word { status, word, head_only } => (status, TEXT, word.to_owned(), head_only),
            Answer::Json { status, body, head_only } => (status, "application/json", body, head_only),
            Answer::Invalidation { .. }
            | Answer::Vcl { .. }
            | Answer::Origin { .. }
            | Answer::Explain { .. }
            | Answer::History { .. }
            | Answer::Config { .. }
            | Answer::Fleet { .. }
            | Answer::Probe { .. }
            | Answer::Reload
            | Answer::Upgrade
            | Answer::Note(_)
            | Answer::Events(_) => {
                unreachable!("it is done before it is answered")
            }
        };
        let mut fields = vec![
            ("Content-Type", content_type),
            ("Cache-Control", "no-store"),
            ("X-Content-Type-Options", "nosniff"),
            ("Content-Security-Policy", SECURITY_POLICY),
            ("Cross-Origin-Resource-Policy", "same-origin"),
            ("Referrer-Policy", "no-referrer"),
        ];
        if status == 405 {
            fields.push(("Allow", "GET, HEAD, POST, PUT, DELETE"));
        }
        whole_answer(Status(status), &fields, body.as_bytes(), !head_only, Persistence::Close)
    }
}

impl VclReply {
    pub fn into_answer(self, head_only: bool) -> Answer {
        Answer::Json { status: self.status, body: self.body, head_only }
    }
}

/// The dashboard takes scripts and styles from files of this address alone, asks nobody else, stands in no frame, sends no form, and makes no
/// markup of texts.
const SECURITY_POLICY: &str = "default-src 'none'; connect-src 'self'; style-src 'self'; script-src 'self'; img-src data:; \
                               frame-ancestors 'none'; base-uri 'none'; form-action 'none'; \
                               require-trusted-types-for 'script'; trusted-types 'none'";

#[cfg(test)]
mod tests {
    use super::super::observation::tests::sample;
    use super::*;

    const LOOPBACK: &str = "127.0.0.1:9180";

    fn ask(head: &str, door: Door, rights: &Rights) -> Answer {
        match answer(head.as_bytes(), door, rights) {
            Read::Done(answer) => answer,
            Read::More => panic!("{head:?} is not whole"),
        }
    }

    fn tcp(address: &str) -> Door {
        Door::Tcp(address.parse().unwrap())
    }

    fn check(request: &str, host: &str, door: Door, expect: Result<Page, u16>) {
        let got = ask(&format!("{request} HTTP/1.1\r\nHost: {host}\r\n\r\n"), door, &Rights::default());
        match (got, expect) {
            (Answer::Page { page, .. }, Ok(expected)) => assert_eq!(page, expected, "{request} at {host}"),
            (Answer::Refusal { status, .. }, Err(expected)) => assert_eq!(status, expected, "{request} at {host}"),
            (got, expected) => panic!("{request} at {host}: {got:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn pages_are_read_and_nothing_else() {
        let file = |path: &str| Ok(Page::Dashboard(dashboard_files::at(path.as_bytes()).unwrap()));
        check("GET /", "localhost:9180", tcp(LOOPBACK), file("/"));
        check("GET /dashboard/main.js?x", "localhost:9180", tcp(LOOPBACK), file("/dashboard/main.js"));
        check("GET /dashboard/", "localhost", tcp(LOOPBACK), Err(404));
        check("GET /dashboard/../main.js", "localhost", tcp(LOOPBACK), Err(404));
        check("POST /dashboard/main.js", "localhost", tcp(LOOPBACK), Err(405));
        check("GET /dashboard/main.js", "evil.test", tcp(LOOPBACK), Err(403));
        check("GET /status", "127.0.0.1", tcp(LOOPBACK), Ok(Page::Status));
        check("HEAD /metrics?x", "[::1]:1", tcp(LOOPBACK), Ok(Page::Metrics));
        check("GET /debug", "localhost", tcp(LOOPBACK), Ok(Page::Debug));
        check("POST /status", "localhost", tcp(LOOPBACK), Err(405));
        check("POST /healthz", "localhost", tcp(LOOPBACK), Err(405));
        check("GET /nothing", "localhost", tcp(LOOPBACK), Err(404));
        check("GET /debug/advance?ms=1", "localhost", tcp(LOOPBACK), Err(405));
    }

    /// A kubelet asks by the address of the pod, and has no token.
    #[test]
    fn probes_need_no_token_and_are_a_word() {
        for (request, door) in
            [("GET /readyz", tcp("0.0.0.0:9180")), ("GET /readyz", tcp(LOOPBACK)), ("HEAD /readyz", Door::Unix)]
        {
            let head = format!("{request} HTTP/1.1\r\nHost: 127.0.0.1:9180\r\n\r\n");
            let head_only = request.starts_with("HEAD");
            let expect = Answer::Probe { probe: Probe::Readiness, head_only };
            assert_eq!(ask(&head, door, &Rights::default()), expect, "{request}");
        }
        let word = Answer::Word { status: 503, word: "draining\n", head_only: false };
        let bytes = word.bytes(|| panic!("no figures are gathered"), |_| ());
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.starts_with("HTTP/1.1 503 ") && text.ends_with("\r\n\r\ndraining\n"), "{text}");
    }

    #[test]
    fn on_loopback_a_foreign_host_is_refused() {
        check("GET /status", "evil.test", tcp(LOOPBACK), Err(403));
        check("GET /status", "localhost.evil.test", tcp(LOOPBACK), Err(403));
        check("GET /status", "192.0.2.1", tcp(LOOPBACK), Err(403));
        check("GET /status", "evil.test", tcp("[::1]:9180"), Err(403));
        check("GET /status", "edge.test", tcp("192.0.2.1:9180"), Ok(Page::Status));
        check("GET /status", "anything", Door::Unix, Ok(Page::Status));
        check("GET /status", "127.0.0.1:9180", Door::Unix, Ok(Page::Status));
        check("GET /status", "192.0.2.1", Door::Unix, Ok(Page::Status));
        // A UNIX socket that is carried to a port is as near to a browser as loopback is.
        check("GET /status", "evil.test:9180", Door::Unix, Err(403));
        check("GET /status", "localhost.evil.test", Door::Unix, Err(403));
    }

    #[test]
    fn a_page_of_another_site_has_no_rights_of_the_socket() {
        let rights = Rights { token: Some("0123456789abcdef".to_owned()), ..Rights::default() };
        let asked = |fields: &str, host: &str| {
            let head = format!("POST /origins/shop?set=down HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n");
            match ask(&head, Door::Unix, &rights) {
                Answer::Origin { .. } => 200,
                Answer::Refusal { status, .. } => status,
                other => panic!("{head}: {other:?}"),
            }
        };
        // Which ones are of another site is `admin_rights`' affair.
        let here = "localhost:9180";
        assert_eq!(asked("", here), 200);
        assert_eq!(asked("Origin: http://evil.test\r\n", here), 403);
        assert_eq!(asked("Origin: http://evil.test\r\nAuthorization: Bearer 0123456789abcdef\r\n", here), 200);
    }

    #[test]
    fn the_history_is_read_by_all() {
        let asked =
            |line: &str| ask(&format!("{line} HTTP/1.1\r\nHost: localhost\r\n\r\n"), tcp(LOOPBACK), &Rights::default());
        assert!(matches!(asked("GET /history?step=60"), Answer::History { head_only: false, .. }));
        assert!(matches!(asked("POST /history"), Answer::Refusal { status: 405, .. }));
    }

    #[test]
    fn the_policy_lets_no_script_stand_in_the_page() {
        assert!(!SECURITY_POLICY.contains("unsafe") && SECURITY_POLICY.starts_with("default-src 'none'"));
    }

    #[test]
    fn what_is_no_http_is_refused() {
        assert!(matches!(ask("GET /\u{7f} HTTP/1.1\r\n\r\n", Door::Unix, &Rights::default()), Answer::Refusal { .. }));
        assert!(matches!(answer(b"GET / HTT", Door::Unix, &Rights::default()), Read::More));
    }

    fn check_advance(target: &str, fields: &str, door: Door, rights: &Rights, expect: Result<u64, u16>) {
        let head = format!("POST {target} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n");
        match (ask(&head, door, rights), expect) {
            (Answer::Advance { ms }, Ok(expected)) => assert_eq!(ms, expected),
            (Answer::Refusal { status, .. }, Err(expected)) => assert_eq!(status, expected, "{head}"),
            (got, expected) => panic!("{head}: {got:?} instead of {expected:?}"),
        }
    }

    fn check_vcl(request: &str, fields: &str, door: Door, rights: &Rights, expect: Result<usize, u16>) {
        let head = format!("{request} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n");
        match (ask(&head, door, rights), expect) {
            (Answer::Vcl { body, .. }, Ok(expected)) => assert_eq!((body.bytes, body.from), (expected, head.len())),
            (Answer::Refusal { status, .. }, Err(expected)) => assert_eq!(status, expected, "{head}"),
            (got, expected) => panic!("{head}: {got:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn vcls_are_read_by_all_and_changed_by_those_who_may() {
        let rights = Rights { token: Some("0123456789abcdef".to_owned()), ..Rights::default() };
        let (token, near) = ("Authorization: bearer 0123456789abcdef\r\n", tcp(LOOPBACK));
        let length = |bytes: usize| format!("{token}Content-Length: {bytes}\r\n");
        check_vcl("GET /vcl", "", near, &rights, Ok(0));
        check_vcl("GET /backends", "", near, &rights, Ok(0));
        check_vcl("GET /bans", "", near, &rights, Ok(0));
        check_vcl("POST /ban", "Content-Length: 7\r\n", near, &rights, Err(403));
        check_vcl("POST /ban", &length(7), near, &rights, Ok(7));
        check_vcl("POST /vcl/a/use", "", near, &rights, Err(403));
        check_vcl("POST /vcl/a/use", "", Door::Unix, &rights, Ok(0));
        check_vcl("POST /vcl/a/use", token, near, &rights, Ok(0));
        check_vcl("PUT /vcl/a", &length(7), near, &rights, Ok(7));
        check_vcl("PUT /vcl/a", &length(5 << 20), near, &rights, Err(413));
        check_vcl("PUT /vcl/a", &format!("{token}Transfer-Encoding: chunked\r\n"), near, &rights, Err(411));
        check_vcl("PUT /vcl/a", "Content-Length: 7\r\n", near, &rights, Err(403));
        check_vcl("GET /vcl/a", "", near, &rights, Err(405));
    }

    #[test]
    fn origins_are_seen_by_all_and_changed_by_those_who_may() {
        let rights = Rights { token: Some("0123456789abcdef".to_owned()), debug: true, ..Rights::default() };
        let near = tcp(LOOPBACK);
        let asked = |line: &str, fields: &str, door: Door| match ask(
            &format!("{line} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n"),
            door,
            &rights,
        ) {
            Answer::Origin { request, .. } => Ok(request.changes()),
            Answer::Refusal { status, .. } => Err(status),
            other => panic!("{line}: {other:?}"),
        };
        let (drain, token) = ("POST /origins/shop?set=drain", "Authorization: Bearer 0123456789abcdef\r\n");
        assert_eq!(asked("GET /origins", "", near), Ok(false));
        assert_eq!(asked(drain, "", near), Err(403));
        assert_eq!(asked(drain, token, near), Ok(true));
        assert_eq!(asked(drain, "", Door::Unix), Ok(true));
        assert_eq!(asked("POST /origins/shop", token, near), Err(400));
    }

    #[test]
    fn orders_are_taken_from_those_who_may_and_as_json() {
        let rights = Rights { token: Some("0123456789abcdef".to_owned()), debug: true, ..Rights::default() };
        let (near, token) = (tcp(LOOPBACK), "Authorization: Bearer 0123456789abcdef\r\n");
        let json = "Content-Type: application/json\r\nContent-Length: 7\r\n";
        let asked = |line: &str, fields: &[&str], door: Door| {
            let head = format!("{line} HTTP/1.1\r\nHost: localhost\r\n{}\r\n", fields.concat());
            match ask(&head, door, &rights) {
                Answer::Invalidation { body, .. } => Ok((body.bytes, head.len() - body.from)),
                Answer::Refusal { status, .. } => Err(status),
                other => panic!("{line}: {other:?}"),
            }
        };
        for line in ["POST /purge", "POST /refresh", "POST /warm"] {
            assert_eq!(asked(line, &[token, json], near), Ok((7, 0)), "{line}");
            assert_eq!(asked(line, &[json], Door::Unix), Ok((7, 0)), "{line}");
            assert_eq!(asked(line, &[json], near), Err(403), "{line}");
            assert_eq!(asked(line, &[json, "Origin: http://localhost\r\n"], near), Err(403), "{line}");
            assert_eq!(asked(line, &[token, "Content-Length: 7\r\n"], near), Err(415), "{line}");
            let chunked = "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n";
            assert_eq!(asked(line, &[token, chunked], near), Err(411), "{line}");
            let long = "Content-Type: application/json\r\nContent-Length: 1048577\r\n";
            assert_eq!(asked(line, &[token, long], near), Err(413), "{line}");
        }
        for line in ["GET /tags", "GET /refresh", "DELETE /refresh"] {
            assert_eq!(asked(line, &[token], near), Ok((0, 0)), "{line}");
            assert_eq!(asked(line, &[], near), Err(403), "{line}");
        }
        assert_eq!(asked("GET /purge", &[token], near), Err(405));
    }

    #[test]
    fn who_may_change_things_may_have_them_explained() {
        let rights = Rights { token: Some("0123456789abcdef".to_owned()), debug: true, ..Rights::default() };
        let asked = |fields: &str, door: Door| {
            let head = format!("GET /explain?url=http://a.test/ HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n");
            match ask(&head, door, &rights) {
                Answer::Explain { .. } => 200,
                Answer::Refusal { status, .. } => status,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(asked("", tcp(LOOPBACK)), 403);
        assert_eq!(asked("Authorization: Bearer 0123456789abcdeX\r\n", tcp(LOOPBACK)), 403);
        assert_eq!(asked("Authorization: Bearer 0123456789abcdef\r\n", tcp(LOOPBACK)), 200);
        assert_eq!(asked("", Door::Unix), 200);
    }

    #[test]
    fn debug_opens_the_clock_and_nothing_else() {
        let rights = Rights { debug: true, ..Rights::default() };
        check_advance("/debug/advance?ms=5000", "", tcp(LOOPBACK), &rights, Ok(5000));
        check_vcl("PUT /vcl/a", "Content-Length: 7\r\n", tcp(LOOPBACK), &rights, Err(403));
        check_vcl("POST /vcl/a/use", "", tcp(LOOPBACK), &rights, Err(403));
        check_vcl("POST /ban", "Content-Length: 7\r\n", tcp(LOOPBACK), &rights, Err(403));
    }

    #[test]
    fn only_those_who_may_advance_the_clock() {
        let token = "0123456789abcdef".to_owned();
        let off = Rights::default();
        let on = Rights { debug: true, token: Some(token), ..Rights::default() };
        let (good, bad) = ("Authorization: Bearer 0123456789abcdef\r\n", "Authorization: Bearer 0123456789abcdeX\r\n");
        let (near, far, target) = (tcp(LOOPBACK), tcp("192.0.2.1:9180"), "/debug/advance?ms=5000");
        check_advance(target, "", near, &off, Err(404));
        check_advance(target, "", Door::Unix, &off, Err(404));
        check_advance(target, "", near, &on, Ok(5000));
        check_advance(target, "Origin: http://evil.test\r\n", near, &on, Err(403));
        check_advance(target, "", Door::Unix, &on, Ok(5000));
        check_advance(target, "", far, &on, Err(403));
        check_advance(target, bad, far, &on, Err(403));
        check_advance(target, good, far, &on, Ok(5000));
        check_advance("/debug/advance?ms=x", "", near, &on, Err(400));
        check_advance("/debug/advance?ms=99999999999999", "", near, &on, Err(400));
        check_advance("/debug/advance", "", near, &on, Err(400));
    }

    #[test]
    fn an_answer_is_framed_and_a_head_has_no_body() {
        let page = |page, head_only| Answer::Page { page, head_only }.bytes(sample, |_| ());
        let (full, head) = (page(Page::Status, false), page(Page::Status, true));
        let text = String::from_utf8(full).unwrap();
        let (fields, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(fields.starts_with("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"), "{fields}");
        assert!(fields.contains(&format!("\r\nContent-Length: {}\r\n", body.len())));
        assert_eq!(String::from_utf8(head).unwrap(), format!("{fields}\r\n\r\n"));
        assert!(page(Page::Dashboard(dashboard_files::at(b"/").unwrap()), false).ends_with(b"</html>\n"));
    }
}
