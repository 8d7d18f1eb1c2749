//! Visitors of what larder does beside pages: files and their ranges, items of memcached that must read as they were written, and WebSockets that must echo.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::sync::atomic::Ordering::SeqCst;
use std::thread;
use std::time::Duration;

use super::soak_books::{SoakQuestion, SoakRoad, told};
use super::soak_page::{HOST, SoakPage};
use super::soak_stage::SoakStage;
use super::text_visitors::{TextConversation, TextLeg};
use crate::dice::Dice;
use crate::plain_exchange::Message;

const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE_MS_MAX: u64 = 15;
const ITEMS: u64 = 40;
const ITEM_BYTES_MAX: u64 = 20_000;
/// Of one WebSocket, with so long a pause at most between two: it ends before a process that makes way must (`limits.upgrade_grace`).
const MESSAGES_MAX: u64 = 150;
const MESSAGE_PAUSE_MS_MAX: u64 = 100;
const MESSAGE_BYTES_MAX: u64 = 5_000;

/// Files, whole and in ranges.
pub fn read_files(stage: &SoakStage, larder: usize, mut dice: Dice) {
    let mut visitor = TextConversation::new(stage, larder, TextLeg::Clear);
    while !stage.is_over.load(SeqCst) {
        let (name, content) = &stage.files[dice.below(stage.files.len() as u64) as usize];
        let question = stage.books.question(larder, SoakRoad::File, SoakPage(0));
        let from = dice.below(content.len() as u64) as usize;
        let to = (from + dice.below(content.len() as u64) as usize).min(content.len() - 1);
        let is_whole = dice.below(3) == 0;
        let range = if is_whole { String::new() } else { format!("Range: bytes={from}-{to}\r\n") };
        let expected = if is_whole { &content[..] } else { &content[from..=to] };
        let text = format!("GET /files/{name} HTTP/1.1\r\nHost: {HOST}\r\n{range}\r\n");
        let status = if is_whole { "200" } else { "206" };
        close(stage, &question, visitor.ask(text.as_bytes(), true), status, Some(expected));
        thread::sleep(Duration::from_millis(dice.below(PAUSE_MS_MAX)));
    }
}

/// Items that nobody else writes. What became of a write that failed nobody knows: then both may be read.
pub fn use_memcached(stage: &SoakStage, larder: usize, mut dice: Dice) {
    let mut visitor = TextConversation::new(stage, larder, TextLeg::Clear);
    let mut possible: Vec<Vec<Option<Vec<u8>>>> = (0..ITEMS).map(|_| vec![None]).collect();
    while !stage.is_over.load(SeqCst) {
        let item = dice.below(ITEMS) as usize;
        let question = stage.books.question(larder, SoakRoad::Memcached, SoakPage(item));
        let path = format!("/mc/of-{larder}-{item}");
        match dice.below(5) {
            0 => {
                let length = dice.below(ITEM_BYTES_MAX) as usize;
                let value: Vec<u8> =
                    (0..length.div_ceil(8)).flat_map(|_| dice.next().to_le_bytes()).take(length).collect();
                let head = format!("PUT {path} HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: {length}\r\n\r\n");
                let answer = visitor.ask(&[head.as_bytes(), &value].concat(), true);
                change(stage, &question, answer, &mut possible[item], Some(value));
            }
            1 => {
                let answer = visitor.ask(format!("DELETE {path} HTTP/1.1\r\nHost: {HOST}\r\n\r\n").as_bytes(), true);
                change(stage, &question, answer, &mut possible[item], None);
            }
            _ => {
                let answer = visitor.ask(format!("GET {path} HTTP/1.1\r\nHost: {HOST}\r\n\r\n").as_bytes(), true);
                read(stage, &question, answer, &possible[item]);
            }
        }
        thread::sleep(Duration::from_millis(dice.below(PAUSE_MS_MAX)));
    }
}

fn change(
    stage: &SoakStage,
    question: &SoakQuestion,
    answer: Result<Message, String>,
    possible: &mut Vec<Option<Vec<u8>>>,
    value: Option<Vec<u8>>,
) {
    // What is not there cannot be deleted.
    let is_gone = value.is_none() && answer.as_ref().is_ok_and(|answer| answer.second_word() == "404");
    if is_gone && possible.contains(&None) || answer.as_ref().is_ok_and(|answer| answer.second_word() == "204") {
        *possible = vec![value];
        stage.books.counts(SoakRoad::Memcached);
        return;
    }
    possible.push(value);
    match answer {
        Ok(answer) => stage.books.fails(question, &told(&answer)),
        Err(why) => stage.books.fails(question, &why),
    }
}

fn read(stage: &SoakStage, question: &SoakQuestion, answer: Result<Message, String>, possible: &[Option<Vec<u8>>]) {
    let found = match answer {
        Ok(answer) if answer.second_word() == "200" => Some(answer.body),
        Ok(answer) if answer.second_word() == "404" => None,
        Ok(answer) => return stage.books.fails(question, &told(&answer)),
        Err(why) => return stage.books.fails(question, &why),
    };
    match possible.contains(&found) {
        true => stage.books.counts(SoakRoad::Memcached),
        false => {
            let length = found.map(|value| value.len());
            stage.books.is_wrong(question, &format!("{length:?} bytes, and none of {} values", possible.len()));
        }
    }
}

fn close(
    stage: &SoakStage,
    question: &SoakQuestion,
    answer: Result<Message, String>,
    status: &str,
    expected: Option<&[u8]>,
) {
    match answer {
        Ok(answer) if answer.second_word() != status => stage.books.fails(question, &told(&answer)),
        Ok(answer) if expected.is_some_and(|expected| expected != answer.body) => {
            stage
                .books
                .is_wrong(question, &format!("not the {:?} bytes: {}", expected.map(<[u8]>::len), told(&answer)));
        }
        Ok(_) => stage.books.counts(question.road),
        Err(why) => stage.books.fails(question, &why),
    }
}

/// WebSockets, one after the other.
pub fn echo(stage: &SoakStage, larder: usize, dice: Dice) {
    echo_on(stage, stage.books.question(larder, SoakRoad::WebSocket, SoakPage(0)), dice);
}

/// The same through the forward proxy, by CONNECT.
pub fn echo_through_tunnels(stage: &SoakStage, larder: usize, dice: Dice) {
    echo_on(stage, stage.books.question(larder, SoakRoad::Tunnel, SoakPage(0)), dice);
}

fn echo_on(stage: &SoakStage, mut question: SoakQuestion, mut dice: Dice) {
    while !stage.is_over.load(SeqCst) {
        question.begun = stage.books.clock.seconds();
        if let Err(error) = open_and_echo(stage, &mut question, &mut dice) {
            stage.books.fails(&question, &error.to_string());
        }
    }
}

/// A WebSocket that is open.
pub fn open_socket(stage: &SoakStage, larder: usize, road: SoakRoad) -> io::Result<TcpStream> {
    let asked = &stage.larders[larder];
    let port = if road == SoakRoad::Tunnel { asked.forward_port } else { asked.port };
    let mut socket = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.set_nodelay(true)?;
    if road == SoakRoad::Tunnel {
        let echo = stage.books.site.echo_port;
        greet(
            &mut socket,
            &format!("CONNECT 127.0.0.1:{echo} HTTP/1.1\r\nHost: 127.0.0.1:{echo}\r\n\r\n"),
            "HTTP/1.1 200 ",
        )?;
    }
    let head = format!(
        "GET /socket HTTP/1.1\r\nHost: {HOST}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    greet(&mut socket, &head, "HTTP/1.1 101 ")?;
    Ok(socket)
}

/// A head, and the head that answers it, which must begin so.
fn greet(socket: &mut TcpStream, head: &str, expected: &str) -> io::Result<()> {
    socket.write_all(head.as_bytes())?;
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        socket.read_exact(&mut byte)?;
        answer.push(byte[0]);
    }
    match answer.starts_with(expected.as_bytes()) {
        true => Ok(()),
        false => Err(io::Error::other(String::from_utf8_lossy(&answer).into_owned())),
    }
}

fn open_and_echo(stage: &SoakStage, question: &mut SoakQuestion, dice: &mut Dice) -> io::Result<()> {
    let mut socket = open_socket(stage, question.larder, question.road)?;
    for _ in 0..1 + dice.below(MESSAGES_MAX) {
        if stage.is_over.load(SeqCst) {
            break;
        }
        let length = 1 + dice.below(MESSAGE_BYTES_MAX) as usize;
        let sent: Vec<u8> = (0..length.div_ceil(8)).flat_map(|_| dice.next().to_le_bytes()).take(length).collect();
        socket.write_all(&sent)?;
        let mut back = vec![0; length];
        socket.read_exact(&mut back)?;
        match back == sent {
            true => stage.books.counts(question.road),
            false => stage.books.is_wrong(question, "a message comes back as something else"),
        }
        // The socket may end while nothing is on its way, which the next message finds out.
        question.begun = stage.books.clock.seconds();
        thread::sleep(Duration::from_millis(dice.below(MESSAGE_PAUSE_MS_MAX)));
    }
    Ok(())
}
