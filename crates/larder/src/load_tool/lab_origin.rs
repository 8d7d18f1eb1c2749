//! `larder lab origin` and `larder lab null`: the lab's own servers, until a signal ends them. What they answer is
//! `lab`'s.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use lab::{FakeOrigin, NullServer, OriginHttp2Settings, OriginSettings, OriginTlsSettings, Stalls, TlsFault, limits};
use proxy::settings::ListenAddress;
use tokio::sync::oneshot;

use crate::addresses::parse_listen;
use crate::open_files;
use crate::quantities::{parse_duration, parse_size};
use crate::say::say;
use crate::signals::{Signals, Told};

/// What both servers are told.
#[derive(Clone, Debug, Args)]
pub struct ServerFlags {
    /// Where to listen: IP:PORT (port 0 picks one) or *:PORT
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8081", value_parser = parse_tcp)]
    pub listen: SocketAddr,

    /// Write the line `listen ADDRESS` to this file once the address is bound
    #[arg(long, value_name = "PATH")]
    pub ports_file: Option<PathBuf>,

    /// Worker threads, each with connections of its own
    #[arg(long, value_name = "N", default_value = "1", value_parser = parse_threads)]
    pub threads: usize,
}

#[derive(Clone, Debug, Args)]
pub struct NullFlags {
    #[command(flatten)]
    pub server: ServerFlags,

    /// Bytes of the body, which is that of /f<SIZE>.html
    #[arg(long, value_name = "SIZE", default_value = "6221", value_parser = parse_size)]
    pub size: u64,
}

#[derive(Clone, Debug, Args)]
pub struct OriginFlags {
    #[command(flatten)]
    pub server: ServerFlags,

    /// Seed of all that is random: the same seed draws the same
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// The mean size of the pages /u/<N>.html
    #[arg(long, value_name = "SIZE", default_value = "11000", value_parser = parse_mean)]
    pub mean_bytes: u64,

    /// Stall every so often: answer nothing for the time of --stall-for
    #[arg(long, value_name = "TIME", value_parser = parse_duration, requires = "stall_for")]
    pub stall_every: Option<Duration>,

    /// How long a stall lasts
    #[arg(long, value_name = "TIME", value_parser = parse_duration, requires = "stall_every")]
    pub stall_for: Option<Duration>,

    /// Write a line for each request: when it was read, when its answer was given away, and what that was
    #[arg(long, value_name = "PATH")]
    pub log: Option<PathBuf>,

    /// Speak TLS, with certificates that are made at the start; https://expired.localhost/ and others show bad ones
    #[arg(long)]
    pub tls: bool,

    /// Write the certificate of who has signed them to this file, for those who are to believe them
    #[arg(long, value_name = "FILE", requires = "tls")]
    pub authority: Option<PathBuf>,

    /// Another host that the certificates are for, beside localhost, 127.0.0.1 and ::1; repeatable
    #[arg(long, value_name = "HOST", requires = "tls")]
    pub name: Vec<String>,

    /// What is wrong with every handshake: expired, other-name, self-signed, stall, hang-up, alert or rubbish
    #[arg(long, value_name = "WORD", requires = "tls", value_parser = TlsFault::parse)]
    pub tls_fault: Option<TlsFault>,

    /// Speak HTTP/2 too: over TLS by ALPN, in the clear to clients that begin with it
    #[arg(long)]
    pub h2: bool,

    /// Streams that a client may have at once on a connection
    #[arg(long, value_name = "N", requires = "h2", value_parser = parse_streams, default_value_t = limits::ORIGIN_STREAMS_USUAL)]
    pub h2_streams: u32,

    /// How much of a request's body may come over HTTP/2 before it was read
    #[arg(long, value_name = "SIZE", requires = "h2", value_parser = parse_window, default_value_t = limits::ORIGIN_WINDOW_BYTES_USUAL)]
    pub h2_window: u32,
}

pub fn origin(flags: &OriginFlags) -> ExitCode {
    let stalls = flags.stall_every.zip(flags.stall_for).map(|(every, lasts)| Stalls { every, lasts });
    if stalls.is_some_and(|stalls| stalls.lasts >= stalls.every) {
        say!("error: --stall-for is not shorter than --stall-every: it would never answer");
        return ExitCode::FAILURE;
    }
    let settings = OriginSettings {
        threads: flags.server.threads,
        seed: flags.seed,
        mean_bytes: flags.mean_bytes,
        stalls,
        log: flags.log.clone(),
        tls: flags.tls.then(|| OriginTlsSettings { names: flags.name.clone(), fault: flags.tls_fault }),
        http2: flags.h2.then_some(OriginHttp2Settings { streams_max: flags.h2_streams, window_bytes: flags.h2_window }),
    };
    let scheme = if flags.tls { "https" } else { "http" };
    serve(&flags.server, scheme, |address| {
        let origin = FakeOrigin::start(address, settings)?;
        if let (Some(path), Some(pem)) = (&flags.authority, origin.authority()) {
            lab::write_whole(path, pem.as_bytes())
                .map_err(|error| io::Error::other(format!("--authority: {error}")))?;
        }
        Ok((origin.address, origin))
    })
}

pub fn null(flags: &NullFlags) -> ExitCode {
    serve(&flags.server, "http", |address| {
        let server = NullServer::start(address, flags.size, flags.server.threads)?;
        Ok((server.address, server))
    })
}

/// Starts what `start` starts, says where it listens, and keeps it until a signal comes.
fn serve<S>(
    flags: &ServerFlags,
    scheme: &str,
    start: impl FnOnce(SocketAddr) -> io::Result<(SocketAddr, S)>,
) -> ExitCode {
    let started = Signals::listen().map_err(|e| format!("cannot listen for signals: {e}")).and_then(|signals| {
        open_files::raise_limit();
        let (address, server) = start(flags.listen).map_err(|e| format!("cannot serve at {}: {e}", flags.listen))?;
        flags.ports_file.as_deref().map_or(Ok(()), |path| write_ports_file(path, address))?;
        Ok((signals, address, server))
    });
    let (mut signals, address, server) = match started {
        Ok(started) => started,
        Err(sentence) => {
            say!("error: {sentence}");
            return ExitCode::FAILURE;
        }
    };
    say!("answers at {scheme}://{address}/");
    let (_running, mut never) = oneshot::channel();
    while signals.wait(&mut never, None) != Told::End {}
    drop(server);
    ExitCode::SUCCESS
}

/// Whoever waits for the file must not read half of it.
fn write_ports_file(path: &Path, address: SocketAddr) -> Result<(), String> {
    let line = format!("listen {address}\n");
    lab::write_whole(path, line.as_bytes()).map_err(|error| format!("--ports-file: {error}"))
}

fn parse_tcp(text: &str) -> Result<SocketAddr, String> {
    match parse_listen(text)? {
        ListenAddress::Tcp(address) => Ok(address),
        ListenAddress::Unix(_) => Err("the lab's servers listen on TCP ports".to_owned()),
    }
}

fn parse_mean(text: &str) -> Result<u64, String> {
    let max = limits::PAGE_MEAN_BYTES_MAX;
    parse_size(text).and_then(|mean| match mean {
        mean if (1..=max).contains(&mean) => Ok(mean),
        _ => Err(format!("must be 1 to {max} bytes")),
    })
}

fn parse_streams(text: &str) -> Result<u32, String> {
    let max = limits::ORIGIN_STREAMS_MAX;
    text.parse().ok().filter(|n| (1..=max).contains(n)).ok_or_else(|| format!("must be 1 to {max}"))
}

fn parse_window(text: &str) -> Result<u32, String> {
    let max = limits::ORIGIN_WINDOW_BYTES_MAX;
    let bytes = parse_size(text)?;
    u32::try_from(bytes).ok().filter(|bytes| *bytes <= max).ok_or_else(|| format!("must be 0 to {max} bytes"))
}

fn parse_threads(text: &str) -> Result<usize, String> {
    let max = limits::THREADS_MAX;
    text.parse().ok().filter(|n| (1..=max).contains(n)).ok_or_else(|| format!("must be 1 to {max}"))
}
