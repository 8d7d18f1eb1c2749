//! Every bound of the codec, with its default.
//!
//! The ones an operator may change are fields of [`HeadLimits`] and [`ChunkedLimits`]; what those structures may
//! hold at most, and what nobody needs to change, are constants.

/// What one message head may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadLimits {
    /// From the first byte of the message to the end of the empty line.
    pub head_bytes_max: usize,
    /// At most [`FIELDS_CEILING`].
    pub fields_max: usize,
    /// Name and value of one field.
    pub field_bytes_max: usize,
    /// The request target; in a response, the reason phrase.
    pub target_bytes_max: usize,
    /// Heads are taken as Varnish takes them: a line may end with LF alone, any number of blanks and empty lines may stand
    /// before a request, which may have no Host; and of HTTP/1 there are only 1.0 and 1.1.
    pub lenient: bool,
}

impl HeadLimits {
    /// RFC 9112 §3 recommends targets of at least 8,000 bytes.
    pub const REQUEST: HeadLimits = HeadLimits {
        head_bytes_max: 32 << 10,
        fields_max: 100,
        field_bytes_max: 8 << 10,
        target_bytes_max: 16 << 10,
        lenient: false,
    };
    pub const RESPONSE: HeadLimits = HeadLimits {
        head_bytes_max: 128 << 10,
        fields_max: 256,
        field_bytes_max: 32 << 10,
        target_bytes_max: 8 << 10,
        lenient: false,
    };
}

/// What the framing of one chunked body may cost, beside its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkedLimits {
    /// All chunk extensions of the body together (RFC 9112 §7.1.1).
    pub extension_bytes_max: u64,
    /// Size lines and line ends are allowed this much in any case …
    pub overhead_bytes_free: u64,
    /// … and this much more for each byte of data.
    pub overhead_per_data_byte: u64,
    pub trailer_bytes_max: usize,
    pub trailer_fields_max: usize,
}

impl ChunkedLimits {
    pub const DEFAULT: ChunkedLimits = ChunkedLimits {
        extension_bytes_max: 16 << 10,
        overhead_bytes_free: 64 << 10,
        overhead_per_data_byte: 8,
        trailer_bytes_max: 16 << 10,
        trailer_fields_max: 64,
    };
}

/// The most fields that `fields_max` can allow: room for them lies on the stack.
pub const FIELDS_CEILING: usize = 256;

/// The longest method token.
pub const METHOD_BYTES_MAX: usize = 32;

/// The most members of all `Connection` fields of one head; each is compared with each field that is forwarded.
pub const CONNECTION_OPTIONS_MAX: usize = 64;

/// The largest single chunk. Nobody sends 4 GiB at once, and the readers that overflow do so here.
pub const CHUNK_BYTES_MAX: u64 = u32::MAX as u64;

/// Hexadecimal digits of a chunk size, leading zeros among them.
pub const CHUNK_SIZE_DIGITS_MAX: u32 = 16;

/// A PROXY protocol v1 line with its CRLF, as its specification says.
pub const PROXY_V1_BYTES_MAX: usize = 107;

/// A PROXY protocol v2 header's addresses and type-length-value triples.
pub const PROXY_V2_BODY_BYTES_MAX: usize = 4 << 10;

/// A memcached's key, as its protocol says.
pub const MEMCACHED_KEY_BYTES_MAX: usize = 250;

/// One line of a memcached's reply: the longest names a key, and what the server says of an error.
pub const MEMCACHED_LINE_BYTES_MAX: usize = 2048;

/// A memcached's statistics, all lines of them.
pub const MEMCACHED_LINES_BYTES_MAX: usize = 1 << 20;

/// Records of a FastCGI answer that bring nothing of its output: what a program says on its error stream comes a line at a time.
pub const FASTCGI_RECORDS_WITHOUT_OUTPUT_MAX: u32 = 1 << 16;

/// The table that a peer's encoder may use for heads that it sends: HPACK's default, which nobody has to announce.
pub const HPACK_TABLE_BYTES_MAX: usize = 4096;

/// What each line of a table or a list counts beside its text (RFC 7541 §4.1).
pub const HPACK_LINE_OVERHEAD_BYTES: usize = 32;

/// Bytes of an integer behind its first: so many hold 32 bits.
pub const HPACK_INTEGER_BYTES_MAX: usize = 5;

/// A block may begin with the smallest size that the table had since the last block, and the one it has now.
pub const HPACK_SIZE_UPDATES_MAX: usize = 2;

/// The largest frame that we accept: the default, which RFC 9113 §4.2 lets nobody go below.
pub const FRAME_PAYLOAD_BYTES_MAX: usize = 16_384;

/// The shortest frames that a peer may ask for (RFC 9113 §6.5.2) …
pub const FRAME_PAYLOAD_BYTES_MIN: u32 = 16_384;
/// … and where that is not looked at.
pub const UNCHECKED_FRAME_PAYLOAD_BYTES_MIN: u32 = 16;

/// The most of a body in one DATA frame, so that it fills one TLS record with its head.
pub const DATA_PAYLOAD_BYTES_MAX: usize = FRAME_PAYLOAD_BYTES_MAX - 9;

/// A header block in its encoded form, all frames of it.
pub const HEADER_BLOCK_BYTES_MAX: usize = 64 << 10;

/// Frames behind HEADERS that go on with its block.
pub const HEADER_BLOCK_CONTINUATIONS_MAX: u32 = 16;

/// Control frames that wait to be written. A peer that does not read them is no peer.
pub const CONTROL_BYTES_MAX: usize = 16 << 10;

/// Streams that we have reset and on which frames may still be on their way.
pub const RESET_STREAMS_REMEMBERED_MAX: usize = 64;

/// What a client's stream may send before its body is read: HTTP/2's default, which nobody has to announce …
pub const STREAM_WINDOW_BYTES: i32 = 65_535;

/// … and what it grows to while its body is read.
pub const STREAM_WINDOW_BYTES_MAX: i32 = 1 << 20;

/// What all streams of a connection may send together: a few that are not read must not stop the others.
pub const CONNECTION_WINDOW_BYTES: i32 = 1 << 20;
pub const CONNECTION_WINDOW_BYTES_MAX: i32 = 4 << 20;

/// What an origin's stream may send before its body is read; it grows like a client's.
pub const ORIGIN_STREAM_WINDOW_BYTES: i32 = 128 << 10;

/// Streams that a client may have open at a time.
pub const STREAMS_MAX: u32 = 100;

/// The budgets of floods hold for so long.
pub const FLOOD_PERIOD_MS: u64 = 60_000;

/// Requests that are reset by their client before they are answered; each that is answered earns one back.
pub const FLOOD_PEER_RESETS_MAX: u32 = 200;

/// Resets that a client's mistakes make us send.
pub const FLOOD_FORCED_RESETS_MAX: u32 = 100;

/// What DATA frames are short of [`DATA_BYTES_FAIR`] in a period; what they are longer earns it back. A
/// stream of events may bring some seventy small ones a second.
pub const FLOOD_SMALL_DATA_BYTES_MAX: u32 = 1 << 20;

/// A DATA frame that is shorter, and not the last of its body, costs more than it brings.
pub const DATA_BYTES_FAIR: usize = 256;
pub const FLOOD_PINGS_MAX: u32 = 120;
pub const FLOOD_SETTINGS_MAX: u32 = 30;
pub const FLOOD_PRIORITIES_MAX: u32 = 400;

/// Beside those that DATA frames of ours have earned, [`DATA_BYTES_PER_UPDATE`] each.
pub const FLOOD_WINDOW_UPDATES_MAX: u32 = 1_000;

/// Some clients give their windows back in pieces of 4 KiB, of the stream and of the connection.
pub const DATA_BYTES_PER_UPDATE: usize = 2 << 10;

/// Of unknown types, and on their way to streams that we have reset: a megabyte of an upload is 64 of them.
pub const FLOOD_IGNORED_MAX: u32 = 2_000;

/// What each reset of ours earns back of them.
pub const FRAMES_BEHIND_RESET: u32 = 64;
pub const FLOOD_CONTINUATIONS_MAX: u32 = 120;

/// Lines beyond what a head may have. A reference to the table is one byte, so that a block of 64 KiB could be as many.
pub const FLOOD_LINES_OVER_MAX: u32 = 4_000;

const _: () = {
    assert!(ORIGIN_STREAM_WINDOW_BYTES >= STREAM_WINDOW_BYTES && ORIGIN_STREAM_WINDOW_BYTES <= STREAM_WINDOW_BYTES_MAX);
    assert!(STREAM_WINDOW_BYTES <= STREAM_WINDOW_BYTES_MAX && STREAM_WINDOW_BYTES_MAX <= CONNECTION_WINDOW_BYTES_MAX);
    assert!(
        CONNECTION_WINDOW_BYTES >= STREAM_WINDOW_BYTES * 8 && CONNECTION_WINDOW_BYTES <= CONNECTION_WINDOW_BYTES_MAX
    );
    assert!(HEADER_BLOCK_BYTES_MAX > HeadLimits::REQUEST.head_bytes_max);
};

const _: () = {
    let (request, response) = (HeadLimits::REQUEST, HeadLimits::RESPONSE);
    assert!(request.target_bytes_max > 8_000 && request.target_bytes_max < request.head_bytes_max);
    assert!(request.field_bytes_max < request.head_bytes_max && response.field_bytes_max < response.head_bytes_max);
    assert!(request.fields_max <= FIELDS_CEILING && response.fields_max <= FIELDS_CEILING);
};
