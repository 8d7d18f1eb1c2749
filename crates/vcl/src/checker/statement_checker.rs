//! Statements: what may be set to what, returns with their arguments, and what may stand where.

use super::{Checker, SymbolKind, Use, UseKind};
use crate::codes::Code;
use crate::diagnostics::Diagnostic;
use crate::near_names::nearest;
use crate::source_files::Span;
use crate::subroutines::{self, Action, Method, MethodSet};
use crate::syntax::{self, Argument, AssignOperator, Expression, ExpressionKind, Identifier, Name, ReturnAction};
use crate::typed_program::{Statement, StatementKind, Target, Value, ValueKind, Verdict};
use crate::types::Type;
use crate::variables::{self, Found};

impl Checker<'_> {
    pub(super) fn block(&mut self, block: &syntax::Block) -> Vec<Statement> {
        let mut statements = Vec::with_capacity(block.statements.len());
        for statement in &block.statements {
            let kind = self.statement(&statement.kind, statement.span);
            statements.extend(kind.map(|kind| Statement { kind, span: statement.span }));
        }
        statements
    }

    fn statement(&mut self, kind: &syntax::StatementKind, span: Span) -> Option<StatementKind> {
        use syntax::StatementKind as Written;
        match kind {
            Written::Set { target, operator, operator_span, value } => {
                self.set(target, *operator, *operator_span, value)
            }
            Written::Unset(name) => self.unset(name),
            Written::Call(callee) => self.call_statement(callee),
            Written::Return(None) => self.leave(span),
            Written::Return(Some(action)) => self.returns(action).map(StatementKind::Return),
            Written::If { branches, otherwise } => {
                let mut checked = Some(Vec::with_capacity(branches.len()));
                for (condition, block) in branches {
                    let condition = self.value(condition, Type::Bool);
                    let block = self.block(block);
                    match (condition, &mut checked) {
                        (Some(condition), Some(checked)) => checked.push((condition, block)),
                        _ => checked = None,
                    }
                }
                let otherwise = otherwise.as_ref().map(|block| self.block(block)).unwrap_or_default();
                Some(StatementKind::If { branches: checked?, otherwise })
            }
            Written::New { name, class, arguments } => self.new_object(name, class, arguments, span),
            Written::Ban(text) => self.value(text, Type::String).map(StatementKind::Ban),
            Written::HashData(text) => {
                self.uses(UseKind::Call, "hash_data".to_owned(), Method::Hash.set(), span);
                self.value(text, Type::Strands).map(StatementKind::HashData)
            }
            Written::Synthetic(text) => {
                let allowed = Method::Synth.set().union(Method::BackendError.set());
                self.uses(UseKind::Call, "synthetic".to_owned(), allowed, span);
                self.value(text, Type::Strands).map(StatementKind::Synthetic)
            }
            Written::Function(call) => self.function_statement(call).map(StatementKind::Function),
            Written::Block(block) => Some(StatementKind::Block(self.block(block))),
        }
    }

    fn function_statement(&mut self, call: &Expression) -> Option<Value> {
        match &call.kind {
            ExpressionKind::Call { callee, arguments } => self.call_any(callee, arguments, Type::String, call.span),
            _ => self.raw(call, Type::String),
        }
    }

    pub(super) fn uses(&mut self, kind: UseKind, name: String, allowed: MethodSet, span: Span) {
        if allowed != MethodSet::ALL
            && let Some(facts) = self.facts.get_mut(self.current)
        {
            facts.uses.push(Use { kind, name, allowed, span });
        }
    }

    /// The variable to be set or unset.
    fn target(&mut self, name: &Name) -> Option<Found> {
        let parts: Vec<&str> = name.parts.iter().map(|part| part.text.as_str()).collect();
        let Some(found) = variables::find(&parts, self.program.version) else {
            match self.symbol(parts[0]) {
                Some(SymbolKind::Faulty) => {}
                Some(_) if parts.len() == 1 => {
                    let what = format!("`{}` is no variable", name.text());
                    self.report(Diagnostic::new(Code::WrongKind, name.span, what).label("cannot be set or unset"));
                }
                _ => self.unknown_name(name),
            }
            return None;
        };
        if let Found::Header(_, header) = &found {
            self.header_name(header, name)?;
        }
        Some(found)
    }

    /// What newer versions forbid and older files do.
    fn framing_header(&mut self, found: &Found, name: &Name) -> bool {
        let Found::Header(_, header) = found else { return false };
        let is_framing = variables::is_framing_header(header);
        if is_framing {
            let what = format!("`{}` is larder's own to set", name.text());
            let report = Diagnostic::new(Code::Ignored, name.span, what)
                .label("without effect")
                .note("how long a body is follows from the body; Varnish forbids this since 7.4");
            self.report(report);
        }
        is_framing
    }

    fn set(&mut self, name: &Name, operator: AssignOperator, place: Span, value: &Expression) -> Option<StatementKind> {
        let Some(found) = self.target(name) else {
            self.value_alone(value);
            return None;
        };
        let (target, variable) = match &found {
            Found::Variable(row) => (Target::Variable(*row), row.get()),
            Found::Header(row, header) => (Target::Header(*row, header.clone()), row.get()),
            Found::Storage(row, _) => (Target::Variable(*row), row.get()),
        };
        if variable.writable.is_empty() {
            let report = Diagnostic::new(Code::ReadOnly, name.span, "Variable is read only.")
                .label(format!("`{}` cannot be set", name.text()));
            let report =
                if variable.unsettable.is_empty() { report } else { report.in_varnish("Variable cannot be set.") };
            self.report(match name.parts[0].text.to_ascii_lowercase().as_str() {
                "obj" => report.way_out("set `beresp.…` in vcl_backend_response, or `resp.…` in vcl_deliver"),
                "client" => report.way_out("`client.identity` can be set"),
                _ => report,
            });
            return None;
        }
        let ignored = self.framing_header(&found, name);
        if !ignored {
            self.uses(UseKind::Write, name.text(), variable.writable, name.span);
        }
        let Some(wanted) = assigned(variable.of, operator) else {
            let what = format!("{} has no `{}`", variable.of.name(), operator.text());
            let report = Diagnostic::new(Code::BadOperator, place, what);
            self.report(report.in_varnish(format!("Expected '=' got '{}'", operator.text())));
            self.value_alone(value);
            return None;
        };
        let value = self.value(value, wanted)?;
        Some(if ignored { StatementKind::Nothing } else { StatementKind::Set { target, operator, value } })
    }

    /// A value whose type is unknown, for its own mistakes.
    fn value_alone(&mut self, value: &Expression) {
        self.raw(value, Type::String);
    }

    fn unset(&mut self, name: &Name) -> Option<StatementKind> {
        let found = self.target(name)?;
        let (target, variable) = match &found {
            Found::Variable(row) | Found::Storage(row, _) => (Target::Variable(*row), row.get()),
            Found::Header(row, header) => (Target::Header(*row, header.clone()), row.get()),
        };
        if variable.unsettable.is_empty() {
            let report = Diagnostic::new(Code::NotUnsettable, name.span, format!("`{}` cannot be unset", name.text()))
                .in_varnish("Variable cannot be unset.");
            self.report(if variable.of == Type::Header { report.note("it can only be read") } else { report });
            return None;
        }
        if self.framing_header(&found, name) {
            return Some(StatementKind::Nothing);
        }
        self.uses(UseKind::Unset, name.text(), variable.unsettable, name.span);
        Some(StatementKind::Unset(target))
    }

    fn call_statement(&mut self, callee: &Expression) -> Option<StatementKind> {
        let ExpressionKind::Name(name) = &callee.kind else {
            let report = Diagnostic::new(Code::WrongKind, callee.span, "`call` takes the name of a subroutine");
            self.report(report.way_out("functions and methods are statements by themselves, without `call`"));
            return None;
        };
        let text = name.text();
        match self.symbol_used(&text) {
            Some(SymbolKind::Subroutine(id)) => {
                self.facts[self.current].calls.push((id, name.span));
                Some(StatementKind::Call(id))
            }
            Some(SymbolKind::Faulty) => None,
            Some(_) => {
                self.report(Diagnostic::new(Code::WrongKind, name.span, format!("`{text}` is no subroutine")));
                None
            }
            None => {
                let known: Vec<&str> = self.facts.iter().map(|facts| facts.name.as_str()).collect();
                let near = nearest(&text, known).map(str::to_owned);
                let report = Diagnostic::new(Code::UnknownName, name.span, format!("there is no subroutine `{text}`"));
                self.report(report.did_you_mean(near.as_deref()));
                None
            }
        }
    }

    /// `return;`.
    fn leave(&mut self, span: Span) -> Option<StatementKind> {
        let facts = &self.facts[self.current];
        if let Some(method) = facts.method {
            let legal = legal_actions(method);
            let report = Diagnostic::new(Code::WrongReturn, span, "Expected '(' got ';'")
                .label(format!("{} must return with an action", method.name()))
                .way_out(format!("write `return (…);` with one of {legal}"));
            self.report(report);
            return None;
        }
        Some(StatementKind::Leave)
    }

    fn returns(&mut self, written: &ReturnAction) -> Option<Verdict> {
        let word = &written.word;
        let Some(mut action) = Action::by_name(&word.text) else {
            self.report(self.unknown_action(word));
            return None;
        };
        self.facts[self.current].returns.push((action, word.span));
        if self.facts[self.current].method == Some(Method::Hit)
            && let Some((meant, _)) = subroutines::renamed(Method::Hit, action)
        {
            action = meant;
        }
        let arguments = written.arguments.as_deref();
        let count = arguments.map_or(0, <[_]>::len);
        let (least, most, form) = match action {
            Action::Synth => (1, 2, "synth(404, \"Not found\")"),
            Action::Error => (0, 2, "error(503, \"why\")"),
            Action::Vcl => (1, 1, "vcl(label)"),
            Action::Pass => (0, 1, "pass, or in vcl_backend_response pass(10s)"),
            Action::Fail => (0, 1, "fail(\"why\")"),
            _ => (0, 0, ""),
        };
        if count < least || count > most {
            let what = match most {
                0 => format!("`{}` takes no arguments", action.name()),
                _ if count == 0 => format!("`{}` needs arguments", action.name()),
                _ => format!("`{}` takes at most {most} arguments", action.name()),
            };
            let in_varnish = if most == 0 { "Arguments not allowed." } else { "Missing argument." };
            let report = Diagnostic::new(Code::BadArguments, written.span, what);
            let report = if count <= most.max(1) { report.in_varnish(in_varnish) } else { report };
            self.report(if form.is_empty() { report } else { report.way_out(format!("write `return ({form});`")) });
            return None;
        }
        self.verdict(action, arguments.unwrap_or_default())
    }

    fn verdict(&mut self, action: Action, arguments: &[Expression]) -> Option<Verdict> {
        match (action, arguments) {
            (Action::Synth | Action::Error, [status, rest @ ..]) => {
                let status = self.value(status, Type::Int);
                let reason = match rest.first() {
                    Some(reason) => Some(Box::new(self.value(reason, Type::String)?)),
                    None => None,
                };
                Some(Verdict::Status { action, status: Box::new(status?), reason })
            }
            (Action::Pass, [duration]) => Some(Verdict::PassFor(Box::new(self.value(duration, Type::Duration)?))),
            (Action::Fail, [why]) => Some(Verdict::Fail(Some(Box::new(self.value(why, Type::String)?)))),
            (Action::Fail, []) => Some(Verdict::Fail(None)),
            (Action::Vcl, [label]) => {
                let ExpressionKind::Name(name) = &label.kind else {
                    self.report(Diagnostic::new(Code::WrongKind, label.span, "`vcl` takes the name of a label"));
                    return None;
                };
                let text = name.text();
                if let Some(kind) = self.symbol(&text) {
                    let in_varnish = match self.program.version {
                        ..=40 => format!("Symbol not found: '{text}'"),
                        _ => format!("Symbol '{text}' has wrong type ({}), expected vcl:", kind.short()),
                    };
                    let report = Diagnostic::new(Code::WrongKind, label.span, format!("`{text}` is no label"));
                    self.report(report.in_varnish(in_varnish));
                    return None;
                }
                let labels = &mut self.program.labels;
                let index = labels.iter().position(|known| *known == text).unwrap_or_else(|| {
                    labels.push(text);
                    labels.len() - 1
                });
                Some(Verdict::Vcl(index))
            }
            _ => Some(Verdict::Plain(action)),
        }
    }

    fn unknown_action(&self, word: &Identifier) -> Diagnostic {
        let text = &word.text;
        let method = self.facts[self.current].method;
        let report = |code| {
            Diagnostic::new(code, word.span, format!("there is no return action `{text}`"))
                .in_varnish("Expected return action name.")
        };
        match text.as_str() {
            "hit_for_pass" => report(Code::OldVcl)
                .way_out("write `set beresp.uncacheable = true; return (deliver);`, or `return (pass(120s));`"),
            "deliver_stale" => report(Code::FastlyVcl).way_out("set `beresp.grace`, and larder delivers what is stale"),
            _ => {
                let known: Vec<&str> = Action::names().collect();
                let report = report(Code::WrongReturn).did_you_mean(nearest(text, known));
                match method {
                    Some(method) => report.note(format!("{} may return {}", method.name(), legal_actions(method))),
                    None => report,
                }
            }
        }
    }

    fn new_object(
        &mut self,
        name: &Identifier,
        class: &Name,
        arguments: &[Argument],
        span: Span,
    ) -> Option<StatementKind> {
        self.uses(UseKind::Call, "new".to_owned(), Method::Init.set(), span);
        if let Some(SymbolKind::Object(id)) = self.symbol(&name.text) {
            let constructor = self.program.objects[id.index()].constructor;
            let arguments = self.arguments(constructor, arguments, span)?;
            return Some(StatementKind::New { object: id, arguments });
        }
        let [vmod_name, class_name] = class.parts.as_slice() else {
            self.report(Diagnostic::new(Code::UnknownName, class.span, format!("`{}` is no class", class.text())));
            return None;
        };
        match self.symbol_used(&vmod_name.text) {
            Some(SymbolKind::Vmod(vmod)) if vmod.class(&class_name.text).is_none() => {
                let known: Vec<&str> = vmod.classes.iter().map(|class| class.name).collect();
                let what = format!("vmod {} has no objects `{}`", vmod.name, class_name.text);
                let report = Diagnostic::new(Code::UnknownVmodFunction, class_name.span, what);
                let near = nearest(&class_name.text, known.iter().copied());
                let report = if near.is_none() { report.note(format!("it has {}", known.join(", "))) } else { report };
                self.report(report.did_you_mean(near));
            }
            Some(_) => {}
            None => self.unknown_name(class),
        }
        None
    }
}

/// The type of what is assigned; `None` when the type has no such operator.
fn assigned(of: Type, operator: AssignOperator) -> Option<Type> {
    match (of, operator) {
        (Type::String | Type::Header, AssignOperator::Set | AssignOperator::Add) => Some(Type::Strands),
        (Type::Body, AssignOperator::Set | AssignOperator::Add) => Some(Type::Body),
        (of, AssignOperator::Set) => Some(of),
        (Type::Int, _) => Some(Type::Int),
        (Type::Time | Type::Duration, AssignOperator::Add | AssignOperator::Subtract) => Some(Type::Duration),
        (Type::Time | Type::Duration, AssignOperator::Multiply | AssignOperator::Divide) => Some(Type::Real),
        _ => None,
    }
}

pub(super) fn legal_actions(method: Method) -> String {
    method.actions().iter().map(|action| action.name()).collect::<Vec<_>>().join(", ")
}

/// A value that is a text written out.
pub(super) fn constant_text(value: &Value) -> Option<&[u8]> {
    match &value.kind {
        ValueKind::Text(text) => Some(text),
        _ => None,
    }
}
