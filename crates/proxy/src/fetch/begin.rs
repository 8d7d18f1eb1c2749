//! How a fetch begins: what it knows of the request that it is for, and the task that it runs in.

use std::rc::Rc;
use std::sync::Arc;

use cache::{Charge, Ticket};
use message::RequestHead;
use wire::RequestBody;

use crate::client_identity::ClientIdentity;
use crate::clock::Moment;
use crate::core::Core;
use crate::fetch::fetch_policy::FetchPolicy;
use crate::fetch::fetch_states::FetchState;
use crate::fetch::notes::FetchNotes;
use crate::fetch::purpose::Purpose;
use crate::fetch::slice_fetch::SliceProgram;
use crate::fetch::timeouts::Timeouts;
use crate::fetch::try_journal::TryJournal;
use crate::fetch::{Fetch, builtin_steps, fill, program_steps};
use crate::forward::parents::Ways;
use crate::limits::FETCH_BYTES;
use crate::origin::Origin;
use crate::site::{Routed, Site};
use crate::static_files::script_path::ScriptPath;
use crate::traces::exchange_trace::ExchangeTrace;
use crate::transaction::synth::{MEMORY_SHORT, Synth};
use crate::vcl_story::client_state::ClientState;

/// Who wants something fetched, and by whose word.
#[derive(Clone, Copy)]
pub(crate) struct Requester<'a> {
    pub(crate) core: &'a Rc<Core>,
    pub(crate) site: &'a Arc<Site>,
    pub(crate) routed: Routed,
    /// What is to answer there, where that has been found out.
    pub(crate) script: Option<&'a Arc<ScriptPath>>,
    pub(crate) head: &'a Rc<RequestHead>,
    /// `None`: something stale is refreshed in the background, for nobody in particular.
    pub(crate) client: Option<ClientIdentity>,
    pub(crate) body: RequestBody,
    pub(crate) expects_continue: bool,
    /// Of the exchange that it is for. `None`: of none that is known.
    pub(crate) trace: Option<&'a Rc<ExchangeTrace>>,
    /// That one is told of the tries.
    pub(crate) tells_tries: bool,
    pub(crate) under: Under<'a>,
}

/// What a request is under, and so its fetch.
#[derive(Clone, Copy)]
pub(crate) enum Under<'a> {
    Builtin,
    Program(&'a ClientState),
    /// The program of a body that is brought slice by slice.
    ProgramOfSlices(&'a SliceProgram),
}

impl<'a> Requester<'a> {
    /// The refresh of something stale, by the built-in policy.
    pub(crate) fn in_background(
        (core, site): (&'a Rc<Core>, &'a Arc<Site>),
        routed: Routed,
        head: &'a Rc<RequestHead>,
    ) -> Requester<'a> {
        let (body, expects_continue) = (RequestBody::None, false);
        let (trace, tells_tries, under) = (None, false, Under::Builtin);
        Requester {
            core,
            site,
            routed,
            script: None,
            head,
            client: None,
            body,
            expects_continue,
            trace,
            tells_tries,
            under,
        }
    }
}

impl Fetch {
    /// Fails when there is no memory for it, or no origin that may be asked; a program says later whom it asks, unless it pipes.
    pub(crate) fn begin(requester: &Requester<'_>, purpose: Purpose) -> Result<Box<Fetch>, Synth> {
        // What an answer that is under way lacks is brought all the same: it would have to be cut.
        let is_hole = matches!(purpose, Purpose::Slice { if_range: Some(_), .. });
        if !is_hole && requester.core.lacks_memory() {
            return Err(match requester.under {
                Under::Builtin => Synth::memory_short(),
                // What to say then is the program's, too.
                Under::Program(_) | Under::ProgramOfSlices(_) => Synth::unfetched(MEMORY_SHORT),
            });
        }
        let mut fetch = Fetch::bare(requester, purpose);
        match requester.under {
            Under::Builtin => builtin_steps::begin(&mut fetch)?,
            Under::Program(client) => program_steps::begin(&mut fetch, client)?,
            Under::ProgramOfSlices(program) => program_steps::begin_slice(&mut fetch, program),
        }
        Ok(fetch)
    }

    /// CONNECT, to a proxy.
    pub(crate) fn tunnelled(requester: &Requester<'_>, origin: Arc<Origin>, parent: usize) -> Box<Fetch> {
        let requester = Requester { body: RequestBody::None, expects_continue: false, ..*requester };
        let mut fetch = Fetch::bare(&requester, Purpose::Tunnel);
        (fetch.chosen, fetch.parent, fetch.wants_fresh_connection) = (Some(origin), Some(parent), true);
        fetch
    }

    /// A fetch whose origin is still to be chosen. Boxed, for it goes through many hands, and tasks carry it.
    fn bare(requester: &Requester<'_>, purpose: Purpose) -> Box<Fetch> {
        let Requester { core, site, .. } = *requester;
        let now = Moment::now();
        let trace = requester
            .trace
            .cloned()
            .or_else(|| site.settings.traces.as_ref().map(|_| Rc::new(ExchangeTrace::untold(&core.trace_dice))));
        Box::new(Fetch {
            core: Rc::clone(core),
            site: Arc::clone(site),
            routed: requester.routed,
            script: requester.script.cloned(),
            chosen: None,
            owner: None,
            own_fetch: None,
            parent: None,
            ways: Ways::new(),
            body: if purpose.is_for_many() { RequestBody::None } else { requester.body },
            purpose,
            policy: FetchPolicy::Builtin,
            head: Rc::clone(requester.head),
            client: requester.client,
            trace,
            tells_tries: requester.tells_tries,
            expects_continue: requester.expects_continue,
            state: FetchState::Prepare,
            target: None,
            wants_fresh_connection: false,
            wants_http1: false,
            failed_at: Vec::new(),
            sent: now,
            tries: TryJournal::new(core.shared.event_readers.any(), now),
            timeouts: Timeouts::of(&site.settings.limits),
            whole: None,
            carried: None,
            copy: None,
            ranges_tag: None,
            departure: None,
            _held: held(core),
        })
    }
}

fn held(core: &Core) -> Charge {
    core.shared.cache.account().charge(FETCH_BYTES)
}

/// Begins the fetch of a miss in its own task. The notes are between it and its requester.
pub(crate) fn spawn(requester: &Requester<'_>, ticket: Ticket) -> Rc<FetchNotes> {
    let notes = Rc::new(FetchNotes::default());
    match Fetch::begin(requester, Purpose::Store(ticket.stale().cloned())) {
        Ok(fetch) => {
            tokio::task::spawn_local(fill::run(fetch, ticket, Some(Rc::clone(&notes))));
        }
        Err(synth) => ticket.fail(synth.as_failure(), requester.core.now()),
    }
    notes
}

/// Refreshes something stale in the background, for nobody in particular.
pub(crate) fn spawn_refresh(requester: &Requester<'_>, ticket: Ticket) {
    // Without an origin or memory what is stale stays stale, and the next request asks again.
    let Ok(fetch) = Fetch::begin(requester, Purpose::Store(ticket.stale().cloned())) else { return };
    tokio::task::spawn_local(fill::run(fetch, ticket, None));
}
