//! `[forward]`: who may use the forward proxy, and where it may lead.

use std::ops::RangeInclusive;

use proxy::settings::{Destination, ForwardSettings};

use super::complaint::Complaint;
use super::section::{Node, Section, count, parsed};
use super::sections::{network, path};

pub fn read(mut section: Section<'_>, forward: &mut ForwardSettings) {
    if let Some(networks) = section.read_list("allow_clients", network) {
        forward.allow_clients = networks;
    }
    if let Some(destinations) = section.read_list("allow_destinations", destination) {
        forward.allow_destinations = destinations;
    }
    if let Some(destinations) = section.read_list("deny_destinations", destination) {
        forward.deny_destinations = destinations;
    }
    forward.only_destinations = section.read_list("only_destinations", destination);
    if let Some(ranges) = section.read_list("ports", ports) {
        forward.ports = ranges;
    }
    if let Some(ranges) = section.read_list("connect_ports", ports) {
        forward.connect_ports = ranges;
    }
    forward.password_file = section.read("password_file", |node| parsed(node, "password file", "a path", path));
    if let Some(realm) =
        section.read("realm", |node| parsed(node, "realm", "a few printable words without quotes", realm))
    {
        forward.realm = realm;
    }
    section.end();
}

fn realm(written: &str) -> Option<String> {
    let is_plain = |b: u8| (b' '..=b'~').contains(&b) && b != b'"' && b != b'\\';
    (!written.is_empty() && written.len() <= 64 && written.bytes().all(is_plain)).then(|| written.to_owned())
}

fn destination(node: Node<'_>) -> Result<Destination, Complaint> {
    let form =
        "a name, .DOMAIN, a network or :PORT, such as example.org, .example.org, 10.0.0.0/8:8080, [fc00::/7]:443";
    parsed(node, "destination", form, |written| written.parse().ok())
}

/// A port, or a text such as "1025-65535".
fn ports(node: Node<'_>) -> Result<RangeInclusive<u16>, Complaint> {
    if let toml::de::DeValue::Integer(_) = node.get_ref() {
        let port = count(node)?;
        let port = u16::try_from(port).ok().filter(|&port| port > 0);
        return port
            .map(|port| port..=port)
            .ok_or_else(|| Complaint::new(node.span(), "that port cannot be", "must be 1 to 65535"));
    }
    parsed(node, "range of ports", "a port or two with a hyphen, such as \"1025-65535\"", |written| {
        let (first, last) = written.split_once('-').unwrap_or((written, written));
        let port = |text: &str| text.trim().parse::<u16>().ok().filter(|&port| port > 0);
        let (first, last) = (port(first)?, port(last)?);
        (first <= last).then_some(first..=last)
    })
}

#[cfg(test)]
mod tests {
    use super::super::read as read_config;

    #[test]
    fn what_ships_is_for_this_machine_alone() {
        let settings = read_config("[[listen]]\naddress = \"127.0.0.1:3128\"\nmode = \"forward\"\n").unwrap().settings;
        assert_eq!(settings.forward, proxy::settings::ForwardSettings::default());
        assert_eq!(settings.listeners[0].mode, proxy::settings::ListenMode::Forward);
    }

    #[test]
    fn every_rule_can_be_set() {
        let text = "[forward]\nallow_clients = \"10.0.0.0/8\"\nallow_destinations = [\"intranet.test\", \"127.0.0.1:8080\"]\n\
                    deny_destinations = \".ads.test\"\nonly_destinations = [\".example.org\"]\nports = [80, \"8000-8999\"]\n\
                    connect_ports = 443\npassword_file = \"users\"\nrealm = \"the proxy\"\n";
        let forward = read_config(text).unwrap().settings.forward;
        assert_eq!(forward.allow_clients, ["10.0.0.0/8".parse().unwrap()]);
        assert_eq!(forward.allow_destinations.len(), 2);
        assert_eq!(forward.deny_destinations, [".ads.test".parse().unwrap()]);
        assert_eq!(forward.only_destinations.map(|only| only.len()), Some(1));
        assert_eq!((forward.password_file, &*forward.realm), (Some("users".into()), "the proxy"));
        assert_eq!((forward.ports, forward.connect_ports), (vec![80..=80, 8000..=8999], vec![443..=443]));
    }

    fn check(line: &str, complaint: &str) {
        let complaints = read_config(&format!("[forward]\n{line}\n")).unwrap_err();
        assert!(complaints[0].what.contains(complaint), "{line}: {:?}", complaints[0]);
    }

    #[test]
    fn what_means_nothing_is_complained_about() {
        check("allow_client = \"10.0.0.0/8\"", "unknown key `allow_client`");
        check("deny_destinations = \"*.ads.test\"", "`*.ads.test` is no destination");
        check("ports = 0", "that port cannot be");
        check("connect_ports = \"99-1\"", "`99-1` is no range of ports");
        check("realm = \"a\\\"b\"", "is no realm");
        check("allow_clients = \"everybody\"", "`everybody` is no network");
    }
}
