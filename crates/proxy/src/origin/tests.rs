//! The origin side against real sockets on the loopback, on the runtime that a core has. Nothing here sleeps: `now_ms`
//! is moved by the tests, and what the kernel does on the loopback it has done when the call returns.

mod origin_greeting_tests;
mod origin_idle_tests;
mod origin_name_tests;
mod origin_wait_tests;

use std::cell::Cell;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::settings::{
    EsiSettings, EvictionChoice, Greeting, LogFormat, OriginSettings, OriginTimeouts, OriginUrl, PolicySettings,
    ResolverSettings, Settings, VclParameters,
};

/// A core with its origins.
struct Rig {
    settings: Settings,
    origins: Arc<Origins>,
    counters: CoreCounters,
    core: usize,
    now_ms: Cell<u64>,
    shared: SharedConnections,
}

impl Rig {
    fn new(settings: Settings) -> Rig {
        let origins = Origins::new(&settings, None);
        Rig {
            settings,
            origins,
            counters: CoreCounters::default(),
            core: 0,
            now_ms: Cell::new(1_000_000),
            shared: SharedConnections::default(),
        }
    }

    /// Another core with the same origins.
    fn other(settings: &Settings, origins: &Arc<Origins>, core: usize) -> Rig {
        let (settings, origins) = (settings.clone(), Arc::clone(origins));
        Rig {
            settings,
            origins,
            counters: CoreCounters::default(),
            core,
            now_ms: Cell::new(1_000_000),
            shared: SharedConnections::default(),
        }
    }

    fn handle(&self) -> CoreHandle<'_> {
        CoreHandle { core: self.core, counters: &self.counters, now_ms: self.now_ms.get(), shared: &self.shared }
    }

    fn advance(&self, ms: u64) {
        self.now_ms.set(self.now_ms.get() + ms);
    }

    fn reload(&mut self) {
        self.origins = Origins::new(&self.settings, Some(&self.origins));
    }

    async fn connect_to(&self, origin: usize, reuse: Reuse) -> Result<OriginConnection, OriginError> {
        self.origins.get(origin).connect(&self.handle(), reuse, &self.settings.limits).await
    }

    async fn connect(&self) -> OriginConnection {
        self.connect_to(0, Reuse::Allowed).await.unwrap_or_else(|e| panic!("{e}"))
    }

    async fn refusal(&self) -> OriginError {
        self.connect_to(0, Reuse::Allowed).await.expect_err("the origin cannot be reached")
    }

    fn give_back(&self, connection: OriginConnection) {
        connection.into_pool(&self.handle());
    }

    fn sweep(&self) {
        self.origins.sweep(self.core, self.now_ms.get());
    }

    /// Of an origin: open, queued, and for each address in use, idle.
    fn counts(&self, origin: usize) -> (usize, usize, Vec<(usize, usize)>) {
        let status = self.origins.status(self.now_ms.get()).swap_remove(origin);
        let addresses = status.addresses.iter().map(|address| (address.in_use, address.idle)).collect();
        (status.connections, status.queued, addresses)
    }
}

/// Nothing but these origins.
pub(crate) fn settings(origins: Vec<OriginSettings>) -> Settings {
    Settings {
        listeners: Vec::new(),
        routes: Vec::new(),
        roots: Vec::new(),
        status_pages: Vec::new(),
        fleet: None,
        forward: Default::default(),
        memcached: Vec::new(),
        origins,
        policy: PolicySettings::default(),
        compress: Default::default(),
        esi: EsiSettings::default(),
        vcl: VclParameters::default(),
        limits: Limits::default(),
        resolver: ResolverSettings::default(),
        authorities: || None,
        memory_bytes_max: 0,
        eviction: EvictionChoice::S3Fifo,
        server_name: String::new(),
        trusted_proxies: Vec::new(),
        odd_field_names: false,
        details_to: vec![],
        explain_field: None,
        log_format: LogFormat::Combined,
        debug: true,
        as_varnishd: false,
        accepts_h2c: false,
        http2_short_frames: false,
        hsts: None,
        traces: None,
    }
}

pub(crate) fn origin(name: &str, urls: Vec<OriginUrl>) -> OriginSettings {
    OriginSettings {
        name: name.into(),
        urls,
        connections_max: 100,
        queue_max: 100,
        queue_timeout: Duration::from_secs(60),
        ejection_failures: 3,
        ejection_time: Duration::from_secs(10),
        balance: Default::default(),
        probe: None,
        retries: Default::default(),
        host: None,
        timeouts: OriginTimeouts::default(),
        greeting: Greeting::default(),
        tls: crate::settings::OriginTls::default(),
        http2: false,
        fastcgi: None,
    }
}

fn url(address: SocketAddr) -> OriginUrl {
    OriginUrl::Tcp { host: address.ip().to_string(), port: address.port() }
}

/// One origin at these listeners' addresses.
fn settings_for(listeners: &[&TcpListener]) -> Settings {
    settings(vec![origin("shop", listeners.iter().map(|l| url(l.local_addr().unwrap())).collect())])
}

async fn listener() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").await.unwrap()
}

async fn accept(listener: &TcpListener) -> TcpStream {
    listener.accept().await.unwrap().0
}

/// An address where nobody listens.
async fn nobody() -> SocketAddr {
    listener().await.local_addr().unwrap()
}

fn local_port(connection: &OriginConnection) -> u16 {
    assert!(connection.stream.is_tcp());
    connection.stream.addresses().1.port()
}

/// Lets the runtime see what happened to its sockets.
async fn see_events() {
    for _ in 0..3 {
        tokio::task::yield_now().await;
    }
}

/// The connection carries bytes both ways.
async fn check_alive(connection: &mut OriginConnection, peer: &mut TcpStream) {
    let mut buf = [0; 4];
    connection.stream.write_all(b"ping").await.unwrap();
    peer.read_exact(&mut buf).await.unwrap();
    assert_eq!(&buf, b"ping");
    peer.write_all(b"pong").await.unwrap();
    connection.stream.read_exact(&mut buf).await.unwrap();
    assert_eq!(&buf, b"pong");
}

fn run(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build_local(Default::default()).unwrap().block_on(test);
}
