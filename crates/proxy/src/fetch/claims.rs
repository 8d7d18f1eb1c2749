//! What a request claims that applications obey and no key holds: who its client is, and under which name, scheme and path the site is
//! reached. Of strangers nothing of it reaches an origin. A trusted proxy may say it, and hands on what it does not know of itself: an
//! address goes on where nothing contradicts it, and what it says of the site selects the response, so that it is in nobody else's.

use message::{Field, FieldName, FieldsView, NameShapes, Request, reads_as};
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

/// All of these names, by which nearly all fields are told apart from them at once.
const ALL: [&[&str]; 5] = [OF_CLIENTS_ADDRESS, OF_SITE, OF_PROXIES, ON_SHARED_FETCHES, &[OF_NOBODY]];
const SHAPES: NameShapes = {
    let (mut shapes, mut at) = (NameShapes::of(&[]), 0);
    while at < ALL.len() {
        shapes = shapes.and(&NameShapes::of(ALL[at]));
        at += 1;
    }
    shapes
};

/// Names that we do not know, but that are not for the origin, or read as one that is not.
pub(super) fn is_kept_from_origins(field: &Field<'_>, for_many: bool, trusted: bool) -> bool {
    (SHAPES.may_hold(field.name_text) && is_claim_kept_back(field, for_many, trusted))
        || !trusted && message::is_forwarding_name(field.name_text)
}

fn is_claim_kept_back(field: &Field<'_>, for_many: bool, trusted: bool) -> bool {
    let is_of_proxies = || [OF_CLIENTS_ADDRESS, OF_SITE, OF_PROXIES].iter().any(|names| reads_as_one_of(field, names));
    let is_spelled_so = || [OF_CLIENTS_ADDRESS, OF_SITE, OF_PROXIES].iter().any(|names| is_one_of(field, names));
    reads_as(field.name_text, OF_NOBODY)
        || for_many && reads_as_one_of(field, ON_SHARED_FETCHES)
        || is_of_proxies() && !(trusted && is_spelled_so())
}

/// Does the field say which address the client has?
pub(super) fn is_of_clients_address(field: &Field<'_>) -> bool {
    SHAPES.may_hold(field.name_text) && is_one_of(field, OF_CLIENTS_ADDRESS)
}

/// By what a response is selected that such a request of a trusted proxy was answered with: what it says of the site, where that is another
/// thing than its target does, in lower case.
pub(super) fn selecting<'a>(request: &'a Request<'_>) -> impl Iterator<Item = &'static str> + 'a {
    let fields = request.fields;
    let name_of = |field: Field<'_>| {
        let is_it = |name: &&&str| field.name_text.eq_ignore_ascii_case(name.as_bytes());
        OF_SITE.iter().find(is_it).filter(|_| SHAPES.may_hold(field.name_text)).copied()
    };
    let others = fields.iter().filter_map(name_of);
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

    fn kept_back(name: &str, for_many: bool, trusted: bool) -> bool {
        let mut fields = Fields::default();
        match FieldName::classify(name.as_bytes()) {
            FieldName::Other => fields.push_named(name.as_bytes(), b"1"),
            known => fields.push(known, "1"),
        }
        fields.view().iter().any(|field| is_kept_from_origins(&field, for_many, trusted))
    }

    #[test]
    fn a_claim_goes_on_from_a_trusted_proxy_alone_and_in_its_own_spelling() {
        for name in [OF_CLIENTS_ADDRESS, OF_SITE, OF_PROXIES].into_iter().flatten() {
            let odd = name.replace('-', "_");
            assert!(kept_back(name, false, false) && kept_back(&odd, false, false), "{name} of a stranger");
            assert!(!kept_back(&name.to_ascii_uppercase(), false, true), "{name} of a proxy");
            assert!(odd == **name || kept_back(&odd, false, true), "{odd} of a proxy");
        }
        assert!(kept_back("Proxy", false, true) && kept_back("proxy_", false, true), "nobody says that");
        for name in ON_SHARED_FETCHES {
            assert!(kept_back(name, true, true), "{name}");
        }
        assert!(!kept_back("X-Host", false, false) && !kept_back("X-Own", true, false));
        assert!(kept_back("X-Forwarded-Anything", false, false) && !kept_back("X-Forwarded-Anything", false, true));
    }
}
