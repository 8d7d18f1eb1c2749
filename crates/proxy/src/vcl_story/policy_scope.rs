//! One run of subroutines over borrowed messages: what a program asks of us while it runs.
//!
//! A scope lives between two moments at which something is awaited. What it changed is taken out of it afterwards by
//! the step that made it: heads as copies, if they were changed at all; the rest is in the cells of the states.

use std::cell::{Cell, OnceCell, RefCell};
use std::net::IpAddr;

use cache::{Key, Now};
use message::{FieldName, Request, RequestHead};
use smallvec::SmallVec;
use vcl::typed_program::BackendId;
use vcl::{Arena, Fault, HeaderName, Health, Host, LogKind, Message, Plain, Purge, Purged, Task, VariableId, World};

use crate::site::Site;
use crate::vcl_story::client_state::ClientState;
use crate::vcl_story::fetch_state::FetchState;
use crate::vcl_story::head_edits::{EditedHead, Name};
use crate::vcl_story::scope_heads::{RequestHalf, ResponseHalf};
use crate::vcl_story::stored_view::StoredView;
use crate::vcl_story::{bans, client_steps, policy_log, policy_purge, scope_variables};
use crate::worker::Core;

/// Whose state the scope works on.
#[derive(Clone, Copy)]
pub(crate) enum Side<'a> {
    Client(&'a ClientState),
    Fetch(&'a FetchState),
}

/// Texts that a body made by a program usually has.
const BODY_PARTS_USUAL: usize = 8;
const HASH_BYTES_USUAL: usize = 192;

pub(crate) struct Scope<'a> {
    pub(crate) arena: &'a Arena,
    pub(crate) core: &'a Core,
    pub(crate) settings: &'a Site,
    pub(crate) side: Side<'a>,
    pub(crate) now: Now,
    pub(crate) req: RequestHalf<'a>,
    bereq: OnceCell<RequestHalf<'a>>,
    /// `resp` on the client's side, `beresp` on the other.
    pub(crate) response: ResponseHalf<'a>,
    /// `obj` on the client's side, `obj_stale` on the other.
    pub(crate) stored: Cell<Option<StoredView<'a>>>,
    /// The request as the scope found it.
    pub(crate) request: Option<Request<'a>>,
    /// What `std.rollback` goes back to.
    pub(crate) original: Option<Request<'a>>,
    /// The original has not been completed: this client belongs into its X-Forwarded-For.
    pub(crate) completion: Option<IpAddr>,
    hashed: RefCell<SmallVec<[u8; HASH_BYTES_USUAL]>>,
    body: RefCell<SmallVec<[&'a [u8]; BODY_PARTS_USUAL]>>,
}

impl<'a> Scope<'a> {
    pub(crate) fn new(core: &'a Core, settings: &'a Site, arena: &'a Arena, side: Side<'a>, now: Now) -> Scope<'a> {
        Scope {
            arena,
            core,
            settings,
            side,
            now,
            req: RequestHalf::none(),
            bereq: OnceCell::new(),
            response: ResponseHalf::none(),
            stored: Cell::new(None),
            request: None,
            original: None,
            completion: None,
            hashed: RefCell::default(),
            body: RefCell::default(),
        }
    }

    /// The request to the origin. Where there is none yet it is empty.
    pub(crate) fn bereq(&self) -> &RequestHalf<'a> {
        self.bereq.get_or_init(RequestHalf::none)
    }

    /// Sets the request to the origin, once.
    pub(crate) fn take_bereq(&self, bereq: RequestHalf<'a>) {
        let _ = self.bereq.set(bereq);
    }

    /// A copy of it, if the program changed it.
    pub(crate) fn changed_bereq(&self, like: &Request<'_>) -> Option<RequestHead> {
        let bereq = self.bereq();
        bereq.is_changed().then(|| bereq.to_head(like))
    }

    /// The key of what was hashed. Each part counts by itself: `ab` and `c` are not `a` and `bc`.
    pub(crate) fn key(&self) -> Key {
        self.core.shared.cache.key([&b"vcl"[..], &self.hashed.borrow()])
    }

    /// The body that the program made.
    pub(crate) fn made_body(&self) -> Vec<u8> {
        self.body.borrow().concat()
    }

    fn head(&self, of: Message) -> &EditedHead<'a> {
        match of {
            Message::Req | Message::ReqTop => &self.req.fields,
            Message::Bereq => &self.bereq().fields,
            Message::Beresp | Message::Resp => &self.response.fields,
            Message::Obj | Message::ObjStale => unreachable!("a stored head is not edited"),
        }
    }
}

/// A name of the program's, classified once.
#[inline]
fn name_of(name: &HeaderName) -> Name<'_> {
    let number = name.number(|lower| FieldName::classify(lower) as u16);
    Name { known: FieldName::by_number(number), text: name.written() }
}

/// A header line that a program makes must be one line. Blanks before a value are the colon's; those behind it stay:
/// files that drop cookies one after the other look for `; `.
fn checked<'a>(name: &HeaderName, value: &'a [u8]) -> Result<&'a [u8], Fault> {
    if value.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)) {
        let name = String::from_utf8_lossy(name.written()).into_owned();
        return Err(Fault::new(format!("the value for {name} has more than one line, or a zero byte")));
    }
    let blank_count = value.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    Ok(&value[blank_count..])
}

impl<'a> Host<'a> for Scope<'a> {
    fn arena(&self) -> &'a Arena {
        self.arena
    }

    fn task(&self) -> &Task {
        match self.side {
            Side::Client(state) => &state.task,
            Side::Fetch(state) => &state.task,
        }
    }

    fn world(&self) -> &dyn World {
        match self.side {
            Side::Client(state) => state.site.world(),
            Side::Fetch(state) => state.site.world(),
        }
    }

    #[inline]
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

    fn set_header(&self, of: Message, name: &HeaderName, value: &'a [u8]) -> Result<(), Fault> {
        let value = checked(name, value)?;
        self.head(of).set(self.kept_name(name)?, value);
        Ok(())
    }

    fn add_header(&self, of: Message, name: &HeaderName, value: &'a [u8]) -> Result<(), Fault> {
        let value = checked(name, value)?;
        self.head(of).add(self.kept_name(name)?, value);
        Ok(())
    }

    fn unset_header(&self, of: Message, name: &HeaderName) {
        // Without room for its name there is none for anything else, and the next step fails.
        if let Ok(name) = self.kept_name(name) {
            self.head(of).unset(name);
        }
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
                    Some(client) => client_steps::complete_in_place(&self.req.fields, self.arena, client),
                    None => Ok(()),
                }
            }
        }
    }

    fn variable(&self, of: VariableId) -> Plain<'a> {
        scope_variables::read(self, of)
    }

    fn set_variable(&self, of: VariableId, to: Plain<'a>) -> Result<(), Fault> {
        scope_variables::write(self, of, to)
    }

    fn unset_variable(&self, of: VariableId) -> Result<(), Fault> {
        scope_variables::unset(self, of);
        Ok(())
    }

    fn hash_data(&self, part: Option<&[u8]>) {
        let mut hashed = self.hashed.borrow_mut();
        let length = part.map_or(u32::MAX, |part| part.len() as u32);
        hashed.extend_from_slice(&length.to_le_bytes());
        hashed.extend_from_slice(part.unwrap_or_default());
    }

    fn synthetic(&self, part: &'a [u8]) -> Result<(), Fault> {
        self.body.borrow_mut().push(part);
        Ok(())
    }

    fn clear_synthetic(&self) {
        self.body.borrow_mut().clear();
    }

    fn ban(&self, expression: &[u8]) -> Result<(), String> {
        bans::ban(&self.core.shared, expression, self.now)
    }

    fn purge(&self, what: Purged<'_>, how: Purge) -> Result<u64, Fault> {
        policy_purge::purge(self, what, how)
    }

    fn log(&self, kind: LogKind, text: &[u8]) {
        policy_log::note(self, kind, text);
    }

    fn rfc_ttl(&self) -> Result<(), Fault> {
        scope_variables::rfc_ttl(self)
    }

    fn backend_health(&self, of: BackendId) -> Health {
        match self.side {
            Side::Client(state) => state.site.health(of),
            Side::Fetch(state) => state.site.health(of),
        }
    }

    fn request_body(&self) -> Option<&'a [u8]> {
        match self.side {
            Side::Client(state) => state.body.as_deref(),
            Side::Fetch(_) => None,
        }
    }
}

impl<'a> Scope<'a> {
    /// A name that outlives the program's borrow of it.
    fn kept_name(&self, name: &HeaderName) -> Result<Name<'a>, Fault> {
        let of = name_of(name);
        Ok(Name { known: of.known, text: self.arena.copy(of.text)? })
    }
}
