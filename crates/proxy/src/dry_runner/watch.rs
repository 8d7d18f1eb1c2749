//! What a dry run hears while the story goes on: statements, changes, verdicts, lives and the closing record.
//!
//! One core, one request at a time, but for the refresh that a stale hit leaves behind: subroutines never interleave,
//! because nothing is awaited inside one.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::dry_runner::heard::{Closed, Event, GivenLife, Ran};
use crate::events::exchange_event::ExchangeEvent;
use crate::policy_columns::Life;

#[derive(Debug, Default)]
pub(crate) struct Watch {
    events: RefCell<Vec<Event>>,
    ran: RefCell<Vec<Ran>>,
    settled: RefCell<Vec<GivenLife>>,
    closed: RefCell<Option<Closed>>,
    /// Every fetch under way holds it.
    fetches: Rc<()>,
    drawn: Cell<u64>,
}

impl Watch {
    pub(crate) fn hear(&self, event: Event) {
        self.events.borrow_mut().push(event);
    }

    /// A subroutine has ended: all that was heard since the last one is its.
    pub(crate) fn ended(&self, ran: impl FnOnce(Vec<Event>) -> Ran) {
        let ran = ran(self.events.take());
        self.ran.borrow_mut().push(ran);
    }

    pub(crate) fn settled(&self, life: &Life, is_background: bool) {
        self.settled.borrow_mut().push(GivenLife { life: life.clone(), is_background });
    }

    pub(crate) fn answered(&self, event: &ExchangeEvent<'_>) {
        let ExchangeEvent { status, verdict, why, .. } = *event;
        *self.closed.borrow_mut() = Some(Closed { status, verdict, why });
    }

    pub(crate) fn fetch_began(&self) -> Rc<()> {
        Rc::clone(&self.fetches)
    }

    pub(crate) fn has_fetches(&self) -> bool {
        Rc::strong_count(&self.fetches) > 1
    }

    /// The same numbers in every dry run, spread over all.
    pub(crate) fn draw(&self) -> u64 {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        self.drawn.set(self.drawn.get().wrapping_add(STEP));
        self.drawn.get()
    }

    /// What was heard of one request. Chance begins anew.
    pub(crate) fn take(&self) -> (Vec<Ran>, Vec<GivenLife>, Option<Closed>) {
        self.drawn.set(0);
        self.events.take();
        (self.ran.take(), self.settled.take(), self.closed.take())
    }
}
