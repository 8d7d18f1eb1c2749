//! An encoding while it is made: what is written of it is read at once by who waits for it, and is kept beside its primary in the end.

use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use message::ResponseHead;
use rules::ContentCoding;
use store::Charge;
use store::sync::atomic::Ordering::Relaxed;

use crate::ban_list::Trial;
use crate::cache::Cache;
use crate::draft::at_rest;
use crate::encoding_head::{encoding_parts, recoded};
use crate::encoding_name::EncodingName;
use crate::encodings::{EncodingUnderWay, Encodings, Grade};
use crate::failure::Failure;
use crate::flight::{End, Fits, Flight, FlightHead, Inner, Notifier};
use crate::flight_body::FlightBody;
use crate::flight_state::FlightState;
use crate::kept_head::KeptHead;
use crate::key::{Key, Variant};
use crate::moment::Now;
use crate::object::{Object, ObjectParts};

/// The right and the duty to make an encoding. Dropped, it is given up.
#[derive(Debug)]
pub struct EncodingDraft {
    cache: Arc<Cache>,
    encodings: Arc<Encodings>,
    name: EncodingName,
    flight: Arc<Flight>,
    charge: Charge,
    is_open: bool,
}

impl EncodingDraft {
    pub(crate) fn new(
        cache: Arc<Cache>,
        (encodings, name): (Arc<Encodings>, EncodingName),
        flight: Arc<Flight>,
    ) -> EncodingDraft {
        let charge = cache.account().charge(0);
        EncodingDraft { cache, encodings, name, flight, charge, is_open: true }
    }

    pub fn name(&self) -> EncodingName {
        self.name
    }

    /// Appends to the body; readers see it at once. Where there is no room to keep it, it goes by.
    pub fn append(&mut self, bytes: Bytes) {
        let is_kept = self.flight.with(|inner| inner.window_bytes().is_none());
        if is_kept && self.cache.make_room(bytes.len()) {
            self.charge.resize(self.charge.bytes() + bytes.len());
        } else if is_kept {
            self.give_up_keeping();
        }
        let (ripe, wakes) = self.flight.change(|inner| {
            if inner.state == FlightState::Described {
                inner.state.step(FlightState::Filling);
            }
            inner.append(bytes, false);
            match &inner.body {
                FlightBody::Growing(growing) => growing.ripe(),
                _ => None,
            }
        });
        wakes.send(&self.flight);
        if let Some(pieces) = ripe {
            self.flight.settle(pieces);
        }
        if let Some(held) = self.flight.with(|inner| inner.window_bytes()) {
            self.charge.resize(held);
        }
    }

    /// Its place is for others again.
    fn withdraw(&self, for_good: bool) {
        let under_way: EncodingUnderWay = Arc::clone(&self.flight) as EncodingUnderWay;
        self.encodings.withdraw(self.name, &under_way, for_good);
    }

    fn give_up_keeping(&mut self) {
        self.withdraw(false);
        let ((), wakes) = self.flight.change(|inner| {
            if matches!(inner.state, FlightState::Described | FlightState::Filling) {
                inner.state.step(FlightState::Overflowed);
            }
            inner.open_window();
        });
        wakes.send(&self.flight);
    }

    /// Ready when more may be appended: what is not kept waits for its slowest reader.
    pub fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let max = self.cache.window_bytes_max();
        self.flight.with(|inner| {
            inner.poll_writer(cx, |inner| {
                inner.window_bytes().is_none_or(|held| held < max) || inner.readers.count() == 0
            })
        })
    }

    /// Ready when nobody reads any more, and nobody has left content of what is kept.
    pub fn poll_abandoned(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.flight.with(|inner| inner.poll_writer(cx, Inner::is_abandoned))
    }

    /// Is it neither kept nor read?
    pub fn is_for_nobody(&self) -> bool {
        self.flight.with(|inner| inner.window_bytes().is_some() && inner.readers.count() == 0)
    }

    /// It is whole. `primary`: what is stored of what it was made of; none where nothing was. Returns the stored encoding.
    pub fn land(mut self, primary: Option<&Arc<Object>>) -> Option<Arc<Object>> {
        self.is_open = false;
        let made = primary.and_then(|primary| self.object(primary)).filter(|object| {
            let primary = primary.expect("it was made of one");
            // A text has no other form, and gets no shorter; and nobody makes a delta twice.
            let is_final = matches!(self.name, EncodingName::Coding(ContentCoding::Identity) | EncodingName::Delta(..));
            let grade = if is_final { Grade::Best } else { Grade::Quick };
            self.cache.keep_encoding((&self.encodings, self.name, grade), object, primary)
        });
        match made {
            Some(_) => {
                let (counters, is_delta) = (&self.cache.counters, matches!(self.name, EncodingName::Delta(..)));
                counters.encodings_made.fetch_add(1, Relaxed);
                counters.deltas_made.fetch_add(u64::from(is_delta), Relaxed);
            }
            None => self.withdraw(false),
        }
        let held = (std::mem::replace(&mut self.charge, self.cache.account().charge(0)), None);
        let ((), wakes) = self.flight.change(|inner| {
            match &made {
                Some(object) => {
                    inner.state.step(FlightState::Landed);
                    inner.body = FlightBody::Landed(Arc::clone(object));
                }
                None => {
                    if inner.state == FlightState::Described || inner.state == FlightState::Filling {
                        inner.state.step(FlightState::Condemned);
                    }
                    inner.open_window();
                    inner.held = Some(held);
                }
            }
            inner.end = End::Whole(None);
        });
        wakes.send(&self.flight);
        self.cache.make_room(0);
        made
    }

    /// The encoding at rest; `None` where it was not kept.
    fn object(&mut self, primary: &Object) -> Option<Arc<Object>> {
        let unfinished = self.flight.with(|inner| match &inner.body {
            FlightBody::Growing(growing) => Some(growing.unfinished()),
            _ => None,
        })?;
        let charge = std::mem::replace(&mut self.charge, self.cache.account().charge(0));
        let (head, rendered) = recoded(primary, self.name);
        let (kept_head, out_of_line) =
            at_rest(&self.cache, unfinished, charge, |body| KeptHead::new(&head, &rendered, body));
        Some(self.cache.object(ObjectParts { out_of_line, ..encoding_parts(kept_head, primary) }))
    }

    /// It breaks off: who reads it gets a truncated end, and nothing is kept. `for_good`: nobody tries again.
    pub fn abort(mut self, failure: Failure, for_good: bool) {
        self.end(failure, for_good);
    }

    fn end(&mut self, failure: Failure, for_good: bool) {
        if !std::mem::replace(&mut self.is_open, false) {
            return;
        }
        self.withdraw(for_good);
        let ((), wakes) = self.flight.change(|inner| inner.truncate(failure));
        wakes.send(&self.flight);
    }
}

impl Drop for EncodingDraft {
    fn drop(&mut self) {
        let text = "the encoding was given up before it was whole".into();
        self.end(Failure { status: 502, token: "encoding-abandoned", text, remember_ms: 0 }, false);
    }
}

impl Flight {
    /// That of an encoding: described from its beginning, found through its primary alone.
    pub(crate) fn of_encoding(
        key: Key,
        core: usize,
        (head, notifier): (ResponseHead, &Arc<dyn Notifier>),
    ) -> Arc<Flight> {
        let flight = Flight::new(key, 0, 0, core, Arc::clone(notifier));
        let head = Arc::new(head);
        flight.with(|inner| {
            inner.describe(
                FlightHead {
                    full: Arc::clone(&head),
                    shared: head,
                    length: None,
                    facts: None,
                    received: Now::default(),
                    fits: Fits::Variant(None, Variant::PLAIN),
                    groups: None,
                    tags: None,
                    keep_ms: 0,
                    is_by_program: false,
                    trial: Trial::since(0),
                    is_manifest: false,
                    esi: None,
                },
                false,
                false,
            );
        });
        flight
    }
}
