//! The answer to a client: interim responses, the final one, a tunnel, and the end of the exchange.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use message::Version;
use wire::{Event, Writing};

use crate::answer_head::AnswerHead;
use crate::body::{Body, BodyEvent, Wanted};
use crate::downstream::Downstream;
use crate::downstream::dry_run::{DryAnswer, DryRun};
use crate::http1_sending;
use crate::included::{IncludedAnswer, PageForm};
use crate::outgoing::{Outgoing, OutgoingHead};
use crate::part_in_gzip;
use crate::records::session_records::SessionEnd;
use crate::send_outcome::{End, SendOutcome};
use crate::tunnel_flow::Tunnel;
use crate::vcl_story::filter_names;

impl Downstream<'_> {
    /// An interim response, unless the client speaks HTTP/1.0 (RFC 9110 §15.2). False: the client left.
    pub(crate) async fn send_interim(&mut self, version: Version, head: AnswerHead) -> bool {
        match self {
            Downstream::Http1(connection) => connection.send_interim(version, head).await,
            Downstream::Http2(stream) => stream.send_interim(&head).await,
            Downstream::DryRun(run) => {
                run.take_interim(&head);
                true
            }
            Downstream::Included(_) => true,
        }
    }

    /// To who asks for a tunnel any success says that it is there (RFC 8441 §5), and what follows would be read as frames of a WebSocket:
    /// whatever answers in its place, a page, a file or a program, must not succeed.
    pub(crate) fn takes_for_tunnel(&self, outgoing: &Outgoing) -> bool {
        let succeeds = || matches!(&outgoing.head, OutgoingHead::Whole { head, .. } if head.status.is_success());
        matches!(self, Downstream::Http2(stream) if stream.wants_tunnel && succeeds())
    }

    /// The final answer. `persistent`: the client may ask again the same way, as far as the request goes.
    pub(crate) async fn send(&mut self, outgoing: Outgoing, version: Version, persistent: bool) -> SendOutcome {
        let mut outgoing = outgoing;
        self.add_transport_security(&mut outgoing);
        match self {
            Downstream::Http1(connection) => {
                // The instant run has begun already what it could not finish.
                if connection.exchange.writing() == Writing::Waiting {
                    connection.exchange(Event::AnswerBegun);
                }
                let sent = http1_sending::send(connection, outgoing, version, persistent).await;
                connection.exchange(if sent.end == End::Sent { Event::AnswerEnded } else { Event::AnswerCut });
                sent
            }
            Downstream::Http2(stream) => stream.send(outgoing).await,
            Downstream::DryRun(run) => run.take_answer(outgoing, persistent).await,
            Downstream::Included(client) => client.send(included(outgoing, &client.form)).await,
        }
    }

    fn add_transport_security(&self, outgoing: &mut Outgoing) {
        let (core, is_secure) = match self {
            Downstream::Http1(connection) => (&connection.core, connection.asker().is_secure()),
            Downstream::Http2(stream) => (&stream.core, stream.streams.is_secure),
            Downstream::DryRun(_) | Downstream::Included(_) => return,
        };
        if let OutgoingHead::Whole { head, .. } = &mut outgoing.head {
            head.add_transport_security(&core.site_ref(), is_secure);
        }
    }

    /// Says that bytes flow freely from here on, behind this head if there is one. False: the client left.
    pub(crate) async fn begin_tunnel(&mut self, head: Option<AnswerHead>) -> bool {
        match (self, head) {
            (Downstream::Http1(connection), Some(head)) => {
                if !connection.send_head(head).await {
                    return false;
                }
                connection.exchange(Event::Switched);
                true
            }
            (Downstream::Http1(connection), None) => {
                connection.exchange(Event::Piped);
                connection.unread = None;
                true
            }
            (Downstream::Http2(stream), Some(head)) => stream.begin_tunnel(&head),
            // Without a head bytes of HTTP/1 would flow.
            (Downstream::Http2(_), None) | (Downstream::Included(_), _) => false,
            (Downstream::DryRun(run), head) => {
                head.iter().for_each(|head| run.take_interim(head));
                true
            }
        }
    }

    /// Carries bytes both ways until both sides have ended, one broke, or nothing moved for too long. Returns how many went to the client.
    pub(crate) async fn carry(&mut self, tunnel: Tunnel) -> u64 {
        match self {
            Downstream::Http1(connection) => connection.carry(tunnel).await,
            Downstream::Http2(stream) => stream.carry(tunnel).await,
            // Whoever is at the other end of a tunnel is none of a dry run's.
            Downstream::DryRun(_) | Downstream::Included(_) => 0,
        }
    }

    /// The exchange is over. True when the client may ask again the same way. `why` is asked only where records want to know.
    pub(crate) async fn finish(
        &mut self,
        persistent: bool,
        client_closes: bool,
        why: impl FnOnce() -> SessionEnd,
    ) -> bool {
        match self {
            Downstream::Http1(connection) => {
                if connection.session().is_some() {
                    connection.closes(why());
                }
                connection.leave(persistent, client_closes).await
            }
            // The stream ends with its task.
            Downstream::Http2(_) | Downstream::Included(_) => persistent,
            #[cfg(test)]
            Downstream::DryRun(run) => {
                run.ended = Some((persistent, why()));
                persistent
            }
            #[cfg(not(test))]
            Downstream::DryRun(_) => persistent,
        }
    }
}

/// What a page takes of an answer: of its fields only that it is in gzip.
fn included(outgoing: Outgoing, form: &PageForm) -> IncludedAnswer {
    let OutgoingHead::Whole { head, .. } = outgoing.head else {
        unreachable!("only an HTTP/1 connection begins with a head and goes on here")
    };
    let is_gzip =
        filter_names::is_gzip(head.rendered_fields().unwrap_or_default()) || filter_names::is_gzip(head.fields.view());
    let body = part_in_gzip::of(outgoing.body, is_gzip, form);
    IncludedAnswer { status: head.status.0, body }
}

impl DryRun {
    pub(crate) async fn take_answer(&mut self, outgoing: Outgoing, persistent: bool) -> SendOutcome {
        let Outgoing { head, mut body } = outgoing;
        let OutgoingHead::Whole { head, content, .. } = head else {
            unreachable!("only an HTTP/1 connection begins with a head and goes on here")
        };
        let mut answer = DryAnswer::of(&head, content);
        if !persistent {
            answer.fields.push(("Connection".to_owned(), "close".to_owned()));
        }
        let (mut queue, mut bytes) = (VecDeque::new(), Vec::new());
        answer.end = poll_fn(|cx| poll_all(&mut body, &mut queue, &mut bytes, cx)).await;
        answer.body = bytes;
        let (end, body_bytes) = (answer.end, answer.body.len() as u64);
        self.answer = Some(answer);
        SendOutcome { end, head_bytes: 0, body_bytes, persistent }
    }
}

/// Reads all of a body.
fn poll_all(body: &mut Body, queue: &mut VecDeque<Bytes>, bytes: &mut Vec<u8>, cx: &mut Context<'_>) -> Poll<End> {
    loop {
        let event = ready!(body.poll_bytes(queue, cx, Wanted::Bytes));
        queue.drain(..).for_each(|piece| bytes.extend_from_slice(&piece));
        match event {
            BodyEvent::More => {}
            BodyEvent::End(_) => return Poll::Ready(End::Sent),
            BodyEvent::Broken(end) => return Poll::Ready(end),
            BodyEvent::Pages => unreachable!("bytes are wanted"),
        }
    }
}
