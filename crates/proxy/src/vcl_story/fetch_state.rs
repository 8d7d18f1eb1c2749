//! What a fetch carries under a policy: from vcl_backend_fetch over every retry to the landing of its answer.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cache::Now;
use message::RequestHead;
use rules::Lifetimes;
use vcl::typed_program::BackendId;
use vcl::{BackendRef, Task};

use crate::fetch::Timeouts;
use crate::limits::Limits;
use crate::origin::Origin;
use crate::records::task_records::TaskRecords;
use crate::vcl_site::VclSite;
use crate::vcl_story::client_state::{ClientState, Ends, Remembered};
use crate::vcl_story::log_notes::{LifeBy, LogNotes};

/// What a fetch knows of the request that it is made for.
#[derive(Clone)]
pub(crate) struct MadeFor {
    pub(crate) site: Arc<VclSite>,
    pub(crate) ends: Rc<Ends>,
    pub(crate) identity: Option<Box<[u8]>>,
    pub(crate) backend_hint: BackendRef,
    pub(crate) remembered: Remembered,
    pub(crate) hash: Option<[u8; 32]>,
}

impl MadeFor {
    pub(crate) fn of(client: &ClientState) -> MadeFor {
        MadeFor {
            site: Arc::clone(&client.site),
            ends: Rc::clone(&client.ends),
            identity: client.identity.borrow().clone(),
            backend_hint: client.backend_hint.get(),
            remembered: client.remembered.get(),
            hash: client.hash.get(),
        }
    }
}

/// The state of one fetch under a policy.
pub(crate) struct FetchState {
    pub(crate) site: Arc<VclSite>,
    pub(crate) ends: Rc<Ends>,
    pub(crate) identity: Option<Box<[u8]>>,
    pub(crate) xid: Cell<u64>,
    pub(crate) started_s: f64,
    /// As the request had it; the program may choose another.
    backend_hint: BackendRef,
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
    pub(crate) remembered: Remembered,
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
    pub(crate) task: Task,
    pub(crate) filters: RefCell<Option<Box<[u8]>>>,
    /// The head before the program saw it.
    pub(crate) original: Rc<RequestHead>,
    /// The strong entity tag of the origin's answer, where the origin can be asked for parts of it.
    pub(crate) ranges_tag: RefCell<Option<Bytes>>,
    pub(crate) hash: Option<[u8; 32]>,
}

impl FetchState {
    /// How long the fetch waits: what the program set, else what its backend says, else everybody's limits.
    pub(crate) fn timeouts(&self, origin: &Origin, limits: &Limits) -> Timeouts {
        let pick = |set: Option<f64>, usual: Duration| {
            set.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).unwrap_or(usual)
        };
        Timeouts {
            connect: pick(self.connect_timeout_s.get(), origin.connect_timeout(limits)),
            first_byte: pick(self.first_byte_timeout_s.get(), origin.first_byte_timeout(limits)),
            between_bytes: pick(self.between_bytes_timeout_s.get(), origin.between_bytes_timeout(limits)),
        }
    }

    /// What else is fetched of the same answer is made for the same request.
    pub(crate) fn made_for(&self) -> MadeFor {
        MadeFor {
            site: Arc::clone(&self.site),
            ends: Rc::clone(&self.ends),
            identity: self.identity.clone(),
            backend_hint: self.backend_hint,
            remembered: self.remembered,
            hash: self.hash,
        }
    }

    pub(crate) fn new(made_for: MadeFor, original: Rc<RequestHead>, xid: u64, now: Now) -> FetchState {
        let started_s = now.wall_ms as f64 / 1_000.0;
        let MadeFor { site, ends, identity, backend_hint, remembered, hash } = made_for;
        FetchState {
            site,
            ends,
            identity,
            backend_hint,
            xid: Cell::new(xid),
            started_s,
            retries: Cell::new(0),
            backend: Cell::new(backend_hint),
            chosen: Cell::new(None),
            connect_timeout_s: Cell::new(None),
            first_byte_timeout_s: Cell::new(None),
            between_bytes_timeout_s: Cell::new(None),
            uncacheable: Cell::new(false),
            is_pass: false,
            is_background: false,
            remembered,
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
            task: Task::default(),
            filters: RefCell::new(None),
            original,
            ranges_tag: RefCell::new(None),
            hash,
        }
    }
}
