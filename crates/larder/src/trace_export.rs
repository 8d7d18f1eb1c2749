//! The thread that sends spans and log records to a collector: OTLP over HTTP, as JSON.
//!
//! What the cores put into their queues is taken as soon as something is there. A collector that is down or slow is asked again a few times;
//! meanwhile the queues fill, and what has no room is the cores' to count as lost. Nobody who is served waits for any of it.

use std::io;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderMap, RETRY_AFTER, USER_AGENT};
use http::{HeaderValue, Request};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use proxy::{ExportBatch, ExportQueue, ExportSignal, Moment};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::limits::{
    COLLECTOR_ANSWER_BYTES_MAX, COLLECTOR_TIMEOUT, COLLECTOR_TRIES_MAX, COLLECTOR_WAIT_MAX, SAID_AGAIN_S,
};
use crate::say::say;
use crate::trace_collector::TraceCollector;

/// The thread, as it is told what to do.
pub struct TraceExporter {
    collectors: watch::Sender<Option<TraceCollector>>,
    ends: watch::Sender<bool>,
    ended: mpsc::Receiver<()>,
    _thread: JoinHandle<()>,
}

impl TraceExporter {
    pub fn start(queue: Arc<ExportQueue>) -> io::Result<TraceExporter> {
        let (collectors, told) = watch::channel(None);
        let (ends, ending) = watch::channel(false);
        let (tell_ended, ended) = mpsc::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let thread = std::thread::Builder::new().name("larder-traces".to_owned()).spawn(move || {
            let client = Client::builder(TokioExecutor::new()).build(HttpConnector::new());
            let export = Export { queue, client, collectors: told, ending, said: Default::default() };
            runtime.block_on(export.run());
            // Nobody listens any more where it took too long.
            let _ = tell_ended.send(());
        })?;
        Ok(TraceExporter { collectors, ends, ended, _thread: thread })
    }

    /// From here on they go there.
    pub fn take_over(&self, collector: Option<TraceCollector>) {
        self.collectors.send_replace(collector);
    }

    /// Sends what waits; gives up on a collector that takes nothing for so long.
    pub fn finish(&self, patience: Duration) {
        self.ends.send_replace(true);
        // What is lost now was to be lost.
        let _ = self.ended.recv_timeout(patience);
    }
}

struct Export {
    queue: Arc<ExportQueue>,
    client: Client<HttpConnector, Full<Bytes>>,
    collectors: watch::Receiver<Option<TraceCollector>>,
    ending: watch::Receiver<bool>,
    /// When it was last said that it fails, by signal.
    said: [Option<Moment>; ExportSignal::ALL.len()],
}

/// Why a batch did not arrive.
#[derive(Debug)]
struct Unsent {
    why: String,
    /// It may be sent again, if this is said after so long.
    again: Option<Duration>,
}

impl Export {
    async fn run(mut self) {
        loop {
            let batch = tokio::select! {
                biased;
                batch = self.queue.next() => batch,
                _ = self.ending.wait_for(|ends| *ends) => match self.queue.take() {
                    Some(batch) => batch,
                    None => return,
                },
            };
            self.export(batch).await;
        }
    }

    /// One batch, to whichever collector there is by then.
    async fn export(&mut self, batch: ExportBatch) {
        let mut wait = Duration::from_secs(1);
        for tries_left in (0..COLLECTOR_TRIES_MAX).rev() {
            let collector = self.collectors.borrow().clone();
            let Some(collector) = collector else { return self.queue.note_failed(&batch) };
            let sent = tokio::time::timeout(COLLECTOR_TIMEOUT, self.send(&collector, &batch)).await;
            let unsent = match sent {
                Ok(Ok(refused)) => {
                    self.note_well(&collector, batch.signal);
                    return self.queue.note_sent(&batch, refused);
                }
                Ok(Err(unsent)) => unsent,
                Err(_) => Unsent {
                    why: format!("no answer within {} s", COLLECTOR_TIMEOUT.as_secs()),
                    again: Some(Duration::ZERO),
                },
            };
            self.complain(&collector, batch.signal, &unsent.why);
            let Some(said) = unsent.again.filter(|_| tries_left > 0 && !*self.ending.borrow()) else { break };
            let pause = tokio::time::sleep(said.max(wait).min(COLLECTOR_WAIT_MAX));
            tokio::select! {
                () = pause => {}
                _ = self.ending.wait_for(|ends| *ends) => {}
            }
            wait *= 2;
        }
        self.queue.note_failed(&batch);
    }

    /// How many of them the collector refused.
    async fn send(&self, collector: &TraceCollector, batch: &ExportBatch) -> Result<u64, Unsent> {
        let body = Full::new(Bytes::from(message(&collector.service_name, batch)));
        let mut request =
            Request::post(collector.url(batch.signal)).body(body).map_err(|error| Unsent::for_good(&error))?;
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(USER_AGENT, HeaderValue::from_static(concat!("larder/", env!("CARGO_PKG_VERSION"))));
        headers.extend(collector.headers.iter().cloned());
        let answer = self.client.request(request).await.map_err(|error| Unsent::for_now(&whole(&error)))?;
        let (head, body) = answer.into_parts();
        let body = Limited::new(body, COLLECTOR_ANSWER_BYTES_MAX).collect().await;
        if head.status.is_success() {
            return Ok(body.map_or(0, |body| refused(&body.to_bytes(), batch.signal)));
        }
        let may_be_sent_again = matches!(head.status.as_u16(), 429 | 502 | 503 | 504);
        Err(Unsent {
            why: format!("it answered {}", head.status),
            again: may_be_sent_again.then(|| retry_after(&head.headers)),
        })
    }

    /// Once, and again after a day.
    fn complain(&mut self, collector: &TraceCollector, signal: ExportSignal, why: &str) {
        let now = Moment::now();
        let said_at = &mut self.said[signal as usize];
        if said_at.is_none_or(|said| said.micros_until(now) / 1_000_000 >= SAID_AGAIN_S) {
            say!(
                "warning: the collector of {} {} ([traces] endpoint) fails: {why}; what has no room until it does not is lost",
                form(signal).called,
                collector.url(signal)
            );
            *said_at = Some(now);
        }
    }

    fn note_well(&mut self, collector: &TraceCollector, signal: ExportSignal) {
        if self.said[signal as usize].take().is_some() {
            say!("the collector of {} {} takes them again", form(signal).called, collector.url(signal));
        }
    }
}

impl Unsent {
    fn for_now(why: &str) -> Unsent {
        Unsent { why: why.to_owned(), again: Some(Duration::ZERO) }
    }

    fn for_good(error: &dyn std::error::Error) -> Unsent {
        Unsent { why: whole(error), again: None }
    }
}

/// An error with what it came of.
fn whole(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// How OTLP calls what is told by a signal, and what stands around it.
struct SignalForm {
    called: &'static str,
    resources: &'static str,
    scopes: &'static str,
    records: &'static str,
    rejected: &'static str,
}

const fn form(signal: ExportSignal) -> SignalForm {
    match signal {
        ExportSignal::Spans => SignalForm {
            called: "traces",
            resources: "resourceSpans",
            scopes: "scopeSpans",
            records: "spans",
            rejected: "rejectedSpans",
        },
        ExportSignal::Logs => SignalForm {
            called: "logs",
            resources: "resourceLogs",
            scopes: "scopeLogs",
            records: "logRecords",
            rejected: "rejectedLogRecords",
        },
    }
}

/// Of whom the records are, around them.
fn message(service_name: &str, batch: &ExportBatch) -> Vec<u8> {
    let SignalForm { resources, scopes, records, .. } = form(batch.signal);
    let attribute = |key: &str, value: &str| json!({ "key": key, "value": { "stringValue": value } });
    let resource = json!({ "attributes": [attribute("service.name", service_name), attribute("service.version", env!("CARGO_PKG_VERSION"))] });
    let scope = json!({ "name": "larder", "version": env!("CARGO_PKG_VERSION") });
    let before =
        format!("{{\"{resources}\":[{{\"resource\":{resource},\"{scopes}\":[{{\"scope\":{scope},\"{records}\":[");
    [before.as_bytes(), &batch.records, b"]}]}]}"].concat()
}

/// What an answer says of records that were not taken.
fn refused(answer: &[u8], signal: ExportSignal) -> u64 {
    let answer: Value = serde_json::from_slice(answer).unwrap_or_default();
    let said = &answer["partialSuccess"][form(signal).rejected];
    said.as_u64().or_else(|| said.as_str()?.parse().ok()).unwrap_or(0)
}

/// In seconds; a date is none of ours.
fn retry_after(headers: &HeaderMap) -> Duration {
    let said = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    Duration::from_secs(said.and_then(|said| said.trim().parse().ok()).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_stand_within_who_has_made_them() {
        for (signal, [resources, scopes, names]) in [
            (ExportSignal::Spans, ["resourceSpans", "scopeSpans", "spans"]),
            (ExportSignal::Logs, ["resourceLogs", "scopeLogs", "logRecords"]),
        ] {
            let records = b"{\"name\":\"x\"},{\"name\":\"y\"}".to_vec();
            let text = message("a \"shop\"", &ExportBatch { signal, records, count: 2 });
            let value: Value = serde_json::from_slice(&text).unwrap();
            let of_resource = &value[resources][0];
            assert_eq!(of_resource["resource"]["attributes"][0]["value"]["stringValue"], "a \"shop\"");
            assert_eq!(of_resource[scopes][0][names][1]["name"], "y");
        }
    }

    #[test]
    fn what_a_collector_says_it_refused_is_counted() {
        for (answer, expect) in [
            ("{}", 0),
            ("", 0),
            ("no JSON", 0),
            ("{\"partialSuccess\":{\"rejectedSpans\":\"7\"}}", 7),
            ("{\"partialSuccess\":{\"rejectedSpans\":7,\"errorMessage\":\"full\"}}", 7),
            ("{\"partialSuccess\":{\"rejectedSpans\":-7}}", 0),
        ] {
            assert_eq!(refused(answer.as_bytes(), ExportSignal::Spans), expect, "{answer}");
            let of_logs = answer.replace("rejectedSpans", "rejectedLogRecords");
            assert_eq!(refused(of_logs.as_bytes(), ExportSignal::Logs), expect, "{answer}");
        }
    }
}
