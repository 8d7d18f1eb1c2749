//! Looks after the certificate for one set of names: orders it, renews it, and leaves it alone when somebody else does.
//!
//! A turn looks at the folder. Where nothing is due it says how long that will be so. What is due is done under the lock of these
//! names, after another look, for somebody else may have done it meanwhile. What failed is noted in the folder: the pause holds
//! for a restarted process and for other nodes too.

use std::sync::Arc;
use std::time::Duration;

use tls::{Certificate, Validity};
use tokio::sync::Semaphore;

use crate::certificate_authority::{Authority, Issued};
use crate::limits::{
    LOCK_LOOK_EVERY, LOOK_EVERY, PAUSE_MAX, PAUSE_MIN, RENEWAL_INFO_EVERY_MAX_S, RENEWAL_INFO_EVERY_MIN_S,
    RENEWAL_INFO_EVERY_S,
};
use crate::names::NameSet;
use crate::order_failure::Failure;
use crate::renewal_note::RenewalNote;
use crate::schedule::{pause, renew_at_s, try_again_s};
use crate::state_folder::{self, StateFiles, StateFolder};

/// What a turn needs of the world.
pub struct Surroundings<'a> {
    /// The time of day, in seconds since 1970.
    pub now_s: &'a dyn Fn() -> u64,
    /// Dice: 0..1.
    pub luck: &'a dyn Fn() -> f64,
    /// Who hears what happens.
    pub tell: &'a dyn Fn(News),
}

/// What happens, for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// An order begins.
    Ordering,
    /// A certificate has come, and is good until then.
    Stored { until_s: u64 },
    /// How often in a row, and when it is tried again.
    Failed { why: String, failures: u32, try_at_s: u64 },
    /// Somebody else orders.
    Waiting { owner: String },
    /// What lay in the folder could not be used; what was done about it.
    Broken(String),
    /// The authority wants it renewed for a reason that it explains there.
    Explained(String),
}

/// How things stand after a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The next one is after so long.
    pub next: Duration,
    /// Until when the certificate is good that is stored.
    pub until_s: Option<u64>,
    pub renew_at_s: Option<u64>,
    /// Since it last went well.
    pub failures: u32,
    pub last_failure: Option<String>,
}

/// What lies in the folder.
enum Found {
    Nothing,
    Good(Stored),
    /// And why it is no certificate.
    Broken(String),
}

impl Found {
    fn good(&self) -> Option<&Stored> {
        if let Found::Good(stored) = self { Some(stored) } else { None }
    }
}

/// A certificate of the folder.
struct Stored {
    /// The chain and the key.
    text: String,
    validity: Validity,
}

pub struct Renewer<A> {
    names: NameSet,
    files: StateFiles,
    folder: StateFolder,
    authority: A,
    pause_first: Duration,
    /// Orders of this process.
    orders: Arc<Semaphore>,
    /// It has not looked yet: an operator who starts it again may have mended what failed.
    is_fresh: bool,
    waits: bool,
}

impl<A: Authority> Renewer<A> {
    /// `pause_first`: after the first failure nothing is tried for so long.
    pub fn new(
        names: NameSet,
        folder: StateFolder,
        authority: A,
        pause_first: Duration,
        orders: Arc<Semaphore>,
    ) -> Renewer<A> {
        let files = folder.files_of(&names);
        let pause_first = pause_first.max(PAUSE_MIN);
        Renewer { names, files, folder, authority, pause_first, orders, is_fresh: true, waits: false }
    }

    pub fn names(&self) -> &NameSet {
        &self.names
    }

    #[cfg(test)]
    pub(crate) fn files(&self) -> &StateFiles {
        &self.files
    }

    /// Looks, and does what is due.
    pub async fn turn(&mut self, around: &Surroundings<'_>) -> Turn {
        match self.look(around).await {
            Ok(turn) => turn,
            // The folder cannot be used, so nothing can be noted either.
            Err(why) => {
                let try_at_s = (around.now_s)() + self.pause_first.as_secs();
                (around.tell)(News::Failed { why: why.clone(), failures: 1, try_at_s });
                Turn { next: self.pause_first, until_s: None, renew_at_s: None, failures: 1, last_failure: Some(why) }
            }
        }
    }

    async fn look(&mut self, around: &Surroundings<'_>) -> Result<Turn, String> {
        let now_s = (around.now_s)();
        let (found, (note, _)) = (self.found()?, RenewalNote::read(&self.files.note));
        let note = note.believed_at(now_s);
        self.is_fresh &= note.failures > 0;
        if !matches!(found, Found::Broken(_)) && now_s < self.acts_at_s(found.good(), &note) {
            self.waits = false;
            return Ok(self.rest(now_s, found.good(), note));
        }
        self.folder.make()?;
        let Ok(_permit) = Arc::clone(&self.orders).acquire_owned().await else { return Err("it is over".to_owned()) };
        let _lock = match state_folder::lock(&self.files.lock, now_s)? {
            Ok(lock) => lock,
            Err(owner) => {
                if !std::mem::replace(&mut self.waits, true) {
                    (around.tell)(News::Waiting { owner });
                }
                return Ok(Turn { next: LOCK_LOOK_EVERY, ..self.rest(now_s, found.good(), note) });
            }
        };
        self.waits = false;
        self.act(around).await
    }

    /// Nobody else acts meanwhile.
    async fn act(&mut self, around: &Surroundings<'_>) -> Result<Turn, String> {
        let now_s = (around.now_s)();
        let mut stored = match self.found()? {
            Found::Nothing => None,
            Found::Good(stored) => Some(stored),
            Found::Broken(why) => {
                let aside = state_folder::set_aside(&self.files.certificate, now_s)?;
                (around.tell)(News::Broken(format!("{why}; it is kept as {}", aside.display())));
                None
            }
        };
        let (note, broken) = RenewalNote::read(&self.files.note);
        let mut note = note.believed_at(now_s);
        if let Some(why) = broken {
            (around.tell)(News::Broken(format!("{why}; when to renew is found out anew")));
        }
        if let Some(stored) = &stored
            && self.must_ask(now_s, stored, &note)
        {
            self.ask(around, stored, &mut note).await;
            note.write(&self.files.note)?;
        }
        if now_s >= self.acts_at_s(stored.as_ref(), &note) {
            (around.tell)(News::Ordering);
            // An order that failed is made again without naming the one that it replaces: that may be why.
            let replaced = stored.as_ref().filter(|_| note.window.is_some() && note.failures == 0);
            let replaced = replaced.map(|stored| stored.text.as_str());
            let issued = self.authority.issue(&self.names, replaced, note.failures, now_s).await;
            let now_s = (around.now_s)();
            match issued.and_then(|issued| self.check(issued)) {
                Ok(new) => {
                    state_folder::write(&self.files.certificate, new.text.as_bytes())?;
                    note = self.renewed(now_s, &new, (around.luck)());
                    (around.tell)(News::Stored { until_s: new.validity.until_s });
                    stored = Some(new);
                }
                Err(failure) => {
                    self.failed(now_s, &failure, &mut note, (around.luck)());
                    let (why, failures, try_at_s) = (failure.to_string(), note.failures, note.try_at_s);
                    (around.tell)(News::Failed { why, failures, try_at_s });
                }
            }
            note.write(&self.files.note)?;
        }
        self.is_fresh = false;
        Ok(self.rest((around.now_s)(), stored.as_ref(), note))
    }

    /// What cannot be read is no reason to put another one in its place, and an error.
    fn found(&self) -> Result<Found, String> {
        let Some(text) = state_folder::read(&self.files.certificate)? else { return Ok(Found::Nothing) };
        let broken =
            |why: &dyn std::fmt::Display| Found::Broken(format!("{}: {why}", self.files.certificate.display()));
        Ok(match (Certificate::read(&text, &text), String::from_utf8(text)) {
            (Ok(certificate), Ok(text)) => Found::Good(Stored { text, validity: certificate.validity() }),
            (Err(fault), _) => broken(&fault),
            (_, Err(error)) => broken(&error),
        })
    }

    fn must_ask(&self, now_s: u64, stored: &Stored, note: &RenewalNote) -> bool {
        note.until_s != stored.validity.until_s || note.ask_at_s <= now_s
    }

    /// When there is something to be done.
    fn acts_at_s(&self, stored: Option<&Stored>, note: &RenewalNote) -> u64 {
        let try_at_s = match self.is_fresh {
            true => note.try_at_s.min((note.failed_at_s + self.pause_first.as_secs()).max(note.put_off_s)),
            false => note.try_at_s,
        };
        match stored {
            None => try_at_s,
            Some(stored) if note.until_s != stored.validity.until_s => 0,
            Some(_) => note.renew_at_s.max(try_at_s).max(note.rest_until_s).min(note.ask_at_s),
        }
    }

    /// Asks the authority when it wants the certificate renewed. Whether it answers changes nothing for who has one that is good.
    async fn ask(&self, around: &Surroundings<'_>, stored: &Stored, note: &mut RenewalNote) {
        let now_s = (around.now_s)();
        let validity = stored.validity;
        if note.until_s != validity.until_s {
            // It is another one, which somebody put there.
            *note = RenewalNote { until_s: validity.until_s, renew_at_s: 0, window: None, ..note.clone() };
        }
        let info = self.authority.renewal_info(&stored.text).await.unwrap_or_default();
        let again_s = info.as_ref().map_or(RENEWAL_INFO_EVERY_S, |info| info.again_s);
        note.ask_at_s = now_s + again_s.clamp(RENEWAL_INFO_EVERY_MIN_S, RENEWAL_INFO_EVERY_MAX_S);
        let window = info.as_ref().map(|info| info.window).or(note.window);
        // The dice are thrown once for a window, not at every look.
        if note.renew_at_s == 0 || window != note.window {
            (note.window, note.renew_at_s) = (window, renew_at_s(validity, window, (around.luck)()));
            if let Some(url) = info.and_then(|info| info.explanation) {
                (around.tell)(News::Explained(url));
            }
        }
    }

    /// Is it what was ordered?
    fn check(&self, issued: Issued) -> Result<Stored, Failure> {
        let useless = |why: &str| Failure::new(format!("what the authority sent cannot be used: {why}"));
        let text = format!("{}\n{}", issued.chain.trim_end(), issued.key);
        let certificate =
            Certificate::read(text.as_bytes(), text.as_bytes()).map_err(|fault| useless(&fault.to_string()))?;
        if let Some(name) = self.names.names().iter().find(|name| !certificate.names().contains(name)) {
            return Err(useless(&format!("it is not for {name}")));
        }
        Ok(Stored { text, validity: certificate.validity() })
    }

    fn renewed(&self, now_s: u64, new: &Stored, luck: f64) -> RenewalNote {
        let life_s = new.validity.until_s.saturating_sub(new.validity.from_s);
        // Whatever anybody says of it: no second one soon, or an authority whose clock is wrong would be asked without end.
        let rest_s = (life_s / 10).max(self.pause_first.as_secs()).min(PAUSE_MAX.as_secs());
        RenewalNote {
            until_s: new.validity.until_s,
            renew_at_s: renew_at_s(new.validity, None, luck),
            ask_at_s: now_s + RENEWAL_INFO_EVERY_MIN_S.min(life_s / 20),
            rest_until_s: now_s + rest_s,
            ..RenewalNote::default()
        }
    }

    fn failed(&self, now_s: u64, failure: &Failure, note: &mut RenewalNote, luck: f64) {
        note.failures += 1;
        note.failed_at_s = now_s;
        let pause = pause(self.pause_first, note.failures, luck);
        note.put_off_s = failure.not_before_s().map_or(0, |theirs_s| try_again_s(now_s, PAUSE_MIN, Some(theirs_s)));
        note.try_at_s = try_again_s(now_s, pause, failure.not_before_s());
        note.last_failure = Some(failure.to_string());
    }

    fn rest(&self, now_s: u64, stored: Option<&Stored>, note: RenewalNote) -> Turn {
        let until_next = Duration::from_secs(self.acts_at_s(stored, &note).saturating_sub(now_s));
        Turn {
            next: until_next.clamp(PAUSE_MIN, LOOK_EVERY),
            until_s: stored.map(|stored| stored.validity.until_s),
            renew_at_s: stored.map(|_| note.renew_at_s.max(note.rest_until_s)),
            failures: note.failures,
            last_failure: note.last_failure,
        }
    }
}
