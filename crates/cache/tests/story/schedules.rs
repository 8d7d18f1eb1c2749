//! One small site on threads whose schedule shuttle decides: who asks, fetches and follows there, and how acts are run
//! under many schedules. It knows no single race.

use std::future::poll_fn;
use std::sync::Arc;

use bytes::Bytes;
use cache::{
    Answer, BodyPiece, Cache, CacheSettings, Flight, Follower, Groups, LookupOptions, Notifier, Release, StoreAs, Tags,
    Ticket,
};
use message::{ResponseHead, Status};
use shuttle::future::block_on;
use shuttle::sync::atomic::{AtomicU8, AtomicUsize, Ordering::SeqCst};
use shuttle::thread;

use crate::stage::*;

pub const SCHEDULES: usize = 5_000;

/// In one schedule, see Burckhardt et al., "A randomized scheduler with probabilistic guarantees of finding bugs", 2010.
pub const STANDSTILLS_MAX: usize = 3;

/// A post that is delivered at once, on the thread of whoever posts.
pub struct AtOnce;

impl Notifier for AtOnce {
    fn post(&self, core: usize, flight: Arc<Flight>) {
        flight.wake_core(core);
    }
}

/// What all threads of one schedule share.
pub struct Site {
    pub cache: Arc<Cache>,
    /// What the origin has to say; every body byte is its version.
    pub version: AtomicU8,
    pub fetches: AtomicUsize,
}

pub const BODY_BYTES: usize = 3;

impl Site {
    pub fn new(settings: CacheSettings) -> Arc<Site> {
        let (version, fetches) = (AtomicU8::new(1), AtomicUsize::new(0));
        Arc::new(Site { cache: Cache::new(settings, Arc::new(AtOnce)), version, fetches })
    }

    pub fn key(&self) -> cache::Key {
        self.cache.key([&b"/"[..]])
    }

    /// The group that every response belongs to.
    pub fn group(&self) -> cache::Key {
        self.cache.key([&b"group"[..]])
    }

    /// The tag that every response carries.
    pub fn tag(&self) -> cache::Key {
        self.cache.key([&b"tag"[..]])
    }

    pub fn ask(&self, core: usize, always_miss: bool) -> Answer {
        let fields = fields_of(&[]);
        let options = LookupOptions { core, always_miss, ..LookupOptions::default() };
        self.cache.ask(self.key(), &request(&fields), &options, at(1_000))
    }

    /// Fetches as the proxy would: connects (reads the version), describes, appends piece by piece, lands.
    pub fn fetch(&self, ticket: Ticket) -> Option<Arc<cache::Object>> {
        self.fetches.fetch_add(1, SeqCst);
        let version = self.version.load(SeqCst);
        let tags = Tags::new([self.tag()]).expect("one is not too many");
        let store_as = StoreAs { groups: Groups::new([self.group()]), tags, ..storable(MINUTE_MS) };
        let mut draft = ticket.describe(description(Some(store_as)));
        for _ in 0..BODY_BYTES {
            draft.append(Bytes::from(vec![version]));
            block_on(poll_fn(|cx| draft.poll_room(cx)));
        }
        draft.land(None)
    }

    /// Is served, whatever it takes; the body must be whole and of one version.
    pub fn visit(self: &Arc<Site>, core: usize) -> u8 {
        loop {
            let body = match self.ask(core, false) {
                Answer::Fresh(object) => body_of(&object),
                Answer::Miss(ticket) | Answer::HitForMiss(ticket, _) => {
                    let (follower, site) = (ticket.follow(core), self.clone());
                    let fetch = thread::spawn(move || drop(site.fetch(ticket)));
                    let body = follow(follower).expect("its own fetch does not fail");
                    fetch.join().expect("a fetch does not panic");
                    body
                }
                Answer::Busy(follower) => match follow(follower) {
                    Ok(body) => body,
                    Err(_) => continue,
                },
                other => panic!("{other:?}"),
            };
            assert!(body.len() == BODY_BYTES && body.iter().all(|byte| *byte == body[0]), "{body:?}");
            return body[0];
        }
    }

    /// Nothing is left over.
    pub fn close(self: Arc<Site>) {
        self.cache.purge(self.key());
        if !self.cache.bans().is_empty() {
            return;
        }
        let stats = self.cache.stats();
        assert_eq!((stats.memory_bytes, stats.objects, stats.keys), (0, 0, 0));
    }
}

pub fn description(storable: Option<cache::StoreAs>) -> cache::Description {
    let head = Arc::new(ResponseHead::new(Status::OK));
    cache::Description {
        shared_head: head.clone(),
        head,
        length: None,
        storable,
        uncacheable_ms: 10_000,
        supersedes: true,
        is_personal: false,
        why_not: None,
        mark: None,
        esi: None,
        now: at(1_000),
    }
}

/// Follows to the end: the whole body, or why there is none.
pub fn follow(mut follower: Follower) -> Result<Vec<u8>, Release> {
    block_on(poll_fn(|cx| follower.poll_head(cx)))?;
    let mut body = Vec::new();
    loop {
        match block_on(poll_fn(|cx| follower.poll_body(cx))) {
            BodyPiece::Data(pieces) => pieces.iter().for_each(|piece| body.extend_from_slice(piece)),
            BodyPiece::End { .. } => return Ok(body),
            BodyPiece::Truncated(failure) => return Err(Release::Failed(failure)),
            BodyPiece::CutOff => panic!("nobody cuts off here"),
        }
    }
}

pub type Act = Box<dyn FnOnce(Arc<Site>) + Send>;

pub fn act(act: impl FnOnce(Arc<Site>) + Send + 'static) -> Act {
    Box::new(act)
}

/// Runs the acts at once under many schedules; then looks at what is left.
pub fn check(
    settings: CacheSettings,
    acts: impl Fn() -> Vec<Act> + Send + Sync + 'static,
    afterwards: impl Fn(&Arc<Site>) + Send + Sync + 'static,
) {
    check_after(|_| (), SCHEDULES, settings, acts, afterwards);
}

pub fn check_after(
    before: impl Fn(&Site) + Send + Sync + 'static,
    schedules: usize,
    settings: CacheSettings,
    acts: impl Fn() -> Vec<Act> + Send + Sync + 'static,
    afterwards: impl Fn(&Arc<Site>) + Send + Sync + 'static,
) {
    let play = Arc::new(move || {
        let site = Site::new(settings.clone());
        before(&site);
        let spawn = |act: Act| {
            let site = site.clone();
            thread::spawn(move || act(site))
        };
        let threads: Vec<_> = acts().into_iter().map(spawn).collect();
        threads.into_iter().for_each(|thread| thread.join().expect("no act panics"));
        afterwards(&site);
        site.close();
    });
    let again = Arc::clone(&play);
    shuttle::check_random(move || play(), schedules);
    // A thread that stands still at one place while another one does all that it has to do.
    shuttle::check_pct(move || again(), schedules, STANDSTILLS_MAX);
}

pub fn visitor(core: usize) -> Act {
    act(move |site| {
        site.visit(core);
    })
}
