//! Messages for tests of this folder, from the lines of their heads.

use message::{Fields, RequestHead, ResponseHead, Scheme, Status};
use wire::limits::HeadLimits;
use wire::read_request;

/// Each as `Name: value`.
pub(super) fn fields(lines: &[&str]) -> Fields {
    let mut fields = Fields::default();
    for line in lines {
        let (name, value) = line.split_once(": ").expect("a line is a name and a value");
        fields.push_named(name.as_bytes(), value.as_bytes());
    }
    fields
}

/// The lines again.
pub(super) fn lines(fields: &Fields) -> Vec<String> {
    let line =
        |name: &[u8], value: &[u8]| format!("{}: {}", String::from_utf8_lossy(name), String::from_utf8_lossy(value));
    fields.view().iter().map(|field| line(field.name_text, field.value)).collect()
}

pub(crate) fn response(status: u16, lines: &[&str]) -> ResponseHead {
    let mut head = ResponseHead::new(Status(status));
    head.fields = fields(lines);
    head
}

/// A request of `shop.test` for `/a`.
pub(crate) fn request(method: &str, lines: &[&str]) -> RequestHead {
    let lines = lines.iter().map(|line| format!("{line}\r\n")).collect::<String>();
    let text = format!("{method} /a HTTP/1.1\r\nHost: shop.test\r\n{lines}\r\n");
    let mut spans = Vec::new();
    let received = read_request(text.as_bytes(), &mut spans, &HeadLimits::REQUEST, Scheme::Http);
    received.expect("nothing is wrong with it").expect("it is whole").request.to_head()
}
