//! What must hold of the process when a group's rows are done: the verdicts V1, V5 and V8 of the list. It knows
//! nothing of the rows.

use crate::lane::{Lane, PATIENCE_MS, Waited};
use crate::subject::Kind;

/// How much more memory may be resident than before the rows: what an allocator keeps, and small objects in store.
const GROWTH_KIB_MAX: u64 = 96 << 10;

/// What a row may or may not move.
#[derive(Debug)]
pub struct Counts {
    panics: Option<f64>,
    objects: Option<f64>,
}

impl Counts {
    pub fn of(lane: &Lane) -> Counts {
        let text = lane.subject.metrics();
        let value = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok());
        Counts { panics: value("larder_panics_total"), objects: value("larder_objects") }
    }

    /// V1 and V7 for one row: nothing panicked, and a refused input stored nothing.
    pub fn check(&self, lane: &Lane, is_refused: bool) -> Vec<String> {
        let mut failures = Vec::new();
        if lane.subject.kind != Kind::Larder {
            return failures;
        }
        let after = Counts::of(lane);
        if after.panics != self.panics {
            failures.push(format!("V1\n  because  panics went from {:?} to {:?}", self.panics, after.panics));
        }
        if is_refused && after.objects != self.objects {
            failures.push(format!("V7\n  because  objects went from {:?} to {:?}", self.objects, after.objects));
        }
        failures
    }
}

/// Checks panics, memory, open files and the log. Each failure is one text.
pub fn after_the_rows(lane: &mut Lane, rss_before_kib: u64) -> Vec<String> {
    let mut failures = Vec::new();
    if lane.subject.kind != Kind::Larder {
        return failures;
    }
    match lane.subject.metric("larder_panics_total") {
        Some(0.0) => {}
        other => failures.push(format!("V1 larder_panics_total is {other:?}; stderr: {}", lane.subject.errors())),
    }
    if lane.subject.errors().contains("panicked") {
        failures.push(format!("V1 a panic on standard error: {}", lane.subject.errors()));
    }
    let growth_kib = lane.subject.process_number("VmRSS").saturating_sub(rss_before_kib);
    if growth_kib > GROWTH_KIB_MAX {
        failures.push(format!("V5 the process has grown by {growth_kib} KiB, from {rss_before_kib} KiB"));
    }
    let open = |lane: &Lane| lane.subject.metric("larder_connections_active");
    let waited = lane.wait_until(&mut [], PATIENCE_MS, |lane, _| open(lane) == Some(0.0));
    if waited != Waited::Met {
        failures.push(format!("V5 {:?} client connections are still counted as open", open(lane)));
    }
    failures.extend(check_log(lane));
    failures
}

/// V8: lines of printable text, a reason in each refusal, and nothing that was a secret in a row.
fn check_log(lane: &mut Lane) -> Vec<String> {
    let Some(log) = lane.subject.log.clone() else { return Vec::new() };
    let read = || std::fs::read(&log).unwrap_or_default();
    let mut failures = Vec::new();
    if lane.wait_until(&mut [], PATIENCE_MS, |_, _| !read().is_empty()) != Waited::Met {
        failures.push("V8 the log is empty".to_string());
    }
    let bytes = read();
    let is_raw = |byte: &&u8| (**byte < b' ' && **byte != b'\n') || **byte >= 0x7f;
    if let Some(byte) = bytes.iter().find(is_raw) {
        failures.push(format!("V8 byte {byte:#04x} stands raw in the log"));
    }
    if crate::strict_head::find(&bytes, b"secret-of-the-user").is_some() {
        failures.push("V8 a password stands in the log".to_string());
    }
    let text = String::from_utf8_lossy(&bytes);
    if let Some(line) = text.lines().find(|line| line.contains("\" refused ") && line.ends_with(" -")) {
        failures.push(format!("V8 a refusal without a reason: {line}"));
    }
    failures
}
