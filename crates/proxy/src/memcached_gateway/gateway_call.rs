//! One command on its way to a memcached and back: who waits for it, and what became of it. The lane that carries it
//! ends it; any number of transactions, on any core, wait for its end.

use std::io;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use smallvec::SmallVec;
use wire::memcached::{Command, Expected, Reply, ReplyFault};

use crate::clock::deadline_now_ms;

#[derive(Debug)]
pub(crate) struct GatewayCall {
    /// As it is sent; empty for what has none.
    pub(crate) key: Box<[u8]>,
    pub(crate) expected: Expected,
    /// It changes nothing, so that it may be asked once more.
    pub(crate) is_read: bool,
    /// A value follows its line.
    pub(crate) stores: bool,
    /// It changes every key.
    pub(crate) is_flush: bool,
    /// Nobody waits for it, and a meta command among them is a quiet one.
    pub(crate) is_unheard: bool,
    pub(crate) patience: Patience,
    pub(crate) value_bytes_max: usize,
    state: Mutex<CallState>,
}

/// How long a reply is waited for, and until when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    pub(crate) timeout_ms: u64,
    pub(crate) deadline_ms: u64,
}

impl Patience {
    /// From now on.
    pub(crate) fn new(timeout: Duration) -> Patience {
        let timeout_ms = ms_of(timeout);
        Patience { timeout_ms, deadline_ms: deadline_now_ms().saturating_add(timeout_ms) }
    }
}

pub(crate) fn ms_of(timeout: Duration) -> u64 {
    timeout.as_millis().try_into().unwrap_or(u64::MAX)
}

#[derive(Debug)]
enum CallState {
    Waiting(SmallVec<[Waker; 1]>),
    Done(Result<ReceivedReply, Failure>),
}

/// A reply, with the bytes that its ranges are about.
#[derive(Clone, Debug)]
pub(crate) struct ReceivedReply {
    pub(crate) reply: Reply,
    pub(crate) bytes: Bytes,
}

/// Why there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) kind: FailureKind,
    /// Nothing of the command can have been done, or will be.
    pub(crate) unsent: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailureKind {
    Connect(io::ErrorKind),
    ConnectTimeout,
    /// Its name has no address.
    Resolve,
    /// The server is not who it should be, or speaks no TLS.
    Tls(tls::Fault),
    /// The server refused user and password.
    Login,
    /// The connection ended before the reply did.
    Lost,
    Timeout,
    Fault(ReplyFault),
    /// It failed too often, and is left alone for a while.
    Ejected,
    /// More wait for this server on this core than may.
    Busy,
}

impl FailureKind {
    /// A stable word for the log.
    pub(crate) const fn token(self) -> &'static str {
        match self {
            FailureKind::Connect(_) => "memcached-connect",
            FailureKind::ConnectTimeout => "memcached-connect-timeout",
            FailureKind::Resolve => "memcached-resolve",
            FailureKind::Tls(_) => "memcached-tls",
            FailureKind::Login => "memcached-login",
            FailureKind::Lost => "memcached-lost",
            FailureKind::Timeout => "memcached-timeout",
            FailureKind::Fault(fault) => fault.token(),
            FailureKind::Ejected => "memcached-ejected",
            FailureKind::Busy => "memcached-busy",
        }
    }
}

impl GatewayCall {
    pub(crate) fn new(command: &Command<'_>, key: &[u8], patience: Patience, value_bytes_max: usize) -> GatewayCall {
        GatewayCall {
            key: key.into(),
            expected: command.expected(),
            is_read: command.is_read(),
            stores: matches!(command, Command::Store { .. } | Command::MetaStore { .. }),
            is_flush: matches!(command, Command::FlushAll { .. }),
            is_unheard: false,
            patience,
            value_bytes_max,
            state: Mutex::new(CallState::Waiting(SmallVec::new())),
        }
    }

    /// The same, with nobody who waits.
    pub(crate) fn unheard(self) -> GatewayCall {
        let is_meta = matches!(self.expected, Expected::MetaStatus | Expected::MetaNumber);
        let expected = if is_meta { Expected::Silence } else { self.expected };
        GatewayCall { expected, is_unheard: true, ..self }
    }

    pub(crate) fn is_quiet(&self) -> bool {
        self.expected == Expected::Silence
    }

    /// Its end, or the task is woken by it.
    pub(crate) fn poll(&self, cx: &mut Context<'_>) -> Poll<Result<ReceivedReply, Failure>> {
        match &mut *self.state.lock() {
            CallState::Done(outcome) => Poll::Ready(outcome.clone()),
            CallState::Waiting(wakers) => {
                if !wakers.iter().any(|waker| waker.will_wake(cx.waker())) {
                    wakers.push(cx.waker().clone());
                }
                Poll::Pending
            }
        }
    }

    /// Tells all who wait. A call ends once.
    pub(crate) fn end(&self, outcome: Result<ReceivedReply, Failure>) {
        let former = std::mem::replace(&mut *self.state.lock(), CallState::Done(outcome));
        if let CallState::Waiting(wakers) = former {
            wakers.into_iter().for_each(Waker::wake);
        }
    }
}
