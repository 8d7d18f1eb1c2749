//! An access log, read into what can be asked for and when it was: a catalogue and a [`Replay`].
//!
//! Lines of the common and the combined format (Apache, nginx, `larder serve --log`), of larder's JSON, and of squid's
//! native format, one kind or several. GET and HEAD are replayed; a target that stands there often is one request of
//! the catalogue. Lines that are none are counted and their first ones named; a file that is mostly rubbish is refused.
//!
//! Most logs know only the second of a request. Those of one second are spread evenly over it, in their order: the
//! replay is as dense as the log, and has no bursts that the log does not show.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use crate::catalogue::{AskMethod, Catalogue, CatalogueError, Common, Recipe};
use crate::lab_url::{LabUrl, check_bytes};
use crate::limits::{RUBBISH_LINES_NAMED_MAX, URLS_MAX};
use crate::log_line::{LogLine, parse_line};
use crate::replay::Replay;

/// What became of the lines.
#[derive(Debug, Default)]
pub struct LogAccount {
    pub lines: u64,
    pub replayed: u64,
    pub urls: u64,
    /// Requests that are not replayed, by method; `-` when there was none.
    pub left_out: BTreeMap<String, u64>,
    pub rubbish: u64,
    /// The first ones, with what is wrong.
    pub rubbish_named: Vec<CatalogueError>,
}

impl fmt::Display for LogAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} lines, {} requests for {} URLs", self.lines, self.replayed, self.urls)?;
        if !self.left_out.is_empty() {
            let methods: Vec<String> = self.left_out.iter().map(|(name, count)| format!("{count} {name}")).collect();
            write!(f, "; left out, for only GET and HEAD are replayed: {}", methods.join(", "))?;
        }
        if self.rubbish > 0 {
            let named: Vec<String> = self.rubbish_named.iter().map(CatalogueError::to_string).collect();
            let dots = if self.rubbish as usize > named.len() { "; …" } else { "" };
            write!(f, "; {} lines are no log lines: {}{dots}", self.rubbish, named.join("; "))?;
        }
        Ok(())
    }
}

/// Requests go where `url` says, whatever hosts the log names; those become the Host field.
pub fn read_replay_log(
    url: &LabUrl,
    log: &[u8],
    recipe: &Recipe,
) -> Result<(Catalogue, Replay, LogAccount), CatalogueError> {
    let mut reader = LogReader {
        url,
        common: Common::new(recipe)?,
        catalogue: Catalogue::default(),
        known: HashMap::new(),
        asked: Vec::new(),
        account: LogAccount::default(),
    };
    for (index, line) in log.split(|&b| b == b'\n').enumerate() {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if !line.is_empty() {
            reader.account.lines += 1;
            reader.take_line(index + 1, line)?;
        }
    }
    let LogReader { catalogue, mut asked, mut account, .. } = reader;
    account.replayed = asked.len() as u64;
    account.urls = catalogue.len() as u64;
    let refuse = |what| Err(CatalogueError { line: 0, what });
    if account.rubbish * 2 > account.lines {
        return refuse(format!("is no access log: {account}"));
    }
    if asked.is_empty() {
        return refuse(format!("holds nothing to replay: {account}"));
    }
    // Servers write a line when an answer is over, so a long one stands behind shorter ones that were later.
    asked.sort_by_key(|asked| asked.millis);
    Ok((catalogue, spread(&asked), account))
}

struct LogReader<'a> {
    url: &'a LabUrl,
    common: Common,
    catalogue: Catalogue,
    known: HashMap<(AskMethod, String, String), u32>,
    asked: Vec<AskedThen>,
    account: LogAccount,
}

#[derive(Clone, Copy, Debug)]
struct AskedThen {
    millis: u64,
    /// The log did not know more than the second.
    is_whole_second: bool,
    request: u32,
}

impl LogReader<'_> {
    fn take_line(&mut self, number: usize, line: &[u8]) -> Result<(), CatalogueError> {
        let taken = parse_line(line).and_then(|line| match line.method {
            "GET" => self.take(&line, AskMethod::Get),
            "HEAD" => self.take(&line, AskMethod::Head),
            other => {
                *self.account.left_out.entry(short(other)).or_default() += 1;
                Ok(())
            }
        });
        if let Err(what) = taken {
            self.account.rubbish += 1;
            if self.account.rubbish_named.len() < RUBBISH_LINES_NAMED_MAX {
                self.account.rubbish_named.push(CatalogueError { line: number, what });
            }
        }
        if self.catalogue.len() > URLS_MAX {
            return Err(CatalogueError { line: number, what: format!("more than {URLS_MAX} URLs") });
        }
        Ok(())
    }

    fn take(&mut self, line: &LogLine<'_>, method: AskMethod) -> Result<(), String> {
        line.host.map_or(Ok(()), check_bytes)?;
        let (authority, path) = if line.target.starts_with('/') {
            check_bytes(&line.target)?;
            (line.host.unwrap_or(&self.url.authority).to_owned(), line.target.clone().into_owned())
        } else {
            let url = LabUrl::parse(&line.target)?;
            (url.authority, url.path)
        };
        let key = (method, authority, path);
        let request = match self.known.get(&key) {
            Some(&known) => known,
            None => {
                // URLS_MAX is less.
                let request = self.catalogue.len() as u32;
                self.catalogue.add(method, &key.1, &key.2, &self.common);
                self.known.insert(key, request);
                request
            }
        };
        self.asked.push(AskedThen { millis: line.millis, is_whole_second: line.is_whole_second, request });
        Ok(())
    }
}

fn short(method: &str) -> String {
    let plain = !method.is_empty() && method.len() <= 20 && method.bytes().all(|b| b.is_ascii_alphabetic());
    if plain { method.to_owned() } else { "-".to_owned() }
}

/// From moments in order to moments within their seconds.
fn spread(asked: &[AskedThen]) -> Replay {
    let begun = asked.first().map_or(0, |asked| asked.millis);
    let mut starts = Vec::with_capacity(asked.len());
    for same in asked.chunk_by(|one, other| one.millis == other.millis) {
        for (index, asked) in same.iter().enumerate() {
            let within_nanos = match asked.is_whole_second {
                true => index as u64 * 1_000_000_000 / same.len() as u64,
                false => 0,
            };
            let offset_nanos = (asked.millis - begun).saturating_mul(1_000_000).saturating_add(within_nanos);
            starts.push((offset_nanos, asked.request));
        }
    }
    // Lines that say their millisecond may lie between those that were spread over their second.
    starts.sort_by_key(|(offset_nanos, _)| *offset_nanos);
    let (offsets_nanos, requests) = starts.into_iter().unzip();
    Replay { offsets_nanos, requests }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(log: &str) -> Result<(Catalogue, Replay, LogAccount), CatalogueError> {
        read_replay_log(&LabUrl::parse("http://a:81/").unwrap(), log.as_bytes(), &Recipe::default())
    }

    fn line(second: u32, request: &str) -> String {
        format!("192.0.2.1 - - [10/Oct/2000:13:55:{second:02} +0000] \"{request}\" 200 5 \"-\" \"x\"\n")
    }

    #[test]
    fn requests_of_one_second_are_spread_over_it() {
        let log = [
            line(9, "GET /b HTTP/1.1"),
            line(7, "GET /a HTTP/1.1"),
            line(7, "GET /b HTTP/1.1"),
            line(7, "HEAD /a HTTP/1.0"),
            line(7, "GET /a HTTP/1.1"),
        ]
        .concat();
        let (catalogue, replay, account) = read(&log).unwrap();
        let millis: Vec<u64> = replay.offsets_nanos.iter().map(|nanos| nanos / 1_000_000).collect();
        assert_eq!(millis, [0, 250, 500, 750, 2_000]);
        assert_eq!((replay.requests, catalogue.len()), (vec![1, 0, 2, 1, 0], 3));
        assert!(catalogue.request(2).starts_with(b"HEAD /a HTTP/1.1\r\nHost: a:81\r\n"));
        assert_eq!((account.lines, account.replayed, account.rubbish), (5, 5, 0));
    }

    #[test]
    fn a_log_that_knows_milliseconds_keeps_them() {
        let json = |millis, target: &str| {
            format!(
                "{{\"time\":\"2000-10-10T13:55:36.{millis}Z\",\"method\":\"GET\",\"target\":\"{target}\",\"host\":\"h\"}}\n"
            )
        };
        let squid = "971186137.500    180 192.0.2.1 TCP_MISS/200 411 GET http://b/x?y - HIER_DIRECT/1 text/html\n";
        let (catalogue, replay, _) = read(&[&json("007", "/a"), &json("007", "/a"), squid].concat()).unwrap();
        assert_eq!(replay.offsets_nanos, [0, 0, 1_493_000_000]);
        assert!(catalogue.request(0).starts_with(b"GET /a HTTP/1.1\r\nHost: h\r\n"));
        assert!(catalogue.request(1).starts_with(b"GET /x?y HTTP/1.1\r\nHost: b\r\n"));
    }

    #[test]
    fn moments_are_in_order_whichever_way_the_lines_say_them() {
        let squid = "971186107.300    180 192.0.2.1 TCP_MISS/200 411 GET http://b/x - HIER_DIRECT/1 text/html\n";
        let spread = line(7, "GET /a HTTP/1.1").repeat(2);
        let (_, replay, _) = read(&[spread.as_str(), squid].concat()).unwrap();
        assert_eq!(replay.offsets_nanos, [0, 300_000_000, 500_000_000]);
        let far = "192.0.2.1 - - [10/Oct/9999:13:55:36 +0000] \"GET /a HTTP/1.1\" 200 5\n";
        let (_, replay, _) = read(&[line(7, "GET /a HTTP/1.1").as_str(), far].concat()).unwrap();
        assert_eq!(replay.offsets_nanos, [0, u64::MAX]);
    }

    #[test]
    fn what_is_left_out_is_said() {
        let log = [
            line(1, "GET / HTTP/1.1"),
            line(1, "POST / HTTP/1.1"),
            line(1, "-"),
            line(1, "\\x16\\x03\\x01"),
            line(2, "GET / HTTP/1.1"),
            "rubbish\n".to_owned(),
        ]
        .concat();
        let (_, _, account) = read(&log).unwrap();
        assert_eq!(
            account.to_string(),
            "6 lines, 2 requests for 1 URLs; left out, for only GET and HEAD are replayed: 2 -, 1 POST; \
             1 lines are no log lines: line 6: no date in brackets"
        );
    }

    #[test]
    fn a_file_of_rubbish_is_refused() {
        let check = |log: &str, part: &str| {
            let error = read(log).unwrap_err();
            assert!(error.to_string().contains(part), "{log:?}: {error}");
        };
        check("a\nb\nc\nd\ne\nf\ng\n", "is no access log: 7 lines, 0 requests");
        let host = r#"{"time":"2000-10-10T13:55:36.007Z","method":"GET","target":"/","host":"a\nb"}"#;
        check(host, "line 1");
        check("", "holds nothing to replay");
        check(&line(1, "POST / HTTP/1.1"), "holds nothing to replay: 1 lines");
        check(&[line(1, "GET / HTTP/1.1"), "x\ny\n".to_owned()].concat(), "line 2: no date in brackets; line 3");
        let bytes = read_replay_log(&LabUrl::parse("a").unwrap(), &[0xFF, 0, b'\n', 0x80], &Recipe::default());
        assert!(bytes.unwrap_err().to_string().contains("2 lines are no log lines"));
    }
}
