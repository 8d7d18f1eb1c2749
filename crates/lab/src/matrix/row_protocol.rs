//! What a row's load speaks to its servers: TLS or in the clear, HTTP/1.1 or HTTP/2; and what a row may say of it.

use crate::limits::STREAMS_MAX;
use crate::matrix::lab_file::RowSection;
use crate::results::{RowKind, RowUsed};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spoken {
    pub(crate) tls: bool,
    pub(crate) http2: bool,
}

impl Spoken {
    pub(crate) const CLEAR: Spoken = Spoken { tls: false, http2: false };
    /// HTTP/2 in the clear, by prior knowledge.
    pub(crate) const H2C: Spoken = Spoken { tls: false, http2: true };
    pub(crate) const TLS: Spoken = Spoken { tls: true, http2: false };
    /// HTTP/2 over TLS, agreed on by ALPN.
    pub(crate) const H2: Spoken = Spoken { tls: true, http2: true };
    pub(crate) const ALL: [Spoken; 4] = [Spoken::CLEAR, Spoken::H2C, Spoken::TLS, Spoken::H2];

    pub(crate) fn of(row: &RowUsed) -> Spoken {
        Spoken { tls: row.tls, http2: row.http2 }
    }

    /// As a name in brackets.
    pub(crate) fn in_few_words(self) -> &'static str {
        match (self.tls, self.http2) {
            (false, false) => "in the clear",
            (false, true) => "HTTP/2 in the clear",
            (true, false) => "TLS",
            (true, true) => "HTTP/2 over TLS",
        }
    }

    /// As the words behind a load, from a comma on.
    pub(crate) fn in_words(self, streams: usize) -> String {
        let tls = if self.tls { ", over TLS" } else { "" };
        let http2 = match (self.http2, streams) {
            (false, _) => String::new(),
            (true, 1) => ", over HTTP/2 with a stream at a time".to_owned(),
            (true, streams) => format!(", over HTTP/2 with {streams} streams at once"),
        };
        format!("{tls}{http2}")
    }
}

/// What of it cannot be as a row says it.
pub(crate) fn refusal(section: &RowSection) -> Option<String> {
    let speaks = section.tls || section.http2;
    let streams = section.streams.as_ref().map(|streams| streams.all());
    let many = streams.iter().flatten().any(|&streams| streams > 1);
    let keeps = section.keep_alive.as_ref().map_or(vec![true], |keep| keep.all());
    let why = match () {
        () if speaks && section.items.is_some() => "items are asked of a memcached: neither tls nor http2",
        () if speaks && section.forward => "a forward proxy is asked in the clear and over HTTP/1.1: no tls, no http2",
        () if streams.is_some() && !section.http2 => "streams need http2 = true",
        () if streams.is_some() && section.kind == RowKind::Idle => "an idle row has no streams under way",
        () if many && section.sessions.is_some() => "a session's requests follow one another: no streams",
        () if many && keeps.contains(&false) => "a connection for each request has one stream: no streams",
        () if section.resume && !section.tls => "resume needs tls = true",
        () if section.resume && keeps.contains(&true) => {
            "resume needs keep_alive = false: a session is resumed by the next connection"
        }
        () => match streams.iter().flatten().find(|streams| !(1..=STREAMS_MAX).contains(*streams)) {
            Some(wrong) => return Some(format!("{wrong} streams; 1 to {STREAMS_MAX}")),
            None => return None,
        },
    };
    Some(why.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::lab_file::tests::source;

    fn refused(row: &str) -> Option<String> {
        let text = format!("title = \"t\"\nreference = \"a\"\n[[row]]\nname = \"r\"\nconnections = 1\n{row}\n");
        refusal(&source(&text).read().unwrap().row[0])
    }

    #[test]
    fn what_cannot_be_spoken_is_refused() {
        for good in ["size = 1", "tls = true", "http2 = true\nstreams = [1, 10]", "tls = true\nhttp2 = true"] {
            assert_eq!(refused(good), None, "{good}");
        }
        assert_eq!(refused("tls = true\nkeep_alive = false\nresume = true"), None);
        let items = "items = { keys = 10, key_bytes = 8, value_bytes = 8 }";
        for (row, part) in [
            (&*format!("tls = true\n{items}"), "a memcached"),
            ("http2 = true\nforward = true", "a forward proxy"),
            ("tls = true\nstreams = 2", "streams need http2"),
            ("http2 = true\nstreams = 1\nkind = \"idle\"", "no streams under way"),
            ("http2 = true\nstreams = 2\nkeep_alive = [true, false]", "has one stream"),
            ("http2 = true\nstreams = 2\nsessions = { count = 1, calls = 1, think = \"1s\" }", "follow one another"),
            ("http2 = true\nstreams = 0", "0 streams; 1 to"),
            ("http2 = true\nstreams = [1, 99999]", "99999 streams; 1 to"),
            ("resume = true\nkeep_alive = false", "resume needs tls"),
            ("resume = true\ntls = true", "resume needs keep_alive = false"),
        ] {
            assert!(refused(row).is_some_and(|why| why.contains(part)), "{row}: {:?}", refused(row));
        }
    }
}
