//! What a failing authority says, over a real connection: Pebble never puts anybody off.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;

use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use tls::Authorities;

use crate::acme_directory::Directory;
use crate::certificate_authority::Authority;
use crate::challenge::{Challenge, ChallengeKind, ChallengeSink};
use crate::conversation::{AcmeAuthority, AuthoritySettings};
use crate::names::NameSet;
use crate::order_failure::Failure;
use crate::state_folder::tests::Room;

struct NobodyAsks;

impl ChallengeSink for NobodyAsks {
    fn offer(&self, challenge: &Challenge) -> Result<(), String> {
        Err(format!("{challenge:?}"))
    }

    fn withdraw(&self, _: &Challenge) {}
}

/// A server that answers these, whatever it is asked; and who has signed its certificate.
fn answers(all: Vec<String>) -> (String, Authorities) {
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    let authorities = Authorities::read(made.cert.pem().as_bytes()).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_no_client_auth().with_single_cert(vec![made.cert.der().clone()], key).unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for answer in all {
            let (stream, _) = listener.accept().unwrap();
            let mut client = StreamOwned::new(ServerConnection::new(Arc::clone(&config)).unwrap(), stream);
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                client.read_exact(&mut byte).unwrap();
                head.push(byte[0]);
            }
            // Who is told too much has left.
            let _ = client.write_all(answer.as_bytes());
            client.conn.send_close_notify();
            let _ = client.flush();
        }
    });
    (format!("https://{address}/dir"), authorities)
}

fn answer(status: &str, fields: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {}\r\n{fields}\r\n{body}", body.len())
}

/// An order at a server that answers so, at second 1,000.
fn fails(name: &str, all: Vec<String>) -> Failure {
    let room = Room::new(name);
    let (url, authorities) = answers(all);
    let settings = AuthoritySettings {
        directory: Directory::parse(&url).unwrap(),
        email: None,
        authorities: Arc::new(authorities),
        profile: None,
        challenges: vec![ChallengeKind::Http],
    };
    let authority = AcmeAuthority::new(settings, room.folder(), Arc::new(NobodyAsks));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let names = NameSet::new(["a.example"]).unwrap();
    runtime.block_on(authority.issue(&names, None, 0, 1_000)).unwrap_err()
}

const PROBLEM: &str = "Content-Type: application/problem+json; charset=utf-8\r\n";

#[test]
fn who_has_asked_too_often_learns_when_he_may_again() {
    let problem = r#"{"type": "urn:ietf:params:acme:error:rateLimited", "detail": "too many new orders"}"#;
    for (name, fields, not_before_s) in [
        ("limited-seconds", "Retry-After: 7200\r\n", Some(8_200)),
        ("limited-date", "Retry-After: Thu, 01 Jan 1970 01:00:00 GMT\r\n", Some(3_600)),
        ("limited-silently", "", None),
    ] {
        let failure = fails(name, vec![answer("429 Too Many Requests", &format!("{PROBLEM}{fields}"), problem)]);
        assert_eq!(failure.not_before_s(), not_before_s, "{name}");
        assert!(failure.to_string().contains("127.0.0.1 answered 429 Too Many Requests"), "{failure}");
    }
}

#[test]
fn what_is_no_authority_is_said() {
    let page =
        answer("503 Service Unavailable", "Content-Type: text/html\r\nRetry-After: 60\r\n", "<h1>maintenance</h1>");
    let failure = fails("maintenance", vec![page]);
    assert_eq!(failure.not_before_s(), Some(1_060));
    assert!(failure.to_string().contains("answered 503 Service Unavailable"), "{failure}");
    let endless = answer("200 OK", "", &"x".repeat(crate::limits::ANSWER_BYTES_MAX + 1));
    assert!(fails("endless", vec![endless]).to_string().contains("length limit exceeded"));
    let other = fails("other", vec![answer("200 OK", "Content-Type: application/json\r\n", "{}")]);
    assert!(other.to_string().contains("missing field"), "{other}");
}
