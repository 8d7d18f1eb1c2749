//! Lays stored bodies that are asked for again and again into the page file, beside everything else that its core does.

use std::sync::Arc;

use cache::{LayingBody, Object};

/// So many bytes of its body went out from memory. Must be called on a worker.
pub(crate) fn note_sent(object: &Arc<Object>, bytes: u64) {
    if let Some(body) = object.body().note_sent(bytes) {
        tokio::task::spawn_local(lay(body));
    }
}

async fn lay(body: LayingBody) {
    let mut left = Some(body);
    while let Some(body) = left {
        left = body.step();
        tokio::task::yield_now().await;
    }
}
