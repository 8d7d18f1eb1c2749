//! The origins of a run, and what they write down: every request that reached one of them, every byte that was taken or sent, and what each
//! did to whoever asked.
//!
//! A connection is never closed before the other side has closed it: an end is half a close, and what still comes is read. So no request is
//! sent that nobody sees.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;

use super::origin_manner::{AnswerPiece, MannerOfAnswer, OriginManner};
use crate::dice::Dice;

/// By whom a request was asked that reached an origin: the number that its User-Agent is.
pub const NUMBER_FIELD: &str = "user-agent";

/// One request as it reached an origin.
#[derive(Clone, Debug)]
pub struct OriginSight {
    /// Of the client's request that caused it.
    pub number: String,
    /// Nothing had been asked on this connection before.
    pub is_first: bool,
    /// What is wrong with its answer, in the words of `larder_origin_faults_total`.
    pub fault: Option<&'static str>,
}

/// What one origin knows when a run is over.
#[derive(Clone, Debug, Default)]
pub struct OriginBook {
    pub sights: Vec<OriginSight>,
    pub connections: u64,
    pub bytes_read: u64,
    pub bytes_written: u64,
    /// Of these, those of answers during which larder ended the connection: it may not have read all of them.
    pub bytes_unsure: u64,
    /// Requests whose answers are not written yet.
    pub under_way: u64,
}

/// One of them.
pub struct CountedOrigin {
    pub name: &'static str,
    pub port: u16,
    book: Arc<Mutex<OriginBook>>,
}

impl CountedOrigin {
    /// `manner`: in which it answers everything; `None`: the path says it.
    pub fn start(name: &'static str, manner: Option<OriginManner>, seed: u64) -> Result<CountedOrigin, String> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|error| format!("{name}: {error}"))?;
        let port = listener.local_addr().map_err(|error| format!("{name}: {error}"))?.port();
        let book = Arc::new(Mutex::new(OriginBook::default()));
        let dice = Arc::new(Mutex::new(Dice::of(seed)));
        let for_all = Arc::clone(&book);
        thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                let lane = OriginLane { book: Arc::clone(&for_all), dice: Arc::clone(&dice), manner };
                lane.book().connections += 1;
                thread::spawn(move || {
                    let mut last_bytes = 0;
                    if lane.serve(socket, &mut last_bytes).is_err() {
                        lane.book().bytes_unsure += last_bytes;
                    }
                });
            }
        });
        Ok(CountedOrigin { name, port, book })
    }

    pub fn book(&self) -> OriginBook {
        self.book.lock().expect("nobody panicked").clone()
    }

    pub fn is_idle(&self) -> bool {
        self.book.lock().expect("nobody panicked").under_way == 0
    }
}

/// Who serves one connection.
struct OriginLane {
    book: Arc<Mutex<OriginBook>>,
    dice: Arc<Mutex<Dice>>,
    manner: Option<OriginManner>,
}

impl OriginLane {
    fn book(&self) -> MutexGuard<'_, OriginBook> {
        self.book.lock().expect("nobody panicked")
    }

    /// An error: larder did not want all of the last answer, which has so many bytes.
    fn serve(&self, socket: TcpStream, last_bytes: &mut u64) -> io::Result<()> {
        socket.set_nodelay(true)?;
        let (mut to, ended) = (socket.try_clone()?, socket.try_clone()?);
        let mut from = BufReader::new(CountedReads { socket, book: &self.book });
        let (mut is_first, mut is_ended) = (true, false);
        while let Some(head) = read_head(&mut from)? {
            let manner = self.manner.or_else(|| OriginManner::of_path(head.target())).unwrap_or(OriginManner::Fresh);
            let number = head.field(NUMBER_FIELD).unwrap_or_default().to_owned();
            let answer = {
                let mut dice = self.dice.lock().expect("nobody panicked");
                manner.answer(&mut dice, head.method(), head.field("if-none-match"))
            };
            let sight = OriginSight { number, is_first, fault: answer.fault };
            {
                let mut book = self.book();
                book.sights.push(sight);
                book.under_way += 1;
            }
            is_first = false;
            let answered =
                skip_body(&head, &mut from).and_then(|()| match is_ended || manner == OriginManner::Silent {
                    // It gets no answer any more.
                    true => Ok(true),
                    false => self.send(answer, &mut to, last_bytes),
                });
            self.book().under_way -= 1;
            if !answered? && !is_ended {
                is_ended = true;
                let _ = to.shutdown(Shutdown::Write);
            }
        }
        // What was written behind the other side's end was refused: reading says no more than the end.
        ended.take_error()?.map_or(Ok(()), Err)
    }

    /// False where the connection ends with it.
    fn send(&self, answer: MannerOfAnswer, to: &mut TcpStream, sent_bytes: &mut u64) -> io::Result<bool> {
        *sent_bytes = 0;
        for piece in answer.pieces {
            match piece {
                AnswerPiece::Pause(pause) => thread::sleep(pause),
                AnswerPiece::Bytes(bytes) => {
                    *sent_bytes += bytes.len() as u64;
                    self.book().bytes_written += bytes.len() as u64;
                    to.write_all(&bytes)?;
                }
            }
        }
        Ok(answer.keeps_connection)
    }
}

/// Counts what is read.
struct CountedReads<'b> {
    socket: TcpStream,
    book: &'b Mutex<OriginBook>,
}

impl Read for CountedReads<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.socket.read(into)?;
        self.book.lock().expect("nobody panicked").bytes_read += read as u64;
        Ok(read)
    }
}

struct OriginHead {
    line: String,
    fields: Vec<(String, String)>,
}

impl OriginHead {
    fn method(&self) -> &str {
        self.line.split(' ').next().unwrap_or_default()
    }

    fn target(&self) -> &str {
        self.line.split(' ').nth(1).unwrap_or_default()
    }

    fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

/// `None` at the end, also within a head: that is no request yet.
fn read_head(from: &mut impl BufRead) -> io::Result<Option<OriginHead>> {
    let mut head = OriginHead { line: String::new(), fields: Vec::new() };
    loop {
        let mut line = String::new();
        if from.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let line = line.trim_end();
        match line.split_once(':') {
            _ if line.is_empty() => return Ok(Some(head)),
            _ if head.line.is_empty() => head.line = line.to_owned(),
            Some((name, value)) => head.fields.push((name.to_owned(), value.trim().to_owned())),
            None => return Err(io::Error::other(format!("'{line}' is no field"))),
        }
    }
}

fn skip_body(head: &OriginHead, from: &mut impl BufRead) -> io::Result<()> {
    if head.field("transfer-encoding").is_some() {
        loop {
            let mut line = String::new();
            from.read_line(&mut line)?;
            let bytes = u64::from_str_radix(line.trim_end(), 16).map_err(io::Error::other)?;
            skip(from, bytes + 2)?;
            if bytes == 0 {
                return Ok(());
            }
        }
    }
    let length = head.field("content-length").and_then(|length| length.parse().ok());
    skip(from, length.unwrap_or(0))
}

fn skip(from: &mut impl BufRead, bytes: u64) -> io::Result<()> {
    let skipped = io::copy(&mut from.take(bytes), &mut io::sink())?;
    if skipped == bytes { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}
