//! Statements of old, in one of the subroutines of today.

use crate::codes::Code;
use crate::diagnostics::Diagnostic;
use crate::source_files::Span;
use crate::subroutines::Method;
use crate::tokens::{Mark, Word};

use super::old_actions::{self, Returned, is_action, returned};
use super::old_edits::Edits;
use super::old_layout::{Definition, Kind, OldText};
use super::old_names::{Access, is_backend_side};
use super::old_translator::{Translator, as_comment};
use super::old_values::Problem;

/// One run over the statements of one subroutine.
pub struct Body<'t, 'a> {
    pub(super) shared: &'t mut Translator<'a>,
    pub(super) text: &'a OldText<'a>,
    pub(super) method: Method,
    pub(super) edits: Edits,
}

impl<'t, 'a> Body<'t, 'a> {
    pub fn new(shared: &'t mut Translator<'a>, method: Method) -> Body<'t, 'a> {
        let text = shared.text;
        Body { shared, text, method, edits: Edits::default() }
    }

    pub(super) fn note(&mut self, span: Span, what: &str, why: &str) {
        self.shared.note_at(span, what, why);
    }

    /// The statement becomes a comment.
    pub(super) fn leave(&mut self, start: usize, end: usize, why: &str, way_out: Option<&'static str>) {
        let mut report =
            Diagnostic::new(Code::NotCarriedOver, self.text.span(start, end), "this is not carried over").label(why);
        report.way_out = way_out.map(Into::into);
        self.shared.reports.push(report);
        self.comment_out(start, end, why);
    }

    pub(super) fn comment_out(&mut self, start: usize, end: usize, why: &str) {
        let (from, to) = (self.text.start(start), self.text.end_before(end));
        self.edits.replace(from, to, as_comment(why, &self.text.bytes[from..to]));
    }

    pub(super) fn inline_c(&mut self, at: usize) {
        self.leave(at, at + 1, "larder compiles no C", Some("look for a function of the built-in vmods that does it"));
    }

    /// `import x from "path";`: vmods are built in.
    pub(super) fn import(&mut self, start: usize, end: usize) {
        if let Some(from) = (start..end).find(|at| self.text.is_identifier(*at) && self.text.text(*at) == "from") {
            self.edits.replace(self.text.end_before(from), self.text.start(end - 1), "");
            self.note(self.text.span(from, end), "the path is left away", "vmods are built in");
        }
    }

    /// The statements within the braces that open here; behind them.
    pub(super) fn block(&mut self, open: usize) -> usize {
        let mut at = open + 1;
        while !self.text.is(at, Mark::BraceClose) && self.text.word(at).word != Word::End {
            at = self.statement(at);
        }
        at + 1
    }

    fn statement(&mut self, at: usize) -> usize {
        let word = self.text.word(at);
        match word.word {
            Word::Mark(Mark::BraceOpen) => return self.block(at),
            Word::Mark(Mark::Semicolon) => {
                self.edits.replace(self.text.start(at), self.text.end_before(at + 1), "");
                return at + 1;
            }
            Word::InlineC => {
                self.inline_c(at);
                return at + 1;
            }
            _ => {}
        }
        let first = self.text.lower(at);
        if matches!(first.as_str(), "if" | "elseif" | "elsif" | "elif" | "else") {
            return self.conditional(at, &first);
        }
        let end = self.end_of_statement(at);
        let mut problems = Vec::new();
        let count = self.edits.count();
        self.plain_statement(at, end, &first, &mut problems);
        if let Some(problem) = problems.into_iter().next() {
            self.edits.undo_to(count);
            self.leave(at, end, &problem.why, problem.way_out);
        }
        end
    }

    /// Behind its `;`, or before the brace that is in the way.
    fn end_of_statement(&self, at: usize) -> usize {
        let ends = |at: &usize| {
            matches!(
                self.text.word(*at).word,
                Word::Mark(Mark::Semicolon | Mark::BraceOpen | Mark::BraceClose) | Word::End
            )
        };
        let end = (at + 1..self.text.words.len()).find(ends).unwrap_or(self.text.words.len() - 1);
        if self.text.is(end, Mark::Semicolon) { end + 1 } else { end }
    }

    /// One branch: the condition and the block. `else` without `if` has only a block.
    fn conditional(&mut self, at: usize, word: &str) -> usize {
        let head = if word == "else" && self.text.lower(at + 1) == "if" { at + 2 } else { at + 1 };
        if word == "else" && head == at + 1 {
            return if self.text.is(head, Mark::BraceOpen) { self.block(head) } else { head };
        }
        let Some(behind) = self.text.behind_closing(head, (Mark::ParenOpen, Mark::ParenClose)) else { return head };
        if let Some(end) = self.branch_for_others(at, word, head, behind) {
            return end;
        }
        let mut problems = Vec::new();
        self.values(head + 1, behind - 1, &mut problems);
        for problem in problems {
            let mut report = Diagnostic::new(Code::NotCarriedOver, problem.span, "this condition is not carried over")
                .label(problem.why.clone());
            report.way_out = problem.way_out.map(Into::into);
            self.shared.reports.push(report);
            let note = format!("/* larder import: not carried over: {} */ ", problem.why);
            self.edits.insert(problem.span.start as usize, note);
        }
        if self.text.is(behind, Mark::BraceOpen) { self.block(behind) } else { behind }
    }

    /// `if (obj.status == 750) { … }` in vcl_error is for what the client's side raised, unless something on the
    /// origin's side raises it too: then vcl_backend_error can do without it.
    fn branch_for_others(&mut self, at: usize, word: &str, open: usize, behind: usize) -> Option<usize> {
        let words: Vec<String> = (open + 1..behind - 1).map(|at| self.text.lower(at)).collect();
        let ["obj", ".", "status", "==", status] = words.iter().map(String::as_str).collect::<Vec<_>>()[..] else {
            return None;
        };
        if self.method != Method::BackendError
            || word != "if"
            || status == "503"
            || !self.text.is(behind, Mark::BraceOpen)
        {
            return None;
        }
        let raised = |at: usize| self.text.lower(at) == "error" && self.text.text(at + 1) == status;
        let layout = self.shared.layout;
        let own = |found: &&Definition| match &found.kind {
            Kind::Subroutine { name, .. } => {
                let methods = old_actions::methods(name);
                methods.is_none_or(|methods| methods.iter().any(|method| is_backend_side(*method)))
            }
            _ => false,
        };
        if layout.definitions.iter().filter(own).any(|found| (found.start..found.end).any(raised)) {
            return None;
        }
        let end = self.text.behind_closing(behind, (Mark::BraceOpen, Mark::BraceClose))?;
        if matches!(self.text.lower(end).as_str(), "else" | "elseif" | "elsif" | "elif") {
            return None;
        }
        self.edits.replace(self.text.start(at), self.text.end_before(end), "");
        Some(end)
    }

    fn plain_statement(&mut self, at: usize, end: usize, first: &str, problems: &mut Vec<Problem>) {
        let last = if self.text.is(end - 1, Mark::Semicolon) { end - 1 } else { end };
        let is_path = self.text.is(at + 1, Mark::Dot);
        match first {
            _ if is_path => self.values(at, last, problems),
            "set" => self.set(at, last, end, problems),
            "unset" | "remove" => {
                self.word_becomes(at, "unset");
                self.name(at + 1, last, Access::Unset, problems);
            }
            "call" => self.call(at + 1),
            "return" => {
                let action = if self.text.is(at + 1, Mark::ParenOpen) { self.text.text(at + 2) } else { String::new() };
                self.action(at, end, &action, problems);
            }
            "error" => self.error(at, last, end, problems),
            "synthetic" | "log" | "panic" => self.with_text(at, last, first, problems),
            "hash_data" => self.values(at, last, problems),
            "purge" | "ban" | "purge_url" | "ban_url" => self.ban(at, last, end, first, problems),
            "esi" => self.only_in(at, end, Method::BackendResponse, "set beresp.do_esi = true;", problems),
            "rollback" => {
                self.shared.needs.std = true;
                let of = if is_backend_side(self.method) { "bereq" } else { "req" };
                self.replace_all(at, end, &format!("std.rollback({of});"));
            }
            "include" => {
                let span = self.text.span(at, end);
                self.note(span, "the included file is not looked at", "give that one to `larder import` too");
            }
            "new" => self.values(at + 3, last, problems),
            _ if is_action(first) && last == at + 1 => self.action(at, end, first, problems),
            _ => self.problem(at, at + 1, format!("there is no statement `{first}` now"), None, problems),
        }
    }

    pub(super) fn problem(
        &self,
        at: usize,
        end: usize,
        why: String,
        way_out: Option<&'static str>,
        problems: &mut Vec<Problem>,
    ) {
        problems.push(Problem { span: self.text.span(at, end), why, way_out });
    }

    fn word_becomes(&mut self, at: usize, now: &str) {
        if self.text.lower(at) != now {
            self.edits.replace(self.text.start(at), self.text.end_before(at + 1), now);
        }
    }

    pub(super) fn replace_all(&mut self, at: usize, end: usize, by: &str) {
        self.edits.replace(self.text.start(at), self.text.end_before(end), by);
    }

    fn only_in(&mut self, at: usize, end: usize, method: Method, by: &str, problems: &mut Vec<Problem>) {
        if self.method == method {
            self.replace_all(at, end, by);
        } else {
            let why = format!("`{by}` belongs into {}", method.name());
            self.problem(at, end, why, None, problems);
        }
    }

    fn call(&mut self, name_at: usize) {
        let name = self.text.text(name_at);
        let is_it = |found: &Definition| matches!(&found.kind, Kind::Subroutine { name: known, .. } if *known == name);
        let Some(number) = self.shared.layout.definitions.iter().position(is_it) else { return };
        let own = self.shared.copy_name(number, self.method);
        if own != name {
            self.edits.replace(self.text.start(name_at), self.text.end_before(name_at + 1), own);
        }
    }

    fn action(&mut self, at: usize, end: usize, action: &str, problems: &mut Vec<Problem>) {
        let statements = match returned(self.method, action) {
            Returned::By(statements) => statements,
            Returned::With(statements, why) => {
                self.note(self.text.span(at, end), &format!("`{action}` became `{}`", statements.join(" ")), why);
                statements
            }
            Returned::Gone(why) => {
                self.problem(at, end, format!("`{action}` in {}: {why}", self.method.name()), None, problems);
                return;
            }
        };
        let is_ok = self.method == Method::Init && statements == ["return (ok);"];
        if is_ok && self.shared.layout.definitions.iter().any(|found| matches!(found.kind, Kind::Director { .. })) {
            // Other bodies of vcl_init, which make the directors, may follow; and the built-in one returns the same.
            self.replace_all(at, end, "");
            return;
        }
        let between =
            if self.text.begins_line(at) { format!("\n{}", self.text.indentation(at)) } else { " ".to_owned() };
        let now = statements.join(&between);
        let as_written: String = (at..end).map(|at| self.text.text(at)).collect();
        if now.replace(' ', "") != as_written {
            self.replace_all(at, end, &now);
        }
    }
}
