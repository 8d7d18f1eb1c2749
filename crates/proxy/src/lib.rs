//! The story of a request, from accept to log, and the origins behind it.
//!
//! Start at [`Proxy`], then `listener`, `connection`, `transaction` (a file per step) and `fetch` (the origin's side).
//! This crate knows no argv, no config file and no file of a store: the program hands it [`settings::Settings`].
//!
//! ```
//! use std::io::{Read, Write};
//! use std::sync::Arc;
//!
//! use proxy::limits::Limits;
//! use proxy::settings::*;
//! use proxy::{MEMORY_BYTES_MIN, Proxy, Start};
//!
//! // A page with the server's numbers, so that no origin is needed.
//! let everything = RouteSettings::to(RouteTarget::StatusPage(0));
//! let settings = Settings {
//!     listeners: vec![ListenerSettings::at(ListenAddress::Tcp(([127, 0, 0, 1], 0).into()))],
//!     routes: vec![everything],
//!     origins: Vec::new(),
//!     roots: Vec::new(),
//!     status_pages: vec![StatusPageSettings::default()],
//!     forward: ForwardSettings::default(),
//!     memcached: Vec::new(),
//!     policy: PolicySettings::default(),
//!     compress: CompressSettings::default(),
//!     esi: EsiSettings::default(),
//!     vcl: VclParameters::default(),
//!     limits: Limits::default(),
//!     resolver: ResolverSettings::default(),
//!     authorities: || None,
//!     memory_bytes_max: MEMORY_BYTES_MIN,
//!     eviction: EvictionChoice::S3Fifo,
//!     server_name: "larder".to_owned(),
//!     trusted_proxies: Vec::new(),
//!     odd_field_names: false,
//!     details_to: Vec::new(),
//!     explain_field: None,
//!     fleet: None,
//!     log_format: LogFormat::Combined,
//!     debug: false,
//!     as_varnishd: false,
//!     accepts_h2c: false,
//!     http2_short_frames: false,
//!     hsts: None,
//!     traces: None,
//! };
//! let world = Arc::new(vcl::NoWorld);
//! let start = Start { settings, workers: 1, log: None, records: None, world, program: None, beneath: Default::default(), fleet: None, memory: None };
//! let proxy = Proxy::start(start).expect("a port is free");
//!
//! let ListenAddress::Tcp(address) = proxy.listen_addresses()[0].1.clone() else { panic!("it listens on TCP") };
//! let mut client = std::net::TcpStream::connect(address).unwrap();
//! client.write_all(b"GET / HTTP/1.1\r\nHost: example.org\r\nConnection: close\r\n\r\n").unwrap();
//! let mut answer = String::new();
//! client.read_to_string(&mut answer).unwrap();
//! assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
//!
//! proxy.drain_now();
//! proxy.join();
//! ```

mod accepted;
pub mod access_log;
mod answer_body;
mod answer_head;
mod answer_plan;
mod asker;
mod assembly;
mod backend_health;
mod balance_settings;
mod body;
mod bound_listeners;
mod cache_groups;
mod client_certificates;
mod client_identity;
mod client_permits;
mod clock;
mod closed_paths;
mod coded_answer;
mod coder_account;
mod coding_choice;
mod coding_levels;
mod coding_threads;
#[cfg(test)]
mod coding_threads_tests;
mod codings_memo;
mod compress_settings;
mod connection;
mod connection_addresses;
mod core;
mod counted_routes;
pub mod counters;
mod departure;
mod dictionary_offer;
mod dictionary_paths;
mod dictionary_use;
mod disk_read;
mod disks;
mod downstream;
mod dry_exchange;
pub mod dry_runner;
mod edges;
mod encoding_task;
mod error_note;
mod error_pages;
mod esi_settings;
pub mod events;
mod exchange_opening;
pub mod exchange_tally;
mod exchanges;
mod explain;
mod explain_field;
mod explained_opening;
mod extended_connect;
mod fastcgi_settings;
mod fetch;
mod field_set;
mod fields_for_us;
mod filter_chain;
mod filter_turn;
mod filter_work;
#[cfg(test)]
mod filter_work_tests;
mod filtered_source;
mod first_bytes;
mod fleet;
mod forward;
mod giving_way;
mod head_form;
mod health_notice;
mod heard_purges;
mod held_body;
mod hit_history;
mod http1_sending;
mod http1_serving;
mod http2_asking;
mod http2_outbox;
mod http2_serving;
mod http2_streams;
mod http_challenges;
mod idle_budget;
mod idle_encoding;
mod in_time;
mod included;
mod instant_answer;
mod instant_file;
mod instant_hit;
mod instant_stream;
mod known_admissions;
pub mod limits;
mod line_allowance;
mod linger;
mod listener;
mod listener_tls;
mod log_buffer;
mod log_sink;
mod log_texts;
mod lurker;
mod made_backends;
mod mailbox;
mod marked_opening;
pub mod memcached_gateway;
mod memory_gate;
mod memory_share;
mod memory_warden;
mod network;
pub mod origin;
mod origin_liveness;
mod origin_streams;
mod other_nodes;
mod outgoing;
mod pace;
mod paced_source;
mod page_budget;
mod page_in_gzip;
mod page_parts;
mod page_variables;
mod parsed_request;
mod part_in_gzip;
mod part_maker;
mod peer;
mod plain_socket;
mod policy;
pub mod policy_columns;
mod policy_steps;
mod probe_window;
mod prober;
mod promotion_task;
mod proxy_header;
mod pulse;
mod purge_orders;
mod purge_tally;
mod reason;
mod receive;
pub mod records;
mod rendezvous;
mod reply_head;
mod request_body;
mod request_source;
mod response_tags;
mod retiring;
mod route_rules;
mod route_table;
mod ruled_request;
mod secret_comparison;
mod send_outcome;
mod server_names;
mod service;
pub mod settings;
mod site;
mod sliced_read;
mod slots;
mod socket;
mod socket_keeper;
mod static_files;
mod stderr_line;
mod stored_blocks;
mod stored_head;
#[cfg(test)]
mod story_tests;
mod stub_status;
mod subrequest_fields;
mod tls_columns;
mod tls_facts;
mod tls_greeting;
mod tls_socket;
mod told_purges;
mod traces;
mod transaction;
mod transport_security;
mod tunnel_flow;
mod unhurried;
mod unsent;
mod unsliceable;
mod upload_pace;
mod upstream;
mod url_variations;
mod vcl_backends;
mod vcl_parameters;
mod vcl_service;
mod vcl_shelf;
mod vcl_site;
mod vcl_story;
mod vital;
mod wait_budget;
mod websocket_proof;
mod worker;

pub use backend_health::{HealthOrder, ProbeStatus};
pub use bound_listeners::BoundListeners;
pub use clock::{Moment, manager_now_us, wall_now_ms};
pub use coding_threads::{CodingClassStatus, CodingStatus};
pub use counted_routes::name_of as route_name;
pub use edges::Edge;
pub use explain::{ExplainQuestion, ExplainedRoute, Explanation, GivenReason, HeldRule, StoredResponse, WouldBe};
pub use fleet::node_draws::NodeDraws;
pub use forward::password_file::check_password_file;
pub use hit_history::HitRatios;
pub use http_challenges::HttpChallenges;
pub use limits::NOTICES_AT_ONCE;
pub use line_allowance::LineAllowance;
pub use log_sink::LogSink;
pub use memory_gate::{MemoryStatus, memory_base_bytes};
pub use memory_warden::ProcessMemory;
pub use origin::OriginStatus;
pub use other_nodes::{Acknowledged, OtherNodes, ToldInvalidation, ToldUrl};
pub use purge_orders::{
    OrderedUrl, PurgeOrder, PurgeOutcome, PurgeSelector, Softness, StoredSample, TagCount, ToRefresh, give_way_to_cores,
};
pub use reason::Reason;
pub use records::{HeardKinds, RecordKind, RecordSink, RecordView, record_of_program};
pub use secret_comparison::is_same_secret;
pub use server_names::{server_hostname, server_identity, set_server_identity};
pub use service::{FleetStart, MEMORY_BYTES_MIN, Proxy, Start, StartError};
pub use socket_keeper::{NoKeeper, SocketKeeper};
pub use static_files::file_types;
pub use traces::export_queue::{ExportBatch, ExportQueue, ExportSignal};
pub use vcl_service::{BackendStatus, BanStatus, VclStatus};
pub use vcl_shelf::VclError;
pub use vcl_site::VclProgram;
pub use vcl_story::xids::set_xids;
pub use vital::{Vital, vital_thread};
