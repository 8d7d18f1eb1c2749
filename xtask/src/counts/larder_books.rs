//! What larder itself says of a run, in every form that it has: the access log, the record of events, the metrics, `larder stat` and
//! varnishstat.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::told_exchange::{ToldEvent, ToldExchange, of_combined, of_json};
use crate::plain_exchange::{Message, Unframed};

const PATIENCE: Duration = Duration::from_secs(10);

/// NamedFigures by their names, labels included.
pub type NamedFigures = BTreeMap<String, u64>;

/// The lines of the access log, in the format that they are in.
pub fn access_log(folder: &Path) -> Result<Vec<ToldExchange>, String> {
    let text = fs::read_to_string(folder.join("access.log")).map_err(|error| format!("access.log: {error}"))?;
    text.lines().map(|line| if line.starts_with('{') { of_json(line) } else { of_combined(line) }).collect()
}

/// The events of a record, and how many it says were lost.
pub fn record(folder: &Path) -> Result<(Vec<ToldEvent>, u64), String> {
    let text = fs::read_to_string(folder.join("events.json")).map_err(|error| format!("events.json: {error}"))?;
    let (mut events, mut lost) = (Vec::new(), 0);
    for line in text.lines().filter(|line| !line.is_empty()) {
        let object: Value = serde_json::from_str(line).map_err(|error| format!("{line}: {error}"))?;
        match object["lost"].as_u64() {
            Some(missing) => lost += missing,
            None => events.push(ToldEvent::of_record(&object)),
        }
    }
    Ok((events, lost))
}

/// Asks the admin address. Returns the text of what it answers.
pub fn admin(folder: &Path, request: &str, body: &str) -> Result<String, String> {
    let asked = || {
        let mut socket = UnixStream::connect(folder.join("a.sock"))?;
        socket.set_read_timeout(Some(PATIENCE))?;
        let length = body.len();
        write!(
            socket,
            "{request} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        )?;
        Message::read(&mut BufReader::new(socket), Unframed::UntilEnd, true)
    };
    let answer = asked().map_err(|error| format!("{request}: {error}"))?;
    let answer = answer.ok_or_else(|| format!("{request}: no answer"))?;
    Ok(String::from_utf8_lossy(&answer.body).into_owned())
}

/// What is a whole number of the metrics, by name and labels as they stand there.
pub fn metrics(folder: &Path) -> Result<NamedFigures, String> {
    let page = admin(folder, "GET /metrics", "")?;
    let lines = page.lines().filter(|line| !line.starts_with('#'));
    let figures = lines.filter_map(|line| {
        let (name, value) = line.rsplit_once(' ')?;
        Some((name.to_owned(), value.parse().ok()?))
    });
    Ok(figures.collect())
}

/// What `larder stat` shows.
pub fn stat(program: &Path, folder: &Path) -> Result<NamedFigures, String> {
    let mut command = Command::new(program);
    command.args(["stat", "--once", "--admin", "unix:a.sock"]).current_dir(folder);
    Ok(words(&output(&mut command)?))
}

/// What varnishstat shows.
pub fn varnishstat(folder: &Path) -> Result<NamedFigures, String> {
    let mut command = Command::new("varnishstat");
    command.arg("-1").arg("-n").arg(folder.join("w"));
    Ok(words(&output(&mut command)?))
}

/// In place of a number: what is of no request, but of a session of HTTP/2.
pub const SESSION: &str = "session";

/// Of each request by its number: how many bytes of a body varnishlog says its answer had. What was no request has no number.
pub fn varnishlog(folder: &Path) -> Result<NamedFigures, String> {
    let mut command = Command::new("varnishlog");
    command.arg("-d").arg("-n").arg(folder.join("w")).args(["-g", "raw", "-i", "Begin,ReqAcct,ReqHeader"]);
    let text = output(&mut command)?;
    let mut numbers: BTreeMap<&str, &str> = BTreeMap::new();
    let mut bytes = NamedFigures::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [xid, "Begin", _, "sess", ..] => {
                numbers.insert(xid, SESSION);
            }
            [xid, "ReqHeader", _, name, number] if name.eq_ignore_ascii_case("user-agent:") => {
                numbers.insert(xid, number);
            }
            [xid, "ReqAcct", _, _, _, _, _, body, _] => {
                let number = numbers.get(xid).copied().unwrap_or_default();
                *bytes.entry(number.to_owned()).or_insert(0) += body.parse().unwrap_or(0);
            }
            _ => {}
        }
    }
    Ok(bytes)
}

fn output(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr))),
    }
}

/// Lines of a name and a whole number.
fn words(text: &str) -> NamedFigures {
    let line = |line: &str| {
        let mut words = line.split_whitespace();
        Some((words.next()?.to_owned(), words.next()?.parse().ok()?))
    };
    text.lines().filter_map(line).collect()
}

/// Of the figures with this name, the sums by one of their labels.
pub fn by_label(figures: &NamedFigures, name: &str, labels: &[&str]) -> NamedFigures {
    let mut sums = NamedFigures::new();
    for (full, value) in figures {
        let Some(said) = full.strip_prefix(name).and_then(|rest| rest.strip_prefix('{')) else { continue };
        let of = |label: &str| said.split_once(&format!("{label}=\"")).and_then(|(_, rest)| rest.split('"').next());
        let key: Vec<&str> = labels.iter().filter_map(|label| of(label)).collect();
        *sums.entry(key.join(" ")).or_insert(0) += value;
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_summed_by_their_labels() {
        let line = |class: &str, protocol: &str| format!("a_total{{class=\"{class}\",protocol=\"{protocol}\"}}");
        let figures =
            NamedFigures::from([(line("hit", "h2"), 2), (line("hit", "http/1.1"), 3), (line("miss", "h2"), 4)]);
        let by = |labels: &[&str]| by_label(&figures, "a_total", labels);
        assert_eq!(by(&["class"]), NamedFigures::from([("hit".to_owned(), 5), ("miss".to_owned(), 4)]));
        assert_eq!(by(&["class", "protocol"])["hit h2"], 2);
        assert_eq!(words("a 3 0.1 what\nb x\n\n"), NamedFigures::from([("a".to_owned(), 3)]));
    }
}
