//! What is made of an answer that a program lets go: how long it lives, whether it is kept, and how it is stored.

use std::sync::Arc;

use cache::{Mark, MarkKind, Now, StoreAs, Ticket};
use message::{FieldName, FieldsView, ResponseHead};
use rules::date::parse_date;
use rules::{Facts, Lifetimes, VarySpec};
use wire::{HopByHop, ResponseBody};

use crate::fetch::arrival::Arrival;
use crate::fetch::body_filters::BodyFilters;
use crate::fetch::builtin_steps::vary;
use crate::fetch::fetch_policy::FetchVerdict;
use crate::fetch::fill::{Landing, Unkept};
use crate::fetch::notes::FetchNotes;
use crate::fetch::settled::{Keeping, Ruling, Settled, SettledBody};
use crate::fetch::{Fetch, slice_manifest};
use crate::limits::MARK_TTL_MIN_MS;
use crate::records::fetch_records;
use crate::response_tags;
use crate::stored_head;
use crate::vcl_story::log_notes::{self, DecidedBy, LifeBy};
use crate::vcl_story::scope_heads::MadeHead;

/// What is settled by vcl_backend_response, or vcl_backend_error.
pub(super) fn settled(
    fetch: &Fetch,
    made: MadeHead,
    (mut body, filters): (SettledBody, BodyFilters),
    pass_for: Option<f64>,
    arrival: Arrival,
) -> FetchVerdict {
    if let SettledBody::Origin(arriving) = &mut body {
        // What the origin said of it is not here any more: this is the program's.
        arriving.persistent &= !made.head.fields.view().has_token(FieldName::Connection, "close");
    }
    let task = fetch.task();
    let (mut lifetimes, mut by) = (task.lifetimes.get(), task.life_by.get());
    let keeping = if task.is_pass {
        by.uncacheable = Some(DecidedBy::Pass);
        Keeping::Not
    } else if let Some(seconds) = pass_for {
        lifetimes = Lifetimes { ttl_ms: (seconds * 1_000.0) as i64, grace_ms: 0, keep_ms: 0, ..lifetimes };
        by = LifeBy::VERDICT;
        Keeping::HitForPass
    } else if task.uncacheable.get() {
        Keeping::HitForMiss
    } else {
        // Even one without any time: who waited for it gets it, and nobody after them.
        let forbids = what_forbids(fetch, made.head.fields.view());
        by.uncacheable = forbids.map(DecidedBy::Response);
        Keeping::Store.unless(forbids.is_some())
    };
    record(fetch, (&body, &filters.names), pass_for, &lifetimes, (keeping, arrival.received));
    note_life(fetch, &lifetimes, &by, keeping);
    let why = match body {
        SettledBody::Made(_) => task.why_failed.get(),
        _ => "",
    };
    let is_too_long = is_too_long(fetch, &made.head, &body, keeping);
    let esi = filters.esi.filter(|_| !is_too_long);
    // What is looked through is whole first.
    let streams = is_too_long || task.do_stream.get() && esi.is_none();
    let ruling = Ruling::Program { keeping, lifetimes };
    FetchVerdict::Settled(Box::new(Settled { made, body, arrival, ruling, streams, why, esi, page: None }))
}

/// By what nothing can be selected or purged nothing is kept, and who comes next does not wait for it.
fn what_forbids(fetch: &Fetch, fields: FieldsView<'_>) -> Option<&'static str> {
    if vary(fields).is_err() {
        return Some("vary");
    }
    response_tags::of_response(&fetch.core.shared.cache, fields).is_err().then_some("xkey")
}

/// What is known to be longer than what is read without streaming, or kept in one piece, streams all the same.
fn is_too_long(fetch: &Fetch, head: &ResponseHead, body: &SettledBody, keeping: Keeping) -> bool {
    let Some(length) = body.length() else { return false };
    let is_sliced = || keeping == Keeping::Store && slice_manifest::is_to_be_sliced(fetch, head, length);
    length > fetch.site.settings.limits.object_bytes_max || is_sliced()
}

fn record(
    fetch: &Fetch,
    (body, filters): (&SettledBody, &str),
    pass_for: Option<f64>,
    lifetimes: &Lifetimes,
    (keeping, received): (Keeping, Now),
) {
    let Some(records) = fetch.records() else { return };
    if pass_for.is_some() {
        fetch_records::life(records, "HFP", lifetimes, true, received);
    }
    let framing = match body {
        SettledBody::Origin(arriving) => Some(arriving.framing),
        SettledBody::Stored { .. } => Some(ResponseBody::None),
        SettledBody::Made(_) | SettledBody::Read(_) => None,
    };
    fetch_records::body_begins(records, (framing, filters), fetch.task().do_stream.get(), keeping == Keeping::Store);
    if let SettledBody::Made(body) = body {
        records.count(|carried| carried.body_in += body.len() as u64);
        fetch_records::body_ended(records);
    }
}

/// For the request's log line, if there is one to be, and for who watches.
fn note_life(fetch: &Fetch, lifetimes: &Lifetimes, by: &LifeBy, keeping: Keeping) {
    let task = fetch.task();
    if task.log_notes.is_none() && fetch.core.watch.is_none() {
        return;
    }
    let life = log_notes::life(lifetimes, by, keeping, task.made_for.site.loaded.sources());
    if let Some(watch) = &fetch.core.watch {
        watch.settled(&life, task.is_background);
    }
    if let Some(notes) = &task.log_notes {
        notes.note_life(life);
    }
}

/// What is stored of it, or the mark that it leaves. Everybody gets the same head.
pub(super) fn landing(
    fetch: &Fetch,
    settled: &Settled,
    (keeping, lifetimes): (Keeping, Lifetimes),
    ticket: &mut Ticket,
    notes: Option<&FetchNotes>,
) -> Landing {
    let received = settled.arrival.received;
    if let Some(notes) = notes {
        notes.note_lifetimes(lifetimes);
        if !settled.why.is_empty() {
            notes.note_why(settled.why);
        }
    }
    // What its program made of the request is what the origin chose a variant by.
    ticket.asked_as(fetch.head.request().to_head());
    let head = Arc::new(stored(&settled.made.head, fetch.task().xid.get()));
    let rendered = stored_head::render_for_program(&head, &fetch.site);
    let fields = head.fields.view();
    let (vary, tags) = (vary(fields), response_tags::of_response(&fetch.core.shared.cache, fields));
    let vary = vary.ok().flatten();
    // Everybody is given what is stored, less its coding where that is not wanted.
    let gives_any_coding = fetch.site.settings.vcl.http_gzip_support;
    let vary = if gives_any_coding { vary.and_then(|vary| vary.without(FieldName::AcceptEncoding)) } else { vary };
    let kept = match keeping {
        Keeping::Store => Ok(StoreAs {
            facts: dates(&head, received),
            lifetimes: Some(lifetimes),
            vary,
            rendered,
            partial: None,
            whole: None,
            sliced: None,
            elsewhere: None,
            groups: None,
            tags: tags.ok().flatten(),
        }),
        _ => Err(Unkept {
            mark: mark(keeping, lifetimes, vary),
            is_kept: false,
            is_personal: false,
            why_not: None,
            rendered,
        }),
    };
    // An error that the program made for those who wait, and gives no life, leaves what is stored in its place.
    let supersedes = !matches!(settled.body, SettledBody::Made(_)) || lifetimes.ttl_ms > 0;
    Landing {
        shared_head: Arc::clone(&head),
        head,
        kept,
        uncacheable_ms: 0,
        supersedes,
        place: None,
        esi: settled.page.clone(),
    }
}

/// What a program says of a connection is about no other one, and the number in X-Varnish is that of the fetch.
fn stored(made: &ResponseHead, xid: u64) -> ResponseHead {
    let mut fields = HopByHop::end_to_end(made.fields.view());
    fields.retain(|field| !field.name_text.eq_ignore_ascii_case(b"x-varnish"));
    fields.push_named(b"X-Varnish", xid.to_string().as_bytes());
    fields.shrink();
    ResponseHead { fields, reason: made.reason.clone(), ..*made }
}

/// What the next requests for it meet.
fn mark(keeping: Keeping, lifetimes: Lifetimes, vary: Option<VarySpec>) -> Option<Mark> {
    let kind = match keeping {
        Keeping::HitForMiss => MarkKind::Miss,
        Keeping::HitForPass => MarkKind::Pass,
        Keeping::Store | Keeping::Not => return None,
    };
    // Without any ttl there would be no mark, and who is set free now would queue up behind one another again.
    let lifetimes = Lifetimes { ttl_ms: lifetimes.ttl_ms.max(MARK_TTL_MIN_MS), ..lifetimes };
    Some(Mark { kind, lifetimes, vary, tags: None })
}

/// The dates of a response, by which conditions are judged.
pub(crate) fn dates(head: &ResponseHead, received: Now) -> Facts {
    let now_s = (received.wall_ms / 1_000) as i64;
    let date_of = |name| head.fields.view().get(name).and_then(|text| parse_date(text, now_s));
    let date = date_of(FieldName::Date).unwrap_or(now_s);
    Facts { last_modified: date_of(FieldName::LastModified), date, ..Facts::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fetch::fetch_test_messages::{lines, response};

    #[test]
    fn what_is_stored_bears_the_number_of_its_fetch_and_nothing_of_a_connection() {
        let made = response(200, &["Connection: X-Hop", "X-Hop: 1", "X-Varnish: 7", "Content-Length: 5", "X-A: 1"]);
        assert_eq!(lines(&stored(&made, 9).fields), ["X-A: 1", "X-Varnish: 9"]);
    }

    #[test]
    fn only_what_is_not_to_be_stored_leaves_a_mark() {
        let check = |keeping, expect: Option<MarkKind>| {
            let mark = mark(keeping, Lifetimes { ttl_ms: 5_000, ..Lifetimes::default() }, None);
            assert_eq!(mark.map(|mark| (mark.kind, mark.lifetimes.ttl_ms)), expect.map(|kind| (kind, 5_000)));
        };
        check(Keeping::HitForMiss, Some(MarkKind::Miss));
        check(Keeping::HitForPass, Some(MarkKind::Pass));
        check(Keeping::Store, None);
        check(Keeping::Not, None);
    }

    #[test]
    fn a_mark_without_any_ttl_lasts_until_those_who_are_set_free_have_met_it() {
        let mark = mark(Keeping::HitForMiss, Lifetimes { ttl_ms: -1, ..Lifetimes::default() }, None);
        assert_eq!(mark.expect("there is one").lifetimes.ttl_ms, MARK_TTL_MIN_MS);
    }

    #[test]
    fn what_has_no_date_is_dated_by_its_arrival() {
        let now = Now { mono_ms: 0, wall_ms: 1_704_067_200_000, confirmed_from: 0 };
        let check = |lines: &[&str], expect: (Option<i64>, i64)| {
            let facts = dates(&response(200, lines), now);
            assert_eq!((facts.last_modified, facts.date), expect, "{lines:?}");
        };
        check(&[], (None, 1_704_067_200));
        let date = "Sun, 31 Dec 2023 00:00:00 GMT";
        check(&[&format!("Date: {date}"), &format!("Last-Modified: {date}")], (Some(1_703_980_800), 1_703_980_800));
        check(&["Date: yesterday"], (None, 1_704_067_200));
    }
}
