//! Names of parameters and cookies by which others count visits. They make no difference to a page, and are known by heart so that nobody has
//! to list them (`policy.ignore_tracking`).

use std::sync::LazyLock;

use crate::route_rules::name_patterns::NamePattern;

/// Parameters that campaigns and their links add to a URL.
const TRACKING_PARAMETERS: [&str; 27] = [
    "utm_*",
    "gclid",
    "gclsrc",
    "gbraid",
    "wbraid",
    "dclid",
    "gad_source",
    "gad_campaignid",
    "srsltid",
    "fbclid",
    "msclkid",
    "twclid",
    "ttclid",
    "li_fat_id",
    "igshid",
    "yclid",
    "ysclid",
    "mc_cid",
    "mc_eid",
    "_ga",
    "_gl",
    "_hsenc",
    "_hsmi",
    "hsa_*",
    "mtm_*",
    "pk_*",
    "epik",
];

/// Cookies that scripts of analytics and of advertisers read in the browser.
const TRACKING_COOKIES: [&str; 34] = [
    "_ga",
    "_ga_*",
    "_gid",
    "_gat",
    "_gat_*",
    "_dc_gtm_*",
    "_gcl_*",
    "_gac_*",
    "__utm*",
    "_fbp",
    "_fbc",
    "_pk_*",
    "_mtm_*",
    "_hj*",
    "__hstc",
    "__hssc",
    "__hssrc",
    "hubspotutk",
    "_clck",
    "_clsk",
    "_uetsid",
    "_uetvid",
    "_ttp",
    "_tt_*",
    "_scid",
    "_scid_*",
    "_pin_unauth",
    "_ym_*",
    "ajs_*",
    "mp_*_mixpanel",
    "optimizelyEndUserId",
    "_vwo_*",
    "li_gc",
    "__qca",
];

/// The parameters.
pub static PARAMETERS: LazyLock<Box<[NamePattern]>> = LazyLock::new(|| patterns(&TRACKING_PARAMETERS));

/// The cookies.
pub static COOKIES: LazyLock<Box<[NamePattern]>> = LazyLock::new(|| patterns(&TRACKING_COOKIES));

fn patterns(names: &[&str]) -> Box<[NamePattern]> {
    names.iter().map(|name| NamePattern::new(name)).collect()
}
