//! Freshening a stored response from a 304 (RFC 9111 §3.2, §4.3.4) or from the answer to a HEAD (§4.3.5).

use message::{FieldName, Response, ResponseHead};

use crate::storing::{StoreDefaults, Withholding};

/// RFC 9111 §3.2: every field of the update replaces what is stored under its name; fields it does not name stay.
/// Content-Length, Content-Encoding and Content-Range stay what the stored body is; what may not be stored is not.
pub fn merge_304(stored: &mut ResponseHead, fresh: Response<'_>, defaults: &StoreDefaults) {
    let withholding = Withholding::of(fresh.fields, defaults);
    let updates =
        || fresh.fields.iter().filter(|field| !describes_stored_body(field.name) && !withholding.withholds(field));
    stored.fields.retain(|old| !updates().any(|new| new.name_text.eq_ignore_ascii_case(old.name_text)));
    for field in updates() {
        stored.fields.push_named(field.name_text, field.value);
    }
}

/// RFC 9111 §3.2 forbids updating Content-Length and lets a cache except the fields that say how its stored bytes
/// are to be read. Content-Type is not excepted: origins correct it.
const fn describes_stored_body(name: FieldName) -> bool {
    matches!(
        name,
        FieldName::ContentLength | FieldName::ContentEncoding | FieldName::ContentRange | FieldName::TransferEncoding
    )
}

/// What the answer to a HEAD means for a stored GET response that could have been chosen for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadEffect {
    /// Not a 200: nothing.
    None,
    /// It is the same representation: merge as from a 304.
    Update,
    /// It is another one by now: the stored response counts as stale.
    Invalidate,
}

/// RFC 9111 §4.3.5: validators and length that were received must be those that are stored. `stored_length` is the
/// length of the stored body.
pub fn head_effect(stored: Response<'_>, stored_length: u64, head: Response<'_>) -> HeadEffect {
    if head.status.0 != 200 || stored.status.0 != 200 {
        return HeadEffect::None;
    }
    let same = |name: FieldName| match head.fields.get(name) {
        Some(received) => stored.fields.get(name) == Some(received),
        None => true,
    };
    let same_length = match head.fields.get(FieldName::ContentLength) {
        Some(text) => std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()) == Some(stored_length),
        None => true,
    };
    if same(FieldName::Etag) && same(FieldName::LastModified) && same_length {
        HeadEffect::Update
    } else {
        HeadEffect::Invalidate
    }
}
