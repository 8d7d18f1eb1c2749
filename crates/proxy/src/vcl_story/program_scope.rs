//! One run of subroutines over borrowed messages: what a program asks of us while it runs.
//!
//! A scope lives between two moments at which something is awaited. What it changed is taken out of it afterwards by
//! the step that made it: heads as copies, if they were changed at all; the rest is in the cells of the states.

use std::cell::{Cell, OnceCell, RefCell};

use cache::{Key, Now};
use message::{Request, RequestHead};
use smallvec::SmallVec;
use vcl::typed_program::BackendId;
use vcl::{
    Arena, Fault, HeaderName, Health, Host, KeptName, Loaded, LogKind, Message, Plain, ProxyField, Purge, Purged, Task,
    UnixPeer, VariableId, World, header_value,
};
use wire::proxy_triples;

use crate::connection_addresses::ConnectionAddresses;
use crate::core::Core;
use crate::other_nodes::ToldInvalidation;
use crate::site::Site;
use crate::vcl_story::backend_task::BackendTask;
use crate::vcl_story::client_state::ClientState;
use crate::vcl_story::completed_request;
use crate::vcl_story::field_bits::Name;
use crate::vcl_story::hashed_parts::HashedParts;
use crate::vcl_story::head_edits::EditedHead;
use crate::vcl_story::scope_heads::{RequestHalf, ResponseHalf};
use crate::vcl_story::stored_view::StoredView;
use crate::vcl_story::{bans, program_log, program_purge, scope_variables};

/// Whose state the scope works on.
#[derive(Clone, Copy)]
pub(crate) enum Side<'a> {
    Client(&'a ClientState),
    Fetch(&'a BackendTask),
}

/// Texts that a body made by a program usually has.
const BODY_PARTS_USUAL: usize = 8;

pub(crate) struct Scope<'a> {
    pub(crate) arena: &'a Arena,
    pub(crate) core: &'a Core,
    pub(crate) site: &'a Site,
    pub(crate) side: Side<'a>,
    pub(crate) now: Now,
    pub(crate) req: RequestHalf<'a>,
    bereq: OnceCell<Box<RequestHalf<'a>>>,
    /// `resp` on the client's side, `beresp` on the other.
    pub(crate) response: ResponseHalf<'a>,
    /// `obj` on the client's side, `obj_stale` on the other.
    pub(crate) stored: Cell<Option<StoredView<'a>>>,
    /// The request as the scope found it.
    pub(crate) request: Option<Request<'a>>,
    /// `req_top`, where that is another request.
    pub(crate) top: Option<RequestHalf<'a>>,
    /// What `std.rollback` goes back to.
    pub(crate) original: Option<Request<'a>>,
    /// The original has not been completed: this client belongs into its X-Forwarded-For.
    pub(crate) completion: Option<&'a [u8]>,
    hashed: RefCell<HashedParts>,
    body: RefCell<SmallVec<[&'a [u8]; BODY_PARTS_USUAL]>>,
}

impl<'a> Scope<'a> {
    #[inline(always)]
    pub(crate) fn new(
        core: &'a Core,
        site: &'a Site,
        arena: &'a Arena,
        side: Side<'a>,
        req: RequestHalf<'a>,
        now: Now,
    ) -> Scope<'a> {
        Scope {
            arena,
            core,
            site,
            side,
            now,
            req,
            bereq: OnceCell::new(),
            response: ResponseHalf::none(),
            stored: Cell::new(None),
            request: None,
            top: None,
            original: None,
            completion: None,
            hashed: RefCell::new(HashedParts::new()),
            body: RefCell::default(),
        }
    }

    /// The request to the origin. Where there is none yet it is empty.
    pub(crate) fn bereq(&self) -> &RequestHalf<'a> {
        self.bereq.get_or_init(|| Box::new(RequestHalf::none()))
    }

    /// Sets the request to the origin, once.
    pub(crate) fn take_bereq(&self, bereq: RequestHalf<'a>) {
        let _ = self.bereq.set(Box::new(bereq));
    }

    /// A copy of it, if the program changed it.
    pub(crate) fn changed_bereq(&self, like: &Request<'_>) -> Option<RequestHead> {
        let bereq = self.bereq();
        bereq.is_changed().then(|| bereq.to_head(like))
    }

    /// The key of what was hashed. What `req.hash` is goes with it, if the program may ask.
    pub(crate) fn take_key(&self, state: &ClientState, program: &Loaded) -> Key {
        let hashed = self.hashed.borrow();
        let key = hashed.key(self.core);
        state.key.set(Some(key));
        state.hash.set(program.asks_hash().then(|| hashed.sha256()));
        // Without a fleet nobody is told of it.
        if program.purges_hash() && self.core.shared.others.is_some() {
            state.hashed.replace(hashed.bytes().into());
        }
        key
    }

    /// The body that the program made.
    pub(crate) fn made_body(&self) -> Vec<u8> {
        self.body.borrow().concat()
    }

    /// The answer that the client gets says that something is gone: `transmit` waits until a crash cannot undo it.
    fn note_invalidation(&self) {
        if let Side::Client(state) = self.side {
            state.has_invalidated.set(true);
        }
    }

    /// What the client asked itself.
    pub(crate) fn top(&self) -> &RequestHalf<'a> {
        self.top.as_ref().unwrap_or(&self.req)
    }

    /// Is there a line of this name? Of a stored head nobody asks.
    pub(crate) fn has_header(&self, of: Message, name: KeptName<'_>) -> bool {
        self.head(of).first(kept_name(name)).is_some()
    }

    fn addresses(&self) -> &ConnectionAddresses {
        match self.side {
            Side::Client(state) => &state.addresses,
            Side::Fetch(task) => &task.made_for.addresses,
        }
    }

    #[inline(always)]
    fn head(&self, of: Message) -> &EditedHead<'a> {
        match of {
            Message::Req => &self.req.fields,
            Message::ReqTop => &self.top().fields,
            Message::Bereq => &self.bereq().fields,
            Message::Beresp | Message::Resp => &self.response.fields,
            Message::Obj | Message::ObjStale => unreachable!("a stored head is not edited"),
        }
    }
}

/// A name of the program's, classified once.
#[inline]
fn name_of(name: &HeaderName) -> Name<'_> {
    Name::numbered(name.number(|lower| Name::of(lower).number()), name.written())
}

#[inline(always)]
fn kept_name(name: KeptName<'_>) -> Name<'_> {
    match name {
        KeptName::Known(name) => name_of(name),
        KeptName::Made(text) => Name::of(text),
    }
}

impl<'a> Host<'a> for Scope<'a> {
    fn arena(&self) -> &'a Arena {
        self.arena
    }

    fn task(&self) -> &Task {
        match self.side {
            Side::Client(state) => &state.task,
            Side::Fetch(task) => &task.private,
        }
    }

    fn waits_later(&self) -> bool {
        true
    }

    fn world(&self) -> &dyn World {
        match self.side {
            Side::Client(state) => state.vcl_site.world(),
            Side::Fetch(task) => task.made_for.site.world(),
        }
    }

    fn unix_peer(&self) -> Option<UnixPeer> {
        self.addresses().unix_peer
    }

    fn proxy_field(&self, of: ProxyField) -> Plain<'a> {
        let said = self.addresses().said.as_deref();
        let copied = |text: &[u8]| self.arena.copy(text).ok();
        let flag = |bit: u8| Plain::Bool(said.is_some_and(|said| said.tls_flags() & bit != 0));
        let text = |kind: u8| Plain::Text(said.and_then(|said| said.value(kind)).and_then(copied));
        let tls_text = |kind: u8| Plain::Text(said.and_then(|said| said.tls_value(kind)).and_then(copied));
        match of {
            ProxyField::Alpn => text(proxy_triples::ALPN),
            ProxyField::Authority => text(proxy_triples::AUTHORITY),
            ProxyField::IsTls => flag(proxy_triples::IS_TLS),
            ProxyField::HasCertificateInSession => flag(proxy_triples::HAS_CERTIFICATE_IN_SESSION),
            ProxyField::HasCertificateInConnection => flag(proxy_triples::HAS_CERTIFICATE_IN_CONNECTION),
            ProxyField::VerifyResult => Plain::Int(said.map_or(0, |said| i64::from(said.tls_verify_result()))),
            ProxyField::TlsVersion => tls_text(proxy_triples::TLS_VERSION),
            ProxyField::CertificateName => tls_text(proxy_triples::TLS_CERTIFICATE_NAME),
            ProxyField::Cipher => tls_text(proxy_triples::TLS_CIPHER),
            ProxyField::CertificateSignature => tls_text(proxy_triples::TLS_SIGNATURE),
            ProxyField::CertificateKey => tls_text(proxy_triples::TLS_KEY),
        }
    }

    #[inline(always)]
    fn header(&self, of: Message, name: &HeaderName) -> Option<&'a [u8]> {
        match of {
            Message::Obj | Message::ObjStale => self.stored.get()?.fields.get_all_named(name.written()).next(),
            of => self.head(of).first(name_of(name)),
        }
    }

    fn header_lines(&self, of: Message, name: &HeaderName, each: &mut dyn FnMut(&'a [u8])) {
        match (of, self.stored.get()) {
            (Message::Obj | Message::ObjStale, Some(stored)) => {
                stored.fields.get_all_named(name.written()).for_each(each);
            }
            (Message::Obj | Message::ObjStale, None) => {}
            (of, _) => self.head(of).lines(name_of(name), each),
        }
    }

    fn all_headers(&self, of: Message, each: &mut dyn FnMut(&'a [u8], &'a [u8])) {
        match (of, self.stored.get()) {
            (Message::Obj | Message::ObjStale, Some(stored)) => {
                stored.fields.iter().for_each(|field| each(field.name_text, field.value));
            }
            (Message::Obj | Message::ObjStale, None) => {}
            (of, _) => self.head(of).each(|_, name, value| each(name, value)),
        }
    }

    #[inline]
    fn set_header(&self, of: Message, name: KeptName<'a>, value: &'a [u8]) -> Result<(), Fault> {
        self.head(of).set(kept_name(name), header_value(value));
        Ok(())
    }

    fn add_header(&self, of: Message, name: KeptName<'a>, value: &'a [u8]) -> Result<(), Fault> {
        self.head(of).add(kept_name(name), header_value(value));
        Ok(())
    }

    #[inline(always)]
    fn unset_header(&self, of: Message, name: KeptName<'a>) {
        self.head(of).unset(kept_name(name));
    }

    fn rollback(&self, of: Message) -> Result<(), Fault> {
        let Some(original) = &self.original else {
            return Err(Fault::new("there is nothing to roll back to here"));
        };
        match of {
            Message::Bereq => self.bereq().rollback(original, self.arena),
            _ => {
                self.req.rollback(original, self.arena)?;
                match self.completion {
                    Some(peer) => {
                        completed_request::complete_in_place(&self.req.fields, self.arena, original.fields, peer)
                    }
                    None => Ok(()),
                }
            }
        }
    }

    #[inline]
    fn variable(&self, of: VariableId) -> Plain<'a> {
        match of {
            // What nearly every statement of vcl_recv and vcl_hash asks for.
            VariableId::REQ_URL => Plain::Text(Some(self.req.url.get())),
            VariableId::REQ_METHOD => Plain::Text(Some(self.req.method.get())),
            // And vcl_hit and vcl_deliver.
            VariableId::OBJ_HITS if let Some(stored) = self.stored.get() => Plain::Int(i64::from(stored.hits)),
            of => scope_variables::read(self, of),
        }
    }

    fn set_variable(&self, of: VariableId, to: Plain<'a>) -> Result<(), Fault> {
        scope_variables::write(self, of, to)
    }

    fn unset_variable(&self, of: VariableId) -> Result<(), Fault> {
        scope_variables::unset(self, of);
        Ok(())
    }

    fn hash_data(&self, part: Option<&[u8]>) {
        self.hashed.borrow_mut().add(part);
    }

    fn hash_data_ends(&self) {
        self.hashed.borrow_mut().end();
    }

    fn synthetic(&self, part: &'a [u8]) -> Result<(), Fault> {
        self.body.borrow_mut().push(part);
        Ok(())
    }

    fn clear_synthetic(&self) {
        self.body.borrow_mut().clear();
    }

    fn ban(&self, expression: &[u8]) -> Result<(), String> {
        if self.is_dry_run() {
            return bans::ProgramBan::parse(expression).map(drop);
        }
        self.note_invalidation();
        if let Some(others) = &self.core.shared.others {
            bans::ProgramBan::parse(expression)?;
            others.tell(&ToldInvalidation::Ban(expression.to_vec()));
        }
        bans::ban(&self.core.shared, expression, self.now)
    }

    fn purge(&self, what: Purged<'_>, how: Purge) -> Result<u64, Fault> {
        if self.is_dry_run() {
            return Ok(0);
        }
        self.note_invalidation();
        program_purge::tell(self, &what, how);
        program_purge::purge(self, what, how)
    }

    fn is_dry_run(&self) -> bool {
        self.core.only_looks
    }

    fn log(&self, kind: LogKind, text: &[u8]) {
        if self.is_dry_run() {
            return;
        }
        program_log::note(self, kind, text);
    }

    fn rfc_ttl(&self) -> Result<(), Fault> {
        scope_variables::rfc_ttl(self)
    }

    fn backend_health(&self, of: BackendId) -> Health {
        match self.side {
            Side::Client(state) => state.vcl_site.health(of, &self.site.origins),
            Side::Fetch(task) => task.made_for.site.health(of, &self.site.origins),
        }
    }

    fn request_body(&self) -> Option<&'a [u8]> {
        match self.side {
            Side::Client(state) => state.body.as_deref(),
            Side::Fetch(_) => None,
        }
    }

    /// Nothing is kept at once.
    fn cache_request_body(&self, bytes_max: u64) -> Result<bool, Fault> {
        let Side::Client(state) = self.side else { return Ok(false) };
        let is_kept = |body: &[u8]| body.len() as u64 <= bytes_max;
        Ok(state.body.as_deref().map_or(!state.has_body, is_kept))
    }

    fn storage(&self, name: &[u8], property: VariableId) -> Plain<'a> {
        scope_variables::storage(self.core, name, property)
    }

    fn late_100_continue(&self, late: bool) {
        if let Side::Client(state) = self.side {
            state.continue_is_late.set(late);
        }
    }
}
