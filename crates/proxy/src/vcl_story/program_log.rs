//! What a program says of a transaction, and why one failed.

use vcl::LogKind;

use crate::stderr_line::complain;
use crate::vcl_story::program_scope::{Scope, Side};

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
        // Into what is told of the exchange.
        LogKind::Program | LogKind::Acl | LogKind::Notice | LogKind::Mistake => {
            if scope.core.shared.tells_exchanges() {
                note_text(scope, text.as_bytes());
            }
        }
        LogKind::System(priority) => say_for_program(scope, priority, &text),
        LogKind::Timestamp | LogKind::Debug => {}
    }
}

fn note_text(scope: &Scope<'_>, text: &[u8]) {
    match scope.side {
        Side::Client(state) => state.log_notes.get_or_init(Default::default).note_text(text),
        Side::Fetch(state) => {
            if let Some(notes) = &state.log_notes {
                notes.note_text(text);
            }
        }
    }
}

/// What std.syslog says, on stderr.
fn say_for_program(scope: &Scope<'_>, priority: i64, text: &str) {
    let mut allowance = scope.core.syslogged.get();
    let (may, left_out) = allowance.take(scope.now.mono_ms / 1_000);
    scope.core.syslogged.set(allowance);
    if left_out > 0 {
        complain(format_args!("vcl: {left_out} more lines of std.syslog in a second (SYSLOG_LINES_PER_SECOND_MAX)"));
    }
    if may {
        complain(format_args!("vcl: <{priority}> {}", text.escape_debug()));
    }
}

/// On stderr, once a second at most and core: who sends requests must not fill the operator's disk.
fn say(scope: &Scope<'_>, what: std::fmt::Arguments<'_>) {
    let now_s = scope.now.mono_ms / 1_000 + 1;
    if scope.core.complained_s.replace(now_s) != now_s {
        complain(format_args!("vcl: {what}"));
    }
}
