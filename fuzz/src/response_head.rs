//! Laws of `wire::read_response`, for any bytes. The first byte chooses the request that is answered.

use message::{FieldName, Method, Version};
use wire::{HeadLimits, ReceivedResponse, ResponseBody, read_response};

/// Panics when a law is broken.
pub fn run(data: &[u8]) {
    let Some((&choice, data)) = data.split_first() else { return };
    let method = [Method::Get, Method::Head, Method::Connect, Method::Post][usize::from(choice & 3)];
    let upgrade_sent = choice & 4 != 0;
    let mut spans = Vec::new();
    if let Ok(Some(received)) = read_response(data, &mut spans, &HeadLimits::RESPONSE, method, upgrade_sent) {
        check_accepted(data, &received);
        check_framing(&received, method, upgrade_sent);
    }
    let whole = outcome(data, method, upgrade_sent);
    let step = 1 + data.len() / 24;
    for end in (0..data.len()).step_by(step) {
        let early = outcome(&data[..end], method, upgrade_sent);
        assert!(early.is_none() || early == whole, "{end} of {}: {early:?}, then {whole:?}", data.len());
    }
    if whole.is_some() {
        let followed = [data, b"HTTP/1.1 200 OK\r\n\r\n"].concat();
        assert_eq!(outcome(&followed, method, upgrade_sent), whole, "what stands behind a head does not change it");
    }
}

fn outcome(data: &[u8], method: Method, upgrade_sent: bool) -> Option<String> {
    match read_response(data, &mut Vec::new(), &HeadLimits::RESPONSE, method, upgrade_sent) {
        Ok(received) => received.map(|received| {
            let fields: Vec<_> =
                received.response.fields.iter().map(|f| (f.name, f.name_text.to_vec(), f.value.to_vec())).collect();
            let ReceivedResponse { response, body, persistent, head_bytes } = received;
            format!("{:?} {:?} {body:?} {persistent} {head_bytes} {fields:?}", response.status, response.version)
        }),
        Err(refusal) => {
            assert_eq!(refusal.status, 502);
            Some(refusal.token.to_owned())
        }
    }
}

fn check_accepted(data: &[u8], received: &ReceivedResponse<'_>) {
    let head = &data[..received.head_bytes];
    assert!(head.ends_with(b"\r\n\r\n") && head.len() <= HeadLimits::RESPONSE.head_bytes_max);
    assert!(head.starts_with(b"HTTP/1."));
    assert_eq!(head.iter().filter(|b| **b == b'\r').count(), head.windows(2).filter(|w| *w == b"\r\n").count());
    assert_eq!(head.iter().filter(|b| **b == b'\n').count(), head.windows(2).filter(|w| *w == b"\r\n").count());
    assert!((100..1000).contains(&received.response.status.0));
    assert_eq!(&head[9..12], received.response.status.0.to_string().as_bytes());
    for field in received.response.fields.iter() {
        assert!(!field.name_text.is_empty() && field.name_text.is_ascii() && !field.name_text.contains(&b' '));
        assert!(field.value.iter().all(|b| *b == b'\t' || (*b >= b' ' && *b != 0x7f)));
        assert_eq!(field.value.trim_ascii(), field.value);
        assert_eq!(field.name, FieldName::classify(field.name_text));
    }
}

/// RFC 9112 §6.3, case by case, in the order in which it stands there.
fn check_framing(received: &ReceivedResponse<'_>, method: Method, upgrade_sent: bool) {
    let fields = received.response.fields;
    let status = received.response.status.0;
    let lengths: Vec<_> = fields.get_all(FieldName::ContentLength).collect();
    let codings: Vec<_> = fields.get_all(FieldName::TransferEncoding).collect();
    let bodiless = method == Method::Head || (status < 200 && status != 101) || status == 204 || status == 304;
    let expect = if status == 101 || (method == Method::Connect && (200..300).contains(&status)) {
        assert!(status != 101 || upgrade_sent, "an unasked switch is never accepted");
        ResponseBody::Tunnel
    } else if bodiless {
        ResponseBody::None
    } else if !codings.is_empty() {
        ResponseBody::Chunked
    } else if let [length] = lengths[..] {
        let digits = std::str::from_utf8(length).expect("digits");
        ResponseBody::Length(digits.parse().expect("a number"))
    } else {
        ResponseBody::UntilClose
    };
    assert_eq!(received.body, expect);
    assert!(lengths.len() <= 1 && codings.len() <= 1 && (lengths.is_empty() || codings.is_empty()));
    assert!(codings.is_empty() || received.response.version == Version::Http11);
    let closes = fields.has_token(FieldName::Connection, "close");
    let delimited = !matches!(received.body, ResponseBody::UntilClose | ResponseBody::Tunnel);
    assert!(!received.persistent || (delimited && !closes));
}
