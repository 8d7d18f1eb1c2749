//! A core's end of what others read: lines gather here for each reader, and are handed over in pieces.

use std::sync::Arc;

use crate::counters::CoreCounters;
use crate::events::event_json::write_event;
use crate::events::event_readers::{EventReaders, Inbox};
use crate::events::exchange_event::ExchangeEvent;
use crate::log_texts::DateCache;

/// Handed over when it holds so much, and at every tick.
const HANDOVER_BYTES: usize = 16 << 10;

#[derive(Default)]
pub(crate) struct EventOutbox {
    /// The list of readers that `outgoing` was made of.
    list: Arc<Vec<Arc<Inbox>>>,
    outgoing: Vec<ReaderLines>,
}

/// What goes to one reader.
struct ReaderLines {
    inbox: Arc<Inbox>,
    lines: Vec<u8>,
    lines_count: u64,
    /// What may be told, in thousandths of an event: it grows with time, up to what a second brings.
    credit: u64,
    credited_ms: u64,
}

impl EventOutbox {
    /// An exchange is over, and somebody reads along.
    #[cold]
    pub(crate) fn append(
        &mut self,
        readers: &EventReaders,
        counters: &CoreCounters,
        event: &ExchangeEvent<'_>,
        dates: &DateCache,
    ) {
        self.look_who_reads(readers);
        for outgoing in &mut self.outgoing {
            if !outgoing.inbox.query.is_met_by(event) {
                continue;
            }
            if !outgoing.may_tell(event.wall_ms) {
                outgoing.inbox.lose(1);
                counters.events_lost.add(1);
                continue;
            }
            write_event(&mut outgoing.lines, event, dates);
            outgoing.lines_count += 1;
            if outgoing.lines.len() >= HANDOVER_BYTES {
                outgoing.hand_over(counters);
            }
        }
    }

    /// Gives every reader what has gathered.
    pub(crate) fn flush(&mut self, readers: &EventReaders, counters: &CoreCounters) {
        self.outgoing.iter_mut().for_each(|outgoing| outgoing.hand_over(counters));
        if !self.outgoing.is_empty() {
            self.look_who_reads(readers);
        }
    }

    fn look_who_reads(&mut self, readers: &EventReaders) {
        let list = readers.list();
        if Arc::ptr_eq(&list, &self.list) {
            return;
        }
        self.list = Arc::clone(&list);
        self.outgoing.retain(|outgoing| list.iter().any(|inbox| Arc::ptr_eq(inbox, &outgoing.inbox)));
        for inbox in list.iter() {
            if !self.outgoing.iter().any(|outgoing| Arc::ptr_eq(inbox, &outgoing.inbox)) {
                self.outgoing.push(ReaderLines::to(inbox));
            }
        }
    }
}

impl ReaderLines {
    fn to(inbox: &Arc<Inbox>) -> ReaderLines {
        ReaderLines { inbox: Arc::clone(inbox), lines: Vec::new(), lines_count: 0, credit: 0, credited_ms: 0 }
    }

    /// May one more be told, by the number that its reader wants in a second? Of a core that has more, what is told is spread evenly.
    fn may_tell(&mut self, now_ms: u64) -> bool {
        let per_second = u64::from(self.inbox.per_second_max);
        let passed_ms = now_ms.saturating_sub(self.credited_ms).min(1_000);
        self.credited_ms = now_ms;
        self.credit = (self.credit + passed_ms * per_second).min(1_000 * per_second);
        let may = self.credit >= 1_000;
        self.credit -= if may { 1_000 } else { 0 };
        may
    }

    fn hand_over(&mut self, counters: &CoreCounters) {
        if self.lines_count == 0 {
            return;
        }
        match self.inbox.put(std::mem::take(&mut self.lines), self.lines_count) {
            true => counters.events_told.add(self.lines_count),
            false => counters.events_lost.add(self.lines_count),
        }
        self.lines_count = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::EventQuery;
    use crate::events::exchange_event::tests::sample;

    #[tokio::test]
    async fn each_reader_gets_what_its_query_wants_and_no_more_a_second_than_it_asked_for() {
        let readers = Arc::new(EventReaders::default());
        let mut failures = readers.add(EventQuery::parse("status >= 500").unwrap(), 100).unwrap();
        let mut few = readers.add(EventQuery::default(), 2).unwrap();
        let (mut outbox, counters, dates) = (EventOutbox::default(), CoreCounters::default(), DateCache::default());
        for (millis, status) in [(0, 200), (1, 503), (2, 200), (3, 200), (1_500, 200)] {
            let event = ExchangeEvent { wall_ms: sample().wall_ms + millis, status, ..sample() };
            outbox.append(&readers, &counters, &event, &dates);
        }
        outbox.flush(&readers, &counters);
        let count = |lines: &[u8]| lines.iter().filter(|&&b| b == b'\n').count();
        let piece = failures.next().await;
        assert_eq!((count(&piece.lines), piece.lost), (1, 0));
        let piece = few.next().await;
        assert_eq!((count(&piece.lines), piece.lost), (3, 2));
        assert_eq!((counters.events_told.get(), counters.events_lost.get()), (4, 2));
    }

    #[tokio::test]
    async fn of_too_much_a_share_is_told_that_is_spread_over_the_second() {
        let readers = Arc::new(EventReaders::default());
        let mut reader = readers.add(EventQuery::default(), 100).unwrap();
        let (mut outbox, counters, dates) = (EventOutbox::default(), CoreCounters::default(), DateCache::default());
        // Ten seconds of ten a millisecond.
        for number in 0..100_000 {
            let event = ExchangeEvent { wall_ms: sample().wall_ms + number / 10, ..sample() };
            outbox.append(&readers, &counters, &event, &dates);
        }
        outbox.flush(&readers, &counters);
        let piece = reader.next().await;
        let text = String::from_utf8(piece.lines).unwrap();
        let at_the_end_of_a_second = text.lines().filter(|line| line.contains("T13:55:45.9")).count();
        assert_eq!((text.lines().count() as u64, piece.lost), (1_099, 98_901));
        assert!((9..=11).contains(&at_the_end_of_a_second), "{at_the_end_of_a_second}");
    }

    #[test]
    fn a_reader_that_has_left_gets_nothing_more() {
        let readers = Arc::new(EventReaders::default());
        let reader = readers.add(EventQuery::default(), 10).unwrap();
        let (mut outbox, counters, dates) = (EventOutbox::default(), CoreCounters::default(), DateCache::default());
        outbox.append(&readers, &counters, &sample(), &dates);
        drop(reader);
        outbox.flush(&readers, &counters);
        assert!(outbox.outgoing.is_empty());
    }
}
