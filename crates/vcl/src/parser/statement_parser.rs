//! What stands in the body of a subroutine.

use super::{DEFINITION_WORDS, Parsed, Parser};
use crate::codes::Code;
use crate::diagnostics::{Diagnostic, Reported};
use crate::foreign;
use crate::limits::{BLOCK_DEPTH_MAX, BRANCHES_MAX};
use crate::source_files::Span;
use crate::syntax::{
    AssignOperator, Block, Expression, ExpressionKind, Identifier, ReturnAction, Statement, StatementKind,
};
use crate::tokens::{Mark, Word};

impl Parser<'_> {
    /// `{ … }`, with whatever of it can be read.
    pub(super) fn block(&mut self) -> Parsed<Block> {
        let open = self.expect(Mark::BraceOpen, "before the statements")?;
        if self.block_depth >= BLOCK_DEPTH_MAX {
            return Err(self.too_much(open, format!("blocks are nested more than {BLOCK_DEPTH_MAX} deep")));
        }
        self.block_depth += 1;
        let block = self.statements(open);
        self.block_depth -= 1;
        block
    }

    fn statements(&mut self, open: Span) -> Parsed<Block> {
        let mut statements = Vec::new();
        loop {
            if self.is_mark(Mark::BraceClose) {
                let close = self.next().span;
                return Ok(Block { statements, span: open.to(close) });
            }
            if self.cannot_go_on() {
                return Err(self.never_closed(open));
            }
            let start = self.at;
            match self.statement() {
                Ok(statement) => statements.push(statement),
                Err(Reported) => self.skip_statement(start),
            }
        }
    }

    /// What stands here is not within the braces any more, or is not worth reading.
    pub(super) fn cannot_go_on(&self) -> bool {
        self.word().word == Word::End || self.begins_definition() || self.reports.is_full()
    }

    /// `sub name {` where a statement should be: a brace before it is missing.
    fn begins_definition(&self) -> bool {
        let (word, name, third) = (self.word(), self.ahead(1), self.ahead(2));
        DEFINITION_WORDS.iter().any(|known| self.is_identifier(word, known))
            && name.word == Word::Identifier
            && third.is(Mark::BraceOpen)
    }

    pub(super) fn never_closed(&mut self, open: Span) -> Reported {
        if self.unclosed_at.replace(self.at) == Some(self.at) {
            return Reported;
        }
        let found = self.word();
        let what = format!("the `{{` of this block is not closed before {}", found.show(self.sources));
        let mut report = Diagnostic::new(Code::UnbalancedBrace, open, what).label("opened here");
        if found.word != Word::End {
            report = report.note_at(found.span, "this begins outside of all blocks");
        }
        self.reports.add(report)
    }

    pub(super) fn statement(&mut self) -> Parsed<Statement> {
        let start = self.word();
        let kind = match start.word {
            Word::Mark(Mark::BraceOpen) => StatementKind::Block(self.block()?),
            Word::Identifier => self.worded_statement()?,
            Word::InlineC => {
                self.at += 1;
                return Err(self.reports.add(foreign::inline_c(start.span)));
            }
            Word::Mark(Mark::Semicolon) => {
                let report = Diagnostic::new(Code::Syntax, start.span, "there is no empty statement in VCL")
                    .way_out("leave the second `;` away");
                return Err(self.reports.add(report));
            }
            _ => return Err(self.unexpected("a statement, or `}`")),
        };
        Ok(Statement { kind, span: start.span.to(self.last()) })
    }

    /// Statements are known by their first word, in any case of letters.
    fn worded_statement(&mut self) -> Parsed<StatementKind> {
        let start = self.word();
        let follows = self.ahead(1);
        let is_path = follows.is(Mark::Dot);
        let word = self.sources.text(start.span).to_ascii_lowercase();
        if !is_path {
            let keyword = match word.as_str() {
                "set" => Some(Parser::set as fn(&mut Self) -> Parsed<StatementKind>),
                "unset" => Some(Parser::unset as fn(&mut Self) -> Parsed<StatementKind>),
                "call" => Some(Parser::call as fn(&mut Self) -> Parsed<StatementKind>),
                "return" => Some(Parser::returns as fn(&mut Self) -> Parsed<StatementKind>),
                "if" => Some(Parser::conditional as fn(&mut Self) -> Parsed<StatementKind>),
                "new" => Some(Parser::new_object as fn(&mut Self) -> Parsed<StatementKind>),
                _ => None,
            };
            if let Some(statement) = keyword {
                self.at += 1;
                return statement(self);
            }
            let with_text: Option<fn(Expression) -> StatementKind> = match word.as_str() {
                "ban" => Some(StatementKind::Ban),
                "hash_data" => Some(StatementKind::HashData),
                "synthetic" => Some(StatementKind::Synthetic),
                _ => None,
            };
            if let Some(make) = with_text {
                self.at += 1;
                self.expect(Mark::ParenOpen, &format!("after `{word}`"))?;
                let text = self.text_argument()?;
                self.expect(Mark::ParenClose, "after the text")?;
                self.semicolon()?;
                return Ok(make(text));
            }
            if follows.is(Mark::Semicolon) && self.is_object(start.span) {
                self.at += 1;
                return Err(self.unexpected("`.` and a method of the object"));
            }
            if !follows.is(Mark::ParenOpen) || foreign::is_statement(&word) {
                self.at += 1;
                let report = foreign::statement(&word, start.span, self.sources);
                return Err(self.reports.add(report));
            }
        }
        let call = self.postfix()?;
        // `iff (…) {`
        if !is_path && self.word().is(Mark::BraceOpen) {
            let report = foreign::statement(&word, start.span, self.sources);
            return Err(self.reports.add(report));
        }
        if !matches!(call.kind, ExpressionKind::Call { .. } | ExpressionKind::Property { arguments: Some(_), .. }) {
            let report = Diagnostic::new(Code::Syntax, call.span, "this is a value, not a statement").way_out(
                "a statement sets something, calls something or returns: `set`, `unset`, `call`, `return`, `if`",
            );
            return Err(self.reports.add(report));
        }
        self.semicolon()?;
        Ok(StatementKind::Function(call))
    }

    /// Whether `new` has made an object of that name further up.
    fn is_object(&self, name: Span) -> bool {
        let name = self.sources.bytes(name);
        let made = self.words[..self.at].windows(2).filter(|pair| self.is_identifier(pair[0], b"new"));
        made.into_iter().any(|pair| self.sources.bytes(pair[1].span) == name)
    }

    fn text_argument(&mut self) -> Parsed<Expression> {
        let word = self.word();
        match word.word {
            Word::Mark(Mark::ParenOpen | Mark::ParenClose | Mark::Minus | Mark::Not) => self.expression(),
            Word::Mark(mark) => {
                let what = format!("expected a text, found `{}`", mark.text());
                let report = Diagnostic::new(Code::Syntax, word.span, what)
                    .in_varnish(format!("Unknown token '{}' when looking for STRING", mark.text()));
                Err(self.reports.add(report))
            }
            _ => self.expression(),
        }
    }

    fn set(&mut self) -> Parsed<StatementKind> {
        let target = self.name()?;
        let word = self.word();
        let operator = match word.word {
            Word::Mark(Mark::Assign) => AssignOperator::Set,
            Word::Mark(Mark::PlusAssign) => AssignOperator::Add,
            Word::Mark(Mark::MinusAssign) => AssignOperator::Subtract,
            Word::Mark(Mark::TimesAssign) => AssignOperator::Multiply,
            Word::Mark(Mark::DivideAssign) => AssignOperator::Divide,
            _ => return Err(self.unexpected("`=`")),
        };
        self.at += 1;
        let value = self.expression()?;
        self.semicolon()?;
        Ok(StatementKind::Set { target, operator, operator_span: word.span, value })
    }

    fn unset(&mut self) -> Parsed<StatementKind> {
        let name = self.name()?;
        self.semicolon()?;
        Ok(StatementKind::Unset(name))
    }

    fn call(&mut self) -> Parsed<StatementKind> {
        let callee = self.postfix()?;
        self.semicolon()?;
        Ok(StatementKind::Call(callee))
    }

    fn dotted_object(&mut self, name: &Identifier) -> Reported {
        let rest = self.ahead(1);
        let whole = format!("{}.{}", name.text, String::from_utf8_lossy(self.sources.bytes(rest.span)));
        let what = format!("Name of VCL object, '{whole}', contains illegal character '.'");
        self.reports.add(Diagnostic::new(Code::Syntax, name.span.to(rest.span), what))
    }

    fn new_object(&mut self) -> Parsed<StatementKind> {
        let name = self.identifier("a name for the object")?;
        if self.word().is(Mark::Dot) {
            return Err(self.dotted_object(&name));
        }
        self.expect(Mark::Assign, "after the name of the object")?;
        let class = self.name()?;
        let arguments = self.arguments()?;
        self.semicolon()?;
        Ok(StatementKind::New { name, class, arguments })
    }

    fn returns(&mut self) -> Parsed<StatementKind> {
        if self.take(Mark::Semicolon) {
            return Ok(StatementKind::Return(None));
        }
        self.expect(Mark::ParenOpen, "after `return`")?;
        let word = self.identifier("a return action")?;
        let start = word.span;
        let mut arguments = None;
        if self.take(Mark::ParenOpen) {
            let mut values = vec![self.expression()?];
            while self.take(Mark::Comma) {
                values.push(self.expression()?);
            }
            self.expect(Mark::ParenClose, "after the arguments of the action")?;
            arguments = Some(values);
        }
        let span = start.to(self.last());
        // Where it is missing before the `;`, reading goes on as if it were there.
        if self.expect(Mark::ParenClose, "after the return action").is_err() && !self.is_mark(Mark::Semicolon) {
            return Err(Reported);
        }
        self.semicolon()?;
        Ok(StatementKind::Return(Some(ReturnAction { word, arguments, span })))
    }

    fn conditional(&mut self) -> Parsed<StatementKind> {
        let mut branches = Vec::new();
        let mut otherwise = None;
        self.branch(&mut branches)?;
        loop {
            let word = self.word();
            let is = |text: &[u8]| self.is_identifier(word, text);
            if is(b"elseif") || is(b"elsif") || is(b"elif") {
                self.at += 1;
                self.branch(&mut branches)?;
            } else if is(b"else") {
                self.at += 1;
                if self.is_mark(Mark::BraceOpen) {
                    otherwise = Some(self.block()?);
                    break;
                }
                if !self.is_identifier(self.word(), b"if") {
                    return Err(self.unexpected("`{` or `if` after `else`"));
                }
                self.at += 1;
                self.branch(&mut branches)?;
            } else {
                break;
            }
        }
        Ok(StatementKind::If { branches, otherwise })
    }

    /// `(condition) { … }`. With a condition that cannot be read, its block is read all the same, for its mistakes.
    fn branch(&mut self, branches: &mut Vec<(Expression, Block)>) -> Parsed<()> {
        let start = self.word().span;
        if branches.len() >= BRANCHES_MAX {
            return Err(self.too_much(start, format!("an `if` with more than {BRANCHES_MAX} branches")));
        }
        let condition = self.condition();
        if condition.is_err() {
            while !matches!(
                self.word().word,
                Word::End | Word::Mark(Mark::BraceOpen | Mark::BraceClose | Mark::Semicolon)
            ) {
                self.at += 1;
            }
            if !self.is_mark(Mark::BraceOpen) {
                return Err(Reported);
            }
        }
        let block = self.block()?;
        if let Ok(condition) = condition {
            branches.push((condition, block));
        }
        Ok(())
    }

    fn condition(&mut self) -> Parsed<Expression> {
        self.expect(Mark::ParenOpen, "before the condition")?;
        let condition = self.expression()?;
        self.expect(Mark::ParenClose, "after the condition")?;
        Ok(condition)
    }

    /// On after a statement, begun at `start`, that cannot be read: behind its `;` or block, or before the `}` that ends
    /// the block around it. A word is always taken, unless it is that brace or what `cannot_go_on` sees too.
    pub(super) fn skip_statement(&mut self, start: usize) {
        if self.at > start && self.words[self.at - 1].is(Mark::BraceClose) {
            return;
        }
        while !self.begins_definition() {
            match self.word().word {
                Word::End | Word::Mark(Mark::BraceClose) => return,
                Word::Mark(Mark::Semicolon) => {
                    self.at += 1;
                    return;
                }
                Word::Mark(Mark::BraceOpen) => {
                    self.at += 1;
                    self.skip_braces(1);
                    return;
                }
                _ => self.at += 1,
            }
        }
    }

    /// Behind the brace that closes so many open ones.
    fn skip_braces(&mut self, mut depth: usize) {
        while depth > 0 && self.word().word != Word::End {
            match self.next().word {
                Word::Mark(Mark::BraceOpen) => depth += 1,
                Word::Mark(Mark::BraceClose) => depth -= 1,
                _ => {}
            }
        }
    }
}
