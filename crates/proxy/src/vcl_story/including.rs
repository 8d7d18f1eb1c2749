//! What the requests for the parts of a page have of the program that decides about the page.

use std::rc::Rc;
use std::sync::Arc;

use message::RequestHead;

use crate::connection_addresses::ConnectionAddresses;
use crate::core::Core;
use crate::records::request_records;
use crate::records::task_records::TaskRecords;
use crate::site::Site;
use crate::transaction::Transaction;
use crate::vcl_site::VclSite;
use crate::vcl_story::client_state::{ClientState, TopRequest};
use crate::vcl_story::listener_name::listener_name;
use crate::vcl_story::xids;

/// The program that a page came to, and what it shows of the page to each part.
pub(crate) struct ProgramParts {
    vcl_site: Arc<VclSite>,
    addresses: Rc<ConnectionAddresses>,
    top: Rc<TopRequest>,
    records: Option<Rc<TaskRecords>>,
    xid: u64,
}

impl ProgramParts {
    pub(crate) fn of(tx: &Transaction, state: &ClientState) -> ProgramParts {
        let top = state.top.clone().unwrap_or_else(|| {
            let (head, came_to) = (Rc::clone(&tx.head), Arc::clone(&state.came_to));
            Rc::new(TopRequest { head, started_s: state.started_s, came_to })
        });
        ProgramParts {
            vcl_site: Arc::clone(&top.came_to),
            addresses: Rc::clone(&state.addresses),
            top,
            records: state.records.clone(),
            xid: state.xid.get(),
        }
    }

    pub(crate) fn records(&self) -> Option<&TaskRecords> {
        self.records.as_deref()
    }

    /// The state of a request for a part, before its program has seen it.
    pub(crate) fn state(&self, (core, site): (&Core, &Site), head: &RequestHead, level: u32) -> ClientState {
        let (xid, now) = (xids::next(&core.xids), core.now());
        let started_s = now.wall_ms as f64 / 1_000.0;
        let mut state = ClientState::new(Arc::clone(&self.vcl_site), Rc::clone(&self.addresses), xid, started_s);
        state.original = Some(Rc::new(head.clone()));
        state.esi_level = level;
        state.top = Some(Rc::clone(&self.top));
        if let Some(parent) = &self.records {
            let unix_path = self.addresses.unix_path.as_deref();
            let listener = listener_name(&site.settings.listeners, self.addresses.local, unix_path);
            let (asked, client) = (head.request(), self.addresses.client);
            let names = (&*listener, &*self.vcl_site.name);
            state.records =
                request_records::begin_included(core, (parent, self.xid), (xid, level), names, client, &asked);
        }
        state
    }
}
