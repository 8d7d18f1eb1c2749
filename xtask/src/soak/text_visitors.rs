//! Visitors of a soak that speak HTTP/1: over connections that are kept or not, in the clear, over TLS and through the forward proxy; whole pages, ranges, slow downloads and uploads.

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::atomic::Ordering::SeqCst;
use std::thread;
use std::time::Duration;

use socket2::{Domain, Socket, Type};
use tokio_rustls::rustls::{ClientConnection, StreamOwned};

use super::soak_books::{SoakQuestion, SoakRoad, told};
use super::soak_page::{HOST, KEYS, PageKind, SoakPage};
use super::soak_stage::SoakStage;
use super::soak_trust;
use crate::dice::Dice;
use crate::plain_exchange::{Message, Unframed};

/// Longer than anything that is stopped or frozen.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE_MS_MAX: u64 = 12;
const CODINGS: [&str; 4] =
    ["", "Accept-Encoding: br, zstd\r\n", "Accept-Encoding: gzip\r\n", "Accept-Encoding: gzip, br\r\n"];
/// A slow reader has no more than this of what it has not read, and reads so much at a time.
const SLOW_BYTES: usize = 16 << 10;
const SLOW_PAUSE: Duration = Duration::from_millis(40);
const POSTED_BYTES_MAX: u64 = 60_000;

/// Which of a larder's addresses is asked, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextLeg {
    Clear,
    Tls,
    Forward,
    Slow,
}

pub trait TextSocket: Read + Write + Send {}
impl<S: Read + Write + Send> TextSocket for S {}

/// One connection, made anew when it is over.
pub struct TextConversation<'s> {
    stage: &'s SoakStage,
    pub larder: usize,
    leg: TextLeg,
    kept: Option<BufReader<Box<dyn TextSocket>>>,
}

impl<'s> TextConversation<'s> {
    pub fn new(stage: &'s SoakStage, larder: usize, leg: TextLeg) -> TextConversation<'s> {
        TextConversation { stage, larder, leg, kept: None }
    }

    /// A kept connection that ends before a byte of the answer was closed as idle, or by a process that made way: then the question is put once more, which every client does.
    pub fn ask(&mut self, question: &[u8], has_body: bool) -> Result<Message, String> {
        if let Some(kept) = self.kept.take() {
            match self.exchange(kept, question, has_body) {
                Ok(Some(answer)) => return Ok(answer),
                Ok(None) => drop(self.stage.books.sent_again.fetch_add(1, SeqCst)),
                Err(error) => return Err(format!("on a kept connection: {error}")),
            }
        }
        let socket = self.connect().map_err(|error| format!("connecting: {error}"))?;
        let answer = self.exchange(BufReader::new(socket), question, has_body).map_err(|error| error.to_string())?;
        answer.ok_or_else(|| "the connection ended before an answer".to_owned())
    }

    /// What is posted is not put twice.
    pub fn forget(&mut self) {
        self.kept = None;
    }

    /// `None`: the other side had closed before a byte of it came.
    fn exchange(
        &mut self,
        mut connection: BufReader<Box<dyn TextSocket>>,
        question: &[u8],
        has_body: bool,
    ) -> io::Result<Option<Message>> {
        let written = connection.get_mut().write_all(question).and_then(|()| connection.get_mut().flush());
        let begun = written.and_then(|()| connection.fill_buf().map(|bytes| !bytes.is_empty()));
        match begun {
            Ok(true) => {}
            Ok(false) => return Ok(None),
            Err(error) if is_closed(&error) => return Ok(None),
            Err(error) => return Err(error),
        }
        let answer = Message::read(&mut connection, Unframed::UntilEnd, has_body)?;
        if answer.as_ref().is_some_and(|answer| !answer.ends_connection("GET")) {
            self.kept = Some(connection);
        }
        Ok(answer)
    }

    fn connect(&self) -> io::Result<Box<dyn TextSocket>> {
        let larder = &self.stage.larders[self.larder];
        let port = match self.leg {
            TextLeg::Clear | TextLeg::Slow => larder.port,
            TextLeg::Tls => larder.tls_port,
            TextLeg::Forward => larder.forward_port,
        };
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let socket = match self.leg {
            TextLeg::Slow => connect_narrow(address)?,
            _ => TcpStream::connect(address)?,
        };
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.set_write_timeout(Some(PATIENCE))?;
        match self.leg {
            TextLeg::Tls => {
                let session = ClientConnection::new(self.stage.trust.client(false), soak_trust::name());
                Ok(Box::new(StreamOwned::new(session.map_err(io::Error::other)?, socket)))
            }
            TextLeg::Slow => Ok(Box::new(SlowSocket(socket))),
            _ => Ok(Box::new(socket)),
        }
    }
}

fn is_closed(error: &io::Error) -> bool {
    // What TLS says of a connection that ended without a good-bye.
    matches!(
        error.kind(),
        ErrorKind::BrokenPipe | ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted | ErrorKind::UnexpectedEof
    )
}

fn connect_narrow(address: SocketAddr) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.set_recv_buffer_size(SLOW_BYTES)?;
    socket.connect(&address.into())?;
    Ok(socket.into())
}

/// What is read of it is read by and by.
struct SlowSocket(TcpStream);

impl Read for SlowSocket {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        thread::sleep(SLOW_PAUSE);
        let length = into.len().min(SLOW_BYTES);
        self.0.read(&mut into[..length])
    }
}

impl Write for SlowSocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// A visitor on one road, until the soak is over.
pub fn visit(stage: &SoakStage, larder: usize, road: SoakRoad, mut dice: Dice) {
    let leg = match road {
        SoakRoad::OverTls => TextLeg::Tls,
        SoakRoad::Forward => TextLeg::Forward,
        SoakRoad::Slow => TextLeg::Slow,
        _ => TextLeg::Clear,
    };
    let mut visitor = TextConversation::new(stage, larder, leg);
    while !stage.is_over.load(SeqCst) {
        match road {
            SoakRoad::Posted => post(&mut visitor, &mut dice),
            SoakRoad::Range | SoakRoad::Slow => ask_large(&mut visitor, road, &mut dice),
            _ => ask_page(&mut visitor, road, &mut dice),
        }
        // Now and then everybody begins anew.
        if dice.below(50) == 0 {
            visitor.forget();
        }
        thread::sleep(Duration::from_millis(dice.below(PAUSE_MS_MAX)));
    }
}

fn ask_page(visitor: &mut TextConversation<'_>, road: SoakRoad, dice: &mut Dice) {
    let books = &visitor.stage.books;
    let page = SoakPage::drawn(dice, || books.once());
    let question = books.question(visitor.larder, road, page);
    let (version, connection) = match (road, dice.below(2)) {
        (SoakRoad::Closing, 0) => ("1.0", ""),
        (SoakRoad::Closing, _) => ("1.1", "Connection: close\r\n"),
        _ => ("1.1", ""),
    };
    let coding = CODINGS[dice.below(4) as usize];
    let (target, host) = match road {
        SoakRoad::Forward => {
            (format!("http://127.0.0.1:{}{}", books.site.port, page.path()), format!("127.0.0.1:{}", books.site.port))
        }
        _ => (page.path(), HOST.to_owned()),
    };
    // A forward proxy does not put pages together.
    if road == SoakRoad::Forward && page.kind() == PageKind::Whole {
        return;
    }
    // Under a VCL a page is confirmed by its own tag, whatever it includes, as Varnish does it.
    let may_confirm =
        page.0 < KEYS && !(page.kind() == PageKind::Whole && visitor.stage.larders[visitor.larder].has_program);
    let confirmed = (may_confirm && dice.below(12) == 0).then(|| page.entity_tag(books.site.newest(page.0)));
    let condition = confirmed.as_ref().map(|tag| format!("If-None-Match: {tag}\r\n")).unwrap_or_default();
    let text = format!("GET {target} HTTP/{version}\r\nHost: {host}\r\n{coding}{connection}{condition}\r\n");
    let answer = visitor.ask(text.as_bytes(), true);
    match (answer, confirmed) {
        (Ok(answer), Some(tag)) if answer.second_word() == "304" => {
            close_confirmed(visitor.stage, &question, &tag, &answer)
        }
        (answer, _) => books.close(&question, answer),
    }
}

/// What a client has may be confirmed while it is the newest, and while no purge forbids it.
fn close_confirmed(stage: &SoakStage, question: &SoakQuestion, tag: &str, answer: &Message) {
    let version = tag.trim_matches('"').rsplit('-').next().and_then(|digits| digits.parse::<u64>().ok()).unwrap_or(0);
    let floor = question.floors.first().map_or(0, |(_, floor)| *floor);
    // A coding has a tag of its own, or the same weakly.
    if version < floor || question.page.kind() == PageKind::Whole {
        return stage.books.is_wrong(question, &format!("{tag} is confirmed: {}", told(answer)));
    }
    stage.books.not_modified.fetch_add(1, SeqCst);
    stage.books.counts(question.road);
}

fn ask_large(visitor: &mut TextConversation<'_>, road: SoakRoad, dice: &mut Dice) {
    let books = &visitor.stage.books;
    let page = SoakPage::of_kind(PageKind::Large, dice);
    let mut question = books.question(visitor.larder, road, page);
    let mut range = String::new();
    if road == SoakRoad::Range {
        let from = dice.below(290_000) as usize;
        let to = from + dice.below(200_000) as usize;
        range = format!("Range: bytes={from}-{to}\r\n");
        question.range = Some((from, to));
    }
    let text = format!("GET {} HTTP/1.1\r\nHost: {HOST}\r\n{range}\r\n", page.path());
    let answer = visitor.ask(text.as_bytes(), true);
    books.close(&question, answer);
}

/// What is posted comes back, and the page is invalidated by it.
fn post(visitor: &mut TextConversation<'_>, dice: &mut Dice) {
    let books = &visitor.stage.books;
    let page = SoakPage(dice.below(KEYS as u64) as usize);
    let question = books.question(visitor.larder, SoakRoad::Posted, page);
    let length = dice.below(POSTED_BYTES_MAX) as usize;
    let body: Vec<u8> = (0..length.div_ceil(8)).flat_map(|_| dice.next().to_le_bytes()).take(length).collect();
    let head = format!("POST {} HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: {length}\r\n\r\n", page.path());
    visitor.forget();
    match visitor.ask(&[head.as_bytes(), &body].concat(), true) {
        Ok(answer) if answer.second_word() != "200" => books.fails(&question, &told(&answer)),
        Ok(answer) if answer.body != body => books.is_wrong(&question, "what was posted comes back as something else"),
        Ok(_) => books.counts(SoakRoad::Posted),
        Err(why) => books.fails(&question, &why),
    }
}
