//! What proves to a WebSocket's client that its handshake was read (RFC 6455 §4.2.2), where the origin that has read it speaks HTTP/2 and
//! says nothing of the kind (RFC 8441 §5).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// RFC 6455 §1.3.
const SALT: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// The name of the client's key.
pub(crate) const KEY: &[u8] = b"Sec-WebSocket-Key";

/// The name of the server's proof.
pub(crate) const ACCEPT: &[u8] = b"Sec-WebSocket-Accept";

/// Of this key.
pub(crate) fn of(key: &[u8]) -> String {
    STANDARD.encode(tls::sha1(&[key, SALT].concat()))
}

#[cfg(test)]
mod tests {
    /// RFC 6455 §1.3.
    #[test]
    fn the_proof_is_that_of_the_rfc() {
        assert_eq!(super::of(b"dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }
}
