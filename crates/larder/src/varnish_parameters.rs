//! Varnish's parameters by name: what each sets in larder, or why it sets nothing. Read from `[policy]` and from `-p`, in
//! the forms that varnishd reads.
//!
//! A row for every parameter of Varnish 4.0 to 9.0 that operators are known to set; one without a meaning here is taken,
//! with a warning, so that a start script need not be rewritten before larder was tried.

use std::ops::RangeInclusive;
use std::time::Duration;

use proxy::settings::EsiFeatures;

use crate::config::nearest;
use crate::plan::Plan;
use crate::quantities::parse_size;

/// What a parameter does.
pub enum Effect {
    Time(fn(&mut Plan, Duration)),
    /// One of nothing lets nothing through.
    PositiveTime(fn(&mut Plan, Duration)),
    Count(RangeInclusive<u64>, fn(&mut Plan, u64)),
    Size(RangeInclusive<u64>, fn(&mut Plan, u64)),
    Switch(fn(&mut Plan, bool)),
    Text(fn(&mut Plan, &str)),
    /// What `larder varnishd` alone has something for.
    OfFront,
    SwitchOfFront(fn(&mut Plan, bool)),
    /// Nothing, because …
    Nothing(&'static str),
}

use Effect::{Count, Nothing, OfFront, PositiveTime, Size, Switch, SwitchOfFront, Text, Time};

const COUNTS: RangeInclusive<u64> = 0..=u32::MAX as u64;
const HEADS: RangeInclusive<u64> = 256..=16 << 20;
const FIELDS: RangeInclusive<u64> = 40..=u16::MAX as u64;
const FIELD_COUNTS: RangeInclusive<u64> = 8..=wire::limits::FIELDS_CEILING as u64;

/// Times that a policy knows.
const POLICY_TIMES: &[(&str, Effect)] = &[
    ("default_ttl", Time(|plan, time| plan.settings.vcl.default_ttl = time)),
    ("default_grace", Time(|plan, time| plan.settings.vcl.default_grace = time)),
    ("default_keep", Time(|plan, time| plan.settings.vcl.default_keep = time)),
    ("uncacheable_ttl", Time(|plan, time| plan.settings.vcl.uncacheable_ttl = time)),
    ("clock_skew", Time(|plan, time| plan.settings.vcl.clock_skew = time)),
    ("backend_wait_timeout", Time(|plan, time| plan.settings.vcl.backend_wait_timeout = time)),
    ("vcl_cooldown", Time(|plan, time| plan.settings.vcl.vcl_cooldown = time)),
];

const POLICY_COUNTS: &[(&str, Effect)] = &[
    ("max_restarts", Count(COUNTS, |plan, n| plan.settings.vcl.max_restarts = n as u32)),
    ("max_retries", Count(COUNTS, |plan, n| plan.settings.vcl.max_retries = n as u32)),
    ("backend_wait_limit", Count(COUNTS, |plan, n| plan.settings.vcl.backend_wait_limit = n as u32)),
    ("http_range_support", Switch(|plan, on| plan.settings.vcl.http_range_support = on)),
    ("http_gzip_support", Switch(|plan, on| plan.settings.vcl.http_gzip_support = on)),
    ("gzip_level", Count(0..=9, |plan, n| plan.settings.vcl.gzip_level = n as u8)),
    (
        "vcl_path",
        Text(|plan, path| plan.vcl_path = path.split(':').filter(|p| !p.is_empty()).map(Into::into).collect()),
    ),
    ("vcl_dir", Text(|plan, path| plan.vcl_path = path.split(':').filter(|p| !p.is_empty()).map(Into::into).collect())),
];

/// What larder bounds by `[limits]`, which these are other names for.
const LIMITS: &[(&str, Effect)] = &[
    ("connect_timeout", PositiveTime(|plan, time| plan.settings.limits.connect_timeout = time)),
    ("first_byte_timeout", PositiveTime(|plan, time| plan.settings.limits.first_byte_timeout = time)),
    ("between_bytes_timeout", PositiveTime(|plan, time| plan.settings.limits.between_bytes_timeout = time)),
    ("backend_idle_timeout", Time(|plan, time| plan.settings.limits.origin_idle_timeout = time)),
    (
        "timeout_idle",
        // A connection is idle until a whole head has come.
        PositiveTime(|plan, time| {
            plan.settings.limits.idle_timeout = time;
            plan.settings.limits.request_head_timeout = time;
        }),
    ),
    ("pipe_timeout", PositiveTime(|plan, time| plan.settings.limits.tunnel_idle_timeout = time)),
    (
        "pipe_sess_max",
        // 0 means as many as there may be.
        Count(COUNTS, |plan, n| {
            if n > 0 {
                plan.settings.limits.tunnels_max = n as _;
            }
        }),
    ),
    ("idle_send_timeout", PositiveTime(|plan, time| plan.settings.limits.send_timeout = time)),
    ("h2_max_concurrent_streams", Count(1..=1_000, |plan, n| plan.settings.limits.http2_streams_max = n as u32)),
    // All else that it names is about the insides of varnishd.
    ("debug", Text(|plan, words| plan.settings.http2_short_frames = has_feature(words, "h2_nocheck"))),
    // What else it names larder does without a switch, or not at all.
    (
        "feature",
        Text(|plan, words| {
            plan.settings.accepts_h2c = has_feature(words, "http2");
            plan.settings.vcl.esi = EsiFeatures {
                wants_xml: !has_feature(words, "esi_disable_xml_check"),
                ignores_others: has_feature(words, "esi_ignore_other_elements"),
                removes_bom: has_feature(words, "esi_remove_bom"),
                takes_https: has_feature(words, "esi_ignore_https"),
                heeds_onerror: has_feature(words, "esi_include_onerror"),
            };
        }),
    ),
    ("max_esi_depth", Count(0..=100, |plan, n| plan.settings.limits.esi_depth_max = n as u32)),
    ("esi_ahead_max", Count(1..=1_000, |plan, n| plan.settings.limits.esi_ahead_max = n as _)),
    ("http_req_size", Size(HEADS, |plan, n| plan.settings.limits.request_head.head_bytes_max = n as _)),
    ("http_req_hdr_len", Size(FIELDS, |plan, n| plan.settings.limits.request_head.field_bytes_max = of_field(n))),
    ("http_resp_size", Size(HEADS, |plan, n| plan.settings.limits.response_head.head_bytes_max = n as _)),
    ("http_resp_hdr_len", Size(FIELDS, |plan, n| plan.settings.limits.response_head.field_bytes_max = of_field(n))),
    (
        "http_max_hdr",
        Count(FIELD_COUNTS, |plan, n| {
            plan.settings.limits.request_head.fields_max = n as _;
            plan.settings.limits.response_head.fields_max = n as _;
        }),
    ),
];

/// Of a line of so many bytes: Varnish counts the colon and the blank between name and value.
fn of_field(line_bytes: u64) -> usize {
    (line_bytes - 2) as usize
}

const THREADS: Effect = Nothing("larder has one thread for each core and none for each request (--workers)");
const WORKSPACES: Effect = Nothing("larder has no workspaces; what a transaction may take is bounded by itself");
const SHARED_LOG: Effect = Nothing("larder writes whole transactions, as many as there are");
const CLI: Effect = Nothing("larder's management port has limits of its own, which are fixed (docs/varnish.md)");
const HTTP_2: Effect = Nothing("larder's HTTP/2 has limits of its own, which are fixed");
const GZIP: Effect = Nothing("larder's codecs have buffers of fixed sizes");
const SOCKETS: Effect = Nothing("larder leaves it to the kernel's settings");
const COMPILER: Effect = Nothing("larder needs no compiler for VCL");
const REGEXES: Effect = Nothing("the limits of regexes are fixed in larder, and most need none");
const DEBUG: Effect = Nothing("it is about the insides of varnishd");
const LURKER: Effect = Nothing("bans are worked off at once, a few milliseconds of one core at a time");
const POOLS: Effect = Nothing("larder has no pools of such structures");

const WITHOUT_MEANING: &[(&str, Effect)] = &[
    ("accept_filter", SOCKETS),
    ("acceptor_sleep_decay", SOCKETS),
    ("acceptor_sleep_incr", SOCKETS),
    ("acceptor_sleep_max", SOCKETS),
    ("auto_restart", Nothing("larder is one process; who started it starts it again")),
    ("backend_local_error_holddown", Nothing("addresses that fail are left out for ejection_time")),
    ("backend_remote_error_holddown", Nothing("addresses that fail are left out for ejection_time")),
    ("ban_any_variant", Nothing("a ban is tested against every variant")),
    ("ban_cutoff", Nothing("larder has no mark of that kind")),
    ("ban_dups", Nothing("equal bans are always made one")),
    ("ban_lurker_age", LURKER),
    ("ban_lurker_batch", LURKER),
    ("ban_lurker_sleep", LURKER),
    ("ban_lurker_holdoff", Nothing("larder's lurker holds no lock that requests wait for")),
    ("cc_command", COMPILER),
    ("cc_warnings", COMPILER),
    ("cli_buffer", CLI),
    ("cli_limit", CLI),
    ("cli_timeout", CLI),
    ("clock_step", Nothing("larder's freshness does not count on the time of day")),
    ("critbit_cooloff", DEBUG),
    ("experimental", DEBUG),
    ("fetch_chunksize", Nothing("larder's blocks are of fixed sizes")),
    ("fetch_maxchunksize", Nothing("larder's blocks are of fixed sizes")),
    ("gzip_buffer", GZIP),
    ("gzip_memlevel", GZIP),
    ("h2_header_table_size", HTTP_2),
    ("h2_initial_window_size", HTTP_2),
    ("h2_max_frame_size", HTTP_2),
    ("h2_max_header_list_size", HTTP_2),
    ("h2_rapid_reset", HTTP_2),
    ("h2_rapid_reset_limit", HTTP_2),
    ("h2_rapid_reset_period", HTTP_2),
    ("h2_rx_window_increment", HTTP_2),
    ("h2_rx_window_low_water", HTTP_2),
    ("h2_rxbuf_storage", HTTP_2),
    ("h2_settings_timeout", HTTP_2),
    ("h2_window_timeout", HTTP_2),
    ("http1_iovs", DEBUG),
    ("http_brotli_support", Nothing("a VCL knows gzip alone")),
    ("listen_depth", SOCKETS),
    ("lru_interval", Nothing("larder's eviction has no such interval ([memory] eviction)")),
    ("max_vcl", Nothing("larder has a limit of its own, 256")),
    ("max_vcl_handling", Nothing("larder has a limit of its own, 256")),
    ("nuke_limit", Nothing("larder makes room before it stores")),
    ("pcre2_depth_limit", REGEXES),
    ("pcre2_jit_compilation", REGEXES),
    ("pcre2_match_limit", REGEXES),
    ("pcre_match_limit", REGEXES),
    ("pcre_match_limit_recursion", REGEXES),
    ("ping_interval", CLI),
    ("pipe_task_deadline", Nothing("a tunnel ends when both sides are silent (pipe_timeout)")),
    ("pool_req", POOLS),
    ("pool_sess", POOLS),
    ("pool_vbo", POOLS),
    ("prefer_ipv6", Nothing("larder uses all addresses of a name")),
    ("rush_exponent", Nothing("those who wait are woken together")),
    ("send_timeout", Nothing("an answer may take as long as it moves (idle_send_timeout, limits.send_rate_min)")),
    ("sess_workspace", WORKSPACES),
    ("session_max", Nothing("see limits.connections_max")),
    ("shortlived", Nothing("larder has one store for all")),
    ("sigsegv_handler", DEBUG),
    ("startup_timeout", DEBUG),
    ("syslog_cli_traffic", CLI),
    ("tcp_fastopen", SOCKETS),
    ("tcp_keepalive_intvl", SOCKETS),
    ("tcp_keepalive_probes", SOCKETS),
    ("tcp_keepalive_time", SOCKETS),
    ("thread_pool_add_delay", THREADS),
    ("thread_pool_destroy_delay", THREADS),
    ("thread_pool_fail_delay", THREADS),
    ("thread_pool_max", THREADS),
    ("thread_pool_min", THREADS),
    ("thread_pool_reserve", THREADS),
    ("thread_pool_stack", THREADS),
    ("thread_pool_timeout", THREADS),
    ("thread_pool_track", THREADS),
    ("thread_pool_watchdog", THREADS),
    ("thread_pools", THREADS),
    ("thread_queue_limit", THREADS),
    ("thread_stats_rate", THREADS),
    ("timeout_linger", Nothing("an idle connection costs larder no thread")),
    ("transit_buffer", Nothing("see limits.window_bytes_max")),
    ("vary_notice", Nothing("larder counts variants (limits.variants_max)")),
    ("vcc_acl_pedantic", COMPILER),
    ("vcc_allow_inline_c", COMPILER),
    ("vcc_err_unref", SwitchOfFront(|plan, on| plan.refuses_unused = on)),
    ("vcc_feature", Nothing("what is not used is a warning in larder, and inline C is an error")),
    ("vcc_unsafe_path", COMPILER),
    ("vmod_dir", Nothing("larder's modules are built in")),
    ("vmod_path", Nothing("larder's modules are built in")),
    ("vsl_buffer", SHARED_LOG),
    ("vsl_mask", OfFront),
    ("vsl_reclen", OfFront),
    ("vsl_space", OfFront),
    ("vsm_free_cooldown", SHARED_LOG),
    ("vsm_publish_interval", SHARED_LOG),
    ("vsm_space", SHARED_LOG),
    ("vst_space", SHARED_LOG),
    ("workspace_backend", WORKSPACES),
    ("workspace_client", WORKSPACES),
    ("workspace_session", WORKSPACES),
    ("workspace_thread", WORKSPACES),
];

/// Is HTTP/2 switched on by a list of features, of which the last word counts?
fn has_feature(words: &str, name: &str) -> bool {
    let mut is_on = false;
    for word in words.split([',', ' ', '\n', '\t']) {
        match word {
            "all" => is_on = true,
            "none" | "default" => is_on = false,
            word if word == name || word.strip_prefix('+') == Some(name) => is_on = true,
            word if word.strip_prefix('-') == Some(name) => is_on = false,
            _ => {}
        }
    }
    is_on
}

/// Every parameter.
pub fn all() -> impl Iterator<Item = &'static (&'static str, Effect)> {
    [POLICY_TIMES, POLICY_COUNTS, LIMITS, WITHOUT_MEANING].into_iter().flatten()
}

/// What says the same, or most of it, where no VCL decides.
const WITHOUT_PROGRAM: &[(&str, &str)] = &[
    ("default_ttl", "write ttl = \"2m\" in [policy], or in one [[route]]"),
    ("default_grace", "write stale_while_revalidate = \"10s\" in [policy], or in one [[route]]"),
    ("default_keep", "write keep = \"1h\" in [policy]"),
    ("uncacheable_ttl", "write uncacheable = \"2m\" in [policy]"),
    ("max_retries", "write retries = 1 in [origin.NAME]"),
    ("http_gzip_support", "`enabled` of [compress] is that switch"),
    ("gzip_level", "docs/compression.md says what [compress] has"),
    ("backend_wait_limit", "write queue_max = 100 in [origin.NAME]"),
    ("backend_wait_timeout", "write queue_timeout = \"5s\" in [origin.NAME]"),
];

/// What to write for a parameter that only a VCL reads.
pub fn without_program(name: &str) -> Option<&'static str> {
    WITHOUT_PROGRAM.iter().find(|(known, _)| *known == name).map(|(_, write)| *write)
}

/// Why a parameter changes nothing, if that is so.
pub fn note(name: &str) -> Option<&'static str> {
    all().find(|(known, _)| *known == name).and_then(|(_, effect)| match effect {
        Nothing(why) => Some(*why),
        _ => None,
    })
}

/// Does a parameter that is known change nothing in `larder serve`?
#[cfg(test)]
pub fn sets_nothing(name: &str) -> bool {
    all().any(|(known, effect)| *known == name && matches!(effect, Nothing(_) | OfFront | SwitchOfFront(_)))
}

/// Sets one. The error is a reason that begins small, for behind the name.
pub fn set(plan: &mut Plan, name: &str, written: &str) -> Result<(), String> {
    let Some((name, effect)) = all().find(|(known, _)| *known == name) else {
        let meant = nearest(name, all().map(|(known, _)| *known));
        return Err(match meant {
            Some(meant) => format!("there is no parameter `{name}`; did you mean `{meant}`?"),
            None => format!("there is no parameter `{name}` (docs/vcl.md lists them)"),
        });
    };
    if POLICY_TIMES.iter().chain(POLICY_COUNTS).any(|(of_programs, _)| of_programs == name) {
        plan.of_programs.push(name);
    }
    match effect {
        Time(set) => set(plan, parse_time(written)?),
        PositiveTime(set) => match parse_time(written)? {
            Duration::ZERO => return Err("a time-out of 0 would refuse everything".to_owned()),
            time => set(plan, time),
        },
        Count(range, set) => set(plan, within(written.parse().ok(), range, written)?),
        Size(range, set) => set(plan, within(Some(parse_size(written)?), range, written)?),
        Switch(set) => set(plan, parse_switch(written)?),
        Text(set) => set(plan, written),
        OfFront => {
            plan.warnings.push(format!("the parameter {name} is for the log that only `larder varnishd` writes"))
        }
        SwitchOfFront(set) => {
            set(plan, parse_switch(written)?);
            plan.warnings.push(format!("the parameter {name} is for programs that `larder varnishd` loads"));
        }
        Nothing(why) => plan.warnings.push(format!("the parameter {name} changes nothing: {why}")),
    }
    Ok(())
}

fn within(number: Option<u64>, range: &RangeInclusive<u64>, written: &str) -> Result<u64, String> {
    let good = number.filter(|number| range.contains(number));
    good.ok_or_else(|| format!("`{written}` must be a number from {} to {}", range.start(), range.end()))
}

/// `120`, `0.5`, `1.5h`, `10 m`: seconds, unless there is a unit.
fn parse_time(written: &str) -> Result<Duration, String> {
    let form = || format!("`{written}` is no time: a number of seconds, or with a unit of ms, s, m, h, d, w, y");
    let seconds = varnishd::seconds(written).filter(|seconds| seconds.is_sign_positive()).ok_or_else(form)?;
    let time = Duration::try_from_secs_f64(seconds).ok().filter(|time| time.as_secs() <= TIME_SECONDS_MAX);
    time.ok_or_else(|| format!("`{written}` is longer than a hundred years"))
}

const TIME_SECONDS_MAX: u64 = 100 * 366 * 86_400;

fn parse_switch(written: &str) -> Result<bool, String> {
    match written.to_ascii_lowercase().as_str() {
        "on" | "yes" | "true" | "enable" => Ok(true),
        "off" | "no" | "false" | "disable" => Ok(false),
        _ => Err(format!("`{written}` must be on or off")),
    }
}

/// `NAME=VALUE`, as after `-p`. Tried on a plan that nobody sees, so that a mistake is one of flags.
pub fn parse_flag(written: &str) -> Result<(String, String), String> {
    let (name, value) = written.split_once('=').ok_or("write NAME=VALUE, such as default_ttl=1h")?;
    set(&mut Plan::default(), name, value)?;
    Ok((name.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: PartialEq + std::fmt::Debug>(
        name: &str,
        value: &str,
        read: impl Fn(&Plan) -> T,
        expect: Result<T, &str>,
    ) {
        let mut plan = Plan::default();
        match (set(&mut plan, name, value), expect) {
            (Ok(()), Ok(expected)) => assert_eq!(read(&plan), expected, "{name}={value}"),
            (Err(why), Err(part)) => assert!(why.contains(part), "{name}={value}: {why}"),
            (got, expect) => panic!("{name}={value}: {got:?} instead of {expect:?}"),
        }
    }

    #[test]
    fn where_no_program_decides_it_is_said_what_does() {
        for (name, _) in WITHOUT_PROGRAM {
            assert!(POLICY_TIMES.iter().chain(POLICY_COUNTS).any(|(known, _)| known == name), "{name}");
        }
        let mut plan = Plan::default();
        set(&mut plan, "default_ttl", "1h").expect("a time");
        let said = plan.warnings().concat();
        assert!(said.contains("default_ttl changes nothing") && said.contains("write ttl = "), "{said}");
    }

    #[test]
    fn parameters_set_what_they_mean_here() {
        let ttl = |plan: &Plan| plan.settings.vcl.default_ttl.as_millis();
        check("default_ttl", "3600", ttl, Ok(3_600_000));
        check("default_ttl", "0.5", ttl, Ok(500));
        check("default_ttl", "1.5h", ttl, Ok(5_400_000));
        check("default_ttl", "2 m", ttl, Ok(120_000));
        check("default_ttl", "1y", ttl, Ok(31_536_000_000));
        for wrong in ["", "s", "1x", "-1", "1e3", "inf", "1.2.3"] {
            check("default_ttl", wrong, ttl, Err("is no time"));
        }
        check("default_ttl", "999y", ttl, Err("longer than a hundred years"));
        check("max_restarts", "0", |plan| plan.settings.vcl.max_restarts, Ok(0));
        check("max_restarts", "4x", |plan| plan.settings.vcl.max_restarts, Err("must be a number from 0"));
        let ranges = |plan: &Plan| plan.settings.vcl.http_range_support;
        check("http_range_support", "OFF", ranges, Ok(false));
        check("http_range_support", "maybe", ranges, Err("must be on or off"));
        check("http_req_size", "48k", |plan| plan.settings.limits.request_head.head_bytes_max, Ok(48 << 10));
        check("http_req_size", "1", |plan| plan.settings.limits.request_head.head_bytes_max, Err("from 256"));
        check("timeout_idle", "7", |plan| plan.settings.limits.idle_timeout.as_secs(), Ok(7));
        check("vcl_path", "/a:/b", |plan| plan.vcl_path.len(), Ok(2));
    }

    #[test]
    fn an_unknown_parameter_is_refused_with_the_nearest() {
        check("defualt_ttl", "1", |_| (), Err("did you mean `default_ttl`?"));
        check("colour", "1", |_| (), Err("there is no parameter `colour`"));
    }

    #[test]
    fn what_means_nothing_here_is_taken_with_a_warning() {
        check("thread_pool_min", "500", |plan| plan.warnings.len(), Ok(1));
        check("default_ttl", "1", |plan| plan.warnings.len(), Ok(0));
    }

    #[test]
    fn what_only_a_program_reads_is_said_to_do_nothing_without_one() {
        for name in ["default_ttl", "max_restarts", "vcl_path"] {
            check(name, "1", |plan| plan.warnings().len(), Ok(1));
        }
        let with_program = |plan: &Plan| Plan { vcl_file: Some("a.vcl".into()), ..plan.clone() }.warnings().len();
        check("default_ttl", "1", with_program, Ok(0));
    }

    #[test]
    fn every_parameter_stands_once() {
        let mut names: Vec<&str> = all().map(|(name, _)| *name).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        assert!(count > 120, "{count}");
    }
}
