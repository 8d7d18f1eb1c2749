//! The first half of an exchange, whoever the client is: a request that has been received is answered at once, or becomes a
//! transaction with its first step.

use std::rc::Rc;
use std::sync::Arc;

use message::Request;
use wire::ReceivedRequest;

use crate::asker::Asker;
use crate::client_identity::ClientIdentity;
use crate::clock::Moment;
use crate::core::Core;
use crate::field_set::FieldSet;
use crate::forward::admission;
use crate::instant_answer::InstantOutcome;
use crate::instant_file;
use crate::instant_hit;
use crate::parsed_request::ParsedRequest;
use crate::receive::{self, OfScripts, Received, Verdict};
use crate::request_source::{Opened, RequestSource};
use crate::route_rules::rewritten_request::RewritingRoom;
use crate::route_rules::route_verdict::{self, FirstWord, RouteQuestion, RouteVerdict};
use crate::settings::RouteTarget;
use crate::site::Site;
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
    let fields_at_origin = receive::fields_at_origin(&site, &asker, &received);
    let mut room = core.room_to_rewrite();
    let (mut received, mut came) = (received, None);
    let found = match asker.asks_proxy() {
        true => admission::run(core, &site, &mut received, asker.peer),
        false => {
            receive::at_origin(&mut received.request, fields_at_origin.as_ref());
            let (mut seen, client, ruling) = ruled(core, &site, &asker, (&mut received, moment), &mut room);
            let rewritten = room.rewritten().filter(|rewritten| rewritten.changes_anything());
            // Kept for who is to know what was asked: the access log, the parts of a page, a service that is asked.
            let is_cut = rewritten.is_some_and(|rewritten| rewritten.cuts_query());
            if is_cut || rewritten.is_some() && site.is_esi_surrogate || site.has_services && ruling.first.is_some() {
                came = Some(received.request.clone());
            }
            if rewritten.is_some_and(|rewritten| rewritten.put_into(&mut received.request)) {
                seen = FieldSet::of(received.request.fields);
            }
            if let Some(program) = site.program.clone().filter(|_| is_program_s(&site, &ruling)) {
                return program_request::open(
                    core,
                    source,
                    (&received, came.as_ref()),
                    program,
                    ((seen, client, ruling), moment),
                );
            }
            receive::judge(core, &site, &received, (seen, client), ruling)
        }
    };
    begin(core, source, &site, (&received, came.as_ref()), (found, moment))
}

/// Who asks a server, and what the words of the route say of that.
#[inline]
pub(crate) fn ruled(
    core: &Core,
    site: &Site,
    asker: &Asker<'_>,
    (received, moment): (&mut ReceivedRequest<'_>, Moment),
    room: &mut RewritingRoom<'_>,
) -> (FieldSet, ClientIdentity, RouteVerdict) {
    let (seen, mut client) = match site.program {
        None => receive::who_asks(site, received, asker.peer),
        Some(_) => receive::who_asks_program(site, received, asker.peer),
    };
    let ruling = match receive::settled(core, asker, &received.request) {
        Some(synth) => RouteVerdict::settled(synth),
        None => {
            let asked = RouteQuestion { received, seen, client: &client, moment, page: None };
            route_verdict::of_request(core, site, &asked, room)
        }
    };
    client.is_user = ruling.is_user;
    (seen, client, ruling)
}

/// Does a program decide what becomes of it? Not where the route itself does.
pub(crate) fn is_program_s(site: &Site, ruling: &RouteVerdict) -> bool {
    let target = ruling.route.map(|route| site.routes.at(route).target);
    let is_answered = match ruling.first {
        Some(FirstWord::Answer(_)) => !ruling.is_settled,
        Some(FirstWord::Admit { ref then, .. }) => then.is_some(),
        None => false,
    };
    !is_answered && matches!(target, None | Some(RouteTarget::Origin(_)))
}

#[inline]
pub(crate) fn begin<S: RequestSource>(
    core: &Rc<Core>,
    source: &mut S,
    site: &Arc<Site>,
    (received, came): (&ReceivedRequest<'_>, Option<&Request<'_>>),
    (found, moment): (Received, Moment),
) -> Opened {
    let asker = source.asker();
    let (tls, is_early) = (asker.tls_facts(), asker.is_early());
    let persistent = source.begins_exchange(core, site, received);
    let (seen, client, routed) = (found.seen, found.client, found.routed);
    let parsed = ParsedRequest { received, came, seen, client, persistent, tls, moment, route: routed.route };
    let (outcome, key) = match (&found.verdict, source.at_once()) {
        (Verdict::Lookup(key), Some(client)) if is_early => {
            let stored = instant_hit::of_stored(client, core, site, &parsed, (*key, routed));
            (stored.unwrap_or_else(|| InstantOutcome::begins(&found.verdict)), Some(*key))
        }
        (Verdict::Lookup(key), Some(client)) => {
            core.edges.take(State::Receive, State::Lookup);
            (instant_hit::run(client, core, site, &parsed, (*key, routed)), Some(*key))
        }
        (Verdict::Files(root), Some(client)) => {
            (instant_file::run(client, core, site, &parsed, (*root, routed), false), None)
        }
        (Verdict::Scripts(root, of), at_once) => {
            let key = if let OfScripts::Lookup(key) = of { Some(*key) } else { None };
            let outcome = match (key, at_once) {
                (Some(key), Some(client)) if !is_early => {
                    instant_file::of_scripts(client, core, site, &parsed, *root, (key, routed))
                }
                _ => InstantOutcome::begins(&found.verdict),
            };
            (outcome, key)
        }
        (verdict, _) => (InstantOutcome::begins(verdict), None),
    };
    match outcome {
        InstantOutcome::Answered { persistent } => Opened::answered(persistent, received),
        InstantOutcome::Step((state, step, outcome)) => {
            Opened::Begun(parsed.builtin(core, &found, (state, key, outcome)), step)
        }
    }
}
