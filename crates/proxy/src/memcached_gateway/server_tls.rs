//! TLS to a memcached: whose word counts for who it is, and the stream that speaks it. The one place where larder knows
//! rustls.
//!
//! The certificate must be signed by one of the authorities, be in its time and name the server as it was asked for, by
//! name or by address. There is no way to leave that out.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{CertificateError, ClientConfig, Error, RootCertStore};

use crate::origin::OriginStream;

/// Where systems keep the authorities that they trust, each in one file.
pub const SYSTEM_AUTHORITIES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// Certificates by which others are known.
#[derive(Debug, PartialEq, Eq)]
pub struct Authorities(Vec<Vec<u8>>);

impl Authorities {
    /// Of a file in PEM.
    pub fn read(pem: &[u8]) -> Result<Authorities, &'static str> {
        let mut all = Vec::new();
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate = certificate.map_err(|_| "it is no PEM")?;
            roots.add(certificate.clone()).map_err(|_| "a certificate in it cannot be read")?;
            all.push(certificate.to_vec());
        }
        if all.is_empty() { Err("there is no certificate in it") } else { Ok(Authorities(all)) }
    }
}

/// May a certificate be for this: a name, or an address?
pub fn is_server_name(name: &str) -> bool {
    ServerName::try_from(name).is_ok()
}

/// Why a server is not spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TlsFault {
    UnknownAuthority,
    OtherName,
    Expired,
    NotYetValid,
    /// Anything else about its certificate.
    Certificate,
    /// It speaks something else, or refuses us.
    Handshake,
}

impl TlsFault {
    pub(crate) const fn text(self) -> &'static str {
        match self {
            TlsFault::UnknownAuthority => "has a certificate that nobody of those signed who may (ca of the [[route]])",
            TlsFault::OtherName => "has a certificate for another name (tls_name of the [[route]])",
            TlsFault::Expired => "has a certificate that has expired",
            TlsFault::NotYetValid => "has a certificate that is not valid yet",
            TlsFault::Certificate => "has a certificate that is not valid here",
            TlsFault::Handshake => "does not speak TLS with us (tls of the [[route]])",
        }
    }

    fn of(error: &io::Error) -> TlsFault {
        let certificate = match error.get_ref().and_then(|why| why.downcast_ref::<Error>()) {
            Some(Error::InvalidCertificate(why)) => why,
            _ => return TlsFault::Handshake,
        };
        match certificate {
            CertificateError::UnknownIssuer => TlsFault::UnknownAuthority,
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => TlsFault::OtherName,
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => TlsFault::Expired,
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => TlsFault::NotYetValid,
            _ => TlsFault::Certificate,
        }
    }
}

/// What is needed to speak TLS to one server.
#[derive(Clone)]
pub(crate) struct ServerTls {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl std::fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ServerTls({:?})", self.name)
    }
}

impl ServerTls {
    /// `None` for a name that [`is_server_name`] refuses.
    pub(crate) fn new(authorities: &Authorities, name: &str) -> Option<ServerTls> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(authorities.0.iter().map(|der| CertificateDer::from(der.clone())));
        let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .ok()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = ServerName::try_from(name).ok()?.to_owned();
        Some(ServerTls { connector: TlsConnector::from(Arc::new(config)), name })
    }

    pub(crate) async fn begin(&self, stream: OriginStream) -> Result<LaneStream, TlsFault> {
        match self.connector.connect(self.name.clone(), stream).await {
            Ok(stream) => Ok(LaneStream::Tls(Box::new(stream))),
            Err(error) => Err(TlsFault::of(&error)),
        }
    }
}

/// The stream of a lane.
pub(crate) enum LaneStream {
    Plain(OriginStream),
    Tls(Box<TlsStream<OriginStream>>),
}

impl AsyncRead for LaneStream {
    #[inline]
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            LaneStream::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            LaneStream::Tls(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for LaneStream {
    #[inline]
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            LaneStream::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            LaneStream::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    /// What TLS has taken and the socket has not.
    #[inline]
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            LaneStream::Plain(_) => Poll::Ready(Ok(())),
            LaneStream::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            LaneStream::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            LaneStream::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authorities_are_certificates() {
        let check = |text: &str, why: &str| assert_eq!(Authorities::read(text.as_bytes()), Err(why), "{text}");
        check("", "there is no certificate in it");
        check("hello", "there is no certificate in it");
        check("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "a certificate in it cannot be read");
        check("-----BEGIN CERTIFICATE-----\n!!\n-----END CERTIFICATE-----\n", "it is no PEM");
    }

    #[test]
    fn a_server_has_a_name_or_an_address() {
        for (name, is_one) in [("cache.example", true), ("127.0.0.1", true), ("::1", true), ("", false), ("a b", false)]
        {
            assert_eq!(is_server_name(name), is_one, "{name}");
        }
    }
}
