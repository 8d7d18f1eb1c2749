//! Backends and directors of old. A director becomes an object of vmod directors, made in vcl_init.

use crate::codes::Code;
use crate::diagnostics::Diagnostic;
use crate::subroutines::Method;
use crate::tokens::{Mark, Word};

use super::old_bodies::Body;
use super::old_layout::{Definition, Kind};
use super::old_translator::Translator;

const BRACES: (Mark, Mark) = (Mark::BraceOpen, Mark::BraceClose);

/// Backends behind a director, in order.
#[derive(Debug, Default)]
struct Members {
    /// Statements of vcl_init, and comments.
    lines: Vec<String>,
    /// Backends that were defined in place.
    backends: Vec<String>,
}

impl Translator<'_> {
    /// The object's name: `default` is a word of the language.
    pub(super) fn director_name(name: &str) -> String {
        if name == "default" { "default_director".to_owned() } else { name.to_owned() }
    }

    /// What stands for a director where a backend is wanted. `None` for what is no director.
    pub(super) fn director_value(&self, name: &str, method: Method) -> Option<String> {
        let definition = self.layout.director(name)?;
        let object = Translator::director_name(name);
        let key = match (self.policy(definition).as_str(), super::old_names::is_backend_side(method)) {
            ("client", _) => "client.identity",
            ("hash", false) => "req.http.host + req.url",
            ("hash", true) => "bereq.http.host + bereq.url",
            _ => "",
        };
        Some(format!("{object}.backend({key})"))
    }

    fn policy(&self, definition: &Definition) -> String {
        self.text.lower(definition.start + 2)
    }

    /// The text that stands for `director name policy { … }`.
    pub(super) fn director(&mut self, definition: &Definition) -> Vec<u8> {
        let Kind::Director { name, open } = &definition.kind else { return Vec::new() };
        let class = match self.policy(definition).as_str() {
            "round-robin" => "round_robin",
            "random" => "random",
            "fallback" => "fallback",
            "client" | "hash" => "hash",
            _ => return self.director_left(definition, "vmod directors has no such director"),
        };
        let with_weights = matches!(class, "random" | "hash");
        let members = match self.members(definition, *open, name, with_weights) {
            Ok(members) => members,
            Err(why) => return self.director_left(definition, &why),
        };
        self.needs.directors = true;
        let object = Translator::director_name(name);
        let mut out = members.backends.concat();
        out.push_str(&format!("sub vcl_init {{\n    new {object} = directors.{class}();\n"));
        members.lines.iter().for_each(|line| out.push_str(&format!("    {line}\n")));
        out.push('}');
        if self.is_default(definition, name) {
            let value = self.director_value(name, Method::Recv).unwrap_or_default();
            out.push_str("\n\nsub vcl_recv {\n    if (req.restarts == 0) {\n");
            out.push_str(&format!("        set req.backend_hint = {value};\n    }}\n}}"));
        }
        out.into_bytes()
    }

    /// The first backend or director is the default, unless one is called so.
    fn is_default(&self, definition: &Definition, name: &str) -> bool {
        let named = |found: &Definition| match &found.kind {
            Kind::Director { name, .. } | Kind::Backend { name } => Some(name.clone()),
            _ => None,
        };
        let first = self.layout.definitions.iter().find(|found| named(found).is_some());
        let has_default = self.layout.definitions.iter().any(|found| named(found).as_deref() == Some("default"));
        name == "default" || !has_default && first.is_some_and(|first| first.start == definition.start)
    }

    fn director_left(&mut self, definition: &Definition, why: &str) -> Vec<u8> {
        let span = self.text.span(definition.start, definition.end);
        let report = Diagnostic::new(Code::NotCarriedOver, span, "this director is not carried over")
            .label(why)
            .way_out("the objects of vmod directors: round_robin, random, fallback, hash, shard; names that change: vmod dynamic");
        self.reports.push(report);
        let text = &self.text.bytes[self.text.start(definition.start)..self.text.end_before(definition.end)];
        super::old_translator::as_comment(why, text)
    }

    fn members(&mut self, definition: &Definition, open: usize, name: &str, weights: bool) -> Result<Members, String> {
        let mut members = Members::default();
        let mut at = open + 1;
        while at + 1 < definition.end {
            let from = self.text.end_before(at);
            let end = if self.text.is(at, Mark::BraceOpen) {
                let end = self.text.behind_closing(at, BRACES).ok_or("its braces do not match")?;
                self.member(at, end, name, weights, &mut members)?;
                end
            } else if self.text.is(at, Mark::Dot) {
                let end =
                    (at..definition.end).find(|at| self.text.is(*at, Mark::Semicolon)).ok_or("a `;` is missing")? + 1;
                let what = format!("`.{}` of the director is left away", self.text.text(at + 1));
                if self.text.text(at + 1) != "retries" {
                    return Err(what);
                }
                self.note_at(self.text.span(at, end), &what, "a director is not asked again for one request");
                end
            } else {
                return Err(format!("found `{}` where a backend should be", self.text.text(at)));
            };
            let to = self.text.end_before(end);
            let lines = self.comments(from, to);
            let behind = members.lines.len().saturating_sub(1);
            members.lines.splice(behind..behind, lines);
            at = end;
        }
        Ok(members)
    }

    /// `{ .backend = x; .weight = 1; }`
    fn member(
        &mut self,
        open: usize,
        end: usize,
        name: &str,
        weights: bool,
        members: &mut Members,
    ) -> Result<(), String> {
        let (mut backend, mut weight) = (None, None);
        let mut at = open + 1;
        while at + 1 < end {
            if !self.text.is(at, Mark::Dot) || !self.text.is(at + 2, Mark::Assign) {
                return Err(format!("found `{}` where an attribute should be", self.text.text(at)));
            }
            let (attribute, value) = (self.text.text(at + 1), at + 3);
            match attribute.as_str() {
                "backend" if self.text.is(value, Mark::BraceOpen) => {
                    let behind = self.text.behind_closing(value, BRACES).ok_or("its braces do not match")?;
                    let own = format!("{name}_{}", members.backends.len() + 1);
                    let text = self.attributes_text(value, behind);
                    members.backends.push(format!("backend {own} {text}\n\n"));
                    backend = Some(own);
                    at = if self.text.is(behind, Mark::Semicolon) { behind + 1 } else { behind };
                    continue;
                }
                "backend" if self.text.is_identifier(value) => {
                    let known = self.text.text(value);
                    backend = Some(self.director_value(&known, Method::Init).unwrap_or(known));
                }
                "weight" if matches!(self.text.word(value).word, Word::Integer(_) | Word::Real(_)) => {
                    weight = Some(self.text.text(value));
                }
                _ => return Err(format!("an object of vmod directors has no `.{attribute}`")),
            }
            if !self.text.is(value + 1, Mark::Semicolon) {
                return Err("a `;` is missing".to_owned());
            }
            at = value + 2;
        }
        let backend = backend.ok_or("an entry without `.backend`")?;
        let object = Translator::director_name(name);
        let weight = if weights { format!(", {}", weight.unwrap_or_else(|| "1".to_owned())) } else { String::new() };
        members.lines.push(format!("{object}.add_backend({backend}{weight});"));
        Ok(())
    }

    /// The comments that begin between two places.
    fn comments(&self, from: usize, to: usize) -> Vec<String> {
        let inside = self.text.comments.iter().filter(|found| (from..to).contains(&(found.start as usize)));
        inside.map(|found| String::from_utf8_lossy(found.bytes(self.text.bytes)).into_owned()).collect()
    }

    /// `{ .host = …; }` of a backend in place.
    fn attributes_text(&mut self, open: usize, end: usize) -> String {
        let text = self.text;
        let mut body = Body::new(self, Method::Init);
        body.attributes(open, end);
        String::from_utf8_lossy(&body.edits.apply(text.bytes, text.start(open), text.end_before(end))).into_owned()
    }
}

impl Body<'_, '_> {
    /// Backends, probes, ACLs: words `from..end`.
    pub(super) fn attributes(&mut self, from: usize, end: usize) {
        let mut at = from;
        while at < end {
            let begins =
                at > from && matches!(self.text.word(at - 1).word, Word::Mark(Mark::BraceOpen | Mark::Semicolon));
            if begins && self.text.is_identifier(at) && self.text.text(at) == "set" {
                // Varnish 1: `set backend.host = "…";`
                let dot = at + 2;
                if self.text.lower(at + 1) == "backend" && self.text.is(dot, Mark::Dot) {
                    self.edits.replace(self.text.start(at), self.text.start(dot), "");
                }
                at = dot;
                continue;
            }
            if begins && self.text.is(at, Mark::Dot) && self.text.lower(at + 1) == "saintmode_threshold" {
                let stop = (at..end).find(|at| self.text.is(*at, Mark::Semicolon)).map_or(end, |at| at + 1);
                let way_out = "give the threshold to an object of vmod saintmode for this backend";
                self.leave(at, stop, "backends have no saint mode of their own now", Some(way_out));
                at = stop;
                continue;
            }
            self.unescape(at);
            at += 1;
        }
    }
}
