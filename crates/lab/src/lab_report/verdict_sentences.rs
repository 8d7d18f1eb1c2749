//! What a run has shown, as sentences: which server is better than which, in what, by how much, beyond the noise.
//!
//! The verdicts on single rows come with the results; here they are only summed up for each pair of servers. No
//! sentence says "faster" where the results say that no difference was shown.

use super::cell_words::{change, counted, percent};
use crate::results::{Bound, Colour, Difference, LabResults, Metric, Verdict};

/// The sentences, the most general first.
pub fn sentences(results: &LabResults) -> Vec<String> {
    let mut out = Vec::new();
    if results.smoke {
        out.push("A smoke run: fewer and shorter blocks than a publication needs.".to_owned());
    }
    if results.interrupted {
        out.push("The run was interrupted: some cells were not reached.".to_owned());
    }
    out.extend(client_bound(results));
    let mut pairs: Vec<(&str, &str)> = Vec::new();
    for difference in &results.differences {
        let pair = (difference.server.as_str(), difference.against.as_str());
        let copy = results.servers.iter().any(|s| s.name == pair.0 && s.twin_of.is_some());
        if !copy && !pairs.contains(&pair) {
            pairs.push(pair);
        }
    }
    for (server, against) in pairs {
        let of_pair = |metric| {
            results.differences.iter().filter(move |d| d.metric == metric && d.server == server && d.against == against)
        };
        let parts: Vec<String> = Metric::ALL.iter().filter_map(|&metric| summed_up(metric, of_pair(metric))).collect();
        if !parts.is_empty() {
            out.push(format!("{server} against {against}: {}.", parts.join("; ")));
        }
    }
    out.extend(broken(results));
    out
}

/// How large a difference must be before it says anything, by metric.
pub fn noise_floor(results: &LabResults, metric: Metric) -> Option<f64> {
    results.noise.iter().filter(|noise| noise.metric == metric).map(|noise| noise.gap).reduce(f64::max)
}

fn summed_up<'a>(metric: Metric, differences: impl Iterator<Item = &'a Difference>) -> Option<String> {
    let differences: Vec<_> = differences.collect();
    let ranked = differences.iter().filter(|d| d.verdict != Verdict::NotRanked).count();
    let mut parts = Vec::new();
    for (verdict, word) in [(Verdict::Better, "better"), (Verdict::Worse, "worse")] {
        let mut ratios: Vec<f64> =
            differences.iter().filter(|d| d.verdict == verdict).map(|d| d.ratio.median).collect();
        ratios.sort_by(f64::total_cmp);
        if let (Some(&least), Some(&most)) = (ratios.first(), ratios.last()) {
            let range =
                if ratios.len() == 1 { change(least) } else { format!("{} … {}", change(least), change(most)) };
            parts.push(format!("{word} in {} of {} ({range})", ratios.len(), counted(ranked, "row")));
        }
    }
    let none = differences.iter().filter(|d| d.verdict == Verdict::NoDifferenceShown).count();
    if parts.is_empty() && none > 0 {
        parts.push(format!("no difference shown in {}", counted(none, "row")));
    }
    (!parts.is_empty()).then(|| format!("{} {}", metric.words(), parts.join(", ")))
}

/// The first thing that a reader of a small machine's report must know.
fn client_bound(results: &LabResults) -> Option<String> {
    let run = results.cells.iter().filter(|cell| cell.colour != Colour::White);
    let (bound, all) =
        run.fold((0_usize, 0_usize), |(bound, all), cell| (bound + usize::from(cell.bound == Bound::Client), all + 1));
    (bound > 0).then(|| {
        format!(
            "In {bound} of {all} cells ({}) our own client was the limit: they rank no throughput, only CPU for each \
             answer and latency at equal fixed rates.",
            percent(bound as f64 / all as f64)
        )
    })
}

fn broken(results: &LabResults) -> impl Iterator<Item = String> {
    results.servers.iter().filter_map(|server| {
        let bad = |cell: &&crate::results::Cell| {
            cell.server == server.name && matches!(cell.colour, Colour::Orange | Colour::Red)
        };
        let count = results.cells.iter().filter(bad).count();
        (count > 0).then(|| {
            format!(
                "{} failed too many requests in {} (orange or red): not ranked.",
                server.name,
                counted(count, "cell")
            )
        })
    })
}

#[cfg(test)]
mod tests {
    use super::super::example_results::example;
    use super::*;

    #[test]
    fn sentences_claim_no_more_than_the_verdicts() {
        let mut results = example();
        let all = sentences(&results).join("\n");
        assert!(all.contains("our own client was the limit"), "{all}");
        assert!(all.contains("nginx against larder"), "{all}");
        assert!(all.contains("CPU for each answer worse in"), "{all}");
        for difference in &mut results.differences {
            difference.verdict = Verdict::NoDifferenceShown;
        }
        let all = sentences(&results).join("\n");
        assert!(all.contains("no difference shown in 8 rows"), "{all}");
        assert!(!all.contains("better in") && !all.contains("worse in"), "{all}");
    }
}
