//! Reply: reads answers until one is final, passes interim ones on, and sends the client's body up meanwhile.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use message::{FieldName, ResponseHead, Status};
use rules::date::write_date;
use tokio::time::Sleep;
use wire::{HopByHop, Refusal, RequestBody, ResponseBody};

use crate::answer_head::AnswerHead;
use crate::clock::Moment;
use crate::fetch::arrival::Arrival;
use crate::fetch::broken::Broken;
use crate::fetch::client_link::ClientLink;
use crate::fetch::origin_body::Arriving;
use crate::fetch::retry::Lost;
use crate::fetch::send::{silent, unanswered};
use crate::fetch::upload::Upload;
use crate::fetch::{Fetch, OriginReply, failed};
use crate::origin::OriginFailure;
use crate::records::fetch_records;
use crate::reply_head::ReplyHead;
use crate::upstream::{AnswerTerms, NoAnswer, Upstream};

/// How long we wait for the origin's 100 before we let the client send its body all the same (RFC 9110 §10.1.1).
const CONTINUE_TIMEOUT: Duration = Duration::from_secs(1);

/// What can happen while a final answer is awaited.
enum ReplyEvent {
    Answer(Box<ReplyHead>),
    /// There will be none.
    NoAnswer(NoAnswer),
    ClientLeft,
    ClientFault(Refusal),
    FirstByteTimeout,
    /// The origin says nothing to `Expect`.
    ContinueTimeout,
}

/// Reads until the final head.
pub(crate) async fn run(
    fetch: &mut Fetch,
    client: &mut ClientLink<'_>,
    mut upstream: Upstream,
) -> Result<OriginReply, Lost> {
    let copy = (fetch.copy.take(), fetch.hands_on_trailers());
    let mut upload = Upload::begin((fetch.body, fetch.expects_continue), copy, client, &mut upstream);
    let mut timer: Option<Pin<Box<Sleep>>> = None;
    let mut interims_count = 0;
    // Who does not say it has nothing against it.
    if upload.awaits_continue() && !upstream.says_continue() && !let_upload_come(fetch, client, &mut upload).await {
        return Err(Lost::for_good(Broken::ClientLeft));
    }
    loop {
        let event = poll_fn(|cx| {
            match poll_answer(fetch, &mut upstream, cx) {
                Poll::Ready(event) => return Poll::Ready(event),
                Poll::Pending => {}
            }
            match upload.poll(client, &mut upstream, cx) {
                Poll::Ready(Err(Broken::ClientFault(refusal))) => return Poll::Ready(ReplyEvent::ClientFault(refusal)),
                Poll::Ready(Err(_)) => return Poll::Ready(ReplyEvent::ClientLeft),
                Poll::Ready(Ok(())) | Poll::Pending => {}
            }
            let is_reading = upload.is_reading(&upstream);
            if !is_reading && client.has_left(cx) {
                return Poll::Ready(ReplyEvent::ClientLeft);
            }
            match is_reading {
                // While the client is to send, the client's limits count.
                true => {
                    timer = None;
                    Poll::Pending
                }
                false => poll_timer(fetch, upload.awaits_continue(), &mut timer, cx),
            }
        })
        .await;
        let lost = |broken| Err(Lost::for_good(broken));
        match event {
            ReplyEvent::Answer(answer) if answer.head.status.is_interim() && answer.body != ResponseBody::Tunnel => {
                interims_count += 1;
                if interims_count > fetch.site.settings.limits.interim_responses_max {
                    upstream.failed(&fetch.core.handle(), OriginFailure::Protocol);
                    return lost(Broken::Origin(failed::never_final(fetch.origin(), &upstream)));
                }
                timer = None;
                let released = answer.head.status == Status(100) && upload.release();
                if (released || answer.head.status != Status(100)) && !pass_on(fetch, client, &answer.head).await {
                    return lost(Broken::ClientLeft);
                }
            }
            ReplyEvent::Answer(answer) => return Ok(finish(fetch, upstream, *answer, &upload)),
            ReplyEvent::NoAnswer(why) => {
                fetch.copy = upload.take_copy();
                return Err(unanswered(fetch, upstream, why, upload.has_taken()));
            }
            ReplyEvent::ClientLeft => return lost(Broken::ClientLeft),
            ReplyEvent::ClientFault(refusal) => return lost(Broken::ClientFault(refusal)),
            ReplyEvent::FirstByteTimeout => {
                upstream.failed(&fetch.core.handle(), OriginFailure::FirstByte);
                return Err(silent(fetch, &upstream, upload.has_taken()));
            }
            ReplyEvent::ContinueTimeout => {
                timer = None;
                if !let_upload_come(fetch, client, &mut upload).await {
                    return lost(Broken::ClientLeft);
                }
            }
        }
    }
}

/// Tells the client, which waits for it, to send its body. False: it left.
async fn let_upload_come(fetch: &Fetch, client: &mut ClientLink<'_>, upload: &mut Upload) -> bool {
    upload.release();
    pass_on(fetch, client, &ResponseHead::new(Status(100))).await
}

fn poll_answer(fetch: &Fetch, upstream: &mut Upstream, cx: &mut Context<'_>) -> Poll<ReplyEvent> {
    let limits = &fetch.site.settings.limits.response_head;
    let terms = AnswerTerms { limits, method: fetch.method(), is_upgrade: fetch.is_upgrade() };
    upstream.poll_answer(&fetch.core, terms, cx).map(|answered| match answered {
        Ok(answer) => ReplyEvent::Answer(answer),
        Err(why) => ReplyEvent::NoAnswer(why),
    })
}

/// The first-byte limit counts from the request's last byte.
fn poll_timer(
    fetch: &Fetch,
    awaits_continue: bool,
    timer: &mut Option<Pin<Box<Sleep>>>,
    cx: &mut Context<'_>,
) -> Poll<ReplyEvent> {
    let (after, event) = match awaits_continue {
        true => (CONTINUE_TIMEOUT, ReplyEvent::ContinueTimeout),
        false => (fetch.timeouts.first_byte.after, ReplyEvent::FirstByteTimeout),
    };
    let timer = timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(after)));
    timer.as_mut().poll(cx).map(|()| event)
}

fn finish(fetch: &mut Fetch, upstream: Upstream, answer: ReplyHead, upload: &Upload) -> OriginReply {
    let status = answer.head.status.0;
    match fetch.origin().retries().blames(status) {
        false => upstream.succeeded(|| fetch.core.now().mono_ms),
        true => upstream.failed(&fetch.core.handle(), OriginFailure::Status(status)),
    }
    let arrived = Moment::now();
    let mut answer = answer;
    if answer.body != ResponseBody::Tunnel && !answer.head.fields.view().contains(FieldName::Date) {
        // RFC 9110 §6.6.1: a recipient with a clock dates what came undated, before it is stored or passed on.
        let now_s = (fetch.core.clock().at(arrived).wall_ms / 1_000) as i64;
        answer.head.fields.push(FieldName::Date, write_date(now_s));
    }
    if let Some(records) = fetch.records() {
        fetch_records::answered(records, &answer.head, answer.head_bytes);
        if fetch.body == RequestBody::Chunked {
            // Its head did not say how long it is.
            records.count(|carried| carried.body_out += upload.taken_bytes());
        }
    }
    OriginReply {
        framing: answer.body,
        body: Arriving {
            upstream,
            framing: answer.body,
            // An origin that answered before it had the whole body may still be reading it.
            persistent: answer.persistent && upload.is_done() && !fetch.is_last(),
            filters: None,
        },
        arrival: Arrival { received: fetch.core.now_at(arrived), delay_ms: fetch.sent.micros_until(arrived) / 1_000 },
        head: answer.head,
    }
}

/// Gives an interim response to whoever waits for the final one. HTTP/1.0 clients get none. False: the client left.
async fn pass_on(fetch: &Fetch, client: &mut ClientLink<'_>, head: &ResponseHead) -> bool {
    let mut interim = AnswerHead::new(head.status);
    interim.fields = HopByHop::end_to_end(head.fields.view());
    match client {
        ClientLink::Attached(downstream) => downstream.send_interim(fetch.head.version, interim).await,
        ClientLink::Detached(Some(notes)) => {
            notes.push_interim(interim);
            true
        }
        ClientLink::Detached(None) => true,
    }
}
