//! `[limits]`: every field of `proxy::limits::Limits` by its name, with the values that make sense.

use std::ops::RangeInclusive;
use std::time::Duration;

use proxy::limits::Limits;

use super::complaint::Complaint;
use super::section::{self, Node, Section};
use crate::quantities::show_size;

/// A field's text and a head's spans are addressed in 16 and 32 bits.
const FIELD_BYTES_TOP: u64 = u16::MAX as u64;
const HEAD_BYTES_TOP: u64 = 16 << 20;
const FIELDS_TOP: u64 = wire::limits::FIELDS_CEILING as u64;
/// What a reader of zstd has to remember holds no more.
const DICTIONARY_BYTES_TOP: u64 = proxy::limits::DICTIONARY_BYTES_TOP;
const ANY: u64 = u64::MAX;

macro_rules! read_all {
    ($section:ident, $limits:ident; $($key:ident => $($field:ident).+: $reader:ident($range:expr);)*) => {
        $(if let Some(value) = $section.read(stringify!($key), |node| $reader(node, $range)) {
            $limits.$($field).+ = value;
        })*
    };
}

pub fn read(mut section: Section<'_>, limits: &mut Limits) {
    read_all! { section, limits;
        request_head_bytes_max => request_head.head_bytes_max: bytes(512..=HEAD_BYTES_TOP);
        request_fields_max => request_head.fields_max: number(8..=FIELDS_TOP);
        request_field_bytes_max => request_head.field_bytes_max: bytes(256..=FIELD_BYTES_TOP);
        request_target_bytes_max => request_head.target_bytes_max: bytes(256..=HEAD_BYTES_TOP);
        response_head_bytes_max => response_head.head_bytes_max: bytes(512..=HEAD_BYTES_TOP);
        response_fields_max => response_head.fields_max: number(8..=FIELDS_TOP);
        response_field_bytes_max => response_head.field_bytes_max: bytes(256..=FIELD_BYTES_TOP);
        response_target_bytes_max => response_head.target_bytes_max: bytes(256..=HEAD_BYTES_TOP);
        chunk_extension_bytes_max => chunked.extension_bytes_max: bytes(0..=ANY);
        chunk_overhead_bytes_free => chunked.overhead_bytes_free: bytes(0..=ANY);
        chunk_overhead_per_data_byte => chunked.overhead_per_data_byte: number(0..=ANY);
        trailer_bytes_max => chunked.trailer_bytes_max: bytes(0..=HEAD_BYTES_TOP);
        trailer_fields_max => chunked.trailer_fields_max: number(0..=ANY);
        connections_max => connections_max: number(1..=ANY);
        connections_per_client_max => connections_per_client_max: number(0..=ANY);
        partial_heads_bytes_max => partial_heads_bytes_max: bytes(64 << 10..=ANY);
        request_body_bytes_max => request_body_bytes_max: bytes(0..=ANY);
        fastcgi_chunked_body_bytes_max => fastcgi_chunked_body_bytes_max: bytes(0..=ANY);
        pipelined_hits_max => pipelined_hits_max: number(1..=ANY);
        requests_per_connection_max => requests_per_connection_max: number(1..=ANY);
        request_head_timeout => request_head_timeout: time(true);
        tls_handshake_timeout => tls_handshake_timeout: time(true);
        http2_streams_max => http2_streams_max: number(1..=1_000);
        idle_timeout => idle_timeout: time(true);
        request_body_timeout => request_body_timeout: time(true);
        request_body_rate_min => request_body_rate_min: bytes(0..=ANY);
        send_timeout => send_timeout: time(true);
        send_rate_min => send_rate_min: bytes(0..=ANY);
        linger_timeout => linger_timeout: time(false);
        linger_bytes_max => linger_bytes_max: bytes(0..=ANY);
        connect_timeout => connect_timeout: time(true);
        first_byte_timeout => first_byte_timeout: time(true);
        between_bytes_timeout => between_bytes_timeout: time(true);
        origin_idle_connections_max => origin_idle_connections_max: number(0..=ANY);
        origin_idle_timeout => origin_idle_timeout: time(false);
        origin_ping_timeout => origin_ping_timeout: time(false);
        origin_streams_max => origin_streams_max: number(1..=1_000);
        esi_ahead_max => esi_ahead_max: number(1..=1_000);
        dictionary_bytes_max => dictionary_bytes_max: bytes(0..=DICTIONARY_BYTES_TOP);
        dictionary_versions_max => dictionary_versions_max: number(0..=1_000);
        dictionaries_bytes_max => dictionaries_bytes_max: bytes(0..=ANY);
        dictionary_age_max => dictionary_age_max: time(false);
        coding_threads => coding_threads: number(0..=1_024);
        coding_jobs_max => coding_jobs_max: number(0..=ANY);
        coding_jobs_bytes_max => coding_jobs_bytes_max: bytes(0..=ANY);
        coding_memory_bytes_max => coding_memory_bytes_max: bytes(0..=ANY);
        coding_idle_percent => coding_idle_percent: number(0..=100);
        esi_depth_max => esi_depth_max: number(0..=100);
        esi_parts_max => esi_parts_max: number(0..=1_000_000);
        esi_page_bytes_max => esi_page_bytes_max: bytes(1 << 10..=ANY);
        esi_wait_max => esi_wait_max: time(true);
        interim_responses_max => interim_responses_max: number(0..=ANY);
        object_bytes_max => object_bytes_max: bytes(0..=ANY);
        window_bytes_max => window_bytes_max: bytes(64 << 10..=ANY);
        reader_stall_max => reader_stall_max: time(true);
        variants_max => variants_max: number(1..=ANY);
        disk_read_timeout => disk_read_timeout: time(true);
        range_ahead_bytes_max => range_ahead_bytes_max: bytes(0..=ANY);
        slice_bytes => slice_bytes: bytes(0..=ANY);
        quick_abort_bytes_max => quick_abort_bytes_max: bytes(0..=ANY);
        open_files_max => open_files_max: number(0..=ANY);
        forward_targets_max => forward_targets_max: number(1..=ANY);
        forward_target_connections_max => forward_target_connections_max: number(1..=ANY);
        forward_target_idle => forward_target_idle: time(false);
        tunnels_max => tunnels_max: number(0..=ANY);
        tunnel_half_closed_timeout => tunnel_half_closed_timeout: time(true);
        open_files_bytes_max => open_files_bytes_max: bytes(0..=ANY);
        file_in_memory_bytes_max => file_in_memory_bytes_max: bytes(0..=ANY);
        open_file_check_interval => open_file_check_interval: time(false);
        listing_entries_max => listing_entries_max: number(0..=ANY);
        tunnel_idle_timeout => tunnel_idle_timeout: time(true);
        memcached_values_bytes_max => memcached_values_bytes_max: bytes(1 << 10..=ANY);
        drain_grace => drain_grace: time(false);
    }
    section.end();
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
