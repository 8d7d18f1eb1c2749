//! Expressions, by VCL's precedence, in which `!` stands above comparisons: `!a ~ b` is `!(a ~ b)`.
//!
//! ```text
//! or    = and  { "||" and }
//! and   = not  { "&&" not }
//! not   = [ "!" ] cmp
//! cmp   = add [ ("==" | "!=" | "<" | "<=" | ">" | ">=" | "~" | "!~") add ]
//! add   = mul { ("+" | "-") mul }
//! mul   = post { ("*" | "/" | "%") post }
//! post  = atom { "." property [ "(" args ")" ] }
//! atom  = "(" or ")" | name | call | number [unit] | string | blob | "-" number | "-" or
//! ```

use super::{Parsed, Parser};
use crate::codes::Code;
use crate::diagnostics::Diagnostic;
use crate::foreign;
use crate::limits::{EXPRESSION_DEPTH_MAX, OPERANDS_MAX};
use crate::source_files::Span;
use crate::syntax::{Argument, BinaryOperator, Expression, ExpressionKind, Identifier, Name};
use crate::tokens::{Mark, Word};

impl Parser<'_> {
    pub(super) fn expression(&mut self) -> Parsed<Expression> {
        if self.expression_depth >= EXPRESSION_DEPTH_MAX {
            let span = self.word().span;
            return Err(self.too_much(span, format!("expressions are nested more than {EXPRESSION_DEPTH_MAX} deep")));
        }
        self.expression_depth += 1;
        let expression = self.or();
        self.expression_depth -= 1;
        expression
    }

    fn or(&mut self) -> Parsed<Expression> {
        self.chain(Parser::and, &[(Mark::OrOr, BinaryOperator::Or)])
    }

    fn and(&mut self) -> Parsed<Expression> {
        self.chain(Parser::not, &[(Mark::AndAnd, BinaryOperator::And)])
    }

    fn not(&mut self) -> Parsed<Expression> {
        let start = self.word().span;
        if !self.take(Mark::Not) {
            return self.comparison();
        }
        let of = self.comparison()?;
        let span = start.to(of.span);
        Ok(Expression { kind: ExpressionKind::Not(Box::new(of)), span })
    }

    fn comparison(&mut self) -> Parsed<Expression> {
        let left = self.sum()?;
        let word = self.word();
        let operator = match word.word {
            Word::Mark(Mark::Equal) => BinaryOperator::Equal,
            Word::Mark(Mark::NotEqual) => BinaryOperator::NotEqual,
            Word::Mark(Mark::Less) => BinaryOperator::Less,
            Word::Mark(Mark::LessEqual) => BinaryOperator::LessEqual,
            Word::Mark(Mark::Greater) => BinaryOperator::Greater,
            Word::Mark(Mark::GreaterEqual) => BinaryOperator::GreaterEqual,
            Word::Mark(Mark::Tilde) => BinaryOperator::Match,
            Word::Mark(Mark::NoMatch) => BinaryOperator::NoMatch,
            _ => return Ok(left),
        };
        self.at += 1;
        let right = self.sum()?;
        let span = left.span.to(right.span);
        let (left, right) = (Box::new(left), Box::new(right));
        Ok(Expression { kind: ExpressionKind::Compare { operator, operator_span: word.span, left, right }, span })
    }

    fn sum(&mut self) -> Parsed<Expression> {
        self.chain(Parser::product, &[(Mark::Plus, BinaryOperator::Add), (Mark::Minus, BinaryOperator::Subtract)])
    }

    fn product(&mut self) -> Parsed<Expression> {
        const OPERATORS: [(Mark, BinaryOperator); 3] = [
            (Mark::Star, BinaryOperator::Multiply),
            (Mark::Slash, BinaryOperator::Divide),
            (Mark::Percent, BinaryOperator::Modulo),
        ];
        self.chain(Parser::postfix, &OPERATORS)
    }

    fn chain(
        &mut self,
        operand: fn(&mut Self) -> Parsed<Expression>,
        operators: &[(Mark, BinaryOperator)],
    ) -> Parsed<Expression> {
        let first = operand(self)?;
        let mut rest = Vec::new();
        loop {
            let word = self.word();
            let Some((_, operator)) = operators.iter().find(|(mark, _)| word.is(*mark)) else { break };
            if rest.len() >= OPERANDS_MAX {
                return Err(self.too_much(word.span, format!("more than {OPERANDS_MAX} operators in a row")));
            }
            self.at += 1;
            rest.push((*operator, word.span, operand(self)?));
        }
        let Some((_, _, last)) = rest.last() else { return Ok(first) };
        let span = first.span.to(last.span);
        Ok(Expression { kind: ExpressionKind::Chain { first: Box::new(first), rest }, span })
    }

    pub(super) fn postfix(&mut self) -> Parsed<Expression> {
        let mut expression = self.atom()?;
        let mut properties = 0;
        while self.is_mark(Mark::Dot) {
            properties += 1;
            if properties > EXPRESSION_DEPTH_MAX {
                let span = self.word().span;
                return Err(self.too_much(span, format!("more than {EXPRESSION_DEPTH_MAX} properties in a row")));
            }
            self.at += 1;
            let name = self.identifier("the name of a property or method")?;
            let arguments = if self.is_mark(Mark::ParenOpen) { Some(self.arguments()?) } else { None };
            let span = expression.span.to(self.last());
            let of = Box::new(expression);
            expression = Expression { kind: ExpressionKind::Property { of, name, arguments }, span };
        }
        Ok(expression)
    }

    fn atom(&mut self) -> Parsed<Expression> {
        let word = self.word();
        let kind = match word.word {
            Word::Mark(Mark::ParenOpen) => {
                self.at += 1;
                let inside = self.expression()?;
                self.expect(Mark::ParenClose, "to close the parenthesis")?;
                ExpressionKind::Group(Box::new(inside))
            }
            Word::Mark(Mark::Minus) => {
                self.at += 1;
                let number = matches!(self.word().word, Word::Integer(_) | Word::Real(_));
                let of = if number { self.number() } else { self.expression()? };
                ExpressionKind::Negative(Box::new(of))
            }
            Word::Integer(_) | Word::Real(_) => return Ok(self.number()),
            Word::Text(_) => {
                self.at += 1;
                ExpressionKind::Text(self.text_bytes(word))
            }
            Word::Blob => {
                self.at += 1;
                let text = self.sources.text(word.span);
                ExpressionKind::Blob(text.trim_matches(':').to_owned())
            }
            Word::Identifier => self.name_or_call()?,
            Word::Mark(Mark::Not) => return Err(self.not_within_value(word.span)),
            _ => return Err(self.unexpected("a value")),
        };
        Ok(Expression { kind, span: word.span.to(self.last()) })
    }

    fn not_within_value(&mut self, span: Span) -> crate::diagnostics::Reported {
        let taken = self.words[..self.at].iter().rposition(|word| word.span.end <= span.start);
        let before = self.words[taken.unwrap_or(0)];
        if before.is(Mark::Tilde) || before.is(Mark::NoMatch) {
            let report = Diagnostic::new(Code::Syntax, span, "Unknown token '!' when looking for REGEX")
                .way_out("what does not match is written with `!~`");
            return self.reports.add(report);
        }
        let report = Diagnostic::new(Code::Syntax, span, "`!` stands before a condition, not before a value")
            .way_out("put the negated condition into parentheses: `(!a)`");
        self.reports.add(report)
    }

    /// A number and its unit: a word after a number can be nothing else, unless a `;` is missing between them.
    fn number(&mut self) -> Expression {
        let word = self.next();
        let number = match word.word {
            Word::Integer(number) => number as f64, // at most 15 digits, which is exact
            Word::Real(number) => number,
            _ => 0.0,
        };
        let follows = self.word();
        if follows.word == Word::Identifier && self.sources.same_line(word.span, follows.span) {
            self.at += 1;
            let unit = Identifier { text: self.sources.text(follows.span), span: follows.span };
            let span = word.span.to(follows.span);
            return Expression { kind: ExpressionKind::Measure { number, unit }, span };
        }
        let kind = match word.word {
            Word::Integer(number) => ExpressionKind::Integer(number),
            _ => ExpressionKind::Real(number),
        };
        Expression { kind, span: word.span }
    }

    fn name_or_call(&mut self) -> Parsed<ExpressionKind> {
        let name = self.name()?;
        if !self.is_mark(Mark::ParenOpen) {
            return Ok(ExpressionKind::Name(name));
        }
        if name.parts.len() == 1 && name.parts[0].text == "if" {
            return Err(self.reports.add(foreign::if_function(name.span)));
        }
        let arguments = self.arguments()?;
        Ok(ExpressionKind::Call { callee: name, arguments })
    }

    /// `a.b.c`; after `.http.` the last part may be a string of any form.
    pub(super) fn name(&mut self) -> Parsed<Name> {
        let first = self.identifier("a name")?;
        let start = first.span;
        let mut parts = vec![first];
        let mut quoted = false;
        while self.is_mark(Mark::Dot) && !quoted {
            let follows = self.ahead(1);
            match follows.word {
                Word::Identifier => {
                    self.at += 2;
                    parts.push(Identifier { text: self.sources.text(follows.span), span: follows.span });
                }
                Word::Text(_) if parts.last().is_some_and(|part| part.text.eq_ignore_ascii_case("http")) => {
                    self.at += 2;
                    let text = String::from_utf8_lossy(&self.text_bytes(follows)).into_owned();
                    parts.push(Identifier { text, span: follows.span });
                    quoted = true;
                }
                // What stands in quotes is no part of such a name, which ends before the dot.
                Word::Text(_) => break,
                _ => {
                    self.at += 1;
                    return Err(self.unexpected("a name after the dot"));
                }
            }
        }
        if let Some(colon) = self.subfield() {
            return Err(self.reports.add(foreign::subfield(colon)));
        }
        Ok(Name { parts, quoted, span: start.to(self.last()) })
    }

    /// Fastly's `req.http.Cookie:name`, which the lexer takes for a BLOB or drops.
    fn subfield(&self) -> Option<Span> {
        let last = self.last();
        let rest = self.sources.file(last.file).bytes.get(last.end as usize..)?;
        let is_subfield = matches!(rest, [b':', letter, ..] if letter.is_ascii_alphabetic());
        is_subfield.then_some(Span { start: last.end, end: last.end + 1, ..last })
    }

    pub(super) fn arguments(&mut self) -> Parsed<Vec<Argument>> {
        self.expect(Mark::ParenOpen, "before the arguments")?;
        let mut arguments = Vec::new();
        if self.take(Mark::ParenClose) {
            return Ok(arguments);
        }
        loop {
            let named = self.word().word == Word::Identifier && self.ahead(1).is(Mark::Assign);
            let name = if named {
                let name = self.identifier("a name")?;
                self.at += 1;
                Some(name)
            } else {
                None
            };
            arguments.push(Argument { name, value: self.expression()? });
            if arguments.len() > OPERANDS_MAX {
                let span = self.word().span;
                return Err(self.too_much(span, format!("more than {OPERANDS_MAX} arguments")));
            }
            if !self.take(Mark::Comma) {
                break;
            }
            if self.is_mark(Mark::ParenClose) {
                break;
            }
        }
        self.expect(Mark::ParenClose, "after the arguments")?;
        Ok(arguments)
    }

    /// The value of an attribute, which is no computation.
    pub(super) fn attribute_expression(&mut self) -> Parsed<Expression> {
        self.postfix()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostics::Reports;
    use crate::lexer;
    use crate::source_files::Sources;

    /// With every node in parentheses of its own.
    fn show(expression: &Expression) -> String {
        let list = |arguments: &[Argument]| {
            let show = |argument: &Argument| match &argument.name {
                Some(name) => format!("{}={}", name.text, show(&argument.value)),
                None => show(&argument.value),
            };
            arguments.iter().map(show).collect::<Vec<_>>().join(",")
        };
        match &expression.kind {
            ExpressionKind::Integer(number) => number.to_string(),
            ExpressionKind::Real(number) => format!("{number:?}"),
            ExpressionKind::Measure { number, unit } => format!("{number}{}", unit.text),
            ExpressionKind::Text(text) => format!("\"{}\"", String::from_utf8_lossy(text)),
            ExpressionKind::Blob(text) => format!(":{text}:"),
            ExpressionKind::Name(name) => name.text(),
            ExpressionKind::Call { callee, arguments } => format!("{}[{}]", callee.text(), list(arguments)),
            ExpressionKind::Property { of, name, arguments } => {
                let arguments = arguments.as_ref().map(|arguments| format!("[{}]", list(arguments)));
                format!("{}.{}{}", show(of), name.text, arguments.unwrap_or_default())
            }
            ExpressionKind::Group(of) => show(of),
            ExpressionKind::Negative(of) => format!("(- {})", show(of)),
            ExpressionKind::Not(of) => format!("(! {})", show(of)),
            ExpressionKind::Chain { first, rest } => rest.iter().fold(show(first), |left, (operator, _, right)| {
                format!("({left} {} {})", operator.text(), show(right))
            }),
            ExpressionKind::Compare { operator, left, right, .. } => {
                format!("({} {} {})", show(left), operator.text(), show(right))
            }
        }
    }

    fn check(text: &str, expect: &str) {
        let (mut sources, mut reports) = (Sources::default(), Reports::default());
        let file = sources.add("t.vcl", text.as_bytes().to_vec());
        let words = lexer::words(&sources, file, &mut reports);
        let mut parser = Parser {
            words: &words,
            at: 0,
            sources: &sources,
            reports: &mut reports,
            expression_depth: 0,
            block_depth: 0,
            unclosed_at: None,
        };
        let shown = match parser.expression() {
            Ok(expression) if parser.word().word == Word::End => show(&expression),
            Ok(expression) => format!("{} then {}", show(&expression), sources.text(parser.word().span)),
            Err(_) => reports.finish().iter().map(|report| format!("[{}]", report.code)).collect(),
        };
        assert_eq!(shown, expect, "{text}");
    }

    #[test]
    fn operators_bind_as_in_vcl() {
        check("!a ~ b", "(! (a ~ b))");
        check("!obj.ttl > 0s && c", "((! (obj.ttl > 0s)) && c)");
        check("a || b && c || d", "((a || (b && c)) || d)");
        check("1 + 2 * 3 - 4 % 5", "((1 + (2 * 3)) - (4 % 5))");
        check("a == b + \"c\" || d", "((a == (b + \"c\")) || d)");
        check("a == b == c", "(a == b) then ==");
        check("(a) + -1", "(a + (- 1))");
        check("-1.5h + x", "((- 1.5h) + x)");
        check("-(a)", "(- a)");
        check("a-b", "a-b");
    }

    #[test]
    fn names_calls_and_properties() {
        check("req.http.\"x.y\" ~ \"z\"", "(req.http.x.y ~ \"z\")");
        check("std.ip(s=\"a\", resolve=false)", "std.ip[s=\"a\",resolve=false]");
        check("regsub(a, \"b\", \"c\").upper()", "regsub[a,\"b\",\"c\"].upper[]");
        check("d.backend()", "d.backend[]");
        check("120 s", "120s");
        check(":3q2+7w==:", ":3q2+7w==:");
    }

    #[test]
    fn what_cannot_be_read_is_said() {
        check("a +", "[syntax]");
        check("a + !b", "[syntax]");
        check("if(a, b, c)", "[fastly-vcl]");
        check("req.http.Cookie:x", "[fastly-vcl]");
        check(&"(".repeat(10_000), "[too-much]");
        check(&"-".repeat(10_000), "[syntax]");
        check(&format!("a{}", " + a".repeat(10_000)), "[too-much]");
    }
}
