//! The first half of an exchange whose request may bear a field that is meant for larder itself: the one by which an operator asks why it is
//! answered as it is (`explained_opening.rs`), or that of another node of the fleet (`fleet/node_opening.rs`).
//!
//! Such a field is taken out here, before anybody looks at the request: no key, program, log or origin sees it.

use std::rc::Rc;
use std::sync::Arc;

use wire::ReceivedRequest;

use crate::clock::Moment;
use crate::core::Core;
use crate::fields_for_us::FieldsForUs;
use crate::fleet::node_opening;
use crate::fleet::node_proof::NODE_FIELD;
use crate::request_source::{Opened, RequestSource};
use crate::{exchange_opening, explained_opening};

/// Answers the request, or says how it goes on.
#[inline]
pub(crate) fn open<S: RequestSource>(
    core: &Rc<Core>,
    source: &mut S,
    received: ReceivedRequest<'_>,
    moment: Moment,
) -> Opened {
    let fields = core.site_ref().fields_for_us.clone();
    match fields {
        None => exchange_opening::open(core, source, received, moment),
        Some(fields) => open_marked(core, source, received, (&fields, moment)),
    }
}

fn open_marked<S: RequestSource>(
    core: &Rc<Core>,
    source: &mut S,
    received: ReceivedRequest<'_>,
    (fields, moment): (&FieldsForUs, Moment),
) -> Opened {
    if let Some(fleet) = &fields.fleet
        && received.request.fields.get_all_named(NODE_FIELD.as_bytes()).next().is_some()
        && !source.asker().asks_proxy()
    {
        return node_opening::open(core, source, received, (Arc::clone(fleet), moment));
    }
    match fields.explain.as_ref().and_then(|field| field.asked(received.request.fields)) {
        None => exchange_opening::open(core, source, received, moment),
        Some(asked) => explained_opening::open(core, source, received, (asked, moment)),
    }
}
