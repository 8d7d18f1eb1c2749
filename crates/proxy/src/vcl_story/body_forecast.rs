//! Whether vcl_recv is going to ask for the request's body, found out before it runs.
//!
//! A subroutine never waits, so a body that it looks at has to be there when it begins; and whose body is not looked at must
//! not wait for it. So vcl_recv runs twice where it may want the body: first over this host, which does nothing and changes
//! nothing, up to the place where the body is asked for; then in earnest.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use vcl::subroutine_verdicts::RecvVerdict;
use vcl::typed_program::BackendId;
use vcl::{
    Arena, Fault, HeaderName, Health, Host, KeptName, LogKind, Message, Plain, ProxyField, Purge, Purged, Task,
    UnixPeer, VariableId, World,
};

use crate::transaction::Transaction;
use crate::vcl_site::VclSite;
use crate::vcl_story::client_state::ClientState;
use crate::vcl_story::program_scope::{Scope, Side};
use crate::vcl_story::scope_heads::RequestHalf;

/// How much of the request's body vcl_recv is going to ask for, if it is.
pub(crate) fn forecast_body(tx: &Transaction) -> Option<u64> {
    let state = tx.policy.program()?;
    let mut site = Arc::clone(&state.vcl_site);
    for labels_left in [1, 0] {
        if site.loaded.request_body_bytes_usual().is_none() && site.loaded.labels().is_empty() {
            return None;
        }
        match forecast(tx, state, &site)? {
            Forecast::Body(wanted) => return wanted,
            Forecast::Label(label) if labels_left == 1 => site = site.labelled(&label)?,
            Forecast::Label(_) => return None,
        }
    }
    None
}

enum Forecast {
    Body(Option<u64>),
    Label(String),
}

fn forecast(tx: &Transaction, state: &ClientState, site: &Arc<VclSite>) -> Option<Forecast> {
    let mut trial = ClientState::new(Arc::clone(site), Rc::clone(&state.addresses), state.xid.get(), state.started_s);
    trial.restarts = state.restarts.clone();
    trial.backend_hint = state.backend_hint.clone();
    let arena = tx.core.fresh_arena();
    let (request, program) = (tx.head.request(), &site.loaded);
    let mut scope = Scope::new(
        &tx.core,
        &tx.site,
        &arena,
        Side::Client(&trial),
        RequestHalf::of(&request, &arena).ok()?,
        tx.core.now(),
    );
    scope.request = Some(request.clone());
    scope.original = state.original.as_ref().map(|original| original.request());
    let host = ForecastHost::over(&scope, program.request_body_bytes_usual().unwrap_or_default());
    match program.recv(&host) {
        RecvVerdict::Vcl(label) => return Some(Forecast::Label(label.to_owned())),
        RecvVerdict::Fail(_) => {}
        _ => {
            program.hash(&host);
        }
    }
    Some(Forecast::Body(host.body_bytes_wanted()))
}

/// A run without consequences. The scope is over a state of its own, which is thrown away.
struct ForecastHost<'s, 'a> {
    scope: &'s Scope<'a>,
    /// What is asked for where nobody says how much.
    bytes_usual: u64,
    wanted: Cell<Option<u64>>,
}

impl<'s, 'a> ForecastHost<'s, 'a> {
    fn over(scope: &'s Scope<'a>, bytes_usual: u64) -> ForecastHost<'s, 'a> {
        ForecastHost { scope, bytes_usual, wanted: Cell::new(None) }
    }

    /// How much of the body is wanted, if it is.
    fn body_bytes_wanted(&self) -> Option<u64> {
        self.wanted.get()
    }
}

impl<'a> Host<'a> for ForecastHost<'_, 'a> {
    fn arena(&self) -> &'a Arena {
        self.scope.arena
    }

    fn task(&self) -> &Task {
        self.scope.task()
    }

    fn world(&self) -> &dyn World {
        self.scope.world()
    }

    fn is_dry_run(&self) -> bool {
        true
    }

    fn header(&self, of: Message, name: &HeaderName) -> Option<&'a [u8]> {
        self.scope.header(of, name)
    }

    fn header_lines(&self, of: Message, name: &HeaderName, each: &mut dyn FnMut(&'a [u8])) {
        self.scope.header_lines(of, name, each);
    }

    fn all_headers(&self, of: Message, each: &mut dyn FnMut(&'a [u8], &'a [u8])) {
        self.scope.all_headers(of, each);
    }

    fn set_header(&self, of: Message, name: KeptName<'a>, value: &'a [u8]) -> Result<(), Fault> {
        self.scope.set_header(of, name, value)
    }

    fn add_header(&self, of: Message, name: KeptName<'a>, value: &'a [u8]) -> Result<(), Fault> {
        self.scope.add_header(of, name, value)
    }

    fn unset_header(&self, of: Message, name: KeptName<'a>) {
        self.scope.unset_header(of, name);
    }

    fn rollback(&self, of: Message) -> Result<(), Fault> {
        self.scope.rollback(of)
    }

    fn variable(&self, of: VariableId) -> Plain<'a> {
        self.scope.variable(of)
    }

    fn set_variable(&self, of: VariableId, to: Plain<'a>) -> Result<(), Fault> {
        self.scope.set_variable(of, to)
    }

    fn unset_variable(&self, of: VariableId) -> Result<(), Fault> {
        self.scope.unset_variable(of)
    }

    fn hash_data(&self, _part: Option<&[u8]>) {}

    fn hash_data_ends(&self) {}

    fn synthetic(&self, _part: &'a [u8]) -> Result<(), Fault> {
        Ok(())
    }

    fn clear_synthetic(&self) {}

    fn ban(&self, _expression: &[u8]) -> Result<(), String> {
        Ok(())
    }

    fn purge(&self, _what: Purged<'_>, _how: Purge) -> Result<u64, Fault> {
        Ok(0)
    }

    fn log(&self, _kind: LogKind, _text: &[u8]) {}

    fn backend_health(&self, of: BackendId) -> Health {
        self.scope.backend_health(of)
    }

    fn request_body(&self) -> Option<&'a [u8]> {
        self.wanted.set(Some(self.wanted.get().unwrap_or(self.bytes_usual)));
        None
    }

    /// Nothing behind it has to be known.
    fn cache_request_body(&self, bytes_max: u64) -> Result<bool, Fault> {
        self.wanted.set(Some(bytes_max.min(vcl::limits::REQUEST_BODY_BYTES_MAX)));
        Err(Fault::new("the body is read first"))
    }

    fn unix_peer(&self) -> Option<UnixPeer> {
        self.scope.unix_peer()
    }

    fn storage(&self, name: &[u8], property: VariableId) -> Plain<'a> {
        self.scope.storage(name, property)
    }

    fn proxy_field(&self, of: ProxyField) -> Plain<'a> {
        self.scope.proxy_field(of)
    }
}
