//! Who chooses the cipher suite. We do, by our order: what costs both sides least on processors that have instructions for AES. A client whose
//! processor has none says so by naming ChaCha20 first, and chooses itself.
//!
//! It is read from the first bytes of the hello (RFC 8446 §4.1.2) before rustls sees them, which asks nobody. Whatever looks unusual is ours to
//! choose: this decides nothing but speed.

use rustls::crypto::{CryptoProvider, aws_lc_rs};

use crate::spoken::suite_name;

/// All suites that are safe today, in our order: AES-128 goes first. It is as safe as the session's other parts are, and its hash is SHA-256,
/// for which processors have instructions. They have none for SHA-384, which goes with AES-256: making keys by that was two fifths of a
/// resumed handshake's instructions.
pub(crate) fn usual() -> CryptoProvider {
    let mut provider = aws_lc_rs::default_provider();
    provider.cipher_suites.sort_by_key(|suite| !suite_name(suite).contains("AES_128"));
    provider
}

/// ChaCha20-Poly1305 of TLS 1.3 (RFC 8446 §B.4) and of TLS 1.2 (RFC 7905).
const CHACHA20: [u16; 4] = [0x1303, 0xcca8, 0xcca9, 0xccaa];

/// What stands among suites and is none: the signal that renegotiation is safe (RFC 5746 §3.3).
const SIGNAL: u16 = 0x00ff;

/// Is ChaCha20 the first suite of the hello that these records begin with?
pub(crate) fn is_by_client(records: &[u8]) -> bool {
    first_suite(records).is_some_and(|suite| CHACHA20.contains(&suite))
}

/// The first suite that is one.
fn first_suite(records: &[u8]) -> Option<u16> {
    const HANDSHAKE: u8 = 22;
    const CLIENT_HELLO: u8 = 1;
    const RECORD_HEAD_BYTES: usize = 5;
    const HELLO_HEAD_BYTES: usize = 4;
    const VERSION_AND_RANDOM_BYTES: usize = 2 + 32;

    let (&HANDSHAKE, message) = (records.first()?, records.get(RECORD_HEAD_BYTES..)?) else { return None };
    let (&CLIENT_HELLO, body) = (message.first()?, message.get(HELLO_HEAD_BYTES..)?) else { return None };
    let (&session_bytes, rest) = body.get(VERSION_AND_RANDOM_BYTES..)?.split_first()?;
    let (suites_bytes, rest) = rest.get(usize::from(session_bytes)..)?.split_first_chunk()?;
    let suites = rest.get(..usize::from(u16::from_be_bytes(*suites_bytes)))?;
    let mut suites = suites.chunks_exact(2).map(|suite| u16::from_be_bytes([suite[0], suite[1]]));
    suites.find(|&suite| suite != SIGNAL && !is_grease(suite))
}

/// Reserved, so that nobody relies upon what is not named (RFC 8701 §2).
fn is_grease(suite: u16) -> bool {
    suite & 0x0f0f == 0x0a0a && suite >> 8 == suite & 0xff
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello(session_bytes: u8, suites: &[u16]) -> Vec<u8> {
        let mut body = vec![3, 3];
        body.extend([7; 32]);
        body.push(session_bytes);
        body.extend(vec![9; usize::from(session_bytes)]);
        body.extend(((suites.len() * 2) as u16).to_be_bytes());
        body.extend(suites.iter().flat_map(|suite| suite.to_be_bytes()));
        body.extend([1, 0, 0, 0]);
        let mut records = vec![22, 3, 1, 0, body.len() as u8 + 4, 1, 0, 0, body.len() as u8];
        records.extend(body);
        records
    }

    #[test]
    fn who_names_chacha20_first_chooses_itself() {
        for (suites, is_by_client) in [
            (&[0x1301, 0x1302, 0x1303][..], false),
            (&[0x1303, 0x1301][..], true),
            (&[0x1a1a, 0x1303, 0x1301], true),
            (&[0x00ff, 0xcca9, 0xc02b], true),
            (&[0xfafa, 0xc02b, 0xcca9], false),
            (&[0x0a1a, 0x1303], false),
            (&[], false),
        ] {
            for session_bytes in [0, 32] {
                assert_eq!(super::is_by_client(&hello(session_bytes, suites)), is_by_client, "{suites:x?}");
            }
        }
    }

    #[test]
    fn what_is_no_hello_or_not_whole_is_ours_to_choose() {
        let whole = hello(32, &[0x1303, 0x1301]);
        for bytes in 0..whole.len() - 4 {
            assert!(!is_by_client(&whole[..bytes]), "{bytes}");
        }
        assert!(is_by_client(&whole));
        for (at, byte) in [(0, 23), (5, 2), (43, 255)] {
            let mut other = whole.clone();
            other[at] = byte;
            assert!(!is_by_client(&other), "{at}");
        }
        assert!(!is_by_client(b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"));
    }
}
