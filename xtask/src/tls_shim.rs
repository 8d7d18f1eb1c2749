//! Stands between a behaviour file's clients, which speak HTTP/1 in the clear, and a larder that speaks TLS: bytes go through as they
//! are, both ways, and so do the ends of either side. By tokio-rustls, which larder does not use.
//!
//! `cargo xtask behaviours --over tls` starts larder by this: [`start`] leaves a shim at the socket that the file asks, puts larder behind
//! it, and becomes larder, so that signals and exit codes are larder's own.

use std::io::{Read, Write};
use std::os::unix::process::{CommandExt, parent_id};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncWriteExt, Interest};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// Where files ask, and where larder listens instead.
const ASKED: &str = "l.sock";
const BEHIND: &str = "behind.sock";
/// Whether larder still runs is looked at so often.
const LOOK_EVERY: Duration = Duration::from_millis(100);
const LAST_WORDS: Duration = Duration::from_secs(10);
/// Of a folder with `site.pem` and `site.key`.
pub const NAME: &str = "localhost";

/// Leaves a shim behind and becomes larder, with TLS where it was asked to listen in the clear. Returns only if it cannot.
pub fn start(certificates: &str, larder: &str, arguments: &[&str]) -> Result<(), String> {
    let own = std::env::current_exe().map_err(|e| format!("the shim: {e}"))?;
    let mut shim = Command::new(own)
        .args(["tls-shim", certificates])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|e| format!("the shim: {e}"))?;
    // It says so when it listens.
    let mut said = [0];
    shim.stdout.take().ok_or("the shim says nothing")?.read_exact(&mut said).map_err(|e| format!("the shim: {e}"))?;
    let mut command = Command::new(larder);
    let (asked, behind) = (format!("unix:{ASKED}"), format!("unix:{BEHIND}"));
    let file = |name: &str| format!("{certificates}/site.{name}");
    let mut left = arguments;
    while let [argument, behind_it @ ..] = left {
        left = behind_it;
        match (*argument, left) {
            ("--listen", [address, rest @ ..]) if *address == asked => {
                left = rest;
                command.args(["--tls", &behind, "--cert", &file("pem"), "--key", &file("key")]);
            }
            (other, _) => _ = command.arg(other),
        }
    }
    Err(format!("{larder}: {}", command.exec()))
}

/// The shim itself, until the process that has started it, which is larder by then, is gone.
pub fn run(certificates: &str) -> Result<(), String> {
    let _ = std::fs::remove_file(ASKED);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|e| e.to_string())?;
    let larder = parent_id();
    runtime.block_on(async {
        let listener = UnixListener::bind(ASKED).map_err(|e| format!("{ASKED}: {e}"))?;
        let connector = TlsConnector::from(Arc::new(trusting(certificates)?));
        let mut stdout = std::io::stdout();
        stdout.write_all(b"l").and_then(|()| stdout.flush()).map_err(|e| e.to_string())?;
        let mut carried = JoinSet::new();
        while parent_id() == larder {
            if let Ok(Ok((client, _))) = tokio::time::timeout(LOOK_EVERY, listener.accept()).await {
                let connector = connector.clone();
                // Whoever leaves in the middle of something is the business of the file.
                carried.spawn(async move { drop(carry(client, connector).await) });
            }
        }
        // What larder said last is still on its way.
        drop(tokio::time::timeout(LAST_WORDS, carried.join_all()).await);
        Ok(())
    })
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
