//! An encoding of a response from the moment in which somebody asks for it: it is made, or under way, or who asks makes it.

use std::sync::Arc;

use bytes::Bytes;
use message::ResponseHead;
use rules::ContentCoding;
use store::Growing;
use store::sync::atomic::Ordering::Relaxed;

use crate::cache::Cache;
use crate::draft::at_rest;
use crate::encoding_draft::EncodingDraft;
use crate::encoding_head::{encoding_parts, recoded};
use crate::encoding_name::EncodingName;
use crate::encodings::{Encodings, FoundEncoding, Grade};
use crate::flight::Flight;
use crate::follower::Follower;
use crate::kept_head::KeptHead;
use crate::key::Key;
use crate::object::{Object, ObjectParts};

/// An encoding that is asked for.
#[derive(Debug)]
pub enum EncodingAnswer {
    Made(Arc<Object>),
    /// Somebody makes it: it can be read from its first byte.
    UnderWay(Follower),
    /// Who asks has to make it, and reads it so.
    Make(EncodingDraft, Follower),
    /// There will be none for who asks now.
    None,
}

impl Cache {
    /// The encoding of a representation that is stored or on its way; `head`: of the representation, without its coding, for who
    /// has to make it.
    pub fn encoding(
        self: &Arc<Cache>,
        encodings: &Arc<Encodings>,
        name: impl Into<EncodingName>,
        (key, core): (Key, usize),
        head: impl FnOnce() -> ResponseHead,
    ) -> EncodingAnswer {
        let (name, mut begun) = (name.into(), None);
        let found = encodings.find_or_begin(name, || {
            let mut head = head();
            name.recode(&mut head.fields);
            let flight = Flight::of_encoding(key, core, (head, &self.notifier));
            begun = Some(Arc::clone(&flight));
            flight
        });
        match (found, begun) {
            (FoundEncoding::Made(object), _) => EncodingAnswer::Made(object),
            (FoundEncoding::Begun, Some(flight)) => {
                let follower = Follower::from_start(&flight, core).expect("it has just begun");
                let draft = EncodingDraft::new(Arc::clone(self), (Arc::clone(encodings), name), flight);
                EncodingAnswer::Make(draft, follower)
            }
            (FoundEncoding::UnderWay(under_way), _) => {
                let flight = under_way.downcast::<Flight>().ok();
                let follower = flight.and_then(|flight| Follower::from_start(&flight, core));
                follower.map_or(EncodingAnswer::None, EncodingAnswer::UnderWay)
            }
            (FoundEncoding::Begun | FoundEncoding::None, _) => EncodingAnswer::None,
        }
    }

    /// Keeps what somebody made of a stored response, as he had [promised](Encodings::promise). False: it was no shorter, it has no
    /// room, or the response is gone.
    pub fn add_encoding(&self, primary: &Arc<Object>, coding: ContentCoding, body: Vec<Bytes>) -> bool {
        let (Some(encodings), length) = (primary.encodings(), body.iter().map(Bytes::len).sum()) else { return false };
        if !self.make_room(length) {
            return false;
        }
        let mut growing = Growing::default();
        for piece in body {
            growing.append(piece);
            growing.settle_all();
        }
        let (head, rendered) = recoded(primary, coding.into());
        let charge = self.account.charge(length);
        let (head, out_of_line) =
            at_rest(self, growing.unfinished(), charge, |body| KeptHead::new(&head, &rendered, body));
        let object = self.object(ObjectParts { out_of_line, ..encoding_parts(head, primary) });
        let is_kept = self.keep_encoding((encodings, coding.into(), Grade::Best), &object, primary);
        if is_kept {
            self.counters.encodings_made.fetch_add(1, Relaxed);
            self.write_encoding(primary, coding, &object);
        }
        if is_kept && coding == ContentCoding::Brotli {
            // Who takes brotli has no use for what was made in a hurry, and who takes zstd takes brotli.
            self.give_up_encoding(encodings, ContentCoding::Zstd, primary);
        }
        is_kept
    }

    fn give_up_encoding(&self, encodings: &Encodings, coding: ContentCoding, primary: &Arc<Object>) {
        let mut eviction = self.eviction.lock();
        let before = store::Tenant::weight(&**primary);
        encodings.give_up_one(coding);
        eviction.reweigh(primary, before);
    }

    /// Keeps an encoding beside its primary. False: that is gone, or it is no longer than what was made of it to be shorter, or than what
    /// was made in a hurry.
    pub(crate) fn keep_encoding(
        &self,
        (encodings, name, grade): (&Encodings, EncodingName, Grade),
        object: &Arc<Object>,
        primary: &Arc<Object>,
    ) -> bool {
        // What came in a coding may be wanted in another whatever becomes of it; nobody needs a delta.
        let has_to_be_shorter = matches!(name, EncodingName::Delta(..))
            || ContentCoding::said_by(primary.fields()) == Some(ContentCoding::Identity);
        let is_no_shorter = |than: &Object| object.body_len() >= than.body_len();
        let is_vain = has_to_be_shorter && is_no_shorter(primary);
        if is_vain || encodings.made(name).is_some_and(|quick| is_no_shorter(&quick)) {
            encodings.note_pointless(name);
            return false;
        }
        let mut eviction = self.eviction.lock();
        let before = store::Tenant::weight(&**primary);
        let is_kept = encodings.keep((name, grade), object, primary);
        if is_kept {
            eviction.reweigh(primary, before);
        }
        is_kept
    }

    /// What a response's encodings are under the head of another with the same body. Both are stored by nobody yet.
    pub(crate) fn inherit_encodings(&self, heir: &Arc<Object>, before: &Encodings) {
        for (name, grade, old) in before.all_made() {
            let (head, rendered) = recoded(heir, name);
            let head = KeptHead::new(&head, &rendered, &[old.behind_head()]);
            let object =
                self.object(ObjectParts { out_of_line: old.out_of_line().cloned(), ..encoding_parts(head, heir) });
            heir.encodings_or_new().keep_inherited((name, grade), object);
        }
    }
}
