//! What a program says of a transaction, and why one failed.

use cache::Failure;
use vcl::LogKind;

use crate::service::complain;
use crate::vcl_story::policy_scope::{Scope, Side};
use crate::worker::Core;

/// A line of the program's, or about it.
pub(crate) fn note(scope: &Scope<'_>, kind: LogKind, text: &[u8]) {
    let counters = &scope.core.counters;
    let xid = match scope.side {
        Side::Client(state) => state.xid.get(),
        Side::Fetch(state) => state.xid.get(),
    };
    let text = String::from_utf8_lossy(text);
    match kind {
        LogKind::Error => {
            counters.vcl_errors.add(1);
            complain(format_args!("vcl: request {xid}: {}", text.escape_debug()));
        }
        // Nobody reads them yet; the request log of its own command will.
        LogKind::Program | LogKind::Acl => {}
        LogKind::System(priority) => complain(format_args!("vcl: <{priority}> {}", text.escape_debug())),
        LogKind::Timestamp => {}
    }
}

/// A fetch for a policy that found no answer: the program hears 503, the operator why.
pub(crate) fn failed_fetch(core: &Core, failure: &Failure) {
    core.counters.vcl_fetches_failed.add(1);
    let _ = failure;
}
