//! One process that serves hands over to the next: what they say to one another, past their supervisor.
//!
//! | who | says | when |
//! |---|---|---|
//! | the former | `secrets SEED TICKETS`, in hexadecimal digits | at once: what keys are made with, and session tickets |
//! | the next | `retire` | when all is ready but the disks |
//! | the former | `retired`, or `refused WHY` | when it has let go of them, and lets nobody in any more |
//! | | `invalidated LINE`, or `invalidated` alone for all that is stored | as long as it lives |

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use cache::{Invalidated, Successor};
use parking_lot::Mutex;
use proxy::{Proxy, vital_thread};
use supervisor::{Datagram, LinkSocket};
use tokio::sync::mpsc;

use crate::limits::{SUCCESSOR_LINE_BYTES_MAX, SUCCESSOR_LINES_MAX};
use crate::say::say;

/// What the one that serves knows and the next one cannot read anywhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Secrets {
    pub key_seed: [u8; 16],
    /// Of listeners without a secret of their own.
    pub tickets: Vec<u8>,
}

/// The way of the next one to the one that serves.
pub struct Former {
    link: LinkSocket,
    pub secrets: Secrets,
    /// What it has invalidated before it let go.
    before: Mutex<Vec<String>>,
}

/// Whether the process before this one still says what it invalidates.
#[derive(Clone, Default)]
pub struct FormerVoice(Arc<AtomicBool>);

impl FormerVoice {
    pub fn is_heard(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

impl Former {
    /// Waits for what it says at once.
    pub fn meet(end: OwnedFd) -> io::Result<Former> {
        let link = LinkSocket::on(end)?;
        let unknown = || io::Error::new(io::ErrorKind::InvalidData, "the process that serves says something unknown");
        let said = link.receive()?.ok_or(io::ErrorKind::UnexpectedEof)?;
        let secrets = Secrets::read(&said.text).ok_or_else(unknown)?;
        Ok(Former { link, secrets, before: Mutex::default() })
    }

    /// Has it let go of everything. One that has ended has done so.
    pub fn retire(&self) -> Result<(), String> {
        let gone = || Ok(());
        if say_text(&self.link, "retire".to_owned()).is_err() {
            return gone();
        }
        loop {
            let said = match self.link.receive() {
                Ok(Some(said)) => said.text,
                Ok(None) => return gone(),
                Err(error) => return Err(format!("the process that serves cannot be heard: {error}")),
            };
            match said.split_once(' ').map_or((said.as_str(), ""), |words| words) {
                ("retired", "") => return Ok(()),
                ("refused", why) => return Err(format!("the process that serves does not let go: {why}")),
                ("invalidated", _) => self.before.lock().push(said),
                _ => return Err("the process that serves says something unknown".to_owned()),
            }
        }
    }

    /// From here on what it invalidates is invalidated here too.
    pub fn follow(self, proxy: Proxy) -> io::Result<FormerVoice> {
        // Keys that are made otherwise mean nothing here.
        let are_keys_known = proxy.key_seed() == self.secrets.key_seed;
        let carry_out = move |said: &str| match said.split_once(' ') {
            Some(("invalidated", line)) if are_keys_known => proxy.hear_former(line),
            _ => drop(proxy.condemn_stored()),
        };
        self.before.lock().iter().for_each(|said| carry_out(said));
        let voice = FormerVoice(Arc::new(AtomicBool::new(true)));
        let heard = voice.clone();
        let follow = move || {
            while let Ok(Some(said)) = self.link.receive() {
                carry_out(&said.text);
            }
            heard.0.store(false, Ordering::Release);
        };
        vital_thread("larder-former", "what hears the former process", follow)?;
        Ok(voice)
    }
}

/// The way of the one that serves to the next.
#[derive(Clone)]
pub struct Heir {
    link: Arc<LinkSocket>,
    /// Lines that have not been said yet.
    waiting: Arc<AtomicUsize>,
}

/// The next one wants to take over.
pub struct Retire(pub Heir);

impl Heir {
    /// Says what it is told at once, and from then on tells `orders` what it wants.
    pub fn meet<T: From<Retire> + Send + 'static>(
        end: OwnedFd,
        secrets: &Secrets,
        orders: mpsc::Sender<T>,
    ) -> io::Result<()> {
        let heir = Heir { link: Arc::new(LinkSocket::on(end)?), waiting: Arc::default() };
        say_text(&heir.link, secrets.line())?;
        let hear = move || {
            while let Ok(Some(said)) = heir.link.receive() {
                if said.text == "retire" && orders.blocking_send(Retire(heir.clone()).into()).is_err() {
                    return;
                }
            }
        };
        vital_thread("larder-heir", "what hears the next process", hear).map(drop)
    }

    /// Who says to it what is invalidated here.
    pub fn successor(&self) -> io::Result<Successor> {
        let (queue, lines) = sync_channel::<String>(SUCCESSOR_LINES_MAX);
        let (link, waiting) = (Arc::clone(&self.link), Arc::clone(&self.waiting));
        let tell = move || {
            for line in lines {
                // One that is gone needs to know nothing.
                let _ = say_text(&link, line);
                waiting.fetch_sub(1, Ordering::AcqRel);
            }
        };
        vital_thread("larder-telling", "what tells the next process", tell)?;
        let teller = Teller { queue, overflowed: Mutex::new(false), waiting: Arc::clone(&self.waiting) };
        Ok(Box::new(move |invalidated| teller.tell(&invalidated)))
    }

    pub fn retired(&self) -> io::Result<()> {
        say_text(&self.link, "retired".to_owned())
    }

    pub fn refuse(&self, why: &str) {
        // One that is gone takes over from nobody.
        let _ = say_text(&self.link, format!("refused {why}"));
    }

    /// Waits until everything has been said, or for so long.
    pub fn finish(&self, patience: Duration) {
        const STEP: Duration = Duration::from_millis(10);
        let mut waited = Duration::ZERO;
        while self.waiting.load(Ordering::Acquire) > 0 && waited < patience {
            std::thread::sleep(STEP);
            waited += STEP;
        }
    }
}

struct Teller {
    queue: SyncSender<String>,
    /// More was invalidated than could wait: what was left out is all that is stored.
    overflowed: Mutex<bool>,
    waiting: Arc<AtomicUsize>,
}

impl Teller {
    /// Never waits.
    fn tell(&self, invalidated: &Invalidated) {
        let mut overflowed = self.overflowed.lock();
        let line = match invalidated.line() {
            line if *overflowed || line.len() > SUCCESSOR_LINE_BYTES_MAX => "invalidated".to_owned(),
            line => format!("invalidated {line}"),
        };
        self.waiting.fetch_add(1, Ordering::AcqRel);
        *overflowed = match self.queue.try_send(line) {
            Ok(()) => false,
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                self.waiting.fetch_sub(1, Ordering::AcqRel);
                true
            }
        };
    }
}

impl Secrets {
    fn line(&self) -> String {
        let digits = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        format!("secrets {} {}", digits(&self.key_seed), digits(&self.tickets))
    }

    fn read(text: &str) -> Option<Secrets> {
        let words: Vec<&str> = text.split(' ').collect();
        let ["secrets", seed, tickets] = words[..] else { return None };
        let bytes = |digits: &str| -> Option<Vec<u8>> {
            let pairs = digits.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).ok());
            pairs.map(|pair| u8::from_str_radix(pair?, 16).ok()).collect()
        };
        Some(Secrets { key_seed: bytes(seed)?.try_into().ok()?, tickets: bytes(tickets)? })
    }
}

fn say_text(link: &LinkSocket, text: String) -> io::Result<()> {
    link.send(&Datagram { text, sockets: Vec::new() })
}

/// Said once there is a next one.
pub fn say_retired(grace: Duration) {
    say!(
        "another process takes over; requests under way are finished here, for up to {} s (limits.upgrade_grace)",
        grace.as_secs()
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_read_as_they_were_written() {
        let secrets = Secrets { key_seed: *b"0123456789abcdef", tickets: vec![0, 255, 7] };
        assert_eq!(Secrets::read(&secrets.line()), Some(secrets));
        for text in ["", "secrets", "secrets 00 00", "secrets zz 00", "other 0 0"] {
            assert_eq!(Secrets::read(text), None, "{text}");
        }
    }

    #[test]
    fn the_next_one_is_told_the_secrets_then_waits_until_the_former_has_let_go() {
        let (one, other) = LinkSocket::pair().expect("a pair");
        let secrets = Secrets { key_seed: [7; 16], tickets: vec![1; 32] };
        let (orders, mut heard) = mpsc::channel::<Retire>(1);
        Heir::meet(one.into_fd(), &secrets, orders).expect("it can be spoken with");
        let former = Former::meet(other.into_fd()).expect("it speaks");
        assert_eq!(former.secrets, secrets);
        let retiring = std::thread::spawn(move || (former.retire(), former.retire(), former));
        let Retire(heir) = heard.blocking_recv().expect("it wants to take over");
        heir.refuse("a disk is slow");
        let Retire(heir) = heard.blocking_recv().expect("it tries again");
        say_text(&heir.link, "invalidated key 00".to_owned()).expect("told");
        heir.retired().expect("told");
        let (first, second, former) = retiring.join().expect("no panic");
        assert_eq!(first, Err("the process that serves does not let go: a disk is slow".to_owned()));
        assert_eq!(second, Ok(()));
        assert_eq!(*former.before.lock(), ["invalidated key 00"], "what was invalidated meanwhile is not lost");
        let successor = heir.successor().expect("a thread");
        successor(Invalidated::Ban(b"12345678x".to_vec().into()));
        successor(Invalidated::Ban(vec![b'x'; SUCCESSOR_LINE_BYTES_MAX].into()));
        heir.finish(Duration::from_secs(10));
        let next = || former.link.receive().expect("heard").expect("said").text;
        assert_eq!(next(), "invalidated ban 313233343536373878");
        assert_eq!(next(), "invalidated", "what is too long to be said is everything");
    }
}
