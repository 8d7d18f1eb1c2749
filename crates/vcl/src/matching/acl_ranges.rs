//! An ACL, prepared: which entry decides about an address is one binary search.
//!
//! Networks lie beside or within one another, so they cut the addresses into ranges, and within each range one network
//! is the most specific. A table of the ranges' starts with that network's entry is all that is needed: no tree.

use std::net::IpAddr;

use crate::typed_program::{Acl, Network};

/// A prepared ACL.
#[derive(Debug)]
pub struct AclRanges {
    pub log: bool,
    pub name: Box<str>,
    v4: Vec<(u128, Option<u32>)>,
    v6: Vec<(u128, Option<u32>)>,
    entries: Vec<PreparedEntry>,
}

/// An entry, once names are looked up.
#[derive(Debug)]
struct PreparedEntry {
    negated: bool,
    shown: Box<str>,
}

/// The first and last address of a network, how specific it is, and which entry it is of.
type Spread = (u128, u128, u8, u32);

impl AclRanges {
    /// Names become the addresses that they have now.
    pub fn new(acl: &Acl, addresses: &dyn Fn(&str) -> Result<Vec<IpAddr>, String>) -> Result<AclRanges, String> {
        let (mut v4, mut v6, mut entries) = (Vec::new(), Vec::new(), Vec::new());
        for entry in &acl.entries {
            let networks = match &entry.network {
                Network::Prefix { address, bits } => vec![(*address, *bits)],
                Network::Name { name, bits } => match addresses(name) {
                    Ok(found) => found.iter().map(|address| (*address, bits.unwrap_or(128))).collect(),
                    Err(_) if entry.optional => Vec::new(),
                    Err(why) => {
                        return Err(format!(
                            "acl {}: `{name}` has no address: {why}; in parentheses, (\"{name}\"), it may have none",
                            acl.name
                        ));
                    }
                },
            };
            for (address, bits) in networks {
                let number = entries.len() as u32;
                let (all, spread) = match address.to_canonical() {
                    IpAddr::V4(address) => (&mut v4, spread(u128::from(u32::from(address)), bits.min(32), 32, number)),
                    IpAddr::V6(address) => (&mut v6, spread(u128::from(address), bits.min(128), 128, number)),
                };
                all.push(spread);
                let width = if address.to_canonical().is_ipv4() { 32 } else { 128 };
                let mask = if bits < width { format!("/{bits}") } else { String::new() };
                let by_address = || format!("{}\"{address}\"{mask}", if entry.negated { "!" } else { "" });
                let shown = entry.shown.clone().unwrap_or_else(by_address);
                entries.push(PreparedEntry { negated: entry.negated, shown: shown.into() });
            }
        }
        Ok(AclRanges { log: acl.log, name: acl.name.as_str().into(), v4: ranges(v4), v6: ranges(v6), entries })
    }

    /// Whether the address is in it. The entry that decided, for the log.
    pub fn decide(&self, address: IpAddr) -> (bool, Option<&str>) {
        let (ranges, number) = match address.to_canonical() {
            IpAddr::V4(address) => (&self.v4, u128::from(u32::from(address))),
            IpAddr::V6(address) => (&self.v6, u128::from(address)),
        };
        let above = ranges.partition_point(|(start, _)| *start <= number);
        let decided = above.checked_sub(1).and_then(|index| ranges[index].1);
        match decided.and_then(|entry| self.entries.get(entry as usize)) {
            Some(entry) => (!entry.negated, Some(&entry.shown)),
            None => (false, None),
        }
    }
}

fn spread(address: u128, bits: u8, width: u8, entry: u32) -> Spread {
    let rest = 1u128.checked_shl(u32::from(width - bits)).map_or(u128::MAX, |above| above - 1);
    (address & !rest, address | rest, bits, entry)
}

/// Where the deciding entry changes.
fn ranges(mut spreads: Vec<Spread>) -> Vec<(u128, Option<u32>)> {
    // Wide before narrow, so that of the open ones the last is the most specific; of two that are the same the first
    // entry stands.
    spreads.sort_by_key(|(first, _, bits, entry)| (*first, *bits, *entry));
    spreads.dedup_by_key(|(first, _, bits, _)| (*first, *bits));
    let mut made: Vec<(u128, Option<u32>)> = Vec::with_capacity(spreads.len() * 2);
    let mut open: Vec<Spread> = Vec::new();
    let mut begin = |start, entry| {
        if made.last().is_some_and(|(last, _)| *last == start) {
            made.pop();
        }
        made.push((start, entry));
    };
    for spread in spreads {
        while let Some(closed) = open.pop_if(|within| within.1 < spread.0) {
            begin(closed.1 + 1, open.last().map(|outer| outer.3));
        }
        begin(spread.0, Some(spread.3));
        open.push(spread);
    }
    while let Some(closed) = open.pop() {
        if let Some(after) = closed.1.checked_add(1) {
            begin(after, open.last().map(|outer| outer.3));
        }
    }
    made
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acl_entries::{AclEntry, network};

    fn acl(entries: &[&str]) -> Acl {
        let entry = |written: &&str| {
            let (negated, written) = written.strip_prefix('!').map_or((false, *written), |rest| (true, rest));
            let (optional, written) = written.strip_prefix('(').map_or((false, written), |rest| (true, rest));
            let network = network(written, None).expect("a lawful entry").0;
            AclEntry { negated, optional, network, shown: None }
        };
        Acl { name: "a".to_owned(), log: false, entries: entries.iter().map(entry).collect() }
    }

    fn lookup(name: &str) -> Result<Vec<IpAddr>, String> {
        match name {
            "two.example" => Ok(vec!["192.0.2.1".parse().expect("ok"), "2001:db8::1".parse().expect("ok")]),
            _ => Err("nobody knows it".to_owned()),
        }
    }

    fn check(entries: &[&str], address: &str, expect: (bool, Option<&str>)) {
        let ranges = AclRanges::new(&acl(entries), &lookup).expect("names are known");
        assert_eq!(ranges.decide(address.parse().expect("an address")), expect, "{entries:?} {address}");
    }

    #[test]
    fn the_most_specific_entry_decides() {
        let nested = ["10.0.0.0/8", "!10.1.0.0/16", "10.1.2.3", "10.255.0.0/16", "11.0.0.0/32"];
        check(&nested, "10.0.0.0", (true, Some("\"10.0.0.0\"/8")));
        check(&nested, "10.0.255.255", (true, Some("\"10.0.0.0\"/8")));
        check(&nested, "10.1.0.0", (false, Some("!\"10.1.0.0\"/16")));
        check(&nested, "10.1.2.3", (true, Some("\"10.1.2.3\"")));
        check(&nested, "10.1.2.4", (false, Some("!\"10.1.0.0\"/16")));
        check(&nested, "10.2.0.0", (true, Some("\"10.0.0.0\"/8")));
        check(&nested, "10.255.255.255", (true, Some("\"10.255.0.0\"/16")));
        check(&nested, "11.0.0.0", (true, Some("\"11.0.0.0\"")));
        check(&nested, "11.0.0.1", (false, None));
        check(&nested, "9.255.255.255", (false, None));
        check(&nested, "::1", (false, None));
        check(&nested, "::ffff:10.1.2.3", (true, Some("\"10.1.2.3\"")));
    }

    #[test]
    fn the_widest_and_the_last_addresses_have_an_end() {
        check(&["::/0", "!ffff::/16"], "ffff::1", (false, Some("!\"ffff::\"/16")));
        check(&["::/0", "!ffff::/16"], "1::", (true, Some("\"::\"/0")));
        check(&["0.0.0.0/0", "!255.255.255.255"], "255.255.255.255", (false, Some("!\"255.255.255.255\"")));
        check(&["0.0.0.0/0", "!255.255.255.255"], "255.255.255.254", (true, Some("\"0.0.0.0\"/0")));
        check(&["10.0.0.0/8", "!10.0.0.0/8"], "10.0.0.1", (true, Some("\"10.0.0.0\"/8")));
        check(&[], "10.0.0.1", (false, None));
    }

    #[test]
    fn names_are_their_addresses() {
        check(&["two.example"], "192.0.2.1", (true, Some("\"192.0.2.1\"")));
        check(&["two.example/24"], "192.0.2.9", (true, Some("\"192.0.2.1\"/24")));
        check(&["two.example"], "2001:db8::1", (true, Some("\"2001:db8::1\"")));
        check(&["(no.example", "10.0.0.1"], "10.0.0.1", (true, Some("\"10.0.0.1\"")));
        let why = AclRanges::new(&acl(&["no.example"]), &lookup).expect_err("it is not optional");
        assert!(why.contains("no.example") && why.contains("parentheses"), "{why}");
    }
}
