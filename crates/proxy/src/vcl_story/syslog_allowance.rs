//! How many lines std.syslog may write.

use crate::limits::SYSLOG_LINES_PER_SECOND_MAX;

/// The lines of std.syslog that one core may write in a second: who sends requests must not fill the operator's disk.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SyslogAllowance {
    second: u64,
    asked: u32,
}

impl SyslogAllowance {
    /// May one more line be written now? Also how many were left out before, said once, when a later second begins.
    pub(crate) fn take(&mut self, second: u64) -> (bool, u32) {
        let mut left_out = 0;
        if self.second != second {
            left_out = self.asked.saturating_sub(SYSLOG_LINES_PER_SECOND_MAX);
            *self = SyslogAllowance { second, asked: 0 };
        }
        self.asked = self.asked.saturating_add(1);
        (self.asked <= SYSLOG_LINES_PER_SECOND_MAX, left_out)
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
