//! Edge Side Includes: what of a text is text, and what is to be included in it.
//!
//! ```
//! use esi::{Options, Piece, Scanner};
//!
//! let mut scanner = Scanner::new(Options::default());
//! scanner.push(b"<p>Hello, <esi:incl");
//! scanner.push(b"ude src=\"/name\"/>!</p>");
//! let document = scanner.finish();
//! let [Piece::Text(before), Piece::Include(include), Piece::Text(after)] = &document.pieces[..] else { panic!() };
//! assert_eq!((before, &include.src[..], after), (&(0..10), &b"/name"[..], &(36..41)));
//! ```

mod document;
pub mod limits;
mod scanner;
#[cfg(test)]
mod scanner_tests;
mod tag;
mod target;

pub use document::{Complaint, Document, Include, Piece};
pub use scanner::{Options, Scanner};
pub use target::{Target, TargetFault};
