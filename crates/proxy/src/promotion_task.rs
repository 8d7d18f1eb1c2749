//! Promotes stored bodies that are asked for again and again to the page file, beside everything else that its core does.

use std::sync::Arc;

use cache::{BodyPromotion, Object};

/// So many bytes of its body went out from memory. Must be called on a worker.
pub(crate) fn note_sent(object: &Arc<Object>, bytes: u64) {
    if let Some(body) = object.body().note_sent(bytes) {
        tokio::task::spawn_local(promote(body));
    }
}

async fn promote(body: BodyPromotion) {
    let mut left = Some(body);
    while let Some(body) = left {
        left = body.step();
        tokio::task::yield_now().await;
    }
}
