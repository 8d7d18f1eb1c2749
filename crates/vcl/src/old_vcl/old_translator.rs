//! Definitions of old, as they are written now.
//!
//! A subroutine is translated once for each of today's in which it runs: `vcl_error` became two, and one of the user's
//! own may be called from both sides. Where the texts are the same there is one copy; else each has a name of its own.

use std::collections::HashMap;

use crate::codes::Code;
use crate::diagnostics::{Diagnostic, Reports};
use crate::source_files::Span;
use crate::subroutines::Method;
use crate::tokens::Mark;

use super::Dialect;
use super::old_actions;
use super::old_bodies::Body;
use super::old_layout::{Definition, Kind, Layout, OldText};

/// What vmods the new text uses.
#[derive(Debug, Default)]
pub struct Needs {
    pub std: bool,
    pub purge: bool,
    pub directors: bool,
}

/// Under this name vmod purge is imported: an ACL of the same name is in many files.
pub const PURGE: &str = "purging";

/// A text of a subroutine of the user's own, and its name.
struct Copy {
    name: String,
    text: Vec<u8>,
    /// The text under the name of old.
    plain: Vec<u8>,
}

pub struct Translator<'a> {
    pub(super) text: &'a OldText<'a>,
    pub(super) layout: &'a Layout,
    pub(super) dialect: Dialect,
    pub(super) reports: Vec<Diagnostic>,
    pub(super) needs: Needs,
    /// By the number of the definition.
    copies: HashMap<usize, Vec<Copy>>,
    names: HashMap<(usize, Method), String>,
    /// Subroutines that are being translated, so that a circle ends.
    open: Vec<usize>,
}

/// The statement stays to be read.
pub fn as_comment(why: &str, text: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(text).replace("*/", "* /").replace("/*", "/ *");
    format!("/* larder import: not carried over ({why}): {text} */").into_bytes()
}

impl<'a> Translator<'a> {
    pub fn new(text: &'a OldText<'a>, layout: &'a Layout, dialect: Dialect) -> Translator<'a> {
        Translator {
            text,
            layout,
            dialect,
            reports: Vec::new(),
            needs: Needs::default(),
            copies: HashMap::new(),
            names: HashMap::new(),
            open: Vec::new(),
        }
    }

    pub fn translate(mut self, reports: &mut Reports) -> Vec<u8> {
        let (text, layout) = (self.text, self.layout);
        let mut parts: HashMap<usize, Vec<u8>> = HashMap::new();
        for (number, definition) in layout.definitions.iter().enumerate() {
            if let Some(part) = self.definition(definition) {
                parts.insert(number, part);
            }
        }
        for (number, definition) in layout.definitions.iter().enumerate() {
            if parts.contains_key(&number) {
                continue;
            }
            if let Kind::Subroutine { open, .. } = &definition.kind {
                if !self.copies.contains_key(&number) {
                    let method = self.guessed_method(*open, definition.end);
                    self.copy_name(number, method);
                }
                let copies = self.copies.get(&number).into_iter().flatten();
                parts.insert(number, copies.map(|copy| copy.text.as_slice()).collect::<Vec<_>>().join(&b"\n\n"[..]));
            }
        }
        let mut out = self.head();
        let mut at = 0;
        for (number, definition) in layout.definitions.iter().enumerate() {
            out.extend_from_slice(&text.bytes[at..text.start(definition.start)]);
            at = text.end_before(definition.end);
            out.extend_from_slice(parts.get(&number).map_or(&[], Vec::as_slice));
        }
        out.extend_from_slice(&text.bytes[at..]);
        for report in self.reports {
            reports.add(report);
        }
        out
    }

    /// The version, and what must be imported.
    fn head(&self) -> Vec<u8> {
        let mut head = "vcl 4.1;\n".to_owned();
        let is_imported = |module: &str| {
            let is_it = |found: &&Definition| found.kind == Kind::Import && self.text.text(found.start + 1) == module;
            self.layout.definitions.iter().any(|found| is_it(&found))
        };
        let wanted = [
            (self.needs.directors && !is_imported("directors"), "import directors;".to_owned()),
            (self.needs.purge, format!("import purge as {PURGE};")),
            (self.needs.std && !is_imported("std"), "import std;".to_owned()),
        ];
        let wanted: Vec<&str> = wanted.iter().filter(|(is, _)| *is).map(|(_, line)| line.as_str()).collect();
        if !wanted.is_empty() {
            head.push_str(&format!("\n{}\n", wanted.join("\n")));
        }
        head.push('\n');
        head.into_bytes()
    }

    /// The new text; `None` for subroutines of the user's own, which wait for those that call them.
    fn definition(&mut self, definition: &Definition) -> Option<Vec<u8>> {
        let (start, end) = (definition.start, definition.end);
        match &definition.kind {
            Kind::Subroutine { name, open } => {
                let methods = old_actions::methods(name)?;
                if methods.is_empty() {
                    return Some(self.moment_that_is_gone(definition, *open, name));
                }
                let texts: Vec<Vec<u8>> =
                    methods.iter().map(|method| self.subroutine(start, *open, end, *method, method.name())).collect();
                Some(texts.join(&b"\n\n"[..]))
            }
            Kind::Director { .. } => Some(self.director(definition)),
            Kind::Backend { .. } | Kind::Other => Some(self.edited(start, end, |body| body.attributes(start, end))),
            Kind::Import => Some(self.edited(start, end, |body| body.import(start, end))),
            Kind::Include => {
                let why = "larder translates one file at a time: give that one to `larder import` too";
                self.note_at(self.text.span(start, end), "the included file is not looked at", why);
                Some(self.edited(start, end, |_| ()))
            }
            Kind::InlineC => Some(self.edited(start, end, |body| body.inline_c(start))),
        }
    }

    fn edited(&mut self, start: usize, end: usize, edit: impl FnOnce(&mut Body<'_, 'a>)) -> Vec<u8> {
        let text = self.text;
        let mut body = Body::new(self, Method::Init);
        edit(&mut body);
        body.edits.apply(text.bytes, text.start(start), text.end_before(end))
    }

    /// `sub NAME { … }` as it is in one of today's subroutines.
    fn subroutine(&mut self, start: usize, open: usize, end: usize, method: Method, name: &str) -> Vec<u8> {
        let text = self.text;
        let mut body = Body::new(self, method);
        if text.text(start + 1) != name {
            body.edits.replace(text.start(start + 1), text.end_before(start + 2), name);
        }
        body.block(open);
        body.edits.apply(text.bytes, text.start(start), text.end_before(end))
    }

    /// vcl_timeout and its like: nothing is lost when they only did what happens anyway.
    fn moment_that_is_gone(&mut self, definition: &Definition, open: usize, name: &str) -> Vec<u8> {
        let (start, end) = (definition.start, definition.end);
        let words: Vec<String> = (open + 1..end - 1).map(|at| self.text.lower(at)).collect();
        let does_nothing = matches!(
            words.iter().map(String::as_str).collect::<Vec<_>>()[..],
            [] | ["discard" | "fetch", ";"] | ["return", "(", "discard" | "fetch", ")", ";"]
        );
        let why = format!("there is no {name} any more");
        let span = self.text.span(start, end);
        if does_nothing {
            self.note_at(span, &why, "it did what happens anyway");
        } else {
            let report =
                Diagnostic::new(Code::NotCarriedOver, span, "this subroutine is not carried over").label(why.clone());
            self.reports.push(report);
        }
        as_comment(&why, &self.text.bytes[self.text.start(start)..self.text.end_before(end)])
    }

    /// The name by which a subroutine of the user's own is called from one of today's.
    pub(super) fn copy_name(&mut self, number: usize, method: Method) -> String {
        let definition = &self.layout.definitions[number];
        let Kind::Subroutine { name, open } = &definition.kind else { return String::new() };
        if let Some(known) = self.names.get(&(number, method)) {
            return known.clone();
        }
        if self.open.contains(&number) {
            return name.clone();
        }
        self.open.push(number);
        let plain = self.subroutine(definition.start, *open, definition.end, method, name);
        self.open.pop();
        let copies = self.copies.entry(number).or_default();
        let own = match copies.iter().find(|copy| copy.plain == plain) {
            Some(known) => known.name.clone(),
            None if copies.is_empty() => {
                copies.push(Copy { name: name.clone(), text: plain.clone(), plain });
                name.clone()
            }
            None => {
                let own = format!("{name}_in{}", &method.name()["vcl".len()..]);
                let text = self.subroutine(definition.start, *open, definition.end, method, &own);
                self.copies.entry(number).or_default().push(Copy { name: own.clone(), text, plain });
                own
            }
        };
        self.names.insert((number, method), own.clone());
        own
    }

    /// For a subroutine that nothing here calls: by the messages it speaks of.
    fn guessed_method(&self, open: usize, end: usize) -> Method {
        let purges = |at: usize| self.text.lower(at) == "purge" && self.text.is(at + 1, Mark::Semicolon);
        let speaks_of =
            |message: &str| (open..end).any(|at| self.text.is(at + 1, Mark::Dot) && self.text.lower(at) == message);
        if speaks_of("beresp") {
            Method::BackendResponse
        } else if speaks_of("resp") {
            Method::Deliver
        } else if speaks_of("obj") || (open..end).any(purges) {
            Method::Hit
        } else {
            Method::Recv
        }
    }

    pub(super) fn note_at(&mut self, span: Span, what: &str, why: &str) {
        self.reports.push(Diagnostic::new(Code::CarriedOver, span, what).label(why));
    }
}
