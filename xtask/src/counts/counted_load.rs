//! The load of a run: many clients that ask at random by HTTP/1, one behind the other or in advance, and by HTTP/2 (`counted_streams.rs`).
//! In its second act some of them go away in the middle.

use std::io::{self, Write};
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use socket2::SockRef;

use super::answers_seen::{AnswerReader, AnswerSeen};
use super::client_record::{ClientEnd, ClientRecord};
use super::counted_streams;
use super::drawn_request::{DrawnRequest, MALFORMED};
use crate::dice::Dice;

const CLIENTS: u64 = 8;
/// Of them those that speak HTTP/2.
const CLIENTS_OF_HTTP2: u64 = 2;
/// Of one connection.
const REQUESTS_MAX: u64 = 8;
const PATIENCE: Duration = Duration::from_secs(30);

/// What the clients of one act share.
pub struct CountedLoad {
    pub port: u16,
    pub record: ClientRecord,
    /// Numbers of requests, from the one that comes next up to this.
    pub next: AtomicU64,
    pub end: u64,
    /// Do clients go away in the middle?
    pub leaves: bool,
}

impl CountedLoad {
    /// All of it, until the last client is done.
    pub fn run(self: &Arc<Self>, dice: &mut Dice) {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let (load, dice) = (Arc::clone(self), Dice::of(dice.next()));
                thread::spawn(move || match client < CLIENTS_OF_HTTP2 {
                    true => counted_streams::ask(&load, dice),
                    false => load.ask(dice),
                })
            })
            .collect();
        for client in clients {
            if client.join().is_err() {
                self.record.book().troubles.push("a client panicked".to_owned());
            }
        }
    }

    /// `None`: all have been asked.
    pub fn draw(&self, dice: &mut Dice) -> Option<DrawnRequest> {
        let number = self.next.fetch_add(1, SeqCst);
        (number < self.end).then(|| DrawnRequest::draw(number, dice))
    }

    pub fn is_over(&self) -> bool {
        self.next.load(SeqCst) >= self.end
    }

    fn ask(&self, mut dice: Dice) {
        while !self.is_over() {
            if let Err(error) = self.connect(&mut dice) {
                self.record.book().troubles.push(format!("a client of HTTP/1: {error}"));
            }
        }
    }

    /// One connection from its first request to its end.
    fn connect(&self, dice: &mut Dice) -> io::Result<()> {
        let socket = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port))?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.set_nodelay(true)?;
        self.record.book().connections += 1;
        let mut client = TextLane { load: self, reader: AnswerReader::new(socket.try_clone()?), socket, bytes_sent: 0 };
        let ended = match dice.below(20) {
            0..=7 => client.ask_in_turn(dice),
            8..=13 => client.ask_ahead(dice),
            14..=16 => client.ask_old(dice),
            17 => client.ask_malformed(dice),
            _ if self.leaves => client.ask_and_leave(dice),
            _ => client.ask_in_turn(dice),
        };
        let (bytes_sent, bytes_received) = (client.bytes_sent, client.reader.bytes_received);
        let mut book = self.record.book();
        book.bytes_sent += bytes_sent;
        book.bytes_received += bytes_received;
        ended
    }
}

/// One connection of HTTP/1.
struct TextLane<'l> {
    load: &'l CountedLoad,
    socket: TcpStream,
    reader: AnswerReader<TcpStream>,
    bytes_sent: u64,
}

impl TextLane<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.socket.write_all(bytes)?;
        self.bytes_sent += bytes.len() as u64;
        Ok(())
    }

    /// Reads the answer to a request that was sent, and writes down what came of it. `None`: there was none.
    fn read(&mut self, request: &DrawnRequest) -> io::Result<Option<AnswerSeen>> {
        let answer = self.reader.answer(request.method)?;
        let end = match answer {
            None => ClientEnd::Dropped,
            Some(AnswerSeen { status, body_bytes, is_whole, .. }) => {
                ClientEnd::Answered { status, body_bytes, is_whole }
            }
        };
        self.note(request, end);
        Ok(answer)
    }

    fn note(&self, request: &DrawnRequest, end: ClientEnd) {
        self.load.record.note(request.number.clone(), (request.method, request.target.clone()), end);
    }

    /// Nothing more is asked, and nothing more may come.
    fn end(&mut self) -> io::Result<()> {
        let _ = self.socket.shutdown(Shutdown::Write);
        match self.reader.end()? {
            0 => Ok(()),
            bytes => Err(io::Error::other(format!("{bytes} bytes came behind the last answer"))),
        }
    }

    fn ask_in_turn(&mut self, dice: &mut Dice) -> io::Result<()> {
        for left in (0..1 + dice.below(REQUESTS_MAX)).rev() {
            let Some(request) = self.load.draw(dice) else { break };
            self.write(&request.text("1.1", left == 0 && dice.below(2) == 0))?;
            match self.read(&request)? {
                Some(answer) if !answer.is_last => {}
                _ => break,
            }
        }
        self.end()
    }

    /// Several at once.
    fn ask_ahead(&mut self, dice: &mut Dice) -> io::Result<()> {
        let wanted = 2 + dice.below(REQUESTS_MAX);
        let requests: Vec<_> = (0..wanted).map_while(|_| self.load.draw(dice)).collect();
        let text: Vec<u8> = requests.iter().flat_map(|request| request.text("1.1", false)).collect();
        self.write(&text)?;
        let mut is_over = false;
        for request in &requests {
            match is_over {
                true => self.note(request, ClientEnd::Unanswered),
                false => is_over = self.read(request)?.is_none_or(|answer| answer.is_last),
            }
        }
        self.end()
    }

    fn ask_old(&mut self, dice: &mut Dice) -> io::Result<()> {
        let Some(request) = self.load.draw(dice) else { return Ok(()) };
        self.write(&request.text("1.0", false))?;
        self.read(&request)?;
        self.end()
    }

    /// Perhaps behind what is a request.
    fn ask_malformed(&mut self, dice: &mut Dice) -> io::Result<()> {
        if dice.below(2) == 0 {
            let Some(request) = self.load.draw(dice) else { return Ok(()) };
            self.write(&request.text("1.1", false))?;
            if self.read(&request)?.is_none_or(|answer| answer.is_last) {
                return self.end();
            }
        }
        let text = MALFORMED[dice.below(MALFORMED.len() as u64) as usize];
        self.write(text.as_bytes())?;
        let answer = self.reader.answer("GET")?;
        let seen = answer.map_or((0, 0), |answer| (answer.status, answer.body_bytes));
        self.load.record.book().to_malformed.push(seen);
        self.end()
    }

    fn ask_and_leave(&mut self, dice: &mut Dice) -> io::Result<()> {
        let wanted = 1 + dice.below(3);
        let requests: Vec<_> = (0..wanted).map_while(|_| self.load.draw(dice)).collect();
        let mut text: Vec<u8> = requests.iter().flat_map(|request| request.text("1.1", false)).collect();
        // The last may not be all there.
        if dice.below(4) == 0 {
            text.truncate(text.len() - dice.below(40) as usize);
        }
        self.write(&text)?;
        let answered = dice.below(wanted + 1).min(requests.len() as u64) as usize;
        let mut is_over = false;
        for (at, request) in requests.iter().enumerate() {
            match is_over || at >= answered || at + 1 == requests.len() {
                true => self.note(request, ClientEnd::Left),
                false => is_over = self.read(request)?.is_none_or(|answer| answer.is_last),
            }
        }
        thread::sleep(Duration::from_millis(dice.below(4)));
        if dice.below(2) == 0 {
            SockRef::from(&self.socket).set_linger(Some(Duration::ZERO))?;
        }
        Ok(())
    }
}
