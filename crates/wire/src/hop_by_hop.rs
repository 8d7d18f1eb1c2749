//! Which fields end at the next hop and are not forwarded (RFC 9110 §7.6.1).
//!
//! Built once per head that is forwarded or stored, before any field of ours is added: a client may nominate
//! `X-Forwarded-For` in `Connection`, and may only lose its own.

use message::{Field, FieldName, Fields, FieldsView};

/// Room for what is usually added to a head that is forwarded.
const ADDED_LINES: usize = 5;
const ADDED_BYTES: usize = 200;

/// The hop-by-hop fields of one head.
#[derive(Clone, Debug, Default)]
pub struct HopByHop<'a> {
    /// What `Connection` nominates, beyond the names that go anyway; almost always empty, and then not allocated.
    nominated: Vec<&'a [u8]>,
}

impl<'a> HopByHop<'a> {
    pub fn of(fields: FieldsView<'a>) -> HopByHop<'a> {
        let nominated = fields.members(FieldName::Connection).filter(|option| is_nominated(option));
        HopByHop { nominated: nominated.collect() }
    }

    /// Takes out of fields that are ours what `Connection` nominates, and nothing else.
    pub fn drop_nominated(fields: &mut Fields) {
        let nominated: Vec<Vec<u8>> = HopByHop::of(fields.view()).nominated.iter().map(|name| name.to_vec()).collect();
        if !nominated.is_empty() {
            fields.retain(|field| !nominated.iter().any(|name| field.name_text.eq_ignore_ascii_case(name)));
        }
    }

    /// A copy of the fields without those that are left out: what concerns more than one connection.
    pub fn end_to_end(fields: FieldsView<'_>) -> Fields {
        let hop_by_hop = HopByHop::of(fields);
        // Whoever forwards a head adds a few fields of its own.
        let mut kept = Fields::with_room(fields.count() + ADDED_LINES, fields.lines_bytes() + ADDED_BYTES);
        for field in fields.iter().filter(|field| !hop_by_hop.drops(field)) {
            kept.push_field(&field);
        }
        kept
    }

    /// Takes out of fields that are ours what is left out, without a copy.
    pub fn keep_end_to_end(fields: &mut Fields) {
        let nominates = HopByHop::of(fields.view()).nominated;
        if nominates.is_empty() {
            return fields.retain_names(|name| !drops_always(name));
        }
        let nominated: Vec<Vec<u8>> = nominates.iter().map(|name| name.to_vec()).collect();
        let hop_by_hop = HopByHop { nominated: nominated.iter().map(Vec::as_slice).collect() };
        fields.retain(|field| !hop_by_hop.drops(&field));
    }

    /// Must this field be left out of the forwarded message? Framing fields are always dropped: ours are generated.
    #[inline]
    pub fn drops(&self, field: &Field<'_>) -> bool {
        drops_always(field.name) || (!self.nominated.is_empty() && self.nominates(field.name_text))
    }

    #[cold]
    fn nominates(&self, name: &[u8]) -> bool {
        self.nominated.iter().any(|option| option.eq_ignore_ascii_case(name))
    }
}

/// Is this option of a `Connection` field the name of another field, which then is of one connection, too?
pub fn is_nominated(option: &[u8]) -> bool {
    let known = [&b"keep-alive"[..], b"close", b"upgrade", b"te"];
    !known.iter().any(|text| option.eq_ignore_ascii_case(text))
}

/// Proxy-Authorization is consumed by the first proxy that wants it (RFC 9110 §11.7.2): that is us, and so with the
/// origin's Proxy-Authenticate.
#[inline]
fn drops_always(name: FieldName) -> bool {
    matches!(
        name,
        FieldName::Connection
            | FieldName::KeepAlive
            | FieldName::ProxyConnection
            | FieldName::TransferEncoding
            | FieldName::ContentLength
            | FieldName::Te
            | FieldName::Trailer
            | FieldName::Upgrade
            | FieldName::Http2Settings
            | FieldName::ProxyAuthorization
            | FieldName::ProxyAuthenticate
            | FieldName::ProxyAuthenticationInfo
    )
}

#[cfg(test)]
mod tests {
    use message::Fields;

    use super::*;

    fn check(connection: &[&str], name: &str, expect: bool) {
        let mut fields = Fields::default();
        for line in connection {
            fields.push(FieldName::Connection, line);
        }
        fields.push_named(name.as_bytes(), b"v");
        let hops = HopByHop::of(fields.view());
        let field = fields.view().iter().last().expect("one was pushed");
        assert_eq!(hops.drops(&field), expect, "{connection:?} {name}");
    }

    #[test]
    fn the_names_of_the_rfc_go() {
        for name in ["connection", "Keep-Alive", "Proxy-Connection", "TE", "Trailer", "Transfer-Encoding", "Upgrade"] {
            check(&[], name, true);
        }
        for name in ["Proxy-Authorization", "Proxy-Authenticate", "Content-Length", "HTTP2-Settings"] {
            check(&[], name, true);
        }
        for name in ["Accept", "Authorization", "Host", "Via", "X-Own"] {
            check(&[], name, false);
        }
    }

    #[test]
    fn the_same_is_left_of_a_copy_and_in_place() {
        let mut fields = Fields::default();
        for (name, value) in
            [("Connection", "X-Own"), ("x-own", "1"), ("Via", "1.1 a"), ("TE", "trailers"), ("X-Other", "2")]
        {
            fields.push_named(name.as_bytes(), value.as_bytes());
        }
        let copy = HopByHop::end_to_end(fields.view());
        HopByHop::keep_end_to_end(&mut fields);
        let lines = |fields: &Fields| fields.view().iter().map(|it| (it.name, it.value.to_vec())).collect::<Vec<_>>();
        assert_eq!(lines(&fields), lines(&copy));
        assert_eq!(lines(&fields), [(FieldName::Via, b"1.1 a".to_vec()), (FieldName::Other, b"2".to_vec())]);
    }

    #[test]
    fn what_a_program_nominates_goes_and_nothing_else() {
        let mut fields = Fields::default();
        for (name, value) in
            [("Connection", "close, x-own, x-two"), ("X-OWN", "1"), ("X-Two", "3"), ("Trailer", "t"), ("Close", "2")]
        {
            fields.push_named(name.as_bytes(), value.as_bytes());
        }
        HopByHop::drop_nominated(&mut fields);
        let left: Vec<&[u8]> = fields.view().iter().map(|field| field.name_text).collect();
        assert_eq!(left, [&b"Connection"[..], b"Trailer", b"Close"]);
    }

    #[test]
    fn few_fields_are_copied_like_many() {
        assert_eq!(HopByHop::end_to_end(Fields::default().view()).view().count(), 0);
        let mut fields = Fields::default();
        fields.push(FieldName::Via, "1.1 a");
        assert_eq!(HopByHop::end_to_end(fields.view()).view().count(), 1);
    }

    #[test]
    fn what_connection_nominates_goes() {
        check(&["X-Own"], "x-own", true);
        check(&["close, X-Forwarded-For", "authorization"], "X-Forwarded-For", true);
        check(&["close, X-Forwarded-For", "authorization"], "Authorization", true);
        check(&["close, X-Forwarded-For"], "X-Forwarded-Host", false);
        check(&["keep-alive, TE, Upgrade"], "Accept", false);
    }

    #[test]
    fn the_usual_connection_field_allocates_nothing() {
        for value in ["keep-alive", "close", "Upgrade", "TE, close"] {
            let mut fields = Fields::default();
            fields.push(FieldName::Connection, value);
            assert_eq!(HopByHop::of(fields.view()).nominated.capacity(), 0, "{value}");
        }
    }
}
