//! Whether a client that waits for its answer is still there.
//!
//! RST and HUP say that it is not; a FIN alone is a half-close, and whoever half-closed still reads. Nothing is taken
//! from the socket to find out, so bytes that the client sent ahead, or its FIN, make the socket readable once and for
//! all: from then on the core's tick asks it.

use std::task::{Context, Poll};

use crate::connection::Connection;
use crate::plain_socket::Presence;
use crate::slots::ClientWatch;

impl Connection {
    /// Has the client left, or must the connection end? If not, the task is woken when there is news of that.
    pub(crate) fn has_left(&mut self, cx: &mut Context<'_>) -> bool {
        let has_left = match self.slot.watch.get() {
            ClientWatch::Socket => match self.socket.poll_departure(cx) {
                Poll::Pending => false,
                Poll::Ready(Presence::Left) => true,
                Poll::Ready(Presence::Stayed) => {
                    self.slot.watch.set(ClientWatch::Tick);
                    false
                }
            },
            ClientWatch::Tick => false,
            ClientWatch::Due => {
                self.slot.watch.set(ClientWatch::Tick);
                self.socket.has_hung_up()
            }
        };
        if has_left || self.slot.must_end() {
            return true;
        }
        self.slot.park(cx.waker());
        false
    }
}
