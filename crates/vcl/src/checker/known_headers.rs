//! Which headers are known to be there, or known to be missing, at a place of a subroutine: for the lints.
//!
//! Conditions tell, `set` and `unset` tell. What holds after an `if` is what holds at the end of each of its ways that
//! does not leave the subroutine. Every statement is looked at once; what a way changed is taken back by a log. Nothing
//! here warns, and a wrong answer costs a warning, never the program.

use std::collections::{HashMap, HashSet};

use crate::syntax::BinaryOperator;
use crate::typed_program::{Target, Value, ValueKind};
use crate::variables::VariableId;

/// A message and a header's name in small letters.
type Header = (VariableId, String);

/// What is known, at one place after another.
#[derive(Default)]
pub(super) struct KnownHeaders {
    now: HashMap<Header, bool>,
    /// What was known of a header before it changed.
    log: Vec<(Header, Option<bool>)>,
}

/// Where a way of an `if` began.
pub(super) struct Mark(usize);

/// What one way of an `if` made known; `None` when it leaves the subroutine.
pub(super) type Learned = Option<HashMap<Header, bool>>;

impl KnownHeaders {
    /// `Some(true)`: it is there.
    pub(super) fn of(&self, row: VariableId, name: &str) -> Option<bool> {
        let always: &[&str] = match row.get().name {
            "req.http.*" => &["Host", "X-Forwarded-For"],
            "bereq.http.*" => &["Host"],
            "beresp.http.*" => &["Date"],
            "resp.http.*" => &["Date", "Age"],
            _ => &[],
        };
        if always.iter().any(|known| known.eq_ignore_ascii_case(name)) {
            return Some(true); // Varnish sees to it before VCL runs
        }
        self.now.get(&(row, name.to_ascii_lowercase())).copied()
    }

    pub(super) fn set(&mut self, target: &Target) {
        if let Target::Header(row, name) = target {
            self.change((*row, name.to_ascii_lowercase()), Some(true));
        }
    }

    /// From now on nothing is known: who unsets a header twice means no harm.
    pub(super) fn unset(&mut self, target: &Target) {
        if let Target::Header(row, name) = target {
            self.change((*row, name.to_ascii_lowercase()), None);
        }
    }

    /// Another subroutine may have put back what was missing.
    pub(super) fn called(&mut self) {
        let missing: Vec<Header> = self.now.iter().filter(|(_, there)| !**there).map(|(h, _)| h.clone()).collect();
        missing.into_iter().for_each(|header| self.change(header, None));
    }

    /// Before a way of an `if`.
    pub(super) fn mark(&self) -> Mark {
        Mark(self.log.len())
    }

    /// The condition came out so.
    pub(super) fn assume(&mut self, condition: &Value, outcome: bool) {
        for (header, there) in told(condition, outcome) {
            self.change(header, Some(there));
        }
    }

    /// Behind a way of an `if`: all is as before it, but for what it may have made unknown.
    pub(super) fn leave(&mut self, mark: Mark, ends: bool) -> Learned {
        let mut first = HashSet::new();
        let mut learned = HashMap::new();
        let mut forgotten = Vec::new();
        let changes: Vec<_> = self.log.drain(mark.0..).collect();
        for (header, before) in changes {
            if !first.insert(header.clone()) {
                continue;
            }
            let now = self.now.get(&header).copied();
            self.put(&header, before);
            match now {
                _ if ends || now == before => {}
                Some(there) => drop(learned.insert(header, there)),
                None => forgotten.push(header),
            }
        }
        forgotten.into_iter().for_each(|header| self.change(header, None));
        (!ends).then_some(learned)
    }

    /// Behind an `if`: what all of its ways agree on.
    pub(super) fn join(&mut self, ways: Vec<Learned>) {
        for (header, there) in shared(ways.into_iter().flatten()) {
            self.change(header, Some(there));
        }
    }

    fn change(&mut self, header: Header, to: Option<bool>) {
        let before = self.now.get(&header).copied();
        if before != to {
            self.put(&header, to);
            self.log.push((header, before));
        }
    }

    fn put(&mut self, header: &Header, to: Option<bool>) {
        match to {
            Some(there) => drop(self.now.insert(header.clone(), there)),
            None => drop(self.now.remove(header)),
        }
    }
}

/// What the condition says of headers when it comes out so. Any test of a header's text counts as a look at it.
fn told(condition: &Value, outcome: bool) -> HashMap<Header, bool> {
    match &condition.kind {
        ValueKind::ToBool(of) => header(of).map(|header| (header, outcome)).into_iter().collect(),
        ValueKind::Not(of) => told(of, !outcome),
        ValueKind::And(parts) if outcome => parts.iter().flat_map(|part| told(part, true)).collect(),
        ValueKind::Or(parts) if !outcome => parts.iter().flat_map(|part| told(part, false)).collect(),
        ValueKind::And(parts) | ValueKind::Or(parts) => shared(parts.iter().map(|part| told(part, outcome))),
        ValueKind::Match { negated, text, .. } if *negated != outcome => there(text),
        ValueKind::Compare { operator, left, right } => {
            let empty = |side: &Value| matches!(&side.kind, ValueKind::Text(text) if text.is_empty());
            let equal = match operator {
                BinaryOperator::Equal => outcome,
                // Meant as a guard; that it is none has a warning of its own.
                BinaryOperator::NotEqual => !outcome || empty(left) || empty(right),
                _ => false,
            };
            if equal { there(left).into_iter().chain(there(right)).collect() } else { HashMap::new() }
        }
        _ => HashMap::new(),
    }
}

fn there(text: &Value) -> HashMap<Header, bool> {
    header(text).map(|header| (header, true)).into_iter().collect()
}

fn header(value: &Value) -> Option<Header> {
    match &value.kind {
        ValueKind::Header(row, name) => Some((*row, name.to_ascii_lowercase())),
        ValueKind::ToText(of) => header(of),
        _ => None,
    }
}

/// What all of them say. Each is gone through once.
fn shared(mut all: impl Iterator<Item = HashMap<Header, bool>>) -> HashMap<Header, bool> {
    let mut agreed = all.next().unwrap_or_default();
    for one in all {
        agreed.retain(|header, there| one.get(header) == Some(there));
    }
    agreed
}
