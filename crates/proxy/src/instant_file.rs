//! The fast way of a file: when it is in the table of open files and nothing is asked of it but the whole, it is answered
//! like a hit, synchronously over the borrowed head. Everything else is a transaction in the state Files.

use std::rc::Rc;
use std::sync::Arc;

use cache::{Key, Now};
use message::Status;

use crate::core::Core;
use crate::head_form::{CONTENT_LENGTH, DATE, HeadForm};
use crate::instant_answer::{BegunStep, HitResponse, InstantClient, InstantHead, InstantOutcome};
use crate::instant_hit;
use crate::parsed_request::ParsedRequest;
use crate::site::{Routed, Site};
use crate::static_files::open_file_table::KnownFile;
use crate::stored_head;
use crate::transaction::transaction_states::State;
use crate::transaction::{Outcome, Step};

/// Answers with a file of this root if that can be done at once.
#[inline]
pub(crate) fn run<C: InstantClient>(
    client: &mut C,
    core: &Core,
    site: &Site,
    parsed: &ParsedRequest<'_>,
    (root, routed): (usize, Routed),
    is_lookup: bool,
) -> InstantOutcome<BegunStep> {
    let request = &parsed.received.request;
    let go_on = |file| InstantOutcome::Step((State::Receive, Step::Files { root, file, is_lookup }, Outcome::NONE));
    // What lies in files needs nobody's word.
    let now = Now::from(core.clock().at(parsed.moment));
    let file = match site.files.table.get(root, request.path, now.mono_ms) {
        KnownFile::Current(file) if !parsed.is_conditional() => file,
        known => return go_on(known),
    };
    let file = file.chosen(request.fields);
    let edits = site.answer_fields_of(routed);
    if edits.is_some_and(|edits| !edits.leave_all_of(file.head().fields.view())) {
        return go_on(KnownFile::Nothing);
    }
    core.edges.take(State::Receive, State::Files);
    core.edges.take(State::Files, State::Deliver);
    let mut tail = core.tail.borrow_mut();
    tail.clear();
    C::Form::field(&mut tail, DATE, &stored_head::date(now));
    C::Form::number(&mut tail, CONTENT_LENGTH, file.length());
    stored_head::write_end::<C::Form>(&mut tail, site, (Status::OK, file.head().fields.view()), (parsed, edits));
    client.send(core, site, &HitResponse::to(parsed), file, InstantHead::Stored { tail: &tail })
}

/// The same beneath a root with scripts: what one of them has answered and is fresh, or a file.
#[inline(never)]
pub(crate) fn of_scripts<C: InstantClient>(
    client: &mut C,
    core: &Rc<Core>,
    site: &Arc<Site>,
    parsed: &ParsedRequest<'_>,
    root: usize,
    (key, routed): (Key, Routed),
) -> InstantOutcome<BegunStep> {
    match instant_hit::of_fresh(client, core, site, parsed, (key, routed)) {
        Some(answered) => answered,
        None => run(client, core, site, parsed, (root, routed), true),
    }
}
