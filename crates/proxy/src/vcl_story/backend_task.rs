//! The state of a fetch under a VCL program, which its subroutines read and set: from vcl_backend_fetch over every retry until
//! the response is stored or delivered.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use cache::Now;
use message::RequestHead;
use rules::Lifetimes;
use vcl::typed_program::BackendId;
use vcl::{BackendRef, Task};

use crate::connection_addresses::ConnectionAddresses;
use crate::fetch::timeouts::{Timeout, Timeouts};
use crate::limits::Limits;
use crate::origin::Origin;
use crate::records::task_records::TaskRecords;
use crate::settings::RouteTimeouts;
use crate::vcl_site::VclSite;
use crate::vcl_story::client_state::{ClientState, Remembered};
use crate::vcl_story::filter_names::BodyChanges;
use crate::vcl_story::log_notes::{LifeBy, LogNotes};

/// What a fetch knows of the request that it is made for. The fetches of a body's slices share it with the one that brought
/// the first of them.
pub(crate) struct MadeFor {
    pub(crate) site: Arc<VclSite>,
    pub(crate) addresses: Rc<ConnectionAddresses>,
    pub(crate) identity: Option<Box<[u8]>>,
    /// As the request had it; the program may choose another.
    backend_hint: BackendRef,
    pub(crate) remembered: Remembered,
    pub(crate) hash: Option<[u8; 32]>,
    /// larder asks itself, to have it fetched again: an error must not take the place of what is stored.
    pub(crate) is_refresh: bool,
}

impl MadeFor {
    pub(crate) fn of(client: &ClientState) -> Rc<MadeFor> {
        Rc::new(MadeFor {
            site: Arc::clone(&client.vcl_site),
            addresses: Rc::clone(&client.addresses),
            identity: client.identity.borrow().clone(),
            backend_hint: client.backend_hint.get(),
            remembered: client.remembered.get(),
            hash: client.hash.get(),
            is_refresh: client.is_refresh,
        })
    }
}

/// The state of one fetch under a program: what Varnish calls a backend task, with the `bereq` and `beresp` variables that are
/// not part of a head.
pub(crate) struct BackendTask {
    pub(crate) made_for: Rc<MadeFor>,
    pub(crate) xid: Cell<u64>,
    pub(crate) started_s: f64,
    pub(crate) retries: Cell<u32>,
    pub(crate) backend: Cell<BackendRef>,
    /// The one behind the director, once it was chosen.
    pub(crate) chosen: Cell<Option<BackendId>>,
    pub(crate) connect_timeout_s: Cell<Option<f64>>,
    pub(crate) first_byte_timeout_s: Cell<Option<f64>>,
    pub(crate) between_bytes_timeout_s: Cell<Option<f64>>,
    /// A pass, or an answer that may not be kept.
    pub(crate) uncacheable: Cell<bool>,
    pub(crate) is_pass: bool,
    pub(crate) is_background: bool,
    /// A word for the log: why the last attempt brought nothing.
    pub(crate) why_failed: Cell<&'static str>,
    pub(crate) without_body: Cell<bool>,
    pub(crate) was_304: Cell<bool>,
    pub(crate) do_stream: Cell<bool>,
    pub(crate) lifetimes: Cell<Lifetimes>,
    /// What decided about them.
    pub(crate) life_by: Cell<LifeBy>,
    /// Of the request that wants it; a refresh in the background has none.
    pub(crate) log_notes: Option<Rc<LogNotes>>,
    /// If anybody wants them.
    pub(crate) records: Option<Rc<TaskRecords>>,
    /// Somebody waits for the end of every fetch.
    pub(crate) watched: Option<Rc<()>>,
    pub(crate) responded_s: Cell<f64>,
    /// Of vmods.
    pub(crate) private: Task,
    /// `beresp.filters`, where the program set it.
    pub(crate) filters: RefCell<Option<Box<[u8]>>>,
    /// `beresp.do_gzip` and `beresp.do_gunzip`.
    pub(crate) changes: Cell<BodyChanges>,
    /// The head before the program saw it.
    pub(crate) original: Rc<RequestHead>,
}

impl BackendTask {
    /// How long the fetch waits: what the program set, else what its backend says, else everybody's limits.
    pub(crate) fn timeouts(&self, origin: &Origin, limits: &Limits) -> Timeouts {
        let pick = |set: Option<f64>, usual: Timeout| match set.map(Duration::try_from_secs_f64) {
            Some(Ok(after)) => Timeout { after, ..usual },
            Some(Err(_)) | None => usual,
        };
        let said = Timeouts::asked(&RouteTimeouts::default(), origin, limits);
        Timeouts {
            connect: pick(self.connect_timeout_s.get(), said.connect),
            first_byte: pick(self.first_byte_timeout_s.get(), said.first_byte),
            between_bytes: pick(self.between_bytes_timeout_s.get(), said.between_bytes),
        }
    }

    pub(crate) fn new(made_for: Rc<MadeFor>, original: Rc<RequestHead>, xid: u64, now: Now) -> BackendTask {
        let started_s = now.wall_ms as f64 / 1_000.0;
        BackendTask {
            backend: Cell::new(made_for.backend_hint),
            made_for,
            xid: Cell::new(xid),
            started_s,
            retries: Cell::new(0),
            chosen: Cell::new(None),
            connect_timeout_s: Cell::new(None),
            first_byte_timeout_s: Cell::new(None),
            between_bytes_timeout_s: Cell::new(None),
            uncacheable: Cell::new(false),
            is_pass: false,
            is_background: false,
            why_failed: Cell::new(""),
            without_body: Cell::new(false),
            was_304: Cell::new(false),
            do_stream: Cell::new(true),
            lifetimes: Cell::new(Lifetimes::default()),
            life_by: Cell::new(LifeBy::ERROR),
            log_notes: None,
            records: None,
            watched: None,
            responded_s: Cell::new(started_s),
            private: Task::default(),
            filters: RefCell::new(None),
            changes: Cell::default(),
            original,
        }
    }
}
