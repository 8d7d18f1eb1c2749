//! Where the management protocol is spoken: the ports of `-T`, the calls of `-M`, and standard input with `-d`. A thread of
//! its own, so that it answers when the workers are busy.

use std::collections::VecDeque;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::task::AbortHandle;
use varnishd::limits::SESSIONS_MAX;
use varnishd::{CommandLine, Front, Secret, converse};

use super::front_plan::resolve;
use super::front_service::{Finisher, finish};
use crate::kernel_random;
use crate::say::say;

/// After a call that nobody took, or that ended.
const CALL_AGAIN: Duration = Duration::from_secs(1);
/// After an accept that failed.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Bound, and not served yet.
pub struct Doors {
    listeners: Vec<TcpListener>,
    addresses: Vec<SocketAddr>,
    callees: Vec<SocketAddr>,
    secret: Option<Secret>,
}

/// Conversations that are held.
#[derive(Default)]
struct Held(VecDeque<(AbortHandle, Arc<AtomicBool>)>);

impl Doors {
    pub fn open(line: &CommandLine, secret: Option<Secret>) -> Result<Doors, String> {
        let by_default = [Some((Some("127.0.0.1".to_owned()), 0))];
        let asked = if line.management.is_empty() { &by_default[..] } else { &line.management };
        let mut listeners = Vec::new();
        for (host, port) in asked.iter().flatten() {
            for address in resolve(host.as_deref(), *port).map_err(|why| format!("-T: {why}"))? {
                let bound =
                    TcpListener::bind(address).map_err(|error| format!("cannot listen on -T {address}: {error}"))?;
                bound.set_nonblocking(true).map_err(|error| error.to_string())?;
                listeners.push(bound);
            }
        }
        let addresses = listeners.iter().map(TcpListener::local_addr).collect::<Result<_, _>>();
        let addresses: Vec<SocketAddr> = addresses.map_err(|error| error.to_string())?;
        if secret.is_none() && addresses.iter().any(|address| !address.ip().to_canonical().is_loopback()) {
            say!("warning: -S none: whoever reaches {} may do anything", addresses[0]);
        }
        let mut callees = Vec::new();
        for (host, port) in &line.callers {
            callees.extend(resolve(host.as_deref(), *port).map_err(|why| format!("-M: {why}"))?.first().copied());
        }
        Ok(Doors { listeners, addresses, callees, secret })
    }

    pub fn management_addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Serves until the process ends.
    pub fn serve(self, line: &CommandLine, front: Arc<Front>, finisher: Finisher) -> std::io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let is_debug = line.is_debug;
        let thread = std::thread::Builder::new().name("larder-cli".to_owned());
        thread.spawn(move || {
            runtime.block_on(async move {
                let held: Arc<Mutex<Held>> = Arc::default();
                for listener in self.listeners {
                    match tokio::net::TcpListener::from_std(listener) {
                        Ok(listener) => {
                            let (front, secret, held) = (Arc::clone(&front), self.secret.clone(), Arc::clone(&held));
                            tokio::spawn(accept_forever(listener, front, secret, held));
                        }
                        Err(error) => say!("the management port does not answer: {error}"),
                    }
                }
                for callee in self.callees {
                    tokio::spawn(call_forever(callee, Arc::clone(&front), self.secret.clone()));
                }
                if is_debug {
                    let console = tokio::io::join(tokio::io::stdin(), tokio::io::stdout());
                    // Whoever sits there is the operator. When they leave, we are done.
                    let _ = converse(console, front, None, || ()).await;
                    finish(&finisher);
                }
                std::future::pending::<()>().await;
            });
        })?;
        Ok(())
    }
}

async fn accept_forever(
    listener: tokio::net::TcpListener,
    front: Arc<Front>,
    secret: Option<Secret>,
    held: Arc<Mutex<Held>>,
) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let is_known = Arc::new(AtomicBool::new(false));
                if !held.lock().make_room() {
                    continue;
                }
                let (front, secret) = (Arc::clone(&front), challenged(secret.clone()));
                let tell = Arc::clone(&is_known);
                let talk = tokio::spawn(async move {
                    // A client that is gone is no concern of anybody's.
                    let _ = converse(stream, front, secret, || tell.store(true, Ordering::Relaxed)).await;
                });
                held.lock().0.push_back((talk.abort_handle(), is_known));
            }
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

impl Held {
    /// The place goes to who comes, unless all are held by people who have shown the secret.
    fn make_room(&mut self) -> bool {
        self.0.retain(|(talk, _)| !talk.is_finished());
        if self.0.len() < SESSIONS_MAX {
            return true;
        }
        let Some(stranger) = self.0.iter().position(|(_, is_known)| !is_known.load(Ordering::Relaxed)) else {
            return false;
        };
        if let Some((talk, _)) = self.0.remove(stranger) {
            talk.abort();
        }
        true
    }
}

async fn call_forever(callee: SocketAddr, front: Arc<Front>, secret: Option<Secret>) {
    loop {
        if let Ok(stream) = tokio::net::TcpStream::connect(callee).await {
            let _ = converse(stream, Arc::clone(&front), challenged(secret.clone()), || ()).await;
        }
        tokio::time::sleep(CALL_AGAIN).await;
    }
}

/// A challenge that was never used before.
fn challenged(secret: Option<Secret>) -> Option<(Secret, String)> {
    let secret = secret?;
    Some((secret, varnishd::challenge(&kernel_random::bytes::<32>())))
}
