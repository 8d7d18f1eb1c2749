//! Filters of bodies by the names that programs and Varnish's log have for them, and what a head says of a coding.

use coding::{Bounds, Coding};
use message::{FieldName, Fields, FieldsView, Status};

use crate::vcl_parameters::VclParameters;

use crate::core::Core;
use crate::filter_chain::FilterKind;
use crate::filter_work::FilterWork;

/// As in Varnish a gzip is one text: what it says at its end of its length is that of all that comes of it.
const BOUNDS: Bounds = Bounds { is_one_text: true, ..Bounds::USUAL };

/// Makes the filters of a body, and counts them. The error says why there cannot be such.
pub(crate) fn work(core: &Core, kinds: &[FilterKind]) -> Result<FilterWork, String> {
    FilterWork::begin(core, kinds, BOUNDS, None)
}

/// The same of what a program has had its way with: it may have said of a text that it is in gzip.
pub(crate) fn work_of_delivery(core: &Core, kinds: &[FilterKind]) -> Result<FilterWork, String> {
    FilterWork::begin(core, kinds, Bounds { may_be_plain: true, ..BOUNDS }, None)
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
    let gunzip = supports_gzip && changes.gunzip && is_gzip;
    let gzip = supports_gzip && changes.gzip && !fields.view().contains(FieldName::ContentEncoding);
    match changes.esi {
        true if gunzip => "gunzip esi",
        true if is_gzip => "gunzip esi_gzip",
        true if gzip => "esi_gzip",
        true => "esi",
        false if gunzip => "gunzip",
        false if is_gzip => "testgunzip",
        false if gzip => "gzip",
        false => "",
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
