//! The last hour by the second and the last day by the minute, kept for the dashboard: figures, and annotations for what was done or happened.
//!
//! A thread of its own reads the counters once a second ([`history_sampler`]), so neither a worker nor a request pays for it. What is kept is
//! bounded, in memory and in the file that brings it over a restart ([`history_file`]). It knows nothing of who asks.

mod annotation;
mod history_columns;
mod history_file;
mod history_reading;
mod history_request;
mod history_ring;
mod history_sampler;

use parking_lot::Mutex;
use proxy::wall_now_ms;

pub use annotation::AnnotationKind;
pub use history_request::HistoryRequest;
pub use history_sampler::HistorySampler;

use annotation::Annotation;
use history_ring::HistoryRing;

/// What is kept, for who writes it and who reads it.
#[derive(Default)]
pub struct History {
    ring: Mutex<HistoryRing>,
}

impl History {
    /// Something was done just now, or happened.
    pub fn annotate(&self, kind: AnnotationKind, text: &str) {
        self.ring.lock().annotate(Annotation::new(wall_now_ms() / 1_000, kind, text));
    }
}
