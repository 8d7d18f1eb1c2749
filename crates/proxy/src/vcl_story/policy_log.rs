//! What a program says of a transaction, and why one failed.

use vcl::LogKind;

use crate::limits::SYSLOG_LINES_PER_SECOND_MAX;
use crate::stderr_line::complain;
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
        // Into the request's line of the access log.
        LogKind::Program | LogKind::Acl => {
            if scope.core.shared.logs() {
                note_text(scope, text.as_bytes());
            }
        }
        LogKind::System(priority) => say_for_program(scope, priority, &text),
        LogKind::Timestamp => {}
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

/// The lines of std.syslog that one core may write in a second: who sends requests must not fill the operator's disk.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SyslogAllowance {
    second: u64,
    asked: u32,
}

impl SyslogAllowance {
    /// May one more line be written now? Also how many were left out before, said once, when a later second begins.
    fn take(&mut self, second: u64) -> (bool, u32) {
        let mut left_out = 0;
        if self.second != second {
            left_out = self.asked.saturating_sub(SYSLOG_LINES_PER_SECOND_MAX);
            *self = SyslogAllowance { second, asked: 0 };
        }
        self.asked = self.asked.saturating_add(1);
        (self.asked <= SYSLOG_LINES_PER_SECOND_MAX, left_out)
    }
}

/// On stderr, once a second at most and core: who sends requests must not fill the operator's disk.
fn say(scope: &Scope<'_>, what: std::fmt::Arguments<'_>) {
    let now_s = scope.now.mono_ms / 1_000 + 1;
    if scope.core.complained_s.replace(now_s) != now_s {
        complain(format_args!("vcl: {what}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_has_so_many_lines_and_the_next_says_what_was_left_out() {
        let mut allowance = SyslogAllowance::default();
        let mut written = |second, times: u32| {
            let taken: Vec<(bool, u32)> = (0..times).map(|_| allowance.take(second)).collect();
            let lines = taken.iter().filter(|(may, _)| *may).count();
            (lines, taken.iter().map(|(_, left_out)| left_out).sum::<u32>())
        };
        let max = SYSLOG_LINES_PER_SECOND_MAX;
        assert_eq!(written(0, 2), (2, 0));
        assert_eq!(written(7, max + 5), (max as usize, 0));
        assert_eq!(written(8, 3), (3, 5));
        assert_eq!(written(9, max), (max as usize, 0));
        assert_eq!(written(12, 1), (1, 0));
    }
}
