//! Outline: a response whose body is too large to be kept in one piece is stored as a head whose body lies in slices.
//!
//! Only where the origin can be asked for the missing ones: the validator must be strong, and ranges understood.

use std::sync::Arc;

use cache::{Description, Key, Now, Object, Sliced, StoreAs, Ticket};
use message::{FieldName, ResponseHead, Status};
use rules::range::may_combine;

use crate::fetch::slice_fetch::SliceSource;
use crate::fetch::slice_stream::SliceStream;
use crate::fetch::{Fetch, Reply, slice_fetch, slice_stream};
use crate::limits::SLICE_BYTES_MIN;
use crate::site::Site;
use crate::worker::Core;

/// The size of slices by the configuration, as far as memory has room for them; `None` where there are to be none.
pub(crate) fn slice_bytes(core: &Core, site: &Site) -> Option<u64> {
    let wanted = site.settings.limits.slice_bytes;
    let bytes = core.shared.cache.slice_bytes(wanted);
    (bytes > 0 && bytes >= wanted.min(SLICE_BYTES_MIN)).then_some(bytes)
}

/// How the body of a whole response is to be kept in slices, if it is.
pub(crate) fn of_whole(
    fetch: &Fetch,
    reply: &Reply,
    store_as: &StoreAs,
    key: Key,
    length: Option<u64>,
) -> Option<Sliced> {
    let fields = reply.head.fields.view();
    let is_to_be = length.is_some_and(|length| fetch.core.shared.cache.is_to_be_sliced(length))
        && !fetch.core.shared.unsliceable.has(key, reply.received.mono_ms)
        && fetch.vcl.is_none()
        && reply.head.status == Status::OK
        && store_as.elsewhere.is_none()
        // Its first requester alone gets it, and with its body.
        && !fields.contains(FieldName::SetCookie)
        && fields.get(FieldName::AcceptRanges).is_some_and(|units| units.trim_ascii().eq_ignore_ascii_case(b"bytes"));
    if !is_to_be {
        return None;
    }
    sliced(fetch, &reply.head, key, length?)
}

/// The same slices if the very representation is stored in some already. `None` without a strong validator.
pub(crate) fn sliced(fetch: &Fetch, head: &ResponseHead, key: Key, complete: u64) -> Option<Sliced> {
    let fields = head.fields.view();
    if !may_combine(fields, fields) {
        return None;
    }
    let bytes = slice_bytes(&fetch.core, &fetch.site)?;
    let known = fetch.core.shared.cache.find(key, &fetch.head.request()).and_then(|known| {
        let sliced = known.sliced().filter(|known| known.complete == complete && known.slice_bytes == bytes)?;
        may_combine(known.fields(), fields).then_some(sliced)
    });
    Some(known.unwrap_or_else(|| Sliced::new(complete, bytes)))
}

/// Stores the outline. `None` if it was purged meanwhile.
fn store(ticket: Ticket, store_as: StoreAs, head: Arc<ResponseHead>, now: Now) -> Option<Arc<Object>> {
    let draft = ticket.describe(Description {
        head: Arc::clone(&head),
        shared_head: head,
        length: Some(0),
        storable: Some(store_as),
        uncacheable_ms: 0,
        mark: None,
        now,
    });
    draft.land(None)
}

/// Stores the outline, and pours the body that arrives into the slices from `number` to `end`. The rights to the first two
/// are taken before anybody can find the outline and ask for them. Returns the outline, and what is to be poured.
pub(crate) fn begin(
    fetch: &Fetch,
    ticket: Ticket,
    (store_as, head): (StoreAs, Arc<ResponseHead>),
    (number, end): (u64, u64),
    now: Now,
) -> Option<(Arc<Object>, Option<SliceStream>)> {
    let sliced = store_as.sliced?;
    let reserve = |number: u64| slice_fetch::reserve(&fetch.core, sliced, number, &fetch.head.request());
    let first = reserve(number);
    let second = if first.is_some() && number + 1 < end { reserve(number + 1) } else { None };
    let Some(outline) = store(ticket, store_as, head, now) else {
        slice_stream::give_back([first, second]);
        return None;
    };
    let source = SliceSource::of_fetch(fetch, &outline);
    let stream = source.zip(first).map(|(source, first)| SliceStream { source, number, end, first, second });
    Some((outline, stream))
}
