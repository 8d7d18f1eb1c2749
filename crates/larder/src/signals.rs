//! The main thread's ears: signals, the end of the workers, and the time.
//!
//! Until `listen` was called a HUP would end the program, so it comes before anything else is started. SIGPIPE is
//! ignored by Rust's own start-up: a client or a terminal that is gone is an error of the write, no more.

use std::convert::Infallible;
use std::io;
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

/// What the main thread is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// TERM or INT.
    End,
    /// HUP.
    Reload,
    /// All workers have ended.
    Ended,
    /// Nothing, for as long as was said.
    Nothing,
}

/// That, or an order from elsewhere.
pub enum Heard<T> {
    Told(Told),
    /// USR2.
    Upgrade,
    Order(T),
}

pub struct Signals {
    runtime: Runtime,
    hangup: Signal,
    terminate: Signal,
    interrupt: Signal,
    upgrade: Signal,
}

impl Signals {
    pub fn listen() -> io::Result<Signals> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let guard = runtime.enter();
        let hangup = signal(SignalKind::hangup())?;
        let terminate = signal(SignalKind::terminate())?;
        let interrupt = signal(SignalKind::interrupt())?;
        let upgrade = signal(SignalKind::user_defined2())?;
        drop(guard);
        Ok(Signals { runtime, hangup, terminate, interrupt, upgrade })
    }

    /// Waits for the next event, at most for `patience`.
    pub fn wait(&mut self, ended: &mut oneshot::Receiver<()>, patience: Option<Duration>) -> Told {
        loop {
            match self.wait_beside(ended, patience, std::future::pending::<Infallible>()) {
                Heard::Told(told) => return told,
                // Nobody takes over from who does not serve as `larder serve` does.
                Heard::Upgrade => {}
                Heard::Order(never) => match never {},
            }
        }
    }

    /// The same, and for an order from elsewhere.
    pub fn wait_beside<T>(
        &mut self,
        ended: &mut oneshot::Receiver<()>,
        patience: Option<Duration>,
        order: impl Future<Output = T>,
    ) -> Heard<T> {
        let Signals { runtime, hangup, terminate, interrupt, upgrade } = self;
        runtime.block_on(async {
            let patience = async {
                match patience {
                    Some(time) => tokio::time::sleep(time).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                // An error means that the joining thread is gone, which it is only when the workers are.
                _ = ended => Heard::Told(Told::Ended),
                _ = terminate.recv() => Heard::Told(Told::End),
                _ = interrupt.recv() => Heard::Told(Told::End),
                _ = hangup.recv() => Heard::Told(Told::Reload),
                _ = upgrade.recv() => Heard::Upgrade,
                order = order => Heard::Order(order),
                () = patience => Heard::Told(Told::Nothing),
            }
        })
    }
}
