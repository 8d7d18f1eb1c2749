//! A comparison of two runs as a person reads it: what became worse first, then better, then what nobody can say.

use std::fmt::Write;

use super::cell_words::{change_with_interval, colour_words, counted, metric_value, percent, plain};
use super::comparison::{CellChange, Comparison};
use crate::results::Verdict;

/// The whole comparison, ending in its verdict.
pub fn comparison_text(comparison: &Comparison) -> String {
    let mut out = format!("{} → {}\n\n", plain(&comparison.before), plain(&comparison.after));
    for warning in &comparison.warnings {
        let _ = writeln!(out, "warning: {}", plain(warning));
    }
    if !comparison.warnings.is_empty() {
        out.push('\n');
    }
    if !comparison.broken.is_empty() {
        let _ = writeln!(out, "cannot be trusted any more");
        for cell in &comparison.broken {
            let (was, is) = (colour_words(cell.before), colour_words(cell.after));
            let what = match was == is {
                true => format!("was comparable, and is not any more, though it is {is}"),
                false => format!("was {was}, is {is}"),
            };
            let (server, row, why) = (plain(&cell.server), plain(&cell.row), plain(&cell.why.join(" ")));
            let _ = writeln!(out, "  {server}, {row}: {what}. {why}");
        }
        out.push('\n');
    }
    for (kind, name) in [(Verdict::Worse, "worse"), (Verdict::Better, "better")] {
        group(&mut out, name, comparison.changes.iter().filter(|change| change.change == kind));
    }
    let same = comparison.changes.iter().filter(|change| change.change == Verdict::NoDifferenceShown).count();
    let _ = writeln!(out, "no difference shown in {}\n", counted(same, "figure"));
    alone(&mut out, "only before", &comparison.only_before);
    alone(&mut out, "only after", &comparison.only_after);
    let past = comparison.changes.iter().filter(|change| change.past_threshold).count();
    let threshold = percent(comparison.threshold);
    let _ = match comparison.failed {
        _ if comparison.changes.is_empty() && comparison.broken.is_empty() => {
            writeln!(out, "nothing was comparable: the runs share no cell that may be ranked")
        }
        true => writeln!(
            out,
            "FAILED: {} worse by more than {threshold} and the noise, {} not to be trusted any more",
            counted(past, "figure"),
            counted(comparison.broken.len(), "cell")
        ),
        false => writeln!(out, "ok: nothing became worse by more than {threshold} and the noise"),
    };
    out
}

fn group<'a>(out: &mut String, name: &str, changes: impl Iterator<Item = &'a CellChange>) {
    let mut changes = changes.peekable();
    if changes.peek().is_none() {
        return;
    }
    let _ = writeln!(out, "{name}");
    for change in changes {
        let value = |value| metric_value(change.metric, value);
        let _ = writeln!(
            out,
            "  {}, {}: {} {} → {}, {}, noise {}{}",
            plain(&change.server),
            plain(&change.row),
            change.metric.words(),
            value(change.before),
            value(change.after),
            change_with_interval(&change.ratio),
            percent(change.noise),
            if change.past_threshold { " !" } else { "" },
        );
    }
    out.push('\n');
}

fn alone(out: &mut String, name: &str, cells: &[String]) {
    if !cells.is_empty() {
        let _ = writeln!(out, "{name}");
        for cell in cells {
            let _ = writeln!(out, "  {}", plain(cell));
        }
        out.push('\n');
    }
}
