//! A request under a program: answered at once if the program and the store agree, else copied into a transaction. What
//! `exchange_opening` does for the built-in policy, with the program's words in between.

use std::rc::Rc;
use std::sync::Arc;

use message::{FieldName, Method, Request};
use wire::ReceivedRequest;

use crate::client_identity::ClientIdentity;
use crate::clock::Moment;
use crate::core::Core;
use crate::field_set::FieldSet;
use crate::instant_answer::InstantOutcome;
use crate::parsed_request::ParsedRequest;
use crate::receive::{self, Verdict};
use crate::records::request_records;
use crate::request_source::{Opened, RequestSource};
use crate::route_rules::route_verdict::{FirstWord, RouteVerdict};
use crate::settings::ListenMode;
use crate::site::{Routed, Site};
use crate::transaction::Step;
use crate::transaction::admit::{Door, Unverified};
use crate::vcl_site::VclSite;
use crate::vcl_story::client_state::ClientState;
use crate::vcl_story::program_at_once::{self, OnItsWay};
use crate::vcl_story::{builtin_hit, xids};

/// Answers the request, or says how it goes on.
pub(crate) fn open<S: RequestSource>(
    core: &Rc<Core>,
    source: &mut S,
    (received, came): (&ReceivedRequest<'_>, Option<&Request<'_>>),
    program: Arc<VclSite>,
    ruled: Ruled,
) -> Opened {
    if received.expects_continue && core.site_ref().settings.as_varnishd {
        return open_expecting(core, source, (received, came), program, ruled);
    }
    open_as_it_is(core, source, (received, came, None), program, ruled)
}

/// Who asks, what the route of the request says of it, and when.
type Ruled = ((FieldSet, ClientIdentity, RouteVerdict), Moment);

/// In place of varnishd 100 is ours to say: no program sees that it is waited for, and no origin.
#[cold]
fn open_expecting<S: RequestSource>(
    core: &Rc<Core>,
    source: &mut S,
    (received, came): (&ReceivedRequest<'_>, Option<&Request<'_>>),
    program: Arc<VclSite>,
    ruled: Ruled,
) -> Opened {
    let fields = receive::without_expect(&received.request);
    let expected = received.request.fields.get(FieldName::Expect);
    let request = Request { fields: fields.view(), ..received.request.clone() };
    let received = ReceivedRequest { request, ..received.clone() };
    open_as_it_is(core, source, (&received, came, expected), program, ruled)
}

fn open_as_it_is<S: RequestSource>(
    core: &Rc<Core>,
    source: &mut S,
    (received, came, expected): (&ReceivedRequest<'_>, Option<&Request<'_>>, Option<&[u8]>),
    program: Arc<VclSite>,
    ((seen, client, ruling), moment): Ruled,
) -> Opened {
    let site = core.site();
    // What follows a CONNECT may be meant for whom it asked for, and is no request to us.
    let persistent = source.begins_exchange(core, &site, received) && received.request.method != Method::Connect;
    let first = first_step(&site, received, seen, &ruling);
    let routed = Routed { route: ruling.route, ..Routed::default() };
    // What a program does is no answer of the store alone: it waits for the end of the handshake.
    let (tls, is_early) = (source.asker().tls_facts(), source.asker().is_early());
    let parsed = ParsedRequest { received, came, seen, client, persistent, tls, moment, route: routed.route };
    let xid = xids::next(&core.xids);
    let is_refresh = matches!(source.asker().mode, ListenMode::Within { refreshes: true, .. });
    // The first records are the same whoever answers.
    let begun = core.records.is_some().then(|| {
        let (addresses, asked) = (source.addresses(&client), (received, expected, moment));
        let records = request_records::begin(core, (source.session(), xid), &addresses, &program.name, asked);
        (addresses, records)
    });
    let mut rest_of_hit = None;
    if first.is_none()
        && site.answer_fields_of(routed).is_none()
        && program.leaves_hits_to_builtin
        && core.watch.is_none()
        && !(is_early || is_refresh)
        && let Some(client) = source.at_once()
    {
        let records = begun.as_ref().and_then(|(_, records)| records.as_ref());
        match builtin_hit::run(client, core, &site, &parsed, (xid, records)) {
            None => {}
            Some(InstantOutcome::Answered { persistent }) => return Opened::answered(persistent, received),
            Some(InstantOutcome::Step(begun)) => rest_of_hit = Some(begun),
        }
    }
    let now_s = core.clock().at(moment).wall_ms as f64 / 1_000.0;
    let (addresses, records) = begun.unwrap_or_else(|| (source.addresses(&client), None));
    let mut state = ClientState::new(program, addresses, xid, now_s);
    state.records = records;
    state.has_body = received.body.follows();
    state.is_refresh = is_refresh;
    let may_answer = !is_early && !state.vcl_site.loaded.waits() && site.answer_fields_of(routed).is_none();
    let on_its_way = match (rest_of_hit, first, source.at_once().filter(|_| may_answer)) {
        (Some((state, step, outcome)), ..) => {
            Box::new(OnItsWay { head: received.request.to_head(), state, step, outcome })
        }
        (None, Some(step), _) => Box::new(OnItsWay::from_start(received, client, step)),
        (None, None, None) => Box::new(OnItsWay::from_start(received, client, Step::Receive)),
        (None, None, Some(client)) => match program_at_once::run(client, core, &site, &state, &parsed) {
            InstantOutcome::Answered { persistent } => return Opened::answered(persistent, received),
            InstantOutcome::Step(on_its_way) => on_its_way,
        },
    };
    let (tx, step) = parsed.under_program(core, site, (state, routed), *on_its_way);
    Opened::Begun(tx, step)
}

/// What comes before the program: an answer, a refusal, or that it must be known who asks.
fn first_step(site: &Site, received: &ReceivedRequest<'_>, seen: FieldSet, ruling: &RouteVerdict) -> Option<Step> {
    if let Some(FirstWord::Answer(synth)) = &ruling.first {
        return Some(Step::Synth((**synth).clone()));
    }
    if let Some(refused) = receive::refusal(site, received, seen) {
        return Some(Step::Synth(refused));
    }
    match (&ruling.first, ruling.route) {
        (Some(FirstWord::Admit { credentials, also, .. }), Some(route)) => {
            let (credentials, by, also) = (credentials.clone(), Door::Route(route), also.clone());
            Some(Step::Admit(Box::new(Unverified { credentials, by, also, then: Verdict::Program })))
        }
        _ => None,
    }
}
