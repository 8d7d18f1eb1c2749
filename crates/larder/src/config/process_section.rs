//! `[process]`: whose rights larder has, and what it gives up of them.

use super::choices::SANDBOX;
use super::section::{Section, choice, parsed, path};
use crate::plan::Plan;
use crate::process_user::{USER_FORM, UserWord};

pub fn read(mut section: Section<'_>, plan: &mut Plan) {
    let user = section.read("user", |node| parsed(node, "user", USER_FORM, |written| UserWord::parse(written).ok()));
    plan.process_user = user;
    let sandbox = &mut plan.sandbox;
    if let Some(is_on) = section.read("sandbox", |node| choice(node, &SANDBOX)) {
        sandbox.is_on = is_on;
    }
    for (key, places) in [("sandbox_reads", &mut sandbox.reads), ("sandbox_writes", &mut sandbox.writes)] {
        if let Some(named) = section.read_list(key, |node| parsed(node, "file or folder", "a path", path)) {
            *places = named;
        }
    }
    section.end();
}
