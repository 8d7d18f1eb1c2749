//! Values: what a name means, which type an expression has, and how it becomes the type that is wanted.
//!
//! A wanted type goes down as a hint, because literals and names depend on it: `"x"` is a regex after `~` and an
//! address where an IP is wanted, `default` a backend or a probe. `raw` gives a value of whatever type it has, `value`
//! one of the wanted type or a report.

use super::{Checker, SymbolKind, UseKind};
use crate::codes::Code;
use crate::diagnostics::Diagnostic;
use crate::foreign;
use crate::limits::HEADER_NAME_BYTES_MAX;
use crate::near_names::nearest;
use crate::plain_values::Ip;
use crate::source_files::Span;
use crate::syntax::{BinaryOperator, Expression, ExpressionKind, Identifier, Name};
use crate::typed_program::{Value, ValueKind};
use crate::types::{self, Comparison, Type};
use crate::variables::{self, Found};

type Chained = [(BinaryOperator, Span, Expression)];

impl Checker<'_> {
    /// A value of the wanted type.
    pub(super) fn value(&mut self, expression: &Expression, wanted: Type) -> Option<Value> {
        let value = self.raw(expression, hint_of(wanted))?;
        self.convert(value, wanted)
    }

    /// A value of whatever type it has, which the hint may decide.
    pub(super) fn raw(&mut self, expression: &Expression, hint: Type) -> Option<Value> {
        let span = expression.span;
        let made = |kind, of| Some(Value { kind, of, span });
        match &expression.kind {
            ExpressionKind::Integer(number) => match hint {
                Type::Real => made(ValueKind::Real(*number as f64), Type::Real),
                Type::Bytes => made(ValueKind::Bytes(*number as i64), Type::Bytes),
                _ => made(ValueKind::Int(*number as i64), Type::Int),
            },
            ExpressionKind::Real(number) => match hint {
                Type::Bytes => made(ValueKind::Bytes(*number as i64), Type::Bytes),
                _ => made(ValueKind::Real(*number), Type::Real),
            },
            ExpressionKind::Measure { number, unit } => self.measure(*number, unit, hint, span),
            ExpressionKind::Text(text) => self.text(text, hint, span),
            ExpressionKind::Blob(text) => {
                // The lexer has seen that it is Base64.
                made(ValueKind::Blob(base64(text).into_boxed_slice()), Type::Blob)
            }
            ExpressionKind::Name(name) => self.named(name, hint),
            ExpressionKind::Call { callee, arguments } => self.call(callee, arguments, hint, span),
            ExpressionKind::Property { of, name, arguments } => {
                let of = self.raw(of, Type::String)?;
                self.property(of, name, arguments.as_deref(), span)
            }
            ExpressionKind::Group(of) => self.raw(of, hint).map(|value| Value { span, ..value }),
            ExpressionKind::Negative(of) => self.negative(of, hint, span),
            ExpressionKind::Not(of) => {
                let of = self.raw(of, hint)?;
                let of = self.truth(of, "`!` stands before")?;
                made(ValueKind::Not(Box::new(of)), Type::Bool)
            }
            ExpressionKind::Chain { first, rest } => self.chain(first, rest, hint, span),
            ExpressionKind::Compare { operator, operator_span, left, right } => {
                self.comparison(*operator, *operator_span, left, right, hint)
            }
        }
    }

    /// `m` is a minute, or a megabyte where sizes are wanted.
    fn measure(&mut self, number: f64, unit: &Identifier, hint: Type, span: Span) -> Option<Value> {
        if let (Some(seconds), false) = (types::seconds_of(&unit.text), hint == Type::Bytes) {
            return Some(Value { kind: ValueKind::Duration(number * seconds), of: Type::Duration, span });
        }
        if let Some(bytes) = types::bytes_of(&unit.text) {
            return Some(Value { kind: ValueKind::Bytes((number * bytes) as i64), of: Type::Bytes, span });
        }
        let report = Diagnostic::new(Code::BadLiteral, unit.span, format!("there is no unit `{}`", unit.text))
            .note("times are in ms, s, m, h, d, w, y; sizes in B, KB, MB, GB, TB, PB, each 1024 of the one before");
        self.report(report);
        None
    }

    fn text(&mut self, text: &[u8], hint: Type, span: Span) -> Option<Value> {
        match hint {
            Type::Regex => {
                let id = self.regex(text, span)?;
                Some(Value { kind: ValueKind::Regex(id), of: Type::Regex, span })
            }
            Type::Ip => {
                let written = String::from_utf8_lossy(text);
                match Ip::read(&written, PORT_USUAL) {
                    Some(ip) => Some(Value { kind: ValueKind::Ip(ip), of: Type::Ip, span }),
                    None => {
                        let report = Diagnostic::new(
                            Code::TypeMismatch,
                            span,
                            format!("`{written}` could not be resolved to an IP address"),
                        )
                        .way_out("names are looked up by `std.ip(\"name\", fallback)`; networks are for ACLs");
                        self.report(report);
                        None
                    }
                }
            }
            _ => Some(Value { kind: ValueKind::Text(text.into()), of: Type::String, span }),
        }
    }

    fn negative(&mut self, of: &Expression, hint: Type, span: Span) -> Option<Value> {
        let of = self.raw(of, hint)?;
        let kind = match (of.kind, of.of) {
            (ValueKind::Int(number), _) => ValueKind::Int(-number),
            (ValueKind::Real(number), _) => ValueKind::Real(-number),
            (ValueKind::Duration(seconds), _) => ValueKind::Duration(-seconds),
            (kind, Type::Int | Type::Real | Type::Duration) => {
                ValueKind::Negative(Box::new(Value { kind, of: of.of, span: of.span }))
            }
            (_, other) => {
                let what = format!("`-` stands before a number or duration, not before {}", other.name());
                self.report(Diagnostic::new(Code::BadOperator, span, what));
                return None;
            }
        };
        Some(Value { kind, of: of.of, span })
    }

    fn chain(&mut self, first: &Expression, rest: &Chained, hint: Type, span: Span) -> Option<Value> {
        match rest.first()?.0 {
            BinaryOperator::And | BinaryOperator::Or => self.logic(first, rest, hint, span),
            BinaryOperator::Add | BinaryOperator::Subtract => self.sum(first, rest, hint),
            _ => self.product(first, rest, hint),
        }
    }

    /// All operands are checked, so that one run finds the mistakes of each.
    fn logic(&mut self, first: &Expression, rest: &Chained, hint: Type, span: Span) -> Option<Value> {
        let operator = rest.first()?.0;
        let mut operands = Some(Vec::with_capacity(rest.len() + 1));
        for operand in std::iter::once(first).chain(rest.iter().map(|(_, _, operand)| operand)) {
            let value = self.raw(operand, hint);
            let value = value.and_then(|value| self.truth(value, &format!("`{}` joins", operator.text())));
            match (value, &mut operands) {
                (Some(value), Some(operands)) => operands.push(value),
                _ => operands = None,
            }
        }
        let kind = if operator == BinaryOperator::And { ValueKind::And(operands?) } else { ValueKind::Or(operands?) };
        Some(Value { kind, of: Type::Bool, span })
    }

    fn sum(&mut self, first: &Expression, rest: &Chained, hint: Type) -> Option<Value> {
        let mut left = self.raw(first, hint)?;
        for (operator, operator_span, operand) in rest {
            let subtract = *operator == BinaryOperator::Subtract;
            let text_wanted = hint == Type::String && !types::begins_sum(left.of);
            let right = self.raw(operand, if text_wanted { Type::String } else { hint_of(left.of) })?;
            let span = left.span.to(right.span);
            if let Some(of) = types::sum(left.of, subtract, right.of) {
                let (left_value, right_value) = (widen(left, of), widen(right, of));
                let (left_value, right_value) = (Box::new(left_value), Box::new(right_value));
                let kind = ValueKind::Arithmetic { operator: *operator, left: left_value, right: right_value };
                left = Value { kind, of, span };
            } else if !subtract && (left.of.is_text() || hint == Type::String) {
                left = self.join(left, right, span)?;
            } else {
                let what = format!("there is no {} {} {}", left.of.name(), operator.text(), right.of.name());
                self.report(self.conversion_hint(
                    Diagnostic::new(Code::BadOperator, *operator_span, what),
                    right.of,
                    left.of,
                ));
                return None;
            }
        }
        Some(left)
    }

    /// A concatenation; those within one become one.
    fn join(&mut self, left: Value, right: Value, span: Span) -> Option<Value> {
        let mut parts = Vec::new();
        for side in [left, right] {
            let side = self.convert(side, Type::String)?;
            match side.kind {
                ValueKind::Join(inside) => parts.extend(inside),
                _ => parts.push(side),
            }
        }
        Some(Value { kind: ValueKind::Join(parts), of: Type::String, span })
    }

    fn product(&mut self, first: &Expression, rest: &Chained, hint: Type) -> Option<Value> {
        let mut left = self.raw(first, hint)?;
        for (operator, operator_span, operand) in rest {
            let bad = |what: String| Diagnostic::new(Code::BadOperator, *operator_span, what);
            if *operator == BinaryOperator::Modulo && left.of != Type::Int {
                self.report(bad(format!("`%` is for INT, not for {}", left.of.name())));
                return None;
            }
            let Some(factor) = left.of.factor() else {
                self.report(bad(format!("{} cannot be multiplied or divided", left.of.name())));
                return None;
            };
            let right = self.raw(operand, factor)?;
            if right.of != Type::Int && right.of != factor {
                self.report(bad(format!("there is no {} {} {}", left.of.name(), operator.text(), right.of.name())));
                return None;
            }
            let span = left.span.to(right.span);
            if let (BinaryOperator::Divide | BinaryOperator::Modulo, ValueKind::Int(0)) = (operator, &right.kind) {
                self.report(Diagnostic::new(Code::BadOperator, right.span, "a division by zero"));
                return None;
            }
            let of = left.of;
            let (left_value, right_value) = (Box::new(left), Box::new(widen(right, factor)));
            left = Value {
                kind: ValueKind::Arithmetic { operator: *operator, left: left_value, right: right_value },
                of,
                span,
            };
        }
        Some(left)
    }

    fn comparison(
        &mut self,
        operator: BinaryOperator,
        place: Span,
        left: &Expression,
        right: &Expression,
        hint: Type,
    ) -> Option<Value> {
        let left_value = self.raw(left, hint)?;
        if matches!(operator, BinaryOperator::Match | BinaryOperator::NoMatch) {
            return self.matching(operator == BinaryOperator::NoMatch, place, left_value, right);
        }
        let only_equality = !matches!(operator, BinaryOperator::Equal | BinaryOperator::NotEqual);
        let comparison = left_value.of.comparison();
        if comparison == Comparison::None || only_equality && comparison == Comparison::Equality {
            let (of, sign) = (left_value.of.name(), operator.text());
            let report = Diagnostic::new(Code::BadOperator, place, format!("{of} cannot be compared by `{sign}`"));
            self.report(report.in_varnish(format!("Operator {sign} not possible on {of}")));
            return None;
        }
        let right_value = self.raw(right, hint_of(left_value.of))?;
        let same = left_value.of == right_value.of || left_value.of.is_text() && right_value.of.is_text();
        if !same {
            let (left_name, right_name) = (left_value.of.name(), right_value.of.name());
            let what = format!("{left_name} is compared with {right_name}");
            let report = Diagnostic::new(Code::TypeMismatch, place, what).label("both sides must be of one type");
            let report = if left_value.of.is_text() && right_value.of.has_text() {
                report.way_out("make the right side text by joining it to one: `\"\" + …`")
            } else {
                self.conversion_hint(report, right_value.of, left_value.of)
            };
            self.report(report);
            return None;
        }
        let span = left_value.span.to(right_value.span);
        let (left, right) = (Box::new(left_value), Box::new(right_value));
        Some(Value { kind: ValueKind::Compare { operator, left, right }, of: Type::Bool, span })
    }

    /// `~` and `!~`: an address against an ACL, a text against a regex.
    fn matching(&mut self, negated: bool, place: Span, left: Value, right: &Expression) -> Option<Value> {
        if left.of == Type::Ip {
            if let ExpressionKind::Name(name) = &right.kind
                && let [single] = name.parts.as_slice()
                && let Some(kind @ (SymbolKind::Backend(_) | SymbolKind::Probe(_))) = self.symbol(&single.text)
            {
                let (text, noun) = (&single.text, kind.noun().to_ascii_lowercase());
                let report =
                    Diagnostic::new(Code::TypeMismatch, name.span, format!("`{text}` is a {noun}, and no ACL"));
                self.report(report.in_varnish(format!("Name {text} must have type 'acl'.")));
                return None;
            }
            let acl = self.value(right, Type::Acl)?;
            let span = left.span.to(acl.span);
            let (address, acl) = (Box::new(left), Box::new(acl));
            return Some(Value { kind: ValueKind::AclMatch { negated, address, acl }, of: Type::Bool, span });
        }
        if !left.of.is_text() {
            let what = format!("`~` is for texts and addresses, not for {}", left.of.name());
            self.report(Diagnostic::new(Code::BadOperator, place, what));
            return None;
        }
        if let ExpressionKind::Name(name) = &right.kind
            && let Some(SymbolKind::Acl(_)) = self.symbol_used(&name.text())
        {
            let what = format!("`{}` is an ACL, and the left side is a text", name.text());
            let report = Diagnostic::new(Code::TypeMismatch, place, what)
                .way_out("make an address of the text: `std.ip(…, \"0.0.0.0\") ~ …`, after `import std;`");
            self.report(report);
            return None;
        }
        let regex = self.regex_of(right)?;
        let span = left.span.to(right.span);
        Some(Value { kind: ValueKind::Match { negated, text: Box::new(left), regex }, of: Type::Bool, span })
    }

    /// What a name means as a value.
    fn named(&mut self, name: &Name, hint: Type) -> Option<Value> {
        let span = name.span;
        let made = |kind, of| Some(Value { kind, of, span });
        if let [single] = name.parts.as_slice() {
            match single.text.to_ascii_lowercase().as_str() {
                "true" => return made(ValueKind::Bool(true), Type::Bool),
                "false" => return made(ValueKind::Bool(false), Type::Bool),
                "default" if hint == Type::Probe => {
                    return made(ValueKind::DefaultProbe(self.default_probe), Type::Probe);
                }
                "default" if hint == Type::String => {
                    let what = "`default` is a word of the language, and no text";
                    self.report(Diagnostic::new(Code::ReservedName, span, what));
                    return None;
                }
                "default" => return made(ValueKind::DefaultBackend, Type::Backend),
                _ => {}
            }
            if let Some(kind) = self.symbol_used(&single.text) {
                return self.symbol_value(kind, name, hint);
            }
        }
        let parts: Vec<&str> = name.parts.iter().map(|part| part.text.as_str()).collect();
        if let Some(found) = variables::find(&parts, self.program.version) {
            return self.variable(found, name, hint);
        }
        if let [single] = parts[..]
            && let Some(kind) = self.backend_elsewhere(single)
        {
            return self.symbol_value(kind, name, hint);
        }
        if let [storage, store] = parts[..]
            && storage.eq_ignore_ascii_case("storage")
        {
            return made(ValueKind::Storage(store.to_owned(), None), Type::Stevedore);
        }
        // `req.url.upper`: a property of a shorter name.
        if parts.len() > 2
            && let Some((last, shorter)) = name.parts.split_last()
            && variables::find(&parts[..parts.len() - 1], self.program.version).is_some()
        {
            let shorter_span = shorter.first()?.span.to(shorter.last()?.span);
            let shorter = Name { parts: shorter.to_vec(), quoted: false, span: shorter_span };
            let of = self.named(&shorter, Type::String)?;
            return self.property(of, last, None, span);
        }
        self.unknown_value(name, hint);
        None
    }

    fn symbol_value(&mut self, kind: SymbolKind, name: &Name, hint: Type) -> Option<Value> {
        let span = name.span;
        let (kind, of) = match kind {
            SymbolKind::Backend(id) => (ValueKind::Backend(id), Type::Backend),
            SymbolKind::Acl(id) => (ValueKind::Acl(id), Type::Acl),
            SymbolKind::Probe(id) => (ValueKind::Probe(id), Type::Probe),
            SymbolKind::Subroutine(id) if hint == Type::Sub => {
                self.facts[self.current].calls.push((id, span));
                (ValueKind::Subroutine(id), Type::Sub)
            }
            SymbolKind::Object(id) => (ValueKind::Object(id), Type::Instance),
            SymbolKind::Faulty => return None,
            SymbolKind::Subroutine(_) | SymbolKind::Vmod(_) => {
                let what = format!("`{}` is no value", name.text());
                let report = Diagnostic::new(Code::WrongKind, span, what);
                let is_vmod = matches!(kind, SymbolKind::Vmod(_));
                self.report(report.way_out(if is_vmod { "call one of its functions" } else { "write `call name;`" }));
                return None;
            }
        };
        // An ACL or probe where text is wanted is its name.
        if hint == Type::String && matches!(of, Type::Acl | Type::Probe) {
            let text = name.text().into_bytes().into_boxed_slice();
            return Some(Value { kind: ValueKind::Text(text), of: Type::String, span });
        }
        Some(Value { kind, of, span })
    }

    fn variable(&mut self, found: Found, name: &Name, hint: Type) -> Option<Value> {
        let span = name.span;
        let (kind, row) = match found {
            Found::Variable(row) => (ValueKind::Variable(row), row),
            Found::Header(row, header) => {
                self.header_name(&header, name)?;
                (ValueKind::Header(row, header), row)
            }
            Found::Storage(row, store) => (ValueKind::Storage(store, Some(row)), row),
        };
        let variable = row.get();
        if variable.readable.is_empty() {
            let what = format!("`{}` cannot be read", name.text());
            self.report(Diagnostic::new(Code::NotReadableHere, span, what));
            return None;
        }
        self.uses(UseKind::Read, name.text(), variable.readable, span);
        // A header is text as soon as it is read, unless the header itself is asked for.
        let of = if variable.of == Type::Header && hint != Type::Header { Type::String } else { variable.of };
        Some(Value { kind, of, span })
    }

    /// Quoted names may hold what other names may not.
    pub(super) fn header_name(&mut self, header: &str, name: &Name) -> Option<()> {
        let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
        let good = !header.is_empty()
            && header.len() <= HEADER_NAME_BYTES_MAX
            && header.bytes().all(token)
            && (name.quoted || !header.contains('.'));
        if !good {
            let report = Diagnostic::new(Code::BadName, name.span, format!("`{header}` cannot be a header's name"));
            let odd = header.bytes().find(|b| !token(*b)).map(|b| b.escape_ascii());
            self.report(match odd {
                Some(odd) => report.in_varnish(format!("Invalid character '{odd}' in header name")),
                None => report,
            });
            return None;
        }
        if name.quoted && self.program.version < 41 {
            let report = Diagnostic::new(Code::BadName, name.span, "a header's name in quotes is of VCL 4.1")
                .in_varnish("Quoted headers are available for VCL >= 4.1")
                .way_out("begin the file with `vcl 4.1;`");
            self.report(report);
            return None;
        }
        Some(())
    }

    /// Of a name whose value is wanted, where something of type `wanted` would fit.
    fn unknown_value(&mut self, name: &Name, wanted: Type) {
        let text = name.text();
        let in_varnish = match name.parts.as_slice() {
            [_] if wanted == Type::Backend => format!("Undefined backend {text}, first reference:"),
            [message, rest] if variables::find(&[&message.text, "http", "x"], self.program.version).is_some() => {
                format!("Unknown property '{}' for type HTTP", rest.text)
            }
            _ => format!("Symbol not found: '{text}'"),
        };
        self.unknown(name, in_varnish);
    }

    pub(super) fn unknown_name(&mut self, name: &Name) {
        self.unknown(name, format!("Symbol not found: '{}'", name.text()));
    }

    fn unknown(&mut self, name: &Name, in_varnish: String) {
        let text = name.text();
        if let Some((code, way_out)) = foreign::variable(&text) {
            let report = Diagnostic::new(code, name.span, format!("there is no `{text}` in VCL 4")).way_out(way_out);
            self.report(report.in_varnish(in_varnish));
            return;
        }
        let parts: Vec<&str> = name.parts.iter().map(|part| part.text.as_str()).collect();
        if self.program.version > 40 && variables::find(&parts, 40).is_some() {
            let report = Diagnostic::new(Code::UnknownName, name.span, format!("`{text}` is of VCL 4.0 only"))
                .in_varnish(format!("{in_varnish} (Only available when VCL syntax <= 4.0)"))
                .way_out("begin the file with `vcl 4.0;`, or do without");
            self.report(report);
            return;
        }
        if self.program.version < 41 && variables::find(&parts, 41).is_some() {
            let report = Diagnostic::new(Code::UnknownName, name.span, format!("`{text}` is of VCL 4.1 only"))
                .in_varnish(format!("{in_varnish} (Only available when 4.1 <= VCL syntax)"))
                .way_out("begin the file with `vcl 4.1;`, or do without");
            self.report(report);
            return;
        }
        if let [message, http, _, ..] = parts[..]
            && http.eq_ignore_ascii_case("http")
            && variables::find(&[message, "http", "x"], self.program.version).is_some()
        {
            let report = Diagnostic::new(Code::BadName, name.span, "a header's name with a dot must be quoted")
                .way_out(format!("write `{message}.http.\"{}\"`", parts[2..].join(".")));
            self.report(report);
            return;
        }
        let mut known: Vec<String> = self.names.keys().cloned().collect();
        known.sort();
        known.extend(variables::names().map(str::to_owned));
        let near = nearest(&text, known.iter().map(String::as_str));
        let mut report =
            Diagnostic::new(Code::UnknownName, name.span, format!("nothing is called `{text}`")).in_varnish(in_varnish);
        if crate::vmod_signatures::find(parts[0]).is_some() && parts.len() > 1 {
            report = report.way_out(format!("write `import {};` at the beginning", parts[0]));
        } else if text.contains('-') && parts.len() == 1 {
            report = report.note("`-` is part of a name; for a subtraction put blanks around it");
        }
        if report.way_out.is_none() {
            report = report.did_you_mean(near);
        }
        self.report(report);
    }
}

/// The hint for an operand of a type.
fn hint_of(of: Type) -> Type {
    if of.is_text() || of == Type::Body { Type::String } else { of }
}

/// An INT among other numbers.
fn widen(value: Value, wanted: Type) -> Value {
    if value.of == Type::Int && wanted == Type::Real {
        let span = value.span;
        return Value { kind: ValueKind::Widened(Box::new(value)), of: Type::Real, span };
    }
    value
}

/// Of an address that is written without a port.
const PORT_USUAL: u16 = 80;

/// What Base64 stands for; whatever is not of its alphabet is passed over.
fn base64(text: &str) -> Vec<u8> {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count) = (0u32, 0);
    for digit in text.bytes().filter_map(|b| ALPHABET.iter().position(|known| *known == b)) {
        bits = bits << 6 | digit as u32;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_decoded() {
        let check = |text: &str, expect: &[u8]| assert_eq!(base64(text), expect, "{text}");
        check("", b"");
        check("Zg==", b"f");
        check("Zm8=", b"fo");
        check("Zm9vYmFy", b"foobar");
        check("3q2+7w==", &[0xde, 0xad, 0xbe, 0xef]);
    }
}
