//! What a program can ask of the machine it runs on: names, files, the clock. Few do, and mostly in vcl_init.
//!
//! One object for the process; `larder` has the real one. Nothing here is asked on the way of an ordinary hit.

use std::net::IpAddr;

use crate::host::LogKind;
use crate::plain_values::Plain;
use crate::test_waits::TestWait;
use crate::variables::VariableId;

/// The machine.
pub trait World: Send + Sync {
    /// Seconds since 1970, now.
    fn now_s(&self) -> f64;

    /// The addresses of a host's name. May take a while; the error is for people.
    fn addresses(&self, name: &str) -> Result<Vec<IpAddr>, String>;

    /// Those that are known without asking anybody.
    fn known_addresses(&self, _name: &str) -> Option<Vec<IpAddr>> {
        None
    }

    /// The port of a service's name over TCP.
    fn service_port(&self, _name: &str) -> Option<u16> {
        None
    }

    /// A line about the program, not about a transaction.
    fn log(&self, kind: LogKind, text: &[u8]);

    /// A parameter, or another variable that is the same for all transactions: `param.*`, `server.identity`.
    fn parameter(&self, of: VariableId) -> Plain<'static> {
        of.nothing()
    }

    fn read_file(&self, _path: &[u8]) -> Result<Vec<u8>, String> {
        Err("files cannot be read here".to_owned())
    }

    fn file_exists(&self, _path: &[u8]) -> bool {
        false
    }

    /// A variable of the process's environment.
    fn environment(&self, _name: &[u8]) -> Option<Vec<u8>> {
        None
    }

    fn user_name(&self, _user: u32) -> Option<String> {
        None
    }

    fn group_name(&self, _group: u32) -> Option<String> {
        None
    }

    /// Waits, for tests that ask for it.
    fn sleep(&self, _seconds: f64) {}

    /// Waits at a barrier of a test.
    fn barrier(&self, _address: &[u8], _timeout_s: f64) -> Result<(), String> {
        Err("there are no barriers here".to_owned())
    }
}

impl dyn World + '_ {
    /// Waits for what a test waits for. The error says why nobody came.
    pub fn wait(&self, wait: &TestWait) -> Result<(), String> {
        match wait {
            TestWait::Seconds(seconds) => {
                self.sleep(*seconds);
                Ok(())
            }
            TestWait::Barrier { address, timeout_s } => {
                self.barrier(address, *timeout_s).map_err(|why| format!("vtc.barrier_sync: {why}"))
            }
        }
    }
}

/// Knows nothing: no names, no files, and the time stands still at 1970.
pub struct NoWorld;

impl World for NoWorld {
    fn now_s(&self) -> f64 {
        0.0
    }

    fn addresses(&self, name: &str) -> Result<Vec<IpAddr>, String> {
        Err(format!("`{name}` is not looked up here"))
    }

    fn log(&self, _kind: LogKind, _text: &[u8]) {}
}
