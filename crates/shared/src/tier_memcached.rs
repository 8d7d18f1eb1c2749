//! One memcached of the tier: a connection on which questions follow one another without waiting for answers, made anew when it breaks.
//!
//! The right to fetch is memcached's own: who finds nothing makes an empty item, and is told that it has won; others find the empty item.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, oneshot};
use wire::memcached::{Asked, Command, Expected, Progress, Reply, StoreVerb, read_reply};

use crate::limits::{CONNECT_TIMEOUT, LINE_BYTES_MAX, RIGHT_LIFE, VALUE_BYTES_MAX};
use crate::looked::Looked;

/// At once from the socket.
const READ_BYTES: usize = 64 << 10;

pub struct MemcachedLane {
    address: String,
    connection: Mutex<Option<mpsc::UnboundedSender<Question>>>,
}

/// What is written, and who waits for the answer.
struct Question {
    text: Vec<u8>,
    wanted: Wanted,
}

struct Wanted {
    expected: Expected,
    key: String,
    tell: oneshot::Sender<(Reply, Bytes)>,
}

/// Those that wait, in order.
type Waiting = VecDeque<Wanted>;

impl MemcachedLane {
    /// `address` as HOST:PORT.
    pub fn new(address: String) -> MemcachedLane {
        MemcachedLane { address, connection: Mutex::new(None) }
    }

    pub async fn look(&self, key: &str, wants_right: bool) -> Result<Looked, String> {
        let (life_s, name) = (RIGHT_LIFE.as_secs(), key.as_bytes());
        let command = match wants_right {
            true => Command::MetaVivify { key: name, life_s },
            false => Command::MetaGet { key: name, exptime: None },
        };
        match self.ask(key, &command).await? {
            (Reply::Miss, _) => Ok(Looked::Nothing),
            (Reply::Item(item), text) if !item.value.is_empty() => Ok(Looked::Value(text.slice(item.value))),
            (Reply::Item(item), _) => Ok(match item.cas.filter(|_| item.is_won) {
                Some(token) => Looked::Right(token),
                None if wants_right => Looked::Taken,
                None => Looked::Nothing,
            }),
            (other, text) => Err(refusal(&other, &text)),
        }
    }

    /// `false`: it would not have it.
    pub async fn put(&self, key: &str, value: &[u8], life_s: u64) -> Result<bool, String> {
        let store = Command::MetaStore {
            verb: StoreVerb::Set,
            key: key.as_bytes(),
            flags: 0,
            exptime: life_s as i64,
            cas: None,
            value,
        };
        match self.ask(key, &store).await? {
            (Reply::Stored { .. }, _) => Ok(true),
            // It is too large, or there is no memory.
            (Reply::Error { .. } | Reply::NotStored, _) => Ok(false),
            (other, text) => Err(refusal(&other, &text)),
        }
    }

    /// If it is still that one, where a token says which.
    pub async fn delete(&self, key: &str, token: Option<u64>) -> Result<(), String> {
        let delete = Command::MetaDelete { key: key.as_bytes(), cas: token, stale_s: None };
        match self.ask(key, &delete).await? {
            (Reply::Stored { .. } | Reply::NotFound | Reply::Exists | Reply::Miss, _) => Ok(()),
            (other, text) => Err(refusal(&other, &text)),
        }
    }

    /// Who asks next makes a connection.
    pub fn hang_up(&self) {
        *self.connection.lock() = None;
    }

    async fn ask(&self, key: &str, command: &Command<'_>) -> Result<(Reply, Bytes), String> {
        let mut text = Vec::new();
        command.write(&mut text);
        let (tell, told) = oneshot::channel();
        let wanted = Wanted { expected: command.expected(), key: key.to_owned(), tell };
        let connection = self.connection.lock().clone().filter(|connection| !connection.is_closed());
        let connection = match connection {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        connection.send(Question { text, wanted }).map_err(|_| "the connection was closed".to_owned())?;
        told.await.map_err(|_| "the connection broke, or its answer was none".to_owned())
    }

    /// Two may do so at once; the later one stays.
    async fn connect(&self) -> Result<mpsc::UnboundedSender<Question>, String> {
        let connecting = tokio::time::timeout(CONNECT_TIMEOUT, TcpStream::connect(&self.address));
        let socket =
            connecting.await.map_err(|_| "no connection in time".to_owned())?.map_err(|why| why.to_string())?;
        socket.set_nodelay(true).map_err(|why| why.to_string())?;
        let (from, to) = socket.into_split();
        let (questions, asked) = mpsc::unbounded_channel();
        let waiting = Mutex::new(Waiting::new());
        // It is over when either of them is, and nobody waits any more.
        tokio::spawn(async move {
            tokio::select! {
                () = write(asked, to, &waiting) => {}
                () = read(from, &waiting) => {}
            }
        });
        *self.connection.lock() = Some(questions.clone());
        Ok(questions)
    }
}

async fn write(mut asked: mpsc::UnboundedReceiver<Question>, mut to: OwnedWriteHalf, waiting: &Mutex<Waiting>) {
    let mut text = Vec::new();
    while let Some(first) = asked.recv().await {
        text.clear();
        let mut next = Some(first);
        while let Some(Question { text: more, wanted }) = next.take() {
            waiting.lock().push_back(wanted);
            text.extend_from_slice(&more);
            if text.len() < READ_BYTES {
                next = asked.try_recv().ok();
            }
        }
        if to.write_all(&text).await.is_err() {
            break;
        }
    }
}

async fn read(mut from: OwnedReadHalf, waiting: &Mutex<Waiting>) {
    let mut came = BytesMut::new();
    loop {
        came.reserve(READ_BYTES);
        match from.read_buf(&mut came).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        while !came.is_empty() {
            let mut waiting = waiting.lock();
            // Nobody asked for this.
            let Some(wanted) = waiting.front() else { return };
            let asked =
                Asked { expected: wanted.expected, key: wanted.key.as_bytes(), value_bytes_max: VALUE_BYTES_MAX };
            match read_reply(&came, &asked) {
                Ok(Progress::Whole { reply, consumed }) => {
                    let text = came.split_to(consumed).freeze();
                    // Who asked may have given up.
                    let _ = waiting.pop_front().map(|wanted| wanted.tell.send((reply, text)));
                }
                Ok(Progress::More { whole_bytes_min }) => {
                    came.reserve(whole_bytes_min.saturating_sub(came.len()).min(VALUE_BYTES_MAX + 2 * LINE_BYTES_MAX));
                    break;
                }
                Err(_) => return,
            }
        }
    }
}

fn refusal(reply: &Reply, text: &Bytes) -> String {
    match reply {
        Reply::Error { text: said, .. } => String::from_utf8_lossy(&text[said.clone()]).chars().take(100).collect(),
        other => format!("its answer was none: {other:?}").chars().take(100).collect(),
    }
}
