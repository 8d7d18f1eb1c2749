//! The keywords of HAProxy's proxies, by what becomes of them. It reads none of them.

use crate::import::nginx_conf::Directive;

/// Lines that say how HAProxy runs or what it logs, and not what it serves.
const OF_THE_PROCESS: [&str; 41] = [
    "log",
    "log-format",
    "log-format-sd",
    "log-tag",
    "log-send-hostname",
    "error-log-format",
    "chroot",
    "user",
    "group",
    "uid",
    "gid",
    "daemon",
    "master-worker",
    "pidfile",
    "node",
    "description",
    "nbproc",
    "cpu-map",
    "ulimit-n",
    "localpeer",
    "server-state-file",
    "server-state-base",
    "load-server-state-from-file",
    "spread-checks",
    "lua-load",
    "set-dumpable",
    "hard-stop-after",
    "maxpipes",
    "maxsslconn",
    "maxconnrate",
    "ssl-default-bind-options",
    "ssl-default-bind-ciphers",
    "ssl-default-bind-ciphersuites",
    "ssl-default-server-options",
    "ssl-default-server-ciphers",
    "ssl-default-server-ciphersuites",
    "ssl-dh-param-file",
    "zero-warning",
    "external-check",
    "insecure-fork-wanted",
    "expose-experimental-directives",
];

/// Lines of proxies that are read where they are about something.
const READ_ELSEWHERE: [&str; 32] = [
    "acl",
    "balance",
    "bind",
    "block",
    "cache",
    "cookie",
    "default-server",
    "default_backend",
    "disabled",
    "dispatch",
    "enabled",
    "http-after-response",
    "http-check",
    "http-request",
    "http-response",
    "mode",
    "monitor-uri",
    "persist",
    "redirect",
    "retries",
    "retry-on",
    "server",
    "server-template",
    "stats",
    "stick",
    "stick-table",
    "tcp-check",
    "tcp-request",
    "transparent",
    "unique-id-header",
    "use-server",
    "use_backend",
];

/// `option` with one of these says nothing of who is answered.
const OPTIONS_OF_NO_USE: [&str; 51] = [
    "abortonclose",
    "accept-invalid-http-request",
    "accept-invalid-http-response",
    "accept-unsafe-violations-in-http-request",
    "accept-unsafe-violations-in-http-response",
    "allbackups",
    "clitcpka",
    "contstats",
    "disable-h2-upgrade",
    "dontlog-normal",
    "dontlognull",
    "external-check",
    "forceclose",
    "h1-case-adjust-bogus-client",
    "h1-case-adjust-bogus-server",
    "http-buffer-request",
    "http-ignore-probes",
    "http-keep-alive",
    "http-no-delay",
    "http-pretend-keepalive",
    "http-restrict-req-hdr-names",
    "http-server-close",
    "http-tunnel",
    "http-use-htx",
    "http-use-proxy-header",
    "httpclose",
    "httplog",
    "httpslog",
    "idle-close-on-response",
    "independent-streams",
    "log-health-checks",
    "log-separate-errors",
    "logasap",
    "mysql-check",
    "nolinger",
    "persist",
    "pgsql-check",
    "prefer-last-server",
    "redis-check",
    "smtpchk",
    "socket-stats",
    "splice-auto",
    "splice-request",
    "splice-response",
    "srvtcpka",
    "tcp-check",
    "tcp-smart-accept",
    "tcp-smart-connect",
    "tcpka",
    "tcplog",
    "ssl-hello-chk",
];

/// Lines that larder has no need of, or does by itself.
const NEEDS_NOTHING: [&str; 25] = [
    "backlog",
    "bind-process",
    "capture",
    "clitcpka-cnt",
    "clitcpka-idle",
    "clitcpka-intvl",
    "compression",
    "declare",
    "email-alert",
    "fullconn",
    "guid",
    "hash-balance-factor",
    "hash-preserve-affinity",
    "hash-type",
    "http-reuse",
    "id",
    "max-keep-alive-queue",
    "max-session-srv-conns",
    "maxconn",
    "no",
    "server-state-file-name",
    "srvtcpka-cnt",
    "srvtcpka-idle",
    "srvtcpka-intvl",
    "unique-id-format",
];

/// What becomes of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyKeyword {
    Time,
    OwnAnswer,
    NeedsNothing,
    OfTheProcess,
    ReadElsewhere,
    /// It keeps nobody out, and larder has it not.
    Left,
    /// It may keep people out.
    Unknown,
}

/// Of a line of `frontend`, `backend`, `listen` or `defaults`.
pub fn of_proxy(line: &Directive) -> ProxyKeyword {
    match (line.name.as_str(), line.argument(0)) {
        ("timeout", _) => ProxyKeyword::Time,
        ("option", "forwardfor" | "originalto" | "httpchk" | "redispatch") => ProxyKeyword::ReadElsewhere,
        // Requests with such fields go on without them.
        ("option", "http-restrict-req-hdr-names") if line.argument(1) == "reject" => ProxyKeyword::Left,
        ("option", option) if OPTIONS_OF_NO_USE.contains(&option) => ProxyKeyword::NeedsNothing,
        ("filter", "compression" | "cache" | "trace" | "bwlim-in" | "bwlim-out") => ProxyKeyword::NeedsNothing,
        ("tcp-response", "inspect-delay") => ProxyKeyword::NeedsNothing,
        ("rate-limit" | "source" | "monitor" | "ignore-persist" | "force-persist", _) => ProxyKeyword::Left,
        (name, _) if name.starts_with("error") => ProxyKeyword::OwnAnswer,
        ("http-error", _) => ProxyKeyword::OwnAnswer,
        (name, _) if READ_ELSEWHERE.contains(&name) => ProxyKeyword::ReadElsewhere,
        (name, _) if NEEDS_NOTHING.contains(&name) => ProxyKeyword::NeedsNothing,
        _ if is_of_the_process(line) => ProxyKeyword::OfTheProcess,
        _ => ProxyKeyword::Unknown,
    }
}

pub fn is_known(line: &Directive) -> bool {
    of_proxy(line) != ProxyKeyword::Unknown
}

/// Does a line say how HAProxy runs or what it logs?
pub fn is_of_the_process(line: &Directive) -> bool {
    let name = line.name.as_str();
    OF_THE_PROCESS.contains(&name) || name.starts_with("tune.") || name == "stats"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::nginx_conf::directive;

    #[test]
    fn what_may_keep_people_out_is_not_passed_over() {
        for line in [
            "filter spoe engine modsecurity",
            "reqideny x",
            "reqrep a b",
            "tcp-response content reject",
            "option checkcache",
            "option no-such-one",
            "x y",
        ] {
            assert!(!is_known(&directive(line)), "{line}");
        }
        for line in [
            "filter compression",
            "option httplog",
            "timeout client 5s",
            "errorfile 503 x",
            "log global",
            "acl a path /",
        ] {
            assert!(is_known(&directive(line)), "{line}");
        }
    }
}
