//! What a built-in subroutine may say when it ends: one enum for each, so that whoever runs it cannot meet an answer
//! that makes no sense there.
//!
//! `Fail` is said by `return (fail)`, and whenever something could not be done: the reason has been logged then.

use std::fmt;

use crate::plain_values::Fault;
use crate::subroutines::{Action, Method};

/// `synth(status, reason)` and `error(status, reason)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status<'a> {
    /// 100 to 65535. Above 999 what is sent is its last three digits.
    pub status: u16,
    pub reason: Option<&'a [u8]>,
}

/// How a subroutine ended, before it is known to be a legal end.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Ending<'a> {
    Plain(Action),
    Status(Action, Status<'a>),
    PassFor(f64),
    Vcl(&'a str),
    Fail(Fault),
}

/// `error` without anything behind it.
const UNSAID: Status<'static> = Status { status: 503, reason: None };

/// As a program would return it.
impl fmt::Display for Ending<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ending::Plain(action) => f.write_str(action.name()),
            Ending::Status(action, Status { status, reason: None }) => write!(f, "{}({status})", action.name()),
            Ending::Status(action, Status { status, reason: Some(reason) }) => {
                write!(f, "{}({status}, {:?})", action.name(), String::from_utf8_lossy(reason))
            }
            Ending::PassFor(seconds) => write!(f, "pass({seconds}s)"),
            Ending::Vcl(label) => write!(f, "vcl({label})"),
            Ending::Fail(why) => write!(f, "fail({:?})", why.reason()),
        }
    }
}

impl Ending<'_> {
    /// Without what stands in parentheses.
    pub(crate) fn action(&self) -> &'static str {
        match self {
            Ending::Plain(action) | Ending::Status(action, _) => action.name(),
            Ending::PassFor(_) => "pass",
            Ending::Vcl(_) => "vcl",
            Ending::Fail(_) => "fail",
        }
    }

    /// The checker lets only legal actions through, and builtin.vcl ends every subroutine.
    #[cold]
    pub(crate) fn out_of_place(self, method: Method) -> Fault {
        match self {
            Ending::Fail(why) => why,
            _ => Fault::new(format!("{} ended in a way that it cannot", method.name())),
        }
    }
}

/// What vcl_recv says.
#[derive(Clone, Debug, PartialEq)]
pub enum RecvVerdict<'a> {
    /// Look it up.
    Hash,
    Pass,
    Pipe,
    Purge,
    Restart,
    Synth(Status<'a>),
    /// Begin again under the program of this label.
    Vcl(&'a str),
    Fail(Fault),
}

/// What vcl_pipe says.
#[derive(Clone, Debug, PartialEq)]
pub enum PipeVerdict<'a> {
    Pipe,
    Synth(Status<'a>),
    Fail(Fault),
}

/// What vcl_pass says.
#[derive(Clone, Debug, PartialEq)]
pub enum PassVerdict<'a> {
    Fetch,
    Restart,
    Synth(Status<'a>),
    Fail(Fault),
}

/// What vcl_hash says.
#[derive(Clone, Debug, PartialEq)]
pub enum HashVerdict {
    Lookup,
    Fail(Fault),
}

/// What vcl_purge says.
#[derive(Clone, Debug, PartialEq)]
pub enum PurgeVerdict<'a> {
    Synth(Status<'a>),
    Restart,
    Fail(Fault),
}

/// What vcl_miss says.
#[derive(Clone, Debug, PartialEq)]
pub enum MissVerdict<'a> {
    Fetch,
    Pass,
    Restart,
    Synth(Status<'a>),
    Fail(Fault),
}

/// What vcl_hit says.
#[derive(Clone, Debug, PartialEq)]
pub enum HitVerdict<'a> {
    Deliver,
    /// Of old: fetch, and let the client wait for it.
    Miss,
    Pass,
    Restart,
    Synth(Status<'a>),
    Fail(Fault),
}

/// What vcl_deliver says.
#[derive(Clone, Debug, PartialEq)]
pub enum DeliverVerdict<'a> {
    Deliver,
    Restart,
    Synth(Status<'a>),
    Fail(Fault),
}

/// What vcl_synth says.
#[derive(Clone, Debug, PartialEq)]
pub enum SynthVerdict {
    Deliver,
    Restart,
    Fail(Fault),
}

/// What vcl_backend_fetch says.
#[derive(Clone, Debug, PartialEq)]
pub enum BackendFetchVerdict<'a> {
    Fetch,
    Abandon,
    /// Of 503 when none was said.
    Error(Status<'a>),
    Fail(Fault),
}

/// What vcl_backend_refresh says.
#[derive(Clone, Debug, PartialEq)]
pub enum BackendRefreshVerdict<'a> {
    Merge,
    /// Keep the stored response as it is.
    ObjStale,
    /// Take the 304 itself for the response.
    Beresp,
    Retry,
    Abandon,
    Error(Status<'a>),
    Fail(Fault),
}

/// What vcl_backend_response says.
#[derive(Clone, Debug, PartialEq)]
pub enum BackendResponseVerdict<'a> {
    Deliver,
    /// Hit-for-pass, for so many seconds; for beresp.ttl when none were said.
    Pass(Option<f64>),
    Retry,
    Abandon,
    Error(Status<'a>),
    Fail(Fault),
}

/// What vcl_backend_error says.
#[derive(Clone, Debug, PartialEq)]
pub enum BackendErrorVerdict {
    Deliver,
    Retry,
    Abandon,
    Fail(Fault),
}

impl<'a> From<Ending<'a>> for RecvVerdict<'a> {
    fn from(ending: Ending<'a>) -> RecvVerdict<'a> {
        match ending {
            Ending::Plain(Action::Hash) => RecvVerdict::Hash,
            Ending::Plain(Action::Pass) => RecvVerdict::Pass,
            Ending::Plain(Action::Pipe) => RecvVerdict::Pipe,
            Ending::Plain(Action::Purge) => RecvVerdict::Purge,
            Ending::Plain(Action::Restart) => RecvVerdict::Restart,
            Ending::Status(Action::Synth, status) => RecvVerdict::Synth(status),
            Ending::Vcl(label) => RecvVerdict::Vcl(label),
            other => RecvVerdict::Fail(other.out_of_place(Method::Recv)),
        }
    }
}

impl<'a> From<Ending<'a>> for PipeVerdict<'a> {
    fn from(ending: Ending<'a>) -> PipeVerdict<'a> {
        match ending {
            Ending::Plain(Action::Pipe) => PipeVerdict::Pipe,
            Ending::Status(Action::Synth, status) => PipeVerdict::Synth(status),
            other => PipeVerdict::Fail(other.out_of_place(Method::Pipe)),
        }
    }
}

impl<'a> From<Ending<'a>> for PassVerdict<'a> {
    fn from(ending: Ending<'a>) -> PassVerdict<'a> {
        match ending {
            Ending::Plain(Action::Fetch) => PassVerdict::Fetch,
            Ending::Plain(Action::Restart) => PassVerdict::Restart,
            Ending::Status(Action::Synth, status) => PassVerdict::Synth(status),
            other => PassVerdict::Fail(other.out_of_place(Method::Pass)),
        }
    }
}

impl From<Ending<'_>> for HashVerdict {
    fn from(ending: Ending<'_>) -> HashVerdict {
        match ending {
            Ending::Plain(Action::Lookup) => HashVerdict::Lookup,
            other => HashVerdict::Fail(other.out_of_place(Method::Hash)),
        }
    }
}

impl<'a> From<Ending<'a>> for PurgeVerdict<'a> {
    fn from(ending: Ending<'a>) -> PurgeVerdict<'a> {
        match ending {
            Ending::Status(Action::Synth, status) => PurgeVerdict::Synth(status),
            Ending::Plain(Action::Restart) => PurgeVerdict::Restart,
            other => PurgeVerdict::Fail(other.out_of_place(Method::Purge)),
        }
    }
}

impl<'a> From<Ending<'a>> for MissVerdict<'a> {
    fn from(ending: Ending<'a>) -> MissVerdict<'a> {
        match ending {
            Ending::Plain(Action::Fetch) => MissVerdict::Fetch,
            Ending::Plain(Action::Pass) => MissVerdict::Pass,
            Ending::Plain(Action::Restart) => MissVerdict::Restart,
            Ending::Status(Action::Synth, status) => MissVerdict::Synth(status),
            other => MissVerdict::Fail(other.out_of_place(Method::Miss)),
        }
    }
}

impl<'a> From<Ending<'a>> for HitVerdict<'a> {
    fn from(ending: Ending<'a>) -> HitVerdict<'a> {
        match ending {
            Ending::Plain(Action::Deliver) => HitVerdict::Deliver,
            Ending::Plain(Action::Miss) => HitVerdict::Miss,
            Ending::Plain(Action::Pass) => HitVerdict::Pass,
            Ending::Plain(Action::Restart) => HitVerdict::Restart,
            Ending::Status(Action::Synth, status) => HitVerdict::Synth(status),
            other => HitVerdict::Fail(other.out_of_place(Method::Hit)),
        }
    }
}

impl<'a> From<Ending<'a>> for DeliverVerdict<'a> {
    fn from(ending: Ending<'a>) -> DeliverVerdict<'a> {
        match ending {
            Ending::Plain(Action::Deliver) => DeliverVerdict::Deliver,
            Ending::Plain(Action::Restart) => DeliverVerdict::Restart,
            Ending::Status(Action::Synth, status) => DeliverVerdict::Synth(status),
            other => DeliverVerdict::Fail(other.out_of_place(Method::Deliver)),
        }
    }
}

impl From<Ending<'_>> for SynthVerdict {
    fn from(ending: Ending<'_>) -> SynthVerdict {
        match ending {
            Ending::Plain(Action::Deliver) => SynthVerdict::Deliver,
            Ending::Plain(Action::Restart) => SynthVerdict::Restart,
            other => SynthVerdict::Fail(other.out_of_place(Method::Synth)),
        }
    }
}

impl<'a> From<Ending<'a>> for BackendFetchVerdict<'a> {
    fn from(ending: Ending<'a>) -> BackendFetchVerdict<'a> {
        match ending {
            Ending::Plain(Action::Fetch) => BackendFetchVerdict::Fetch,
            Ending::Plain(Action::Abandon) => BackendFetchVerdict::Abandon,
            Ending::Status(Action::Error, status) => BackendFetchVerdict::Error(status),
            Ending::Plain(Action::Error) => BackendFetchVerdict::Error(UNSAID),
            other => BackendFetchVerdict::Fail(other.out_of_place(Method::BackendFetch)),
        }
    }
}

impl<'a> From<Ending<'a>> for BackendRefreshVerdict<'a> {
    fn from(ending: Ending<'a>) -> BackendRefreshVerdict<'a> {
        match ending {
            Ending::Plain(Action::Merge) => BackendRefreshVerdict::Merge,
            Ending::Plain(Action::ObjStale) => BackendRefreshVerdict::ObjStale,
            Ending::Plain(Action::Beresp) => BackendRefreshVerdict::Beresp,
            Ending::Plain(Action::Retry) => BackendRefreshVerdict::Retry,
            Ending::Plain(Action::Abandon) => BackendRefreshVerdict::Abandon,
            Ending::Status(Action::Error, status) => BackendRefreshVerdict::Error(status),
            Ending::Plain(Action::Error) => BackendRefreshVerdict::Error(UNSAID),
            other => BackendRefreshVerdict::Fail(other.out_of_place(Method::BackendRefresh)),
        }
    }
}

impl<'a> From<Ending<'a>> for BackendResponseVerdict<'a> {
    fn from(ending: Ending<'a>) -> BackendResponseVerdict<'a> {
        match ending {
            Ending::Plain(Action::Deliver) => BackendResponseVerdict::Deliver,
            Ending::Plain(Action::Pass) => BackendResponseVerdict::Pass(None),
            Ending::PassFor(seconds) => BackendResponseVerdict::Pass(Some(seconds)),
            Ending::Plain(Action::Retry) => BackendResponseVerdict::Retry,
            Ending::Plain(Action::Abandon) => BackendResponseVerdict::Abandon,
            Ending::Status(Action::Error, status) => BackendResponseVerdict::Error(status),
            Ending::Plain(Action::Error) => BackendResponseVerdict::Error(UNSAID),
            other => BackendResponseVerdict::Fail(other.out_of_place(Method::BackendResponse)),
        }
    }
}

impl From<Ending<'_>> for BackendErrorVerdict {
    fn from(ending: Ending<'_>) -> BackendErrorVerdict {
        match ending {
            Ending::Plain(Action::Deliver) => BackendErrorVerdict::Deliver,
            Ending::Plain(Action::Retry) => BackendErrorVerdict::Retry,
            Ending::Plain(Action::Abandon) => BackendErrorVerdict::Abandon,
            other => BackendErrorVerdict::Fail(other.out_of_place(Method::BackendError)),
        }
    }
}
