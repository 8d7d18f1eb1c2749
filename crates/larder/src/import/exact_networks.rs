//! Networks that a configuration names by one address in them, `10.0.0.1/8`: all servers take the network, some with a warning, and larder
//! asks which of both is meant. So they are made plain before anything is translated, and said.

use std::net::{IpAddr, Ipv4Addr};

use proxy::settings::Network;

use crate::import::import_findings::Findings;
use crate::import::nginx_conf::Directive;

/// Words of nginx, Caddy, HAProxy and squid, one of which a line has that names clients or destinations.
const ABOUT_NETWORKS: [&str; 9] =
    ["allow", "deny", "set_real_ip_from", "remote_ip", "client_ip", "trusted_proxies", "src", "dst", "sources"];

/// Makes all networks of these lines, and of those within, such that each is named by its first address.
pub fn make_exact<'a>(lines: impl IntoIterator<Item = &'a mut Directive>, findings: &mut Findings) {
    for line in lines {
        let is_about = |word: &String| ABOUT_NETWORKS.contains(&word.as_str());
        if is_about(&line.name) || line.arguments.iter().any(is_about) {
            make_line_exact(line, findings);
        }
        if let Some(block) = &mut line.block {
            make_exact(block, findings);
        }
    }
}

fn make_line_exact(line: &mut Directive, findings: &mut Findings) {
    let exact: Vec<Option<String>> = line.arguments.iter().map(|word| exact(word)).collect();
    if exact.iter().any(Option::is_some) {
        findings.note(line, "an address stands for its network here, and larder names that by its first address");
    }
    for (word, exact) in line.arguments.iter_mut().zip(exact) {
        if let Some(exact) = exact {
            *word = exact;
        }
    }
}

/// `None`: it is no network, or an exact one. A prefix may be a mask, as squid has it.
fn exact(word: &str) -> Option<String> {
    let (address, prefix) = word.split_once('/')?;
    let address: IpAddr = address.parse().ok()?;
    let bits_max = if address.is_ipv4() { 32 } else { 128 };
    let prefix_bits = match prefix.parse::<Ipv4Addr>() {
        Ok(mask) if mask.to_bits().leading_ones() == mask.to_bits().count_ones() && address.is_ipv4() => {
            mask.to_bits().count_ones() as u8
        }
        Ok(_) => return None,
        Err(_) => prefix.parse().ok().filter(|&bits: &u8| bits <= bits_max)?,
    };
    let network = Network { address, prefix_bits };
    let first = network.from_its_first();
    (first != network).then(|| first.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::nginx_conf::directive;

    #[test]
    fn an_address_becomes_its_network() {
        for (line, expect) in [
            ("allow 10.0.0.1/8", "allow 10.0.0.0/8"),
            ("deny 2001:db8::7/32", "deny 2001:db8::/32"),
            ("@office remote_ip 192.0.2.7/24 10.0.0.0/8", "@office remote_ip 192.0.2.0/24 10.0.0.0/8"),
            ("not client_ip 192.0.2.7/24", "not client_ip 192.0.2.0/24"),
            ("acl ours src 10.1.2.3/255.0.0.0", "acl ours src 10.0.0.0/8"),
        ] {
            let (mut made, mut findings) = (directive(line), Findings::default());
            make_exact([&mut made], &mut findings);
            assert_eq!((made.text().as_str(), findings.notes_count()), (expect, 1), "{line}");
        }
    }

    #[test]
    fn what_is_exact_or_no_network_stays() {
        for line in
            ["allow 10.0.0.0/8", "allow 10.0.0.1", "allow all", "acl a src 10.0.0.1/255.0.255.0", "return 10.0.0.1/8"]
        {
            let (mut made, mut findings) = (directive(line), Findings::default());
            make_exact([&mut made], &mut findings);
            assert_eq!((made.text().as_str(), findings.notes_count()), (line, 0));
        }
        let mut outer = Directive { block: Some(vec![directive("allow 10.0.0.1/8")]), ..directive("location /") };
        make_exact([&mut outer], &mut Findings::default());
        assert_eq!(outer.children()[0].argument(0), "10.0.0.0/8");
    }
}
