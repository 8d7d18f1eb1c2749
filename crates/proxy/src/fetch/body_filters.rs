//! Which filters the body of a program's fetch goes through, and what that makes of its head.
//!
//! A program wishes for codings (`beresp.do_gzip`, `beresp.do_gunzip`) or names filters itself (`beresp.filters`). What origins send as
//! gzip is looked at on its way into the store, so that nobody is given what is not.

use coding::Coding;
use message::{FieldName, Fields, Method, ResponseHead, Status};
use wire::ResponseBody;

use crate::fetch::Fetch;
use crate::fetch::esi_scan::EsiWish;
use crate::fetch::settled::SettledBody;
use crate::filter_chain::FilterKind;
use crate::vcl_story::filter_names;

/// What a program wants done to a body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BodyChanges {
    pub(crate) gzip: bool,
    pub(crate) gunzip: bool,
    pub(crate) esi: bool,
}

/// What becomes of a body.
#[derive(Debug, Default)]
pub(super) struct Filters {
    pub(super) names: String,
    /// It is looked through for what is to be included.
    pub(super) esi: Option<EsiWish>,
}

/// Gives the body its filters, and changes the head with them. The names of the filters; or why there cannot be such.
pub(super) fn apply(fetch: &Fetch, head: &mut ResponseHead, body: &mut SettledBody) -> Result<Filters, String> {
    let SettledBody::Origin(arriving) = body else { return Ok(Filters::default()) };
    if matches!(arriving.framing, ResponseBody::None | ResponseBody::Length(0)) {
        // Nothing is in no coding.
        if fetch.method() != Method::Head {
            head.fields.remove(FieldName::ContentEncoding);
        }
        return Ok(Filters::default());
    }
    let (task, vcl) = (fetch.task(), &fetch.site.settings.vcl);
    let named = task.filters.borrow();
    let names = match named.as_deref() {
        Some(named) => String::from_utf8_lossy(named).into_owned(),
        None => usual(&head.fields, task.changes.get(), vcl.http_gzip_support).to_owned(),
    };
    let (mut kinds, mut esi) = (Vec::new(), None);
    for name in names.split_ascii_whitespace() {
        if let "esi" | "esi_gzip" = name {
            let is_gzipped = name == "esi_gzip";
            if is_gzipped {
                filter_names::vary_by_coding(&mut head.fields);
            }
            esi = Some(EsiWish { is_gzipped });
            continue;
        }
        let kind = filter_names::of_fetch(name, vcl.gzip_level).ok_or_else(|| format!("Filter '{name}' not found"))?;
        if fits(kind, head) {
            change_head(kind, head);
            kinds.push(kind);
        }
    }
    if !kinds.is_empty() {
        arriving.filters = Some(filter_names::chain(&fetch.core, &kinds)?);
    }
    Ok(Filters { names, esi })
}

/// What is done where the program names nothing.
pub(crate) fn usual(fields: &Fields, changes: BodyChanges, supports_gzip: bool) -> &'static str {
    let is_gzip = filter_names::is_gzip(fields.view());
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

/// A part of a text is in no coding by itself, and what is in one is not put into another.
fn fits(kind: FilterKind, head: &ResponseHead) -> bool {
    let is_in = |coding: Coding| filter_names::is_in(head.fields.view(), coding);
    head.status != Status::PARTIAL_CONTENT
        && match kind {
            FilterKind::Decode(coding) | FilterKind::Check(coding) => is_in(coding),
            FilterKind::Encode(..) => !head.fields.view().contains(FieldName::ContentEncoding),
        }
}

fn change_head(kind: FilterKind, head: &mut ResponseHead) {
    let fields = &mut head.fields;
    if kind.changes_bytes() {
        fields.remove(FieldName::ContentEncoding);
        fields.remove(FieldName::ContentLength);
        filter_names::weaken_tag(fields);
    }
    if let FilterKind::Encode(coding, _) = kind {
        fields.push(FieldName::ContentEncoding, coding.name());
    }
    if !matches!(kind, FilterKind::Decode(_)) {
        filter_names::vary_by_coding(fields);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fetch::fetch_test_messages::{lines, response};

    fn check_usual(lines: &[&str], changes: BodyChanges, expect: &str) {
        assert_eq!(usual(&response(200, lines).fields, changes, true), expect, "{lines:?} {changes:?}");
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

    fn check_head(kind: FilterKind, before: &[&str], after: &[&str]) {
        let mut head = response(200, before);
        change_head(kind, &mut head);
        assert_eq!(lines(&head.fields), after);
    }

    #[test]
    fn the_head_says_what_the_body_has_become() {
        let gzip = FilterKind::Encode(Coding::Gzip, 6);
        check_head(
            gzip,
            &["ETag: \"a\"", "Content-Length: 5"],
            &["ETag: W/\"a\"", "Content-Encoding: gzip", "Vary: Accept-Encoding"],
        );
        check_head(gzip, &["Vary: Cookie"], &["Content-Encoding: gzip", "Vary: Cookie, Accept-Encoding"]);
        let gunzip = FilterKind::Decode(Coding::Gzip);
        check_head(gunzip, &["ETag: W/\"a\"", "Content-Encoding: gzip", "X: 1"], &["ETag: W/\"a\"", "X: 1"]);
        let check = FilterKind::Check(Coding::Gzip);
        let all = ["ETag: \"a\"", "Content-Encoding: gzip", "Vary: accept-encoding"];
        check_head(check, &all, &all);
    }

    #[test]
    fn a_part_has_no_filters_and_what_is_coded_is_not_coded_again() {
        let gzip = FilterKind::Encode(Coding::Gzip, 6);
        assert!(fits(gzip, &response(200, &[])));
        assert!(!fits(gzip, &response(206, &[])));
        assert!(!fits(gzip, &response(200, &["Content-Encoding: br"])));
        let gunzip = FilterKind::Decode(Coding::Gzip);
        assert!(fits(gunzip, &response(200, &["Content-Encoding: gzip"])));
        assert!(!fits(gunzip, &response(200, &["Content-Encoding: gzip, br"])));
        assert!(!fits(gunzip, &response(200, &[])));
    }
}
