//! TLS as the origin speaks it: certificates of an authority of its own, and what may be wrong with a handshake.
//!
//! What is wrong follows from the host that a client asks for: `expired.localhost` gets the certificate that has expired. It is
//! known before there is a certificate, as a URL is not; and each host is among the names of every certificate that
//! should not fail for its name.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::Acceptor;
use tokio_rustls::server::TlsStream;

use crate::fake_origin::origin_socket::{OriginSocket, wait_until_gone};
use crate::lab_certificate::{CertificateEnd, LabAuthority, LabCertificate};
use crate::limits::ORIGIN_HANDSHAKE_PATIENCE;

/// What concerns all handshakes of an origin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OriginTlsSettings {
    /// Hosts that the certificates are for, beside `localhost` and the addresses of this machine.
    pub names: Vec<String>,
    /// Of every handshake, whatever host is asked for.
    pub fault: Option<TlsFault>,
}

/// What is wrong with a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsFault {
    Expired,
    OtherName,
    SelfSigned,
    Stall,
    HangUp,
    Alert,
    Rubbish,
}

impl TlsFault {
    /// Each with the first word of a host that asks for it, and what it does.
    pub const ALL: &'static [(TlsFault, &'static str, &'static str)] = &[
        (TlsFault::Expired, "expired", "a certificate that has expired in 2020"),
        (TlsFault::OtherName, "other-name", "a certificate for another host"),
        (TlsFault::SelfSigned, "self-signed", "a certificate that nobody has signed but itself"),
        (TlsFault::Stall, "stall", "nothing is said to the client's hello"),
        (TlsFault::HangUp, "hang-up", "the connection is closed after the client's hello"),
        (TlsFault::Alert, "alert", "the client's hello is answered by an alert, handshake_failure"),
        (TlsFault::Rubbish, "rubbish", "what answers the client's hello is no TLS"),
    ];

    pub fn parse(word: &str) -> Result<TlsFault, String> {
        let words = || TlsFault::ALL.iter().map(|(_, word, _)| *word).collect::<Vec<_>>().join(", ");
        let found = TlsFault::ALL.iter().find(|(_, known, _)| *known == word);
        found.map(|(fault, ..)| *fault).ok_or_else(|| format!("one of {}", words()))
    }

    fn of_host(host: &str) -> Option<TlsFault> {
        TlsFault::parse(&host.split('.').next()?.to_ascii_lowercase()).ok()
    }
}

/// RFC 8446 §6: the record of a fatal alert, handshake_failure.
const ALERT: [u8; 7] = [0x15, 3, 3, 0, 2, 2, 40];
const RUBBISH: &[u8] = b"this is no TLS\r\n";
const NAMES_USUAL: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

pub(crate) struct OriginTls {
    pub(crate) authority: String,
    good: Arc<ServerConfig>,
    expired: Arc<ServerConfig>,
    other_name: Arc<ServerConfig>,
    self_signed: Arc<ServerConfig>,
    fault: Option<TlsFault>,
}

impl OriginTls {
    /// `http2`: is it offered?
    pub(crate) fn new(settings: &OriginTlsSettings, http2: bool) -> io::Result<OriginTls> {
        let authority = LabAuthority::new().map_err(io::Error::other)?;
        let names = all_names(&settings.names);
        let stranger = ["somebody-else.invalid".to_owned()];
        let signed = |names: &[String], end| {
            let made = authority.sign(names, end).map_err(|error| io::Error::other(format!("no certificate: {error}")));
            server_config(&made?, http2)
        };
        let alone = LabCertificate::self_signed(&names).map_err(io::Error::other)?;
        Ok(OriginTls {
            good: signed(&names, CertificateEnd::FarAway)?,
            expired: signed(&names, CertificateEnd::LongAgo)?,
            other_name: signed(&stranger, CertificateEnd::FarAway)?,
            self_signed: server_config(&alone, http2)?,
            authority: authority.pem,
            fault: settings.fault,
        })
    }

    /// The handshake, or none: it failed, or was to fail.
    pub(crate) async fn greet(&self, stream: TcpStream) -> Option<Box<TlsStream<TcpStream>>> {
        let mut acceptor = LazyConfigAcceptor::new(Acceptor::default(), stream);
        let Ok(hello) = timeout(ORIGIN_HANDSHAKE_PATIENCE, &mut acceptor).await.ok()? else {
            // What came was no hello, and the client may have been told so.
            OriginSocket::Plain(acceptor.take_io()?).linger().await;
            return None;
        };
        let by_host = hello.client_hello().server_name().and_then(TlsFault::of_host);
        let config = match self.fault.or(by_host) {
            None => &self.good,
            Some(TlsFault::Expired) => &self.expired,
            Some(TlsFault::OtherName) => &self.other_name,
            Some(TlsFault::SelfSigned) => &self.self_signed,
            Some(TlsFault::Stall) => {
                wait_until_gone(&mut { hello.io }).await;
                return None;
            }
            Some(TlsFault::HangUp) => return end_with(hello.io, &[]).await,
            Some(TlsFault::Alert) => return end_with(hello.io, &ALERT).await,
            Some(TlsFault::Rubbish) => return end_with(hello.io, RUBBISH).await,
        };
        let greeted = timeout(ORIGIN_HANDSHAKE_PATIENCE, hello.into_stream(Arc::clone(config))).await;
        Some(Box::new(greeted.ok()?.ok()?))
    }
}

/// No handshake, but these last bytes.
async fn end_with<T>(mut stream: TcpStream, bytes: &[u8]) -> Option<T> {
    // A client that has left hears nothing.
    let _ = stream.write_all(bytes).await;
    OriginSocket::Plain(stream).linger().await;
    None
}

/// Those of the settings and of this machine, and of each host those that ask for a fault.
fn all_names(more: &[String]) -> Vec<String> {
    let own = NAMES_USUAL.map(str::to_owned);
    let hosts: Vec<String> = own.into_iter().chain(more.iter().cloned()).collect();
    let is_name = |host: &&String| host.parse::<IpAddr>().is_err();
    let of_faults = hosts
        .iter()
        .filter(is_name)
        .flat_map(|host| TlsFault::ALL.iter().map(move |(_, word, _)| format!("{word}.{host}")));
    hosts.iter().cloned().chain(of_faults).collect()
}

fn server_config(made: &LabCertificate, http2: bool) -> io::Result<Arc<ServerConfig>> {
    let chain = CertificateDer::pem_slice_iter(made.chain.as_bytes()).collect::<Result<Vec<_>, _>>();
    let key = PrivateKeyDer::from_pem_slice(made.key.as_bytes());
    let (chain, key) = (chain.map_err(io::Error::other)?, key.map_err(io::Error::other)?);
    let builder = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().map_err(io::Error::other)?;
    let mut config = builder.with_no_client_auth().with_single_cert(chain, key).map_err(io::Error::other)?;
    config.alpn_protocols = match http2 {
        true => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
        false => vec![b"http/1.1".to_vec()],
    };
    Ok(Arc::new(config))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_says_by_its_first_word_what_is_wrong() {
        for (fault, word, _) in TlsFault::ALL {
            assert_eq!(TlsFault::of_host(&format!("{}.Localhost", word.to_uppercase())), Some(*fault), "{word}");
        }
        assert_eq!(TlsFault::of_host("localhost"), None);
        assert_eq!(TlsFault::of_host("www.expired.localhost"), None);
        assert!(TlsFault::parse("expird").unwrap_err().starts_with("one of expired, "));
    }

    #[test]
    fn certificates_are_for_every_host_that_asks_for_a_fault() {
        let names = all_names(&["site.example".to_owned(), "192.0.2.1".to_owned()]);
        for name in ["localhost", "127.0.0.1", "site.example", "stall.site.example", "expired.localhost", "192.0.2.1"] {
            assert!(names.iter().any(|known| known == name), "{name}");
        }
        assert!(!names.iter().any(|name| name.ends_with(".192.0.2.1")));
    }

    /// The manual's table is this one.
    #[test]
    fn the_manual_says_the_same_of_hosts() {
        let manual = include_str!("../../../../docs/lab-origin.md");
        let rows = manual.lines().filter(|line| line.starts_with("| `") && line.contains(".localhost`"));
        let expect = TlsFault::ALL.iter().map(|(_, word, what)| format!("| `{word}.localhost` | {what} |"));
        assert_eq!(rows.collect::<Vec<_>>(), expect.collect::<Vec<_>>());
    }
}
