//! What an operator may say of a route to memcached, as plain values with what ships.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::limits::MEMCACHED_LONG_KEY_BYTES_MAX;
use crate::memcached_gateway::chunk_layout::{CHUNK_HEAD_BYTES, MANIFEST_BYTES};
use crate::memcached_gateway::item_key::is_name_of_long_key;
use crate::settings::{NamedTypes, OriginUrl};

/// What a memcached takes for an item unless its option `-I` says otherwise.
pub const ITEM_BYTES_USUAL: usize = 1 << 20;

/// A route whose requests are commands to memcached.
#[derive(Clone, Debug, PartialEq)]
pub struct MemcachedSettings {
    /// Who has which key follows from all of them, in any order for `Ketama`, in this one for nothing else.
    pub servers: Vec<MemcachedServer>,
    pub hash: MemcachedHash,
    /// Index into `Settings::origins`: who answers a GET that memcached has nothing for.
    pub origin: Option<usize>,
    pub mode: MemcachedMode,
    /// Words that may be asked; everything else is a 403.
    pub commands: Vec<MemcachedCommand>,
    pub key: RequestPart,
    pub command: RequestPart,
    pub value: RequestPart,
    pub flags: RequestPart,
    pub exptime: RequestPart,
    pub connect_timeout: Duration,
    /// From the moment that a command is handed to a connection.
    pub reply_timeout: Duration,
    /// On one core to one server.
    pub connections_max: usize,
    pub ejection_failures: u32,
    pub ejection_time: Duration,
    pub next_server: NextServer,
    /// A longer one is neither stored nor taken.
    pub value_bytes_max: usize,
    /// A longer value is stored in chunks of so many bytes, and read from them.
    pub chunk_bytes: Option<u32>,
    /// Gets of one key that meet are one command.
    pub coalesce: bool,
    /// Flags are seconds since 1970, and are said in Last-Modified.
    pub flags_as_time: bool,
    /// An item that bears one of these is gzip; 0: none is.
    pub gzip_flag: u32,
    pub long_keys: LongKeys,
    pub binary_keys: BinaryKeys,
    pub tls: Option<MemcachedTls>,
    /// Said first on each connection, to a server that was started with `-Y`.
    pub login: Option<MemcachedLogin>,
    pub content_type: Option<String>,
    /// By the end of a name, where that is not what ships.
    pub named_types: Option<Box<NamedTypes>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemcachedServer {
    pub address: MemcachedAddress,
    pub weight: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum MemcachedAddress {
    Tcp { host: String, port: u16 },
    Unix(PathBuf),
}

impl std::fmt::Display for MemcachedAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            MemcachedAddress::Tcp { host, port } => write!(f, "{host}:{port}"),
            MemcachedAddress::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl MemcachedAddress {
    /// As origins have it.
    pub(crate) fn url(&self) -> OriginUrl {
        match self {
            MemcachedAddress::Tcp { host, port } => OriginUrl::Tcp { host: host.clone(), port: *port },
            MemcachedAddress::Unix(path) => OriginUrl::Unix(path.clone()),
        }
    }

    /// Without brackets; empty for a socket.
    pub fn host(&self) -> &str {
        match self {
            MemcachedAddress::Tcp { host, .. } => host.trim_start_matches('[').trim_end_matches(']'),
            MemcachedAddress::Unix(_) => "",
        }
    }
}

/// How a server that speaks TLS is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemcachedTls {
    pub authorities: Arc<tls::Authorities>,
    /// What its certificate is for, where that is not the host that is connected to.
    pub name: Option<String>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
pub struct MemcachedLogin {
    pub user: String,
    pub password: String,
}

impl std::fmt::Debug for MemcachedLogin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "MemcachedLogin({}, …)", self.user)
    }
}

/// Which of several servers has a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemcachedHash {
    /// As libmemcached does with weighted ketama: 160 points for a server of mean weight.
    Ketama,
    /// As nginx's `hash … consistent` does: 160 points for each weight.
    NginxConsistent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemcachedMode {
    Clean,
    /// Commands, statuses and bodies of nginx's memc module.
    NginxMemc,
}

/// A command by its word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum MemcachedCommand {
    Get,
    Gat,
    MultiGet,
    Set,
    Add,
    Replace,
    Append,
    Prepend,
    Cas,
    Delete,
    Invalidate,
    Incr,
    Decr,
    Touch,
    FlushAll,
    Stats,
    Version,
    Verbosity,
    CacheMemoryLimit,
    /// What memcached remembers of an item.
    Debug,
    /// Nothing: does it reply?
    Noop,
}

impl MemcachedCommand {
    /// Every word. `gets` is a get whose ETag one looks at, and `gats` a `gat`.
    pub const WORDS: [(&'static str, MemcachedCommand); 23] = {
        use MemcachedCommand::*;
        [
            ("get", Get),
            ("gets", Get),
            ("gat", Gat),
            ("gats", Gat),
            ("mget", MultiGet),
            ("set", Set),
            ("add", Add),
            ("replace", Replace),
            ("append", Append),
            ("prepend", Prepend),
            ("cas", Cas),
            ("delete", Delete),
            ("invalidate", Invalidate),
            ("incr", Incr),
            ("decr", Decr),
            ("touch", Touch),
            ("flush_all", FlushAll),
            ("stats", Stats),
            ("version", Version),
            ("verbosity", Verbosity),
            ("cache_memlimit", CacheMemoryLimit),
            ("me", Debug),
            ("mn", Noop),
        ]
    };

    /// Those of nginx's memc module.
    pub const OF_MEMC: [MemcachedCommand; 12] = {
        use MemcachedCommand::*;
        [Get, Set, Add, Replace, Append, Prepend, Delete, Incr, Decr, FlushAll, Stats, Version]
    };

    pub fn of(word: &[u8]) -> Option<MemcachedCommand> {
        Self::WORDS.iter().find(|(known, _)| known.as_bytes() == word).map(|&(_, command)| command)
    }
}

/// What of a request says a key, a command or a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestPart {
    /// What of the path stands behind the route's own.
    Path,
    /// All of the path.
    WholePath,
    /// `$arg_NAME`
    Argument(String),
    /// `$http_NAME`, in lower case and with hyphens.
    Field(String),
    /// All that stands behind the question mark.
    Query,
    /// Of keys alone.
    Host,
    Fixed(String),
    /// One after the other; what is not there is empty. Of keys alone.
    Joined(Vec<RequestPart>),
    Nothing,
}

/// After which failures another server is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextServer {
    /// There is no connection, or it ended.
    pub error: bool,
    pub timeout: bool,
    pub invalid_response: bool,
    pub not_found: bool,
}

impl NextServer {
    pub const OFF: NextServer = NextServer { error: false, timeout: false, invalid_response: false, not_found: false };
    pub const SHIPPED: NextServer = NextServer { error: true, timeout: true, ..NextServer::OFF };
}

/// What becomes of keys with bytes that the text protocol forbids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinaryKeys {
    /// They are sent as base64, which memcached decodes.
    Base64,
    Refuse,
}

/// What becomes of keys that memcached cannot hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LongKeys {
    /// Stored under their hash, with the whole key before the value.
    Hash,
    Refuse,
}

impl MemcachedSettings {
    /// What a reply's value may have: a value, with the key before it that its name does not say, or a part of one.
    pub(crate) fn item_bytes_max(&self, name: &[u8]) -> usize {
        let value = match self.chunk_bytes {
            None => self.value_bytes_max,
            Some(chunk_bytes) => (chunk_bytes as usize).max(MANIFEST_BYTES).max(ITEM_BYTES_USUAL) + CHUNK_HEAD_BYTES,
        };
        if is_name_of_long_key(name) { value + 4 + MEMCACHED_LONG_KEY_BYTES_MAX } else { value }
    }

    /// With what ships for this mode.
    pub fn of(servers: Vec<MemcachedServer>, mode: MemcachedMode) -> MemcachedSettings {
        let argument = |name: &str| RequestPart::Argument(name.to_owned());
        let (commands, key, long_keys) = match mode {
            MemcachedMode::Clean => (vec![MemcachedCommand::Get], RequestPart::Path, LongKeys::Hash),
            MemcachedMode::NginxMemc => (MemcachedCommand::OF_MEMC.to_vec(), argument("key"), LongKeys::Refuse),
        };
        MemcachedSettings {
            servers,
            hash: MemcachedHash::Ketama,
            origin: None,
            mode,
            commands,
            key,
            command: argument("cmd"),
            value: argument("val"),
            flags: argument("flags"),
            exptime: argument("exptime"),
            connect_timeout: Duration::from_secs(1),
            reply_timeout: Duration::from_secs(5),
            connections_max: 4,
            ejection_failures: 3,
            ejection_time: Duration::from_secs(2),
            next_server: NextServer::SHIPPED,
            value_bytes_max: ITEM_BYTES_USUAL,
            chunk_bytes: None,
            coalesce: true,
            flags_as_time: false,
            gzip_flag: 0,
            long_keys,
            binary_keys: BinaryKeys::Refuse,
            tls: None,
            login: None,
            content_type: None,
            named_types: None,
        }
    }
}
