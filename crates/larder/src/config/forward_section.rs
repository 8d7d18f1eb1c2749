//! `[forward]`: who may use the forward proxy, and where it may lead.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::os::unix::fs::MetadataExt;

use proxy::settings::{Destination, ForwardSettings, ParentLogin, ParentSettings, Whither};

use super::choices::PARENT_BALANCES;
use super::complaint::Complaint;
use super::section::{Node, Section, check_network, choice, count, network, parsed, path, switch, whole};
use crate::addresses::parse_origin;
use crate::bounded_file;
use crate::limits::LOGIN_FILE_BYTES_MAX;

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
    for parent in section.sections("parent") {
        forward.parents.extend(read_parent(parent));
    }
    if let Some(balance) = section.read("balance", |node| choice(node, &PARENT_BALANCES)) {
        forward.balance = balance;
    }
    if let Some(destinations) = section.read_list("always_direct", destination) {
        forward.always_direct = destinations;
    }
    forward.never_direct = section.read("never_direct", switch).unwrap_or(false);
    if let Some(connections) = section.read("client_connections_max", whole) {
        forward.client_connections_max = connections;
    }
    if let Some(requests) = section.read("client_requests_per_second_max", whole) {
        forward.client_requests_per_second_max = requests;
    }
    forward.password_file = section.read("password_file", |node| parsed(node, "password file", "a path", path));
    if let Some(realm) =
        section.read("realm", |node| parsed(node, "realm", "a few printable words without quotes", realm))
    {
        forward.realm = realm;
    }
    section.end();
}

/// `[[forward.parent]]`
fn read_parent(mut section: Section<'_>) -> Option<ParentSettings> {
    let url = section.read("address", |node| {
        parsed(node, "parent proxy", "HOST:PORT, or unix:PATH", |written| match written.starts_with("unix:") {
            true => parse_origin(written).ok(),
            false => parse_origin(&format!("http://{written}")).ok().filter(|_| !written.contains('/')),
        })
    });
    let weight = section.read("weight", |node| {
        let weight = count(node)?;
        u32::try_from(weight)
            .ok()
            .filter(|weight| (1..=1_000).contains(weight))
            .ok_or_else(|| Complaint::new(node.span(), "the weight is out of range", "must be 1 to 1000"))
    });
    let login_file = section.read("login_file", |node| parsed(node, "login file", "a path", path));
    section.require("address", "write address = \"10.0.0.5:3128\"");
    section.end();
    Some(ParentSettings { url: url?, weight: weight.unwrap_or(1), login_file, login: None })
}

/// What the parents' login files say: `NAME:PASSWORD`, in one line. What is wrong is a sentence, which does not show it.
pub fn read_logins(forward: &mut ForwardSettings, warnings: &mut Vec<String>) -> Result<(), String> {
    for parent in &mut forward.parents {
        let Some(file) = &parent.login_file else { continue };
        let wrong = |why: &dyn Display| format!("forward.parent.login_file {}: {why}", file.display());
        let found = std::fs::metadata(file).map_err(|error| wrong(&error))?;
        if found.mode() & READABLE_BY_OTHERS != 0 {
            warnings.push(wrong(&"everybody on this machine can read it"));
        }
        let text = bounded_file::read_text(file, LOGIN_FILE_BYTES_MAX)
            .map_err(|why| wrong(&format_args!("{why}; it holds NAME:PASSWORD and nothing else")))?;
        let login = ParentLogin::of(text.trim_end_matches(['\r', '\n']));
        parent.login = Some(login.ok_or_else(|| wrong(&"it has to hold NAME:PASSWORD in one line"))?);
    }
    Ok(())
}

const READABLE_BY_OTHERS: u32 = 0o004;

fn realm(written: &str) -> Option<String> {
    let is_plain = |b: u8| (b' '..=b'~').contains(&b) && b != b'"' && b != b'\\';
    (!written.is_empty() && written.len() <= 64 && written.bytes().all(is_plain)).then(|| written.to_owned())
}

fn destination(node: Node<'_>) -> Result<Destination, Complaint> {
    let form =
        "a name, .DOMAIN, a network or :PORT, such as example.org, .example.org, 10.0.0.0/8:8080, [fc00::/7]:443";
    let destination: Destination = parsed(node, "destination", form, |written| written.parse().ok())?;
    if let Whither::Network(network) = destination.whither {
        check_network(node, network, &|network| match destination.port {
            Some(port) if network.address.is_ipv6() => format!("[{network}]:{port}"),
            Some(port) => format!("{network}:{port}"),
            None => network.to_string(),
        })?;
    }
    Ok(destination)
}

/// A port, or a text such as "1025-65535".
fn ports(node: Node<'_>) -> Result<RangeInclusive<u16>, Complaint> {
    if let toml::de::DeValue::Integer(_) = node.get_ref() {
        let port = count(node)?;
        let port = u16::try_from(port).ok().filter(|&port| port > 0);
        return port
            .map(|port| port..=port)
            .ok_or_else(|| Complaint::new(node.span(), "the port is out of range", "must be 1 to 65535"));
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

    /// What is said to be nobody is not what is not said.
    #[test]
    fn a_list_may_be_empty() {
        let text = "[forward]\nallow_clients = []\nports = []\nconnect_ports = []\n";
        let forward = read_config(text).unwrap().settings.forward;
        assert!(forward.allow_clients.is_empty() && forward.ports.is_empty() && forward.connect_ports.is_empty());
    }

    #[test]
    fn every_rule_can_be_set() {
        let text = "[forward]\nallow_clients = \"10.0.0.0/8\"\nallow_destinations = [\"intranet.test\", \"127.0.0.1:8080\"]\n\
                    deny_destinations = \".ads.test\"\nonly_destinations = [\".example.org\"]\nports = [80, \"8000-8999\"]\n\
                    connect_ports = 443\npassword_file = \"users\"\nrealm = \"the proxy\"\nbalance = \"hash\"\n\
                    always_direct = \".here.test\"\nnever_direct = true\nclient_connections_max = 9\n\
                    client_requests_per_second_max = 7\n[[forward.parent]]\naddress = \"10.0.0.5:3128\"\nweight = 2\n\
                    [[forward.parent]]\naddress = \"unix:/run/p.sock\"\nlogin_file = \"p.login\"\n";
        let forward = read_config(text).unwrap().settings.forward;
        assert_eq!(forward.allow_clients, ["10.0.0.0/8".parse().unwrap()]);
        assert_eq!(forward.allow_destinations.len(), 2);
        assert_eq!(forward.deny_destinations, [".ads.test".parse().unwrap()]);
        assert_eq!(forward.only_destinations.map(|only| only.len()), Some(1));
        assert_eq!((forward.password_file, &*forward.realm), (Some("users".into()), "the proxy"));
        assert_eq!((forward.client_connections_max, forward.client_requests_per_second_max), (9, 7));
        assert_eq!((forward.balance, forward.never_direct), (proxy::settings::ParentBalance::Hash, true));
        assert_eq!(forward.parents.iter().map(|parent| parent.weight).collect::<Vec<_>>(), [2, 1]);
        assert_eq!(forward.parents[1].login_file, Some("p.login".into()));
        assert_eq!((forward.ports, forward.connect_ports), (vec![80..=80, 8000..=8999], vec![443..=443]));
    }

    /// What is said of a login file with this text, if it is no good.
    fn check_login(text: &str, expect: Option<&str>) {
        let file = std::env::temp_dir().join(format!("larder-login-{}", std::process::id()));
        std::fs::write(&file, text).unwrap();
        let config = format!("[[forward.parent]]\naddress = \"a:3128\"\nlogin_file = {file:?}\n");
        let mut forward = read_config(&config).unwrap().settings.forward;
        let mut warnings = Vec::new();
        let said = super::read_logins(&mut forward, &mut warnings).err();
        std::fs::remove_file(&file).unwrap();
        assert_eq!(said.is_some(), expect.is_some(), "{text:?}: {said:?}");
        let said = said.unwrap_or_default();
        assert!(said.contains(expect.unwrap_or_default()) && !said.contains("secret"), "{said}");
        assert_eq!(forward.parents[0].login.is_some(), expect.is_none());
        assert!(!format!("{forward:?}").contains("c2VjcmV0"), "{forward:?}");
    }

    #[test]
    fn a_login_file_holds_a_name_and_a_password() {
        for good in ["ann:secret", "ann:secret\n", "ann:sec:ret\r\n", "ann:"] {
            check_login(good, None);
        }
        let one_line = "NAME:PASSWORD in one line";
        for bad in ["", "secret", ":secret", "ann:secret\nbob:secret\n", "ann:\u{1}secret"] {
            check_login(bad, Some(one_line));
        }
        check_login(&"secret:".repeat(1_000), Some("more than 1024 bytes"));
    }

    fn check(line: &str, complaint: &str) {
        let complaints = read_config(&format!("[forward]\n{line}\n")).unwrap_err();
        assert!(complaints[0].what.contains(complaint), "{line}: {:?}", complaints[0]);
    }

    #[test]
    fn what_means_nothing_is_complained_about() {
        check("allow_client = \"10.0.0.0/8\"", "unknown key `allow_client`");
        check("deny_destinations = \"*.ads.test\"", "`*.ads.test` is no destination");
        check("ports = 0", "the port is out of range");
        check("connect_ports = \"99-1\"", "`99-1` is no range of ports");
        check("[[forward.parent]]\naddress = \"http://a:3128/\"", "is no parent proxy");
        check("[[forward.parent]]\nweight = 2", "`address` is missing");
        check("realm = \"a\\\"b\"", "is no realm");
        check("allow_clients = \"everybody\"", "`everybody` is no network");
    }
}
