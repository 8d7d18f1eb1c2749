//! The prober: asks every backend that wants it, and every address of every origin that wants it, again and again, whether it is well,
//! and writes down what it finds: of a backend, which is one thing to its program, in its health; of an origin, with each address. One
//! thread with a runtime of its own for all, made when the first is to be probed, so that probes go on when the workers are busy.
//!
//! It knows whom it probes only as an origin to connect to, and of HTTP only the status line: what a probe may ask for is
//! anything at all.

use std::future::poll_fn;
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, oneshot, watch};
use tokio::task::AbortHandle;
use tokio::time::MissedTickBehavior;
use vcl::typed_program::{Probe, ProbeRequest};

use crate::backend_health::BackendHealth;
use crate::clock::{Moment, mono_now_ms, wall_now_ms};
use crate::health_notice::HealthNotice;
use crate::limits::{PROBE_HEAD_BYTES_MAX, PROBE_INTERVAL_MIN, PROBES_AT_ONCE_MAX};
use crate::origin::{Address, Origin, Span};
use crate::settings::ProbeSettings;
use crate::socket::Socket;
use crate::vital::{Vital, vital_thread};

/// Started when it is first needed, ended when it is dropped.
#[derive(Default)]
pub(crate) struct Prober(OnceLock<Result<ProberThread, String>>);

struct ProberThread {
    handle: Handle,
    at_once: Arc<Semaphore>,
    /// Dropped, it ends the thread.
    _end: oneshot::Sender<()>,
}

/// One backend or origin to be probed.
pub(crate) struct Probing {
    origin: Arc<Origin>,
    probed: ProbeScope,
    request: Vec<u8>,
    expected: Vec<u16>,
    expect_close: bool,
    timeout: Duration,
    interval: Duration,
    /// What its setting is called.
    timeout_word: &'static str,
}

/// Of what it is found out whether it is well.
enum ProbeScope {
    /// All of it, at the address whose turn it is.
    Whole(Arc<BackendHealth>, Mutex<HealthNotice>),
    /// Each address for itself.
    EachAddress,
}

/// What a probe brought.
struct ProbeFound {
    good: bool,
    /// How it ended, for people.
    last: String,
    took_ms: u64,
}

/// The probes of one program, or of one configuration. Dropped, they stop.
#[derive(Debug)]
pub(crate) struct Probes {
    tasks: Vec<AbortHandle>,
    /// A program that nobody uses any more is cold: its backends are left in peace.
    warm: watch::Sender<bool>,
}

impl Prober {
    /// Begins to probe, the first time at once.
    pub(crate) fn begin(&self, backends: Vec<Probing>) -> Result<Probes, String> {
        let warm = watch::Sender::new(true);
        if backends.is_empty() {
            return Ok(Probes { tasks: Vec::new(), warm });
        }
        let thread = self.0.get_or_init(start).as_ref().map_err(Clone::clone)?;
        let begin = |probing| {
            let probing = probe_forever(probing, warm.subscribe(), Arc::clone(&thread.at_once));
            thread.handle.spawn(probing).abort_handle()
        };
        Ok(Probes { tasks: backends.into_iter().map(begin).collect(), warm })
    }
}

fn start() -> Result<ProberThread, String> {
    let why = |error: std::io::Error| format!("the thread that probes backends did not start: {error}");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(why)?;
    let (end, ended) = oneshot::channel::<()>();
    let handle = runtime.handle().clone();
    let run = move || {
        // An error is the end, too: the other side is gone.
        let _ = runtime.block_on(ended);
    };
    vital_thread("larder-prober", "what probes backends", run).map_err(why)?;
    Ok(ProberThread { handle, at_once: Arc::new(Semaphore::new(PROBES_AT_ONCE_MAX)), _end: end })
}

impl Probes {
    pub(crate) fn set_warm(&self, is_warm: bool) {
        self.warm.send_if_modified(|warm| std::mem::replace(warm, is_warm) != is_warm);
    }

    pub(crate) fn is_warm(&self) -> bool {
        *self.warm.borrow()
    }
}

impl Drop for Probes {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

impl Probing {
    pub(crate) fn new(origin: &Arc<Origin>, health: &Arc<BackendHealth>, probe: &Probe) -> Probing {
        let seconds = |s: f64| Duration::try_from_secs_f64(s).unwrap_or_default();
        Probing {
            request: request_of(probe, origin.host.as_deref().unwrap_or_default()),
            origin: Arc::clone(origin),
            probed: ProbeScope::Whole(Arc::clone(health), Mutex::default()),
            expected: vec![probe.expected_status],
            expect_close: probe.expect_close,
            timeout: seconds(probe.timeout_s),
            interval: seconds(probe.interval_s).max(PROBE_INTERVAL_MIN),
            timeout_word: ".timeout",
        }
    }

    /// Of every address of an origin that wants it.
    pub(crate) fn of_addresses(origin: &Arc<Origin>) -> Option<Probing> {
        let probe: &ProbeSettings = origin.probe()?;
        Some(Probing {
            request: get(&probe.path, &probe.host),
            origin: Arc::clone(origin),
            probed: ProbeScope::EachAddress,
            expected: probe.expected.clone(),
            expect_close: false,
            timeout: probe.timeout,
            interval: probe.interval.max(PROBE_INTERVAL_MIN),
            timeout_word: "probe.timeout",
        })
    }

    /// One round: asks who is to be asked, and writes down what comes.
    async fn round(&self, turn: usize, at_once: &Semaphore) {
        let found = self.origin.look_up_for_probe(turn, mono_now_ms(), self.timeout).await.map_err(|e| e.to_string());
        match (&self.probed, found) {
            (ProbeScope::Whole(health, notice), Ok(addresses)) => {
                let Some(found) = self.find_out(&addresses[0], at_once).await else { return };
                health.note(found.good, found.last, found.took_ms, wall_now_ms());
                self.tell(health, notice);
            }
            (ProbeScope::Whole(health, notice), Err(why)) => {
                health.note(false, why, 0, wall_now_ms());
                self.tell(health, notice);
            }
            (ProbeScope::EachAddress, Ok(addresses)) => {
                let mut asked: Vec<_> =
                    addresses.iter().map(|one| Box::pin(self.probe_address(one, at_once))).collect();
                poll_fn(|cx| {
                    asked.retain_mut(|probing| probing.as_mut().poll(cx).is_pending());
                    if asked.is_empty() { Poll::Ready(()) } else { Poll::Pending }
                })
                .await;
            }
            // There is nobody to be well or not.
            (ProbeScope::EachAddress, Err(_)) => {}
        }
    }

    /// Tells how the probes of a backend have it.
    fn tell(&self, health: &BackendHealth, notice: &Mutex<HealthNotice>) {
        let now_ms = mono_now_ms();
        let line = {
            let mut notice = notice.lock();
            let changed = match health.is_found_healthy() {
                true => notice.up(now_ms),
                false => {
                    notice.down(now_ms, || health.probe_status().map(|probe| probe.to_string()).unwrap_or_default())
                }
            };
            changed.or_else(|| notice.due(now_ms))
        };
        self.origin.subject().say("by its probes", line);
    }

    async fn probe_address(&self, address: &Address, at_once: &Semaphore) {
        if let Some(found) = self.find_out(address, at_once).await {
            address.note_probe(found.good, found.last, found.took_ms, mono_now_ms(), wall_now_ms());
        }
    }

    /// `None`: the whole proxy is gone.
    async fn find_out(&self, address: &Address, at_once: &Semaphore) -> Option<ProbeFound> {
        let _permit = at_once.acquire().await.ok()?;
        let began = Moment::now();
        let outcome = self.probe(address).await;
        let took_ms = began.micros_until(Moment::now()) / 1_000;
        let (good, last) = self.judge(outcome);
        Some(ProbeFound { good, last, took_ms })
    }

    /// One probe. The status, or why there is none.
    async fn probe(&self, address: &Address) -> Result<u16, String> {
        let all = async {
            let mut stream = self.origin.dial_for_probe(address, self.timeout).await.map_err(|e| e.to_string())?;
            self.converse(&mut stream).await
        };
        let (span, word) = (Span(self.timeout), self.timeout_word);
        match tokio::time::timeout(self.timeout, all).await {
            Ok(outcome) => outcome,
            Err(_) if self.expect_close => Err(format!("no end of the answer within {span} ({word}, .expect_close)")),
            Err(_) => Err(format!("no answer within {span} ({word})")),
        }
    }

    async fn converse(&self, stream: &mut Socket) -> Result<u16, String> {
        stream.write_all(&self.request).await.map_err(|e| format!("the request could not be sent: {e}"))?;
        let (mut head, mut scratch) = (Vec::new(), [0; 2048]);
        loop {
            let read = stream.read(&mut scratch).await.map_err(|e| format!("the answer could not be read: {e}"))?;
            let room = PROBE_HEAD_BYTES_MAX - head.len();
            head.extend_from_slice(&scratch[..read.min(room)]);
            let is_whole = head.len() == PROBE_HEAD_BYTES_MAX || ends_head(&head);
            if read == 0 || (is_whole && !self.expect_close) {
                break;
            }
        }
        if head.is_empty() {
            return Err("the connection ended without an answer".to_owned());
        }
        status_of(&head).ok_or_else(|| "the answer has no status line".to_owned())
    }

    /// Good or not, and how it ended.
    fn judge(&self, outcome: Result<u16, String>) -> (bool, String) {
        match outcome {
            Ok(status) if self.expected.contains(&status) => (true, status.to_string()),
            Ok(status) => {
                let expected: Vec<String> = self.expected.iter().map(u16::to_string).collect();
                (false, format!("{status} instead of {}", expected.join(" or ")))
            }
            Err(why) => (false, why),
        }
    }
}

async fn probe_forever(probing: Probing, mut warm: watch::Receiver<bool>, at_once: Arc<Semaphore>) {
    let _vital = Vital::part("what probes a backend");
    let mut ticks = tokio::time::interval(probing.interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut turn = 0;
    // Both end with an error only when the program, or the whole proxy, is gone.
    while warm.wait_for(|warm| *warm).await.is_ok() {
        ticks.tick().await;
        probing.round(turn, &at_once).await;
        turn += 1;
    }
}

/// What is sent. Lines that the program gives end as it says; `.url` makes a request of our own.
fn request_of(probe: &Probe, host: &str) -> Vec<u8> {
    match &probe.request {
        ProbeRequest::Url(url) => get(url, host),
        ProbeRequest::Lines(lines) => {
            let mut request = lines.join(&b"\r\n"[..]);
            request.extend_from_slice(b"\r\n\r\n");
            request
        }
    }
}

fn get(url: &str, host: &str) -> Vec<u8> {
    format!("GET {url} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").into_bytes()
}

fn ends_head(head: &[u8]) -> bool {
    head.windows(4).any(|end| end == b"\r\n\r\n") || head.windows(2).any(|end| end == b"\n\n")
}

/// `HTTP/1.1 200 …`
fn status_of(head: &[u8]) -> Option<u16> {
    let rest = head.strip_prefix(b"HTTP/")?;
    let (version, rest) = rest.split_at(rest.iter().position(|&b| b == b' ')?);
    let is_version = !version.is_empty() && version.iter().all(|b| b.is_ascii_digit() || *b == b'.');
    let (status, after) = rest[1..].split_at_checked(3)?;
    let is_whole = after.first().is_none_or(|b| b.is_ascii_whitespace());
    let digits = std::str::from_utf8(status).ok().filter(|text| text.bytes().all(|b| b.is_ascii_digit()))?;
    if is_version && is_whole { digits.parse().ok() } else { None }
}

#[cfg(test)]
#[path = "prober_tests.rs"]
mod tests;
