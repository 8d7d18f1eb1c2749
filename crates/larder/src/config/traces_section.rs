//! `[traces]`: trace context that is handed on, which exchanges are told of, and where that goes.

use std::sync::Arc;

use http::{HeaderName, HeaderValue, Uri};
use proxy::settings::{ExportedLogs, TraceSettings};
use toml::de::DeValue;

use super::complaint::Complaint;
use super::section::{Node, Section, as_switch, choice, duration, parsed, switch, text, wrong_type};
use crate::plan::Plan;
use crate::trace_collector::TraceCollector;

/// Behind the address of a collector (OTLP 1, "OTLP/HTTP Request").
const TRACES_PATH: &str = "/v1/traces";
const LOGS_PATH: &str = "/v1/logs";
const ENDPOINT_FORM: &str = "http://HOST:PORT; a collector beside larder speaks TLS with who is further away";

pub fn read(mut section: Section<'_>, plan: &mut Plan) {
    let mut traces = TraceSettings::default();
    if let Some(millionths) = section.read("sample", sample) {
        traces.sample_millionths = millionths;
    }
    let slow = section.read("slow", duration);
    traces.slow_micros = slow.map(|slow| slow.as_micros().try_into().unwrap_or(u64::MAX));
    if let Some(errors) = section.read("errors", switch) {
        traces.errors = errors;
    }
    if let Some(read) = section.read("logs", logs) {
        traces.logs = read;
    }
    let endpoint = section.read("endpoint", |node| parsed(node, "address of a collector", ENDPOINT_FORM, endpoint));
    let service_name = section.read("service_name", |node| text(node).map(str::to_owned));
    let headers = headers(&mut section);
    let propagates = section.read("propagate", switch).unwrap_or(false);
    plan.trace_collector = endpoint.map(|[traces, logs]| {
        let service_name = service_name.unwrap_or_else(|| plan.settings.server_name.clone());
        TraceCollector { traces, logs, headers, service_name }
    });
    traces.exports = plan.trace_collector.is_some();
    plan.settings.traces = (propagates || traces.exports).then(|| Arc::new(traces));
    section.end();
}

/// What is said in front of the paths, as those of traces and of logs.
fn endpoint(written: &str) -> Option<[Uri; 2]> {
    let base = written.trim_end_matches('/');
    let base = base.strip_suffix(TRACES_PATH).unwrap_or(base);
    let url = |path: &str| -> Option<Uri> {
        let url: Uri = format!("{base}{path}").parse().ok()?;
        let is_plain = url.scheme_str() == Some("http") && url.query().is_none();
        let authority = url.authority()?;
        (is_plain && !authority.host().is_empty() && !authority.as_str().contains('@')).then_some(url)
    };
    Some([url(TRACES_PATH)?, url(LOGS_PATH)?])
}

fn logs(node: Node<'_>) -> Result<ExportedLogs, Complaint> {
    match as_switch(node) {
        Some(true) => Ok(ExportedLogs::All),
        Some(false) => Ok(ExportedLogs::None),
        None => choice(node, &[("errors", ExportedLogs::Errors)]),
    }
}

/// Names and values.
fn headers(section: &mut Section<'_>) -> Vec<(HeaderName, HeaderValue)> {
    let Some(table) = section.section("headers") else { return Vec::new() };
    let read = |(name, span, node): (&str, _, Node<'_>)| {
        let complaint = |what: String| Complaint::new(span, what, "it cannot be sent");
        let value = text(node).and_then(|value| {
            let mut value = HeaderValue::from_str(value)
                .map_err(|_| Complaint::new(node.span(), "this is no value of a header", "it cannot be sent"))?;
            value.set_sensitive(true);
            Ok(value)
        });
        let name = name.parse::<HeaderName>().map_err(|_| complaint(format!("`{name}` is no name of a header")));
        match (name, value) {
            (Ok(name), Ok(value)) => Some((name, value)),
            (Err(wrong), _) | (_, Err(wrong)) => {
                table.complaints().add(wrong);
                None
            }
        }
    };
    table.entries().filter_map(read).collect()
}

/// A part of one, in millionths, or nothing.
fn sample(node: Node<'_>) -> Result<u64, Complaint> {
    let share = match node.get_ref() {
        DeValue::Float(share) => share.as_str().parse::<f64>().ok(),
        DeValue::Integer(share) => share.as_str().parse::<f64>().ok(),
        _ => return Err(wrong_type(node, "a share, such as 0.01")),
    };
    let share = share.filter(|share| (0.0..=1.0).contains(share));
    share.map(|share| (share * TraceSettings::WHOLE as f64).round() as u64).ok_or_else(|| {
        Complaint::new(node.span(), "the share is out of range", "must be 0 to 1: 0.01 is every hundredth")
    })
}

#[cfg(test)]
mod tests {
    use super::super::read as read_config;
    use super::*;

    fn plan(text: &str) -> Plan {
        read_config(text).unwrap_or_else(|wrong| panic!("{wrong:?}"))
    }

    fn sample(text: &str) -> Option<u64> {
        plan(text).settings.traces.map(|traces| traces.sample_millionths)
    }

    #[test]
    fn trace_context_is_handed_on_where_that_is_said() {
        assert_eq!((sample(""), sample("[traces]\nsample = 1\n")), (None, None));
        assert_eq!(sample("[traces]\npropagate = true\n"), Some(10_000));
        for (share, expect) in [("1", 1_000_000), ("0", 0), ("0.5", 500_000), ("1e-9", 0)] {
            assert_eq!(sample(&format!("[traces]\npropagate = true\nsample = {share}\n")), Some(expect), "{share}");
        }
    }

    #[test]
    fn spans_go_where_the_endpoint_is() {
        let plan = plan(
            "server_name = \"edge\"\n[traces]\nendpoint = \"http://127.0.0.1:4318\"\nslow = \"250ms\"\nerrors = false\n\
             headers = { Authorization = \"Bearer x\" }\n",
        );
        let expect =
            TraceSettings { exports: true, slow_micros: Some(250_000), errors: false, ..TraceSettings::default() };
        assert_eq!(plan.settings.traces.as_deref(), Some(&expect));
        let collector = plan.trace_collector.unwrap();
        assert_eq!(
            (
                collector.traces.to_string().as_str(),
                collector.logs.to_string().as_str(),
                collector.service_name.as_str()
            ),
            ("http://127.0.0.1:4318/v1/traces", "http://127.0.0.1:4318/v1/logs", "edge")
        );
        assert_eq!(collector.headers.len(), 1);
        assert!(!format!("{collector:?}").contains("Bearer"), "it is nobody's business");
    }

    #[test]
    fn an_endpoint_may_have_a_path() {
        for (written, expect) in [
            ("http://a:4318/", "http://a:4318/v1/traces"),
            ("http://a/otlp", "http://a/otlp/v1/traces"),
            ("http://a/v1/traces", "http://a/v1/traces"),
            ("http://[::1]:4318", "http://[::1]:4318/v1/traces"),
        ] {
            let logs = expect.replace("/v1/traces", "/v1/logs");
            assert_eq!(endpoint(written).map(|[_, url]| url.to_string()), Some(logs));
            assert_eq!(endpoint(written).map(|[url, _]| url.to_string()).as_deref(), Some(expect));
        }
        for wrong in ["", "a:4318", "https://a", "http://", "http://u:p@a", "http://a?b", "grpc://a:4317", "http://a b"]
        {
            assert_eq!(endpoint(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn log_records_are_a_switch_or_those_of_errors() {
        let of = |line: &str| {
            plan(&format!("[traces]\nendpoint = \"http://a\"\n{line}\n")).settings.traces.map(|traces| traces.logs)
        };
        assert_eq!((of(""), of("logs = false")), (Some(ExportedLogs::None), Some(ExportedLogs::None)));
        assert_eq!((of("logs = true"), of("logs = \"errors\"")), (Some(ExportedLogs::All), Some(ExportedLogs::Errors)));
        let wrong = read_config("[traces]\nlogs = \"error\"\n").expect_err("it is a word that there is not");
        assert!(format!("{wrong:?}").contains("errors"), "{wrong:?}");
    }

    fn check(line: &str, expect: &str) {
        let wrong = read_config(&format!("[traces]\n{line}\n")).expect_err(line);
        assert_eq!(wrong.iter().map(|complaint| complaint.what.as_str()).collect::<Vec<_>>(), [expect], "{line}");
    }

    #[test]
    fn what_cannot_be_is_refused() {
        check("sample = 1.5", "the share is out of range");
        check("sample = -0.1", "the share is out of range");
        check("sample = nan", "the share is out of range");
        check("sample = \"1%\"", "expected a share, such as 0.01, found a string");
        check("endpoint = \"https://a\"", "`https://a` is no address of a collector");
        check("headers = { \"a b\" = \"x\" }", "`a b` is no name of a header");
        check("headers = { a = \"x\\ny\" }", "this is no value of a header");
    }
}
