//! Which filters the body of a program's fetch goes through, and what that makes of its head.
//!
//! A program wishes for codings (`beresp.do_gzip`, `beresp.do_gunzip`) or names filters itself (`beresp.filters`). What origins send as
//! gzip is looked at on its way into the store, so that nobody is given what is not.

use coding::Coding;
use message::{FieldName, ResponseHead};
use rules::content_coding;

use crate::core::Core;
use crate::fetch::esi_scan::EsiWish;
use crate::fetch::origin_body::Arriving;
use crate::filter_chain::FilterKind;
use crate::vcl_parameters::VclParameters;
use crate::vcl_story::filter_names::{self, BodyChanges};

/// What becomes of a body.
#[derive(Debug, Default)]
pub(super) struct BodyFilters {
    pub(super) names: String,
    /// It is looked through for what is to be included.
    pub(super) esi: Option<EsiWish>,
}

/// Gives the body its filters, and changes the head with them. The names of the filters; or why there cannot be such.
/// `named`: by the program, which otherwise wants these changes. `is_part`: a part of a text; a program may say that a 206 is none (1206).
pub(super) fn apply(
    (core, vcl): (&Core, &VclParameters),
    (named, changes): (Option<&[u8]>, BodyChanges),
    (head, is_part): (&mut ResponseHead, bool),
    arriving: &mut Arriving,
) -> Result<BodyFilters, String> {
    if arriving.length() == Some(0) {
        // Nothing is in no coding.
        head.fields.remove(FieldName::ContentEncoding);
        return Ok(BodyFilters::default());
    }
    let names = match named {
        Some(named) => String::from_utf8_lossy(named).into_owned(),
        None => filter_names::of_fetch_usually(&head.fields, changes, vcl.http_gzip_support).to_owned(),
    };
    let (mut kinds, mut esi) = (Vec::new(), None);
    for name in names.split_ascii_whitespace() {
        if let "esi" | "esi_gzip" = name {
            if is_part {
                return Err("Attempted ESI on partial (206) response".to_owned());
            }
            let is_gzipped = name == "esi_gzip";
            if is_gzipped {
                content_coding::vary_by_coding(&mut head.fields);
            }
            esi = Some(EsiWish { reads: vcl.esi, has_variables: false, is_gzipped });
            continue;
        }
        let kind = filter_names::of_fetch(name, vcl.gzip_level).ok_or_else(|| format!("Filter '{name}' not found"))?;
        if !is_part && fits(kind, head) {
            change_head(kind, head);
            kinds.push(kind);
        }
    }
    if !kinds.is_empty() {
        arriving.filters = Some(filter_names::work(core, &kinds)?);
    }
    Ok(BodyFilters { names, esi })
}

/// What is in a coding is not put into another, and what is in none not taken out of any. A part of a text is in none by itself.
fn fits(kind: FilterKind, head: &ResponseHead) -> bool {
    let is_in = |coding: Coding| filter_names::is_in(head.fields.view(), coding);
    match kind {
        FilterKind::Decode(coding) | FilterKind::Check(coding) => is_in(coding),
        FilterKind::Encode(..) | FilterKind::Delta(..) => !head.fields.view().contains(FieldName::ContentEncoding),
        FilterKind::Cut => is_in(Coding::Gzip),
    }
}

fn change_head(kind: FilterKind, head: &mut ResponseHead) {
    let fields = &mut head.fields;
    if kind.changes_bytes() {
        fields.remove(FieldName::ContentEncoding);
        fields.remove(FieldName::ContentLength);
        content_coding::weaken_tag(fields);
    }
    if let FilterKind::Encode(coding, _) = kind {
        fields.push(FieldName::ContentEncoding, coding.name());
    }
    if !matches!(kind, FilterKind::Decode(_)) {
        content_coding::vary_by_coding(fields);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fetch::fetch_test_messages::{lines, response};

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
    fn what_is_coded_is_not_coded_again() {
        let gzip = FilterKind::Encode(Coding::Gzip, 6);
        assert!(fits(gzip, &response(200, &[])));
        assert!(!fits(gzip, &response(200, &["Content-Encoding: br"])));
        let gunzip = FilterKind::Decode(Coding::Gzip);
        assert!(fits(gunzip, &response(200, &["Content-Encoding: gzip"])));
        assert!(!fits(gunzip, &response(200, &["Content-Encoding: gzip, br"])));
        assert!(!fits(gunzip, &response(200, &[])));
    }
}
