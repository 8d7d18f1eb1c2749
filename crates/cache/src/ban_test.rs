//! What a ban is to the cache: something that says of a stored response whether it goes. The language in which bans are
//! written is not known here, nor what of a request or a response they look at.

use std::borrow::Cow;

use message::{Request, Response};
use rules::{Facts, Lifetimes};

use crate::moment::Now;
use crate::purge_kind::Purge;

/// A ban as its issuer made it.
pub trait BanTest: Send + Sync {
    /// As it was written: for whoever asks what bans there are, and to see that two are one.
    fn text(&self) -> &str;

    /// Can it be judged only beside a request? Such a ban is tested when somebody asks for the object, once for each
    /// object, and never in the background.
    fn needs_request(&self) -> bool;

    /// False when the same text says something else the later it is issued (`obj.ttl > 5h`): then two of them are two.
    fn is_timeless(&self) -> bool {
        true
    }

    /// What becomes of what it hits: it goes, or its life is shortened as a soft purge does, from when the ban was issued.
    fn purges(&self) -> Purge {
        Purge::Hard
    }

    /// Bytes that it keeps beside its text.
    fn heap_bytes(&self) -> usize {
        0
    }

    /// Does the object go? `subject.request` is there when [`needs_request`](BanTest::needs_request) says so.
    fn bans(&self, subject: &BanSubject<'_>) -> bool;
}

/// What a ban may look at: a stored response, or one that is about to be.
#[derive(Clone, Copy, Debug)]
pub struct BanSubject<'a> {
    /// As it is stored.
    pub head: Response<'a>,
    pub facts: Facts,
    pub keep_ms: u64,
    /// When its head was received.
    pub received: Now,
    /// When it was last asked for, on the clock that does not jump; only if a program had that noted.
    pub last_hit_ms: Option<u64>,
    /// The URL that it was fetched for, where that is known.
    pub stored_url: Option<&'a [u8]>,
    /// The request that asks for it.
    pub request: Option<&'a Request<'a>>,
}

impl<'a> BanSubject<'a> {
    /// The URL that it was fetched for. Of what is arriving that is the request's; `None` where nobody knows it.
    pub fn url(&self) -> Option<Cow<'a, [u8]>> {
        self.stored_url.map(Cow::Borrowed).or_else(|| {
            let mut url = Vec::new();
            self.request?.write_url(&mut url);
            Some(Cow::Owned(url))
        })
    }

    /// Age, ttl, grace and keep as they were at a moment, such as that in which the ban was issued.
    pub fn lifetimes(&self, at: Now) -> Lifetimes {
        let resident_ms = at.mono_ms.saturating_sub(self.received.mono_ms);
        Lifetimes::of(&self.facts, self.keep_ms, resident_ms)
    }
}
