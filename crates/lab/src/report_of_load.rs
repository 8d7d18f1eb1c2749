//! How a report describes the load, and what it says of sessions; the rest of the report is in `report`.

use serde_json::{Value, json};

use crate::report::{histogram_json, per_second};
use crate::session_tally::SessionTally;
use crate::workload::{Arrivals, Load, RatePlan, Workload};

/// Of the different numbers of answers that sessions had; all are in the JSON.
const LENGTHS_SHOWN: usize = 12;

/// For programs.
pub(crate) fn load_name(load: &Load) -> &'static str {
    match load {
        Load::Closed => "closed",
        Load::Open { .. } => "open",
        Load::Steps(_) => "steps",
        Load::Sessions { .. } => "sessions",
        Load::Replay { .. } => "replay",
    }
}

/// What a timetable of this load starts.
pub(crate) fn things_started(load: &Load) -> &'static str {
    match load {
        Load::Sessions { .. } => "sessions",
        Load::Closed | Load::Open { .. } | Load::Steps(_) | Load::Replay { .. } => "requests",
    }
}

pub(crate) fn load_description(workload: &Workload) -> String {
    match &workload.load {
        Load::Closed => format!("closed loop{}", pauses(workload)),
        load @ (Load::Open { .. } | Load::Steps(_)) => {
            format!("open loop, {}", load.rate_plan().as_ref().map(rates).unwrap_or_default())
        }
        Load::Sessions { count, starts, script } => {
            let calls = match script.templates_count() {
                1 => format!("{} calls each", script.calls_max()),
                templates => format!("of {templates} kinds, up to {} calls", script.calls_max()),
            };
            let starts = starts.as_ref().map_or_else(|| "one after another".to_owned(), rates);
            format!("{count} sessions, {calls}, {starts}")
        }
        Load::Replay { log, speed: 0.0 } => format!("closed loop in the order of a log of {} requests", log.len()),
        Load::Replay { log, speed } => {
            format!("replay of {} requests over {:.0} s, {speed} times as fast", log.len(), log.length_seconds())
        }
    }
}

fn rates(plan: &RatePlan) -> String {
    let how = match plan.arrivals {
        Arrivals::Constant => "evenly",
        Arrivals::Jitter => "with jitter",
        Arrivals::Poisson => "as Poisson",
    };
    let rates: Vec<String> = plan.per_second.iter().map(f64::to_string).collect();
    match rates.as_slice() {
        [one] => format!("{one}/s {how}"),
        several => format!("{}/s for {:?} each, {how}", several.join(", "), plan.step),
    }
}

fn pauses(workload: &Workload) -> String {
    let mut text = String::new();
    if !workload.ramp.is_zero() {
        text.push_str(&format!(" begun over {:?}", workload.ramp));
    }
    if !workload.think.is_zero() {
        text.push_str(&format!(", thinking 0 to {:?}", workload.think));
    }
    text
}

/// Labels and what stands behind them.
pub(crate) fn session_lines(sessions: &SessionTally, seconds: f64) -> Vec<(&'static str, String)> {
    let mean = |millis: &hdrhistogram::Histogram<u64>| match millis.len() {
        0 => "–".to_owned(),
        _ => format!("{:.3} s", millis.mean() / 1e3),
    };
    let cut = match sessions.cut() {
        0 => String::new(),
        cut => format!(", {cut} cut off by the end of the run"),
    };
    let lengths = || sessions.by_replies.iter().enumerate().filter(|&(_, &count)| count > 0);
    let shown: Vec<String> =
        lengths().take(LENGTHS_SHOWN).map(|(replies, count)| format!("{count} with {replies}")).collect();
    let shown = match lengths().count().saturating_sub(LENGTHS_SHOWN) {
        0 if shown.is_empty() => "–".to_owned(),
        0 => shown.join(", "),
        more => format!("{}, and {more} other numbers", shown.join(", ")),
    };
    vec![
        (
            "sessions",
            format!(
                "{:.2}/s, {} completed, {} failed{cut}",
                per_second(sessions.completed, seconds),
                sessions.completed,
                sessions.failed
            ),
        ),
        (
            "",
            format!(
                "completed after {} on average, failed after {}",
                mean(&sessions.lifetime_millis),
                mean(&sessions.failtime_millis)
            ),
        ),
        ("", format!("good answers of those that ended: {shown}")),
    ]
}

pub(crate) fn sessions_json(sessions: &SessionTally, seconds: f64) -> Value {
    json!({
        "begun": sessions.begun, "completed": sessions.completed, "failed": sessions.failed, "cut": sessions.cut(),
        "completed_per_second": per_second(sessions.completed, seconds),
        "lifetime_millis": histogram_json(&sessions.lifetime_millis),
        "failtime_millis": histogram_json(&sessions.failtime_millis),
        "by_replies": sessions.by_replies,
    })
}
