//! What a page under a program includes: a request of its own for each, made of the client's, which goes through the whole story and
//! gives its answer to the page.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use esi::Target;
use message::{FieldName, Fields, Method, RequestHead, Version};

use crate::assembly::Includer;
use crate::client_identity::ClientIdentity;
use crate::connection_addresses::ConnectionAddresses;
use crate::core::Core;
use crate::included::{self, Fragment};
use crate::limits::ESI_REQUESTS_MAX;
use crate::policy::Policy;
use crate::records::task_records::TaskRecords;
use crate::records::{RecordKind, request_records};
use crate::site::Site;
use crate::transaction::{BeginIncluded, Step, Transaction};
use crate::vcl_site::VclSite;
use crate::vcl_story::client_state::{ClientState, TopRequest};
use crate::vcl_story::listener_name::listener_name;
use crate::vcl_story::xids;

/// What the requests for a page's includes are made of.
pub(crate) struct PageIncluder {
    core: Rc<Core>,
    site: Arc<Site>,
    vcl_site: Arc<VclSite>,
    client: ClientIdentity,
    addresses: Rc<ConnectionAddresses>,
    /// As the client sent it.
    original: Rc<RequestHead>,
    /// Where the page is, for addresses that begin there.
    base: Vec<u8>,
    top: Rc<TopRequest>,
    level: u32,
    records: Option<Rc<TaskRecords>>,
    xid: u64,
    begin: BeginIncluded,
}

impl PageIncluder {
    /// `None` where no program decides.
    pub(crate) fn of(tx: &Transaction, begin: BeginIncluded) -> Option<PageIncluder> {
        let state = tx.policy.program()?;
        let top = state.top.clone().unwrap_or_else(|| {
            let (head, came_to) = (Rc::clone(&tx.head), Arc::clone(&state.came_to));
            Rc::new(TopRequest { head, started_s: state.started_s, came_to, includes_count: Cell::new(0) })
        });
        Some(PageIncluder {
            core: Rc::clone(&tx.core),
            site: Arc::clone(&tx.site),
            vcl_site: Arc::clone(&top.came_to),
            client: tx.client,
            addresses: Rc::clone(&state.addresses),
            original: Rc::clone(state.original.as_ref()?),
            base: tx.head.request().path.to_vec(),
            top,
            level: state.esi_level,
            records: state.records.clone(),
            xid: state.xid.get(),
            begin,
        })
    }

    fn complain(&self, why: std::fmt::Arguments<'_>) {
        if let Some(records) = &self.records {
            records.write(RecordKind::VclError, why);
        }
    }

    /// The request as its program first sees it.
    fn request(&self, target: &Target) -> RequestHead {
        let original = self.original.request();
        let mut fields = Fields::default();
        for field in original.fields.iter().filter(|field| !is_of_the_page(field.name)) {
            if target.host.is_none() || field.name != FieldName::Host {
                fields.push_named(field.name_text, field.value);
            }
        }
        if let Some(host) = &target.host {
            fields.push(FieldName::Host, host);
        }
        let (path, query) = match target.path.iter().position(|byte| *byte == b'?') {
            Some(at) => (&target.path[..at], Some(&target.path[at + 1..])),
            None => (&target.path[..], None),
        };
        let (method, method_text, version) = (Method::Get, &b"GET"[..], Version::Http11);
        message::Request { method, method_text, version, path, query, fields: fields.view(), ..original }.to_head()
    }
}

/// What was said of the page, and not of what it includes.
fn is_of_the_page(name: FieldName) -> bool {
    rules::conditions::is_condition(name)
        || matches!(
            name,
            FieldName::Range
                | FieldName::IfRange
                | FieldName::AcceptEncoding
                | FieldName::ContentLength
                | FieldName::TransferEncoding
                | FieldName::Expect
        )
}

impl Includer for PageIncluder {
    fn begin(&self, src: &[u8]) -> Option<Fragment> {
        let vcl = &self.site.settings.vcl;
        if self.level >= vcl.max_esi_depth {
            self.complain(format_args!("ESI depth limit reach (param max_esi_depth = {})", vcl.max_esi_depth));
            return None;
        }
        let includes_count = self.top.includes_count.get() + 1;
        if includes_count > ESI_REQUESTS_MAX {
            self.complain(format_args!("ESI: a page includes no more than {ESI_REQUESTS_MAX} others"));
            return None;
        }
        self.top.includes_count.set(includes_count);
        let target = match Target::of(src, &self.base) {
            Ok(target) => target,
            Err(_) => {
                self.complain(format_args!("ESI 1.0 <esi:include> invalid src= URL"));
                return None;
            }
        };
        let (xid, now) = (xids::next(&self.core.xids), self.core.now());
        let started_s = now.wall_ms as f64 / 1_000.0;
        let mut state = ClientState::new(Arc::clone(&self.vcl_site), Rc::clone(&self.addresses), xid, started_s);
        let head = self.request(&target);
        state.original = Some(Rc::new(head.request().to_head()));
        state.esi_level = self.level + 1;
        state.top = Some(Rc::clone(&self.top));
        if let Some(parent) = &self.records {
            let settings = &self.site.settings;
            let unix_path = self.addresses.unix_path.as_deref();
            let listener = listener_name(&settings.listeners, self.addresses.local, unix_path);
            let (asked, client) = (head.request(), self.addresses.client);
            let names = (&*listener, &*self.vcl_site.name);
            let ids = (xid, state.esi_level);
            state.records = request_records::begin_included(&self.core, (parent, self.xid), ids, names, client, &asked);
        }
        self.core.counters.esi_requests.add(1);
        let (client, fragment) = included::pair();
        let policy = Policy::Program(Box::new(state));
        let tx = Transaction::included((&self.core, &self.site), policy, head, self.client);
        (self.begin)(tx, client, Step::Receive);
        Some(fragment)
    }

    fn ahead_max(&self) -> usize {
        self.site.settings.limits.esi_ahead_max
    }

    fn judges(&self) -> bool {
        self.site.settings.vcl.esi.heeds_onerror
    }
}
