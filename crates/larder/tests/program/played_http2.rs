//! Origins that speak HTTP/2 without TLS: one on the crate `h2`'s server side, whose paths say what it does, and one that says frames as a
//! test scripts them, for what no good server says.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use h2::server::{self, SendResponse};
use h2::{Reason, RecvStream};
use http::{HeaderMap, Request, Response};

use crate::tls_site::pattern;

/// What it announces.
#[derive(Clone, Copy, Debug)]
pub struct Manner {
    pub streams_max: u32,
    /// What a request's body may have before it is read.
    pub window: u32,
    pub websockets: bool,
}

impl Default for Manner {
    fn default() -> Manner {
        Manner { streams_max: 100, window: 65_535, websockets: false }
    }
}

/// One of the crate `h2`.
pub struct PlayedHttp2 {
    pub address: SocketAddr,
    shared: Arc<Heard>,
}

#[derive(Default)]
struct Heard {
    connections: AtomicUsize,
    /// Method and path of each request, and how streams ended that were given up.
    words: Mutex<Vec<String>>,
    /// Requests for `/hold` that wait for one another.
    held: AtomicUsize,
    all_held: tokio::sync::Notify,
}

impl PlayedHttp2 {
    /// Until the tests end.
    pub fn start(manner: Manner) -> PlayedHttp2 {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback port is free");
        let address = listener.local_addr().expect("a bound listener has an address");
        let shared = Arc::new(Heard::default());
        let heard = Arc::clone(&shared);
        std::thread::spawn(move || {
            listener.set_nonblocking(true).expect("a socket of ours");
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener).expect("a listener of ours");
                while let Ok((stream, _)) = listener.accept().await {
                    heard.connections.fetch_add(1, Ordering::SeqCst);
                    tokio::spawn(serve(stream, manner, Arc::clone(&heard)));
                }
            });
        });
        PlayedHttp2 { address, shared }
    }

    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// How often something of this kind was heard.
    pub fn count(&self, word: &str) -> usize {
        self.shared.words.lock().expect("nobody panics").iter().filter(|said| said.contains(word)).count()
    }
}

impl Heard {
    fn note(&self, word: String) -> usize {
        let mut words = self.words.lock().expect("nobody panics");
        words.push(word.clone());
        words.iter().filter(|said| **said == word).count()
    }
}

async fn serve(stream: tokio::net::TcpStream, manner: Manner, heard: Arc<Heard>) {
    let mut builder = server::Builder::new();
    builder.max_concurrent_streams(manner.streams_max).initial_window_size(manner.window);
    if manner.websockets {
        builder.enable_connect_protocol();
    }
    let Ok(mut connection) = builder.handshake::<_, Bytes>(stream).await else { return };
    while let Some(Ok((request, respond))) = connection.accept().await {
        let path = request.uri().path().to_owned();
        let times = heard.note(format!("{} {path}", request.method()));
        if path == "/leave-once" && times == 1 {
            connection.graceful_shutdown();
        }
        tokio::spawn(answer(request, respond, path, times, Arc::clone(&heard)));
    }
}

fn ok(length: Option<usize>) -> Response<()> {
    let mut head = Response::builder().header("cache-control", "max-age=60");
    if let Some(length) = length {
        head = head.header("content-length", length);
    }
    head.body(()).expect("a good head")
}

async fn read(body: &mut RecvStream) -> Option<(Vec<u8>, Option<HeaderMap>)> {
    let mut all = Vec::new();
    while let Some(piece) = body.data().await {
        let piece = piece.ok()?;
        all.extend_from_slice(&piece);
        let _ = body.flow_control().release_capacity(piece.len());
    }
    Some((all, body.trailers().await.ok()?))
}

async fn answer(
    request: Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
    path: String,
    times: usize,
    heard: Arc<Heard>,
) {
    match &*path {
        "/refused-once" if times == 1 => return respond.send_reset(Reason::REFUSED_STREAM),
        "/refused" => return respond.send_reset(Reason::REFUSED_STREAM),
        "/http1" => return respond.send_reset(Reason::HTTP_1_1_REQUIRED),
        "/reset" => return respond.send_reset(Reason::INTERNAL_ERROR),
        "/silent" => {
            let _ = std::future::poll_fn(|cx| respond.poll_reset(cx)).await;
            heard.note("given up /silent".to_owned());
            return;
        }
        "/hold" => {
            if heard.held.fetch_add(1, Ordering::SeqCst) + 1 == 20 {
                heard.all_held.notify_waiters();
            } else {
                let _ = tokio::time::timeout(Duration::from_secs(15), heard.all_held.notified()).await;
            }
        }
        "/hints" => {
            let hint = Response::builder().status(103).header("link", "</a.css>; rel=preload").body(());
            let _ = respond.send_informational(hint.expect("a good head"));
        }
        _ => {}
    }
    let _ = respond_with(request, respond, &path, &heard).await;
}

async fn respond_with(
    request: Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
    path: &str,
    heard: &Heard,
) -> Result<(), h2::Error> {
    let fields = described(&request);
    let is_confirmed = request.headers().contains_key("if-none-match");
    let mut body = request.into_body();
    match path {
        "/early" => {
            // Answered before the body is here, which is not read.
            return respond.send_response(ok(Some(5)), false)?.send_data(Bytes::from_static(b"early"), true);
        }
        "/socket" => return tunnel(respond, body).await,
        "/none" => {
            let head = Response::builder().status(204).body(()).expect("a good head");
            return respond.send_response(head, true).map(drop);
        }
        "/stale" if is_confirmed => {
            let head = Response::builder().status(304).header("etag", "\"1\"").body(()).expect("a good head");
            return respond.send_response(head, true).map(drop);
        }
        "/stale" => {
            let head = Response::builder().header("etag", "\"1\"").header("cache-control", "max-age=0");
            let mut stream = respond.send_response(head.body(()).expect("a good head"), false)?;
            return stream.send_data(Bytes::from_static(b"stale"), true);
        }
        "/short" => {
            return respond.send_response(ok(Some(10)), false)?.send_data(Bytes::from_static(b"01234"), true);
        }
        "/long" => {
            return respond.send_response(ok(Some(2)), false)?.send_data(Bytes::from_static(b"01234"), true);
        }
        "/cut" => {
            let mut stream = respond.send_response(ok(None), false)?;
            stream.send_data(Bytes::from_static(b"half of it"), false)?;
            tokio::time::sleep(Duration::from_millis(200)).await;
            stream.send_reset(Reason::INTERNAL_ERROR);
            return Ok(());
        }
        "/endless" => {
            let mut stream = respond.send_response(ok(None), false)?;
            while send(&mut stream, Bytes::from(vec![b'x'; 16_000]), false).await.is_some() {}
            heard.note("given up /endless".to_owned());
            return Ok(());
        }
        _ => {}
    }
    let asked = read(&mut body).await;
    let (bytes, trailers) = match (path, asked) {
        ("/echo", Some((bytes, trailers))) => (bytes, trailers),
        ("/fields", _) => (fields.into_bytes(), None),
        (path, _) => {
            let length = path.strip_prefix("/bytes/").and_then(|length| length.parse().ok());
            (pattern(length.unwrap_or(5)), None)
        }
    };
    let length = trailers.is_none().then_some(bytes.len());
    let mut stream = respond.send_response(ok(length), false)?;
    let Some(trailers) = trailers else {
        send(&mut stream, Bytes::from(bytes), true).await;
        return Ok(());
    };
    send(&mut stream, Bytes::from(bytes), false).await;
    stream.send_trailers(trailers)
}

/// As the peer's window lets it, and maybe the end. `None` when the stream is gone.
async fn send(stream: &mut h2::SendStream<Bytes>, mut bytes: Bytes, ends: bool) -> Option<()> {
    if bytes.is_empty() {
        return stream.send_data(bytes, ends).ok();
    }
    while !bytes.is_empty() {
        stream.reserve_capacity(bytes.len());
        let room = std::future::poll_fn(|cx| stream.poll_capacity(cx)).await?.ok()?;
        let piece = bytes.split_to(room.min(bytes.len()));
        stream.send_data(piece, ends && bytes.is_empty()).ok()?;
    }
    Some(())
}

/// Sends back what comes in capitals.
async fn tunnel(mut respond: SendResponse<Bytes>, mut body: RecvStream) -> Result<(), h2::Error> {
    let mut stream = respond.send_response(Response::new(()), false)?;
    while let Some(piece) = body.data().await {
        let piece = piece?;
        let _ = body.flow_control().release_capacity(piece.len());
        send(&mut stream, Bytes::from(piece.to_ascii_uppercase()), false).await;
    }
    stream.send_data(Bytes::new(), true)
}

/// A line for each thing that the head says.
fn described(request: &Request<RecvStream>) -> String {
    let uri = request.uri();
    let mut text = format!(
        ":method {}\n:scheme {}\n:authority {}\n:path {}\n",
        request.method(),
        uri.scheme_str().unwrap_or_default(),
        uri.authority().map_or("", |authority| authority.as_str()),
        uri.path_and_query().map_or("", |path| path.as_str()),
    );
    for (name, value) in request.headers() {
        text += &format!("{name} {}\n", String::from_utf8_lossy(value.as_bytes()));
    }
    text
}

/// One connection to an origin of which a test says each frame.
pub struct Frames(TcpStream);

/// A frame's type, flags, stream and payload.
pub type Frame = (u8, u8, u32, Vec<u8>);

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const SETTINGS: u8 = 4;
pub const GOAWAY: u8 = 7;
pub const END_STREAM: u8 = 1;
pub const END_HEADERS: u8 = 4;

/// `:status: 200`
pub const OK: &[u8] = &[0x88];

impl Frames {
    pub fn say(&mut self, (kind, flags, stream, payload): (u8, u8, u32, &[u8])) -> Option<()> {
        let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
        frame.extend_from_slice(&[kind, flags]);
        frame.extend_from_slice(&stream.to_be_bytes());
        frame.extend_from_slice(payload);
        self.0.write_all(&frame).ok()
    }

    pub fn hear(&mut self) -> Option<Frame> {
        let mut head = [0; 9];
        self.0.read_exact(&mut head).ok()?;
        let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
        self.0.read_exact(&mut payload).ok()?;
        Some((head[3], head[4], u32::from_be_bytes([head[5], head[6], head[7], head[8]]), payload))
    }

    /// The number of the next request's stream.
    pub fn request(&mut self) -> Option<u32> {
        loop {
            if let (HEADERS, _, stream, _) = self.hear()? {
                return Some(stream);
            }
        }
    }

    /// Answers with this body, and no length.
    pub fn answer(&mut self, stream: u32, body: &[u8]) -> Option<()> {
        self.say((HEADERS, END_HEADERS, stream, OK))?;
        self.say((DATA, END_STREAM, stream, body))
    }

    pub fn close(self) {
        let _ = self.0.shutdown(std::net::Shutdown::Both);
    }
}

/// An origin that plays a script on each connection, which gets its number from 1 on. The greetings are exchanged before; `settings` is the
/// payload of its own.
pub fn scripted(
    settings: &'static [u8],
    script: impl Fn(usize, Frames) + Send + Sync + 'static,
) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback port is free");
    let address = listener.local_addr().expect("a bound listener has an address");
    let (script, count) = (Arc::new(script), Arc::new(AtomicUsize::new(0)));
    let connections = Arc::clone(&count);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let number = count.fetch_add(1, Ordering::SeqCst) + 1;
            let script = Arc::clone(&script);
            std::thread::spawn(move || {
                let mut frames = Frames(stream);
                let mut preface = [0; 24];
                if frames.0.read_exact(&mut preface).is_ok() && frames.say((SETTINGS, 0, 0, settings)).is_some() {
                    script(number, frames);
                }
            });
        }
    });
    (address, connections)
}

/// An origin of HTTP/1 that switches protocols, and sends back in capitals what it hears.
pub fn switching() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback port is free");
    let address = listener.local_addr().expect("a bound listener has an address");
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let (mut head, mut byte) = (Vec::new(), [0]);
                while !head.ends_with(b"\r\n\r\n") && stream.read_exact(&mut byte).is_ok() {
                    head.push(byte[0]);
                }
                let switches = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
                let _ = stream.write_all(switches.as_bytes());
                let mut piece = [0; 4096];
                while let Ok(length @ 1..) = stream.read(&mut piece) {
                    let _ = stream.write_all(&piece[..length].to_ascii_uppercase());
                }
            });
        }
    });
    address
}
