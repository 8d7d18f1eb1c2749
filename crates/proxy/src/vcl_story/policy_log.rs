//! What a program says of a transaction, and why one failed.

use vcl::LogKind;

use crate::service::complain;
use crate::vcl_story::policy_scope::{Scope, Side};

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
            say(
                scope,
                format_args!("request {xid}: {} (all are counted in larder_vcl_errors_total)", text.escape_debug()),
            );
        }
        // Nobody reads them yet; the request log of its own command will.
        LogKind::Program | LogKind::Acl => {}
        LogKind::System(priority) => say(scope, format_args!("<{priority}> {}", text.escape_debug())),
        LogKind::Timestamp => {}
    }
}

/// On stderr, once a second at most and core: who sends requests must not fill the operator's disk.
fn say(scope: &Scope<'_>, what: std::fmt::Arguments<'_>) {
    let now_s = scope.now.mono_ms / 1_000 + 1;
    if scope.core.complained_s.replace(now_s) != now_s {
        complain(format_args!("vcl: {what}"));
    }
}
