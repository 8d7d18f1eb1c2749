//! TLS as a client: the handshake of one connection, what was agreed in it, or why there was none.
//!
//! rustls's own client, which shares with what it measures at most the library below. Each user keeps its own tickets,
//! as browsers do: one that a server hands out is used once, and by who got it.

use std::io;
use std::sync::Arc;

use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::client::Resumption;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::version::{TLS12, TLS13};
use tokio_rustls::rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, Error, HandshakeKind, SignatureScheme,
};

use crate::answer::Fault;
use crate::error_kind::ErrorKind;
use crate::handshake_tally::{Agreed, Handshake};
use crate::limits::TICKETS_KEPT_MAX;
use crate::read_ahead::ReadAhead;
use crate::tls_settings::{TlsName, TlsSettings, TlsVersion};

/// What all users of a run share.
#[derive(Clone, Debug)]
pub(crate) struct TlsClient {
    config: Arc<ClientConfig>,
    name: TlsName,
    resume: bool,
}

/// What is needed for the connections of one user.
pub(crate) struct UserTls {
    connector: TlsConnector,
    name: TlsName,
}

impl TlsClient {
    /// `protocol`: the one that is offered, as ALPN names it.
    pub(crate) fn new(settings: &TlsSettings, protocol: &[u8]) -> Result<TlsClient, Error> {
        let kx_groups = settings.groups.iter().map(|group| group.0).collect();
        let provider = Arc::new(CryptoProvider { kx_groups, ..aws_lc_rs::default_provider() });
        let versions = match settings.version_max {
            TlsVersion::Tls12 => &[&TLS12][..],
            TlsVersion::Tls13 => &[&TLS13, &TLS12],
        };
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider)).with_protocol_versions(versions)?;
        let mut config = match &settings.authorities {
            Some(authorities) => builder.with_root_certificates(authorities.0.clone()).with_no_client_auth(),
            None => {
                let anybody = Arc::new(Anybody(provider));
                builder.dangerous().with_custom_certificate_verifier(anybody).with_no_client_auth()
            }
        };
        warm_up(&config)?;
        config.alpn_protocols = vec![protocol.to_vec()];
        config.resumption = Resumption::disabled();
        Ok(TlsClient { config: Arc::new(config), name: settings.name.clone(), resume: settings.resume })
    }

    /// A session with nothing below it, for who reads and writes by himself.
    pub(crate) fn session(&self) -> io::Result<ClientConnection> {
        ClientConnection::new(Arc::clone(&self.config), self.name.0.clone()).map_err(io::Error::other)
    }

    pub(crate) fn of_user(&self) -> UserTls {
        let mut config = Arc::clone(&self.config);
        if self.resume {
            Arc::make_mut(&mut config).resumption = Resumption::in_memory_sessions(TICKETS_KEPT_MAX);
        }
        UserTls { connector: TlsConnector::from(config), name: self.name.clone() }
    }
}

impl UserTls {
    pub(crate) async fn begin(&self, stream: ReadAhead) -> Result<(TlsStream<ReadAhead>, Handshake), Fault> {
        let stream = self.connector.connect(self.name.0.clone(), stream).await;
        let stream = stream.map_err(|error| fault(&error).unwrap_or_else(|| closed(&error)))?;
        let connection = stream.get_ref().1;
        let offered = self.connector.config().alpn_protocols.first();
        match (connection.alpn_protocol(), offered) {
            // Silence is HTTP/1 (RFC 9113 §3.3: HTTP/2 over TLS is agreed on by ALPN, and by nothing else).
            (None, Some(offered)) if offered == b"h2" => {
                Err(Fault { kind: ErrorKind::TlsProtocol, text: "the server did not choose h2 by ALPN".to_owned() })
            }
            _ => {
                let handshake = handshake(connection);
                Ok((stream, handshake))
            }
        }
    }
}

/// AWS-LC gathers its first entropy for tens of milliseconds, which would be in the first handshake and in whatever waits
/// behind it.
fn warm_up(config: &ClientConfig) -> Result<(), Error> {
    config.crypto_provider().secure_random.fill(&mut [0; 32]).map_err(|_| Error::FailedToGetRandomBytes)
}

fn handshake(connection: &ClientConnection) -> Handshake {
    let agreed = Agreed {
        version: connection.protocol_version().and_then(|version| version.as_str()).unwrap_or("?"),
        suite: connection.negotiated_cipher_suite().and_then(|suite| suite.suite().as_str()).unwrap_or("?"),
        group: connection.negotiated_key_exchange_group().and_then(|group| group.name().as_str()),
    };
    let kind = connection.handshake_kind();
    Handshake {
        agreed,
        resumed: kind == Some(HandshakeKind::Resumed),
        retried: kind == Some(HandshakeKind::FullWithHelloRetryRequest),
    }
}

/// What TLS has to say about it; nothing when it was the connection below that failed.
pub(crate) fn fault(error: &io::Error) -> Option<Fault> {
    let why = error.get_ref()?.downcast_ref::<Error>()?;
    let kind = match why {
        Error::InvalidCertificate(_) | Error::NoCertificatesPresented | Error::InvalidCertRevocationList(_) => {
            ErrorKind::TlsCertificate
        }
        Error::AlertReceived(_) => ErrorKind::TlsAlert,
        _ => ErrorKind::TlsProtocol,
    };
    Some(Fault { kind, text: why.to_string() })
}

fn closed(error: &io::Error) -> Fault {
    Fault { kind: ErrorKind::TlsClosed, text: error.to_string() }
}

/// Believes every certificate. That its key is the server's is proved all the same, as it costs time to prove it.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
