//! The lab: load for one target, and the truth about what came back.
//!
//! The story: a [`Workload`] says who asks, when and for how long; [`run()`] starts a thread for each core it may use. On
//! every thread some *users* (`user`) take their starts from one *agenda* (`agenda`: at once, or by a timetable), ask
//! for what the *catalogue* says, read the answer (`http_answer`), have it judged against what is expected and what
//! the first fetch taught (`learned`), and note the outcome in the thread's *tally* (`tally`). Tallies are merged
//! once, at the end, and printed by `report`, or by `as_tool` in the form of a tool that people know.
//!
//! Nothing is locked and nothing allocated for a request. This crate knows nothing of the proxy that it may be
//! measuring, and reads neither argv nor signals.
//!
//! ```
//! use lab::{Catalogue, LabUrl, Length, NullServer, Recipe, Workload, run};
//!
//! let server = NullServer::start(([127, 0, 0, 1], 0).into(), 6_221, 1).unwrap();
//! let url = LabUrl::parse(&format!("http://{}/", server.address)).unwrap();
//! let catalogue = Catalogue::of_url(&url, &Recipe::default()).unwrap();
//! let workload = Workload { length: Length::Requests(100), users: 4, ..Workload::new(server.address) };
//!
//! let outcome = run(workload, catalogue, &Default::default(), &mut |_second, _figures| {}).unwrap();
//! assert_eq!((outcome.tally.good, outcome.tally.body_bytes), (100, 622_100));
//! ```

mod agenda;
mod answer;
mod answer_chunks;
mod answer_coding;
mod answer_reader;
mod as_tool;
mod catalogue;
mod client_thread;
mod coded_body;
mod coded_look;
mod coded_pages;
mod constructed_body;
mod dialling;
mod error_kind;
mod fake_origin;
mod frame_meter;
mod handshake_tally;
mod http2_answer;
mod http2_conversation;
mod http2_requests;
mod http_answer;
mod lab_certificate;
mod lab_clock;
pub mod lab_report;
mod lab_url;
mod learned;
pub mod limits;
mod listening;
mod log_line;
mod log_times;
mod matrix;
mod memcached_answer;
mod memcached_catalogue;
mod metered_transport;
mod null_server;
mod pacer;
mod pauses;
mod pick;
mod process_stat;
mod read_ahead;
mod received_head;
mod replay;
mod replay_log;
mod report;
mod report_of_load;
mod report_of_tls;
pub mod results;
mod run;
mod script;
mod session_file;
mod session_tally;
mod sessions;
mod sleepers;
mod sources;
mod stream_bells;
mod tally;
mod timetable;
mod tls_client;
mod tls_settings;
mod transport;
mod user;
mod usual_fields;
mod verdict;
mod whole_file;
mod workload;
mod zipf_pick;

pub use answer_coding::ContentCoding;
pub use as_tool::{Printed, Progress, Tool, ToolRun, unsaid};
pub use catalogue::{AskMethod, Catalogue, CatalogueError, Order, Recipe};
pub use coded_pages::FormsSeen;
pub use constructed_body::{BodyRule, append_constructed, body_rule};
pub use error_kind::ErrorKind;
pub use fake_origin::{
    FakeOrigin, LOG_COLUMNS, OriginHttp2Settings, OriginSettings, OriginTlsSettings, Stalls, TlsFault,
    WORDS as ORIGIN_WORDS, catalogue_size,
};
pub use handshake_tally::{Agreed, HandshakeTally};
pub use lab_url::{LabUrl, Scheme};
pub use log_line::{LogLine, parse_line as parse_log_line};
pub use matrix::{MatrixOrder, Nearest, keep_groups, run_matrix};
pub use memcached_catalogue::MemcachedItems;
pub use null_server::NullServer;
pub use process_stat::{TreeUse, times_of_this_process, use_of_tree};
pub use replay::Replay;
pub use replay_log::{LogAccount, read_replay_log};
pub use report::{REPORT_FORMAT, json, second_line, show as show_micros, text};
pub use run::{Outcome, StartError, ThreadCost, run};
pub use script::Script;
pub use session_file::read_session_file;
pub use session_tally::SessionTally;
pub use sources::{connections_offered, parse_sources, parse_sources_list};
pub use tally::{ConnectionTally, ErrorRecord, Http2Tally, MemcachedTally, Second, Tally};
pub use tls_settings::{Authorities, SYSTEM_AUTHORITIES, TlsGroup, TlsName, TlsSettings, TlsVersion};
pub use whole_file::write_whole;
pub use workload::{Arrivals, Checks, Connections, Length, Load, RatePlan, StatusWanted, Workload};
pub use zipf_pick::ZipfPick;
