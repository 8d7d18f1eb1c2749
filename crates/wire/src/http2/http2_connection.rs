//! The machine of an HTTP/2 connection: bytes in, events out; frames out as heads and control frames. No I/O, no clock.
//!
//! The caller hands in what it has read and is told how much of it was consumed and what happened. What is left it
//! hands in again with more behind it. A head is borrowed from the caller's arena, DATA is a range of its input: nothing is
//! copied, and an idle connection holds no buffer. A mistake of a stream ends that stream; one of the connection ends it, and
//! GOAWAY says why. What each frame does is in `received_frames`, `request_blocks` and `response_blocks`; what is sent in
//! `sent_frames`.

use std::ops::Range;

use message::{FieldsView, Scheme};

use super::control_frames::{setting, write_goaway, write_ping, write_settings, write_window_update};
use super::error_code::{ConnectionError, ErrorCode};
use super::flood_score::FloodScore;
use super::flow_control::{ReceiveWindow, SendWindow};
use super::frame::{FRAME_HEAD_BYTES, PING_BYTES, StreamId};
use super::header_fragments::HeaderFragments;
use super::hpack::BlockDecoder;
use super::open_streams::OpenStreams;
use super::peer_settings::PeerSettings;
use super::priority::Priority;
use super::request_fields::{HeadArena, Http2Request};
use crate::limits::{
    CONNECTION_WINDOW_BYTES, CONNECTION_WINDOW_BYTES_MAX, CONTROL_BYTES_MAX, ORIGIN_STREAM_WINDOW_BYTES,
};
use crate::{ChunkedLimits, HeadLimits, ReceivedResponse, Refusal};

/// What a client sends first (RFC 9113 §3.4).
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// What the caller decides, and the same for each call.
#[derive(Clone, Copy, Debug)]
pub struct Http2Options<'l> {
    pub head_limits: &'l HeadLimits,
    pub trailer_limits: &'l ChunkedLimits,
    /// Of the connection.
    pub scheme: Scheme,
    /// Who speaks to us may say that its client came by the other one: it ended the client's TLS.
    pub believes_scheme: bool,
    /// How many streams may be open at a time: the client's, or, as long as the origin says nothing, ours.
    pub streams_max: u32,
    /// Announce and accept extended CONNECT (RFC 8441).
    pub extended_connect: bool,
    /// The shortest frames that a client may ask for: [`FRAME_PAYLOAD_BYTES_MIN`](crate::limits::FRAME_PAYLOAD_BYTES_MIN), or fewer.
    pub peer_frame_bytes_min: u32,
}

/// Which end of the connection we are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Towards clients.
    Server,
    /// Towards origins.
    Client,
}

/// Something that the caller must know.
#[derive(Debug)]
pub enum ConnectionEvent<'a> {
    /// Only to a server.
    Request {
        stream: StreamId,
        head: Http2Request<'a>,
        /// No DATA follows.
        is_whole: bool,
    },
    /// Only to a server: a request over a limit. It is answered with the refusal's status; what comes of its body must be released.
    Refused { stream: StreamId, refusal: Refusal, is_whole: bool },
    /// Only to a client. After an interim response another comes; a body of unknown length counts as chunked.
    Response {
        stream: StreamId,
        head: ReceivedResponse<'a>,
        /// No DATA follows.
        is_whole: bool,
    },
    /// A piece of a body, as a range of the input. Each byte must be released once.
    Data { stream: StreamId, range: Range<usize>, is_last: bool },
    /// The body has ended, with these fields behind it.
    Trailers { stream: StreamId, fields: FieldsView<'a> },
    /// The stream is gone, by a reset of either side. It may never have been told of.
    StreamEnded { stream: StreamId, code: ErrorCode, token: &'static str },
    /// More may be sent: of this stream, or of all of them.
    WindowOpened { stream: Option<StreamId> },
    /// The peer leaves. Streams of ours beyond `last` are gone: it has not worked on them, and what they asked may be asked
    /// again elsewhere (RFC 9113 §6.8).
    GoneAway { last: StreamId, code: ErrorCode },
}

/// What became of the input.
#[derive(Debug)]
pub struct Received<'a> {
    /// So many of its bytes are done with.
    pub consumed: usize,
    /// `None`: more bytes are needed.
    pub event: Option<ConnectionEvent<'a>>,
}

/// What the next byte belongs to.
#[derive(Clone, Copy, Debug)]
pub(super) enum Awaited {
    /// So many bytes of it have come.
    Preface {
        matched: u8,
    },
    /// The first frame must be SETTINGS (RFC 9113 §3.4).
    FirstHead,
    Head,
    Data(UnreadData),
    /// Padding, or a payload that nobody reads.
    Skipped {
        left: u32,
    },
}

/// What of a DATA frame has not come.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnreadData {
    pub stream: StreamId,
    pub left: u32,
    pub padding: u8,
    pub ends_stream: bool,
}

/// How far we are in leaving (RFC 9113 §6.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leaving {
    No,
    /// The client knows that it should open no more streams.
    Announced,
    /// Streams beyond this one are not worked on.
    After(StreamId),
}

#[derive(Debug)]
pub struct Http2Connection {
    pub(super) role: Role,
    pub(super) awaited: Awaited,
    pub(super) fragments: Option<Box<HeaderFragments>>,
    pub(super) decoder: BlockDecoder,
    pub(super) peer: PeerSettings,
    pub(super) streams: OpenStreams,
    /// The highest number that the client has used: the peer, or we.
    pub(super) last_stream: StreamId,
    pub(super) leaving: Leaving,
    /// A priority that came before its request.
    pub(super) early_priority: Option<(StreamId, Priority)>,
    pub(super) send_window: SendWindow,
    pub(super) receive_window: ReceiveWindow,
    pub(super) floods: FloodScore,
    /// The last incremental stream that had its turn.
    pub(super) turn_had: StreamId,
    /// The client has not been told yet that all its streams may send more together.
    pub(super) owes_window: bool,
    control: Vec<u8>,
    failure: Option<ConnectionError>,
}

impl Http2Connection {
    /// A client's connection on which nothing has come. What is said first waits in [`Http2Connection::control`].
    pub fn of_client(options: &Http2Options<'_>) -> Http2Connection {
        let mut control = Vec::new();
        let settings = [
            (setting::MAX_CONCURRENT_STREAMS, options.streams_max),
            (setting::MAX_HEADER_LIST_SIZE, list_bytes_max(options)),
            (setting::NO_RFC7540_PRIORITIES, 1),
            (setting::ENABLE_CONNECT_PROTOCOL, 1),
        ];
        write_settings(if options.extended_connect { &settings[..] } else { &settings[..3] }, &mut control);
        let mut connection = Http2Connection::begin(Role::Server, Awaited::Preface { matched: 0 }, control);
        connection.peer.frame_payload_bytes_min = options.peer_frame_bytes_min;
        connection
    }

    /// A connection to an origin. Requests may be sent behind what is said first.
    pub fn to_origin(options: &Http2Options<'_>) -> Http2Connection {
        let mut control = PREFACE.to_vec();
        let settings = [
            (setting::ENABLE_PUSH, 0),
            (setting::INITIAL_WINDOW_SIZE, ORIGIN_STREAM_WINDOW_BYTES as u32),
            (setting::MAX_HEADER_LIST_SIZE, list_bytes_max(options)),
        ];
        write_settings(&settings, &mut control);
        Http2Connection::begin(Role::Client, Awaited::FirstHead, control)
    }

    fn begin(role: Role, awaited: Awaited, mut control: Vec<u8>) -> Http2Connection {
        let default_window = PeerSettings::DEFAULT.initial_window;
        if role == Role::Client {
            write_wider_window(&mut control);
        }
        Http2Connection {
            role,
            awaited,
            fragments: None,
            decoder: BlockDecoder::new(),
            peer: PeerSettings::DEFAULT,
            streams: OpenStreams::new(),
            last_stream: StreamId::CONNECTION,
            leaving: Leaving::No,
            early_priority: None,
            send_window: SendWindow::new(default_window),
            receive_window: ReceiveWindow::new(CONNECTION_WINDOW_BYTES, CONNECTION_WINDOW_BYTES_MAX),
            floods: FloodScore::default(),
            turn_had: StreamId::CONNECTION,
            owes_window: role == Role::Server,
            control,
            failure: None,
        }
    }

    /// Reads until something has happened, or all of the input is done with but for the beginning of a frame.
    ///
    /// An error is final. What was queued before it, and the GOAWAY that it queued, should still be written.
    pub fn receive<'a>(
        &mut self,
        input: &[u8],
        arena: &'a mut HeadArena,
        options: &Http2Options<'_>,
        now_ms: u64,
    ) -> Result<Received<'a>, ConnectionError> {
        if let Some(error) = self.failure {
            return Err(error);
        }
        let read = self.check_control().and_then(|()| self.read_steps(input, arena, options, now_ms));
        read.map_err(|error| self.fail(error))
    }

    fn fail(&mut self, error: ConnectionError) -> ConnectionError {
        write_goaway(self.last_of_peer(), error.code, error.token, &mut self.control);
        self.failure = Some(error);
        error
    }

    /// The last stream of the peer's that we work on: servers open none, and what was once said may not grow (RFC 9113 §6.8).
    fn last_of_peer(&self) -> StreamId {
        match (self.role, self.leaving) {
            (Role::Client, _) => StreamId::CONNECTION,
            (Role::Server, Leaving::After(last)) => last,
            (Role::Server, _) => self.last_stream,
        }
    }

    /// Control frames, to be written before anything else.
    pub fn control(&self) -> &[u8] {
        &self.control
    }

    /// So many bytes of them are written.
    pub fn control_written(&mut self, bytes: usize) {
        self.control.drain(..bytes.min(self.control.len()));
    }

    /// Queues a control frame that the peer made us write.
    pub(super) fn queue(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), ConnectionError> {
        self.check_control()?;
        write(&mut self.control);
        Ok(())
    }

    /// Queues one that the caller wants. What it comes to is checked before more is read.
    pub(super) fn queue_unasked(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.control);
    }

    /// A peer that makes us queue without reading is cut off.
    fn check_control(&self) -> Result<(), ConnectionError> {
        let is_read = self.control.len() <= CONTROL_BYTES_MAX;
        if is_read { Ok(()) } else { Err(ConnectionError::calm("control-frames-unread")) }
    }

    /// Bytes of a body are taken, or thrown away: the client may send as many again. To be told of each byte of
    /// [`ConnectionEvent::Data`], whether its stream is still there or not.
    pub fn release(&mut self, stream: StreamId, bytes: usize) {
        if let Some(given) = self.receive_window.release(bytes) {
            write_window_update(StreamId::CONNECTION, given, &mut self.control);
        }
        // To who sends no more nothing has to be given back.
        let Some(stream) = self.streams.get_mut(stream).filter(|stream| stream.state.may_receive()) else { return };
        if let Some(given) = stream.receive_window.release(bytes) {
            write_window_update(stream.id, given, &mut self.control);
        }
    }

    /// Asks the other side whether it is there (RFC 9113 §6.7): a good one answers at once, whatever else it is busy with.
    pub fn ping(&mut self) {
        self.queue_unasked(|out| write_ping(&[0; PING_BYTES], out));
    }

    /// First step of leaving: the client is asked to open no more streams. Those that it opens meanwhile are worked on.
    pub fn announce_leaving(&mut self) {
        if self.leaving == Leaving::No {
            self.leaving = Leaving::Announced;
            write_goaway(StreamId::MAX, ErrorCode::NoError, "", &mut self.control);
        }
    }

    /// Second step, a round trip later: what comes from now on is not worked on, and the client knows.
    pub fn leave(&mut self) {
        if !matches!(self.leaving, Leaving::After(_)) {
            self.leaving = Leaving::After(self.last_stream);
            write_goaway(self.last_of_peer(), ErrorCode::NoError, "", &mut self.control);
        }
    }

    /// We have left, and no stream is open: when control frames are written the socket can be closed.
    pub fn has_left(&self) -> bool {
        matches!(self.leaving, Leaving::After(_)) && self.streams.count() == 0
    }

    pub fn streams_count(&self) -> usize {
        self.streams.count()
    }

    /// May the connection be closed without losing anything of a frame or a stream?
    pub fn is_idle(&self) -> bool {
        self.streams.count() == 0 && self.fragments.is_none() && matches!(self.awaited, Awaited::Head)
    }

    /// Gives memory back that an idle connection has no use for.
    pub fn shrink(&mut self) {
        self.streams.shrink();
        self.control.shrink_to_fit();
    }

    /// What it holds beside itself.
    pub fn heap_bytes(&self) -> usize {
        let fragments = self.fragments.as_ref().map_or(0, |fragments| fragments.block.capacity());
        self.decoder.heap_bytes() + self.streams.heap_bytes() + self.control.capacity() + fragments
    }
}

/// What all streams may send together is more than the 65,535 bytes that a connection begins with (RFC 9113 §6.9.2). A client hears it
/// when the first of what it has to send has come.
pub(super) fn write_wider_window(out: &mut Vec<u8>) {
    let given = CONNECTION_WINDOW_BYTES - PeerSettings::DEFAULT.initial_window;
    write_window_update(StreamId::CONNECTION, given as u32, out);
}

fn list_bytes_max(options: &Http2Options<'_>) -> u32 {
    u32::try_from(options.head_limits.head_bytes_max).unwrap_or(u32::MAX)
}

/// An idle connection costs no more than this, and the peer's dynamic table.
const _: () = assert!(size_of::<Http2Connection>() < 600 && FRAME_HEAD_BYTES == 9);
