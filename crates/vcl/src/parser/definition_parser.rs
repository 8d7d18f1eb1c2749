//! What stands at the top level: versions, imports, subroutines, ACLs, backends, probes.

use super::{Parsed, Parser};
use crate::codes::Code;
use crate::diagnostics::{Diagnostic, Reported};
use crate::foreign;
use crate::syntax::{Acl, AclEntry, Attribute, AttributeValue, Backend, Definition, Identifier};
use crate::tokens::{Mark, Word};

impl Parser<'_> {
    pub(super) fn definition(&mut self) -> Parsed<Definition> {
        let word = self.word();
        if word.word == Word::InlineC {
            self.at += 1;
            return Err(self.reports.add(foreign::inline_c(word.span)));
        }
        if word.word != Word::Identifier {
            if word.is(Mark::BraceClose) {
                self.at += 1;
                let report = Diagnostic::new(Code::UnbalancedBrace, word.span, "this `}` closes nothing");
                return Err(self.reports.add(report));
            }
            return Err(self.unexpected("a definition: sub, acl, backend, probe, import or include"));
        }
        match self.sources.bytes(word.span) {
            b"vcl" => self.version(),
            b"import" => self.import(),
            b"sub" => self.subroutine(),
            b"acl" => self.acl(),
            b"backend" => self.backend(),
            b"probe" => self.probe(),
            b"unused" => self.unused(),
            b"include" => {
                self.at += 1;
                Err(self.unexpected("the name of a file in quotes"))
            }
            _ => {
                let report = foreign::definition(&self.sources.text(word.span), word.span);
                self.at += 1;
                Err(self.reports.add(report))
            }
        }
    }

    pub(super) fn version(&mut self) -> Parsed<Definition> {
        let start = self.next().span;
        let word = self.word();
        let text = self.sources.text(word.span);
        if !matches!(word.word, Word::Real(_) | Word::Integer(_)) {
            return Err(self.unexpected("a version, such as 4.1"));
        }
        self.at += 1;
        let version = match text.as_str() {
            "4.0" => 40,
            "4.1" => 41,
            _ => {
                let report = Diagnostic::new(Code::VersionUnknown, word.span, format!("there is no VCL {text} here"))
                    .way_out("larder reads VCL 4.0 and 4.1");
                self.reports.add(report);
                41
            }
        };
        self.semicolon()?;
        Ok(Definition::Version { version, span: start.to(word.span) })
    }

    fn import(&mut self) -> Parsed<Definition> {
        let start = self.next().span;
        let module = self.identifier("the name of a vmod")?;
        let mut alias = None;
        if self.is_identifier(self.word(), b"as") {
            self.at += 1;
            alias = Some(self.identifier("a name for the vmod")?);
        }
        let mut from = None;
        if self.is_identifier(self.word(), b"from") {
            let word = self.ahead(1);
            self.at += 1;
            if !matches!(word.word, Word::Text(_)) {
                return Err(self.unexpected("a path in quotes"));
            }
            self.at += 1;
            from = Some(word.span);
        }
        let span = start.to(self.last());
        self.semicolon()?;
        Ok(Definition::Import { module, alias, from, span })
    }

    fn subroutine(&mut self) -> Parsed<Definition> {
        self.at += 1;
        let name = self.definition_name("subroutine")?;
        let body = self.block()?;
        Ok(Definition::Subroutine { name, body })
    }

    fn unused(&mut self) -> Parsed<Definition> {
        self.at += 1;
        let name = self.name()?;
        self.semicolon()?;
        Ok(Definition::Unused(name))
    }

    /// A name that is being defined has no dots.
    fn definition_name(&mut self, what: &str) -> Parsed<Identifier> {
        let name = self.identifier(&format!("the name of a {what}"))?;
        if self.is_mark(Mark::Dot) {
            let span = self.next().span;
            let report =
                Diagnostic::new(Code::BadName, name.span.to(span), format!("the name of a {what} has no dots"))
                    .way_out("letters, digits, `_` and `-`, beginning with a letter");
            return Err(self.reports.add(report));
        }
        Ok(name)
    }

    fn acl(&mut self) -> Parsed<Definition> {
        self.at += 1;
        let name = self.definition_name("ACL")?;
        let mut flags = Vec::new();
        while self.is_mark(Mark::Plus) || self.is_mark(Mark::Minus) {
            let sign = self.next();
            let flag = self.word();
            if flag.span.start != sign.span.end {
                let report =
                    Diagnostic::new(Code::Syntax, sign.span, "a blank between the sign and the flag of an ACL")
                        .in_varnish("Expected a flag at:")
                        .way_out("write them in one: `+log`");
                return Err(self.reports.add(report));
            }
            flags.push((sign.is(Mark::Plus), self.identifier("the name of an ACL flag")?));
            if self.take(Mark::ParenOpen) {
                self.take(Mark::Minus);
                self.identifier("a detail of the flag")?;
                self.expect(Mark::ParenClose, "after the detail of the flag")?;
            }
        }
        let word = self.word();
        if word.word == Word::Text(2) {
            self.at += 1;
            let report = Diagnostic::new(Code::AclLongString, word.span, "`{\"` begins a long string")
                .label("read as one string, up to the next `\"}`")
                .way_out("put a blank after the brace: `acl name { \"10.0.0.1\"; }`");
            return Err(self.reports.add(report));
        }
        let open = self.expect(Mark::BraceOpen, "before the entries of the ACL")?;
        let mut entries = Vec::new();
        while !self.take(Mark::BraceClose) {
            if self.cannot_go_on() {
                return Err(self.never_closed(open));
            }
            let start = self.at;
            match self.acl_entry() {
                Ok(entry) => entries.push(entry),
                Err(Reported) => self.skip_statement(start),
            }
        }
        Ok(Definition::Acl(Acl { name, flags, entries }))
    }

    fn acl_entry(&mut self) -> Parsed<AclEntry> {
        let start = self.word().span;
        let mut negated = self.take(Mark::Not);
        let optional = self.take(Mark::ParenOpen);
        if !negated {
            negated = self.take(Mark::Not);
        }
        let word = self.word();
        if !matches!(word.word, Word::Text(_)) {
            return Err(self.unexpected("an address in quotes"));
        }
        self.at += 1;
        let address = String::from_utf8_lossy(&self.text_bytes(word)).into_owned();
        let mut mask = None;
        if self.take(Mark::Slash) {
            let word = self.word();
            let Word::Integer(bits) = word.word else { return Err(self.unexpected("a number of bits")) };
            self.at += 1;
            mask = Some((bits, word.span));
        }
        if optional {
            self.expect(Mark::ParenClose, "after the address")?;
        }
        let span = start.to(self.last());
        self.semicolon()?;
        Ok(AclEntry { negated, optional, address, mask, span })
    }

    fn backend(&mut self) -> Parsed<Definition> {
        self.at += 1;
        let name = self.definition_name("backend")?;
        let word = self.word();
        if self.is_identifier(word, b"none") || self.is_identifier(word, b"None") {
            self.at += 1;
            self.semicolon()?;
            return Ok(Definition::Backend(Backend { name, attributes: None }));
        }
        let attributes = Some(self.attributes("backend")?);
        Ok(Definition::Backend(Backend { name, attributes }))
    }

    fn probe(&mut self) -> Parsed<Definition> {
        self.at += 1;
        let name = self.definition_name("probe")?;
        let attributes = self.attributes("probe")?;
        Ok(Definition::Probe { name, attributes })
    }

    /// `{ .name = value; … }`.
    fn attributes(&mut self, of: &str) -> Parsed<Vec<Attribute>> {
        let open = self.expect(Mark::BraceOpen, &format!("before the attributes of the {of}"))?;
        let mut attributes = Vec::new();
        while !self.take(Mark::BraceClose) {
            if self.cannot_go_on() {
                return Err(self.never_closed(open));
            }
            let start = self.at;
            match self.attribute() {
                Ok(attribute) => attributes.push(attribute),
                Err(Reported) => self.skip_statement(start),
            }
        }
        Ok(attributes)
    }

    fn attribute(&mut self) -> Parsed<Attribute> {
        let start = self.word();
        if self.is_identifier(start, b"set") {
            return Err(self.reports.add(foreign::old_attribute(start.span)));
        }
        if !self.take(Mark::Dot) {
            return Err(self.unexpected("an attribute such as `.host`"));
        }
        let name = self.identifier("the name of an attribute")?;
        self.expect(Mark::Assign, "after the name of the attribute")?;
        let (value, ends_itself) = self.attribute_value(&name)?;
        let span = start.span.to(self.last());
        if !ends_itself {
            self.semicolon()?;
        }
        Ok(Attribute { name, value, span })
    }

    /// The value, and whether it needs no `;`: a probe in place ends with its brace.
    fn attribute_value(&mut self, name: &Identifier) -> Parsed<(AttributeValue, bool)> {
        if self.is_mark(Mark::BraceOpen) && name.text == "probe" {
            return Ok((AttributeValue::Probe(self.attributes("probe")?), true));
        }
        if !matches!(self.word().word, Word::Text(_)) {
            return Ok((AttributeValue::Expression(self.attribute_expression()?), false));
        }
        let mut texts = Vec::new();
        while let Word::Text(_) = self.word().word {
            let word = self.next();
            texts.push((self.text_bytes(word), word.span));
        }
        if let [_, (_, second), ..] = texts[..]
            && name.text != "request"
        {
            let report = Diagnostic::new(Code::Syntax, second, format!("`.{}` takes one string", name.text))
                .way_out("only `.request` of a probe takes several strings, one a line");
            return Err(self.reports.add(report));
        }
        Ok((AttributeValue::Texts(texts), false))
    }
}
