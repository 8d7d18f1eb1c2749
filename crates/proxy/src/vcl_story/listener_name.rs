//! `local.socket`: which listener a connection came in by. Programs tell the inside from the outside by it.

use std::net::SocketAddr;
use std::path::Path;

use crate::settings::{ListenAddress, ListenerSettings};

/// What the listener is called behind which a connection stands; those without a name are `a0`, `a1` … by their place.
pub(crate) fn listener_name(listeners: &[ListenerSettings], local: SocketAddr, path: Option<&Path>) -> String {
    let is_at = |port: u16, exactly: bool, listener: &ListenerSettings| match (&listener.address, path) {
        (ListenAddress::Unix(bound), Some(path)) => bound == path,
        (ListenAddress::Tcp(bound), None) => {
            let is_ours = bound.ip() == local.ip().to_canonical();
            bound.port() == port && (is_ours || !exactly && bound.ip().is_unspecified())
        }
        _ => false,
    };
    // As the kernel has it, one of this very address is before one of all; one whose port it chose is known by port 0.
    let mut ways = [(local.port(), true), (local.port(), false), (0, true), (0, false)].into_iter();
    let place = ways.find_map(|(port, exactly)| listeners.iter().position(|it| is_at(port, exactly, it)));
    let name = place.and_then(|place| listeners[place].name.as_deref());
    name.map_or_else(|| format!("a{}", place.unwrap_or(0)), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_knows_its_listener() {
        let named = |address: ListenAddress, name: Option<&str>| ListenerSettings {
            name: name.map(Into::into),
            ..ListenerSettings::at(address)
        };
        let tcp = |text: &str| ListenAddress::Tcp(text.parse().expect("an address"));
        let listeners = [
            named(tcp("0.0.0.0:80"), None),
            named(tcp("127.0.0.1:81"), Some("admin")),
            named(ListenAddress::Unix("/run/l.sock".into()), Some("local")),
            named(ListenAddress::Unix("/run/m.sock".into()), None),
            named(tcp("[::1]:0"), Some("any")),
            named(tcp("127.0.0.1:80"), Some("inner")),
        ];
        let check = |local: &str, path: Option<&str>, expect: &str| {
            let local = local.parse().expect("an address");
            assert_eq!(listener_name(&listeners, local, path.map(Path::new)), expect, "{local} {path:?}");
        };
        check("192.0.2.1:80", None, "a0");
        check("127.0.0.1:81", None, "admin");
        check("127.0.0.1:80", None, "inner");
        check("0.0.0.0:0", Some("/run/l.sock"), "local");
        check("0.0.0.0:0", Some("/run/m.sock"), "a3");
        check("[::1]:40000", None, "any");
        check("[::ffff:127.0.0.1]:81", None, "admin");
    }
}
