//! How the lab itself asks a server of a run, apart from the load: the look at every page, and connections that are held.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use tokio_rustls::rustls::{ClientConnection, StreamOwned};

use crate::lab_url::LabUrl;
use crate::matrix::row_protocol::Spoken;
use crate::matrix::run_certificate::TLS_HOST;
use crate::tls_client::TlsClient;
use crate::tls_settings::TlsSettings;

/// One server, and what is spoken to it.
#[derive(Clone, Debug)]
pub(crate) struct Asking {
    pub(crate) address: SocketAddr,
    pub(crate) spoken: Spoken,
    /// There where TLS is spoken.
    pub(crate) tls: Option<Arc<TlsClient>>,
    pub(crate) patience: Duration,
}

/// A connection of HTTP/1.1, in the clear or over TLS.
pub(crate) enum PlainStream {
    Clear(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Asking {
    pub(crate) fn clear(address: SocketAddr, patience: Duration) -> Asking {
        Asking { address, spoken: Spoken::CLEAR, tls: None, patience }
    }

    /// `tls`: settings of who speaks TLS, if it is spoken.
    pub(crate) fn new(
        address: SocketAddr,
        tls: Option<&TlsSettings>,
        http2: bool,
        patience: Duration,
    ) -> Result<Asking, String> {
        let protocol = if http2 { &b"h2"[..] } else { b"http/1.1" };
        let client = tls.map(|settings| TlsClient::new(settings, protocol).map(Arc::new)).transpose();
        let client = client.map_err(|error| format!("cannot speak TLS: {error}"))?;
        Ok(Asking { address, spoken: Spoken { tls: tls.is_some(), http2 }, tls: client, patience })
    }

    /// Where its pages are, as its clients write it.
    pub(crate) fn site(&self) -> Result<LabUrl, String> {
        site(self.address, self.spoken.tls)
    }

    /// Whether TLS can be spoken shows with the first byte that is read or written.
    pub(crate) fn connect(&self) -> io::Result<PlainStream> {
        let stream = TcpStream::connect_timeout(&self.address, self.patience)?;
        stream.set_read_timeout(Some(self.patience))?;
        stream.set_write_timeout(Some(self.patience))?;
        Ok(match &self.tls {
            None => PlainStream::Clear(stream),
            Some(tls) => PlainStream::Tls(Box::new(StreamOwned::new(tls.session()?, stream))),
        })
    }
}

/// Of a server at this address.
pub(crate) fn site(address: SocketAddr, tls: bool) -> Result<LabUrl, String> {
    LabUrl::parse(&match tls {
        true => format!("https://{TLS_HOST}:{}/", address.port()),
        false => format!("http://{address}/"),
    })
}

impl PlainStream {
    /// Nothing is waited for from here on.
    pub(crate) fn set_nonblocking(&mut self) -> io::Result<()> {
        match self {
            PlainStream::Clear(stream) => stream.set_nonblocking(true),
            PlainStream::Tls(stream) => stream.sock.set_nonblocking(true),
        }
    }
}

impl Read for PlainStream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            PlainStream::Clear(stream) => stream.read(into),
            PlainStream::Tls(stream) => stream.read(into),
        }
    }
}

impl Write for PlainStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            PlainStream::Clear(stream) => stream.write(bytes),
            PlainStream::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            PlainStream::Clear(stream) => stream.flush(),
            PlainStream::Tls(stream) => stream.flush(),
        }
    }
}
