//! From a connection that was accepted to the protocol that is spoken on it: TLS first, if the origin has it; HTTP/2 where
//! both agree on it.

use std::rc::Rc;

use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::fake_origin::origin_conversation::Conversation;
use crate::fake_origin::origin_desk::OriginDesk;
use crate::fake_origin::origin_http2::converse;
use crate::fake_origin::origin_socket::OriginSocket;
use crate::limits::ORIGIN_IDLE;

/// How a client begins that speaks HTTP/2 (RFC 9113 §3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// From its first byte to its last.
pub(crate) async fn serve_connection(desk: Rc<OriginDesk>, stream: TcpStream, number: u64) {
    let speaks_http2 = desk.shared.settings.http2.is_some();
    let (socket, begun, is_http2) = match &desk.shared.tls {
        Some(tls) => {
            let Some(stream) = tls.greet(stream).await else { return };
            let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
            (OriginSocket::Tls(stream), Vec::new(), is_http2)
        }
        None if speaks_http2 => {
            let mut stream = stream;
            let Some(begun) = first_bytes(&mut stream).await else { return };
            let is_http2 = begun == PREFACE;
            (OriginSocket::Plain(stream), begun, is_http2)
        }
        None => (OriginSocket::Plain(stream), Vec::new(), false),
    };
    match is_http2 {
        true => converse(desk, socket, begun, number).await,
        false => Conversation::new(desk, socket, begun, number).live().await,
    }
}

/// As many as say whether HTTP/2 begins.
async fn first_bytes(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut begun = Vec::with_capacity(PREFACE.len());
    let reading = async {
        while begun.len() < PREFACE.len() && PREFACE.starts_with(&begun) {
            let wanted = PREFACE.len() - begun.len();
            if (&mut *stream).take(wanted as u64).read_buf(&mut begun).await.ok()? == 0 {
                return None;
            }
        }
        Some(())
    };
    timeout(ORIGIN_IDLE, reading).await.ok()??;
    Some(begun)
}
