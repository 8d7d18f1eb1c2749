//! Statements of the checked program become steps; regexes about the same text become sets.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;

use super::builtin_rules::{BuiltinRule, is_untouched};
use super::compiled::*;
use super::lawful_values::lawful_line;
use crate::header_names::HeaderName;
use crate::host::Message;
use crate::limits::{REQUEST_BODY_BYTES_DEFAULT, WHOLE_AUTOMATA_MAX};
use crate::matching::acl_ranges::AclRanges;
use crate::matching::pattern::Pattern;
use crate::matching::pattern_sets::{PatternsSet, SET_PATTERNS_MIN, SET_SHAPED_PATTERNS_MIN};
use crate::subroutines::Action;
use crate::syntax::{AssignOperator, BinaryOperator};
use crate::typed_program::{Program, RegexId, Statement, StatementKind, Target, Value, Verdict};
use crate::types::Type;
use crate::variables::VariableId;
use crate::world::World;

/// What the sets are made by: the text that regexes are asked about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Operand {
    Header(Message, Box<[u8]>),
    Variable(VariableId),
}

pub struct Compiler<'p> {
    pub program: &'p Program,
    pub patterns: &'p [Pattern],
    pub names: HashMap<String, Arc<HeaderName>>,
    pub depth: u32,
    pub request_body_bytes: Option<u64>,
    pub looks_at_body: bool,
    pub asks_hash: bool,
    pub purges_hash: bool,
    pub names_filters: bool,
    pub waits: bool,
    groups: Vec<Group>,
    /// By subroutine and text.
    group_numbers: HashMap<(usize, Operand), u32>,
    subroutine: usize,
    wholes_left: Cell<u32>,
}

/// The program as it is run. The error is for people.
pub fn compile(program: &Program, world: &dyn World) -> Result<Compiled, String> {
    let names = HashMap::new();
    let patterns: Vec<Pattern> = program.regexes.iter().map(|written| Pattern::new(written)).collect();
    let mut compiler = Compiler {
        program,
        patterns: &patterns,
        names,
        depth: 0,
        request_body_bytes: None,
        looks_at_body: false,
        asks_hash: false,
        purges_hash: false,
        names_filters: false,
        waits: false,
        groups: Vec::new(),
        group_numbers: HashMap::new(),
        subroutine: 0,
        wholes_left: Cell::new(WHOLE_AUTOMATA_MAX),
    };
    let mut subroutines = Vec::with_capacity(program.subroutines.len());
    for (number, subroutine) in program.subroutines.iter().enumerate() {
        compiler.subroutine = number;
        let mut steps = Vec::new();
        for body in &subroutine.bodies {
            compiler.steps(&body.statements, &mut steps)?;
        }
        subroutines.push(steps);
    }
    let (asks_hash, names_filters, waits) = (compiler.asks_hash, compiler.names_filters, compiler.waits);
    let purges_hash = compiler.purges_hash;
    let (mut groups, wholes_left) = (compiler.groups, compiler.wholes_left);
    let mut sets_count = 0;
    for group in &mut groups {
        group.set = set_of(&group.members, &patterns, sets_count, &wholes_left);
        sets_count += u32::from(group.set.is_some());
    }
    let mut is_in_set = vec![false; patterns.len()];
    for (group, set) in groups.iter().filter_map(|group| Some((group, group.set.as_ref()?))) {
        let placed = group.members.iter().zip(&set.places).filter(|(_, place)| place.is_some());
        placed.for_each(|(member, _)| is_in_set[member.index()] = true);
    }
    patterns.iter().zip(&is_in_set).filter(|(_, in_set)| !**in_set).for_each(|(pattern, _)| pattern.prepare());
    let addresses = |name: &str| world.addresses(name);
    let acls = program.acls.iter().map(|acl| AclRanges::new(acl, &addresses)).collect::<Result<Vec<_>, String>>()?;
    let (methods, labels, sets_count) = (program.methods, program.labels.clone(), sets_count as usize);
    let looks_at = compiler.looks_at_body.then_some(REQUEST_BODY_BYTES_DEFAULT);
    let request_body_bytes = compiler.request_body_bytes.or(looks_at);
    let untouched = methods.map(|method| method.is_some_and(|id| is_untouched(program, id)));
    Ok(Compiled {
        subroutines,
        methods,
        untouched,
        patterns,
        groups,
        sets_count,
        acls,
        request_body_bytes,
        asks_hash,
        purges_hash,
        names_filters,
        waits,
        labels,
    })
}

/// A set of a chain's regexes, if they are worth one.
fn chain_set_of(steps: &[Rewriting], patterns: &[Pattern], wholes_left: &Cell<u32>) -> Option<ChainSet> {
    if steps.len() < SET_PATTERNS_MIN {
        return None;
    }
    let (mut syntaxes, mut places, mut looks_for_end) = (Vec::new(), Vec::new(), false);
    for step in steps {
        let syntax = patterns[step.pattern.index()].for_set();
        places.push(syntax.map(|_| syntaxes.len() as u32));
        if let Some((syntax, looks)) = syntax {
            syntaxes.push(syntax);
            looks_for_end |= looks;
        }
    }
    Some(ChainSet { engine: PatternsSet::whole(&syntaxes, looks_for_end, wholes_left)?, places })
}

/// A set of those that are worth one.
fn set_of(members: &[RegexId], patterns: &[Pattern], number: u32, wholes_left: &Cell<u32>) -> Option<GroupSet> {
    let eligible = |id: &RegexId| patterns[id.index()].for_set().is_some();
    let needs_engine = |id: &RegexId| eligible(id) && !patterns[id.index()].has_shape();
    let with_shaped = members.iter().filter(|id| eligible(id)).count() >= SET_SHAPED_PATTERNS_MIN;
    let taken = |id: &RegexId| if with_shaped { eligible(id) } else { needs_engine(id) };
    let (mut syntaxes, mut places, mut looks_for_end) = (Vec::new(), Vec::new(), false);
    for id in members {
        let syntax = patterns[id.index()].for_set().filter(|_| taken(id));
        places.push(syntax.map(|_| syntaxes.len() as u32));
        if let Some((syntax, looks)) = syntax {
            syntaxes.push(syntax);
            looks_for_end |= looks;
        }
    }
    if syntaxes.len() < SET_PATTERNS_MIN {
        return None;
    }
    let engine = PatternsSet::new(&syntaxes, looks_for_end, wholes_left)?;
    Some(GroupSet { engine, number, places })
}

/// A statement that rewrites a header by a regex and a fixed text; any other comes back.
fn rewriting_of(step: Step) -> Result<(Message, Arc<HeaderName>, Rewriting), Step> {
    let Step { act: Act::SetHeader { of, name, value: Text::Changed(change), is_lawful }, at } = step else {
        return Err(step);
    };
    match *change {
        ChangedText::Substituted {
            all,
            text: Text::Header(from, read),
            pattern,
            replacement: Text::Constant(replacement),
        } if from == of && read.lower() == name.lower() && lawful_line(b"", &replacement).is_ok() => {
            Ok((of, name, Rewriting { all, pattern, replacement, at }))
        }
        other => {
            let value = Text::Changed(Box::new(other));
            Err(Step { act: Act::SetHeader { of, name, value, is_lawful }, at })
        }
    }
}

impl Compiler<'_> {
    /// The group of the text within this subroutine, and the regex's number there.
    pub fn grouped(&mut self, operand: Operand, regex: RegexId) -> (u32, u32) {
        let next = self.groups.len() as u32;
        let group = *self.group_numbers.entry((self.subroutine, operand)).or_insert(next);
        if group == next {
            self.groups.push(Group::default());
        }
        let members = &mut self.groups[group as usize].members;
        let member = members.iter().position(|known| *known == regex).unwrap_or_else(|| {
            members.push(regex);
            members.len() - 1
        });
        (group, member as u32)
    }

    fn block(&mut self, statements: &[Statement]) -> Result<Box<[Step]>, String> {
        let mut steps = Vec::with_capacity(statements.len());
        self.steps(statements, &mut steps)?;
        Ok(steps.into())
    }

    fn steps(&mut self, statements: &[Statement], steps: &mut Vec<Step>) -> Result<(), String> {
        for statement in statements {
            let act = self.act(&statement.kind)?;
            steps.extend(act.map(|act| Step { act, at: statement.span }));
        }
        self.join_rewritings(steps);
        Ok(())
    }

    /// Templates clean a header by a chain of substitutions, in which mostly there is nothing to do.
    fn join_rewritings(&self, steps: &mut Vec<Step>) {
        let mut joined: Vec<Step> = Vec::with_capacity(steps.len());
        for step in steps.drain(..) {
            let (of, name, rewriting) = match rewriting_of(step) {
                Ok(rewriting) => rewriting,
                Err(other) => {
                    joined.push(other);
                    continue;
                }
            };
            let bytes = self.patterns[rewriting.pattern.index()].bytes_min();
            match joined.last_mut() {
                Some(Step { act: Act::RewriteHeader { of: before, name: known, bytes_min, steps, set }, .. })
                    if *before == of && known.written() == name.written() =>
                {
                    *bytes_min = bytes.min(*bytes_min);
                    let mut longer = std::mem::take(steps).into_vec();
                    longer.push(rewriting);
                    *steps = longer.into();
                    *set = None;
                }
                _ => {
                    let at = rewriting.at;
                    let steps = Box::new([rewriting]);
                    let act = Act::RewriteHeader { of, name, bytes_min: bytes, steps, set: None };
                    joined.push(Step { act, at });
                }
            }
        }
        for step in &mut joined {
            if let Act::RewriteHeader { steps, set: set @ None, .. } = &mut step.act {
                *set = chain_set_of(steps, self.patterns, &self.wholes_left).map(Box::new);
            }
        }
        *steps = joined;
    }

    fn act(&mut self, kind: &StatementKind) -> Result<Option<Act>, String> {
        Ok(Some(match kind {
            StatementKind::Nothing => return Ok(None),
            StatementKind::Set { target: Target::Header(row, name), operator, value } => {
                let (of, name) = (super::value_compiler::message(*row)?, self.header_name(name));
                let value = self.text(value)?;
                match operator {
                    AssignOperator::Set => {
                        let is_lawful = match &value {
                            Text::Constant(text) => lawful_line(b"", text).is_ok(),
                            Text::Of(any) => matches!(**any, Any::Int(_) | Any::Bytes(_) | Any::Bool(_)),
                            _ => false,
                        };
                        Act::SetHeader { of, name, value, is_lawful }
                    }
                    _ => Act::AddToHeader { of, name, value },
                }
            }
            StatementKind::Set { target: Target::Variable(row), operator, value } => {
                self.names_filters |= row.first_of_name() == VariableId::RESP_FILTERS;
                self.set_variable(row.first_of_name(), *operator, value)?
            }
            StatementKind::Unset(Target::Header(row, name)) => {
                Act::UnsetHeader { of: super::value_compiler::message(*row)?, name: self.header_name(name) }
            }
            StatementKind::Unset(Target::Variable(row)) => Act::UnsetVariable(row.first_of_name()),
            StatementKind::Call(id) => match BuiltinRule::of(self.program, *id) {
                Some(rule) => Act::Builtin(rule, *id),
                // Such as vcl_builtin_hit.
                None if self.program.subroutines[id.index()].bodies.iter().all(|body| body.statements.is_empty()) => {
                    return Ok(None);
                }
                None => Act::Call(*id),
            },
            StatementKind::Leave => Act::Leave,
            StatementKind::Return(verdict) => Act::Return(self.ending(verdict)?),
            StatementKind::If { branches, otherwise } => {
                let branches = branches.iter().map(|(condition, block)| {
                    let (at, condition, steps) = (condition.span, self.cond(condition)?, self.block(block)?);
                    Ok(Branch { at, condition, steps })
                });
                let branches = branches.collect::<Result<Box<[_]>, String>>()?;
                Act::If(Box::new(Branches { branches, otherwise: self.block(otherwise)? }))
            }
            StatementKind::New { object, arguments } => {
                let constructor = self.program.objects[object.index()].constructor;
                Act::New { object: *object, call: Box::new(self.call_of(constructor, arguments)?) }
            }
            StatementKind::Ban(text) => Act::Ban(self.text(text)?),
            StatementKind::HashData(text) => Act::HashData(self.strands(text)?),
            StatementKind::Synthetic(text) => Act::Synthetic(self.strands(text)?),
            StatementKind::Function(call) => self.function(call)?,
            StatementKind::Block(block) => Act::Block(self.block(block)?),
        }))
    }

    /// A function for its effect; what it gives is dropped. A regsub alone has none, but may fail.
    fn function(&mut self, value: &Value) -> Result<Act, String> {
        use crate::typed_program::ValueKind;
        match value.kind {
            ValueKind::Call { .. } => Ok(Act::Function(self.call(value)?)),
            _ => Ok(Act::If(Box::new(Branches {
                branches: Box::new([Branch {
                    at: value.span,
                    condition: Cond::IsThere(self.text(value)?),
                    steps: Box::new([]),
                }]),
                otherwise: Box::new([]),
            }))),
        }
    }

    fn set_variable(&mut self, of: VariableId, assign: AssignOperator, value: &Value) -> Result<Act, String> {
        use BinaryOperator::{Add, Divide, Multiply, Subtract};
        let operator = match assign {
            AssignOperator::Set => None,
            AssignOperator::Add => Some(Add),
            AssignOperator::Subtract => Some(Subtract),
            AssignOperator::Multiply => Some(Multiply),
            AssignOperator::Divide => Some(Divide),
        };
        let variable = of.get();
        if variable.of == Type::Body {
            let value = if value.of == Type::Blob { self.any(value)? } else { Any::Text(self.text(value)?) };
            return Ok(Act::SetBody { append: operator.is_some(), value });
        }
        let Some(operator) = operator else {
            let value = match variable.of {
                Type::String => Any::Text(self.text(value)?),
                _ => self.any(value)?,
            };
            return Ok(Act::SetVariable { of, value });
        };
        let value = match variable.of {
            Type::String => Any::Text(Text::Join(Box::new([Text::Variable(of), self.text(value)?]))),
            Type::Int => Any::Int(Int::Arithmetic(operator, Box::new((Int::Variable(of), self.int(value)?)))),
            Type::Time => Any::Time(Real::Arithmetic(operator, Box::new((Real::Variable(of), self.real(value)?)))),
            _ => Any::Duration(Real::Arithmetic(operator, Box::new((Real::Variable(of), self.real(value)?)))),
        };
        Ok(Act::SetVariable { of, value })
    }

    fn ending(&mut self, verdict: &Verdict) -> Result<Ending, String> {
        self.purges_hash |= matches!(verdict, Verdict::Plain(Action::Purge));
        let text =
            |this: &mut Self, value: &Option<Box<Value>>| value.as_ref().map(|value| this.text(value)).transpose();
        Ok(match verdict {
            Verdict::Plain(action) => Ending::Plain(*action),
            Verdict::Status { action, status, reason } => {
                Ending::Status { action: *action, status: self.int(status)?, reason: text(self, reason)? }
            }
            Verdict::PassFor(duration) => Ending::PassFor(self.real(duration)?),
            Verdict::Fail(why) => Ending::Fail(text(self, why)?),
            Verdict::Vcl(label) => Ending::Vcl(*label),
        })
    }
}
