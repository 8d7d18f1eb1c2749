//! Certificates that answer an authority when it asks whether we are who we say (TLS-ALPN-01, RFC 8737). Nobody else is shown one: they
//! are for who asks for `acme-tls/1` and nothing else, while an order is under way.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::certificate::CertificateFault;
use crate::certificate_table::CertificateTable;
use crate::spoken::Protocol;

/// What is to be answered at this moment. All listeners share it.
#[derive(Debug, Default)]
pub struct AlpnChallenges {
    by_name: RwLock<HashMap<String, Arc<CertifiedKey>>>,
    /// Most of the time there is none, and then a handshake asks no more than this.
    is_any: AtomicBool,
}

impl AlpnChallenges {
    /// From here on who asks for the name, in lower case, is shown this: a certificate in DER, and its key as PKCS #8. webpki would
    /// refuse the certificate, for the extension that is its purpose is critical.
    pub fn offer(&self, name: &str, certificate: &[u8], key: &[u8]) -> Result<(), CertificateFault> {
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key));
        let key = aws_lc_rs::sign::any_ecdsa_type(&key).map_err(|_| CertificateFault::KeyUnreadable)?;
        let shown = CertifiedKey::new(vec![CertificateDer::from(certificate.to_vec())], key);
        self.change(|by_name| by_name.insert(name.to_owned(), Arc::new(shown)));
        Ok(())
    }

    pub fn withdraw(&self, name: &str) {
        self.change(|by_name| by_name.remove(name));
    }

    fn change(&self, change: impl FnOnce(&mut HashMap<String, Arc<CertifiedKey>>) -> Option<Arc<CertifiedKey>>) {
        let mut by_name = self.by_name.write().unwrap_or_else(PoisonError::into_inner);
        change(&mut by_name);
        self.is_any.store(!by_name.is_empty(), Ordering::Release);
    }

    pub(crate) fn is_any(&self) -> bool {
        self.is_any.load(Ordering::Acquire)
    }

    fn of(&self, name: Option<&str>) -> Option<Arc<CertifiedKey>> {
        self.by_name.read().unwrap_or_else(PoisonError::into_inner).get(name?).cloned()
    }
}

/// The certificates of a listener, and in front of them what authorities are answered.
#[derive(Debug)]
pub(crate) struct WithChallenges {
    pub(crate) table: Arc<CertificateTable>,
    pub(crate) challenges: Arc<AlpnChallenges>,
}

impl ResolvesServerCert for WithChallenges {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        // RFC 8737 §3: who asks offers this protocol alone, and is shown nothing else.
        let is_asked = hello.alpn().is_some_and(|protocols| protocols.eq([Protocol::AcmeChallenge.name().as_bytes()]));
        if is_asked { self.challenges.of(hello.server_name()) } else { self.table.resolve(hello) }
    }
}
