//! Texts that clients have from us, each by its SHA-256: a later text of the same site can be told them by what differs (RFC 9842).
//!
//! Whoever reads a stored response as a text notes it here; the text lies in the response as long as that is stored. When the response is
//! replaced, purged or banned, which says that another is to come, the text is kept beside the store, within [`DictionaryBounds`] and
//! on its account. What is evicted is forgotten, and when memory is short what is kept here goes before any response does.
//!
//! A text is found by requests of its own origin alone, to whose URLs its response said that it is a dictionary.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use hashbrown::HashMap;
use rules::{DictionaryHash, DictionaryUse};
use store::sync::Mutex;
use store::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use store::{Account, Charge};

use crate::dictionary_name::TextName;
use crate::dictionary_text::{DictionaryText, KeptText};
use crate::key::Key;
use crate::limits::{DICTIONARIES_MAX, DICTIONARY_NOTE_BYTES, DICTIONARY_USES_MAX};
use crate::moment::Now;
use crate::object::Object;

/// How much is kept beside the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DictionaryBounds {
    /// Texts of one origin for the same URLs.
    pub texts_max: usize,
    /// Bytes of all texts, as they lie there.
    pub bytes_max: usize,
    /// For how long.
    pub age_ms_max: u64,
}

/// For whom a text is a dictionary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DictionaryScope {
    /// The digest of scheme and authority.
    pub origin: Key,
    pub used_for: DictionaryUse,
}

/// A request that a dictionary is wanted for.
#[derive(Clone, Copy, Debug)]
pub struct DictionaryQuestion<'a> {
    pub hash: DictionaryHash,
    /// What its client says that it is called.
    pub id: &'a str,
    /// As in [`DictionaryScope`].
    pub origin: Key,
    pub path: &'a [u8],
    pub query: Option<&'a [u8]>,
}

/// All of them.
#[derive(Debug)]
pub(crate) struct Dictionaries {
    account: Arc<Account>,
    known: Mutex<KnownTexts>,
    /// Of what is kept beside the store.
    kept_bytes: AtomicUsize,
    pub given_up: AtomicU64,
}

#[derive(Debug, Default)]
struct KnownTexts {
    bounds: DictionaryBounds,
    texts: HashMap<TextName, KnownText>,
    /// The same, the oldest first.
    in_order: VecDeque<TextName>,
    /// Whose responses have left, and whose bodies were not copied yet.
    leaving: Vec<TextName>,
}

#[derive(Debug)]
struct KnownText {
    /// The last of those that were said of it.
    uses: Vec<DictionaryUse>,
    place: TextPlace,
    /// Asked for since it was last in danger.
    is_used: bool,
    _charge: Charge,
}

#[derive(Debug)]
enum TextPlace {
    Stored(Weak<Object>),
    /// The response is gone from the store, and its body still here.
    Gone(Arc<Object>),
    Kept {
        text: Arc<KeptText>,
        since_ms: u64,
    },
}

impl KnownText {
    fn is_kept(&self) -> bool {
        matches!(self.place, TextPlace::Kept { .. })
    }

    fn is_stored_as(&self, object: &Object) -> bool {
        matches!(&self.place, TextPlace::Stored(known) if std::ptr::eq(known.as_ptr(), object))
    }
}

impl Dictionaries {
    pub fn new(account: &Arc<Account>) -> Dictionaries {
        Dictionaries {
            account: Arc::clone(account),
            known: Mutex::default(),
            kept_bytes: AtomicUsize::new(0),
            given_up: AtomicU64::new(0),
        }
    }

    pub fn set_bounds(&self, bounds: DictionaryBounds) {
        let mut known = self.known.lock();
        known.bounds = bounds;
        self.trim(&mut known, bounds.bytes_max, None);
    }

    /// The text of this response is the one of this hash. Wherever it was known until now, it is found there.
    pub fn note(&self, hash: DictionaryHash, scope: DictionaryScope, object: &Arc<Object>) {
        let (name, DictionaryScope { used_for, .. }) = ((hash, scope.origin), scope);
        let mut known = self.known.lock();
        let mut uses = known.texts.get(&name).map_or_else(Vec::new, |text| text.uses.clone());
        uses.retain(|known| *known != used_for);
        uses.push(used_for);
        if uses.len() > DICTIONARY_USES_MAX {
            uses.remove(0);
        }
        self.take_out(&mut known, name);
        while known.texts.len() >= DICTIONARIES_MAX {
            let Some(oldest) = known.in_order.front().copied() else { break };
            self.forget(&mut known, oldest);
        }
        let (place, charge) = (TextPlace::Stored(Arc::downgrade(object)), self.account.charge(DICTIONARY_NOTE_BYTES));
        known.texts.insert(name, KnownText { uses, place, is_used: false, _charge: charge });
        known.in_order.push_back(name);
        object.note_dictionary(name);
        // It may have left while its text was read: who took it out did not know of this.
        if object.is_dead() {
            known.take_over(name, object);
        }
    }

    fn take_out(&self, known: &mut KnownTexts, name: TextName) -> Option<KnownText> {
        let text = known.texts.remove(&name)?;
        known.in_order.retain(|other| *other != name);
        if let TextPlace::Kept { text, .. } = &text.place {
            self.kept_bytes.fetch_sub(text.len(), Relaxed);
        }
        Some(text)
    }

    fn forget(&self, known: &mut KnownTexts, name: TextName) {
        if self.take_out(known, name).is_some_and(|text| text.is_kept()) {
            self.given_up.fetch_add(1, Relaxed);
        }
    }

    pub fn find(&self, question: &DictionaryQuestion<'_>) -> Option<DictionaryText> {
        let mut known = self.known.lock();
        let text = known.texts.get_mut(&(question.hash, question.origin))?;
        let is_for_it =
            |said: &DictionaryUse| *said.id == *question.id && said.pattern.matches(question.path, question.query);
        if !text.uses.iter().any(is_for_it) {
            return None;
        }
        let found = match &text.place {
            TextPlace::Stored(object) => DictionaryText::Stored(object.upgrade()?),
            TextPlace::Gone(object) => DictionaryText::Stored(Arc::clone(object)),
            TextPlace::Kept { text, .. } => DictionaryText::Kept(Arc::clone(text)),
        };
        text.is_used = true;
        Some(found)
    }

    /// A response left the store; `heir` came in its place. Under the lock of its shard, and of the eviction.
    pub fn note_gone(&self, object: &Arc<Object>, heir: Option<&Arc<Object>>) {
        let Some(name) = object.dictionary() else { return };
        let mut known = self.known.lock();
        match heir.filter(|heir| object.has_body_of(heir)) {
            Some(heir) => {
                if let Some(text) = known.texts.get_mut(&name).filter(|text| text.is_stored_as(object)) {
                    text.place = TextPlace::Stored(Arc::downgrade(heir));
                    heir.note_dictionary(name);
                }
            }
            None => known.take_over(name, object),
        }
    }

    /// It was evicted: nothing says that another is to come, and its bytes are needed.
    pub fn note_evicted(&self, object: &Object) {
        let Some(name) = object.dictionary() else { return };
        let mut known = self.known.lock();
        if known.texts.get(&name).is_some_and(|text| text.is_stored_as(object)) {
            self.forget(&mut known, name);
        }
    }

    /// For a tick: copies the bodies of what has left, so that their responses can go, and forgets what is too old.
    pub fn settle(&self, now: Now) {
        let leaving = {
            let mut known = self.known.lock();
            if known.texts.is_empty() {
                return;
            }
            self.forget_the_old(&mut known, now);
            std::mem::take(&mut known.leaving)
        };
        for name in leaving {
            let object = match self.known.lock().texts.get(&name) {
                Some(KnownText { place: TextPlace::Gone(object), .. }) => Arc::clone(object),
                _ => continue,
            };
            // With nothing locked: it may be megabytes.
            let copy = Arc::new(KeptText::of(&object, &self.account));
            self.keep(name, (object, copy), now);
        }
    }

    /// Keeps a copy in the place of what has left, and gives up what there is no room for any more.
    fn keep(&self, name: TextName, (object, copy): (Arc<Object>, Arc<KeptText>), now: Now) {
        let mut known = self.known.lock();
        let (texts_max, bytes_max) = (known.bounds.texts_max, known.bounds.bytes_max);
        let Some(text) = known.texts.get_mut(&name) else { return };
        if !matches!(&text.place, TextPlace::Gone(leaving) if Arc::ptr_eq(leaving, &object)) {
            return;
        }
        self.kept_bytes.fetch_add(copy.len(), Relaxed);
        text.place = TextPlace::Kept { text: copy, since_ms: now.mono_ms };
        let uses = text.uses.clone();
        let is_alike = |other: &TextName, text: &KnownText| {
            text.is_kept() && other.1 == name.1 && text.uses.iter().any(|said| uses.contains(said))
        };
        let alike = known.in_order.iter().filter(|other| is_alike(other, &known.texts[*other]));
        let alike: Vec<TextName> = alike.copied().collect();
        let too_many = alike.len().saturating_sub(texts_max);
        alike.into_iter().take(too_many).for_each(|oldest| self.forget(&mut known, oldest));
        self.trim(&mut known, bytes_max, Some(name));
    }

    fn forget_the_old(&self, known: &mut KnownTexts, now: Now) {
        let age_ms_max = known.bounds.age_ms_max;
        let is_over = |text: &KnownText| match &text.place {
            TextPlace::Stored(object) => object.strong_count() == 0,
            TextPlace::Gone(_) => false,
            TextPlace::Kept { since_ms, .. } => now.mono_ms.saturating_sub(*since_ms) > age_ms_max,
        };
        let old: Vec<TextName> = known.texts.iter().filter(|(_, text)| is_over(text)).map(|(name, _)| *name).collect();
        old.into_iter().for_each(|name| self.forget(known, name));
    }

    /// Gives up what is kept, down to so many bytes: the oldest first; what was asked for meanwhile only if the others were not enough, and
    /// the one that has just come only if nothing was.
    fn trim(&self, known: &mut KnownTexts, bytes_max: usize, new: Option<TextName>) {
        for (spares_used, spares_new) in [(true, true), (false, true), (false, false)] {
            if self.kept_bytes.load(Relaxed) <= bytes_max {
                return;
            }
            let is_in_question =
                |name: &&TextName| known.texts[*name].is_kept() && !(spares_new && Some(**name) == new);
            let in_question: Vec<TextName> = known.in_order.iter().filter(is_in_question).copied().collect();
            for name in in_question {
                let is_used = |text: &mut KnownText| std::mem::take(&mut text.is_used);
                let is_spared = spares_used && known.texts.get_mut(&name).is_some_and(is_used);
                if !is_spared && self.kept_bytes.load(Relaxed) > bytes_max {
                    self.forget(known, name);
                }
            }
        }
    }

    /// Gives up so many bytes of what is kept, if there are so many: memory is short.
    pub fn give_up(&self, bytes: usize) {
        let kept = self.kept_bytes.load(Relaxed);
        if kept > 0 {
            self.trim(&mut self.known.lock(), kept.saturating_sub(bytes), None);
        }
    }

    /// How many texts are known, stored or not, and how many bytes lie beside the store.
    pub fn counts(&self) -> (usize, usize) {
        (self.known.lock().texts.len(), self.kept_bytes.load(Relaxed))
    }
}

impl KnownTexts {
    /// What a response has that left the store.
    fn take_over(&mut self, name: TextName, object: &Arc<Object>) {
        if let Some(text) = self.texts.get_mut(&name).filter(|text| text.is_stored_as(object)) {
            text.place = TextPlace::Gone(Arc::clone(object));
            self.leaving.push(name);
        }
    }
}
