//! Orders that are in force here and wait for the log: bounded, in the order in which they were given, the same text once.
//!
//! What finds no room is lost for the others as it stands. So that it is not lost for good, an order of its own kind takes the place of all of
//! it: whoever hears that has everything confirmed by the origin that it holds.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use crate::limits::{BACKLOG_BYTES_MAX, BACKLOG_MAX, ORDER_BYTES_MAX};
use crate::order::LOST_KIND;

/// An order that is to go into the log as soon as that can be reached.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct WaitingOrder {
    pub kind: &'static str,
    pub text: Arc<str>,
    pub token: String,
}

/// What became of an order that was to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Queued {
    Waits,
    /// The same is said already, and not on its way yet.
    Covered,
    /// There is no room. The others will be told that something is missing.
    Lost,
}

#[derive(Default)]
pub(crate) struct Backlog {
    orders: VecDeque<Arc<WaitingOrder>>,
    /// Of their texts.
    bytes: usize,
    /// The first so many are on their way: nobody knows whether they are in the log.
    under_way: usize,
    /// Texts of those that are not.
    texts: HashSet<Arc<str>>,
}

impl Backlog {
    pub fn len(&self) -> usize {
        self.orders.len()
    }

    pub fn is_empty(&self) -> bool {
        self.orders.is_empty()
    }

    /// By which the last of them is known when it comes back.
    pub fn last_token(&self) -> Option<&str> {
        self.orders.back().map(|order| order.token.as_str())
    }

    pub fn push(&mut self, order: WaitingOrder) -> Queued {
        let has_room = self.orders.len() < BACKLOG_MAX
            && order.text.len() <= ORDER_BYTES_MAX
            && self.bytes + order.text.len() <= BACKLOG_BYTES_MAX;
        if self.texts.contains(&order.text) {
            return Queued::Covered;
        }
        if has_room {
            self.put(order);
            return Queued::Waits;
        }
        self.note_loss(order.token)
    }

    /// The others are to be told that something is missing.
    pub fn note_loss(&mut self, token: String) -> Queued {
        // One that is on its way stands for what was lost before it alone.
        let says_so =
            self.orders.len() > self.under_way && self.orders.back().is_some_and(|last| last.kind == LOST_KIND);
        if !says_so {
            self.put(WaitingOrder { kind: LOST_KIND, text: Arc::from(""), token });
        }
        Queued::Lost
    }

    fn put(&mut self, order: WaitingOrder) {
        self.bytes += order.text.len();
        if order.kind != LOST_KIND {
            self.texts.insert(Arc::clone(&order.text));
        }
        self.orders.push_back(Arc::new(order));
    }

    /// The next ones, so many at most and so many bytes of text, but one in any case. They stay until they are known to be in the log.
    pub fn send(&mut self, orders_max: usize, bytes_max: usize) -> Vec<Arc<WaitingOrder>> {
        let mut bytes = 0;
        let fits = |order: &&Arc<WaitingOrder>| {
            let is_first = bytes == 0;
            bytes += order.text.len().max(1);
            is_first || bytes <= bytes_max
        };
        let next: Vec<_> = self.orders.iter().take(orders_max).take_while(fits).cloned().collect();
        self.under_way = next.len();
        next.iter().for_each(|order| {
            self.texts.remove(&order.text);
        });
        next
    }

    /// Those that were on their way are in the log, or are tried once more.
    pub fn sent(&mut self, is_done: bool) {
        let count = std::mem::take(&mut self.under_way);
        if is_done {
            let gone = self.orders.drain(..count);
            self.bytes -= gone.map(|order| order.text.len()).sum::<usize>();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::ORDER_KIND;

    fn push(backlog: &mut Backlog, text: &str) -> Queued {
        let token = format!("t-{text}");
        backlog.push(WaitingOrder { kind: ORDER_KIND, text: text.into(), token })
    }

    fn texts(orders: &[Arc<WaitingOrder>]) -> Vec<&str> {
        orders.iter().map(|order| if order.kind == LOST_KIND { "LOST" } else { &*order.text }).collect()
    }

    #[test]
    fn orders_leave_in_the_order_in_which_they_came_once_they_are_in_the_log() {
        let mut backlog = Backlog::default();
        ["a", "b", "c"].into_iter().for_each(|text| assert_eq!(push(&mut backlog, text), Queued::Waits));
        assert_eq!(texts(&backlog.send(2, 100)), ["a", "b"]);
        backlog.sent(false);
        assert_eq!(texts(&backlog.send(2, 100)), ["a", "b"], "nobody knows whether they are there");
        backlog.sent(true);
        assert_eq!((texts(&backlog.send(2, 100)), backlog.last_token()), (vec!["c"], Some("t-c")));
        backlog.sent(true);
        assert!(backlog.is_empty() && backlog.bytes == 0 && backlog.last_token().is_none());
    }

    #[test]
    fn what_waits_already_is_not_said_twice_and_what_is_on_its_way_is() {
        let mut backlog = Backlog::default();
        assert_eq!((push(&mut backlog, "a"), push(&mut backlog, "a")), (Queued::Waits, Queued::Covered));
        backlog.send(1, 100);
        assert_eq!(push(&mut backlog, "a"), Queued::Waits, "the first one may have been carried out by now");
        backlog.sent(true);
        assert_eq!(texts(&backlog.send(9, 100)), ["a"]);
    }

    #[test]
    fn a_batch_is_bounded_by_its_bytes_and_has_one_order_at_least() {
        let mut backlog = Backlog::default();
        let long = "x".repeat(50);
        [&long, "b", "c"].into_iter().for_each(|text| assert_eq!(push(&mut backlog, text), Queued::Waits));
        assert_eq!(backlog.send(9, 10).len(), 1);
        backlog.sent(true);
        assert_eq!(texts(&backlog.send(9, 2)), ["b", "c"]);
    }

    #[test]
    fn what_finds_no_room_is_told_as_missing_once() {
        let mut backlog = Backlog::default();
        (0..BACKLOG_MAX).for_each(|at| assert_eq!(push(&mut backlog, &at.to_string()), Queued::Waits));
        assert_eq!((push(&mut backlog, "x"), push(&mut backlog, "y")), (Queued::Lost, Queued::Lost));
        assert_eq!((backlog.len(), backlog.last_token()), (BACKLOG_MAX + 1, Some("t-x")));
        assert_eq!(push(&mut backlog, "7"), Queued::Covered);
        backlog.send(BACKLOG_MAX + 1, usize::MAX);
        assert_eq!(push(&mut backlog, "z"), Queued::Lost);
        assert_eq!(backlog.last_token(), Some("t-z"), "the one on its way says nothing of what comes behind it");
        backlog.sent(true);
        assert_eq!(texts(&backlog.send(9, 100)), ["LOST"]);
        backlog.sent(true);
        assert_eq!(push(&mut backlog, "x"), Queued::Waits);
    }

    #[test]
    fn bytes_are_bounded_of_one_order_and_of_all() {
        let mut backlog = Backlog::default();
        let of = |length: usize, at: usize| format!("{at:09}{}", "x".repeat(length - 9));
        assert_eq!(
            push(&mut backlog, &of(ORDER_BYTES_MAX + 1, 0)),
            Queued::Lost,
            "Redis would not be asked to take it"
        );
        let room = BACKLOG_BYTES_MAX / ORDER_BYTES_MAX;
        (0..room).for_each(|at| assert_eq!(push(&mut backlog, &of(ORDER_BYTES_MAX, at)), Queued::Waits));
        assert_eq!(push(&mut backlog, "x"), Queued::Lost);
    }
}
