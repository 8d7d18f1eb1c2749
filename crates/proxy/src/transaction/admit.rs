//! Admit: whether a client may come in is being found out, by what is slow: its name and password are verified in another thread, of the forward
//! proxy's or of a route's, and the service of a route is asked. What the request is to come to is known already, and is not begun before.

use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use message::{FieldName, Fields, Method, Request};
use rules::forwarded;

use crate::access_log::CacheVerdict;
use crate::clock::Moment;
use crate::closed_paths;
use crate::downstream::Downstream;
use crate::fetch::begin::Requester;
use crate::fetch::question::{self, Answered};
use crate::field_set::FieldSet;
use crate::forward::passwords::{self, Passwords};
use crate::limits::ADMISSION_BYTES;
use crate::policy::{Policy, WhyPassed};
use crate::receive::Verdict;
use crate::records::{RecordKind, request_records};
use crate::route_rules::auth_request::{AuthAnswer, AuthRequest};
use crate::route_rules::field_template::TemplateSource;
use crate::route_rules::rate_table::{Counterpart, whom_it_counts_for};
use crate::route_rules::route_verdict::MeantRoute;
use crate::route_rules::under_way::CountedBy;
use crate::route_table::RouteAt;
use crate::site::{Backend, Routed, Site};
use crate::transaction::admitted::{self, AdmittedClient};
use crate::transaction::deliver::Answer;
use crate::transaction::synth::{HasShown, Synth};
use crate::transaction::{Step, Transaction};

/// A request whose client is not known yet.
#[derive(Clone)]
pub(crate) struct Unverified {
    /// The value of Proxy-Authorization, or of Authorization, where it is to be verified.
    pub(crate) credentials: Option<Box<[u8]>>,
    pub(crate) by: Door,
    /// Other routes that count it.
    pub(crate) also: Box<[MeantRoute]>,
    /// Where it goes on.
    pub(crate) then: Verdict,
}

/// Who lets users in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Door {
    Forward,
    Route(RouteAt),
    /// Of other nodes of the fleet, which are known to be such.
    Node,
}

impl Door {
    fn passwords(self, site: &Site) -> Option<&Arc<Passwords>> {
        match self {
            Door::Forward => site.forward.passwords.as_ref(),
            Door::Node => None,
            Door::Route(route) => site.passwords_of(&site.routes.at(route).rules.access.login.as_ref()?.file),
        }
    }

    fn refusal(self, site: &Site) -> Synth {
        match self {
            Door::Forward => Synth::wants_credentials(HasShown::Wrong),
            Door::Node => Synth::no_node(),
            Door::Route(route) => {
                let login = site.routes.at(route).rules.access.login.as_ref();
                Synth::wants_login(login.map_or("", |login| &login.realm), HasShown::Wrong)
            }
        }
    }

    fn service(self, site: &Site) -> Option<&AuthRequest> {
        match self {
            Door::Forward | Door::Node => None,
            Door::Route(route) => site.routes.at(route).rules.access.service.as_ref(),
        }
    }
}

impl Unverified {
    /// Whatever it comes to but a tunnel, nothing is read behind it.
    pub(crate) fn closing(mut self: Box<Self>) -> Box<Unverified> {
        if let Verdict::Synth(synth) = self.then {
            self.then = Verdict::Synth(synth.closing());
        }
        self
    }
}

pub(super) async fn run(tx: &mut Transaction, downstream: &mut Downstream<'_>, unverified: Unverified) -> Step {
    tx.outcome.verdict = CacheVerdict::Refused;
    match admit(tx, downstream, unverified).await {
        Ok(then) => {
            if let Some(why) = then.why_passed() {
                tx.outcome.why = why.token();
            }
            then.into_step()
        }
        Err(elsewhere) => {
            if !matches!(elsewhere, Step::Log(_)) {
                leave_to_the_route(tx);
            }
            elsewhere
        }
    }
}

/// A program has no say in a refusal, as it has none in those that come before anybody is asked: one that asks once more where something
/// failed (`restart` of vcl_synth) would go on past the door, and it does not know what a login page or a realm is.
fn leave_to_the_route(tx: &mut Transaction) {
    let Policy::Program(state) = std::mem::replace(&mut tx.policy, Policy::Builtin) else { return };
    if let Some(records) = &state.records {
        records.put(RecordKind::Error, &[b"refused by the route"]);
        request_records::end(records, Moment::now());
    }
}

/// What it comes to, or where it goes instead.
async fn admit(tx: &mut Transaction, downstream: &mut Downstream<'_>, unverified: Unverified) -> Result<Verdict, Step> {
    let (site, door) = (Arc::clone(&tx.site), unverified.by);
    if door == Door::Node {
        return admit_node(tx, downstream, unverified.then).await;
    }
    count(tx, door, &unverified.also, KnownOfClient::Address)?;
    if let Some(credentials) = &unverified.credentials {
        verify(tx, downstream, credentials, door).await?;
    }
    let mut then = unverified.then;
    if let (Some(service), Door::Route(at)) = (door.service(&site), door) {
        // Of a part, too: the service may say another thing of its path than of its page's.
        let copied = ask(tx, downstream, (at, service)).await?;
        if let Some(why) = go_on_as(tx, (at, service), &copied) {
            tx.routed.is_bypass = true;
            then = then.past_the_store(why);
        }
    }
    count(tx, door, &unverified.also, KnownOfClient::User)?;
    Ok(then)
}

/// From here on the request says of its client what the service says, also to a program that looks at it as it came. Returns why it goes past
/// the store, if that sends it there.
fn go_on_as(tx: &mut Transaction, (at, service): (RouteAt, &AuthRequest), copied: &Fields) -> Option<WhyPassed> {
    if let Some(user) = service.user_in(copied) {
        tx.user = Some(user.into());
    }
    if service.copied.is_empty() {
        return None;
    }
    let (user, is_program_s) = (tx.user.as_deref(), matches!(tx.policy, Policy::Program(_)));
    let client = AdmittedClient { identity: &tx.client, user, since: tx.started, is_program_s };
    let admitted = admitted::run((&tx.core, &tx.site), (tx.as_it_came(), client), (at, service, copied));
    if let Some(state) = tx.policy.program_mut() {
        state.original = Some(Rc::clone(&admitted.head));
    }
    (tx.came, tx.head) = (Some(admitted.came), admitted.head);
    tx.seen = FieldSet::of(tx.head.fields());
    admitted.bypass
}

/// What another node of the fleet asks waits until the invalidations that it knows of are in force here, and is not let in where this node asks
/// another one for the same.
async fn admit_node(tx: &mut Transaction, downstream: &mut Downstream<'_>, then: Verdict) -> Result<Verdict, Step> {
    let Some(node) = tx.node.as_mut() else { return Err(Step::Synth(Synth::no_node())) };
    match while_there(downstream, tx.core.shared.log_position.reaches(node.position)).await {
        Some(true) => {}
        Some(false) => return Err(Step::Synth(Synth::node_behind())),
        None => return Err(Step::client_left(downstream)),
    }
    match node.comes_in(&tx.head.request()) {
        true => Ok(then),
        false => Err(Step::Synth(Synth::node_crossed())),
    }
}

/// What is known of a client when it is counted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum KnownOfClient {
    Address,
    /// Who it is, too: a limit of each user's is for whoever has shown to be that one. By a name alone anybody could use up another's.
    User,
}

/// Counts a request by all limits of a route that it came to only now, when its client is known as far as it will be.
pub(super) fn count_for(tx: &mut Transaction, meant: &MeantRoute) -> Result<(), Step> {
    count_by(tx, meant, KnownOfClient::Address)?;
    count_by(tx, meant, KnownOfClient::User)
}

/// Counts the request by the limits for which so much has to be known. What a page includes is counted with the page.
fn count(tx: &mut Transaction, door: Door, also: &[MeantRoute], known: KnownOfClient) -> Result<(), Step> {
    let Door::Route(at) = door else { return Ok(()) };
    if tx.place_in_page.level > 0 {
        return Ok(());
    }
    let path = tx.as_it_came().request().path.into();
    count_by(tx, &MeantRoute { at, path }, known)?;
    also.iter().try_for_each(|meant| count_by(tx, meant, known))
}

/// The same by those of one route, for as long as it is under way.
fn count_by(tx: &mut Transaction, meant: &MeantRoute, known: KnownOfClient) -> Result<(), Step> {
    let (site, head) = (Arc::clone(&tx.site), Rc::clone(tx.as_it_came()));
    let (request, user, client) = (head.request(), tx.user.clone(), tx.client);
    let held = tx.counted.len();
    meant.hear(&site, (&request, &client), |rules, source| {
        let source = TemplateSource { user: user.as_deref(), ..*source };
        let needs = known == KnownOfClient::User;
        for limit in rules.connection_limits.iter().filter(|limit| limit.by.needs_user() == needs) {
            let who = match &limit.by {
                CountedBy::Client => whom_it_counts_for(None, &source, client.ip),
                CountedBy::Key(key) => whom_it_counts_for(Some(key), &source, client.ip),
                CountedBy::Route => Some(Counterpart::new()),
            };
            let Some(who) = who else { continue };
            let who = tx.core.shared.cache.key([&b"under way"[..], limit.zone.as_bytes(), &who]).bits();
            // What holds for all routes counts it once, whichever of them it belongs to.
            if tx.counted[..held].iter().any(|counted| counted.is_of(who)) {
                continue;
            }
            let Some(counted) = tx.core.shared.under_way.begin(who, limit.requests_max) else {
                tx.core.counters.route_connections_limited.add(1);
                return Err(Step::Synth(Synth::too_many_at_once(limit.status)));
            };
            tx.counted.push(counted);
        }
        Ok(())
    })
}

/// Name and password. The error is where the request goes instead.
async fn verify(
    tx: &mut Transaction,
    downstream: &mut Downstream<'_>,
    credentials: &[u8],
    door: Door,
) -> Result<(), Step> {
    let is_connect = tx.head.method == Method::Connect;
    let asked = door.passwords(&tx.site).and_then(|passwords| passwords.verify(credentials).ok());
    let Some(answer) = asked else { return Err(Step::Synth(Synth::verifier_busy())) };
    match while_there(downstream, answer).await {
        Some(Ok(true)) => {
            tx.user = passwords::user_of(credentials).map(Vec::into_boxed_slice);
            Ok(())
        }
        Some(_) => {
            if door == Door::Forward {
                tx.core.counters.forward_denied.add(1);
            }
            let synth = door.refusal(&tx.site);
            Err(Step::Synth(if is_connect { synth.closing() } else { synth }))
        }
        None => Err(Step::client_left(downstream)),
    }
}

/// Waits for something as long as the client does. Whoever has left is led nowhere, though it may be known by now that it might come in.
async fn while_there<T>(downstream: &mut Downstream<'_>, answer: impl Future<Output = T>) -> Option<T> {
    let mut answer = pin!(answer);
    poll_fn(|cx| match downstream.has_left(cx) {
        true => Poll::Ready(None),
        false => answer.as_mut().poll(cx).map(Some),
    })
    .await
}

/// Asks the service of a route; returns what it says of the client. The error is where the request goes instead.
async fn ask(
    tx: &mut Transaction,
    downstream: &mut Downstream<'_>,
    (at, service): (RouteAt, &AuthRequest),
) -> Result<Arc<Fields>, Step> {
    let shared = Arc::clone(&tx.core.shared);
    let origin = &*tx.site.settings.origins[service.origin].name;
    let route = || tx.site.routes.at(at).paths_text();
    let came = tx.as_it_came().request();
    // Another spelling may mean a path of another route to who is asked, of which the service says another thing.
    let may_be_known = closed_paths::means_itself(came.path);
    let key = may_be_known.then(|| service.known_as((&shared.cache, origin), route, &came, &tx.client)).flatten();
    if let Some(copied) = key.and_then(|key| shared.admissions.of(key, tx.core.now().mono_ms)) {
        tx.core.counters.auth_requests_known.add(1);
        return Ok(copied);
    }
    tx.core.counters.auth_requests.add(1);
    let Some(answered) = while_there(downstream, put_question(tx, service)).await else {
        return Err(Step::client_left(downstream));
    };
    let answered = answered.map_err(|synth| failed(tx, synth))?;
    let status = answered.reply.head.status;
    match AuthAnswer::of(status) {
        AuthAnswer::Admitted => {}
        AuthAnswer::Refused => return Err(refuse(tx, service, *answered)),
        AuthAnswer::Unclear => {
            give_up(*answered);
            return Err(failed(tx, Synth::auth_failed(&format!("it answered {}", status.0))));
        }
    }
    let copied = service.copied_of(&answered.reply.head.fields);
    give_up(*answered);
    let Some(copied) = copied else {
        return Err(failed(tx, Synth::auth_failed("the fields to be copied are longer than larder takes (8 KiB)")));
    };
    if let Some(key) = key.filter(|_| AuthRequest::may_be_known(&copied)) {
        let now_ms = tx.core.now().mono_ms;
        let known_ms = u64::try_from(service.known_for.as_millis()).unwrap_or(u64::MAX);
        let held = shared.cache.account().charge(ADMISSION_BYTES + copied.heap_bytes());
        shared.admissions.note(key, &copied, (now_ms, now_ms.saturating_add(known_ms)), held);
    }
    Ok(Arc::new(copied))
}

/// Begun at once; it borrows nothing of the transaction, which waits for it.
fn put_question(tx: &Transaction, service: &AuthRequest) -> impl Future<Output = Result<Box<Answered>, Synth>> + use<> {
    let (core, site, client, trace) = (Rc::clone(&tx.core), Arc::clone(&tx.site), tx.client, tx.trace.clone());
    let came = tx.as_it_came().request();
    // A program reads that itself; the service is told.
    let scheme = forwarded::client_scheme(came.scheme, client.peer_is_trusted, came.fields);
    let head = Rc::new(service.question(&Request { scheme, ..came }));
    let routed = Routed { route: None, backend: Some(Backend::Origin(service.origin)), is_bypass: true };
    let timeout = service.timeout;
    async move {
        let requester = Requester::in_background((&core, &site), routed, &head);
        let requester = Requester { client: Some(client), trace: trace.as_ref(), ..requester };
        question::ask(&requester, timeout).await
    }
}

/// It is not known whether it may come in, so it may not.
fn failed(tx: &Transaction, synth: Synth) -> Step {
    tx.core.counters.auth_requests_failed.add(1);
    Step::Synth(synth)
}

fn give_up(answered: Answered) {
    answered.reply.body.into_body(&answered.fetch).finish();
}

/// The client is told what the service says, and nobody keeps that. In a page nobody would read it.
fn refuse(tx: &mut Transaction, service: &AuthRequest, answered: Answered) -> Step {
    tx.core.counters.auth_requests_refused.add(1);
    if tx.place_in_page.level > 0 {
        give_up(answered);
        return Step::Synth(Synth::not_admitted());
    }
    let came = tx.as_it_came().request();
    let scheme = forwarded::client_scheme(came.scheme, tx.client.peer_is_trusted, came.fields);
    let came = Request { scheme, ..came };
    let source = TemplateSource::of(&came, &tx.client);
    if let Some(location) = service.login_page(answered.reply.head.status, &source) {
        give_up(answered);
        return Step::Synth(Synth::to_login(location));
    }
    let Answered { mut fetch, reply } = answered;
    let mut head = reply.head;
    head.fields.retain_names(|name| {
        !matches!(name, FieldName::CacheControl | FieldName::Expires | FieldName::SurrogateControl)
    });
    head.fields.push(FieldName::CacheControl, "no-store");
    tx.outcome.why = Synth::NOT_ADMITTED;
    let body = Box::new(reply.body.into_passed(&mut fetch));
    Step::Deliver(Box::new(Answer::Piped(Box::new(Answer::Origin { head, body }))))
}
