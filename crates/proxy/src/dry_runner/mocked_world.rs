//! The machine as a program that runs dry may ask it: files and users are the real ones, but nothing is looked up, nobody
//! waits, and the time is the dry run's.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use vcl::{LogKind, Plain, VariableId, World};

pub(crate) struct MockedWorld {
    pub(crate) machine: Arc<dyn World>,
    pub(crate) wall_ms: AtomicU64,
}

impl World for MockedWorld {
    fn now_s(&self) -> f64 {
        self.wall_ms.load(Ordering::Relaxed) as f64 / 1_000.0
    }

    /// A name that is not this machine's is somewhere in 192.0.2.0/24, where nobody is (RFC 5737).
    fn addresses(&self, name: &str) -> Result<Vec<IpAddr>, String> {
        if let Ok(address) = name.parse() {
            return Ok(vec![address]);
        }
        if name.eq_ignore_ascii_case("localhost") {
            return Ok(vec![IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)]);
        }
        let sum = name.bytes().fold(0u8, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte));
        Ok(vec![IpAddr::V4(Ipv4Addr::new(192, 0, 2, sum))])
    }

    fn service_port(&self, name: &str) -> Option<u16> {
        self.machine.service_port(name)
    }

    fn log(&self, _: LogKind, _: &[u8]) {}

    fn parameter(&self, of: VariableId) -> Plain<'static> {
        self.machine.parameter(of)
    }

    fn read_file(&self, path: &[u8]) -> Result<Vec<u8>, String> {
        self.machine.read_file(path)
    }

    fn file_exists(&self, path: &[u8]) -> bool {
        self.machine.file_exists(path)
    }

    fn environment(&self, name: &[u8]) -> Option<Vec<u8>> {
        self.machine.environment(name)
    }

    fn user_name(&self, user: u32) -> Option<String> {
        self.machine.user_name(user)
    }

    fn group_name(&self, group: u32) -> Option<String> {
        self.machine.group_name(group)
    }
}
