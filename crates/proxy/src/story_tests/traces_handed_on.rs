//! What origins are told of traces.

use super::*;
use crate::settings::{EsiPages, TraceSettings};

const CLIENT_S: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn traced(settings: &mut Settings) {
    settings.traces = Some(Arc::new(TraceSettings { sample_millionths: TraceSettings::WHOLE }));
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
