//! PROXY protocol headers, good and bad; every one is also read in pieces.

use super::*;
use crate::bytes_of::{bytes_of, cuts};

/// `source destination bytes`, or the refusal's token. The source is `-` where nobody is named, `local` for the proxy itself.
fn outcome(bytes: &[u8]) -> Option<String> {
    let address = |address: Option<SocketAddr>| address.map_or(String::from("-"), |address| address.to_string());
    match read_proxy_header(bytes, false) {
        Ok(header) => {
            let header = header?;
            let source = if header.is_local { "local".to_owned() } else { address(header.source) };
            Some(format!("{source} {} {}", address(header.destination), header.bytes))
        }
        Err(refusal) => Some(refusal.token.to_owned()),
    }
}

fn check(bytes: &[u8], expect: &str) {
    let followed = [bytes, b"GET / HTTP/1.1\r\n"].concat();
    assert_eq!(outcome(bytes).as_deref().unwrap_or("incomplete"), expect, "{}", bytes.escape_ascii());
    let early = cuts(followed.len()).find_map(|cut| outcome(&followed[..cut]));
    if expect != "incomplete" {
        assert_eq!(early.as_deref(), Some(expect), "in pieces: {}", bytes.escape_ascii());
    }
}

fn check_v1(text: &str, expect: &str) {
    check(&bytes_of(text), expect);
}

/// A version 2 header: command and family bytes, and the body with its length.
fn v2(command: u8, family: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = b"\r\n\r\n\0\r\nQUIT\n".to_vec();
    bytes.extend_from_slice(&[command, family]);
    bytes.extend_from_slice(&u16::try_from(body.len()).unwrap().to_be_bytes());
    bytes.extend_from_slice(body);
    bytes
}

const V4: &[u8] = &[192, 0, 2, 1, 192, 0, 2, 2, 0x12, 0x34, 0, 80];

#[test]
fn version_1() {
    check_v1("PROXY TCP4 192.0.2.1 192.0.2.2 4660 80¶", "192.0.2.1:4660 192.0.2.2:80 40");
    check_v1("PROXY TCP6 2001:db8::1 ::1 65535 0¶", "[2001:db8::1]:65535 [::1]:0 36");
    check_v1("PROXY UNKNOWN¶", "- - 15");
    let longest = format!("PROXY UNKNOWN {}¶", "f".repeat(91));
    check_v1(&longest, "- - 107");
    check_v1("PROXY TCP4 1.2.3.4", "incomplete");
    check_v1("PRO", "incomplete");
    check_v1("", "incomplete");
}

#[test]
fn version_1_is_strict() {
    for line in [
        "PROXY",
        "PROXY ",
        "PROXY TCP5 1.2.3.4 1.2.3.4 1 2",
        "PROXY TCP4 1.2.3.4 1.2.3.4 1",
        "PROXY TCP4 1.2.3.4 1.2.3.4 1 2 3",
        "PROXY TCP4 1.2.3.4 1.2.3.4 1 2 ",
        "PROXY TCP4  1.2.3.4 1.2.3.4 1 2",
        "PROXY TCP4 1.2.3.4 1.2.3.4 01 2",
        "PROXY TCP4 1.2.3.4 1.2.3.4 +1 2",
        "PROXY TCP4 1.2.3.4 1.2.3.4 1 65536",
        "PROXY TCP4 1.2.3.004 1.2.3.4 1 2",
        "PROXY TCP4 ::1 ::1 1 2",
        "PROXY TCP6 1.2.3.4 1.2.3.4 1 2",
        "PROXY TCP4 1.2.3.4\t1.2.3.4 1 2",
        "PROXY tcp4 1.2.3.4 1.2.3.4 1 2",
        "PROXY TCP4 1.2.3.4 1.2.3.4 1 \u{ff}",
    ] {
        let expect = if line == "PROXY" { "proxy-header-missing" } else { "proxy-header-invalid" };
        check_v1(&format!("{line}¶"), expect);
    }
    check_v1("PROXY UNKNOWN\n", "proxy-header-invalid");
    check_v1(&format!("PROXY UNKNOWN {}¶", "f".repeat(92)), "proxy-header-too-large");
    check_v1(&format!("PROXY {}", "f".repeat(5_000)), "proxy-header-too-large");
    check_v1("GET / HTTP/1.1¶Host: t¶¶", "proxy-header-missing");
    check_v1("proxy TCP4 1.2.3.4 1.2.3.4 1 2¶", "proxy-header-missing");
}

#[test]
fn version_2() {
    check(&v2(0x21, 0x11, V4), "192.0.2.1:4660 192.0.2.2:80 28");
    let mut v6 = [0; 36];
    (v6[15], v6[31], v6[33], v6[35]) = (1, 2, 3, 4);
    check(&v2(0x21, 0x21, &v6), "[::1]:3 [::2]:4 52");
    check(&v2(0x21, 0x31, &[0; 216]), "- - 232");
    check(&v2(0x21, 0x00, b""), "- - 16");
    check(&v2(0x20, 0x00, b""), "local - 16");
    check(&v2(0x20, 0x11, V4), "local - 28");
    check(&v2(0x20, 0x11, b"junk"), "local - 20");
    let with_triples = [V4, &[0x01, 0, 2, b'h', b'2', 0x04, 0, 0]].concat();
    check(&v2(0x21, 0x11, &with_triples), "192.0.2.1:4660 192.0.2.2:80 36");
    check(&v2(0x21, 0x11, V4)[..27], "incomplete");
    check(&v2(0x21, 0x11, V4)[..12], "incomplete");
    check(b"\r\n\r\n\0\r", "incomplete");
}

#[test]
fn version_2_is_strict() {
    for (command, family) in
        [(0x11, 0x11), (0x22, 0x11), (0x2f, 0x11), (0x21, 0x12), (0x21, 0x41), (0x21, 0x01), (0x21, 0xff)]
    {
        check(&v2(command, family, V4), "proxy-header-invalid");
    }
    check(&v2(0x21, 0x11, &V4[..11]), "proxy-header-invalid");
    check(&v2(0x21, 0x21, V4), "proxy-header-invalid");
    for triples in [&[1][..], &[1, 0], &[1, 0, 1], &[1, 0xff, 0xff, 0], &[1, 0, 0, 2]] {
        check(&v2(0x21, 0x11, &[V4, triples].concat()), "proxy-header-invalid");
    }
    check(&v2(0x21, 0x11, &[0; 65_535]), "proxy-header-too-large");
    check(&v2(0x21, 0x11, &[0; 65_535])[..16], "proxy-header-too-large");
    check(b"\r\n\r\n\0\r\nQUIX\n\x21\x11\0\0", "proxy-header-missing");
    check(b"\r\n\r\nGET / HTTP/1.1", "proxy-header-missing");
}

#[test]
fn lenient_version_2_passes_over_addresses_that_it_cannot_use() {
    let lenient =
        |bytes: &[u8]| read_proxy_header(bytes, true).map(|header| header.map(|said| (said.source, said.bytes)));
    for (family, body) in [(0x99, V4), (0x11, &V4[..11]), (0x21, V4), (0x01, b"")] {
        let bytes = v2(0x21, family, body);
        assert_eq!(lenient(&bytes), Ok(Some((None, 16 + body.len()))), "{family:#x}");
        assert_eq!(lenient(&bytes[..bytes.len() - 1]), Ok(None), "{family:#x}");
    }
    assert_eq!(lenient(&v2(0x22, 0x99, V4)), Err(refusals::PROXY_HEADER_INVALID));
    assert_eq!(lenient(&v2(0x21, 0x11, &[V4, &[1]].concat())), Err(refusals::PROXY_HEADER_INVALID));
    assert_eq!(lenient(b"PROXY TCP4 1.2.3.4\r\n"), Err(refusals::PROXY_HEADER_INVALID));
}
