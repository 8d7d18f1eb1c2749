//! What ships beside larder and asks for its metrics: dist/alerts.yml and dist/grafana-dashboard.json. These tests hold both, and what the
//! pages of docs/ name, to the metrics and labels that there are.

use std::path::Path;

use super::metric_definition::{MetricDefinition, MetricKind};
use super::metric_rows::definitions;

fn text_of(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'
}

/// Words of a text that begin as metrics of ours do, each with what stands behind it.
fn metrics_in(text: &str) -> Vec<(&str, &str)> {
    let begins = text.match_indices("larder_").map(|(at, _)| at);
    let whole = begins.filter(|at| !text[..*at].ends_with(is_of_name));
    whole.map(|at| text[at..].split_at(text[at..].find(|c| !is_of_name(c)).unwrap_or(text.len() - at))).collect()
}

/// The metric of a word; of a histogram that of a series, too.
fn metric_of(word: &str) -> Option<MetricDefinition> {
    definitions().find(|definition| match definition.kind {
        MetricKind::Histogram => {
            word.strip_prefix(definition.name).is_some_and(|rest| ["_bucket", "_sum", "_count"].contains(&rest))
        }
        _ => word == definition.name,
    })
}

/// The labels that are asked for in `{…}` behind a metric.
fn labels_in(behind: &str) -> Vec<&str> {
    let Some(inside) = behind.strip_prefix('{').and_then(|rest| rest.split_once('}')) else { return Vec::new() };
    inside.0.split(',').filter_map(|matcher| matcher.split(['=', '!']).next()).map(str::trim).collect()
}

/// Complaints about an expression of PromQL.
fn wrong_in(expression: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    for (word, behind) in metrics_in(expression) {
        match metric_of(word) {
            None => wrong.push(format!("{word} is no metric")),
            Some(found) if found.alias_of.is_some() => wrong.push(format!("{word} is a former name")),
            Some(found) => {
                let known = |label: &&str| found.labels.iter().any(|own| own.name == *label);
                let others = labels_in(behind).into_iter().filter(|label| !known(label) && *label != "instance");
                wrong.extend(others.map(|label| format!("{word} has no label {label}")));
            }
        }
    }
    wrong
}

/// Every `expr` of a JSON document, wherever it stands.
fn expressions(value: &serde_json::Value, to: &mut Vec<String>) {
    match value {
        serde_json::Value::Object(map) => {
            to.extend(map.get("expr").and_then(|text| text.as_str()).map(str::to_owned));
            map.values().for_each(|value| expressions(value, to));
        }
        serde_json::Value::Array(all) => all.iter().for_each(|value| expressions(value, to)),
        _ => {}
    }
}

#[test]
fn wrong_names_and_labels_are_found() {
    assert_eq!(wrong_in("rate(larder_requests_total[5m])"), Vec::<String>::new());
    assert_eq!(wrong_in("larder_nothing"), ["larder_nothing is no metric"]);
    assert_eq!(wrong_in("larder_bytes_in_total"), ["larder_bytes_in_total is a former name"]);
    assert_eq!(wrong_in("larder_response_seconds"), ["larder_response_seconds is no metric"]);
    let label = "larder_responses_total{class=~\"hit\", instance=\"a\", origin!=\"b\"}";
    assert_eq!(wrong_in(label), ["larder_responses_total has no label origin"]);
}

#[test]
fn the_dashboard_asks_for_what_there_is() {
    let dashboard: serde_json::Value = serde_json::from_str(&text_of("dist/grafana-dashboard.json")).unwrap();
    let mut all = Vec::new();
    expressions(&dashboard, &mut all);
    assert!(all.len() > 30, "{all:#?}");
    for expression in &all {
        assert_eq!(wrong_in(expression), Vec::<String>::new(), "{expression}");
        assert!(!metrics_in(expression).is_empty(), "{expression}");
    }
    let mut ids: Vec<u64> = Vec::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        ids.push(panel["id"].as_u64().unwrap());
        let (x, w) = (panel["gridPos"]["x"].as_u64().unwrap(), panel["gridPos"]["w"].as_u64().unwrap());
        assert!(x + w <= 24, "{} lies outside of the page", panel["title"]);
        assert!(panel["type"] == "row" || panel["description"].as_str().is_some_and(|text| !text.is_empty()));
    }
    let panels = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), panels, "two panels have one id");
}

#[test]
fn alerts_and_their_tests_ask_for_what_there_is() {
    for path in ["dist/alerts.yml", "dist/alerts_test.yml"] {
        let text = text_of(path);
        assert!(metrics_in(&text).len() > 10, "{path}");
        for line in text.lines() {
            let named = wrong_in(line).into_iter().filter(|wrong| !wrong.ends_with("no label le"));
            assert_eq!(named.collect::<Vec<_>>(), Vec::<String>::new(), "{path}: {line}");
        }
    }
}

/// An alert without a case could wait for what never happens.
#[test]
fn each_alert_has_a_case() {
    let (alerts, cases) = (text_of("dist/alerts.yml"), text_of("dist/alerts_test.yml"));
    let names: Vec<&str> = alerts.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    assert!(names.len() > 10);
    for name in names {
        let fires = cases.contains(&format!("alertname: {name}\n        exp_alerts"));
        assert!(fires, "no case in dist/alerts_test.yml sees {name} fire");
    }
}
