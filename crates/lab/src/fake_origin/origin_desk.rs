//! What all connections of one thread of the origin share, and what all its threads do.
//!
//! Nothing here is borrowed across an await.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use message::{FieldSpan, Method, Version};

use crate::constructed_body::BodyRule;
use crate::fake_origin::OriginSettings;
use crate::fake_origin::origin_certificates::OriginTls;
use crate::fake_origin::origin_log::{LogLine, OriginLog};
use crate::fake_origin::origin_plan::{COUNT_PATH, Faults, Hit, Plan, Protocol, Size};
use crate::fake_origin::origin_reply::{Asked, Drawn};
use crate::fake_origin::prepared_answers::{Prepared, PreparedAnswers};
use crate::lab_clock::{Nanos, wall_seconds};
use crate::limits::SCRATCH_BYTES;
use crate::usual_fields::append_date;

/// Of all threads.
pub(crate) struct OriginShared {
    pub(crate) settings: OriginSettings,
    /// None: it is served in the clear.
    pub(crate) tls: Option<OriginTls>,
    pub(crate) begun: Nanos,
    pub(crate) requests: AtomicU64,
    /// Requests with `every`.
    turns: AtomicU64,
    pub(crate) connections: AtomicUsize,
    pub(crate) stop: AtomicBool,
}

impl OriginShared {
    pub(crate) fn new(settings: OriginSettings) -> io::Result<OriginShared> {
        let tls = settings.tls.as_ref().map(|tls| OriginTls::new(tls, settings.http2.is_some())).transpose()?;
        Ok(OriginShared {
            settings,
            tls,
            begun: Nanos::now(),
            requests: AtomicU64::new(0),
            turns: AtomicU64::new(0),
            connections: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
        })
    }
}

/// What a target asks for.
pub(crate) enum Wanted {
    Answer(Rc<Prepared>),
    Count,
    /// The plan has a word with a value that it cannot have, or one that its protocol has no fault for.
    Refuse(String),
}

pub(crate) struct OriginDesk {
    pub(crate) shared: Arc<OriginShared>,
    prepared: RefCell<PreparedAnswers>,
    pub(crate) scratch: RefCell<Box<[u8]>>,
    pub(crate) spans: RefCell<Vec<FieldSpan>>,
    pub(crate) log: RefCell<OriginLog>,
    dice: RefCell<fastrand::Rng>,
    date: Cell<(u64, [u8; DATE_AND_END_BYTES])>,
}

/// `Date: Mon, 01 Jan 2024 00:00:00 GMT`, its line end, and the empty line.
pub(crate) const DATE_AND_END_BYTES: usize = 39;

/// Who gets what is made beforehand.
pub(crate) const PLAIN_GET: Asked =
    Asked { method: Method::Get, version: Version::Http11, persistent: true, conditions: None };

impl OriginDesk {
    pub(crate) fn new(shared: Arc<OriginShared>, thread: usize, log: OriginLog) -> OriginDesk {
        let seed = shared.settings.seed.wrapping_mul(7_919).wrapping_add(thread as u64);
        OriginDesk {
            shared,
            prepared: RefCell::default(),
            scratch: RefCell::new(vec![0; SCRATCH_BYTES].into_boxed_slice()),
            spans: RefCell::new(Vec::with_capacity(64)),
            log: RefCell::new(log),
            dice: RefCell::new(fastrand::Rng::with_seed(seed)),
            date: Cell::new((u64::MAX, [0; DATE_AND_END_BYTES])),
        }
    }

    /// The last line of every head, and the end of the head.
    #[inline]
    pub(crate) fn date_and_end(&self) -> [u8; DATE_AND_END_BYTES] {
        let now = wall_seconds();
        let (second, text) = self.date.get();
        if second == now {
            return text;
        }
        let mut text = Vec::with_capacity(DATE_AND_END_BYTES);
        append_date(&mut text, now);
        text.extend_from_slice(b"\r\n");
        let text = text.try_into().expect("every date has the same length");
        self.date.set((now, text));
        text
    }

    /// Reads a target, or knows it already.
    pub(crate) fn wanted(&self, target: &[u8], path: &[u8], query: &[u8], protocol: Protocol) -> Wanted {
        let known = self.prepared.borrow().get(target);
        let prepared = match known {
            Some(prepared) => prepared,
            None if path == COUNT_PATH.as_bytes() => return Wanted::Count,
            None => {
                let (path, query) = (String::from_utf8_lossy(path), String::from_utf8_lossy(query));
                match Plan::read(&path, &query, self.shared.settings.mean_bytes) {
                    Ok(plan) => self.prepared.borrow_mut().add(target, plan, &PLAIN_GET),
                    Err(sentence) => return Wanted::Refuse(sentence),
                }
            }
        };
        match prepared.plan.faults.misfit(protocol) {
            None => Wanted::Answer(prepared),
            Some(sentence) => Wanted::Refuse(sentence.to_owned()),
        }
    }

    /// Writes a request down, if anybody wants that.
    pub(crate) fn note(&self, line: &LogLine<'_>) {
        let mut log = self.log.borrow_mut();
        if log.is_on() {
            log.note(line);
        }
    }

    /// How long this request has to wait.
    pub(crate) fn draw_delay(&self, plan: &Plan) -> Duration {
        plan.delay.draw(&mut self.dice.borrow_mut())
    }

    /// What is left of a stall of the whole origin.
    #[inline]
    pub(crate) fn stall(&self) -> Option<Duration> {
        self.shared.settings.stalls.as_ref()?.rest(self.shared.begun, Nanos::now())
    }

    /// What dice and counters say for this one request.
    pub(crate) fn draw(&self, plan: &Plan) -> Drawn {
        let mut dice = self.dice.borrow_mut();
        let size = match plan.size {
            Size::Fixed(size) => size,
            Size::UpTo(most) => dice.u64(..=most),
        };
        let rule = if plan.random { BodyRule::Noise { seed: dice.u64(..) } } else { plan.rule };
        let error = plan.errors.filter(|&(share, _)| dice.f64() < share).map(|(_, status)| status);
        let is_hit = plan.faults != Faults::default()
            && match plan.hit {
                Hit::All => true,
                Hit::Every(n) => (self.shared.turns.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(n),
                Hit::Share(share) => dice.f64() < share,
            };
        Drawn { size, rule, error, faults: if is_hit { plan.faults } else { Faults::default() } }
    }
}
