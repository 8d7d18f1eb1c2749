//! A request under a program: answered at once if the program and the store agree, else copied into a transaction. What
//! `exchange_opening` does for the built-in policy, with the program's words in between.

use std::rc::Rc;
use std::sync::Arc;

use message::{FieldName, Method, Request};
use wire::ReceivedRequest;

use crate::clock::Moment;
use crate::core::Core;
use crate::instant_answer::InstantOutcome;
use crate::parsed_request::ParsedRequest;
use crate::receive;
use crate::records::request_records;
use crate::request_source::{Opened, RequestSource};
use crate::transaction::Step;
use crate::vcl_site::VclSite;
use crate::vcl_story::client_state::ClientState;
use crate::vcl_story::program_at_once::{self, OnItsWay};
use crate::vcl_story::{builtin_hit, xids};

/// Answers the request, or says how it goes on.
pub(crate) fn open<S: RequestSource>(
    core: &Rc<Core>,
    source: &mut S,
    received: &ReceivedRequest<'_>,
    program: Arc<VclSite>,
    moment: Moment,
) -> Opened {
    if received.expects_continue && core.site_ref().settings.as_varnishd {
        return open_expecting(core, source, received, program, moment);
    }
    open_as_it_is(core, source, (received, None), program, moment)
}

/// In place of varnishd 100 is ours to say: no program sees that it is waited for, and no origin.
#[cold]
fn open_expecting<S: RequestSource>(
    core: &Rc<Core>,
    source: &mut S,
    received: &ReceivedRequest<'_>,
    program: Arc<VclSite>,
    moment: Moment,
) -> Opened {
    let fields = receive::without_expect(&received.request);
    let expected = received.request.fields.get(FieldName::Expect);
    let request = Request { fields: fields.view(), ..received.request.clone() };
    let received = ReceivedRequest { request, ..received.clone() };
    open_as_it_is(core, source, (&received, expected), program, moment)
}

fn open_as_it_is<S: RequestSource>(
    core: &Rc<Core>,
    source: &mut S,
    (received, expected): (&ReceivedRequest<'_>, Option<&[u8]>),
    program: Arc<VclSite>,
    moment: Moment,
) -> Opened {
    let site = core.site();
    // What follows a CONNECT may be meant for whom it asked for, and is no request to us.
    let persistent = source.begins_exchange(core, &site, received) && received.request.method != Method::Connect;
    let (client, seen, refused) = receive::before_policy(core, &site, received, &source.asker());
    // What a program does is no answer of the store alone: it waits for the end of the handshake.
    let (tls, is_early) = (source.asker().tls_facts(), source.asker().is_early());
    let parsed = ParsedRequest { received, seen, client, persistent, tls, moment };
    let xid = xids::next(&core.xids);
    let mut rest_of_hit = None;
    if refused.is_none()
        && program.leaves_hits_to_builtin
        && !core.is_heard()
        && !is_early
        && let Some(client) = source.at_once()
    {
        match builtin_hit::run(client, core, &site, &parsed, xid) {
            None => {}
            Some(InstantOutcome::Answered { persistent }) => return Opened::answered(persistent, received),
            Some(InstantOutcome::Step(begun)) => rest_of_hit = Some(begun),
        }
    }
    let now_s = core.clock().at(moment).wall_ms as f64 / 1_000.0;
    let mut state = ClientState::new(program, source.addresses(&client), xid, now_s);
    if core.records.is_some() {
        let (session, asked) = (source.session(), (received, expected, moment));
        state.records = request_records::begin(core, (session, xid), &state.addresses, &state.vcl_site.name, asked);
    }
    let may_answer = !is_early && !state.vcl_site.loaded.waits();
    let on_its_way = match (rest_of_hit, refused, source.at_once().filter(|_| may_answer)) {
        (Some((state, step, outcome)), ..) => {
            Box::new(OnItsWay { head: received.request.to_head(), state, step, outcome })
        }
        (None, Some(synth), _) => Box::new(OnItsWay::from_start(received, client, Step::Synth(synth))),
        (None, None, None) => Box::new(OnItsWay::from_start(received, client, Step::Receive)),
        (None, None, Some(client)) => match program_at_once::run(client, core, &site, &state, &parsed) {
            InstantOutcome::Answered { persistent } => return Opened::answered(persistent, received),
            InstantOutcome::Step(on_its_way) => on_its_way,
        },
    };
    let (tx, step) = parsed.under_program(core, site, state, *on_its_way);
    Opened::Begun(tx, step)
}
