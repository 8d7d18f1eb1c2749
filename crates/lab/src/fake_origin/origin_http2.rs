//! One connection of the origin over HTTP/2: streams are accepted and answered, each by a task of its own, until the
//! connection ends, by a fault of one of them or in good order.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use bytes::Bytes;
use h2::server::{Builder, Connection, SendResponse};
use h2::{Reason, RecvStream};
use http::Request;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::{sleep, timeout};

use crate::fake_origin::frame_socket::FrameSocket;
use crate::fake_origin::origin_desk::OriginDesk;
use crate::fake_origin::origin_plan::{Ending, GoAway};
use crate::fake_origin::origin_socket::OriginSocket;
use crate::fake_origin::origin_stream::{OriginStream, StreamEnd};
use crate::limits::{ORIGIN_HANDSHAKE_PATIENCE, ORIGIN_IDLE, ORIGIN_SEND_BUFFER_BYTES, ORIGIN_WRITE_PATIENCE};

struct Http2Connection {
    desk: Rc<OriginDesk>,
    connection: Connection<FrameSocket, Bytes>,
    socket: FrameSocket,
    number: u64,
    /// Streams that are being answered.
    under_way: usize,
    /// After a GOAWAY of our own: what it left undone is kept, because a stream that is dropped says that it was reset.
    undone: Option<Vec<(Request<RecvStream>, SendResponse<Bytes>)>>,
    ends: (Sender<StreamEnd>, Receiver<StreamEnd>),
}

/// What happens on a connection.
enum Event {
    Accepted(Box<(Request<RecvStream>, SendResponse<Bytes>)>),
    /// A stream's task has ended.
    Ended(StreamEnd),
    /// The client has ended it, or broken it; or it was idle for too long.
    Over,
}

/// `begun`: what was read already. From the preface to the end.
pub(crate) async fn converse(desk: Rc<OriginDesk>, socket: OriginSocket, begun: Vec<u8>, number: u64) {
    let settings = desk.shared.settings.http2.unwrap_or_default();
    let socket = FrameSocket::new(socket, begun);
    let mut builder = Builder::new();
    builder.max_concurrent_streams(settings.streams_max).initial_window_size(settings.window_bytes);
    builder.max_send_buffer_size(ORIGIN_SEND_BUFFER_BYTES);
    let handshake = timeout(ORIGIN_HANDSHAKE_PATIENCE, builder.handshake(socket.clone())).await;
    let Ok(Ok(connection)) = handshake else { return };
    // Whoever ends waits until that was heard.
    let ends = channel(1);
    let mut conversation =
        Http2Connection { desk, connection, socket: socket.clone(), number, under_way: 0, undone: None, ends };
    let ending = conversation.live().await;
    drop(conversation);
    let Some(socket) = socket.into_socket() else { return };
    match ending {
        Some(ending) => socket.end_by_fault(ending).await,
        None => socket.linger().await,
    }
}

impl Http2Connection {
    /// How its socket ends: by a fault, or in good order.
    async fn live(&mut self) -> Option<Ending> {
        loop {
            match self.next().await {
                Event::Over => return None,
                Event::Accepted(both) if self.undone.is_some() => self.leave(*both),
                Event::Accepted(both) => self.begin(*both).await?,
                Event::Ended(end) => {
                    self.under_way -= 1;
                    match end {
                        StreamEnd::Done => {}
                        StreamEnd::GoAway => self.connection.graceful_shutdown(),
                        StreamEnd::Reset(mut respond) => {
                            // A reset takes back what was not sent yet.
                            self.flush().await;
                            respond.send_reset(Reason::INTERNAL_ERROR);
                        }
                        StreamEnd::Cut(respond) => {
                            self.flush().await;
                            drop(respond);
                            return Some(Ending::Cut);
                        }
                    }
                }
            }
            if self.undone.is_some() && self.under_way == 0 {
                self.flush().await;
                return None;
            }
        }
    }

    async fn next(&mut self) -> Event {
        tokio::select! {
            biased;
            accepted = self.connection.accept() => match accepted {
                Some(Ok(both)) => Event::Accepted(Box::new(both)),
                Some(Err(_)) | None => Event::Over,
            },
            Some(end) = self.ends.1.recv() => Event::Ended(end),
            () = sleep(ORIGIN_IDLE), if self.under_way == 0 => Event::Over,
        }
    }

    /// None: the client is gone.
    async fn begin(&mut self, (request, respond): (Request<RecvStream>, SendResponse<Bytes>)) -> Option<()> {
        let stream = OriginStream::read(Rc::clone(&self.desk), request, respond, self.number);
        match stream.goaway() {
            Some(GoAway::Before) => {
                let both = stream.left_undone();
                let frame = goaway_frame(both.1.stream_id().as_u32().saturating_sub(2));
                self.leave(both);
                tokio::select! {
                    said = self.socket.say(&frame) => return said.ok(),
                    // What else comes meanwhile is left undone, too.
                    () = drive(&mut self.connection) => return None,
                }
            }
            Some(GoAway::Error) => {
                self.leave(stream.left_undone());
                self.connection.abrupt_shutdown(Reason::ENHANCE_YOUR_CALM);
                self.flush().await;
            }
            Some(GoAway::After) | None => {
                self.under_way += 1;
                let ends = self.ends.0.clone();
                tokio::task::spawn_local(async move {
                    let end = stream.live().await;
                    // The connection may have ended before.
                    let _ = ends.send(end).await;
                });
            }
        }
        Some(())
    }

    /// As many as the client may have at once: more the crate refuses.
    fn leave(&mut self, both: (Request<RecvStream>, SendResponse<Bytes>)) {
        self.undone.get_or_insert_default().push(both);
    }

    /// What was said goes out, and no frame but whole.
    async fn flush(&mut self) {
        let Http2Connection { connection, socket, .. } = self;
        let flushing = poll_fn(|cx| match connection.poll_closed(cx).is_ready() || socket.is_between_frames() {
            true => Poll::Ready(()),
            false => Poll::Pending,
        });
        let _ = timeout(ORIGIN_WRITE_PATIENCE, flushing).await;
    }
}

/// Reads and writes; ready when the connection has ended.
async fn drive(connection: &mut Connection<FrameSocket, Bytes>) {
    poll_fn(|cx| connection.poll_closed(cx).map(|_| ())).await;
}

/// RFC 9113 §6.8: no error, and the last stream of which anything was done.
fn goaway_frame(last_stream: u32) -> [u8; 17] {
    let mut frame = [0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    frame[9..13].copy_from_slice(&last_stream.to_be_bytes());
    frame
}
