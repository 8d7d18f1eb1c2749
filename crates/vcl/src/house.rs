//! The host of vcl_init and vcl_fini: no request, no message, no cache; the machine is there.

use crate::header_names::{HeaderName, KeptName};
use crate::host::{Health, Host, LogKind, Message, Purge, Purged};
use crate::plain_values::{Fault, Plain};
use crate::scope_arena::Arena;
use crate::task_state::Task;
use crate::typed_program::{BackendId, Program};
use crate::variables::VariableId;
use crate::world::World;

/// The host of a program while it is loaded or discarded.
pub struct House<'a> {
    arena: &'a Arena,
    world: &'a dyn World,
    program: &'a Program,
    task: Task,
}

impl<'a> House<'a> {
    pub fn new(arena: &'a Arena, world: &'a dyn World, program: &'a Program) -> House<'a> {
        House { arena, world, program, task: Task::default() }
    }
}

#[cold]
fn not_here(what: &str) -> Fault {
    Fault::new(format!("{what} in vcl_init or vcl_fini, where there is no request"))
}

impl<'a> Host<'a> for House<'a> {
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

    fn header(&self, _: Message, _: &HeaderName) -> Option<&'a [u8]> {
        None
    }

    fn header_lines(&self, _: Message, _: &HeaderName, _: &mut dyn FnMut(&'a [u8])) {}

    fn all_headers(&self, _: Message, _: &mut dyn FnMut(&'a [u8], &'a [u8])) {}

    fn set_header(&self, _: Message, _: KeptName<'a>, _: &'a [u8]) -> Result<(), Fault> {
        Err(not_here("a header is set"))
    }

    fn add_header(&self, _: Message, _: KeptName<'a>, _: &'a [u8]) -> Result<(), Fault> {
        Err(not_here("a header is added"))
    }

    fn unset_header(&self, _: Message, _: KeptName<'a>) {}

    fn rollback(&self, _: Message) -> Result<(), Fault> {
        Err(not_here("a message is rolled back"))
    }

    fn variable(&self, of: VariableId) -> Plain<'a> {
        match of {
            VariableId::NOW => Plain::Time(self.world.now_s()),
            other => self.world.parameter(other),
        }
    }

    fn set_variable(&self, of: VariableId, _: Plain<'a>) -> Result<(), Fault> {
        Err(not_here(of.get().name))
    }

    fn unset_variable(&self, of: VariableId) -> Result<(), Fault> {
        Err(not_here(of.get().name))
    }

    fn hash_data(&self, _: Option<&[u8]>) {}

    fn hash_data_ends(&self) {}

    fn synthetic(&self, _: &'a [u8]) -> Result<(), Fault> {
        Err(not_here("a body is made"))
    }

    fn clear_synthetic(&self) {}

    fn ban(&self, _: &[u8]) -> Result<(), String> {
        Err("there are no bans in vcl_init and vcl_fini".to_owned())
    }

    fn purge(&self, _: Purged<'_>, _: Purge) -> Result<u64, Fault> {
        Err(not_here("something is purged"))
    }

    fn log(&self, kind: LogKind, text: &[u8]) {
        self.world.log(kind, text);
    }

    /// Nobody has asked them yet: a probe says what is to be believed until then.
    fn backend_health(&self, of: BackendId) -> Health {
        let endpoint = self.program.backends.get(of.index()).and_then(|backend| backend.endpoint.as_ref());
        let probe = endpoint.and_then(|endpoint| self.program.probes.get(endpoint.probe?.index()));
        let healthy = probe.is_none_or(|probe| probe.initial >= probe.threshold);
        Health { healthy, changed_s: self.world.now_s() }
    }
}
