//! The making of an encoding: a task that reads a response through filters, and writes what comes of it where whoever asks for it
//! follows.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::task::Poll;

use cache::{EncodingDraft, Failure};

use crate::body::{Body, BodyEvent, Wanted};
use crate::coded_answer::Primary;
use crate::send_outcome;
use crate::send_outcome::End;

/// Makes the encoding of what `body` brings, which comes of `primary`.
pub(crate) fn spawn(draft: EncodingDraft, body: Body, primary: Primary) {
    tokio::task::spawn_local(make(draft, body, primary));
}

async fn make(mut draft: EncodingDraft, mut body: Body, primary: Primary) {
    let mut queue = VecDeque::new();
    loop {
        poll_fn(|cx| draft.poll_room(cx)).await;
        if draft.is_for_nobody() {
            return;
        }
        let is_under_way = primary.stored().is_none();
        let event = poll_fn(|cx| {
            // Nobody reads on, and the fetch that we would keep going may be without end.
            if is_under_way && draft.poll_abandoned(cx).is_ready() {
                return Poll::Ready(None);
            }
            body.poll_bytes(&mut queue, cx, Wanted::Bytes).map(Some)
        })
        .await;
        let Some(event) = event else { return };
        queue.drain(..).for_each(|piece| draft.append(piece));
        match event {
            BodyEvent::More => {}
            BodyEvent::End(_) => {
                draft.land(primary.stored().as_ref());
                return;
            }
            BodyEvent::Broken(end) => {
                let token = if let End::Cut(token) = end { token } else { "encoding-broken" };
                let text = "what the encoding is made of broke off, or is not in the coding that its head names".into();
                // What cannot be read now cannot be later.
                draft.abort(Failure { status: 502, token, text, remember_ms: 0 }, send_outcome::is_of_coding(token));
                return;
            }
            BodyEvent::Pages => unreachable!("bytes are asked for"),
        }
    }
}
