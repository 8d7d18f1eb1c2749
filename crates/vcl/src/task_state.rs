//! What modules remember for one transaction: the cookies that were parsed, the variables of vmod var.
//!
//! A client's request has one for all its scopes and restarts, a fetch has one of its own. Unused it is one empty cell
//! and allocates nothing.

use std::cell::RefCell;
use std::collections::HashMap;

use crate::test_waits::TestWait;
use crate::typed_program::ObjectId;
use crate::vmods::cookie_jar::CookieJar;
use crate::vmods::kept_values::TaskVariables;
use crate::vmods::shard_parameters::ShardArguments;

/// The memory of one transaction.
#[derive(Debug, Default)]
pub struct Task {
    memory: RefCell<Option<Box<Memory>>>,
}

#[derive(Debug, Default)]
struct Memory {
    ban_error: String,
    cookies: CookieJar,
    variables: TaskVariables,
    shard_arguments: HashMap<ObjectId, ShardArguments>,
    waits: Vec<TestWait>,
}

impl Task {
    fn with<T>(&self, act: impl FnOnce(&mut Memory) -> T) -> T {
        act(self.memory.borrow_mut().get_or_insert_default())
    }

    /// Of vmod cookie.
    pub(crate) fn with_cookies<T>(&self, act: impl FnOnce(&mut CookieJar) -> T) -> T {
        self.with(|memory| act(&mut memory.cookies))
    }

    /// Of vmod var.
    pub(crate) fn with_variables<T>(&self, act: impl FnOnce(&mut TaskVariables) -> T) -> T {
        self.with(|memory| act(&mut memory.variables))
    }

    /// Of the last `std.ban`.
    pub(crate) fn remember_ban_error(&self, why: Option<String>) {
        self.with(|memory| memory.ban_error = why.unwrap_or_default());
    }

    pub(crate) fn ban_error(&self) -> String {
        self.memory.borrow().as_ref().map(|memory| memory.ban_error.clone()).unwrap_or_default()
    }

    /// What was said for this transaction of a shard_param.
    pub(crate) fn shard_arguments(&self, of: ObjectId) -> ShardArguments {
        let memory = self.memory.borrow();
        memory.as_ref().and_then(|memory| memory.shard_arguments.get(&of).cloned()).unwrap_or_default()
    }

    pub(crate) fn set_shard_arguments(&self, of: ObjectId, said: ShardArguments) {
        self.with(|memory| memory.shard_arguments.insert(of, said));
    }

    /// Something is to be waited for when the subroutine has ended.
    pub(crate) fn wait_later(&self, wait: TestWait) {
        self.with(|memory| memory.waits.push(wait));
    }

    /// What is to be waited for now, in this order.
    pub fn take_waits(&self) -> Vec<TestWait> {
        self.memory.borrow_mut().as_mut().map(|memory| std::mem::take(&mut memory.waits)).unwrap_or_default()
    }
}
