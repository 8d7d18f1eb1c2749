//! The story of a request, from accept to log, and the origins behind it.
//!
//! Start at [`Proxy`], then `listener`, `connection`, `transaction` (a file per step) and `fetch` (the origin's side).
//! This crate knows no argv, no config file and no file of a store: the program hands it [`settings::Settings`].

pub mod access_log;
mod backend_health;
mod body_source;
mod cache_groups;
mod client_places;
mod clock;
mod connection;
pub mod counters;
mod departure;
mod disks;
mod edges;
mod error_pages;
mod exchanges;
mod fetch;
mod forward;
mod hit_history;
mod instant_file;
mod instant_hit;
pub mod limits;
mod linger;
mod listener;
mod log_buffer;
mod log_texts;
mod made_backends;
mod mailbox;
pub mod memcached_gateway;
pub mod origin;
mod policy;
pub mod policy_columns;
mod policy_visit;
mod probe_window;
mod prober;
mod proxy_header;
mod receive;
pub mod rehearsal;
mod request_body;
mod service;
pub mod settings;
mod site;
mod slots;
mod static_files;
mod stored_head;
mod stub_status;
mod transaction;
mod url_variations;
mod vcl_backends;
mod vcl_parameters;
mod vcl_service;
mod vcl_shelf;
mod vcl_site;
mod vcl_story;
mod wire_stream;
mod worker;

pub use backend_health::HealthOrder;
pub use clock::{Moment, wall_now_ms};
pub use edges::Edge;
pub use hit_history::HitRatios;
pub use origin::OriginStatus;
pub use service::{LogSink, MEMORY_BYTES_MIN, Proxy, Start, StartError};
pub use static_files::file_types;
pub use vcl_service::{BackendStatus, BanStatus, ProbeStatus, VclStatus};
pub use vcl_shelf::VclError;
pub use vcl_site::VclProgram;
