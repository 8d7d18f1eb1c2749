//! The admin address: `/metrics`, `/status` and the dashboard, from a thread of its own, so that it answers when the
//! workers are busy.
//!
//! Reading is open to whoever reaches the address; on loopback TCP a Host that is not loopback's is refused, so that
//! a web page cannot read it through a name of its own (DNS rebinding). Changing anything needs the token or the
//! UNIX socket. It speaks one request a connection; what can be seen is an [`Observation`], what can be done about VCLs
//! and origins stands in `vcl_requests` and `origin_requests`, what goes and is fetched again in `invalidation_requests`, what a
//! request would come to in `explain_request`, the config in `config_request`, the config anew in `reload_request`, and the program in
//! `upgrade_request`.

mod admin_request;
mod admin_rights;

mod asked_within;
mod config_request;
mod dashboard_files;
mod event_stream;
pub mod exchange_figures;
mod explain_request;
mod fleet_door;
pub mod fleet_node;
mod fleet_request;
pub mod fleet_voice;
pub mod history;
mod invalidation_requests;
mod looking;
#[cfg(test)]
mod metric_askers;
mod metric_definition;
mod metric_label;
mod metric_rows;
mod metric_samples;
#[cfg(test)]
mod metrics_page;
mod metrics_text;
mod note_request;
pub mod observation;
mod origin_requests;
mod probe_request;
mod purge_body;
mod purge_hints;
mod refresh_verdict;
mod refresher;
mod reload_request;
mod sitemap;
mod status_json;
mod told_order;
mod upgrade_request;
mod vcl_everywhere;
mod vcl_order;
pub mod vcl_requests;

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use message::Status;
use parking_lot::Mutex;
use proxy::Moment;
use proxy::settings::ListenAddress;
use proxy::{Proxy, SocketKeeper, vital_thread};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::watch;
use tokio::task::AbortHandle;
use wire::{Persistence, whole_answer};

use crate::acme_board::AcmeBoard;
use crate::held_config::HeldConfig;
use crate::limits;
use crate::log_writer::LogWriter;
use crate::reload_board::ReloadBoard;
use crate::say::say;
use crate::upgrade_board::UpgradeBoard;
use admin_request::{Answer, Read, answer};
use admin_rights::Door;
pub use fleet_door::FleetDoor;
use history::{AnnotationKind, History};
use observation::{Circumstances, Observation};
pub use refresher::Refresher;

/// A bound admin socket that nobody serves yet.
pub struct AdminSocket {
    socket: Socket,
    address: ListenAddress,
}

enum Socket {
    Tcp(std::net::TcpListener),
    Unix(std::os::unix::net::UnixListener),
}

/// What the admin may ask and do; a reload changes the rights.
pub struct Admin {
    pub proxy: Proxy,
    pub log: Option<Arc<LogWriter>>,
    pub started: Moment,
    pub rights: Mutex<Rights>,
    /// How the certificates stand that are ordered.
    pub acme: Arc<AcmeBoard>,
    /// The way to the other nodes, where there are any.
    pub fleet: OnceLock<FleetDoor>,
    /// What is being fetched again.
    pub refresher: Arc<Refresher>,
    /// What the dashboard draws.
    pub history: Arc<History>,
    /// Reloads, and who orders them.
    pub reloads: Arc<ReloadBoard>,
    /// Upgrades, and who orders them.
    pub upgrades: Arc<UpgradeBoard>,
    /// Nobody is let in any more: another process is.
    pub closing: watch::Sender<bool>,
    /// What of larder.toml and flags holds.
    pub config: Arc<HeldConfig>,
}

/// Who may do what.
#[derive(Clone, Debug, Default)]
pub struct Rights {
    pub server_name: String,
    pub token: Option<String>,
    pub debug: bool,
    /// Where VCLs that are sent look for what they include.
    pub vcl_path: Vec<PathBuf>,
}

impl AdminSocket {
    /// Takes the socket that the keeper has for the address; otherwise binds it, and has it kept.
    pub fn bind(address: &ListenAddress, keeper: &dyn SocketKeeper) -> io::Result<AdminSocket> {
        let socket = match keeper.take(address).into_iter().next() {
            Some(kept) => kept,
            None => {
                let bound = match address {
                    ListenAddress::Tcp(wanted) => OwnedFd::from(std::net::TcpListener::bind(wanted)?),
                    ListenAddress::Unix(path) => bind_unix(path)?,
                };
                keeper.keep(address, &[&bound]);
                bound
            }
        };
        match address {
            ListenAddress::Tcp(_) => {
                let listener = std::net::TcpListener::from(socket);
                listener.set_nonblocking(true)?;
                let address = ListenAddress::Tcp(listener.local_addr()?);
                Ok(AdminSocket { socket: Socket::Tcp(listener), address })
            }
            ListenAddress::Unix(_) => {
                let listener = std::os::unix::net::UnixListener::from(socket);
                listener.set_nonblocking(true)?;
                Ok(AdminSocket { socket: Socket::Unix(listener), address: address.clone() })
            }
        }
    }

    /// With the port that was picked where 0 was asked for.
    pub fn address(&self) -> &ListenAddress {
        &self.address
    }

    /// Serves in a thread of its own until the process ends.
    pub fn serve(self, admin: Arc<Admin>) -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        vital_thread("larder-admin", "the admin address", move || {
            let ended = runtime.block_on(async {
                match self.socket {
                    Socket::Tcp(listener) => {
                        let listener = TcpListener::from_std(listener)?;
                        let local = listener.local_addr()?;
                        accept_forever(admin, || async { listener.accept().await.map(|(s, _)| (s, Door::Tcp(local))) })
                            .await
                    }
                    Socket::Unix(listener) => {
                        let listener = UnixListener::from_std(listener)?;
                        accept_forever(admin, || async { listener.accept().await.map(|(s, _)| (s, Door::Unix)) }).await
                    }
                }
            });
            if let Err(error) = ended {
                say!("error: the admin address does not answer any more: {error}; restart larder to have it back");
            }
        })?;
        Ok(())
    }
}

/// Mode 0600 from its first moment: the mode of the unbound socket is what bind creates the path with.
fn bind_unix(path: &Path) -> io::Result<OwnedFd> {
    if std::os::unix::net::UnixStream::connect(path).is_ok() {
        return Err(io::ErrorKind::AddrInUse.into());
    }
    match std::fs::symlink_metadata(path) {
        // A socket that nobody answers on: left by a process that was killed.
        Ok(found) if found.file_type().is_socket() => std::fs::remove_file(path)?,
        Ok(_) => return Err(io::Error::new(io::ErrorKind::AlreadyExists, "the path exists and is no socket")),
        Err(_) => {}
    }
    let socket = socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::STREAM, None)?;
    rustix::fs::fchmod(&socket, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR)?;
    socket.bind(&socket2::SockAddr::unix(path)?)?;
    socket.listen(limits::ADMIN_CONNECTIONS_MAX as i32)?;
    Ok(socket.into())
}

/// Removes the path of a UNIX admin socket when the program ends in good order.
pub struct SocketPath(pub Option<PathBuf>);

impl Drop for SocketPath {
    fn drop(&mut self) {
        // It may be gone already, and there is nobody left to do anything about it.
        let _ = self.0.take().map(std::fs::remove_file);
    }
}

async fn accept_forever<S, F>(admin: Arc<Admin>, accept: impl Fn() -> F) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    F: Future<Output = io::Result<(S, Door)>>,
{
    let mut held = VecDeque::with_capacity(limits::ADMIN_CONNECTIONS_MAX);
    let mut closing = admin.closing.subscribe();
    loop {
        let accepted = tokio::select! {
            biased;
            _ = closing.wait_for(|closes| *closes) => break,
            accepted = accept() => accepted,
        };
        match accepted {
            Ok((stream, door)) => {
                // Those who read along are bounded by their own number, and are here to stay.
                held.retain(|talk: &Talk| !talk.handle.is_finished() && !talk.reads_along.load(Ordering::Relaxed));
                if held.len() == limits::ADMIN_CONNECTIONS_MAX {
                    end_oldest(&mut held);
                }
                let admin = Arc::clone(&admin);
                let reads_along = Arc::new(AtomicBool::new(false));
                let notes = Arc::clone(&reads_along);
                let talk = tokio::spawn(async move {
                    // A client that is too slow, or gone, is no concern of anybody's.
                    let _ = converse(stream, door, admin, &notes).await;
                });
                held.push_back(Talk { handle: talk.abort_handle(), reads_along });
                // Its request is usually there already, and is answered before the next connection is looked at.
                tokio::task::yield_now().await;
            }
            // Out of descriptors: take one back, and give the others some time to return theirs.
            Err(_) => {
                end_oldest(&mut held);
                tokio::time::sleep(limits::ADMIN_ACCEPT_PAUSE).await;
            }
        }
    }
    // Who is here already is answered, for as long as there is a process to do it.
    drop(accept);
    std::future::pending().await
}

/// A connection that is held.
struct Talk {
    handle: AbortHandle,
    /// It goes on as long as both want.
    reads_along: Arc<AtomicBool>,
}

/// The place goes to who comes. Whoever asks is answered in a moment; the oldest has nothing to ask, or its answer.
fn end_oldest(held: &mut VecDeque<Talk>) {
    if let Some(oldest) = held.pop_front() {
        oldest.handle.abort();
    }
}

/// One request, one answer, and the end. What takes time in between is ours: the client's time stands still.
async fn converse<S>(mut stream: S, door: Door, admin: Arc<Admin>, reads_along: &AtomicBool) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let asked = tokio::time::timeout(limits::ADMIN_TIMEOUT, read(&mut stream, door, &admin)).await??;
    let Some((answer, sent)) = asked else { return Ok(()) };
    let answer = match answer {
        Answer::Vcl { request, body } => {
            let vcl_path = admin.rights.lock().vcl_path.clone();
            let proxy = admin.proxy.clone();
            // A program is checked and its names are looked up: others are answered meanwhile.
            let annotation = request.annotation();
            let reply = match admin.fleet.get().and_then(|fleet| fleet.takes(&request, &sent).zip(Some(fleet))) {
                Some((order, fleet)) => vcl_everywhere::order(&proxy, fleet, order).await,
                None => {
                    let act = tokio::task::spawn_blocking(move || request.act(&proxy, &vcl_path, sent));
                    act.await.map_err(io::Error::other)?
                }
            };
            admin.annotate(annotation, reply.status);
            reply.into_answer(body.head_only)
        }
        Answer::Origin { request, head_only } => {
            let annotation = request.annotation();
            let reply = request.act(&admin.proxy);
            admin.annotate(annotation, reply.status);
            reply.into_answer(head_only)
        }
        Answer::History { request, head_only } => {
            let history = Arc::clone(&admin.history);
            let act = tokio::task::spawn_blocking(move || request.act(&history));
            act.await.map_err(io::Error::other)?.into_answer(head_only)
        }
        Answer::Invalidation { request, body } => {
            let asked = request.clone();
            let fleet = admin.fleet.get();
            let reply = request.act(&admin.proxy, fleet, &admin.refresher, sent).await;
            if let Some((kind, text)) = asked.annotation(&reply) {
                admin.history.annotate(kind, &text);
            }
            reply.into_answer(body.head_only)
        }
        Answer::Note(text) => note_request::act(&text, &admin.history).into_answer(false),
        Answer::Config { head_only } => {
            let config = Arc::clone(&admin.config);
            let act = tokio::task::spawn_blocking(move || config_request::act(&config));
            act.await.map_err(io::Error::other)?.into_answer(head_only)
        }
        Answer::Fleet { head_only } => {
            fleet_request::act(admin.fleet.get().map(|door| &door.fleet)).into_answer(head_only)
        }
        Answer::Probe { probe, head_only } => {
            let (status, word) = probe_request::answer(probe, admin.proxy.is_draining());
            Answer::Word { status, word, head_only }
        }
        Answer::Upgrade => upgrade_request::act(&admin.upgrades).await.into_answer(false),
        Answer::Reload => reload_request::act(&admin.reloads).await.into_answer(false),
        Answer::Explain { request, head_only } => {
            let proxy = admin.proxy.clone();
            let act = tokio::task::spawn_blocking(move || request.act(&proxy));
            act.await.map_err(io::Error::other)?.into_answer(head_only)
        }
        Answer::Events(wanted) => match wanted.begin(&admin.proxy) {
            Ok(events) => {
                reads_along.store(true, Ordering::Relaxed);
                return event_stream::serve(&mut stream, events).await;
            }
            Err(refused) => refused.into_answer(false),
        },
        answer => answer,
    };
    let bytes = answer.bytes(|| admin.observe(), |ms| admin.proxy.advance_clock(ms));
    tokio::time::timeout(limits::ADMIN_TIMEOUT, write(&mut stream, &bytes)).await?
}

/// The request, and its body if it has one. `None` when the client left before it had asked anything.
async fn read<S>(stream: &mut S, door: Door, admin: &Admin) -> io::Result<Option<(Answer, Vec<u8>)>>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut head = Vec::with_capacity(1 << 10);
    let answer = loop {
        let rights = admin.rights.lock().clone();
        match answer(&head, door, &rights) {
            Read::More if head.len() >= limits::ADMIN_HEAD_BYTES_MAX => {
                break Answer::refusal(431, "the head of this request is longer than 8 KiB");
            }
            Read::More if stream.read_buf(&mut head).await? == 0 => return Ok(None),
            Read::More => {}
            Read::Done(answer) => break answer,
        }
    };
    let Some(body) = answer.body() else { return Ok(Some((answer, Vec::new()))) };
    let mut sent = head.split_off(body.from);
    if body.expects_continue && sent.is_empty() {
        stream.write_all(&whole_answer(Status(100), &[], b"", false, Persistence::Implied)).await?;
    }
    while sent.len() < body.bytes {
        if stream.read_buf(&mut sent).await? == 0 {
            return Ok(None);
        }
    }
    sent.truncate(body.bytes);
    Ok(Some((answer, sent)))
}

async fn write<S: AsyncRead + AsyncWrite + Unpin>(stream: &mut S, bytes: &[u8]) -> io::Result<()> {
    stream.write_all(bytes).await?;
    stream.shutdown().await?;
    // What the client still sends is read away for a moment, or the reset takes our answer with it.
    let mut rest = [0; 1024];
    for _ in 0..limits::ADMIN_LINGER_READS_MAX {
        if stream.read(&mut rest).await? == 0 {
            break;
        }
    }
    Ok(())
}

impl Admin {
    /// An operator's order that was carried out is seen in the history.
    fn annotate(&self, annotation: Option<(AnnotationKind, String)>, status: u16) {
        if let (Some((kind, text)), 200) = (annotation, status) {
            self.history.annotate(kind, &text);
        }
    }

    pub fn observe(&self) -> Observation {
        let circumstances = Circumstances {
            server_name: self.rights.lock().server_name.clone(),
            uptime_ms: self.started.micros_until(Moment::now()) / 1_000,
            log_lines_lost: self.log.as_ref().map_or(0, |log| log.lines_lost()),
            acme: self.acme.statuses(),
            acme_counts: self.acme.counts(),
            reloads: self.reloads.figures(),
            processes: self.upgrades.figures(),
            fleet: self.fleet.get().map(|door| door.fleet.status()),
        };
        Observation::of(&self.proxy, circumstances)
    }
}

fn is_loopback(address: &SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}
