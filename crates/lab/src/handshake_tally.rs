//! The TLS handshakes of a run: how many, how long, and what was agreed. They stand apart from the latency of requests,
//! and one that failed is an error and in no time here.

use hdrhistogram::Histogram;

use crate::lab_clock::Nanos;
use crate::limits::{LATENCY_DIGITS, LATENCY_MICROS_MAX};

#[derive(Clone, Debug)]
pub struct HandshakeTally {
    pub made: u64,
    /// Those that went on with the session of an earlier connection.
    pub resumed: u64,
    /// Those for which the client had to begin again, with a group that the server has.
    pub retried: u64,
    /// Microseconds from the first byte sent to the last one read …
    pub micros: Histogram<u64>,
    /// … and from the call to connect: what other tools call the time of a connection.
    pub with_connect: Histogram<u64>,
    /// In the order in which they were first seen.
    pub agreed: Vec<(Agreed, u64)>,
}

/// What both sides of a handshake agreed on, by the names that IANA gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agreed {
    pub version: &'static str,
    pub suite: &'static str,
    /// `None` where no keys were exchanged: a session of TLS 1.2 that goes on.
    pub group: Option<&'static str>,
}

/// One that was made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Handshake {
    pub(crate) agreed: Agreed,
    pub(crate) resumed: bool,
    pub(crate) retried: bool,
}

impl Default for HandshakeTally {
    fn default() -> HandshakeTally {
        let times = || Histogram::new_with_bounds(1, LATENCY_MICROS_MAX, LATENCY_DIGITS);
        let [micros, with_connect] = [times(), times()].map(|it| it.expect("the bounds are constants that fit"));
        HandshakeTally { made: 0, resumed: 0, retried: 0, micros, with_connect, agreed: Vec::new() }
    }
}

impl HandshakeTally {
    /// `dialled`: when the connection below was begun.
    pub(crate) fn note(&mut self, handshake: &Handshake, dialled: Nanos, begun: Nanos, ended: Nanos) {
        self.made += 1;
        self.resumed += u64::from(handshake.resumed);
        self.retried += u64::from(handshake.retried);
        self.micros.saturating_record(begun.micros_until(ended));
        self.with_connect.saturating_record(dialled.micros_until(ended));
        self.count(handshake.agreed, 1);
    }

    pub(crate) fn add(&mut self, other: &HandshakeTally) {
        self.made += other.made;
        self.resumed += other.resumed;
        self.retried += other.retried;
        for (mine, theirs) in [(&mut self.micros, &other.micros), (&mut self.with_connect, &other.with_connect)] {
            mine.add(theirs).expect("all tallies have the same bounds");
        }
        other.agreed.iter().for_each(|(agreed, count)| self.count(*agreed, *count));
    }

    fn count(&mut self, agreed: Agreed, count: u64) {
        match self.agreed.iter_mut().find(|(known, _)| *known == agreed) {
            Some((_, known)) => *known += count,
            None => self.agreed.push((agreed, count)),
        }
    }
}

impl Agreed {
    /// As IANA writes it: rustls tells the suites of TLS 1.3 by names of its own.
    pub fn suite_name(&self) -> String {
        self.suite.replacen("TLS13_", "TLS_", 1)
    }

    /// As OpenSSL and its users write it.
    pub fn version_name(&self) -> &'static str {
        match self.version {
            "TLSv1_2" => "TLSv1.2",
            "TLSv1_3" => "TLSv1.3",
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handshakes_of_threads_add_up() {
        let agreed = |group| Agreed { version: "TLSv1_3", suite: "TLS13_AES_128_GCM_SHA256", group };
        let moment = |micros: u64| Nanos(micros * 1_000);
        let note = |tally: &mut HandshakeTally, group, resumed, micros: u64| {
            let handshake = Handshake { agreed: agreed(group), resumed, retried: false };
            tally.note(&handshake, moment(0), moment(100), moment(100 + micros));
        };
        let (mut one, mut other) = (HandshakeTally::default(), HandshakeTally::default());
        note(&mut one, Some("X25519"), false, 300);
        note(&mut other, Some("X25519"), true, 100);
        note(&mut other, None, true, 100);
        one.add(&other);
        assert_eq!((one.made, one.resumed, one.micros.max(), one.with_connect.min()), (3, 2, 300, 200));
        assert_eq!(one.agreed, [(agreed(Some("X25519")), 2), (agreed(None), 1)]);
        assert_eq!((agreed(None).version_name(), &*agreed(None).suite_name()), ("TLSv1.3", "TLS_AES_128_GCM_SHA256"));
    }
}
