//! The log as it lies in Redis or Valkey, and the two conversations with it: one that says (orders, words), one that listens.
//!
//! Under one name (`{larder}` as it is configured) there are two streams, the orders and the words of nodes, the number of the last
//! order and the epoch. Both scripts change them in one step, so orders are numbered without gaps, and whoever says a word learns how far the
//! log went at that very moment. All keys share a hash tag: in a cluster they lie in one slot.

use std::time::Duration;

use engines::{EnginePlace, sentence};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Cmd, Script, Value};

use crate::limits::{
    ANSWER_TIMEOUT, CONNECT_TIMEOUT, LOG_ENTRIES_MAX, ORDER_BYTES_MAX, READ_AT_ONCE, READ_WAIT, WORDS_MAX,
};
use crate::node::Figures;
use crate::position::{Position, StreamId};
use crate::roll::{SilentNode, Word};

/// KEYS: orders, words, number, epoch. ARGV: entries at most, an epoch if there is none, how many words an entry has, then those of each
/// entry. What it says is of the last one.
const APPEND: &str = "
local epoch = redis.call('GET', KEYS[4])
if not epoch then
  epoch = ARGV[2]
  redis.call('SET', KEYS[4], epoch)
end
local number, id
local words = tonumber(ARGV[3])
for first = 4, #ARGV, words do
  number = redis.call('INCR', KEYS[3])
  local fields = {'epoch', epoch, 'number', number}
  for at = first, first + words - 1 do fields[#fields + 1] = ARGV[at] end
  id = redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[1], '*', unpack(fields))
end
local last = redis.call('XREVRANGE', KEYS[2], '+', '-', 'COUNT', 1)
return {epoch, number, id, last[1] and last[1][1] or '0-0'}
";

/// KEYS: the same. ARGV: words at most, an epoch if there is none, then the fields of the word.
const SAY: &str = "
local epoch = redis.call('GET', KEYS[4])
if not epoch then
  epoch = ARGV[2]
  redis.call('SET', KEYS[4], epoch)
end
local fields = {}
for at = 3, #ARGV do fields[#fields + 1] = ARGV[at] end
local said = redis.call('XADD', KEYS[2], 'MAXLEN', '~', ARGV[1], '*', unpack(fields))
local last = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)
return {epoch, tonumber(redis.call('GET', KEYS[3]) or '0'),
  last[1] and last[1][1] or '0-0', said}
";

/// Where the log is.
#[derive(Clone)]
pub struct LogPlace {
    engine: EnginePlace,
    keys: [String; 4],
}

/// An order as it stands in the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    pub at: Position,
    /// What sort of order it is; one that a node does not know it cannot carry out.
    pub kind: String,
    pub text: String,
    /// What its sender knows it by.
    pub token: String,
    /// Somebody waits until it is applied.
    pub is_waited_for: bool,
}

/// What is read at once.
#[derive(Debug, Default)]
pub struct Batch {
    pub entries: Vec<Entry>,
    pub words: Vec<(StreamId, Word)>,
}

/// An order that has been put into the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Appended {
    pub at: Position,
    /// The last word that was said before it.
    pub words_to: StreamId,
}

/// How far the log went when a word was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEnd {
    pub last: Position,
    /// The word itself.
    pub said: StreamId,
}

/// The conversation that says.
#[derive(Clone)]
pub struct Speaker {
    connection: MultiplexedConnection,
    keys: [String; 4],
}

/// The conversation that listens.
pub struct Listener {
    connection: MultiplexedConnection,
    keys: [String; 4],
}

impl LogPlace {
    /// `url` and `authorities` as [`EnginePlace::new`] takes them; `name` is what the keys begin with.
    pub fn new(url: &str, name: &str, authorities: Option<Vec<u8>>) -> Result<LogPlace, String> {
        let engine = EnginePlace::new(url, authorities)?;
        let key = |of: &str| format!("{{{name}}}:{of}");
        Ok(LogPlace { engine, keys: [key("orders"), key("words"), key("number"), key("epoch")] })
    }

    /// Without one whoever reaches the log can write to it.
    pub fn has_password(&self) -> bool {
        self.engine.has_password()
    }

    pub async fn speaker(&self) -> Result<Speaker, String> {
        Ok(Speaker { connection: self.connection(ANSWER_TIMEOUT).await?, keys: self.keys.clone() })
    }

    pub async fn listener(&self) -> Result<Listener, String> {
        Ok(Listener { connection: self.connection(ANSWER_TIMEOUT + READ_WAIT).await?, keys: self.keys.clone() })
    }

    async fn connection(&self, answers_within: Duration) -> Result<MultiplexedConnection, String> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT_TIMEOUT))
            .set_response_timeout(Some(answers_within));
        self.engine.connection(&config).await
    }
}

impl Speaker {
    /// Puts orders into the log, one behind the other and all at once; there is one at least. What is said is of the last. After an error nobody
    /// knows whether they are there. `epoch_if_none`: one that no other log has had.
    pub async fn append(&mut self, orders: &[NewOrder<'_>], epoch_if_none: &str) -> Result<Appended, String> {
        if orders.iter().any(|order| order.text.len() > ORDER_BYTES_MAX) {
            return Err(format!("the order has more than {ORDER_BYTES_MAX} bytes"));
        }
        let script = Script::new(APPEND);
        let mut call = script.prepare_invoke();
        self.keys.iter().for_each(|key| {
            call.key(key);
        });
        call.arg(LOG_ENTRIES_MAX).arg(epoch_if_none).arg(NewOrder::WORDS);
        for word in orders.iter().flat_map(NewOrder::words) {
            call.arg(word);
        }
        let (epoch, number, id, words_to): (String, u64, String, String) =
            call.invoke_async(&mut self.connection).await.map_err(|why| sentence(&why))?;
        Ok(Appended { at: Position { epoch, number, id: place(&id)? }, words_to: place(&words_to)? })
    }

    /// The first order that the log remembers.
    pub async fn oldest(&mut self) -> Result<Option<Position>, String> {
        let mut range = Cmd::new();
        range.arg("XRANGE").arg(&self.keys[0]).arg("-").arg("+").arg("COUNT").arg(1);
        let came: Value = range.query_async(&mut self.connection).await.map_err(|why| sentence(&why))?;
        let first = list(came)?.into_iter().next().map(entry_of).transpose()?;
        Ok(first.map(|(id, fields)| fields.entry(id).at))
    }

    /// `epoch_if_none`: one that no other log has had.
    pub async fn say(&mut self, word: &Word, epoch_if_none: &str) -> Result<LogEnd, String> {
        let script = Script::new(SAY);
        let mut call = script.prepare_invoke();
        self.keys.iter().for_each(|key| {
            call.key(key);
        });
        call.arg(WORDS_MAX).arg(epoch_if_none);
        let Figures { requests, hits } = word.figures;
        for (name, value) in [
            ("node", word.node.clone()),
            ("run", word.run.clone()),
            ("version", word.version.clone()),
            ("epoch", word.applied.epoch.clone()),
            ("applied", word.applied.number.to_string()),
            ("applied_id", word.applied.id.to_string()),
            ("lease_ms", word.lease_ms.to_string()),
            ("requests", requests.to_string()),
            ("hits", hits.to_string()),
            ("complaint", word.complaint.clone()),
            ("silent", word.silent.iter().map(SilentNode::text).collect::<Vec<_>>().join(";")),
            ("leaving", u8::from(word.is_leaving).to_string()),
        ] {
            call.arg(name).arg(value);
        }
        let (epoch, number, id, said): (String, u64, String, String) =
            call.invoke_async(&mut self.connection).await.map_err(|why| sentence(&why))?;
        Ok(LogEnd { last: Position { epoch, number, id: place(&id)? }, said: place(&said)? })
    }
}

/// An order that is to be put into the log.
pub struct NewOrder<'a> {
    pub kind: &'a str,
    pub text: &'a str,
    pub token: &'a str,
    pub is_waited_for: bool,
}

impl<'a> NewOrder<'a> {
    const WORDS: usize = 8;

    /// Names and values in turn.
    fn words(&self) -> [&'a str; NewOrder::WORDS] {
        let waited_for = if self.is_waited_for { "1" } else { "0" };
        ["kind", self.kind, "order", self.text, "token", self.token, "waited_for", waited_for]
    }
}

impl Listener {
    /// What comes behind these places; nothing, where nothing comes in time.
    pub async fn read(&mut self, orders_from: StreamId, words_from: StreamId) -> Result<Batch, String> {
        let wait_ms = READ_WAIT.as_millis() as u64;
        let mut read = Cmd::new();
        read.arg("XREAD").arg("COUNT").arg(READ_AT_ONCE).arg("BLOCK").arg(wait_ms).arg("STREAMS");
        read.arg(&self.keys[0]).arg(&self.keys[1]);
        read.arg(orders_from.to_string()).arg(words_from.to_string());
        let came: Value = read.query_async(&mut self.connection).await.map_err(|why| sentence(&why))?;
        let mut batch = Batch::default();
        for (stream, items) in pairs(came)? {
            let is_orders = text(stream)? == self.keys[0];
            for item in list(items)? {
                let (id, fields) = entry_of(item)?;
                match is_orders {
                    true => batch.entries.push(fields.entry(id)),
                    // What is no word of a node says nothing of one.
                    false => batch.words.extend(fields.word().map(|word| (id, word))),
                }
            }
        }
        Ok(batch)
    }
}

fn entry_of(item: Value) -> Result<(StreamId, Fields), String> {
    let [id, fields] = <[Value; 2]>::try_from(list(item)?).map_err(|_| foreign("an entry", "of other parts"))?;
    Ok((place(&text(id)?)?, Fields(list(fields)?.into_iter().map(text).collect::<Result<_, _>>()?)))
}

/// Names and values in turn.
struct Fields(Vec<String>);

impl Fields {
    fn get(&self, name: &str) -> Option<&str> {
        self.0.chunks_exact(2).find(|pair| pair[0] == name).map(|pair| pair[1].as_str())
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.get(name)?.parse().ok()
    }

    fn entry(&self, id: StreamId) -> Entry {
        let made = || {
            Some(Entry {
                at: Position { epoch: self.get("epoch")?.to_owned(), number: self.number("number")?, id },
                kind: self.get("kind")?.to_owned(),
                text: self.get("order")?.to_owned(),
                token: self.get("token").unwrap_or_default().to_owned(),
                is_waited_for: self.get("waited_for") == Some("1"),
            })
        };
        // An entry of somebody else's follows nothing: it has no number.
        made().unwrap_or_else(|| Entry { at: Position { id, ..Position::default() }, ..Entry::default() })
    }

    fn word(&self) -> Option<Word> {
        Some(Word {
            node: self.get("node")?.to_owned(),
            run: self.get("run")?.to_owned(),
            version: self.get("version").unwrap_or_default().to_owned(),
            applied: Position {
                epoch: self.get("epoch")?.to_owned(),
                number: self.number("applied")?,
                id: StreamId::of(self.get("applied_id")?)?,
            },
            lease_ms: self.number("lease_ms")?,
            figures: Figures { requests: self.number("requests").unwrap_or(0), hits: self.number("hits").unwrap_or(0) },
            complaint: self.get("complaint").unwrap_or_default().to_owned(),
            silent: self.get("silent").unwrap_or_default().split(';').filter_map(SilentNode::of).collect(),
            is_leaving: self.get("leaving") == Some("1"),
        })
    }
}

fn list(value: Value) -> Result<Vec<Value>, String> {
    match value {
        Value::Array(items) => Ok(items),
        Value::Nil => Ok(Vec::new()),
        other => Err(foreign("a list", &format!("{other:?}"))),
    }
}

/// Streams and their entries, as RESP2 and RESP3 write them.
fn pairs(value: Value) -> Result<Vec<(Value, Value)>, String> {
    if let Value::Map(pairs) = value {
        return Ok(pairs);
    }
    let pair = |item: Value| {
        let parts = <[Value; 2]>::try_from(list(item)?).map_err(|_| foreign("a stream", "of other parts"))?;
        let [stream, items] = parts;
        Ok((stream, items))
    };
    list(value)?.into_iter().map(pair).collect()
}

fn text(value: Value) -> Result<String, String> {
    match value {
        Value::BulkString(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Value::SimpleString(text) => Ok(text),
        other => Err(foreign("a text", &format!("{other:?}"))),
    }
}

fn place(text: &str) -> Result<StreamId, String> {
    StreamId::of(text).ok_or_else(|| foreign("an id", text))
}

fn foreign(wanted: &str, got: &str) -> String {
    let got: String = got.chars().take(100).collect();
    format!("it answered what larder does not understand: {wanted} was expected, and it was {got}")
}
