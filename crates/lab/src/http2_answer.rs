//! The reader of one HTTP/2 stream's answer: what comes on it in, the whole answer out, or what is wrong instead.
//!
//! Frames and field compression are read by the crate `h2`, which shares no code with what may be measured. A body that came
//! in one frame is handed on as it is; one that comes in several is summed on the way, or kept where its bytes are wanted.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::client::ResponseFuture;
use h2::{Reason, RecvStream};
use http::Response;

use crate::answer::{Answer, BodySeen, Fault, Reading};
use crate::answer_coding::SaidCoding;
use crate::error_kind::ErrorKind;
use crate::limits::CODED_BODY_BYTES_MAX;

#[derive(Debug)]
pub(crate) enum Http2AnswerReader {
    Head(ResponseFuture),
    Body(StreamBody),
}

#[derive(Debug)]
pub(crate) struct StreamBody {
    head: Response<()>,
    stream: RecvStream,
    length: u64,
    pieces: BodyPieces,
}

#[derive(Debug)]
enum BodyPieces {
    None,
    One(Bytes),
    /// Of several, one behind another, for who wants the bytes.
    Kept(Vec<u8>),
    Summed(crc32fast::Hasher),
}

/// How far a stream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamProgress {
    /// More of the answer has come, and more is to come.
    Some,
    Whole,
}

impl Http2AnswerReader {
    /// Reads on.
    pub(crate) fn poll(
        &mut self,
        reading: Reading<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<StreamProgress, h2::Error>> {
        let mut progress = Poll::Pending;
        if let Http2AnswerReader::Head(response) = self {
            let (head, stream) = ready!(Pin::new(response).poll(cx))?.into_parts();
            let head = Response::from_parts(head, ());
            *self = Http2AnswerReader::Body(StreamBody { head, stream, length: 0, pieces: BodyPieces::None });
            progress = Poll::Ready(Ok(StreamProgress::Some));
        }
        let Http2AnswerReader::Body(body) = self else { return progress };
        match body.poll(reading, cx) {
            Poll::Pending => progress,
            ready => ready,
        }
    }

    /// Has its head come?
    pub(crate) fn has_begun(&self) -> bool {
        matches!(self, Http2AnswerReader::Body(_))
    }

    /// What came, when it is whole.
    pub(crate) fn answer(&self) -> Option<Answer<'_>> {
        let Http2AnswerReader::Body(body) = self else { return None };
        let seen = match &body.pieces {
            BodyPieces::None => BodySeen::Whole(&[]),
            BodyPieces::One(bytes) => BodySeen::Whole(bytes),
            BodyPieces::Kept(bytes) => BodySeen::Whole(bytes),
            BodyPieces::Summed(hasher) => BodySeen::Summed(hasher.clone().finalize()),
        };
        Some(Answer {
            status: body.head.status().as_u16(),
            length: body.length,
            body: seen,
            persistent: true,
            coding: body.coding(),
            head_bytes: body.field_bytes(),
            framing_bytes: 0,
        })
    }

    /// The head as HTTP/1 would write it.
    pub(crate) fn head_text(&self) -> Vec<u8> {
        let Http2AnswerReader::Body(body) = self else { return Vec::new() };
        let mut text = format!("HTTP/2 {}\r\n", body.head.status().as_u16()).into_bytes();
        for (name, value) in body.head.headers() {
            text.extend_from_slice(&[name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
        }
        text.extend_from_slice(b"\r\n");
        text
    }
}

impl StreamBody {
    fn poll(&mut self, reading: Reading<'_>, cx: &mut Context<'_>) -> Poll<Result<StreamProgress, h2::Error>> {
        let mut progress = Poll::Pending;
        while !self.stream.is_end_stream() {
            match self.stream.poll_data(cx) {
                Poll::Pending => return progress,
                Poll::Ready(Some(data)) => {
                    self.take(data?, reading)?;
                    progress = Poll::Ready(Ok(StreamProgress::Some));
                }
                Poll::Ready(None) => match self.stream.poll_trailers(cx) {
                    Poll::Pending => return progress,
                    Poll::Ready(trailers) => {
                        trailers?;
                        break;
                    }
                },
            }
        }
        Poll::Ready(Ok(StreamProgress::Whole))
    }

    fn take(&mut self, data: Bytes, reading: Reading<'_>) -> Result<(), h2::Error> {
        self.length += data.len() as u64;
        self.stream.flow_control().release_capacity(data.len())?;
        let add = |hasher: &mut crc32fast::Hasher, bytes: &[u8]| {
            if reading.sums {
                hasher.update(bytes);
            }
        };
        match &mut self.pieces {
            BodyPieces::None => self.pieces = BodyPieces::One(data),
            BodyPieces::One(first) if first.is_empty() => self.pieces = BodyPieces::One(data),
            BodyPieces::One(_) if data.is_empty() => {}
            BodyPieces::One(first) if reading.keeps => {
                self.pieces = BodyPieces::Kept([&first[..], &data[..]].concat());
            }
            BodyPieces::Kept(kept) if self.length <= CODED_BODY_BYTES_MAX => kept.extend_from_slice(&data),
            BodyPieces::Kept(kept) => {
                let mut hasher = crc32fast::Hasher::new();
                add(&mut hasher, kept);
                add(&mut hasher, &data);
                self.pieces = BodyPieces::Summed(hasher);
            }
            BodyPieces::One(first) => {
                let mut hasher = crc32fast::Hasher::new();
                add(&mut hasher, first);
                add(&mut hasher, &data);
                self.pieces = BodyPieces::Summed(hasher);
            }
            BodyPieces::Summed(hasher) => add(hasher, &data),
        }
        Ok(())
    }

    fn coding(&self) -> SaidCoding {
        let values = self.head.headers().get_all(http::header::CONTENT_ENCODING);
        values.iter().fold(SaidCoding::None, |said, value| said.and(value.as_bytes()))
    }

    /// Names and values, before they are compressed.
    fn field_bytes(&self) -> u64 {
        let fields = self.head.headers().iter().map(|(name, value)| name.as_str().len() + value.len());
        (":status200".len() + fields.sum::<usize>()) as u64
    }
}

/// What an error of a stream, or of its connection, is called. `begun`: had the answer's head come? `goaway`: the reason of a
/// GOAWAY that came before.
pub(crate) fn fault(error: &h2::Error, begun: bool, goaway: Option<u32>) -> Fault {
    let kind = match (error.get_io(), error.reason()) {
        (Some(broken), _) => match broken.kind() {
            _ if goaway.is_some_and(|reason| reason != 0 || !begun) => ErrorKind::GoAway,
            std::io::ErrorKind::ConnectionReset => ErrorKind::ReadReset,
            _ if begun => ErrorKind::ShortBody,
            _ => ErrorKind::NoAnswer,
        },
        (None, Some(reason)) if error.is_remote() => match (error.is_go_away(), reason) {
            (true, _) => ErrorKind::GoAway,
            (false, Reason::REFUSED_STREAM) => ErrorKind::StreamRefused,
            (false, _) => ErrorKind::StreamReset,
        },
        (None, Some(_)) => ErrorKind::ProtocolError,
        (None, None) => ErrorKind::Other,
    };
    Fault { kind, text: error.to_string() }
}

/// Did the server end the connection in good order, and say that it has done nothing of this request?
pub(crate) fn was_left_undone(error: &h2::Error) -> bool {
    error.is_go_away() && error.is_remote() && error.reason() == Some(Reason::NO_ERROR)
}
