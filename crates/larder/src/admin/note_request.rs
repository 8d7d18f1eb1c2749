//! `POST /notes?text=TEXT`: an operator's note in the history, such as the deploy of an application, which larder does not see.
//!
//! Whether somebody may write one is judged before, in `admin_request`.

use message::{Method, Request};
use serde_json::json;

use super::history::{AnnotationKind, History};
use super::vcl_requests::{NotVcl, VclReply, query_value};
use crate::limits::ANNOTATION_BYTES_MAX;

/// The text that is to be noted, on one line.
pub fn text_of(request: &Request<'_>) -> Result<String, NotVcl> {
    match (request.path, request.method) {
        (b"/notes", Method::Post) => {
            let text = query_value(request.query, "text").map(|text| text.trim().to_owned());
            let fits = |text: &String| {
                !text.is_empty() && text.len() <= ANNOTATION_BYTES_MAX && !text.contains(|c: char| c.is_control())
            };
            text.filter(fits).ok_or(NotVcl::Refused(400, "write ?text=TEXT: one line of UTF-8, 120 bytes at most"))
        }
        (b"/notes", _) => Err(NotVcl::Refused(405, "this path takes POST")),
        _ => Err(NotVcl::Elsewhere),
    }
}

pub fn act(text: &str, history: &History) -> VclReply {
    history.annotate(AnnotationKind::Note, text);
    VclReply { status: 200, body: format!("{}\n", json!({ "noted": text })) }
}

#[cfg(test)]
mod tests {
    use message::Scheme;
    use wire::limits::HeadLimits;
    use wire::read_request;

    use super::*;

    fn check(line: &str, expect: Result<&str, u16>) {
        let (mut spans, head) = (Vec::new(), format!("{line} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
        let received = read_request(head.as_bytes(), &mut spans, &HeadLimits::REQUEST, Scheme::Http).unwrap().unwrap();
        let found = text_of(&received.request).map_err(|refused| match refused {
            NotVcl::Refused(status, why) => {
                assert!(status != 400 || why.contains(&ANNOTATION_BYTES_MAX.to_string()), "{why}");
                status
            }
            NotVcl::Elsewhere => 404,
        });
        assert_eq!(found.as_deref(), expect.as_ref().map(|text| *text), "{line}");
    }

    #[test]
    fn a_note_is_one_line_that_fits() {
        check("POST /notes?text=shop%204.2%20is%20out", Ok("shop 4.2 is out"));
        check("POST /notes?text=%20%C3%A4%20", Ok("ä"));
        for bad in ["", "?text=", "?text=%20", "?text=a%0Ab", "?text=%1b%5b2J", "?text=%ff", "?note=x"] {
            check(&format!("POST /notes{bad}"), Err(400));
        }
        check(&format!("POST /notes?text={}", "x".repeat(ANNOTATION_BYTES_MAX + 1)), Err(400));
        check("GET /notes?text=x", Err(405));
        check("POST /note?text=x", Err(404));
    }
}
