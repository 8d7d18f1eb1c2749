//! Tells the operator, on stderr, that something which is asked for answers is down and why, and that it is back: a line each. Who counts
//! failures, or probes, says every change here. One that changes too often gets a few lines and then one a minute; what was held back
//! is said when its minute comes, so that the last line is true in the end.

use std::fmt::Display;

use parking_lot::Mutex;

use crate::limits::NOTICES_AT_ONCE;
use crate::line_allowance::LineAllowance;
use crate::stderr_line::complain;

/// Of one address, one backend or one server. Times are those of any clock that only goes forward.
#[derive(Debug)]
pub(crate) struct HealthNotice {
    down: Option<Down>,
    /// Since when it is down by the last line; `None`: by that it is up.
    told_down_ms: Option<u64>,
    /// Changes since the last line.
    untold: u32,
    allowance: LineAllowance,
}

impl Default for HealthNotice {
    fn default() -> HealthNotice {
        HealthNotice { down: None, told_down_ms: None, untold: 0, allowance: LineAllowance::of(NOTICES_AT_ONCE) }
    }
}

#[derive(Debug)]
struct Down {
    since_ms: u64,
    why: String,
}

impl HealthNotice {
    /// It is down. The line for that, if it is to be said now.
    pub(crate) fn down(&mut self, now_ms: u64, why: impl FnOnce() -> String) -> Option<String> {
        if self.down.is_some() {
            return None;
        }
        self.down = Some(Down { since_ms: now_ms, why: why() });
        self.untold += 1;
        self.due(now_ms)
    }

    /// It is up again.
    pub(crate) fn up(&mut self, now_ms: u64) -> Option<String> {
        self.down.take()?;
        self.untold += 1;
        self.due(now_ms)
    }

    /// Since when it is down, and why, if it is.
    pub(crate) fn reason(&self) -> Option<(u64, String)> {
        self.down.as_ref().map(|down| (down.since_ms, down.why.clone()))
    }

    /// Is something other than the last line says, and not said yet?
    pub(crate) fn owes_line(&self) -> bool {
        self.down.is_some() != self.told_down_ms.is_some()
    }

    #[cfg(test)]
    pub(crate) fn is_told_down(&self) -> bool {
        self.told_down_ms.is_some()
    }

    /// What was held back, if its time has come.
    pub(crate) fn due(&mut self, now_ms: u64) -> Option<String> {
        if !self.owes_line() || !self.allowance.take(now_ms) {
            return None;
        }
        let mut line = match (&self.down, self.told_down_ms) {
            (Some(down), _) => format!("is down: {}", down.why),
            (None, since_ms) => {
                format!("is back after {} s", now_ms.saturating_sub(since_ms.unwrap_or(now_ms)) / 1_000)
            }
        };
        if self.untold > 1 {
            line.push_str(&format!("; it went down or came back {} times since the last line", self.untold));
        }
        (self.told_down_ms, self.untold) = (self.down.as_ref().map(|down| down.since_ms), 0);
        Some(line)
    }
}

/// Whom such lines are about, as the operator calls it: `origin "app"`. Nobody is told of what has no such name: the destinations
/// that strangers ask a proxy for, and what only plays an origin.
#[derive(Debug, Default)]
pub(crate) struct NoticeSubject(Mutex<Option<String>>);

impl NoticeSubject {
    /// A reload may give it another one.
    pub(crate) fn is_called(&self, name: String) {
        *self.0.lock() = Some(name);
    }

    /// `place`: which of its addresses.
    pub(crate) fn say(&self, place: impl Display, line: Option<String>) {
        let Some(line) = line else { return };
        if let Some(name) = &*self.0.lock() {
            complain(format_args!("{name} ({place}) {line}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::NOTICE_EVERY_MS;

    fn down(notice: &mut HealthNotice, now_ms: u64) -> Option<String> {
        notice.down(now_ms, || "refused".to_owned())
    }

    #[test]
    fn it_is_said_once_that_something_is_down_and_once_that_it_is_back() {
        let mut notice = HealthNotice::default();
        assert_eq!(notice.up(0), None, "it was never down");
        assert_eq!(down(&mut notice, 1_000).as_deref(), Some("is down: refused"));
        assert_eq!(down(&mut notice, 2_000), None);
        assert_eq!(notice.up(36_000).as_deref(), Some("is back after 35 s"));
        assert_eq!(notice.up(37_000), None);
        assert!(!notice.owes_line());
    }

    #[test]
    fn what_flaps_gets_a_few_lines_and_what_is_held_back_is_said_later() {
        let mut notice = HealthNotice::default();
        let lines: usize =
            (0..10).map(|n| usize::from(down(&mut notice, n).is_some()) + usize::from(notice.up(n).is_some())).sum();
        assert_eq!(lines, NOTICES_AT_ONCE as usize);
        assert_eq!(notice.due(20), None, "the last line says that it is up, and so it is");
        assert_eq!(down(&mut notice, 30), None);
        assert!(notice.owes_line());
        assert_eq!(notice.due(NOTICE_EVERY_MS - 1), None);
        let line = notice.due(NOTICE_EVERY_MS).expect("its minute has come");
        assert!(line.starts_with("is down: refused; it went down or came back 17 times"), "{line}");
        assert_eq!(notice.due(NOTICE_EVERY_MS * 9), None);
    }
}
