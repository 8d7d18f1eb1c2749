//! Walks the steps of a subroutine over a host.
//!
//! A `Run` is one built-in subroutine with all that it calls. It ends: there are no loops and no recursion in the
//! language, and what is left, many calls of many calls, is counted (`STATEMENTS_MAX`). Whatever cannot be done ends it
//! with a fault, which is logged here with its place.

use std::cell::{Cell, OnceCell};

use smallvec::SmallVec;

use super::builtin_rules::{self, BuiltinRule};
use super::compiled::*;
use super::lawful_values::{lawful_line, lawful_status, lawful_value};
use crate::header_names::KeptName;
use crate::host::{Host, LogKind, Message};
use crate::limits::{RUN_DEPTH_MAX, STATEMENTS_MAX};
use crate::loaded::Loaded;
use crate::matching::pattern_sets::LastPass;
use crate::plain_values::{Fault, Plain};
use crate::scope_arena::Arena;
use crate::source_files::Span;
use crate::subroutine_verdicts::{self as verdicts, Status};
use crate::subroutines::{Method, MethodSet};
use crate::typed_program::SubroutineId;
use crate::types::Type;
use crate::variables::VariableId;
use crate::vmods::{Argument, Arguments, HeaderArgument};

/// One built-in subroutine while it runs.
pub struct Run<'a, 'h, H> {
    pub host: &'h H,
    pub loaded: &'a Loaded,
    pub compiled: &'a Compiled,
    pub arena: &'a Arena,
    /// One for each set of regexes; made when the first is asked.
    last_passes: OnceCell<&'a [LastPass<'a>]>,
    at: Cell<Option<&'a Span>>,
    steps_left: Cell<u32>,
    depth: Cell<u32>,
    method: Method,
    /// What was returned with. Beside the flow, which is passed on by every statement and so is small.
    ending: Cell<Option<verdicts::Ending<'a>>>,
}

/// How a block ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    /// At its end; what follows it is next.
    Through,
    /// The subroutine is left, but not the one that called it.
    Leave,
    /// By a return, see `Run::ending`.
    Ended,
}

#[cold]
fn too_deep() -> Fault {
    Fault::new(format!("blocks and calls are nested more than {RUN_DEPTH_MAX} deep (RUN_DEPTH_MAX)"))
}

#[cold]
fn too_long() -> Fault {
    Fault::new(format!("the program ran more than {STATEMENTS_MAX} statements (STATEMENTS_MAX)"))
}

/// In Varnish's words.
pub(crate) const NO_BAN: &str = "Null argument";

/// What is said of a ban that cannot be.
pub(crate) fn ban_failed(expression: Option<&[u8]>, why: &str) -> String {
    let shown = expression.map_or("nothing".into(), String::from_utf8_lossy);
    format!("ban(): {why} (so this bans nothing: {shown})")
}

/// Runs a built-in subroutine. A fault is logged, with the place where it happened.
pub fn run<'a, H: Host<'a>>(
    loaded: &'a Loaded,
    compiled: &'a Compiled,
    host: &H,
    method: Method,
) -> verdicts::Ending<'a> {
    let run = Run::new(loaded, compiled, host, method);
    host.begun(method);
    let ending = match run.method(method) {
        Ok(verdicts::Ending::Fail(why)) | Err(why) => {
            let fault = run.placed(&why, method);
            host.log_fault(&why, &fault);
            verdicts::Ending::Fail(fault)
        }
        Ok(ending) => ending,
    };
    host.ended(method, ending.action(), &ending);
    ending
}

impl<'a, 'h, H: Host<'a>> Run<'a, 'h, H> {
    #[inline]
    fn new(loaded: &'a Loaded, compiled: &'a Compiled, host: &'h H, method: Method) -> Run<'a, 'h, H> {
        Run {
            host,
            loaded,
            compiled,
            arena: host.arena(),
            last_passes: OnceCell::new(),
            at: Cell::new(None),
            steps_left: Cell::new(STATEMENTS_MAX),
            depth: Cell::new(0),
            method,
            ending: Cell::new(None),
        }
    }

    /// What the set of that number found in the last text.
    #[inline]
    pub fn last_pass(&self, number: u32) -> Result<&'a LastPass<'a>, Fault> {
        if let Some(all) = self.last_passes.get() {
            return Ok(&all[number as usize]);
        }
        let all: &'a [LastPass<'a>] = self.arena.filled(self.compiled.sets_count, |_| LastPass::default())?;
        Ok(&self.last_passes.get_or_init(|| all)[number as usize])
    }

    /// In vcl_init and vcl_fini, where there is no request.
    pub fn is_housekeeping(&self) -> bool {
        MethodSet::HOUSEKEEPING.has(self.method)
    }

    /// Where there is a bereq.
    pub fn is_backend_side(&self) -> bool {
        MethodSet::BACKEND.has(self.method) || self.method == Method::Pipe
    }

    fn method(&self, method: Method) -> Result<verdicts::Ending<'a>, Fault> {
        let Some(id) = self.compiled.methods[method as usize] else {
            return Err(Fault::new(format!("there is no {}", method.name())));
        };
        self.block(&self.compiled.subroutines[id.index()])?;
        self.ending.take().ok_or_else(|| Fault::new(format!("{} ended without a return", method.name())))
    }

    /// A subroutine of one's own, called as a function. What it returns with is dropped unless it is a failure.
    pub fn call_for_time(&self, id: SubroutineId) -> Result<(), Fault> {
        self.block(&self.compiled.subroutines[id.index()])?;
        match self.ending.take() {
            Some(verdicts::Ending::Fail(why)) => Err(why),
            _ => Ok(()),
        }
    }

    #[cold]
    fn placed(&self, why: &Fault, method: Method) -> Fault {
        let place = self.at.get().map(|at| format!("{}: ", self.loaded.sources().show_place(*at))).unwrap_or_default();
        why.told_as(format!("{place}{why} (in {})", method.name()))
    }

    /// A statement begins.
    #[inline(always)]
    pub fn stand_at(&self, at: &'a Span) -> Result<(), Fault> {
        self.at.set(Some(at));
        self.spend()
    }

    /// One more thing is done.
    #[inline(always)]
    pub fn spend(&self) -> Result<(), Fault> {
        match self.steps_left.get().checked_sub(1) {
            Some(left) => {
                self.steps_left.set(left);
                Ok(())
            }
            None => Err(too_long()),
        }
    }

    fn block(&self, steps: &'a [Step]) -> Result<Flow, Fault> {
        let depth = self.depth.get();
        if depth >= RUN_DEPTH_MAX {
            return Err(too_deep());
        }
        self.depth.set(depth + 1);
        for step in steps {
            self.stand_at(&step.at)?;
            self.host.statement(step.at);
            match self.act(&step.act)? {
                Flow::Through => {}
                ended => {
                    self.depth.set(depth);
                    return Ok(ended);
                }
            }
        }
        self.depth.set(depth);
        Ok(Flow::Through)
    }

    fn act(&self, act: &'a Act) -> Result<Flow, Fault> {
        match act {
            Act::SetHeader { of, name, value, is_lawful } => {
                let value = self.text(value)?.unwrap_or_default();
                match is_lawful {
                    true => self.host.set_header(*of, KeptName::Known(name), value)?,
                    false => self.set_line(*of, KeptName::Known(name), value)?,
                }
            }
            Act::AddToHeader { of, name, value } => {
                let before = self.host.header(*of, name).unwrap_or_default();
                let value = self.text(value)?.unwrap_or_default();
                let value = self.arena.join(&[before, value])?;
                self.set_line(*of, KeptName::Known(name), value)?;
            }
            Act::RewriteHeader { of, name, steps, .. } if self.host.tells_changes() => {
                for (index, step) in steps.iter().enumerate() {
                    if index > 0 {
                        self.host.statement(step.at);
                    }
                    let text = self.host.header(*of, name).unwrap_or_default();
                    let text = self.rewritten(text, std::slice::from_ref(step), None)?;
                    self.set_line(*of, KeptName::Known(name), text)?;
                }
            }
            Act::RewriteHeader { of, name, bytes_min, steps, set } => {
                let text = self.host.header(*of, name).unwrap_or_default();
                let text = if text.len() < *bytes_min { text } else { self.rewritten(text, steps, set.as_deref())? };
                self.set_line(*of, KeptName::Known(name), text)?;
            }
            Act::UnsetHeader { of, name } => self.host.unset_header(*of, KeptName::Known(name)),
            Act::SetVariable { of, value } => {
                let value = self.plain(value)?;
                if self.is_as_it_is(*of, value) {
                    return Ok(Flow::Through);
                }
                self.host.set_variable(*of, lawful_value(*of, value)?)?;
                if *of == VariableId::BEREQ_BACKEND {
                    self.host.backend_chosen(value.backend());
                }
            }
            Act::UnsetVariable(of) => self.host.unset_variable(*of)?,
            Act::SetBody { append, value } => {
                let value = self.plain(value)?;
                if !append {
                    self.host.clear_synthetic();
                }
                self.host.synthetic(value.text().unwrap_or_default())?;
            }
            Act::Call(id) => match self.block(&self.compiled.subroutines[id.index()])? {
                Flow::Leave | Flow::Through => {}
                Flow::Ended => return Ok(Flow::Ended),
            },
            Act::Builtin(_, id) if self.host.is_watched() => return self.block(&self.compiled.subroutines[id.index()]),
            Act::Builtin(BuiltinRule::Recv, _) => {
                if let Some(ending) = builtin_rules::recv(self)? {
                    self.ending.set(Some(ending));
                    return Ok(Flow::Ended);
                }
            }
            Act::Builtin(BuiltinRule::Hash, _) => builtin_rules::hash(self)?,
            Act::Leave => return Ok(Flow::Leave),
            Act::Return(ending) => {
                self.ending.set(Some(self.ending(ending)?));
                return Ok(Flow::Ended);
            }
            Act::If(branches) => return self.branches(branches),
            Act::New { object, call } => self.make(*object, call)?,
            Act::Ban(text) => self.ban(text)?,
            Act::HashData(parts) => {
                for part in parts {
                    self.host.hash_data(self.text(part)?);
                }
                self.host.hash_data_ends();
            }
            Act::Synthetic(parts) => {
                for part in parts {
                    self.host.synthetic(self.text(part)?.unwrap_or(b"(null)"))?;
                }
            }
            Act::Function(call) => drop(self.call(call)?),
            Act::Block(steps) => return self.block(steps),
        }
        Ok(Flow::Through)
    }

    /// In place of all lines of a header. Every value that was made while the program ran is set here or added below, so that
    /// none goes by what a line may be.
    #[inline]
    pub fn set_line(&self, of: Message, name: KeptName<'a>, value: &'a [u8]) -> Result<(), Fault> {
        self.host.set_header(of, name, lawful_line(name.written(), value)?)
    }

    /// Behind those that are there.
    #[inline]
    pub fn add_line(&self, of: Message, name: KeptName<'a>, value: &'a [u8]) -> Result<(), Fault> {
        self.host.add_header(of, name, lawful_line(name.written(), value)?)
    }

    /// A function gave back the very text of the variable: it found nothing to change. Who is told of changes is told that it stays.
    #[inline]
    fn is_as_it_is(&self, of: VariableId, value: Plain<'a>) -> bool {
        if self.host.tells_changes() {
            return false;
        }
        let (VariableId::REQ_URL | VariableId::BEREQ_URL, Plain::Text(Some(value))) = (of, value) else { return false };
        self.host.variable(of).text().is_some_and(|text| std::ptr::eq(text, value))
    }

    fn branches(&self, branches: &'a Branches) -> Result<Flow, Fault> {
        let mut asked = None;
        for branch in &branches.branches {
            self.spend()?;
            let holds = self.next_cond(&branch.condition, &mut asked)?;
            self.host.condition(branch.at, holds);
            if holds {
                return self.block(&branch.steps);
            }
        }
        if branches.otherwise.is_empty() { Ok(Flow::Through) } else { self.block(&branches.otherwise) }
    }

    fn ending(&self, ending: &'a Ending) -> Result<verdicts::Ending<'a>, Fault> {
        Ok(match ending {
            Ending::Plain(action) => verdicts::Ending::Plain(*action),
            Ending::Status { action, status, reason } => {
                let status = lawful_status(action.name(), self.int(status)?)?;
                let reason = reason.as_ref().map_or(Ok(None), |reason| self.text(reason))?;
                if let Some(reason) = reason {
                    lawful_line(b"reason", reason)?;
                }
                verdicts::Ending::Status(*action, Status { status, reason })
            }
            Ending::PassFor(duration) => verdicts::Ending::PassFor(self.real(duration)?),
            Ending::Vcl(label) => verdicts::Ending::Vcl(&self.compiled.labels[*label]),
            Ending::Fail(why) => {
                let why = why.as_ref().map_or(Ok(None), |why| self.text(why))?;
                let why = why.map_or("the program says so".into(), String::from_utf8_lossy);
                verdicts::Ending::Fail(Fault::new(why.into_owned()))
            }
        })
    }

    /// A ban that cannot be is no failure of the transaction, but it is said.
    fn ban(&self, text: &'a Text) -> Result<(), Fault> {
        let expression = self.text(text)?;
        let result = match expression {
            Some(expression) => self.host.ban(expression),
            None => Err(NO_BAN.to_owned()),
        };
        if let Err(why) = result {
            self.host.log(LogKind::Error, ban_failed(expression, &why).as_bytes());
        }
        Ok(())
    }

    fn make(&self, object: crate::typed_program::ObjectId, call: &'a Call) -> Result<(), Fault> {
        let arguments = self.arguments(call)?;
        self.loaded.objects().put(object, crate::vmods::make(call.function, &Arguments(&arguments))?)
    }

    /// A function of a module.
    #[inline(never)]
    pub fn call(&self, call: &'a Call) -> Result<Plain<'a>, Fault> {
        self.spend()?;
        let with = |given: &[Argument<'a>]| crate::vmods::call(self, call.function, call.object, &Arguments(given));
        let given = match &*call.arguments {
            [] => with(&[])?,
            [Some(only)] => with(&[self.argument(only)?])?,
            _ => with(&self.arguments(call)?)?,
        };
        debug_assert!(call.gives == Type::Void || given.is_of(call.gives), "{call:?} gave {given:?}");
        Ok(given)
    }

    fn arguments(&self, call: &'a Call) -> Result<SmallVec<[Argument<'a>; 4]>, Fault> {
        call.arguments
            .iter()
            .map(|argument| argument.as_ref().map_or(Ok(Argument::Absent), |any| self.argument(any)))
            .collect()
    }

    fn argument(&self, any: &'a Any) -> Result<Argument<'a>, Fault> {
        Ok(match any {
            Any::Header(HeaderOf::Fixed(of, name)) => Argument::Header(*of, HeaderArgument::Fixed(name)),
            Any::Header(HeaderOf::Called(of, name)) => {
                let name = self.text(name)?.unwrap_or_default();
                Argument::Header(*of, HeaderArgument::called(name)?)
            }
            Any::Http(of) => Argument::Http(*of),
            Any::Word(word) => Argument::Word(word),
            Any::Pattern(id) => Argument::Pattern(&self.compiled.patterns[id.index()]),
            Any::Subroutine(id) => Argument::Subroutine(*id),
            Any::Acl(id) => Argument::Acl(*id),
            Any::Probe(id) => Argument::Probe(*id),
            Any::Object(_) => Argument::Other,
            Any::Text(Text::Join(parts)) => {
                let text = self.join(parts)?;
                let first = match parts.first() {
                    Some(Text::Constant(first)) => first.len(),
                    _ => text.len(),
                };
                Argument::Joined(text, first)
            }
            other => Argument::Plain(self.plain(other)?),
        })
    }
}
