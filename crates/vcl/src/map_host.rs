//! A host of plain lists: what tests, fuzzing and explaining need, where no cache and no socket is behind a program.
//!
//! What a program does to it can be read afterwards. It refuses nothing that the language allows.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};

use crate::evaluation::lawful_values::header_value;
use crate::header_names::{HeaderName, KeptName};
use crate::host::{Health, Host, LogKind, Message, ProxyField, Purge, Purged, UnixPeer};
use crate::plain_values::{Fault, Plain};
use crate::scope_arena::Arena;
use crate::source_files::Span;
use crate::task_state::Task;
use crate::typed_program::BackendId;
use crate::variables::VariableId;
use crate::world::World;

/// A line of a message.
type Line<'a> = (Message, &'a [u8], &'a [u8]);

/// The host.
pub struct MapHost<'a> {
    arena: &'a Arena,
    world: &'a dyn World,
    task: Task,
    lines: RefCell<Vec<Line<'a>>>,
    at_first: RefCell<Vec<Line<'a>>>,
    variables: RefCell<HashMap<VariableId, Plain<'a>>>,
    chance: Cell<u64>,
    /// What stands for the request's body, if it was read.
    pub body: Cell<Option<&'a [u8]>>,
    pub sick: RefCell<HashSet<BackendId>>,
    pub peer: Cell<Option<UnixPeer>>,
    /// What was hashed; absent parts are `None`.
    pub hashed: RefCell<Vec<Option<Vec<u8>>>>,
    /// How many parts there were at the end of each statement.
    pub hashed_ends: RefCell<Vec<usize>>,
    pub synthetic: RefCell<Vec<u8>>,
    pub bans: RefCell<Vec<String>>,
    pub purges: RefCell<Vec<String>>,
    pub logged: RefCell<Vec<(LogKind, String)>>,
    /// The statements that ran.
    pub statements: RefCell<Vec<Span>>,
}

impl<'a> MapHost<'a> {
    pub fn new(arena: &'a Arena, world: &'a dyn World) -> MapHost<'a> {
        MapHost {
            arena,
            world,
            task: Task::default(),
            lines: RefCell::default(),
            at_first: RefCell::default(),
            variables: RefCell::default(),
            chance: Cell::new(0),
            body: Cell::new(None),
            sick: RefCell::default(),
            peer: Cell::new(None),
            hashed: RefCell::default(),
            hashed_ends: RefCell::default(),
            synthetic: RefCell::default(),
            bans: RefCell::default(),
            purges: RefCell::default(),
            logged: RefCell::default(),
            statements: RefCell::default(),
        }
    }

    /// A line that was there before the program: `rollback` comes back to it.
    pub fn with_header(self, of: Message, name: &'a str, value: &'a str) -> MapHost<'a> {
        for lines in [&self.lines, &self.at_first] {
            lines.borrow_mut().push((of, name.as_bytes(), value.as_bytes()));
        }
        self
    }

    pub fn with_variable(self, of: VariableId, value: Plain<'a>) -> MapHost<'a> {
        self.variables.borrow_mut().insert(of, value);
        self
    }

    /// Goes on with what an earlier scope of the transaction left.
    pub fn with_task(self, task: Task) -> MapHost<'a> {
        MapHost { task, ..self }
    }

    pub fn into_task(self) -> Task {
        self.task
    }

    /// All lines, as `name: value`.
    pub fn lines(&self, of: Message) -> Vec<String> {
        let show = |(_, name, value): &Line<'a>| {
            format!("{}: {}", String::from_utf8_lossy(name), String::from_utf8_lossy(value))
        };
        self.lines.borrow().iter().filter(|line| line.0 == of).map(show).collect()
    }

    /// What was logged of this kind.
    pub fn logged(&self, kind: LogKind) -> Vec<String> {
        self.logged.borrow().iter().filter(|line| line.0 == kind).map(|line| line.1.clone()).collect()
    }

    fn is(of: Message, name: &HeaderName) -> impl Fn(&Line<'a>) -> bool {
        move |line| line.0 == of && name.is(line.1)
    }
}

impl<'a> Host<'a> for MapHost<'a> {
    fn arena(&self) -> &'a Arena {
        self.arena
    }

    fn task(&self) -> &Task {
        &self.task
    }

    fn world(&self) -> &dyn World {
        self.world
    }

    fn may_wait(&self) -> bool {
        true
    }

    fn header(&self, of: Message, name: &HeaderName) -> Option<&'a [u8]> {
        self.lines.borrow().iter().find(|line| Self::is(of, name)(line)).map(|line| line.2)
    }

    fn header_lines(&self, of: Message, name: &HeaderName, each: &mut dyn FnMut(&'a [u8])) {
        self.lines.borrow().iter().filter(|line| Self::is(of, name)(line)).for_each(|line| each(line.2));
    }

    fn all_headers(&self, of: Message, each: &mut dyn FnMut(&'a [u8], &'a [u8])) {
        self.lines.borrow().iter().filter(|line| line.0 == of).for_each(|line| each(line.1, line.2));
    }

    fn set_header(&self, of: Message, name: KeptName<'a>, value: &'a [u8]) -> Result<(), Fault> {
        self.unset_header(of, name);
        self.add_header(of, name, value)
    }

    fn add_header(&self, of: Message, name: KeptName<'a>, value: &'a [u8]) -> Result<(), Fault> {
        self.lines.borrow_mut().push((of, name.written(), header_value(value)));
        Ok(())
    }

    fn unset_header(&self, of: Message, name: KeptName<'a>) {
        self.lines.borrow_mut().retain(|line| line.0 != of || !name.is(line.1));
    }

    fn rollback(&self, of: Message) -> Result<(), Fault> {
        let at_first = self.at_first.borrow();
        let mut lines = self.lines.borrow_mut();
        lines.retain(|line| line.0 != of);
        lines.extend(at_first.iter().filter(|line| line.0 == of));
        Ok(())
    }

    fn variable(&self, of: VariableId) -> Plain<'a> {
        self.variables.borrow().get(&of).copied().unwrap_or_else(|| of.nothing())
    }

    fn set_variable(&self, of: VariableId, to: Plain<'a>) -> Result<(), Fault> {
        self.variables.borrow_mut().insert(of, to);
        Ok(())
    }

    fn unset_variable(&self, of: VariableId) -> Result<(), Fault> {
        self.variables.borrow_mut().remove(&of);
        Ok(())
    }

    fn hash_data(&self, part: Option<&[u8]>) {
        self.hashed.borrow_mut().push(part.map(<[u8]>::to_vec));
    }

    fn hash_data_ends(&self) {
        self.hashed_ends.borrow_mut().push(self.hashed.borrow().len());
    }

    fn synthetic(&self, part: &'a [u8]) -> Result<(), Fault> {
        self.synthetic.borrow_mut().extend_from_slice(part);
        Ok(())
    }

    fn clear_synthetic(&self) {
        self.synthetic.borrow_mut().clear();
    }

    fn ban(&self, expression: &[u8]) -> Result<(), String> {
        if expression.split(|byte| *byte == b' ').count() < 3 {
            return Err("a ban is a field, an operator and a value".to_owned());
        }
        self.bans.borrow_mut().push(String::from_utf8_lossy(expression).into_owned());
        Ok(())
    }

    fn purge(&self, what: Purged<'_>, how: Purge) -> Result<u64, Fault> {
        let what = match what {
            Purged::This => "this".to_owned(),
            Purged::Tag(tag) => String::from_utf8_lossy(tag).into_owned(),
        };
        self.purges.borrow_mut().push(format!("{what} {how:?}"));
        Ok(1)
    }

    fn log(&self, kind: LogKind, text: &[u8]) {
        self.logged.borrow_mut().push((kind, String::from_utf8_lossy(text).into_owned()));
    }

    fn backend_health(&self, of: BackendId) -> Health {
        Health { healthy: !self.sick.borrow().contains(&of), changed_s: 0.0 }
    }

    fn request_body(&self) -> Option<&'a [u8]> {
        self.body.get()
    }

    fn unix_peer(&self) -> Option<UnixPeer> {
        self.peer.get()
    }

    fn proxy_field(&self, _: ProxyField) -> Plain<'a> {
        Plain::Text(None)
    }

    /// The same numbers in every run, spread over all.
    fn random(&self) -> u64 {
        self.chance.set(self.chance.get().wrapping_add(0x9e37_79b9_7f4a_7c15));
        self.chance.get()
    }

    fn statement(&self, at: Span) {
        self.statements.borrow_mut().push(at);
    }
}
