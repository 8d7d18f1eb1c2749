//! A client in memory: it has a request's body, and keeps the answer. For `larder vcl explain` and `vcl test`, and for tests of the
//! steps, which need no socket.

use std::collections::VecDeque;

use bytes::Bytes;
use message::Status;
use wire::{Content, has_length};

use crate::answer_head::AnswerHead;
use crate::fetch::broken::Broken;
#[cfg(test)]
use crate::records::session_records::SessionEnd;
use crate::request_body::BodyRead;
use crate::send_outcome::End;

/// The client of a dry run.
#[derive(Debug, Default)]
pub(crate) struct DryRun {
    body: VecDeque<Bytes>,
    /// It leaves as soon as it has to wait.
    pub(crate) leaves: bool,
    pub(crate) interims: Vec<DryAnswer>,
    /// What it got; nothing where there was no answer.
    pub(crate) answer: Option<DryAnswer>,
    /// May it ask again the same way, and if not, why?
    #[cfg(test)]
    pub(crate) ended: Option<(bool, SessionEnd)>,
}

/// A response, as an HTTP/1.1 client would see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DryAnswer {
    pub(crate) status: u16,
    pub(crate) reason: String,
    /// In order.
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) end: End,
}

impl DryRun {
    /// A client whose request has this body.
    pub(crate) fn with_body(body: Bytes) -> DryRun {
        DryRun { body: Some(body).into_iter().filter(|body| !body.is_empty()).collect(), ..DryRun::default() }
    }

    pub(super) fn has_unread_body(&self) -> bool {
        !self.body.is_empty()
    }

    /// It comes in one piece.
    pub(super) fn has_untouched_body(&self) -> bool {
        self.has_unread_body()
    }

    pub(super) fn next_of_body(&mut self) -> Result<BodyRead, Broken> {
        match self.body.pop_front() {
            Some(bytes) => Ok(BodyRead::Data(bytes)),
            None if self.leaves => Err(Broken::ClientLeft),
            None => Ok(BodyRead::End(None)),
        }
    }

    pub(super) fn drop_body(&mut self) {
        self.body.clear();
    }

    pub(super) fn has_left(&self) -> bool {
        self.leaves
    }

    pub(super) fn take_interim(&mut self, head: &AnswerHead) {
        self.interims.push(DryAnswer::of(head, Content::Unsaid));
    }
}

impl DryAnswer {
    pub(super) fn of(head: &AnswerHead, content: Content) -> DryAnswer {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let reason = head.reason.as_deref().map_or_else(|| head.status.reason().to_owned(), text);
        let mut fields = Vec::new();
        head.each_field(|name, value| fields.push((text(name), text(value))));
        match content {
            Content::Length(length) if has_length(head.status) => {
                fields.push(("Content-Length".to_owned(), length.to_string()));
            }
            Content::Unknown if has_length(head.status) => {
                fields.push(("Transfer-Encoding".to_owned(), "chunked".to_owned()));
            }
            _ => {}
        }
        let Status(status) = head.status;
        DryAnswer { status, reason, fields, body: Vec::new(), end: End::Sent }
    }
}
