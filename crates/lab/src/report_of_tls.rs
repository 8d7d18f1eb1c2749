//! What a report says of TLS: handshakes, how many of them were resumed, and what was agreed. Their time is a row of its own among
//! the latencies, in none of the others but `from intended`, which holds all that a user waits for.

use serde_json::{Value, json};

use crate::handshake_tally::{Agreed, HandshakeTally};
use crate::report::{histogram_json, per_second};
use crate::tally::Tally;
use crate::tls_settings::TlsSettings;

/// Combinations of version, suite and group that are named; all are in the JSON.
const AGREED_SHOWN: usize = 4;

/// Labels and what stands behind them.
pub(crate) fn tls_lines(settings: &TlsSettings, tally: &Tally, seconds: f64) -> Vec<(&'static str, String)> {
    let none = HandshakeTally::default();
    let handshakes = tally.handshakes.as_deref().unwrap_or(&none);
    let HandshakeTally { made, resumed, retried, .. } = handshakes;
    let retried = if *retried > 0 { format!(", {retried} by a second hello") } else { String::new() };
    let percent = *resumed as f64 * 100.0 / (*made).max(1) as f64;
    let rate = per_second(*made, seconds);
    let mut lines =
        vec![("TLS", format!("{made} handshakes, {rate:.1}/s, {resumed} resumed ({percent:.1} %){retried}"))];
    for (agreed, count) in handshakes.agreed.iter().take(AGREED_SHOWN) {
        let Agreed { group, .. } = agreed;
        let group = group.map_or_else(String::new, |group| format!(", {group}"));
        lines.push(("", format!("{count} of {}, {}{group}", agreed.version_name(), agreed.suite_name())));
    }
    if settings.authorities.is_none() {
        lines.push(("", "whose certificates these are was not verified".to_owned()));
    }
    lines
}

pub(crate) fn tls_json(settings: &TlsSettings, tally: &Tally, seconds: f64) -> Value {
    let none = HandshakeTally::default();
    let handshakes = tally.handshakes.as_deref().unwrap_or(&none);
    let agreed = |(agreed, count): &(Agreed, u64)| {
        json!({
            "version": agreed.version_name(), "suite": agreed.suite_name(), "group": agreed.group, "count": count,
        })
    };
    json!({
        "verified": settings.authorities.is_some(),
        "resumption": settings.resume,
        "handshakes": handshakes.made,
        "handshakes_per_second": per_second(handshakes.made, seconds),
        "resumed": handshakes.resumed,
        "retried": handshakes.retried,
        "handshake_micros": histogram_json(&handshakes.micros),
        "agreed": handshakes.agreed.iter().map(agreed).collect::<Vec<_>>(),
    })
}
