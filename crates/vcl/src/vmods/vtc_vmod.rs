//! vmod vtc: for test files. What stands for all of Varnish's workspaces is the room that a scope has for its texts: it can be
//! taken away, and who asks about a workspace is told of one that is never full.

use super::{Arguments, NOTHING, functions};
use crate::evaluation::evaluator::Run;
use crate::host::{Host, LogKind};
use crate::plain_values::{BackendRef, Fault, Plain};
use crate::test_waits::TestWait;

functions! {
    VtcFunction {
        BarrierSync "barrier_sync",
        NoBackend "no_backend",
        NoStevedore "no_stevedore",
        NoIp "no_ip",
        Panic "panic",
        Sleep "sleep",
        WorkspaceAlloc "workspace_alloc",
        WorkspaceReserve "workspace_reserve",
        WorkspaceFree "workspace_free",
        WorkspaceSnapshot "workspace_snapshot",
        WorkspaceReset "workspace_reset",
        WorkspaceOverflowed "workspace_overflowed",
        WorkspaceOverflow "workspace_overflow",
        WorkspaceDump "workspace_dump",
        TypeSize "typesize",
        ProxyHeader "proxy_header",
        Vsl "vsl",
        VslReplay "vsl_replay",
    }
}

/// What Varnish's is by default.
const WORKSPACE_BYTES: i64 = 64 << 10;

fn wait<'a, H: Host<'a>>(run: &Run<'a, '_, H>, wait: TestWait) -> Result<(), Fault> {
    match run.host.waits_later() {
        _ if run.host.is_dry_run() => Ok(()),
        true => {
            run.host.task().wait_later(wait);
            Ok(())
        }
        false => run.host.world().wait(&wait).map_err(Fault::new),
    }
}

pub fn call<'a, H: Host<'a>>(
    run: &Run<'a, '_, H>,
    function: VtcFunction,
    given: &Arguments<'_, 'a>,
) -> Result<Plain<'a>, Fault> {
    use VtcFunction as F;
    Ok(match function {
        F::BarrierSync => {
            wait(run, TestWait::Barrier { address: given.bytes(0).to_vec(), timeout_s: given.real(1) })?;
            NOTHING
        }
        F::NoBackend => Plain::Backend(BackendRef::None),
        F::NoStevedore => Plain::Storage(None),
        // Nothing can be done with an address that there is not.
        F::NoIp => return Err(Fault::new("vtc.no_ip: an address that is none")),
        // The process goes on: a test of what follows a panic is a test of Varnish.
        F::Panic => {
            return Err(Fault::new(format!("vtc.panic: {}", String::from_utf8_lossy(given.bytes(0)))));
        }
        F::Sleep => {
            wait(run, TestWait::Seconds(given.real(0)))?;
            NOTHING
        }
        F::WorkspaceOverflow => return Err(Fault::new("vtc.workspace_overflow: the program says that it is full")),
        F::WorkspaceOverflowed => Plain::Bool(false),
        F::WorkspaceReserve => Plain::Bytes(given.int(1).clamp(0, WORKSPACE_BYTES)),
        F::WorkspaceFree => Plain::Int(WORKSPACE_BYTES),
        F::WorkspaceDump => Plain::Blob(Some(b"")),
        F::WorkspaceAlloc => {
            run.arena.waste(given.int(1));
            NOTHING
        }
        F::WorkspaceSnapshot | F::WorkspaceReset => NOTHING,
        F::TypeSize => Plain::Int(type_size(given.bytes(0))),
        F::ProxyHeader => Plain::Blob(Some(run.arena.copy(&proxy_header(given))?)),
        F::Vsl => {
            run.host.log(LogKind::Program, given.bytes(3));
            NOTHING
        }
        F::VslReplay => {
            run.host.log(LogKind::Program, given.bytes(0));
            NOTHING
        }
    })
}

/// Of a structure whose members are named by letters, on a machine of 64 bits; -1 for a letter that names none.
fn type_size(letters: &[u8]) -> i64 {
    let (mut size, mut widest) = (0i64, 1i64);
    for letter in letters {
        let width = match letter {
            b'c' => 1,
            b's' => 2,
            b'i' | b'u' | b'f' => 4,
            b'd' | b'e' | b'j' | b'l' | b'o' | b'p' | b't' | b'z' => 8,
            _ => return -1,
        };
        widest = widest.max(width);
        size = (size + width - 1) / width * width + width;
    }
    (size + widest - 1) / widest * widest
}

/// A head of the PROXY protocol.
fn proxy_header(given: &Arguments<'_, '_>) -> Vec<u8> {
    let (client, server) = (given.ip(1), given.ip(2));
    let is_v4 = client.address.is_ipv4();
    if given.word(0) == Some("v1") {
        let family = if is_v4 { "TCP4" } else { "TCP6" };
        let (from, to) = (client.address, server.address);
        return format!("PROXY {family} {from} {to} {} {}\r\n", client.port, server.port).into_bytes();
    }
    let mut body = Vec::new();
    for ip in [client, server] {
        match ip.address {
            std::net::IpAddr::V4(address) => body.extend(address.octets()),
            std::net::IpAddr::V6(address) => body.extend(address.octets()),
        }
    }
    [client, server].iter().for_each(|ip| body.extend(ip.port.to_be_bytes()));
    if let Some(authority) = given.text(3) {
        let length = authority.len().min(usize::from(u16::MAX) / 2);
        body.push(2);
        body.extend((length as u16).to_be_bytes());
        body.extend(&authority[..length]);
    }
    let mut made = b"\r\n\r\n\0\r\nQUIT\n\x21".to_vec();
    made.push(if is_v4 { 0x11 } else { 0x21 });
    made.extend((body.len() as u16).to_be_bytes());
    made.extend(body);
    made
}

#[cfg(test)]
mod tests {
    use super::super::Argument;
    use super::*;
    use crate::plain_values::Ip;

    #[test]
    fn sizes_are_those_of_c() {
        let check = |letters: &str, size| assert_eq!(type_size(letters.as_bytes()), size, "{letters}");
        check("p", 8);
        check("ci", 8);
        check("ic", 8);
        check("cp", 16);
        check("?", -1);
    }

    #[test]
    fn heads_of_the_proxy_protocol_are_made() {
        let ip = |address: &str, port| {
            Argument::Plain(Plain::Ip(Ip { address: address.parse().expect("an address"), port }))
        };
        let v1 = [Argument::Word("v1"), ip("1.2.3.4", 5), ip("5.6.7.8", 9), Argument::Absent];
        assert_eq!(proxy_header(&Arguments(&v1)), b"PROXY TCP4 1.2.3.4 5.6.7.8 5 9\r\n");
        let v2 = [Argument::Word("v2"), ip("1.2.3.4", 5), ip("5.6.7.8", 9), Argument::Absent];
        let made = proxy_header(&Arguments(&v2));
        assert_eq!(made[12..], [0x21, 0x11, 0, 12, 1, 2, 3, 4, 5, 6, 7, 8, 0, 5, 0, 9]);
    }
}
