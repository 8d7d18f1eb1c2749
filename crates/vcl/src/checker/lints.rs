//! What is lawful and probably not meant. Each rule looks at what users wrote, never at builtin.vcl.

use super::known_headers::KnownHeaders;
use crate::ban_expressions;
use crate::codes::Code;
use crate::diagnostics::{Diagnostic, Reports};
use crate::source_files::{Sources, Span};
use crate::subroutines::{Action, Method};
use crate::syntax::{AssignOperator, BinaryOperator};
use crate::typed_program::{Program, Statement, StatementKind, Subroutine, Target, Value, ValueKind, Verdict};

pub(super) fn lint(program: &Program, sources: &Sources, reports: &mut Reports) {
    let mut lints = Lints { program, sources, reports, known: KnownHeaders::default() };
    for subroutine in &program.subroutines {
        lints.known = KnownHeaders::default();
        for body in subroutine.bodies.iter().filter(|body| !body.is_builtin) {
            lints.statements(&body.statements);
        }
    }
    lints.hash_skips_builtin();
    lints.hash_without_url();
    lints.cookie_cached();
}

struct Lints<'a> {
    program: &'a Program,
    sources: &'a Sources,
    reports: &'a mut Reports,
    known: KnownHeaders,
}

impl<'a> Lints<'a> {
    fn warn(&mut self, diagnostic: Diagnostic) {
        self.reports.add(diagnostic);
    }

    fn statements(&mut self, statements: &[Statement]) {
        let mut uncacheable = None;
        for (index, statement) in statements.iter().enumerate() {
            if let (StatementKind::Return(_) | StatementKind::Leave, Some(next)) =
                (&statement.kind, statements.get(index + 1))
            {
                let report = Diagnostic::new(Code::Unreachable, next.span, "this is never reached")
                    .note_at(statement.span, "the subroutine ends here");
                self.warn(report);
            }
            match &statement.kind {
                StatementKind::Set { target, operator, value } => {
                    if is_variable(target, "beresp.uncacheable") && matches!(value.kind, ValueKind::Bool(true)) {
                        uncacheable = Some(statement.span);
                    }
                    if let (true, Some(first)) = (is_variable(target, "beresp.grace"), uncacheable) {
                        let what = "grace of what is not stored means nothing";
                        let report = Diagnostic::new(Code::TtlOfUncacheable, statement.span, what)
                            .note_at(first, "it is not stored because of this");
                        self.warn(report);
                    }
                    self.absent_becomes_empty(target, *operator, value);
                    self.value(value);
                    self.known.set(target);
                }
                StatementKind::Unset(target) => {
                    self.cookie_too_late(target, statement.span);
                    self.known.unset(target);
                }
                StatementKind::Call(_) => self.known.called(),
                StatementKind::Ban(text) => {
                    self.ban(text);
                    self.value(text);
                }
                StatementKind::If { branches, otherwise } => self.branches(branches, otherwise),
                StatementKind::Block(inside) => self.statements(inside),
                StatementKind::HashData(value) | StatementKind::Synthetic(value) | StatementKind::Function(value) => {
                    self.value(value);
                }
                _ => {}
            }
        }
    }

    fn branches(&mut self, branches: &[(Value, Vec<Statement>)], otherwise: &[Statement]) {
        let mut ways = Vec::new();
        let start = self.known.mark();
        for (condition, block) in branches {
            self.value(condition);
            let way = self.known.mark();
            self.known.assume(condition, true);
            self.statements(block);
            ways.push(self.known.leave(way, ends(block)));
            self.known.assume(condition, false);
        }
        self.statements(otherwise);
        ways.push(self.known.leave(start, ends(otherwise)));
        self.known.join(ways);
    }

    fn value(&mut self, value: &Value) {
        match &value.kind {
            ValueKind::Compare { operator, left, right } => {
                let empty = |side: &Value| matches!(&side.kind, ValueKind::Text(text) if text.is_empty());
                let header = |side: &Value| matches!(side.kind, ValueKind::Header(..));
                if header(left) && empty(right) || empty(left) && header(right) {
                    self.header_against_empty(*operator, value, if header(left) { left } else { right });
                }
            }
            ValueKind::Match { text, regex, .. } => self.regex(value, text, &self.program.regexes[regex.index()]),
            _ => {}
        }
        for part in parts(value) {
            self.value(part);
        }
    }

    fn header_against_empty(&mut self, operator: BinaryOperator, value: &Value, header: &Value) {
        let name = self.sources.text(header.span);
        let (what, way_out) = match operator {
            BinaryOperator::Equal => {
                ("an absent header is not equal to \"\"", format!("write `!{name}` for one that is absent"))
            }
            BinaryOperator::NotEqual => {
                ("an absent header is not equal to \"\", so this is true for one", format!("write `{name}`"))
            }
            _ => return,
        };
        let report = Diagnostic::new(Code::HeaderAgainstEmpty, value.span, what).way_out(way_out);
        self.warn(report);
    }

    fn absent_becomes_empty(&mut self, target: &Target, operator: AssignOperator, value: &Value) {
        let (Target::Header(_, to), ValueKind::Header(message, from)) = (target, &value.kind) else { return };
        // Copies under the same name are common and rarely hurt.
        let guarded = self.known.of(*message, from) == Some(true);
        if operator != AssignOperator::Set || to.eq_ignore_ascii_case(from) || guarded {
            return;
        }
        let name = self.sources.text(value.span);
        let report = Diagnostic::new(
            Code::AbsentBecomesEmpty,
            value.span,
            format!("when `{name}` is absent, this sets an empty header"),
        )
        .note("an empty header is true in a condition, and is sent on")
        .way_out(format!("guard it: `if ({name}) {{ … }}`"));
        self.warn(report);
    }

    /// Requests with a Cookie took another way before it is unset, so the unset changes nothing.
    fn cookie_too_late(&mut self, target: &Target, span: Span) {
        let Target::Header(message, name) = target else { return };
        let is_request = matches!(message.get().name, "req.http.*" | "bereq.http.*");
        if is_request && name.eq_ignore_ascii_case("Cookie") && self.known.of(*message, name) == Some(false) {
            let report = Diagnostic::new(Code::CookieTooLate, span, "no request that comes here has a Cookie")
                .note("those with one took another way at a condition before this")
                .way_out("unset the Cookie before that condition");
            self.warn(report);
        }
    }

    fn regex(&mut self, whole: &Value, text: &Value, pattern: &[u8]) {
        let on_url = matches!(text.kind, ValueKind::Variable(row) if matches!(row.get().name, "req.url" | "bereq.url"));
        if !on_url {
            return;
        }
        if pattern == b"^$" {
            let report = Diagnostic::new(Code::NeverMatches, whole.span, "a URL is never empty")
                .way_out("the root is `== \"/\"`");
            self.warn(report);
            return;
        }
        if let Some(extension) = loose_extension(pattern) {
            let report = Diagnostic::new(
                Code::LooseExtension,
                whole.span,
                format!("`{extension}` is found anywhere in the URL"),
            )
            .label("also in the middle of a name or query")
            .way_out(format!("end it: `{extension}(\\?.*)?$`"));
            self.warn(report);
        }
    }

    fn ban(&mut self, text: &Value) {
        let parts: Vec<Option<&[u8]>> = match &text.kind {
            ValueKind::Join(parts) => parts.iter().map(super::statement_checker::constant_text).collect(),
            _ => vec![super::statement_checker::constant_text(text)],
        };
        let verdict = ban_expressions::check(&parts);
        if let Some(why) = verdict.fault {
            let report = Diagnostic::new(Code::BadBan, text.span, format!("this ban can never be added: {why}"))
                .note("the fields, operators and values of a ban are parted by blanks, and `&&` stands between blanks too")
                .way_out("write \"req.url ~ \" + req.url + \" && obj.status == 200\"");
            self.warn(report);
        } else if verdict.on_request {
            let report = Diagnostic::new(Code::BanOnRequest, text.span, "a ban on `req.…` is tested when objects are asked for")
                .note("objects that nobody asks for keep their space until then")
                .way_out("store what is needed on the object, as `set beresp.http.x-url = bereq.url;`, and ban on `obj.http.x-url`");
            self.warn(report);
        }
    }

    /// `return (hash)` that is always reached in vcl_recv, and nobody looked at what the built-in rules look at.
    fn hash_skips_builtin(&mut self) {
        let Some(recv) = self.program.method(Method::Recv) else { return };
        let mut statements = user_statements(recv);
        let unconditional =
            statements.find(|statement| matches!(&statement.kind, StatementKind::Return(Verdict::Plain(Action::Hash))));
        let Some(last) = unconditional else { return };
        let tested = |wanted: &str| {
            let mut found = false;
            for subroutine in reachable(self.program, recv) {
                for_values(subroutine, &mut |value| found |= names(value, wanted));
            }
            found
        };
        let missing: Vec<&str> =
            ["req.method", "Authorization", "Cookie"].into_iter().filter(|wanted| !tested(wanted)).collect();
        if missing.is_empty() {
            return;
        }
        let what = format!("this skips the built-in rules, and {} is not looked at", missing.join(", "));
        let report = Diagnostic::new(Code::HashSkipsBuiltin, last.span, what)
            .note("the built-in vcl_recv passes requests with other methods than GET and HEAD, with Authorization, with Cookie")
            .way_out("leave the return away, so that the built-in vcl_recv goes on");
        self.warn(report);
    }

    /// A key of one's own that has no URL, and the built-in one is not reached.
    fn hash_without_url(&mut self) {
        let Some(hash) = self.program.method(Method::Hash) else { return };
        let lookup = user_statements(hash)
            .find(|statement| matches!(&statement.kind, StatementKind::Return(Verdict::Plain(Action::Lookup))));
        let Some(lookup) = lookup else { return };
        let mut has_url = false;
        for subroutine in reachable(self.program, hash) {
            for_values(subroutine, &mut |value| {
                has_url |= names(value, "req.url") || matches!(value.kind, ValueKind::Call { .. })
            });
        }
        if !has_url {
            let what = "the key has no URL: all pages would be one object";
            self.warn(Diagnostic::new(Code::HashWithoutUrl, lookup.span, what).way_out("write `hash_data(req.url);`"));
        }
    }

    /// vcl_backend_response delivers always, nobody looked at Set-Cookie, and the built-in rule is skipped.
    fn cookie_cached(&mut self) {
        let Some(response) = self.program.method(Method::BackendResponse) else { return };
        let deliver = user_statements(response)
            .find(|statement| matches!(&statement.kind, StatementKind::Return(Verdict::Plain(Action::Deliver))));
        let Some(deliver) = deliver else { return };
        let mut seen = false;
        for subroutine in reachable(self.program, response) {
            for_values(subroutine, &mut |value| seen |= names(value, "Set-Cookie"));
            for_statements(&subroutine.bodies, &mut |statement| {
                seen |= match &statement.kind {
                    StatementKind::Unset(target) => names_target(target, "Set-Cookie"),
                    StatementKind::Set { target, .. } => is_variable(target, "beresp.uncacheable"),
                    _ => false,
                };
            });
        }
        if !seen {
            let report =
                Diagnostic::new(Code::CookieCached, deliver.span, "an answer with Set-Cookie is stored as any other")
                    .note("the built-in vcl_backend_response, which this skips, does not store such answers")
                    .way_out("leave the return away, or test `beresp.http.Set-Cookie`");
            self.warn(report);
        }
    }
}

/// Whether what stands behind the block is not reached from it.
fn ends(block: &[Statement]) -> bool {
    block.iter().any(|statement| matches!(statement.kind, StatementKind::Return(_) | StatementKind::Leave))
}

/// The statements of the user's bodies that are always reached.
fn user_statements(subroutine: &Subroutine) -> impl Iterator<Item = &Statement> {
    subroutine.bodies.iter().filter(|body| !body.is_builtin).flat_map(|body| &body.statements)
}

/// The subroutine and those of the user's that it calls.
fn reachable<'p>(program: &'p Program, from: &'p Subroutine) -> Vec<&'p Subroutine> {
    let mut found = vec![from];
    let mut next = 0;
    while next < found.len() {
        let mut called = Vec::new();
        for_statements(&found[next].bodies, &mut |statement| {
            if let StatementKind::Call(id) = &statement.kind {
                called.push(*id);
            }
        });
        for id in called {
            let callee = &program.subroutines[id.index()];
            if !found.iter().any(|known| std::ptr::eq(*known, callee)) {
                found.push(callee);
            }
        }
        next += 1;
    }
    found
}

/// All statements of the user's bodies.
fn for_statements<'p>(bodies: &'p [crate::typed_program::Body], see: &mut impl FnMut(&'p Statement)) {
    fn all<'p>(statements: &'p [Statement], see: &mut impl FnMut(&'p Statement)) {
        for statement in statements {
            see(statement);
            match &statement.kind {
                StatementKind::If { branches, otherwise } => {
                    branches.iter().for_each(|(_, block)| all(block, see));
                    all(otherwise, see);
                }
                StatementKind::Block(inside) => all(inside, see),
                _ => {}
            }
        }
    }
    bodies.iter().filter(|body| !body.is_builtin).for_each(|body| all(&body.statements, see));
}

/// All values of the user's bodies, the inner ones too.
fn for_values(subroutine: &Subroutine, see: &mut impl FnMut(&Value)) {
    fn all(value: &Value, see: &mut impl FnMut(&Value)) {
        see(value);
        parts(value).into_iter().for_each(|part| all(part, see));
    }
    for_statements(&subroutine.bodies, &mut |statement| match &statement.kind {
        StatementKind::Set { value, .. }
        | StatementKind::Ban(value)
        | StatementKind::HashData(value)
        | StatementKind::Synthetic(value)
        | StatementKind::Function(value) => all(value, see),
        StatementKind::If { branches, .. } => branches.iter().for_each(|(condition, _)| all(condition, see)),
        _ => {}
    });
}

fn is_variable(target: &Target, name: &str) -> bool {
    matches!(target, Target::Variable(row) if row.get().name == name)
}

fn names_target(target: &Target, header: &str) -> bool {
    matches!(target, Target::Header(_, name) if name.eq_ignore_ascii_case(header))
}

/// Whether the value is this variable, or any message's header of this name.
fn names(value: &Value, wanted: &str) -> bool {
    match &value.kind {
        ValueKind::Variable(row) => row.get().name == wanted,
        ValueKind::Header(_, header) => header.eq_ignore_ascii_case(wanted),
        _ => false,
    }
}

/// The values within a value.
fn parts(value: &Value) -> Vec<&Value> {
    match &value.kind {
        ValueKind::ToText(of) | ValueKind::ToBool(of) | ValueKind::Widened(of) => vec![of],
        ValueKind::Negative(of) | ValueKind::Not(of) | ValueKind::Property { of, .. } => vec![of],
        ValueKind::Join(parts) | ValueKind::And(parts) | ValueKind::Or(parts) => parts.iter().collect(),
        ValueKind::Arithmetic { left, right, .. } | ValueKind::Compare { left, right, .. } => vec![left, right],
        ValueKind::Match { text, .. } => vec![text],
        ValueKind::AclMatch { address, acl, .. } => vec![address, acl],
        ValueKind::Regsub { text, replacement, .. } => vec![text, replacement],
        ValueKind::Call { arguments, .. } => arguments.iter().flatten().collect(),
        _ => Vec::new(),
    }
}

/// A pattern that is nothing but `\.jpg` or `\.(jpg|png)`.
fn loose_extension(pattern: &[u8]) -> Option<String> {
    let rest = pattern.strip_prefix(b"(?i)").unwrap_or(pattern).strip_prefix(b"\\.")?;
    let letters = |rest: &[u8]| !rest.is_empty() && rest.iter().all(|b| b.is_ascii_alphanumeric());
    let group = rest.strip_prefix(b"(").and_then(|rest| rest.strip_suffix(b")"));
    let loose = letters(rest) || group.is_some_and(|inside| inside.split(|b| *b == b'|').all(letters));
    loose.then(|| String::from_utf8_lossy(pattern).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loose_extensions_are_known() {
        let check =
            |pattern: &str, expect| assert_eq!(loose_extension(pattern.as_bytes()).is_some(), expect, "{pattern}");
        check("\\.jpg", true);
        check("(?i)\\.(jpg|png)", true);
        check("\\.(jpg|png)$", false);
        check("\\.jpg\\?", false);
    }
}
