//! By what a program finds a request: vcl_recv and vcl_hash run over it as over a client's, on a core that only looks. Nothing of the run
//! remains: bans and purges are left undone, and so is what modules keep for others (`Host::is_dry_run`).

use std::net::Ipv4Addr;
use std::rc::Rc;
use std::sync::Arc;

use cache::Key;
use message::{Request, RequestHead};
use vcl::subroutine_verdicts::{HashVerdict, RecvVerdict};

use crate::connection_addresses::ConnectionAddresses;
use crate::core::Core;
use crate::peer::Peer;
use crate::site::Site;
use crate::vcl_site::VclSite;
use crate::vcl_story::client_state::ClientState;
use crate::vcl_story::program_scope::{Scope, Side};
use crate::vcl_story::scope_heads::RequestHalf;
use crate::vcl_story::{client_steps, completed_request, xids};

/// By what it is found.
pub(crate) struct FoundBy {
    pub(crate) key: Key,
    /// As the program leaves it. What is fetched for it is stored with this URL.
    pub(crate) head: RequestHead,
}

/// What vcl_recv and vcl_hash said.
enum Said {
    Key(Key),
    /// The same, and that it is to be asked again.
    Restart(Key),
    Label(String),
}

/// `None`: the program fails, or leads nowhere.
pub(crate) fn of(core: &Core, site: &Site, program: &Arc<VclSite>, request: &Request<'_>) -> Option<FoundBy> {
    let addresses = Rc::new(ConnectionAddresses::without_socket(Ipv4Addr::LOCALHOST.into(), Peer::UNIX));
    let now_s = core.now().wall_ms as f64 / 1_000.0;
    let state_of = |program| ClientState::new(program, Rc::clone(&addresses), xids::next(&core.xids), now_s);
    let (mut state, mut left) = (state_of(Arc::clone(program)), None::<RequestHead>);
    // A label leads to another program, which may not lead on.
    let mut labels_left = 1;
    loop {
        let (said, head) = match &left {
            None => run(core, site, &state, request, true)?,
            Some(head) => run(core, site, &state, &head.request(), false)?,
        };
        match said {
            Said::Restart(_) if state.restarts.get() < site.settings.vcl.max_restarts => {
                state.restart(xids::next(&core.xids));
                left = Some(head);
            }
            Said::Key(key) | Said::Restart(key) => return Some(FoundBy { key, head }),
            Said::Label(label) => {
                if labels_left == 0 {
                    return None;
                }
                labels_left = 0;
                // With the request as it came.
                (state, left) = (state_of(state.vcl_site.labelled(&label)?), None);
            }
        }
    }
}

/// Once over it. `is_first`: it has not been completed.
fn run(
    core: &Core,
    site: &Site,
    state: &ClientState,
    request: &Request<'_>,
    is_first: bool,
) -> Option<(Said, RequestHead)> {
    let program = Arc::clone(&state.vcl_site);
    let arena = core.fresh_arena();
    let req = RequestHalf::of(request, &arena).ok()?;
    let mut scope = Scope::new(core, site, &arena, Side::Client(state), req, core.now());
    scope.original = Some(request.clone());
    if is_first {
        let peer = &state.addresses.peer;
        scope.completion = Some(peer);
        completed_request::complete_in_place(&scope.req.fields, &arena, request.fields, peer).ok()?;
    }
    let verdict = program.loaded.recv(&scope);
    let is_restart = match verdict {
        RecvVerdict::Vcl(label) => return Some((Said::Label(label.to_owned()), request.to_head())),
        RecvVerdict::Fail(_) => return None,
        RecvVerdict::Restart => true,
        _ => false,
    };
    client_steps::say_codings(&scope, &verdict);
    let HashVerdict::Lookup = program.loaded.hash(&scope) else { return None };
    let key = scope.take_key(state, &program.loaded);
    let said = if is_restart { Said::Restart(key) } else { Said::Key(key) };
    Some((said, scope.req.to_head(request)))
}
