//! Laws of a server's `tls::Session`, for whatever a client begins with. The first byte chooses how the bytes are cut.

use std::io::IoSlice;
use std::sync::{Arc, OnceLock};

use tls::{Certificate, Fault, Protocol, ServerSettings, ServerTls, TicketKeys, Version};

/// What is said to a client that has shown no key of its own: a certificate at most, and what goes with it.
const SAID_BYTES_MAX: usize = 16 << 10;

/// Panics when a law is broken.
pub fn run(data: &[u8]) {
    let Some((&choice, data)) = data.split_first() else { return };
    let whole = opened(data, data.len());
    let in_pieces = opened(data, 1 + usize::from(choice));
    assert_eq!(whole, in_pieces, "it does not matter how bytes are cut");
}

/// Why it came to nothing, if it did.
fn opened(data: &[u8], piece: usize) -> Option<Fault> {
    let (mut session, mut said) = (server().begin(), Vec::new());
    let mut text = |piece: &[u8]| assert!(piece.is_empty(), "nobody has agreed upon a key");
    let mut fault = None;
    for part in data.chunks(piece.max(1)) {
        match session.open(&mut part.to_vec(), &mut text, &mut said) {
            Ok(_) => assert!(fault.is_none(), "a session does not recover"),
            Err(again) => assert_eq!(*fault.get_or_insert(again), again, "it stays with its fault"),
        }
        assert!(session.pending_bytes() <= data.len().next_power_of_two().max(64));
    }
    assert!(said.len() <= SAID_BYTES_MAX, "{} bytes were said to {}", said.len(), data.len());
    assert!(session.is_handshaking() || fault.is_some());
    assert_ne!(session.seal(&[IoSlice::new(b"text")], usize::MAX, &mut said), Ok(4), "nothing is sent before the end");
    session.close(&mut said);
    fault
}

fn server() -> &'static ServerTls {
    static SERVER: OnceLock<ServerTls> = OnceLock::new();
    SERVER.get_or_init(|| {
        let made = rcgen::generate_simple_self_signed(vec!["site.test".to_owned()]).expect("a certificate");
        let (chain, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        let certificate = Certificate::read(chain.as_bytes(), key.as_bytes()).expect("a certificate of ours");
        let settings = ServerSettings {
            certificates: std::slice::from_ref(&certificate),
            version_min: Version::Tls12,
            suites: None,
            protocols: &[Protocol::Http2, Protocol::Http1],
            clients: None,
            tickets: Arc::new(TicketKeys::random()),
            early: None,
            challenges: None,
        };
        ServerTls::new(&settings).expect("the settings are good")
    })
}
