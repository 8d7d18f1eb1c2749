//! An HTTP/2 server that fails on demand: the path says how. It counts what it was asked, as `faulty_origin` does for HTTP/1.
//!
//! On the crate `h2`'s server side; what it counts is held against what the load generator counts.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use h2::server::{Connection, SendResponse};
use h2::{Reason, server};
use http::{Request, Response, StatusCode};
use tokio::net::{TcpListener, TcpStream};

pub struct FakeHttp2 {
    pub address: SocketAddr,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    asked: AtomicU64,
    connections: AtomicU64,
}

/// On `/goaway` a connection ends in good order behind so many streams, on `/abrupt` with an error.
pub const STREAMS_OF_A_CONNECTION: u64 = 10;

impl FakeHttp2 {
    /// On a free port, until the tests end.
    pub fn start() -> FakeHttp2 {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a loopback port is free");
        let address = listener.local_addr().expect("a bound listener has an address");
        let counts = Arc::new(Counts::default());
        let shared = Arc::clone(&counts);
        std::thread::spawn(move || {
            listener.set_nonblocking(true).expect("a socket of ours");
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let listener = TcpListener::from_std(listener).expect("a listener of ours");
                while let Ok((stream, _)) = listener.accept().await {
                    shared.connections.fetch_add(1, Ordering::SeqCst);
                    tokio::spawn(serve(stream, Arc::clone(&shared)));
                }
            });
        });
        FakeHttp2 { address, counts }
    }

    /// Requests that were handed to it: those that a GOAWAY leaves undone are not.
    pub fn asked(&self) -> u64 {
        self.counts.asked.load(Ordering::SeqCst)
    }

    pub fn connections(&self) -> u64 {
        self.counts.connections.load(Ordering::SeqCst)
    }
}

async fn serve(stream: TcpStream, counts: Arc<Counts>) {
    let _ = stream.set_nodelay(true);
    let stream = stream.into_std().expect("a stream of this runtime");
    let other = stream.try_clone().expect("a descriptor is free");
    let stream = TcpStream::from_std(stream).expect("the runtime has it again");
    let mut builder = server::Builder::new();
    let Ok(mut connection) = builder.max_concurrent_streams(50).handshake::<_, Bytes>(stream).await else { return };
    let mut streams = 0;
    while let Some(Ok((request, respond))) = connection.accept().await {
        counts.asked.fetch_add(1, Ordering::SeqCst);
        streams += 1;
        let path = request.uri().path().to_owned();
        match (&*path, streams) {
            ("/goaway", STREAMS_OF_A_CONNECTION) => connection.graceful_shutdown(),
            ("/abrupt", STREAMS_OF_A_CONNECTION) => connection.abrupt_shutdown(Reason::ENHANCE_YOUR_CALM),
            ("/at-once", _) => connection.abrupt_shutdown(Reason::NO_ERROR),
            ("/cut", _) => return cut(connection, respond, other).await,
            _ => {}
        }
        tokio::spawn(answer(request, respond, path));
    }
}

async fn answer(request: Request<h2::RecvStream>, mut respond: SendResponse<Bytes>, path: String) {
    let head = |length: u64, status: u16| {
        let status = StatusCode::from_u16(status).expect("a status");
        Response::builder().status(status).header("content-length", length).body(()).expect("a good head")
    };
    let (response, body, ends) = match &*path {
        "/refused" => return respond.send_reset(Reason::REFUSED_STREAM),
        "/reset" => return respond.send_reset(Reason::INTERNAL_ERROR),
        "/silent" => return std::future::pending().await,
        "/busy" => (head(4, 503), "busy".to_owned(), true),
        "/truncated" => (head(10, 200), "01234".to_owned(), true),
        "/reset-later" | "/stalled" => (head(10, 200), "01234".to_owned(), false),
        "/large" => (head(300_000, 200), "0123456789".repeat(30_000), true),
        "/echo" => {
            let mut body = request.into_body();
            let mut text = String::new();
            while let Some(Ok(data)) = body.data().await {
                let _ = body.flow_control().release_capacity(data.len());
                text.push_str(&String::from_utf8_lossy(&data));
            }
            (head(text.len() as u64, 200), text, true)
        }
        _ => (head(10, 200), "0123456789".to_owned(), true),
    };
    let Ok(mut stream) = respond.send_response(response, false) else { return };
    let _ = stream.send_data(Bytes::from(body), ends);
    match &*path {
        "/reset-later" => stream.send_reset(Reason::INTERNAL_ERROR),
        "/stalled" => std::future::pending().await,
        _ => {}
    }
}

/// Half of a body, and then the end of the connection without a word.
async fn cut(
    mut connection: Connection<TcpStream, Bytes>,
    mut respond: SendResponse<Bytes>,
    socket: std::net::TcpStream,
) {
    let head = Response::builder().header("content-length", 10).body(()).expect("a good head");
    let stream = respond.send_response(head, false).and_then(|mut stream| {
        stream.send_data(Bytes::from_static(b"01234"), false)?;
        Ok(stream)
    });
    // Written, unless the socket has no room, which it has.
    std::future::poll_fn(|cx| {
        let _ = connection.poll_closed(cx);
        std::task::Poll::Ready(())
    })
    .await;
    // And read on, so that the client is not told of a reset.
    let _ = socket.shutdown(std::net::Shutdown::Write);
    let _ = std::future::poll_fn(|cx| connection.poll_closed(cx)).await;
    drop(stream);
}
