//! The machine as loaded VCLs may ask it: names, files, users, the time. Few do, and mostly while they are loaded.

use std::io::Read;
use std::net::{IpAddr, TcpStream, ToSocketAddrs};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use proxy::RecordSink;
use vcl::{LogKind, Plain, VariableId, World};

use crate::limits::VCL_READ_BYTES_MAX;
use crate::sandbox::fence;
use crate::say::say;

const SERVICES_FILE: &str = "/etc/services";
const USERS_FILE: &str = "/etc/passwd";
const GROUPS_FILE: &str = "/etc/group";

#[derive(Default)]
pub struct Machine {
    /// `[resolver] hosts`, which come before what the system says.
    pub hosts: Mutex<Vec<(String, Vec<IpAddr>)>>,
    /// Where records of programs go that nobody's transaction made, if anybody wants records.
    pub records: Option<Arc<dyn RecordSink>>,
}

impl World for Machine {
    fn now_s(&self) -> f64 {
        proxy::wall_now_ms() as f64 / 1000.0
    }

    fn addresses(&self, name: &str) -> Result<Vec<IpAddr>, String> {
        if let Some(addresses) = self.known_addresses(name) {
            return Ok(addresses);
        }
        let found = (name, 0).to_socket_addrs().map_err(|e| e.to_string())?;
        let mut addresses: Vec<IpAddr> = found.map(|address| address.ip()).collect();
        addresses.sort_unstable();
        addresses.dedup();
        Ok(addresses)
    }

    fn known_addresses(&self, name: &str) -> Option<Vec<IpAddr>> {
        let fixed =
            |(known, addresses): &(String, Vec<IpAddr>)| known.eq_ignore_ascii_case(name).then(|| addresses.clone());
        self.hosts.lock().iter().find_map(fixed)
    }

    fn service_port(&self, name: &str) -> Option<u16> {
        service_in(&std::fs::read_to_string(SERVICES_FILE).ok()?, name)
    }

    fn log(&self, kind: LogKind, text: &[u8]) {
        if let Some(records) = &self.records {
            proxy::record_of_program(&**records, kind, text);
        }
        let text = String::from_utf8_lossy(text);
        match kind {
            LogKind::System(priority) => say!("VCL (priority {priority}): {text}"),
            // A circle has thousands of lines, and a choice is made for each request.
            LogKind::Debug => {}
            _ => say!("VCL: {text}"),
        }
    }

    fn parameter(&self, of: VariableId) -> Plain<'static> {
        match of {
            VariableId::SERVER_HOSTNAME => Plain::Text(Some(proxy::server_hostname().as_bytes())),
            VariableId::SERVER_IDENTITY => Plain::Text(Some(proxy::server_identity().as_bytes())),
            other => other.nothing(),
        }
    }

    fn read_file(&self, path: &[u8]) -> Result<Vec<u8>, String> {
        let file = std::fs::File::open(os_path(path)).map_err(|error| {
            let is_refused = error.kind() == std::io::ErrorKind::PermissionDenied;
            let reason = fence::reason(Path::new(os_path(path))).filter(|_| is_refused);
            reason.map_or_else(|| error.to_string(), |reason| format!("{error}: {reason}"))
        })?;
        let mut bytes = Vec::new();
        file.take(VCL_READ_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|e| e.to_string())?;
        if bytes.len() as u64 > VCL_READ_BYTES_MAX {
            return Err(format!("larger than {VCL_READ_BYTES_MAX} bytes"));
        }
        Ok(bytes)
    }

    fn file_exists(&self, path: &[u8]) -> bool {
        Path::new(os_path(path)).exists()
    }

    fn environment(&self, name: &[u8]) -> Option<Vec<u8>> {
        use std::os::unix::ffi::OsStringExt;
        // The standard library panics at a name that cannot be one.
        if name.is_empty() || name.contains(&b'=') || name.contains(&0) {
            return None;
        }
        std::env::var_os(os_path(name)).map(OsStringExt::into_vec)
    }

    fn user_name(&self, user: u32) -> Option<String> {
        name_in(&std::fs::read_to_string(USERS_FILE).ok()?, user)
    }

    fn group_name(&self, group: u32) -> Option<String> {
        name_in(&std::fs::read_to_string(GROUPS_FILE).ok()?, group)
    }

    fn sleep(&self, seconds: f64) {
        std::thread::sleep(Duration::try_from_secs_f64(seconds).unwrap_or_default());
    }

    /// Whoever holds the barrier closes the connection when all are there.
    fn barrier(&self, address: &[u8], timeout_s: f64) -> Result<(), String> {
        let address = std::str::from_utf8(address).map_err(|e| e.to_string())?;
        let timeout = Duration::try_from_secs_f64(timeout_s).ok().filter(|time| !time.is_zero());
        let mut stream = TcpStream::connect(address).map_err(|e| e.to_string())?;
        stream.set_read_timeout(timeout).map_err(|e| e.to_string())?;
        match stream.read(&mut [0]) {
            Ok(0) => Ok(()),
            Ok(_) => Err("somebody spoke at the barrier".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }
}

fn os_path(bytes: &[u8]) -> &std::ffi::OsStr {
    std::os::unix::ffi::OsStrExt::from_bytes(bytes)
}

/// services(5): a name, `PORT/PROTOCOL`, other names; `#` begins a comment.
fn service_in(services: &str, name: &str) -> Option<u16> {
    services.lines().find_map(|line| {
        let mut words = line.split('#').next()?.split_ascii_whitespace();
        let (known, port) = (words.next()?, words.next()?.strip_suffix("/tcp")?);
        (known == name || words.any(|alias| alias == name)).then(|| port.parse().ok())?
    })
}

/// passwd(5), group(5): `name:…:number:…`
fn name_in(table: &str, number: u32) -> Option<String> {
    table.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(number)).then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_are_found_by_all_their_names() {
        let services = "# comment\nhttp\t\t80/tcp\t\twww\nsyslog 514/udp\nhttp-alt 8080/tcp webcache # x\n";
        let check = |name: &str, expect: Option<u16>| assert_eq!(service_in(services, name), expect, "{name}");
        check("http", Some(80));
        check("www", Some(80));
        check("webcache", Some(8080));
        check("syslog", None);
        check("x", None);
    }

    #[test]
    fn users_and_groups_have_names() {
        let table = "root:x:0:0:root:/root:/bin/bash\nbin:*:2:\n";
        assert_eq!((name_in(table, 0).as_deref(), name_in(table, 2).as_deref()), (Some("root"), Some("bin")));
        assert_eq!(name_in(table, 3), None);
    }

    #[test]
    fn fixed_names_come_before_the_systems() {
        let machine = Machine::default();
        machine.hosts.lock().push(("shop.test".to_owned(), vec!["10.0.0.1".parse().unwrap()]));
        assert_eq!(machine.addresses("SHOP.test").unwrap(), ["10.0.0.1".parse::<IpAddr>().unwrap()]);
        assert_eq!(machine.environment(b"A=B"), None);
    }
}
