//! The front for Varnish's users: what people type behind `varnishd`, and what `varnishadm` and their scripts say to its
//! management port, translated into what larder can do. The forms are those of Varnish 7.1.
//!
//! It is a translation and nothing else: what larder does stands behind [`Served`], which the program implements with the
//! functions that its own admin address calls. This crate knows no proxy, opens no file and no socket, and reads no clock.
//!
//! ```
//! use varnishd::{CommandLine, ListenPlace};
//!
//! let typed = ["-F", "-a", ":6081", "-f", "/etc/varnish/default.vcl", "-p", "default_ttl=1h"];
//! let line = CommandLine::parse(typed.map(str::to_owned).to_vec()).unwrap();
//! assert!(line.is_foreground);
//! assert_eq!(line.listen[0].place, ListenPlace::Port { host: None, port: 6081 });
//! assert_eq!(line.vcl_files, ["/etc/varnish/default.vcl"]);
//! assert_eq!(line.parameters, [("default_ttl".to_owned(), "1h".to_owned())]);
//!
//! assert!(CommandLine::parse(vec!["-a".to_owned()]).is_err());
//! ```

mod answers;
mod authentication;
mod backend_commands;
mod ban_commands;
mod cli_reader;
mod cli_session;
mod cli_words;
mod columns;
pub mod command_line;
mod command_table;
mod commands;
pub mod limits;
mod listen_argument;
mod name_pattern;
mod parameter_book;
mod parameter_commands;
mod parameter_forms;
mod parameter_table;
mod served;
mod status_commands;
mod storage_argument;
mod vcl_commands;

pub use answers::Answer;
pub use authentication::{Secret, challenge};
pub use cli_session::{Ended, converse};
pub use cli_words::words;
pub use command_line::{CommandLine, Misused, Task};
pub use commands::Front;
pub use listen_argument::{ListenArgument, ListenPlace, SocketOwner};
pub use parameter_book::ParameterBook;
pub use parameter_forms::seconds;
pub use served::{
    BackendRow, BanRow, ListenRow, Order, ProbeRow, Refusal, Served, SourceRow, Temperature, VclRow, VclState, VclText,
};
pub use storage_argument::{StorageArgument, StorageKind};
