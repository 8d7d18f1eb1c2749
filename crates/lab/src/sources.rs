//! The addresses that connections come from, when one offers ports for too few of them.
//!
//! To one target each source address has one connection per port, so what fits is known before the run; a run that
//! cannot have its connections is refused instead of ending in `addr-unavail`.

use std::net::{IpAddr, Ipv4Addr, TcpListener};

use crate::limits::SOURCES_MAX;
use crate::workload::Workload;

/// `127.0.0.2`, several with commas between, and ranges such as `127.0.0.2-127.0.0.9`.
pub fn parse_sources(text: &str) -> Result<Vec<IpAddr>, String> {
    let mut sources = Vec::new();
    for part in text.split(',').map(str::trim) {
        match part.split_once('-') {
            None => sources.push(parse_address(part)?),
            Some((first, last)) => add_range(&mut sources, part, parse_address(first)?, parse_address(last)?)?,
        }
        if sources.len() > SOURCES_MAX {
            return Err(format!("more than {SOURCES_MAX} addresses"));
        }
    }
    Ok(sources)
}

/// One of [`parse_sources`] on each line; empty lines and `#` comments are passed over.
pub fn parse_sources_list(text: &str) -> Result<Vec<IpAddr>, String> {
    let mut sources = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if !line.is_empty() && !line.starts_with('#') {
            sources.extend(parse_sources(line).map_err(|what| format!("line {}: {what}", index + 1))?);
        }
    }
    match sources.len() {
        0 => Err("holds no address".to_owned()),
        count if count > SOURCES_MAX => Err(format!("more than {SOURCES_MAX} addresses")),
        _ => Ok(sources),
    }
}

fn parse_address(text: &str) -> Result<IpAddr, String> {
    text.trim().parse().map_err(|_| format!("`{text}` is no IP address, such as 127.0.0.2"))
}

fn add_range(sources: &mut Vec<IpAddr>, part: &str, first: IpAddr, last: IpAddr) -> Result<(), String> {
    let (IpAddr::V4(first), IpAddr::V4(last)) = (first, last) else {
        return Err(format!("`{part}`: a range is of IPv4 addresses"));
    };
    let (first, last) = (u32::from(first), u32::from(last));
    if last < first {
        return Err(format!("`{part}` ends before it begins"));
    }
    if (last - first) as usize >= SOURCES_MAX {
        return Err(format!("`{part}`: more than {SOURCES_MAX} addresses"));
    }
    sources.extend((first..=last).map(|bits| IpAddr::V4(Ipv4Addr::from(bits))));
    Ok(())
}

/// Which source a user of a thread has. Each thread goes through all of them: the ports of a source are shared out among
/// the threads, and one that had a source to itself could reach only its own share.
pub(crate) fn source_of(user: usize, thread: usize, sources_count: usize) -> Option<usize> {
    (sources_count > 0).then(|| (user + thread) % sources_count)
}

/// The ports that a thread's connections take from each source, one after another.
///
/// Chosen here because the kernel, asked to choose before it knows the target, looks through the whole range for a port
/// that nobody uses for any target: milliseconds for each connection once a quarter of them are taken.
#[derive(Debug)]
pub(crate) struct Ports {
    first: u32,
    count: u32,
    step: u32,
    next: Vec<u32>,
}

impl Ports {
    pub(crate) fn new(
        sources_count: usize,
        port_range: Option<(u32, u32)>,
        (thread, threads): (usize, usize),
    ) -> Ports {
        let (first, last) = port_range.unwrap_or(PORT_RANGE_USUAL);
        let count = (last + 1).saturating_sub(first).max(1);
        // Not where the last run began, whose ports may still linger.
        let begin = || (fastrand::u32(..count) / threads as u32 * threads as u32 + thread as u32) % count;
        Ports { first, count, step: threads as u32, next: (0..sources_count).map(|_| begin()).collect() }
    }

    pub(crate) fn take(&mut self, source: usize) -> u16 {
        let next = &mut self.next[source];
        let port = self.first + *next;
        *next = (*next + self.step) % self.count;
        u16::try_from(port).unwrap_or(u16::MAX)
    }
}

/// Linux's own, where /proc does not say.
const PORT_RANGE_USUAL: (u32, u32) = (32_768, 60_999);

/// Can this workload have its connections? If not, why, and what to change.
pub(crate) fn check(workload: &Workload, port_range: Option<(u32, u32)>) -> Result<(), String> {
    if workload.unix.is_some() {
        return Ok(());
    }
    let target = workload.address;
    for source in &workload.sources {
        if source.is_ipv4() != target.is_ipv4() {
            return Err(format!("{source} cannot reach {target}: one is IPv4, the other IPv6 (--source)"));
        }
        TcpListener::bind((*source, 0)).map_err(|error| format!("cannot connect from {source}: {error} (--source)"))?;
    }
    let Some((first, last)) = port_range else { return Ok(()) };
    let (ports, addresses) = ((last + 1).saturating_sub(first) as usize, workload.sources.len().max(1));
    if workload.users > ports.saturating_mul(addresses) {
        let of = if addresses == 1 {
            "one source address has".to_owned()
        } else {
            format!("{addresses} source addresses have")
        };
        return Err(format!(
            "{} connections to one target need as many ports, and {of} {}: widen net.ipv4.ip_local_port_range \
             ({first} {last} now), or give more addresses (--source 127.0.0.2-127.0.0.9)",
            workload.users,
            ports * addresses
        ));
    }
    Ok(())
}

/// How many connections to one target there may be from so many addresses.
pub fn connections_offered(sources: usize) -> usize {
    let (first, last) = port_range().unwrap_or(PORT_RANGE_USUAL);
    ((last + 1).saturating_sub(first) as usize).saturating_mul(sources.max(1))
}

/// What the kernel takes ports for connections from; `None` where it does not say.
pub(crate) fn port_range() -> Option<(u32, u32)> {
    parse_port_range(&std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?)
}

fn parse_port_range(text: &str) -> Option<(u32, u32)> {
    let (first, last) = text.trim().split_once(char::is_whitespace)?;
    Some((first.parse().ok()?, last.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_addresses_and_ranges() {
        let check = |text: &str, expect: &[&str]| {
            let expect: Vec<IpAddr> = expect.iter().map(|address| address.parse().unwrap()).collect();
            assert_eq!(parse_sources(text), Ok(expect), "{text}");
        };
        check("127.0.0.2", &["127.0.0.2"]);
        check("::1, 127.0.0.2", &["::1", "127.0.0.2"]);
        check(
            "127.0.0.254-127.0.1.1,127.0.0.2-127.0.0.2",
            &["127.0.0.254", "127.0.0.255", "127.0.1.0", "127.0.1.1", "127.0.0.2"],
        );
        let list = parse_sources_list("# mine\n127.0.0.2\n\n127.0.0.4-127.0.0.5\n").unwrap();
        assert_eq!(list.len(), 3);
    }

    #[test]
    fn every_thread_uses_every_source() {
        for (threads, sources) in [(1, 1), (2, 2), (2, 4), (4, 2), (3, 2)] {
            let mut used = vec![0; sources];
            for thread in 0..threads {
                let of_thread: Vec<usize> = (0..12).filter_map(|user| source_of(user, thread, sources)).collect();
                assert!((0..sources).all(|source| of_thread.contains(&source)), "{threads} threads, {sources} sources");
                of_thread.into_iter().for_each(|source| used[source] += 1);
            }
            assert!(used.iter().all(|count| *count == used[0]), "{used:?}");
        }
        assert_eq!(source_of(3, 1, 0), None);
    }

    #[test]
    fn threads_take_ports_in_turn() {
        let mut ports = Ports::new(2, Some((1_000, 1_009)), (1, 2));
        let mut taken: Vec<u16> = (0..5).map(|_| ports.take(1)).collect();
        taken.sort_unstable();
        assert_eq!(taken, [1_001, 1_003, 1_005, 1_007, 1_009]);
        let mut alone = Ports::new(1, Some((1_000, 1_000)), (0, 1));
        assert_eq!([alone.take(0), alone.take(0)], [1_000, 1_000]);
    }

    #[test]
    fn rubbish_is_refused_with_its_place() {
        let check = |text: &str, part: &str| {
            let error = parse_sources_list(text).unwrap_err();
            assert!(error.contains(part), "{error}");
        };
        check("", "holds no address");
        check("127.0.0.2\nlocalhost\n", "line 2: `localhost` is no IP address");
        check("127.0.0.2,", "`` is no IP address");
        check("127.0.0.9-127.0.0.2", "ends before it begins");
        check("127.0.0.1-127.255.0.0", "more than 4096");
        check("::1-::2", "IPv4");
    }

    #[test]
    fn what_cannot_be_is_refused_before_the_run() {
        let refused = |target: &str, users, sources: &str| {
            let sources = if sources.is_empty() { Vec::new() } else { parse_sources(sources).unwrap() };
            let workload = Workload { users, sources, ..Workload::new(target.parse().unwrap()) };
            super::check(&workload, parse_port_range("32768\t60999\n")).err()
        };
        assert_eq!(refused("127.0.0.1:80", 28_232, ""), None);
        assert!(refused("127.0.0.1:80", 28_233, "").unwrap().contains("one source address has 28232: widen"));
        assert_eq!(refused("127.0.0.1:80", 56_464, "127.0.0.2-127.0.0.3"), None);
        assert!(refused("127.0.0.1:80", 56_465, "127.0.0.2-127.0.0.3").unwrap().contains("2 source addresses"));
        assert!(refused("[::1]:80", 1, "127.0.0.2").unwrap().contains("the other IPv6"));
        assert!(refused("127.0.0.1:80", 1, "192.0.2.1").unwrap().contains("cannot connect from 192.0.2.1"));
    }
}
