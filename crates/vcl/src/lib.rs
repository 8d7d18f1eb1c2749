//! The policy language: text, program, and what is wrong with it.
//!
//! ```text
//! source_files, inclusion   the bytes of a file and of what it includes
//!   → lexer, tokens     words
//!   → parser, syntax    a tree
//!   → checker           names, types, where things are allowed; the built-in subroutines (builtin.vcl) joined on
//!   → program           typed, resolved: what an evaluator is compiled from
//! ```
//!
//! Everything that is wrong goes through `diagnostics`, with a code from `codes`. This crate knows no HTTP type, no
//! socket and no file: whoever calls it hands in the bytes and finds what is included.

pub mod codes;
pub mod diagnostics;
mod foreign;
mod inclusion;
mod lexer;
pub mod limits;
mod near_names;
mod parser;
pub mod source_files;
pub mod syntax;
mod tokens;

pub use codes::{Code, Severity};
pub use diagnostics::{Diagnostic, draw};
pub use source_files::{IncludeRequest, Included, Includes, NoIncludes, Sources};

use diagnostics::Reports;
use syntax::Definition;

/// A program that was read, and what there is to say of it.
#[derive(Debug)]
pub struct Checked {
    /// The files it was read from, to which the diagnostics point.
    pub sources: Sources,
    pub definitions: Vec<Definition>,
    pub diagnostics: Vec<Diagnostic>,
}

impl Checked {
    /// What the program holds, in one line.
    pub fn summary(&self) -> String {
        let count = |is: fn(&Definition) -> bool| self.definitions.iter().filter(|d| is(d)).count();
        let counted = |n: usize, one: &str| if n == 1 { format!("1 {one}") } else { format!("{n} {one}s") };
        let subroutines = count(|d| matches!(d, Definition::Subroutine { .. }));
        let backends = count(|d| matches!(d, Definition::Backend(_)));
        let acls = count(|d| matches!(d, Definition::Acl(_)));
        format!("{}, {}, {}", counted(subroutines, "subroutine"), counted(backends, "backend"), counted(acls, "ACL"))
    }

    pub fn is_good(&self) -> bool {
        self.diagnostics.iter().all(|diagnostic| diagnostic.severity() != Severity::Error)
    }
}

/// Reads a file and what it includes.
pub fn check(first: Included, includes: &dyn Includes) -> Checked {
    let (mut sources, mut reports) = (Sources::default(), Reports::default());
    let words = inclusion::all_words(first, includes, &mut sources, &mut reports);
    let definitions = parser::parse(&words, &sources, &mut reports);
    foreign::templates(&sources, &mut reports);
    Checked { sources, definitions, diagnostics: reports.finish() }
}
