//! Why there is no connection to an origin, in words for the operator: which origin, which address, which phase, and
//! the limit or setting that changes it. The fetch makes the client's status and the log's token of it.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;

/// Where an operator finds what an error names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Declared {
    /// `[origin.NAME]` with `urls`.
    InConfig,
    /// The same with `fastcgi` in place of them.
    AsApplication,
    /// `backend NAME { … }`
    InVcl,
    /// `[[forward.parent]]`
    AsParent,
    /// `[fleet]`
    AsNode,
    /// Nowhere: a proxy was asked for it. Who asked is told no address.
    AsTarget,
}

/// No connection, and why.
#[derive(Debug)]
pub struct OriginError {
    pub origin: Arc<str>,
    pub declared: Declared,
    /// `10.0.0.3:80`, `unix:/run/app.sock` or the name that did not resolve; `None` where no address was reached for.
    pub address: Option<Arc<str>>,
    pub kind: OriginErrorKind,
}

#[derive(Debug)]
pub enum OriginErrorKind {
    /// The name has no address, or nobody could tell us.
    Resolve {
        why: Arc<str>,
    },
    /// All its addresses are held back by a gate.
    Forbidden,
    /// The address refused, or the network did.
    Connect {
        why: io::Error,
    },
    ConnectTimeout {
        after: Duration,
    },
    /// It is reached, and no TLS is spoken with it.
    Tls {
        fault: tls::Fault,
    },
    /// We have no descriptor, port or memory left: not the origin's fault.
    Exhausted {
        why: io::Error,
    },
    QueueFull {
        queue_max: usize,
    },
    QueueTimeout {
        after: Duration,
    },
    /// Every address is taken out by an operator, or left out where the circuit breaks.
    AllOut,
    /// `backend NAME none;`
    Nowhere,
    /// Its URLs are `h2://`, and the request needs HTTP/1.
    Http2Only,
}

impl OriginError {
    /// The answer's status (RFC 9110 §15.6).
    pub fn status(&self) -> u16 {
        match self.kind {
            OriginErrorKind::Forbidden => 403,
            OriginErrorKind::Resolve { .. }
            | OriginErrorKind::Connect { .. }
            | OriginErrorKind::Tls { .. }
            | OriginErrorKind::Http2Only => 502,
            OriginErrorKind::Exhausted { .. }
            | OriginErrorKind::QueueFull { .. }
            | OriginErrorKind::QueueTimeout { .. }
            | OriginErrorKind::AllOut
            | OriginErrorKind::Nowhere => 503,
            OriginErrorKind::ConnectTimeout { .. } => 504,
        }
    }

    /// A word that never changes, for logs and counters.
    pub fn token(&self) -> &'static str {
        match self.kind {
            OriginErrorKind::Forbidden => "forward-address-refused",
            OriginErrorKind::Resolve { .. } => "origin-resolve",
            OriginErrorKind::Connect { .. } => "origin-connect",
            OriginErrorKind::ConnectTimeout { .. } => "origin-connect-timeout",
            OriginErrorKind::Tls { .. } => "origin-tls",
            OriginErrorKind::Exhausted { .. } => "origin-exhausted",
            OriginErrorKind::QueueFull { .. } => "origin-queue-full",
            OriginErrorKind::QueueTimeout { .. } => "origin-queue-timeout",
            OriginErrorKind::AllOut => "origin-all-out",
            OriginErrorKind::Nowhere => "origin-none",
            OriginErrorKind::Http2Only => "origin-http2-only",
        }
    }
}

impl OriginErrorKind {
    /// Does another address promise better? A want of descriptors would follow us there; a want of local addresses is
    /// about this one: its ports are used up, or it is of an IP version that this machine has switched off.
    pub fn blames_address(&self) -> bool {
        match self {
            OriginErrorKind::Connect { .. } | OriginErrorKind::ConnectTimeout { .. } | OriginErrorKind::Tls { .. } => {
                true
            }
            OriginErrorKind::Exhausted { why } => why.raw_os_error() == Some(Errno::ADDRNOTAVAIL.raw_os_error()),
            OriginErrorKind::Resolve { .. }
            | OriginErrorKind::Forbidden
            | OriginErrorKind::QueueFull { .. }
            | OriginErrorKind::QueueTimeout { .. }
            | OriginErrorKind::AllOut
            | OriginErrorKind::Nowhere
            | OriginErrorKind::Http2Only => false,
        }
    }
}

impl std::error::Error for OriginError {}

impl fmt::Display for OriginError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} \"{}\"", self.declared.word(), self.origin)?;
        if let Some(address) = self.address.as_ref().filter(|_| !self.declared.is_strangers()) {
            write!(f, " ({address})")?;
        }
        write!(f, ": {}", self.reason())
    }
}

impl Declared {
    /// What it is called in front of its name.
    pub(super) fn word(self) -> &'static str {
        match self {
            Declared::InConfig | Declared::AsApplication => "origin",
            Declared::InVcl => "backend",
            Declared::AsTarget => "destination",
            Declared::AsParent => "proxy",
            Declared::AsNode => "node of the",
        }
    }

    fn is_strangers(self) -> bool {
        matches!(self, Declared::AsTarget | Declared::AsParent)
    }
}

/// What of an error is behind the origin's name.
pub(super) struct Reason<'a>(&'a OriginError);

impl OriginError {
    pub(super) fn reason(&self) -> Reason<'_> {
        Reason(self)
    }
}

impl fmt::Display for Reason<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let error = self.0;
        match &error.kind {
            OriginErrorKind::Forbidden => write!(
                f,
                "it has no public address: it belongs to this machine or to a network of its own \
                 (forward.allow_destinations)"
            ),
            // What name servers say of each other is not for strangers.
            OriginErrorKind::Resolve { .. } if error.declared.is_strangers() => {
                write!(f, "its name did not resolve")
            }
            OriginErrorKind::Resolve { why } => write!(f, "name did not resolve: {why} (resolver)"),
            OriginErrorKind::Connect { why } => write!(f, "connect failed: {why} ({})", error.setting("urls")),
            OriginErrorKind::ConnectTimeout { after } => {
                write!(f, "connect timed out after {} ({})", Span(*after), error.setting("connect_timeout"))
            }
            OriginErrorKind::Tls { fault } => {
                let (what, setting) = tls_fault(*fault);
                write!(f, "{what} ({})", error.setting(setting))
            }
            OriginErrorKind::Exhausted { why } => {
                write!(f, "connect failed for want of something of ours: {why} (ulimit -n, ip_local_port_range)")
            }
            OriginErrorKind::QueueFull { queue_max } => write!(
                f,
                "all connections in use and {queue_max} requests waiting ({}, {})",
                error.setting("max_connections"),
                error.setting("queue_max")
            ),
            OriginErrorKind::QueueTimeout { after } => {
                write!(f, "no connection became free within {} ({})", Span(*after), error.setting("queue_timeout"))
            }
            OriginErrorKind::Http2Only => {
                write!(f, "the request needs HTTP/1, and its URL is h2:// ({})", error.setting("urls"))
            }
            OriginErrorKind::AllOut => write!(
                f,
                "every address is out: by failures or probes ({}), or by order (POST /origins/NAME of the admin address)",
                error.setting("circuit_breaker")
            ),
            OriginErrorKind::Nowhere => write!(f, "it has no address, on purpose (backend {} none)", error.origin),
        }
    }
}

impl OriginError {
    /// What changes it, where the operator would look for it.
    fn setting(&self, name: &str) -> String {
        match (self.declared, name) {
            (Declared::InConfig | Declared::AsApplication, "connect_timeout") => "limits.connect_timeout".to_owned(),
            (Declared::AsTarget, "urls") => "forward".to_owned(),
            (Declared::AsParent, "urls") => "forward.parent".to_owned(),
            (Declared::AsNode, "urls") => "fleet.peers".to_owned(),
            (Declared::AsNode, _) => format!("fleet.{name}"),
            (Declared::AsTarget | Declared::AsParent, "max_connections") => {
                "limits.forward_target_connections_max".to_owned()
            }
            (Declared::AsTarget | Declared::AsParent, "connect_timeout") => "limits.connect_timeout".to_owned(),
            (Declared::AsTarget | Declared::AsParent, _) => "limits".to_owned(),
            (Declared::InVcl, "tls.ca") => ".ssl_verify_peer".to_owned(),
            (Declared::InVcl, "tls.name") => ".host_header or .host".to_owned(),
            (Declared::InVcl, "tls.cert" | "tls") => ".ssl".to_owned(),
            (Declared::AsApplication, "urls") => format!("origin.{}.fastcgi", self.origin),
            (Declared::InConfig | Declared::AsApplication, _) => format!("origin.{}.{name}", self.origin),
            (Declared::InVcl, "urls") => ".host, .port or .path".to_owned(),
            (Declared::InVcl, "queue_max") => ".wait_limit".to_owned(),
            (Declared::InVcl, "queue_timeout") => ".wait_timeout".to_owned(),
            (Declared::InVcl, _) => format!(".{name}"),
        }
    }
}

/// What is wrong, and the setting that changes it.
fn tls_fault(fault: tls::Fault) -> (String, &'static str) {
    use tls::Fault;
    let (what, setting) = match fault {
        Fault::UnknownAuthority => ("nobody of those signed its certificate who may", "tls.ca"),
        Fault::OtherName => ("its certificate is for another name", "tls.name"),
        Fault::Expired => ("its certificate has expired", "tls.ca"),
        Fault::NotYetValid => ("its certificate is not valid yet", "tls.ca"),
        Fault::Certificate => ("its certificate is not valid here", "tls.ca"),
        Fault::Alert(alert @ ("certificate_required" | "bad_certificate" | "unknown_ca" | "access_denied")) => {
            return (format!("it does not take the certificate that we show, or wants one: {alert}"), "tls.cert");
        }
        Fault::Alert(alert) => return (format!("it ended the handshake of TLS: {alert}"), "tls"),
        Fault::NothingInCommon => ("it speaks no version or suite of TLS that larder does", "urls"),
        Fault::NotTls => ("it does not speak TLS", "urls"),
        Fault::Ended => ("it ended the connection in the handshake of TLS", "urls"),
        Fault::NoCertificate | Fault::NothingToShow | Fault::TooLarge | Fault::Protocol => {
            ("it broke the rules of TLS", "urls")
        }
    };
    (what.to_owned(), setting)
}

/// A duration as a person would write it: `5 s`, `250 ms`.
pub struct Span(pub Duration);

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.subsec_nanos() {
            0 => write!(f, "{} s", self.0.as_secs()),
            _ => write!(f, "{} ms", self.0.as_millis()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(address: Option<&str>, kind: OriginErrorKind, status: u16, text: &str) {
        check_of(Declared::InConfig, address, kind, status, text);
    }

    fn check_of(declared: Declared, address: Option<&str>, kind: OriginErrorKind, status: u16, text: &str) {
        let error = OriginError { origin: "shop".into(), declared, address: address.map(Arc::from), kind };
        assert_eq!((error.status(), error.to_string().as_str()), (status, text));
    }

    #[test]
    fn every_error_names_origin_phase_and_setting() {
        let refused = || io::Error::other("Connection refused");
        check(
            Some("10.0.0.3:80"),
            OriginErrorKind::ConnectTimeout { after: Duration::from_secs(5) },
            504,
            "origin \"shop\" (10.0.0.3:80): connect timed out after 5 s (limits.connect_timeout)",
        );
        check(
            Some("unix:/run/a"),
            OriginErrorKind::Connect { why: refused() },
            502,
            "origin \"shop\" (unix:/run/a): connect failed: Connection refused (origin.shop.urls)",
        );
        check_of(
            Declared::AsApplication,
            Some("unix:/run/a"),
            OriginErrorKind::Connect { why: refused() },
            502,
            "origin \"shop\" (unix:/run/a): connect failed: Connection refused (origin.shop.fastcgi)",
        );
        check(
            Some("shop.test"),
            OriginErrorKind::Resolve { why: "no such name".into() },
            502,
            "origin \"shop\" (shop.test): name did not resolve: no such name (resolver)",
        );
        check(
            Some("[::1]:80"),
            OriginErrorKind::Exhausted { why: io::Error::other("Too many open files") },
            503,
            "origin \"shop\" ([::1]:80): connect failed for want of something of ours: Too many open files (ulimit -n, \
             ip_local_port_range)",
        );
        check(
            None,
            OriginErrorKind::QueueFull { queue_max: 3 },
            503,
            "origin \"shop\": all connections in use and 3 requests waiting (origin.shop.max_connections, \
             origin.shop.queue_max)",
        );
        check(
            None,
            OriginErrorKind::QueueTimeout { after: Duration::from_millis(250) },
            503,
            "origin \"shop\": no connection became free within 250 ms (origin.shop.queue_timeout)",
        );
    }

    #[test]
    fn errors_of_backends_speak_of_attributes() {
        check_of(
            Declared::InVcl,
            None,
            OriginErrorKind::QueueFull { queue_max: 0 },
            503,
            "backend \"shop\": all connections in use and 0 requests waiting (.max_connections, .wait_limit)",
        );
        check_of(
            Declared::InVcl,
            Some("10.0.0.3:80"),
            OriginErrorKind::ConnectTimeout { after: Duration::from_millis(3500) },
            504,
            "backend \"shop\" (10.0.0.3:80): connect timed out after 3500 ms (.connect_timeout)",
        );
        check_of(
            Declared::InVcl,
            None,
            OriginErrorKind::Nowhere,
            503,
            "backend \"shop\": it has no address, on purpose (backend shop none)",
        );
    }

    #[test]
    fn a_want_of_descriptors_blames_no_address_but_one_of_local_addresses_does() {
        let exhausted = |errno: Errno| OriginErrorKind::Exhausted { why: errno.into() };
        assert!(!exhausted(Errno::MFILE).blames_address());
        assert!(exhausted(Errno::ADDRNOTAVAIL).blames_address());
        assert!(OriginErrorKind::Connect { why: Errno::CONNREFUSED.into() }.blames_address());
    }
}
