//! What a request carries under a program, beside its head: from its first vcl_recv over every restart to its log line.
//!
//! Plain cells, because the scope in which a subroutine runs only borrows it.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use cache::{Key, Ticket};
use message::RequestHead;
use rules::Lifetimes;
use vcl::{BackendRef, Task};

use crate::clock::Moment;
use crate::connection_addresses::ConnectionAddresses;
use crate::records::task_records::TaskRecords;
use crate::vcl_site::VclSite;
use crate::vcl_story::log_notes::LogNotes;

/// What the last look-up met, for `req.is_hitmiss` and `req.is_hitpass`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Remembered {
    #[default]
    Nothing,
    HitForMiss,
    HitForPass,
}

/// The state of one request under a program.
pub(crate) struct ClientState {
    pub(crate) vcl_site: Arc<VclSite>,
    pub(crate) addresses: Rc<ConnectionAddresses>,
    pub(crate) xid: Cell<u64>,
    pub(crate) started_s: f64,
    /// It came with a body, whether that has been read or not.
    pub(crate) has_body: bool,
    /// larder asks itself, to have it fetched again: what is stored is no answer.
    pub(crate) is_refresh: bool,
    pub(crate) restarts: Cell<u32>,
    pub(crate) backend_hint: Cell<BackendRef>,
    pub(crate) ttl_s: Cell<Option<f64>>,
    pub(crate) grace_s: Cell<Option<f64>>,
    pub(crate) age_max_s: Cell<Option<f64>>,
    pub(crate) hash_always_miss: Cell<bool>,
    /// Something was banned or purged: the answer waits until a crash cannot undo it.
    pub(crate) has_invalidated: Cell<bool>,
    /// The same for the next look-up alone: vcl_hit of old may ask for a fetch.
    pub(crate) misses_once: Cell<bool>,
    pub(crate) hash_ignore_busy: Cell<bool>,
    pub(crate) hash_ignore_vary: Cell<bool>,
    pub(crate) identity: RefCell<Option<Box<[u8]>>>,
    /// `req.proto`, where the program set it.
    pub(crate) proto: RefCell<Option<Box<[u8]>>>,
    pub(crate) key: Cell<Option<Key>>,
    /// SHA-256 of what the key is made of, as `HashedParts::sha256` says. `None`: the program asks for none.
    pub(crate) hash: Cell<Option<[u8; 32]>>,
    /// What the key is made of, where others may have to be told of it.
    pub(crate) hashed: RefCell<Box<[u8]>>,
    pub(crate) remembered: Cell<Remembered>,
    /// How long what the last fetch brought lives.
    pub(crate) brought: Cell<Option<Lifetimes>>,
    /// How deep it lies in pages that include it; 0 for what a client asked itself.
    pub(crate) esi_level: u32,
    /// What the client asked itself, where that is another request.
    pub(crate) top: Option<Rc<TopRequest>>,
    /// The program that the request came to, whichever label it was handed to since.
    pub(crate) came_to: Arc<VclSite>,
    /// `req.esi`: what is to be included in the answer is.
    pub(crate) esi: Cell<bool>,
    /// `req.storage`, as the program set it: there is one store, and nothing goes by this.
    pub(crate) storage: RefCell<Option<Box<[u8]>>>,
    /// vcl_hit would rather pass.
    pub(crate) passes_hit: Cell<bool>,
    /// The number of the fetch of a pass.
    pub(crate) passed_by: Cell<Option<u64>>,
    /// `resp.filters`, where the program set it.
    pub(crate) filters: RefCell<Option<Box<[u8]>>>,
    /// Streams while it is delivered.
    pub(crate) is_streaming: Cell<bool>,
    pub(crate) task: Task,
    /// For the log line, once there is something to say.
    pub(crate) log_notes: OnceCell<Rc<LogNotes>>,
    /// If anybody wants them.
    pub(crate) records: Option<Rc<TaskRecords>>,
    /// The head as it was before the program saw it, for `std.rollback` and labels.
    pub(crate) original: Option<Rc<RequestHead>>,
    /// The right to refresh what is about to be served stale, until vcl_hit has spoken.
    pub(crate) refresh: Option<Ticket>,
    /// The body, if it was read before the program ran.
    pub(crate) body: Option<Bytes>,
    /// What its reading was like, until the program asks for it and it is told to the records.
    pub(crate) body_was_read: Cell<Option<BodyWasRead>>,
    /// The client sends its body when we say 100, which is ours to say and not the origin's: in place of varnishd.
    pub(crate) awaits_continue: Cell<bool>,
    /// It is said when the body is read, and not behind vcl_recv: by `std.late_100_continue`.
    pub(crate) continue_is_late: Cell<bool>,
    /// It is recorded as said, and about to be.
    pub(crate) continue_is_due: Cell<bool>,
}

/// The request for a page that includes others, as `req_top` shows it.
pub(crate) struct TopRequest {
    /// As its program left it.
    pub(crate) head: Rc<RequestHead>,
    pub(crate) started_s: f64,
    /// The program that it came to.
    pub(crate) came_to: Arc<VclSite>,
}

/// A body that was read because the program was going to ask for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BodyWasRead {
    pub(crate) by: Moment,
    /// The client waited for our 100.
    pub(crate) continued: bool,
}

impl ClientState {
    pub(crate) fn new(
        vcl_site: Arc<VclSite>,
        addresses: Rc<ConnectionAddresses>,
        xid: u64,
        started_s: f64,
    ) -> ClientState {
        let backend_hint = Cell::new(vcl_site.loaded.default_backend());
        ClientState {
            came_to: Arc::clone(&vcl_site),
            vcl_site,
            addresses,
            xid: Cell::new(xid),
            started_s,
            has_body: false,
            is_refresh: false,
            restarts: Cell::new(0),
            backend_hint,
            ttl_s: Cell::new(None),
            grace_s: Cell::new(None),
            age_max_s: Cell::new(None),
            hash_always_miss: Cell::new(false),
            has_invalidated: Cell::new(false),
            misses_once: Cell::new(false),
            hash_ignore_busy: Cell::new(false),
            hash_ignore_vary: Cell::new(false),
            identity: RefCell::new(None),
            proto: RefCell::new(None),
            key: Cell::new(None),
            hash: Cell::new(None),
            hashed: RefCell::default(),
            remembered: Cell::new(Remembered::Nothing),
            brought: Cell::new(None),
            esi_level: 0,
            top: None,
            esi: Cell::new(true),
            storage: RefCell::new(None),
            passes_hit: Cell::new(false),
            passed_by: Cell::new(None),
            filters: RefCell::new(None),
            is_streaming: Cell::new(false),
            task: Task::default(),
            log_notes: OnceCell::new(),
            records: None,
            original: None,
            refresh: None,
            body: None,
            body_was_read: Cell::new(None),
            awaits_continue: Cell::new(false),
            continue_is_late: Cell::new(false),
            continue_is_due: Cell::new(false),
        }
    }

    /// What a restart forgets: all that a look-up found. What the program set stays.
    pub(crate) fn restart(&mut self, xid: u64) {
        self.restarts.set(self.restarts.get() + 1);
        self.xid.set(xid);
        self.remembered.set(Remembered::Nothing);
        self.is_streaming.set(false);
        self.filters.take();
        self.passes_hit.set(false);
        self.passed_by.set(None);
        self.brought.set(None);
        self.key.set(None);
        self.refresh = None;
    }
}
