//! Answers that are the same each time, made once: a thread keeps those that it gave before.
//!
//! Bounded in bytes and in number; when it is full it is emptied, since what is hot is soon there again. What is
//! too long to be kept is made anew by the block.

use std::collections::HashMap;
use std::rc::Rc;

use crate::constructed_body::{BodyRule, append_constructed};
use crate::fake_origin::origin_plan::{Plan, Size};
use crate::fake_origin::origin_reply::{Asked, Drawn, Reply};
use crate::limits::{PREPARED_BODY_BYTES_MAX, PREPARED_BYTES_MAX, PREPARED_COUNT_MAX};

/// A target that somebody has asked for, read.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) plan: Plan,
    /// What a plain GET over HTTP/1.1 gets, where that is always the same and not too long.
    pub(crate) plain: Option<Plain>,
}

#[derive(Debug)]
pub(crate) struct Plain {
    pub(crate) status: u16,
    /// All but the date and the empty line.
    pub(crate) head: Vec<u8>,
    pub(crate) body: Rc<[u8]>,
}

#[derive(Debug, Default)]
pub(crate) struct PreparedAnswers {
    by_target: HashMap<Box<[u8]>, Rc<Prepared>>,
    /// Bodies that several targets have, and which of their bytes.
    bodies: HashMap<(BodyRule, u64, u64), Rc<[u8]>>,
    bytes: usize,
}

impl PreparedAnswers {
    #[inline]
    pub(crate) fn get(&self, target: &[u8]) -> Option<Rc<Prepared>> {
        self.by_target.get(target).cloned()
    }

    pub(crate) fn add(&mut self, target: &[u8], plan: Plan, plain_get: &Asked) -> Rc<Prepared> {
        let reply = Plain::reply(&plan, plain_get);
        let body_bytes = reply.as_ref().map_or(0, |reply| (reply.to - reply.from) as usize);
        let bytes = target.len() + reply.as_ref().map_or(0, |reply| reply.head.len());
        if self.by_target.len() >= PREPARED_COUNT_MAX || self.bytes + bytes + body_bytes > PREPARED_BYTES_MAX {
            *self = PreparedAnswers::default();
        }
        self.bytes += bytes;
        let plain = reply.map(|reply| Plain { status: reply.status, body: self.body(&reply), head: reply.head });
        let prepared = Rc::new(Prepared { plan, plain });
        self.by_target.insert(target.into(), Rc::clone(&prepared));
        prepared
    }

    fn body(&mut self, reply: &Reply) -> Rc<[u8]> {
        let key = (reply.rule, reply.from, reply.to);
        if let Some(known) = self.bodies.get(&key) {
            return Rc::clone(known);
        }
        let mut body = Vec::with_capacity((reply.to - reply.from) as usize);
        append_constructed(&mut body, reply.rule, reply.from, reply.to);
        self.bytes += body.len();
        let body: Rc<[u8]> = body.into();
        self.bodies.insert(key, Rc::clone(&body));
        body
    }
}

impl Plain {
    fn reply(plan: &Plan, plain_get: &Asked) -> Option<Reply> {
        let Size::Fixed(size) = plan.size else { return None };
        if !plan.is_steady() || size > PREPARED_BODY_BYTES_MAX {
            return None;
        }
        let drawn = Drawn { size, rule: plan.rule, error: None, faults: plan.faults };
        Some(Reply::new(plan, plain_get, &drawn))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use message::{Method, Version};

    #[test]
    fn it_never_holds_more_than_it_may() {
        let get = Asked { method: Method::Get, version: Version::Http11, persistent: true, conditions: None };
        let mut answers = PreparedAnswers::default();
        for number in 0..400 {
            let path = format!("/{number}");
            let plan = Plan::read(&path, "s=1m", 0).unwrap();
            let prepared = answers.add(path.as_bytes(), plan, &get);
            assert_eq!(prepared.plain.as_ref().unwrap().body.len(), 1 << 20);
            assert!(answers.bytes <= PREPARED_BYTES_MAX && answers.get(path.as_bytes()).is_some());
        }
        let held = answers.bytes;
        let again = answers.add(b"/399?x=1", Plan::read("/399", "s=1m", 0).unwrap(), &get);
        assert!(answers.bytes - held < 1_000, "its body is the one of another target");
        assert_eq!(again.plain.as_ref().unwrap().body.len(), 1 << 20);
        let long = answers.add(b"/long", Plan::read("/long", "s=1g", 0).unwrap(), &get);
        assert!(long.plain.is_none());
    }
}
