//! The program's own limits and defaults. Those of the proxy are fields of `proxy::limits::Limits`.

use std::time::Duration;

pub const MEMORY_BYTES_MIN: u64 = proxy::MEMORY_BYTES_MIN as u64;
pub const MEMORY_BYTES_DEFAULT: u64 = 256 << 20;

pub const WORKERS_MAX: usize = 1024;

/// What an origin gets when its section does not say.
pub const ORIGIN_CONNECTIONS_MAX_DEFAULT: usize = 1024;
pub const ORIGIN_QUEUE_MAX_DEFAULT: usize = 8192;
pub const ORIGIN_QUEUE_TIMEOUT_DEFAULT: Duration = Duration::from_secs(10);
pub use proxy::limits::{
    EJECTION_FAILURES_DEFAULT as ORIGIN_EJECTION_FAILURES_DEFAULT,
    EJECTION_TIME_DEFAULT as ORIGIN_EJECTION_TIME_DEFAULT,
};

/// What one of its URLs may weigh, and how many other addresses a request may be sent to.
pub const ORIGIN_WEIGHT_MAX: u32 = 1_000;
pub const ORIGIN_RETRIES_MAX: u32 = 10;

/// With `disk_sendfile`: smaller bodies come back into memory, where a hit is cheaper than looking where they lie.
pub const DISK_SENDFILE_MIN: u64 = 128 << 10;

/// The leases that a node of a fleet can keep: shorter ones a slow answer of the log ends, longer ones are none.
pub const FLEET_LEASE_MIN: Duration = Duration::from_millis(500);
pub const FLEET_LEASE_MAX: Duration = Duration::from_secs(3_600);
/// How long an ending node tries to tell the others.
pub const FLEET_GOOD_BYE: Duration = Duration::from_secs(2);
/// What is told to a fleet before this node has joined it: beyond that the others have everything confirmed that they hold.
pub const TOLD_BEFORE_JOINING_MAX: usize = 1_000;
/// Nodes are near one another: one that does not answer for so long is not there.
pub const FLEET_CONNECT_TIMEOUT_DEFAULT: Duration = Duration::from_secs(1);
/// Thousandths of its share of fetches, from which on an owner is passed over.
pub const FLEET_LOAD_MAX_DEFAULT: u32 = 1_250;
pub const FLEET_LOAD_MAX_LEAST: u32 = 1_000;
pub const FLEET_LOAD_MAX_MOST: u32 = 100_000;
/// Whoever guesses the secret of a fleet is a node.
pub const FLEET_SECRET_BYTES_MIN: usize = 32;

/// How long a request may wait for the shared tier.
pub const SHARED_WAIT_LEAST: Duration = Duration::from_millis(1);
pub const SHARED_WAIT_MOST: Duration = Duration::from_secs(60);
/// The largest body that may be kept there: it is read at once.
pub const SHARED_OBJECT_MAX: u64 = 256 << 20;
/// The least that may be on its way there.
pub const SHARED_QUEUE_MIN: usize = 1 << 20;

/// larder.toml is read whole.
pub const CONFIG_BYTES_MAX: u64 = 4 << 20;
/// A service manager that takes nothing for so long is not told.
pub const MANAGER_TIMEOUT: Duration = Duration::from_secs(1);
/// A signal that comes again so soon is the supervisor's and somebody else's of the same.
pub const SAME_ORDER: Duration = Duration::from_millis(300);
/// How often the supervisor hears of the process that serves, and for how long it may hear nothing.
pub const ALIVE_EVERY: Duration = Duration::from_secs(1);
pub const SILENCE_MAX: Duration = Duration::from_secs(30);
/// What a process that another one has taken over from has still to say to it: lines at once, and the longest. What does not fit is said as
/// one word that covers all.
pub const SUCCESSOR_LINES_MAX: usize = 4_096;
pub const SUCCESSOR_LINE_BYTES_MAX: usize = 6 << 10;
/// How often one that has nothing else to do looks whether the process before it is still there.
pub const FORMER_LOOK_EVERY: Duration = Duration::from_millis(250);
/// How long it takes for that at its end.
pub const SUCCESSOR_GOOD_BYE: Duration = Duration::from_secs(2);
/// How long whoever ordered an upgrade waits for what comes of it, and how many may.
pub const UPGRADE_PATIENCE: Duration = Duration::from_secs(150);
pub const UPGRADES_WAITING_MAX: usize = 8;
/// What other processes want that the main thread has not heard yet.
pub const PLACE_ORDERS_MAX: usize = 16;
/// The answer to them goes out of a process that has nothing else to do any more.
pub const UPGRADE_ANSWER_TIME: Duration = Duration::from_millis(300);
/// The line that it shows of us.
pub const STATUS_BYTES_MAX: usize = 400;
/// How long it waits for our end beyond `limits.drain_grace`: disks are written, connections have last words.
pub const ENDING_MARGIN: Duration = Duration::from_secs(15);
/// Names of origins that are asked for before anybody wants them, each in a thread.
pub const NAMES_ASKED_MAX: usize = 64;
/// A list of addresses to send load from.
pub const SOURCES_FILE_BYTES_MAX: u64 = 4 << 20;
/// The token of `[admin]`, in a file of its own.
pub const TOKEN_FILE_BYTES_MAX: u64 = 4 << 10;
/// What the keys of session tickets are made of.
pub const TICKET_SECRET_BYTES_MAX: u64 = 4 << 10;
/// What an authority says of a certificate (OCSP).
pub const OCSP_BYTES_MAX: u64 = 64 << 10;
/// How often the files of certificates are looked at.
pub const CERTIFICATE_LOOK_EVERY: Duration = Duration::from_secs(2);
/// How often larder looks whether others have put a file anew where its sandbox leaves none open.
pub const FENCE_LOOK_EVERY: Duration = Duration::from_secs(10);
/// … and whether disks write.
pub const DISK_LOOK_EVERY: Duration = Duration::from_secs(2);
/// A disk for which something waits, and that has written nothing for so long, has stalled.
pub const DISK_STALLED_AFTER_MS: u64 = 10_000;
/// What goes on for days, such as an authority that fails, is said again after so long.
pub const SAID_AGAIN_S: u64 = 86_400;
/// So long before its end, at most, a certificate is spoken of.
pub const EXPIRY_WARNING_S: u64 = 14 * 86_400;
/// What a collector of traces has to take a batch, how often it is asked to, and what is waited for at most in between.
pub const COLLECTOR_TIMEOUT: Duration = Duration::from_secs(10);
pub const COLLECTOR_TRIES_MAX: u32 = 4;
pub const COLLECTOR_WAIT_MAX: Duration = Duration::from_secs(30);
pub const COLLECTOR_ANSWER_BYTES_MAX: usize = 64 << 10;
/// What it has at the end.
pub const COLLECTOR_FLUSH_TIMEOUT: Duration = Duration::from_secs(2);
/// Name and password for a parent proxy.
pub const LOGIN_FILE_BYTES_MAX: u64 = 1 << 10;
/// Mistakes of one file that are shown.
pub const COMPLAINTS_MAX: usize = 50;

/// Reasons not to store that `larder lab simulate` counts apart; what comes then counts as others.
pub const REASONS_TOLD_MAX: usize = 64;

/// Requests of a trace that `larder lab simulate` holds, 12 bytes each.
pub const SIMULATED_REQUESTS_MAX: u64 = 400_000_000;
/// Nodes of a fleet that is simulated: as many as are kept track of in one.
pub const SIMULATED_NODES_MAX: i64 = fleet::limits::NODES_MAX as i64;
/// What an item takes in a shared cache beside its body: a head of 300 bytes, its key, and what memcached needs to find it.
pub const SHARED_ITEM_BYTES: u64 = 400;
/// What is longer is not put there.
pub const SHARED_OBJECT_BYTES_MAX: u64 = 1 << 20;
/// Objects of a trace that is made: 20 bytes each. A week of news by the hour needs some.
pub const SIMULATED_OBJECTS_MIN: i64 = 1_000;
pub const SIMULATED_OBJECTS_MAX: i64 = 100_000_000;
/// A longer line of a trace is not understood.
pub const TRACE_LINE_BYTES_MAX: u64 = 64 << 10;

/// A file that a VCL reads as a text (std.fileread).
pub const VCL_READ_BYTES_MAX: u64 = 1 << 20;

/// Orders to reload that wait for the one before.
pub const RELOADS_WAITING_MAX: usize = 8;
/// Admin connections held at once; the next one ends the oldest.
pub const ADMIN_CONNECTIONS_MAX: usize = 32;
/// For a request to come whole, and again for its answer to go.
pub const ADMIN_TIMEOUT: Duration = Duration::from_secs(5);
pub const ADMIN_HEAD_BYTES_MAX: usize = 8 << 10;
/// Reads after our answer, for a client that is still sending.
pub const ADMIN_LINGER_READS_MAX: usize = 16;
/// What `larder vcl` reads of an answer, and how long it waits for one: names may have to be looked up.
pub const ADMIN_ANSWER_BYTES_MAX: u64 = 16 << 20;
pub const ADMIN_PATIENCE: Duration = Duration::from_secs(60);
/// Exchanges that somebody who reads along at the admin address is told of in a second, over all cores: unless it asks for more, and at most.
pub const ADMIN_EVENTS_PER_SECOND: u32 = 1_000;
pub const ADMIN_EVENTS_PER_SECOND_MAX: u32 = 1_000_000;
/// While nothing happens, who reads along hears of us so often.
pub const ADMIN_QUIET_MAX: Duration = Duration::from_secs(10);
/// The history of the dashboard: an hour by the second, a day by the minute.
pub const HISTORY_SECONDS_KEPT: usize = 3_600;
pub const HISTORY_MINUTES_KEPT: usize = 1_440;
/// Annotations in it, and the text of one. What happens again so many seconds later at most is the same one, and counts.
pub const ANNOTATIONS_MAX: usize = 512;
pub const ANNOTATION_BYTES_MAX: usize = 120;
pub const ANNOTATION_JOINED_S: u64 = 10;
/// Addresses of origins that are told to be out or back in one second.
pub const HISTORY_TURNS_TOLD_MAX: usize = 8;
/// Rows in one answer: some 100 KB, which a slow line takes within the time that an answer has.
pub const HISTORY_ROWS_TOLD_MAX: usize = 720;
/// So often it is written into its file: a process that is killed loses as much.
pub const HISTORY_SAVED_EVERY_S: u64 = 10;
/// One event as `larder log` reads it, and how long it waits before it looks for a larder that is gone.
pub const EVENT_LINE_BYTES_MAX: usize = 256 << 10;
pub const LOG_RETRY_PAUSE: Duration = Duration::from_millis(500);
/// Groups that `larder log --group-by` tells apart; what comes behind them is one.
pub const LOG_GROUPS_MAX: usize = 10_000;
/// An order to purge or refresh, and one to fetch URLs before anybody asks.
pub const PURGE_BODY_BYTES_MAX: u64 = 64 << 10;
pub const WARM_BODY_BYTES_MAX: u64 = 1 << 20;
/// Tags and URLs of one order, and samples that it is answered with: in a dry run that does not say how many, and at most.
pub const PURGE_TAGS_MAX: usize = 256;
pub const PURGE_URLS_MAX: usize = 256;
pub const PURGE_SAMPLES: usize = 10;
pub const PURGE_SAMPLES_MAX: usize = 100;
pub const PURGE_GRACE_MAX: Duration = Duration::from_secs(366 * 86_400);
/// How long an order waits for the disks.
pub const DISKS_PATIENCE: Duration = Duration::from_secs(10);
/// Tags that are listed where it is not said how many, and at most.
pub const TAGS_LISTED: usize = 100;
pub const TAGS_LISTED_MAX: usize = 1_000;
/// URLs of one refresh, and of one list to be fetched.
pub const REFRESH_URLS_MAX: usize = 10_000;
pub const WARM_URLS_MAX: usize = 10_000;
/// Requests a second of a refresh where it is not said, and at most; and how many are under way at once.
pub const REFRESH_RATE: u32 = 10;
pub const REFRESH_RATE_MAX: u32 = 1_000;
pub const REFRESH_AT_ONCE: usize = 8;
/// A refresh ends when so many in a row have failed.
pub const REFRESH_FAILURES_MAX: usize = 10;
/// For one URL of a refresh.
pub const REFRESH_PATIENCE: Duration = Duration::from_secs(60);
/// Where what is refreshed was made stale, and is served meanwhile: how often it is looked whether it has come, and how long between two looks.
pub const REFRESH_STALE_LOOKS_MAX: usize = 10;
pub const REFRESH_STALE_PAUSE: Duration = Duration::from_millis(500);
/// How often `larder refresh` looks how far it is.
pub const REFRESH_LOOKS_PAUSE: Duration = Duration::from_millis(300);
/// A sitemap, and how many of them an index leads to.
pub const SITEMAP_BYTES_MAX: usize = 16 << 20;
pub const SITEMAPS_MAX: usize = 50;
/// After an accept that failed.
pub const ADMIN_ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Log lines on their way to the file; past it they are lost and counted.
pub const LOG_QUEUE_BYTES_MAX: usize = 16 << 20;
/// How long the end of the program waits for a log that does not take its lines.
pub const LOG_FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// Files the process needs beside its client connections: listeners, pooled origin connections, log, runtime.
pub const FILES_RESERVED_MIN: u64 = 16;
pub const FILES_RESERVED_MAX: u64 = 1000;

/// The demo: how long its origin thinks, how many ask at once, and how long one answer may take.
pub const DEMO_THINK_TIME: Duration = Duration::from_millis(30);
pub const DEMO_CLIENTS: usize = 8;
pub const DEMO_ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Connections that the demo's origin serves at once, each in a thread.
pub const DEMO_ORIGIN_CONNECTIONS_MAX: usize = 256;
pub const DEMO_MEMORY_BYTES: usize = 64 << 20;

/// A file of VCL tests, its cases, and the requests that one may ask before its own.
pub const TEST_FILE_BYTES_MAX: u64 = 1 << 20;
pub const TEST_CASES_MAX: usize = 1_000;
pub const TESTS_BEFORE_MAX: usize = 16;
/// A file with one request for `larder vcl explain`.
pub const REQUEST_FILE_BYTES_MAX: u64 = 1 << 20;
/// The store of a dry run.
pub const DRY_RUN_MEMORY_BYTES: usize = 64 << 20;

/// How much of a root is looked through for links and files of Apache's, and how much of one of these is read.
pub const ROOT_ENTRIES_MAX: usize = 50_000;
pub const ROOT_DEPTH_MAX: usize = 8;
pub const HTACCESS_BYTES_MAX: u64 = 64 << 10;

/// A run's results, which are read whole.
pub const LAB_RESULTS_BYTES_MAX: u64 = 512 << 20;
/// The width of a lab's table where no terminal says its own.
pub const LAB_TABLE_COLUMNS: usize = 140;

/// How long `larder support` waits for a larder that may hang, and a part of what it collects.
pub const SUPPORT_PATIENCE: Duration = Duration::from_secs(10);
pub const SUPPORT_PART_BYTES_MAX: usize = 4 << 20;

/// What is kept of panics: locations that are counted apart, and how many of each are reported before one a minute is said.
pub const PANIC_LOCATIONS_MAX: usize = 64;
pub const PANICS_REPORTED_EACH: u64 = 3;
/// A report of one: characters of what it says, and addresses of the way there. All of it has to fit into what a supervisor keeps.
pub const REPORT_WORDS_MAX: usize = 300;
pub const REPORT_FRAMES_MAX: usize = 64;

/// Links on the way of one path, as many as the kernel follows.
pub const PATH_LINKS_MAX: usize = 40;

const _: () =
    assert!(PURGE_SAMPLES <= PURGE_SAMPLES_MAX && TAGS_LISTED <= TAGS_LISTED_MAX && REFRESH_RATE <= REFRESH_RATE_MAX);
const _: () = assert!(MEMORY_BYTES_MIN <= MEMORY_BYTES_DEFAULT);
const _: () = assert!(REPORT_WORDS_MAX + REPORT_FRAMES_MAX * 20 + 1_024 <= supervisor::limits::REPORT_BYTES_MAX);
const _: () = assert!(FILES_RESERVED_MIN <= FILES_RESERVED_MAX);
