//! What origins are told of traces.

use super::*;
use crate::settings::{EsiPages, ExportedLogs, TraceSettings};
use crate::traces::export_queue::ExportSignal;

const CLIENT_S: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn traced(settings: &mut Settings) {
    settings.traces =
        Some(Arc::new(TraceSettings { sample_millionths: TraceSettings::WHOLE, ..TraceSettings::default() }));
}

fn told<'a>(reply: &'a Reply, at: usize, name: &str) -> &'a str {
    reply.asked[at].request.as_ref().and_then(|head| head.field(name)).unwrap_or_default()
}

/// Goes on with the client's trace, under another span.
#[track_caller]
fn goes_on(traceparent: &str) {
    assert_eq!((traceparent.len(), &traceparent[..36]), (55, &CLIENT_S[..36]), "{traceparent}");
    assert_ne!(traceparent[36..52], CLIENT_S[36..52]);
}

/// Begins another one.
#[track_caller]
fn begins(traceparent: &str) {
    let is_hex = |text: &str| text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    assert!(traceparent.len() == 55 && traceparent.starts_with("00-"), "{traceparent:?}");
    assert!(is_hex(&traceparent[3..35]) && is_hex(&traceparent[36..52]), "{traceparent}");
    assert_ne!(traceparent[3..35], CLIENT_S[3..35]);
}

fn of_client() -> [String; 2] {
    [format!("Traceparent: {CLIENT_S}"), "TraceState: a=1, b=2".to_owned()]
}

fn lines(all: &[String]) -> Vec<&str> {
    all.iter().map(String::as_str).collect()
}

#[test]
fn misses_and_passes_go_on_with_the_trace_of_their_client() {
    for story in [Story::with(traced), Story::vcl_with("", traced)] {
        for (path, caching) in [("/miss", "max-age=60"), ("/pass", "no-store")] {
            story.origin([answer(200, &[&format!("Cache-Control: {caching}")], "page")]);
            let ask = if path == "/pass" { "POST" } else { "GET" };
            let reply = story.ask(&format!("{ask} {path}"), &lines(&of_client()), "");
            goes_on(told(&reply, 0, "traceparent"));
            assert!(told(&reply, 0, "traceparent").ends_with("-01"));
            assert_eq!(told(&reply, 0, "tracestate"), "a=1,b=2");
        }
    }
}

#[test]
fn a_trace_begins_where_there_is_none_or_none_that_can_be_read() {
    let story = Story::with(traced);
    for traceparent in ["", CLIENT_S[1..].as_ref(), "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01"] {
        story.origin([answer(200, &["Cache-Control: no-store"], "page")]);
        let reply = story.get("/", &[&format!("Traceparent: {traceparent}"), "Tracestate: a=1"]);
        begins(told(&reply, 0, "traceparent"));
        assert_eq!(told(&reply, 0, "tracestate"), "", "it belongs to the trace that nobody could read");
    }
    let reply = story.get("/", &[]);
    begins(told(&reply, 0, "traceparent"));
}

#[test]
fn a_state_that_is_malformed_costs_no_trace() {
    let story = Story::with(traced);
    story.origin([fresh(60, "page")]);
    let reply = story.get("/", &[&format!("Traceparent: {CLIENT_S}"), "Tracestate: a=1", "Tracestate: B"]);
    goes_on(told(&reply, 0, "traceparent"));
    assert_eq!(told(&reply, 0, "tracestate"), "");
}

#[test]
fn without_the_setting_the_fields_are_as_all_others_are() {
    let story = Story::builtin();
    story.origin([fresh(60, "page")]);
    let reply = story.get("/", &lines(&of_client()));
    assert_eq!((told(&reply, 0, "traceparent"), told(&reply, 0, "tracestate")), (CLIENT_S, "a=1, b=2"));
    assert_eq!(story.get("/other", &[]).asked_with("traceparent"), None);
}

#[test]
fn a_refresh_behind_a_stale_answer_is_in_no_client_s_trace() {
    let story = Story::with(traced);
    story.origin([answer(200, &["Cache-Control: max-age=1, stale-while-revalidate=60"], "page")]);
    story.get("/", &[]);
    story.pass_seconds(10);
    let reply = story.get("/", &lines(&of_client()));
    assert_eq!(reply.asked().len(), 1, "it is refreshed meanwhile");
    begins(told(&reply, 0, "traceparent"));
    assert!(told(&reply, 0, "traceparent").ends_with("-00") && told(&reply, 0, "tracestate").is_empty());
}

#[test]
fn the_parts_of_a_page_are_in_its_trace() {
    let story = Story::with(|settings| {
        traced(settings);
        settings.esi.pages = EsiPages::All;
    });
    let page = "<esi:include src=\"/part\"/>";
    story.origin([answer(200, &["Content-Type: text/html", "Cache-Control: max-age=60"], page), fresh(60, "part")]);
    let reply = story.get("/", &lines(&of_client()));
    assert_eq!((reply.body(), reply.asked().len()), ("part", 2));
    (0..2).for_each(|at| goes_on(told(&reply, at, "traceparent")));
}

/// The spans that were made, once they are all told.
fn made(story: &Story) -> String {
    story.core.flush_log();
    let batch = story.core.shared.export_queue.take().unwrap_or_default();
    String::from_utf8(batch.records).unwrap()
}

fn exporting(change: impl FnOnce(&mut TraceSettings)) -> Story {
    let mut traces = TraceSettings { sample_millionths: 0, exports: true, ..TraceSettings::default() };
    change(&mut traces);
    Story::with(|settings| settings.traces = Some(Arc::new(traces)))
}

#[test]
fn an_origin_works_for_the_span_of_the_try_that_asks_it() {
    for program in [None, Some("")] {
        let traces = TraceSettings { sample_millionths: 1_000_000, exports: true, ..TraceSettings::default() };
        let with = |settings: &mut Settings| settings.traces = Some(Arc::new(traces));
        let story = match program {
            None => Story::with(with),
            Some(text) => Story::vcl_with(text, with),
        };
        story.keep_no_log();
        story.origin([fresh(60, "page")]);
        let reply = story.get("/a?sig=1", &lines(&of_client()));
        let traceparent = told(&reply, 0, "traceparent");
        let spans = made(&story);
        assert_eq!(spans.matches("\"traceId\":\"0af7651916cd43dd8448eb211c80319c\"").count(), 2, "{spans}");
        assert!(spans.contains("\"parentSpanId\":\"b7ad6b7169203331\""), "{spans}");
        let (server, client) = spans.split_once(",{\"traceId\"").unwrap();
        assert!(client.contains(&format!("\"spanId\":\"{}\"", &traceparent[36..52])), "{client}");
        assert!(client.contains("http://a.test/a?sig=REDACTED"), "{client}");
        let own = server.split("\"spanId\":\"").nth(1).unwrap();
        assert!(client.contains(&format!("\"parentSpanId\":\"{}\"", &own[..16])), "{spans}");
        story.get("/a?sig=1", &[]);
        let hit = made(&story);
        assert_eq!((hit.matches("traceId").count(), hit.contains("\"hit\"")), (1, true), "{hit}");
    }
}

#[test]
fn what_stands_out_is_told_of_though_it_is_not_sampled() {
    let story = exporting(|_| {});
    story.keep_no_log();
    story.origin([answer(200, &["Cache-Control: no-store"], "page"), answer(503, &[], "")]);
    assert_eq!((story.get("/", &[]).status(), made(&story)), (200, String::new()));
    let reply = story.get("/", &[]);
    let spans = made(&story);
    assert!(reply.status() == 503 && spans.matches("traceId").count() == 2, "{spans}");
    assert!(told(&reply, 0, "traceparent").ends_with("-00"), "nobody knew that it would fail");
    let story = exporting(|traces| traces.errors = false);
    story.origin([answer(503, &[], "")]);
    story.get("/", &[]);
    assert_eq!(made(&story), "");
    let story = exporting(|traces| traces.slow_micros = Some(0));
    story.origin([fresh(60, "page")]);
    story.get("/", &[]);
    story.get("/", &[]);
    assert_eq!(made(&story).matches("traceId").count(), 3, "a miss with its try, and a hit");
}

#[test]
fn while_nothing_is_exported_nothing_is_made() {
    let story = exporting(|traces| *traces = TraceSettings { exports: false, sample_millionths: 1_000_000, ..*traces });
    story.keep_no_log();
    assert!(!story.core.shared.tells_exchanges());
    story.origin([answer(503, &[], "")]);
    story.get("/", &[]);
    assert_eq!(made(&story), "");
    story.reload(|settings| {
        settings.traces = Some(Arc::new(TraceSettings { exports: true, ..TraceSettings::default() }))
    });
    assert!(story.core.shared.tells_exchanges());
    story.reload(|settings| settings.traces = None);
    assert!(!story.core.shared.tells_exchanges());
}

/// The log records that were made, and how many spans.
fn recorded(story: &Story) -> (String, u64) {
    story.core.flush_log();
    let (mut records, mut spans) = (String::new(), 0);
    while let Some(batch) = story.core.shared.export_queue.take() {
        match batch.signal {
            ExportSignal::Spans => spans += batch.count,
            ExportSignal::Logs => records.push_str(&String::from_utf8(batch.records).unwrap()),
        }
    }
    (records, spans)
}

#[test]
fn what_is_told_of_has_a_log_record_where_that_is_wanted() {
    for (logs, of_page, of_failure) in
        [(ExportedLogs::None, 0, 0), (ExportedLogs::Errors, 0, 1), (ExportedLogs::All, 1, 1)]
    {
        let story = exporting(|traces| {
            traces.sample_millionths = TraceSettings::WHOLE;
            traces.logs = logs;
        });
        story.keep_no_log();
        story.origin([answer(200, &["Cache-Control: no-store"], "page"), answer(503, &[], "")]);
        for (status, expect) in [(200, of_page), (503, of_failure)] {
            assert_eq!(story.get("/a", &[]).status(), status);
            let (records, spans) = recorded(&story);
            assert_eq!((records.matches("severityNumber").count(), spans), (expect, 2), "{logs:?}: {records}");
        }
    }
    let story = exporting(|traces| traces.logs = ExportedLogs::All);
    story.keep_no_log();
    story.origin([answer(200, &["Cache-Control: no-store"], "page")]);
    story.get("/a", &[]);
    assert_eq!(recorded(&story), (String::new(), 0), "what is not sampled has none either");
}
