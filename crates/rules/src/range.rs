//! Ranges (RFC 9110 §14): what of a body of known length a request wants, If-Range, Content-Range, and which
//! parts may be put together (RFC 9111 §3.4).
//!
//! A Range that is not understood is ignored, and the answer is the whole: §14.2 always allows that, so every limit
//! here ends in it.

use std::ops::Range;

use message::{FieldName, FieldsView, Request, Response, Status};

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

    /// The range, when there is just one: what a stored part may answer.
    pub fn single(&self) -> Option<RangeSpec> {
        match *self.specs {
            [spec] => Some(spec),
            _ => None,
        }
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

    /// The part of this part that a range wants, in the coordinates of the whole; `None` when bytes are missing.
    pub fn holds(&self, spec: RangeSpec) -> Option<Range<u64>> {
        let range = match (spec, self.complete_length) {
            (spec, Some(length)) => spec.resolve(length)?,
            (RangeSpec::From { first, last: Some(last) }, None) => first..last.checked_add(1)?,
            _ => return None,
        };
        (self.range.start <= range.start && range.end <= self.range.end).then_some(range)
    }

    /// The same for a whole Range field; an answer of more than one range is none that a part can give.
    pub fn serves(&self, specs: &RangeSpecs) -> Option<Range<u64>> {
        self.holds(specs.single()?)
    }
}

const UNSATISFIABLE: Status = Status(416);

/// May a response with this Content-Range answer the request? It says a range of bytes that was asked for, and is as long as that; or of a 416,
/// that there is none. What it says of other units nobody here can tell. `length`: of its content, if it says that.
pub fn is_asked_for(request: FieldsView<'_>, head: Response<'_>, length: Option<u64>) -> bool {
    let Some(said) = head.fields.get(FieldName::ContentRange) else { return true };
    let Some(blank) = said.iter().position(|&byte| byte == b' ') else { return false };
    if !said[..blank].eq_ignore_ascii_case(b"bytes") {
        return true;
    }
    let asked = RangeSpecs::of(request);
    let Some(part) = ContentRange::parse(said) else {
        return asked.is_some() && head.status == UNSATISFIABLE && said[blank + 1..].starts_with(b"*/");
    };
    let begins_there = |asked: RangeSpecs| match asked.single() {
        Some(RangeSpec::From { first, last }) => {
            first == part.range.start && last.is_none_or(|last| part.range.end - 1 <= last)
        }
        Some(RangeSpec::Suffix { .. }) | None => true,
    };
    length.is_none_or(|length| length == part.length()) && asked.is_some_and(begins_there)
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

#[cfg(test)]
mod tests {
    use super::*;
    use message::ResponseHead;

    use crate::tests::{NOW_S, fields, head, request};

    fn check(value: &str, length: u64, expect: Ranges) {
        let got = RangeSpecs::parse(value.as_bytes()).map_or(Ranges::Whole, |specs| specs.resolve(length));
        assert_eq!(got, expect, "{value} of {length}");
    }

    /// RFC 9110 §14.1.2.
    #[test]
    fn one_range() {
        check("bytes=0-1", 11, Ranges::One(0..2));
        check("bytes=1-", 11, Ranges::One(1..11));
        check("bytes=-1", 11, Ranges::One(10..11));
        check("bytes=-99", 11, Ranges::One(0..11));
        check("bytes=0-99999999999999999999999", 11, Ranges::One(0..11));
        check("Bytes=10-10", 11, Ranges::One(10..11));
        check("bytes=11-", 11, Ranges::Unsatisfiable);
        check("bytes=99999999999999999999-", 11, Ranges::Unsatisfiable);
        check("bytes=-0", 11, Ranges::Unsatisfiable);
        check("bytes=0-0", 0, Ranges::Unsatisfiable);
        check("bytes=-5", 0, Ranges::Unsatisfiable);
    }

    /// RFC 9110 §14.2: what is not understood is ignored.
    #[test]
    fn junk_is_ignored() {
        for junk in [
            "",
            "bytes",
            "bytes=",
            "bytes=,",
            "bytes=-",
            "bytes=a-b",
            "bytes=2-1",
            "bytes=0-1,x",
            "items=0-1",
            "bytes =0-1",
            "bytes=0 -1",
            "bytes=+1-2",
            "bytes=1--2",
            "bytes=0-1;",
            "0-1",
        ] {
            check(junk, 11, Ranges::Whole);
        }
    }

    /// RFC 9110 §15.3.7.2.
    #[test]
    fn many_ranges_are_merged_and_bounded() {
        check("bytes=0-1, 4-5", 11, Ranges::Many(vec![0..2, 4..6]));
        check("bytes=4-5,0-1", 11, Ranges::Many(vec![4..6, 0..2]));
        check("bytes=0-1,2-3", 11, Ranges::One(0..4));
        check("bytes=0-5,3-9,20-", 11, Ranges::One(0..10));
        check("bytes=8-9,0-1,1-8", 11, Ranges::One(0..10));
        check("bytes=4-5,2-3", 11, Ranges::One(2..6));
        check("bytes=0-1,20-21,2-3", 30, Ranges::Many(vec![0..4, 20..22]));
        check("bytes=0-1,10-11,12-13", 30, Ranges::Many(vec![0..2, 10..14]));
        check("bytes=0-1,20-30", 11, Ranges::One(0..2));
        check("bytes=20-,30-", 11, Ranges::Unsatisfiable);
        let many = |count: u64| (0..count).map(|n| format!("{}-{}", n * 3, n * 3)).collect::<Vec<_>>().join(",");
        let at_limit = (0..RANGES_MAX as u64).map(|n| n * 3..n * 3 + 1).collect();
        check(&format!("bytes={}", many(RANGES_MAX as u64)), 1000, Ranges::Many(at_limit));
        check(&format!("bytes={}", many(RANGES_MAX as u64 + 1)), 1000, Ranges::Whole);
        check(&format!("bytes={}", "0-,".repeat(5000)), 1000, Ranges::Whole);
    }

    /// RFC 9110 §13.1.5, §14.2.
    #[test]
    fn if_range_is_strong() {
        let check = |line: &str, asked: &str, status: u16, held: &str, expect_range: bool| {
            let (asked, held) = (fields(asked), head(status, held));
            let get = |name| held.fields.view().get(name).and_then(|text| parse_date(text, NOW_S));
            let (last_modified, date) = (get(FieldName::LastModified), get(FieldName::Date).unwrap_or(NOW_S));
            let facts = Facts { last_modified, date, ..Facts::default() };
            let got = wanted(&request(line, &asked), held.response(), &facts, 11);
            assert_eq!(got, if expect_range { Ranges::One(0..2) } else { Ranges::Whole }, "{asked:?}");
        };
        let range = "Range: bytes=0-1";
        check("GET /", range, 200, "", true);
        check("HEAD /", range, 200, "", false);
        check("GET /", range, 404, "", false);
        check("GET /", &format!("{range}\n{range}"), 200, "", false);
        check("GET /", &format!("{range}\nIf-Range: \"a\""), 200, "ETag: \"a\"", true);
        check("GET /", &format!("{range}\nIf-Range: \"b\""), 200, "ETag: \"a\"", false);
        check("GET /", &format!("{range}\nIf-Range: W/\"a\""), 200, "ETag: W/\"a\"", false);
        check("GET /", &format!("{range}\nIf-Range: \"a\""), 200, "", false);
        check("GET /", &format!("{range}\nIf-Range: \"a\"\nIf-Range: \"a\""), 200, "ETag: \"a\"", false);
        check("GET /", &format!("{range}\nIf-Range: {{-60}}"), 200, "", false);
        let dated = "Last-Modified: {-60}\nDate: {0}";
        let line = |offset: i64| format!("{range}\nIf-Range: {{{offset}}}");
        check("GET /", &line(-60), 200, dated, true);
        check("GET /", &line(-59), 200, dated, false);
        check("GET /", &line(-59), 200, "Last-Modified: {-59}\nDate: {0}", false);
    }

    /// RFC 9110 §15.5.17.
    #[test]
    fn a_part_has_its_length_and_a_416_that_of_the_whole() {
        assert_eq!(ContentRange::parse(b"bytes 3-4/10").map(|part| part.length()), Some(2));
        let mut written = Vec::new();
        write_unsatisfied(11, &mut written);
        assert_eq!(written, b"bytes */11");
    }

    /// RFC 9110 §14.4.
    #[test]
    fn content_range() {
        let check = |value: &str, expect: Option<(Range<u64>, Option<u64>)>| {
            let got = ContentRange::parse(value.as_bytes());
            assert_eq!(got.clone().map(|got| (got.range, got.complete_length)), expect, "{value}");
            if let Some(got) = got {
                let mut written = Vec::new();
                got.write_to(&mut written);
                assert_eq!(written, value.as_bytes());
            }
        };
        check("bytes 0-4/10", Some((0..5, Some(10))));
        check("bytes 0-4/*", Some((0..5, None)));
        check("bytes 9-9/10", Some((9..10, Some(10))));
        for junk in [
            "",
            "bytes */10",
            "bytes 4-0/10",
            "bytes 0-10/10",
            "bytes 0-4",
            "bytes 0-/10",
            "bytes=0-4/10",
            "items 0-4/10",
            "bytes -4/10",
            "bytes 0-4/x",
            "bytes 0-4/10, 5-6/10",
            "bytes 0-4/ 10",
        ] {
            check(junk, None);
        }
    }

    #[test]
    fn a_part_serves_what_lies_inside_it() {
        let check = |part: &str, asked: &str, expect: Option<Range<u64>>| {
            let part = ContentRange::parse(part.as_bytes()).expect("a range");
            assert_eq!(
                part.serves(&RangeSpecs::parse(asked.as_bytes()).expect("specs")),
                expect,
                "{asked} of {part:?}"
            );
        };
        check("bytes 4-9/10", "bytes=-5", Some(5..10));
        check("bytes 4-9/10", "bytes=6-8", Some(6..9));
        check("bytes 4-9/10", "bytes=6-", Some(6..10));
        check("bytes 4-9/10", "bytes=3-8", None);
        check("bytes 0-4/10", "bytes=0-5", None);
        check("bytes 0-4/10", "bytes=0-1,3-4", None);
        check("bytes 0-4/*", "bytes=1-4", Some(1..5));
        check("bytes 0-4/*", "bytes=1-", None);
        check("bytes 0-4/*", "bytes=-1", None);
        assert!(ContentRange::parse(b"bytes 0-9/10").unwrap().is_whole());
        assert!(!ContentRange::parse(b"bytes 0-8/10").unwrap().is_whole());
    }

    /// RFC 9111 §3.4.
    #[test]
    fn parts_are_combined_only_under_one_strong_tag() {
        let check = |a: &str, b: &str, expect: bool| {
            assert_eq!(may_combine(fields(a).view(), fields(b).view()), expect, "{a} and {b}");
        };
        check("ETag: \"a\"", "ETag: \"a\"", true);
        check("ETag: \"a\"", "ETag: \"b\"", false);
        check("ETag: W/\"a\"", "ETag: W/\"a\"", false);
        check("ETag: a", "ETag: a", false);
        check("", "", false);
    }

    #[test]
    fn a_response_says_a_range_that_was_asked_for() {
        let check = |asked: &str, status: u16, said: &str, length: u64, expect: bool| {
            let head = ResponseHead { fields: fields(said), ..ResponseHead::new(Status(status)) };
            let found = is_asked_for(fields(asked).view(), head.response(), Some(length));
            assert_eq!(found, expect, "{asked} {status} {said} {length}");
        };
        check("Range: bytes=10-19", 206, "Content-Range: bytes 10-19/100", 10, true);
        check("Range: bytes=10-19", 206, "Content-Range: bytes 10-19/100", 40, false);
        check("Range: bytes=10-19", 206, "Content-Range: bytes 0-49/100", 50, false);
        check("Range: bytes=10-199", 206, "Content-Range: bytes 10-99/100", 90, true);
        check("Range: bytes=10-", 206, "Content-Range: bytes 10-99/100", 90, true);
        check("Range: bytes=10-19", 206, "Content-Range: bytes 10-20/100", 11, false);
        check("Range: bytes=-5", 206, "Content-Range: bytes 95-99/100", 5, true);
        check("Range: bytes=0-0", 206, "Content-Range: bytes */*", 1, false);
        check("Range: bytes=90-119", 416, "Content-Range: bytes */100", 0, true);
        check("", 416, "Content-Range: bytes */100", 0, false);
        check("", 200, "Content-Range: bytes 0-49/100", 50, false);
        check("", 200, "Content-Range: bytes=0-99/100", 100, false);
        check("", 200, "Content-Range: lines 1-2/3", 100, true);
        check("Range: bytes=10-19", 200, "", 100, true);
    }
}
