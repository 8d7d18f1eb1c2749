//! Who decides about a request: the built-in policy, or a VCL program. What the built-in one says before anything is copied is here; what
//! either says of a step is in `policy_steps`.
//!
//! A transaction captures its policy at receive and keeps it. The edges of the transaction machine are what verdicts can ask
//! for, no more.

use cache::Key;
use message::{FieldName, FieldsView, Method, Request, TargetForm};
use rules::{RequestDirectives, UrlVariation};
use wire::ReceivedRequest;

use crate::core::Shared;
use crate::field_set::FieldSet;
use crate::reason::Reason;
use crate::settings::PolicySettings;
use crate::url_variations::VariationKey;
use crate::vcl_story::client_state::ClientState;

/// Who decides about a request.
pub(crate) enum Policy {
    /// RFC 9111, with the switches of `[policy]`.
    Builtin,
    /// A VCL program. `policy_steps` opens its state.
    Program(Box<ClientState>),
}

/// What the built-in policy says of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BuiltinVerdict {
    Lookup,
    Pass(WhyPassed),
    Pipe,
    Purge,
    /// Of a client that is not among `purge_from`.
    PurgeRefused,
    Synth(u16),
}

/// Why a request went past the store, for the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WhyPassed {
    Method,
    Body,
    NoHost,
    /// The route says so.
    Route,
    /// It brings cookies that make the answer its client's own.
    Cookie,
    Credentials,
}

impl WhyPassed {
    pub(crate) const fn reason(self) -> Reason {
        match self {
            WhyPassed::Method => Reason::Method,
            WhyPassed::Body => Reason::RequestBody,
            WhyPassed::NoHost => Reason::NoHost,
            WhyPassed::Route => Reason::Route,
            WhyPassed::Cookie => Reason::Cookie,
            WhyPassed::Credentials => Reason::Credentials,
        }
    }

    pub(crate) const fn token(self) -> &'static str {
        self.reason().token()
    }
}

const DIRECTIVES: FieldSet = FieldSet::mask(&[FieldName::CacheControl, FieldName::Pragma]);

/// What the built-in policy does with a request. `may_purge` says whether its client is among `purge_from`.
#[inline]
pub(crate) fn receive(received: &ReceivedRequest<'_>, may_purge: impl FnOnce() -> bool) -> BuiltinVerdict {
    let request = &received.request;
    match request.method {
        Method::Get | Method::Head if !received.upgrade && !received.body.follows() => {
            if request.authority.host.is_empty() {
                return BuiltinVerdict::Pass(WhyPassed::NoHost);
            }
            BuiltinVerdict::Lookup
        }
        _ => receive_rare(received, may_purge),
    }
}

/// The key to look a request up by: its URL, as far as its query makes a difference.
#[inline]
pub(crate) fn key(shared: &Shared, request: &Request<'_>) -> Key {
    shared.variations.key(&shared.cache, request)
}

/// Invalidates, by `act`, every key under which a response to this URL may be stored.
pub(crate) fn invalidate(shared: &Shared, request: &Request<'_>, act: impl FnMut(Key)) {
    shared.variations.invalidate(&shared.cache, request, act);
}

/// Where a response to the request belongs, by what it says of its queries.
pub(crate) fn place(shared: &Shared, request: &Request<'_>, response: FieldsView<'_>) -> VariationKey {
    shared.variations.place(&shared.cache, request, UrlVariation::of(response))
}

/// What the request's own Cache-Control asks for, if the policy listens to it.
#[inline]
pub(crate) fn directives(settings: &PolicySettings, request: &Request<'_>, seen: FieldSet) -> RequestDirectives {
    if seen.has_any(DIRECTIVES) && settings.honour_client_cache_control {
        RequestDirectives::parse(request.fields)
    } else {
        RequestDirectives::default()
    }
}
#[cold]
fn receive_rare(received: &ReceivedRequest<'_>, may_purge: impl FnOnce() -> bool) -> BuiltinVerdict {
    let request = &received.request;
    match request.method {
        // A reverse proxy tunnels to nobody, and TRACE tells a script what the browser hides from it.
        Method::Connect => BuiltinVerdict::Synth(405),
        Method::Trace => BuiltinVerdict::Synth(405),
        Method::Options if request.form == TargetForm::Asterisk || answers_options_here(request) => {
            BuiltinVerdict::Synth(200)
        }
        Method::Purge if may_purge() => BuiltinVerdict::Purge,
        Method::Purge => BuiltinVerdict::PurgeRefused,
        _ if received.upgrade => BuiltinVerdict::Pipe,
        Method::Get | Method::Head => BuiltinVerdict::Pass(WhyPassed::Body),
        _ => BuiltinVerdict::Pass(WhyPassed::Method),
    }
}

/// RFC 9110 §7.6.2: an OPTIONS that may not be forwarded any further is answered by who has it.
fn answers_options_here(request: &Request<'_>) -> bool {
    request.fields.get(FieldName::MaxForwards) == Some(b"0")
}
