//! A client of HTTP/2 in memory, for tests: it makes frames, sends them to a server's machine, and notes what it hears.

use crate::limits::FRAME_PAYLOAD_BYTES_MIN;
use message::Scheme;

use super::frame::{END_HEADERS, END_STREAM, FrameHead, FrameType, StreamId, frame_head};
use super::{ConnectionEvent, ErrorCode, HeadArena, Http2Connection, Http2Options, PREFACE, Received};
use crate::{ChunkedLimits, HeadLimits};

pub(super) const OPTIONS: Http2Options<'static> = Http2Options {
    head_limits: &HeadLimits::REQUEST,
    trailer_limits: &ChunkedLimits::DEFAULT,
    scheme: Scheme::Https,
    believes_scheme: false,
    streams_max: 100,
    extended_connect: false,
    peer_frame_bytes_min: FRAME_PAYLOAD_BYTES_MIN,
};

pub(super) type Frames = Vec<Vec<u8>>;

/// A client in memory: what it sends, and what it hears.
pub(super) struct Client {
    pub(super) connection: Http2Connection,
    pub(super) arena: HeadArena,
    pub(super) now_ms: u64,
    /// What the machine has not consumed.
    pub(super) kept: Vec<u8>,
    /// What it said, in order.
    pub(super) heard: Vec<String>,
    /// Bodies are released as they come.
    pub(super) reads_bodies: bool,
}

impl Client {
    /// Greetings have been exchanged, and the window that comes with a first body has been said.
    pub(super) fn new() -> Client {
        let mut client = Client::silent();
        client.send(&[PREFACE, &frame(FrameType::Settings, 0, 0, &[])].concat());
        client.connection.control_written(usize::MAX);
        client.connection.owes_window = false;
        client.heard.clear();
        client
    }

    pub(super) fn silent() -> Client {
        Client {
            connection: Http2Connection::of_client(&OPTIONS),
            arena: HeadArena::default(),
            now_ms: 0,
            kept: Vec::new(),
            heard: Vec::new(),
            reads_bodies: true,
        }
    }

    /// The peer is an origin instead, which has said its settings.
    pub(super) fn origin() -> Client {
        let mut origin = Client { connection: Http2Connection::to_origin(&OPTIONS), ..Client::silent() };
        origin.send(&frame(FrameType::Settings, 0, 0, &[]));
        origin.connection.control_written(usize::MAX);
        origin
    }

    /// Sends bytes, and hears what comes of them and of what was kept.
    pub(super) fn send(&mut self, bytes: &[u8]) {
        self.kept.extend_from_slice(bytes);
        loop {
            let received = self.connection.receive(&self.kept, &mut self.arena, &OPTIONS, self.now_ms);
            let (consumed, told, taken) = match received {
                Ok(Received { consumed, event: Some(event) }) => {
                    let taken = match &event {
                        ConnectionEvent::Data { stream, range, .. } => Some((*stream, range.len())),
                        _ => None,
                    };
                    (consumed, told(&event), taken)
                }
                Ok(Received { consumed, event: None }) => {
                    self.kept.drain(..consumed);
                    return;
                }
                Err(error) => {
                    let told = format!("error {:?} {}", error.code, error.token);
                    // It is said again whenever more is handed in.
                    if self.heard.last() != Some(&told) {
                        self.heard.push(told);
                    }
                    self.kept.clear();
                    return;
                }
            };
            self.heard.push(told);
            self.kept.drain(..consumed);
            if let (Some((stream, bytes)), true) = (taken, self.reads_bodies) {
                self.connection.release(stream, bytes);
            }
        }
    }

    /// What the machine wants written, a word each.
    pub(super) fn control(&mut self) -> Vec<String> {
        let control = self.connection.control().to_vec();
        self.connection.control_written(control.len());
        let (mut rest, mut frames) = (&control[..], Vec::new());
        while let Some(head) = FrameHead::read(rest) {
            let (payload, behind) = rest[9..].split_at(head.payload_bytes);
            let number = |at: usize| u32::from_be_bytes(*payload[at..].first_chunk::<4>().expect("four bytes"));
            let stream = head.stream.0;
            frames.push(match head.frame_type {
                FrameType::RstStream => format!("RST {stream} {:?}", ErrorCode::of_number(number(0))),
                FrameType::GoAway => {
                    let debug = String::from_utf8_lossy(&payload[8..]);
                    format!("GOAWAY {} {:?} {debug}", number(0), ErrorCode::of_number(number(4)))
                }
                FrameType::WindowUpdate => format!("WINDOW {stream} {}", number(0)),
                FrameType::Ping => format!("PING {} {}", head.flags, String::from_utf8_lossy(payload)),
                FrameType::Settings => format!("SETTINGS {} {}", head.flags, payload.len()),
                other => format!("{other:?}"),
            });
            rest = behind;
        }
        assert!(rest.is_empty(), "whole frames are queued");
        frames
    }
}

pub(super) fn told(event: &ConnectionEvent<'_>) -> String {
    match event {
        ConnectionEvent::Request { stream, head, is_whole } => {
            let request = &head.received.request;
            let target = [request.method_text, b" ", request.path].concat();
            let end = if *is_whole { " whole" } else { "" };
            format!("request {} {}{end}", stream.0, String::from_utf8_lossy(&target))
        }
        ConnectionEvent::Refused { stream, refusal, .. } => format!("refused {} {}", stream.0, refusal.token),
        ConnectionEvent::Response { stream, head, is_whole } => {
            let end = if *is_whole { " whole" } else { "" };
            format!("response {} {}{end}", stream.0, head.response.status.0)
        }
        ConnectionEvent::Data { stream, range, is_last } => {
            format!("data {} {}{}", stream.0, range.len(), if *is_last { " last" } else { "" })
        }
        ConnectionEvent::Trailers { stream, fields } => format!("trailers {} {}", stream.0, fields.count()),
        ConnectionEvent::StreamEnded { stream, code, token } => format!("ended {} {code:?} {token}", stream.0),
        ConnectionEvent::WindowOpened { stream } => format!("window {}", stream.map_or(0, |stream| stream.0)),
        ConnectionEvent::GoneAway { code, .. } => format!("gone {code:?}"),
    }
}

pub(super) fn frame(frame_type: FrameType, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    [&frame_head(frame_type, flags, StreamId(stream), payload.len())[..], payload].concat()
}

/// `:method: GET`, `:scheme: https`, `:path: /`, `:authority: t`.
pub(super) const GET: &[u8] = &[0x82, 0x87, 0x84, 0x01, 1, b't'];
pub(super) const POST: &[u8] = &[0x83, 0x87, 0x84, 0x01, 1, b't'];

pub(super) fn with_length(length: &str) -> Vec<u8> {
    [POST, &[0x0f, 0x0d, length.len() as u8], length.as_bytes()].concat()
}

pub(super) fn get(stream: u32) -> Vec<u8> {
    frame(FrameType::Headers, END_HEADERS | END_STREAM, stream, GET)
}

pub(super) fn post(stream: u32) -> Vec<u8> {
    frame(FrameType::Headers, END_HEADERS, stream, POST)
}

pub(super) fn data(stream: u32, flags: u8, bytes: usize) -> Vec<u8> {
    frame(FrameType::Data, flags, stream, &vec![b'x'; bytes])
}

pub(super) fn window_update(stream: u32, by: u32) -> Vec<u8> {
    frame(FrameType::WindowUpdate, 0, stream, &by.to_be_bytes())
}

pub(super) fn rst(stream: u32) -> Vec<u8> {
    frame(FrameType::RstStream, 0, stream, &8u32.to_be_bytes())
}

pub(super) fn setting(number: u16, value: u32) -> Vec<u8> {
    frame(FrameType::Settings, 0, 0, &[&number.to_be_bytes()[..], &value.to_be_bytes()].concat())
}
