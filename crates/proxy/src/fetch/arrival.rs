//! When the head of an answer arrived.

use cache::Now;
use message::{Request, Response};
use rules::{Exchange, StoreDefaults};

/// When the head of an answer arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) received: Now,
    /// RFC 9111 §4.2.3: response_delay.
    pub(crate) delay_ms: u64,
}

impl Arrival {
    /// What `rules` are asked about.
    pub(crate) fn exchange<'a>(
        self,
        request: &'a Request<'a>,
        response: Response<'a>,
        defaults: &'a StoreDefaults,
    ) -> Exchange<'a> {
        let (response_wall_ms, response_delay_ms) = (self.received.wall_ms, self.delay_ms);
        Exchange { request, response, response_wall_ms, response_delay_ms, defaults }
    }
}
