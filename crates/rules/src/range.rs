//! Ranges (RFC 9110 §14): what of a body of known length a request wants, If-Range, Content-Range, and which
//! parts may be put together (RFC 9111 §3.4).
//!
//! A Range that is not understood is ignored, and the answer is the whole: §14.2 always allows that, so every limit
//! here ends in it.

use std::ops::Range;

use message::{FieldName, FieldsView, Request, Response};

use crate::date::parse_date;
use crate::entity_tag::EntityTag;
use crate::freshness::Facts;
use crate::limits::RANGES_MAX;

/// What is to be sent of a body. Ranges of bytes are half open, as everywhere in Rust.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ranges {
    /// All of it: 200.
    Whole,
    /// 206 with Content-Range.
    One(Range<u64>),
    /// 206 as multipart/byteranges, in the order that was asked for.
    Many(Vec<Range<u64>>),
    /// 416 with `Content-Range: bytes */length`.
    Unsatisfiable,
}

/// What a GET wants of the response we hold, whose body has this length. If-Range is heeded (RFC 9110 §14.2).
pub fn wanted(request: &Request<'_>, held: Response<'_>, facts: &Facts, length: u64) -> Ranges {
    let Some(specs) = RangeSpecs::of(request.fields) else { return Ranges::Whole };
    let is_get = request.method == message::Method::Get;
    if !is_get || held.status.0 != 200 || !if_range_holds(request.fields, held.fields, facts) {
        return Ranges::Whole;
    }
    specs.resolve(length)
}

/// The ranges of one Range field, not yet measured against a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeSpecs {
    specs: Vec<RangeSpec>,
}

/// RFC 9110 §14.1.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeSpec {
    /// `first-` and `first-last`; `last` is included.
    From { first: u64, last: Option<u64> },
    /// `-length`: the end.
    Suffix { length: u64 },
}

impl RangeSpecs {
    /// `None` when there is no Range, more than one, another unit, or anything that is not by the grammar.
    pub fn of(fields: FieldsView<'_>) -> Option<RangeSpecs> {
        let mut values = fields.get_all(FieldName::Range);
        let (value, None) = (values.next()?, values.next()) else { return None };
        RangeSpecs::parse(value)
    }

    pub fn parse(value: &[u8]) -> Option<RangeSpecs> {
        let (unit, set) = value.split_at_checked(6)?;
        if !unit.eq_ignore_ascii_case(b"bytes=") {
            return None;
        }
        let mut specs = Vec::new();
        for spec in set.split(|&b| b == b',').map(<[u8]>::trim_ascii).filter(|spec| !spec.is_empty()) {
            specs.push(RangeSpec::parse(spec)?);
            if specs.len() > RANGES_MAX {
                return None;
            }
        }
        (!specs.is_empty()).then_some(RangeSpecs { specs })
    }

    pub fn specs(&self) -> &[RangeSpec] {
        &self.specs
    }

    /// RFC 9110 §14.1.2 and §15.3.7.2: ranges that lie outside are left out, those that overlap or touch are
    /// sent as one, and when they would make more than the whole, the whole is sent.
    pub fn resolve(&self, length: u64) -> Ranges {
        let mut wanted: Vec<Range<u64>> = Vec::new();
        for range in self.specs.iter().filter_map(|spec| spec.resolve(length)) {
            add(&mut wanted, range);
        }
        let total: u64 = wanted.iter().map(|range| range.end - range.start).sum();
        match wanted.len() {
            0 => Ranges::Unsatisfiable,
            1 => Ranges::One(wanted.remove(0)),
            _ if total >= length => Ranges::Whole,
            _ => Ranges::Many(wanted),
        }
    }
}

/// Joins with all that the new range overlaps or touches; the result stands where the first of them stood.
fn add(wanted: &mut Vec<Range<u64>>, mut range: Range<u64>) {
    let mut place = wanted.len();
    let mut at = 0;
    while at < wanted.len() {
        let known = &wanted[at];
        if known.start <= range.end && range.start <= known.end {
            range = known.start.min(range.start)..known.end.max(range.end);
            wanted.remove(at);
            place = place.min(at);
            at = 0;
        } else {
            at += 1;
        }
    }
    wanted.insert(place.min(wanted.len()), range);
}

impl RangeSpec {
    fn parse(spec: &[u8]) -> Option<RangeSpec> {
        let dash = spec.iter().position(|&b| b == b'-')?;
        match (&spec[..dash], &spec[dash + 1..]) {
            ([], length) => Some(RangeSpec::Suffix { length: position(length)? }),
            (first, []) => Some(RangeSpec::From { first: position(first)?, last: None }),
            (first, last) => {
                let (first, last) = (position(first)?, position(last)?);
                // §14.1.1: "An int-range is invalid if the last-pos value is present and less than first-pos."
                (first <= last).then_some(RangeSpec::From { first, last: Some(last) })
            }
        }
    }

    /// `None` when it is not satisfiable: it begins behind the end, or is an empty suffix.
    pub fn resolve(self, length: u64) -> Option<Range<u64>> {
        let range = match self {
            RangeSpec::From { first, last } => first..last.map_or(length, |last| length.min(last.saturating_add(1))),
            RangeSpec::Suffix { length: suffix } => length.saturating_sub(suffix)..length,
        };
        (range.start < range.end).then_some(range)
    }
}

/// RFC 9110 §13.1.5: without If-Range, or when its validator is, strongly, the one of what we hold.
pub fn if_range_holds(request: FieldsView<'_>, held: FieldsView<'_>, facts: &Facts) -> bool {
    let mut values = request.get_all(FieldName::IfRange);
    let Some(value) = values.next() else { return true };
    if values.next().is_some() {
        return false;
    }
    if let Some(tag) = EntityTag::parse(value) {
        let etag = held.get(FieldName::Etag).and_then(EntityTag::parse);
        return etag.is_some_and(|etag| etag.matches_strongly(&tag));
    }
    // §13.1.5: an exact match, and of a date that is a strong validator: §8.8.2.2, a minute older than Date.
    let date = parse_date(value, facts.date);
    let strong = facts.last_modified.is_some_and(|modified| modified.saturating_add(60) <= facts.date);
    date.is_some() && date == facts.last_modified && strong
}

/// RFC 9110 §14.4, for a range that is there. `bytes */N` belongs to a 416 and is not one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContentRange {
    pub range: Range<u64>,
    /// `None` for `*`.
    pub complete_length: Option<u64>,
}

impl ContentRange {
    /// `None` when it is not by the grammar, or impossible.
    pub fn parse(value: &[u8]) -> Option<ContentRange> {
        let (unit, rest) = value.split_at_checked(6)?;
        let slash = rest.iter().position(|&b| b == b'/')?;
        let (range, complete) = (&rest[..slash], &rest[slash + 1..]);
        let dash = range.iter().position(|&b| b == b'-')?;
        let (first, last) = (position(&range[..dash])?, position(&range[dash + 1..])?);
        let complete_length = if complete == b"*" { None } else { Some(position(complete)?) };
        let possible = first <= last && last < complete_length.unwrap_or(u64::MAX);
        let ok = unit.eq_ignore_ascii_case(b"bytes ") && possible;
        ok.then(|| ContentRange { range: first..last + 1, complete_length })
    }

    /// The length its part must have.
    pub fn length(&self) -> u64 {
        self.range.end - self.range.start
    }

    pub fn is_whole(&self) -> bool {
        self.range.start == 0 && Some(self.range.end) == self.complete_length
    }

    /// `bytes 0-4/10`.
    pub fn write_to(&self, out: &mut Vec<u8>) {
        let complete = self.complete_length.map_or("*".to_string(), |length| length.to_string());
        out.extend_from_slice(format!("bytes {}-{}/{complete}", self.range.start, self.range.end - 1).as_bytes());
    }

    /// The part of this part that serves the request, in the coordinates of the whole; `None` when bytes are
    /// missing, or when the answer must be more than one range.
    pub fn serves(&self, specs: &RangeSpecs) -> Option<Range<u64>> {
        let [spec] = specs.specs() else { return None };
        let range = match (*spec, self.complete_length) {
            (spec, Some(length)) => spec.resolve(length)?,
            (RangeSpec::From { first, last: Some(last) }, None) => first..last.checked_add(1)?,
            _ => return None,
        };
        (self.range.start <= range.start && range.end <= self.range.end).then_some(range)
    }
}

/// The value for a 416 (RFC 9110 §15.5.17).
pub fn write_unsatisfied(length: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("bytes */{length}").as_bytes());
}

/// RFC 9111 §3.4, RFC 9110 §15.3.7.3: parts are of one representation only when both have the same strong
/// validator.
pub fn may_combine(a: FieldsView<'_>, b: FieldsView<'_>) -> bool {
    let tags = [a, b].map(|fields| fields.get(FieldName::Etag).and_then(EntityTag::parse));
    matches!(tags, [Some(a), Some(b)] if a.matches_strongly(&b))
}

/// A number of bytes; one that does not fit is as far away as the greatest that does.
fn position(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let add = |n: u64, b: &u8| n.saturating_mul(10).saturating_add(u64::from(b - b'0'));
    Some(digits.iter().fold(0, add).min(u64::MAX - 1))
}
