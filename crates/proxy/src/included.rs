//! The two ends of what is included in a page: the transaction that answers, to which the page is a client, and the page, to which the
//! answer is a body that comes when its turn has come.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use coding::TextSum;

use crate::coding_threads::CodingThreads;
use crate::counters::CoreCounters;
use crate::send_outcome::{End, SendOutcome};

/// What a page takes of an answer.
pub(crate) struct IncludedAnswer {
    pub(crate) status: u16,
    pub(crate) body: Box<dyn IncludedBody>,
}

/// The body of such an answer.
pub(crate) trait IncludedBody {
    /// Puts the next bytes into the queue, or says how the body ended.
    fn poll_included(&mut self, queue: &mut VecDeque<Bytes>, cx: &mut Context<'_>) -> Poll<Option<End>>;

    /// What it adds to the text of a page in gzip, now that it has ended.
    fn sum(&self) -> TextSum {
        TextSum::default()
    }
}

/// In what form a page takes its parts.
#[derive(Clone)]
pub(crate) enum PageForm {
    Text,
    /// As pieces of a gzip.
    Gzip(PieceMaking),
}

/// What makes pieces of what is a gzip already.
#[derive(Clone)]
pub(crate) struct PieceMaking {
    pub(crate) threads: Arc<CodingThreads>,
    pub(crate) counters: Arc<CoreCounters>,
}

#[derive(Default)]
struct Handover {
    /// The answer, until the page takes it.
    answer: Option<IncludedAnswer>,
    /// What became of it at the page's end.
    outcome: Option<SendOutcome>,
    page_has_left: bool,
    transaction_is_over: bool,
    page: Option<Waker>,
    transaction: Option<Waker>,
}

/// The transaction's end.
pub(crate) struct IncludedClient {
    handover: Rc<RefCell<Handover>>,
    /// What the page takes.
    pub(crate) form: PageForm,
}

/// The page's end. Dropped, the transaction has lost its client.
pub(crate) struct Fragment(Rc<RefCell<Handover>>);

/// `form`: what the page takes.
pub(crate) fn pair(form: PageForm) -> (IncludedClient, Fragment) {
    let handover = Rc::new(RefCell::new(Handover::default()));
    (IncludedClient { handover: Rc::clone(&handover), form }, Fragment(handover))
}

fn wake(waker: &mut Option<Waker>) {
    if let Some(waker) = waker.take() {
        waker.wake();
    }
}

impl IncludedClient {
    /// Hands the answer over, and waits until the page has sent all that it wants of it.
    pub(crate) async fn send(&mut self, answer: IncludedAnswer) -> SendOutcome {
        {
            let mut handover = self.handover.borrow_mut();
            handover.answer = Some(answer);
            wake(&mut handover.page);
        }
        poll_fn(|cx| {
            let mut handover = self.handover.borrow_mut();
            if let Some(outcome) = handover.outcome {
                return Poll::Ready(outcome);
            }
            if handover.page_has_left {
                return Poll::Ready(SendOutcome { end: End::ClientLeft, ..SendOutcome::NOTHING });
            }
            handover.transaction = Some(cx.waker().clone());
            Poll::Pending
        })
        .await
    }

    /// Does nobody want the answer any more? If not, the task is woken when that is so.
    pub(crate) fn has_left(&self, cx: &Context<'_>) -> bool {
        let mut handover = self.handover.borrow_mut();
        handover.transaction = Some(cx.waker().clone());
        handover.page_has_left
    }
}

impl Drop for IncludedClient {
    fn drop(&mut self) {
        let mut handover = self.handover.borrow_mut();
        handover.transaction_is_over = true;
        wake(&mut handover.page);
    }
}

impl Fragment {
    /// The answer. `None`: there is none.
    pub(crate) fn poll_answer(&self, cx: &Context<'_>) -> Poll<Option<IncludedAnswer>> {
        let mut handover = self.0.borrow_mut();
        if let Some(answer) = handover.answer.take() {
            return Poll::Ready(Some(answer));
        }
        if handover.transaction_is_over {
            return Poll::Ready(None);
        }
        handover.page = Some(cx.waker().clone());
        Poll::Pending
    }

    /// So many bytes of it have gone, and that was the end of it.
    pub(crate) fn finish(self, end: End, body_bytes: u64) {
        let mut handover = self.0.borrow_mut();
        handover.outcome = Some(SendOutcome { end, body_bytes, ..SendOutcome::NOTHING });
        wake(&mut handover.transaction);
    }
}

impl Drop for Fragment {
    fn drop(&mut self) {
        let mut handover = self.0.borrow_mut();
        // What it holds may hold a transaction's own things.
        let answer = handover.answer.take();
        handover.page_has_left = true;
        wake(&mut handover.transaction);
        drop(handover);
        drop(answer);
    }
}
