//! Visitors of a soak that speak HTTP/2, several streams at once, in the clear and over TLS; by the crate `h2`, which larder does not use.

use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use bytes::Bytes;
use h2::client::SendRequest;
use h2::{Reason, RecvStream};
use http::{Request, Response};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::soak_books::{SoakQuestion, SoakRoad};
use super::soak_page::{HOST, SoakPage};
use super::soak_stage::SoakStage;
use super::soak_trust;
use crate::dice::Dice;
use crate::plain_exchange::Message;

const STREAMS_MAX: u64 = 8;
/// Rounds of streams on one connection.
const ROUNDS_MAX: u64 = 40;
const PAUSE_MS_MAX: u64 = 40;
const CODINGS: [Option<&str>; 3] = [None, Some("br, zstd"), Some("gzip")];
/// Of a request that its connection has not taken.
const SENT_AGAIN_MAX: usize = 3;

/// Why a stream brought no answer.
enum StreamEnd {
    /// Larder has not looked at it (RFC 9113 §8.7): it is put again.
    Untouched(String),
    Failed(String),
}

/// Until the soak is over.
pub fn visit(stage: &SoakStage, larder: usize, road: SoakRoad, mut dice: Dice) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be made");
    while !stage.is_over.load(SeqCst) {
        let question = stage.books.question(larder, road, SoakPage(0));
        if let Err(error) = runtime.block_on(connect(stage, larder, road, &mut dice)) {
            stage.books.fails(&question, &format!("connecting: {error}"));
        }
    }
}

async fn connect(stage: &SoakStage, larder: usize, road: SoakRoad, dice: &mut Dice) -> io::Result<()> {
    let larder_asked = &stage.larders[larder];
    if road == SoakRoad::Streams {
        let socket = TcpStream::connect((Ipv4Addr::LOCALHOST, larder_asked.port)).await?;
        return converse(stage, (larder, road), socket, dice).await;
    }
    let connector = TlsConnector::from(Arc::clone(&stage.trust.client(true)));
    let socket = TcpStream::connect((Ipv4Addr::LOCALHOST, larder_asked.tls_port)).await?;
    let socket = connector.connect(soak_trust::name(), socket).await?;
    converse(stage, (larder, road), socket, dice).await
}

/// One connection. What it has not taken is put on the next one.
async fn converse(
    stage: &SoakStage,
    (larder, road): (usize, SoakRoad),
    socket: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    dice: &mut Dice,
) -> io::Result<()> {
    let (requests, connection) = h2::client::handshake(socket).await.map_err(io::Error::other)?;
    let connection = tokio::spawn(connection);
    for _ in 0..1 + dice.below(ROUNDS_MAX) {
        if stage.is_over.load(SeqCst) {
            break;
        }
        let mut streams = Vec::new();
        for _ in 0..1 + dice.below(STREAMS_MAX) {
            let page = SoakPage::drawn(dice, || stage.books.once());
            let question = stage.books.question(larder, road, page);
            streams.push((question, CODINGS[dice.below(3) as usize]));
        }
        let asked = streams.into_iter().map(|(question, coding)| {
            let requests = requests.clone();
            async move {
                let end = answered(requests, &question, (coding, road == SoakRoad::StreamsOverTls)).await;
                (question, coding, end)
            }
        });
        let mut is_over = false;
        for (question, coding, end) in join_all(asked).await {
            match end {
                Ok(answer) => stage.books.close(&question, Ok(answer)),
                Err(StreamEnd::Failed(why)) => stage.books.close(&question, Err(why)),
                Err(StreamEnd::Untouched(why)) => {
                    is_over = true;
                    ask_again(stage, &question, coding, why).await;
                }
            }
        }
        if is_over {
            break;
        }
        tokio::time::sleep(Duration::from_millis(dice.below(PAUSE_MS_MAX))).await;
    }
    drop(requests);
    // How it ends is larder's business.
    let _ = connection.await;
    Ok(())
}

/// On connections of its own.
async fn ask_again(stage: &SoakStage, question: &SoakQuestion, coding: Option<&str>, mut why: String) {
    for _ in 0..SENT_AGAIN_MAX {
        stage.books.sent_again.fetch_add(1, SeqCst);
        match Box::pin(ask_alone(stage, question, coding)).await {
            Ok(answer) => return stage.books.close(question, Ok(answer)),
            Err(StreamEnd::Failed(why)) => return stage.books.close(question, Err(why)),
            Err(StreamEnd::Untouched(again)) => why = again,
        }
    }
    stage.books.close(question, Err(format!("{why}, {SENT_AGAIN_MAX} times")));
}

async fn ask_alone(stage: &SoakStage, question: &SoakQuestion, coding: Option<&str>) -> Result<Message, StreamEnd> {
    let failed = |error: &dyn std::fmt::Display| StreamEnd::Failed(format!("put again: {error}"));
    let larder = &stage.larders[question.larder];
    let socket = TcpStream::connect((Ipv4Addr::LOCALHOST, larder.port)).await.map_err(|error| failed(&error))?;
    let (requests, connection) = h2::client::handshake(socket).await.map_err(|error| failed(&error))?;
    let connection = tokio::spawn(connection);
    let answer = answered(requests, question, (coding, false)).await;
    let _ = connection.await;
    answer
}

async fn answered(
    requests: SendRequest<Bytes>,
    question: &SoakQuestion,
    (coding, is_tls): (Option<&str>, bool),
) -> Result<Message, StreamEnd> {
    let scheme = if is_tls { "https" } else { "http" };
    let mut head = Request::builder().method("GET").uri(format!("{scheme}://{HOST}{}", question.page.path()));
    if let Some(coding) = coding {
        head = head.header("accept-encoding", coding);
    }
    let head = head.version(http::Version::HTTP_2).body(()).expect("it is a request");
    // A connection that is over has taken nothing more.
    let untouched = |error: h2::Error| StreamEnd::Untouched(format!("not taken: {error}"));
    let mut requests = requests.ready().await.map_err(untouched)?;
    let (answer, _) = requests.send_request(head, true).map_err(untouched)?;
    drop(requests);
    message(answer.await.map_err(end_of)?).await
}

/// Behind GOAWAY what was not taken is ended by an error that says so.
fn end_of(error: h2::Error) -> StreamEnd {
    let is_untouched = error.is_remote() && error.is_go_away() && error.reason() == Some(Reason::NO_ERROR)
        || error.reason() == Some(Reason::REFUSED_STREAM);
    match is_untouched {
        true => StreamEnd::Untouched(error.to_string()),
        false => StreamEnd::Failed(error.to_string()),
    }
}

async fn message(answer: Response<RecvStream>) -> Result<Message, StreamEnd> {
    let start = format!("HTTP/2 {}", answer.status().as_u16());
    let line = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
        (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned())
    };
    let fields = answer.headers().iter().map(line).collect();
    let (mut message, mut body) = (Message { start, fields, body: Vec::new() }, answer.into_body());
    let cut = |error: h2::Error| StreamEnd::Failed(format!("the body is cut: {error}"));
    while let Some(bytes) = body.data().await {
        let bytes = bytes.map_err(cut)?;
        message.body.extend_from_slice(&bytes);
        let _ = body.flow_control().release_capacity(bytes.len());
    }
    let length = message.field("content-length").and_then(|length| length.parse::<usize>().ok());
    match length.is_none_or(|length| length == message.body.len()) {
        true => Ok(message),
        false => Err(StreamEnd::Failed(format!("{} bytes of {length:?}", message.body.len()))),
    }
}

/// All of them at once, in their order.
async fn join_all<F: Future>(all: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut under_way: Vec<_> = all.map(|one| (Box::pin(one), None)).collect();
    std::future::poll_fn(|context| {
        let mut is_over = true;
        for (one, output) in &mut under_way {
            if output.is_none() {
                match one.as_mut().poll(context) {
                    std::task::Poll::Ready(ready) => *output = Some(ready),
                    std::task::Poll::Pending => is_over = false,
                }
            }
        }
        if is_over { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    under_way.into_iter().filter_map(|(_, output)| output).collect()
}
