//! What passes between a fetch and its requester beside the flight: interim responses (RFC 9110 §15.2), and what
//! became of the fetch, for the log. Both live on one core.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::task::{Context, Waker};

use message::Fields;
use rules::Lifetimes;

use crate::answer_head::AnswerHead;
use crate::events::origin_try::OriginTry;

#[derive(Default)]
pub(crate) struct FetchNotes {
    interims: RefCell<VecDeque<AnswerHead>>,
    reader: RefCell<Option<Waker>>,
    refreshed: Cell<bool>,
    own_fields: RefCell<Fields>,
    why: Cell<Option<&'static str>>,
    lifetimes: Cell<Option<Lifetimes>>,
    tries: RefCell<Vec<OriginTry>>,
}

impl FetchNotes {
    /// An interim response for the requester. `limits.interim_responses_max` bounds how many come.
    pub(crate) fn push_interim(&self, head: AnswerHead) {
        self.interims.borrow_mut().push_back(head);
        if let Some(reader) = self.reader.borrow_mut().take() {
            reader.wake();
        }
    }

    /// The next one, or a wake-up when there is.
    pub(crate) fn poll_interim(&self, cx: &mut Context<'_>) -> Option<AnswerHead> {
        let next = self.interims.borrow_mut().pop_front();
        if next.is_none() {
            *self.reader.borrow_mut() = Some(cx.waker().clone());
        }
        next
    }

    /// `own_fields`: what of the 304 its requester alone gets.
    pub(crate) fn note_refreshed(&self, own_fields: Fields) {
        self.refreshed.set(true);
        self.own_fields.replace(own_fields);
    }

    pub(crate) fn take_own_fields(&self) -> Fields {
        self.own_fields.take()
    }

    /// Did the origin confirm what was stored?
    pub(crate) fn was_refreshed(&self) -> bool {
        self.refreshed.get()
    }

    /// How long what came lives, or is remembered as not to be stored, by a program.
    pub(crate) fn note_lifetimes(&self, lifetimes: Lifetimes) {
        self.lifetimes.set(Some(lifetimes));
    }

    pub(crate) fn lifetimes(&self) -> Option<Lifetimes> {
        self.lifetimes.get()
    }

    /// Whom it has asked.
    pub(crate) fn note_tries(&self, tries: Vec<OriginTry>) {
        self.tries.replace(tries);
    }

    pub(crate) fn take_tries(&self) -> Vec<OriginTry> {
        self.tries.take()
    }

    pub(crate) fn note_why(&self, why: &'static str) {
        self.why.set(Some(why));
    }

    pub(crate) fn why(&self) -> Option<&'static str> {
        self.why.get()
    }
}
