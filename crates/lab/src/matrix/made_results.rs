//! From what was measured to the results as they are written: cells, differences, noise and the warnings about the
//! whole run.

use std::collections::BTreeMap;

use crate::lab_report::cell_words::counted;
use crate::limits::{INTERVAL_VALUES_MIN, NOISE_FIT_MAX, NOISE_ROWS_NAMED_MAX};
use crate::matrix::cell_figures::{Judged, cell, white};
use crate::matrix::differences::{Party, difference, noise};
use crate::matrix::matrix_plan::Plan;
use crate::matrix::planned_rows::PlannedRow;
use crate::matrix::saved_run::SavedRun;
use crate::matrix::server_stage::Contestant;
use crate::results::{
    Cell, Difference, LabResults, Machine, MethodUsed, Metric, Noise, RESULTS_FORMAT, RowUsed, ServerUsed,
};

/// What does not change while a run goes on.
pub(crate) struct Told<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) method: &'a MethodUsed,
    pub(crate) machine: &'a Machine,
    pub(crate) origin: Option<&'a ServerUsed>,
}

pub(crate) fn results(told: &Told<'_>, contestants: &[Contestant], saved: &SavedRun) -> LabResults {
    let (plan, method) = (told.plan, told.method);
    let rows: Vec<RowUsed> = plan.rows.iter().map(|row| used(row, saved)).collect();
    let mut cells = Vec::new();
    let (mut differences, mut noises) = (Vec::new(), Vec::new());
    for (planned, row) in plan.rows.iter().zip(&rows) {
        let judged = |contestant: &Contestant| Judged {
            row,
            role: contestant.planned.profile.role,
            hot: planned.hot,
            seed: method.seed,
        };
        let of_row: Vec<Cell> = contestants
            .iter()
            .map(|contestant| {
                let name = &contestant.planned.name;
                let measured = saved.rows.get(&row.name).and_then(|row| row.servers.get(name));
                match (contestant.absence(planned), measured) {
                    (Some(why), _) => white(name, &row.name, why),
                    (None, None) => white(name, &row.name, "not reached".to_owned()),
                    (None, Some(measured)) => cell(name, &judged(contestant), measured),
                }
            })
            .collect();
        let parties: BTreeMap<&str, Party<'_>> = contestants
            .iter()
            .zip(&of_row)
            .map(|(contestant, cell)| (cell.server.as_str(), (cell, judged(contestant))))
            .collect();
        compare(told, contestants, &parties, &mut differences, &mut noises);
        drop(parties);
        cells.extend(of_row);
    }
    let mut warnings = saved.warnings.clone();
    warnings.extend(about(told, &noises));
    LabResults {
        format: RESULTS_FORMAT.to_owned(),
        title: plan.title.clone(),
        about: plan.about.clone(),
        smoke: plan.smoke,
        interrupted: !saved.is_finished,
        begun: saved.begun.clone(),
        elapsed_seconds: saved.elapsed_seconds,
        repeat: plan.repeat.clone(),
        lab_file: plan.lab_file.clone(),
        machine: told.machine.clone(),
        method: method.clone(),
        servers: contestants.iter().map(|contestant| contestant.used.clone()).collect(),
        origin: told.origin.cloned(),
        rows,
        cells,
        differences,
        noise: noises,
        warnings,
    }
}

fn used(row: &PlannedRow, saved: &SavedRun) -> RowUsed {
    let ceiling = saved.rows.get(&row.used.name).and_then(|row| row.null_ceiling_per_second);
    RowUsed { null_ceiling_per_second: ceiling, ..row.used.clone() }
}

/// Everybody in a row against the reference.
fn compare(
    told: &Told<'_>,
    contestants: &[Contestant],
    parties: &BTreeMap<&str, Party<'_>>,
    differences: &mut Vec<Difference>,
    noises: &mut Vec<Noise>,
) {
    let (method, reference) = (told.method, told.method.reference.as_str());
    let twin = contestants.iter().find(|contestant| contestant.planned.twin_of.as_deref() == Some(reference));
    let Some(one) = parties.get(reference) else { return };
    for metric in Metric::ALL {
        let again = twin.and_then(|twin| parties.get(twin.planned.name.as_str()));
        let between = again.and_then(|again| noise(metric, one, again, method.seed));
        for contestant in contestants {
            let name = contestant.planned.name.as_str();
            if name != reference && contestant.planned.twin_of.is_none() {
                let found = difference(metric, &parties[name], one, between.as_ref(), method.seed);
                differences.extend(found);
            }
        }
        noises.extend(between);
    }
}

fn about(told: &Told<'_>, noises: &[Noise]) -> Vec<String> {
    let (method, machine) = (told.method, told.machine);
    let mut warnings = Vec::new();
    if told.plan.smoke {
        warnings.push("smoke: fewer and shorter blocks than a publication needs".to_owned());
    }
    if method.blocks < INTERVAL_VALUES_MIN {
        warnings.push(format!("{} blocks show no difference: {INTERVAL_VALUES_MIN} at least", method.blocks));
    }
    if method.client_cpus.iter().any(|cpu| method.server_cpus.contains(cpu)) {
        warnings.push("load and servers share processors: rates say nothing here".to_owned());
    }
    if machine.steal_share > 0.02 {
        let percent = machine.steal_share * 100.0;
        warnings.push(format!("other guests of this host took {percent:.0} % of the processor time"));
    }
    let busy = machine.cpus as f64 * 0.5;
    if machine.load_before > busy {
        warnings.push(format!("the machine was not idle when it began: load {:.2}", machine.load_before));
    }
    warnings.extend(unfit(noises));
    warnings
}

/// The rows in which two copies of one server were too far apart: how many, and the worst few, each with its figures.
fn unfit(noises: &[Noise]) -> Option<String> {
    let mut far: Vec<&Noise> = noises.iter().filter(|noise| noise.gap > NOISE_FIT_MAX).collect();
    far.sort_by(|a, b| b.gap.total_cmp(&a.gap));
    let mut rows: Vec<(&str, Vec<String>)> = Vec::new();
    for noise in &far {
        let figure = format!("{} {:.0} %", noise.metric.words(), noise.gap * 100.0);
        match rows.iter_mut().find(|(row, _)| *row == noise.row) {
            Some((_, figures)) => figures.push(figure),
            None => rows.push((&noise.row, vec![figure])),
        }
    }
    let shown = rows.iter().take(NOISE_ROWS_NAMED_MAX);
    let shown: Vec<String> = shown.map(|(row, figures)| format!("{row} ({})", figures.join(", "))).collect();
    let which = if rows.len() > shown.len() { "the worst: " } else { "" };
    (!far.is_empty()).then(|| {
        format!(
            "the same server twice differed by more than {:.0} % in {} of {}, so this machine shows only what is larger \
             there; {which}{}",
            NOISE_FIT_MAX * 100.0,
            counted(far.len(), "figure"),
            counted(rows.len(), "row"),
            shown.join("; ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Estimate;

    fn check(gaps: &[(&str, Metric, f64)], expect: Option<&str>) {
        let noise = |&(row, metric, gap): &(&str, Metric, f64)| {
            let row = row.to_owned();
            Noise { row, metric, ratio: Estimate::default(), gap }
        };
        let noises: Vec<Noise> = gaps.iter().map(noise).collect();
        assert_eq!(unfit(&noises).as_deref(), expect);
    }

    #[test]
    fn what_is_too_noisy_is_said_by_row_in_people_s_words_and_not_at_length() {
        check(&[("a", Metric::P50, 0.05)], None);
        let one = "the same server twice differed by more than 5 % in 1 figure of 1 row, so this machine shows only what \
                   is larger there; a (CPU for each answer 21 %)";
        check(&[("a", Metric::ServerMicrosPerAnswer, 0.21), ("b", Metric::Goodput, 0.04)], Some(one));
        let many = "the same server twice differed by more than 5 % in 5 figures of 4 rows, so this machine shows only \
                    what is larger there; the worst: d (p99 105 %); b (p50 40 %, goodput 6 %); c (goodput 30 %)";
        let gaps = [
            ("a", Metric::Goodput, 0.1),
            ("b", Metric::Goodput, 0.06),
            ("b", Metric::P50, 0.4),
            ("c", Metric::Goodput, 0.3),
            ("d", Metric::P99, 1.05),
        ];
        check(&gaps, Some(many));
    }
}
