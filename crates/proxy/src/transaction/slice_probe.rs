//! Slice probe: a range far into a body of which nothing is known. The slice that it begins in is asked for in its place: the
//! answer says how large the whole is, and becomes its manifest and its first slice.

use std::sync::Arc;

use cache::{Answer as Asked, Began, LookupOptions, Object, StoreAs};
use message::{FieldName, Status};
use rules::range::{RangeSpec, RangeSpecs};

use crate::downstream::Downstream;
use crate::fetch::broken::Broken;
use crate::fetch::client_link::ClientLink;
use crate::fetch::purpose::Purpose;
use crate::fetch::settled::{Ruling, Settled, SettledBody};
use crate::fetch::{Fetch, builtin_steps, fill, slice_manifest};
use crate::transaction::Transaction;
use crate::transaction::synth::Synth;

/// What became of it.
pub(crate) enum Probed {
    /// The manifest: it is stored, and the slice is on its way.
    Manifest(Arc<Object>),
    /// The answer is what the client asked for, or about it: an error, or the whole.
    Answered(Box<Fetch>, Box<Settled>, Began),
    /// It cannot be kept in slices: to be asked as the client asks.
    Unsliced,
    Unrouted(Synth),
    Broken(Broken),
}

/// Where the one range of a request begins, if that can be known.
pub(crate) fn first_byte(tx: &Transaction) -> Option<u64> {
    match RangeSpecs::of(tx.head.fields())?.single()? {
        // Whose If-Range it is nobody knows yet.
        RangeSpec::From { first, .. } if !tx.seen.has(FieldName::IfRange) => Some(first),
        _ => None,
    }
}

pub(crate) async fn run(tx: &mut Transaction, downstream: &mut Downstream<'_>, first: u64, slice_bytes: u64) -> Probed {
    let from = first / slice_bytes * slice_bytes;
    let range = from..from.saturating_add(slice_bytes);
    let began = tx.core.shared.cache.began();
    let mut fetch = match Fetch::of(tx, Purpose::Slice { range, if_range: None }) {
        Ok(fetch) => fetch,
        Err(synth) => return Probed::Unrouted(synth),
    };
    let settled = fetch.settle(&mut ClientLink::Attached(downstream.reborrow())).await;
    tx.tries.append(&mut fetch.tries.take());
    let settled = match settled {
        Ok(settled) => settled,
        Err(broken) => return Probed::Broken(broken),
    };
    let now = settled.arrival.received;
    if settled.made.head.status != Status::PARTIAL_CONTENT {
        return Probed::Answered(fetch, settled, began);
    }
    let key = tx.key();
    let Some((store_as, number)) = with_manifest(&fetch, &settled, key, from, slice_bytes) else {
        tx.core.shared.unsliceable.note(key, now.mono_ms);
        return Probed::Unsliced;
    };
    let options = LookupOptions {
        core: tx.core.index,
        always_miss: true,
        alone: true,
        began: Some(began),
        ..LookupOptions::default()
    };
    let asked = tx.core.shared.cache.ask(key, &tx.head.request(), &options, now);
    let (Asked::Miss(ticket) | Asked::HitForMiss(ticket, _)) = asked else { return Probed::Unsliced };
    let head = match store_as.whole.as_ref() {
        Some(whole) => Arc::clone(&whole.head),
        None => return Probed::Unsliced,
    };
    let store_as = StoreAs { whole: None, ..store_as };
    let begun = slice_manifest::begin(&fetch, ticket, (store_as, head), (number, number + 1), now);
    match begun {
        Some((object, stream)) => {
            if let (Some(stream), SettledBody::Origin(arriving)) = (stream, settled.body) {
                fill::spawn_slices(fetch, arriving, stream);
            }
            Probed::Manifest(object)
        }
        // Somebody was quicker, or it was purged.
        None => {
            let known = tx.core.shared.cache.find(key, &tx.head.request());
            known.filter(|known| known.sliced().is_some()).map_or(Probed::Unsliced, Probed::Manifest)
        }
    }
}

/// How the manifest is stored that a part of it makes known, and which slice the part is.
fn with_manifest(
    fetch: &Fetch,
    settled: &Settled,
    key: cache::Key,
    from: u64,
    slice_bytes: u64,
) -> Option<(StoreAs, u64)> {
    let Ruling::Rules(storable) = &settled.ruling else { return None };
    let head = &settled.made.head;
    let shared_head = builtin_steps::shared_head(head, &fetch.store_defaults());
    let store_as = builtin_steps::store_as(fetch, head, storable, &shared_head).ok()?;
    let (part, whole) = (store_as.partial?, store_as.whole.clone()?);
    let sliced = slice_manifest::sliced(fetch, &whole.head, part.complete?)?;
    let number = from / slice_bytes;
    let is_slice = sliced.slice_bytes == slice_bytes && sliced.range(number) == (part.from..part.to);
    let fields = head.fields.view();
    let is_elsewhere = fetch.place(fields).elsewhere(key).is_some() || fields.contains(FieldName::SetCookie);
    let store_as = StoreAs { rendered: whole.rendered, partial: None, sliced: Some(sliced), ..store_as };
    (is_slice && !is_elsewhere).then_some((store_as, number))
}
