//! What serving processes have said of their defects, and what was seen of their ends: kept for who comes after them, and read by nobody here.

use std::collections::VecDeque;

use crate::limits::{REPORT_BYTES_MAX, REPORTS_MAX};

/// The last of them, each a line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CrashReports(VecDeque<String>);

impl CrashReports {
    /// The oldest makes room. What is longer than a report may be is cut off, and line feeds are blanks.
    pub fn keep(&mut self, report: &str) {
        if self.0.len() == REPORTS_MAX {
            self.0.pop_front();
        }
        self.0.push_back(one_line(report));
    }

    /// From the oldest on.
    pub fn lines(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

fn one_line(report: &str) -> String {
    let end = report.floor_char_boundary(REPORT_BYTES_MAX);
    report[..end].chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_ones_are_kept_a_line_each_and_no_longer_than_they_may_be() {
        let mut reports = CrashReports::default();
        (0..REPORTS_MAX + 2).for_each(|number| reports.keep(&format!("report {number}\nof two lines")));
        let lines: Vec<&str> = reports.lines().collect();
        assert_eq!((lines.len(), lines[0]), (REPORTS_MAX, "report 2 of two lines"));
        reports.keep(&"é".repeat(REPORT_BYTES_MAX));
        let last = reports.lines().last().expect("it is kept");
        assert_eq!(last.len(), REPORT_BYTES_MAX);
        assert!(last.chars().all(|c| c == 'é'));
    }
}
