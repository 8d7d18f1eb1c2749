//! Who changes the pages of a soak, and tells one larder so: by a PURGE of a page, and by orders to the admin address, of pages, tags, folders, bans and everything, hard and soft.

use std::io::{BufReader, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;
use std::time::Duration;

use super::soak_books::{SoakRoad, told};
use super::soak_page::{HOST, PageKind, PurgedKeys, SoakPage};
use super::soak_stage::{SoakPlant, SoakStage};
use crate::dice::Dice;
use crate::plain_exchange::{Message, Unframed};

const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE_MS: (u64, u64) = (30, 200);
/// With a planted fault, one purge in so many is told to nobody.
const UNTOLD_EVERY: u64 = 10;

/// Until the soak is over.
pub fn write(stage: &SoakStage, larder: usize, mut dice: Dice) {
    while !stage.is_over.load(SeqCst) {
        thread::sleep(Duration::from_millis(PAUSE_MS.0 + dice.below(PAUSE_MS.1 - PAUSE_MS.0)));
        purge(stage, larder, PurgedKeys::drawn(&mut dice), &mut dice);
    }
}

/// Changes pages at the origin, then orders that a larder forget them. True if that was acknowledged.
pub fn purge(stage: &SoakStage, larder: usize, purged: PurgedKeys, dice: &mut Dice) -> bool {
    let least = stage.books.raise(&purged.keys());
    if stage.planted == Some(SoakPlant::Stale) && dice.below(UNTOLD_EVERY) == 0 {
        stage.books.acknowledge(larder, &least);
        return true;
    }
    let page = match purged {
        PurgedKeys::Page(key) => SoakPage(key),
        _ => SoakPage(least[0].0),
    };
    let question = stage.books.question(larder, SoakRoad::Purge, page);
    let answer = match (purged, dice.below(2)) {
        (PurgedKeys::Page(key), 0) => by_method(stage, larder, SoakPage(key)),
        _ => {
            // A page that must be confirmed may stay to be confirmed. A VCL's grace would serve it meanwhile.
            let is_soft = matches!(purged, PurgedKeys::Page(_)) && page.kind() == PageKind::Brief;
            let order = purged.order();
            let is_soft = is_soft && !stage.larders[larder].has_program;
            by_order(stage, larder, &if is_soft { order.replacen('{', "{\"soft\":true,", 1) } else { order })
        }
    };
    match answer {
        Ok(answer) if answer.second_word() == "200" => {
            stage.books.acknowledge(larder, &least);
            stage.books.counts(SoakRoad::Purge);
            return true;
        }
        Ok(answer) => stage.books.fails(&question, &format!("{}: {}", purged.order(), told(&answer))),
        Err(why) => stage.books.fails(&question, &format!("{}: {why}", purged.order())),
    }
    false
}

fn by_method(stage: &SoakStage, larder: usize, page: SoakPage) -> Result<Message, String> {
    let socket = TcpStream::connect((Ipv4Addr::LOCALHOST, stage.larders[larder].port));
    let mut socket = socket.map_err(|error| format!("connecting: {error}"))?;
    let text = format!("PURGE {} HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n", page.path());
    let asked = socket.set_read_timeout(Some(PATIENCE)).and_then(|()| socket.write_all(text.as_bytes()));
    asked.map_err(|error| error.to_string())?;
    answer(BufReader::new(socket))
}

fn by_order(stage: &SoakStage, larder: usize, order: &str) -> Result<Message, String> {
    let socket = UnixStream::connect(stage.larders[larder].admin());
    let mut socket = socket.map_err(|error| format!("connecting to the admin address: {error}"))?;
    let text = format!(
        "POST /purge HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{order}",
        order.len()
    );
    let asked = socket.set_read_timeout(Some(PATIENCE)).and_then(|()| socket.write_all(text.as_bytes()));
    asked.map_err(|error| error.to_string())?;
    answer(BufReader::new(socket))
}

fn answer<S: std::io::Read>(mut from: BufReader<S>) -> Result<Message, String> {
    let answer = Message::read(&mut from, Unframed::UntilEnd, true).map_err(|error| error.to_string())?;
    answer.ok_or_else(|| "the connection ended before an answer".to_owned())
}
