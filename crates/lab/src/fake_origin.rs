//! The fake origin: a server whose answers are what the request asks for, faults among them.
//!
//! It stands behind what is measured, or before a client whose counts are to be proved. The path says which bytes the
//! body has, the query what else is to happen (`fake_origin/origin_plan.rs`); a few things, such as stalls, concern
//! the whole origin and are settings. Requests of HTTP/1 are read with `wire`, the program's own codec: what the client's own
//! reader of answers gets wrong, this one does not get wrong in the same way. HTTP/2 is the crate `h2`'s and TLS is
//! rustls's: of what they are to judge they share no code.
//!
//! A thread has one runtime and its own listener; threads share counters only.

mod body_blocks;
mod catalogue_sizes;
mod delay_rule;
mod frame_socket;
mod origin_certificates;
mod origin_conversation;
mod origin_delivery;
mod origin_desk;
mod origin_http2;
#[cfg(test)]
mod origin_http2_tests;
mod origin_log;
mod origin_opening;
mod origin_plan;
mod origin_reply;
mod origin_socket;
mod origin_stream;
#[cfg(test)]
mod origin_tests;
mod prepared_answers;
mod stall_schedule;

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::thread::JoinHandle;

use tokio::net::TcpListener;
use tokio::runtime::LocalRuntime;
use tokio::time::sleep;

use crate::limits::{ACCEPT_PAUSE, ORIGIN_CONNECTIONS_MAX, ORIGIN_STREAMS_USUAL, ORIGIN_WINDOW_BYTES_USUAL, STOP_LOOK};
use crate::listening::listeners;
use origin_desk::{OriginDesk, OriginShared};
use origin_log::OriginLog;
use origin_opening::serve_connection;

pub use catalogue_sizes::catalogue_size;
pub use origin_certificates::{OriginTlsSettings, TlsFault};
pub use origin_log::LOG_COLUMNS;
pub use origin_plan::WORDS;
pub use stall_schedule::Stalls;

pub(crate) use origin_desk::PLAIN_GET;
pub(crate) use origin_plan::Plan;
pub(crate) use origin_reply::{Asked, Drawn, Reply};

/// What concerns the whole origin.
#[derive(Clone, Debug, PartialEq)]
pub struct OriginSettings {
    pub threads: usize,
    /// Of all that is random.
    pub seed: u64,
    /// The mean size of the pages `/u/<N>.html`.
    pub mean_bytes: u64,
    pub stalls: Option<Stalls>,
    /// Where each request is written down.
    pub log: Option<PathBuf>,
    /// None: it is served in the clear.
    pub tls: Option<OriginTlsSettings>,
    /// None: HTTP/1 alone is spoken. Otherwise HTTP/2 too, over TLS where the client chooses it by ALPN, in the clear where
    /// it begins so.
    pub http2: Option<OriginHttp2Settings>,
}

/// What an origin's SETTINGS say (RFC 9113 §6.5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OriginHttp2Settings {
    /// Streams at once on a connection.
    pub streams_max: u32,
    /// What of a request's body may come before it was read.
    pub window_bytes: u32,
}

impl Default for OriginHttp2Settings {
    fn default() -> OriginHttp2Settings {
        OriginHttp2Settings { streams_max: ORIGIN_STREAMS_USUAL, window_bytes: ORIGIN_WINDOW_BYTES_USUAL }
    }
}

impl Default for OriginSettings {
    fn default() -> OriginSettings {
        OriginSettings { threads: 1, seed: 1, mean_bytes: 11_000, stalls: None, log: None, tls: None, http2: None }
    }
}

/// Serves from threads of its own until it is dropped; then its log is whole.
pub struct FakeOrigin {
    pub address: SocketAddr,
    shared: Arc<OriginShared>,
    threads: Vec<JoinHandle<()>>,
}

impl FakeOrigin {
    pub fn start(address: SocketAddr, settings: OriginSettings) -> io::Result<FakeOrigin> {
        let log = settings.log.as_deref().map(origin_log::create).transpose()?;
        let (address, listeners) = listeners(address, settings.threads)?;
        let shared = Arc::new(OriginShared::new(settings)?);
        let mut origin = FakeOrigin { address, shared, threads: Vec::new() };
        for (thread, listener) in listeners.into_iter().enumerate() {
            let (shared, log) = (Arc::clone(&origin.shared), OriginLog::new(log.clone()));
            let builder = std::thread::Builder::new().name(format!("origin-{thread}"));
            let (tell, told) = mpsc::channel();
            origin.threads.push(builder.spawn(move || {
                let started = start_thread(listener);
                let (begun, outcome) = started.map_or_else(|error| (None, Err(error)), |begun| (Some(begun), Ok(())));
                let _ = tell.send(outcome);
                if let Some((runtime, listener)) = begun {
                    serve(&runtime, &listener, &Rc::new(OriginDesk::new(shared, thread, log)));
                }
            })?);
            told.recv().unwrap_or_else(|_| Err(io::Error::other("a thread of the origin panicked")))?;
        }
        Ok(origin)
    }

    /// The certificate of who signs those that it shows over TLS, in PEM.
    pub fn authority(&self) -> Option<&str> {
        self.shared.tls.as_ref().map(|tls| tls.authority.as_str())
    }

    /// Requests so far, but for those for `/lab-requests`.
    pub fn requests(&self) -> u64 {
        self.shared.requests.load(Ordering::Relaxed)
    }
}

impl Drop for FakeOrigin {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn start_thread(listener: std::net::TcpListener) -> io::Result<(LocalRuntime, TcpListener)> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .event_interval(256)
        .global_queue_interval(64)
        .build_local(Default::default())?;
    let listener = {
        let _inside = runtime.enter();
        TcpListener::from_std(listener)?
    };
    Ok((runtime, listener))
}

fn serve(runtime: &LocalRuntime, listener: &TcpListener, desk: &Rc<OriginDesk>) {
    runtime.block_on(async {
        tokio::select! {
            () = accept(listener, desk) => {}
            () = watch(desk) => {}
        }
    });
}

async fn accept(listener: &TcpListener, desk: &Rc<OriginDesk>) {
    let mut accepted = 0;
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // No descriptor is left, or the client was gone already.
            sleep(ACCEPT_PAUSE).await;
            continue;
        };
        accepted += 1;
        let shared = Arc::clone(&desk.shared);
        if shared.connections.fetch_add(1, Ordering::Relaxed) >= ORIGIN_CONNECTIONS_MAX
            || stream.set_nodelay(true).is_err()
        {
            shared.connections.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let serving = serve_connection(Rc::clone(desk), stream, accepted);
        tokio::task::spawn_local(async move {
            serving.await;
            shared.connections.fetch_sub(1, Ordering::Relaxed);
        });
    }
}

/// Writes down what was gathered; ends when somebody says stop.
async fn watch(desk: &OriginDesk) {
    while !desk.shared.stop.load(Ordering::Relaxed) {
        desk.log.borrow_mut().flush();
        sleep(STOP_LOOK).await;
    }
}
