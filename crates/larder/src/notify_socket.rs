//! What larder tells the service manager that started it, as systemd hears it (sd_notify(3)): that it is ready, reads its config again,
//! or ends; a line for `systemctl status`; and, where a watchdog waits for it, that its workers go round.
//!
//! Without `NOTIFY_SOCKET` nobody is told anything. It knows the environment and a datagram socket, and nothing of what it tells.

use std::env;
use std::ffi::OsString;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use proxy::Moment;
use supervisor::ServingLink;

use crate::limits::{ALIVE_EVERY, MANAGER_TIMEOUT, SILENCE_MAX, STATUS_BYTES_MAX};
use crate::say::say;

/// What there is to tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServiceNotice {
    /// All addresses are bound and the workers run; behind a reload, it is over.
    Ready { status: String },
    /// The config is read again. `mono_us`: when that began, on CLOCK_MONOTONIC.
    Reloading { mono_us: u64 },
    /// Nobody new is let in. `grace`: so long requests under way may take.
    Stopping { grace: Duration, status: String },
    /// The watchdog may go on waiting.
    Alive,
}

impl ServiceNotice {
    /// As it goes over the socket: lines of `NAME=VALUE`.
    pub fn datagram(&self) -> String {
        match self {
            ServiceNotice::Ready { status } => format!("READY=1\nSTATUS={}", in_one_line(status)),
            ServiceNotice::Reloading { mono_us } => {
                format!("RELOADING=1\nMONOTONIC_USEC={mono_us}\nSTATUS=reading the config again")
            }
            ServiceNotice::Stopping { grace, status } => {
                // Where the unit's TimeoutStopSec is longer, that holds.
                let usec = grace.as_micros();
                format!("STOPPING=1\nEXTEND_TIMEOUT_USEC={usec}\nSTATUS={}", in_one_line(status))
            }
            ServiceNotice::Alive => "WATCHDOG=1".to_owned(),
        }
    }
}

/// A line break would begin another assignment.
fn in_one_line(status: &str) -> String {
    let line: String = status.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let end = (0..=line.len().min(STATUS_BYTES_MAX)).rev().find(|end| line.is_char_boundary(*end));
    line[..end.unwrap_or_default()].to_owned()
}

/// Whoever started larder, if it wants to be told.
pub struct NotifySocket {
    way: Option<NoticeWay>,
    /// Within this time it has to hear of us, or ends us.
    watchdog: Option<Duration>,
    last_beat: Option<Moment>,
    /// The worker that has not answered, once that was said.
    silent: Option<usize>,
}

/// How it is told.
enum NoticeWay {
    Itself(NotifyTarget),
    /// By the supervisor, which wants to know itself that all go round.
    Supervisor(Arc<ServingLink>),
}

/// A service manager's socket.
pub struct NotifyTarget {
    socket: UnixDatagram,
    address: SocketAddr,
    failed: AtomicBool,
}

impl NotifySocket {
    /// As the environment names it. What is wrong with that is said, and larder runs without.
    pub fn of_environment() -> NotifySocket {
        let watchdog = watchdog_of(env::var("WATCHDOG_USEC").ok(), env::var("WATCHDOG_PID").ok(), std::process::id());
        let target = NotifyTarget::of_environment();
        let watchdog = watchdog.filter(|_| target.is_some());
        NotifySocket { way: target.map(NoticeWay::Itself), watchdog, last_beat: None, silent: None }
    }

    /// Over a supervisor, which waits for a beat itself, and passes it on to a watchdog that its environment names.
    pub fn over(link: Arc<ServingLink>) -> NotifySocket {
        let supervisor = rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get().unsigned_abs());
        let watchdog = watchdog_of(env::var("WATCHDOG_USEC").ok(), env::var("WATCHDOG_PID").ok(), supervisor);
        let watchdog = Some(watchdog.map_or(SILENCE_MAX, |watchdog| watchdog.min(SILENCE_MAX)));
        NotifySocket { way: Some(NoticeWay::Supervisor(link)), watchdog, last_beat: None, silent: None }
    }

    /// Tells it. That it cannot be told is said once.
    pub fn tell(&self, notice: &ServiceNotice) {
        match &self.way {
            None => {}
            Some(NoticeWay::Itself(target)) => target.send(&notice.datagram()),
            // A supervisor that is gone is heard of otherwise.
            Some(NoticeWay::Supervisor(link)) => drop(match notice {
                ServiceNotice::Alive => link.alive(SILENCE_MAX),
                _ => link.notify(&notice.datagram()),
            }),
        }
    }

    /// How long the main thread may wait for anything else.
    pub fn patience(&self) -> Option<Duration> {
        let every = self.watchdog.map(|watchdog| watchdog / BEATS);
        every.map(
            |every| if matches!(self.way, Some(NoticeWay::Supervisor(_))) { every.min(ALIVE_EVERY) } else { every },
        )
    }

    /// Once in a while: tells the watchdog that all workers go round, if `pulse` says so. Else it says which one does not, and is silent,
    /// so that the service manager starts larder anew.
    pub fn beat(&mut self, now: Moment, pulse: impl FnOnce() -> Result<(), usize>) {
        let Some(every) = self.patience() else { return };
        let is_due = self.last_beat.is_none_or(|last| u128::from(last.micros_until(now)) >= every.as_micros());
        if !is_due {
            return;
        }
        match pulse() {
            Ok(()) => {
                self.tell(&ServiceNotice::Alive);
                self.silent = None;
                self.last_beat = Some(now);
            }
            Err(worker) if self.silent != Some(worker) => {
                self.silent = Some(worker);
                let left = self.watchdog.unwrap_or_default().as_secs_f32();
                say!(
                    "warning: worker {worker} does not answer: larder is ended and started again where nothing is heard of it for {left} s (WatchdogSec)"
                );
            }
            Err(_) => {}
        }
    }
}

/// How often the watchdog hears of us within its time: a worker that is held up may miss two of them.
const BEATS: u32 = 4;

impl NotifyTarget {
    /// As the environment names it. What is wrong with that is said, and larder runs without.
    pub fn of_environment() -> Option<NotifyTarget> {
        match NotifyTarget::open(env::var_os("NOTIFY_SOCKET")?) {
            Ok(target) => Some(target),
            Err(why) => {
                say!("warning: the service manager hears nothing of larder (NOTIFY_SOCKET): {why}");
                None
            }
        }
    }

    /// That it cannot be told is said once.
    pub fn send(&self, datagram: &str) {
        match self.socket.send_to_addr(datagram.as_bytes(), &self.address) {
            Ok(_) => self.failed.store(false, Ordering::Relaxed),
            Err(error) if !self.failed.swap(true, Ordering::Relaxed) => {
                say!("warning: the service manager hears nothing of larder (NOTIFY_SOCKET): {error}");
            }
            Err(_) => {}
        }
    }

    fn open(named: OsString) -> Result<NotifyTarget, String> {
        let shown = named.to_string_lossy().into_owned();
        let wrong = |error: io::Error| format!("{shown}: {error}");
        let address = match named.as_bytes() {
            [b'@', name @ ..] => SocketAddr::from_abstract_name(name).map_err(wrong)?,
            [b'/', ..] => SocketAddr::from_pathname(&named).map_err(wrong)?,
            _ => return Err(format!("{shown} is no path and no abstract socket, and larder speaks to no other")),
        };
        let socket = UnixDatagram::unbound().map_err(wrong)?;
        socket.set_write_timeout(Some(MANAGER_TIMEOUT)).map_err(wrong)?;
        Ok(NotifyTarget { socket, address, failed: AtomicBool::new(false) })
    }
}

/// Does a watchdog wait to hear of this process?
pub fn is_watched() -> bool {
    watchdog_of(env::var("WATCHDOG_USEC").ok(), env::var("WATCHDOG_PID").ok(), std::process::id()).is_some()
}

/// The time within which this process has to be heard of. It may be meant for another one.
fn watchdog_of(usec: Option<String>, pid: Option<String>, own_pid: u32) -> Option<Duration> {
    let is_meant = pid.is_none_or(|pid| pid.parse() == Ok(own_pid));
    let usec = usec?.parse().ok().filter(|usec| *usec > 0)?;
    is_meant.then(|| Duration::from_micros(usec))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(notice: ServiceNotice, expect: &str) {
        assert_eq!(notice.datagram(), expect);
    }

    #[test]
    fn notices_are_lines_that_systemd_reads() {
        check(ServiceNotice::Ready { status: "serving".to_owned() }, "READY=1\nSTATUS=serving");
        check(
            ServiceNotice::Reloading { mono_us: 17 },
            "RELOADING=1\nMONOTONIC_USEC=17\nSTATUS=reading the config again",
        );
        let grace = Duration::from_secs(30);
        check(
            ServiceNotice::Stopping { grace, status: "ending".to_owned() },
            "STOPPING=1\nEXTEND_TIMEOUT_USEC=30000000\nSTATUS=ending",
        );
        check(ServiceNotice::Alive, "WATCHDOG=1");
    }

    /// Else a config, which a status may quote, could say that larder has ended.
    #[test]
    fn a_status_is_one_line_of_bounded_length() {
        check(ServiceNotice::Ready { status: "a\nSTOPPING=1\r\n".to_owned() }, "READY=1\nSTATUS=a STOPPING=1");
        let long = "ä".repeat(STATUS_BYTES_MAX);
        let ServiceNotice::Ready { status } = (ServiceNotice::Ready { status: long }) else { unreachable!() };
        assert!(in_one_line(&status).len() <= STATUS_BYTES_MAX && !in_one_line(&status).is_empty());
    }

    #[test]
    fn a_watchdog_for_another_process_is_none() {
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(watchdog_of(text("2000000"), None, 7), Some(Duration::from_secs(2)));
        assert_eq!(watchdog_of(text("2000000"), text("7"), 7), Some(Duration::from_secs(2)));
        assert_eq!(watchdog_of(text("2000000"), text("8"), 7), None);
        assert_eq!(watchdog_of(text("0"), None, 7), None);
        assert_eq!(watchdog_of(text("soon"), None, 7), None);
        assert_eq!(watchdog_of(None, None, 7), None);
    }

    /// A socket that is listened to, and what it has heard so far.
    fn listening(watchdog: Duration) -> (NotifySocket, UnixDatagram) {
        let name = format!("larder-notify-{}-{}", std::process::id(), watchdog.as_nanos());
        let address = SocketAddr::from_abstract_name(name.as_bytes()).unwrap();
        let listener = UnixDatagram::bind_addr(&address).unwrap();
        listener.set_nonblocking(true).unwrap();
        let target = NotifyTarget::open(format!("@{name}").into()).unwrap();
        let way = Some(NoticeWay::Itself(target));
        (NotifySocket { way, watchdog: Some(watchdog), last_beat: None, silent: None }, listener)
    }

    fn heard(listener: &UnixDatagram) -> Option<String> {
        let mut bytes = [0; 1_000];
        let count = listener.recv(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes[..count]).into_owned())
    }

    #[test]
    fn a_silent_worker_silences_the_beat() {
        let (mut notify, listener) = listening(Duration::from_micros(400));
        let at = |us: u64| Moment { nanos: us * 1_000 };
        let alive = Some("WATCHDOG=1".to_owned());
        notify.beat(at(1_000), || Ok(()));
        assert_eq!(heard(&listener), alive);
        // Not due: nobody is asked.
        notify.beat(at(1_099), || panic!("it is too early"));
        assert_eq!(heard(&listener), None);
        notify.beat(at(1_100), || Err(1));
        notify.beat(at(1_101), || Err(1));
        assert_eq!((heard(&listener), notify.silent), (None, Some(1)));
        notify.beat(at(1_102), || Ok(()));
        assert_eq!((heard(&listener), notify.silent), (alive, None));
    }

    #[test]
    fn addresses_of_other_kinds_are_refused() {
        for named in ["", "vsock:2:9999", "run/notify"] {
            assert!(NotifyTarget::open(named.into()).is_err(), "{named}");
        }
        assert!(NotifyTarget::open("/run/notify".into()).is_ok());
    }
}
