//! The process above the one that serves: it holds the listening sockets, starts who serves, starts it again when it dies or goes round no
//! more, and has another version take over without a connection refused.
//!
//! It holds sockets, process numbers and nothing else: no config, no byte of a client. `larder serve` is it ([`supervise`]); the process
//! that serves has the other end of a link ([`begin`], [`ServingLink`]). The words between them are in `link_word.rs`.

mod child;
mod crash_reports;
mod kept_sockets;
pub mod limits;
mod link_socket;
mod link_word;
mod processes;
mod restart_pause;
mod serving_link;
mod signal_pipes;
mod succession;
mod supervised_program;
mod supervising;

pub use crash_reports::CrashReports;
pub use kept_sockets::KeptSockets;
pub use link_socket::LinkSocket;
pub use link_word::Datagram;
pub use serving_link::{Beginning, Said, ServingLink, begin};
pub use supervised_program::{Program, SERVING_FLAG, SUCCEEDING_FLAG};
pub use supervising::{Surroundings, succeed, supervise};
