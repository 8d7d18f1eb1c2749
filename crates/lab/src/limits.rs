//! The generator's bounds, and what it takes for granted.

use std::time::Duration;

/// Connections of one run; more than one address offers ports for need several source addresses.
pub const CONNECTIONS_MAX: usize = 60_000;
pub const SOURCES_MAX: usize = 4_096;
/// Ports of a source that are tried for one connection.
pub const PORT_TRIES_MAX: usize = 256;
pub const THREADS_MAX: usize = 256;
pub const PIPELINE_MAX: usize = 1_000;
/// Starts a second of an open loop.
pub const RATE_MAX: f64 = 10_000_000.0;
/// Of the popularity law; the web is between 0.6 and 1.2.
pub const ZIPF_ALPHA_MAX: f64 = 10.0;
pub const DURATION_MAX: Duration = Duration::from_secs(7 * 86_400);

/// Of a replay, times the original.
pub const SPEED_MAX: f64 = 1_000_000.0;
/// Sent with each request, from one copy for each URL.
pub const REQUEST_BODY_BYTES_MAX: usize = 16 << 20;

/// A URL list, or a log, is read whole.
pub const URL_LIST_BYTES_MAX: u64 = 1 << 30;
pub const URLS_MAX: usize = 10_000_000;
/// All requests of a list as bytes.
pub const REQUESTS_BYTES_MAX: usize = 8 << 30;
/// Lines of a log that are none: so many are named, all are counted.
pub const RUBBISH_LINES_NAMED_MAX: usize = 5;
/// As much as our own server takes.
pub const URL_BYTES_MAX: usize = 8_000;

/// The buffer that all reads of a thread share.
pub const SCRATCH_BYTES: usize = 64 << 10;

/// The head of an answer; beyond it an answer is none.
pub const ANSWER_HEAD_BYTES_MAX: usize = 128 << 10;
/// Answers with a status of 1xx before the one that counts.
pub const INTERIM_ANSWERS_MAX: usize = 32;
/// Extensions of one chunk; all trailers.
pub const CHUNK_FRAMING_BYTES_MAX: u32 = 16 << 10;
/// A longer head is read each time, though it be the same.
pub const HEAD_MEMO_BYTES_MAX: usize = 4 << 10;

/// The first line of a memcached's answer.
pub const MEMCACHED_LINE_BYTES_MAX: usize = 2 << 10;
/// memcached's own limits, and what of keys and values this tool holds.
pub const MEMCACHED_KEY_BYTES_MAX: usize = 250;
pub const MEMCACHED_VALUE_BYTES_MAX: usize = 1 << 20;
pub const MEMCACHED_KEYS_MAX: usize = 10_000_000;
pub const MEMCACHED_BYTES_MAX: usize = 1 << 30;

/// Learned bodies that are kept to compare others with; those beyond are known by their checksum.
pub const LEARNED_BYTES_MAX: usize = 16 << 20;
pub const LEARNED_BODIES_MAX: usize = 1 << 16;

/// Of an answer in a content coding: a longer body is not undone, and counts as wrong.
pub const CODED_BODY_BYTES_MAX: u64 = 64 << 20;
/// Forms of one page, in the coding that is asked for, that are remembered as right. Servers code a page anew each time in the
/// same way, or in a few; what comes beyond is undone each time.
pub const CODED_FORMS_MAX: usize = 8;
/// Of what comes out of a coding at once.
pub const DECODE_STEP_BYTES: usize = 64 << 10;
/// 8 MiB, the largest window that zstd may have as a content coding (RFC 9659).
pub const ZSTD_WINDOW_LOG_MAX: u32 = 23;

/// Latencies are kept in microseconds up to this, with this many significant digits; a longer one counts as this.
pub const LATENCY_MICROS_MAX: u64 = 60_000_000;
pub const LATENCY_DIGITS: u8 = 3;
/// The histogram of one second, for the line that is printed while it runs.
pub const SECOND_DIGITS: u8 = 2;

/// Lives of sessions are kept in milliseconds, up to the longest run.
pub const SESSION_MILLIS_MAX: u64 = DURATION_MAX.as_secs() * 1_000;
pub const SESSION_DIGITS: u8 = 3;
pub const SESSIONS_MAX: u64 = 1_000_000_000;
/// Of one session.
pub const SESSION_CALLS_MAX: u32 = 100_000;
/// Rates of one run that follow one another.
pub const RATES_MAX: usize = 1_000;

/// A percentile is shown when so many requests lie beyond it; with fewer it says more about luck than about the server.
pub const SAMPLES_BEYOND_MIN: f64 = 100.0;

/// HTTP/2: what may come of one answer, and of all on one connection, before we say that we took it. As h2load has it.
pub const HTTP2_WINDOW_BYTES: u32 = (1 << 30) - 1;
/// Streams at once on one connection.
pub const STREAMS_MAX: usize = 10_000;

/// Certificates of authorities are read whole.
pub const AUTHORITIES_BYTES_MAX: u64 = 16 << 20;
/// Tickets that one user keeps for its next connections.
pub const TICKETS_KEPT_MAX: usize = 8;

/// After an answer that announces the end of its connection, the server may take so long to close it.
pub const CLOSE_GRACE: Duration = Duration::from_millis(200);
/// After a connection that could not be opened, its user waits this long: a target that is down is no race.
pub const CONNECT_PAUSE: Duration = Duration::from_millis(10);
/// What was due for less than this when the run ended was cut off by the end, and not dropped.
pub const END_GRACE: Duration = Duration::from_millis(5);
/// How often a thread looks whether it was told to stop.
pub const STOP_LOOK: Duration = Duration::from_millis(50);
/// The share of a core from which on the client may be what is measured.
pub const BUSY_SHARE_MAX: f64 = 0.8;
/// Statuses are counted one by one up to this.
pub const STATUS_MAX: usize = 999;
/// Of the first answer's head, for reports that print what is in it.
pub const FIRST_READ_BYTES_MAX: usize = 4 << 10;
/// Of the text of an error's sample.
pub const SAMPLE_BYTES_MAX: usize = 200;

/// Connections that may wait to be accepted by a server of the lab; the kernel's own bound (somaxconn) may be lower.
pub const LISTEN_QUEUE: i32 = 4_096;
/// Of the null server's one answer.
pub const NULL_BODY_BYTES_MAX: u64 = 256 << 20;
/// Events that the null server takes at once.
pub const NULL_EVENTS_MAX: usize = 512;

/// Of one answer of the fake origin.
pub const ORIGIN_BODY_BYTES_MAX: u64 = 64 << 30;
/// The mean size of a catalogue's pages.
pub const PAGE_MEAN_BYTES_MAX: u64 = 64 << 20;
/// Behind the end of an answer, or announced and not sent.
pub const ORIGIN_EXTRA_BYTES_MAX: u64 = 1 << 20;
/// The fake origin makes its bodies by blocks of this size.
pub const ORIGIN_BLOCK_BYTES: u64 = 64 << 10;
pub const ORIGIN_CONNECTIONS_MAX: usize = 60_000;
/// A connection on which nothing is asked is closed.
pub const ORIGIN_IDLE: Duration = Duration::from_secs(600);
/// A client that reads nothing is given up.
pub const ORIGIN_WRITE_PATIENCE: Duration = Duration::from_secs(60);
/// What a client may still be sending after the last answer is read for so long.
pub const ORIGIN_LINGER: Duration = Duration::from_secs(1);
/// For a client's hello, and for what follows it.
pub const ORIGIN_HANDSHAKE_PATIENCE: Duration = Duration::from_secs(20);
/// Streams that the origin allows at once on a connection unless it is told otherwise, and how many it can be told.
pub const ORIGIN_STREAMS_USUAL: u32 = 100;
pub const ORIGIN_STREAMS_MAX: u32 = 10_000;
/// What of a request's body may come before it was read, unless it is told otherwise: RFC 9113's own.
pub const ORIGIN_WINDOW_BYTES_USUAL: u32 = 65_535;
pub const ORIGIN_WINDOW_BYTES_MAX: u32 = 1 << 30;
/// What of a stream's body the origin gives away before the client has room for it.
pub const ORIGIN_SEND_BUFFER_BYTES: usize = 128 << 10;
/// When a connection could not be accepted.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(10);
/// A delay that a query asks for.
pub const DELAY_MAX: Duration = Duration::from_secs(3_600);
/// A slow body comes in steps of about this.
pub const DRIP_STEP: Duration = Duration::from_millis(50);
/// Answers that a thread of the origin keeps: each, all together, and how many.
pub const PREPARED_BODY_BYTES_MAX: u64 = 1 << 20;
pub const PREPARED_BYTES_MAX: usize = 96 << 20;
pub const PREPARED_COUNT_MAX: usize = 100_000;
/// Lines of the origin's record that a thread gathers.
pub const LOG_BUFFER_BYTES: usize = 64 << 10;

/// A matrix: rows of one lab file, pages of one row, blocks of one row.
pub const ROWS_MAX: usize = 1_000;
pub const ROW_URLS_MAX: usize = 1_000_000;
pub const BLOCKS_MAX: usize = 1_000;
/// Resamplings behind an interval, and how few values have none.
pub const BOOTSTRAP_ROUNDS: usize = 2_000;
pub const INTERVAL_VALUES_MIN: usize = 3;
/// A server has this long to listen, and after TERM to end.
pub const SERVER_START_TIMEOUT: Duration = Duration::from_secs(20);
pub const SERVER_STOP_TIMEOUT: Duration = Duration::from_secs(4);
/// A program that is asked for its version, or prepares a directory, has this long.
pub const TOOL_TIMEOUT: Duration = Duration::from_secs(20);
/// Lines of a server's log that stand in an error.
pub const LOG_TAIL_LINES: usize = 15;
/// Where free ports for servers are looked for: under those that the kernel gives to clients.
pub const SERVER_PORTS: std::ops::Range<u16> = 12_000..17_000;
/// So many ports are not used again at once, because connections to the last server on one may linger.
pub const PORTS_RESTED_MAX: usize = 1_000;
/// The largest page of a row, and the most that is read of one answer when it is looked at.
pub const ROW_PAGE_BYTES_MAX: u64 = 1 << 30;
pub const PLAIN_FETCH_BYTES_MAX: u64 = ROW_PAGE_BYTES_MAX + (1 << 20);
/// Of a page that is put together.
pub const PARTS_OF_A_PAGE_MAX: u64 = 9_999;
/// URLs of their own that a slice of misses has, for each of its seconds: no server answers more.
pub const FRESH_URLS_PER_SECOND: f64 = 40_000.0;
/// Pages that are compared byte by byte before a row is measured.
pub const GATE_URLS_MAX: usize = 2_000;
/// For asking each page of a row once.
pub const FILL_TIME_MAX: Duration = Duration::from_secs(120);
/// Windows of a warm-up whose slope is looked at, and the slope that does not matter.
pub const WARM_WINDOWS: usize = 5;
pub const WARM_SLOPE_SHARE_MAX: f64 = 0.02;
/// The share of what the null server makes possible from which on it is the client that is measured.
pub const CEILING_SHARE_MAX: f64 = 0.7;
/// From this share of its processors on a server, or the origin, is what bounds.
pub const BOUND_SHARE_MIN: f64 = 0.95;
/// Of the answers of a row that should be hits: so many may reach the origin all the same.
pub const MISS_SHARE_MAX: f64 = 0.001;
/// Where sessions are to be resumed: so many of the handshakes may be full ones all the same, each user's first apart.
pub const FULL_HANDSHAKES_SHARE_MAX: f64 = 0.01;
/// How far apart two copies of one server may be before the machine is called unfit.
pub const NOISE_FIT_MAX: f64 = 0.05;
/// Rows that are named when it is: all figures of all rows stand under `noise`.
pub const NOISE_ROWS_NAMED_MAX: usize = 3;

const _: () = assert!(SECOND_DIGITS < LATENCY_DIGITS);
const _: () = assert!(PORTS_RESTED_MAX < (SERVER_PORTS.end - SERVER_PORTS.start) as usize / 2);
