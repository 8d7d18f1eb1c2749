//! The answers that we make ourselves, errors above all. Each says what failed, where, and which setting changes it.
//! `synthesis` is the step that sends them.

use std::sync::Arc;

use cache::Failure;
use message::{Method, Request};
use vcl::Fault;
use wire::Refusal;

use crate::access_log::CacheVerdict;
use crate::client_identity::ClientIdentity;
use crate::error_note::{ErrorNote, RequestId};
use crate::fleet::node_proof::NodeWord;
use crate::forward::destinations::WhyDenied;
use crate::limits::MEMCACHED_RETRY_AFTER_SECONDS;
use crate::reason::Reason;

/// An answer of ours.
#[derive(Clone, Debug)]
pub(crate) struct Synth {
    pub(crate) status: u16,
    /// A stable word for the log.
    pub(crate) token: &'static str,
    /// Never holds bytes of a request, but for the escaped name of a link that is there.
    pub(super) text: Text,
    pub(crate) verdict: CacheVerdict,
    /// Where the client's message cannot be trusted any further.
    pub(crate) close: bool,
    pub(super) also: Also,
    /// Caches may keep it for others, as they keep such a status (RFC 9110 §15.1).
    pub(super) may_be_stored: bool,
    /// What a program calls it.
    pub(crate) reason: Option<Box<[u8]>>,
}

/// The field that only this kind of answer has: one at most, so that a step stays small.
#[derive(Clone, Debug)]
pub(super) enum Also {
    Nothing,
    Allow(&'static str),
    Location(Box<[u8]>),
    /// When it may be worth while to ask again, in seconds.
    RetryAfter(u32),
    /// A proxy asks for name and password.
    Challenge,
    /// The same of a route, for its realm.
    Login(Arc<str>),
    /// No part of so many bytes is what was asked for.
    Unsatisfied(u64),
}

/// What is said.
#[derive(Clone, Debug)]
pub(super) enum Text {
    /// What failed, where, and which setting changes it: a sentence for operators.
    Detail(Arc<str>),
    /// A sentence for whoever gets the answer.
    Sentence(Arc<str>),
    /// These bytes and no others, for a program that compares them.
    Exact(Arc<str>),
    /// The same, of this Content-Type.
    Page { kind: Arc<str>, text: Arc<str> },
    /// The numbers of the moment at which it is sent.
    StubStatus,
}

/// What a client that is asked for name and password has come with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HasShown {
    Nothing,
    Wrong,
}

impl HasShown {
    /// Of who is not let in by this.
    pub(crate) fn by(credentials: Option<&[u8]>) -> HasShown {
        if credentials.is_some() { HasShown::Wrong } else { HasShown::Nothing }
    }
}

impl Synth {
    fn new(status: u16, token: &'static str, verdict: CacheVerdict, text: impl Into<Arc<str>>) -> Synth {
        let text = Text::Detail(text.into());
        Synth { status, token, text, verdict, close: false, also: Also::Nothing, may_be_stored: false, reason: None }
    }

    /// The same, said to everybody.
    fn open(status: u16, token: &'static str, verdict: CacheVerdict, text: impl Into<Arc<str>>) -> Synth {
        Synth { text: Text::Sentence(text.into()), ..Synth::new(status, token, verdict, "") }
    }

    /// May a program answer in its place? What is no request to be answered in the operator's way is refused in ours, and of a request that comes
    /// in a circle one that asked once more would make hundreds.
    pub(crate) fn is_left_to_programs(&self) -> bool {
        !self.close && self.token != LOOP_DETECTED
    }

    /// A number, where there is more to know than a stranger is told, and what the log is to hold under it.
    pub(crate) fn note(&self) -> Option<ErrorNote> {
        let Text::Detail(detail) = &self.text else { return None };
        if detail.is_empty() {
            return None;
        }
        let id = RequestId::next();
        let is_failure =
            matches!(self.verdict, CacheVerdict::Error | CacheVerdict::Refused) || self.token == FILE_OUTSIDE;
        Some(ErrorNote { id, detail: is_failure.then(|| Arc::clone(detail)) })
    }

    /// What it says to operators, or to everybody; empty where it is a page of its own.
    pub(crate) fn sentence(&self) -> &str {
        match &self.text {
            Text::Detail(text) | Text::Sentence(text) => text,
            Text::Exact(_) | Text::Page { .. } | Text::StubStatus => "",
        }
    }

    /// What a program asked for by `synth(…)`.
    pub(crate) fn asked(status: u16, reason: Option<Box<[u8]>>) -> Synth {
        Synth { reason, ..Synth::new(status, "policy", CacheVerdict::Synth, "") }
    }

    /// Who says to be another node of the fleet, and does not prove it.
    pub(crate) fn no_node() -> Synth {
        let text = "Whoever asks as a node of the fleet has to prove that it is one: by the same secret, and by a clock \
                    that shows the same time (fleet.secret_file).";
        Synth::new(403, "node-unproven", CacheVerdict::Refused, text)
    }

    /// One that asks what is not answered here: its configuration is another one.
    pub(crate) fn node_unable() -> Synth {
        let text = "This node answers no other one here: its routes are others, or a VCL decides.";
        Synth::new(503, "node-unable", CacheVerdict::Refused, text)
    }

    /// One that knows of purges that are not in force here.
    pub(crate) fn node_behind() -> Synth {
        let text = "This node is behind the one that asks in the fleet's log of invalidations.";
        Synth::new(503, NODE_BEHIND, CacheVerdict::Refused, text)
    }

    /// One that may be asked for this very thing.
    pub(crate) fn node_crossed() -> Synth {
        let text = "This node asks another one for the same: their lists differ (fleet.peers).";
        Synth::new(503, NODE_CROSSED, CacheVerdict::Refused, text)
    }

    /// What another node is told of it.
    pub(super) fn word(&self) -> NodeWord {
        match (self.token, self.status) {
            (NODE_BEHIND, _) => NodeWord::Behind,
            (NODE_CROSSED, _) => NodeWord::Crossed,
            (_, 502 | 504) => NodeWord::Failed,
            _ => NodeWord::Unable,
        }
    }

    /// A fetch that brought nothing, for a program to answer.
    pub(crate) fn unfetched(token: &'static str) -> Synth {
        Synth::new(503, token, CacheVerdict::Error, "")
    }

    pub(crate) fn vcl_failed() -> Synth {
        let failed = Synth::new(503, VCL_FAILED, CacheVerdict::Error, "");
        Synth { reason: Some(b"VCL failed"[..].into()), ..failed }
    }

    /// The body cannot go through the filters that the program names.
    pub(crate) fn unfilterable(why: String) -> Synth {
        Synth::new(503, "filter-unknown", CacheVerdict::Error, why)
    }

    /// Of vcl_deliver, as Varnish answers: 500 where there was no room for what it made.
    pub(crate) fn deliver_failed(fault: &Fault) -> Synth {
        if fault.is_of_room() {
            return Synth::new(500, VCL_FAILED, CacheVerdict::Error, "");
        }
        Synth::vcl_failed()
    }

    pub(crate) fn restarts_too_many() -> Synth {
        Synth::new(503, "restarts-too-many", CacheVerdict::Error, "")
    }

    pub(crate) fn no_label() -> Synth {
        Synth::new(503, "no-such-label", CacheVerdict::Error, "")
    }

    /// A request that was not accepted.
    pub(crate) fn refused(refusal: &Refusal) -> Synth {
        let reason = refusal.token.replace('-', " ");
        let text = match refusal.limit {
            Some(limit) => format!("The request was refused: {reason} (the setting is {limit})."),
            None => format!("The request was refused: {reason}."),
        };
        Synth { close: true, ..Synth::new(refusal.status, refusal.token, CacheVerdict::Refused, text) }
    }

    /// An origin that failed, or to which nobody is led.
    pub(crate) fn failed(failure: &Failure) -> Synth {
        let verdict = if failure.status < 500 { CacheVerdict::Refused } else { CacheVerdict::Error };
        Synth::new(failure.status, failure.token, verdict, Arc::clone(&failure.text))
    }

    /// The same for all who wait.
    pub(crate) fn as_failure(&self) -> Failure {
        let text = match &self.text {
            Text::Detail(text) | Text::Sentence(text) | Text::Exact(text) | Text::Page { text, .. } => Arc::clone(text),
            Text::StubStatus => "".into(),
        };
        Failure { status: self.status, token: self.token, text, remember_ms: 0 }
    }

    /// A forward proxy has its own clients.
    pub(crate) fn client_refused(client: &ClientIdentity) -> Synth {
        let text = not_among("This client may not use this proxy (forward.allow_clients).", client);
        Synth { close: true, ..Synth::new(403, "forward-client-refused", CacheVerdict::Refused, text) }
    }

    pub(crate) fn wants_absolute_form() -> Synth {
        let text = "This is a forward proxy: it is asked for a whole URL, such as http://example.org/, or by CONNECT. \
                    What is no proxy listens elsewhere (mode of [[listen]]).";
        Synth { close: true, ..Synth::new(400, "forward-wants-absolute-form", CacheVerdict::Refused, text) }
    }

    pub(crate) fn destination_refused(why: WhyDenied) -> Synth {
        Synth::new(403, why.token(), CacheVerdict::Refused, why.text())
    }

    /// RFC 9110 §15.5.8.
    pub(crate) fn wants_credentials(has_shown: HasShown) -> Synth {
        let text = match has_shown {
            HasShown::Nothing => "This proxy is for its users: name and password are needed (forward.password_file).",
            HasShown::Wrong => {
                "This proxy is for its users: name and password are needed, and these are not right \
                 (forward.password_file)."
            }
        };
        let synth = Synth::new(407, "forward-credentials", CacheVerdict::Refused, text);
        Synth { also: Also::Challenge, ..synth }
    }

    pub(crate) fn verifier_busy() -> Synth {
        let text = "Too many passwords are being verified.";
        Synth { close: true, ..Synth::new(503, "forward-credentials-busy", CacheVerdict::Error, text) }
    }

    /// The next proxy makes no tunnel.
    pub(crate) fn refused_by_parent(status: u16) -> Synth {
        let setting = if status == 407 { "forward.parent.login_file" } else { "forward.parent" };
        let text = format!("The next proxy ({setting}) refuses this tunnel with {status}.");
        let ours = if status == 403 { 403 } else { 502 };
        Synth { close: true, ..Synth::new(ours, "forward-parent-refused", CacheVerdict::Refused, text) }
    }

    pub(crate) fn requests_too_many() -> Synth {
        let text = "This client asks too much at once (forward.client_requests_per_second_max).";
        Synth::new(429, "forward-requests-too-many", CacheVerdict::Refused, text)
    }

    /// The process is at its memory limit, and the store has nothing more to give.
    pub(crate) fn memory_short() -> Synth {
        let text = "There is no memory for another fetch at the moment (memory.size).";
        Synth { close: true, ..Synth::new(503, MEMORY_SHORT, CacheVerdict::Error, text) }
    }

    pub(crate) fn tunnels_too_many() -> Synth {
        let text = "All tunnels are in use (limits.tunnels_max).";
        Synth { close: true, ..Synth::new(503, "tunnels-too-many", CacheVerdict::Error, text) }
    }

    /// Nothing behind this can be read as a request.
    pub(crate) fn closing(self) -> Synth {
        Synth { close: true, ..self }
    }

    /// What the built-in policy answers by itself.
    pub(crate) fn of_policy(status: u16) -> Synth {
        match status {
            200 => Synth { also: Also::Allow(ALLOW), ..Synth::new(200, "options", CacheVerdict::Synth, "") },
            405 => Synth {
                also: Also::Allow(ALLOW),
                close: true,
                ..Synth::new(405, "method-not-allowed", CacheVerdict::Refused, "The method is not offered here.")
            },
            other => Synth::new(other, "policy", CacheVerdict::Synth, ""),
        }
    }

    pub(crate) fn purge_forbidden(client: &ClientIdentity) -> Synth {
        let text = not_among("This client may not purge (policy.purge_from).", client);
        Synth::new(403, "purge-forbidden", CacheVerdict::Refused, text)
    }

    pub(crate) fn loop_detected(pseudonym: &str) -> Synth {
        let text = format!("The request has been here before: Via names {pseudonym}. An origin points back at us.");
        Synth::new(508, LOOP_DETECTED, CacheVerdict::Refused, text)
    }

    pub(crate) fn body_too_large() -> Synth {
        let text = "The request's body is larger than limits.request_body_bytes_max.";
        Synth { close: true, ..Synth::new(413, "request-body-too-large", CacheVerdict::Refused, text) }
    }

    /// Its length was not said beforehand, so part of it has been read already.
    pub(crate) fn body_not_kept(bytes_max: u64) -> Synth {
        let text =
            format!("The request's body is longer than the {bytes_max} B that the VCL keeps (std.cache_req_body).");
        Synth { close: true, ..Synth::new(413, "request-body-not-kept", CacheVerdict::Refused, text) }
    }

    /// To the same at https://, for good. What is not only read must not become a GET on the way (RFC 9110 §15.4.9).
    pub(crate) fn to_https(request: &Request<'_>, https_port: u16) -> Synth {
        if request.authority.host.is_empty() {
            let text = "This address leads to https:// and to the host that a request names; this one names none.";
            return Synth { close: true, ..Synth::new(400, "redirect-without-host", CacheVerdict::Refused, text) };
        }
        let mut location = [b"https://", &request.authority.host[..]].concat();
        if https_port != HTTPS_PORT {
            location.extend_from_slice(format!(":{https_port}").as_bytes());
        }
        match request.path.starts_with(b"/") {
            true => request.write_target(&mut location),
            false => location.push(b'/'),
        }
        let is_read = matches!(request.method, Method::Get | Method::Head);
        let synth = Synth::open(if is_read { 301 } else { 308 }, "to-https", CacheVerdict::Synth, "It is at https://.");
        // No program answers for what is no listener of its own.
        Synth { also: Also::Location(location.into()), close: true, ..synth }.for_all()
    }

    /// RFC 9110 §15.5.20.
    pub(crate) fn misdirected() -> Synth {
        let text = "This host has a certificate of its own. Ask for it on a connection that begins with its name.";
        Synth { close: true, ..Synth::open(421, "misdirected", CacheVerdict::Refused, text) }
    }

    pub(crate) fn no_route() -> Synth {
        Synth::new(404, "no-route", CacheVerdict::Synth, "No [[route]] matches this host and path.")
    }

    pub(crate) fn path_malformed() -> Synth {
        Synth::file(400, "path-malformed", "The path cannot be decoded, or leads out of the root.")
    }

    /// The same, of what is not looked for at all.
    pub(crate) fn refused_outright(self) -> Synth {
        Synth { verdict: CacheVerdict::Refused, ..self }
    }

    /// A path that means another one, of a route whose guards the one that would answer has not.
    pub(crate) fn other_spelling() -> Synth {
        let text = "This spelling of the path belongs to another [[route]] than the path that it means, whose basic_auth or auth_request that \
                    one does not ask for.";
        Synth::new(403, Synth::OTHER_SPELLING, CacheVerdict::Refused, text)
    }

    pub(crate) const OTHER_SPELLING: &str = "spelling-of-guarded";

    /// A path that the operator opens to nobody.
    pub(crate) fn closed() -> Synth {
        let text = "Nobody is answered for this path (closed or closed_paths of its [[route]]).";
        Synth::new(403, "route-closed", CacheVerdict::Refused, text)
    }

    /// What a route answers by itself.
    pub(crate) fn of_route(status: u16, verdict: CacheVerdict, (kind, text): (Arc<str>, String)) -> Synth {
        Synth { text: Text::Page { kind, text: text.into() }, ..Synth::new(status, "route-answer", verdict, "") }
    }

    pub(crate) fn with_location(self, location: Vec<u8>) -> Synth {
        Synth { also: Also::Location(location.into()), ..self }
    }

    /// Whoever asks for this URL gets the same. What leads elsewhere for good is kept by browsers and caches, as nginx lets it be; what leads
    /// there for a while is not: RFC 9110 has nobody keep it, and some do.
    pub(crate) fn for_all(self) -> Synth {
        Synth { may_be_stored: matches!(self.status, 301 | 308), ..self }
    }

    pub(crate) fn with_retry_after(self, seconds: u32) -> Synth {
        Synth { also: Also::RetryAfter(seconds), ..self }
    }

    /// To a browser that asks whether a script may ask; the answer is in the fields of the route.
    pub(crate) fn preflight() -> Synth {
        Synth::new(204, "preflight", CacheVerdict::Synth, "")
    }

    pub(crate) fn not_allowed(client: &ClientIdentity) -> Synth {
        let text = not_among("This client is not answered here (allow or deny of its [[route]]).", client);
        Synth::new(403, "client-not-allowed", CacheVerdict::Refused, text)
    }

    pub(crate) fn too_often(status: u16, wait_s: u32) -> Synth {
        let text = "Too many requests in a while (rate_limit of the [[route]]).";
        Synth::new(status, "rate-limited", CacheVerdict::Refused, text).with_retry_after(wait_s)
    }

    pub(crate) fn too_many_at_once(status: u16) -> Synth {
        let text = "Too many requests are under way at once (connection_limit of the [[route]]).";
        Synth::new(status, "connections-limited", CacheVerdict::Refused, text)
    }

    pub(crate) fn body_too_large_for_route() -> Synth {
        let text = "The request's body is larger than request_body_max of its [[route]].";
        Synth { close: true, ..Synth::new(413, "request-body-too-large", CacheVerdict::Refused, text) }
    }

    /// RFC 9110 §15.5.12.
    pub(crate) fn body_length_wanted() -> Synth {
        let text = "The request has to say how long its body is, for its [[route]] has request_body_max.";
        Synth { close: true, ..Synth::open(411, "request-body-length-wanted", CacheVerdict::Refused, text) }
    }

    /// RFC 9110 §15.5.2.
    pub(crate) fn wants_login(realm: &str, has_shown: HasShown) -> Synth {
        let text = match has_shown {
            HasShown::Nothing => "Name and password are needed.",
            HasShown::Wrong => "Name and password are needed, and these are not right.",
        };
        Synth { also: Also::Login(realm.into()), ..Synth::open(401, "wants-login", CacheVerdict::Refused, text) }
    }

    /// Nobody says whether a client may come in.
    pub(crate) fn auth_failed(why: &str) -> Synth {
        let text =
            format!("The service that says who may come in has not said it: {why} (auth_request of the [[route]]).");
        Synth::new(502, "auth-request-failed", CacheVerdict::Error, text)
    }

    /// The service says that it may not.
    pub(crate) fn not_admitted() -> Synth {
        Synth::new(
            403,
            Synth::NOT_ADMITTED,
            CacheVerdict::Refused,
            "The service that says who may come in refuses this client.",
        )
    }

    /// The service wants to know who it is, and here is where that becomes known.
    pub(crate) fn to_login(location: Vec<u8>) -> Synth {
        let text = "This is for who has logged in.";
        Synth::open(302, Synth::NOT_ADMITTED, CacheVerdict::Refused, text).with_location(location)
    }

    pub(crate) const NOT_ADMITTED: &str = "auth-request-refused";

    pub(crate) fn only_if_cached() -> Synth {
        let text = "Nothing is stored for this request, and only-if-cached forbids asking the origin.";
        Synth::open(504, Reason::OnlyIfCached.token(), CacheVerdict::Synth, text)
    }

    pub(crate) fn purged(objects_count: usize) -> Synth {
        Synth::open(200, "purged", CacheVerdict::Purge, format!("Purged. Stored responses dropped: {objects_count}."))
    }

    pub(crate) fn purged_groups(groups_count: usize) -> Synth {
        let text = format!("Purged. Cache groups invalidated on this host: {groups_count}.");
        Synth::open(200, "purged", CacheVerdict::Purge, text)
    }

    /// It is in force, and no more.
    pub(crate) fn purge_unsettled() -> Synth {
        let text = "Purged, but a crash may undo it: a disk does not remember it. The log says which and why.";
        Synth::open(500, "purge-unsettled", CacheVerdict::Purge, text)
    }

    /// It is in force here; `why` the rest of the fleet has not acknowledged it.
    pub(crate) fn purge_unacknowledged(why: &str) -> Synth {
        let text = format!("Purged on this node, and not acknowledged as [fleet] acknowledge says: {why}.");
        Synth::open(503, "purge-unacknowledged", CacheVerdict::Purge, text)
    }

    /// Which groups a purge means cannot be read.
    pub(crate) fn purge_unreadable() -> Synth {
        let text = "Cache-Group-Invalidation must be a list of strings, such as \"scripts\", \"styles\".";
        Synth::open(400, "purge-groups-unreadable", CacheVerdict::Refused, text)
    }

    /// Why no file is shown.
    pub(crate) fn file(status: u16, token: &'static str, text: &'static str) -> Synth {
        Synth::new(status, token, CacheVerdict::File, text)
    }

    /// A link leads out of a root: which, is for the log to say.
    pub(crate) fn file_outside(text: String) -> Synth {
        Synth::new(403, FILE_OUTSIDE, CacheVerdict::File, text)
    }

    /// No part of this length is what was asked for.
    pub(crate) fn unsatisfied(length: u64) -> Synth {
        let text = "The file has no such part.";
        Synth { also: Also::Unsatisfied(length), ..Synth::file(416, "range-unsatisfiable", text) }
    }

    /// Why none can be.
    pub(crate) fn file_error(status: u16, token: &'static str, text: &'static str) -> Synth {
        Synth::new(status, token, CacheVerdict::Error, text)
    }

    /// A file is asked for by another method than GET and HEAD.
    pub(crate) fn only_reading() -> Synth {
        let text = "Files are only read here.";
        Synth { also: Also::Allow("GET, HEAD"), ..Synth::new(405, "method-not-allowed", CacheVerdict::Refused, text) }
    }

    /// What an authority asked for (RFC 8555 §8.3). That the connection ends keeps a program from making its own answer of it.
    pub(crate) fn challenge_answered(text: Arc<str>) -> Synth {
        Synth { text: Text::Exact(text), close: true, ..Synth::new(200, "acme-challenge", CacheVerdict::Synth, "") }
    }

    pub(crate) fn stub_status() -> Synth {
        Synth { text: Text::StubStatus, ..Synth::new(200, "stub-status", CacheVerdict::Synth, "") }
    }

    pub(crate) fn status_forbidden(client: &ClientIdentity) -> Synth {
        let text = not_among("This client may not see the server's numbers (allow_from of this [[route]]).", client);
        Synth::new(403, "status-forbidden", CacheVerdict::Refused, text)
    }

    /// What memcached has not, or will not do.
    pub(crate) fn memcached(status: u16, token: &'static str, text: &'static str) -> Synth {
        Synth::new(status, token, CacheVerdict::Memcached, text)
    }

    /// What is no command, or none that is offered.
    pub(crate) fn memcached_refused(status: u16, token: &'static str, text: &'static str) -> Synth {
        Synth::new(status, token, CacheVerdict::Refused, text)
    }

    /// Nobody who replies, or who replies well.
    pub(crate) fn memcached_error(status: u16, token: &'static str, text: impl Into<Arc<str>>) -> Synth {
        Synth::new(status, token, CacheVerdict::Error, text)
    }

    pub(crate) fn memcached_value_too_large(bytes_max: usize) -> Synth {
        let text = format!("The value is larger than {bytes_max} B (value_bytes_max of the [[route]]).");
        Synth { close: true, ..Synth::new(413, "value-too-large", CacheVerdict::Refused, text) }
    }

    /// Those that are on their way take all the room that they may. `close`: part of one has been read already.
    pub(crate) fn memcached_values_too_many(close: bool) -> Synth {
        let text = "Values on their way to and from memcached take all the room that they may \
                    (limits.memcached_values_bytes_max).";
        let synth = Synth::new(503, "memcached-values-too-many", CacheVerdict::Error, text);
        Synth { close, also: Also::RetryAfter(MEMCACHED_RETRY_AFTER_SECONDS), ..synth }
    }

    /// A method that stands for no command.
    pub(crate) fn memcached_method() -> Synth {
        let text = "This method is no command of memcached's.";
        let also = Also::Allow("GET, HEAD, POST, PUT, DELETE");
        Synth { also, ..Synth::new(405, "method-not-allowed", CacheVerdict::Refused, text) }
    }

    /// To a path of this same host, which begins with one slash, and with the query that came.
    pub(crate) fn moved(path: Vec<u8>, query: Option<&[u8]>) -> Synth {
        let mut location = path;
        if let Some(query) = query {
            location.push(b'?');
            location.extend_from_slice(query);
        }
        let text = "This is a directory: its path ends in a slash.";
        Synth { also: Also::Location(location.into()), ..Synth::file(301, "directory", text) }
    }
}

/// Why a list does not have a client; and if something hides who that is, which setting would show it.
fn not_among(why: &str, client: &ClientIdentity) -> String {
    match client.is_hidden() {
        true => format!(
            "{why} It came through a proxy that does not say for whom it asks, or is not believed (trusted_proxies)."
        ),
        false => why.to_owned(),
    }
}

pub(crate) const VCL_FAILED: &str = "vcl-failed";
const NODE_BEHIND: &str = "node-behind";
const NODE_CROSSED: &str = "node-crossed";
const LOOP_DETECTED: &str = "loop-detected";
const FILE_OUTSIDE: &str = "file-outside";
pub(crate) const MEMORY_SHORT: &str = "memory-short";

/// What a reverse proxy lets through, CONNECT and TRACE aside.
const HTTPS_PORT: u16 = 443;
const ALLOW: &str = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";
