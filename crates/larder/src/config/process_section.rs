//! `[process]`: whose rights larder has.

use super::section::{Section, parsed};
use crate::process_user::{USER_FORM, UserWord};

pub fn read(mut section: Section<'_>) -> Option<UserWord> {
    let user = section.read("user", |node| parsed(node, "user", USER_FORM, |written| UserWord::parse(written).ok()));
    section.end();
    user
}
