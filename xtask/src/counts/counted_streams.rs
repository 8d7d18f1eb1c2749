//! The clients of a run that speak HTTP/2, by prior knowledge and by the crate `h2`, which larder does not use: several streams at once.

use std::io;
use std::net::Ipv4Addr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use h2::client::SendRequest;
use http::Request;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::client_record::ClientEnd;
use super::counted_load::CountedLoad;
use super::drawn_request::DrawnRequest;
use crate::dice::Dice;

const STREAMS_MAX: u64 = 8;
/// For the end of a connection.
const PATIENCE: Duration = Duration::from_secs(10);

/// Until all has been asked.
pub fn ask(load: &Arc<CountedLoad>, mut dice: Dice) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be made");
    while !load.is_over() {
        if let Err(error) = runtime.block_on(connect(load, &mut dice)) {
            load.record.book().troubles.push(format!("a client of HTTP/2: {error}"));
        }
    }
}

async fn connect(load: &Arc<CountedLoad>, dice: &mut Dice) -> io::Result<()> {
    let socket = std::net::TcpStream::connect((Ipv4Addr::LOCALHOST, load.port))?;
    socket.set_nodelay(true)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    let mut behind = socket.try_clone()?;
    socket.set_nonblocking(true)?;
    let socket = TcpStream::from_std(socket)?;
    let carried = Arc::new(Carried::default());
    let counted = CountedSocket { socket, carried: Arc::clone(&carried) };
    {
        let mut book = load.record.book();
        book.connections += 1;
        book.http2_connections += 1;
    }
    let (requests, connection) = h2::client::handshake(counted).await.map_err(io::Error::other)?;
    let connection = tokio::spawn(connection);
    let mut streams = JoinSet::new();
    for _ in 0..1 + dice.below(STREAMS_MAX) {
        let Some(request) = load.draw(dice) else { break };
        let leaves = load.leaves && dice.below(6) == 0;
        streams.spawn(exchange(Arc::clone(load), requests.clone(), request, leaves));
    }
    while streams.join_next().await.is_some() {}
    drop(requests);
    // How it ends is larder's business; that it does is ours.
    let _ = connection.await;
    behind.set_nonblocking(false)?;
    let last = io::copy(&mut behind, &mut io::sink()).unwrap_or(0);
    carried.received.fetch_add(last, SeqCst);
    let mut book = load.record.book();
    book.bytes_sent += carried.sent.load(SeqCst);
    book.bytes_received += carried.received.load(SeqCst);
    Ok(())
}

async fn exchange(load: Arc<CountedLoad>, requests: SendRequest<Bytes>, request: DrawnRequest, leaves: bool) {
    let end = if leaves { begin_and_leave(requests, &request).await } else { answered(requests, &request).await };
    if end == ClientEnd::Left {
        load.record.book().resets += 1;
    }
    load.record.note(request.number, (request.method, request.target), end);
}

fn head_of(request: &DrawnRequest) -> Request<()> {
    let target = format!("http://a.test{}", request.target);
    let mut head = Request::builder().method(request.method).uri(target).header("user-agent", &request.number);
    for (name, value) in &request.fields {
        head = head.header(*name, *value);
    }
    if matches!(request.method, "POST" | "PUT") && !request.is_chunked {
        head = head.header("content-length", request.body.len());
    }
    head.version(http::Version::HTTP_2).body(()).expect("it is a request")
}

async fn answered(requests: SendRequest<Bytes>, request: &DrawnRequest) -> ClientEnd {
    let Ok(mut requests) = requests.ready().await else { return ClientEnd::Dropped };
    let is_bodiless = request.body.is_empty();
    let Ok((answer, mut stream)) = requests.send_request(head_of(request), is_bodiless) else {
        return ClientEnd::Dropped;
    };
    if !is_bodiless {
        // An answer that does not wait for it is one.
        let _ = stream.send_data(Bytes::from(request.body.clone()), true);
    }
    let Ok(answer) = answer.await else { return ClientEnd::Dropped };
    let (status, mut body) = (answer.status().as_u16(), answer.into_body());
    let mut body_bytes = 0;
    loop {
        match body.data().await {
            None => break,
            Some(Ok(bytes)) => {
                body_bytes += bytes.len() as u64;
                let _ = body.flow_control().release_capacity(bytes.len());
            }
            Some(Err(_)) => return ClientEnd::Answered { status, body_bytes, is_whole: false },
        }
    }
    let is_whole = body.trailers().await.is_ok();
    ClientEnd::Answered { status, body_bytes, is_whole }
}

/// Takes its stream back before all of the answer is there.
async fn begin_and_leave(requests: SendRequest<Bytes>, request: &DrawnRequest) -> ClientEnd {
    let Ok(mut requests) = requests.ready().await else { return ClientEnd::Dropped };
    let Ok((answer, mut stream)) = requests.send_request(head_of(request), request.body.is_empty()) else {
        return ClientEnd::Dropped;
    };
    // The head goes out meanwhile.
    tokio::time::sleep(Duration::from_millis(request.target.len() as u64 % 4)).await;
    stream.send_reset(h2::Reason::CANCEL);
    drop(answer);
    ClientEnd::Left
}

#[derive(Debug, Default)]
struct Carried {
    sent: AtomicU64,
    received: AtomicU64,
}

/// A socket with what went over it.
struct CountedSocket {
    socket: TcpStream,
    carried: Arc<Carried>,
}

impl AsyncRead for CountedSocket {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let had = into.filled().len();
        ready!(Pin::new(&mut self.socket).poll_read(cx, into))?;
        self.carried.received.fetch_add((into.filled().len() - had) as u64, SeqCst);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for CountedSocket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.socket).poll_write(cx, bytes))?;
        self.carried.sent.fetch_add(written as u64, SeqCst);
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}
