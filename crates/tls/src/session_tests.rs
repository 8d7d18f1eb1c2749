//! A client's session and a server's, with each other in memory.

use std::io::IoSlice;
use std::sync::Arc;

use rcgen::{CertificateParams, KeyPair};

use crate::alpn_challenges::AlpnChallenges;
use crate::certificate::{Certificate, CertificateFault, Validity};
use crate::client::{ClientSettings, ClientTls};
use crate::fault::Fault;
use crate::limits::RECORD_TEXT_BYTES_MAX;
use crate::parties::{Party, Signer, converse, meet, server, settings, tickets};
use crate::server::{ServerSettings, ServerTls, SettingsFault};
use crate::spoken::{Protocol, Version};

#[test]
fn what_one_says_the_other_hears_in_whatever_pieces_it_comes() {
    let signer = Signer::new();
    let server = server(&signer.signs("a.example", |_| {}), &tickets());
    let authorities = signer.authorities();
    for piece in [1, 7, 1_000, usize::MAX] {
        let client = ClientTls::new(&ClientSettings::verifying(&authorities, "a.example")).unwrap();
        let (mut client, mut server) = (Party::of(client.begin()), Party::of(server.begin()));
        assert_eq!(converse(&mut client, &mut server, piece), (Ok(()), Ok(())), "{piece}");
        let text: Vec<u8> = (0..100_000u32).map(|at| (at % 251) as u8).collect();
        let sealed = client.says(&text);
        for part in sealed.chunks(piece.max(100)) {
            server.came.extend_from_slice(part);
            server.open(&mut Vec::new()).unwrap();
        }
        assert!(server.text == text && server.session.pending_bytes() == 0);
        client.came = server.says(b"well heard");
        client.open(&mut Vec::new()).unwrap();
        assert_eq!(client.text, b"well heard");
    }
}

#[test]
fn nothing_is_sealed_before_the_handshake_is_over() {
    let signer = Signer::new();
    let server = server(&signer.signs("a.example", |_| {}), &tickets());
    let mut session = server.begin();
    let mut out = Vec::new();
    assert_eq!(session.seal(&[IoSlice::new(b"secret")], usize::MAX, &mut out), Ok(0));
    assert!(out.is_empty() && session.is_handshaking());
}

/// What comes behind the fault is not looked at, so that nobody is told twice what was wrong first.
#[test]
fn a_fault_is_told_once_whatever_stands_behind_it() {
    let signer = Signer::new();
    let server = server(&signer.signs("a.example", |_| {}), &tickets());
    let (mut session, mut said) = (server.begin(), Vec::new());
    // Records of the handshake without a byte in them.
    let mut records = [0x16, 3, 1, 0, 0].repeat(7);
    assert_eq!(session.open(&mut records, &mut |_| {}, &mut said), Err(Fault::Protocol));
    assert!(said.len() == 7 && said.starts_with(&[0x15, 3]), "one alert: {said:02x?}");
}

/// A message of the handshake in two records, with an answer of ours between them.
#[test]
fn half_a_message_is_in_nobodys_way() {
    let signer = Signer::new();
    let server = server(&signer.signs("a.example", |_| {}), &tickets());
    for cut in [1, 3, 5, 6, 40, 200, 900] {
        let authorities = signer.authorities();
        let client = ClientTls::new(&ClientSettings::verifying(&authorities, "a.example")).unwrap();
        let (mut client, mut server) = (Party::of(client.begin()), Party::of(server.begin()));
        let mut hello = Vec::new();
        client.open(&mut hello).unwrap();
        let cut = cut.min(hello.len() - 1);
        // The record head says how long the rest is: two records of it.
        let (first, second) = hello[5..].split_at(cut);
        let record = |part: &[u8]| [&hello[..3], &(part.len() as u16).to_be_bytes(), part].concat();
        server.came = record(first);
        let mut down = Vec::new();
        server.open(&mut down).unwrap();
        assert_eq!(server.session.seal(&[IoSlice::new(b"x")], 9, &mut down), Ok(0));
        server.session.close(&mut down);
        assert!(down.is_empty());
        server.came = record(second);
        server.open(&mut client.came).unwrap();
        assert_eq!(converse(&mut client, &mut server, usize::MAX), (Ok(()), Ok(())));
    }
}

#[test]
fn slices_are_joined_and_a_bound_is_kept() {
    let signer = Signer::new();
    let server = server(&signer.signs("a.example", |_| {}), &tickets());
    let authorities = signer.authorities();
    let client = ClientTls::new(&ClientSettings::verifying(&authorities, "a.example")).unwrap();
    let (mut client, mut server) = meet(&client, &server);
    let long = vec![b'x'; 3 * RECORD_TEXT_BYTES_MAX];
    let slices = [IoSlice::new(b"head"), IoSlice::new(b""), IoSlice::new(&long)];
    let bound = 2 * RECORD_TEXT_BYTES_MAX;
    assert_eq!(server.session.seal(&slices, bound, &mut client.came), Ok(bound));
    client.open(&mut Vec::new()).unwrap();
    assert_eq!(client.text, [&b"head"[..], &long[..bound - 4]].concat());
}

#[test]
fn the_end_is_said_and_heard() {
    let signer = Signer::new();
    let server = server(&signer.signs("a.example", |_| {}), &tickets());
    let authorities = signer.authorities();
    let client = ClientTls::new(&ClientSettings::verifying(&authorities, "a.example")).unwrap();
    let (mut client, mut server) = meet(&client, &server);
    server.session.close(&mut client.came);
    client.open(&mut Vec::new()).unwrap();
    assert!(client.ended && !server.ended);
}

#[test]
fn both_know_what_they_agreed_upon() {
    let signer = Signer::new();
    let server = server(&signer.signs("a.example", |_| {}), &tickets());
    let authorities = signer.authorities();
    let settings = ClientSettings {
        protocols: &[Protocol::Http1, Protocol::Http2],
        ..ClientSettings::verifying(&authorities, "a.example")
    };
    let (_, server) = meet(&ClientTls::new(&settings).unwrap(), &server);
    let agreed = server.session.agreement();
    assert_eq!(agreed.version, Some(Version::Tls13));
    assert_eq!(agreed.protocol, Some(Protocol::Http2), "the server's order counts");
    assert_eq!(agreed.group.as_deref(), Some("X25519MLKEM768"), "the post-quantum group comes first");
    assert!(agreed.suite.unwrap().starts_with("TLS_AES_") && !agreed.is_resumed);
}

#[test]
fn the_least_version_and_the_suites_are_as_said() {
    let signer = Signer::new();
    let (certificate, authorities) = (signer.signs("a.example", |_| {}), signer.authorities());
    let suites = ["TLS_CHACHA20_POLY1305_SHA256".to_owned()];
    let with = |version_min, suites| {
        ServerTls::new(&ServerSettings { version_min, suites, ..settings(&certificate, &tickets()) })
    };
    let server = with(Version::Tls13, Some(&suites)).unwrap();
    let client = ClientTls::new(&ClientSettings::verifying(&authorities, "a.example")).unwrap();
    let (client, _) = meet(&client, &server);
    assert_eq!(client.session.agreement().suite.as_deref(), Some("TLS_CHACHA20_POLY1305_SHA256"));

    let unknown = ["TLS_RSA_WITH_RC4_128_MD5".to_owned()];
    let fault = with(Version::Tls12, Some(&unknown)).unwrap_err();
    assert_eq!(fault, SettingsFault::UnknownSuite(unknown[0].clone()));
    let old = ["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256".to_owned()];
    assert_eq!(with(Version::Tls13, Some(&old)).unwrap_err(), SettingsFault::NothingLeft);
}

#[test]
fn a_server_that_is_not_who_it_should_be_is_not_spoken_to() {
    let (signer, stranger) = (Signer::new(), Signer::new());
    let long_ago = |params: &mut CertificateParams| params.not_after = rcgen::date_time_ymd(2020, 1, 1);
    let to_come = |params: &mut CertificateParams| params.not_before = rcgen::date_time_ymd(2999, 1, 1);
    for (certificate, fault) in [
        (signer.signs("b.example", |_| {}), Fault::OtherName),
        (stranger.signs("a.example", |_| {}), Fault::UnknownAuthority),
        (signer.signs("a.example", long_ago), Fault::Expired),
        (signer.signs("a.example", to_come), Fault::NotYetValid),
    ] {
        let authorities = signer.authorities();
        let client = ClientTls::new(&ClientSettings::verifying(&authorities, "a.example")).unwrap();
        let mut server = Party::of(server(&certificate, &tickets()).begin());
        let mut client = Party::of(client.begin());
        let (of_client, of_server) = converse(&mut client, &mut server, usize::MAX);
        assert_eq!(of_client, Err(fault));
        assert!(matches!(of_server, Err(Fault::Alert(_))), "the server is told why: {of_server:?}");
    }
}

#[test]
fn without_authorities_anybody_is_believed() {
    let signer = Signer::new();
    let server = server(&signer.signs("b.example", |_| {}), &tickets());
    let authorities = signer.authorities();
    let settings = ClientSettings { authorities: None, ..ClientSettings::verifying(&authorities, "a.example") };
    meet(&ClientTls::new(&settings).unwrap(), &server);
}

#[test]
fn a_client_shows_who_it_is_where_that_is_asked() {
    let (signer, stranger) = (Signer::new(), Signer::new());
    let (certificate, authorities) = (signer.signs("a.example", |_| {}), signer.authorities());
    let known = signer.signs("client.example", |_| {});
    let unknown = stranger.signs("client.example", |_| {});
    for (shown, is_required, expect) in [
        (Some(&known), true, Ok(())),
        (Some(&known), false, Ok(())),
        (None, false, Ok(())),
        (None, true, Err(Fault::NoCertificate)),
        (Some(&unknown), false, Err(Fault::UnknownAuthority)),
    ] {
        let clients = Some((&authorities, is_required));
        let server = ServerTls::new(&ServerSettings { clients, ..settings(&certificate, &tickets()) }).unwrap();
        let settings = ClientSettings { certificate: shown, ..ClientSettings::verifying(&authorities, "a.example") };
        let mut client = Party::of(ClientTls::new(&settings).unwrap().begin());
        let (_, of_server) = converse(&mut client, &mut Party::of(server.begin()), usize::MAX);
        assert_eq!(of_server, expect);
    }
}

/// A server that an authority may ask, and how it went for a client that offers these protocols.
fn asked(server: &ServerTls, protocols: &[Protocol]) -> (Result<(), Fault>, Option<Protocol>) {
    let settings =
        ClientSettings { authorities: None, name: "a.example", without_sni: false, certificate: None, protocols };
    let mut client = Party::of(ClientTls::new(&settings).unwrap().begin());
    let mut server = Party::of(server.begin());
    let (_, of_server) = converse(&mut client, &mut server, usize::MAX);
    (of_server, server.session.protocol())
}

#[test]
fn an_authority_is_answered_while_it_asks_and_nobody_else_is() {
    const CHALLENGE: &[Protocol] = &[Protocol::AcmeChallenge];
    const USUAL: &[Protocol] = &[Protocol::Http2, Protocol::Http1];
    let signer = Signer::new();
    let certificate = signer.signs("a.example", |_| {});
    let challenges = Arc::new(AlpnChallenges::default());
    let with = |certificates| {
        let challenges = Some(Arc::clone(&challenges));
        ServerTls::new(&ServerSettings { certificates, challenges, ..settings(&certificate, &tickets()) }).unwrap()
    };
    let (full, empty) = (with(std::slice::from_ref(&certificate)), with(&[]));
    assert_eq!(asked(&full, CHALLENGE), (Err(Fault::NothingInCommon), None), "nobody has been asked for anything");
    assert_eq!(asked(&full, USUAL), (Ok(()), Some(Protocol::Http2)));
    assert_eq!(asked(&empty, USUAL).0, Err(Fault::NothingToShow));

    let key = KeyPair::generate().unwrap();
    let answer = CertificateParams::new(vec!["a.example".to_owned()]).unwrap().self_signed(&key).unwrap();
    challenges.offer("a.example", answer.der(), &key.serialize_der()).unwrap();
    for server in [&full, &empty] {
        assert_eq!(asked(server, CHALLENGE), (Ok(()), Some(Protocol::AcmeChallenge)));
    }
    assert_eq!(asked(&full, USUAL), (Ok(()), Some(Protocol::Http2)), "others are served meanwhile");
    // Theirs is no offer of the challenge alone.
    assert_eq!(asked(&full, &[Protocol::AcmeChallenge, Protocol::Http1]), (Ok(()), Some(Protocol::Http1)));
    assert_eq!(asked(&empty, USUAL).0, Err(Fault::NothingToShow));
    challenges.withdraw("a.example");
    challenges.offer("b.example", answer.der(), &key.serialize_der()).unwrap();
    assert_eq!(asked(&full, CHALLENGE).0, Err(Fault::NothingToShow), "another name is asked for");
    challenges.withdraw("b.example");
    assert_eq!(asked(&full, CHALLENGE).0, Err(Fault::NothingInCommon));
}

#[test]
fn a_certificate_says_how_long_it_is_good() {
    let certificate = Signer::new().signs("a.example", |params| {
        params.not_before = rcgen::date_time_ymd(2020, 1, 1);
        params.not_after = rcgen::date_time_ymd(2060, 1, 1);
    });
    let day_s = 86_400;
    // Between 1970 and these days lie 12 and 22 leap days.
    let expect = Validity { from_s: (50 * 365 + 12) * day_s, until_s: (90 * 365 + 22) * day_s };
    assert_eq!(certificate.validity(), expect);
}

#[test]
fn a_host_with_a_certificate_of_its_own_is_not_served_beneath_another_ones() {
    let signer = Signer::new();
    let certificates = ["a.example", "b.example", "*.c.example"].map(|name| signer.signs(name, |_| {}));
    let authorities = signer.authorities();
    let server =
        ServerTls::new(&ServerSettings { certificates: &certificates, ..settings(&certificates[0], &tickets()) })
            .unwrap();
    let session = |name, without_sni| {
        let settings = ClientSettings { without_sni, ..ClientSettings::verifying(&authorities, name) };
        meet(&ClientTls::new(&settings).unwrap(), &server).1.session
    };
    for (name, host, expect) in [
        ("a.example", "a.example", false),
        ("a.example", "b.example", true),
        ("b.example", "a.example", true),
        ("a.example", "x.c.example", true),
        ("x.c.example", "y.c.example", false),
        // Nobody is for that one, whoever asks.
        ("a.example", "d.example", false),
    ] {
        assert_eq!(session(name, false).misdirects(host), expect, "{name} {host}");
    }
    let unnamed = session("a.example", true);
    assert!(unnamed.server_name().is_none() && !unnamed.misdirects("b.example"), "it cannot ask elsewhere");
}

#[test]
fn what_is_no_tls_is_said() {
    let signer = Signer::new();
    let mut server = Party::of(server(&signer.signs("a.example", |_| {}), &tickets()).begin());
    server.came = b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n".to_vec();
    let mut out = Vec::new();
    assert_eq!(server.open(&mut out), Err(Fault::NotTls));
    assert!(out.is_empty(), "no alert: nobody would know it");
}

#[test]
fn files_that_are_no_certificate_are_told_apart() {
    let (key, other) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
    let pem = CertificateParams::new(vec!["A.example".to_owned()]).unwrap().self_signed(&key).unwrap().pem();
    let (key, other) = (key.serialize_pem(), other.serialize_pem());
    let read = |chain: &str, key: &str| Certificate::read(chain.as_bytes(), key.as_bytes()).map(|_| ()).unwrap_err();
    assert_eq!(Certificate::read(pem.as_bytes(), key.as_bytes()).unwrap().names(), ["a.example"]);
    assert_eq!(read("", &key), CertificateFault::NoCertificate);
    assert_eq!(read(&key, &key), CertificateFault::NoCertificate);
    let rotten = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    assert_eq!(read(rotten, &key), CertificateFault::CertificateUnreadable);
    assert_eq!(read("-----BEGIN CERTIFICATE-----\n!!", &key), CertificateFault::CertificateNotPem);
    assert_eq!(read(&pem, ""), CertificateFault::NoKey);
    assert_eq!(read(&pem, &pem), CertificateFault::NoKey);
    assert_eq!(read(&pem, &other), CertificateFault::KeyOfAnother);
}

/// rustls remembers what it has seen of bytes that are gone with a fault: nothing may be asked of it any more.
#[test]
fn a_hello_that_is_broken_anywhere_is_a_fault_and_no_more() {
    let signer = Signer::new();
    let (certificate, authorities) = (signer.signs("a.example", |_| ()), signer.authorities());
    let client = ClientTls::new(&ClientSettings::verifying(&authorities, "a.example")).unwrap();
    let server = server(&certificate, &tickets());
    let mut hello = Vec::new();
    Party::of(client.begin()).open(&mut hello).unwrap();
    let mut faults = 0;
    for at in 0..hello.len() {
        for bits in [0x01, 0x80, 0xff] {
            let mut broken = hello.clone();
            broken[at] ^= bits;
            let (mut party, mut out) = (Party::of(server.begin()), Vec::new());
            let whole = broken.chunks(at.max(1)).try_for_each(|piece| {
                party.came = piece.to_vec();
                party.open(&mut out)
            });
            faults += usize::from(whole.is_err());
            party.came = b"\x17\x03\x03\0\x01a".to_vec();
            let again = party.open(&mut out);
            assert!(whole.is_ok() || again == whole, "a session does not recover");
            let _ = party.session.seal(&[IoSlice::new(b"text")], usize::MAX, &mut out);
            party.session.close(&mut out);
        }
    }
    assert!(faults > 100, "{faults} faults of {} bytes", hello.len());
}
