//! Refreshed: the origin said that what is stored still holds, by a 304 or in its answer to a HEAD. What is stored gets a
//! new head, which is judged as that of a 200 would be before anybody but its requester sees it.

use cache::{Began, Key};
use message::{FieldName, Fields, FieldsView, Method, Request, Response, ResponseHead};
use rules::storing::{Withholding, facts_after_update};
use rules::update::HeadEffect;
use rules::{Facts, StoreDefaults, UrlVariation, Vary, WhyNotStored};
use wire::HopByHop;

use crate::fetch::Fetch;
use crate::fetch::arrival::Arrival;
use crate::fetch::settled::Settled;

/// The fields of a 304 that its requester gets and nobody else, as from a 200: its cookies, and what `no-cache="…"` or
/// `private="…"` names.
pub(super) fn own_fields(update: &ResponseHead, defaults: &StoreDefaults) -> Fields {
    let end_to_end = HopByHop::end_to_end(update.fields.view());
    let withholding = Withholding::of(end_to_end.view(), defaults);
    let mut own = Fields::default();
    for field in end_to_end.view().iter() {
        if withholding.withholds(&field) && field.name != FieldName::Age {
            own.push_named(field.name_text, field.value);
        }
    }
    own
}

/// The stored head under the update, and its facts, or why it may not be kept.
pub(super) fn merged(
    request: &Request<'_>,
    stored: Response<'_>,
    (update, arrival): (&ResponseHead, Arrival),
    defaults: &StoreDefaults,
) -> (ResponseHead, Result<Facts, WhyNotStored>) {
    let mut head = stored.to_head();
    rules::update::merge_304(&mut head, update.response(), defaults);
    // The new Age is that of the update: an old one would be counted twice.
    head.fields.remove(FieldName::Age);
    // What is stored answers GET, whatever asked just now.
    let request = Request { method: Method::Get, ..request.clone() };
    let exchange = arrival.exchange(&request, update.response(), defaults);
    let facts = facts_after_update(&exchange, stored.fields, head.response());
    head.fields.shrink();
    (head, facts)
}

/// Where it belongs, and to whom, only a GET may say anew.
fn belongs_elsewhere(stored: FieldsView<'_>, update: FieldsView<'_>) -> bool {
    let regroups = update.contains(FieldName::CacheGroups)
        && rules::groups::of_response(update) != rules::groups::of_response(stored);
    let varies = update.contains(FieldName::Vary) && Vary::of(update) != Vary::of(stored);
    regroups || varies || UrlVariation::is_changed_by(stored, update)
}

/// RFC 9111 §4.3.5: what the answer to a HEAD says about a stored GET response. `began` is the number under which the HEAD
/// was asked.
pub(crate) fn by_head(fetch: &Fetch, key: Key, settled: &Settled, began: Began) {
    let (update, arrival) = (&settled.made.head, settled.arrival);
    let cache = &fetch.core.shared.cache;
    let Some(stored) = cache.find(key, &fetch.head.request()) else { return };
    // What was stored or invalidated after the HEAD had left is newer than its answer.
    if !stored.was_stored_before(began, arrival.received.mono_ms.saturating_sub(arrival.delay_ms)) {
        return;
    }
    let (held, now_s) = ((stored.response(), &stored.facts()), (arrival.received.wall_ms / 1000) as i64);
    let effect = rules::update::head_effect(held, stored.length(), update.response(), now_s);
    if effect == HeadEffect::None {
        return;
    }
    match merged(&fetch.head.request(), stored.response(), (update, arrival), &fetch.store_defaults()) {
        (head, Ok(facts))
            if effect == HeadEffect::Update && !belongs_elsewhere(stored.fields(), update.fields.view()) =>
        {
            let rendered = fetch.rendered(&head);
            cache.freshen(&stored, Some((&head, &rendered)), facts, (began, arrival.received));
        }
        // What somebody's credentials were answered says nothing of what others get.
        (_, Err(why)) if why.is_about_credentials() => {}
        _ => {
            let facts = Facts { always_validate: true, ..stored.facts() };
            cache.freshen(&stored, None, facts, (began, arrival.received));
        }
    }
}
