//! The encodings of a stored response: the same representation in other content codings (RFC 9110 §8.4), each made of it once.
//!
//! An encoding is an object with a head and a body of its own, which is found through the response that it was made of, the
//! primary, and in no other way. It lives and dies with that: what purges, bans, replaces or evicts the primary takes its encodings along;
//! a 304 that gives the primary a new head gives them one, too. When memory is short they go first, unless they were used.

use std::any::Any;
use std::sync::Arc;

use rules::{ContentCoding, DeltaCoding, DictionaryHash};
use store::sync::Mutex;
use store::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::encoding_name::EncodingName;
use crate::limits::DELTAS_MAX;
use crate::moment::Now;
use crate::object::Object;

/// Those of one primary.
#[derive(Debug, Default)]
pub struct Encodings {
    places: Mutex<Places>,
    /// What those that are made take; changed under the lock of the eviction, which weighs them with their primary.
    bytes: AtomicUsize,
}

#[derive(Debug, Default)]
struct Places {
    /// Their primary is gone.
    is_closed: bool,
    by_coding: [Place; ContentCoding::ALL.len()],
    /// What differs from a dictionary; those that were asked for.
    deltas: Vec<(DeltaCoding, DictionaryHash, Place)>,
}

#[derive(Debug, Default)]
enum Place {
    #[default]
    Free,
    UnderWay(EncodingUnderWay),
    /// The same, by somebody whom nobody can follow.
    Promised,
    Made(Arc<Object>, Grade),
    /// It was no shorter than the primary, or it could not be made: nobody tries again.
    Pointless,
}

/// How hard an encoding that is made was tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grade {
    /// While somebody waited.
    Quick,
    /// So, and with time it is being made once more.
    Bettered,
    Best,
}

/// What makes an encoding, as `asked_encoding.rs` knows it: an object must not know what it comes from.
pub(crate) type EncodingUnderWay = Arc<dyn Any + Send + Sync>;

/// What stands in the place of a coding for who wants it.
pub(crate) enum FoundEncoding {
    Made(Arc<Object>),
    UnderWay(EncodingUnderWay),
    /// What was begun for who asks now.
    Begun,
    None,
}

/// How it stands with one encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EncodingState {
    Free,
    UnderWay,
    /// While somebody waited: with time it would get shorter.
    Quick,
    Made,
    Pointless,
}

impl Place {
    fn state(&self) -> EncodingState {
        match self {
            Place::Free => EncodingState::Free,
            Place::UnderWay(_) | Place::Promised => EncodingState::UnderWay,
            Place::Made(_, Grade::Quick) => EncodingState::Quick,
            Place::Made(_, Grade::Bettered | Grade::Best) => EncodingState::Made,
            Place::Pointless => EncodingState::Pointless,
        }
    }
}

impl Places {
    fn get(&self, name: EncodingName) -> Option<&Place> {
        match name {
            EncodingName::Coding(coding) => Some(&self.by_coding[coding as usize]),
            EncodingName::Delta(coding, dictionary) => {
                let found = self.deltas.iter().find(|(known, of, _)| (*known, *of) == (coding, dictionary));
                found.map(|(_, _, place)| place)
            }
        }
    }

    fn get_mut(&mut self, name: EncodingName) -> Option<&mut Place> {
        match name {
            EncodingName::Coding(coding) => Some(&mut self.by_coding[coding as usize]),
            EncodingName::Delta(coding, dictionary) => {
                let found = self.deltas.iter_mut().find(|(known, of, _)| (*known, *of) == (coding, dictionary));
                found.map(|(_, _, place)| place)
            }
        }
    }

    /// The same, made where it is not there yet. `None`: there are too many, and all are of use.
    fn get_or_add(&mut self, name: EncodingName) -> Option<&mut Place> {
        if let EncodingName::Delta(coding, dictionary) = name
            && self.get(name).is_none()
        {
            if self.deltas.len() >= DELTAS_MAX {
                let is_idle = |place: &Place| matches!(place, Place::Free | Place::Pointless);
                let idle = self.deltas.iter().position(|(_, _, place)| is_idle(place))?;
                self.deltas.swap_remove(idle);
            }
            self.deltas.push((coding, dictionary, Place::Free));
        }
        self.get_mut(name)
    }

    fn all(&self) -> impl Iterator<Item = (EncodingName, &Place)> {
        let coded = ContentCoding::ALL.into_iter().map(EncodingName::Coding).zip(&self.by_coding);
        let deltas = self.deltas.iter().map(|(coding, of, place)| (EncodingName::Delta(*coding, *of), place));
        coded.chain(deltas)
    }

    fn all_mut(&mut self) -> impl Iterator<Item = &mut Place> {
        self.by_coding.iter_mut().chain(self.deltas.iter_mut().map(|(_, _, place)| place))
    }
}

impl Encodings {
    /// How it stands with each of the codings, at the place of its number.
    pub fn states(&self) -> [EncodingState; ContentCoding::ALL.len()] {
        let places = self.places.lock();
        std::array::from_fn(|at| places.by_coding[at].state())
    }

    /// How it stands with what differs from a dictionary, in each of the codings that there are for that, at the place of its number.
    pub fn delta_states(&self, dictionary: DictionaryHash) -> [EncodingState; DeltaCoding::ALL.len()] {
        let places = self.places.lock();
        DeltaCoding::ALL
            .map(|coding| places.get(EncodingName::Delta(coding, dictionary)).map_or(EncodingState::Free, Place::state))
    }

    /// The one in a coding, or what `begin` says is under way now, where nobody has begun it.
    pub(crate) fn find_or_begin(&self, name: EncodingName, begin: impl FnOnce() -> EncodingUnderWay) -> FoundEncoding {
        let mut places = self.places.lock();
        let is_closed = places.is_closed;
        let Some(place) = places.get_or_add(name) else { return FoundEncoding::None };
        match place {
            Place::Made(object, _) => FoundEncoding::Made(Arc::clone(object)),
            Place::UnderWay(under_way) => FoundEncoding::UnderWay(Arc::clone(under_way)),
            Place::Free if !is_closed => {
                *place = Place::UnderWay(begin());
                FoundEncoding::Begun
            }
            Place::Free | Place::Promised | Place::Pointless => FoundEncoding::None,
        }
    }

    /// The one that is made in a coding.
    pub fn made(&self, name: impl Into<EncodingName>) -> Option<Arc<Object>> {
        match self.places.lock().get(name.into()) {
            Some(Place::Made(object, _)) => Some(Arc::clone(object)),
            _ => None,
        }
    }

    /// The right to make one, with time, that nobody can follow while it is made. False: somebody has it, or it is as short as it gets.
    pub fn promise(&self, coding: ContentCoding) -> bool {
        let mut places = self.places.lock();
        let place = &mut places.by_coding[coding as usize];
        match place {
            Place::Free => *place = Place::Promised,
            Place::Made(_, grade @ Grade::Quick) => *grade = Grade::Bettered,
            _ => return false,
        }
        true
    }

    /// It is not made after all; `for_good`: and nobody is to try again.
    pub fn break_promise(&self, coding: ContentCoding, for_good: bool) {
        let mut places = self.places.lock();
        let place = &mut places.by_coding[coding as usize];
        match place {
            Place::Promised => *place = if for_good { Place::Pointless } else { Place::Free },
            Place::Made(_, grade @ Grade::Bettered) => *grade = if for_good { Grade::Best } else { Grade::Quick },
            _ => {}
        }
    }

    /// It was made, and is no use: nobody is to try again. What was there already stays.
    pub(crate) fn note_pointless(&self, name: EncodingName) {
        match self.places.lock().get_mut(name) {
            Some(Place::Made(_, grade)) => *grade = Grade::Best,
            Some(place) => *place = Place::Pointless,
            None => {}
        }
    }

    /// The same of one that was under way: this, and not what somebody has begun since it was given up.
    pub(crate) fn withdraw(&self, name: EncodingName, under_way: &EncodingUnderWay, for_good: bool) {
        let mut places = self.places.lock();
        let Some(place) = places.get_mut(name) else { return };
        if let Place::UnderWay(known) = place
            && Arc::ptr_eq(known, under_way)
        {
            *place = if for_good { Place::Pointless } else { Place::Free };
        }
    }

    /// What those that are made take of memory.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }

    /// Says of each whether a hot table may serve it, as its primary's liveness says. Under the shard's lock.
    pub(crate) fn follow_liveness(&self, liveness: u8) {
        self.each_made(|object| object.liveness().set(liveness));
    }

    /// The primary was withdrawn.
    pub(crate) fn withdraw_all(&self) {
        self.each_made(|object| {
            object.withdraw();
        });
    }

    /// The primary's life was shortened. After that no encoding is kept that a hot table serves.
    pub(crate) fn shorten_all(&self, ttl_ms: u64, grace_ms: Option<u64>, keep_ms: Option<u64>, now: Now) {
        self.each_made(|object| {
            object.shorten(ttl_ms, grace_ms, keep_ms, now);
        });
    }

    /// The primary is gone; what `heir` has of the bodies stays. Under the lock of whoever took the primary out.
    pub(crate) fn close(&self, heir: Option<&Encodings>) {
        let taken = {
            let mut places = self.places.lock();
            std::mem::replace(&mut *places, Places { is_closed: true, ..Places::default() })
        };
        for (name, place) in taken.all() {
            if let Place::Made(object, _) = place {
                let inherited = heir.and_then(|heir| heir.made(name));
                object.kill(inherited.as_deref());
            }
        }
    }

    /// How often they were used of late, as a seat counts; from here on they count anew.
    pub(crate) fn take_uses(&self) -> u8 {
        let mut uses = 0;
        self.each_made(|object| uses = uses.max(object.take_uses()));
        uses
    }

    /// Gives up all that are made, and says what they took. Their primary must not sit in the eviction.
    pub(crate) fn give_up(&self) -> usize {
        let mut places = self.places.lock();
        for place in places.all_mut() {
            if let Place::Made(object, _) = place {
                object.kill(None);
                *place = Place::Free;
            }
        }
        self.bytes.swap(0, Relaxed)
    }

    /// The same of one, whose primary may sit.
    pub(crate) fn give_up_one(&self, coding: ContentCoding) {
        let place = &mut self.places.lock().by_coding[coding as usize];
        if let Place::Made(object, _) = place {
            self.bytes.fetch_sub(object.own_weight(), Relaxed);
            object.kill(None);
            *place = Place::Free;
        }
    }

    fn each_made(&self, mut each: impl FnMut(&Object)) {
        for (_, place) in self.places.lock().all() {
            if let Place::Made(object, _) = place {
                each(object);
            }
        }
    }

    /// Puts what was made in its place, if its primary still is what is stored. What was there before is gone.
    pub(crate) fn keep(&self, (name, grade): (EncodingName, Grade), object: &Arc<Object>, primary: &Object) -> bool {
        let mut places = self.places.lock();
        if places.is_closed || primary.is_dead() {
            return false;
        }
        let Some(place) = places.get_or_add(name) else { return false };
        object.liveness().set(primary.liveness().get());
        self.bytes.fetch_add(object.own_weight(), Relaxed);
        let made = Place::Made(Arc::clone(object), grade);
        if let Place::Made(before, _) = std::mem::replace(place, made) {
            self.bytes.fetch_sub(before.own_weight(), Relaxed);
            before.kill(None);
        }
        true
    }

    /// Those that are made, and how hard each was tried.
    pub(crate) fn all_made(&self) -> Vec<(EncodingName, Grade, Arc<Object>)> {
        let places = self.places.lock();
        let made = |(name, place): (EncodingName, &Place)| match place {
            Place::Made(object, grade) => Some((name, *grade, Arc::clone(object))),
            _ => None,
        };
        places.all().filter_map(made).collect()
    }

    /// The same of what has a primary that is stored by nobody yet.
    pub(crate) fn keep_inherited(&self, (name, grade): (EncodingName, Grade), object: Arc<Object>) {
        if let Some(place) = self.places.lock().get_or_add(name) {
            self.bytes.fetch_add(object.own_weight(), Relaxed);
            // Whoever makes it shorter does so for the one before.
            let grade = if grade == Grade::Bettered { Grade::Quick } else { grade };
            *place = Place::Made(object, grade);
        }
    }
}
