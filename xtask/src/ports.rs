//! Free TCP ports on the loopback for programs that must be told one, and waiting until they answer.

use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use crate::project::Stopwatch;

/// Below the range that Linux takes the ports of outgoing connections from.
const FIRST: u16 = 20_000;
const LAST: u16 = 31_999;

static NEXT: AtomicU16 = AtomicU16::new(0);

/// A port that nobody listens on, and that this process has not given out before.
pub fn free() -> Result<u16, String> {
    let start = (std::process::id() % 64) as u16 * 180;
    for _ in 0..(LAST - FIRST) {
        let step = NEXT.fetch_add(1, Ordering::Relaxed);
        let port = FIRST + start.wrapping_add(step) % (LAST - FIRST);
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return Ok(port);
        }
    }
    Err("no free port between 20000 and 31999".to_string())
}

/// Waits until somebody accepts connections there; `alive` says whether it is still worth waiting.
pub fn wait(port: u16, seconds_max: f64, mut alive: impl FnMut() -> bool) -> Result<(), String> {
    let watch = Stopwatch::start();
    loop {
        if TcpStream::connect(("127.0.0.1", port)).is_ok() {
            return Ok(());
        }
        if !alive() {
            return Err(format!("the program that should listen on port {port} ended"));
        }
        if watch.seconds() > seconds_max {
            return Err(format!("nobody listened on port {port} within {seconds_max} s"));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
