//! Laws of `wire::read_request`, for any bytes.

use message::{Authority, FieldName, FieldSpan, Method, Scheme, TargetForm, Version};
use wire::{HeadLimits, HopByHop, ReceivedRequest, Refusal, RequestBody, may_end_now, read_request};

const MARKER: &[u8] = b"GET /marker HTTP/1.1\r\nHost: t.test\r\n\r\n";

/// Panics when a law is broken.
pub fn run(data: &[u8]) {
    let mut spans = Vec::new();
    let whole = read(data, &mut spans);
    let meaning = whole.as_ref().map_or_else(refused, |received| received.as_ref().map(meaning));
    if let Ok(Some(received)) = &whole {
        check_accepted(data, received);
        check_forwarded(received);
    }
    check_pieces(data, meaning.as_deref());
    if meaning.is_some() {
        let followed = [data, MARKER].concat();
        assert_eq!(outcome(&followed), meaning, "what stands behind a head does not change it");
    }
}

fn read<'a>(data: &'a [u8], spans: &'a mut Vec<FieldSpan>) -> Result<Option<ReceivedRequest<'a>>, Refusal> {
    read_request(data, spans, &HeadLimits::REQUEST, Scheme::Http)
}

fn refused(refusal: &Refusal) -> Option<String> {
    assert!((400..600).contains(&refusal.status) && !refusal.token.is_empty());
    Some(format!("{} {}", refusal.status, refusal.token))
}

fn outcome(data: &[u8]) -> Option<String> {
    read(data, &mut Vec::new()).as_ref().map_or_else(refused, |received| received.as_ref().map(meaning))
}

/// All that a request says, so that two can be compared.
fn meaning(received: &ReceivedRequest<'_>) -> String {
    let request = &received.request;
    let fields: Vec<_> = request.fields.iter().map(|f| (f.name, f.name_text.to_vec(), f.value.to_vec())).collect();
    format!(
        "{:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {} {} {} {} {fields:?}",
        request.method_text,
        request.version,
        request.form,
        request.scheme,
        request.authority,
        request.path,
        request.query,
        received.body,
        received.persistent,
        received.expects_continue,
        received.upgrade,
        received.head_bytes,
    )
}

/// The outcome comes as soon as it can be known, and never changes: also when the reader is asked only where
/// `may_end_now` says that it is worth it.
fn check_pieces(data: &[u8], whole: Option<&str>) {
    let step = 1 + data.len() / 24;
    let mut seen = 0;
    let mut guarded = None;
    for end in (0..data.len()).step_by(step).chain([data.len()]) {
        let early = outcome(&data[..end]);
        assert!(early.is_none() || early.as_deref() == whole, "{end} of {}: {early:?}, then {whole:?}", data.len());
        if guarded.is_none() && (seen == 0 || may_end_now(&data[..end], seen, &HeadLimits::REQUEST)) {
            guarded = early;
            seen = end;
        }
    }
    assert!(guarded.is_none() || guarded.as_deref() == whole);
    if whole.is_some_and(|text| !text.starts_with(|c: char| c.is_ascii_digit())) {
        assert_eq!(guarded.as_deref(), whole, "a complete head is never overlooked");
    }
}

fn check_accepted(data: &[u8], received: &ReceivedRequest<'_>) {
    let request = &received.request;
    let head = &data[..received.head_bytes];
    assert!(head.ends_with(b"\r\n\r\n") && head.len() <= HeadLimits::REQUEST.head_bytes_max);
    let bare_line_feeds = head.iter().enumerate().filter(|(at, b)| **b == b'\n' && (*at == 0 || head[at - 1] != b'\r'));
    assert_eq!(bare_line_feeds.count(), 0);
    assert_eq!(head.iter().filter(|b| **b == b'\r').count(), head.iter().filter(|b| **b == b'\n').count());
    assert!(request.method_text.iter().all(|b| is_token_byte(*b)) && !request.method_text.is_empty());
    assert_eq!(request.method, Method::classify(request.method_text));
    assert!(request.path.iter().all(|b| (0x21..0x7f).contains(b) && !b"?#\\".contains(b)));
    assert!(request.query.unwrap_or_default().iter().all(|b| (0x21..0x7f).contains(b) && *b != b'#'));
    match request.form {
        TargetForm::Origin => assert!(request.path.starts_with(b"/") && request.method != Method::Connect),
        TargetForm::Absolute => {
            let whole_server = request.path == b"*" && request.method == Method::Options;
            assert!((request.path.starts_with(b"/") || whole_server) && request.method != Method::Connect);
        }
        TargetForm::Asterisk => assert!(request.path == b"*" && request.method == Method::Options),
        TargetForm::Authority => assert!(request.path.is_empty() && request.authority.port.is_some()),
    }
    assert_eq!(request.form == TargetForm::Authority, request.method == Method::Connect);
    assert!(!request.authority.host.iter().any(|b| b.is_ascii_uppercase() || b"@/?# ,".contains(b)));
    let hosts = request.fields.get_all(FieldName::Host).count();
    match request.version {
        Version::Http11 => assert_eq!(hosts, 1),
        Version::Http10 => assert!(hosts <= 1),
        Version::Http2 => unreachable!("heads of HTTP/2 are no text"),
    }
    assert!(!request.authority.host.is_empty() || (request.version == Version::Http10 && hosts == 0));
    for field in request.fields.iter() {
        assert!(!field.name_text.is_empty() && field.name_text.iter().all(|b| is_token_byte(*b)));
        assert!(field.value.iter().all(|b| *b == b'\t' || (*b >= b' ' && *b != 0x7f)));
        assert_eq!(field.value.trim_ascii(), field.value);
        assert_eq!(field.name, FieldName::classify(field.name_text));
    }
    check_framing(received);
}

/// The decision, taken again in the slow and obvious way.
fn check_framing(received: &ReceivedRequest<'_>) {
    let fields = received.request.fields;
    let lengths: Vec<_> = fields.get_all(FieldName::ContentLength).collect();
    let codings: Vec<_> = fields.get_all(FieldName::TransferEncoding).collect();
    match received.body {
        RequestBody::None => assert!(lengths.is_empty() && codings.is_empty()),
        RequestBody::Length(length) => {
            assert_eq!(lengths, [length.to_string().as_bytes()]);
            assert!(codings.is_empty());
        }
        RequestBody::Chunked => {
            assert!(lengths.is_empty() && codings.len() == 1 && codings[0].eq_ignore_ascii_case(b"chunked"));
            assert_eq!(received.request.version, Version::Http11);
        }
    }
    assert!(!received.upgrade || (received.body == RequestBody::None || received.body == RequestBody::Length(0)));
    assert!(!received.expects_continue || received.body != RequestBody::None);
    let closes = fields.has_token(FieldName::Connection, "close");
    let keeps = fields.has_token(FieldName::Connection, "keep-alive");
    assert_eq!(received.persistent, !closes && (keeps || received.request.version == Version::Http11));
    for lookalike in [&b"content_length"[..], b"transfer_encoding", b"x_forwarded_for"] {
        assert_eq!(fields.get_all_named(lookalike).count(), 0);
    }
}

/// A request generated from what was read is read as the same request.
fn check_forwarded(received: &ReceivedRequest<'_>) {
    let request = &received.request;
    if request.authority == Authority::EMPTY {
        return;
    }
    let mut out = request.method_text.to_vec();
    out.push(b' ');
    match request.form {
        TargetForm::Authority => request.authority.write_to(&mut out),
        _ => request.write_target(&mut out),
    }
    out.extend_from_slice(b" HTTP/1.1\r\nHost: ");
    request.authority.write_to(&mut out);
    let hops = HopByHop::of(request.fields);
    for field in request.fields.iter().filter(|field| field.name != FieldName::Host && !hops.drops(field)) {
        for part in [b"\r\n", field.name_text, b": ", field.value] {
            out.extend_from_slice(part);
        }
    }
    out.extend_from_slice(b"\r\n\r\n");
    if out.len() > HeadLimits::REQUEST.head_bytes_max {
        return;
    }
    let mut spans = Vec::new();
    let again = read(&out, &mut spans).expect("our own request is accepted").expect("and complete").request;
    assert_eq!((again.method_text, again.path, again.query), (request.method_text, request.path, request.query));
    // A whole URL goes on as a path and a Host field.
    let form = match (request.form, request.path) {
        (TargetForm::Absolute, b"*") => TargetForm::Asterisk,
        (TargetForm::Absolute, _) => TargetForm::Origin,
        (form, _) => form,
    };
    assert_eq!((again.form, &again.authority), (form, &request.authority));
    let end_to_end = |field: &message::Field<'_>| field.name != FieldName::Host && !hops.drops(field);
    let values = |fields: message::FieldsView<'_>| -> Vec<Vec<u8>> {
        fields.iter().filter(end_to_end).map(|field| [field.name_text, field.value].join(&b':')).collect()
    };
    assert_eq!(values(again.fields), values(request.fields));
}

fn is_token_byte(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b)
}
