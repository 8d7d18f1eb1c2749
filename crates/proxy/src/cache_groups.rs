//! Cache groups (RFC 9875) as the store knows them: by the digest of a name and of the origin that used it, scheme, host
//! and port of the request. What the fields say, `rules` reads; what an invalidation does, `cache` does.

use cache::{Cache, Groups, Key};
use message::{FieldsView, Request};

use crate::url_variations::shape;

/// Tells digests of groups from keys of URLs.
const GROUP: u8 = 0x20;

/// The groups of a response to be stored. One that has too many is not stored, which `rules` see to.
pub(crate) fn of_response(cache: &Cache, request: &Request<'_>, response: FieldsView<'_>) -> Option<Groups> {
    let names = rules::groups::of_response(response).ok()?;
    Groups::new(names.iter().map(|name| key(cache, request, name)))
}

/// Invalidates groups of the request's origin.
pub(crate) fn invalidate(cache: &Cache, request: &Request<'_>, names: &[String]) {
    for name in names {
        cache.invalidate_group(key(cache, request, name));
    }
}

/// A group of the request's origin.
pub(crate) fn key(cache: &Cache, request: &Request<'_>, name: &str) -> Key {
    cache.key([&shape(request, GROUP), &*request.authority.host, name.as_bytes()])
}
