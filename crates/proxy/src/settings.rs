//! What an operator may decide, as plain values. The program reads flags and files and makes these; nothing in
//! this crate reads either. A reload makes a new `Settings` and swaps it in whole.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cache::DictionaryBounds;
use message::Scheme;
use tls::{Authorities, Certificate};
pub use wire::ProxyVersion;

pub use crate::balance_settings::{
    BalanceKind, BalanceSettings, HashKey, ProbeSettings, RetrySettings, StickyCookie, UrlShare,
};
pub use crate::closed_paths::ClosedPaths;
pub use crate::compress_settings::{CompressSettings, RouteCompression};
pub use crate::dictionary_paths::DictionaryPaths;
pub use crate::dry_runner::mocked_origins::MockedOrigin;
pub use crate::error_pages::{ErrorClass, ErrorPages};
pub use crate::esi_settings::{EsiPages, EsiSettings};
pub use crate::explain_field::ExplainField;
pub use crate::fastcgi_settings::{FastCgiKeepAlive, FastCgiSettings, RootScripts};
pub use crate::fleet::fleet_secret::FleetSecret;
pub use crate::fleet::machine_address::{OwnAddress, is_of_this_machine};
pub use crate::forward::forward_settings::{
    Destination, ForwardSettings, ParentBalance, ParentLogin, ParentSettings, Whither,
};
use crate::limits::Limits;
pub use crate::listener_tls::ListenerTls;
pub use crate::memcached_gateway::gateway_settings::{
    BinaryKeys, LongKeys, MemcachedAddress, MemcachedCommand, MemcachedHash, MemcachedLogin, MemcachedMode,
    MemcachedServer, MemcachedSettings, MemcachedTls, NextServer, RequestPart,
};
pub use crate::network::Network;
pub use crate::route_rules::answer_fields::AnswerFields;
pub use crate::route_rules::auth_request::AuthRequest;
pub use crate::route_rules::bandwidth::Bandwidth;
pub use crate::route_rules::caching_rules::{CachingRules, Selector};
pub use crate::route_rules::cookie_rules::CookieRules;
pub use crate::route_rules::cross_origin::CrossOrigin;
pub use crate::route_rules::field_edits::{FieldEdits, FieldLine, SUCCESSES};
pub use crate::route_rules::field_template::{FieldTemplate, TemplatePiece, VARIABLES};
pub use crate::route_rules::mirror_settings::MirrorSettings;
pub use crate::route_rules::name_patterns::NamePattern;
pub use crate::route_rules::own_answer::OwnAnswer;
pub use crate::route_rules::query_rules::QueryRules;
pub use crate::route_rules::rate_table::Rate;
pub use crate::route_rules::route_conditions::{FieldAsked, FieldCondition, FieldText, RoutePattern};
pub use crate::route_rules::target_rewrite::TargetRewrite;
pub use crate::route_rules::under_way::{ConnectionLimit, CountedBy};
pub use crate::route_rules::word_sources::{WordSource, WordSources};
pub use crate::route_rules::{Login, RateLimit, RouteAccess, RouteRules};
pub use crate::static_files::kept_back::KeptBack;
pub use crate::static_files::shown_sources::ShownSources;
pub use crate::traces::trace_settings::{ExportedLogs, TraceSettings};
pub use crate::vcl_parameters::{EsiFeatures, VclParameters};
pub use rules::credentials::names as credential_names;
pub use rules::{ContentCoding, Grant, GrantedLifetime};

/// Everything that a reload may change, in one value.
#[derive(Clone, Debug)]
pub struct Settings {
    pub listeners: Vec<ListenerSettings>,
    /// First match wins: by host, then by the longest path prefix.
    pub routes: Vec<RouteSettings>,
    pub origins: Vec<OriginSettings>,
    /// Directories whose files are served.
    pub roots: Vec<RootSettings>,
    pub status_pages: Vec<StatusPageSettings>,
    /// The nodes that serve the same site.
    pub fleet: Option<Arc<FleetSettings>>,
    /// What listeners of [`ListenMode::Forward`] allow.
    pub forward: ForwardSettings,
    /// Routes whose requests are commands to memcached.
    pub memcached: Vec<MemcachedSettings>,
    pub policy: PolicySettings,
    pub compress: CompressSettings,
    /// Pages with parts, where no program decides.
    pub esi: EsiSettings,
    /// Read when a VCL is loaded.
    pub vcl: VclParameters,
    pub limits: Limits,
    pub resolver: ResolverSettings,
    /// Says whom this system trusts to say who a server is; `None` where nobody is found. Asked only where that is needed: they are many.
    pub authorities: fn() -> Option<Arc<Authorities>>,
    pub memory_bytes_max: usize,
    pub eviction: EvictionChoice,
    /// Our name in `Via` and `Cache-Status`; an instance id is added to it in `Via`.
    pub server_name: String,
    /// Who may tell us by X-Forwarded-* who the client is.
    pub trusted_proxies: Vec<Network>,
    /// Fields of requests whose names have other characters than letters, digits and dashes go to origins, too.
    pub odd_field_names: bool,
    /// Who reads what failed, where, and which setting changes it, in an error of ours; others read a number.
    pub details_to: Vec<Network>,
    /// By which field of a request an operator asks to be told why it is answered as it is.
    pub explain_field: Option<Arc<ExplainField>>,
    pub log_format: LogFormat,
    /// Admin verbs that only tests need, such as advancing the clock.
    pub debug: bool,
    /// We stand in the place of varnishd, for those who rely on what it does where larder would be stricter. How heads are read
    /// then is `limits.request_head.lenient`'s to say, and the other's.
    pub as_varnishd: bool,
    /// Without TLS, clients of all listeners may speak HTTP/2 at once, by prior knowledge.
    pub accepts_h2c: bool,
    /// They may ask for shorter frames than RFC 9113 lets them.
    pub http2_short_frames: bool,
    /// The value of Strict-Transport-Security (RFC 6797), in every answer over TLS of ours that does not have one already.
    pub hsts: Option<Arc<str>>,
    /// The trace context of requests is read and handed on.
    pub traces: Option<Arc<TraceSettings>>,
}

/// What programs and their users know as `Server` of answers that no backend made.
const SERVER_OF_VARNISHD: &str = "Varnish";

impl Settings {
    /// The origins that a program may name as backends: those that are asked over HTTP.
    pub fn origins_for_programs(&self) -> Vec<String> {
        self.origins.iter().filter(|origin| origin.fastcgi.is_none()).map(|origin| origin.name.clone()).collect()
    }

    /// Varnish hands them on, and so do those who stand in its place.
    pub(crate) fn takes_odd_field_names(&self) -> bool {
        self.odd_field_names || self.as_varnishd
    }

    /// How many dictionaries are kept beside the store.
    pub(crate) fn dictionary_bounds(&self) -> DictionaryBounds {
        let is_on = self.compress.is_on && self.compress.dictionaries;
        let limits = &self.limits;
        DictionaryBounds {
            texts_max: limits.dictionary_versions_max,
            bytes_max: if is_on { limits.dictionaries_bytes_max } else { 0 },
            age_ms_max: limits.dictionary_age_max.as_millis() as u64,
        }
    }

    /// What an answer that a program makes says of who made it.
    pub(crate) fn server_of_programs(&self) -> &str {
        if self.as_varnishd { SERVER_OF_VARNISHD } else { &self.server_name }
    }

    /// What is piped without an Upgrade goes to the backend as vcl_pipe left it, and comes back as it is: nobody frames it, and
    /// both connections end with it. Else it is a pass that the program does not judge.
    pub(crate) fn pipes_as_it_comes(&self) -> bool {
        self.as_varnishd
    }

    /// The PROXY header to an origin names who caused a fetch, though others get what it brings. Else it names nobody.
    pub(crate) fn names_cause_of_shared_fetch(&self) -> bool {
        self.as_varnishd
    }

    /// What a client sends as a body, and is none, is a fetch that failed, and vcl_backend_error's to answer. Else the client is
    /// refused.
    pub(crate) fn bad_body_fails_the_fetch(&self) -> bool {
        self.as_varnishd
    }

    /// A Content-Range that was not asked for is a fetch that failed. Else it is not heard, or its part not stored.
    pub(crate) fn refuses_unasked_ranges(&self) -> bool {
        self.as_varnishd && self.vcl.http_range_support
    }

    /// A 204 that says a length is a fetch that failed. Else what it says of a body is not heard.
    pub(crate) fn refuses_length_of_204(&self) -> bool {
        self.as_varnishd
    }
}

/// Where we listen. Two listeners are the same one across a reload when they are equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerSettings {
    pub address: ListenAddress,
    /// Expect a PROXY protocol header (v1 or v2) before the first request.
    pub proxy_protocol: bool,
    pub mode: ListenMode,
    /// What records call it; `a0` if nothing.
    pub name: Option<Arc<str>>,
    /// Requests come sealed.
    pub tls: Option<ListenerTls>,
    /// Without TLS, clients may speak HTTP/2 at once, by prior knowledge.
    pub h2c: bool,
}

impl ListenerSettings {
    /// One that accelerates.
    pub fn at(address: ListenAddress) -> ListenerSettings {
        ListenerSettings {
            address,
            proxy_protocol: false,
            mode: ListenMode::Accelerate,
            name: None,
            tls: None,
            h2c: false,
        }
    }
}

/// What is asked there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListenMode {
    /// A server: routes, or a program, say who answers.
    Accelerate,
    /// A proxy: the request itself says where it is to go.
    Forward,
    /// Nothing: whoever asks is sent to https://, at this port of the same host.
    Redirect { https_port: u16 },
    /// As `Accelerate`, of larder itself, which asks for pages by this scheme to have them fetched: nothing is listened on. `refreshes`:
    /// under a program what is stored answers none of them.
    Within { scheme: Scheme, refreshes: bool },
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ListenAddress {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

/// Requests for these hosts and below this path are answered from there.
#[derive(Clone, Debug)]
pub struct RouteSettings {
    /// Lower case, without port; `None` matches any. `*.example.org` matches one or more labels.
    pub host: Option<String>,
    /// Matches whole segments: `/a` matches `/a` and `/a/b`, not `/ab`. `/` matches all.
    pub path_prefix: String,
    /// In place of a prefix.
    pub path_pattern: Option<Arc<RoutePattern>>,
    /// Its pattern comes behind all paths but `/`: it is a preset's, and somebody who writes a path means that.
    pub yields_to_paths: bool,
    /// Methods, as they are sent; none: all.
    pub methods: Vec<Box<str>>,
    /// Fields that a request must have.
    pub fields: Vec<FieldCondition>,
    pub target: RouteTarget,
    /// Paths among these that nobody is answered for.
    pub closed: Option<Arc<ClosedPaths>>,
    /// Files that answer in place of errors that we would answer ourselves.
    pub error_pages: Option<Arc<ErrorPages>>,
    pub compression: RouteCompression,
    /// Of each of these the responses are dictionaries for one another; any other is one for its own path.
    pub dictionary_paths: Arc<[DictionaryPaths]>,
    /// Which of its answers are looked through for parts. `None`: as `Settings::esi` says.
    pub esi: Option<EsiPages>,
    /// Who may purge its URLs. `None`: who `Settings::policy` says.
    pub purge_from: Option<Arc<[Network]>>,
    pub rules: Arc<RouteRules>,
}

impl RouteSettings {
    /// Which paths of which hosts it is for, in text that no other route has.
    pub(crate) fn paths_text(&self) -> Vec<u8> {
        let pattern = self.path_pattern.as_ref().map_or("", |pattern| pattern.text());
        let methods = self.methods.join(",");
        format!("{:?} {:?} {pattern:?} {methods:?} {:?}", self.host, self.path_prefix, self.fields).into_bytes()
    }

    /// All requests, with nothing said of them but who answers.
    pub fn to(target: RouteTarget) -> RouteSettings {
        RouteSettings {
            host: None,
            path_prefix: "/".to_owned(),
            path_pattern: None,
            yields_to_paths: false,
            methods: Vec::new(),
            fields: Vec::new(),
            target,
            closed: None,
            error_pages: None,
            compression: RouteCompression::default(),
            dictionary_paths: Arc::default(),
            esi: None,
            purge_from: None,
            rules: Arc::default(),
        }
    }
}

/// Who answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteTarget {
    /// Index into `Settings::origins`.
    Origin(usize),
    /// Index into `Settings::roots`.
    Root(usize),
    /// Index into `Settings::status_pages`.
    StatusPage(usize),
    /// Index into `Settings::memcached`.
    Memcached(usize),
    /// The route itself, by `RouteRules::answer`; whom that is not for, nobody: 404.
    Itself,
    /// Nobody: 403.
    Closed,
}

/// A directory whose files answer: the whole path of a request is a path beneath it.
#[derive(Clone, Debug)]
pub struct RootSettings {
    /// Opened whenever a file is looked for, so that a link to it may be changed.
    pub directory: PathBuf,
    /// What answers for a directory: the first of these that is there.
    pub index: Vec<String>,
    /// The path whose file answers where there is none; it begins with a slash.
    pub fallback: Option<String>,
    /// Send `NAME.br`, `NAME.zst` or `NAME.gz` in place of `NAME` to who accepts it.
    pub precompressed: bool,
    /// Said in the Content-Type of text.
    pub charset: Option<String>,
    /// The field's value, for every file.
    pub cache_control: Option<String>,
    /// Show what begins with a dot. `/.well-known/` is shown in any case.
    pub dotfiles: bool,
    /// What answers for a directory without an index file.
    pub listing: Listing,
    /// Content-Types by the ends of names, in lower case and without their dot, sent as they stand here.
    pub types: BTreeMap<String, String>,
    /// The same for names that say nothing.
    pub default_type: Option<String>,
    /// Which files are run, and by whom. What is no file is answered by the script of `fallback`.
    pub scripts: Option<RootScripts>,
    /// Which sources of programs are shown, where none of them is run.
    pub sources: ShownSources,
    /// Larder's own files beneath it, which nobody is shown.
    pub kept_back: KeptBack,
}

/// What is said of the type of an item by the end of its name, as of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamedTypes {
    pub charset: Option<String>,
    pub types: BTreeMap<String, String>,
    pub default_type: Option<String>,
}

/// What a directory is listed as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listing {
    Off,
    Html,
    Json,
    /// JSON to who would rather have it, by Accept.
    Negotiated,
}

impl RootSettings {
    /// Is a directory without an index file no answer?
    pub(crate) fn lists_nothing(&self) -> bool {
        self.listing == Listing::Off
    }

    /// Is a directory as absent as a file that is not there? Nothing answers for one then.
    pub(crate) fn passes_directories_by(&self) -> bool {
        self.index.is_empty() && self.lists_nothing()
    }

    /// With what ships.
    pub fn of(directory: PathBuf) -> RootSettings {
        let index = vec!["index.html".to_owned()];
        RootSettings {
            directory,
            index,
            fallback: None,
            precompressed: false,
            charset: None,
            cache_control: None,
            dotfiles: false,
            listing: Listing::Off,
            types: BTreeMap::new(),
            default_type: None,
            scripts: None,
            sources: ShownSources::default(),
            kept_back: KeptBack::default(),
        }
    }
}

/// A page with the server's numbers, in the form of nginx's stub_status.
#[derive(Clone, Debug)]
pub struct StatusPageSettings {
    /// Who may look. Loopback unless configured; a UNIX socket counts as loopback.
    pub allow_from: Vec<Network>,
}

impl Default for StatusPageSettings {
    fn default() -> StatusPageSettings {
        StatusPageSettings { allow_from: Network::LOOPBACK.to_vec() }
    }
}

#[derive(Clone, Debug)]
pub struct OriginSettings {
    pub name: String,
    pub urls: Vec<OriginUrl>,
    /// Connections to all its addresses together, over all cores.
    pub connections_max: usize,
    /// Requests that may wait for one of them.
    pub queue_max: usize,
    pub queue_timeout: Duration,
    /// Failures in a row after which an address is left out for `ejection_time`.
    pub ejection_failures: u32,
    pub ejection_time: Duration,
    pub balance: BalanceSettings,
    /// Each of its addresses is asked whether it is well.
    pub probe: Option<ProbeSettings>,
    pub retries: RetrySettings,
    /// The Host to send; `None` forwards the client's.
    pub host: Option<String>,
    pub timeouts: OriginTimeouts,
    pub greeting: Greeting,
    /// Of its `https://` URLs.
    pub tls: OriginTls,
    /// Servers of its `https://` URLs are asked over HTTP/2 if they agree to it. Those of `h2://` URLs always are.
    pub http2: bool,
    /// It speaks FastCGI, at `Tcp` and `Unix` URLs.
    pub fastcgi: Option<FastCgiSettings>,
}

/// The nodes of a fleet, and what they have in common.
#[derive(Clone, Debug)]
pub struct FleetSettings {
    /// An origin whose addresses are the nodes, whose balance is by [`HashKey::Stored`] of the secret.
    pub nodes: OriginSettings,
    pub secret: FleetSecret,
    pub own: OwnAddress,
    /// A node that works on more of our fetches than so many thousandths of its share is passed over.
    pub load_max_permille: u32,
}

/// An origin's own, in place of those of `Limits`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OriginTimeouts {
    pub connect: Option<Duration>,
    pub first_byte: Option<Duration>,
    pub between_bytes: Option<Duration>,
}

/// How long a route waits for what its origin answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RouteTimeouts {
    /// In place of the origin's own.
    pub of_origin: OriginTimeouts,
    /// From the beginning of a request to the origin to the last byte of its answer.
    pub whole: Option<Duration>,
}

/// What is said on a connection before its first request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Greeting {
    pub preamble: Vec<u8>,
    /// A PROXY header that says who the client is. A connection that bears one is for one request.
    pub proxy_header: Option<ProxyVersion>,
}

/// How an origin of `https://` is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OriginTls {
    pub verification: Verification,
    /// What its certificate is for, and what is asked for by SNI. `None`: the host of the URL.
    pub name: Option<String>,
    /// Names no server when it connects.
    pub without_sni: bool,
    /// Shown to an origin that asks who we are.
    pub certificate: Option<Certificate>,
}

/// Whose word counts for who an origin is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Verification {
    /// Those whom this system trusts.
    #[default]
    System,
    By(Arc<Authorities>),
    /// Nobody's: whoever answers is believed.
    Off,
}

/// One base URL of an origin: `http://host[:port]`, `https://host[:port]`, `h2://host[:port]` or `unix:/path`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OriginUrl {
    Tcp {
        host: String,
        port: u16,
    },
    /// `https://`
    Tls {
        host: String,
        port: u16,
    },
    /// `h2://`: HTTP/2 without TLS, by prior knowledge.
    Http2 {
        host: String,
        port: u16,
    },
    Unix(PathBuf),
    /// Nowhere: a dry run mocks it.
    Mocked(MockedOrigin),
}

impl OriginUrl {
    /// As Host names it (RFC 9110 §7.2): without the port that its scheme implies. `None`: it is no place in the network.
    pub fn authority(&self) -> Option<String> {
        let (host, port, implied) = match self {
            OriginUrl::Tcp { host, port } | OriginUrl::Http2 { host, port } => (host, *port, 80),
            OriginUrl::Tls { host, port } => (host, *port, 443),
            OriginUrl::Unix(_) | OriginUrl::Mocked(_) => return None,
        };
        Some(if port == implied { host.clone() } else { format!("{host}:{port}") })
    }

    /// What an origin at these URLs is called by whoever was told no other name.
    pub fn name_of_all(urls: &[OriginUrl]) -> String {
        urls.iter().find_map(OriginUrl::authority).unwrap_or_else(|| "localhost".to_owned())
    }
}

#[derive(Clone, Debug, Default)]
pub struct ResolverSettings {
    /// Name servers to ask; empty: those of the system.
    pub servers: Vec<SocketAddr>,
    /// Fixed answers, asked before any server.
    pub hosts: Vec<(String, Vec<std::net::IpAddr>)>,
}

/// The switches of the built-in policy.
#[derive(Clone, Debug)]
pub struct PolicySettings {
    /// Who may PURGE. Loopback unless configured; a UNIX socket counts as loopback.
    pub purge_from: Vec<Network>,
    /// Obey max-age, no-cache and the like in requests (RFC 9111 §5.2.1).
    pub honour_client_cache_control: bool,
    /// Give a stored Set-Cookie to everybody (RFC 9111 §7.3 permits it). Off: only the first requester gets it.
    pub share_set_cookie: bool,
    /// Take max-age for a word that others may have what sets a cookie or was asked for with credentials.
    pub share_by_max_age: bool,
    /// Query parameters and cookies by which visits are counted, known by name, make no difference where something is only read. `None`: where no
    /// program decides.
    pub ignore_tracking: Option<bool>,
    /// Share of the time since Last-Modified that counts as fresh, per cent (RFC 9111 §4.2.2).
    pub heuristic_percent: u32,
    pub heuristic_max: Duration,
    /// How long an uncacheable answer is remembered, so that nobody waits for the next one.
    pub uncacheable: Duration,
    /// How long a stale object is kept after its freshness ended, for validation and errors.
    pub keep: Duration,
}

impl Default for PolicySettings {
    fn default() -> PolicySettings {
        PolicySettings {
            purge_from: Network::LOOPBACK.to_vec(),
            honour_client_cache_control: true,
            share_set_cookie: false,
            share_by_max_age: true,
            ignore_tracking: None,
            heuristic_percent: 10,
            heuristic_max: Duration::from_secs(24 * 3600),
            uncacheable: Duration::from_secs(120),
            keep: Duration::from_secs(24 * 3600),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvictionChoice {
    S3Fifo,
    Sieve,
    Lru,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// Apache's combined format, then the cache's verdict and the time taken.
    Combined,
    /// One JSON object a line.
    Json,
}
