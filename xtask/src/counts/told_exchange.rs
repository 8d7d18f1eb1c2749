//! An exchange as larder tells of it: a line of the access log, in either format, or an event as `larder log --record` has written it down.

use std::collections::BTreeMap;

use serde_json::Value;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToldExchange {
    /// What the client's User-Agent says; empty for what was no request.
    pub number: String,
    pub method: String,
    pub class: String,
    /// 1.0, 1.1 or 2.0; empty for what was no request.
    pub protocol: String,
    pub status: u64,
    pub bytes: u64,
    pub why: String,
}

/// What an event says beyond a line of the log.
#[derive(Clone, Debug, Default)]
pub struct ToldEvent {
    pub told: ToldExchange,
    pub route: String,
    /// An answer began.
    pub has_begun: bool,
    /// Of each try that had a connection: its origin, and how it failed.
    pub tries: Vec<(String, Option<String>)>,
    /// Tries without a connection, by origin and failure.
    pub unconnected: Vec<(String, String)>,
}

fn text(object: &Value, name: &str) -> String {
    object[name].as_str().unwrap_or_default().to_owned()
}

fn number(object: &Value, name: &str) -> u64 {
    object[name].as_u64().unwrap_or(0)
}

/// A line of the access log in JSON.
pub fn of_json(line: &str) -> Result<ToldExchange, String> {
    let object: Value = serde_json::from_str(line).map_err(|error| format!("{line}: {error}"))?;
    Ok(ToldExchange {
        number: text(&object, "user_agent"),
        method: text(&object, "method"),
        class: text(&object, "verdict"),
        protocol: text(&object, "version"),
        status: number(&object, "status"),
        bytes: number(&object, "bytes"),
        why: text(&object, "why"),
    })
}

/// One in the combined format: `client - user [date] "request" status bytes "referer" "agent" verdict micros why …`.
pub fn of_combined(line: &str) -> Result<ToldExchange, String> {
    let wrong = || format!("{line}: it is no line of the access log");
    let quoted: Vec<&str> = line.split('"').collect();
    let [_, request, numbers, _, _, agent, rest, ..] = &quoted[..] else { return Err(wrong()) };
    let numbers: Vec<u64> = numbers.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let (&[status, bytes], mut rest) = (&numbers[..], rest.split_whitespace()) else { return Err(wrong()) };
    let (class, why) = (rest.next().ok_or_else(wrong)?, rest.nth(1).ok_or_else(wrong)?);
    let dashed = |word: &str| if word == "-" { String::new() } else { word.to_owned() };
    let version = request.rsplit("HTTP/").next().filter(|_| request.contains(" HTTP/")).unwrap_or_default();
    Ok(ToldExchange {
        number: dashed(agent),
        method: dashed(request.split(' ').next().unwrap_or_default()),
        class: class.to_owned(),
        protocol: version.to_owned(),
        status,
        bytes,
        why: dashed(why),
    })
}

impl ToldEvent {
    pub fn of_record(object: &Value) -> ToldEvent {
        let told = ToldExchange {
            number: text(object, "agent"),
            method: text(object, "method"),
            class: text(object, "class"),
            protocol: text(object, "protocol"),
            status: number(object, "status"),
            bytes: number(object, "bytes"),
            why: text(object, "why"),
        };
        let has_begun = object["time.first_byte"].is_u64();
        let mut event = ToldEvent { told, route: text(object, "route"), has_begun, ..ToldEvent::default() };
        match object["tries"].as_array() {
            Some(tries) => tries.iter().for_each(|tried| event.note_try(tried, "")),
            None if object["origin"].is_string() => event.note_try(object, "origin."),
            None => {}
        }
        event
    }

    fn note_try(&mut self, tried: &Value, prefix: &str) {
        let origin = text(tried, "origin");
        let error = tried[format!("{prefix}error")].as_str().map(str::to_owned);
        let is_sent = tried["time.origin"].is_u64() || !matches!(error.as_deref(), Some(error) if is_unsent(error));
        match error {
            Some(error) if !is_sent => self.unconnected.push((origin, error)),
            error => self.tries.push((origin, error)),
        }
    }
}

/// Did a request that failed so never go out?
fn is_unsent(error: &str) -> bool {
    error.starts_with("origin-connect") || error.starts_with("origin-queue") || error == "origin-all-out"
}

/// How many of them there are of each kind.
pub fn by(all: impl Iterator<Item = String>) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    all.for_each(|key| *counts.entry(key).or_insert(0) += 1);
    counts
}

/// The sums of each kind.
pub fn sums(all: impl Iterator<Item = (String, u64)>) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    all.for_each(|(key, n)| *counts.entry(key).or_insert(0) += n);
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_formats_tell_the_same() {
        let combined =
            "192.0.2.7 - - [10/Oct/2000:13:55:36 +0000] \"GET /a?b=1 HTTP/1.1\" 200 6221 \"-\" \"n7\" miss 17 no-store";
        let json = "{\"method\":\"GET\",\"target\":\"/a?b=1\",\"version\":\"1.1\",\"status\":200,\"bytes\":6221,\"verdict\":\"miss\",\
                    \"micros\":17,\"why\":\"no-store\",\"user_agent\":\"n7\"}";
        assert_eq!(of_combined(combined), of_json(json));
        let refused = "192.0.2.7 - - [10/Oct/2000:13:55:36 +0000] \"-\" 400 0 \"-\" \"-\" refused 17 host-missing";
        let told = of_combined(refused).expect("it is a line");
        assert_eq!((told.number.as_str(), told.method.as_str(), told.protocol.as_str()), ("", "", ""));
        let two = of_combined("1 - - [x] \"GET /a HTTP/2.0\" 200 1 \"-\" \"n1\" hit 17 -").expect("it is a line");
        assert_eq!(two.protocol, "2.0");
    }
}
