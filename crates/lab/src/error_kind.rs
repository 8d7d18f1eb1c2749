//! The ways in which a request can fail, each counted apart.
//!
//! The names are those that httperf, h2load and ab made known where they have one. They separate *our* shortage
//! (`fd-unavail`, `addr-unavail`, `dropped`) from *their* failure, and both from the cut at the end of a run.

macro_rules! kinds {
    ($($kind:ident $name:literal $meaning:literal;)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum ErrorKind { $(#[doc = $meaning] $kind,)* }

        impl ErrorKind {
            pub const ALL: &[ErrorKind] = &[$(ErrorKind::$kind,)*];

            /// Stable: scripts look for it.
            pub const fn name(self) -> &'static str {
                match self { $(ErrorKind::$kind => $name,)* }
            }

            pub const fn meaning(self) -> &'static str {
                match self { $(ErrorKind::$kind => $meaning,)* }
            }
        }
    };
}

kinds! {
    ConnRefused "conn-refused" "nobody listens";
    ConnReset "conn-reset" "reset while connecting";
    ConnTimeout "conn-timeout" "no connection within the time-out";
    TlsCertificate "tls-certificate" "the certificate does not prove that it is this server's";
    TlsAlert "tls-alert" "the server ended TLS with an alert";
    TlsClosed "tls-closed" "closed in the middle of a TLS handshake";
    TlsTimeout "tls-timeout" "no end of a TLS handshake within the time-out";
    TlsProtocol "tls-protocol" "no TLS, or none that both sides speak";
    WriteError "write-error" "the request could not be sent";
    ReadReset "read-reset" "reset while an answer was awaited";
    NoAnswer "no-answer" "closed before the end of an answer's head";
    FirstByteTimeout "first-byte-timeout" "no byte of the answer within the time-out";
    IdleTimeout "idle-timeout" "the answer stood still for the time-out";
    ShortBody "short-body" "closed before the body's end: truncated";
    LongBody "long-body" "bytes behind the end of the answer";
    ProtocolError "protocol-error" "not HTTP, or framed in a way that RFC 9112 or 9113 forbids";
    StreamReset "stream-reset" "the server reset the stream of HTTP/2";
    StreamRefused "stream-refused" "the server refused the stream of HTTP/2: nothing of it was done";
    GoAway "goaway" "the server ended the HTTP/2 connection by GOAWAY before it answered";
    BadStatus "bad-status" "another status than expected";
    BadLength "bad-length" "whole, but not as long as the first one of this URL";
    BadBytes "bad-bytes" "as long as the first one of this URL, but other bytes";
    BadEncoding "bad-encoding" "not in the content coding that was asked for";
    BadDecoded "bad-decoded" "in that coding, but it cannot be undone, or becomes other bytes than the page's";
    FdUnavail "fd-unavail" "this machine has no file descriptor left";
    AddrUnavail "addr-unavail" "this machine has no port left";
    Other "other" "anything else";
    Dropped "dropped" "due by the timetable and never sent: all users were waiting";
    ClientDeadline "client-deadline" "under way when the run ended";
}

impl ErrorKind {
    /// Does it say something against the target, or the client's machine? What the end of the run cuts off does not.
    pub const fn is_failure(self) -> bool {
        !matches!(self, ErrorKind::ClientDeadline)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_given_once_and_in_order() {
        for (n, kind) in ErrorKind::ALL.iter().enumerate() {
            assert_eq!(*kind as usize, n);
            assert!(!ErrorKind::ALL[..n].iter().any(|other| other.name() == kind.name()));
            assert!(kind.name().bytes().all(|b| b.is_ascii_lowercase() || b == b'-') && !kind.meaning().is_empty());
        }
    }
}
