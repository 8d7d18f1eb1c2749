//! Varnish 7.1's parameters: their forms, defaults and bounds, as scripts read and set them. What each does in larder, if
//! anything, is not known here. Where one's default is a path of the build, it is empty.

use crate::parameter_forms::Form::{self, Bytes, Count, Real, Seconds, Switch, Text, Words};

/// One parameter. Bounds are in the form of the value; an empty one is none.
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    pub(crate) form: Form,
    pub(crate) default: &'static str,
    pub(crate) min: &'static str,
    pub(crate) max: &'static str,
}

const fn row(name: &'static str, form: Form, default: &'static str, min: &'static str, max: &'static str) -> Parameter {
    Parameter { name, form, default, min, max }
}

/// By name.
pub(crate) const PARAMETERS: &[Parameter] = &[
    row("acceptor_sleep_decay", Real, "0.9", "0", "1"),
    row("acceptor_sleep_incr", Seconds, "0.000", "0.000", "1.000"),
    row("acceptor_sleep_max", Seconds, "0.050", "0.000", "10.000"),
    row("auto_restart", Switch, "on", "", ""),
    row("backend_idle_timeout", Seconds, "60.000", "1.000", ""),
    row("backend_local_error_holddown", Seconds, "10.000", "0.000", ""),
    row("backend_remote_error_holddown", Seconds, "0.250", "0.000", ""),
    row("ban_cutoff", Count("bans"), "0", "0", ""),
    row("ban_dups", Switch, "on", "", ""),
    row("ban_lurker_age", Seconds, "60.000", "0.000", ""),
    row("ban_lurker_batch", Count(""), "1000", "1", ""),
    row("ban_lurker_holdoff", Seconds, "0.010", "0.000", ""),
    row("ban_lurker_sleep", Seconds, "0.010", "0.000", ""),
    row("between_bytes_timeout", Seconds, "60.000", "0.000", ""),
    row("cc_command", Text, "", "", ""),
    row("cc_warnings", Text, "", "", ""),
    row("cli_limit", Bytes, "48k", "128b", "99999999b"),
    row("cli_timeout", Seconds, "60.000", "0.000", ""),
    row("clock_skew", Count("seconds"), "10", "0", ""),
    row("clock_step", Seconds, "1.000", "0.000", ""),
    row("connect_timeout", Seconds, "3.500", "0.000", ""),
    row("critbit_cooloff", Seconds, "180.000", "60.000", "254.000"),
    row("debug", Words, "none", "", ""),
    row("default_grace", Seconds, "10.000", "0.000", ""),
    row("default_keep", Seconds, "0.000", "0.000", ""),
    row("default_ttl", Seconds, "120.000", "0.000", ""),
    // larder's own: Varnish asks for one after the other.
    row("esi_ahead_max", Count("includes"), "32", "1", "1000"),
    row("experimental", Words, "none", "", ""),
    row("feature", Words, "+validate_headers", "", ""),
    row("fetch_chunksize", Bytes, "16k", "4k", ""),
    row("fetch_maxchunksize", Bytes, "0.25G", "64k", ""),
    row("first_byte_timeout", Seconds, "60.000", "0.000", ""),
    row("gzip_buffer", Bytes, "32k", "2k", ""),
    row("gzip_level", Count(""), "6", "0", "9"),
    row("gzip_memlevel", Count(""), "8", "1", "9"),
    row("h2_header_table_size", Bytes, "4k", "0b", ""),
    row("h2_initial_window_size", Bytes, "65535b", "65535b", "2147483647b"),
    row("h2_max_concurrent_streams", Count("streams"), "100", "0", ""),
    row("h2_max_frame_size", Bytes, "16k", "16k", "16777215b"),
    row("h2_max_header_list_size", Bytes, "2147483647b", "0b", ""),
    row("h2_rx_window_increment", Bytes, "1M", "1M", "1G"),
    row("h2_rx_window_low_water", Bytes, "10M", "65535b", "1G"),
    row("h2_rxbuf_storage", Text, "Transient", "", ""),
    row("http1_iovs", Count("struct iovec (=16 bytes)"), "64", "5", "1024"),
    row("http_gzip_support", Switch, "on", "", ""),
    row("http_max_hdr", Count("header lines"), "64", "32", "65535"),
    row("http_range_support", Switch, "on", "", ""),
    row("http_req_hdr_len", Bytes, "8k", "40b", ""),
    row("http_req_size", Bytes, "32k", "0.25k", ""),
    row("http_resp_hdr_len", Bytes, "8k", "40b", ""),
    row("http_resp_size", Bytes, "32k", "0.25k", ""),
    row("idle_send_timeout", Seconds, "60.000", "0.000", ""),
    row("listen_depth", Count("connections"), "1024", "0", ""),
    row("lru_interval", Seconds, "2.000", "0.000", ""),
    row("max_esi_depth", Count("levels"), "5", "0", ""),
    row("max_restarts", Count("restarts"), "4", "0", ""),
    row("max_retries", Count("retries"), "4", "0", ""),
    row("max_vcl", Count(""), "100", "0", ""),
    row("max_vcl_handling", Count(""), "1", "0", "2"),
    row("nuke_limit", Count("allocations"), "50", "0", ""),
    row("pcre2_depth_limit", Count(""), "20", "1", ""),
    row("pcre2_jit_compilation", Switch, "on", "", ""),
    row("pcre2_match_limit", Count(""), "10000", "1", ""),
    row("ping_interval", Count("seconds"), "3", "0", ""),
    row("pipe_sess_max", Count("connections"), "0", "0", ""),
    row("pipe_timeout", Seconds, "60.000", "0.000", ""),
    row("pool_req", Text, "10,100,10", "", ""),
    row("pool_sess", Text, "10,100,10", "", ""),
    row("pool_vbo", Text, "10,100,10", "", ""),
    row("prefer_ipv6", Switch, "off", "", ""),
    row("rush_exponent", Count("requests per request"), "3", "2", ""),
    row("send_timeout", Seconds, "600.000", "0.000", ""),
    row("shortlived", Seconds, "10.000", "0.000", ""),
    row("sigsegv_handler", Switch, "on", "", ""),
    row("syslog_cli_traffic", Switch, "on", "", ""),
    row("tcp_fastopen", Switch, "off", "", ""),
    row("tcp_keepalive_intvl", Seconds, "75.000", "1.000", "100.000"),
    row("tcp_keepalive_probes", Count("probes"), "9", "1", "100"),
    row("tcp_keepalive_time", Seconds, "7200.000", "1.000", "7200.000"),
    row("thread_pool_add_delay", Seconds, "0.000", "0.000", ""),
    row("thread_pool_destroy_delay", Seconds, "1.000", "0.010", ""),
    row("thread_pool_fail_delay", Seconds, "0.200", "0.010", ""),
    row("thread_pool_max", Count("threads"), "5000", "", ""),
    row("thread_pool_min", Count("threads"), "100", "5", ""),
    row("thread_pool_reserve", Count("threads"), "0", "", ""),
    row("thread_pool_stack", Bytes, "80k", "16k", ""),
    row("thread_pool_timeout", Seconds, "300.000", "10.000", ""),
    row("thread_pool_watchdog", Seconds, "60.000", "0.100", ""),
    row("thread_pools", Count("pools"), "2", "1", "32"),
    row("thread_queue_limit", Count("requests"), "20", "0", ""),
    row("thread_stats_rate", Count("requests"), "10", "0", ""),
    row("timeout_idle", Seconds, "5.000", "0.000", ""),
    row("timeout_linger", Seconds, "0.050", "0.000", ""),
    row("vary_notice", Count("variants"), "10", "1", ""),
    row("vcc_allow_inline_c", Switch, "off", "", ""),
    row("vcc_err_unref", Switch, "on", "", ""),
    row("vcc_unsafe_path", Switch, "on", "", ""),
    row("vcl_cooldown", Seconds, "600.000", "1.000", ""),
    row("vcl_path", Text, "/etc/varnish:/usr/share/varnish/vcl", "", ""),
    row("vmod_path", Text, "", "", ""),
    row("vsl_buffer", Bytes, "16k", "267", ""),
    row(
        "vsl_mask",
        Words,
        "-Debug,-ObjProtocol,-ObjStatus,-ObjReason,-ObjHeader,-VCL_trace,-ExpKill,-WorkThread,-Hash,-VfpAcct,-H2RxHdr,-H2RxBody,-H2TxHdr,-H2TxBody,-VdpAcct",
        "",
        "",
    ),
    row("vsl_reclen", Bytes, "255b", "16b", "16372"),
    row("vsl_space", Bytes, "80M", "1M", "4G"),
    row("vsm_free_cooldown", Seconds, "60.000", "10.000", "600.000"),
    row("workspace_backend", Bytes, "96k", "1k", ""),
    row("workspace_client", Bytes, "96k", "9k", ""),
    row("workspace_session", Bytes, "0.75k", "384b", ""),
    row("workspace_thread", Bytes, "2k", "0.25k", "8k"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_stand_by_name_and_their_defaults_are_good() {
        assert!(PARAMETERS.is_sorted_by(|a, b| a.name < b.name));
        for row in PARAMETERS {
            let read = row.form.read(row.default, row.default).unwrap();
            assert_eq!(read.shown, row.default, "{}", row.name);
            row.check_bounds(&read).unwrap();
        }
    }
}
