//! The two ends of what is included in a page: the transaction that answers, to which the page is a client, and the page, to which the
//! answer is a body that comes when its turn has come.

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use crate::outgoing::Outgoing;
use crate::send_outcome::{End, SendOutcome};

#[derive(Default)]
struct Shared {
    /// The answer, until the page takes it.
    outgoing: Option<Outgoing>,
    /// What became of it at the page's end.
    outcome: Option<SendOutcome>,
    page_has_left: bool,
    transaction_is_over: bool,
    page: Option<Waker>,
    transaction: Option<Waker>,
}

/// The transaction's end.
pub(crate) struct IncludedClient(Rc<RefCell<Shared>>);

/// The page's end. Dropped, the transaction has lost its client.
pub(crate) struct Fragment(Rc<RefCell<Shared>>);

pub(crate) fn pair() -> (IncludedClient, Fragment) {
    let shared = Rc::new(RefCell::new(Shared::default()));
    (IncludedClient(Rc::clone(&shared)), Fragment(shared))
}

fn wake(waker: &mut Option<Waker>) {
    if let Some(waker) = waker.take() {
        waker.wake();
    }
}

impl IncludedClient {
    /// Hands the answer over, and waits until the page has sent all that it wants of it.
    pub(crate) async fn send(&mut self, outgoing: Outgoing) -> SendOutcome {
        {
            let mut shared = self.0.borrow_mut();
            shared.outgoing = Some(outgoing);
            wake(&mut shared.page);
        }
        poll_fn(|cx| {
            let mut shared = self.0.borrow_mut();
            if let Some(outcome) = shared.outcome {
                return Poll::Ready(outcome);
            }
            if shared.page_has_left {
                return Poll::Ready(SendOutcome { end: End::ClientLeft, ..SendOutcome::NOTHING });
            }
            shared.transaction = Some(cx.waker().clone());
            Poll::Pending
        })
        .await
    }

    /// Does nobody want the answer any more? If not, the task is woken when that is so.
    pub(crate) fn has_left(&self, cx: &Context<'_>) -> bool {
        let mut shared = self.0.borrow_mut();
        shared.transaction = Some(cx.waker().clone());
        shared.page_has_left
    }
}

impl Drop for IncludedClient {
    fn drop(&mut self) {
        let mut shared = self.0.borrow_mut();
        shared.transaction_is_over = true;
        wake(&mut shared.page);
    }
}

impl Fragment {
    /// The answer. `None`: there is none.
    pub(crate) fn poll_outgoing(&self, cx: &Context<'_>) -> Poll<Option<Outgoing>> {
        let mut shared = self.0.borrow_mut();
        if let Some(outgoing) = shared.outgoing.take() {
            return Poll::Ready(Some(outgoing));
        }
        if shared.transaction_is_over {
            return Poll::Ready(None);
        }
        shared.page = Some(cx.waker().clone());
        Poll::Pending
    }

    /// So many bytes of it have gone, and that was the end of it.
    pub(crate) fn finish(self, end: End, body_bytes: u64) {
        let mut shared = self.0.borrow_mut();
        shared.outcome = Some(SendOutcome { end, body_bytes, ..SendOutcome::NOTHING });
        wake(&mut shared.transaction);
    }
}

impl Drop for Fragment {
    fn drop(&mut self) {
        let mut shared = self.0.borrow_mut();
        // What it holds may hold a transaction's own things.
        let outgoing = shared.outgoing.take();
        shared.page_has_left = true;
        wake(&mut shared.transaction);
        drop(shared);
        drop(outgoing);
    }
}
