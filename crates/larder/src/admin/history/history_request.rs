//! `GET /history[?step=1|60][&since=SECOND]`: the rows and annotations after a second, as JSON. Anybody who reaches the address may look, as at
//! `/status`: there are numbers in it, and names of origins.
//!
//! Of many rows the oldest are told, and that there are more. Fields: `v`, 1; `now_s`; `step_s`; `columns`, the names of what stands in each of `rows`, in order; `more`, whether rows are left; `annotations` with `at_s`, `until_s`, `kind`,
//! `text` and `count`. A value that is not there is null. An annotation that counts on is told again.

use std::fmt::Write;

use message::{Method, Request};
use proxy::wall_now_ms;
use serde_json::json;

use super::History;
use super::history_columns::{NONE, names};
use super::history_ring::{HistoryRing, HistoryStep};
use crate::admin::vcl_requests::{NotVcl, VclReply, query_value};
use crate::limits::HISTORY_ROWS_TOLD_MAX;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryRequest {
    step: HistoryStep,
    since_s: u64,
}

impl HistoryRequest {
    pub fn of(request: &Request<'_>) -> Result<HistoryRequest, NotVcl> {
        if request.path != b"/history" {
            return Err(NotVcl::Elsewhere);
        }
        if !matches!(request.method, Method::Get | Method::Head) {
            return Err(NotVcl::Refused(405, "this path takes GET"));
        }
        let step = match query_value(request.query, "step").as_deref() {
            None | Some("1") => HistoryStep::Second,
            Some("60") => HistoryStep::Minute,
            Some(_) => return Err(NotVcl::Refused(400, "write ?step=1 for seconds, or ?step=60 for minutes")),
        };
        let since_s = query_value(request.query, "since").map_or(Ok(0), |since| since.parse());
        let since_s = since_s.map_err(|_| NotVcl::Refused(400, "write &since=N, in seconds since 1970"))?;
        Ok(HistoryRequest { step, since_s })
    }

    pub fn act(self, history: &History) -> VclReply {
        let body = history_json(&history.ring.lock(), &self, wall_now_ms() / 1_000);
        VclReply { status: 200, body }
    }
}

/// Written by hand: an hour is 170,000 numbers.
fn history_json(ring: &HistoryRing, asked: &HistoryRequest, now_s: u64) -> String {
    let rows = ring.rows(asked.step);
    let from = rows.partition_point(|row| row.at_s() <= asked.since_s);
    let columns = names().collect::<Vec<_>>().join("\",\"");
    let mut text = format!(
        "{{\"v\":1,\"now_s\":{now_s},\"step_s\":{},\"columns\":[\"{columns}\"],\"rows\":[",
        asked.step.seconds()
    );
    for (at, row) in rows.range(from..).take(HISTORY_ROWS_TOLD_MAX).enumerate() {
        text.push_str(if at == 0 { "[" } else { ",[" });
        for (column, value) in row.values.into_iter().enumerate() {
            if column > 0 {
                text.push(',');
            }
            // Writing into a String cannot fail.
            let _ = if value == NONE { write!(text, "null") } else { write!(text, "{value}") };
        }
        text.push(']');
    }
    let annotations = ring.annotations().iter().filter(|annotation| annotation.until_s >= asked.since_s);
    let annotations: Vec<_> = annotations
        .map(|annotation| {
            json!({
                "at_s": annotation.at_s,
                "until_s": annotation.until_s,
                "kind": annotation.kind.word(),
                "text": annotation.text,
                "count": annotation.count,
            })
        })
        .collect();
    let more = rows.len() - from > HISTORY_ROWS_TOLD_MAX;
    let _ = writeln!(text, "],\"more\":{more},\"annotations\":{}}}", json!(annotations));
    text
}

#[cfg(test)]
mod tests {
    use message::Scheme;
    use serde_json::Value;
    use wire::limits::HeadLimits;
    use wire::read_request;

    use super::super::annotation::{Annotation, AnnotationKind};
    use super::super::history_columns::{COLUMNS, HistoryRow};
    use super::*;

    fn asked(line: &str) -> Result<HistoryRequest, NotVcl> {
        let head = format!("{line} HTTP/1.1\r\nHost: a\r\n\r\n");
        let mut spans = Vec::new();
        let received = read_request(head.as_bytes(), &mut spans, &HeadLimits::REQUEST, Scheme::Http).unwrap().unwrap();
        HistoryRequest::of(&received.request)
    }

    #[test]
    fn a_request_says_how_fine_and_since_when() {
        let wanted = |step, since_s| Ok(HistoryRequest { step, since_s });
        assert_eq!(asked("GET /history"), wanted(HistoryStep::Second, 0));
        assert_eq!(asked("GET /history?step=60&since=17"), wanted(HistoryStep::Minute, 17));
        for (line, status) in [
            ("GET /history?step=7", 400),
            ("GET /history?since=x", 400),
            ("GET /history?since=-1", 400),
            ("POST /history", 405),
        ] {
            assert!(matches!(asked(line), Err(NotVcl::Refused(is, _)) if is == status), "{line}");
        }
        assert_eq!(asked("GET /historys"), Err(NotVcl::Elsewhere));
    }

    #[test]
    fn only_what_came_after_is_told() {
        let mut ring = HistoryRing::default();
        for at_s in 100..200 {
            let mut row = HistoryRow::sample(at_s);
            row.values[COLUMNS - 1] = NONE;
            ring.add(HistoryStep::Second, row);
        }
        ring.annotate(Annotation::new(120, AnnotationKind::Reload, ""));
        ring.annotate(Annotation::new(197, AnnotationKind::Out, "a\"<b>\u{202e}"));
        let text = history_json(&ring, &asked("GET /history?since=197").unwrap(), 300);
        let told: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(told["columns"].as_array().unwrap().len(), COLUMNS);
        let rows = told["rows"].as_array().unwrap();
        assert_eq!((rows.len(), &rows[0][0], &rows[1][0]), (2, &json!(198), &json!(199)));
        assert_eq!((&rows[0][COLUMNS - 1], rows[0].as_array().unwrap().len()), (&Value::Null, COLUMNS));
        assert_eq!(told["annotations"].as_array().unwrap().len(), 1);
        assert_eq!(told["annotations"][0]["text"], "a\"<b>\u{202e}");
        assert_eq!((&told["now_s"], &told["step_s"], &told["more"]), (&json!(300), &json!(1), &json!(false)));
    }

    #[test]
    fn an_hour_is_told_in_pieces_that_a_slow_line_can_take() {
        let mut ring = HistoryRing::default();
        (1..=3_600).for_each(|at_s| ring.add(HistoryStep::Second, HistoryRow::sample(at_s)));
        let (mut since_s, mut pieces, mut rows) = (0, 0, 0);
        loop {
            let text = history_json(&ring, &HistoryRequest { step: HistoryStep::Second, since_s }, 3_600);
            let told: Value = serde_json::from_str(&text).unwrap();
            let piece = told["rows"].as_array().unwrap();
            assert_eq!(piece[0][0], since_s + 1);
            since_s = piece[piece.len() - 1][0].as_u64().unwrap();
            (pieces, rows) = (pieces + 1, rows + piece.len());
            if told["more"] == false {
                break;
            }
        }
        assert_eq!((since_s, rows, pieces), (3_600, 3_600, 3_600usize.div_ceil(HISTORY_ROWS_TOLD_MAX)));
    }
}
