//! The origin behind the program under test: records every request on every connection, reads it strictly, and
//! answers by script. It never blocks; the lane drives it. What it finds wrong with a forwarded request is a
//! problem of that request.

use std::io::{ErrorKind, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};

use crate::notation::{Script, Step};
use crate::raw_client::{End, read_all, reset};
use crate::strict_head::{self, FieldLine, Head};

/// How the origin behaves during one act.
#[derive(Clone, Debug, Default)]
pub struct Behaviour {
    /// For the first, second … request of the act, the last one for all further; empty: an echo of the target.
    pub answers: Vec<Script>,
    /// Answer when the head is there, before the body.
    pub early: bool,
    /// Sent as soon as a connection is accepted.
    pub greeting: Option<Script>,
    /// Close right after accepting.
    pub slam: bool,
    /// Wait for the body without a 100, whatever Expect says (RFC 9110 §10.1.1 forbids it, origins do it).
    pub mute: bool,
}

/// A request as the origin got it.
#[derive(Clone, Debug)]
pub struct Seen {
    pub connection: usize,
    pub method: String,
    pub target: String,
    pub fields: Vec<FieldLine>,
    pub body: Vec<u8>,
    pub trailers: Vec<FieldLine>,
    pub complete: bool,
    /// Bytes of the connection from this request's first on, as far as they belong to it.
    pub raw: Vec<u8>,
    pub problems: Vec<String>,
}

#[derive(Debug)]
struct Connection {
    stream: Option<TcpStream>,
    received: Vec<u8>,
    /// Where the next request begins.
    at: usize,
    /// The request whose body is still coming: its index in `seen`.
    open: Option<usize>,
    script: Script,
    written: usize,
    end: Option<End>,
    /// A 101 is in the script: bytes behind the request are the tunnel's.
    tunnel: bool,
}

#[derive(Debug)]
pub struct RecordingOrigin {
    listener: TcpListener,
    connections: Vec<Connection>,
    pub seen: Vec<Seen>,
    pub behaviour: Behaviour,
    scripted_count: usize,
}

impl RecordingOrigin {
    pub fn start() -> RecordingOrigin {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback port is free");
        listener.set_nonblocking(true).expect("a listener can be made nonblocking");
        RecordingOrigin {
            listener,
            connections: Vec::new(),
            seen: Vec::new(),
            behaviour: Behaviour::default(),
            scripted_count: 0,
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.listener.local_addr().expect("a bound listener has an address")
    }

    /// Begins an act: what was seen before is forgotten, connections stay.
    pub fn begin(&mut self, behaviour: Behaviour) {
        self.seen.clear();
        self.behaviour = behaviour;
        self.scripted_count = 0;
        self.connections.retain(|connection| connection.end.is_none());
        for connection in &mut self.connections {
            connection.open = None;
            connection.received.drain(..connection.at);
            connection.at = 0;
        }
    }

    /// Has the program closed this connection?
    pub fn is_closed(&self, connection: usize) -> bool {
        self.connections.get(connection).is_none_or(|connection| connection.end.is_some())
    }

    /// Bytes behind the last request of a connection: a tunnel's.
    pub fn tunnel_bytes(&self, connection: usize) -> &[u8] {
        self.connections.get(connection).map_or(&[], |connection| &connection.received[connection.at..])
    }

    /// Sends more on a connection.
    pub fn say(&mut self, connection: usize, bytes: &[u8]) {
        self.connections[connection].script.push_back(Step::Bytes(bytes.to_vec()));
        self.write(connection);
    }

    /// Bytes that are no whole head, on a connection that is no tunnel.
    pub fn leftovers(&self) -> impl Iterator<Item = &[u8]> {
        let plain = self.connections.iter().filter(|c| !c.tunnel && c.open.is_none() && c.at < c.received.len());
        plain.map(|connection| &connection.received[connection.at..])
    }

    /// The sockets to poll, and whether there is something to write.
    pub fn watch(&self) -> impl Iterator<Item = (BorrowedFd<'_>, bool)> {
        let connections = self.connections.iter().filter(|connection| connection.end.is_none());
        std::iter::once((self.listener.as_fd(), false)).chain(connections.filter_map(|connection| {
            let writes = matches!(connection.script.front(), Some(Step::Bytes(_)));
            connection.stream.as_ref().map(|stream| (stream.as_fd(), writes))
        }))
    }

    /// Accepts, reads, answers: what is possible now. Returns whether anything moved.
    pub fn turn(&mut self) -> bool {
        let mut moved = false;
        while let Ok((stream, _)) = self.listener.accept() {
            moved = true;
            if self.behaviour.slam {
                reset(&stream);
                continue;
            }
            let _ = stream.set_nodelay(true);
            stream.set_nonblocking(true).expect("a connection can be made nonblocking");
            self.connections.push(Connection {
                stream: Some(stream),
                received: Vec::new(),
                at: 0,
                open: None,
                script: self.behaviour.greeting.clone().unwrap_or_default(),
                written: 0,
                end: None,
                tunnel: false,
            });
        }
        for index in 0..self.connections.len() {
            moved |= self.connections[index].read();
            moved |= self.read_requests(index);
            moved |= self.write(index);
        }
        moved
    }

    /// Writes what is possible. A tunnel begins with the last byte of a 101: nothing of it may have come before.
    fn write(&mut self, index: usize) -> bool {
        let was_tunnel = self.connections[index].tunnel;
        let moved = self.connections[index].write();
        let connection = &self.connections[index];
        if connection.tunnel && !was_tunnel && connection.received.len() > connection.at {
            let first = self.seen.iter_mut().rev().find(|seen| seen.connection == index);
            first.into_iter().for_each(|seen| seen.problems.push("tunnel bytes before the 101".into()));
        }
        moved
    }

    /// Everything is at rest: the first pause of a script is over.
    pub fn on_still(&mut self) -> bool {
        let is_waiting = |c: &Connection| c.stream.is_some() && c.script.front() == Some(&Step::Wait);
        let Some(index) = self.connections.iter().position(is_waiting) else { return false };
        self.connections[index].script.pop_front();
        self.write(index);
        true
    }

    /// Reads as many requests as are there. Returns whether one was begun or completed.
    fn read_requests(&mut self, index: usize) -> bool {
        let mut moved = false;
        while !self.connections[index].tunnel {
            let connection = &self.connections[index];
            let Some((seen, consumed)) = read_request(index, &connection.received[connection.at..]) else { break };
            let (open, complete) = (connection.open, seen.complete);
            let entry = open.unwrap_or(self.seen.len());
            match open {
                Some(_) => self.seen[entry] = seen,
                None => self.seen.push(seen),
            }
            let connection = &mut self.connections[index];
            connection.open = (!complete).then_some(entry);
            connection.at += if complete { consumed } else { 0 };
            let expects = open.is_none() && !complete && !self.behaviour.mute && !self.behaviour.early;
            if expects && self.seen[entry].expects_continue() {
                self.say(index, b"HTTP/1.1 100 Continue\r\n\r\n");
            }
            let answers_now = if self.behaviour.early { open.is_none() } else { complete };
            if answers_now {
                self.answer(index, entry);
            }
            moved |= complete || open.is_none();
            if !complete {
                break;
            }
        }
        moved
    }

    fn answer(&mut self, index: usize, entry: usize) {
        let seen = &self.seen[entry];
        let is_scripted = !seen.target.contains("/good") && !seen.target.contains("/marker");
        let scripted = match is_scripted {
            true => {
                self.scripted_count += 1;
                let answers = &self.behaviour.answers;
                answers.get(self.scripted_count - 1).or(answers.last()).cloned()
            }
            false => None,
        };
        let script = scripted.unwrap_or_else(|| Script::from([Step::Bytes(echo(&seen.method, &seen.target))]));
        let connection = &mut self.connections[index];
        connection.script.extend(script);
        self.write(index);
    }
}

impl Seen {
    fn expects_continue(&self) -> bool {
        let is_expect = |field: &FieldLine| field.name.eq_ignore_ascii_case("Expect");
        self.fields.iter().any(|field| is_expect(field) && field.value.eq_ignore_ascii_case(b"100-continue"))
    }
}

/// The body of the default answer: which request it answers.
pub fn echo_body(method: &str, target: &str) -> String {
    format!("{method} {target}\n")
}

fn echo(method: &str, target: &str) -> Vec<u8> {
    let body = echo_body(method, target);
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nCache-Control: no-store\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    if method == "HEAD" { head.into_bytes() } else { (head + &body).into_bytes() }
}

impl Connection {
    fn read(&mut self) -> bool {
        let Some(stream) = self.stream.as_mut().filter(|_| self.end.is_none()) else { return false };
        let before = self.received.len();
        self.end = read_all(stream, &mut self.received);
        if self.end.is_some() && self.script.is_empty() {
            self.stream = None;
        }
        self.end.is_some() || self.received.len() > before
    }

    fn write(&mut self) -> bool {
        let mut moved = false;
        while let (Some(stream), Some(step)) = (&mut self.stream, self.script.front()) {
            match step {
                Step::Wait => return moved,
                Step::Eof => {
                    let _ = stream.shutdown(std::net::Shutdown::Write);
                }
                Step::Reset => {
                    reset(stream);
                    self.stream = None;
                    self.end = Some(End::Ours);
                }
                Step::Bytes(bytes) => match stream.write(&bytes[self.written..]) {
                    Ok(len) if self.written + len < bytes.len() => {
                        self.written += len;
                        moved = true;
                        continue;
                    }
                    Ok(_) => {
                        self.written = 0;
                        self.tunnel |= bytes.starts_with(b"HTTP/1.1 101");
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => return moved,
                    Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                    Err(_) => {
                        self.script.clear();
                        self.written = 0;
                        self.stream = None;
                        self.end.get_or_insert(End::Reset);
                        return true;
                    }
                },
            }
            self.script.pop_front();
            moved = true;
        }
        moved
    }
}

/// Reads the request that begins here, and how many bytes are its own; `None` while there is no whole head.
fn read_request(connection: usize, bytes: &[u8]) -> Option<(Seen, usize)> {
    let mut seen = Seen {
        connection,
        method: String::new(),
        target: String::new(),
        fields: Vec::new(),
        body: Vec::new(),
        trailers: Vec::new(),
        complete: true,
        raw: bytes[..bytes.len().min(RAW_BYTES_MAX)].to_vec(),
        problems: Vec::new(),
    };
    let head = match strict_head::read_head(bytes) {
        Ok(head) => head?,
        Err(problem) => {
            seen.problems.push(problem);
            return Some((seen, bytes.len()));
        }
    };
    seen.problems.extend(problems_of(&head));
    let mut words = head.start.split(' ').map(str::to_string);
    (seen.method, seen.target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let body = strict_head::read_framing(&head)
        .and_then(|framing| strict_head::read_body(&bytes[head.bytes..], framing, false));
    seen.fields = head.fields;
    match body {
        Ok(body) => {
            let consumed = head.bytes + body.consumed;
            seen.raw.truncate(consumed);
            (seen.complete, seen.body, seen.trailers) = (body.complete, body.bytes, body.trailers);
            Some((seen, consumed))
        }
        Err(problem) => {
            seen.problems.push(problem);
            Some((seen, bytes.len()))
        }
    }
}

/// What is kept of a request for the report.
const RAW_BYTES_MAX: usize = 4 << 10;

/// What a proxy must not send whatever it got: RFC 9110 §7.6.1, RFC 9112 §3 and §3.2.
fn problems_of(head: &Head) -> Vec<String> {
    let mut problems = Vec::new();
    let words: Vec<_> = head.start.split(' ').collect();
    match words[..] {
        [method, target, "HTTP/1.1"] => {
            if method.is_empty() || !method.bytes().all(strict_head::is_token_byte) {
                problems.push(format!("method {method:?}"));
            }
            let is_asterisk = method == "OPTIONS" && target == "*";
            if !target.starts_with('/') && !is_asterisk {
                problems.push(format!("target {target:?} is not in origin-form"));
            }
            if target.contains('#') {
                problems.push(format!("target {target:?} has a fragment"));
            }
        }
        _ => problems.push(format!("request line {:?}", head.start)),
    }
    if head.values("Host").count() != 1 {
        problems.push(format!("{} Host fields", head.values("Host").count()));
    }
    for name in ["Keep-Alive", "Proxy-Connection", "Proxy-Authorization", "HTTP2-Settings", "Content_Length"] {
        if head.has(name) {
            problems.push(format!("{name} was forwarded"));
        }
    }
    for value in head.values("Connection") {
        for word in String::from_utf8_lossy(value).split(',').map(|word| word.trim().to_ascii_lowercase()) {
            let is_ours =
                matches!(&word[..], "close" | "keep-alive") || matches!(&word[..], "upgrade" | "te") && head.has(&word);
            if !is_ours {
                problems.push(format!("Connection: {word}"));
            }
        }
    }
    for (name, option) in [("TE", "te"), ("Upgrade", "upgrade")] {
        if head.has(name) && !head.lists("Connection", option) {
            problems.push(format!("{name} without Connection: {option}"));
        }
    }
    problems
}
