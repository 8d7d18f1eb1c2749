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
mod esi_variables;
pub mod limits;
mod open_branches;
mod scanner;
#[cfg(test)]
mod scanner_tests;
mod tag;
mod target;

mod when_test;

pub use document::{Complaint, Document, Include, Piece, When};
pub use esi_variables::{VARIABLE_NAMES, Variable, VariableName, Variables, expanded};
pub use scanner::{Options, Scanner};
pub use target::{Target, TargetFault};
pub use when_test::holds;
