//! The origin of a soak: pages with versions that writers raise, and what is said of them is fresh for a day, so that only a purge brings a new one in time. It can be down: then nobody
//! listens, and whoever is connected is cut off. Beside it is an echo for WebSockets, which is never down.

use std::collections::BTreeMap;
use std::io::{self, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use super::soak_page::{KEYS, PageKind, SoakPage};
use crate::plain_exchange::{Message, Unframed};
use crate::ports;

const LOOK_EVERY: Duration = Duration::from_millis(5);
/// With a planted fault one answer in so many lacks its last byte.
const TRUNCATED_EVERY: u64 = 200;

pub struct SoakSite {
    pub port: u16,
    pub echo_port: u16,
    versions: [AtomicU64; KEYS],
    pub asked: AtomicU64,
    /// By 304.
    pub confirmed: AtomicU64,
    is_down: AtomicBool,
    truncates: bool,
    /// Connections, so that they can be cut off.
    sockets: Mutex<BTreeMap<u64, TcpStream>>,
}

impl SoakSite {
    /// Until the process ends. `truncates`: a fault that was planted.
    pub fn serve(truncates: bool) -> Result<Arc<SoakSite>, String> {
        let failed = |error: io::Error| format!("the origin: {error}");
        let echo = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
        let site = Arc::new(SoakSite {
            port: ports::free()?,
            echo_port: echo.local_addr().map_err(failed)?.port(),
            versions: std::array::from_fn(|_| AtomicU64::new(1)),
            asked: AtomicU64::new(0),
            confirmed: AtomicU64::new(0),
            is_down: AtomicBool::new(false),
            truncates,
            sockets: Mutex::default(),
        });
        let listener = site.listen().map_err(failed)?;
        let served = Arc::clone(&site);
        thread::spawn(move || served.accept(Some(listener)));
        thread::spawn(move || {
            for socket in echo.incoming().flatten() {
                thread::spawn(move || drop(echo_all(socket)));
            }
        });
        Ok(site)
    }

    /// Returns when it is so.
    pub fn set_down(&self, is_down: bool) {
        self.is_down.store(is_down, SeqCst);
        let is_reached = || TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_ok();
        while is_reached() == is_down {
            thread::sleep(LOOK_EVERY);
        }
        if is_down {
            for socket in self.sockets.lock().expect("nobody panicked").values() {
                let _ = socket.shutdown(Shutdown::Both);
            }
        }
    }

    /// Raises these pages, and says which versions they have now at least. Large ones stay as they are: an answer in slices that are fetched by and by must end where the origin has
    /// another page by then (docs/large-objects.md), and no request is to fail here.
    pub fn raise(&self, keys: &[usize]) -> Vec<(usize, u64)> {
        let raised = |key: usize| match SoakPage(key).kind() {
            PageKind::Large => self.newest(key),
            _ => self.versions[key].fetch_add(1, SeqCst) + 1,
        };
        keys.iter().map(|&key| (key, raised(key))).collect()
    }

    /// The newest version there is.
    pub fn newest(&self, key: usize) -> u64 {
        self.versions.get(key).map_or(1, |version| version.load(SeqCst))
    }

    fn listen(&self) -> io::Result<TcpListener> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, self.port))?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    }

    fn accept(self: Arc<Self>, mut listener: Option<TcpListener>) {
        for number in 0.. {
            loop {
                match (self.is_down.load(SeqCst), &listener) {
                    (true, _) => listener = None,
                    (false, None) => listener = self.listen().ok(),
                    _ => {}
                }
                match listener.as_ref().map(TcpListener::accept) {
                    Some(Ok((socket, _))) => {
                        self.take(socket, number);
                        break;
                    }
                    _ => thread::sleep(LOOK_EVERY),
                }
            }
        }
    }

    fn take(self: &Arc<Self>, socket: TcpStream, number: u64) {
        let Ok(kept) = socket.try_clone() else { return };
        self.sockets.lock().expect("nobody panicked").insert(number, kept);
        let site = Arc::clone(self);
        thread::spawn(move || {
            // Whoever hangs up has what it wanted.
            let _ = site.answer_all(socket);
            site.sockets.lock().expect("nobody panicked").remove(&number);
        });
    }

    fn answer_all(&self, mut socket: TcpStream) -> io::Result<()> {
        socket.set_nonblocking(false)?;
        socket.set_nodelay(true)?;
        let mut from = BufReader::new(socket.try_clone()?);
        while let Some(request) = Message::read(&mut from, Unframed::Empty, true)? {
            if self.is_down.load(SeqCst) {
                break;
            }
            socket.write_all(&self.answer(&request))?;
        }
        Ok(())
    }

    fn answer(&self, request: &Message) -> Vec<u8> {
        let target = request.second_word();
        // A proxy is asked for whole URLs, and asks for paths.
        let Some(page) = SoakPage::of_path(target) else {
            return b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_vec();
        };
        if request.start.starts_with("POST ") {
            let length = request.body.len();
            return [format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n").as_bytes(), &request.body].concat();
        }
        let count = self.asked.fetch_add(1, SeqCst);
        let version = self.newest(page.0);
        let (head, tag) = (page.head(version), page.entity_tag(version));
        if request.field("if-none-match") == Some(&tag) {
            self.confirmed.fetch_add(1, SeqCst);
            return format!("HTTP/1.1 304 Not Modified\r\n{head}\r\n").into_bytes();
        }
        let mut body = page.body(version);
        let range = request.field("range").filter(|_| page.kind() == PageKind::Large);
        let range = range.filter(|_| request.field("if-range").is_none_or(|wanted| wanted == tag));
        if let Some((from, to)) = range.and_then(|range| range_of(range, body.len())) {
            let whole = body.len();
            let part = &body[from..=to];
            let head = format!(
                "HTTP/1.1 206 Partial Content\r\n{head}Content-Range: bytes {from}-{to}/{whole}\r\nContent-Length: {}\r\n\r\n",
                part.len()
            );
            return [head.as_bytes(), part].concat();
        }
        if self.truncates && count % TRUNCATED_EVERY == TRUNCATED_EVERY - 1 {
            body.pop();
        }
        [format!("HTTP/1.1 200 OK\r\n{head}Content-Length: {}\r\n\r\n", body.len()).as_bytes(), &body].concat()
    }
}

/// The first and the last byte that one range means.
fn range_of(range: &str, length: usize) -> Option<(usize, usize)> {
    let (from, to) = range.strip_prefix("bytes=")?.split_once('-')?;
    let from = from.parse().ok()?;
    let last = length.checked_sub(1)?;
    let to = if to.is_empty() { last } else { to.parse::<usize>().ok()?.min(last) };
    (from <= to).then_some((from, to))
}

/// What is to become a WebSocket gets back what it sends.
fn echo_all(mut socket: TcpStream) -> io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        socket.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    socket.write_all(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")?;
    let mut bytes = [0; 4_096];
    loop {
        match socket.read(&mut bytes)? {
            0 => return Ok(()),
            count => socket.write_all(&bytes[..count])?,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(site: &SoakSite, fields: &str) -> io::Result<Message> {
        let mut socket = TcpStream::connect((Ipv4Addr::LOCALHOST, site.port))?;
        socket.write_all(format!("GET /k/0/p4 HTTP/1.1\r\nHost: a\r\n{fields}\r\n").as_bytes())?;
        let answer = Message::read(&mut BufReader::new(socket), Unframed::UntilEnd, true)?;
        answer.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    #[test]
    fn the_origin_confirms_sends_ranges_and_can_be_down() {
        let site = SoakSite::serve(false).expect("it serves");
        let page = SoakPage(4);
        let whole = ask(&site, "").expect("answered");
        assert_eq!(page.versions_in(&whole.body, 1), Ok(vec![(4, 1)]));
        assert_eq!(ask(&site, "If-None-Match: \"4-1\"\r\n").expect("answered").second_word(), "304");
        let part = ask(&site, "Range: bytes=10-19\r\n").expect("answered");
        assert_eq!((part.second_word(), &part.body[..]), ("206", &page.body(1)[10..20]));
        let other = ask(&site, "Range: bytes=10-19\r\nIf-Range: \"4-2\"\r\n").expect("answered");
        assert_eq!(page.versions_in(&other.body, 1), Ok(vec![(4, 1)]));
        assert_eq!(site.raise(&[4, 5]), [(4, 1), (5, 2)]);
        site.set_down(true);
        assert!(ask(&site, "").is_err());
        site.set_down(false);
        assert!(ask(&site, "").is_ok());
    }

    #[test]
    fn a_range_ends_where_the_body_does() {
        assert_eq!(range_of("bytes=0-9", 5), Some((0, 4)));
        assert_eq!(range_of("bytes=2-", 5), Some((2, 4)));
        assert_eq!(range_of("bytes=5-", 5), None);
        assert_eq!(range_of("bytes=-3", 5), None);
    }
}
