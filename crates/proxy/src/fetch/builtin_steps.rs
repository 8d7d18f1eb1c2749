//! The steps of a fetch by the built-in policy: the origin is the route's, and RFC 9111 says what becomes of the answer.

use std::cell::Cell;
use std::sync::Arc;

use bytes::Bytes;
use cache::{Began, Failure, Part, StoreAs, Ticket, WholeHead};
use message::{FieldName, FieldsView, Method, RequestHead, Response, ResponseHead, Status};
use rules::conditions::Validators;
use rules::freshness::{OriginFailure as Kind, may_serve_on_error};
use rules::storing::{Withholding, may_store, may_store_part};
use rules::{
    ContentCoding, Exchange, Facts, RequestDirectives, StoreDefaults, UrlVariation, Vary, VarySpec, WhyNotStored,
    content_coding, credentials,
};
use wire::{HopByHop, ResponseBody};

use crate::coding_choice::Codable;
use crate::fetch::arrival::Arrival;
use crate::fetch::asked_owner::AskedOwner;
use crate::fetch::broken::Broken;
use crate::fetch::builtin_esi;
use crate::fetch::esi_scan::EsiWish;
use crate::fetch::fetch_policy::FetchVerdict;
use crate::fetch::fill::{Landing, Unkept};
use crate::fetch::invalidated::invalidate_after;
use crate::fetch::notes::FetchNotes;
use crate::fetch::purpose::Purpose;
use crate::fetch::settled::{Ruling, Settled, SettledBody, Storable};
use crate::fetch::timeouts::Timeouts;
use crate::fetch::whole_time::WholeTime;
use crate::fetch::{Fetch, OriginReply, affinity, failed, refreshed, slice_manifest};
use crate::fleet::Owner;
use crate::forward::Taken;
use crate::policy;
use crate::settings::{EsiPages, RouteTarget, RouteTimeouts};
use crate::site::Backend;
use crate::transaction::synth::Synth;
use crate::vcl_story::scope_heads::MadeHead;
use crate::{cache_groups, closed_paths, dictionary_use, response_tags};

/// Chooses the origin. Fails when no origin is routed to, and when the path leads above the root.
pub(super) fn begin(fetch: &mut Fetch) -> Result<(), Synth> {
    let routed = fetch.routed.backend.ok_or_else(Synth::no_route)?;
    fetch.target = target(fetch)?;
    let is_above_root = closed_paths::leads_above_root(fetch.request_to_origin().path);
    if matches!(routed, Backend::Origin(_)) && is_above_root {
        return Err(Synth::path_malformed().refused_outright());
    }
    let request = fetch.head.request();
    let taken = fetch.site.origin(routed, &request, fetch.core.now().mono_ms, &mut fetch.ways);
    let Taken { origin, parent } = taken.map_err(|failure| Synth::failed(&failure))?;
    let said = fetch.site.rules_of(fetch.routed).map_or_else(RouteTimeouts::default, |rules| rules.timeouts);
    fetch.timeouts = Timeouts::asked(&said, &origin, &fetch.site.settings.limits);
    fetch.whole = said.whole.map(WholeTime::new);
    (fetch.chosen, fetch.parent) = (Some(origin), parent);
    ask_owner(fetch);
    // A response that does not say that it is shared is not confirmed by an answer to somebody's credentials: an entity tag need
    // not depend on who asks, and then a 304 would make the one's page the other's.
    if let Purpose::Store(stale) = &mut fetch.purpose
        && stale.as_ref().is_some_and(|stale| !stale.facts().says_shared)
        && has_credentials(&fetch.head)
    {
        *stale = None;
    }
    Ok(())
}

/// The fetch has its origin. Is somebody else asked in its place?
fn ask_owner(fetch: &mut Fetch) {
    let Some(fleet) = fetch.site.fleet.clone().filter(|_| is_of_fleet(fetch)) else { return };
    let (request, now_ms) = (fetch.head.request(), fetch.core.now().mono_ms);
    if !may_trust_owners(fetch, now_ms) {
        return;
    }
    let key = fleet.key_of(&request);
    let counters = &fetch.core.counters;
    let Some(Owner { address, avoid }) = fleet.owner(key, now_ms, &[], counters) else {
        fetch.own_fetch = Some(fleet.begin_own());
        return;
    };
    let Some(crossing) = fleet.crossings.ask(key) else { return };
    let said = fetch.site.rules_of(fetch.routed).map_or_else(RouteTimeouts::default, |rules| rules.timeouts);
    let of_owner = Timeouts::asked(&said, fleet.origin(), &fetch.site.settings.limits);
    let timeouts = std::mem::replace(&mut fetch.timeouts, of_owner);
    let Some(origin) = fetch.chosen.replace(Arc::clone(fleet.origin())) else { return };
    let (failed, proof) = (Vec::new(), Cell::default());
    let owner = AskedOwner { fleet, key, at: address, avoid, failed, proof, origin, timeouts, _crossing: crossing };
    fetch.owner = Some(Box::new(owner));
}

/// Is what an owner has as good as what the origin has? Who has heard nothing of the log for a lease knows of no purge by which to hold an
/// owner to account, and what an owner has may be a lease old itself.
fn may_trust_owners(fetch: &Fetch, now_ms: u64) -> bool {
    let shared = &fetch.core.shared;
    !shared.log_position.is_alone() && !shared.cache.fleet_lease().has_lapsed(now_ms)
}

/// May others get what it brings, and would another node find the same for it? A page that is put together of parts, what a script beneath a
/// root answers, and what a service has said of the client are each node's own affair.
fn is_of_fleet(fetch: &Fetch) -> bool {
    let site = &fetch.site;
    fetch.purpose.is_for_many()
        && !fetch.client.is_some_and(|client| client.is_node)
        && !fetch.is_forwarded()
        && !fetch.routed.is_bypass
        && site.route_of(fetch.routed).is_some_and(|route| matches!(route.target, RouteTarget::Origin(_)))
        && site.program.is_none()
        && site.esi_pages(fetch.routed) == EsiPages::None
        && !site.asks_service(fetch.routed)
}

/// What the route makes of the path.
fn target(fetch: &Fetch) -> Result<Option<Vec<u8>>, Synth> {
    let Some(route) = fetch.site.route_of(fetch.routed).filter(|route| route.rules.target.acts()) else {
        return Ok(None);
    };
    let target = route.rules.target.of(&fetch.head.request(), route.path_pattern.as_deref());
    target.map_err(|_| Synth::path_malformed().refused_outright())
}

/// A 304 to what was to be stored is about what we hold, or it is asked for again without conditions. All else is the answer.
pub(super) fn judge(fetch: &mut Fetch, reply: OriginReply) -> FetchVerdict {
    let (request, defaults, arrival) = (fetch.head.request(), fetch.store_defaults(), reply.arrival);
    if reply.head.status != Status::NOT_MODIFIED || !fetch.purpose.is_for_many() {
        let exchange = arrival.exchange(&request, reply.head.response(), &defaults);
        let storable = storable(&fetch.purpose, &exchange, reply.framing);
        let (mut head, mut body) = (reply.head, reply.body);
        if storable.is_err() {
            // What is stored is for others, too.
            affinity::tell(fetch.origin(), &fetch.head, body.upstream.label(), &mut head.fields);
        }
        let pages = esi_pages(fetch, &head, body.length());
        return match builtin_esi::apply((&fetch.core, &fetch.site, pages), &mut head, &mut body) {
            Ok(esi) => settled(head, arrival, SettledBody::Origin(body), storable, esi),
            Err(why) => FetchVerdict::Fail(Broken::Origin(failed::without_filters(fetch.origin(), &why))),
        };
    }
    let verdict = match &fetch.purpose {
        Purpose::Store(Some(stale)) if confirms(stale.response(), &stale.facts(), reply.head.fields.view()) => {
            let (head, facts) = refreshed::merged(&request, stale.response(), (&reply.head, arrival), &defaults);
            let own = refreshed::own_fields(&reply.head, &defaults);
            let facts = facts.map(|facts| (facts, None));
            settled(head, arrival, SettledBody::Stored { own }, facts, None)
        }
        Purpose::Store(Some(_)) => {
            fetch.purpose = Purpose::Store(None);
            FetchVerdict::Again
        }
        _ => FetchVerdict::Fail(Broken::Origin(failed::unasked_304(fetch.origin()))),
    };
    // A 304 has no body: the connection is free.
    reply.body.into_body(fetch).finish();
    verdict
}

/// Which answers are looked through for parts; of those that are too long to be kept in one piece, none.
fn esi_pages(fetch: &Fetch, head: &ResponseHead, length: Option<u64>) -> EsiPages {
    let is_too_long = |length| {
        length > fetch.site.settings.limits.object_bytes_max || slice_manifest::is_to_be_sliced(fetch, head, length)
    };
    match length.is_some_and(is_too_long) {
        true => EsiPages::None,
        false => builtin_esi::pages(&fetch.site, (fetch.routed, &fetch.head.request()), &fetch.purpose),
    }
}

fn settled(
    head: ResponseHead,
    arrival: Arrival,
    body: SettledBody,
    storable: Storable,
    esi: Option<EsiWish>,
) -> FetchVerdict {
    let (made, ruling) = (MadeHead { status: head.status.0, head }, Ruling::Rules(storable));
    FetchVerdict::Settled(Box::new(Settled {
        made,
        body,
        arrival,
        ruling,
        // What is looked through is whole first.
        streams: esi.is_none(),
        why: "",
        esi,
        page: None,
    }))
}

/// Is this 304 about what is stored, and does it belong where that is?
fn confirms(stored: Response<'_>, facts: &Facts, update: FieldsView<'_>) -> bool {
    let validators = Validators::of(stored, facts);
    validators.is_some_and(|validators| validators.are_confirmed_by(update))
        && !UrlVariation::is_changed_by(stored.fields, update)
}

/// What `rules` make of an answer, and which part of the representation it brings, if not the whole.
fn storable(purpose: &Purpose, exchange: &Exchange<'_>, framing: ResponseBody) -> Storable {
    // Only who asked for a range: a 206 that nobody asked for is none of ours.
    let asks_for_range = matches!(purpose, Purpose::Pass | Purpose::Slice { .. });
    if exchange.response.status != Status::PARTIAL_CONTENT || !asks_for_range {
        return Ok((may_store(exchange)?, None));
    }
    let (facts, said) = may_store_part(exchange)?;
    // A body that is not as long as its Content-Range says is nobody's part (J13), but the client's to judge.
    if framing != ResponseBody::Length(said.length()) {
        return Err(WhyNotStored::ContentRange);
    }
    Ok((facts, Some(Part { from: said.range.start, to: said.range.end, complete: said.complete_length })))
}

/// The answer to a HEAD freshens what is stored, that to an unsafe request invalidates it.
pub(super) fn change_stored(fetch: &Fetch, settled: &Settled, began: Began) -> Began {
    let (shared, request) = (&fetch.core.shared, fetch.head.request());
    // What one client is told is not what others are.
    if request.method == Method::Head && !fetch.routed.is_bypass {
        refreshed::by_head(fetch, policy::key(shared, &request), settled, began);
    }
    invalidate_after(&fetch.core, &request, &settled.made.head, began)
}

/// What is stored, and where, or why nothing is. Fails where something stale serves better than an error.
pub(super) fn landing(
    fetch: &Fetch,
    settled: &Settled,
    storable: &Storable,
    ticket: &Ticket,
    notes: Option<&FetchNotes>,
) -> Result<Landing, Failure> {
    if let Some(failure) = in_whose_place_stale_serves(fetch, ticket, settled) {
        return Err(failure);
    }
    let head = &settled.made.head;
    let (head, shared_head, is_new) = match &settled.body {
        SettledBody::Stored { own } => {
            if let Some(notes) = notes {
                notes.note_refreshed(own.clone());
            }
            let merged = Arc::new(head.clone());
            (Arc::clone(&merged), merged, false)
        }
        _ => (Arc::new(leaders_head(head)), Arc::new(shared_head(head, &fetch.store_defaults())), true),
    };
    let is_storable = matches!(storable, Ok((_, None)));
    let described = |head| described(fetch, &settled.made.head, head, (settled.body.length(), is_storable));
    let [head, shared_head] = [head, shared_head].map(described);
    let place = is_new.then(|| fetch.place(settled.made.head.fields.view()));
    let mut kept = store_as(fetch, &settled.made.head, storable, &shared_head);
    if let (Ok(store_as), Some(place)) = (&mut kept, &place) {
        store_as.elsewhere = place.elsewhere(ticket.flight().key());
    }
    let kept = kept.map_err(|why| {
        if let Some(notes) = notes {
            notes.note_why(why.token());
        }
        let rendered = if is_new { Bytes::new() } else { fetch.rendered(&shared_head) };
        Unkept {
            mark: None,
            is_kept: why.is_about_credentials(),
            is_personal: is_personal(why, has_credentials(&fetch.head)),
            why_not: Some(why),
            rendered,
        }
    });
    let uncacheable_ms = fetch.site.settings.policy.uncacheable.as_millis() as u64;
    Ok(Landing { head, shared_head, kept, uncacheable_ms, supersedes: true, place, esi: settled.page.clone() })
}

/// RFC 5861 §4: an error answer is as bad as none where something stale may be served. What is beyond 599 is no status and
/// counts as one (RFC 9110 §15).
fn in_whose_place_stale_serves(fetch: &Fetch, ticket: &Ticket, settled: &Settled) -> Option<Failure> {
    let status = settled.made.head.status;
    let is_confirmed = matches!(settled.body, SettledBody::Stored { .. });
    if is_confirmed || !matches!(status.0, 500 | 502 | 503 | 504 | 600..) {
        return None;
    }
    let stale = ticket.stale().filter(|stale| stale.is_live())?;
    let directives = RequestDirectives::parse(fetch.head.fields());
    let resident_ms = stale.resident_ms(settled.arrival.received);
    may_serve_on_error(&stale.facts(), resident_ms, &directives, Kind::ServerError)
        .then(|| failed::server_error(fetch.origin(), status.0))
}

fn has_credentials(head: &RequestHead) -> bool {
    credentials::of_request(head.fields()).is_some()
}

/// Is a response not stored for the credentials that it was asked for with? Those to others may be.
fn is_personal(why: WhyNotStored, has_credentials: bool) -> bool {
    why.is_about_credentials() && has_credentials
}

/// May it be stored, and as what? The reason if not.
pub(crate) fn store_as(
    fetch: &Fetch,
    head: &ResponseHead,
    storable: &Storable,
    shared_head: &ResponseHead,
) -> Result<StoreAs, WhyNotStored> {
    let (facts, partial) = *storable.as_ref().map_err(|why| *why)?;
    let fields = head.fields.view();
    // In whatever coding it lies, it answers in any other; of a part nothing can be made.
    let is_brought_into_others =
        partial.is_none() && fetch.compression().is_some() && ContentCoding::said_by(fields).is_some();
    let others = |spec: VarySpec| match is_brought_into_others {
        // Nor is it told whether its client has a dictionary.
        true => [FieldName::AcceptEncoding, FieldName::AvailableDictionary, FieldName::DictionaryId]
            .into_iter()
            .try_fold(spec, |spec, name| spec.without(name)),
        false => Some(spec),
    };
    let vary = fetch.widened(vary(fields)?.and_then(others));
    let rendered = fetch.rendered(shared_head);
    let whole = partial.map(|_| whole_head(fetch, shared_head));
    let groups = cache_groups::of_response(&fetch.core.shared.cache, &fetch.head.request(), fields);
    let tags = response_tags::of_response(&fetch.core.shared.cache, fields).map_err(|_| WhyNotStored::TooManyTags)?;
    let (sliced, elsewhere) = (None, None);
    Ok(StoreAs { facts, lifetimes: None, vary, rendered, partial, whole, sliced, elsewhere, groups, tags })
}

/// Who takes other codings is answered otherwise, or has a dictionary, and whoever stores the answer behind us has to know.
fn described(
    fetch: &Fetch,
    said: &ResponseHead,
    head: Arc<ResponseHead>,
    (length, is_storable): (Option<u64>, bool),
) -> Arc<ResponseHead> {
    let head = selected(fetch, head);
    let Some(compression) = fetch.compression() else { return head };
    let Some(codable) = Codable::of(compression.settings, head.status, head.fields.view(), length) else { return head };
    let mut described = (*head).clone();
    content_coding::vary_by_coding(&mut described.fields);
    if is_storable {
        let said = (said.status, said.fields.view());
        dictionary_use::announce((compression, &codable), &fetch.head.request(), said, &mut described.fields);
    }
    described.fields.shrink();
    Arc::new(described)
}

/// Whoever stores it behind us has to know by what its route selects it.
fn selected(fetch: &Fetch, head: Arc<ResponseHead>) -> Arc<ResponseHead> {
    if fetch.site.rules_of(fetch.routed).is_none_or(|rules| !rules.selects()) {
        return head;
    }
    let mut described = (*head).clone();
    say_selection(fetch, &mut described);
    Arc::new(described)
}

/// The same of what goes past the store: somebody behind us may store it all the same.
pub(super) fn say_selection(fetch: &Fetch, head: &mut ResponseHead) {
    let only_reads = matches!(fetch.head.method, Method::Get | Method::Head);
    let rules = fetch.site.rules_of(fetch.routed).filter(|rules| only_reads && rules.selects());
    if let Some(rules) = rules {
        rules.caching.say(&mut head.fields, rules.cookies.select());
        head.fields.shrink();
    }
}

/// By what a response is selected (RFC 9111 §4.1).
pub(super) fn vary(fields: FieldsView<'_>) -> Result<Option<VarySpec>, WhyNotStored> {
    match Vary::of(fields) {
        Vary::Fields(spec) => Ok(Some(spec)),
        Vary::None => Ok(None),
        Vary::Any => Err(WhyNotStored::VaryAny),
        Vary::TooMany => Err(WhyNotStored::VaryTooMany),
    }
}

/// The head of a 206 as that of the whole, for when its parts are all there (RFC 9111 §3.4).
fn whole_head(fetch: &Fetch, part: &ResponseHead) -> WholeHead {
    let mut head =
        ResponseHead { reason: None, status: Status::OK, version: part.version, fields: part.fields.clone() };
    head.fields.remove(FieldName::ContentRange);
    head.fields.shrink();
    let rendered = fetch.rendered(&head);
    WholeHead { head: Arc::new(head), rendered }
}

/// What is stored, and what everybody but the first requester gets: no Set-Cookie (RFC 9111 §7.3), no field of the
/// connection, no Age.
pub(crate) fn shared_head(head: &ResponseHead, defaults: &StoreDefaults) -> ResponseHead {
    let mut fields = Withholding::stored(head.fields.view(), defaults);
    fields.remove(FieldName::ContentLength);
    fields.shrink();
    ResponseHead { status: head.status, version: head.version, reason: None, fields }
}

/// What the first requester gets: all but what belongs to the connection.
fn leaders_head(head: &ResponseHead) -> ResponseHead {
    let fields = HopByHop::end_to_end(head.fields.view());
    ResponseHead { status: head.status, version: head.version, reason: None, fields }
}

#[cfg(test)]
#[path = "builtin_steps_tests.rs"]
mod tests;
