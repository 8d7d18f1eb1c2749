//! Reply: reads answers until one is final, passes interim ones on, and sends the client's body up meanwhile.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use message::{FieldName, ResponseHead, Status};
use rules::date::write_date;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::Sleep;
use wire::limits::HeadLimits;
use wire::{HopByHop, ReceivedResponse, Refusal, ResponseBody, may_end_now, read_response};

use crate::answer_head::AnswerHead;
use crate::clock::Moment;
use crate::fetch::arrival::Arrival;
use crate::fetch::broken::Broken;
use crate::fetch::client_link::ClientLink;
use crate::fetch::origin_body::Arriving;
use crate::fetch::retry::Lost;
use crate::fetch::send::died;
use crate::fetch::upload::Upload;
use crate::fetch::{Fetch, OriginReply, failed};
use crate::origin::{OriginConnection, OriginFailure};
use crate::records::fetch_records;
use crate::stored_head::{OUR_BYTES, OUR_LINES};

/// How long we wait for the origin's 100 before we let the client send its body all the same (RFC 9110 §10.1.1).
const CONTINUE_TIMEOUT: Duration = Duration::from_secs(1);

/// What can happen while a final answer is awaited.
enum ReplyEvent {
    Answer(Box<ReplyHead>),
    /// The end of the input, or an error.
    Ended,
    Refused(Refusal),
    ClientLeft,
    ClientFault(Refusal),
    FirstByteTimeout,
    /// The origin says nothing to `Expect`.
    ContinueTimeout,
}

/// One answer's head.
struct ReplyHead {
    head: ResponseHead,
    body: ResponseBody,
    persistent: bool,
    /// As it came.
    head_bytes: usize,
}

/// Bytes of answers that have not been read as heads yet.
#[derive(Default)]
struct UnreadBytes {
    bytes: Vec<u8>,
    /// So many of them were no whole head when they were last looked at.
    looked_at: usize,
}

/// Reads until the final head.
pub(crate) async fn run(
    fetch: &mut Fetch,
    client: &mut ClientLink<'_>,
    mut connection: OriginConnection,
) -> Result<OriginReply, Lost> {
    let mut upload = Upload::begin(fetch.body, fetch.expects_continue, client);
    let mut unread = UnreadBytes::default();
    let mut timer: Option<Pin<Box<Sleep>>> = None;
    let (mut interims_count, mut heard) = (0, false);
    loop {
        let event = poll_fn(|cx| {
            match unread.poll_answer(fetch, &mut connection, &mut heard, cx) {
                Poll::Ready(event) => return Poll::Ready(event),
                Poll::Pending => {}
            }
            match upload.poll(client, &mut connection, cx) {
                Poll::Ready(Err(Broken::ClientFault(refusal))) => return Poll::Ready(ReplyEvent::ClientFault(refusal)),
                Poll::Ready(Err(_)) => return Poll::Ready(ReplyEvent::ClientLeft),
                Poll::Ready(Ok(())) | Poll::Pending => {}
            }
            if !upload.is_reading() && client.has_left(cx) {
                return Poll::Ready(ReplyEvent::ClientLeft);
            }
            poll_timer(fetch, &upload, &mut timer, cx)
        })
        .await;
        let lost = |broken| Err(Lost::for_good(broken));
        match event {
            ReplyEvent::Answer(answer) if answer.head.status.is_interim() && answer.body != ResponseBody::Tunnel => {
                interims_count += 1;
                if interims_count > fetch.site.settings.limits.interim_responses_max {
                    connection.failed(&fetch.core.handle(), OriginFailure::Protocol);
                    return lost(Broken::Origin(failed::never_final(fetch.origin(), &connection)));
                }
                timer = None;
                let released = answer.head.status == Status(100) && upload.release();
                if (released || answer.head.status != Status(100)) && !pass_on(fetch, client, &answer.head).await {
                    return lost(Broken::ClientLeft);
                }
            }
            ReplyEvent::Answer(answer) => return Ok(finish(fetch, connection, *answer, unread, &upload)),
            ReplyEvent::Ended if heard => {
                connection.failed(&fetch.core.handle(), OriginFailure::Truncated);
                return lost(Broken::Origin(failed::hung_up(fetch.origin(), &connection)));
            }
            ReplyEvent::Ended => return Err(died(fetch, connection, upload.has_taken())),
            ReplyEvent::Refused(refusal) => {
                connection.failed(&fetch.core.handle(), OriginFailure::Protocol);
                return lost(Broken::Origin(failed::garbled(fetch.origin(), &connection, &refusal.of_origin())));
            }
            ReplyEvent::ClientLeft => return lost(Broken::ClientLeft),
            ReplyEvent::ClientFault(refusal) => return lost(Broken::ClientFault(refusal)),
            ReplyEvent::FirstByteTimeout => {
                connection.failed(&fetch.core.handle(), OriginFailure::FirstByte);
                let after = fetch.timeouts.first_byte;
                return lost(Broken::Origin(failed::silent(fetch.origin(), &connection, after)));
            }
            ReplyEvent::ContinueTimeout => {
                timer = None;
                upload.release();
                if !pass_on(fetch, client, &ResponseHead::new(Status(100))).await {
                    return lost(Broken::ClientLeft);
                }
            }
        }
    }
}

/// The first-byte limit counts from the request's last byte; while the client is to send, the client's limits count.
fn poll_timer(
    fetch: &Fetch,
    upload: &Upload,
    timer: &mut Option<Pin<Box<Sleep>>>,
    cx: &mut Context<'_>,
) -> Poll<ReplyEvent> {
    if upload.is_reading() {
        *timer = None;
        return Poll::Pending;
    }
    let (after, event) = if upload.awaits_continue() {
        (CONTINUE_TIMEOUT, ReplyEvent::ContinueTimeout)
    } else {
        (fetch.timeouts.first_byte, ReplyEvent::FirstByteTimeout)
    };
    let timer = timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(after)));
    timer.as_mut().poll(cx).map(|()| event)
}

fn finish(
    fetch: &mut Fetch,
    connection: OriginConnection,
    answer: ReplyHead,
    unread: UnreadBytes,
    upload: &Upload,
) -> OriginReply {
    connection.succeeded();
    let arrived = Moment::now();
    let mut answer = answer;
    if answer.body != ResponseBody::Tunnel && !answer.head.fields.view().contains(FieldName::Date) {
        // RFC 9110 §6.6.1: a recipient with a clock dates what came undated, before it is stored or passed on.
        let now_s = (fetch.core.clock().at(arrived).wall_ms / 1_000) as i64;
        answer.head.fields.push(FieldName::Date, write_date(now_s));
    }
    if let Some(records) = fetch.records() {
        fetch_records::answered(records, &answer.head, answer.head_bytes);
    }
    OriginReply {
        framing: answer.body,
        body: Arriving {
            connection,
            framing: answer.body,
            // An origin that answered before it had the whole body may still be reading it.
            persistent: answer.persistent && upload.is_done() && !fetch.is_last(),
            early: unread.bytes,
            filters: None,
        },
        arrival: Arrival {
            received: fetch.core.clock().at(arrived),
            delay_ms: fetch.sent.micros_until(arrived) / 1_000,
        },
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

impl UnreadBytes {
    /// The next head, from what is there or from the socket.
    fn poll_answer(
        &mut self,
        fetch: &Fetch,
        connection: &mut OriginConnection,
        heard: &mut bool,
        cx: &mut Context<'_>,
    ) -> Poll<ReplyEvent> {
        if !self.bytes.is_empty() && self.looked_at == 0 {
            match self.take_answer(fetch, &[]) {
                Ok(None) => {}
                Ok(Some(answer)) => return Poll::Ready(ReplyEvent::Answer(Box::new(answer))),
                Err(refusal) => return Poll::Ready(ReplyEvent::Refused(refusal)),
            }
        }
        loop {
            let mut scratch = fetch.core.scratch.borrow_mut();
            let mut buffer = ReadBuf::new(&mut scratch);
            match Pin::new(&mut connection.stream).poll_read(cx, &mut buffer) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(_)) => return Poll::Ready(ReplyEvent::Ended),
                Poll::Ready(Ok(())) if buffer.filled().is_empty() => return Poll::Ready(ReplyEvent::Ended),
                Poll::Ready(Ok(())) => {}
            }
            *heard = true;
            fetch.core.counters.origin_bytes_in.add(buffer.filled().len() as u64);
            match self.take_answer(fetch, buffer.filled()) {
                Ok(None) => {}
                Ok(Some(answer)) => return Poll::Ready(ReplyEvent::Answer(Box::new(answer))),
                Err(refusal) => return Poll::Ready(ReplyEvent::Refused(refusal)),
            }
        }
    }

    fn take_answer(&mut self, fetch: &Fetch, new: &[u8]) -> Result<Option<ReplyHead>, Refusal> {
        let limits = &fetch.site.settings.limits.response_head;
        self.take(new, limits, |bytes| {
            let mut spans = fetch.core.spans.borrow_mut();
            let received = read_response(bytes, &mut spans, limits, fetch.method(), fetch.is_upgrade())?;
            Ok(received.map(|received| {
                let ReceivedResponse { response, body, persistent, head_bytes } = received;
                (
                    ReplyHead { head: response.to_head_with_room(OUR_LINES, OUR_BYTES), body, persistent, head_bytes },
                    head_bytes,
                )
            }))
        })
    }

    /// Reads a head from what was kept and what is new, and keeps what is behind it. An origin that sends its head byte
    /// by byte has it read once a line, not once a byte.
    fn take<T>(
        &mut self,
        new: &[u8],
        limits: &HeadLimits,
        read: impl FnOnce(&[u8]) -> Result<Option<(T, usize)>, Refusal>,
    ) -> Result<Option<T>, Refusal> {
        if self.bytes.is_empty() {
            let taken = read(new)?;
            let (head, head_bytes) = taken.map_or((None, 0), |(head, head_bytes)| (Some(head), head_bytes));
            self.bytes.extend_from_slice(&new[head_bytes..]);
            self.looked_at = if head.is_none() { self.bytes.len() } else { 0 };
            return Ok(head);
        }
        self.bytes.extend_from_slice(new);
        if !may_end_now(&self.bytes, self.looked_at, limits) {
            return Ok(None);
        }
        let Some((head, head_bytes)) = read(&self.bytes)? else {
            self.looked_at = self.bytes.len();
            return Ok(None);
        };
        self.bytes.drain(..head_bytes);
        self.looked_at = 0;
        Ok(Some(head))
    }
}

#[cfg(test)]
mod tests {
    use message::Method;

    use super::*;

    /// The statuses of the heads that `text` begins with, when it comes in pieces of so many bytes. Returns how often
    /// it was read.
    fn check(text: &str, piece_bytes: usize, expect: &[u16], behind: &str) -> usize {
        let limits = HeadLimits::RESPONSE;
        let (mut unread, mut reads, mut statuses, mut spans) = (UnreadBytes::default(), 0, Vec::new(), Vec::new());
        for piece in text.as_bytes().chunks(piece_bytes) {
            let mut new = piece;
            while statuses.len() < expect.len() {
                let taken = unread.take(std::mem::take(&mut new), &limits, |bytes| {
                    reads += 1;
                    let received = read_response(bytes, &mut spans, &limits, Method::Get, false)?;
                    Ok(received.map(|received| (received.response.status.0, received.head_bytes)))
                });
                let Some(status) = taken.expect("nothing is wrong with it") else { break };
                statuses.push(status);
            }
        }
        assert_eq!(statuses, expect, "{text} by {piece_bytes}");
        assert!(behind.as_bytes().starts_with(&unread.bytes), "{:?} is left", unread.bytes);
        reads
    }

    #[test]
    fn heads_are_read_however_they_are_split() {
        let text = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody";
        for piece_bytes in 1..=text.len() {
            check(text, piece_bytes, &[103, 200], "body");
        }
    }

    #[test]
    fn a_head_that_comes_byte_by_byte_is_read_once_a_line() {
        let text = format!("HTTP/1.1 200 OK\r\n{}\r\n", "X-Field: some value\r\n".repeat(90));
        let reads = check(&text, 1, &[200], "");
        assert!(reads < 110, "{reads}");
        let long = format!("HTTP/1.1 200 OK\r\nX-Field: {}\r\n\r\n", "a".repeat(30_000));
        let reads = check(&long, 1, &[200], "");
        assert!(reads < 30, "{reads}");
    }
}
