//! Words of larder.toml and what each of them means, where a key takes one of a few.

use acme::ChallengeKind;
use message::Method;
use proxy::settings::{
    BinaryKeys, ContentCoding, EvictionChoice, ListenMode, Listing, LogFormat, LongKeys, MemcachedHash, MemcachedMode,
    ParentBalance,
};
use tls::Version;

/// `None`: it redirects to the port of the first listener that speaks TLS.
pub const LISTEN_MODES: [(&str, Option<ListenMode>); 3] =
    [("accelerate", Some(ListenMode::Accelerate)), ("forward", Some(ListenMode::Forward)), ("redirect", None)];
pub const TLS_VERSIONS: [(&str, Version); 2] = [("1.2", Version::Tls12), ("1.3", Version::Tls13)];
/// Whether clients must have certificates.
pub const CLIENT_CERTIFICATES: [(&str, bool); 2] = [("required", true), ("optional", false)];
pub const CHALLENGES: [(&str, ChallengeKind); 2] =
    [("tls-alpn-01", ChallengeKind::Alpn), ("http-01", ChallengeKind::Http)];
pub const EVICTIONS: [(&str, EvictionChoice); 3] =
    [("s3-fifo", EvictionChoice::S3Fifo), ("sieve", EvictionChoice::Sieve), ("lru", EvictionChoice::Lru)];
pub const LOG_FORMATS: [(&str, LogFormat); 2] = [("combined", LogFormat::Combined), ("json", LogFormat::Json)];
pub const SANDBOX: [(&str, bool); 2] = [("on", true), ("off", false)];
pub const LISTINGS: [(&str, Listing); 4] =
    [("off", Listing::Off), ("html", Listing::Html), ("json", Listing::Json), ("negotiated", Listing::Negotiated)];
/// The codings by the words that HTTP has for them.
pub const CODINGS: [(&str, ContentCoding); 3] =
    [("br", ContentCoding::Brotli), ("zstd", ContentCoding::Zstd), ("gzip", ContentCoding::Gzip)];
/// Causes for which another address of an origin is asked.
pub const RETRY_CAUSES: [(&str, RetryCause); 3] =
    [("connect", RetryCause::Connect), ("timeout", RetryCause::Timeout), ("closed", RetryCause::Closed)];
/// Methods by which one that was sent may be sent to another address.
pub const RETRY_METHODS: [(&str, Method); 7] = [
    ("GET", Method::Get),
    ("HEAD", Method::Head),
    ("OPTIONS", Method::Options),
    ("PUT", Method::Put),
    ("DELETE", Method::Delete),
    ("POST", Method::Post),
    ("PATCH", Method::Patch),
];
pub const PARENT_BALANCES: [(&str, ParentBalance); 2] =
    [("round-robin", ParentBalance::RoundRobin), ("hash", ParentBalance::Hash)];
pub const MEMCACHED_MODES: [(&str, MemcachedMode); 2] =
    [("clean", MemcachedMode::Clean), ("nginx-memc", MemcachedMode::NginxMemc)];
pub const MEMCACHED_HASHES: [(&str, MemcachedHash); 2] =
    [("ketama", MemcachedHash::Ketama), ("nginx-consistent", MemcachedHash::NginxConsistent)];
pub const LONG_KEYS: [(&str, LongKeys); 2] = [("hash", LongKeys::Hash), ("refuse", LongKeys::Refuse)];
pub const BINARY_KEYS: [(&str, BinaryKeys); 2] = [("base64", BinaryKeys::Base64), ("refuse", BinaryKeys::Refuse)];

/// For which causes another address is asked.
#[derive(Clone, Copy)]
pub enum RetryCause {
    Connect,
    Timeout,
    Closed,
}
