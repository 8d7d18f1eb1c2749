//! The statements of old that became something else: `set` of what is no variable any more, `error`, bans and purges.

use crate::subroutines::Method;
use crate::tokens::{Mark, Word};

use super::old_bodies::Body;
use super::old_names::{Access, is_backend_side};
use super::old_translator::PURGE;
use super::old_values::Problem;

impl Body<'_, '_> {
    /// `set target = value`: words `at..last`, with the `;` up to `end`.
    pub(super) fn set(&mut self, at: usize, last: usize, end: usize, problems: &mut Vec<Problem>) {
        let operator = self.name_end(at + 1);
        let value = operator + 1;
        let target = self.parts(at + 1, operator).join(".").to_ascii_lowercase();
        let value_is = |word: &str| value + 1 == last && self.text.lower(value) == word;
        match target.as_str() {
            "req.hash" if self.method == Method::Hash => {
                self.edits.replace(self.text.start(at), self.text.start(value), "hash_data(");
                self.values(value, last, problems);
                self.edits.insert(self.text.end_before(last), ")");
            }
            "obj.cacheable" | "beresp.cacheable" if is_backend_side(self.method) && value_is("false") => {
                self.replace_all(at, end, "set beresp.uncacheable = true;");
            }
            "obj.cacheable" | "beresp.cacheable" if is_backend_side(self.method) && value_is("true") => {
                self.drop_it(at, end, "what has a ttl is stored");
            }
            "obj.ttl" if self.method == Method::Hit && matches!(self.text.word(value).word, Word::Integer(0)) => {
                self.purge(at, end, "a ttl of 0 was the purge of Varnish 2; all variants go now");
            }
            "obj.ttl" | "obj.grace" | "obj.cacheable" if self.method == Method::Synth => {
                self.drop_it(at, end, "what vcl_synth makes is never stored");
            }
            "req.esi" if value_is("true") => self.drop_it(at, end, "it is so by default"),
            "beresp.storage" if self.text.is_text(value) && value + 1 == last => {
                let name = self.text.text(value);
                let store = format!("storage.{}", name.trim_matches('"'));
                self.edits.replace(self.text.start(value), self.text.end_before(last), store);
            }
            _ => {
                let now = self.name(at + 1, operator, Access::Set, problems);
                self.values(value, last, problems);
                if problems.is_empty() {
                    self.notes_on_set(at, end, &target, &now.unwrap_or_default());
                }
            }
        }
    }

    /// What changes its meaning without changing its form.
    fn notes_on_set(&mut self, at: usize, end: usize, target: &str, now: &str) {
        let span = self.text.span(at, end);
        if self.method == Method::BackendResponse && target.starts_with("req.http.") {
            let what = format!("`{target}` became `{now}`");
            self.note(
                span,
                &what,
                "the client's side does not see it: vcl_deliver and vcl_hit have the request as it was",
            );
        } else if target.starts_with("bereq.") && now.starts_with("req.") {
            let what = format!("`{target}` became `{now}`");
            self.note(
                span,
                &what,
                "the origin's request is made after this subroutine; vcl_deliver sees the change too",
            );
        } else if target == "req.http.x-forwarded-for" && self.method == Method::Recv {
            let has_client = (at..end).any(|at| self.text.lower(at) == "client" && self.text.lower(at + 2) == "ip");
            if has_client {
                self.note(
                    span,
                    "the client's address may be in X-Forwarded-For twice",
                    "it is appended before vcl_recv now",
                );
            }
        }
    }

    /// Without loss, and still not in silence.
    fn drop_it(&mut self, at: usize, end: usize, why: &str) {
        self.note(self.text.span(at, end), "this is left away", why);
        self.comment_out(at, end, why);
    }

    /// `error 404 "reason";`, with or without parentheses.
    pub(super) fn error(&mut self, at: usize, last: usize, end: usize, problems: &mut Vec<Problem>) {
        let action = match self.method {
            Method::BackendResponse => "error",
            Method::Recv | Method::Pipe | Method::Pass | Method::Hit | Method::Miss | Method::Deliver => "synth",
            _ => {
                let why = format!("{} cannot end with an error", self.method.name());
                self.problem(at, end, why, None, problems);
                return;
            }
        };
        if last == at + 1 {
            self.replace_all(at, end, &format!("return ({action}(503));"));
            return;
        }
        let (start, behind) = (self.text.start(at), self.text.end_before(last));
        let closing = self.text.behind_closing(at + 1, (Mark::ParenOpen, Mark::ParenClose));
        if self.text.is(at + 1, Mark::ParenOpen) && closing == Some(last) {
            self.edits.replace(start, self.text.start(at + 1), format!("return ({action}"));
            self.values(at + 2, last - 1, problems);
            self.edits.insert(behind, ")");
            return;
        }
        self.edits.replace(start, self.text.start(at + 1), format!("return ({action}("));
        let reason = match self.text.word(at + 1).word {
            Word::Identifier => self.name_end(at + 1),
            _ => at + 2,
        };
        self.values(at + 1, reason, problems);
        if reason < last {
            self.edits.insert(self.text.end_before(reason), ",");
            self.values(reason, last, problems);
        }
        self.edits.insert(behind, "))");
    }

    /// `synthetic "…" req.xid;`, `log "…";`, `panic "…";`
    pub(super) fn with_text(&mut self, at: usize, last: usize, word: &str, problems: &mut Vec<Problem>) {
        let (open, close) = match word {
            "synthetic" if !matches!(self.method, Method::Synth | Method::BackendError) => {
                let why = format!("`synthetic` belongs into vcl_synth, not into {}", self.method.name());
                let way_out = "return (synth(…)) and make the body in vcl_synth";
                self.problem(at, last, why, Some(way_out), problems);
                return;
            }
            "synthetic" => ("synthetic(", ")"),
            "log" => {
                self.shared.needs.std = true;
                ("std.log(", ")")
            }
            _ => ("return (fail(", "))"),
        };
        let closing = self.text.behind_closing(at + 1, (Mark::ParenOpen, Mark::ParenClose));
        let in_parentheses = self.text.is(at + 1, Mark::ParenOpen) && closing == Some(last);
        self.values(at + 1, last, problems);
        if in_parentheses && word == "synthetic" {
            return;
        }
        self.edits.replace(self.text.start(at), self.text.start(at + 1), open);
        self.edits.insert(self.text.end_before(last), close);
    }

    /// `purge;`, and bans by all their names.
    pub(super) fn ban(&mut self, at: usize, last: usize, end: usize, word: &str, problems: &mut Vec<Problem>) {
        if word == "purge" && last == at + 1 {
            if matches!(self.method, Method::Hit | Method::Miss) {
                self.purge(at, end, "");
            } else {
                let way_out = "write `return (purge);` in vcl_recv";
                self.problem(
                    at,
                    end,
                    format!("there is nothing to purge in {}", self.method.name()),
                    Some(way_out),
                    problems,
                );
            }
            return;
        }
        if !self.text.is(at + 1, Mark::ParenOpen) {
            self.problem(at, end, format!("`{word}` without parentheses"), None, problems);
            return;
        }
        let by_url = word.ends_with("_url");
        if word != "ban" {
            self.edits.replace(self.text.start(at), self.text.end_before(at + 1), "ban");
        }
        if by_url {
            self.edits.insert(self.text.end_before(at + 2), "\"req.url ~ \" + ");
        }
        self.values(at + 2, last - 1, problems);
    }

    fn purge(&mut self, at: usize, end: usize, why: &str) {
        self.shared.needs.purge = true;
        self.replace_all(at, end, &format!("{PURGE}.hard();"));
        if !why.is_empty() {
            self.note(self.text.span(at, end), "this became a purge", why);
        }
    }
}
