//! Functions, methods and properties: their arguments by position and by name; conversions; regexes.

use super::{Checker, SymbolKind, UseKind};
use crate::codes::Code;
use crate::diagnostics::Diagnostic;
use crate::limits::REGEX_BYTES_MAX;
use crate::near_names::nearest;
use crate::source_files::Span;
use crate::syntax::{Argument, BinaryOperator, Expression, ExpressionKind, Identifier, Name};
use crate::typed_program::{ObjectId, Property, RegexId, Value, ValueKind};
use crate::types::Type;
use crate::variables;
use crate::vmod_signatures::{self, Function, Parameter};

impl Checker<'_> {
    /// `regsub(…)`, `vmod.function(…)`, `object.method(…)`, `variable.property(…)`.
    pub(super) fn call(&mut self, callee: &Name, arguments: &[Argument], hint: Type, span: Span) -> Option<Value> {
        let value = self.call_any(callee, arguments, hint, span)?;
        if value.of == Type::Void {
            let what = format!("`{}` gives no value", callee.text());
            self.report(Diagnostic::new(Code::TypeMismatch, callee.span, what).way_out("write it as a statement"));
            return None;
        }
        Some(value)
    }

    /// The same as a statement, where nothing need be given.
    pub(super) fn call_any(&mut self, callee: &Name, arguments: &[Argument], hint: Type, span: Span) -> Option<Value> {
        match callee.parts.as_slice() {
            [single] => match single.text.to_ascii_lowercase().as_str() {
                "regsub" => self.regsub(false, single, arguments, span),
                "regsuball" => self.regsub(true, single, arguments, span),
                _ => {
                    self.unknown_function(callee);
                    None
                }
            },
            [first, second] => match self.symbol_used(&first.text) {
                Some(SymbolKind::Vmod(vmod)) => match vmod.function(&second.text) {
                    Some(function) => self.function(function, None, arguments, hint, span),
                    None => {
                        self.unknown_vmod_function(vmod.name, vmod.names().collect(), second);
                        None
                    }
                },
                Some(SymbolKind::Object(id)) => {
                    let function = self.method(id, second)?;
                    self.function(function, Some(id), arguments, hint, span)
                }
                Some(SymbolKind::Faulty) => {
                    self.arguments_alone(arguments);
                    None
                }
                _ => self.property_call(callee, arguments, span),
            },
            _ => self.property_call(callee, arguments, span),
        }
    }

    /// What is called is at fault; the arguments may have faults of their own, but their types say nothing.
    fn arguments_alone(&mut self, arguments: &[Argument]) {
        for argument in arguments {
            if !matches!(argument.value.kind, ExpressionKind::Name(_)) {
                self.raw(&argument.value, Type::String);
            }
        }
    }

    fn method(&mut self, id: ObjectId, name: &Identifier) -> Option<&'static Function> {
        let constructor = self.program.objects[id.index()].constructor;
        let class = vmod_signatures::find(constructor.vmod).and_then(|vmod| vmod.class(constructor.name))?;
        let method = class.method(&name.text);
        if method.is_none() {
            let what = format!("{}.{}", constructor.vmod, constructor.name);
            self.unknown_vmod_function(&what, class.methods.iter().map(|method| method.name).collect(), name);
        }
        method
    }

    fn unknown_vmod_function(&mut self, of: &str, known: Vec<&str>, name: &Identifier) {
        let what = format!("{of} has no `{}`", name.text);
        let report = Diagnostic::new(Code::UnknownVmodFunction, name.span, what);
        let report = match nearest(&name.text, known.iter().copied()) {
            Some(near) => report.did_you_mean(Some(near)),
            None => report.note(format!("it has {}", known.join(", "))),
        };
        self.report(report);
    }

    /// What is written with parentheses behind it: functions, and statements.
    fn unknown_function(&mut self, callee: &Name) {
        let text = callee.text();
        if let [single] = callee.parts.as_slice()
            && let Some(SymbolKind::Subroutine(_)) = self.symbol_used(&single.text)
        {
            let report =
                Diagnostic::new(Code::WrongKind, callee.span, format!("`{text}` is a subroutine, not a function"))
                    .way_out(format!("write `call {text};`"));
            self.report(report);
            return;
        }
        const CALLED: [&str; 6] = ["regsub", "regsuball", "return", "hash_data", "synthetic", "if"];
        let report = Diagnostic::new(Code::UnknownName, callee.span, format!("there is no function `{text}`"))
            .in_varnish(format!("Symbol not found: '{text}'"));
        let vmod = vmod_signatures::vmods().iter().find(|vmod| vmod.function(&text).is_some());
        self.report(match vmod {
            Some(vmod) => report.way_out(format!("write `{}.{text}(…)`, after `import {};`", vmod.name, vmod.name)),
            None => report.did_you_mean(nearest(&text, CALLED)),
        });
    }

    /// `req.url.upper()`: the last part is a property of the others.
    fn property_call(&mut self, callee: &Name, arguments: &[Argument], span: Span) -> Option<Value> {
        let (last, shorter) = callee.parts.split_last()?;
        let parts: Vec<&str> = shorter.iter().map(|part| part.text.as_str()).collect();
        let names_value = variables::find(&parts, self.program.version).is_some()
            || parts.len() == 1 && self.symbol(parts[0]).is_some()
            || parts.first().is_some_and(|first| first.eq_ignore_ascii_case("storage"));
        if !names_value {
            match (self.symbol(parts[0]), parts.get(1)) {
                (Some(SymbolKind::Vmod(vmod)), Some(class)) if vmod.class(class).is_some() => {
                    let what = format!("`{}` is a kind of objects, and none of them", parts.join("."));
                    let report = Diagnostic::new(Code::WrongKind, callee.span, what)
                        .in_varnish("Syntax error")
                        .way_out(format!("make one in vcl_init, `new name = {}(…);`, and call that", parts.join(".")));
                    self.report(report);
                }
                _ => self.unknown_name(callee),
            }
            return None;
        }
        let shorter_span = shorter.first()?.span.to(shorter.last()?.span);
        let name = Name { parts: shorter.to_vec(), quoted: false, span: shorter_span };
        let name = Expression { kind: ExpressionKind::Name(name), span: shorter_span };
        let of = self.raw(&name, Type::Backend)?;
        self.property(of, last, Some(arguments), span)
    }

    /// What values have by themselves; those of stores have no parentheses.
    pub(super) fn property(
        &mut self,
        of: Value,
        name: &Identifier,
        arguments: Option<&[Argument]>,
        span: Span,
    ) -> Option<Value> {
        let (property, gives, is_method) = match (of.of, name.text.to_ascii_lowercase().as_str()) {
            (Type::String | Type::Strands, "upper") => (Property::Upper, Type::String, true),
            (Type::String | Type::Strands, "lower") => (Property::Lower, Type::String, true),
            (Type::Backend, "resolve") => (Property::Resolve, Type::Backend, true),
            (Type::Stevedore, "free_space") => (Property::FreeSpace, Type::Bytes, false),
            (Type::Stevedore, "used_space") => (Property::UsedSpace, Type::Bytes, false),
            (Type::Stevedore, "happy") => (Property::Happy, Type::Bool, false),
            _ => {
                let what = format!("{} has no property `{}`", of.of.name(), name.text);
                let report = Diagnostic::new(Code::UnknownName, name.span, what)
                    .note("STRING has upper() and lower(), BACKEND resolve(), STEVEDORE free_space, used_space, happy");
                self.report(report);
                return None;
            }
        };
        if is_method != arguments.is_some() || arguments.is_some_and(|arguments| !arguments.is_empty()) {
            let form = if is_method { "()" } else { "" };
            let report = Diagnostic::new(Code::BadArguments, span, format!("`{}` is written otherwise", name.text))
                .way_out(format!("write `.{}{form}`", name.text));
            self.report(report);
            return None;
        }
        Some(Value { kind: ValueKind::Property { of: Box::new(of), property }, of: gives, span })
    }

    fn regsub(&mut self, all: bool, name: &Identifier, arguments: &[Argument], span: Span) -> Option<Value> {
        let [text, regex, replacement] = arguments else {
            let what = format!("`{}` takes three arguments, here are {}", name.text, arguments.len());
            let report = Diagnostic::new(Code::BadArguments, span, what)
                .way_out(format!("write `{}(text, \"regex\", \"replacement\")`", name.text));
            self.report(report);
            return None;
        };
        if let Some(named) = arguments.iter().find_map(|argument| argument.name.as_ref()) {
            let what = format!("`{}` has no named arguments", name.text);
            self.report(Diagnostic::new(Code::BadArguments, named.span, what));
            return None;
        }
        let text = self.value(&text.value, Type::String);
        let regex = self.regex_of(&regex.value);
        let replacement = self.value(&replacement.value, Type::String);
        let (text, regex, replacement) = (Box::new(text?), regex?, Box::new(replacement?));
        Some(Value { kind: ValueKind::Regsub { all, text, regex, replacement }, of: Type::String, span })
    }

    fn function(
        &mut self,
        function: &'static Function,
        object: Option<ObjectId>,
        arguments: &[Argument],
        hint: Type,
        span: Span,
    ) -> Option<Value> {
        self.uses(UseKind::Call, function.show(), function.allowed, span);
        self.uses(UseKind::CallThatFails, function.show(), function.works, span);
        if let Some(until) = function.until {
            let what = format!("`{}` is gone in Varnish {until}", function.name);
            let report = Diagnostic::new(Code::OldSpelling, span, what);
            self.report(match function.name {
                name if name.contains('2') => {
                    report.way_out("use std.integer(…), std.real(…) or std.time(…), which take any number")
                }
                "filter_except" => report.way_out("it is called `keep`"),
                _ => report.way_out("it is called `format_date`"),
            });
        }
        let arguments = self.arguments(function, arguments, span)?;
        let of = match function.gives {
            Type::Header if hint != Type::Header => Type::String,
            of => of,
        };
        Some(Value { kind: ValueKind::Call { function, object, arguments }, of, span })
    }

    /// One value for each parameter: first by position, then by name.
    pub(super) fn arguments(
        &mut self,
        function: &'static Function,
        arguments: &[Argument],
        span: Span,
    ) -> Option<Vec<Option<Value>>> {
        let mut values: Vec<Option<Value>> = function.parameters.iter().map(|_| None).collect();
        let mut given = vec![false; values.len()];
        let mut good = true;
        let mut named_before = false;
        for (position, argument) in arguments.iter().enumerate() {
            let index = match &argument.name {
                Some(name) => {
                    named_before = true;
                    let known = |p: &Parameter| p.name.is_some_and(|known| known.eq_ignore_ascii_case(&name.text));
                    function.parameters.iter().position(known)
                }
                None if named_before => None,
                None => Some(position).filter(|position| *position < values.len()),
            };
            match index {
                Some(index) if !given[index] => {
                    given[index] = true;
                    values[index] = self.argument(&function.parameters[index], &argument.value);
                    good &= values[index].is_some();
                }
                index => {
                    self.bad_argument(function, argument, index.is_some());
                    good = false;
                }
            }
        }
        let missing =
            function.parameters.iter().zip(&given).position(|(p, given)| !given && !p.optional && p.default.is_none());
        if let (Some(missing), true) = (missing, good) {
            let parameter = &function.parameters[missing];
            let which = parameter.name.map_or(format!("number {}", missing + 1), |name| format!("`{name}`"));
            let what = format!("the argument {which}, of type {}, is missing", parameter.of.name());
            self.report(Diagnostic::new(Code::BadArguments, span, what).note(format!("called as {}", function.show())));
            return None;
        }
        good.then_some(values)
    }

    fn bad_argument(&mut self, function: &Function, argument: &Argument, twice: bool) {
        let report = match &argument.name {
            Some(name) if twice => {
                Diagnostic::new(Code::BadArguments, name.span, format!("`{}` is given twice", name.text))
            }
            Some(name) => {
                let known = function.parameters.iter().filter_map(|parameter| parameter.name);
                Diagnostic::new(Code::BadArguments, name.span, format!("there is no argument `{}`", name.text))
                    .did_you_mean(nearest(&name.text, known))
            }
            None => Diagnostic::new(Code::BadArguments, argument.value.span, "an argument too many"),
        };
        self.report(report.note(format!("called as {}", function.show())));
    }

    fn argument(&mut self, parameter: &Parameter, value: &Expression) -> Option<Value> {
        match parameter.of {
            Type::Enum => {
                let word = match &value.kind {
                    ExpressionKind::Name(name) => name.text(),
                    _ => String::new(),
                };
                let known = parameter.words.iter().find(|known| **known == word);
                if known.is_none() {
                    let what = format!("expected one of the words {}", parameter.words.join(", "));
                    let near = nearest(&word, parameter.words.iter().copied());
                    self.report(Diagnostic::new(Code::BadArguments, value.span, what).did_you_mean(near));
                }
                known.map(|word| Value { kind: ValueKind::Word(word), of: Type::Enum, span: value.span })
            }
            Type::Regex => {
                let regex = self.regex_of(value)?;
                Some(Value { kind: ValueKind::Regex(regex), of: Type::Regex, span: value.span })
            }
            of => self.value(value, of),
        }
    }

    /// A regex: a string, or several joined by `+`.
    pub(super) fn regex_of(&mut self, expression: &Expression) -> Option<RegexId> {
        let mut pattern = Vec::new();
        if literal(expression, &mut pattern) {
            return self.regex(&pattern, expression.span);
        }
        // Look for what is wrong within first.
        let value = self.raw(expression, Type::String)?;
        let what = format!("Expression has type {}, expected REGEX", value.of.name());
        let report = Diagnostic::new(Code::RegexNotLiteral, expression.span, what)
            .label("made at run time")
            .note("a regular expression is a string: regexes are compiled when the program is loaded")
            .way_out("compare with `==`, or use str.contains(…), str.startswith(…) of vmod str");
        self.report(report);
        None
    }

    /// The number of a pattern, which is the same for the same pattern.
    pub(super) fn regex(&mut self, pattern: &[u8], span: Span) -> Option<RegexId> {
        if let Some(id) = self.regex_ids.get(pattern) {
            return Some(*id);
        }
        if pattern.len() > REGEX_BYTES_MAX {
            let what = format!("a regular expression of more than {REGEX_BYTES_MAX} bytes");
            self.report(Diagnostic::new(Code::TooMuch, span, what));
            return None;
        }
        if let Err((why, at)) = crate::regex_syntax::check(pattern) {
            let mut report =
                Diagnostic::new(Code::RegexInvalid, span, format!("the regular expression does not compile: {why}"));
            if let Some(at) = at {
                let (before, after) = pattern.split_at(at.min(pattern.len()));
                let (before, after) = (String::from_utf8_lossy(before), String::from_utf8_lossy(after));
                report = report.note(format!("at its byte {at}: {before} <here> {after}"));
            }
            self.report(report);
            return None;
        }
        let id = RegexId(self.program.regexes.len() as u32);
        self.program.regexes.push(pattern.to_vec());
        self.regex_ids.insert(pattern.to_vec(), id);
        Some(id)
    }

    /// The value as one of the wanted type, or a report.
    pub(super) fn convert(&mut self, value: Value, wanted: Type) -> Option<Value> {
        let (of, span) = (value.of, value.span);
        if of == wanted
            || of.is_text() && (wanted.is_text() || wanted == Type::Body)
            || wanted == Type::Body && of == Type::Blob
        {
            return Some(value);
        }
        if wanted == Type::Bool && of.has_truth() {
            return Some(Value { kind: ValueKind::ToBool(Box::new(value)), of: Type::Bool, span });
        }
        if (wanted.is_text() || wanted == Type::Body) && of.has_text() {
            return Some(Value { kind: ValueKind::ToText(Box::new(value)), of: Type::String, span });
        }
        let report = Diagnostic::new(
            Code::TypeMismatch,
            span,
            format!("Expression has type {}, expected {}", of.name(), wanted.name()),
        );
        let report = self.conversion_hint(report, of, wanted);
        self.report(report);
        None
    }

    /// The value as a condition.
    pub(super) fn truth(&mut self, value: Value, what: &str) -> Option<Value> {
        if value.of == Type::Bool {
            return Some(value);
        }
        let span = value.span;
        if value.of.has_truth() {
            return Some(Value { kind: ValueKind::ToBool(Box::new(value)), of: Type::Bool, span });
        }
        let what = format!("{what} conditions; {} is none", value.of.name());
        self.report(Diagnostic::new(Code::TypeMismatch, span, what).way_out("compare it with something"));
        None
    }

    /// How one makes the second type of the first.
    pub(super) fn conversion_hint(&self, report: Diagnostic, from: Type, to: Type) -> Diagnostic {
        let way_out = match (from, to) {
            (Type::String | Type::Strands, Type::Int) => "convert it: `std.integer(…, 0)`, after `import std;`",
            (Type::String | Type::Strands, Type::Real) => "convert it: `std.real(…, 0.0)`, after `import std;`",
            (Type::String | Type::Strands, Type::Duration) => "convert it: `std.duration(…, 0s)`, after `import std;`",
            (Type::String | Type::Strands, Type::Time) => "convert it: `std.time(…, now)`, after `import std;`",
            (Type::String | Type::Strands, Type::Bytes) => "convert it: `std.bytes(…, 0B)`, after `import std;`",
            (Type::String | Type::Strands, Type::Ip) => "convert it: `std.ip(…, \"0.0.0.0\")`, after `import std;`",
            (Type::String | Type::Strands, Type::Backend) => "write the name of the backend without quotes",
            (Type::String | Type::Strands, Type::Bool) => "write `true` or `false` without quotes",
            (Type::Int | Type::Real, Type::Duration) => "give it a unit, such as `10s`, or multiply: `1s * …`",
            (Type::Int | Type::Real, Type::Bytes) => "give it a unit, such as `10KB`",
            (Type::Duration, Type::Int) => "convert it: `std.integer(duration=…)`, after `import std;`",
            (Type::Duration, Type::Real) => "convert it: `std.real(duration=…)`, after `import std;`",
            (Type::Time, Type::Int) => "convert it: `std.integer(time=…)`, after `import std;`",
            (Type::Real, Type::Int) => "convert it: `std.integer(real=…)`, after `import std;`",
            (Type::Int, Type::Real) => "convert it: `std.real(integer=…)`, after `import std;`",
            _ => return report,
        };
        report.way_out(way_out)
    }
}

/// Whether the expression is made of strings alone; their bytes.
fn literal(expression: &Expression, pattern: &mut Vec<u8>) -> bool {
    match &expression.kind {
        ExpressionKind::Text(text) => {
            pattern.extend_from_slice(text);
            true
        }
        ExpressionKind::Chain { first, rest } => {
            literal(first, pattern)
                && rest.iter().all(|(operator, _, part)| *operator == BinaryOperator::Add && literal(part, pattern))
        }
        _ => false,
    }
}
