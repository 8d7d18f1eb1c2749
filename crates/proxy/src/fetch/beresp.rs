//! The origin's answer as a program first sees it: `beresp` in vcl_backend_response.

use message::{FieldName, Fields, ResponseHead, Status};
use wire::HopByHop;

/// An answer's head without what concerns only the connection it came on.
pub(crate) fn received_head(head: &ResponseHead) -> ResponseHead {
    let mut fields = HopByHop::end_to_end(head.fields.view());
    if let Some(length) = head.fields.view().get(FieldName::ContentLength) {
        // How long the body is, the program may know; to change it is not its business.
        fields.push(FieldName::ContentLength, length);
    }
    // What its sender says once over several lines is one list.
    collect(&mut fields, FieldName::CacheControl);
    collect(&mut fields, FieldName::Vary);
    ResponseHead { status: head.status, version: head.version, reason: head.reason.clone(), fields }
}

fn collect(fields: &mut Fields, name: FieldName) {
    if fields.view().get_all(name).count() > 1 {
        let all = fields.view().get_all(name).collect::<Vec<_>>().join(&b", "[..]);
        fields.set(name, all);
    }
}

/// What has no content has no length either, and Varnish takes nothing from who says otherwise.
pub(crate) fn says_body_of_204(head: &ResponseHead) -> bool {
    let fields = head.fields.view();
    let has_length = fields.get(FieldName::ContentLength).is_some_and(|length| length != b"0");
    head.status == Status(204) && (has_length || fields.contains(FieldName::TransferEncoding))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fetch::fetch_test_messages::{lines, response};

    #[test]
    fn a_program_sees_the_length_but_nothing_of_the_connection() {
        let answer = ["Connection: X-Hop", "X-Hop: 1", "Transfer-Encoding: chunked", "Content-Length: 5", "X-A: 1"];
        assert_eq!(lines(&received_head(&response(200, &answer)).fields), ["X-A: 1", "Content-Length: 5"]);
    }

    #[test]
    fn what_is_one_list_over_several_lines_is_one_line() {
        let answer = ["Cache-Control: a", "Vary: x", "Cache-Control: b", "Set-Cookie: 1", "Set-Cookie: 2", "Vary: y"];
        let got = lines(&received_head(&response(200, &answer)).fields);
        assert_eq!(got, ["Set-Cookie: 1", "Set-Cookie: 2", "Cache-Control: a, b", "Vary: x, y"]);
    }

    #[test]
    fn a_204_says_no_length_but_0() {
        let check = |status, line: &[&str], expect| assert_eq!(says_body_of_204(&response(status, line)), expect);
        check(204, &[], false);
        check(204, &["Content-Length: 0"], false);
        check(204, &["Content-Length: 5"], true);
        check(204, &["Transfer-Encoding: chunked"], true);
        check(200, &["Content-Length: 5"], false);
    }
}
