//! The real servers that larder is held against, as processes that end with the test that started them; and waiting for
//! them without sleeping.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Child;

use crate::lane::{PATIENCE_MS, now_ms};

pub struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// One that nobody listened on a moment ago.
pub fn free_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback port is free");
    listener.local_addr().expect("a bound listener has an address")
}

pub fn wait_until_it_listens(address: SocketAddr) {
    wait_for(&format!("somebody listens on {address}"), || TcpStream::connect(address).is_ok());
}

pub fn wait_for(what: &str, mut is_met: impl FnMut() -> bool) {
    let deadline_ms = now_ms() + PATIENCE_MS;
    while !is_met() {
        assert!(now_ms() < deadline_ms, "never: {what}");
        std::thread::yield_now();
    }
}
