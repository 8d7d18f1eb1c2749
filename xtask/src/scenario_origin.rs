//! An origin that keeps what it was asked, so that somebody can say what of it reached the origin, and counts how often
//! each target was asked for. What it answers is the business of who starts it: a scenario's rules, or what a random
//! request asks for.
//!
//! It knows nothing of who asks. A thread for each connection; all end with the process.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use crate::original_scenario::Answer;
use crate::plain_exchange::{Message, Unframed};

const CHUNK_BYTES: usize = 1_000;
/// Until who asked has seen the head of what breaks off then.
const CUT_AFTER: Duration = Duration::from_millis(40);

pub struct RecordingOrigin {
    pub port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    answers: Box<dyn Answers>,
    state: Mutex<State>,
}

/// Who knows what is answered.
pub trait Answers: Send + Sync + 'static {
    /// `count` says which request with this method and target it is, from 1 on.
    fn answer(&self, request: &Message, mode: &str, count: usize) -> OriginAnswer;

    /// How long that takes, beside all other requests.
    fn takes(&self, _: &Message) -> Duration {
        Duration::ZERO
    }
}

pub struct OriginAnswer {
    /// Status line and fields but those that frame, each line with its end.
    pub head: String,
    pub body: Vec<u8>,
    pub framing: OriginFraming,
    /// Probes: not recorded.
    pub unrecorded: bool,
}

/// How a body is ended, if anything is answered at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OriginFraming {
    Length,
    Chunked,
    /// By the end of the connection.
    Close,
    /// Half of the body that Content-Length announces, and the end.
    Cut,
    /// The connection ends before a byte of an answer.
    Nothing,
    /// No body, whatever the head says of one.
    Bodiless,
    /// Lines come back in capitals.
    Tunnel,
}

#[derive(Default)]
struct State {
    mode: String,
    asked: Vec<Asked>,
    counts: HashMap<String, usize>,
    /// Requests that came and are not answered to the end.
    under_way: usize,
}

/// A request as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Method and target.
    pub line: String,
    pub fields: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl RecordingOrigin {
    pub fn start(answers: impl Answers) -> Result<RecordingOrigin, String> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(|e| format!("the origin: {e}"))?;
        let port = listener.local_addr().map_err(|e| format!("the origin: {e}"))?.port();
        let shared = Arc::new(Shared { answers: Box::new(answers), state: Mutex::default() });
        let for_all = shared.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = for_all.clone();
                // Whoever closes in the middle of a request is the business of the step, not of the origin.
                std::thread::spawn(move || drop(shared.serve(stream)));
            }
        });
        Ok(RecordingOrigin { port, shared })
    }

    pub fn set_mode(&self, mode: &str) {
        self.shared.state().mode = mode.to_string();
    }

    /// How many requests came since they were taken last, and whether one of all is under way.
    pub fn looked_at(&self) -> (usize, bool) {
        let state = self.shared.state();
        (state.asked.len(), state.under_way > 0)
    }

    /// Begins to count anew.
    pub fn forget(&self) {
        let mut state = self.shared.state();
        state.asked.clear();
        state.counts.clear();
        state.mode.clear();
    }

    /// What came since the last call. Waits a moment until there is as much as expected: what is fetched behind an
    /// answer comes after it.
    pub fn take(&self, expected: usize, patience: Duration) -> Vec<Asked> {
        const LOOKS: u32 = 100;
        for _ in 0..LOOKS {
            if self.shared.state().asked.len() >= expected {
                break;
            }
            std::thread::sleep(patience / LOOKS);
        }
        std::mem::take(&mut self.shared.state().asked)
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread panics with the lock")
    }

    fn serve(&self, stream: TcpStream) -> std::io::Result<()> {
        let mut from = BufReader::new(stream.try_clone()?);
        let mut to = stream;
        while let Some(request) = Message::read(&mut from, Unframed::Empty, true)? {
            std::thread::sleep(self.answers.takes(&request));
            let answer = self.pick(&request);
            let method = request.start.split(' ').next().unwrap_or_default();
            let goes_on = send(&answer, method, &mut from, &mut to);
            self.state().under_way -= 1;
            if !goes_on? || request.field("connection").is_some_and(|value| value.eq_ignore_ascii_case("close")) {
                break;
            }
        }
        Ok(())
    }

    /// Keeps the request, and finds its answer.
    fn pick(&self, request: &Message) -> OriginAnswer {
        let line = request.start.rsplit_once(' ').map_or(request.start.as_str(), |(line, _)| line).to_string();
        let mut state = self.state();
        let count = state.counts.get(&line).copied().unwrap_or(0);
        let next = count + 1;
        let answer = self.answers.answer(request, &state.mode, next);
        // Whether somebody asks again who got nothing is his business.
        if answer.framing != OriginFraming::Nothing {
            state.counts.insert(line.clone(), next);
        }
        if !answer.unrecorded {
            let (fields, body) = (request.fields.clone(), request.body.clone());
            state.asked.push(Asked { line, fields, body });
        }
        state.under_way += 1;
        answer
    }
}

/// Whether the connection can be used again.
fn send(
    answer: &OriginAnswer,
    method: &str,
    from: &mut BufReader<TcpStream>,
    to: &mut TcpStream,
) -> std::io::Result<bool> {
    let OriginAnswer { head, body, framing, .. } = answer;
    let whole = if method == "HEAD" { &[] } else { body.as_slice() };
    match framing {
        OriginFraming::Nothing => return Ok(false),
        OriginFraming::Tunnel => {
            to.write_all(format!("{head}\r\n").as_bytes())?;
            echo(from, to)?;
        }
        OriginFraming::Bodiless => to.write_all(format!("{head}\r\n").as_bytes())?,
        OriginFraming::Close => to.write_all(&[format!("{head}\r\n").as_bytes(), whole].concat())?,
        OriginFraming::Length | OriginFraming::Cut => {
            let sent = if *framing == OriginFraming::Cut { &whole[..whole.len() / 2] } else { whole };
            to.write_all(&[format!("{head}Content-Length: {}\r\n\r\n", body.len()).as_bytes(), sent].concat())?;
            if *framing == OriginFraming::Cut {
                std::thread::sleep(CUT_AFTER);
            }
        }
        OriginFraming::Chunked => {
            let mut text = format!("{head}Transfer-Encoding: chunked\r\n\r\n").into_bytes();
            for piece in whole.chunks(CHUNK_BYTES) {
                text.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
                text.extend_from_slice(piece);
                text.extend_from_slice(b"\r\n");
            }
            if method != "HEAD" {
                text.extend_from_slice(b"0\r\n\r\n");
            }
            to.write_all(&text)?;
        }
    }
    Ok(matches!(framing, OriginFraming::Length | OriginFraming::Chunked | OriginFraming::Bodiless))
}

/// A scenario's rules: the first one that fits.
impl Answers for Vec<Answer> {
    fn answer(&self, request: &Message, mode: &str, count: usize) -> OriginAnswer {
        let usual = Answer::default();
        let answer = self.iter().find(|answer| fits(answer, request, mode)).unwrap_or(&usual);
        let mut head = format!("HTTP/1.1 {} {}\r\n", answer.status, answer.reason);
        for field in &answer.headers {
            head.push_str(&format!("{field}\r\n"));
        }
        let method = request.start.split(' ').next().unwrap_or_default();
        let usual = format!("{method} {} #{count}", request.second_word());
        let body = answer.body.as_deref().unwrap_or(&usual).as_bytes().to_vec();
        let framing = if answer.status == 101 { OriginFraming::Tunnel } else { OriginFraming::Length };
        OriginAnswer { head, body, framing, unrecorded: answer.unrecorded }
    }
}

fn fits(answer: &Answer, request: &Message, mode: &str) -> bool {
    let target = match answer.target.as_deref().map(|target| (target, target.strip_suffix('*'))) {
        None => true,
        Some((_, Some(beginning))) => request.second_word().starts_with(beginning),
        Some((whole, None)) => request.second_word() == whole,
    };
    let has =
        |(name, words): (&String, &String)| request.field(name).is_some_and(|value| value.contains(words.as_str()));
    target && answer.mode.as_ref().is_none_or(|only| only == mode) && answer.when.iter().all(has)
}

/// The far end of a tunnel: lines come back in capitals.
fn echo(from: &mut BufReader<TcpStream>, to: &mut TcpStream) -> std::io::Result<()> {
    let mut line = String::new();
    while from.read_line(&mut line)? > 0 {
        to.write_all(line.to_uppercase().as_bytes())?;
        line.clear();
    }
    Ok(())
}
