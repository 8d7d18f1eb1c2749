//! What a request and a response are.
//!
//! Everything else in the workspace speaks in these values: `wire` makes them out of bytes, `rules` judges
//! them, `cache` stores them, `proxy` moves them. This crate does not know how a message is framed, what a
//! socket is, or what time it is.
//!
//! ```
//! use message::{Authority, FieldName, Fields, Scheme};
//!
//! let mut fields = Fields::default();
//! fields.push(FieldName::CacheControl, "max-age=60, public");
//! fields.push_named(b"X-Tag", b"news");
//! assert!(fields.view().has_token(FieldName::CacheControl, "public"));
//! assert_eq!(fields.view().get_all_named(b"x-tag").collect::<Vec<_>>(), [b"news"]);
//!
//! let authority = Authority::parse(b"Example.org:8080", Scheme::Http).expect("it is a host with a port");
//! assert_eq!((&*authority.host, authority.port), (&b"example.org"[..], Some(8080)));
//! ```

mod authority;
mod field_marks;
mod field_name;
mod fields;
mod lookalike;
mod method;
mod plain_text;
mod request;
mod response;
mod status;
mod version;

pub use authority::{Authority, Scheme};
pub use field_marks::{FieldMark, field_mark, line_at};
pub use field_name::FieldName;
pub use fields::{Field, FieldAt, FieldSpan, Fields, FieldsView, list_members};
pub use lookalike::{NameShapes, is_forwarding_name, is_lookalike, is_plain_name, reads_as};
pub use method::Method;
pub use plain_text::{DIGITS_MAX, PAIRS_OF_DIGITS, decimal, write_address, write_decimal};
pub use request::{Request, RequestHead, TargetForm};
pub use response::{Response, ResponseHead};
pub use status::Status;
pub use version::Version;
