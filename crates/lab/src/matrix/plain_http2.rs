//! A connection of HTTP/2 outside of the load: a page is looked at over it, or it is held while others are opened.
//!
//! Frames are the crate `h2`'s affair, as they are the load's, because the lab has no reader of its own for them; that a
//! body has the right bytes is found out here without the load's readers.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use h2::client::{Builder, Connection, SendRequest};
use http::Request;
use http::header::CONTENT_ENCODING;
use tokio::net::TcpStream;
use tokio::runtime::LocalRuntime;
use tokio::time::{sleep, timeout};

use crate::answer_coding::SaidCoding;
use crate::catalogue::{Catalogue, Recipe};
use crate::http2_requests::Http2Requests;
use crate::lab_url::LabUrl;
use crate::limits::{ANSWER_HEAD_BYTES_MAX, HTTP2_WINDOW_BYTES, PLAIN_FETCH_BYTES_MAX};
use crate::matrix::direct_asking::Asking;
use crate::matrix::plain_fetch::Fetched;
use crate::read_ahead::{ReadAhead, ReadPool};
use crate::transport::Transport;

pub(crate) struct Http2Line {
    sender: SendRequest<Bytes>,
    connection: Pin<Box<Connection<Transport, Bytes>>>,
}

/// For as long as news of connections are waited for before they are counted.
const NEWS: Duration = Duration::from_millis(100);

/// On which lines live; on the thread of whoever asks.
pub(crate) fn line_runtime() -> io::Result<LocalRuntime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build_local(Default::default())
}

/// One request on a connection of its own.
pub(crate) fn fetch(asking: &Asking, target: &str, fields: &[String]) -> Result<Fetched, String> {
    let runtime = line_runtime().map_err(|error| error.to_string())?;
    let request = request(asking, target, fields)?;
    Http2Line::open(&runtime, asking)?.fetch(&runtime, &request, asking.patience)
}

/// The same that the load would send.
pub(crate) fn request(asking: &Asking, target: &str, fields: &[String]) -> Result<Request<()>, String> {
    let url = LabUrl { path: target.to_owned(), ..asking.site()? };
    let recipe = Recipe { fields: fields.to_vec(), ..Recipe::default() };
    let catalogue = Catalogue::of_url(&url, &recipe).map_err(|error| error.to_string())?;
    Http2Requests::of(&catalogue, asking.spoken.tls).map(|requests| requests.make(0).0)
}

impl Http2Line {
    pub(crate) fn open(runtime: &LocalRuntime, asking: &Asking) -> Result<Http2Line, String> {
        let patience = asking.patience;
        let opened = runtime.block_on(async { timeout(patience, Http2Line::begin(asking)).await });
        opened.unwrap_or_else(|_| Err(format!("no connection after {patience:?}")))
    }

    async fn begin(asking: &Asking) -> Result<Http2Line, String> {
        let text = |error: io::Error| error.to_string();
        let socket = TcpStream::connect(asking.address).await.map_err(text)?;
        socket.set_nodelay(true).map_err(text)?;
        let stream = ReadAhead::new(socket, ReadPool::default());
        let transport = match &asking.tls {
            None => Transport::Plain(stream),
            Some(tls) => {
                let begun = tls.of_user().begin(stream).await.map_err(|fault| fault.text)?;
                Transport::Tls(Box::new(begun.0))
            }
        };
        let begun = Builder::new()
            .initial_window_size(HTTP2_WINDOW_BYTES)
            .initial_connection_window_size(HTTP2_WINDOW_BYTES)
            .max_header_list_size(ANSWER_HEAD_BYTES_MAX as u32)
            .enable_push(false)
            .handshake(transport);
        let (sender, connection) = begun.await.map_err(|error| error.to_string())?;
        Ok(Http2Line { sender, connection: Box::pin(connection) })
    }

    pub(crate) fn fetch(
        &mut self,
        runtime: &LocalRuntime,
        request: &Request<()>,
        patience: Duration,
    ) -> Result<Fetched, String> {
        let Http2Line { sender, connection } = self;
        runtime.block_on(async {
            let answer = async {
                let mut sender = sender.clone().ready().await?;
                let (response, _) = sender.send_request(request.clone(), true)?;
                let (head, mut stream) = response.await?.into_parts();
                let mut body = Vec::new();
                while let Some(data) = stream.data().await {
                    let data = data?;
                    stream.flow_control().release_capacity(data.len())?;
                    body.extend_from_slice(&data);
                    if body.len() as u64 > PLAIN_FETCH_BYTES_MAX {
                        break;
                    }
                }
                let said = head.headers.get_all(CONTENT_ENCODING).iter();
                let coding = said.fold(SaidCoding::None, |said, value| said.and(value.as_bytes()));
                Ok(Fetched { status: head.status.as_u16(), body, coding })
            };
            tokio::select! {
                biased;
                answered = timeout(patience, answer) => match answered {
                    Ok(answered) => answered.map_err(|error: h2::Error| error.to_string()),
                    Err(_) => Err(format!("no whole answer after {patience:?}")),
                },
                ended = connection.as_mut() => Err(match ended {
                    Ok(()) => "the connection was closed".to_owned(),
                    Err(error) => error.to_string(),
                }),
            }
        })
    }

    /// How many of them the server has not ended.
    pub(crate) fn alive(runtime: &LocalRuntime, lines: &mut Vec<Http2Line>) -> u64 {
        runtime.block_on(async {
            let reading = poll_fn(|cx| {
                lines.retain_mut(|line| line.connection.as_mut().poll(cx).is_pending());
                Poll::<()>::Pending
            });
            tokio::select! {
                () = reading => {}
                () = sleep(NEWS) => {}
            }
        });
        lines.len() as u64
    }
}
