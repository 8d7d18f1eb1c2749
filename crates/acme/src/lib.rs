//! Certificates from an authority (ACME, RFC 8555): the order and its challenges, when a certificate is renewed (RFC 9773), and the
//! folder of state that nodes share. The one place where larder knows instant-acme.
//!
//! A [`Renewer`] looks after one set of names. Whoever runs it calls [`Renewer::turn`], sleeps for as long as it is told, and calls
//! again; the time and the dice are given to it. What it stores is a file that others watch.
//!
//! ```
//! use acme::Directory;
//!
//! assert_eq!(Directory::parse("letsencrypt").unwrap().url(), "https://acme-v02.api.letsencrypt.org/directory");
//! assert!(Directory::parse("http://ca.example/").is_err(), "RFC 8555 §6.1");
//! ```

mod acme_directory;
mod certificate_authority;
mod challenge;
mod conversation;
#[cfg(test)]
mod conversation_tests;
mod https_client;
pub mod limits;
mod names;
mod order_failure;
mod renewal_note;
mod renewer;
#[cfg(test)]
mod renewer_tests;
mod schedule;
mod shared_challenges;
mod state_folder;

pub use acme_directory::Directory;
pub use certificate_authority::{Authority, Issued, RenewalInfo, Replaced};
pub use challenge::{Challenge, ChallengeKind, ChallengeSink};
pub use conversation::{AcmeAuthority, AuthoritySettings};
pub use names::NameSet;
pub use order_failure::Failure;
pub use renewer::{News, Renewer, Surroundings, Turn};
pub use schedule::Window;
pub use shared_challenges::SharedChallenges;
pub use state_folder::StateFolder;
