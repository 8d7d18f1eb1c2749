//! What a request claims that applications obey and no key holds: who its client is, and under which name, scheme and path the site is
//! reached. Of strangers nothing of it reaches an origin. A trusted proxy may say it, and hands on what it does not know of itself: an
//! address goes on where nothing contradicts it, and what it says of the site selects the response, so that it is in nobody else's.

use message::{Field, FieldName, FieldsView, Request, reads_as};
use rules::forwarded;

/// In these a proxy, or a network of such, says who its client is, beside X-Forwarded-For.
const OF_CLIENTS_ADDRESS: &[&str] = &[
    "x-real-ip",
    "true-client-ip",
    "x-client-ip",
    "client-ip",
    "x-cluster-client-ip",
    "x-original-forwarded-for",
    "x-remote-ip",
    "x-remote-addr",
    "remote-addr",
    "cf-connecting-ip",
    "cf-connecting-ipv6",
    "cf-pseudo-ipv4",
    "fastly-client-ip",
    "fly-client-ip",
    "x-azure-clientip",
    "x-azure-socketip",
    "x-appengine-user-ip",
    "x-envoy-external-address",
    "x-nf-client-connection-ip",
    "do-connecting-ip",
];

/// In these it says where the site is, as its visitors see it.
const OF_SITE: &[&str] = &[
    "x-forwarded-prefix",
    "x-forwarded-scheme",
    "x-forwarded-server",
    "x-forwarded-path",
    "x-forwarded-uri",
    "x-forwarded-url",
    "x-forwarded-ssl",
    "x-forwarded-protocol",
    "x-forwarded-base",
    "x-forwarded-basepath",
    "x-forwarded-context",
    "x-original-host",
    "x-http-host-override",
    "x-script-name",
    "x-scheme",
    "x-url-scheme",
    "front-end-https",
    "script-name",
];

/// Others that a proxy may say and a stranger not.
const OF_PROXIES: &[&str] = &["surrogate-capability", "x-forwarded"];

/// It becomes an environment variable of CGI programs, by which they choose a proxy of their own. No proxy says it.
const OF_NOBODY: &str = "proxy";

/// Fields that some applications obey: what one client sends in them must not be in everybody's answer.
const ON_SHARED_FETCHES: &[&str] = &["x-host", "x-http-method", "x-method-override", "surrogate-capability"];

/// Names that we do not know, but that are not for the origin, or read as one that is not.
pub(super) fn is_kept_from_origins(field: &Field<'_>, for_many: bool, trusted: bool) -> bool {
    let is_of_proxies = || [OF_CLIENTS_ADDRESS, OF_SITE, OF_PROXIES].iter().any(|names| reads_as_one_of(field, names));
    let is_spelled_so = || [OF_CLIENTS_ADDRESS, OF_SITE, OF_PROXIES].iter().any(|names| is_one_of(field, names));
    reads_as(field.name_text, OF_NOBODY)
        || for_many && reads_as_one_of(field, ON_SHARED_FETCHES)
        || is_of_proxies() && !(trusted && is_spelled_so())
        || !trusted && message::is_forwarding_name(field.name_text)
}

/// Does the field say which address the client has?
pub(super) fn is_of_clients_address(field: &Field<'_>) -> bool {
    is_one_of(field, OF_CLIENTS_ADDRESS)
}

/// By what a response is selected that such a request of a trusted proxy was answered with: what it says of the site, where that is another
/// thing than its target does, in lower case.
pub(super) fn selecting<'a>(request: &'a Request<'_>) -> impl Iterator<Item = &'static str> + 'a {
    let fields = request.fields;
    let said = move |name: &'static str| fields.iter().any(|field| is_one_of(&field, &[name])).then_some(name);
    let others = OF_SITE.iter().filter_map(move |name| said(name));
    let (host, forwarded) = hosts_said(request, fields);
    host.then_some("x-forwarded-host").into_iter().chain(forwarded.then_some("forwarded")).chain(others)
}

/// Does X-Forwarded-Host name another host than the target does? And Forwarded?
fn hosts_said(request: &Request<'_>, fields: FieldsView<'_>) -> (bool, bool) {
    let mut host = Vec::new();
    request.authority.write_to(&mut host);
    let is_other = |said: &[u8]| !said.eq_ignore_ascii_case(&host);
    let said_twice = fields.get_all(FieldName::XForwardedHost).count() > 1;
    let by_field = said_twice || fields.get(FieldName::XForwardedHost).is_some_and(is_other);
    (by_field, forwarded::names_other_host(fields, &host))
}

/// Is the field one of those, or does its name read as if it were?
fn reads_as_one_of(field: &Field<'_>, names: &[&str]) -> bool {
    names.iter().any(|name| reads_as(field.name_text, name))
}

fn is_one_of(field: &Field<'_>, names: &[&str]) -> bool {
    names.iter().any(|name| field.name_text.eq_ignore_ascii_case(name.as_bytes()))
}

#[cfg(test)]
mod tests {
    use message::{Authority, Fields, Method, Scheme, TargetForm, Version};

    use super::*;

    fn check(lines: &[(&str, &str)], expect: &[&str]) {
        let mut fields = Fields::default();
        for (name, value) in lines {
            match FieldName::classify(name.as_bytes()) {
                FieldName::Other => fields.push_named(name.as_bytes(), value.as_bytes()),
                known => fields.push(known, value),
            }
        }
        let authority = Authority { host: b"shop.example".into(), port: None };
        let request = Request {
            method: Method::Get,
            method_text: b"GET",
            version: Version::Http11,
            form: TargetForm::Origin,
            scheme: Scheme::Http,
            authority,
            path: b"/",
            query: None,
            fields: fields.view(),
        };
        assert_eq!(selecting(&request).collect::<Vec<_>>(), expect, "{lines:?}");
    }

    #[test]
    fn what_a_proxy_says_of_the_site_selects_unless_the_target_says_the_same() {
        check(&[], &[]);
        check(&[("X-Forwarded-Host", "Shop.example"), ("Forwarded", "for=192.0.2.1;host=shop.example")], &[]);
        check(&[("X-Forwarded-For", "192.0.2.1"), ("X-Forwarded-Proto", "https"), ("X-Real-IP", "192.0.2.1")], &[]);
        check(&[("X-Forwarded-Host", "evil.example")], &["x-forwarded-host"]);
        check(&[("Forwarded", "for=192.0.2.1, host=\"evil.example\"")], &["forwarded"]);
        check(&[("X-Forwarded-Prefix", "/app"), ("X-Scheme", "https")], &["x-forwarded-prefix", "x-scheme"]);
    }
}
