//! Deliver under a program: the head that answers the request goes through vcl_deliver, and what the program left of it
//! goes out, with conditions and ranges judged afterwards.
//!
//! The program decides neither on framing nor on keeping the connection, but a program that sets `Connection: close` is heard.

use cache::Now;
use message::{FieldName, Fields, ResponseHead, Status};
use rules::Facts;
use rules::conditions::Holder;
use rules::date::parse_date;
use wire::{HopByHop, has_length};

use crate::answer_body::AnswerBody;
use crate::fetch::program_answer;
use crate::stored_head::is_of_connection;
use crate::transaction::deliver::{self, Answer, Made, UnplannedAnswer, UnplannedFields};
use crate::transaction::{BeginIncluded, Step, Transaction};
use crate::vcl_story::scope_heads::{MadeHead, usual_reason};
use crate::vcl_story::stored_view::StoredView;
use crate::vcl_story::{client_steps, delivery_filters};

/// The answer as the program leaves it, or where it sends the request instead.
pub(crate) fn draft(tx: &mut Transaction, answer: Answer, begin: BeginIncluded) -> Result<UnplannedAnswer, Step> {
    let coded = delivery_filters::Coded::of(&answer);
    let (mut made, body, facts) = head_of(tx, answer)?;
    let body = delivery_filters::apply(tx, &mut made.head, body, &coded, begin)?;
    tx.persistent &= !made.head.fields.view().has_token(FieldName::Connection, "close");
    let holder = if facts.is_some() { Holder::Cache } else { Holder::Relay };
    let facts = facts.map(|stored| as_dated_by_program(stored, &made.head, tx.core.now()));
    let facts = facts.unwrap_or_else(|| program_answer::dates(&made.head, tx.core.now()));
    let ResponseHead { status, reason, mut fields, .. } = made.head;
    let length_said = deliver::length_said(fields.view());
    // Its Connection is not what goes out, so nothing would say that these are of one connection.
    HopByHop::drop_nominated(&mut fields);
    fields.retain(|field| !is_of_connection(field.name));
    Ok(UnplannedAnswer {
        status,
        reason: reason.or_else(|| (status.reason().is_empty()).then(|| usual_reason(status.0).into())),
        fields: UnplannedFields::Own(fields),
        ours: Fields::default(),
        body,
        facts,
        holder,
        rules: tx.plan_rules(),
        length_said,
    })
}

/// As in Varnish, If-Modified-Since is judged by the Last-Modified that the program left, and by what is stored where it left
/// none. To one that is no date everybody gets the whole.
fn as_dated_by_program(stored: Facts, head: &ResponseHead, now: Now) -> Facts {
    let now_s = (now.wall_ms / 1_000) as i64;
    let said = head.fields.view().get(FieldName::LastModified);
    let last_modified = said.map(|text| parse_date(text, now_s).unwrap_or(i64::MAX)).or(stored.last_modified);
    Facts { last_modified, ..stored }
}

/// The head as the program leaves it, and the body behind it. The facts are those of what is stored.
fn head_of(tx: &mut Transaction, answer: Answer) -> Result<(MadeHead, AnswerBody, Option<Facts>), Step> {
    let now = tx.core.now();
    match answer {
        Answer::Stored { object, why, slices } => {
            let head = object.response().to_head();
            let fetched_by = (!why.is_brought()).then(|| fetched_by(&head)).flatten();
            let mut fields = head.fields.clone();
            add_what_deliver_sees(tx, &mut fields, &head, fetched_by, object.age_s(now), Some(object.length()));
            accept_ranges(tx, &mut fields, &head);
            let view = StoredView::of(&object, now);
            let made = client_steps::deliver(tx, Some(view), head.status.0, head.reason.as_deref(), &fields)?;
            let facts = object.facts();
            Ok((made, AnswerBody::Object { object, leased: tx.leased.clone(), slices }, Some(facts)))
        }
        Answer::Followed { head, length, follower, facts, received, page } => {
            let mut fields = HopByHop::end_to_end(head.fields.view());
            let resident_ms = now.mono_ms.saturating_sub(received.mono_ms);
            let age_s = match &facts {
                Some(facts) => facts.age_ms(resident_ms) / 1_000,
                None => age_said(tx, &fields),
            };
            // Who waited for somebody else's fetch has hit what that brought.
            let fetched_by = if follower.is_leader() { None } else { fetched_by(&head) };
            add_what_deliver_sees(tx, &mut fields, &head, fetched_by, age_s, length);
            accept_ranges(tx, &mut fields, &head);
            note_streaming(tx, follower.is_under_way());
            let hits = follower.hits();
            let view = StoredView { hits, ..arrived(tx, &head, facts.as_ref(), resident_ms) };
            let view = view.with_page(page.as_deref());
            let made = client_steps::deliver(tx, Some(view), head.status.0, head.reason.as_deref(), &fields)?;
            Ok((made, AnswerBody::Follower { follower, length }, facts))
        }
        Answer::Origin { head, body } => {
            let length = body.length().filter(|_| !body.is_none());
            let mut fields = HopByHop::end_to_end(head.fields.view());
            let age_s = age_said(tx, &fields);
            let length_said = head.fields.view().get(FieldName::ContentLength).and_then(number);
            add_what_deliver_sees(tx, &mut fields, &head, passed_by(tx), age_s, length.or(length_said));
            note_streaming(tx, !body.is_none());
            let view = arrived(tx, &head, None, 0);
            let made = client_steps::deliver(tx, Some(view), head.status.0, head.reason.as_deref(), &fields)?;
            Ok((made, AnswerBody::Origin(body), None))
        }
        Answer::Made(Made { made, body, is_final: true, .. }) => Ok((made, AnswerBody::Bytes(body), None)),
        Answer::Made(Made { made, body, page, .. }) => {
            let mut fields = made.head.fields.clone();
            let age_s = age_said(tx, &fields);
            add_what_deliver_sees(tx, &mut fields, &made.head, passed_by(tx), age_s, Some(body.len() as u64));
            let view = arrived(tx, &made.head, None, 0).with_page(page.as_deref());
            let made = client_steps::deliver(tx, Some(view), made.status, made.head.reason.as_deref(), &fields)?;
            Ok((made, AnswerBody::Bytes(body), None))
        }
        Answer::Synth(_) | Answer::Piped(_) => unreachable!("these go by vcl_deliver"),
        Answer::File(_) | Answer::ErrorPage { .. } => unreachable!("a program knows no roots"),
        Answer::Item(_) => unreachable!("a program knows no memcached"),
    }
}

/// For `resp.is_streaming`.
fn note_streaming(tx: &Transaction, is_streaming: bool) {
    if let Some(state) = tx.policy.program() {
        state.is_streaming.set(is_streaming);
    }
}

/// The fetch that stored it.
fn fetched_by(head: &ResponseHead) -> Option<u64> {
    number(head.fields.view().get_all_named(b"x-varnish").next()?)
}

/// As in Varnish, who passes a hit names two transactions, of which the second is the pass.
fn passed_by(tx: &Transaction) -> Option<u64> {
    tx.policy.program().filter(|state| state.passes_hit.get()).and_then(|state| state.passed_by.get())
}

fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// `obj` of an answer that the request itself caused, so long after its head came.
fn arrived<'h>(tx: &Transaction, head: &'h ResponseHead, facts: Option<&Facts>, resident_ms: u64) -> StoredView<'h> {
    let view = StoredView::arriving(head, facts);
    let brought = tx.policy.program().and_then(|state| state.brought.get());
    let lifetimes = brought.unwrap_or(view.lifetimes).after(resident_ms);
    StoredView { lifetimes, resident_ms, ..view }
}

/// What the origin said, whatever the program made of the field.
fn age_said(tx: &Transaction, fields: &Fields) -> u64 {
    let brought = tx.policy.program().and_then(|state| state.brought.get());
    let said_now = || fields.view().get(FieldName::Age).and_then(number).unwrap_or(0);
    brought.map_or_else(said_now, |lifetimes| lifetimes.age_ms / 1_000)
}

/// What the program sees beside the answer's own fields.
fn add_what_deliver_sees(
    tx: &Transaction,
    fields: &mut Fields,
    head: &ResponseHead,
    fetched_by: Option<u64>,
    age_s: u64,
    length: Option<u64>,
) {
    fields.retain(|field| {
        let is_ours = matches!(field.name, FieldName::Age | FieldName::ContentLength | FieldName::Via);
        !is_ours && !field.name_text.eq_ignore_ascii_case(b"x-varnish")
    });
    for via in head.fields.view().get_all(FieldName::Via) {
        fields.push(FieldName::Via, via);
    }
    client_steps::add_ours(tx, fields, head.version, fetched_by, age_s);
    if let Some(length) = length.filter(|_| has_length(head.status)) {
        fields.push(FieldName::ContentLength, length.to_string());
    }
}

/// Of what did not go past the store any part can be asked for, kept or not.
fn accept_ranges(tx: &Transaction, fields: &mut Fields, head: &ResponseHead) {
    if tx.site.settings.vcl.http_range_support && head.status == Status::OK {
        fields.set(FieldName::AcceptRanges, "bytes");
    }
}
