//! How long a response lives when a policy program says so: ttl, grace and keep, as VCL means them.
//!
//! RFC 9111's words (must-revalidate, a client's max-age, stale-if-error) count for nothing here; whoever wants them heard
//! writes a program that hears them. [`Lifetimes::facts`] puts ttl and grace where `freshness` reads its own, so that a hit
//! is judged by the same arithmetic whoever decided; what RFC 9111 has no word for is judged by [`judge`].

use message::{FieldName, FieldsView, Status, list_members};

use crate::date::{DATE_BYTES, parse_date, write_date};
use crate::freshness::Facts;

/// The lifetimes of a response at one moment: when a policy saw it, or any later one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lifetimes {
    /// How old it is: what its Age said, and what passed since.
    pub age_ms: u64,
    /// How long it goes on being fresh; below zero when it is not.
    pub ttl_ms: i64,
    /// How long after its ttl it may be served while it is fetched again.
    pub grace_ms: u64,
    /// How long after that it may be validated.
    pub keep_ms: u64,
}

/// What a request bounds. `None` is no bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// On the ttl, counted from the origin's making the response as the ttl is: on the age of a hit, that is.
    pub ttl_max_ms: Option<u64>,
    pub grace_max_ms: Option<u64>,
}

/// Where a response stands in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    Fresh,
    /// Fresh by its own ttl, but older than this request takes. It is not to be validated either: it has not expired.
    TooOld,
    /// Expired, and may be served while it is fetched again.
    Grace,
    /// Expired, and good for nothing but being validated.
    Keep,
    /// Nobody has a use for it any more.
    Over,
}

impl Lifetimes {
    /// As `freshness` reads them. Date and Last-Modified stay what they are. What is born without any ttl is never served,
    /// not even in its grace.
    pub fn facts(&self, read: &Facts) -> Facts {
        let lifetime_ms = self.whole_ttl_ms();
        Facts {
            initial_age_ms: self.age_ms,
            lifetime_ms,
            stale_while_revalidate_ms: if lifetime_ms == 0 { 0 } else { self.grace_ms },
            stale_if_error_ms: Some(0),
            must_revalidate: false,
            always_validate: false,
            says_shared: true,
            immutable: false,
            ..*read
        }
    }

    /// What they are of facts that were made so, after a time of residence.
    pub fn of(facts: &Facts, keep_ms: u64, resident_ms: u64) -> Lifetimes {
        let age_ms = facts.age_ms(resident_ms);
        let ttl_ms = signed(facts.lifetime_ms).saturating_sub(signed(age_ms));
        Lifetimes { age_ms, ttl_ms, grace_ms: facts.stale_while_revalidate_ms, keep_ms }
    }

    /// What is left of them a time later.
    pub fn after(self, ms: u64) -> Lifetimes {
        let (age_ms, ttl_ms) = (self.age_ms.saturating_add(ms), self.ttl_ms.saturating_sub(signed(ms)));
        Lifetimes { age_ms, ttl_ms, ..self }
    }

    fn whole_ttl_ms(&self) -> u64 {
        self.ttl_ms.saturating_add(signed(self.age_ms)).max(0) as u64
    }
}

/// The facts of the same response with so much of its ttl and grace left, but never more than it has.
pub fn shortened(facts: &Facts, resident_ms: u64, ttl_ms: u64, grace_max_ms: Option<u64>) -> Facts {
    let mut facts = *facts;
    if ttl_ms == 0 && facts.age_ms(resident_ms) == 0 {
        // In the very millisecond of its birth: without a lifetime it would have no grace either.
        facts.initial_age_ms = 1;
    }
    let age_ms = facts.age_ms(resident_ms);
    facts.lifetime_ms = facts.lifetime_ms.min(age_ms.saturating_add(ttl_ms));
    facts.stale_while_revalidate_ms = grace_max_ms.unwrap_or(u64::MAX).min(facts.stale_while_revalidate_ms);
    facts
}

fn signed(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}

/// Where a response with such facts stands for a request with such bounds.
pub fn judge(facts: &Facts, keep_ms: u64, resident_ms: u64, bounds: &Bounds) -> Stage {
    let age_ms = facts.age_ms(resident_ms);
    let own_ms = facts.lifetime_ms;
    let ttl_ms = bounds.ttl_max_ms.map_or(own_ms, |max| max.min(own_ms));
    let own_grace_ms = facts.stale_while_revalidate_ms;
    let grace_ms = bounds.grace_max_ms.map_or(own_grace_ms, |max| max.min(own_grace_ms));
    if age_ms < ttl_ms {
        Stage::Fresh
    } else if own_ms == 0 {
        Stage::Over
    } else if age_ms < own_ms {
        Stage::TooOld
    } else if age_ms < ttl_ms.saturating_add(grace_ms) {
        Stage::Grace
    } else if age_ms < own_ms.saturating_add(own_grace_ms).saturating_add(keep_ms) {
        Stage::Keep
    } else {
        Stage::Over
    }
}

/// What an operator sets for responses that say nothing themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Defaults {
    pub ttl_ms: u64,
    pub grace_ms: u64,
    pub keep_ms: u64,
    /// An Expires is compared with our own clock where the origin's Date differs from it by less.
    pub clock_skew_s: u64,
}

impl Default for Defaults {
    fn default() -> Defaults {
        Defaults { ttl_ms: 120_000, grace_ms: 10_000, keep_ms: 0, clock_skew_s: 10 }
    }
}

/// What of a response, or of the operator's, decided about a lifetime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LifetimeRule {
    SMaxAge,
    MaxAge,
    Expires,
    /// The status is none of those that are stored by themselves.
    Status,
    DefaultTtl,
    StaleWhileRevalidate,
    DefaultGrace,
    DefaultKeep,
}

impl LifetimeRule {
    /// As it stands in a field or among the parameters.
    pub const fn name(self) -> &'static str {
        match self {
            LifetimeRule::SMaxAge => "s-maxage",
            LifetimeRule::MaxAge => "max-age",
            LifetimeRule::Expires => "Expires",
            LifetimeRule::Status => "status",
            LifetimeRule::DefaultTtl => "default_ttl",
            LifetimeRule::StaleWhileRevalidate => "stale-while-revalidate",
            LifetimeRule::DefaultGrace => "default_grace",
            LifetimeRule::DefaultKeep => "default_keep",
        }
    }
}

/// The lifetimes with which a response comes to a policy program, and why. Of the keep only the operator decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Announced {
    pub lifetimes: Lifetimes,
    pub ttl_by: LifetimeRule,
    pub grace_by: LifetimeRule,
}

/// What the fields say, in the order in which Varnish asks them, and else the operator's defaults. A ttl below zero is
/// the word for a status that is not stored by itself.
pub fn announced(status: Status, fields: FieldsView<'_>, now_s: i64, defaults: &Defaults) -> Announced {
    let age_s = fields.get(FieldName::Age).map_or(0, leading_seconds);
    let (default_ms, grace_ms, keep_ms) = (signed(defaults.ttl_ms), defaults.grace_ms, defaults.keep_ms);
    let said = || said_ttl_s(fields, now_s, defaults.clock_skew_s).map(|(s, by)| (s.saturating_mul(1_000), by));
    // From the response's making.
    let (ttl_ms, ttl_by) = match status.0 {
        200 | 203 | 204 | 300 | 301 | 304 | 404 | 410 | 414 => said().unwrap_or((default_ms, LifetimeRule::DefaultTtl)),
        302 | 307 => said().unwrap_or((-1_000, LifetimeRule::Status)),
        _ => (-1_000, LifetimeRule::Status),
    };
    let grace_s = directive(fields, "stale-while-revalidate").filter(|_| ttl_ms >= 0);
    let lifetimes = Lifetimes {
        age_ms: age_s.saturating_mul(1_000),
        ttl_ms: ttl_ms.saturating_sub(signed(age_s.saturating_mul(1_000))),
        grace_ms: grace_s.map_or(grace_ms, |s| s.saturating_mul(1_000)),
        keep_ms,
    };
    let grace_by = grace_s.map_or(LifetimeRule::DefaultGrace, |_| LifetimeRule::StaleWhileRevalidate);
    Announced { lifetimes, ttl_by, grace_by }
}

fn said_ttl_s(fields: FieldsView<'_>, now_s: i64, clock_skew_s: u64) -> Option<(i64, LifetimeRule)> {
    if let Some(s) = directive(fields, "s-maxage") {
        return Some((signed(s), LifetimeRule::SMaxAge));
    }
    if let Some(s) = directive(fields, "max-age") {
        return Some((signed(s), LifetimeRule::MaxAge));
    }
    let expires_s = fields.get(FieldName::Expires).and_then(|text| exact_date(text, now_s))?;
    let date_s = fields.get(FieldName::Date).and_then(|text| parse_date(text, now_s));
    let ttl_s = match date_s {
        Some(date_s) if expires_s < date_s => 0,
        Some(date_s) if date_s.abs_diff(now_s) >= clock_skew_s => expires_s - date_s,
        _ => (expires_s - now_s).max(0),
    };
    Some((ttl_s, LifetimeRule::Expires))
}

/// A date whose words are written as HTTP writes them, and whose day of the week is the right one. Who gets that wrong means
/// nothing by it, as Varnish sees it.
fn exact_date(text: &[u8], now_s: i64) -> Option<i64> {
    let unix_s = parse_date(text, now_s)?;
    (text.len() != DATE_BYTES || write_date(unix_s) == text).then_some(unix_s)
}

/// The seconds of a Cache-Control directive that has an argument.
fn directive(fields: FieldsView<'_>, name: &str) -> Option<u64> {
    let members = fields.get_all(FieldName::CacheControl).flat_map(list_members);
    members.filter_map(|member| member.split_at_checked(name.len())).find_map(|(head, rest)| {
        // Blanks around the sign are forgiven, as Varnish forgives them.
        let rest = rest.trim_ascii_start().strip_prefix(b"=")?;
        head.eq_ignore_ascii_case(name.as_bytes()).then(|| leading_seconds(rest.trim_ascii_start()))
    })
}

/// A number of seconds, of which a fraction is cut off; 0 for anything else.
fn leading_seconds(text: &[u8]) -> u64 {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let rest = text[digits..].trim_ascii_start();
    let ends = rest.is_empty() || rest.starts_with(b",") || rest.starts_with(b".");
    let number = std::str::from_utf8(&text[..digits]).ok().filter(|digits| ends && !digits.is_empty());
    number.map_or(0, |digits| digits.parse().unwrap_or(u64::MAX)).min(u32::MAX.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{NOW_S, fields};
    use crate::{Freshness, RequestDirectives};

    const SEEN: Lifetimes = Lifetimes { age_ms: 2_000, ttl_ms: 10_000, grace_ms: 5_000, keep_ms: 3_000 };

    /// Also that `freshness`, which the hottest hits ask, never says more than this.
    fn check(seen: Lifetimes, resident_ms: u64, bounds: Bounds, expect: Stage) {
        let facts = seen.facts(&Facts::default());
        let stage = judge(&facts, seen.keep_ms, resident_ms, &bounds);
        assert_eq!(stage, expect, "{seen:?} after {resident_ms} ms, {bounds:?}");
        let hot = crate::freshness::judge(&facts, resident_ms, &RequestDirectives::default());
        if bounds == Bounds::default() {
            let served = matches!(hot, Freshness::Stale { while_revalidate: true, .. });
            assert_eq!((hot == Freshness::Fresh, served), (stage == Stage::Fresh, stage == Stage::Grace));
        }
    }

    #[test]
    fn a_life_is_ttl_then_grace_then_keep() {
        let any = Bounds::default();
        check(SEEN, 0, any, Stage::Fresh);
        check(SEEN, 9_999, any, Stage::Fresh);
        check(SEEN, 10_000, any, Stage::Grace);
        check(SEEN, 14_999, any, Stage::Grace);
        check(SEEN, 15_000, any, Stage::Keep);
        check(SEEN, 17_999, any, Stage::Keep);
        check(SEEN, 18_000, any, Stage::Over);
        check(Lifetimes { ttl_ms: -1_000, ..SEEN }, 0, any, Stage::Grace);
        check(Lifetimes { ttl_ms: -2_000, ..SEEN }, 0, any, Stage::Over);
        check(Lifetimes { age_ms: 0, ttl_ms: 0, ..SEEN }, 0, any, Stage::Over);
        check(Lifetimes { ttl_ms: i64::MAX, grace_ms: u64::MAX, ..SEEN }, i64::MAX as u64, any, Stage::Grace);
    }

    #[test]
    fn a_request_takes_less_but_never_more() {
        let ttl = |ms| Bounds { ttl_max_ms: Some(ms), ..Bounds::default() };
        let grace = |ms| Bounds { grace_max_ms: Some(ms), ..Bounds::default() };
        check(SEEN, 2_999, ttl(5_000), Stage::Fresh);
        check(SEEN, 3_000, ttl(5_000), Stage::TooOld);
        check(SEEN, 10_000, ttl(5_000), Stage::Keep);
        check(SEEN, 10_000, ttl(10_000), Stage::Grace);
        check(SEEN, 9_999, ttl(99_000), Stage::Fresh);
        check(SEEN, 12_000, grace(2_000), Stage::Keep);
        check(SEEN, 11_999, grace(2_000), Stage::Grace);
        check(SEEN, 15_000, grace(99_000), Stage::Keep);
        check(SEEN, 10_000, grace(0), Stage::Keep);
    }

    #[test]
    fn what_is_left_of_them_is_told_at_any_moment() {
        let facts = SEEN.facts(&Facts { date: 7, last_modified: Some(5), ..Facts::default() });
        assert_eq!((facts.date, facts.last_modified), (7, Some(5)));
        assert_eq!(Lifetimes::of(&facts, 3_000, 0), SEEN);
        let later = Lifetimes { age_ms: 13_000, ttl_ms: -1_000, ..SEEN };
        assert_eq!(Lifetimes::of(&facts, 3_000, 11_000), later);
    }

    /// A program has decided: what the fields say of reuse and of sharing counts no more.
    #[test]
    fn only_dates_are_left_of_what_the_fields_said() {
        let said = Facts { must_revalidate: true, always_validate: true, immutable: true, date: 7, ..Facts::default() };
        let expect = Facts {
            initial_age_ms: 2_000,
            lifetime_ms: 12_000,
            stale_while_revalidate_ms: 5_000,
            stale_if_error_ms: Some(0),
            last_modified: None,
            date: 7,
            must_revalidate: false,
            always_validate: false,
            says_shared: true,
            immutable: false,
        };
        assert_eq!(SEEN.facts(&said), expect);
    }

    #[test]
    fn a_life_is_shortened_and_never_prolonged() {
        let check = |resident_ms: u64, ttl_ms: u64, grace_max_ms: Option<u64>, expect: [i64; 2]| {
            let facts = shortened(&SEEN.facts(&Facts::default()), resident_ms, ttl_ms, grace_max_ms);
            let left = Lifetimes::of(&facts, 0, resident_ms);
            assert_eq!([left.ttl_ms, left.grace_ms as i64], expect, "{ttl_ms} {grace_max_ms:?} after {resident_ms}");
        };
        check(1_000, 0, None, [0, 5_000]);
        check(1_000, 4_000, Some(1_000), [4_000, 1_000]);
        check(1_000, 60_000, Some(60_000), [9_000, 5_000]);
        check(11_000, 0, Some(0), [-1_000, 0]);
        let newborn = Lifetimes { age_ms: 0, ..SEEN }.facts(&Facts::default());
        assert_eq!(shortened(&newborn, 0, 0, None).initial_age_ms, 1);
        let stage = judge(&shortened(&newborn, 0, 0, None), 0, 0, &Bounds::default());
        assert_eq!(stage, Stage::Grace);
    }

    /// What varnishd 7.1 gives `beresp.ttl` and `beresp.grace` for the same fields.
    #[test]
    fn what_the_fields_announce() {
        let check = |status: u16, lines: &str, expect: [i64; 3], by: &str| {
            let read = announced(Status(status), fields(lines).view(), NOW_S, &Defaults::default());
            let lives = read.lifetimes;
            let got = [lives.ttl_ms, lives.grace_ms as i64, lives.age_ms as i64];
            assert_eq!(lives.keep_ms, 0);
            assert_eq!(got, expect.map(|s| s * 1_000), "{status} {lines:?}");
            assert_eq!(format!("{} {}", read.ttl_by.name(), read.grace_by.name()), by, "{status} {lines:?}");
        };
        check(200, "", [120, 10, 0], "default_ttl default_grace");
        check(200, "Cache-Control: private, max-age=60", [60, 10, 0], "max-age default_grace");
        check(200, "Cache-Control: max-age=60, S-MaxAge=5", [5, 10, 0], "s-maxage default_grace");
        check(200, "Cache-Control: max-age=60\nAge: 20", [40, 10, 20], "max-age default_grace");
        check(200, "Cache-Control: max-age=60\nAge: 70", [-10, 10, 70], "max-age default_grace");
        check(200, "Cache-Control: max-age=7.9, stale-while-revalidate=3", [7, 3, 0], "max-age stale-while-revalidate");
        check(200, "Cache-Control: max-age=0, stale-while-revalidate=3", [0, 3, 0], "max-age stale-while-revalidate");
        check(200, "Cache-Control: max-age=60\nAge: 20, 5", [40, 10, 20], "max-age default_grace");
        check(200, "Cache-Control: max-age=7x", [0, 10, 0], "max-age default_grace");
        check(200, "Cache-Control: max-age = 7", [7, 10, 0], "max-age default_grace");
        check(200, "Cache-Control: max-age=-1", [0, 10, 0], "max-age default_grace");
        check(200, "Cache-Control: max-age=\"5\"", [0, 10, 0], "max-age default_grace");
        check(200, "Cache-Control: max-age", [120, 10, 0], "default_ttl default_grace");
        check(200, "Expires: {30}\nDate: {0}", [30, 10, 0], "Expires default_grace");
        check(200, "Expires: {30}", [30, 10, 0], "Expires default_grace");
        check(200, "Expires: {-30}\nDate: {-60}", [30, 10, 0], "Expires default_grace");
        check(200, "Expires: {30}\nDate: {5}", [30, 10, 0], "Expires default_grace");
        check(200, "Expires: {-1}\nDate: {0}", [0, 10, 0], "Expires default_grace");
        check(200, "Expires: {-61}\nDate: {-60}", [0, 10, 0], "Expires default_grace");
        check(200, "Expires: {-30}", [0, 10, 0], "Expires default_grace");
        check(200, "Expires: {5}\nDate: {5}", [5, 10, 0], "Expires default_grace");
        check(200, "Expires: {40}\nDate: {10}", [30, 10, 0], "Expires default_grace");
        check(200, "Expires: SUN, 06 Nov 2094 08:49:37 GMT", [120, 10, 0], "default_ttl default_grace");
        check(200, "Expires: never", [120, 10, 0], "default_ttl default_grace");
        for status in [203, 204, 300, 301, 304, 404, 410, 414] {
            check(status, "", [120, 10, 0], "default_ttl default_grace");
        }
        for status in [201, 205, 303, 305, 308, 405, 411, 415] {
            check(status, "Cache-Control: max-age=9", [-1, 10, 0], "status default_grace");
        }
        check(307, "Cache-Control: max-age=9", [9, 10, 0], "max-age default_grace");
        check(302, "", [-1, 10, 0], "status default_grace");
        check(302, "Cache-Control: max-age=9", [9, 10, 0], "max-age default_grace");
        check(500, "Cache-Control: max-age=9, stale-while-revalidate=3", [-1, 10, 0], "status default_grace");
    }
}
