//! What each built-in subroutine reaches by calls, and whether all of that is allowed there.
//!
//! A subroutine of one's own may do what every built-in one that reaches it may do. The report names the built-in one
//! and the calls in between. Each is visited once from each built-in one, so chains of calls cost nothing.

use std::collections::HashSet;

use super::statement_checker::legal_actions;
use super::{Checker, Use, UseKind};
use crate::codes::Code;
use crate::diagnostics::Diagnostic;
use crate::limits::CALL_DEPTH_MAX;
use crate::source_files::Span;
use crate::subroutines::{self, Action, Method, MethodSet};
use crate::typed_program::SubroutineId;

impl Checker<'_> {
    pub(super) fn call_graph(&mut self) {
        if !self.recursion() {
            return;
        }
        let mut reported = HashSet::new();
        let mut reached = vec![false; self.facts.len()];
        for method in Method::all() {
            if let Some(id) = self.program.methods[method as usize] {
                self.reach(method, id, &mut reached, &mut reported);
            }
        }
        for (index, reached) in reached.iter().enumerate() {
            let own = self.facts[index].method.is_none() && !self.facts[index].is_builtin;
            if own && !reached && self.possible(index, &mut vec![None; self.facts.len()]).is_empty() {
                let name = self.facts[index].name.clone();
                let what = format!("no built-in subroutine could call `{name}`");
                let report = Diagnostic::new(Code::Impossible, self.facts[index].span, what)
                    .note("it uses things that are available in different subroutines only");
                self.report(report);
            }
        }
    }

    /// Whether there is none.
    fn recursion(&mut self) -> bool {
        let mut state = vec![State::New; self.facts.len()];
        for start in 0..self.facts.len() {
            // A stack of its own: calls may be chained as deep as there are subroutines.
            let mut stack = vec![(start, 0)];
            while let Some((index, next)) = stack.pop() {
                if next == 0 {
                    if state[index] != State::New {
                        continue;
                    }
                    state[index] = State::Open;
                }
                let Some(&(callee, span)) = self.facts[index].calls.get(next) else {
                    state[index] = State::Done;
                    continue;
                };
                stack.push((index, next + 1));
                if state[callee.index()] == State::Open {
                    let name = self.facts[callee.index()].name.clone();
                    let what = format!("`{name}` calls itself");
                    let report = Diagnostic::new(Code::Recursion, span, what)
                        .label("by this call")
                        .note_at(self.facts[callee.index()].span, "it begins here");
                    self.report(report);
                    return false;
                }
                if stack.len() > CALL_DEPTH_MAX {
                    let what = format!("subroutines call one another more than {CALL_DEPTH_MAX} deep");
                    self.report(Diagnostic::new(Code::TooMuch, span, what));
                    return false;
                }
                stack.push((callee.index(), 0));
            }
        }
        true
    }

    fn reach(&mut self, method: Method, from: SubroutineId, reached: &mut [bool], reported: &mut HashSet<Span>) {
        // For each subroutine the call by which it was reached first.
        let mut caller: Vec<Option<(usize, Span)>> = vec![None; self.facts.len()];
        let mut seen = vec![false; self.facts.len()];
        let mut waiting = vec![from.index()];
        seen[from.index()] = true;
        while let Some(index) = waiting.pop() {
            reached[index] = true;
            let mut found = Vec::new();
            for used in self.facts[index].uses.iter().filter(|used| !used.allowed.has(method)) {
                found.push(misuse(used, method));
            }
            for (action, span) in &self.facts[index].returns {
                found.extend(wrong_return(*action, *span, method));
            }
            for report in found {
                if reported.insert(report.span) {
                    let report = self.with_chain(report, method, index, &caller);
                    self.report(report);
                }
            }
            for (callee, span) in &self.facts[index].calls {
                if !std::mem::replace(&mut seen[callee.index()], true) {
                    caller[callee.index()] = Some((index, *span));
                    waiting.push(callee.index());
                }
            }
        }
    }

    /// By which calls the built-in subroutine comes here.
    fn with_chain(
        &self,
        mut report: Diagnostic,
        method: Method,
        mut index: usize,
        caller: &[Option<(usize, Span)>],
    ) -> Diagnostic {
        while let Some((from, span)) = caller[index] {
            let name = &self.facts[index].name;
            let by = &self.facts[from].name;
            let by = if by.eq_ignore_ascii_case(method.name()) { method.name() } else { by };
            report = report.note_at(span, format!("`{name}` is called by `{by}` here"));
            index = from;
        }
        report
    }

    /// The built-in subroutines that could call this one. Without recursion, which was looked for, this ends.
    fn possible(&self, index: usize, known: &mut Vec<Option<MethodSet>>) -> MethodSet {
        if let Some(set) = known[index] {
            return set;
        }
        let facts = &self.facts[index];
        let bound = facts.uses.iter().filter(|used| used.kind != UseKind::CallThatFails);
        let mut set = bound.fold(MethodSet::ALL, |set, used| set.intersection(used.allowed));
        for (action, _) in &facts.returns {
            let having =
                Method::all().filter(|m| m.actions().contains(action) || subroutines::renamed(*m, *action).is_some());
            set = set.intersection(having.map(Method::set).fold(MethodSet::NONE, MethodSet::union));
        }
        for (callee, _) in &facts.calls {
            set = set.intersection(self.possible(callee.index(), known));
        }
        known[index] = Some(set);
        set
    }
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    New,
    Open,
    Done,
}

fn misuse(used: &Use, method: Method) -> Diagnostic {
    let Use { kind, name, allowed, span } = used;
    if *kind == UseKind::CallThatFails {
        let what = format!("`{name}` fails when it runs in {}", method.name());
        return Diagnostic::new(Code::FailsHere, *span, what)
            .note(format!("it works in {}; newer versions of Varnish refuse it elsewhere", allowed.show()));
    }
    let (code, verb) = match kind {
        UseKind::Read => (Code::NotReadableHere, "read"),
        UseKind::Write => (Code::NotWritableHere, "set"),
        UseKind::Unset => (Code::NotUnsettable, "unset"),
        UseKind::Call | UseKind::CallThatFails => (Code::NotHere, "called"),
    };
    let what = format!("`{name}` cannot be {verb} in {}", method.name());
    let in_varnish = match kind {
        UseKind::Call => format!("Not a valid action in subroutine '{}'", method.name()),
        _ => format!("Not available in subroutine '{}'.", method.name()),
    };
    let report =
        Diagnostic::new(code, *span, what).note(format!("it can be in {}", allowed.show())).in_varnish(in_varnish);
    match right_prefix(name, method) {
        Some(way_out) if *kind != UseKind::Call => report.way_out(way_out),
        _ => report,
    }
}

/// The variable that is meant on this side.
fn right_prefix(name: &str, method: Method) -> Option<String> {
    let (message, rest) = name.split_once('.')?;
    let to = |prefix: &str| Some(format!("use `{prefix}.{rest}` here"));
    match (message.to_ascii_lowercase().as_str(), method) {
        ("req", _) if MethodSet::BACKEND.has(method) => to("bereq"),
        ("bereq", Method::Pipe) => None,
        ("bereq", _) if MethodSet::CLIENT.has(method) => to("req"),
        ("resp", Method::BackendResponse | Method::BackendError) => to("beresp"),
        ("beresp" | "obj", Method::Deliver | Method::Synth) => to("resp"),
        ("obj", Method::BackendResponse | Method::BackendError) => to("beresp"),
        ("beresp", Method::Hit) => to("obj"),
        ("resp", Method::Hit) => to("obj"),
        _ => None,
    }
}

fn wrong_return(action: Action, span: Span, method: Method) -> Option<Diagnostic> {
    if method.actions().contains(&action) {
        return None;
    }
    if let Some((_, way_out)) = subroutines::renamed(method, action) {
        let what = format!("`return ({})` is gone from {} since Varnish 6.2", action.name(), method.name());
        let report = Diagnostic::new(Code::RenamedAction, span, what)
            .label("read as it was meant: a fetch that the client waits for")
            .way_out(way_out);
        return Some(report);
    }
    let what = format!("{} cannot return `{}`", method.name(), action.name());
    let report =
        Diagnostic::new(Code::WrongReturn, span, what).note(format!("it may return {}", legal_actions(method)));
    Some(match (method, action) {
        (Method::Recv, Action::Lookup) => {
            report.way_out("write `return (hash);`, which is what `lookup` was in Varnish 3")
        }
        (Method::Recv | Method::Pass | Method::Pipe | Method::Miss | Method::Hit | Method::Deliver, Action::Error) => {
            report.way_out("write `return (synth(…));`")
        }
        (Method::Hash, Action::Hash) => report.way_out("write `return (lookup);`"),
        (Method::BackendResponse, Action::Restart) => report.way_out("write `return (retry);`"),
        (Method::BackendResponse | Method::BackendError | Method::BackendFetch, Action::Synth) => {
            report.way_out("write `return (error(…));`, or `set beresp.status`")
        }
        _ => report,
    })
}
