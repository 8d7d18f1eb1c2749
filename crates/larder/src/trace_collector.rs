//! The collector of traces, as the configuration names it.

use http::{HeaderName, HeaderValue, Uri};

/// Where spans go, and what is said of who sends them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceCollector {
    /// With the path of traces.
    pub url: Uri,
    /// Sent with each request, such as a token.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    pub service_name: String,
}
