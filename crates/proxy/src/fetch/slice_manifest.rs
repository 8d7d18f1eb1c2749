//! Manifest: a response whose body is too large to be kept in one piece is stored as a head whose body lies in slices.
//!
//! Only where the origin can be asked for the missing ones: the validator must be strong, and ranges understood.

use std::sync::Arc;

use bytes::Bytes;
use cache::{Description, Key, Now, Object, Sliced, StoreAs, Ticket};
use message::{FieldName, ResponseHead, Status};
use rules::range::may_combine;

use crate::core::Core;
use crate::fetch::fill::Landing;
use crate::fetch::slice_fetch::SliceSource;
use crate::fetch::slice_stream::SliceStream;
use crate::fetch::{Fetch, slice_fetch, slice_stream};
use crate::limits::SLICE_BYTES_MIN;
use crate::site::Site;

/// A manifest begins as if it had been asked for so often already: as often as any policy counts.
const MANIFEST_USES: u32 = 3;

/// The size of slices by the configuration, as far as memory has room for them; `None` where there are to be none.
pub(crate) fn slice_bytes(core: &Core, site: &Site) -> Option<u64> {
    let wanted = site.settings.limits.slice_bytes;
    let bytes = core.shared.cache.slice_bytes(wanted);
    (bytes > 0 && bytes >= wanted.min(SLICE_BYTES_MIN)).then_some(bytes)
}

/// The strong entity tag by which the origin of a whole response can be asked for parts of it. `None` where it cannot.
pub(crate) fn ranges_tag(head: &ResponseHead) -> Option<Bytes> {
    let fields = head.fields.view();
    let units = fields.get(FieldName::AcceptRanges)?;
    let is_askable =
        head.status == Status::OK && units.trim_ascii().eq_ignore_ascii_case(b"bytes") && may_combine(fields, fields);
    fields.get(FieldName::Etag).filter(|_| is_askable).map(Bytes::copy_from_slice)
}

/// How the body of a whole response is to be kept in slices, if it is.
pub(super) fn of_whole(fetch: &Fetch, landing: &Landing, key: Key, length: Option<u64>, now: Now) -> Option<Sliced> {
    let (store_as, length) = (landing.kept.as_ref().ok()?, length?);
    if !is_to_be_sliced(fetch, &landing.shared_head, length) || fetch.core.shared.unsliceable.has(key, now.mono_ms) {
        return None;
    }
    // A cookie its first requester alone gets, and with the body.
    let sets_cookie = |head: &ResponseHead| head.fields.view().contains(FieldName::SetCookie);
    let is_everybody_s = sets_cookie(&landing.head) == sets_cookie(&landing.shared_head);
    if store_as.elsewhere.is_some() || !is_everybody_s {
        return None;
    }
    Some(Sliced::new(length, slice_bytes(&fetch.core, &fetch.site)?))
}

/// Is a body too large for one piece, and can the origin be asked for parts of it? If its head has another entity tag now,
/// the origin does not know that; and what came of a request with a body cannot be asked for without it.
pub(super) fn is_to_be_sliced(fetch: &Fetch, head: &ResponseHead, length: u64) -> bool {
    if !fetch.core.shared.cache.is_to_be_sliced(length) || head.status != Status::OK || fetch.carried.is_some() {
        return false;
    }
    fetch.ranges_tag.is_some() && head.fields.view().get(FieldName::Etag) == fetch.ranges_tag.as_deref()
}

/// New slices. `None` without a strong validator.
pub(crate) fn sliced(fetch: &Fetch, head: &ResponseHead, complete: u64) -> Option<Sliced> {
    if !may_combine(head.fields.view(), head.fields.view()) {
        return None;
    }
    Some(Sliced::new(complete, slice_bytes(&fetch.core, &fetch.site)?))
}

/// The slices that the very representation is stored in already.
fn known(fetch: &Fetch, head: &ResponseHead, key: Key, wanted: Sliced) -> Option<Sliced> {
    let known = fetch.core.shared.cache.find(key, &fetch.head.request())?;
    let is_cut_so = |known: &Sliced| (known.complete, known.slice_bytes) == (wanted.complete, wanted.slice_bytes);
    let sliced = known.sliced().filter(is_cut_so)?;
    may_combine(known.fields(), head.fields.view()).then_some(sliced)
}

/// Stores the manifest. `None` if it was purged meanwhile.
fn store(ticket: Ticket, store_as: StoreAs, head: Arc<ResponseHead>, now: Now) -> Option<Arc<Object>> {
    let draft = ticket.describe(Description {
        head: Arc::clone(&head),
        shared_head: head,
        length: Some(0),
        storable: Some(store_as),
        uncacheable_ms: 0,
        is_personal: false,
        why_not: None,
        supersedes: true,
        mark: None,
        esi: None,
        now,
    });
    draft.land(None)
}

/// Stores the manifest, and pours the body that arrives into the slices from `number` to `end`. The rights to the first two
/// are taken before anybody can find the manifest and ask for them. Returns the manifest, and what is to be poured.
pub(crate) fn begin(
    fetch: &Fetch,
    ticket: Ticket,
    (store_as, head): (StoreAs, Arc<ResponseHead>),
    (number, end): (u64, u64),
    now: Now,
) -> Option<(Arc<Object>, Option<SliceStream>)> {
    // Of two that come at once the second must find the first, or what is fetched for that one is found by nobody.
    let _one_at_a_time = fetch.core.shared.making_manifest.lock();
    let sliced = store_as.sliced?;
    let sliced = known(fetch, &head, ticket.flight().key(), sliced).unwrap_or(sliced);
    let store_as = StoreAs { sliced: Some(sliced), ..store_as };
    let reserve = |number: u64| slice_fetch::reserve(&fetch.core, sliced, number, &fetch.head.request());
    let first = reserve(number);
    let second = if first.is_some() && number + 1 < end { reserve(number + 1) } else { None };
    let Some(manifest) = store(ticket, store_as, head, now) else {
        slice_stream::give_back([first, second]);
        return None;
    };
    // Memory may be so short that what was stored last leaves first.
    (0..MANIFEST_USES).for_each(|_| manifest.note_needed());
    let source = SliceSource::of_fetch(fetch, &manifest);
    let stream = source.zip(first).map(|(source, first)| SliceStream { source, number, end, first, second });
    Some((manifest, stream))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fetch::fetch_test_messages::response;

    #[test]
    fn an_origin_is_asked_for_parts_of_a_200_with_a_strong_tag_if_it_knows_ranges() {
        let check = |status, lines: &[&str], expect: Option<&str>| {
            assert_eq!(
                ranges_tag(&response(status, lines)).as_deref(),
                expect.map(str::as_bytes),
                "{status} {lines:?}"
            );
        };
        let (ranges, strong) = ("Accept-Ranges: bytes", "ETag: \"v1\"");
        check(200, &[ranges, strong], Some("\"v1\""));
        check(200, &[ranges, "ETag: W/\"v1\""], None);
        check(200, &[ranges], None);
        check(200, &["Accept-Ranges: none", strong], None);
        check(200, &[strong], None);
        check(203, &[ranges, strong], None);
    }
}
