//! The first half of an exchange, whoever the client is: a request that has been received is answered at once, or becomes a
//! transaction with its first step.

use std::rc::Rc;

use wire::ReceivedRequest;

use crate::clock::Moment;
use crate::core::Core;
use crate::forward::admission;
use crate::instant_answer::InstantOutcome;
use crate::instant_file;
use crate::instant_hit;
use crate::parsed_request::ParsedRequest;
use crate::receive::{self, OfScripts, Verdict};
use crate::request_source::{Opened, RequestSource};
use crate::transaction::transaction_states::State;
use crate::vcl_story::program_request;

/// Answers the request, or says how it goes on.
#[inline]
pub(crate) fn open<S: RequestSource>(
    core: &Rc<Core>,
    source: &mut S,
    received: ReceivedRequest<'_>,
    moment: Moment,
) -> Opened {
    core.counters.requests.add(1);
    let site = core.site_ref();
    let asker = source.asker();
    let asks_proxy = asker.asks_proxy();
    let rewritten = receive::rewritten_fields(&site, &asker, &received.request);
    let mut received = received;
    if !asks_proxy {
        receive::at_origin(&mut received.request, rewritten.as_ref());
        if let Some(program) = site.vcl.clone() {
            return program_request::open(core, source, &received, program, moment);
        }
    }
    let trimmed = receive::trimmed(&site.settings, &received);
    if let Some(query) = &trimmed {
        received.request.query = (!query.is_empty()).then_some(query);
    }
    let found = match asks_proxy {
        false => receive::run(core, &site, &mut received, &asker),
        true => admission::run(core, &site, &mut received, asker.peer),
    };
    let (tls, is_early) = (asker.tls_facts(), asker.is_early());
    let persistent = source.begins_exchange(core, &site, &received);
    let (seen, client) = (found.seen, found.client);
    let parsed = ParsedRequest { received: &received, seen, client, persistent, tls, moment };
    let (outcome, key) = match (&found.verdict, source.at_once()) {
        (Verdict::Lookup(key), Some(client)) if is_early => {
            let stored = instant_hit::of_stored(client, core, &site, &parsed, *key);
            (stored.unwrap_or_else(|| InstantOutcome::begins(&found.verdict)), Some(*key))
        }
        (Verdict::Lookup(key), Some(client)) => {
            core.edges.take(State::Receive, State::Lookup);
            (instant_hit::run(client, core, &site, &parsed, (*key, found.backend)), Some(*key))
        }
        (Verdict::Files(root), Some(client)) => (instant_file::run(client, core, &site, &parsed, *root, false), None),
        (Verdict::Scripts(root, of), at_once) => {
            let key = if let OfScripts::Lookup(key) = of { Some(*key) } else { None };
            let outcome = match (key, at_once) {
                (Some(key), Some(client)) if !is_early => {
                    instant_file::of_scripts(client, core, &site, &parsed, *root, (key, found.backend))
                }
                _ => InstantOutcome::begins(&found.verdict),
            };
            (outcome, key)
        }
        (verdict, _) => (InstantOutcome::begins(verdict), None),
    };
    match outcome {
        InstantOutcome::Answered { persistent } => Opened::answered(persistent, &received),
        InstantOutcome::Step((state, step, outcome)) => {
            Opened::Begun(parsed.builtin(core, &found, (state, key, outcome)), step)
        }
    }
}
