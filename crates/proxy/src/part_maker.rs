//! Who makes the requests for the parts of a page: the built-in policy, or a program. What both do is in `page_parts.rs`.

use std::rc::Rc;
use std::sync::Arc;

use message::{Authority, Field, FieldName, FieldsView, RequestHead};
use wire::HopByHop;

use crate::core::Core;
use crate::policy::Policy;
use crate::records::task_records::TaskRecords;
use crate::route_rules::RouteRules;
use crate::settings::EsiSettings;
use crate::site::Site;
use crate::subrequest_fields::is_of_content;
use crate::transaction::Transaction;
use crate::vcl_story::including::ProgramParts;

/// By whose word.
pub(crate) enum PartMaker {
    /// Of the page's own host, or of another that `[esi]` names; without what says who the client is, unless that says otherwise.
    Builtin,
    /// Of any host: the program sees each request, and says who answers it.
    Program(Box<ProgramParts>),
}

impl PartMaker {
    /// That of the page, and the request for it as its client sent it: what the words of its route cut, they cut for this page alone.
    pub(crate) fn of(tx: &Transaction) -> (PartMaker, Rc<RequestHead>) {
        let original = Rc::clone(tx.asked_head());
        match &tx.policy {
            Policy::Builtin => (PartMaker::Builtin, tx.came.clone().unwrap_or(original)),
            Policy::Program(state) => (PartMaker::Program(Box::new(ProgramParts::of(tx, state))), original),
        }
    }

    /// May a part be asked of another host?
    pub(crate) fn allows(&self, settings: &EsiSettings, host: Option<&Authority<'_>>) -> bool {
        match self {
            PartMaker::Builtin => host.is_some_and(|host| settings.allows(host)),
            PartMaker::Program(_) => true,
        }
    }

    /// Does the request for a part have this field of the request for its page? `behind`: the words of that one's route.
    pub(crate) fn hands_on(
        &self,
        settings: &EsiSettings,
        asked: FieldsView<'_>,
        field: &Field<'_>,
        (is_own, behind): (bool, Option<&RouteRules>),
    ) -> bool {
        match self {
            // It was told to the page's origin, and to nobody else.
            PartMaker::Program(_) => behind.is_none_or(|rules| !rules.says_of_clients(field)),
            PartMaker::Builtin => match field.name {
                FieldName::Cookie => is_own && settings.passes_cookies,
                // What has opened the page's door is for nobody behind it.
                FieldName::Authorization => {
                    is_own && settings.passes_authorization && behind.is_none_or(|rules| rules.access.login.is_none())
                }
                FieldName::ProxyAuthorization => false,
                _ if behind.is_some_and(|rules| rules.access.says(field.name_text)) => false,
                _ => !is_of_content(field) && !HopByHop::of(asked).drops(field),
            },
        }
    }

    /// Is only that included which succeeded? Otherwise whatever is answered.
    pub(crate) fn judges(&self, site: &Site) -> bool {
        match self {
            PartMaker::Builtin => true,
            PartMaker::Program(_) => site.settings.vcl.esi.heeds_onerror,
        }
    }

    /// Who decides about the request for a part.
    pub(crate) fn policy(&self, (core, site): (&Rc<Core>, &Arc<Site>), head: &RequestHead, level: u32) -> Policy {
        match self {
            PartMaker::Builtin => Policy::Builtin,
            PartMaker::Program(parts) => Policy::Program(Box::new(parts.state((core, site), head, level))),
        }
    }

    /// Who wants to hear of what is left out.
    pub(crate) fn records(&self) -> Option<&TaskRecords> {
        match self {
            PartMaker::Builtin => None,
            PartMaker::Program(parts) => parts.records(),
        }
    }
}
