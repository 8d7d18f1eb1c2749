//! What the access log and the records of Varnish's log say of a request, and of the end of its connection.

use super::*;

#[test]
fn a_status_that_a_range_makes_of_an_answer_is_recorded_behind_that_of_the_program() {
    let story = Story::recorded("");
    story.origin([fresh(60, "page")]);
    let whole = story.get("/", &[]);
    assert_eq!(whole.records_of_client("RespStatus"), ["RespStatus 200"]);
    let part = story.get("/", &["Range: bytes=0-1"]);
    assert_eq!((part.status(), part.body()), (206, "pa"));
    assert_eq!(part.records_of_client("RespStatus"), ["RespStatus 200", "RespStatus 206"]);
}

#[test]
fn who_fetches_is_stamped_so_and_who_waits_for_that_fetch_as_one_of_the_waiting_list() {
    let story = Story::recorded("");
    story.origin([fresh(60, "page")]);
    let reply = story.get("/alone", &[]);
    assert_eq!(reply.records_of_client("Timestamp Fetch").len(), 1);
    assert_eq!(reply.records_of_client("Timestamp Waitinglist").len(), 0);
    story.get_together("/together");
    let (_, records) = story.take_heard();
    let stamps =
        |text: &str| records.iter().filter(|(is_client_s, record)| *is_client_s && record.starts_with(text)).count();
    assert_eq!((stamps("Timestamp Fetch"), stamps("Timestamp Waitinglist")), (1, 1));
}

#[test]
fn the_end_of_a_connection_is_the_clients_the_answers_or_the_failing_programs() {
    let check = |text: &str, lines: &[&str], expect: (bool, &str)| {
        let story = Story::vcl(text);
        story.origin([fresh(60, "page")]);
        let (goes_on, why) = story.get("/", lines).ended.expect("it has ended");
        assert_eq!((goes_on, format!("{why:?}").as_str()), expect, "{text} {lines:?}");
    };
    check("", &[], (true, "Remote"));
    check("", &["Connection: close"], (false, "Request"));
    check("sub vcl_deliver { set resp.http.Connection = \"close\"; }", &[], (false, "Response"));
    check("sub vcl_recv { return (fail); }", &[], (false, "ProgramFailed"));
}

/// Visits are counted by the log: what makes no difference to the store, and what no origin is asked with, stands in it.
#[test]
fn the_log_says_what_was_asked_though_its_query_is_cut() {
    let story = Story::builtin();
    story.origin([fresh(60, "page")]);
    for (target, verdict) in [("/?utm_source=a&b=1", "miss"), ("/?b=1&utm_source=b", "hit"), ("/?b=1", "hit")] {
        let reply = story.get(target, &[]);
        let line = reply.log_lines.clone();
        assert!(
            line.contains(&format!("\"GET {target} HTTP/1.1\"")) && line.contains(&format!(" {verdict} ")),
            "{line}"
        );
    }
    let alone = story.get("/?utm_source=a", &[]);
    assert!(alone.log_lines.contains("\"GET /?utm_source=a HTTP/1.1\""), "{}", alone.log_lines);
    assert_eq!(alone.asked(), ["GET /"]);
}

#[test]
fn the_log_says_why_an_answer_that_a_program_would_store_is_hit_for_miss() {
    let story = Story::vcl("sub vcl_backend_response { set beresp.http.Vary = \"*\"; return (deliver); }");
    story.origin([fresh(60, "page")]);
    let line = story.get("/", &[]).log_lines;
    assert!(line.contains("hit-for-miss vary"), "{line}");
}
