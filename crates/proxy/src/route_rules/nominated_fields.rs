//! Fields that a client says are for one connection alone (RFC 9110 §7.6.1). They go before a route puts anything in their place: else the client
//! could say so of what its route says.

use message::{FieldName, Fields, FieldsView};

/// Tokens of Connection that say something of the connection itself.
const OF_CONNECTION: [&[u8]; 5] = [b"close", b"keep-alive", b"upgrade", b"te", b"http2-settings"];

fn is_of_connection(token: &[u8]) -> bool {
    OF_CONNECTION.iter().any(|known| token.eq_ignore_ascii_case(known))
}

/// The fields without those, and a Connection that names none of them. `None`: none is named.
pub(crate) fn without_nominated(fields: FieldsView<'_>) -> Option<Fields> {
    if fields.members(FieldName::Connection).all(is_of_connection) {
        return None;
    }
    let (kept, named): (Vec<_>, Vec<_>) =
        fields.members(FieldName::Connection).partition(|token| is_of_connection(token));
    let mut left = Fields::default();
    let is_named = |name: &[u8]| named.iter().any(|token| name.eq_ignore_ascii_case(token));
    let others = fields.iter().filter(|field| field.name != FieldName::Connection && !is_named(field.name_text));
    others.for_each(|field| left.push_field(&field));
    if !kept.is_empty() {
        left.push(FieldName::Connection, kept.join(&b", "[..]));
    }
    Some(left)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_nominated_goes_with_its_nomination() {
        let mut fields = Fields::default();
        for (name, value) in
            [("Connection", "x-user, close"), ("X-User", "root"), ("Accept", "*/*"), ("Connection", "te")]
        {
            fields.push_named(name.as_bytes(), value.as_bytes());
        }
        let left = without_nominated(fields.view()).expect("a field is nominated");
        let lines: Vec<_> = left.view().iter().map(|field| (field.name_text.to_vec(), field.value.to_vec())).collect();
        let line = |name: &str, value: &str| (name.as_bytes().to_vec(), value.as_bytes().to_vec());
        assert_eq!(lines, [line("Accept", "*/*"), line("Connection", "close, te")]);
        assert!(without_nominated(left.view()).is_none());
    }
}
