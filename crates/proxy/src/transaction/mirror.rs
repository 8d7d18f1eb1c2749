//! Mirror: what a route's origin is asked goes to another origin, too, and what that answers is thrown away. The copy is a task of its own, with
//! limits of its own: neither the client nor the origin waits for it.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use bytes::Bytes;
use message::RequestHead;
use tokio::sync::oneshot;
use wire::RequestBody;

use crate::client_identity::ClientIdentity;
use crate::core::Core;
use crate::fetch::begin::Requester;
use crate::fetch::body_copy::BodyCopy;
use crate::fetch::mirrored;
use crate::policy::Policy;
use crate::settings::MirrorSettings;
use crate::site::{Backend, Routed, Site};
use crate::traces::exchange_trace::ExchangeTrace;
use crate::transaction::Transaction;

/// Begins to copy a request that is about to go to its origin. A body is copied while it is sent there, into what is returned.
pub(super) fn begin(tx: &Transaction) -> Option<BodyCopy> {
    let mirror = tx.site.rules_of(tx.routed)?.mirror.filter(|_| matches!(tx.policy, Policy::Builtin))?;
    // What holds for all routes holds for those of the mirror's own origin, too: it need not be asked twice.
    if tx.routed.backend == Some(Backend::Origin(mirror.origin)) || !takes_part(&tx.core, mirror) {
        return None;
    }
    let limits = &tx.site.settings.limits;
    let is_taken = match tx.body {
        RequestBody::None => true,
        RequestBody::Length(length) => length <= limits.mirror_body_bytes_max,
        RequestBody::Chunked => false,
    };
    // It holds its place while its body comes, so that no more bodies are copied at a time than there are places.
    let Some(place) = is_taken.then(|| Place::take(&tx.core, limits.mirrors_max)).flatten() else {
        tx.core.counters.mirrors_left_out.add(1);
        return None;
    };
    let (copy, body) = match tx.body {
        RequestBody::None => (None, None),
        RequestBody::Length(0) => {
            let (sender, whole) = oneshot::channel();
            // Who waits for it is begun below.
            let _ = sender.send(Bytes::new());
            (None, Some(whole))
        }
        RequestBody::Length(_) | RequestBody::Chunked => {
            let (copy, whole) = BodyCopy::new();
            (Some(copy), Some(whole))
        }
    };
    let routed = Routed { backend: Some(Backend::Origin(mirror.origin)), is_bypass: true, ..tx.routed };
    tokio::task::spawn_local(send(place, request_of(tx), routed, body));
    copy
}

/// Is it one of those that are copied? Which ones nobody can foretell.
fn takes_part(core: &Core, mirror: MirrorSettings) -> bool {
    let (index, count) = ((core.index as u64).to_le_bytes(), core.counters.requests.get().to_le_bytes());
    let bits = core.shared.cache.key([&b"mirror"[..], &index, &count]).bits();
    bits % MirrorSettings::WHOLE < mirror.millionths
}

/// What outlives the transaction.
struct Copied {
    site: Arc<Site>,
    head: Rc<RequestHead>,
    client: ClientIdentity,
    trace: Option<Rc<ExchangeTrace>>,
}

fn request_of(tx: &Transaction) -> Copied {
    Copied { site: Arc::clone(&tx.site), head: Rc::clone(&tx.head), client: tx.client, trace: tx.trace.clone() }
}

async fn send(place: Place, request: Copied, routed: Routed, body: Option<oneshot::Receiver<Bytes>>) {
    let core = Rc::clone(&place.0);
    let body = match body {
        None => None,
        Some(whole) => match whole.await {
            Ok(body) => Some(body),
            // The client has not sent all of it.
            Err(_) => return core.counters.mirrors_left_out.add(1),
        },
    };
    core.counters.mirrored.add(1);
    let requester = Requester::in_background((&core, &request.site), routed, &request.head);
    let requester = Requester { client: Some(request.client), trace: request.trace.as_ref(), ..requester };
    if !mirrored::send(&requester, body, request.site.settings.limits.mirror_timeout).await {
        core.counters.mirrors_failed.add(1);
    }
}

/// One of so many copies at a time, over all cores.
struct Place(Rc<Core>);

impl Place {
    fn take(core: &Rc<Core>, mirrors_max: usize) -> Option<Place> {
        let place = Place(Rc::clone(core));
        (core.shared.mirrors_open.fetch_add(1, Relaxed) < mirrors_max).then_some(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.shared.mirrors_open.fetch_sub(1, Relaxed);
    }
}
