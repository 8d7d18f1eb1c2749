//! The real servers that larder is held against, as processes that end with the test that started them; and waiting for
//! them, look by look.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::Child;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::lane::{PATIENCE_MS, now_ms};

const BETWEEN_LOOKS: Duration = Duration::from_millis(2);

pub struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What programs of others listen on: below the ports that the kernel gives to clients, so that nobody's connection takes one
/// while the program that it is for is being started, or started again.
const PEER_PORTS: std::ops::Range<u16> = 12_000..28_000;

/// How long a program of others may take to its first connection: keys are made meanwhile, on processors that all tests share.
const START_PATIENCE_MS: u64 = 60_000;

/// One that nobody listens on, and that no other test of this process is given.
pub fn free_address() -> SocketAddr {
    static GIVEN: AtomicU32 = AtomicU32::new(0);
    // Several processes run tests at a time: each begins elsewhere.
    let start = std::process::id().wrapping_mul(997);
    for _ in PEER_PORTS {
        let step = start.wrapping_add(GIVEN.fetch_add(1, Ordering::Relaxed));
        let port = PEER_PORTS.start + (step % u32::from(PEER_PORTS.end - PEER_PORTS.start)) as u16;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        if TcpListener::bind(address).is_ok() && UdpSocket::bind(address).is_ok() {
            return address;
        }
    }
    panic!("no free port among {PEER_PORTS:?}");
}

pub fn wait_until_it_listens(address: SocketAddr) {
    wait_ms(START_PATIENCE_MS, &format!("somebody listens on {address}"), || TcpStream::connect(address).is_ok());
}

pub fn wait_for(what: &str, is_met: impl FnMut() -> bool) {
    wait_ms(PATIENCE_MS, what, is_met);
}

/// For what larder itself does every ten seconds, on processors that all tests share.
#[track_caller]
pub fn wait_long(what: &str, is_met: impl FnMut() -> bool) {
    wait_ms(START_PATIENCE_MS, what, is_met);
}

fn wait_ms(patience_ms: u64, what: &str, mut is_met: impl FnMut() -> bool) {
    let deadline_ms = now_ms() + patience_ms;
    while !is_met() {
        assert!(now_ms() < deadline_ms, "never: {what}");
        // Who is waited for needs the processor more.
        std::thread::sleep(BETWEEN_LOOKS);
    }
}
