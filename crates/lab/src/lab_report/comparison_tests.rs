//! Two runs against each other: an altered copy of the example must show exactly what was altered.

use super::super::comparison_words::comparison_text;
use super::super::example_results::{HOSTILE, example};
use super::*;

/// What was done to the run after, and what must be said of it.
fn check(alter: impl Fn(&mut LabResults), threshold: f64, expect: &[(&str, Metric, Verdict)], failed: bool) -> String {
    let before = example();
    let mut after = before.clone();
    alter(&mut after);
    let comparison = compare(&before, &after, threshold);
    let shown = comparison.changes.iter().filter(|change| change.change != Verdict::NoDifferenceShown);
    let shown: Vec<_> = shown.map(|change| (change.server.as_str(), change.metric, change.change)).collect();
    assert_eq!(shown, expect);
    assert_eq!(comparison.failed, failed);
    comparison_text(&comparison)
}

/// The processor time of one server in the first row, times so much.
fn cost(results: &mut LabResults, server: &str, by: f64) {
    let cell = results.cells.iter_mut().find(|cell| cell.server == server).unwrap();
    cell.blocks.iter_mut().for_each(|block| block.server.cpu_seconds *= by);
}

const CPU: Metric = Metric::ServerMicrosPerAnswer;

#[test]
fn a_run_is_no_worse_than_itself() {
    let text = check(|_| {}, THRESHOLD_DEFAULT, &[], false);
    assert!(text.ends_with("ok: nothing became worse by more than 5.00 % and the noise\n"), "{text}");
}

#[test]
fn what_changed_is_found_with_its_direction() {
    let text = check(|r| cost(r, "nginx", 1.3), 0.05, &[("nginx", CPU, Verdict::Worse)], true);
    assert!(text.contains("+30 %") && text.contains("FAILED: 1 figure worse"), "{text}");
    check(|r| cost(r, "nginx", 0.7), 0.05, &[("nginx", CPU, Verdict::Better)], false);
    // Worse beyond the noise, and still allowed.
    check(|r| cost(r, "nginx", 1.3), 0.5, &[("nginx", CPU, Verdict::Worse)], false);
    let fewer = |r: &mut LabResults| {
        r.cells[0].blocks.iter_mut().for_each(|block| {
            block.good /= 2;
            block.server.cpu_seconds /= 2.0;
        });
    };
    check(fewer, 0.05, &[("larder", Metric::Goodput, Verdict::Worse)], true);
}

#[test]
fn noise_and_few_blocks_hide_what_they_may_explain() {
    let noisy = |r: &mut LabResults| {
        cost(r, "nginx", 1.3);
        r.noise.iter_mut().for_each(|noise| noise.gap = 0.5);
    };
    check(noisy, 0.0, &[], false);
    let few = |r: &mut LabResults| {
        cost(r, "nginx", 1.3);
        r.cells.iter_mut().for_each(|cell| cell.blocks.truncate(2));
    };
    check(few, 0.0, &[], false);
}

#[test]
fn a_server_that_answers_wrongly_now_is_worse_whatever_its_numbers() {
    let broken = |r: &mut LabResults| {
        r.cells[0].colour = Colour::Red;
        r.cells[0].comparable_in.clear();
        r.cells[0].why = vec![HOSTILE.to_owned()];
    };
    let text = check(broken, 1.0, &[], true);
    assert!(text.contains("was clean, is 10 % or more failed"), "{text}");
    assert!(!text.contains('\u{1b}'), "{text}");
}

/// As a cache that does not hold its pages any more: nothing fails, the colour stays, and its figures say nothing.
#[test]
fn a_cell_that_is_no_longer_comparable_fails_though_its_colour_stays() {
    let lost = |r: &mut LabResults| {
        r.cells[0].comparable_in.clear();
        r.cells[0].why = vec!["not all were hits: 12 requests reached the origin (3.000 %)".to_owned()];
    };
    let text = check(lost, 1.0, &[], true);
    assert!(text.contains("cannot be trusted any more\n  larder, "), "{text}");
    assert!(text.contains("is not any more, though it is clean. not all were hits: 12 requests"), "{text}");
    assert!(text.contains("FAILED: 0 figures worse") && text.contains("1 cell not to be trusted"), "{text}");
    // What was bounded by the client before and is not now, or the other way round, is as sound as it was.
    check(|r| r.cells[0].comparable_in.retain(|metric| *metric == CPU), 0.05, &[], false);
}

#[test]
fn what_stands_in_one_run_only_is_listed() {
    let text = check(
        |r| {
            r.cells.retain(|cell| cell.server != "squid");
            r.cells[0].server = "newer".to_owned();
            r.servers[0].version = "larder 9".to_owned();
            r.machine.kernel = "Linux 7".to_owned();
            r.rows[3].connections = 999;
        },
        0.05,
        &[],
        false,
    );
    for part in [
        "only before\n  larder, 6221 B, 1 connections",
        "  squid, ",
        "only after\n  newer, ",
        "the version of larder differs",
        "the kernel differs: 'Linux 6.1.0-18-amd64' before, 'Linux 7' after",
        "is another load now",
    ] {
        assert!(text.contains(part), "no {part:?} in\n{text}");
    }
}

#[test]
fn the_same_two_runs_say_the_same() {
    let (before, mut after) = (example(), example());
    cost(&mut after, "varnish", 1.1);
    assert_eq!(compare(&before, &after, 0.05), compare(&before, &after, 0.05));
}
