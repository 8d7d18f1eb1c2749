//! A lane's connection before its first command: the server's name looked up, the connection opened, TLS begun, user and
//! password said. All of that together has `connect_timeout`.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use wire::memcached::{Asked, Command, Progress, Reply, StoreVerb, read_reply};

use crate::memcached_gateway::gateway_call::FailureKind;
use crate::memcached_gateway::memcached_server::Server;
use crate::origin::{DialAddress, OriginErrorKind};
use crate::socket::Socket;

/// The connection, and where it leads.
pub(crate) async fn open(server: &Server, now_ms: u64) -> Result<(Socket, DialAddress), FailureKind> {
    let terms = &server.terms;
    let opening = async {
        let whereabouts = server.whereabouts.load_full();
        let dialled = whereabouts.dial(now_ms, terms.connect_timeout).await;
        let (stream, place) = dialled.map_err(|kind| match kind {
            OriginErrorKind::Connect { why } | OriginErrorKind::Exhausted { why } => FailureKind::Connect(why.kind()),
            OriginErrorKind::Resolve { .. } | OriginErrorKind::Nowhere => FailureKind::Resolve,
            _ => FailureKind::ConnectTimeout,
        })?;
        let mut stream = match &server.tls {
            None => stream,
            Some(tls) => stream.agreed(tls.begin()).await.map_err(FailureKind::Tls)?,
        };
        if let Some(login) = &terms.login {
            let token = format!("{} {}", login.user, login.password);
            log_in(&mut stream, token.as_bytes()).await?;
        }
        Ok((stream, place))
    };
    tokio::time::timeout(terms.connect_timeout, opening).await.unwrap_or(Err(FailureKind::ConnectTimeout))
}

/// The set that a server started with `-Y` wants first; its key and flags mean nothing.
async fn log_in(stream: &mut Socket, token: &[u8]) -> Result<(), FailureKind> {
    let command = Command::Store { verb: StoreVerb::Set, key: b"login", flags: 0, exptime: 0, value: token };
    let mut out = Vec::new();
    command.write(&mut out);
    stream.write_all(&out).await.map_err(|_| FailureKind::Lost)?;
    stream.flush().await.map_err(|_| FailureKind::Lost)?;
    let asked = Asked { expected: command.expected(), key: b"login", value_bytes_max: 0 };
    let mut input = Vec::new();
    loop {
        match read_reply(&input, &asked) {
            Ok(Progress::Whole { reply: Reply::Stored { .. }, .. }) => return Ok(()),
            Ok(Progress::Whole { .. }) => return Err(FailureKind::Login),
            Err(fault) => return Err(FailureKind::Fault(fault)),
            Ok(Progress::More { .. }) => {}
        }
        if stream.read_buf(&mut input).await.map_err(|_| FailureKind::Lost)? == 0 {
            return Err(FailureKind::Lost);
        }
    }
}
