//! How each kind of fetch begins: what it knows of the request that it is for, and the task that it runs in.

use std::rc::Rc;
use std::sync::Arc;

use cache::{Charge, Object, Ticket};
use message::{FieldName, RequestHead};
use rules::credentials;
use wire::RequestBody;

use crate::clock::Moment;
use crate::closed_paths;
use crate::fetch::notes::FetchNotes;
use crate::fetch::{Fetch, FetchState, Purpose, Timeouts, bereq, fill, fill_by_policy, slice_fetch};
use crate::forward::Taken;
use crate::forward::parents::Ways;
use crate::limits::FETCH_BYTES;
use crate::origin::Origin;
use crate::receive::Client as ClientIdentity;
use crate::records::fetch_records::{self, Wish};
use crate::site::{Backend, Site};
use crate::transaction::Transaction;
use crate::transaction::synth::Synth;
use crate::vcl_story::backend_task::{BackendTask, MadeFor};
use crate::vcl_story::xids;
use crate::worker::Core;

impl Fetch {
    /// The fetch of a transaction. Fails when no origin is routed to, and when there is no memory for it.
    pub(crate) fn of(tx: &Transaction, purpose: Purpose) -> Result<Fetch, Synth> {
        let carries = !purpose.is_for_many();
        let asked = ((tx.backend, &tx.head), Some(tx.client));
        let fetch = Fetch::of_request((&tx.core, &tx.site), asked, purpose)?;
        Ok(Fetch {
            body: if carries { tx.body } else { RequestBody::None },
            expects_continue: tx.expects_continue,
            sent: tx.started,
            ..fetch
        })
    }

    /// The fetch of a request by the built-in policy. Fails when no origin is routed to, when the path leads
    /// above the root, and when there is no memory for it.
    pub(super) fn of_request(
        (core, site): (&Rc<Core>, &Arc<Site>),
        ((backend, head), client): ((Option<Backend>, &Rc<RequestHead>), Option<ClientIdentity>),
        purpose: Purpose,
    ) -> Result<Fetch, Synth> {
        // What an answer that is under way lacks is brought all the same: it would have to be cut.
        let is_hole = matches!(purpose, Purpose::Slice { if_range: Some(_), .. });
        if !is_hole && core.lacks_memory() {
            return Err(Synth::memory_short());
        }
        let routed = backend.ok_or_else(Synth::no_route)?;
        if matches!(routed, Backend::Origin(_)) && closed_paths::leads_above_root(head.request().path) {
            return Err(Synth::path_malformed().refused_outright());
        }
        let mut ways = Ways::new();
        let taken = site.origin(routed, &head.request(), core.now().mono_ms, &mut ways);
        let Taken { origin, parent } = taken.map_err(|failure| Synth::failed(&failure))?;
        let bare = Fetch::bare((core, site), (backend, client), Rc::clone(head), purpose);
        Ok(Fetch { chosen: Some(origin), parent, ways, ..bare })
    }

    /// The fetch of a transaction under a policy, which chooses the origin later.
    pub(crate) fn by_policy(tx: &Transaction, purpose: Purpose, wish: Wish) -> Fetch {
        let client = tx.policy.program().expect("only a transaction under a policy comes here");
        let stale = match &purpose {
            Purpose::Store(stale) => stale.clone(),
            _ => None,
        };
        let is_pass = !matches!(purpose, Purpose::Store(_));
        let core = Rc::clone(&tx.core);
        let xid = xids::next(&core);
        let head = match &purpose {
            // vcl_pipe has seen it already.
            Purpose::Upgrade | Purpose::Piped | Purpose::Raw => Rc::clone(&tx.head),
            _ => {
                let bereq = bereq::bereq_of(
                    &tx.head.request(),
                    crate::vcl_story::client_steps::original_of(tx),
                    stale.as_ref(),
                    is_pass,
                );
                Rc::new(bereq::with_xid(&bereq.request(), xid))
            }
        };
        let mut policy = BackendTask::new(MadeFor::of(client), Rc::clone(&head), xid, core.now());
        policy.is_pass = is_pass;
        policy.uncacheable.set(is_pass);
        policy.log_notes = core.shared.logs().then(|| Rc::clone(client.log_notes.get_or_init(Default::default)));
        policy.records =
            fetch_records::begin(&core, client.records.as_deref(), (xid, wish), &client.site.name, &head.request());
        Fetch {
            body: if is_pass && client.body.is_none() { tx.body } else { RequestBody::None },
            carried: client.body.clone(),
            expects_continue: tx.expects_continue || (matches!(purpose, Purpose::Raw) && client.awaits_continue.get()),
            ..Fetch::under((&core, &tx.site), (tx.backend, Some(tx.client)), policy, (head, purpose))
        }
    }

    /// The fetch of a slice under a policy. The range is in its request, where the program sees it.
    pub(super) fn of_slice_by_policy(
        (core, site): (&Rc<Core>, &Arc<Site>),
        asked_for: (Option<Backend>, Option<ClientIdentity>),
        program: &slice_fetch::Program,
        purpose: Purpose,
    ) -> Fetch {
        let xid = xids::next(core);
        let bereq = bereq::with_range(&program.bereq.request(), &purpose);
        let head = Rc::new(bereq::with_xid(&bereq.request(), xid));
        let mut policy = BackendTask::new(Rc::clone(&program.made_for), Rc::clone(&head), xid, core.now());
        policy.records =
            fetch_records::begin(core, None, (xid, Wish::Miss), &program.made_for.site.name, &head.request());
        Fetch::under((core, site), asked_for, policy, (head, purpose))
    }

    /// A fetch without a body whose program is still to be asked.
    fn under(
        (core, site): (&Rc<Core>, &Arc<Site>),
        (backend, client): (Option<Backend>, Option<ClientIdentity>),
        mut state: BackendTask,
        (head, purpose): (Rc<RequestHead>, Purpose),
    ) -> Fetch {
        state.watched = core.watch.as_ref().map(|watch| watch.fetch_began());
        Fetch { vcl: Some(Box::new(state)), ..Fetch::bare((core, site), (backend, client), head, purpose) }
    }

    /// The fetch of what is piped. Without an Upgrade it is a pass that nobody judges.
    pub(crate) fn piped(tx: &Transaction) -> Result<Fetch, Synth> {
        if tx.policy.has_routes() {
            return Fetch::of(tx, Purpose::Upgrade);
        }
        let upgrades = tx.head.request().fields.contains(FieldName::Upgrade);
        let purpose = match upgrades {
            true => Purpose::Upgrade,
            false if tx.site.settings.as_varnishd => Purpose::Raw,
            false => Purpose::Piped,
        };
        let mut fetch = Fetch::by_policy(tx, purpose, Wish::Pipe);
        if fetch.choose_origin() { Ok(fetch) } else { Err(Synth::unfetched("no-backend")) }
    }

    /// CONNECT, to a proxy.
    pub(crate) fn tunnelled(tx: &Transaction, origin: Arc<Origin>, parent: usize) -> Fetch {
        let bare = Fetch::bare((&tx.core, &tx.site), (tx.backend, Some(tx.client)), Rc::clone(&tx.head), Purpose::Pass);
        Fetch { chosen: Some(origin), parent: Some(parent), retried: true, sent: tx.started, ..bare }
    }

    /// A fetch without a body, by the built-in policy, whose origin is still to be chosen.
    fn bare(
        (core, site): (&Rc<Core>, &Arc<Site>),
        (backend, client): (Option<Backend>, Option<ClientIdentity>),
        head: Rc<RequestHead>,
        purpose: Purpose,
    ) -> Fetch {
        Fetch {
            core: Rc::clone(core),
            site: Arc::clone(site),
            backend,
            chosen: None,
            parent: None,
            ways: Ways::new(),
            purpose,
            head,
            client,
            body: RequestBody::None,
            expects_continue: false,
            state: FetchState::Prepare,
            retried: false,
            sent: Moment::now(),
            timeouts: Timeouts::of(&site.settings.limits),
            carried: None,
            vcl: None,
            departure: None,
            _held: held(core),
        }
    }
}

fn held(core: &Core) -> Charge {
    core.shared.cache.account().charge(FETCH_BYTES)
}

/// What a fetch asks the origin to confirm. A response that does not say that it is shared is not confirmed by an answer to
/// somebody's credentials: an entity tag need not depend on who asks, and then a 304 would make the one's page the other's.
fn to_validate(ticket: &Ticket) -> Option<Arc<Object>> {
    let is_shared = |stale: &Object| stale.facts().says_shared;
    let credentials = credentials::of_request(ticket.request().fields);
    ticket.stale().filter(|stale| credentials.is_none() || is_shared(stale)).cloned()
}

/// Begins the fetch of a miss in its own task. The notes are between it and its requester.
pub(crate) fn spawn(tx: &Transaction, ticket: Ticket) -> Rc<FetchNotes> {
    let notes = Rc::new(FetchNotes::default());
    if !tx.policy.has_routes() {
        if tx.core.lacks_memory() {
            ticket.fail(Synth::memory_short().as_failure(), tx.core.now());
            return notes;
        }
        let fetch = Fetch::by_policy(tx, Purpose::Store(ticket.stale().cloned()), Wish::Miss);
        tokio::task::spawn_local(fill_by_policy::run(fetch, ticket, Some(Rc::clone(&notes))));
        return notes;
    }
    match Fetch::of(tx, Purpose::Store(to_validate(&ticket))) {
        Ok(fetch) => {
            tokio::task::spawn_local(fill::run(fetch, ticket, Some(Rc::clone(&notes))));
        }
        Err(synth) => ticket.fail(synth.as_failure(), tx.core.now()),
    }
    notes
}

/// Refreshes something stale in the background, for nobody in particular.
pub(crate) fn spawn_refresh(core: &Rc<Core>, site: &Arc<Site>, backend: Option<Backend>, ticket: Ticket) {
    let head = Rc::new(ticket.request().to_head());
    let purpose = Purpose::Store(to_validate(&ticket));
    // Without an origin what is stale stays stale, and the next request asks again.
    let Ok(fetch) = Fetch::of_request((core, site), ((backend, &head), None), purpose) else { return };
    tokio::task::spawn_local(fill::run(fetch, ticket, None));
}

/// The same under the policy of the transaction that found it stale.
pub(crate) fn spawn_refresh_by_policy(tx: &Transaction, ticket: Ticket) {
    // What is stale stays stale, as where there is no origin.
    if tx.core.lacks_memory() {
        return;
    }
    let mut fetch = Fetch::by_policy(tx, Purpose::Store(ticket.stale().cloned()), Wish::Background);
    if let Some(policy) = &mut fetch.vcl {
        policy.is_background = true;
        policy.log_notes = None;
    }
    tokio::task::spawn_local(fill_by_policy::run(fetch, ticket, None));
}
