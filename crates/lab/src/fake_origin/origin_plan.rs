//! What a target asks of the origin: its path and its query, read into a plan.
//!
//! The one-letter words are those of haterm and httpterm, since people have them in their fingers; ours are longer. A
//! word that nobody knows means nothing, so that a query can also be what makes a URL new to a cache. A known word
//! with a value that it cannot have is refused: a test that asked for a fault must not get a good answer.
//! [`WORDS`] is what the manual says of them.

use crate::constructed_body::{BodyRule, body_rule, parts_of};
use crate::fake_origin::catalogue_sizes::catalogue_size;
use crate::fake_origin::delay_rule::Delay;
use crate::limits::{ORIGIN_BODY_BYTES_MAX, ORIGIN_EXTRA_BYTES_MAX};
use crate::usual_fields::MAX_AGE_SECONDS;

/// Every word of the query, an example of it, and what it does.
pub const WORDS: &[(&str, &str, &str)] = &[
    (
        "s",
        "s=20k",
        "bytes of the body: a number, with k, m or g of 1024s; with r, such as 20kr, drawn up to it each time",
    ),
    ("t", "t=500", "wait before the answer, in ms: a number, uniform:FROM:TO, exp:MEAN, or pause:SHARE:MS"),
    ("r", "r=404", "the status, 200 to 599"),
    ("c", "c=0", "0: no-store instead of max-age"),
    ("C", "C=1", "close after the answer; over HTTP/2 by a GOAWAY"),
    ("K", "K=1", "keep the connection, even where the client did not ask for it"),
    ("k", "k=1", "chunked, without a length"),
    ("R", "R=1", "other bytes in each answer, instead of those that belong to the path"),
    ("A", "A=1", "answer before the request's body was read"),
    ("e", "e=0.01:500", "this share of the requests is answered with this status"),
    ("max-age", "max-age=60", "seconds in Cache-Control"),
    ("etag", "etag=weak", "strong (as it is without), weak, or 0 for none"),
    ("modified", "modified=0", "0: no Last-Modified"),
    ("vary", "vary=accept-encoding", "a Vary field of this value"),
    ("drip", "drip=10k", "the body flows at so many bytes a second"),
    ("cut", "cut=100", "close after so many bytes of the body, or before the head: cut=head"),
    ("rst", "rst=100", "the same with a reset; over HTTP/2 of the stream alone"),
    ("stop", "stop=100", "say nothing more after so many bytes of the body, or at all: stop=head"),
    ("lie", "lie=-10", "announce so many bytes more than are sent, or fewer"),
    ("flip", "flip=7", "the byte at this place is another one"),
    ("extra", "extra=5", "so many bytes behind the end of the answer"),
    ("garble", "garble=line", "a head that is none: line, field, nul or lengths, which is two of them that disagree"),
    ("refuse", "refuse=1", "over HTTP/2: the stream is reset with REFUSED_STREAM, so nothing was done of the request"),
    (
        "goaway",
        "goaway=before",
        "over HTTP/2 the connection ends by a GOAWAY: before this request, which it leaves undone; after its answer; or error, in its place",
    ),
    ("starve", "starve=1", "over HTTP/2: the request's body is never read, and nothing is answered"),
    ("every", "every=10", "drip and all faults above hit each such request only, counted over the whole origin"),
    ("share", "share=0.1", "drip and all faults above hit this share of the requests, drawn by dice"),
];

/// The path that tells how many requests there were.
pub(crate) const COUNT_PATH: &str = "/lab-requests";
const SIZE_DEFAULT: u64 = 1_024;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Plan {
    /// Of the path: which bytes the body has.
    pub(crate) rule: BodyRule,
    pub(crate) size: Size,
    pub(crate) delay: Delay,
    pub(crate) status: u16,
    pub(crate) stored: bool,
    pub(crate) closes: bool,
    pub(crate) keeps: bool,
    pub(crate) chunked: bool,
    pub(crate) random: bool,
    pub(crate) answers_first: bool,
    pub(crate) errors: Option<(f64, u16)>,
    pub(crate) max_age: u64,
    pub(crate) etag: Etag,
    pub(crate) modified: bool,
    pub(crate) vary: Option<String>,
    pub(crate) faults: Faults,
    pub(crate) hit: Hit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Size {
    Fixed(u64),
    UpTo(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Etag {
    None,
    Weak,
    Strong,
}

/// What is done to an answer beside answering; nothing by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Faults {
    pub(crate) ending: Option<(Ending, Place)>,
    pub(crate) drip: Option<u64>,
    pub(crate) lie: i64,
    pub(crate) flip: Option<u64>,
    pub(crate) extra: u64,
    pub(crate) garble: Option<Garble>,
    pub(crate) refuse: bool,
    pub(crate) goaway: Option<GoAway>,
    pub(crate) starve: bool,
}

/// When a connection of HTTP/2 ends by a GOAWAY.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GoAway {
    /// Before the request, of which nothing is done.
    Before,
    After,
    /// In the place of an answer, with ENHANCE_YOUR_CALM.
    Error,
}

/// What a request came by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Http1,
    Http2,
}

impl Faults {
    /// What of it this protocol has no way to do: nobody would see it.
    pub(crate) fn misfit(&self, protocol: Protocol) -> Option<&'static str> {
        match protocol {
            Protocol::Http1 if self.refuse || self.goaway.is_some() || self.starve => {
                Some("`refuse`, `goaway` and `starve` are faults of HTTP/2, and this is HTTP/1")
            }
            Protocol::Http2 if self.garble.is_some() || self.extra > 0 => {
                Some("`garble` and `extra` are faults of HTTP/1, and this is HTTP/2")
            }
            Protocol::Http1 | Protocol::Http2 => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Cut,
    Reset,
    Stop,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Head,
    Body(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Garble {
    Line,
    Field,
    Nul,
    Lengths,
}

/// Which requests the faults are for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Hit {
    All,
    Every(u64),
    Share(f64),
}

impl Plan {
    /// `Err` says which word has a value that it cannot have.
    pub(crate) fn read(path: &str, query: &str, mean_bytes: u64) -> Result<Plan, String> {
        let mut plan = Plan {
            rule: body_rule(path),
            size: Size::Fixed(size_of_path(path, mean_bytes)?),
            delay: Delay::None,
            status: 200,
            stored: true,
            closes: false,
            keeps: false,
            chunked: false,
            random: false,
            answers_first: false,
            errors: None,
            max_age: MAX_AGE_SECONDS,
            etag: Etag::Strong,
            modified: true,
            vary: None,
            faults: Faults::default(),
            hit: Hit::All,
        };
        for part in query.split(['&', ';', '?']) {
            if let Some((word, value)) = part.split_once('=') {
                plan.take(word, value).ok_or_else(|| refusal(word, value))?;
            }
        }
        plan.check()
    }

    /// A fault that could not be seen would be a test that cannot fail.
    fn check(self) -> Result<Plan, String> {
        let Size::Fixed(size) = self.size else { return Ok(self) };
        let place = match (self.faults.ending, self.faults.flip) {
            (Some((_, Place::Body(at))), Some(flip)) => at.max(flip),
            (Some((_, Place::Body(at))), None) | (_, Some(at)) => at,
            _ => 0,
        };
        if place > 0 && place >= size {
            return Err(format!("a fault at byte {place} of a body of {size} bytes would not be seen"));
        }
        if self.chunked && self.faults.lie != 0 {
            return Err("`lie` is about a length, and with `k=1` none is announced".to_owned());
        }
        Ok(self)
    }

    /// `None`: the word cannot have this value.
    fn take(&mut self, word: &str, value: &str) -> Option<()> {
        let faults = &mut self.faults;
        match word {
            "s" => self.size = size(value)?,
            "t" => self.delay = Delay::parse(value)?,
            "r" => self.status = status(value)?,
            "c" => self.stored = switch(value)?,
            "C" => self.closes = switch(value)?,
            "K" => self.keeps = switch(value)?,
            "k" => self.chunked = switch(value)?,
            "R" => self.random = switch(value)?,
            "A" => self.answers_first = switch(value)?,
            "e" => {
                let (of, error) = value.split_once(':')?;
                self.errors = Some((share(of)?, status(error)?));
            }
            "max-age" => self.max_age = value.parse().ok()?,
            "etag" => {
                self.etag = match value {
                    "0" => Etag::None,
                    "weak" => Etag::Weak,
                    "strong" => Etag::Strong,
                    _ => return None,
                }
            }
            "modified" => self.modified = switch(value)?,
            "vary" => {
                let is_plain = !value.is_empty() && value.bytes().all(|b| b.is_ascii_graphic());
                self.vary = Some(is_plain.then(|| value.to_owned())?);
            }
            "drip" => faults.drip = Some(bytes(value, ORIGIN_BODY_BYTES_MAX).filter(|&rate| rate > 0)?),
            "cut" => faults.ending = Some((Ending::Cut, place(value)?)),
            "rst" => faults.ending = Some((Ending::Reset, place(value)?)),
            "stop" => faults.ending = Some((Ending::Stop, place(value)?)),
            "lie" => {
                let (sign, digits) = value.strip_prefix('-').map_or((1, value), |digits| (-1, digits));
                faults.lie = sign * bytes(digits, ORIGIN_EXTRA_BYTES_MAX)? as i64;
            }
            "flip" => faults.flip = Some(bytes(value, ORIGIN_BODY_BYTES_MAX)?),
            "extra" => faults.extra = bytes(value, ORIGIN_EXTRA_BYTES_MAX)?,
            "garble" => {
                faults.garble = Some(match value {
                    "line" => Garble::Line,
                    "field" => Garble::Field,
                    "nul" => Garble::Nul,
                    "lengths" => Garble::Lengths,
                    _ => return None,
                })
            }
            "refuse" => faults.refuse = switch(value)?,
            "goaway" => {
                faults.goaway = Some(match value {
                    "before" => GoAway::Before,
                    "after" => GoAway::After,
                    "error" => GoAway::Error,
                    _ => return None,
                })
            }
            "starve" => faults.starve = switch(value)?,
            "every" => self.hit = Hit::Every(value.parse().ok().filter(|&n| n > 0)?),
            "share" => self.hit = Hit::Share(share(value)?),
            _ => {}
        }
        Some(())
    }

    /// Is every answer to it the same, but for the date?
    pub(crate) fn is_steady(&self) -> bool {
        let fixed = matches!(self.size, Size::Fixed(_)) && self.errors.is_none() && !self.random;
        fixed && self.faults == Faults::default() && !self.chunked && !self.closes && !self.keeps
    }
}

fn refusal(word: &str, value: &str) -> String {
    let example = WORDS.iter().find(|(name, ..)| *name == word).map_or("", |(_, example, _)| example);
    format!("`{word}={value}`: no value for this word; {example} is one")
}

/// `/f<SIZE>.html` has that size, `/u/<N>.html` the one that the catalogue gives it.
fn size_of_path(path: &str, mean_bytes: u64) -> Result<u64, String> {
    let number_in = |prefix| path.strip_prefix(prefix)?.strip_suffix(".html")?.parse::<u64>().ok();
    if let Some(page) = number_in("/u/") {
        return Ok(catalogue_size(page, mean_bytes).min(ORIGIN_BODY_BYTES_MAX));
    }
    if let Some(parts) = parts_of(path) {
        return Ok(parts.page_bytes());
    }
    // A part of a page has a directory of its own.
    let number = match path.strip_prefix("/part/").and_then(|rest| rest.split_once("/f")) {
        Some((_, size)) => size.strip_suffix(".html").and_then(|size| size.parse().ok()),
        None => number_in("/f").or_else(|| number_in("/t")),
    };
    match number {
        Some(size) if size > ORIGIN_BODY_BYTES_MAX => Err(format!("{path}: {ORIGIN_BODY_BYTES_MAX} bytes at most")),
        size => Ok(size.unwrap_or(SIZE_DEFAULT)),
    }
}

fn size(text: &str) -> Option<Size> {
    match text.strip_suffix('r') {
        Some(most) => bytes(most, ORIGIN_BODY_BYTES_MAX).map(Size::UpTo),
        None => bytes(text, ORIGIN_BODY_BYTES_MAX).map(Size::Fixed),
    }
}

fn bytes(text: &str, max: u64) -> Option<u64> {
    let digits = text.trim_end_matches(['k', 'm', 'g']);
    let factor = match &text[digits.len()..] {
        "" => 1,
        "k" => 1 << 10,
        "m" => 1 << 20,
        "g" => 1 << 30,
        _ => return None,
    };
    if !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    digits.parse::<u64>().ok()?.checked_mul(factor).filter(|&bytes| bytes <= max)
}

fn place(text: &str) -> Option<Place> {
    match text {
        "head" => Some(Place::Head),
        text => bytes(text, ORIGIN_BODY_BYTES_MAX).map(Place::Body),
    }
}

fn status(text: &str) -> Option<u16> {
    text.parse().ok().filter(|status| (200..600).contains(status))
}

fn share(text: &str) -> Option<f64> {
    text.parse().ok().filter(|share| (0.0..=1.0).contains(share))
}

fn switch(text: &str) -> Option<bool> {
    match text {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(target: &str) -> Result<Plan, String> {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        Plan::read(path, query, 11_000)
    }

    #[test]
    fn habits_from_haterm_are_understood() {
        let plan = read("/?s=20k&t=500&r=404&c=0&C=1&K=1&k=1&R=1&A=1").unwrap();
        assert_eq!((plan.size, plan.delay, plan.status), (Size::Fixed(20_480), Delay::Fixed(500.0), 404));
        assert!(!plan.stored && plan.closes && plan.keeps && plan.chunked && plan.random && plan.answers_first);
        assert_eq!(read("/x?r=500?s=0?c=0").unwrap().size, Size::Fixed(0));
        assert_eq!(read("/x?s=1mr").unwrap().size, Size::UpTo(1 << 20));
    }

    #[test]
    fn the_path_gives_the_size_and_the_bytes() {
        for (target, size) in [
            ("/f6221.html", 6_221),
            ("/f0.html", 0),
            ("/f10.html?s=20", 20),
            ("/u/3.html", catalogue_size(3, 11_000)),
            ("/", 1_024),
            ("/fx.html?no=word&lonely", 1_024),
        ] {
            assert_eq!(read(target).unwrap().size, Size::Fixed(size), "{target}");
        }
        assert_eq!(read("/a?s=5").unwrap().rule, body_rule("/a"));
        assert!(read("/f99999999999999.html").is_err());
    }

    #[test]
    fn a_word_with_a_wrong_value_is_refused_with_an_example() {
        for bad in [
            "s=",
            "s=x",
            "s=1t",
            "s=-1",
            "s=1kk",
            "t=x",
            "r=100",
            "r=x",
            "c=2",
            "C=",
            "e=0.5",
            "e=2:500",
            "e=0.1:99",
            "max-age=x",
            "etag=1",
            "modified=x",
            "vary=\u{7f}",
            "drip=0",
            "cut=body",
            "rst=",
            "stop=-1",
            "lie=--1",
            "flip=x",
            "extra=9g",
            "garble=x",
            "refuse=x",
            "goaway=x",
            "starve=2",
            "every=0",
            "share=1.1",
        ] {
            let sentence = read(&format!("/?{bad}")).unwrap_err();
            assert!(sentence.starts_with(&format!("`{bad}`: ")) && sentence.ends_with(" is one"), "{sentence}");
        }
    }

    #[test]
    fn a_fault_that_nobody_would_see_is_refused() {
        for target in ["/f10.html?cut=10", "/f10.html?flip=10", "/?s=5&rst=6", "/?k=1&lie=5"] {
            assert!(read(target).is_err(), "{target}");
        }
        assert!(read("/f10.html?cut=9&flip=3").is_ok());
    }

    /// The manual's tables are this one, row by row.
    #[test]
    fn the_manual_says_the_same() {
        let manual = include_str!("../../../../docs/lab-origin.md");
        let rows = manual
            .lines()
            .filter(|line| line.starts_with("| `") && line.contains("=") && !line.contains(".localhost`"));
        let expect = WORDS.iter().map(|(word, example, what)| format!("| `{word}` | `{example}` | {what} |"));
        assert_eq!(rows.collect::<Vec<_>>(), expect.collect::<Vec<_>>());
    }

    #[test]
    fn every_word_of_the_manual_changes_the_plan_and_there_is_no_other() {
        let plain = read("/").unwrap();
        for (word, example, _) in WORDS {
            assert!(example.starts_with(&format!("{word}=")), "{example}");
            assert_ne!(read(&format!("/?{example}")).unwrap(), plain, "{example}");
        }
        let source = include_str!("origin_plan.rs");
        let taken = source.split("fn take(").nth(1).and_then(|rest| rest.split("Some(())").next()).unwrap();
        let arms = taken.lines().filter_map(|line| line.strip_prefix("            \"")?.split('"').next());
        assert_eq!(arms.collect::<Vec<_>>(), WORDS.iter().map(|(word, ..)| *word).collect::<Vec<_>>());
    }
}
