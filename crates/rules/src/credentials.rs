//! Credentials in a request and cookies in a response: what may have made a response one client's own.
//!
//! A response that was made for credentials is stored only where it says that others may have it
//! ([`Facts::says_shared`](crate::Facts::says_shared)). RFC 9111 asks for that of Authorization alone (§3.5); of the
//! other fields it knows nothing, and applications answer by them all the same.

use message::{Field, FieldName, FieldsView, NameShapes, reads_as};

use crate::why_not_stored::WhyNotStored;

/// Fields of a request by which applications and the proxies before them name a client, beside Cookie and
/// Authorization: certificates as a TLS terminator forwards them (RFC 9440 and its forerunners), keys and tokens of
/// programming interfaces, the user that a login before us found out, and the carts of WordPress's shops.
const OTHER_CREDENTIALS: [&str; 28] = [
    "X-Client-Cert",
    "X-Client-Certificate",
    "X-SSL-Cert",
    "X-SSL-Client-Cert",
    "X-SSL-Client-DN",
    "X-SSL-Client-S-DN",
    "X-SSL-Client-Verify",
    "SSL-Client-Cert",
    "SSL-Client-S-DN",
    "X-Forwarded-Client-Cert",
    "X-Forwarded-TLS-Client-Cert",
    "X-Forwarded-TLS-Client-Cert-Info",
    "X-ARR-ClientCert",
    "X-Amzn-Mtls-Clientcert",
    "X-Api-Key",
    "Api-Key",
    "X-Auth-Token",
    "X-Access-Token",
    "Private-Token",
    "Job-Token",
    "Remote-User",
    "X-Remote-User",
    "X-Forwarded-User",
    "X-Forwarded-Access-Token",
    "X-Auth-Request-User",
    "X-WP-Nonce",
    "Cart-Token",
    "Nonce",
];

/// A certificate that its client has shown to us, or to a proxy before us (RFC 9440): as strong as a password.
const CERTIFICATE: [&str; 2] = ["Client-Cert", "Client-Cert-Chain"];

const OTHER_SHAPES: NameShapes = NameShapes::of(&OTHER_CREDENTIALS);
const CERTIFICATE_SHAPES: NameShapes = NameShapes::of(&CERTIFICATE);

/// What credentials a request carries, by the reason for which its response is not stored: `None` for a request that says
/// nothing of who asks.
pub fn of_request(fields: FieldsView<'_>) -> Option<WhyNotStored> {
    let has = |is_it: fn(&Field<'_>) -> bool| fields.iter().any(|field| is_it(&field));
    if fields.contains(FieldName::Authorization) || has(is_certificate) {
        return Some(WhyNotStored::Authorization);
    }
    if fields.contains(FieldName::Cookie) {
        return Some(WhyNotStored::Cookie);
    }
    has(is_credential).then_some(WhyNotStored::Credentials)
}

/// The names of all fields of requests that say who asks.
pub fn names() -> impl Iterator<Item = &'static str> {
    ["Authorization", "Cookie"].into_iter().chain(CERTIFICATE).chain(OTHER_CREDENTIALS)
}

/// Does this field of a request say who asks?
pub fn is_credential(field: &Field<'_>) -> bool {
    // To CGI and its kin Remote_User is Remote-User.
    let is_known = |known: &&str| reads_as(field.name_text, known);
    match field.name {
        FieldName::Authorization | FieldName::Cookie => true,
        FieldName::Other => {
            let is_other = OTHER_SHAPES.may_hold(field.name_text) && OTHER_CREDENTIALS.iter().any(is_known);
            is_other || is_certificate(field)
        }
        _ => false,
    }
}

fn is_certificate(field: &Field<'_>) -> bool {
    field.name == FieldName::Other
        && CERTIFICATE_SHAPES.may_hold(field.name_text)
        && CERTIFICATE.iter().any(|known| reads_as(field.name_text, known))
}

/// Does a response give its client a cookie?
pub fn sets_cookie(fields: FieldsView<'_>) -> bool {
    let is_old = |name: &[u8]| name.eq_ignore_ascii_case(b"Set-Cookie2");
    fields.iter().any(|it| it.name == FieldName::SetCookie || it.name == FieldName::Other && is_old(it.name_text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::fields;

    fn check(lines: &str, expect: Option<WhyNotStored>) {
        assert_eq!(of_request(fields(lines).view()), expect, "{lines:?}");
    }

    #[test]
    fn requests_with_credentials() {
        check("", None);
        check("Accept: text/html\nX-Other: 1\nProxy-Authorization: x", None);
        check("Cookie: a=b", Some(WhyNotStored::Cookie));
        check("Authorization: Basic x", Some(WhyNotStored::Authorization));
        check("Cookie: a=b\nAuthorization: Basic x", Some(WhyNotStored::Authorization));
        check("Client-Cert: :eA==:", Some(WhyNotStored::Authorization));
        check("Cookie: a=b\nclient_cert_chain: :eA==:", Some(WhyNotStored::Authorization));
        for name in OTHER_CREDENTIALS {
            check(&format!("{name}: x"), Some(WhyNotStored::Credentials));
            check(&format!("{}: x", name.to_ascii_uppercase()), Some(WhyNotStored::Credentials));
            check(&format!("{}: x", name.replace('-', "_")), Some(WhyNotStored::Credentials));
        }
    }

    #[test]
    fn each_credential_is_known_by_its_field() {
        let lines = "Authorization: Basic x\nCookie: a=b\nX-Api-Key: x\nAccept: x\nX-Other: x";
        let said: Vec<bool> = fields(lines).view().iter().map(|field| is_credential(&field)).collect();
        assert_eq!(said, [true, true, true, false, false]);
    }

    #[test]
    fn a_reason_says_whether_it_is_about_credentials() {
        for why in [WhyNotStored::Authorization, WhyNotStored::Cookie, WhyNotStored::Credentials] {
            assert!(why.is_about_credentials(), "{why:?}");
        }
        assert!(!WhyNotStored::NoStore.is_about_credentials() && !WhyNotStored::Private.is_about_credentials());
    }

    #[test]
    fn responses_with_cookies() {
        for (lines, expect) in [
            ("", false),
            ("Set-Cookie: a=b", true),
            ("set-cookie2: a=b", true),
            ("Cookie: a", false),
            ("X-Other: a=b", false),
        ] {
            assert_eq!(sets_cookie(fields(lines).view()), expect, "{lines:?}");
        }
    }
}
