//! What a running program asks of whoever runs it: the messages, the variables, the cache, the log.
//!
//! One `Host` stands for one scope: one or more subroutines, run one after another over the same borrowed heads. All
//! methods take `&self`, so the host keeps cells. A text that it handed out stays as it is for `'a`: changes go to an
//! overlay, and their bytes into the arena, which only grows until the scope ends. The evaluator leans on that: a text
//! at the same address is the same text.
//!
//! Calls are generic over the host, so they cost what calls of functions cost. What few programs ask for has a default
//! here, and what reaches out of the machine's memory is the `World`'s.

use std::fmt;

use crate::header_names::{HeaderName, KeptName};
use crate::plain_values::{BackendRef, Fault, Plain};
use crate::scope_arena::Arena;
use crate::source_files::Span;
use crate::subroutines::Method;
use crate::task_state::Task;
use crate::typed_program::BackendId;
use crate::variables::VariableId;
use crate::world::World;

/// Of which message a header is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Message {
    Req,
    /// Of the request that includes this one by ESI; the request itself when none does.
    ReqTop,
    Bereq,
    Beresp,
    Obj,
    ObjStale,
    Resp,
}

/// Whether a backend is believed to answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Health {
    pub healthy: bool,
    /// When that changed, in seconds since 1970.
    pub changed_s: f64,
}

/// What is purged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Purged<'t> {
    /// All variants under the hash of this request.
    This,
    /// All that was stored with this tag.
    Tag(&'t [u8]),
}

/// What becomes of what is purged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Purge {
    /// Gone.
    Hard,
    /// Shortened to so many seconds from now, never lengthened. `None` leaves grace or keep as it is.
    Soft { ttl_s: f64, grace_s: Option<f64>, keep_s: Option<f64> },
}

/// What a line of the log is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogKind {
    /// The program's own, by `std.log`.
    Program,
    /// Why a transaction fails, or what did not work.
    Error,
    /// Something that a call was given and passes over; it goes on.
    Notice,
    /// Something that a call was given and cannot be; it goes on without.
    Mistake,
    /// What a program asked a director to tell of its choices.
    Debug,
    /// A match of an ACL that is defined with `+log`.
    Acl,
    /// For the system's log, with its priority.
    System(i64),
    /// A label, for the times of this transaction.
    Timestamp,
}

/// What a connection said of itself in the PROXY protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyField {
    Alpn,
    Authority,
    IsTls,
    HasCertificateInSession,
    HasCertificateInConnection,
    VerifyResult,
    TlsVersion,
    CertificateName,
    Cipher,
    CertificateSignature,
    CertificateKey,
}

/// Who is at the other end of a UNIX socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnixPeer {
    pub user: u32,
    pub group: u32,
}

/// One scope of one transaction.
pub trait Host<'a> {
    /// Where texts of this scope are made.
    fn arena(&self) -> &'a Arena;

    /// What of this transaction outlives the scope. A new one costs nothing.
    fn task(&self) -> &Task;

    fn world(&self) -> &dyn World;

    /// May a function wait for an answer from outside? Only where nobody else waits meanwhile.
    fn may_wait(&self) -> bool {
        false
    }

    // ---- Messages.

    /// The first line of that name.
    fn header(&self, of: Message, name: &HeaderName) -> Option<&'a [u8]>;

    /// Every line of that name.
    fn header_lines(&self, of: Message, name: &HeaderName, each: &mut dyn FnMut(&'a [u8]));

    /// Every line, with its name as it is.
    fn all_headers(&self, of: Message, each: &mut dyn FnMut(&'a [u8], &'a [u8]));

    /// Replaces all lines of that name by one. The value can stand in one line: see `lawful_values`.
    fn set_header(&self, of: Message, name: KeptName<'a>, value: &'a [u8]) -> Result<(), Fault>;

    /// One more line, after those that are there. The value can stand in one line.
    fn add_header(&self, of: Message, name: KeptName<'a>, value: &'a [u8]) -> Result<(), Fault>;

    /// All lines of that name.
    fn unset_header(&self, of: Message, name: KeptName<'a>);

    /// Undoes what the program did to the message.
    fn rollback(&self, of: Message) -> Result<(), Fault>;

    // ---- Variables.

    /// One that is no header and no whole message. `VariableId` has a constant for each; of two rows of one name only
    /// the first is asked for. What is not known has its type's `VariableId::nothing`.
    fn variable(&self, of: VariableId) -> Plain<'a>;

    /// The value is of the variable's type.
    fn set_variable(&self, of: VariableId, to: Plain<'a>) -> Result<(), Fault>;

    /// Of a body: there is none then.
    fn unset_variable(&self, of: VariableId) -> Result<(), Fault>;

    /// A property of `storage.<name>`, by its row.
    fn storage(&self, _name: &[u8], property: VariableId) -> Plain<'a> {
        property.nothing()
    }

    // ---- Acts.

    /// A part of what is hashed; one call for each part of a concatenation, and then `hash_data_ends`. Absent is not empty.
    fn hash_data(&self, part: Option<&[u8]>);

    /// What one statement hashes is there: where its parts meet makes no difference, where it ends does.
    fn hash_data_ends(&self);

    /// Appends to the body of resp (in vcl_synth) or beresp (in vcl_backend_error).
    fn synthetic(&self, part: &'a [u8]) -> Result<(), Fault>;

    /// Empties that body.
    fn clear_synthetic(&self);

    /// The error is for people.
    fn ban(&self, expression: &[u8]) -> Result<(), String>;

    /// How many objects it met.
    fn purge(&self, what: Purged<'_>, how: Purge) -> Result<u64, Fault>;

    fn log(&self, kind: LogKind, text: &[u8]);

    /// Why the program fails. `placed` is the same with the place where it did.
    fn log_fault(&self, why: &Fault, placed: &Fault) {
        let _ = why;
        self.log(LogKind::Error, placed.reason().as_bytes());
    }

    /// Computes `beresp.ttl` and its like anew from the headers.
    fn rfc_ttl(&self) -> Result<(), Fault> {
        Err(Fault::new("std.rfc_ttl() is not available here"))
    }

    // ---- Backends.

    /// Of one of the program, or with a number beyond them one of `Loaded::dynamic_backend`.
    fn backend_health(&self, of: BackendId) -> Health;

    /// For whom `bereq.backend` has become something else by `set`.
    fn backend_chosen(&self, _of: BackendRef) {}

    // ---- The connection and the request's body.

    /// The whole body, if it was read before the program ran: see `Loaded::request_body_bytes_usual`.
    fn request_body(&self) -> Option<&'a [u8]> {
        None
    }

    /// Whether the body is there and has at most so many bytes.
    fn cache_request_body(&self, bytes_max: u64) -> Result<bool, Fault> {
        Ok(self.request_body().is_some_and(|body| body.len() as u64 <= bytes_max))
    }

    fn late_100_continue(&self, _late: bool) {}

    /// What a test waits for is waited for when the subroutine has ended: see [`Task::take_waits`].
    fn waits_later(&self) -> bool {
        false
    }

    /// Is this a run of which nothing must remain?
    fn is_dry_run(&self) -> bool {
        false
    }

    fn set_ip_tos(&self, _tos: i64) {}

    fn unix_peer(&self) -> Option<UnixPeer> {
        None
    }

    fn proxy_field(&self, _of: ProxyField) -> Plain<'a> {
        Plain::Text(None)
    }

    // ---- Chance and curiosity.

    /// Any number, each as likely as the others.
    fn random(&self) -> u64 {
        crate::chance::draw()
    }

    // For those who want to see what runs. Nothing by default, and then free.

    /// Is somebody looking at each statement, so that nothing may be shortened?
    #[inline(always)]
    fn is_watched(&self) -> bool {
        false
    }

    /// Is each change of a message told, so that none may be left out or be one with the next?
    #[inline(always)]
    fn tells_changes(&self) -> bool {
        self.is_watched()
    }

    /// A statement begins.
    #[inline(always)]
    fn statement(&self, _at: Span) {}

    /// A condition of the `if` that began last was looked at; the ones behind it only when it does not hold.
    #[inline(always)]
    fn condition(&self, _at: Span, _holds: bool) {}

    /// A built-in subroutine begins.
    #[inline(always)]
    fn begun(&self, _method: Method) {}

    /// A built-in subroutine has ended: the action that it returned, and all of that as VCL would write it.
    #[inline(always)]
    fn ended(&self, _method: Method, _action: &'static str, _how: &dyn fmt::Display) {}
}
