//! Which answers of origins are looked through for parts (ESI), where no program decides.
//!
//! Only where the operator allows it, and by default of those only what asks for it: a page with text of strangers in it that did not ask is
//! nobody's program. Origins are told that they may ask where they may.

use message::{FieldName, FieldsView, Method, Request, ResponseHead, Status, TargetForm};
use rules::ResponseDirectives;
use rules::targeted::asks_for_esi;
use wire::ResponseBody;

use crate::core::Core;
use crate::fetch::body_filters;
use crate::fetch::esi_scan::EsiWish;
use crate::fetch::origin_body::Arriving;
use crate::fetch::purpose::Purpose;
use crate::settings::{EsiFeatures, EsiPages};
use crate::site::{Routed, Site};
use crate::vcl_story::filter_names::{self, BodyChanges};

/// A text that asks for it need not be XML, and tags may stand in the middle of others. Where it is asked does not depend on how: parts are asked for
/// by routes.
const READS: EsiFeatures =
    EsiFeatures { wants_xml: false, ignores_others: true, removes_bom: false, takes_https: true, heeds_onerror: true };

/// Which answers to this request are.
pub(super) fn pages(site: &Site, (routed, request): (Routed, &Request<'_>), purpose: &Purpose) -> EsiPages {
    let is_asked_for = match purpose {
        Purpose::Store(_) => true,
        Purpose::Pass => matches!(request.method, Method::Get | Method::Head),
        Purpose::Slice { .. }
        | Purpose::Question
        | Purpose::Mirrored
        | Purpose::Upgrade
        | Purpose::Piped
        | Purpose::Raw
        | Purpose::Tunnel => false,
    };
    // Who asks a forward proxy is not the origin's to include anything for.
    let is_forwarded = matches!(request.form, TargetForm::Absolute | TargetForm::Authority);
    if is_asked_for && !is_forwarded { site.esi_pages(routed) } else { EsiPages::None }
}

/// Has the body looked through when it is here, if it is to be: it is none of another coding, or of a part. The error says why that cannot be.
pub(super) fn apply(
    (core, site, pages): (&Core, &Site, EsiPages),
    head: &mut ResponseHead,
    arriving: &mut Arriving,
) -> Result<Option<EsiWish>, String> {
    let has_body = arriving.framing != ResponseBody::None && head.status != Status::PARTIAL_CONTENT;
    if pages == EsiPages::None || !has_body || !wants(site, pages, head.fields.view()) {
        return Ok(None);
    }
    let changes = BodyChanges { esi: true, ..BodyChanges::default() };
    let filters = body_filters::apply((core, &site.settings.vcl), (None, changes), (head, false), arriving)?;
    Ok(filters.esi.map(|wish| EsiWish { reads: READS, has_variables: site.settings.esi.has_variables, ..wish }))
}

fn wants(site: &Site, pages: EsiPages, fields: FieldsView<'_>) -> bool {
    if fields.contains(FieldName::ContentEncoding) && !filter_names::is_gzip(fields) {
        return false;
    }
    let is_allowed = || is_markup(fields) && !ResponseDirectives::parse(fields).no_transform;
    asks_for_esi(fields, Some(&site.settings.server_name)) || pages == EsiPages::All && is_allowed()
}

/// Text and XML, whatever it is about.
fn is_markup(fields: FieldsView<'_>) -> bool {
    let said = fields.get(FieldName::ContentType).unwrap_or_default();
    let kind = said.split(|&byte| byte == b';').next().unwrap_or_default().trim_ascii().to_ascii_lowercase();
    kind.starts_with(b"text/") || kind == b"application/xml" || kind.ends_with(b"+xml")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fetch::fetch_test_messages::response;

    #[test]
    fn markup_is_known_by_its_type() {
        let check = |line: &str, expect: bool| {
            assert_eq!(is_markup(response(200, &[line]).fields.view()), expect, "{line}");
        };
        check("Content-Type: text/html; charset=utf-8", true);
        check("Content-Type: Application/XHTML+XML", true);
        check("Content-Type: application/xml", true);
        check("Content-Type: application/json", false);
        check("Content-Type: image/png", false);
        check("X: text/html", false);
    }
}
