//! What of a representation answers a request: the whole, its head alone, a part, several, or a refusal. The one place that
//! puts conditions, ranges and the method together, whatever holds the representation and whoever decides about the request.

use std::ops::Range;

use cache::{Object, Part};
use message::{FieldName, Method, Request, Response, Status};
use rules::Facts;
use rules::conditions::{self, Holder, Outcome};
use rules::range::{self, RangeSpecs, Ranges};

use crate::field_set::FieldSet;

/// What is sent of a representation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AnswerPlan {
    Whole,
    /// The head that the whole would have: to HEAD.
    HeadOnly,
    /// 304.
    NotModified,
    /// 412, of what is our own.
    PreconditionFailed,
    /// 206 with Content-Range. Ranges count from the start of the complete body.
    Part(Range<u64>),
    /// 206 as multipart/byteranges.
    Parts(Vec<Range<u64>>),
    /// 416: no part of so many bytes is what was asked for.
    Unsatisfiable {
        length: u64,
    },
}

/// A representation, as far as a plan depends on it.
#[derive(Clone, Copy)]
pub(crate) struct Representation<'a> {
    pub(crate) head: Response<'a>,
    pub(crate) facts: &'a Facts,
    pub(crate) holder: Holder,
    /// Bytes of the complete body; `None` while nobody knows.
    pub(crate) length: Option<u64>,
    /// Of the body no more is held than this.
    pub(crate) part: Option<Part>,
    pub(crate) access: Access,
}

/// How the bytes of a representation can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Any of them at any time, so several ranges can be sent.
    Random,
    /// Once, in order.
    InOrder,
    /// They are an origin's answer to this very request, and passed on as they come. By RFC 9110 the origin has heard the request's
    /// conditions and ranges itself.
    PassedOn,
}

impl<'a> Representation<'a> {
    /// A stored response, with these facts.
    #[inline]
    pub(crate) fn stored(object: &'a Object, facts: &'a Facts) -> Representation<'a> {
        Representation {
            head: object.response(),
            facts,
            holder: Holder::Cache,
            length: Some(object.length()),
            part: object.partial(),
            access: Access::Random,
        }
    }
}

/// Whose rules a plan follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlanRules {
    /// RFC 9110 §13 and §14.
    Rfc,
    /// Varnish's, under a program. Nothing is planned of another status than 200, and a weak validator is none where a part is
    /// asked for.
    Varnish {
        /// Parameter `http_range_support`.
        honours_ranges: bool,
        /// A range that means nothing is 416, where RFC 9110 §14.2 would have it ignored.
        refuses_meaningless: bool,
    },
}

/// Conditions first, then the method, then ranges (RFC 9110 §13.2.2, §14.2). `head_only`: the client asked with HEAD, which
/// a program may have made another method of.
pub(crate) fn plan(
    request: &Request<'_>,
    seen: FieldSet,
    head_only: bool,
    held: Representation<'_>,
    rules: PlanRules,
) -> AnswerPlan {
    let whole = if head_only { AnswerPlan::HeadOnly } else { AnswerPlan::Whole };
    let is_plain = matches!(request.method, Method::Get | Method::Head) && held.head.status == Status::OK;
    let is_judged = match rules {
        PlanRules::Rfc => held.access != Access::PassedOn,
        PlanRules::Varnish { .. } => is_plain,
    };
    if !is_judged {
        return whole;
    }
    match conditions::evaluate(request, held.head, held.facts, held.holder) {
        Outcome::NotModified if !asks_for_part_of_weak(request, held.head, rules) => return AnswerPlan::NotModified,
        // Of what somebody else holds the origin has said already what it thinks of the condition.
        Outcome::PreconditionFailed if held.holder == Holder::Origin => return AnswerPlan::PreconditionFailed,
        _ => {}
    }
    if head_only {
        // A range is of content, and HEAD has none (RFC 9110 §14.2).
        return whole;
    }
    if let Some(part) = held.part {
        let wanted = RangeSpecs::of(request.fields).and_then(|specs| part.holds(specs.single()?));
        return AnswerPlan::Part(wanted.expect("the store gives a part only to who wants what it holds"));
    }
    let honours_ranges = match rules {
        PlanRules::Rfc => true,
        PlanRules::Varnish { honours_ranges, .. } => honours_ranges,
    };
    let has_parts = honours_ranges && held.access != Access::PassedOn && seen.has(FieldName::Range);
    let Some(length) = held.length.filter(|_| has_parts) else { return whole };
    match range::wanted(request, held.head, held.facts, length) {
        Ranges::Whole if is_refused_as_meaningless(request, seen, rules) => AnswerPlan::Unsatisfiable { length },
        Ranges::Whole => whole,
        Ranges::One(range) => AnswerPlan::Part(range),
        Ranges::Many(ranges) if held.access == Access::Random => AnswerPlan::Parts(ranges),
        // The whole is always allowed (RFC 9110 §14.2).
        Ranges::Many(_) => whole,
        Ranges::Unsatisfiable => AnswerPlan::Unsatisfiable { length },
    }
}

/// Varnish takes a weak validator for none where a part is asked for.
fn asks_for_part_of_weak(request: &Request<'_>, held: Response<'_>, rules: PlanRules) -> bool {
    let PlanRules::Varnish { honours_ranges: true, .. } = rules else { return false };
    let is_weak = |tag: &[u8]| tag.starts_with(b"W/");
    let fields = request.fields;
    let held_is_weak = held.fields.get(FieldName::Etag).is_some_and(is_weak);
    let asked_is_weak = fields.get(FieldName::IfNoneMatch).is_some_and(is_weak);
    fields.contains(FieldName::Range) && fields.contains(FieldName::IfNoneMatch) && (held_is_weak || asked_is_weak)
}

/// One range is asked for in a way that means nothing. With HEAD it is not heard at all.
fn is_refused_as_meaningless(request: &Request<'_>, seen: FieldSet, rules: PlanRules) -> bool {
    let asks_for_one = |range: &[u8]| !range.contains(&b',');
    matches!(rules, PlanRules::Varnish { refuses_meaningless: true, .. })
        && request.method == Method::Get
        && !seen.has(FieldName::IfRange)
        && request.fields.get(FieldName::Range).is_some_and(asks_for_one)
}

#[cfg(test)]
mod tests {
    use message::{Authority, Fields, ResponseHead, Scheme, TargetForm, Version};

    use super::*;

    const VARNISH: PlanRules = PlanRules::Varnish { honours_ranges: true, refuses_meaningless: false };
    const VARNISHD: PlanRules = PlanRules::Varnish { honours_ranges: true, refuses_meaningless: true };

    fn fields(lines: &str) -> Fields {
        let mut fields = Fields::default();
        for (name, value) in lines.lines().filter_map(|line| line.split_once(": ")) {
            fields.push_named(name.as_bytes(), value.as_bytes());
        }
        fields
    }

    /// A request, and a representation of ten bytes or of unknown length.
    struct Case {
        method: Method,
        asked: Fields,
        held: ResponseHead,
        holder: Holder,
        length: Option<u64>,
        access: Access,
    }

    impl Case {
        fn new(asked: &str, held: &str) -> Case {
            let mut head = ResponseHead::new(Status(200));
            head.fields = fields(held);
            Case {
                method: Method::Get,
                asked: fields(asked),
                held: head,
                holder: Holder::Cache,
                length: Some(10),
                access: Access::Random,
            }
        }

        fn plan(&self, rules: PlanRules) -> AnswerPlan {
            let request = Request {
                method: self.method,
                method_text: if self.method == Method::Head { b"HEAD" } else { b"GET" },
                version: Version::Http11,
                form: TargetForm::Origin,
                scheme: Scheme::Http,
                authority: Authority::EMPTY,
                path: b"/",
                query: None,
                fields: self.asked.view(),
            };
            let held = Representation {
                head: self.held.response(),
                facts: &Facts::default(),
                holder: self.holder,
                length: self.length,
                part: None,
                access: self.access,
            };
            plan(&request, FieldSet::of(self.asked.view()), self.method == Method::Head, held, rules)
        }

        /// The same by both rules.
        fn check(&self, expect: &AnswerPlan) {
            for rules in [PlanRules::Rfc, VARNISH] {
                assert_eq!(&self.plan(rules), expect, "{rules:?} {:?}", self.asked);
            }
        }
    }

    fn check(asked: &str, held: &str, expect: AnswerPlan) {
        Case::new(asked, held).check(&expect);
    }

    #[test]
    fn nothing_asked_of_it_is_the_whole() {
        check("", "ETag: \"a\"", AnswerPlan::Whole);
    }

    #[test]
    fn head_is_the_head_of_the_whole_whatever_range_it_names() {
        for asked in ["", "Range: bytes=0-1", "Range: bytes=99-"] {
            Case { method: Method::Head, ..Case::new(asked, "") }.check(&AnswerPlan::HeadOnly);
        }
    }

    #[test]
    fn a_matching_tag_is_304_to_get_and_head() {
        let asked = "If-None-Match: \"a\"";
        check(asked, "ETag: \"a\"", AnswerPlan::NotModified);
        Case { method: Method::Head, ..Case::new(asked, "ETag: \"a\"") }.check(&AnswerPlan::NotModified);
        check(asked, "ETag: \"b\"", AnswerPlan::Whole);
    }

    #[test]
    fn a_condition_goes_before_a_range() {
        check("If-None-Match: \"a\"\nRange: bytes=0-1", "ETag: \"a\"", AnswerPlan::NotModified);
    }

    #[test]
    fn one_range_several_and_none_that_is_there() {
        check("Range: bytes=2-4", "", AnswerPlan::Part(2..5));
        check("Range: bytes=0-1,4-5", "", AnswerPlan::Parts(vec![0..2, 4..6]));
        check("Range: bytes=10-", "", AnswerPlan::Unsatisfiable { length: 10 });
    }

    #[test]
    fn several_ranges_of_what_comes_once_are_the_whole() {
        let case = Case { access: Access::InOrder, ..Case::new("Range: bytes=0-1,4-5", "") };
        case.check(&AnswerPlan::Whole);
    }

    #[test]
    fn what_an_origin_answers_to_this_request_is_judged_by_varnish_alone_and_never_cut() {
        let mut case = Case { access: Access::PassedOn, ..Case::new("If-None-Match: \"a\"", "ETag: \"a\"") };
        assert_eq!(case.plan(PlanRules::Rfc), AnswerPlan::Whole);
        assert_eq!(case.plan(VARNISH), AnswerPlan::NotModified);
        case.asked = fields("Range: bytes=0-1");
        case.check(&AnswerPlan::Whole);
    }

    #[test]
    fn of_unknown_length_no_part_is_planned() {
        Case { length: None, ..Case::new("Range: bytes=0-1", "") }.check(&AnswerPlan::Whole);
    }

    #[test]
    fn a_failed_precondition_is_said_of_what_is_ours_alone() {
        let asked = "If-Match: \"b\"";
        let of = |holder| Case { holder, ..Case::new(asked, "ETag: \"a\"") }.plan(PlanRules::Rfc);
        assert_eq!(of(Holder::Origin), AnswerPlan::PreconditionFailed);
        assert_eq!(of(Holder::Cache), AnswerPlan::Whole);
        assert_eq!(of(Holder::Relay), AnswerPlan::Whole);
    }

    #[test]
    fn varnish_plans_nothing_of_another_status_than_200() {
        let mut case = Case::new("If-None-Match: \"a\"", "ETag: \"a\"");
        case.held.status = Status(203);
        assert_eq!(case.plan(PlanRules::Rfc), AnswerPlan::NotModified);
        assert_eq!(case.plan(VARNISH), AnswerPlan::Whole);
    }

    #[test]
    fn varnish_takes_a_weak_tag_for_none_where_a_part_is_asked_for() {
        let case = Case::new("If-None-Match: W/\"a\"\nRange: bytes=0-1", "ETag: W/\"a\"");
        assert_eq!(case.plan(PlanRules::Rfc), AnswerPlan::NotModified);
        assert_eq!(case.plan(VARNISH), AnswerPlan::Part(0..2));
        let off = PlanRules::Varnish { honours_ranges: false, refuses_meaningless: false };
        assert_eq!(case.plan(off), AnswerPlan::NotModified);
    }

    #[test]
    fn a_range_that_means_nothing_is_ignored_or_refused_in_place_of_varnishd() {
        let case = Case::new("Range: bytes=3-1", "");
        case.check(&AnswerPlan::Whole);
        assert_eq!(case.plan(VARNISHD), AnswerPlan::Unsatisfiable { length: 10 });
        let guarded = Case::new("Range: bytes=3-1\nIf-Range: \"a\"", "");
        assert_eq!(guarded.plan(VARNISHD), AnswerPlan::Whole);
        let several = Case::new("Range: bytes=3-1,0-0", "");
        assert_eq!(several.plan(VARNISHD), AnswerPlan::Whole);
    }

    #[test]
    fn without_range_support_there_are_no_parts() {
        let off = PlanRules::Varnish { honours_ranges: false, refuses_meaningless: true };
        assert_eq!(Case::new("Range: bytes=0-1", "").plan(off), AnswerPlan::Whole);
    }
}
