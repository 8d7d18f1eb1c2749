//! The policy language: text, program, and what is wrong with it.
//!
//! ```text
//! source_files, inclusion  the bytes of a file and of what it includes
//!   → lexer, tokens       words
//!   → parser, syntax      a tree
//!   → checker             names, types, where things are allowed; the built-in subroutines (builtin.vcl) joined on
//!   → typed_program       names and types resolved: what an evaluator is compiled from
//!   → loaded              a program that can be run
//! host, world             what a running program asks of whoever runs it, and of the machine
//! ```
//!
//! Everything that is wrong goes through `diagnostics`, with a code from `codes`. This crate knows no HTTP type, no
//! socket and no file: whoever calls it hands in the bytes and finds what is included.
//!
//! ```
//! use vcl::subroutine_verdicts::RecvVerdict;
//! use vcl::{Arena, Included, Loaded, MapHost, NoIncludes, NoWorld, Plain, VariableId, check};
//!
//! let text = r#"
//!     vcl 4.1;
//!     backend default none;
//!     sub vcl_recv {
//!         if (req.url ~ "^/cart") { return (pass); }
//!         return (hash);
//!     }
//! "#;
//! let checked = check(Included { name: "shop.vcl".to_owned(), bytes: text.into() }, &NoIncludes);
//! let program = checked.program.expect("there is no mistake in it");
//! let loaded = Loaded::load(program, checked.sources, &NoWorld).unwrap();
//!
//! let arena = Arena::default();
//! let asked = |url: &'static str| {
//!     MapHost::new(&arena, &NoWorld).with_variable(VariableId::REQ_URL, Plain::Text(Some(url.as_bytes())))
//! };
//! assert!(matches!(loaded.recv(&asked("/cart/7")), RecvVerdict::Pass));
//! assert!(matches!(loaded.recv(&asked("/")), RecvVerdict::Hash));
//! ```

mod acl_entries;
mod ban_expressions;
mod chance;
mod checker;
pub mod codes;
pub mod diagnostics;
#[cfg(test)]
mod effort;
mod evaluation;
mod foreign;
pub mod formatting;
pub mod header_names;
pub mod host;
mod house;
mod inclusion;
mod lexer;
pub mod limits;
pub mod loaded;
pub mod map_host;
mod matching;
mod near_names;
mod objects;
pub mod old_vcl;
mod parser;
pub mod plain_values;
mod regex_syntax;
pub mod scope_arena;
pub mod source_files;
pub mod subroutine_verdicts;
pub mod subroutines;
pub mod syntax;
pub mod task_state;
mod test_waits;
mod tokens;
pub mod typed_program;
pub mod types;
mod variable_constants;
mod variable_table;
pub mod variables;
pub mod vmod_signatures;
mod vmod_table;
mod vmods;
pub mod world;

pub use codes::{Code, Severity};
pub use diagnostics::{Diagnostic, draw};
pub use evaluation::lawful_values::header_value;
pub use header_names::{HeaderName, KeptName};
pub use host::{Health, Host, LogKind, Message, ProxyField, Purge, Purged, UnixPeer};
pub use loaded::{DynamicBackend, Loaded};
pub use map_host::MapHost;
pub use matching::pattern::{Groups, Pattern};
pub use near_names::nearest;
pub use plain_values::{BackendRef, Fault, Ip, Plain};
pub use scope_arena::Arena;
pub use source_files::{IncludeRequest, Included, Includes, NoIncludes, Sources};
pub use task_state::Task;
pub use test_waits::TestWait;
pub use variables::VariableId;
pub use world::{NoWorld, World};

use std::collections::HashSet;
use std::sync::OnceLock;

use diagnostics::Reports;
use syntax::Definition;
use typed_program::Program;

/// What holds when a policy does not decide.
pub const BUILTIN: &str = include_str!("builtin.vcl");

/// A program that was read, and what there is to say of it.
#[derive(Debug)]
pub struct Checked {
    /// The files it was read from, to which the diagnostics point. The last is builtin.vcl.
    pub sources: Sources,
    /// Errors first, each in the order of the text.
    pub diagnostics: Vec<Diagnostic>,
    /// There only without errors.
    pub program: Option<Program>,
}

impl Checked {
    pub fn is_good(&self) -> bool {
        self.program.is_some()
    }
}

/// Reads a file and what it includes, and checks it as a program, with builtin.vcl behind it.
pub fn check(first: Included, includes: &dyn Includes) -> Checked {
    check_beside(first, includes, &[])
}

/// The same of a program that may name backends which are defined elsewhere. Its own come first.
pub fn check_beside(first: Included, includes: &dyn Includes, elsewhere: &[String]) -> Checked {
    let (mut sources, mut reports) = (Sources::default(), Reports::default());
    let words = inclusion::all_words(first, includes, &mut sources, &mut reports);
    let definitions = parser::parse(&words, &sources, &mut reports);
    let builtin = Included { name: "builtin.vcl".to_owned(), bytes: BUILTIN.as_bytes().to_vec() };
    let words = inclusion::all_words(builtin, &NoIncludes, &mut sources, &mut reports);
    let builtin = parser::parse(&words, &sources, &mut reports);
    let program = checker::check((&definitions, &builtin), elsewhere, &sources, &mut reports);
    foreign::templates(&sources, &mut reports);
    let program = (!reports.has_errors()).then_some(program);
    Checked { sources, diagnostics: reports.finish(), program }
}

/// The names of the subroutines of builtin.vcl, before which a program may put its own.
fn builtin_names() -> &'static HashSet<String> {
    static NAMES: OnceLock<HashSet<String>> = OnceLock::new();
    NAMES.get_or_init(|| {
        let (mut sources, mut reports) = (Sources::default(), Reports::default());
        let builtin = Included { name: "builtin.vcl".to_owned(), bytes: BUILTIN.as_bytes().to_vec() };
        let words = inclusion::all_words(builtin, &NoIncludes, &mut sources, &mut reports);
        let names =
            parser::parse(&words, &sources, &mut reports).into_iter().filter_map(|definition| match definition {
                Definition::Subroutine { name, .. } => Some(name.text),
                _ => None,
            });
        names.collect()
    })
}
