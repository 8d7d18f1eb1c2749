//! What a line of the access log says of the TLS that its request came by. In both formats it stands behind what is said of every
//! request, and only where larder itself spoke TLS.

use crate::limits::LOG_FIELD_BYTES_MAX;
use crate::log_texts::{escape_combined, escape_json};
use crate::tls_facts::TlsFacts;

/// ` tls=TLSv1.3 suite=TLS_AES_128_GCM_SHA256 alpn=h2 resumed=no sni="site.test" client-cert="Ann"`.
#[inline]
pub(crate) fn write_combined_tls(out: &mut Vec<u8>, facts: &TlsFacts) {
    for (name, word) in [
        (&b" tls="[..], facts.version),
        (b" suite=", &*facts.suite),
        (b" alpn=", facts.protocol.unwrap_or("-")),
        (b" resumed=", if facts.is_resumed { "yes" } else { "no" }),
    ] {
        out.extend_from_slice(name);
        out.extend_from_slice(word.as_bytes());
    }
    for (name, text) in [(&b" sni=\""[..], &facts.server_name), (b" client-cert=\"", &facts.client)] {
        let Some(text) = text else { continue };
        out.extend_from_slice(name);
        escape_combined(out, text.as_bytes(), LOG_FIELD_BYTES_MAX);
        out.push(b'"');
    }
}

/// `,"tls":{…}`.
#[inline]
pub(crate) fn write_json_tls(out: &mut Vec<u8>, facts: &TlsFacts) {
    out.extend_from_slice(b",\"tls\":{\"version\":\"");
    out.extend_from_slice(facts.version.as_bytes());
    out.extend_from_slice(b"\",\"suite\":\"");
    out.extend_from_slice(facts.suite.as_bytes());
    out.extend_from_slice(if facts.is_resumed { b"\",\"resumed\":true" } else { b"\",\"resumed\":false" });
    for (name, text) in [
        (&b",\"alpn\":\""[..], facts.protocol),
        (b",\"sni\":\"", facts.server_name.as_deref()),
        (b",\"client_cert\":\"", facts.client.as_deref()),
    ] {
        let Some(text) = text else { continue };
        out.extend_from_slice(name);
        escape_json(out, text.as_bytes(), LOG_FIELD_BYTES_MAX);
        out.push(b'"');
    }
    out.push(b'}');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> TlsFacts {
        TlsFacts {
            version: "TLSv1.3",
            suite: "TLS_AES_128_GCM_SHA256".into(),
            protocol: Some("h2"),
            is_resumed: false,
            server_name: Some("site.test".into()),
            client: Some("Ann \"B\"\n".into()),
        }
    }

    #[track_caller]
    fn check(facts: &TlsFacts, combined: &str, json: &str) {
        let (mut line, mut object) = (Vec::new(), Vec::new());
        write_combined_tls(&mut line, facts);
        write_json_tls(&mut object, facts);
        assert_eq!((line.as_slice(), object.as_slice()), (combined.as_bytes(), json.as_bytes()));
    }

    #[test]
    fn a_session_is_told_and_what_clients_chose_stays_in_its_quotes() {
        check(
            &facts(),
            " tls=TLSv1.3 suite=TLS_AES_128_GCM_SHA256 alpn=h2 resumed=no sni=\"site.test\" client-cert=\"Ann \\\"B\\\"\\x0a\"",
            ",\"tls\":{\"version\":\"TLSv1.3\",\"suite\":\"TLS_AES_128_GCM_SHA256\",\"resumed\":false,\"alpn\":\"h2\",\
             \"sni\":\"site.test\",\"client_cert\":\"Ann \\\"B\\\"\\u000a\"}",
        );
        let bare = TlsFacts { protocol: None, is_resumed: true, server_name: None, client: None, ..facts() };
        check(
            &bare,
            " tls=TLSv1.3 suite=TLS_AES_128_GCM_SHA256 alpn=- resumed=yes",
            ",\"tls\":{\"version\":\"TLSv1.3\",\"suite\":\"TLS_AES_128_GCM_SHA256\",\"resumed\":true}",
        );
    }
}
