//! The origin of a scenario: it answers by the scenario's rules, counts how often each target was asked for, and keeps
//! what it was asked, so that a step can say what of it reached the origin.
//!
//! It knows nothing of who asks. A thread for each connection; all end with the process.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use crate::original_scenario::Answer;
use crate::plain_exchange::{Message, Unframed};

pub struct RecordingOrigin {
    pub port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    answers: Vec<Answer>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    mode: String,
    asked: Vec<Asked>,
    counts: HashMap<String, usize>,
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
    pub fn start(answers: Vec<Answer>) -> Result<RecordingOrigin, String> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(|e| format!("the origin: {e}"))?;
        let port = listener.local_addr().map_err(|e| format!("the origin: {e}"))?.port();
        let shared = Arc::new(Shared { answers, state: Mutex::default() });
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
            let (answer, count) = self.pick(&request);
            let method = request.start.split(' ').next().unwrap_or_default();
            let mut head = format!("HTTP/1.1 {} {}\r\n", answer.status, answer.reason);
            for field in &answer.headers {
                head.push_str(&format!("{field}\r\n"));
            }
            if answer.status == 101 {
                to.write_all(format!("{head}\r\n").as_bytes())?;
                return echo(&mut from, &mut to);
            }
            let usual = format!("{method} {} #{count}", request.second_word());
            let body = answer.body.as_deref().unwrap_or(&usual);
            head.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
            let body = if method == "HEAD" { "" } else { body };
            to.write_all(format!("{head}{body}").as_bytes())?;
            if request.field("connection").is_some_and(|value| value.eq_ignore_ascii_case("close")) {
                break;
            }
        }
        Ok(())
    }

    /// Keeps the request, and finds its answer and which request for the same it is.
    fn pick(&self, request: &Message) -> (Answer, usize) {
        let line = request.start.rsplit_once(' ').map_or(request.start.as_str(), |(line, _)| line).to_string();
        let mut state = self.state();
        let answer = self.answers.iter().find(|answer| fits(answer, request, &state.mode));
        let answer = answer.cloned().unwrap_or_else(|| Answer {
            target: None,
            mode: None,
            when: Default::default(),
            status: 200,
            reason: "Said".to_string(),
            headers: Vec::new(),
            body: None,
            unrecorded: false,
        });
        if !answer.unrecorded {
            let (fields, body) = (request.fields.clone(), request.body.clone());
            state.asked.push(Asked { line: line.clone(), fields, body });
        }
        let count = state.counts.entry(line).or_default();
        *count += 1;
        (answer, *count)
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
