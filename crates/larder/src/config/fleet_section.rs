//! `[fleet]`: the nodes that serve the same site, how they know one another, and which of them this one is. What they tell one another is read
//! in `fleet_log_words`.

use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use proxy::settings::{
    BalanceKind, BalanceSettings, FleetSecret, FleetSettings, HashKey, ListenAddress, ListenMode, ListenerSettings,
    OriginUrl, OwnAddress, UrlShare, is_of_this_machine,
};
use toml::de::DeValue;

use super::complaint::Complaint;
use super::section::{Node, Section, parsed, path, text};
use super::{fleet_log_words, origin_balance, origin_protocol, origin_tls, sections, timeout_words};
use crate::addresses::parse_origin;
use crate::bounded_file;
use crate::limits::{
    FLEET_CONNECT_TIMEOUT_DEFAULT, FLEET_LOAD_MAX_DEFAULT, FLEET_LOAD_MAX_MOST, FLEET_SECRET_BYTES_MIN,
};
use crate::limits::{FLEET_LOAD_MAX_LEAST, TOKEN_FILE_BYTES_MAX};
use crate::plan::{Plan, origin_with_defaults};

/// What errors and events call the nodes.
const NAME: &str = "fleet";
const LOAD_FORM: &str = "a number from 1 to 100, such as 1.25";

const NO_PEERS: &str = "[fleet] says how owners are asked and has no peers: each node asks the origin by itself";

/// The nodes may share what was purged, or own URLs, or both.
pub fn read(mut section: Section<'_>, plan: &mut Plan) {
    fleet_log_words::read(&mut section, plan);
    read_owners(&mut section, plan);
    section.end();
}

fn read_owners(section: &mut Section<'_>, plan: &mut Plan) {
    let peers = section.read_list("peers", peer).unwrap_or_default();
    let (urls, shares): (Vec<OriginUrl>, Vec<UrlShare>) = peers.into_iter().unzip();
    let mut nodes = origin_with_defaults(NAME.to_owned(), urls);
    sections::connection_words(section, &mut nodes);
    nodes.probe = origin_balance::probe(section, None, &nodes.urls);
    nodes.tls = origin_tls::read(section, &nodes.urls);
    nodes.http2 = origin_protocol::read(section, &nodes.urls);
    nodes.timeouts = timeout_words::of_origin(section);
    let says_something = format!("{nodes:?}") != format!("{:?}", origin_with_defaults(NAME.to_owned(), Vec::new()));
    nodes.timeouts.connect = nodes.timeouts.connect.or(Some(FLEET_CONNECT_TIMEOUT_DEFAULT));
    // Which one is asked next, and that nobody is who is left out, the fleet says itself.
    nodes.retries.on_connect = false;
    let own = section.read("address", own_address);
    let load_max_permille = section.read("load_max", load_max).unwrap_or(FLEET_LOAD_MAX_DEFAULT);
    plan.fleet_secret_file = section.read("secret_file", |node| parsed(node, "file", "a path", path));
    if !section.has("peers") {
        let is_secret_useless = plan.fleet_secret_file.is_some() && plan.shared.is_none();
        let is_loaded = load_max_permille != FLEET_LOAD_MAX_DEFAULT;
        let is_useless = says_something || is_loaded || is_secret_useless || own.is_some();
        plan.warnings.extend(is_useless.then(|| NO_PEERS.to_owned()));
        return;
    }
    if plan.fleet_secret_file.is_none() && section.get("secret_file").is_none() {
        let complaint = Complaint::new(section.span(), "`peers` needs secret_file", "anybody could speak as a node");
        let complaint = complaint.following_from(&["peers"]);
        section
            .complaints()
            .add(complaint.suggest("write secret_file = \"fleet.secret\": the same file on every node"));
    }
    if plan.vcl_file.is_some() {
        let what = "peers of [fleet] do nothing beside a VCL, which decides by itself whom it asks (policy.vcl)";
        plan.warnings.push(what.to_owned());
    }
    plan.warnings.extend(warning(&nodes.urls, own.as_ref(), &plan.settings.listeners));
    let own = own.unwrap_or_else(|| OwnAddress::OnPorts(ports(&plan.settings.listeners)));
    nodes.balance = BalanceSettings { shares, breaks_circuit: true, ..BalanceSettings::default() };
    // Until it is read, nobody's.
    let secret = FleetSecret::new(&[]);
    plan.settings.fleet = Some(Arc::new(FleetSettings { nodes, secret, own, load_max_permille }));
}

/// The secret, which lies in a file of its own.
pub fn read_secret(plan: &mut Plan) -> Result<(), String> {
    let is_of_use = plan.settings.fleet.is_some() || plan.shared.is_some();
    let Some(file) = plan.fleet_secret_file.as_ref().filter(|_| is_of_use) else { return Ok(()) };
    let wrong = |why: String| format!("secret_file of [fleet]: {}: {why}", file.display());
    let found = std::fs::metadata(file).map_err(|error| wrong(error.to_string()))?;
    if found.mode() & READABLE_BY_OTHERS != 0 {
        plan.warnings.push(wrong("everybody on this machine can read it".to_owned()));
    }
    let text = bounded_file::read_text(file, TOKEN_FILE_BYTES_MAX).map_err(|error| wrong(error.to_string()))?;
    let text = text.trim_end();
    if text.len() < FLEET_SECRET_BYTES_MIN || text.contains(char::is_whitespace) {
        return Err(wrong(format!(
            "a secret is at least {FLEET_SECRET_BYTES_MIN} characters without spaces: openssl rand -hex 32"
        )));
    }
    let secret = FleetSecret::new(text.as_bytes());
    if let Some(fleet) = &plan.settings.fleet {
        let mut fleet = FleetSettings { secret: secret.clone(), ..(**fleet).clone() };
        fleet.nodes.balance.kind = BalanceKind::Hash(HashKey::Stored(secret.digest_key()));
        plan.settings.fleet = Some(Arc::new(fleet));
    }
    plan.fleet_secret = Some(secret);
    Ok(())
}

const READABLE_BY_OTHERS: u32 = 0o004;

/// A node, as an origin's servers are written; `dns:HOST:PORT` is all addresses of a name, which `http://HOST:PORT` is, too.
fn peer(node: Node<'_>) -> Result<(OriginUrl, UrlShare), Complaint> {
    let (url, share) = match text(node)?.strip_prefix("dns:") {
        None => origin_balance::url(node)?,
        Some(rest) => origin_balance::url_of(node, &format!("http://{rest}"))?,
    };
    if matches!(url, OriginUrl::Unix(_)) || share.is_backup {
        let why = "a node is http://HOST:PORT, https://HOST:PORT or h2://HOST:PORT, and no backup";
        return Err(Complaint::new(node.span(), "this is no node of a fleet", why));
    }
    Ok((url, share))
}

/// As the others call it.
fn own_address(node: Node<'_>) -> Result<OwnAddress, Complaint> {
    let wrong = |why: String| Complaint::new(node.span(), "this is no address of a node", why);
    let url = parse_origin(text(node)?).map_err(wrong)?;
    match place(&url) {
        None => Err(wrong("write it as it stands in peers: http://HOST:PORT".to_owned())),
        Some((_, port)) => Ok(ip_of(&url).map_or(OwnAddress::OnPorts(vec![port]), OwnAddress::At)),
    }
}

/// In thousandths.
fn load_max(node: Node<'_>) -> Result<u32, Complaint> {
    let load = match node.get_ref() {
        DeValue::Float(load) => load.as_str().parse::<f64>().ok(),
        DeValue::Integer(load) => load.as_str().parse::<f64>().ok(),
        _ => None,
    };
    let permille = load.map(|load| (load * 1_000.0).round() as u32);
    let permille = permille.filter(|permille| (FLEET_LOAD_MAX_LEAST..=FLEET_LOAD_MAX_MOST).contains(permille));
    permille.ok_or_else(|| Complaint::new(node.span(), "the load is out of range", LOAD_FORM))
}

fn place(url: &OriginUrl) -> Option<(&str, u16)> {
    match url {
        OriginUrl::Tcp { host, port } | OriginUrl::Tls { host, port } | OriginUrl::Http2 { host, port } => {
            Some((host, *port))
        }
        OriginUrl::Unix(_) | OriginUrl::Mocked(_) => None,
    }
}

/// `None`: it is a name.
fn ip_of(url: &OriginUrl) -> Option<SocketAddr> {
    let (host, port) = place(url)?;
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    Some(SocketAddr::new(bare.parse::<IpAddr>().ok()?, port))
}

fn ports(listeners: &[ListenerSettings]) -> Vec<u16> {
    let of = |listener: &ListenerSettings| match listener.address {
        ListenAddress::Tcp(address) if listener.mode == ListenMode::Accelerate => Some(address.port()),
        _ => None,
    };
    listeners.iter().filter_map(of).collect()
}

/// Where it is not to be seen which of the nodes this one is. Names are looked up later.
fn warning(urls: &[OriginUrl], own: Option<&OwnAddress>, listeners: &[ListenerSettings]) -> Option<String> {
    let known: Vec<SocketAddr> = urls.iter().map(ip_of).collect::<Option<_>>()?;
    let ports = ports(listeners);
    let is_own = |at: &&SocketAddr| match own {
        Some(OwnAddress::At(own)) => own == *at,
        Some(OwnAddress::OnPorts(ports)) => ports.contains(&at.port()) && is_of_this_machine(at.ip()),
        None => ports.contains(&at.port()) && is_of_this_machine(at.ip()),
    };
    match known.iter().filter(is_own).count() {
        0 if known.is_empty() => None,
        0 if own.is_some() => {
            Some("fleet.address is none of fleet.peers: this node owns no URL, and asks owners alone".to_owned())
        }
        0 => Some(
            "none of fleet.peers is an address of this machine with a port that larder listens on: this node owns no \
             URL, and asks owners alone (fleet.address says which one it is)"
                .to_owned(),
        ),
        1 => None,
        several => Some(format!("{several} of fleet.peers may be this node: fleet.address says which one it is")),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::{ConfigError, load, read as read_config};
    use super::*;

    const TWO: &str = "[fleet]\npeers = [\"http://203.0.113.1:80\", \"http://203.0.113.2:80 weight=2\"]\n";

    fn plan(text: &str) -> Plan {
        read_config(text).unwrap_or_else(|wrong| panic!("{wrong:?}"))
    }

    fn complaint(text: &str) -> String {
        let complaints = read_config(text).unwrap_err();
        format!("{}: {} {:?}", complaints[0].what, complaints[0].label, complaints[0].suggestion)
    }

    #[test]
    fn nodes_are_an_origin_whose_circuit_breaks() {
        let fleet = plan(&format!("{TWO}secret_file = \"s\"\nload_max = 2\n")).settings.fleet.unwrap();
        assert_eq!((fleet.nodes.urls.len(), fleet.nodes.balance.shares[1].weight), (2, 2));
        assert!(fleet.nodes.balance.breaks_circuit && !fleet.nodes.retries.on_connect);
        assert_eq!(
            (fleet.load_max_permille, fleet.nodes.timeouts.connect),
            (2_000, Some(FLEET_CONNECT_TIMEOUT_DEFAULT))
        );
        let named = plan("[fleet]\npeers = \"dns:nodes.internal:8080\"\nsecret_file = \"s\"\n").settings.fleet.unwrap();
        assert_eq!(named.nodes.urls, [OriginUrl::Tcp { host: "nodes.internal".to_owned(), port: 8080 }]);
        assert!(plan("").settings.fleet.is_none());
    }

    #[test]
    fn nodes_without_a_secret_are_none() {
        let said = complaint(TWO);
        assert!(said.contains("`peers` needs secret_file: anybody could speak as a node"), "{said}");
        for (peers, expect) in [
            ("[\"unix:/run/x\"]", "no node of a fleet"),
            ("[\"http://203.0.113.1 backup\"]", "no node of a fleet"),
            ("[\"dns:\"]", "cannot be an origin"),
        ] {
            let said = complaint(&format!("[fleet]\npeers = {peers}\nsecret_file = \"s\"\n"));
            assert!(said.contains(expect), "{peers}: {said}");
        }
        let alone = plan("[fleet]\nsecret_file = \"s\"\n");
        assert!(alone.settings.fleet.is_none());
        assert_eq!(alone.warnings, [NO_PEERS]);
        for load in ["0.9", "101", "\"1\""] {
            let said = complaint(&format!("{TWO}secret_file = \"s\"\nload_max = {load}\n"));
            assert!(said.contains("from 1 to 100"), "{load}: {said}");
        }
    }

    #[test]
    fn which_node_this_one_is_is_found_or_said() {
        let check = |text: &str, own: OwnAddress, warns: Option<&str>| {
            let plan = plan(&format!("{text}secret_file = \"s\"\n"));
            assert_eq!(plan.settings.fleet.unwrap().own, own, "{text}");
            match warns {
                None => assert_eq!(plan.warnings, [""; 0], "{text}"),
                Some(words) => {
                    assert!(plan.warnings.iter().any(|warning| warning.contains(words)), "{:?}", plan.warnings)
                }
            }
        };
        let (at, none) = (OwnAddress::At("203.0.113.2:80".parse().unwrap()), OwnAddress::OnPorts(vec![80]));
        check(&format!("{TWO}address = \"http://203.0.113.2\"\n"), at, None);
        let strange = OwnAddress::At("203.0.113.3:80".parse().unwrap());
        check(
            &format!("{TWO}address = \"http://203.0.113.3\"\n"),
            strange,
            Some("fleet.address is none of fleet.peers"),
        );
        let listen = "[[listen]]\naddress = \"127.0.0.1:80\"\n";
        check(&format!("{listen}{TWO}"), none.clone(), Some("none of fleet.peers"));
        let here = format!("{listen}[fleet]\npeers = [\"http://127.0.0.1:80\", \"http://203.0.113.2\"]\n");
        check(&here, none, None);
        let twice = "[[listen]]\naddress = \"127.0.0.1:80\"\n[[listen]]\naddress = \"127.0.0.1:81\"\n[fleet]\npeers = \
                     [\"http://127.0.0.1:80\", \"http://127.0.0.1:81\"]\n";
        check(twice, OwnAddress::OnPorts(vec![80, 81]), Some("2 of fleet.peers may be this node"));
    }

    #[test]
    fn the_secret_lies_in_a_file_beside_the_config() {
        let folder = std::env::temp_dir().join(format!("larder-fleet-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("larder.toml"), format!("{TWO}secret_file = \"fleet.secret\"\n")).unwrap();
        let loaded = |folder: &Path| {
            load(&folder.join("larder.toml"))
                .map(|plan| plan.settings.fleet)
                .map_err(|why: ConfigError| why.show(false))
        };
        assert!(loaded(&folder).unwrap_err().contains("fleet.secret: No such file"));
        for wrong in ["short\n", "0123456789abcdef 0123456789abcdef\n"] {
            std::fs::write(folder.join("fleet.secret"), wrong).unwrap();
            let said = loaded(&folder).unwrap_err();
            assert!(said.contains("secret_file of [fleet]") && !said.contains("0123"), "{said}");
        }
        std::fs::write(folder.join("fleet.secret"), "0123456789abcdef0123456789abcdef\n").unwrap();
        let fleet = loaded(&folder).unwrap().unwrap();
        assert_eq!(fleet.secret, FleetSecret::new(b"0123456789abcdef0123456789abcdef"));
        assert_eq!(fleet.nodes.balance.kind, BalanceKind::Hash(HashKey::Stored(fleet.secret.digest_key())));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
