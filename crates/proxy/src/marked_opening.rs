//! The first half of an exchange whose request may bear a field that is meant for larder itself: the one by which an operator asks why it is
//! answered as it is (`explained_opening.rs`), or that of another node of the fleet (`fleet/node_opening.rs`).
//!
//! Such a field is taken out here, before anybody looks at the request: no key, program, log or origin sees it.

use std::rc::Rc;
use std::sync::Arc;

use wire::ReceivedRequest;

use crate::asker::Asker;
use crate::client_identity::ClientIdentity;
use crate::clock::Moment;
use crate::connection_addresses::ConnectionAddresses;
use crate::core::Core;
use crate::explain_field::ExplainField;
use crate::fleet::node_proof::NODE_FIELD;
use crate::fleet::{Fleet, node_opening};
use crate::records::session_records::SessionRecords;
use crate::request_source::{Opened, RequestSource};
use crate::site::Site;
use crate::{exchange_opening, explained_opening};

/// Whose fields are meant for larder itself.
#[derive(Clone)]
pub(crate) struct FieldsForUs {
    pub(crate) explain: Option<Arc<ExplainField>>,
    pub(crate) fleet: Option<Arc<Fleet>>,
}

impl FieldsForUs {
    /// `None` where nobody's are.
    pub(crate) fn of(explain: Option<&Arc<ExplainField>>, fleet: Option<&Arc<Fleet>>) -> Option<Arc<FieldsForUs>> {
        let fields = FieldsForUs { explain: explain.cloned(), fleet: fleet.cloned() };
        (fields.explain.is_some() || fields.fleet.is_some()).then(|| Arc::new(fields))
    }
}

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

/// A client that is not answered at once.
pub(crate) struct Unhurried<'s, S>(pub(crate) &'s mut S);

impl<S: RequestSource> RequestSource for Unhurried<'_, S> {
    type Client = S::Client;

    fn asker(&self) -> Asker<'_> {
        self.0.asker()
    }

    fn session(&self) -> Option<&SessionRecords> {
        self.0.session()
    }

    fn begins_exchange(&mut self, core: &Core, site: &Site, received: &ReceivedRequest<'_>) -> bool {
        self.0.begins_exchange(core, site, received)
    }

    fn at_once(&mut self) -> Option<&mut S::Client> {
        None
    }

    fn addresses(&mut self, client: &ClientIdentity) -> Rc<ConnectionAddresses> {
        self.0.addresses(client)
    }
}
