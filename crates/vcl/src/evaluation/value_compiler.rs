//! Values of the checked program become trees of their own type: constants are folded, names prepared.

use std::sync::Arc;

use super::compiled::*;
use super::compiler::{Compiler, Operand};
use super::text_forms;
use crate::header_names::HeaderName;
use crate::host::Message;
use crate::limits::{REQUEST_BODY_BYTES_DEFAULT, REQUEST_BODY_BYTES_MAX, VALUE_DEPTH_MAX};
use crate::plain_values::BackendRef;
use crate::syntax::BinaryOperator;
use crate::typed_program::{Property, Value, ValueKind};
use crate::types::Type;
use crate::variables::VariableId;
use crate::vmod_signatures::{Function, Parameter};
use crate::vmods::VmodFunction;

type Made<T> = Result<T, String>;

/// A value of a kind that its type does not have: the checker lets none through.
#[cold]
fn odd<T>(value: &Value, wanted: &str) -> Made<T> {
    Err(format!("a value of type {} cannot be read as {wanted}: {:?}", value.of.name(), value.kind))
}

impl Compiler<'_> {
    pub fn any(&mut self, value: &Value) -> Made<Any> {
        Ok(match value.of {
            Type::Bool => Any::Bool(self.cond(value)?),
            Type::Int => Any::Int(self.int(value)?),
            Type::Bytes => Any::Bytes(self.int(value)?),
            Type::Real => Any::Real(self.real(value)?),
            Type::Duration => Any::Duration(self.real(value)?),
            Type::Time => Any::Time(self.real(value)?),
            Type::Ip => Any::Ip(self.ip(value)?),
            Type::Blob => Any::Blob(self.blob(value)?),
            Type::Backend => Any::Backend(self.backend(value)?),
            Type::Stevedore => Any::Storage(self.storage(value)?),
            Type::Header => Any::Header(self.header(value)?),
            Type::String | Type::Strands => Any::Text(self.text(value)?),
            _ => match &value.kind {
                ValueKind::Variable(id) => Any::Http(message(*id)?),
                ValueKind::Word(word) => Any::Word(word),
                ValueKind::Regex(id) => Any::Pattern(*id),
                ValueKind::Acl(id) => Any::Acl(*id),
                ValueKind::Probe(id) => Any::Probe(Some(*id)),
                ValueKind::DefaultProbe(id) => Any::Probe(*id),
                ValueKind::Subroutine(id) => Any::Subroutine(*id),
                ValueKind::Object(id) => Any::Object(*id),
                _ => return odd(value, "anything"),
            },
        })
    }

    pub fn text(&mut self, value: &Value) -> Made<Text> {
        self.deeper(|this| this.text_within(value))
    }

    fn text_within(&mut self, value: &Value) -> Made<Text> {
        Ok(match &value.kind {
            ValueKind::Text(text) => Text::Constant(text.clone()),
            ValueKind::Header(row, name) => Text::Header(message(*row)?, self.header_name(name)),
            ValueKind::ToText(inside) => self.text(inside)?,
            ValueKind::Join(parts) => self.join(parts)?,
            ValueKind::Regsub { all, text, regex, replacement } => {
                let (text, replacement) = (self.text(text)?, self.text(replacement)?);
                Text::Changed(Box::new(ChangedText::Substituted { all: *all, text, pattern: *regex, replacement }))
            }
            ValueKind::Property { of, property: Property::Upper } => {
                Text::Changed(Box::new(ChangedText::Upper(self.text(of)?)))
            }
            ValueKind::Property { of, property: Property::Lower } => {
                Text::Changed(Box::new(ChangedText::Lower(self.text(of)?)))
            }
            _ if value.of.is_text() || value.of == Type::Header => match &value.kind {
                ValueKind::Variable(id) => Text::Variable(id.first_of_name()),
                ValueKind::Call { function, arguments, .. } if is_dyn(function) => {
                    let (of, name) = self.dyn_header(arguments)?;
                    Text::HeaderCalled(of, Box::new(name))
                }
                ValueKind::Call { .. } => Text::Call(self.call(value)?),
                _ => return odd(value, "a text"),
            },
            _ => match &value.kind {
                ValueKind::Acl(id) => constant(&self.program.acls[id.index()].name),
                ValueKind::Probe(id) => match &self.program.probes[id.index()].name {
                    Some(name) => constant(name),
                    None => Text::Absent,
                },
                ValueKind::DefaultProbe(id) => {
                    if id.is_some() {
                        constant("default")
                    } else {
                        Text::Absent
                    }
                }
                _ => folded(self.any(value)?),
            },
        })
    }

    /// Constants that stand beside one another become one.
    fn join(&mut self, parts: &[Value]) -> Made<Text> {
        let mut made: Vec<Text> = Vec::with_capacity(parts.len());
        for part in parts {
            match (self.text(part)?, made.last_mut()) {
                (Text::Constant(right), Some(Text::Constant(left))) => *left = [&left[..], &right[..]].concat().into(),
                (part, _) => made.push(part),
            }
        }
        Ok(match made.as_slice() {
            [Text::Constant(_)] => made.remove(0),
            _ => Text::Join(made.into()),
        })
    }

    /// The parts of a concatenation, each by itself.
    pub fn strands(&mut self, value: &Value) -> Made<Box<[Text]>> {
        match &value.kind {
            ValueKind::Join(parts) => parts.iter().map(|part| self.text(part)).collect(),
            _ => Ok(Box::new([self.text(value)?])),
        }
    }

    pub fn cond(&mut self, value: &Value) -> Made<Cond> {
        self.deeper(|this| this.cond_within(value))
    }

    fn cond_within(&mut self, value: &Value) -> Made<Cond> {
        Ok(match &value.kind {
            ValueKind::Bool(truth) => Cond::Constant(*truth),
            ValueKind::Variable(id) if value.of == Type::Bool => Cond::Variable(id.first_of_name()),
            ValueKind::Storage(name, Some(_)) => Cond::StorageIsHappy(StorageOf::Constant(name.as_bytes().into())),
            ValueKind::Property { of, property: Property::Happy } => Cond::StorageIsHappy(self.storage(of)?),
            ValueKind::ToBool(inside) => self.truth(inside)?,
            ValueKind::Not(inside) => match self.cond(inside)? {
                Cond::Constant(truth) => Cond::Constant(!truth),
                Cond::Not(inside) => *inside,
                inside => Cond::Not(Box::new(inside)),
            },
            ValueKind::And(parts) => match self.conds(parts, true)? {
                Ok(only) => only,
                Err(several) => Cond::And(several),
            },
            ValueKind::Or(parts) => match self.conds(parts, false)? {
                Ok(only) => only,
                Err(several) => Cond::Or(several),
            },
            ValueKind::Match { negated, text, regex } => {
                let text = self.text(text)?;
                let in_group = match &text {
                    Text::Header(of, name) => Some(Operand::Header(*of, name.lower().into())),
                    Text::Variable(id) => Some(Operand::Variable(*id)),
                    _ => None,
                };
                let in_group = in_group.map(|operand| self.grouped(operand, *regex));
                let bytes_min = self.patterns[regex.index()].bytes_min();
                Cond::Match(Box::new(Match { negated: *negated, text, pattern: *regex, bytes_min, in_group }))
            }
            ValueKind::AclMatch { negated, address, acl } => match acl.kind {
                ValueKind::Acl(acl) => Cond::AclMatch { negated: *negated, address: self.ip(address)?, acl },
                _ => return odd(acl, "an ACL"),
            },
            ValueKind::Compare { operator, left, right } => self.comparison(*operator, left, right)?,
            ValueKind::Call { .. } => Cond::Call(self.call(value)?),
            _ => return odd(value, "a condition"),
        })
    }

    /// The parts of an `&&` or `||`, or the only one that is left of them: `a != "x" && a != "y"` asks once whether `a` is
    /// none of these, and `||` with `==` whether it is one.
    fn conds(&mut self, parts: &[Value], negated: bool) -> Made<Result<Cond, Box<[Cond]>>> {
        let mut conds: Vec<Cond> = Vec::with_capacity(parts.len());
        for part in parts {
            match (conds.last_mut(), self.cond(part)?) {
                (Some(Cond::Among(before)), Cond::Among(next))
                    if before.negated == negated && next.negated == negated && before.text.reads_as(&next.text) =>
                {
                    before.constants.extend(next.constants);
                }
                (_, next) => conds.push(next),
            }
        }
        Ok(if conds.len() == 1 { Ok(conds.remove(0)) } else { Err(conds.into()) })
    }

    fn truth(&mut self, value: &Value) -> Made<Cond> {
        Ok(match value.of {
            Type::Bool => self.cond(value)?,
            Type::Int => Cond::IsNotZero(self.int(value)?),
            Type::Duration => Cond::IsPositive(self.real(value)?),
            Type::Backend => Cond::IsSome(self.backend(value)?),
            _ => match self.text(value)? {
                Text::Constant(_) => Cond::Constant(true),
                Text::Absent => Cond::Constant(false),
                Text::Header(of, name) => Cond::HeaderIsThere(of, name),
                text => Cond::IsThere(text),
            },
        })
    }

    fn comparison(&mut self, operator: BinaryOperator, left: &Value, right: &Value) -> Made<Cond> {
        Ok(match left.of {
            Type::String | Type::Strands | Type::Header => {
                let negated = operator == BinaryOperator::NotEqual;
                match (self.text(left)?, self.text(right)?) {
                    (text @ (Text::Header(..) | Text::Variable(_)), Text::Constant(constant))
                        if negated || operator == BinaryOperator::Equal =>
                    {
                        Cond::Among(Box::new(Among { negated, text, constants: vec![constant] }))
                    }
                    (left, right) => Cond::Texts(operator, Box::new((left, right))),
                }
            }
            Type::Int | Type::Bytes => Cond::Ints(operator, Box::new((self.int(left)?, self.int(right)?))),
            Type::Real | Type::Duration | Type::Time => {
                Cond::Reals(operator, Box::new((self.real(left)?, self.real(right)?)))
            }
            _ => {
                let negated = operator == BinaryOperator::NotEqual;
                Cond::Same { negated, sides: Box::new((self.any(left)?, self.any(right)?)) }
            }
        })
    }

    pub fn int(&mut self, value: &Value) -> Made<Int> {
        self.deeper(|this| {
            Ok(match &value.kind {
                ValueKind::Int(number) | ValueKind::Bytes(number) => Int::Constant(*number),
                ValueKind::Variable(id) => Int::Variable(id.first_of_name()),
                ValueKind::Negative(inside) => Int::Negative(Box::new(this.int(inside)?)),
                ValueKind::Arithmetic { operator, left, right } => match right.of {
                    Type::Real => Int::Scaled(*operator, Box::new((this.int(left)?, this.real(right)?))),
                    _ => Int::Arithmetic(*operator, Box::new((this.int(left)?, this.int(right)?))),
                },
                ValueKind::Storage(name, Some(row)) => {
                    Int::StorageSpace(StorageOf::Constant(name.as_bytes().into()), *row)
                }
                ValueKind::Property { of, property: Property::FreeSpace } => {
                    Int::StorageSpace(this.storage(of)?, VariableId::STORAGE_FREE_SPACE)
                }
                ValueKind::Property { of, property: Property::UsedSpace } => {
                    Int::StorageSpace(this.storage(of)?, VariableId::STORAGE_USED_SPACE)
                }
                ValueKind::Widened(inside) => this.int(inside)?,
                ValueKind::Call { .. } => Int::Call(this.call(value)?),
                _ => return odd(value, "a whole number"),
            })
        })
    }

    pub fn real(&mut self, value: &Value) -> Made<Real> {
        self.deeper(|this| {
            Ok(match &value.kind {
                ValueKind::Real(number) | ValueKind::Duration(number) => Real::Constant(*number),
                ValueKind::Int(number) => Real::Constant(*number as f64),
                ValueKind::Variable(id) => Real::Variable(id.first_of_name()),
                ValueKind::Negative(inside) => Real::Negative(Box::new(this.real(inside)?)),
                ValueKind::Widened(inside) => match this.int(inside)? {
                    Int::Constant(number) => Real::Constant(number as f64),
                    inside => Real::OfInt(Box::new(inside)),
                },
                ValueKind::Arithmetic { operator, left, right } => {
                    Real::Arithmetic(*operator, Box::new((this.real(left)?, this.real(right)?)))
                }
                ValueKind::Call { .. } => Real::Call(this.call(value)?),
                _ => return odd(value, "a number"),
            })
        })
    }

    fn ip(&mut self, value: &Value) -> Made<IpOf> {
        Ok(match &value.kind {
            ValueKind::Ip(ip) => IpOf::Constant(*ip),
            ValueKind::Variable(id) => IpOf::Variable(id.first_of_name()),
            ValueKind::Call { .. } => IpOf::Call(self.call(value)?),
            _ => return odd(value, "an address"),
        })
    }

    fn blob(&mut self, value: &Value) -> Made<BlobOf> {
        Ok(match &value.kind {
            ValueKind::Blob(bytes) => BlobOf::Constant(bytes.clone()),
            ValueKind::Variable(id) => {
                let id = id.first_of_name();
                self.asks_hash |= matches!(id, VariableId::REQ_HASH | VariableId::BEREQ_HASH);
                BlobOf::Variable(id)
            }
            ValueKind::Call { .. } => BlobOf::Call(self.call(value)?),
            _ => return odd(value, "a blob"),
        })
    }

    fn backend(&mut self, value: &Value) -> Made<BackendOf> {
        Ok(match &value.kind {
            ValueKind::Backend(id) => BackendOf::Constant(BackendRef::Named(*id)),
            ValueKind::DefaultBackend => {
                let default = self.program.default_backend;
                BackendOf::Constant(default.map_or(BackendRef::None, BackendRef::Named))
            }
            ValueKind::Variable(id) => BackendOf::Variable(id.first_of_name()),
            ValueKind::Property { of, property: Property::Resolve } => {
                BackendOf::Resolved(Box::new(self.deeper(|this| this.backend(of))?))
            }
            ValueKind::Call { .. } => BackendOf::Call(self.call(value)?),
            _ => return odd(value, "a backend"),
        })
    }

    fn storage(&mut self, value: &Value) -> Made<StorageOf> {
        Ok(match &value.kind {
            ValueKind::Storage(name, None) => StorageOf::Constant(name.as_bytes().into()),
            ValueKind::Variable(id) => StorageOf::Variable(id.first_of_name()),
            ValueKind::Call { .. } => StorageOf::Call(self.call(value)?),
            _ => return odd(value, "a store"),
        })
    }

    fn header(&mut self, value: &Value) -> Made<HeaderOf> {
        match &value.kind {
            ValueKind::Header(row, name) => Ok(HeaderOf::Fixed(message(*row)?, self.header_name(name))),
            ValueKind::Call { function, arguments, .. } if is_dyn(function) => {
                let (of, name) = self.dyn_header(arguments)?;
                Ok(HeaderOf::Called(of, name))
            }
            _ => odd(value, "a header"),
        }
    }

    fn dyn_header(&mut self, arguments: &[Option<Value>]) -> Made<(Message, Text)> {
        match arguments {
            [Some(Value { kind: ValueKind::Variable(of), .. }), Some(name)] => Ok((message(*of)?, self.text(name)?)),
            _ => Err("header.dyn takes a message and a name".to_owned()),
        }
    }

    pub fn header_name(&mut self, name: &str) -> Arc<HeaderName> {
        let known = self.names.entry(name.to_owned());
        Arc::clone(known.or_insert_with(|| Arc::new(HeaderName::new(name.as_bytes()))))
    }

    pub fn call(&mut self, value: &Value) -> Made<Box<Call>> {
        match &value.kind {
            ValueKind::Call { function, object, arguments } => {
                let mut call = self.call_of(function, arguments)?;
                call.object = *object;
                Ok(Box::new(call))
            }
            _ => odd(value, "a call"),
        }
    }

    pub fn call_of(&mut self, function: &'static Function, arguments: &[Option<Value>]) -> Made<Call> {
        let Some(found) = VmodFunction::of(function) else {
            return Err(format!("{} is not there yet: larder cannot run it", function.show()));
        };
        let arguments = function.parameters.iter().zip(arguments).map(|(parameter, argument)| match argument {
            Some(argument) => self.deeper(|this| this.argument(parameter, argument)).map(Some),
            None => default(parameter),
        });
        let arguments = arguments.collect::<Made<Box<[_]>>>()?;
        match (function.vmod, function.name) {
            ("vtc", "barrier_sync" | "sleep") => self.waits = true,
            ("std", "cache_req_body") => {
                let asked = match arguments.first() {
                    Some(Some(Any::Bytes(Int::Constant(bytes)))) => u64::try_from(*bytes).unwrap_or(0),
                    _ => REQUEST_BODY_BYTES_DEFAULT,
                };
                let asked = asked.min(REQUEST_BODY_BYTES_MAX);
                self.request_body_bytes = Some(self.request_body_bytes.unwrap_or(0).max(asked));
            }
            ("bodyaccess", _) => self.looks_at_body = true,
            ("directors", name) if name.starts_with("shard") => self.asks_hash = true,
            ("saintmode", _) => self.asks_hash = true,
            ("purge", _) => self.purges_hash = true,
            _ => {}
        }
        Ok(Call { function: found, object: None, arguments, gives: function.gives })
    }

    fn argument(&mut self, parameter: &Parameter, argument: &Value) -> Made<Any> {
        match parameter.of {
            Type::String | Type::Strands => Ok(Any::Text(self.text(argument)?)),
            _ => self.any(argument),
        }
    }

    /// Values are trees: a limit keeps whoever walks them from running out of stack.
    fn deeper<T>(&mut self, make: impl FnOnce(&mut Self) -> Made<T>) -> Made<T> {
        if self.depth >= VALUE_DEPTH_MAX {
            return Err(format!("an expression is nested more than {VALUE_DEPTH_MAX} deep (VALUE_DEPTH_MAX)"));
        }
        self.depth += 1;
        let made = make(self);
        self.depth -= 1;
        made
    }
}

fn is_dyn(function: &Function) -> bool {
    function.vmod == "header" && function.name == "dyn"
}

fn constant(text: &str) -> Text {
    Text::Constant(text.as_bytes().into())
}

/// A constant of another type is its text already.
fn folded(value: Any) -> Text {
    match &value {
        Any::Bool(Cond::Constant(truth)) => constant(text_forms::of_bool(*truth)),
        Any::Int(Int::Constant(number)) | Any::Bytes(Int::Constant(number)) => constant(&number.to_string()),
        Any::Real(Real::Constant(number)) | Any::Duration(Real::Constant(number)) => constant(&format!("{number:.3}")),
        Any::Storage(StorageOf::Constant(name)) => Text::Constant(name.clone()),
        _ => Text::Of(Box::new(value)),
    }
}

/// What the caller left away. A parameter that is optional stays absent, default or not: its function must know.
fn default(parameter: &Parameter) -> Made<Option<Any>> {
    let Some(written) = parameter.default.filter(|_| !parameter.optional) else { return Ok(None) };
    let bad = || format!("the default {written} is no {}", parameter.of.name());
    let number = || written.parse::<f64>().map_err(|_| bad());
    Ok(Some(match parameter.of {
        Type::Bool => Any::Bool(Cond::Constant(written == "true")),
        Type::Int => Any::Int(Int::Constant(number()? as i64)),
        Type::Bytes => Any::Bytes(Int::Constant(number()? as i64)),
        Type::Real => Any::Real(Real::Constant(number()?)),
        Type::Duration => Any::Duration(Real::Constant(number()?)),
        // In the table it stands between quotes, with the escapes of Rust.
        Type::String | Type::Strands => Any::Text(constant(&written.replace("\\t", "\t"))),
        Type::Enum => match parameter.words.iter().find(|word| **word == written) {
            Some(word) => Any::Word(word),
            None => return Err(bad()),
        },
        _ => return Err(bad()),
    }))
}

/// Which message the row is of: `req.http.*`, or `req` itself.
pub fn message(row: VariableId) -> Made<Message> {
    Ok(match row.first_of_name() {
        VariableId::REQ_HTTP | VariableId::REQ => Message::Req,
        VariableId::REQ_TOP_HTTP => Message::ReqTop,
        VariableId::BEREQ_HTTP | VariableId::BEREQ => Message::Bereq,
        VariableId::BERESP_HTTP | VariableId::BERESP => Message::Beresp,
        VariableId::OBJ_HTTP => Message::Obj,
        VariableId::OBJ_STALE_HTTP => Message::ObjStale,
        VariableId::RESP_HTTP | VariableId::RESP => Message::Resp,
        other => return Err(format!("{} is no message", other.get().name)),
    })
}
