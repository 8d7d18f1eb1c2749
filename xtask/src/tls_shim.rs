//! A shim that speaks TLS with larder: bytes go through as they are, both ways, and so do the ends of either side. By tokio-rustls,
//! which larder does not use.

use std::path::Path;
use std::sync::Arc;

use tokio::io::{AsyncWriteExt, Interest};
use tokio::net::UnixStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::shim::{self, BEHIND};

/// Of a folder with `site.pem` and `site.key`.
pub const NAME: &str = "localhost";

/// The shim, for as long as larder runs.
pub fn run(certificates: &str) -> Result<(), String> {
    let connector = TlsConnector::from(Arc::new(trusting(certificates)?));
    shim::serve(|client| carry(client, connector.clone()))
}

async fn carry(client: UnixStream, connector: TlsConnector) -> std::io::Result<()> {
    let name = ServerName::try_from(NAME).map_err(std::io::Error::other)?;
    let server = connector.connect(name, UnixStream::connect(BEHIND).await?).await?;
    let (mut of_client, mut to_client) = client.into_split();
    let (mut of_server, mut to_server) = tokio::io::split(server);
    let up = async {
        tokio::io::copy(&mut of_client, &mut to_server).await?;
        // Who has closed both ways has left, and is not waited for.
        match of_client.ready(Interest::READABLE | Interest::WRITABLE).await?.is_write_closed() {
            true => Err(std::io::ErrorKind::BrokenPipe.into()),
            false => to_server.shutdown().await,
        }
    };
    let down = async {
        tokio::io::copy(&mut of_server, &mut to_client).await?;
        to_client.shutdown().await
    };
    tokio::try_join!(up, down).map(drop)
}

fn trusting(certificates: &str) -> Result<ClientConfig, String> {
    let path = Path::new(certificates).join("site.pem");
    let certificate = CertificateDer::from_pem_file(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let mut roots = RootCertStore::empty();
    roots.add(certificate).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(ClientConfig::builder().with_root_certificates(roots).with_no_client_auth())
}
