//! Every limit of the proxy, by the name it has under `[limits]` in larder.toml. Nothing in this crate waits,
//! queues or buffers without one of these.

use std::time::Duration;

use wire::limits::{ChunkedLimits, HeadLimits};

/// For so long at least a program's uncacheable answer is remembered.
pub(crate) const MARK_TTL_MIN_MS: i64 = 1_000;

/// Lines at once on stderr about one thing that fails and works again, such as an address, and how long it takes until there is one more.
pub const NOTICES_AT_ONCE: u64 = 4;
pub const NOTICE_EVERY_MS: u64 = 60_000;

/// Lines that programs write by std.syslog on one core.
pub(crate) const SYSLOG_LINES_PER_SECOND_MAX: u32 = 100;

/// So many routes are counted by themselves (`route` in docs/metrics.md), those that are gone from the file included; all further ones together.
pub(crate) const ROUTES_COUNTED_MAX: usize = 64;
/// More of a route's name is not shown.
pub(crate) const ROUTE_NAME_CHARS_MAX: usize = 100;

/// A body that a mocked origin makes by a Content-Length.
pub const MOCKED_BODY_BYTES_MAX: usize = 1 << 20;
/// One request of a dry run, with the refresh that it may leave behind.
pub const DRY_RUN_TIME_MAX: Duration = Duration::from_secs(10);

/// What a process takes without any load, its first worker included: code, threads, tables. `memory.size` comes on top.
pub const MEMORY_BASE_BYTES: u64 = 32 << 20;
/// What each further worker adds to that.
pub const MEMORY_WORKER_BYTES: u64 = 2 << 20;

/// What is read from an origin at once while more is accounted for than there is room.
pub(crate) const SHORT_READ_BYTES_MAX: usize = 8 << 10;

/// What is kept free below the memory limit for what grows between two looks: a part of the limit (1/16), and not more than this.
pub(crate) const MEMORY_RESERVE_SHIFT: u32 = 4;
pub(crate) const MEMORY_RESERVE_MAX: u64 = 256 << 20;
/// The share of the limit that what is accounted may have never falls below this part of it (1/8).
pub(crate) const MEMORY_SHARE_SHIFT: u32 = 3;
/// How often it is looked: far from the limit, while what is resident stays as it is; and near it, or while that moves by so
/// much of the limit (1/128) from one look to the next.
pub(crate) const MEMORY_LOOK_SELDOM: Duration = Duration::from_millis(50);
pub(crate) const MEMORY_LOOK_OFTEN: Duration = Duration::from_millis(10);
pub(crate) const MEMORY_MOVES_SHIFT: u32 = 7;
/// A client that has taken nothing of its answer for so long is stalled, and what is kept for all of those …
pub(crate) const STALLED_AFTER: Duration = Duration::from_secs(5);
/// … may be this part of the limit (1/4): beyond it answers are cut, however much room there is.
pub(crate) const STALLED_SHARE_SHIFT: u32 = 2;
/// So many connections are taken whatever the memory.
pub(crate) const CONNECTIONS_ALWAYS: usize = 16;
/// Between two lines of the log that say that connections are refused.
pub(crate) const MEMORY_SAY_EVERY: Duration = Duration::from_secs(60);

/// What the account is charged for an idle connection, its task and its place in the runtime …
pub(crate) const CONNECTION_BYTES: usize = 768;
/// … more for one with TLS, for its session …
pub(crate) const TLS_CONNECTION_BYTES: usize = 4 << 10;
/// … and more for one of HTTP/2, for its machine …
pub(crate) const HTTP2_CONNECTION_BYTES: usize = 1 << 10;
/// … for a request that is not answered at once, with its heads and the answer on its way …
pub(crate) const TRANSACTION_BYTES: usize = 8 << 10;
/// … and for a fetch with its connection and its part of what was read.
pub(crate) const FETCH_BYTES: usize = 8 << 10;

/// No dictionary may be longer, whatever the configuration says.
pub const DICTIONARY_BYTES_TOP: u64 = coding::limits::DICTIONARY_BYTES_MAX as u64;

/// The limits of one configuration. `Default` is what ships.
#[derive(Clone, Debug)]
pub struct Limits {
    pub request_head: HeadLimits,
    pub response_head: HeadLimits,
    /// What the framing of a chunked body may cost, either way.
    pub chunked: ChunkedLimits,
    /// Client connections over all cores; past it, new ones wait in the listen backlog.
    pub connections_max: usize,
    /// Client connections from one address; 0: no limit.
    pub connections_per_client_max: usize,
    /// All partial request heads together.
    pub partial_heads_bytes_max: usize,
    pub request_body_bytes_max: u64,
    /// A body that does not say how long it is is read before a FastCGI application is asked, up to so much.
    pub fastcgi_chunked_body_bytes_max: u64,
    /// Pipelined hits answered before other connections get their turn.
    pub pipelined_hits_max: u32,
    /// Requests on one client connection.
    pub requests_per_connection_max: u32,
    /// From the first byte of a head to its last, absolute.
    pub request_head_timeout: Duration,
    /// Requests that a client may have under way on one HTTP/2 connection.
    pub http2_streams_max: u32,
    /// From the first byte of a connection to the end of its handshake, where TLS is spoken.
    pub tls_handshake_timeout: Duration,
    /// A keep-alive connection without a request.
    pub idle_timeout: Duration,
    /// Between two reads of a request body.
    pub request_body_timeout: Duration,
    /// A request body must arrive at this rate on average, counting the time in which we waited for it, once that is
    /// `request_body_timeout`; 0: no limit.
    pub request_body_rate_min: u64,
    /// A client that takes no byte of its answer for so long is cut off.
    pub send_timeout: Duration,
    /// An answer must move at this rate on average, after `send_timeout`; 0: no limit.
    pub send_rate_min: u64,
    /// After an answer that leaves request bytes unread: how long and how much we drain before closing.
    pub linger_timeout: Duration,
    pub linger_bytes_max: u64,
    pub connect_timeout: Duration,
    pub first_byte_timeout: Duration,
    pub between_bytes_timeout: Duration,
    /// Idle connections to all origins together, over all cores.
    pub origin_idle_connections_max: usize,
    /// An idle origin connection is dropped after so long: before the origin's own keep-alive limit.
    pub origin_idle_timeout: Duration,
    /// An origin that says nothing for so long over HTTP/2, while requests are under way, is asked whether it is there; so long again,
    /// and the connection ends. 0: nobody is asked.
    pub origin_ping_timeout: Duration,
    /// Requests under way on one HTTP/2 connection to an origin, or as few as the origin says.
    pub origin_streams_max: u32,
    /// How many of what a page includes are asked for at a time.
    pub esi_ahead_max: usize,
    /// A text that is longer is no dictionary.
    pub dictionary_bytes_max: usize,
    /// Texts of one site for the same URLs that are kept when others have come in their place …
    pub dictionary_versions_max: usize,
    /// … their bytes in all, as they were stored, out of `memory.size` …
    pub dictionaries_bytes_max: usize,
    /// … and for how long.
    pub dictionary_age_max: Duration,
    /// Threads for coding that somebody waits for, over all cores; 0: one for each two workers.
    pub coding_threads: usize,
    /// Work that waits for these threads: beyond it whoever asks does it himself. Of work in idle time as much may wait.
    pub coding_jobs_max: usize,
    pub coding_jobs_bytes_max: usize,
    /// What coders may hold of memory while somebody waits for them, over all cores: beyond it who comes has responses as they are.
    pub coding_memory_bytes_max: usize,
    /// What coding in idle time may take of one core, in per cent; 0: there is none.
    pub coding_idle_percent: u32,
    /// How deep a page may lie in pages that include it.
    pub esi_depth_max: u32,
    /// What one page may include, with all that is included in what it includes.
    pub esi_parts_max: u32,
    /// A page with all its parts. A longer one breaks off there.
    pub esi_page_bytes_max: u64,
    /// How long a page waits for its parts, altogether. Then it breaks off.
    pub esi_wait_max: Duration,
    /// 1xx answers passed on before the final one.
    pub interim_responses_max: u32,
    /// A larger body is passed through and not stored.
    pub object_bytes_max: u64,
    /// How far an uncacheable or overflowing body may run ahead of its slowest reader.
    pub window_bytes_max: usize,
    /// The slowest reader of an overflowing body is cut off when it takes nothing for so long.
    pub reader_stall_max: Duration,
    pub variants_max: usize,
    /// A disk that takes longer to find something counts as one that has nothing.
    pub disk_read_timeout: Duration,
    /// A range that starts so far ahead of the writer goes to the origin by itself.
    pub range_ahead_bytes_max: u64,
    /// A body that is too large to be kept in one piece is kept in slices of so many bytes; 0: not at all.
    pub slice_bytes: u64,
    /// A fetch that lost its last reader goes on when so little is left.
    pub quick_abort_bytes_max: u64,
    /// Files beneath roots that are kept open or in memory, over all cores; each coding of a file is one.
    pub open_files_max: usize,
    /// Of all files in memory together.
    pub open_files_bytes_max: usize,
    /// A larger file is not read into memory but sent from where it lies.
    pub file_in_memory_bytes_max: u64,
    /// An open file is looked at again after so long: by then at the latest a replaced one is served.
    pub open_file_check_interval: Duration,
    /// A directory with more entries is not listed.
    pub listing_entries_max: usize,
    /// Hosts and ports that a forward proxy has origins for at once.
    pub forward_targets_max: usize,
    /// Connections to one of them, tunnels included, over all cores.
    pub forward_target_connections_max: usize,
    /// An origin that nobody asked for in so long is forgotten.
    pub forward_target_idle: Duration,
    /// Copies of requests for the mirrors of routes at once, over all cores …
    pub mirrors_max: usize,
    /// … from the first byte to the last of the answer …
    pub mirror_timeout: Duration,
    /// … with no longer body.
    pub mirror_body_bytes_max: u64,
    /// Tunnels and pipes at once, over all cores; each holds two files.
    pub tunnels_max: usize,
    /// A tunnel of which one side has ended, and the other is silent for so long: closed.
    pub tunnel_half_closed_timeout: Duration,
    /// Both directions of a tunnel silent for so long: closed.
    pub tunnel_idle_timeout: Duration,
    /// Of values on their way to memcached, and of those in chunks on their way from it, over all cores.
    pub memcached_values_bytes_max: usize,
    /// How long a drain waits for what is in flight.
    pub drain_grace: Duration,
    /// How long a process that another one has taken over from waits for what is in flight.
    pub upgrade_grace: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            request_head: HeadLimits::REQUEST,
            response_head: HeadLimits::RESPONSE,
            chunked: ChunkedLimits::DEFAULT,
            connections_max: 19_000,
            connections_per_client_max: 0,
            partial_heads_bytes_max: 64 << 20,
            request_body_bytes_max: 1 << 40,
            fastcgi_chunked_body_bytes_max: 1 << 20,
            pipelined_hits_max: 64,
            requests_per_connection_max: u32::MAX,
            request_head_timeout: Duration::from_secs(10),
            http2_streams_max: wire::limits::STREAMS_MAX,
            tls_handshake_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(60),
            request_body_timeout: Duration::from_secs(60),
            request_body_rate_min: 100,
            send_timeout: Duration::from_secs(60),
            send_rate_min: 0,
            linger_timeout: Duration::from_secs(2),
            linger_bytes_max: 256 << 10,
            connect_timeout: Duration::from_secs(5),
            first_byte_timeout: Duration::from_secs(60),
            between_bytes_timeout: Duration::from_secs(60),
            origin_idle_connections_max: 1024,
            origin_idle_timeout: Duration::from_secs(4),
            origin_ping_timeout: Duration::from_secs(10),
            origin_streams_max: wire::limits::STREAMS_MAX,
            esi_ahead_max: 32,
            dictionary_bytes_max: coding::limits::DICTIONARY_BYTES_MAX,
            dictionary_versions_max: 8,
            dictionaries_bytes_max: 32 << 20,
            dictionary_age_max: Duration::from_secs(30 * 24 * 3_600),
            coding_threads: 0,
            coding_jobs_max: 256,
            coding_jobs_bytes_max: 32 << 20,
            coding_memory_bytes_max: 64 << 20,
            coding_idle_percent: 25,
            esi_depth_max: 5,
            esi_parts_max: 1_000,
            esi_page_bytes_max: 256 << 20,
            esi_wait_max: Duration::from_secs(120),
            interim_responses_max: 16,
            object_bytes_max: 256 << 20,
            window_bytes_max: 256 << 10,
            reader_stall_max: Duration::from_secs(10),
            variants_max: 1024,
            disk_read_timeout: Duration::from_secs(1),
            range_ahead_bytes_max: 1 << 20,
            slice_bytes: 1 << 20,
            quick_abort_bytes_max: 64 << 10,
            open_files_max: 512,
            open_files_bytes_max: 64 << 20,
            file_in_memory_bytes_max: 64 << 10,
            open_file_check_interval: Duration::from_secs(1),
            listing_entries_max: 10_000,
            forward_targets_max: 4096,
            forward_target_connections_max: 1024,
            forward_target_idle: FORWARD_TARGET_IDLE_DEFAULT,
            mirrors_max: 256,
            mirror_timeout: Duration::from_secs(10),
            mirror_body_bytes_max: 64 << 10,
            tunnels_max: 8192,
            tunnel_half_closed_timeout: Duration::from_secs(60),
            tunnel_idle_timeout: Duration::from_secs(3600),
            memcached_values_bytes_max: 256 << 20,
            drain_grace: Duration::from_secs(30),
            upgrade_grace: Duration::from_secs(600),
        }
    }
}

/// One byte in so many is looked at to find out whether the kernel has a stretch of a disk's file in memory: what it reads ahead together
/// it lets go of together.
pub(crate) const DISK_LOOK_STEP_BYTES: u64 = 128 << 10;
/// Bytes of an answer that the kernel may hold unsent for a connection while they are pages of a disk's file: they are no copies.
pub(crate) const LEASED_UNSENT_BYTES_MAX: u32 = 1 << 20;

/// Frames are made until so many bytes are there to be written at once: eight records of TLS.
pub(crate) const STREAM_FRAMED_BYTES_MAX: usize = 128 << 10;
/// Heads of stored responses that a core keeps as header blocks, and how long one of them may be.
pub(crate) const HTTP2_BLOCKS: usize = 1 << 10;
pub(crate) const HTTP2_BLOCK_BYTES_MAX: usize = 4 << 10;
/// Of an answer to a stream, so much waits to be framed; more is not asked for before that has gone.
pub(crate) const STREAM_QUEUED_BYTES_MAX: usize = 128 << 10;
/// Of bodies that have come on an HTTP/2 connection to an origin and that nobody has taken: beyond that the origin has to wait with all of
/// them.
pub(crate) const ORIGIN_UNTAKEN_BYTES_MAX: usize = 16 << 20;
/// How long an origin that broke a rule of HTTP/2 may take to hear which.
pub(crate) const ORIGIN_LEAVE_TIME_MAX: Duration = Duration::from_secs(1);
/// Text that is sealed for a client at once, as long as it takes what it is sent: eight records of TLS.
pub(crate) const SEALED_BYTES_MAX: usize = 128 << 10;
/// And for one that does not: what is sealed cannot be taken back, and waits in memory of its own.
pub(crate) const SEALED_BYTES_MIN: usize = 16 << 10;

/// What one read of a body has to bring for the next to be read straight into the block in which it will lie.
pub(crate) const FLOW_BYTES_MIN: usize = 16 << 10;

/// So much of a body is taken from an origin before others on the core have their turn.
pub(crate) const POURED_BYTES_MAX: usize = 128 << 10;

/// A large body that arrives is held back for so long until somebody wants what comes next of it; then its connection is
/// closed.
pub(crate) const SLICE_STREAM_PATIENCE: Duration = Duration::from_secs(5);
/// Where memory has room for smaller slices only, there are none; a configuration may want them smaller.
pub(crate) const SLICE_BYTES_MIN: u64 = 64 << 10;
/// How often a reader asks anew for a slice whose fetch broke off or was not for it.
pub(crate) const SLICE_TRIES_MAX: u32 = 3;
/// Slices of one answer of which is looked whether they are there, to say what the answer is.
pub(crate) const SLICES_JUDGED_MAX: u64 = 256;

/// Requests that may wait for a connection to one target of a forward proxy, and how long.
pub(crate) const FORWARD_QUEUE_MAX: usize = 1024;
pub(crate) const FORWARD_QUEUE_TIMEOUT: Duration = Duration::from_secs(10);

/// A file of users and their hashes, and the costliest hash in it: some two seconds.
pub(crate) const PASSWORD_FILE_BYTES_MAX: u64 = 1 << 20;
pub(crate) const BCRYPT_COST_MAX: u32 = 15;
/// What a client says who it is, in base64.
pub(crate) const CREDENTIALS_BYTES_MAX: usize = 1 << 10;
/// Requests whose credentials wait to be verified.
pub(crate) const VERIFICATIONS_WAITING_MAX: usize = 256;
/// Credentials of which is known whether they are right, and so many of which they are wrong; more users than a file holds.
pub(crate) const KNOWN_CREDENTIALS_MAX: usize = 16 << 10;

/// Clients of a forward proxy whose requests are counted.
pub(crate) const RATE_CLIENTS_MAX: usize = 64 << 10;
/// In so many parts, of which one is locked for a request.
pub(crate) const RATE_SHARDS: usize = 64;

/// Who was admitted by the service of an `auth_request` and is known for a while …
pub(crate) const ADMISSIONS_KNOWN_MAX: usize = 16 << 10;
/// … in so many parts, of which one is locked for a request …
pub(crate) const ADMISSIONS_SHARDS: usize = 64;
/// … with so many bytes of fields at most: for whom more is copied the service is asked each time.
pub(crate) const AUTH_KNOWN_FIELDS_BYTES_MAX: usize = 1 << 10;
/// What is copied of such a service's answer into a request.
pub(crate) const AUTH_COPIED_BYTES_MAX: usize = 8 << 10;
/// An answer that goes out at a pace goes in so many pieces a second, and none of them is longer.
pub(crate) const PACED_PIECES_PER_SECOND: u64 = 10;
pub(crate) const PACED_PIECE_BYTES_MAX: u64 = 64 << 10;
/// In so many parts requests that are under way are counted (`connection_limit`), of which one is locked for a request.
pub(crate) const UNDER_WAY_SHARDS: usize = 64;
/// What an entry of the table costs beside its fields.
pub(crate) const ADMISSION_BYTES: usize = 128;

/// What a process that another one has taken over from keeps of its memory's limit: the share, in powers of two, and at least.
pub(crate) const RETIRED_MEMORY_SHIFT: u32 = 4;
pub(crate) const RETIRED_MEMORY_MIN: usize = 16 << 20;

/// How long the end of the process waits for the disks to write what is queued.
pub(crate) const DISK_CLOSE_MAX: Duration = Duration::from_secs(10);

/// How long the answer to a purge waits for the disks to remember it.
pub(crate) const DISK_SETTLE_MAX: Duration = Duration::from_secs(5);

/// A connection to memcached that nobody wants anything of is closed after so long.
pub(crate) const MEMCACHED_IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// Commands on one connection to memcached, above which another one is opened …
pub(crate) const MEMCACHED_LANE_WAITING_USUAL: usize = 256;
/// … and above which none is taken, when all that may be opened are.
pub(crate) const MEMCACHED_LANE_WAITING_MAX: usize = 4096;
/// Bytes of commands on one connection that the server has not taken.
pub(crate) const MEMCACHED_LANE_QUEUE_BYTES_MAX: usize = 8 << 20;
/// Chunks of one value.
pub const MEMCACHED_CHUNKS_MAX: u32 = 64 << 10;
/// What one chunk may be.
pub const MEMCACHED_CHUNK_BYTES_MAX: usize = 8 << 20;
/// Chunks that are asked for before the one is sent that comes first.
pub(crate) const MEMCACHED_CHUNKS_AHEAD_MAX: usize = 1;
/// Chunks that are touched at once.
pub(crate) const MEMCACHED_CHUNKS_TOUCHED_AT_ONCE: usize = 256;
/// What a client is told to wait for that found all room for values taken.
pub(crate) const MEMCACHED_RETRY_AFTER_SECONDS: u32 = 1;
/// A file of certificates.
pub const CERTIFICATES_BYTES_MAX: u64 = 4 << 20;
/// Keys that one request may name.
pub const MEMCACHED_MULTI_KEYS_MAX: usize = 100;
/// A key that is stored under its hash.
pub const MEMCACHED_LONG_KEY_BYTES_MAX: usize = 8 << 10;

/// Threads of one core that look for files; more wait in line, and the rest of the core goes on.
pub(crate) const FILE_THREADS_MAX: usize = 16;

/// Room that a head to be written gets at once: most heads with what we add, so that it need not grow.
pub(crate) const HEAD_BYTES_USUAL: usize = 1 << 10;

/// Paths whose No-Vary-Search is remembered; the one learned first goes. With what `rules` lets one say: some 10 MiB.
pub const URL_VARIATIONS_MAX: usize = 8192;
/// Parts of that table, each with a lock of its own.
pub const URL_VARIATIONS_SHARDS: usize = 64;

/// What a VCL backend without `.max_connections` has, and what waits for one of them.
pub const BACKEND_CONNECTIONS_MAX_DEFAULT: usize = 16 << 10;
pub const BACKEND_QUEUE_MAX_DEFAULT: usize = 8192;
pub const BACKEND_QUEUE_TIMEOUT_DEFAULT: Duration = Duration::from_secs(10);

/// Programs that are loaded at once, and labels.
pub const VCL_PROGRAMS_MAX: usize = 256;
pub const VCL_LABELS_MAX: usize = 256;
pub const VCL_NAME_BYTES_MAX: usize = 127;

/// Of an origin's body that nobody wants any more: what is read of it at most, and for how long, so that its connection can
/// be used again.
pub const GIVEN_UP_BYTES_MAX: usize = 64 << 10;
pub const GIVEN_UP_WAIT: Duration = Duration::from_secs(1);

/// Scripts of one root that are known for a moment, and how long the path of one may be.
pub(crate) const SCRIPTS_KNOWN_MAX: usize = 1_024;
pub(crate) const SCRIPT_PATH_BYTES_KEPT_MAX: usize = 256;

/// What a FastCGI program says beside one answer: so much of it is told in our log.
pub(crate) const FASTCGI_ERROR_BYTES_MAX: usize = 4 << 10;

/// What a FastCGI program writes beyond the length that it has said of its body is read and forgotten, up to so much.
pub(crate) const FASTCGI_EXCESS_BYTES_MAX: usize = 64 << 10;

/// Probes under way at once, over all backends.
pub const PROBES_AT_ONCE_MAX: usize = 256;
/// The least time between two probes of one backend.
pub const PROBE_INTERVAL_MIN: Duration = Duration::from_millis(10);
/// What of a probe's answer is kept to find its status in.
pub const PROBE_HEAD_BYTES_MAX: usize = 8 << 10;

/// When an address of an origin is left out, unless it says otherwise.
pub const EJECTION_FAILURES_DEFAULT: u32 = 3;
pub const EJECTION_TIME_DEFAULT: Duration = Duration::from_secs(10);

/// The text of one record, and what of a transaction's records is collected before it is handed over.
pub(crate) const RECORD_BYTES_MAX: usize = 4 << 10;
pub(crate) const TASK_RECORDS_BYTES_MAX: usize = 16 << 10;
/// Buffers of transactions that are over, which a core keeps for others: as many as are answered at once, and some.
pub(crate) const RECORD_BUFFERS_KEPT_MAX: usize = 16;

/// A client's text in one log line: what is longer is cut.
pub const LOG_METHOD_BYTES_MAX: usize = 32;
pub const LOG_TARGET_BYTES_MAX: usize = 4 << 10;
pub const LOG_FIELD_BYTES_MAX: usize = 1 << 10;
pub const LOG_USER_BYTES_MAX: usize = 256;
/// Of what a program logs about one request: the texts, and the bytes of all of them.
pub const LOG_TEXTS_MAX: usize = 16;
pub const LOG_TEXTS_BYTES_MAX: usize = 2 << 10;

/// Who may read along at once what exchanges are over, and what may wait for each of them.
pub const EVENT_READERS_MAX: usize = 16;
pub const EVENTS_WAITING_BYTES_MAX: usize = 1 << 20;

/// What an answer says of why it is as it is, to who asks with the token.
pub const EXPLAINED_BYTES_MAX: usize = 4 << 10;
/// Spans and log records that wait on each core for who exports them, and what of all of them is sent at once (a piece more may be in it).
pub const EXPORTS_WAITING_BYTES_MAX: usize = 1 << 20;
pub const EXPORT_BATCH_BYTES_MAX: usize = 512 << 10;
/// A query that says which events are meant: its text, and how deep its conditions may be nested.
pub const EVENT_QUERY_BYTES_MAX: usize = 4 << 10;
pub const EVENT_QUERY_DEPTH_MAX: usize = 32;
/// Of the tries of one fetch to be answered by an origin, so many are told.
pub(crate) const ORIGIN_TRIES_TOLD_MAX: usize = 8;

/// How long a target that nobody asks for is kept, unless it is said otherwise.
pub(crate) const FORWARD_TARGET_IDLE_DEFAULT: Duration = Duration::from_secs(60);

/// A coder whose text is in a coding already makes itself as large as a text so many times as long asks for: most are shorter.
pub(crate) const CODED_TEXT_RATIO: u64 = 16;

/// What was asked for again so often is worth being made as short as it gets, in idle time.
pub(crate) const BETTER_AFTER_HITS: u32 = 2;

/// Longer texts are not made as short as brotli can: that takes a second for each megabyte.
pub(crate) const BROTLI_BEST_BYTES_MAX: u64 = 256 << 10;

/// A longer file is not compressed: who asks for it first after it has changed waits until that is done.
pub(crate) const FILE_CODED_BYTES_MAX: u64 = 1 << 20;

/// A longer Accept-Encoding is read anew each time.
pub(crate) const CODINGS_TEXT_BYTES_MAX: usize = 256;

/// What a filter of a body is to make at once.
pub(crate) const FILTER_PIECE_BYTES: usize = 32 << 10;
/// What a coding thread takes of a text before it gives way to a core that waits for its processor: some 0.2 ms in gzip.
pub(crate) const FILTER_THREAD_STEP_BYTES: usize = 8 << 10;

/// What filters of a body may do on a core before others have their turn, estimated: some 0.2 ms. What takes longer goes to a coding
/// thread, and the way there and back costs a tenth of that.
pub(crate) const FILTER_TURN_INSTRUCTIONS: u64 = 1 << 20;
/// What a coding thread does for one body before it goes on to the next, and what it makes of that body meanwhile.
pub(crate) const FILTER_JOB_INSTRUCTIONS: u64 = 16 << 20;
pub(crate) const FILTER_JOB_BYTES: usize = 128 << 10;

/// How often a coding says all that it has because nothing more comes for now. Each time costs a little of the ratio.
pub(crate) const FILTER_FLUSHES_MAX: u32 = 64;

/// Over so long it is counted what coding in idle time takes of a core.
pub(crate) const CODING_IDLE_WINDOW: Duration = Duration::from_secs(10);

/// Slices of one write: head, tail, and the first blocks of a body (1 MiB of 64 KiB blocks).
pub(crate) const SLICES_MAX: usize = 18;

/// So many fetches at once are never too many for one owner, whatever its share is: a node has them under way before it can tell a slow one.
pub(crate) const FLEET_LOAD_ALWAYS: u64 = 64;
/// Owners that a fetch asks, one after the other, before it asks the origin itself.
pub(crate) const FLEET_OWNERS_TRIED_MAX: usize = 2;
/// Addresses of nodes of which it is remembered whether they are this machine's.
pub(crate) const FLEET_ADDRESSES_KNOWN_MAX: usize = 1_024;
/// How long another node's request waits until the invalidations that it knows of are in force here, and how often that is looked at.
pub(crate) const FLEET_BEHIND_WAIT_MAX: Duration = Duration::from_millis(100);
pub(crate) const FLEET_BEHIND_LOOK: Duration = Duration::from_millis(5);
/// So far the clocks of two nodes may be apart.
pub(crate) const NODE_CLOCK_SKEW_MAX_S: u64 = 30;
