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
pub static PARAMETERS: LazyLock<KnownNames> = LazyLock::new(|| KnownNames::of(&TRACKING_PARAMETERS));

/// The cookies.
pub static COOKIES: LazyLock<KnownNames> = LazyLock::new(|| KnownNames::of(&TRACKING_COOKIES));

const BUCKETS: usize = 32;

/// Many names, each of which begins with two letters at least. They lie apart by the second one: the first is `_` in half of them.
pub struct KnownNames([Vec<NamePattern>; BUCKETS]);

impl KnownNames {
    fn of(names: &[&str]) -> KnownNames {
        let mut buckets = [const { Vec::new() }; BUCKETS];
        for name in names {
            let beginning = name.split('*').next().unwrap_or_default().as_bytes();
            buckets[bucket_of(beginning).expect("a known name begins with two letters")].push(NamePattern::new(name));
        }
        KnownNames(buckets)
    }

    #[inline]
    pub fn hold(&self, name: &[u8]) -> bool {
        bucket_of(name).is_some_and(|at| NamePattern::any(&self.0[at], name))
    }
}

#[inline]
fn bucket_of(name: &[u8]) -> Option<usize> {
    name.get(1).map(|second| usize::from(*second) % BUCKETS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_of_them_is_known_and_no_other() {
        for (known, names) in [(&*PARAMETERS, &TRACKING_PARAMETERS[..]), (&*COOKIES, &TRACKING_COOKIES)] {
            for name in names {
                assert!(known.hold(name.replace('*', "x9").as_bytes()), "{name}");
                assert!(!known.hold(format!("z{name}").as_bytes()) && !known.hold(&name.as_bytes()[..1]), "{name}");
            }
        }
        assert!(!COOKIES.hold(b"_session") && !COOKIES.hold(b"") && !PARAMETERS.hold(b"page"));
    }
}
