//! Filters of bodies by the names that programs and Varnish's log have for them, and what a head says of a coding.

use coding::{Bounds, Coding};
use message::{FieldName, Fields, FieldsView, Status, list_members};

use crate::vcl_parameters::VclParameters;

use crate::core::Core;
use crate::filter_chain::{FilterChain, FilterKind};
use crate::filter_work::FilterWork;

/// As in Varnish a gzip is one text: what it says at its end of its length is that of all that comes of it.
const BOUNDS: Bounds = Bounds { is_one_text: true, ..Bounds::USUAL };

/// Makes the filters of a body, and counts them. The error says why there cannot be such.
pub(crate) fn work(core: &Core, kinds: &[FilterKind]) -> Result<FilterWork, String> {
    let chain = FilterChain::new(kinds, BOUNDS).map_err(|fault| fault.to_string())?;
    for kind in kinds {
        let counter = match kind {
            FilterKind::Encode(..) => &core.counters.bodies_gzipped,
            FilterKind::Decode(_) => &core.counters.bodies_gunzipped,
            FilterKind::Check(_) => &core.counters.gzips_checked,
        };
        counter.add(1);
    }
    Ok(FilterWork::new(chain, &core.shared.coding_threads))
}

/// A filter of a fetch, if there is one of that name.
pub(crate) fn of_fetch(name: &str, gzip_level: u8) -> Option<FilterKind> {
    Some(match name {
        "gzip" => FilterKind::Encode(Coding::Gzip, gzip_level),
        "gunzip" => FilterKind::Decode(Coding::Gzip),
        "testgunzip" => FilterKind::Check(Coding::Gzip),
        _ => return None,
    })
}

/// A filter of a delivery, if there is one of that name; parts are cut out of what comes of all of them.
pub(crate) fn of_delivery(name: &str) -> Option<Option<FilterKind>> {
    Some(match name {
        "gunzip" => Some(FilterKind::Decode(Coding::Gzip)),
        "range" => None,
        _ => return None,
    })
}

/// Does who asks like this take gzip? A star is no word for it, as in Varnish.
pub(crate) fn takes_gzip(asked: FieldsView<'_>) -> bool {
    names_gzip(asked.get_all(FieldName::AcceptEncoding))
}

/// The same of lines of Accept-Encoding.
pub(crate) fn names_gzip<'a>(lines: impl Iterator<Item = &'a [u8]>) -> bool {
    rules::content_coding::names(lines, b"gzip")
}

/// What a program has no other name for: is it in gzip, and in nothing else?
pub(crate) fn is_gzip(fields: FieldsView<'_>) -> bool {
    is_in(fields, Coding::Gzip)
}

/// Is it in this coding, and in no other?
pub(crate) fn is_in(fields: FieldsView<'_>, coding: Coding) -> bool {
    let mut lines = fields.get_all(FieldName::ContentEncoding);
    let only = lines.next().filter(|_| lines.next().is_none());
    only.is_some_and(|only| Coding::of(only) == Some(coding))
}

/// Another coding is another text, letter for letter (RFC 9110 §8.8.1).
pub(crate) fn weaken_tag(fields: &mut Fields) {
    let weak = match fields.view().get(FieldName::Etag) {
        Some(tag) if !tag.starts_with(b"W/") => [b"W/", tag].concat(),
        _ => return,
    };
    fields.set(FieldName::Etag, weak);
}

/// Who asks with other codings may be given another answer.
pub(crate) fn vary_by_coding(fields: &mut Fields) {
    let said: Vec<&[u8]> = fields.view().get_all(FieldName::Vary).collect();
    let is_said = |member: &[u8]| member == b"*" || member.eq_ignore_ascii_case(b"accept-encoding");
    if said.iter().flat_map(|line| list_members(line)).any(is_said) {
        return;
    }
    let all = said.into_iter().chain([&b"Accept-Encoding"[..]]).collect::<Vec<_>>().join(&b", "[..]);
    fields.set(FieldName::Vary, all);
}

/// What a program wants done to a body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BodyChanges {
    pub(crate) gzip: bool,
    pub(crate) gunzip: bool,
    pub(crate) esi: bool,
}

/// What is done where the program names nothing.
pub(crate) fn of_fetch_usually(fields: &Fields, changes: BodyChanges, supports_gzip: bool) -> &'static str {
    let is_gzip = is_gzip(fields.view());
    let (gunzip, gzip) =
        (changes.gunzip && is_gzip, changes.gzip && !fields.view().contains(FieldName::ContentEncoding));
    match (supports_gzip, changes.esi) {
        (false, false) => "",
        (false, true) if is_gzip => "gunzip esi",
        (false, true) => "esi",
        (true, true) if gunzip => "gunzip esi",
        (true, true) if is_gzip => "gunzip esi_gzip",
        (true, true) if gzip => "esi_gzip",
        (true, true) => "esi",
        (true, false) if gunzip => "gunzip",
        (true, false) if is_gzip => "testgunzip",
        (true, false) if gzip => "gzip",
        (true, false) => "",
    }
}

/// The names of the filters that there are where the program names none.
pub(crate) fn of_delivery_usually(
    vcl: &VclParameters,
    (is_gzip, includes): (bool, bool),
    asked: FieldsView<'_>,
    status: Status,
) -> &'static str {
    let gunzips = vcl.http_gzip_support && is_gzip && !takes_gzip(asked);
    let has_parts = vcl.http_range_support && status == Status::OK && asked.contains(FieldName::Range);
    match (includes, gunzips, has_parts) {
        (false, false, false) => "",
        (false, true, false) => "gunzip",
        (false, false, true) => "range",
        (false, true, true) => "gunzip range",
        (true, false, false) => "esi",
        (true, true, false) => "esi gunzip",
        (true, false, true) => "esi range",
        (true, true, true) => "esi gunzip range",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fetch::fetch_test_messages::response;

    fn check_usual(lines: &[&str], changes: BodyChanges, expect: &str) {
        assert_eq!(of_fetch_usually(&response(200, lines).fields, changes, true), expect, "{lines:?} {changes:?}");
    }

    #[test]
    fn what_is_gzip_is_looked_at_and_what_is_not_goes_by_unless_something_is_wished_for() {
        let (none, gzip, gunzip) = (
            BodyChanges::default(),
            BodyChanges { gzip: true, ..BodyChanges::default() },
            BodyChanges { gunzip: true, ..BodyChanges::default() },
        );
        for (line, expect) in [
            ("X: 1", ["", "gzip", ""]),
            ("Content-Encoding: GZIP", ["testgunzip", "testgunzip", "gunzip"]),
            ("Content-Encoding: br", ["", "", ""]),
        ] {
            for (changes, expect) in [none, gzip, gunzip].into_iter().zip(expect) {
                check_usual(&[line], changes, expect);
            }
        }
    }
}
