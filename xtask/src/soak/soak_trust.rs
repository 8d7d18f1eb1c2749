//! Certificates of a soak: who makes new ones, and whom clients trust. Every certificate that was ever made is trusted, so that a client knows the larder before and after a change.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::{test_certificate, tls_shim};

pub struct SoakTrust {
    roots: Mutex<RootCertStore>,
    /// By HTTP/1.1 and by HTTP/2, until another certificate is made.
    configs: Mutex<Option<[Arc<ClientConfig>; 2]>>,
}

impl SoakTrust {
    pub fn nobody() -> SoakTrust {
        SoakTrust { roots: Mutex::new(RootCertStore::empty()), configs: Mutex::default() }
    }

    /// Another certificate and key in `tls`, each put in the place of the former one. It is trusted before it is there.
    pub fn make(&self, folder: &Path) -> Result<CertificateDer<'static>, String> {
        let (next, tls) = (folder.join("tls-next"), folder.join("tls"));
        let failed = |error: std::io::Error| format!("{}: {error}", tls.display());
        fs::create_dir_all(&next).map_err(failed)?;
        test_certificate::make(&next)?;
        let certificate = CertificateDer::from_pem_file(next.join("site.pem")).map_err(|error| error.to_string())?;
        self.roots.lock().expect("nobody panicked").add(certificate.clone()).map_err(|error| error.to_string())?;
        *self.configs.lock().expect("nobody panicked") = None;
        for name in ["site.key", "site.pem"] {
            fs::rename(next.join(name), tls.join(name)).map_err(failed)?;
        }
        Ok(certificate)
    }

    pub fn client(&self, is_http2: bool) -> Arc<ClientConfig> {
        let mut configs = self.configs.lock().expect("nobody panicked");
        let configs = configs.get_or_insert_with(|| {
            ["http/1.1", "h2"].map(|protocol| {
                let roots = self.roots.lock().expect("nobody panicked").clone();
                let mut config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
                config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
                Arc::new(config)
            })
        });
        Arc::clone(&configs[usize::from(is_http2)])
    }
}

pub fn name() -> ServerName<'static> {
    ServerName::try_from(tls_shim::NAME).expect("it is a name")
}
