//! What would be won if larder had stored what it did not, for a reason: a cookie that could be stripped, a word of the origin's.

use serde_json::{Value, json};
use store::Ask;

use crate::load_tool::simulation::miss_curves::{Curve, Grid, curves};
use crate::load_tool::simulation::trace_file::Trace;
use crate::quantities::show_size;

/// Hits of all requests, with and without.
#[derive(Debug, PartialEq)]
pub struct WhatIf {
    reasons: Vec<String>,
    /// How many requests were not stored for them.
    requests_count: u64,
    /// In the largest memory tried, by the first order of eviction.
    memory_bytes: u64,
    order: &'static str,
    hit_ratio: f64,
    hit_ratio_as_it_was: f64,
}

impl WhatIf {
    /// `curves`: of the trace with them. `None`: nobody asked.
    pub fn of(trace: &Trace, grid: &Grid, with: &[Curve], reasons: &[String]) -> Option<WhatIf> {
        let requests_count = trace.would_be_stored.iter().filter(|would_be| **would_be).count() as u64;
        let (memory_bytes, with) = (*grid.sizes_bytes.last()?, with.first().filter(|_| requests_count > 0)?);
        let left_out: u64 = trace.not_stored.values().sum();
        let all = (trace.asks.len() as u64 + left_out) as f64;
        let as_it_was = Trace { asks: as_it_was(trace), objects: trace.objects, ..Trace::default() };
        let one = Grid { kinds: vec![with.kind], sizes_bytes: vec![memory_bytes], ..grid.clone() };
        let missed_as_it_was = curves(&as_it_was, &one, |_| ()).first()?.misses.first()?.missed;
        Some(WhatIf {
            reasons: reasons.to_vec(),
            requests_count,
            memory_bytes,
            order: with.kind.name(),
            hit_ratio: (trace.asks.len() as u64 - with.misses.last()?.missed) as f64 / all,
            hit_ratio_as_it_was: (as_it_was.asks.len() as u64 - missed_as_it_was) as f64 / all,
        })
    }

    pub fn sentence(&self) -> String {
        format!(
            "\nwith the {} requests that were not stored for {}: {:.1} % of all from the store, in place of {:.1} % ({}, {})\n",
            self.requests_count,
            self.reasons.join(" or "),
            self.hit_ratio * 100.0,
            self.hit_ratio_as_it_was * 100.0,
            show_size(self.memory_bytes),
            self.order,
        )
    }

    pub fn as_json(&self) -> Value {
        json!({
            "reasons": self.reasons,
            "requests": self.requests_count,
            "memory_bytes": self.memory_bytes,
            "policy": self.order,
            "hit_ratio": self.hit_ratio,
            "hit_ratio_as_it_was": self.hit_ratio_as_it_was,
        })
    }
}

fn as_it_was(trace: &Trace) -> Vec<Ask> {
    let asks = trace.asks.iter().zip(&trace.would_be_stored);
    asks.filter(|(_, would_be)| !**would_be).map(|(ask, _)| *ask).collect()
}

#[cfg(test)]
mod tests {
    use store::EvictionKind;

    use super::*;

    #[test]
    fn what_was_not_stored_counts_as_a_miss_until_it_is() {
        let ask = |object| Ask { object, bytes: 10, at_s: 0 };
        let trace = Trace {
            asks: vec![ask(0), ask(0), ask(1), ask(1), ask(1)],
            objects: 2,
            would_be_stored: vec![false, false, true, true, true],
            not_stored: [("private".to_owned(), 5)].into(),
            ..Trace::default()
        };
        let grid =
            Grid { kinds: vec![EvictionKind::ALL[0]], sizes_bytes: vec![1 << 20], object_bytes: 100, ttl_s: None };
        let with = curves(&trace, &grid, |_| ());
        let what_if = WhatIf::of(&trace, &grid, &with, &["cookie".to_owned()]).unwrap();
        assert_eq!((what_if.requests_count, what_if.hit_ratio, what_if.hit_ratio_as_it_was), (3, 0.3, 0.1));
        assert!(
            what_if.sentence().contains("3 requests that were not stored for cookie: 30.0 % of all"),
            "{what_if:?}"
        );
        assert!(WhatIf::of(&Trace { would_be_stored: vec![], ..trace }, &grid, &with, &[]).is_none());
    }
}
