//! Slice fetch: one slice of a large body, from a disk or by a range from its origin.
//!
//! It runs in a task of its own, for whoever waits for the slice on any core, and goes on when they leave: what is left of a
//! slice is worth finishing. What comes must be of the very representation that the manifest stands for, by a strong
//! validator; else that one is not the origin's any more, and the manifest goes.

use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cache::{Description, Draft, Failure, Now, Object, SliceAnswer, SliceUnderWay, Sliced, Ticket};
use message::{FieldName, Fields, FieldsView, Request, RequestHead, Status};
use rules::credentials;
use rules::range::{ContentRange, may_combine};

use crate::client_identity::ClientIdentity;
use crate::core::Core;
use crate::fetch::begin::{Requester, Under};
use crate::fetch::bereq::{BereqOf, bereq_of};
use crate::fetch::broken::Broken;
use crate::fetch::fetch_states::FetchState;
use crate::fetch::fill::{Course, pour};
use crate::fetch::purpose::Purpose;
use crate::fetch::{Fetch, OriginReply, failed};
use crate::site::{Routed, Site};
use crate::traces::exchange_trace::ExchangeTrace;
use crate::vcl_story::backend_task::MadeFor;

/// The token of a slice that is of another representation than the manifest.
pub(crate) const CHANGED: &str = "representation-changed";

/// How often, and after how long, it is looked whether there is room again: for a second.
const ROOM_LOOKS_MAX: u32 = 100;
const ROOM_LOOK_INTERVAL: Duration = Duration::from_millis(10);

/// Where the slices of a manifest come from, and with which request they are asked for.
#[derive(Clone)]
pub(crate) struct SliceSource {
    pub(crate) core: Rc<Core>,
    pub(crate) site: Arc<Site>,
    routed: Routed,
    head: Rc<RequestHead>,
    /// Absent for who refreshes in the background.
    client: Option<ClientIdentity>,
    trace: Option<Rc<ExchangeTrace>>,
    /// `None`: by the built-in policy.
    program: Option<Rc<SliceProgram>>,
    manifest: Arc<Object>,
    pub(crate) sliced: Sliced,
}

/// Whose vcl_backend_fetch is run for each slice, and over which request.
pub(crate) struct SliceProgram {
    pub(crate) made_for: Rc<MadeFor>,
    pub(crate) bereq: RequestHead,
}

impl SliceProgram {
    /// `asked`: the request, and as it came where the program has changed it since.
    pub(crate) fn new(
        made_for: Rc<MadeFor>,
        (asked, original): (&Request<'_>, Option<FieldsView<'_>>),
        of: BereqOf,
    ) -> Rc<SliceProgram> {
        Rc::new(SliceProgram { made_for, bereq: bereq_of(asked, original, None, of) })
    }
}

impl SliceSource {
    /// For the fetch that brought the manifest. `None` for what does not lie in slices.
    pub(crate) fn of_fetch(fetch: &Fetch, manifest: &Arc<Object>) -> Option<SliceSource> {
        let (site, asked) = ((&fetch.core, &fetch.site), (fetch.routed, &fetch.head));
        SliceSource::new(site, asked, (fetch.client, fetch.trace.clone(), fetch.slice_program()), manifest)
    }

    pub(crate) fn new(
        (core, site): (&Rc<Core>, &Arc<Site>),
        (routed, head): (Routed, &Rc<RequestHead>),
        (client, trace, program): (Option<ClientIdentity>, Option<Rc<ExchangeTrace>>, Option<Rc<SliceProgram>>),
        manifest: &Arc<Object>,
    ) -> Option<SliceSource> {
        Some(SliceSource {
            sliced: manifest.sliced()?,
            core: Rc::clone(core),
            site: Arc::clone(site),
            routed,
            // A program says itself what is asked with which credentials.
            head: if program.is_some() { Rc::clone(head) } else { asking(head, manifest) },
            client,
            trace,
            program,
            manifest: Arc::clone(manifest),
        })
    }

    /// Without its manifest nobody finds a slice.
    pub(crate) fn ask(&self, number: u64) -> SliceAnswer {
        self.manifest.note_needed();
        ask(&self.core, self.sliced, number, &self.head.request())
    }

    pub(crate) fn reserve(&self, number: u64) -> Option<Ticket> {
        reserve(&self.core, self.sliced, number, &self.head.request())
    }

    /// Begins to bring a slice.
    pub(crate) fn fetch(&self, number: u64, ticket: Ticket) {
        tokio::task::spawn_local(bring(self.clone(), number, ticket));
    }

    /// A slice whose bytes are to follow.
    pub(crate) fn description(&self, number: u64, now: Now) -> Description {
        self.manifest.slice_description(&self.sliced.range(number), now)
    }

    /// Is this the slice, of the representation that the manifest stands for?
    fn is_answered_by(&self, number: u64, reply: &OriginReply) -> bool {
        let fields = reply.head.fields.view();
        let expected = ContentRange { range: self.sliced.range(number), complete_length: Some(self.sliced.complete) };
        reply.head.status == Status::PARTIAL_CONTENT
            && fields.get(FieldName::ContentRange).and_then(ContentRange::parse) == Some(expected)
            && may_combine(fields, self.manifest.fields())
    }

    /// What the origin says to the range of a slice.
    async fn ask_origin(&self, range: Range<u64>) -> Result<(Box<Fetch>, OriginReply), Broken> {
        let if_range = self.manifest.etag().map(Bytes::copy_from_slice);
        let fetch = Fetch::begin(&self.requester(), Purpose::Slice { range, if_range });
        let mut fetch = fetch.map_err(|synth| Broken::Origin(synth.as_failure()))?;
        let reply = fetch.ask().await?;
        Ok((fetch, reply))
    }

    fn requester(&self) -> Requester<'_> {
        let under = self.program.as_deref().map_or(Under::Builtin, Under::ProgramOfSlices);
        let requester = Requester::in_background((&self.core, &self.site), self.routed, &self.head);
        Requester { client: self.client, trace: self.trace.as_ref(), under, ..requester }
    }

    fn changed(&self, reply: &OriginReply) -> Failure {
        let status = reply.head.status.0;
        let text =
            format!("the origin answered {status} to the range of a body whose other parts are stored: it has changed");
        Failure { status: 502, token: CHANGED, text: text.into(), remember_ms: 0 }
    }
}

/// The request by which slices of a manifest are asked for. What does not say that it is shared was not asked for with
/// credentials, and nor are its slices: everybody gets them, and an entity tag need not depend on who asks.
fn asking(head: &Rc<RequestHead>, manifest: &Object) -> Rc<RequestHead> {
    if manifest.facts().says_shared || credentials::of_request(head.fields()).is_none() {
        return Rc::clone(head);
    }
    let request = head.request();
    let mut anonymous = Fields::default();
    for field in request.fields.iter().filter(|field| !credentials::is_credential(field)) {
        anonymous.push_named(field.name_text, field.value);
    }
    Rc::new(Request { fields: anonymous.view(), ..request }.to_head())
}

fn ask(core: &Core, sliced: Sliced, number: u64, request: &Request<'_>) -> SliceAnswer {
    core.shared.cache.ask_slice(sliced, number, request, core.index, core.now())
}

/// The right to bring a slice, if nobody has it, no disk either, and nobody brings it.
pub(crate) fn reserve(core: &Core, sliced: Sliced, number: u64, request: &Request<'_>) -> Option<Ticket> {
    if core.shared.cache.may_have_slice(sliced, number) {
        return None;
    }
    match ask(core, sliced, number, request) {
        SliceAnswer::Fetch(ticket) => Some(ticket),
        _ => None,
    }
}

async fn bring(source: SliceSource, number: u64, ticket: Ticket) {
    let core = Rc::clone(&source.core);
    let (mut room, looks_left) = room_in_memory(&source).await;
    if let Some(slice) = recalled(&source, number).await {
        core.counters.slices_recalled.add(1);
        return ticket.hand_over(slice, core.now());
    }
    room_on_disk(&source, number, &mut room, looks_left).await;
    core.counters.slices_fetched.add(1);
    let range = source.sliced.range(number);
    let (mut fetch, reply) = match source.ask_origin(range.clone()).await {
        Ok(asked) => asked,
        Err(Broken::Origin(failure)) => return ticket.fail(failure, core.now()),
        // A detached fetch has no client that could leave or fail.
        Err(Broken::ClientLeft | Broken::ClientFault(_)) => return ticket.give_back(),
    };
    if reply.head.status.0 >= 500 {
        fetch.enter(FetchState::Failed);
        ticket.fail(failed::server_error(fetch.origin(), reply.head.status.0), reply.arrival.received);
        return reply.body.into_body(&fetch).finish();
    }
    if !source.is_answered_by(number, &reply) {
        fetch.enter(FetchState::Failed);
        let is_the_same = may_combine(reply.head.fields.view(), source.manifest.fields());
        if is_the_same && reply.head.status == Status::OK {
            // It does not do what it said that it can.
            core.shared.unsliceable.note(source.manifest.key(), reply.arrival.received.mono_ms);
        }
        core.shared.cache.outdate(&source.manifest);
        return ticket.fail(source.changed(&reply), reply.arrival.received);
    }
    fetch.enter(FetchState::Fill);
    let draft = ticket.describe_within(room, source.description(number, reply.arrival.received));
    let body = reply.body.into_body(&fetch);
    let course = Course { length: Some(range.end - range.start), gives_up: false, place: None };
    let ended = pour(&fetch, draft, body, course).await;
    fetch.enter(if ended { FetchState::Landed } else { FetchState::Failed });
}

/// What memory has no room for, or a disk would refuse, is fetched again and again: better a little later. A disk that
/// stands still holds nobody up for longer than that.
pub(crate) async fn room_for_slice(source: &SliceSource, number: u64) -> SliceUnderWay {
    let (mut room, looks_left) = room_in_memory(source).await;
    room_on_disk(source, number, &mut room, looks_left).await;
    room
}

/// The same for a slice that is on its way and for which memory has become too small.
pub(crate) async fn wait_for_memory(draft: &Draft) {
    let mut looks_left = ROOM_LOOKS_MAX;
    while looks_left > 0 && draft.lacks_room() {
        looks_left -= 1;
        tokio::time::sleep(ROOM_LOOK_INTERVAL).await;
    }
}

/// How often it may still be looked, too.
async fn room_in_memory(source: &SliceSource) -> (SliceUnderWay, u32) {
    let cache = &source.core.shared.cache;
    let mut looks_left = ROOM_LOOKS_MAX;
    while looks_left > 0 && !cache.has_room_for_slice(source.sliced) {
        looks_left -= 1;
        tokio::time::sleep(ROOM_LOOK_INTERVAL).await;
    }
    (cache.slice_under_way(source.sliced), looks_left)
}

async fn room_on_disk(source: &SliceSource, number: u64, room: &mut SliceUnderWay, mut looks_left: u32) {
    while looks_left > 0 && source.core.shared.cache.is_disk_busy_for_slice(source.sliced, number) {
        looks_left -= 1;
        tokio::time::sleep(ROOM_LOOK_INTERVAL).await;
    }
    room.goes_to_disk(source.sliced);
}

/// A disk that takes longer than `limits.disk_read_timeout` has nothing.
async fn recalled(source: &SliceSource, number: u64) -> Option<Arc<Object>> {
    let (core, patience) = (&source.core, source.site.settings.limits.disk_read_timeout);
    let request = source.head.request();
    let recalling = core.shared.cache.recall_slice(source.sliced, number, &request, core.now());
    tokio::time::timeout(patience, recalling).await.unwrap_or_else(|_| {
        core.counters.disk_timeouts.add(1);
        None
    })
}
