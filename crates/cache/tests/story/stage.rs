//! A cache on a stage: requests, heads and bodies by short names, a clock that is moved by hand, and a notifier
//! that keeps its posts until they are delivered.
#![allow(dead_code, reason = "each test binary uses its part of it")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use bytes::Bytes;
use cache::{
    Answer, BodyPiece, Cache, CacheSettings, Description, Draft, Failure, Flight, Follower, Headed, Key, LookupOptions,
    Notifier, Now, Object, Release, StoreAs, Ticket,
};
use message::{Authority, FieldName, Fields, Method, Request, ResponseHead, Scheme, Status, TargetForm, Version};
use rules::{Facts, Lifetimes, Vary, VarySpec};

pub const MINUTE_MS: u64 = 60_000;

/// Posts that were sent and not delivered yet.
#[derive(Default)]
pub struct Post(std::sync::Mutex<Vec<(usize, Arc<Flight>)>>);

impl Notifier for Post {
    fn post(&self, core: usize, flight: Arc<Flight>) {
        self.0.lock().unwrap().push((core, flight));
    }
}

pub struct Stage {
    pub cache: Arc<Cache>,
    pub post: Arc<Post>,
    pub now: Now,
}

impl Stage {
    pub fn new() -> Stage {
        Stage::with(CacheSettings::default())
    }

    pub fn with(settings: CacheSettings) -> Stage {
        let post = Arc::new(Post::default());
        Stage { cache: Cache::new(settings, post.clone()), post, now: at(1_000_000) }
    }

    pub fn key(&self, path: &str) -> Key {
        self.cache.key([&b"http"[..], b"t.test", path.as_bytes()])
    }

    pub fn advance_ms(&mut self, ms: u64) {
        self.now = at(self.now.mono_ms + ms);
    }

    pub fn ask_with(&self, path: &str, fields: &[(&str, &str)], options: &LookupOptions) -> Answer {
        let fields = fields_of(fields);
        self.cache.ask(self.key(path), &request(&fields), options, self.now)
    }

    pub fn ask(&self, path: &str) -> Answer {
        self.ask_with(path, &[], &LookupOptions::default())
    }

    /// Two fetches fail before a head: others are told of it.
    pub fn fails(&self, path: &str, with: &Failure) {
        (0..2).for_each(|_| self.miss(path).fail(with.clone(), self.now));
    }

    pub fn miss(&self, path: &str) -> Ticket {
        ticket(self.ask(path))
    }

    pub fn busy(&self, path: &str) -> Follower {
        follower(self.ask(path))
    }

    pub fn fresh(&self, path: &str) -> Arc<Object> {
        fresh(self.ask(path))
    }

    /// Fetches and lands a body.
    pub fn store(&self, path: &str, body: &[u8]) -> Arc<Object> {
        self.fill(self.miss(path), storable(MINUTE_MS), body).expect("it is stored")
    }

    pub fn fill(&self, ticket: Ticket, store_as: StoreAs, body: &[u8]) -> Option<Arc<Object>> {
        let mut draft = self.describe(ticket, Some(store_as), Some(body.len() as u64));
        draft.append(Bytes::copy_from_slice(body));
        draft.land(None)
    }

    pub fn describe(&self, ticket: Ticket, storable: Option<StoreAs>, length: Option<u64>) -> Draft {
        ticket.describe(self.description(storable, length))
    }

    pub fn description(&self, storable: Option<StoreAs>, length: Option<u64>) -> Description {
        let mut head = ResponseHead::new(Status::OK);
        head.fields.push(FieldName::Etag, "\"1\"");
        let shared_head = Arc::new(head.clone());
        head.fields.push(FieldName::SetCookie, "leader=1");
        Description {
            head: Arc::new(head),
            shared_head,
            length,
            storable,
            uncacheable_ms: 10_000,
            is_personal: false,
            why_not: None,
            supersedes: true,
            mark: None,
            esi: None,
            now: self.now,
        }
    }

    /// Cores with undelivered posts, in order.
    pub fn posted_cores(&self) -> Vec<usize> {
        self.post.0.lock().unwrap().iter().map(|(core, _)| *core).collect()
    }

    /// Every core looks into its mailbox.
    pub fn deliver(&self) {
        let posts = std::mem::take(&mut *self.post.0.lock().unwrap());
        posts.into_iter().for_each(|(core, flight)| flight.wake_core(core));
    }
}

pub fn at(mono_ms: u64) -> Now {
    Now { wall_ms: 1_700_000_000_000 + mono_ms, mono_ms, confirmed_from: 0 }
}

pub fn on_core(core: usize) -> LookupOptions {
    LookupOptions { core, ..LookupOptions::default() }
}

pub fn fields_of(lines: &[(&str, &str)]) -> Fields {
    let mut fields = Fields::default();
    lines.iter().for_each(|(name, value)| fields.push_named(name.as_bytes(), value.as_bytes()));
    fields
}

pub fn request(fields: &Fields) -> Request<'_> {
    Request {
        method: Method::Get,
        method_text: b"GET",
        version: Version::Http11,
        form: TargetForm::Origin,
        scheme: Scheme::Http,
        authority: Authority::EMPTY,
        path: b"/",
        query: None,
        fields: fields.view(),
    }
}

pub fn facts(lifetime_ms: u64) -> Facts {
    Facts { lifetime_ms, says_shared: true, ..Facts::default() }
}

pub fn storable(lifetime_ms: u64) -> StoreAs {
    let rendered = Bytes::from_static(b"HTTP/1.1 200 OK\r\nETag: \"1\"\r\n");
    let facts = facts(lifetime_ms);
    let (vary, partial, whole) = (None, None, None);
    let (sliced, elsewhere, groups, tags) = (None, None, None, None);
    StoreAs { facts, lifetimes: None, vary, rendered, partial, whole, sliced, elsewhere, groups, tags }
}

/// As a policy that has just seen it says.
pub fn living(ttl_ms: i64, grace_ms: u64, keep_ms: u64) -> StoreAs {
    let lifetimes = Some(Lifetimes { age_ms: 0, ttl_ms, grace_ms, keep_ms });
    StoreAs { lifetimes, ..storable(0) }
}

pub fn varying(names: &str) -> StoreAs {
    StoreAs { vary: Some(spec(names)), ..storable(MINUTE_MS) }
}

pub fn spec(names: &str) -> VarySpec {
    match Vary::of(fields_of(&[("Vary", names)]).view()) {
        Vary::Fields(spec) => spec,
        other => panic!("{names:?} is {other:?}"),
    }
}

pub fn failure(remember_ms: u64) -> Failure {
    Failure { status: 504, token: "origin-timeout", text: "origin a: no head in 60 s".into(), remember_ms }
}

pub fn ticket(answer: Answer) -> Ticket {
    match answer {
        Answer::Miss(ticket) => ticket,
        other => panic!("not a miss: {other:?}"),
    }
}

pub fn follower(answer: Answer) -> Follower {
    match answer {
        Answer::Busy(follower) => follower,
        other => panic!("not busy: {other:?}"),
    }
}

pub fn fresh(answer: Answer) -> Arc<Object> {
    match answer {
        Answer::Fresh(object) => object,
        other => panic!("not fresh: {other:?}"),
    }
}

/// The name of an answer, for tables.
pub fn kind(answer: &Answer) -> &'static str {
    match answer {
        Answer::Fresh(_) => "fresh",
        Answer::Stale(_, Some(_)) => "stale and refresh",
        Answer::Stale(_, None) => "stale",
        Answer::Miss(_) => "miss",
        Answer::Busy(_) => "busy",
        Answer::HitForMiss(..) => "hit for miss",
        Answer::HitForPass(_) => "hit for pass",
        Answer::Uncacheable => "uncacheable",
        Answer::RecentFailure(_) => "recent failure",
    }
}

pub fn body_of(object: &Arc<Object>) -> Vec<u8> {
    object.body().pieces(0, u64::MAX).collect::<Vec<_>>().concat()
}

pub fn now_or_never<T>(poll: impl FnOnce(&mut Context<'_>) -> Poll<T>) -> Option<T> {
    match poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

/// The head, or the release, if there is one now.
pub fn head_of(follower: &mut Follower) -> Option<Result<Headed, Release>> {
    now_or_never(|cx| follower.poll_head(cx))
}

/// Reads as far as it goes: the bytes, and how it ended (`None`: it goes on).
pub fn read_body(follower: &mut Follower) -> (Vec<u8>, Option<BodyPiece>) {
    let mut body = Vec::new();
    loop {
        match now_or_never(|cx| follower.poll_body(cx)) {
            None => return (body, None),
            Some(BodyPiece::Data(pieces)) => pieces.iter().for_each(|piece| body.extend_from_slice(piece)),
            Some(end) => return (body, Some(end)),
        }
    }
}

/// Reads to an end that must be whole.
pub fn whole_body(follower: &mut Follower) -> Vec<u8> {
    match read_body(follower) {
        (body, Some(BodyPiece::End { .. })) => body,
        (body, end) => panic!("after {} bytes: {end:?}", body.len()),
    }
}

/// Counts how often it is woken.
#[derive(Default)]
pub struct Bell(AtomicUsize);

impl Bell {
    pub fn new() -> Arc<Bell> {
        Arc::default()
    }

    pub fn rings(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Bell>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Polls with a bell.
pub fn poll_with<T>(bell: &Arc<Bell>, poll: impl FnOnce(&mut Context<'_>) -> Poll<T>) -> Poll<T> {
    poll(&mut Context::from_waker(&Waker::from(Arc::clone(bell))))
}
