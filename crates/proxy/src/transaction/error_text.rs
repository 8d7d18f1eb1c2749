//! What an error of ours says, and to whom: what failed, where, and which setting changes it is for the log and for the clients
//! of `[admin] details_to`. Strangers are told that it failed, and the number under which the log has the rest.

use std::borrow::Cow;

use message::{FieldName, FieldsView, Status};
use rules::{forwarded, media_range};

use crate::client_identity::ClientIdentity;
use crate::error_note::{ErrorNote, RequestId};
use crate::peer::Peer;
use crate::settings::Settings;

/// Who reads an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    /// One of `[admin] details_to`.
    Operator,
    Stranger {
        wants_html: bool,
        /// Under which the log has the rest.
        id: Option<RequestId>,
    },
}

impl Reader {
    /// Whoever sent these fields.
    pub(crate) fn of(
        settings: &Settings,
        client: &ClientIdentity,
        fields: FieldsView<'_>,
        note: Option<&ErrorNote>,
    ) -> Reader {
        if client.is_among(&settings.details_to) {
            return Reader::Operator;
        }
        let wants_html = media_range::prefers(fields, "text/html", "text/plain");
        Reader::Stranger { wants_html, id: note.map(|note| note.id) }
    }

    /// Whoever sent bytes that are no acceptable request. The fields of one cannot be read, but a proxy that speaks for somebody
    /// shows in them.
    pub(crate) fn of_refused(settings: &Settings, peer: Peer, bytes: &[u8], note: Option<&ErrorNote>) -> Reader {
        let client = ClientIdentity::of_peer(peer);
        let has = |name: &FieldName| {
            let name = name.canonical().as_bytes();
            bytes.windows(name.len()).any(|window| window.eq_ignore_ascii_case(name))
        };
        let is_relayed = settings.trusted_proxies.iter().any(|network| network.contains(peer.ip()))
            || forwarded::RELAY_FIELDS.iter().any(has);
        match is_relayed {
            true => Reader::Stranger { wants_html: false, id: note.map(|note| note.id) },
            false => Reader::of(settings, &client, FieldsView::default(), note),
        }
    }
}

/// A body, and its type.
pub(crate) struct ErrorText {
    pub(crate) kind: Cow<'static, str>,
    pub(crate) text: String,
}

const PLAIN: &str = "text/plain; charset=utf-8";

/// A sentence that whoever gets the answer may read.
pub(crate) fn said_to_all(status: u16, sentence: &str) -> ErrorText {
    ErrorText { kind: PLAIN.into(), text: format!("{status} {}\n\n{sentence}\n", Status(status).reason()) }
}

/// A sentence for operators, and what stands in its place for others.
pub(crate) fn said_to(reader: Reader, status: u16, sentence: &str) -> ErrorText {
    let Reader::Stranger { wants_html, id } = reader else { return said_to_all(status, sentence) };
    let (reason, short) = (Status(status).reason(), in_short(status));
    if !wants_html {
        let number = id.map(|id| format!("\nRequest id: {id}\n")).unwrap_or_default();
        return ErrorText { kind: PLAIN.into(), text: format!("{status} {reason}\n\n{short}\n{number}") };
    }
    let number = id.map(|id| format!("<p>Request id: <code>{id}</code></p>\n")).unwrap_or_default();
    let text = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{status} {reason}</title>\n\
         <h1>{status} {reason}</h1>\n<p>{short}</p>\n{number}</html>\n"
    );
    ErrorText { kind: "text/html; charset=utf-8".into(), text }
}

fn in_short(status: u16) -> &'static str {
    match status {
        401 | 407 => "This needs a name and a password.",
        403 | 405 => "This is not allowed here.",
        404 | 410 => "There is nothing at this address.",
        413 => "What was sent is too large.",
        429 => "There were too many requests. Please try again later.",
        400..=499 => "The request cannot be answered as it is.",
        500..=599 => "The site cannot answer at the moment. Please try again later.",
        _ => "There is no more to say about this.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INSIDES: &str = "origin \"b\" (127.0.0.1:3009): connect failed (limits.connect_timeout)";

    #[test]
    fn an_operator_reads_what_failed_and_a_stranger_a_number() {
        let id = Some(RequestId::of(0x2a));
        let to = |reader| said_to(reader, 502, INSIDES).text;
        assert_eq!(to(Reader::Operator), format!("502 Bad Gateway\n\n{INSIDES}\n"));
        for wants_html in [false, true] {
            let text = to(Reader::Stranger { wants_html, id });
            assert!(text.contains("502 Bad Gateway") && text.contains("000000000000002a"), "{text}");
            for inside in ["origin", "127.0.0.1", "limits", "connect"] {
                assert!(!text.contains(inside), "{inside}: {text}");
            }
            assert_eq!(text.starts_with("<!DOCTYPE html>"), wants_html);
        }
    }
}
