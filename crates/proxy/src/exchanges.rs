//! A connection's exchange machine at work: every event is stepped through its table and counted.

use message::Version;
use wire::{Afterwards, Content, Event};

use crate::answer_head::AnswerHead;
use crate::connection::Connection;
use crate::http1_sending;
use crate::linger;
use crate::outgoing::Outgoing;
use crate::send_outcome::End;

impl Connection {
    /// The one function through which an exchange changes its state.
    #[inline]
    pub(crate) fn exchange(&mut self, event: Event) {
        match self.exchange.step(event) {
            Ok(edge) => self.core.edges.take_of_exchange(edge),
            Err(illegal) => panic!("{illegal}"),
        }
    }

    pub(crate) fn exchange_afterwards(&self) -> Afterwards {
        self.exchange.afterwards()
    }

    /// Writes an interim response, unless the client speaks HTTP/1.0 (RFC 9110 §15.2). False: the client left.
    pub(crate) async fn send_interim(&mut self, version: Version, head: AnswerHead) -> bool {
        if version == Version::Http10 {
            return true;
        }
        self.exchange(Event::InterimWritten);
        let sent = self.send_head(head).await;
        self.slot.set_deadline(u64::MAX);
        sent
    }

    /// Writes a head that says nothing of content or connection: an interim one, or one behind which a tunnel begins. False: the
    /// client left.
    pub(crate) async fn send_head(&mut self, head: AnswerHead) -> bool {
        let outgoing = Outgoing::without_body(head, Content::Unsaid);
        http1_sending::send(self, outgoing, Version::Http11, true).await.end == End::Sent
    }

    /// After an answer: may the connection carry another request? Drains, lingers or just says no.
    pub(crate) async fn leave(&mut self, persistent: bool, client_closes: bool) -> bool {
        let may_go_on = matches!(self.exchange_afterwards(), Afterwards::Reuse | Afterwards::Drain);
        if may_go_on && !persistent {
            self.exchange(wire::Event::CloseWanted);
        }
        match self.exchange_afterwards() {
            Afterwards::Reuse => self.reuse(),
            Afterwards::Drain => {
                if linger::drain(self).await {
                    self.reuse()
                } else {
                    // The rest is too long, too late or no body: nothing can follow it.
                    self.exchange(wire::Event::CloseWanted);
                    linger::close(self).await;
                    false
                }
            }
            Afterwards::LingerClose => {
                linger::close(self).await;
                false
            }
            Afterwards::Close if !client_closes || !self.pending.is_empty() => {
                linger::close(self).await;
                false
            }
            Afterwards::Close | Afterwards::Abort | Afterwards::Tunnel | Afterwards::NotYet => false,
        }
    }

    fn reuse(&mut self) -> bool {
        self.exchange(wire::Event::Reused);
        true
    }
}
