//! How cores speak to each other: a queue per core, one wake-up per batch.
//!
//! A core sends another a fresh connection, a flight whose readers over there may go on, or an order from the
//! program (drain, reload). It does not know what is done with a message.

use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use cache::{Flight, Notifier};
use parking_lot::Mutex;

use crate::accepted::{Accepted, Listener};

pub(crate) enum Message {
    /// A connection of which no byte has been read.
    Connection(Accepted),
    /// Wake this core's readers of the flight.
    Flight(Arc<Flight>),
    /// Cut answers whose clients take nothing, until so many bytes are free.
    CutStalled(u64),
    /// Begin to accept here.
    Open(Box<Listener>),
    /// The settings changed: read them again and close listeners that are no longer wanted.
    Reloaded,
    /// Say that you go round, by the number of the question.
    Pulse(u64),
    /// Let nobody in any more, and finish what is under way in so long.
    Drain(Duration),
    DrainNow,
}

#[derive(Default)]
struct Messages {
    messages: Vec<Message>,
    reader: Option<Waker>,
}

/// One core's queue.
#[derive(Default)]
pub(crate) struct Mailbox(Mutex<Messages>);

impl Mailbox {
    pub(crate) fn post(&self, message: Message) {
        let reader = {
            let mut queue = self.0.lock();
            queue.messages.push(message);
            queue.reader.take()
        };
        if let Some(reader) = reader {
            reader.wake();
        }
    }

    /// All messages that have come, at least one.
    pub(crate) async fn receive(&self) -> Vec<Message> {
        std::future::poll_fn(|cx| {
            let mut queue = self.0.lock();
            if queue.messages.is_empty() {
                queue.reader = Some(cx.waker().clone());
                return Poll::Pending;
            }
            Poll::Ready(std::mem::take(&mut queue.messages))
        })
        .await
    }
}

/// The mailboxes of all cores, as the cache sees them.
pub(crate) struct Post(pub(crate) Arc<[Mailbox]>);

impl Notifier for Post {
    fn post(&self, core: usize, flight: Arc<Flight>) {
        self.0[core].post(Message::Flight(flight));
    }
}
