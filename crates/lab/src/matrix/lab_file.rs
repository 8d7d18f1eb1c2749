//! The lab file as it is written: servers, method and rows, each mistake with its line.
//!
//! Plain sections as serde reads them, and the checks that need no machine. What follows from them, the servers and
//! rows of a run, is made in `planned_servers` and `planned_rows`.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::Deserialize;
use toml::Spanned;

use crate::limits::DURATION_MAX;
use crate::results::RowKind;

/// Which known word somebody meant, if it was one.
pub type Nearest = for<'a> fn(&str, &[&'a str]) -> Option<&'a str>;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LabFile {
    pub(crate) title: String,
    #[serde(default)]
    pub(crate) about: String,
    pub(crate) reference: Spanned<String>,
    #[serde(default)]
    pub(crate) origin: OriginChoice,
    #[serde(default)]
    pub(crate) servers: Vec<Spanned<String>>,
    #[serde(default)]
    pub(crate) server: Vec<ServerSection>,
    #[serde(default)]
    pub(crate) method: MethodSection,
    #[serde(default)]
    pub(crate) row: Vec<RowSection>,
}

/// What stands behind the caches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum OriginChoice {
    /// Our own, `larder lab origin`.
    #[default]
    Lab,
    /// nginx with the same pages as files.
    Nginx,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ServerSection {
    pub(crate) name: Spanned<String>,
    /// The name of one of ours; the server's own name where it is missing.
    pub(crate) profile: Option<Spanned<String>>,
    #[serde(default)]
    pub(crate) args: Vec<String>,
    #[serde(default)]
    pub(crate) options: BTreeMap<Spanned<String>, Scalar>,
    pub(crate) workers: Option<usize>,
    pub(crate) port: Option<u16>,
    /// Another build than the one that is installed.
    pub(crate) binary: Option<String>,
    /// What it finds in its environment beside ours, such as another allocator in LD_PRELOAD.
    #[serde(default)]
    pub(crate) environment: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "a text, a number, true or false")]
pub(crate) enum Scalar {
    Text(String),
    Whole(i64),
    Switch(bool),
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MethodSection {
    pub(crate) blocks: Option<usize>,
    pub(crate) slice: Option<Span>,
    pub(crate) warm_max: Option<Span>,
    pub(crate) restart_every: Option<usize>,
    pub(crate) client_cpus: Option<Vec<usize>>,
    pub(crate) server_cpus: Option<Vec<usize>>,
    pub(crate) threads: Option<usize>,
    pub(crate) seed: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RowSection {
    pub(crate) name: Spanned<String>,
    #[serde(default)]
    pub(crate) kind: RowKind,
    #[serde(alias = "sizes")]
    pub(crate) size: Option<OneOrMany<u64>>,
    pub(crate) urls: Option<UrlsSection>,
    /// Of a memcached.
    pub(crate) items: Option<ItemsSection>,
    pub(crate) connections: OneOrMany<usize>,
    pub(crate) keep_alive: Option<OneOrMany<bool>>,
    pub(crate) rate: Option<OneOrMany<f64>>,
    #[serde(default)]
    pub(crate) poisson: bool,
    pub(crate) sessions: Option<SessionsSection>,
    #[serde(default)]
    pub(crate) headers: Vec<String>,
    #[serde(default)]
    pub(crate) browser: bool,
    /// Asked of forward proxies: the whole URL stands in each request, and the origin is named there.
    #[serde(default)]
    pub(crate) forward: bool,
    #[serde(default)]
    pub(crate) tls: bool,
    #[serde(default)]
    pub(crate) http2: bool,
    /// Requests under way at once on a connection of HTTP/2; 1 where it is missing.
    pub(crate) streams: Option<OneOrMany<usize>>,
    /// The content codings that answers are asked for in, and must have: a row for each. The pages are texts then.
    pub(crate) encoding: Option<OneOrMany<String>>,
    /// A page that caches put together (ESI).
    pub(crate) parts: Option<PartsSection>,
    /// Does a user's next connection go on with the TLS session of its last one?
    #[serde(default)]
    pub(crate) resume: bool,
    pub(crate) timeout: Option<Span>,
    /// Must all answers of a cache be hits? As the kind says where it is missing.
    pub(crate) hot: Option<bool>,
    /// Idle: what each connection asks before it is held.
    pub(crate) requests: Option<usize>,
    /// Only these servers.
    #[serde(default)]
    pub(crate) only: Vec<Spanned<String>>,
    pub(crate) blocks: Option<usize>,
    pub(crate) slice: Option<Span>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct UrlsSection {
    pub(crate) count: usize,
    pub(crate) mean_bytes: u64,
    #[serde(default)]
    pub(crate) order: UrlOrder,
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ItemsSection {
    pub(crate) keys: usize,
    pub(crate) key_bytes: usize,
    pub(crate) value_bytes: usize,
    /// Of all requests; the others are gets.
    #[serde(default)]
    pub(crate) set_share: f64,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PartsSection {
    pub(crate) count: u64,
    pub(crate) bytes: u64,
    /// Must each be fetched anew, and takes its time?
    #[serde(default)]
    pub(crate) missing: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum UrlOrder {
    #[default]
    Random,
    InTurn,
    /// A few are asked for most of the time, as on real sites.
    Zipf,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SessionsSection {
    pub(crate) count: u64,
    pub(crate) calls: u32,
    pub(crate) think: Span,
    pub(crate) rate: Option<f64>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "a value or a list of values")]
pub(crate) enum OneOrMany<T> {
    One(T),
    Many(Vec<T>),
}

impl<T: Clone> OneOrMany<T> {
    pub(crate) fn all(&self) -> Vec<T> {
        match self {
            OneOrMany::One(one) => vec![one.clone()],
            OneOrMany::Many(many) => many.clone(),
        }
    }
}

impl SessionsSection {
    /// Longer they do not last: their starts, their thinking, and each call as slow as it may be.
    pub(crate) fn time_max(&self, timeout: Duration) -> Duration {
        let starts = self.rate.map_or(0.0, |rate| self.count as f64 / rate);
        let starts = Duration::try_from_secs_f64(starts).unwrap_or(DURATION_MAX);
        let calls = (self.think.0 + timeout).saturating_mul(self.calls.max(1));
        starts.saturating_add(calls).min(DURATION_MAX)
    }
}

/// A time with its unit: `500ms`, `10s`, `2m`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Span(pub(crate) Duration);

impl TryFrom<String> for Span {
    type Error = String;

    fn try_from(text: String) -> Result<Span, String> {
        let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let seconds_each = match &text[digits..] {
            "ms" => 0.001,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3_600.0,
            _ => return Err(format!("`{text}` is no time; write such as \"500ms\", \"10s\" or \"2m\"")),
        };
        let seconds = text[..digits].parse().map(|number: f64| number * seconds_each);
        match seconds {
            Ok(seconds) if seconds > 0.0 && seconds <= crate::limits::DURATION_MAX.as_secs_f64() => {
                Ok(Span(Duration::from_secs_f64(seconds)))
            }
            _ => Err(format!("`{text}` is no time of use; more than nothing, a week at most")),
        }
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::Text(text) => f.write_str(text),
            Scalar::Whole(number) => number.fmt(f),
            Scalar::Switch(is_on) => is_on.fmt(f),
        }
    }
}

/// A file and where in it something stands.
pub(crate) struct Source<'a> {
    pub(crate) name: &'a str,
    pub(crate) text: &'a str,
    pub(crate) nearest: Nearest,
}

impl Source<'_> {
    pub(crate) fn read(&self) -> Result<LabFile, String> {
        toml::from_str(self.text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            self.complaint(at, &self.in_our_words(error.message()))
        })
    }

    /// `file:line: what`.
    pub(crate) fn complaint(&self, at: usize, what: &str) -> String {
        let line = self.text.as_bytes().iter().take(at).filter(|&&b| b == b'\n').count() + 1;
        format!("{}:{line}: {what}", self.name)
    }

    pub(crate) fn complain_at<T>(&self, place: &Spanned<T>, what: &str) -> String {
        self.complaint(place.span().start, what)
    }

    /// The sentence that a word is not known, with the one that may have been meant.
    pub(crate) fn unknown(&self, what: &str, word: &str, known: &[&str]) -> String {
        match (self.nearest)(word, known) {
            Some(meant) => format!("unknown {what} `{word}`: did you mean `{meant}`?"),
            None => format!("unknown {what} `{word}`; there are: {}", known.join(", ")),
        }
    }

    /// serde names the key that it does not know and all that it does, each in back quotes.
    fn in_our_words(&self, message: &str) -> String {
        let message = message.trim();
        let mut words = message.split('`').skip(1).step_by(2);
        match words.next() {
            Some(key) if message.starts_with("unknown field") => self.unknown("key", key, &words.collect::<Vec<_>>()),
            _ => message.to_owned(),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Stands in for the program's: a word with the same first three letters.
    pub(crate) fn same_beginning<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
        known.iter().copied().find(|candidate| candidate.get(..3) == word.get(..3))
    }

    pub(crate) fn source(text: &str) -> Source<'_> {
        Source { name: "a.toml", text, nearest: same_beginning }
    }

    #[test]
    fn sessions_of_any_rate_have_an_end() {
        let time = |rate| {
            let all = SessionsSection { count: 10, calls: u32::MAX, think: Span(DURATION_MAX), rate: Some(rate) };
            all.time_max(Duration::from_secs(5))
        };
        assert_eq!((time(1e-300), time(5.0)), (DURATION_MAX, DURATION_MAX));
    }

    fn check_refused(text: &str, part: &str) {
        let error = source(text).read().map(|_| ()).unwrap_err();
        assert!(error.contains(part), "{text}: {error}");
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        let head = "title = \"t\"\nreference = \"larder\"\n";
        check_refused(&format!("{head}titel = 1\n"), "a.toml:3: unknown key `titel`: did you mean `title`?");
        check_refused(&format!("{head}[[row]]\nname = \"a\"\nconectons = 3\n"), "a.toml:5: unknown key `conectons`");
        check_refused(&format!("{head}[method]\nslice = \"1\"\n"), "a.toml:4: `1` is no time");
        check_refused(&format!("{head}[method]\nzebra = 1\n"), "unknown key `zebra`; there are: blocks, slice");
        check_refused(&format!("{head}[[row]]\nname = \"a\"\nconnections = \"many\"\n"), "a value or a list");
        check_refused("title = 1\n", "a.toml:1: invalid type");
        check_refused("title = \"t\"\n", "missing field `reference`");
        check_refused("title = ", "a.toml:1: ");
    }

    #[test]
    fn times_have_their_unit() {
        for (text, millis) in [("500ms", 500), ("1s", 1_000), ("0.3s", 300), ("2m", 120_000)] {
            assert_eq!(Span::try_from(text.to_owned()).unwrap().0.as_millis(), millis, "{text}");
        }
        for text in ["", "1", "s", "0s", "-1s", "1 s", "1d", "9999999h", "1..2s"] {
            assert!(Span::try_from(text.to_owned()).is_err(), "{text}");
        }
    }
}
