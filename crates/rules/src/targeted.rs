//! Which cache policy of a response is ours to follow: CDN-Cache-Control (RFC 9213), else Surrogate-Control (the
//! W3C note "Edge Architecture"), else Cache-Control with Expires. A proxy that its users chose is meant by the last alone.
//!
//! The first of them that is there and valid decides alone. CDN-Cache-Control is a Structured Field: one error in
//! it, and it counts as not sent.

use message::{FieldName, FieldsView, list_members};
use sfv::{BareItem, Dictionary, ListEntry, Parser};

use crate::cache_control::ResponseDirectives;

/// Where the policy was found. Only Cache-Control is read together with Expires (RFC 9213 §2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    CacheControl,
    CdnCacheControl,
    SurrogateControl,
}

impl Source {
    /// The field that it is.
    pub const fn field(self) -> FieldName {
        match self {
            Source::CacheControl => FieldName::CacheControl,
            Source::CdnCacheControl => FieldName::CdnCacheControl,
            Source::SurrogateControl => FieldName::SurrogateControl,
        }
    }
}

/// The directives to go by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    pub source: Source,
    pub directives: ResponseDirectives,
}

/// Chooses by our target list. `surrogate_device` is the token under which we announce ourselves in
/// Surrogate-Capability, if we do; directives aimed at another token are not for us. RFC 9213 §3 aims at caches that
/// work for the origin: one that works for its users (`!is_surrogate`) has Cache-Control alone.
pub fn policy(fields: FieldsView<'_>, is_surrogate: bool, surrogate_device: Option<&str>) -> Policy {
    if !is_surrogate {
        return Policy { source: Source::CacheControl, directives: ResponseDirectives::parse(fields) };
    }
    if fields.contains(FieldName::CdnCacheControl)
        && let Some(directives) = cdn_cache_control(fields)
    {
        return Policy { source: Source::CdnCacheControl, directives };
    }
    if fields.contains(FieldName::SurrogateControl)
        && let Some(directives) = surrogate_control(fields, surrogate_device)
    {
        return Policy { source: Source::SurrogateControl, directives };
    }
    Policy { source: Source::CacheControl, directives: ResponseDirectives::parse(fields) }
}

/// RFC 9213 §2.1. `None`: absent, empty, or not a dictionary whose known members have the right types.
pub fn cdn_cache_control(fields: FieldsView<'_>) -> Option<ResponseDirectives> {
    let lines: Vec<&[u8]> = fields.get_all(FieldName::CdnCacheControl).collect();
    let dictionary = Parser::new(&lines.join(&b", "[..])).parse::<Dictionary>().ok()?;
    if dictionary.is_empty() {
        return None;
    }
    let mut directives = ResponseDirectives::default();
    for (key, entry) in &dictionary {
        let ListEntry::Item(item) = entry else {
            // No registered directive is an inner list; an unknown one may be anything.
            if is_known(key.as_str()) {
                return None;
            }
            continue;
        };
        set_member(&mut directives, key.as_str(), &item.bare_item)?;
    }
    Some(directives)
}

/// A directive without an argument is a Boolean, seconds are an Integer, a list of field names is a String.
fn set_member(directives: &mut ResponseDirectives, key: &str, value: &BareItem) -> Option<()> {
    match (key, value) {
        ("max-age" | "s-maxage" | "stale-while-revalidate" | "stale-if-error", BareItem::Integer(n)) => {
            // A negative number is no delta-seconds: that makes a lifetime 0 and a permission nothing.
            directives.set(key.as_bytes(), Some(n.to_string().as_bytes()));
        }
        ("no-cache" | "private", BareItem::String(_)) => directives.set(key.as_bytes(), None),
        (_, BareItem::Boolean(true)) if !takes_seconds(key) => directives.set(key.as_bytes(), None),
        (_, BareItem::Boolean(false)) if !takes_seconds(key) => {}
        _ if is_known(key) => return None,
        _ => {}
    }
    Some(())
}

fn takes_seconds(key: &str) -> bool {
    matches!(key, "max-age" | "s-maxage" | "stale-while-revalidate" | "stale-if-error")
}

fn is_known(key: &str) -> bool {
    takes_seconds(key)
        || matches!(key, "no-cache" | "no-store" | "private" | "public" | "must-revalidate" | "proxy-revalidate")
        || matches!(key, "must-understand" | "no-transform" | "immutable")
}

/// Does Surrogate-Control ask for ESI (Edge Architecture §2.2.2, `content="ESI/1.0"`), of us or of any surrogate?
pub fn asks_for_esi(fields: FieldsView<'_>, device: Option<&str>) -> bool {
    for_surrogate(fields, device).any(|directive| {
        let Some((name, tokens)) = directive.split_at_checked(CONTENT.len()) else { return false };
        let mut tokens = tokens.trim_ascii().split(|byte| matches!(byte, b'"' | b' ' | b'\t'));
        name.eq_ignore_ascii_case(CONTENT) && tokens.any(|token| token.eq_ignore_ascii_case(b"ESI/1.0"))
    })
}

const CONTENT: &[u8] = b"content=";

/// Edge Architecture §2.2: `max-age=N[+M]` (M seconds more while it is revalidated), `no-store`, `content="…"`;
/// each may be aimed with `;token`. `None` when nothing in it is for us.
fn surrogate_control(fields: FieldsView<'_>, device: Option<&str>) -> Option<ResponseDirectives> {
    let mut directives = ResponseDirectives::default();
    let mut found = false;
    for directive in for_surrogate(fields, device) {
        if directive.eq_ignore_ascii_case(b"no-store") {
            directives.no_store = true;
            found = true;
        } else if directive.len() > 8 && directive[..8].eq_ignore_ascii_case(b"max-age=") {
            let mut numbers = directive[8..].splitn(2, |&b| b == b'+');
            directives.set(b"max-age", numbers.next());
            directives.set(b"stale-while-revalidate", numbers.next());
            found = true;
        }
    }
    found.then_some(directives)
}

/// The directives of Surrogate-Control that are not aimed at somebody else.
fn for_surrogate<'a>(fields: FieldsView<'a>, device: Option<&'a str>) -> impl Iterator<Item = &'a [u8]> {
    fields.get_all(FieldName::SurrogateControl).flat_map(list_members).filter_map(move |member| {
        let mut parts = member.split(|&b| b == b';').map(<[u8]>::trim_ascii);
        let directive = parts.next().unwrap_or_default();
        let for_us = |target: &[u8]| device.is_some_and(|device| target == device.as_bytes());
        parts.next().is_none_or(for_us).then_some(directive)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache_control::Scope;
    use crate::tests::fields;

    fn check(lines: &str, source: Source, expect: ResponseDirectives) {
        let policy = policy(fields(lines).view(), true, Some("larder"));
        assert_eq!(policy, Policy { source, directives: expect }, "{lines}");
    }

    const NONE: ResponseDirectives = ResponseDirectives {
        max_age_s: None,
        s_maxage_s: None,
        stale_while_revalidate_s: None,
        stale_if_error_s: None,
        no_cache: Scope::Absent,
        private: Scope::Absent,
        no_store: false,
        public: false,
        must_revalidate: false,
        proxy_revalidate: false,
        must_understand: false,
        no_transform: false,
        immutable: false,
    };

    const SHORT: ResponseDirectives = ResponseDirectives { max_age_s: Some(1), ..NONE };

    /// RFC 9213 §2.1, §2.2.
    #[test]
    fn a_valid_targeted_field_decides_alone() {
        let check_cdn = |value: &str, expect: ResponseDirectives| {
            check(&format!("Cache-Control: max-age=1\nCDN-Cache-Control: {value}"), Source::CdnCacheControl, expect);
        };
        check_cdn("max-age=60", ResponseDirectives { max_age_s: Some(60), ..NONE });
        check_cdn("max-age=60;a=b, foo=(1 2)", ResponseDirectives { max_age_s: Some(60), ..NONE });
        check_cdn("max-age=60, max-age=70", ResponseDirectives { max_age_s: Some(70), ..NONE });
        check_cdn("max-age=99999999999", ResponseDirectives { max_age_s: Some(1 << 31), ..NONE });
        check_cdn("max-age=-1", ResponseDirectives { max_age_s: Some(0), ..NONE });
        check_cdn("max-age=60, foo=1.5", ResponseDirectives { max_age_s: Some(60), ..NONE });
        check_cdn("no-store", ResponseDirectives { no_store: true, ..NONE });
        check_cdn("no-cache", ResponseDirectives { no_cache: Scope::Whole, ..NONE });
        check_cdn("private=\"a\"", ResponseDirectives { private: Scope::Whole, ..NONE });
        check_cdn("no-store=?0, public", ResponseDirectives { public: true, ..NONE });
        check_cdn(
            "stale-while-revalidate=5\nCDN-Cache-Control: stale-if-error=6",
            ResponseDirectives { stale_while_revalidate_s: Some(5), stale_if_error_s: Some(6), ..NONE },
        );
        check_cdn("max-age=60\nSurrogate-Control: max-age=5", ResponseDirectives { max_age_s: Some(60), ..NONE });
    }

    /// RFC 9213 §2.1: empty or not to be parsed means not sent.
    #[test]
    fn an_invalid_targeted_field_was_not_sent() {
        for junk in [
            "",
            " ",
            "max-age=60, &&&&&",
            "max-age=\"60\"",
            "max-age=60.5",
            "max-age=?0, public",
            "max-age",
            "max-age =60",
            "max-age= 60",
            "Max-Age=60",
            "max-age=9999999999999999",
            "no-store=1",
            "no-store=(a)",
            "no-store,",
        ] {
            let lines = format!("CDN-Cache-Control: {junk}\nCache-Control: max-age=1");
            check(&lines, Source::CacheControl, SHORT);
        }
    }

    /// Edge Architecture §2.2, §2.3.
    #[test]
    fn surrogate_control_may_be_aimed_elsewhere() {
        let check_surrogate = |value: &str, expect: ResponseDirectives| {
            let lines = format!("Cache-Control: max-age=1\nSurrogate-Control: {value}");
            let source = if expect == SHORT { Source::CacheControl } else { Source::SurrogateControl };
            check(&lines, source, expect);
        };
        check_surrogate("MaX-aGe=60", ResponseDirectives { max_age_s: Some(60), ..NONE });
        check_surrogate(
            "max-age=60+30",
            ResponseDirectives { max_age_s: Some(60), stale_while_revalidate_s: Some(30), ..NONE },
        );
        check_surrogate("content=\"ESI/1.0\", no-store", ResponseDirectives { no_store: true, ..NONE });
        check_surrogate("max-age=60;larder", ResponseDirectives { max_age_s: Some(60), ..NONE });
        check_surrogate("max-age=5;abc, max-age=60;larder", ResponseDirectives { max_age_s: Some(60), ..NONE });
        check_surrogate("max-age=60+30+5", ResponseDirectives { max_age_s: Some(60), ..NONE });
        check_surrogate("max-age=", SHORT);
        check_surrogate("max-age=60;not-for-us", SHORT);
        let lines = fields("Cache-Control: max-age=1\nSurrogate-Control: max-age=60;larder");
        let unnamed = Policy { source: Source::CacheControl, directives: SHORT };
        assert_eq!(policy(lines.view(), true, None), unnamed, "nobody has told it that this is we");
        check_surrogate("foo", SHORT);
        check_surrogate("max-age =60", SHORT);
    }

    #[test]
    fn esi_is_asked_for_by_name_and_may_be_aimed() {
        let check = |value: &str, expect: bool| {
            let lines = fields(&format!("Surrogate-Control: {value}"));
            assert_eq!(asks_for_esi(lines.view(), Some("larder")), expect, "{value}");
        };
        check("content=\"ESI/1.0\"", true);
        check("max-age=60, Content=\"ORAMA/1.0 esi/1.0\"", true);
        check("no-store,content=\"ESI/1.0\";larder", true);
        check("content=\"ESI/1.0\";abc, content=\"ESI/1.0\";larder", true);
        check("content=\"ESI/1.0\";abc", false);
        check("content=\"ESI/1.01\"", false);
        check("content=\"ESI-Inline/1.0\"", false);
        check("max-age=60", false);
        check("content", false);
        assert!(!asks_for_esi(fields("Cache-Control: content=\"ESI/1.0\"").view(), Some("larder")));
    }

    #[test]
    fn what_is_said_to_surrogates_is_not_said_to_a_proxy_of_the_users() {
        for other in ["CDN-Cache-Control: max-age=60", "Surrogate-Control: max-age=60", "CDN-Cache-Control: no-store"] {
            let lines = format!("Cache-Control: max-age=1\n{other}");
            let expect =
                Policy { source: Source::CacheControl, directives: ResponseDirectives { max_age_s: Some(1), ..NONE } };
            assert_eq!(policy(fields(&lines).view(), false, Some("larder")), expect, "{other}");
        }
    }
}
