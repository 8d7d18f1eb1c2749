//! Which cache policy of a response is ours to follow: CDN-Cache-Control (RFC 9213), else Surrogate-Control (the
//! W3C note "Edge Architecture"), else Cache-Control with Expires.
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

/// The directives to go by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    pub source: Source,
    pub directives: ResponseDirectives,
}

/// Chooses by our target list. `surrogate_device` is the token under which we announce ourselves in
/// Surrogate-Capability, if we do; directives aimed at another token are not for us.
pub fn policy(fields: FieldsView<'_>, surrogate_device: Option<&str>) -> Policy {
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
            // A negative number cannot be read as seconds: that makes a lifetime 0 and a permission nothing.
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

/// Edge Architecture §2.2: `max-age=N[+M]` (M seconds more while it is revalidated), `no-store`, `content="…"`;
/// each may be aimed with `;token`. `None` when nothing in it is for us.
fn surrogate_control(fields: FieldsView<'_>, device: Option<&str>) -> Option<ResponseDirectives> {
    let mut directives = ResponseDirectives::default();
    let mut found = false;
    for member in fields.get_all(FieldName::SurrogateControl).flat_map(list_members) {
        let mut parts = member.split(|&b| b == b';').map(<[u8]>::trim_ascii);
        let directive = parts.next().unwrap_or_default();
        let for_us = |target: &[u8]| device.is_some_and(|device| target == device.as_bytes());
        if !parts.next().is_none_or(for_us) {
            continue;
        }
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
