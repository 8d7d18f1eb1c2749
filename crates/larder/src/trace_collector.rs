//! The collector of traces and log records, as the configuration names it.

use http::{HeaderName, HeaderValue, Uri};
use proxy::ExportSignal;

/// Where spans and log records go, and what is said of who sends them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceCollector {
    /// With the paths of OTLP.
    pub traces: Uri,
    pub logs: Uri,
    /// Sent with each request, such as a token.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    pub service_name: String,
}

impl TraceCollector {
    /// Where what is told by this signal goes.
    pub fn url(&self, signal: ExportSignal) -> &Uri {
        match signal {
            ExportSignal::Spans => &self.traces,
            ExportSignal::Logs => &self.logs,
        }
    }
}
