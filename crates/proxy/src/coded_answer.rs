//! An answer of the built-in policy in the coding that its client takes.
//!
//! A stored response is answered by what was made of it, or by what is being made: that is a task of its own, which reads the response as
//! its clients would, and is read by whoever asks for that coding, from its first byte on. What is not stored is coded for its one client.

use std::rc::Rc;
use std::sync::Arc;

use cache::{EncodingAnswer, EncodingDraft, EncodingName, EncodingState, Encodings, Flight, Follower, Key, Object};
use message::{FieldName, Fields, FieldsView, Request, ResponseHead};
use rules::conditions::Holder;
use rules::{AcceptedCodings, ContentCoding, DeltaCoding, DictionaryHash, credentials};

use crate::answer_body::AnswerBody;
use crate::answer_head::Rendered;
use crate::coding_choice::{Codable, CodingChoice};
use crate::coding_levels::{coder_of, coding_of, delta_level, quick_level, text_bytes};
use crate::core::Core;
use crate::dictionary_offer::DictionaryOffer;
use crate::encoding_task;
use crate::field_set::FieldSet;
use crate::filter_chain::{Delta, FilterKind};
use crate::filter_work::FilterWork;
use crate::idle_encoding;
use crate::site::Compression;
use crate::stored_head;
use crate::transaction::Transaction;
use crate::transaction::deliver::{UnplannedAnswer, UnplannedFields};

/// What answers a hit.
pub(crate) enum CodedHit {
    /// This. `is_final`: it goes on doing so for who takes the same codings.
    Object { object: Arc<Object>, is_final: bool },
    /// What has to be made.
    ToBeMade,
}

/// Who asks.
pub(crate) struct CodingQuestion<'a> {
    pub(crate) request: &'a Request<'a>,
    pub(crate) seen: FieldSet,
    pub(crate) accepted: AcceptedCodings,
}

/// What of a stored response answers who asks so.
pub(crate) fn of_hit(
    core: &Rc<Core>,
    compression: Option<Compression<'_>>,
    asked: &CodingQuestion<'_>,
    object: &Arc<Object>,
) -> CodedHit {
    let accepted = asked.accepted;
    let as_it_is = |is_final| CodedHit::Object { object: Arc::clone(object), is_final };
    let codable = compression.filter(|_| is_plain(object)).and_then(|compression| {
        Codable::of(compression.settings, object.status(), object.fields(), Some(object.length()))
    });
    let Some(codable) = codable else { return as_it_is(true) };
    let offer = DictionaryOffer::of(core, compression, asked.request, asked.seen);
    if let Some((delta, _)) = by_dictionary(offer, &codable, (asked.request, object.fields()), object.encodings()) {
        let Some(object) = object.encoding(EncodingName::from(delta)) else { return CodedHit::ToBeMade };
        core.counters.deltas_sent.add(1);
        // Not for who has no dictionary, or another one.
        return CodedHit::Object { object, is_final: false };
    }
    let (served, is_final) = match codable.choose(accepted, states(object.encodings())) {
        CodingChoice::AsItIs { is_final } => (Arc::clone(object), is_final),
        CodingChoice::Made { coding, is_final } => match object.encoding(coding) {
            Some(encoding) => (encoding, is_final),
            None => return CodedHit::ToBeMade,
        },
        CodingChoice::Make(_) => return CodedHit::ToBeMade,
    };
    if !is_final
        && idle_encoding::is_worth_it(&served)
        && let Some(better) = codable.worth_making(accepted)
    {
        idle_encoding::begin(core, object, (codable.stored, better));
    }
    let is_final = is_final || !core.shared.coding_threads.takes_idle_work();
    CodedHit::Object { object: served, is_final }
}

/// Is its body all there, in memory, and nothing put together?
fn is_plain(object: &Arc<Object>) -> bool {
    object.has_whole_body() && object.esi().is_none() && object.body().on_disk().is_none()
}

/// A coding, and the dictionary that it is by.
#[derive(Clone, Copy)]
struct DeltaName {
    coding: DeltaCoding,
    dictionary: DictionaryHash,
}

impl From<DeltaName> for EncodingName {
    fn from(name: DeltaName) -> EncodingName {
        EncodingName::Delta(name.coding, name.dictionary)
    }
}

/// The delta that answers who offers a dictionary, if one does.
fn by_dictionary(
    offer: Option<DictionaryOffer>,
    codable: &Codable<'_>,
    (request, answer): (&Request<'_>, FieldsView<'_>),
    encodings: Option<&Arc<Encodings>>,
) -> Option<(DeltaName, DictionaryOffer)> {
    let offer = offer.filter(|offer| offer.is_for(request.fields, answer))?;
    let free = [EncodingState::Free; DeltaCoding::ALL.len()];
    let states = encodings.map_or(free, |encodings| encodings.delta_states(offer.hash));
    let coding = codable.choose_delta(offer.accepted, states)?;
    Some((DeltaName { coding, dictionary: offer.hash }, offer))
}

fn states(encodings: Option<&Arc<Encodings>>) -> [EncodingState; ContentCoding::ALL.len()] {
    encodings.map_or([EncodingState::Free; ContentCoding::ALL.len()], |encodings| encodings.states())
}

/// What others will be answered by, too.
#[derive(Clone)]
pub(crate) enum Primary {
    Stored(Arc<Object>),
    /// On its way.
    Followed(Arc<Flight>, Arc<Encodings>),
}

impl Primary {
    fn of(answer: &UnplannedAnswer) -> Option<Primary> {
        match &answer.body {
            AnswerBody::Object { object, leased: None, slices: None } if is_plain(object) => {
                Some(Primary::Stored(Arc::clone(object)))
            }
            AnswerBody::Follower { follower, .. } if answer.holder == Holder::Cache => {
                Some(Primary::Followed(Arc::clone(follower.flight()), follower.encodings()?))
            }
            _ => None,
        }
    }

    fn key(&self) -> Key {
        match self {
            Primary::Stored(object) => object.key(),
            Primary::Followed(flight, _) => flight.key(),
        }
    }

    fn states(&self) -> [EncodingState; ContentCoding::ALL.len()] {
        match self {
            Primary::Stored(object) => states(object.encodings()),
            Primary::Followed(_, encodings) => encodings.states(),
        }
    }

    fn encodings(&self) -> Arc<Encodings> {
        match self {
            Primary::Stored(object) => Arc::clone(object.encodings_or_new()),
            Primary::Followed(_, encodings) => Arc::clone(encodings),
        }
    }

    /// What is stored of it, once all of it has come.
    pub(crate) fn stored(&self) -> Option<Arc<Object>> {
        match self {
            Primary::Stored(object) => Some(Arc::clone(object)),
            Primary::Followed(flight, _) => flight.landed(),
        }
    }
}

/// The same answer in the coding that its client takes, or as it is.
pub(crate) fn fit(tx: &Transaction, answer: UnplannedAnswer) -> UnplannedAnswer {
    let request = tx.head.request();
    let Some(compression) = tx.site.compression_of(tx.routed) else { return answer };
    // Files have their codings beside them, and what has gone through filters is in the one that it is to be in.
    let is_of_origin = matches!(
        answer.body,
        AnswerBody::Object { .. } | AnswerBody::Follower { .. } | AnswerBody::Origin(_) | AnswerBody::Assembled { .. }
    );
    if !is_of_origin || answer.body.is_bodiless_answer() {
        return answer;
    }
    let (fields, length) = (answer.fields.view(), answer.body.length());
    let Some(codable) = Codable::of(compression.settings, answer.status, fields, length) else { return answer };
    let primary = Primary::of(&answer);
    // What lies in slices or on a disk is taken out of its coding for who does not take that, and put into none.
    let codable = match &answer.body {
        AnswerBody::Object { .. } if primary.is_none() => codable.of_text_alone(),
        _ => codable,
    };
    if let Some(primary) = &primary
        && let Some((delta, offer)) = delta_of(tx, compression, &codable, (&answer, primary))
        && let Some(found) = found(tx, &answer, (delta.into(), primary), |length| {
            delta_work(tx, codable.stored, (delta, length), &offer)
        })
    {
        tx.core.counters.deltas_sent.add(1);
        return of_many(tx, answer, delta.into(), found);
    }
    let states = primary.as_ref().map_or_else(|| states(None), Primary::states);
    let (stored, accepted) = (codable.stored, AcceptedCodings::of(request.fields));
    match (codable.choose(accepted, states), primary) {
        (CodingChoice::AsItIs { .. }, _) => answer,
        (CodingChoice::Made { coding, .. } | CodingChoice::Make(coding), Some(primary)) => {
            let name = coding.into();
            match found(tx, &answer, (name, &primary), |length| work(tx, (stored, coding), length)) {
                Some(found) => of_many(tx, answer, name, found),
                None => answer,
            }
        }
        (CodingChoice::Made { coding, .. } | CodingChoice::Make(coding), None) => {
            let is_private = || {
                credentials::of_request(request.fields).is_some() || answer.fields.view().contains(FieldName::SetCookie)
            };
            // What its length betrays (BREACH) is nobody's.
            match coding != ContentCoding::Identity && !compression.is_always && is_private() {
                true => answer,
                false => of_one(tx, answer, (stored, coding)),
            }
        }
    }
}

/// Which delta answers, and the dictionary that it is told by, if one does.
fn delta_of(
    tx: &Transaction,
    compression: Compression<'_>,
    codable: &Codable<'_>,
    (answer, primary): (&UnplannedAnswer, &Primary),
) -> Option<(DeltaName, DictionaryOffer)> {
    let request = tx.head.request();
    let offer = DictionaryOffer::of(&tx.core, Some(compression), &request, tx.seen)?;
    let encodings = primary.encodings();
    by_dictionary(Some(offer), codable, (&request, answer.fields.view()), Some(&encodings))
}

/// What is made once for all.
enum FoundCoded {
    Made(Arc<Object>),
    UnderWay(Follower),
    /// It is made now, by this work, and read by who made it wanted.
    Make(Box<(EncodingDraft, FilterWork, Primary)>, Follower),
}

/// The encoding of this name, made already or by the work that leads to it from a body of this length. `None`: there is none for who asks
/// now.
fn found(
    tx: &Transaction,
    answer: &UnplannedAnswer,
    (name, primary): (EncodingName, &Primary),
    work: impl FnOnce(Option<u64>) -> Result<FilterWork, String>,
) -> Option<FoundCoded> {
    let core = &tx.core;
    let head = || ResponseHead { fields: answer.fields.view().to_fields(), ..ResponseHead::new(answer.status) };
    let encodings = primary.encodings();
    match core.shared.cache.encoding(&encodings, name, (primary.key(), core.index), head) {
        EncodingAnswer::Made(object) => Some(FoundCoded::Made(object)),
        EncodingAnswer::UnderWay(follower) => Some(FoundCoded::UnderWay(follower)),
        EncodingAnswer::Make(draft, follower) => {
            let work = work(answer.body.length()).ok()?;
            Some(FoundCoded::Make(Box::new((draft, work, primary.clone())), follower))
        }
        EncodingAnswer::None => None,
    }
}

/// The same answer by what was found.
fn of_many(tx: &Transaction, answer: UnplannedAnswer, name: EncodingName, found: FoundCoded) -> UnplannedAnswer {
    match found {
        FoundCoded::Made(object) => {
            let (facts, fields) = (object.facts(), UnplannedFields::Rendered(Rendered::Object(Arc::clone(&object))));
            let body = AnswerBody::Object { object, leased: None, slices: None };
            match answer.fields {
                UnplannedFields::Rendered(_) => UnplannedAnswer { fields, facts, body, ..answer },
                _ => recoded(tx, UnplannedAnswer { facts, ..answer }, name, |_| body),
            }
        }
        FoundCoded::UnderWay(follower) => {
            recoded(tx, answer, name, |_| AnswerBody::Follower { follower, length: None })
        }
        FoundCoded::Make(making, follower) => recoded(tx, answer, name, |body| {
            let (draft, work, primary) = *making;
            let body = AnswerBody::Filtered { body: Box::new(body), work, length: None };
            encoding_task::spawn(draft, body.whole(), primary);
            AnswerBody::Follower { follower, length: None }
        }),
    }
}

/// For this client alone.
fn of_one(
    tx: &Transaction,
    answer: UnplannedAnswer,
    (stored, coding): (ContentCoding, ContentCoding),
) -> UnplannedAnswer {
    match work(tx, (stored, coding), answer.body.length()) {
        Ok(work) => {
            let change = |body| AnswerBody::Filtered { body: Box::new(body), work, length: None };
            recoded(tx, answer, coding.into(), change)
        }
        Err(_) => answer,
    }
}

/// What leads from one coding to another. The error: there is no memory for what could be left, or it cannot be set up.
fn work(
    tx: &Transaction,
    (from, to): (ContentCoding, ContentCoding),
    length: Option<u64>,
) -> Result<FilterWork, String> {
    let decode = coding_of(from).map(FilterKind::Decode);
    let encode = coding_of(to).map(|coding| FilterKind::Encode(coding, quick_level(coding)));
    let kinds: Vec<FilterKind> = decode.into_iter().chain(encode).collect();
    let text_bytes = length.map(|length| text_bytes(from, length));
    if to != ContentCoding::Identity {
        has_memory(tx, kinds.iter().map(|kind| kind.memory_bytes(text_bytes)).sum())?;
    }
    FilterWork::begin(&tx.core, &kinds, coding::Bounds::USUAL, text_bytes)
}

/// Is there memory for a coder that could be left?
fn has_memory(tx: &Transaction, bytes: usize) -> Result<(), String> {
    let has_room = tx.core.shared.coders.has_room_for(bytes);
    if has_room { Ok(()) } else { Err("limits.coding_memory_bytes_max is taken".to_owned()) }
}

/// What leads from a coding to what differs from a dictionary. `length`: of the body as it is.
fn delta_work(
    tx: &Transaction,
    from: ContentCoding,
    (DeltaName { coding, .. }, length): (DeltaName, Option<u64>),
    offer: &DictionaryOffer,
) -> Result<FilterWork, String> {
    let decode = coding_of(from).map(FilterKind::Decode);
    let delta = Delta {
        coding: coder_of(coding),
        level: delta_level(coding),
        length: length.filter(|_| decode.is_none()),
        dictionary: offer.source(),
        dictionary_bytes: offer.bytes(),
    };
    let decode: Vec<FilterKind> = decode.into_iter().collect();
    has_memory(tx, delta.memory_bytes())?;
    FilterWork::begin_delta(&tx.core, &decode, delta, coding::Bounds::USUAL)
}

/// The answer with other bytes, and fields that say so.
fn recoded(
    tx: &Transaction,
    answer: UnplannedAnswer,
    name: EncodingName,
    change: impl FnOnce(AnswerBody) -> AnswerBody,
) -> UnplannedAnswer {
    let recode = |mut fields: Fields| {
        name.recode(&mut fields);
        fields
    };
    let fields = match answer.fields {
        UnplannedFields::Rendered(rendered) => {
            let mut fields = recode(rendered.fields().to_fields());
            if let Rendered::Object(object) = &rendered {
                // Which the rendered head has.
                stored_head::push_via(&mut fields, object.response().version, &tx.site);
            }
            UnplannedFields::Own(fields)
        }
        UnplannedFields::Shared(head) => {
            let mut head = (*head).clone();
            name.recode(&mut head.fields);
            UnplannedFields::Shared(Arc::new(head))
        }
        UnplannedFields::Own(fields) => UnplannedFields::Own(recode(fields)),
        UnplannedFields::Complete(fields) => UnplannedFields::Complete(recode(fields)),
    };
    UnplannedAnswer { fields, body: change(answer.body), ..answer }
}
