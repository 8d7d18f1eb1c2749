//! What messages look like in bytes: HTTP/1.1 heads and bodies, HTTP/2 frames, FastCGI's records, memcached's text protocols, and the PROXY
//! protocol.
//!
//! Everything here is a function of bytes. `proxy` reads and writes the sockets and asks this crate what the
//! bytes mean; whatever RFC 9112 or 9113 calls invalid is refused with a stable token and never repaired. How a body is
//! delimited is decided once, in `framing`. Sockets, tasks, clocks and policy are unknown here.
//!
//! ```
//! use message::{Method, Scheme};
//! use wire::{HeadLimits, RequestBody, read_request};
//!
//! let bytes = b"POST /form HTTP/1.1\r\nHost: example.org\r\nContent-Length: 3\r\n\r\na=b";
//! let mut spans = Vec::new();
//! let received = read_request(bytes, &mut spans, &HeadLimits::REQUEST, Scheme::Http).unwrap();
//! let received = received.expect("the end of the head is there");
//! assert_eq!((received.request.method, received.request.path), (Method::Post, &b"/form"[..]));
//! assert_eq!(received.body, RequestBody::Length(3));
//! assert_eq!(&bytes[received.head_bytes..], b"a=b");
//!
//! let ambiguous = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n";
//! let refusal = read_request(ambiguous, &mut Vec::new(), &HeadLimits::REQUEST, Scheme::Http).unwrap_err();
//! assert_eq!((refusal.status, refusal.token), (400, "length-and-transfer-encoding"));
//! ```

mod body_decoder;
#[cfg(test)]
mod bytes_of;
mod chunk_encoder;
mod chunk_reader;
mod connection_options;
mod exchange;
/// FastCGI: a request as records, the records of its answer, and the head of that as CGI has it.
pub mod fastcgi {
    mod cgi_head;
    mod fastcgi_answer;
    mod fastcgi_request;
    mod record_head;

    pub use cgi_head::read_cgi_head;
    pub use fastcgi_answer::{AnswerPart, AnswerReader, EndStatus};
    pub use fastcgi_request::{RequestWriter, STDIN_END, is_variable_field, stdin_head};
    pub use record_head::{RECORD_CONTENT_BYTES_MAX, RECORD_HEAD_BYTES, RecordType, record_head};
}
mod framing;
mod head_lines;
mod hop_by_hop;
/// HTTP/2: frames, heads in HPACK, and the machine of a connection.
pub mod http2 {
    /// The compression of heads (RFC 7541).
    pub mod hpack {
        mod block_decoder;
        mod dynamic_table;
        mod field_octets;
        mod huffman;
        mod prefix_integer;
        mod static_table;
        mod stored_block;

        pub use block_decoder::{BlockDecoder, CompressionFault, Excess, HeaderLine, ListLimits};
        pub use dynamic_table::LineFacts;
        pub(crate) use field_octets::{NOT_IN_NAME, NOT_IN_VALUE, kinds_of};
        pub use static_table::LineName;
        pub(crate) use stored_block::is_connection_specific;
        pub(crate) use stored_block::write_pseudo_fields;
        pub use stored_block::{
            PseudoFields, write_fields, write_known_field, write_known_number, write_made_field, write_plain_field,
            write_status,
        };
    }
    #[cfg(test)]
    mod client_in_memory;
    mod control_frames;
    mod error_code;
    mod flood_score;
    mod flow_control;
    mod frame;
    mod header_fragments;
    mod http2_connection;
    mod open_streams;
    mod peer_settings;
    mod priority;
    mod received_frames;
    mod request_blocks;
    mod request_fields;
    mod request_writing;
    mod response_blocks;
    mod response_fields;
    mod sent_frames;
    mod stream_states;

    pub use error_code::{ConnectionError, ErrorCode};
    pub use frame::{FRAME_HEAD_BYTES, FrameType, StreamId, frame_head};
    pub use http2_connection::{ConnectionEvent, Http2Connection, Http2Options, PREFACE, Received, Role};
    pub use priority::Priority;
    pub use request_fields::{BlockContext, HeadArena, Http2Request, read_request_block, read_trailer_block};
    pub use request_writing::write_request_block;
    pub use sent_frames::{HeadFrame, HeadFrames};
    pub use stream_states::{STREAM_EDGES, StreamEdge, StreamState, StreamStep};
}
pub mod limits;
/// What memcached is asked and what it answers, as text.
pub mod memcached {
    mod command_text;
    mod reply_reader;

    pub use command_text::{Command, Direction, Expected, StoreVerb, are_key_bytes, is_key, is_key_byte, is_meta_key};
    pub use reply_reader::{Asked, Blame, Item, Progress, Reply, ReplyFault, read_reply};
}
mod proxy_complaint;
mod proxy_protocol;
mod proxy_protocol_writer;
pub mod proxy_triples;
mod refusal;
mod request_head;
mod request_target;
mod response_head;
mod response_writer;
mod trailer_section;

pub use body_decoder::{BodyDecoder, Decoded, Truncated};
pub use chunk_encoder::{CHUNK_END, CHUNK_HEAD_BYTES_MAX, LAST_CHUNK, LAST_CHUNK_AND_END, chunk_head, write_trailers};
pub use exchange::{Afterwards, EDGES, Edge, Event, Exchange, IllegalEdge, KeepAlive, Reading, Writing};
pub use framing::{RequestBody, ResponseBody};
pub use hop_by_hop::{HopByHop, is_nominated};
pub use limits::{ChunkedLimits, HeadLimits};
pub use proxy_complaint::proxy_complaint;
pub use proxy_protocol::{ProxyHeader, read_proxy_header};
pub use proxy_protocol_writer::{Parties, ProxyVersion, write_proxy_header, write_way_header};
pub use refusal::{Refusal, refusals};
pub use request_head::{ReceivedRequest, leading_blanks, may_end_now, read_request, unfolded};
pub use response_head::{ReceivedResponse, read_response};
pub use response_writer::{
    BodyFraming, Content, Framed, Persistence, has_length, head_of_endless_answer, says_close, whole_answer,
    write_field, write_framing, write_head_end, write_number_field, write_status_line,
};
