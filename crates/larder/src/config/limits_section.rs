//! `[limits]`: every field of `proxy::limits::Limits` by its name, with the values that make sense.

use std::ops::RangeInclusive;
use std::time::Duration;

use proxy::limits::Limits;

use super::complaint::Complaint;
use super::definition::{KeyDefinition, V0_1, key};
use super::section::{self, Node, Section};
use crate::quantities::show_size;

/// A field's text and a head's spans are addressed in 16 and 32 bits.
const FIELD_BYTES_TOP: u64 = u16::MAX as u64;
const HEAD_BYTES_TOP: u64 = 16 << 20;
const FIELDS_TOP: u64 = wire::limits::FIELDS_CEILING as u64;
/// What a reader of zstd has to remember holds no more.
const DICTIONARY_BYTES_TOP: u64 = proxy::limits::DICTIONARY_BYTES_TOP;
const ANY: u64 = u64::MAX;

/// One line a limit: its key, the field of `Limits`, how it is read, between which bounds, and what it counts where the name does not
/// say; above it, what it does. Of these lines both the definitions and the reader are made.
macro_rules! limits {
    ($($(#[doc = $says:expr])+ $key:ident => $($field:ident).+: $reader:ident($range:expr) $(, $unit:literal)?;)*) => {
        pub const KEYS: &[KeyDefinition] = &[
            $(key(V0_1, stringify!($key), kind::$reader($range), concat!($($says),+).trim_ascii_start())
                $(.unit($unit))?
                .by_default(|| shown::$reader(Limits::default().$($field).+)),)*
        ];

        /// A limit as it holds, as TOML.
        pub fn value_of(key: &str, limits: &Limits) -> Option<String> {
            match key {
                $(stringify!($key) => Some(shown::$reader(limits.$($field).+)),)*
                _ => None,
            }
        }

        fn read_all(section: &mut Section<'_>, limits: &mut Limits) {
            $(if let Some(value) = section.read(stringify!($key), |node| $reader(node, $range)) {
                limits.$($field).+ = value;
            })*
        }
    };
}

limits! {
    /// Client connections, over all cores. Beyond it new ones wait to be accepted.
    connections_max => connections_max: number(1..=ANY);
    /// Client connections from one address. 0: no limit.
    connections_per_client_max => connections_per_client_max: number(0..=ANY);
    /// Requests on one client connection.
    requests_per_connection_max => requests_per_connection_max: number(1..=ANY);
    /// Pipelined hits that one connection is answered before others have their turn.
    pipelined_hits_max => pipelined_hits_max: number(1..=ANY);
    /// A client connection without a request is closed after so long.
    idle_timeout => idle_timeout: time(true);
    /// From the first byte of a head to its last; beyond it 408.
    request_head_timeout => request_head_timeout: time(true);
    /// Requests that a client may have under way on one HTTP/2 connection.
    http2_streams_max => http2_streams_max: number(1..=1_000);
    /// For the handshake of TLS, where it is spoken.
    tls_handshake_timeout => tls_handshake_timeout: time(true);
    /// The head of a request; beyond it 431.
    request_head_bytes_max => request_head.head_bytes_max: bytes(512..=HEAD_BYTES_TOP);
    /// Fields of a request; beyond it 431.
    request_fields_max => request_head.fields_max: number(8..=FIELDS_TOP);
    /// Name and value of one field of a request; beyond it 431.
    request_field_bytes_max => request_head.field_bytes_max: bytes(256..=FIELD_BYTES_TOP);
    /// The request target; beyond it 414.
    request_target_bytes_max => request_head.target_bytes_max: bytes(256..=HEAD_BYTES_TOP);
    /// All heads together of which only a part has come.
    partial_heads_bytes_max => partial_heads_bytes_max: bytes(64 << 10..=ANY);
    /// The body of a request. A larger one is answered 413.
    request_body_bytes_max => request_body_bytes_max: bytes(0..=ANY);
    /// A request body that does not say its length (chunked) is read before a FastCGI application is asked, up to so much; beyond it 413.
    fastcgi_chunked_body_bytes_max => fastcgi_chunked_body_bytes_max: bytes(0..=ANY);
    /// Between two reads of a request body.
    request_body_timeout => request_body_timeout: time(true);
    /// What a request body must come with on average, once request_body_timeout was spent waiting. 0: no limit.
    request_body_rate_min => request_body_rate_min: bytes(0..=ANY), "bytes a second";
    /// A client that takes nothing of its answer for so long is cut off.
    send_timeout => send_timeout: time(true);
    /// What a client must take on average after send_timeout. 0: no limit.
    send_rate_min => send_rate_min: bytes(0..=ANY), "bytes a second";
    /// After an answer that leaves a request body unread: how long that is read before the connection is closed …
    linger_timeout => linger_timeout: time(false);
    /// … and how much of it.
    linger_bytes_max => linger_bytes_max: bytes(0..=ANY);
    /// The head of an origin's response; beyond it 502.
    response_head_bytes_max => response_head.head_bytes_max: bytes(512..=HEAD_BYTES_TOP);
    /// Fields of an origin's response; beyond it 502.
    response_fields_max => response_head.fields_max: number(8..=FIELDS_TOP);
    /// Name and value of one field of an origin's response; beyond it 502.
    response_field_bytes_max => response_head.field_bytes_max: bytes(256..=FIELD_BYTES_TOP);
    /// The reason phrase of an origin's response; beyond it 502.
    response_target_bytes_max => response_head.target_bytes_max: bytes(256..=HEAD_BYTES_TOP);
    /// Of what a page includes (ESI) so many are asked for at a time. docs/esi.md
    esi_ahead_max => esi_ahead_max: number(1..=1_000);
    /// How deep a page may lie in pages that include it (ESI).
    esi_depth_max => esi_depth_max: number(0..=100);
    /// What one page may include (ESI), with all that is included in that.
    esi_parts_max => esi_parts_max: number(0..=1_000_000);
    /// How long a page may be with all that it includes (ESI). A longer one breaks off there.
    esi_page_bytes_max => esi_page_bytes_max: bytes(1 << 10..=ANY);
    /// How long a page waits for its parts (ESI), altogether. Then it breaks off.
    esi_wait_max => esi_wait_max: time(true);
    /// Threads for coding of bodies that would hold up a worker. 0: one for each two workers.
    coding_threads => coding_threads: number(0..=1_024);
    /// Pieces of bodies that may wait for these threads; beyond it workers code them themselves.
    coding_jobs_max => coding_jobs_max: number(0..=ANY);
    /// Their bytes; beyond it workers code them themselves.
    coding_jobs_bytes_max => coding_jobs_bytes_max: bytes(0..=ANY);
    /// What coders may hold of memory, over all workers. Who comes while they hold it has responses as they are. 0: nothing
    /// is compressed on its way.
    coding_memory_bytes_max => coding_memory_bytes_max: bytes(0..=ANY);
    /// A text that is longer is no dictionary ([compress] dictionaries); 4MiB at most.
    dictionary_bytes_max => dictionary_bytes_max: bytes(0..=DICTIONARY_BYTES_TOP);
    /// Texts that others have replaced, or a purge or a ban has dropped, and that stay as dictionaries: so many for the same
    /// URLs of a site …
    dictionary_versions_max => dictionary_versions_max: number(0..=1_000);
    /// … so many bytes of all, within memory.size …
    dictionaries_bytes_max => dictionaries_bytes_max: bytes(0..=ANY);
    /// … and for so long.
    dictionary_age_max => dictionary_age_max: time(false);
    /// What coding in idle time may take of one core. 0: nothing is coded in idle time.
    coding_idle_percent => coding_idle_percent: number(0..=100), "per cent of a core";
    /// Responses with a status of 1xx that are passed on before the final one.
    interim_responses_max => interim_responses_max: number(0..=ANY);
    /// Requests under way on one HTTP/2 connection to an origin; fewer where the origin says so.
    origin_streams_max => origin_streams_max: number(1..=1_000);
    /// An origin that says nothing for so long over HTTP/2, while requests are under way, is sent a PING; if nothing comes
    /// for so long again, the connection is over. "0s": never.
    origin_ping_timeout => origin_ping_timeout: time(false);
    /// To an origin: until the connection is there.
    connect_timeout => connect_timeout: time(true);
    /// Until the first byte of an origin's response.
    first_byte_timeout => first_byte_timeout: time(true);
    /// Between two reads of an origin's response.
    between_bytes_timeout => between_bytes_timeout: time(true);
    /// Idle connections that are kept to all origins together, over all cores.
    origin_idle_connections_max => origin_idle_connections_max: number(0..=ANY);
    /// How long each of these is kept: less than the origin does.
    origin_idle_timeout => origin_idle_timeout: time(false);
    /// Extensions in a chunked body, either way.
    chunk_extension_bytes_max => chunked.extension_bytes_max: bytes(0..=ANY);
    /// Framing of a chunked body that is allowed in any case …
    chunk_overhead_bytes_free => chunked.overhead_bytes_free: bytes(0..=ANY);
    /// … and for each byte of data.
    chunk_overhead_per_data_byte => chunked.overhead_per_data_byte: number(0..=ANY), "bytes";
    /// The trailers of a chunked body.
    trailer_bytes_max => chunked.trailer_bytes_max: bytes(0..=HEAD_BYTES_TOP);
    /// Fields in the trailers of a chunked body.
    trailer_fields_max => chunked.trailer_fields_max: number(0..=ANY);
    /// A body that is larger, or larger than a quarter of the memory, is stored in slices.
    object_bytes_max => object_bytes_max: bytes(0..=ANY);
    /// The size of a slice. 0: no slices, and what is too large is not stored. docs/large-objects.md
    slice_bytes => slice_bytes: bytes(0..=ANY);
    /// A range that begins so far ahead of what has come is asked of the origin by itself.
    range_ahead_bytes_max => range_ahead_bytes_max: bytes(0..=ANY);
    /// A fetch that nobody waits for any more is finished if no more than this is missing.
    quick_abort_bytes_max => quick_abort_bytes_max: bytes(0..=ANY);
    /// How far a body that is not stored may be read ahead of its slowest client …
    window_bytes_max => window_bytes_max: bytes(64 << 10..=ANY);
    /// … and how long that one may take nothing.
    reader_stall_max => reader_stall_max: time(true);
    /// Variants (Vary) of one URL.
    variants_max => variants_max: number(1..=ANY);
    /// A look-up on a disk that takes longer counts as a miss.
    disk_read_timeout => disk_read_timeout: time(true);
    /// Files beneath roots that are kept open or in memory, over all cores.
    open_files_max => open_files_max: number(0..=ANY);
    /// Bytes of those in memory.
    open_files_bytes_max => open_files_bytes_max: bytes(0..=ANY);
    /// A larger file is sent from where it lies.
    file_in_memory_bytes_max => file_in_memory_bytes_max: bytes(0..=ANY);
    /// After so long larder looks whether a file has changed.
    open_file_check_interval => open_file_check_interval: time(false);
    /// A directory with more entries is not listed.
    listing_entries_max => listing_entries_max: number(0..=ANY);
    /// Forward proxy: hosts and ports in use at once.
    forward_targets_max => forward_targets_max: number(1..=ANY);
    /// Connections to each of these.
    forward_target_connections_max => forward_target_connections_max: number(1..=ANY);
    /// How long one that rests is remembered.
    forward_target_idle => forward_target_idle: time(false);
    /// Copies of requests for `mirror` of routes at once …
    mirrors_max => mirrors_max: number(0..=ANY);
    /// … each from its first byte to the last of the answer …
    mirror_timeout => mirror_timeout: time(true);
    /// … and with no longer body.
    mirror_body_bytes_max => mirror_body_bytes_max: bytes(0..=ANY);
    /// Tunnels (CONNECT) and pipes (Upgrade, return (pipe)) at once.
    tunnels_max => tunnels_max: number(0..=ANY);
    /// After so long without a byte a tunnel is closed …
    tunnel_idle_timeout => tunnel_idle_timeout: time(true);
    /// … and after so long when one side has ended.
    tunnel_half_closed_timeout => tunnel_half_closed_timeout: time(true);
    /// Values on their way to and from memcached, all together.
    memcached_values_bytes_max => memcached_values_bytes_max: bytes(1 << 10..=ANY);
    /// How long the end of the process waits for requests that are under way.
    drain_grace => drain_grace: time(false);
    /// How long a process waits for them that another one has taken over from (`larder upgrade`).
    upgrade_grace => upgrade_grace: time(false);
}

pub fn read(mut section: Section<'_>, limits: &mut Limits) {
    read_all(&mut section, limits);
    section.end();
}

/// What a reader of the same name takes.
mod kind {
    use std::ops::RangeInclusive;

    use crate::config::definition::ValueKind;

    pub const fn number(range: RangeInclusive<u64>) -> ValueKind {
        ValueKind::Count(*range.start(), *range.end())
    }

    pub const fn bytes(range: RangeInclusive<u64>) -> ValueKind {
        ValueKind::Size(*range.start(), *range.end())
    }

    pub const fn time(positive: bool) -> ValueKind {
        ValueKind::Time(positive)
    }
}

/// What a reader of the same name reads.
mod shown {
    pub use crate::config::literal::{number, size as bytes, time};
}

fn number<T: TryFrom<u64>>(node: Node<'_>, range: RangeInclusive<u64>) -> Result<T, Complaint> {
    within(node, section::count(node)?, &range, |n| n.to_string())
}

fn bytes<T: TryFrom<u64>>(node: Node<'_>, range: RangeInclusive<u64>) -> Result<T, Complaint> {
    within(node, section::size(node)?, &range, show_size)
}

fn within<T: TryFrom<u64>>(
    node: Node<'_>,
    value: u64,
    range: &RangeInclusive<u64>,
    show: impl Fn(u64) -> String,
) -> Result<T, Complaint> {
    let fits = T::try_from(value).ok().filter(|_| range.contains(&value));
    fits.ok_or_else(|| {
        let bounds = match *range.end() {
            ANY => format!("must be at least {}", show(*range.start())),
            end => format!("must be {} to {}", show(*range.start()), show(end)),
        };
        Complaint::new(node.span(), format!("{} is out of range", show(value)), bounds)
    })
}

fn time(node: Node<'_>, positive: bool) -> Result<Duration, Complaint> {
    let duration = section::duration(node)?;
    if positive && duration.is_zero() {
        let complaint = Complaint::new(node.span(), "a time-out of 0 would refuse everything", "must be longer");
        return Err(complaint.suggest("there is no value for \"never\": give a long one, such as \"1d\""));
    }
    Ok(duration)
}

#[cfg(test)]
mod tests {
    use super::super::read as read_config;

    #[test]
    fn every_limit_can_be_set_by_its_name() {
        let text = "[limits]\nrequest_head_bytes_max = \"16KiB\"\nconnections_max = 77\ndrain_grace = \"0s\"\nsend_rate_min = \"1K\"\n";
        let limits = read_config(text).unwrap().settings.limits;
        assert_eq!(limits.request_head.head_bytes_max, 16 << 10);
        assert_eq!((limits.connections_max, limits.send_rate_min), (77, 1024));
        assert!(limits.drain_grace.is_zero());
    }

    /// `Debug` prints every field's name, so a field without a key here fails. `lenient` is no limit: it is for who takes
    /// Varnish's place.
    #[test]
    fn no_limit_is_without_a_key() {
        let source = include_str!("limits_section.rs");
        let printed = format!("{:?}", proxy::limits::Limits::default());
        let names = printed.split([' ', '{', ',']).filter_map(|word| word.strip_suffix(':'));
        let mut count = 0;
        for name in names.filter(|name| !matches!(*name, "request_head" | "response_head" | "chunked" | "lenient")) {
            assert!(source.contains(&format!("{name}: ")), "`{name}` has no key");
            count += 1;
        }
        assert!(count > 30, "{printed}");
    }
}
