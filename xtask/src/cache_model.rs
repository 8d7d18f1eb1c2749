//! The model of `cargo xtask cache-random`: what the origin has said so far, and whether an answer that a client got may
//! have been made of it by RFC 9111 and docs/what-is-cached.md. It shares no code with what it judges.
//!
//! Every response has a number, in a field and, with content, in its body: the body says whose bytes an answer has, the
//! field by which response it was last confirmed. Their order is that of one sequence, in which requests begin too.

use crate::dice::Dice;

/// Between two clocks, and for what is rounded to seconds.
const SLACK_MS: u64 = 1_200;
/// From a head that is written to its place in the cache. Less than the longest pause before the rest of a body.
pub const HEAD_SLACK_MS: u64 = 60;
/// How long a failure is remembered, and a client may get it without a request.
const REMEMBERED_MS: u64 = 1_000;

/// What a request says of who asks, and of what it takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    pub token: u64,
    pub path: usize,
    pub cookie: u64,
    pub authorization: u64,
    pub kind: u64,
    pub no_cache: bool,
}

/// What a response says of its reuse.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reuse {
    pub text: &'static str,
    pub lifetime_s: Option<u64>,
    pub no_cache: bool,
    pub private: bool,
    pub no_store: bool,
    pub public: bool,
    pub must_revalidate: bool,
    pub stale_while_revalidate_s: u64,
    pub stale_if_error_s: Option<u64>,
    /// It names X-Own, which every response has, in `private="…"` or `no-cache="…"`.
    pub names_own: bool,
}

/// One response of the origin.
#[derive(Clone, Copy, Debug)]
pub struct Said {
    pub asked: Asked,
    pub sequence: u64,
    pub at_ms: u64,
    /// When its head was written.
    pub head_at_ms: u64,
    pub age_s: u64,
    pub reuse: Reuse,
    pub varies: bool,
    pub sets_cookie: bool,
    /// Its entity tag: that of the representation, whoever asks.
    pub version: u64,
}

/// An answer, as a client got it.
#[derive(Debug)]
pub struct Given<'a> {
    pub asked: Asked,
    /// Of the sequence, and of the clock, when it was asked for and when it had come.
    pub sequence: u64,
    pub from_ms: u64,
    pub to_ms: u64,
    pub status: u16,
    /// The numbers of the responses that it is made of; a HEAD has no body.
    pub confirmed_by: Option<usize>,
    pub body_of: Option<usize>,
    pub age_s: Option<u64>,
    pub set_cookie: Option<&'a str>,
    pub own_field: Option<usize>,
    pub cache_status: &'a str,
}

#[derive(Default)]
pub struct Model {
    pub said: Vec<Said>,
    sequence: u64,
    /// Of each path: nothing up to this number of the sequence may be given to who asks after it.
    gone: Vec<u64>,
    /// The same for what an unsafe method has changed. A crash may bring that back: nobody was promised anything.
    changed: Vec<u64>,
    /// Of each path: when the origin failed last, by sequence and clock.
    failed: Vec<(u64, u64)>,
    /// Of each path: the version of its representation.
    versions: Vec<u64>,
    /// Requests that reached the origin.
    reached: std::collections::HashSet<u64>,
}

impl Reuse {
    pub fn drawn(dice: &mut Dice) -> Reuse {
        let plain = Reuse::default();
        let lives = |text, lifetime_s| Reuse { text, lifetime_s: Some(lifetime_s), ..plain };
        let revalidated = |reuse: Reuse| Reuse { must_revalidate: true, ..reuse };
        match dice.below(15) {
            0 => lives("max-age=3", 3),
            1 => lives("max-age=20", 20),
            2 => Reuse { no_cache: true, ..revalidated(Reuse { text: "no-cache", ..plain }) },
            3 => revalidated(lives("max-age=0, must-revalidate", 0)),
            4 => Reuse { private: true, ..lives("private, max-age=60", 60) },
            5 => Reuse { no_store: true, text: "no-store", ..plain },
            6 => Reuse { public: true, ..lives("public, max-age=0", 0) },
            7 => Reuse { stale_while_revalidate_s: 5, ..lives("max-age=2, stale-while-revalidate=5", 2) },
            8 => Reuse { stale_if_error_s: Some(5), ..lives("max-age=2, stale-if-error=5", 2) },
            9 => Reuse { no_cache: true, ..revalidated(lives("no-cache, must-revalidate, max-age=0", 0)) },
            10 => revalidated(lives("s-maxage=10, max-age=0", 10)),
            11 => revalidated(lives("max-age=5, must-revalidate", 5)),
            12 => Reuse { names_own: true, ..lives("max-age=20, private=\"x-own\"", 20) },
            13 => Reuse { names_own: true, ..lives("no-cache=\"X-Own\", max-age=3", 3) },
            _ => plain,
        }
    }

    fn says_shared(&self) -> bool {
        self.public || !self.no_cache && self.lifetime_s.is_some_and(|seconds| seconds > 0)
    }
}

impl Asked {
    fn has_credentials(&self) -> bool {
        self.cookie + self.authorization > 0
    }
}

impl Said {
    /// May it be given to anybody but who asked for it?
    fn is_for_others(&self) -> bool {
        let Reuse { private, no_store, public, must_revalidate, .. } = self.reuse;
        let is_for_one = self.asked.has_credentials() || self.sets_cookie;
        let lets_authorized = self.asked.authorization == 0 || public || must_revalidate;
        !private && !no_store && lets_authorized && (!is_for_one || self.reuse.says_shared())
    }
}

impl Model {
    pub fn new(paths: usize) -> Model {
        let none = vec![0; paths];
        let failed = vec![(0, 0); paths];
        Model { gone: none.clone(), changed: none.clone(), versions: none, failed, ..Model::default() }
    }

    /// The version of a representation, which changes now or not.
    pub fn version(&mut self, path: usize, changes: bool) -> u64 {
        self.versions[path] += u64::from(changes);
        self.versions[path]
    }

    pub fn next(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    pub fn note_reached(&mut self, token: u64) {
        self.reached.insert(token);
    }

    pub fn note_failed(&mut self, path: usize, at_ms: u64) {
        self.failed[path] = (self.next(), at_ms);
    }

    /// A purge that was asked for at this place of the sequence has been answered.
    pub fn note_gone(&mut self, path: usize, sequence: u64) {
        self.gone[path] = self.gone[path].max(sequence);
    }

    /// The same of an unsafe method.
    pub fn note_changed(&mut self, path: usize, sequence: u64) {
        self.changed[path] = self.changed[path].max(sequence);
    }

    pub fn note_killed(&mut self) {
        self.changed.fill(0);
    }

    /// Up to where everything is gone of a path, for who asks now.
    pub fn gone(&self, path: usize) -> u64 {
        self.gone[path].max(self.changed[path])
    }

    /// What is wrong with an answer, if anything is. `gone` is what was gone when it was asked for.
    pub fn judge(&self, given: &Given<'_>, gone: u64) -> Result<(), String> {
        let Some(confirmed_by) = given.confirmed_by else {
            return if given.status >= 500 { self.judge_failure(given) } else { Err("it is nobody's".to_string()) };
        };
        let by = self.said.get(confirmed_by).ok_or("it is confirmed by nothing that was said")?;
        let is_own = by.asked.token == given.asked.token;
        if let Some(body_of) = given.body_of {
            let body = self.said.get(body_of).ok_or("its body was never said")?;
            self.judge_body(given, body, by, is_own)?;
            if body.sequence <= gone {
                return Err("it was purged".to_string());
            }
        }
        check(by.asked.path == given.asked.path, "it is of another path")?;
        check(is_own || by.is_for_others(), "it is of an answer that is not to be shared")?;
        check(is_own || !by.varies || by.asked.kind == given.asked.kind, "it is of another variant")?;
        check(is_own || by.sequence > gone, "it was confirmed before a purge")?;
        check(is_own || given.set_cookie.is_none(), "it sets somebody else's cookie")?;
        check(!is_own || by.sets_cookie == given.set_cookie.is_some(), "its own cookie is lost")?;
        let own_field = (is_own || !by.reuse.names_own).then_some(confirmed_by);
        check(given.own_field == own_field, "it has a field that is somebody else's, or lacks its own")?;
        let says_hit = given.cache_status.contains("; hit");
        check(!says_hit || !is_own, "it says hit, and is the origin's answer")?;
        let is_collapsed = given.cache_status.contains("collapsed");
        let was_asked = is_collapsed || self.reached.contains(&given.asked.token);
        check(says_hit || was_asked, "it does not say hit, and the origin was not asked")?;
        if is_own { Ok(()) } else { self.judge_time(given, by) }
    }

    /// An error of larder's own: there must have been one.
    fn judge_failure(&self, given: &Given<'_>) -> Result<(), String> {
        let (sequence, at_ms) = self.failed[given.asked.path];
        let is_recent = at_ms + REMEMBERED_MS + SLACK_MS >= given.from_ms;
        check(sequence > 0 && (sequence > given.sequence || is_recent), "it is an error, and the origin did not fail")
    }

    fn judge_body(&self, given: &Given<'_>, body: &Said, by: &Said, is_own: bool) -> Result<(), String> {
        check(body.asked.path == given.asked.path, "its body is of another path")?;
        check(body.version == by.version, "its body is of another version than what confirms it")?;
        check(by.sequence >= body.sequence, "its body is newer than what confirms it")?;
        let is_this = body.asked.token == given.asked.token;
        check(is_this || body.is_for_others(), "its body is of an answer that is not to be shared")?;
        let was_confirmed_for_one = is_own && !is_this && given.asked.has_credentials();
        check(
            !was_confirmed_for_one || body.reuse.says_shared() || self.is_shared_since(body, by),
            "a body that is not said to be shared was confirmed for somebody's credentials",
        )
    }

    /// Did any response between the two say that the representation is shared?
    fn is_shared_since(&self, body: &Said, by: &Said) -> bool {
        let is_between = |said: &&Said| said.sequence > body.sequence && said.sequence < by.sequence;
        let is_of_it = |said: &&Said| said.asked.path == body.asked.path && said.version == body.version;
        self.said.iter().filter(is_between).filter(is_of_it).any(|said| said.reuse.says_shared())
    }

    /// Freshness and Age of what the origin was not asked for on behalf of this request.
    fn judge_time(&self, given: &Given<'_>, by: &Said) -> Result<(), String> {
        let age_ms = |now_ms: u64| now_ms.saturating_sub(by.at_ms) + by.age_s * 1_000;
        let (least_ms, most_ms) = (age_ms(given.from_ms), age_ms(given.to_ms));
        if let Some(age_s) = given.age_s {
            let is_true = age_s * 1_000 + SLACK_MS >= least_ms && age_s * 1_000 <= most_ms + SLACK_MS;
            check(is_true, "its Age is not true")?;
        }
        // Who waited before the head had come may have it whatever it says.
        if by.head_at_ms + HEAD_SLACK_MS >= given.from_ms {
            return Ok(());
        }
        check(given.age_s.is_some(), "it has no Age")?;
        let Reuse { lifetime_s, no_cache, must_revalidate, .. } = by.reuse;
        check(!no_cache, "it had to be confirmed")?;
        let (failed, failed_ms) = self.failed[by.asked.path];
        let has_failed = failed > given.sequence || failed > 0 && failed_ms + REMEMBERED_MS + SLACK_MS >= given.from_ms;
        check(!given.asked.no_cache || has_failed, "its client wanted it confirmed")?;
        let stale_ms = least_ms.saturating_sub(lifetime_s.unwrap_or(0) * 1_000 + SLACK_MS);
        let in_window = stale_ms <= by.reuse.stale_while_revalidate_s * 1_000;
        let in_error_window = match by.reuse.stale_if_error_s {
            Some(seconds) => stale_ms <= seconds * 1_000,
            None => !must_revalidate,
        };
        check(stale_ms == 0 || in_window || has_failed && in_error_window, "it is too stale")
    }
}

fn check(holds: bool, what: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what.to_string()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(token: u64, sequence: u64, reuse: Reuse) -> Said {
        let asked = Asked { token, ..Asked::default() };
        Said {
            asked,
            sequence,
            at_ms: 0,
            head_at_ms: 0,
            age_s: 0,
            reuse,
            varies: false,
            sets_cookie: false,
            version: 1,
        }
    }

    fn given(token: u64, from_ms: u64) -> Given<'static> {
        let asked = Asked { token, ..Asked::default() };
        Given {
            asked,
            sequence: 5,
            from_ms,
            to_ms: from_ms + 10,
            status: 200,
            confirmed_by: Some(0),
            body_of: Some(0),
            age_s: Some(from_ms / 1_000),
            set_cookie: None,
            own_field: Some(0),
            cache_status: "larder; hit; ttl=1",
        }
    }

    #[test]
    fn answers_are_judged() {
        let lives = Reuse { lifetime_s: Some(10), ..Reuse::default() };
        let check = |first: Said, given: Given<'_>, gone: u64, expect: Result<(), &str>| {
            let model = Model { said: vec![first], ..Model::new(1) };
            assert_eq!(model.judge(&given, gone), expect.map_err(str::to_string), "{first:?} {given:?}");
        };
        check(said(1, 1, lives), given(2, 9_000), 0, Ok(()));
        check(said(1, 1, lives), given(2, 12_000), 0, Err("it is too stale"));
        check(said(1, 1, lives), given(2, 9_000), 1, Err("it was purged"));
        check(said(1, 1, lives), Given { age_s: Some(1), ..given(2, 9_000) }, 0, Err("its Age is not true"));
        let private = Reuse { private: true, ..lives };
        check(said(1, 1, private), given(2, 0), 0, Err("its body is of an answer that is not to be shared"));
        let mut cookie = said(1, 1, Reuse { no_cache: true, ..lives });
        cookie.asked.cookie = 1;
        check(cookie, given(2, 0), 0, Err("its body is of an answer that is not to be shared"));
        let mut variant = said(1, 1, lives);
        (variant.varies, variant.asked.kind) = (true, 1);
        check(variant, given(2, 0), 0, Err("it is of another variant"));
        check(said(2, 6, private), given(2, 0), 0, Err("it says hit, and is the origin's answer"));
    }
}
