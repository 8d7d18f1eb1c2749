//! `cargo xtask purge-cost [--objects N] [--larder BINARY]`: how long an order takes that purges by a tag which a hundredth of what is stored
//! carries, hard and soft, by larder's own clock; then what hits cost while bans by a pattern are worked off (`ban_load.rs`). Every answer has
//! three tags, one of them its own. It judges nothing: what else runs on the machine is in the figures.

use std::fs;
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::ban_load;
use crate::many_articles::{BODY, PATIENCE, ask_for_all, serve};
use crate::memory_line::Line;
use crate::project::Project;
use crate::started_larder;

const OBJECTS: u64 = 1_000_000;
pub const SECTIONS: u64 = 100;
/// Orders of each kind.
pub const ORDERS: u64 = 5;

pub fn task(project: &Project, options: &[&str]) -> Result<(), String> {
    let (mut objects, mut program) = (OBJECTS, project.larder());
    for option in options.chunks(2) {
        match option {
            ["--objects", number] => {
                objects = number.parse().map_err(|_| format!("'{number}' is no number of objects"))?;
            }
            ["--larder", path] => program = fs::canonicalize(path).map_err(|error| format!("{path}: {error}"))?,
            other => return Err(format!("purge-cost knows --objects N and --larder BINARY, not {other:?}")),
        }
    }
    let folder = project.scratch("purge-cost")?;
    let origin = folder.join("origin.sock");
    let _ = fs::remove_file(&origin);
    serve(&origin, head_of).map_err(|error| format!("the origin: {error}"))?;
    let at = format!("unix:{}", origin.display());
    let wanted = ["--workers", "1", "--origin", &at, "--memory", "8GiB"];
    let mut started = started_larder::start_program(Command::new(program), &folder, &wanted)?;
    let measured = measure(&folder, objects).and_then(|()| ban_load::measure(&folder, started.id(), objects));
    let _ = started.kill().and_then(|()| started.wait());
    measured
}

fn measure(folder: &Path, objects: u64) -> Result<(), String> {
    ask_for_all(&folder.join("l.sock"), objects).map_err(|error| format!("larder: {error}"))?;
    println!("{objects} responses are stored, each with three tags");
    for section in 0..2 * ORDERS {
        let is_soft = section >= ORDERS;
        let order = format!(r#"{{"tags":["section-{section}"],"soft":{is_soft}}}"#);
        let answer =
            posted(&folder.join("a.sock"), "/purge", &order).map_err(|error| format!("the admin address: {error}"))?;
        let answer: Value = serde_json::from_str(&answer).map_err(|error| format!("{answer}: {error}"))?;
        let kind = if is_soft { "softly" } else { "hard" };
        println!("{kind}: {} of them in {} ms", answer["matched"], answer["took_ms"]);
    }
    Ok(())
}

/// The number in the path that is asked for.
fn number_in(head: &[u8]) -> u64 {
    let digits = head.iter().skip_while(|byte| !byte.is_ascii_digit()).take_while(|byte| byte.is_ascii_digit());
    digits.fold(0, |number, digit| number * 10 + u64::from(digit - b'0'))
}

/// Each answer has three tags.
fn head_of(asked: &[u8]) -> String {
    let number = number_in(asked);
    let section = number % SECTIONS;
    format!(
        "HTTP/1.1 200 OK\r\nDate: Mon, 23 Nov 2026 07:00:00 GMT\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\
         Cache-Control: max-age=1000000, stale-while-revalidate=1000\r\n\
         X-Section: section-{section}\r\nSurrogate-Key: product-{number} section-{section} author-{}\r\n\r\n",
        BODY.len(),
        number % 997
    )
}

/// What the admin address answers to this.
pub fn posted(admin: &Path, path: &str, order: &str) -> io::Result<String> {
    let socket = UnixStream::connect(admin)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    let mut line = Line::new(socket);
    let length = order.len();
    write!(
        line.socket,
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{order}"
    )?;
    let (status, length) = line.head()?;
    let mut answer = Vec::new();
    line.body(length, |piece| answer.extend_from_slice(piece))?;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    if status == 200 { Ok(answer) } else { Err(io::Error::other(format!("{status}: {answer}"))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_answer_has_the_tags_of_its_number() {
        let head = head_of(b"GET /articles/00000142 HTTP/1.1\r\nHost: o.test\r\n\r\n");
        assert!(head.contains("\r\nSurrogate-Key: product-142 section-42 author-142\r\n"), "{head}");
    }
}
