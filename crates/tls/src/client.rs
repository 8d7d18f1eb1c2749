//! A client's end: towards origins, and towards a memcached.

use std::fmt;
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{ClientSessionMemoryCache, Resumption, UnbufferedClientConnection};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, Error, SignatureScheme};

use crate::authorities::Authorities;
use crate::certificate::Certificate;
use crate::limits::CLIENT_SESSIONS_MAX;
use crate::session::Session;
use crate::spoken::Protocol;
use crate::suite_choice;

/// What is asked of a server.
#[derive(Debug)]
pub struct ClientSettings<'a> {
    /// Who may have signed its certificate. `None`: anybody is believed, which is for tests and for networks that nobody else is in.
    pub authorities: Option<&'a Authorities>,
    /// What its certificate is for, and what is asked for by SNI: a name or an address.
    pub name: &'a str,
    /// It is not told which server is asked for.
    pub without_sni: bool,
    /// Shown if it asks who we are.
    pub certificate: Option<&'a Certificate>,
    /// What is offered to be spoken inside; nothing said where it is empty.
    pub protocols: &'a [Protocol],
}

impl<'a> ClientSettings<'a> {
    /// The usual ones.
    pub fn verifying(authorities: &'a Authorities, name: &'a str) -> ClientSettings<'a> {
        ClientSettings { authorities: Some(authorities), name, without_sni: false, certificate: None, protocols: &[] }
    }
}

/// Begins sessions with one server. Cheap to clone; sessions are resumed across its clones.
#[derive(Clone)]
pub struct ClientTls {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl fmt::Debug for ClientTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClientTls({:?})", self.name)
    }
}

impl ClientTls {
    /// `None` for a name that [`crate::is_server_name`] refuses.
    pub fn new(settings: &ClientSettings<'_>) -> Option<ClientTls> {
        let provider = Arc::new(suite_choice::usual());
        let builder =
            ClientConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions().ok()?;
        let builder = match settings.authorities {
            Some(authorities) => builder.with_root_certificates(authorities.roots()),
            None => builder.dangerous().with_custom_certificate_verifier(Arc::new(AnybodyIsBelieved(provider))),
        };
        let mut config = match settings.certificate {
            None => builder.with_no_client_auth(),
            Some(certificate) => {
                let shown = Arc::new(rustls::sign::SingleCertAndKey::from(Arc::clone(&certificate.key)));
                builder.with_client_cert_resolver(shown)
            }
        };
        config.enable_sni = !settings.without_sni;
        config.alpn_protocols = settings.protocols.iter().map(|protocol| protocol.name().as_bytes().to_vec()).collect();
        config.resumption = Resumption::store(Arc::new(ClientSessionMemoryCache::new(CLIENT_SESSIONS_MAX)));
        let name = ServerName::try_from(settings.name).ok()?.to_owned();
        Some(ClientTls { config: Arc::new(config), name })
    }

    /// A session with the server, whose first bytes are there to be sent once it is [`Session::open`]ed.
    pub fn begin(&self) -> Session {
        let connection = UnbufferedClientConnection::new(Arc::clone(&self.config), self.name.clone());
        Session::client(connection.expect("the settings were accepted before"))
    }
}

/// Believes whoever answers, as long as he has the key of the certificate that he shows.
#[derive(Debug)]
struct AnybodyIsBelieved(Arc<CryptoProvider>);

impl ServerCertVerifier for AnybodyIsBelieved {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
