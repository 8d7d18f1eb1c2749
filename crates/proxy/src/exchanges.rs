//! A connection's exchange machine at work: every event is stepped through its table and counted.

use message::Version;
use wire::{Afterwards, Event};

use crate::connection::Connection;
use crate::edges;
use crate::transaction::transmit::{self, OutBody, Outgoing};

impl Connection {
    /// The one function through which an exchange changes its state.
    #[inline]
    pub(crate) fn exchange(&mut self, event: Event) {
        match self.exchange.step(event) {
            Ok(edge) => edges::take(&self.core.edges.exchange, edge),
            Err(illegal) => panic!("{illegal}"),
        }
    }

    pub(crate) fn exchange_afterwards(&self) -> Afterwards {
        self.exchange.afterwards()
    }

    /// Writes a rendered interim response, unless the client speaks HTTP/1.0 (RFC 9110 §15.2). False: the client left.
    pub(crate) async fn send_interim(&mut self, version: Version, bytes: Vec<u8>) -> bool {
        if version == Version::Http10 {
            return true;
        }
        self.exchange(Event::InterimWritten);
        let sent = transmit::send(self, Outgoing::new(bytes, OutBody::Empty)).await.is_ok();
        self.slot.set_deadline(u64::MAX);
        sent
    }
}
