//! Laws of `wire::http2::Http2Connection`, for any bytes of a client behind its greeting. The first byte chooses how they are cut, and
//! what is done about streams that open: left alone, answered, or reset.

use std::collections::BTreeMap;

use message::Scheme;
use wire::http2::{
    ConnectionError, ConnectionEvent, ErrorCode, FRAME_HEAD_BYTES, HeadArena, Http2Connection, Http2Options, PREFACE,
    Received, StreamId, StreamState, StreamStep,
};
use wire::limits::FRAME_PAYLOAD_BYTES_MIN;
use wire::limits::{CONNECTION_WINDOW_BYTES_MAX, CONTROL_BYTES_MAX, HEADER_BLOCK_BYTES_MAX};
use wire::{ChunkedLimits, HeadLimits};

const STREAMS_MAX: u32 = 5;

const OPTIONS: Http2Options<'static> = Http2Options {
    head_limits: &HeadLimits::REQUEST,
    trailer_limits: &ChunkedLimits::DEFAULT,
    scheme: Scheme::Http,
    believes_scheme: false,
    streams_max: STREAMS_MAX,
    extended_connect: false,
    peer_frame_bytes_min: FRAME_PAYLOAD_BYTES_MIN,
};

/// Panics when a law is broken.
pub fn run(data: &[u8]) {
    let Some((&choice, data)) = data.split_first() else { return };
    let greeted = [PREFACE, &[0, 0, 0, 4, 0, 0, 0, 0, 0], data].concat();
    let whole = played(&greeted, greeted.len(), choice);
    let in_pieces = played(&greeted, 1 + usize::from(choice >> 2), choice);
    assert_eq!(whole, in_pieces, "it does not matter how bytes are cut");
}

/// What was told: pieces of one body that come behind each other are one.
#[derive(Debug, Default, PartialEq, Eq)]
struct Course {
    told: Vec<String>,
    control: Vec<u8>,
}

/// A stream as a client may see it; the table of the crate says which step may follow which.
struct Watched {
    state: StreamState,
    came_bytes: usize,
}

fn played(bytes: &[u8], piece: usize, choice: u8) -> Course {
    let mut connection = Http2Connection::of_client(&OPTIONS);
    let (mut arena, mut kept, mut course) = (HeadArena::default(), Vec::new(), Course::default());
    let mut streams: BTreeMap<StreamId, Watched> = BTreeMap::new();
    let mut unreleased_bytes = 0;
    for part in bytes.chunks(piece.max(1)) {
        kept.extend_from_slice(part);
        loop {
            let received = match connection.receive(&kept, &mut arena, &OPTIONS, 0) {
                Ok(received) => received,
                Err(error) => {
                    check_failure(&mut connection, &mut arena, error);
                    course.told.push(format!("{error:?}"));
                    course.control.extend_from_slice(connection.control());
                    return course;
                }
            };
            let Received { consumed, event } = received;
            assert!(consumed <= kept.len());
            let Some(event) = event else {
                kept.drain(..consumed);
                break;
            };
            let acted = watch(&event, consumed, &kept, &mut streams, &mut course.told);
            if let ConnectionEvent::Data { stream, range, .. } = &event {
                // Half of them read bodies.
                match choice & 1 {
                    0 => connection.release(*stream, range.len()),
                    _ => unreleased_bytes += range.len(),
                }
            }
            kept.drain(..consumed);
            act(&mut connection, acted, choice, &mut streams);
            assert!(unreleased_bytes <= CONNECTION_WINDOW_BYTES_MAX as usize, "a window is kept to");
            check_bounds(&connection, &kept, &streams);
        }
    }
    course.control.extend_from_slice(connection.control());
    course
}

fn check_failure(connection: &mut Http2Connection, arena: &mut HeadArena, error: ConnectionError) {
    assert_ne!(error.code, ErrorCode::NoError);
    let again = connection.receive(b"\0\0\0\x04\0\0\0\0\0", arena, &OPTIONS, 0).map(|_| ());
    assert_eq!(again, Err(error), "an error is final");
    let said = connection.control();
    assert!(said.ends_with(error.token.as_bytes()), "GOAWAY says why");
}

fn check_bounds(connection: &Http2Connection, kept: &[u8], streams: &BTreeMap<StreamId, Watched>) {
    assert_eq!(connection.streams_count(), streams.len());
    assert!(streams.len() <= STREAMS_MAX as usize);
    assert!(kept.len() < FRAME_HEAD_BYTES + (16 << 10), "a frame is taken when it is whole");
    // What is queued at once may be a little more than is looked at before the next frame.
    assert!(connection.control().len() <= CONTROL_BYTES_MAX + 256);
    assert!(connection.heap_bytes() <= 2 * HEADER_BLOCK_BYTES_MAX + 4 * CONTROL_BYTES_MAX + (16 << 10));
}

fn step(streams: &mut BTreeMap<StreamId, Watched>, id: StreamId, step: StreamStep) {
    let stream = streams.get_mut(&id).unwrap_or_else(|| panic!("{id:?} is not open, and {step:?}"));
    stream.state = stream.state.after(step).unwrap_or_else(|| panic!("{:?} has no {step:?}", stream.state));
    if stream.state == StreamState::Closed {
        streams.remove(&id);
    }
}

/// Holds an event against the table, and notes it. A stream to act upon, if one has opened.
fn watch(
    event: &ConnectionEvent<'_>,
    consumed: usize,
    input: &[u8],
    streams: &mut BTreeMap<StreamId, Watched>,
    told: &mut Vec<String>,
) -> Option<StreamId> {
    match event {
        ConnectionEvent::Request { stream, is_whole, .. } | ConnectionEvent::Refused { stream, is_whole, .. } => {
            assert!(stream.0 % 2 == 1 && streams.keys().next_back().is_none_or(|last| last < stream));
            let said = match event {
                ConnectionEvent::Request { head, .. } => {
                    let request = &head.received.request;
                    assert!(request.path.first().is_none_or(|first| matches!(first, b'/' | b'*')), "{request:?}");
                    let is_clean = |text: &[u8]| !text.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0));
                    assert!(is_clean(request.path) && is_clean(request.method_text));
                    assert!(request.fields.iter().all(|field| is_clean(field.name_text) && is_clean(field.value)));
                    format!("{:?}", request.path)
                }
                _ => String::new(),
            };
            told.push(format!("opened {stream:?} {is_whole} {said}"));
            streams.insert(*stream, Watched { state: StreamState::Open, came_bytes: 0 });
            if *is_whole {
                step(streams, *stream, StreamStep::RemoteEnded);
            }
            return Some(*stream);
        }
        ConnectionEvent::Data { stream, range, is_last } => {
            assert!(range.start <= range.end && range.end <= consumed && consumed <= input.len());
            let seen = streams.get_mut(stream).expect("of an open stream");
            assert!(matches!(seen.state, StreamState::Open | StreamState::HalfClosedLocal), "{:?}", seen.state);
            seen.came_bytes += range.len();
            if *is_last {
                told.push(format!("body of {stream:?}: {}", seen.came_bytes));
                step(streams, *stream, StreamStep::RemoteEnded);
            }
        }
        ConnectionEvent::Trailers { stream, fields } => {
            told.push(format!("trailers of {stream:?}: {}", fields.count()));
            step(streams, *stream, StreamStep::RemoteEnded);
        }
        ConnectionEvent::StreamEnded { stream, code, token } => {
            told.push(format!("ended {stream:?} {code:?} {token}"));
            streams.remove(stream);
        }
        ConnectionEvent::WindowOpened { stream } => told.push(format!("window of {stream:?}")),
        ConnectionEvent::GoneAway { last, code } => told.push(format!("gone {last:?} {code:?}")),
        ConnectionEvent::Response { .. } => panic!("a client answers nothing"),
    }
    None
}

/// What a server may do about a stream that has opened.
fn act(
    connection: &mut Http2Connection,
    opened: Option<StreamId>,
    choice: u8,
    streams: &mut BTreeMap<StreamId, Watched>,
) {
    let Some(id) = opened else { return };
    match choice >> 1 & 3 {
        0 => {}
        1 => {
            assert!(connection.head_frames(id, 1, true).is_some());
            step(streams, id, StreamStep::LocalEnded);
            assert!(!connection.may_send(id), "its end is said");
        }
        2 => {
            connection.reset(id, ErrorCode::Cancel);
            step(streams, id, StreamStep::Reset);
        }
        _ => {
            assert!(connection.head_frames(id, 1, false).is_some());
            let bytes = connection.sendable(id).min(100);
            if bytes > 0 {
                assert!(connection.data_frame(id, bytes, false).is_some());
            }
        }
    }
}
