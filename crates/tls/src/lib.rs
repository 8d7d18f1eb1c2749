//! TLS over bytes: which certificate a server shows, how sessions are resumed, and records in and out. The one place where larder
//! knows rustls.
//!
//! Nothing here reads a socket or a file. Whoever has a connection gives a [`Session`] the bytes that came and sends the bytes that it
//! is given; whoever has files gives their text.
//!
//! ```
//! use tls::{Authorities, ClientSettings, ClientTls};
//!
//! let why = Authorities::read(b"hello").unwrap_err();
//! assert_eq!(why, "there is no certificate in it");
//! assert!(tls::is_server_name("www.example.org"));
//! # let _ = |authorities: &Authorities| ClientTls::new(&ClientSettings::verifying(authorities, "www.example.org"));
//! ```

mod alpn_challenges;
mod authorities;
mod certificate;
mod certificate_compression;
mod certificate_table;
mod client;
mod client_certificate;
mod digests;
mod early_sessions;
mod fault;
mod hello;
pub mod limits;
mod ocsp_staple;
#[cfg(test)]
mod parties;
#[cfg(test)]
mod resumption_tests;
mod server;
mod session;
#[cfg(test)]
mod session_tests;
mod spoken;
mod suite_choice;
mod ticket_keys;

pub use alpn_challenges::AlpnChallenges;
pub use authorities::{Authorities, is_server_name};
pub use certificate::{Certificate, CertificateFault, Validity};
pub use client::{ClientSettings, ClientTls};
pub use client_certificate::{CertificateFacts, ClientCertificate};
pub use digests::sha1;
pub use early_sessions::EarlySessions;
pub use fault::Fault;
pub use ocsp_staple::StapleFault;
pub use server::{ServerSettings, ServerTls, SettingsFault};
pub use session::{Agreement, Session};
pub use spoken::{Protocol, Version};
pub use ticket_keys::TicketKeys;
