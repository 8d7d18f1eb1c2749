//! A body that has begun to arrive becomes one that is pulled, in the terms of its fetch.

use std::rc::Rc;
use std::sync::Arc;

use crate::fetch::Fetch;
use crate::fetch::fetched_body::FetchedBody;
use crate::fetch::origin_body::{Arriving, OriginBody, RecordedEnd};
use crate::fetch::whole_time::WholeTime;

impl Arriving {
    /// For a pass, whose fetch ends in its transaction's transmit.
    pub(crate) fn into_passed(self, fetch: &mut Fetch) -> FetchedBody {
        fetch.passed();
        self.into_body(fetch)
    }

    pub(crate) fn into_body(mut self, fetch: &Fetch) -> FetchedBody {
        let filters = self.filters.take();
        FetchedBody::new(self.into_origin_body(fetch), filters)
    }

    fn into_origin_body(self, fetch: &Fetch) -> OriginBody {
        let mut upstream = self.upstream;
        upstream.begin_body(self.framing, &fetch.site.settings.limits.chunked);
        OriginBody {
            core: Rc::clone(&fetch.core),
            upstream: Some(upstream),
            framing: self.framing,
            persistent: self.persistent,
            trailers: None,
            origin: Arc::clone(&fetch.origin().name),
            shows_address: fetch.origin().shows_address(),
            timeout: fetch.timeouts.between_bytes,
            whole: fetch.whole.as_ref().map(WholeTime::left),
            silence: None,
            records: fetch.records().cloned(),
            end: RecordedEnd::AtOnce,
        }
    }
}
