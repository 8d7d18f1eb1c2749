//! Credentials in a request and cookies in a response: what may have made a response one client's own.
//!
//! A response that was made for credentials is stored only where it says that others may have it
//! ([`Facts::says_shared`](crate::Facts::says_shared)). RFC 9111 asks for that of Authorization alone (§3.5); of the
//! other fields it knows nothing, and applications answer by them all the same.

use message::{Field, FieldName, FieldsView, NameShapes, reads_as};

use crate::why_not_stored::WhyNotStored;

/// A name with one of these words, which are told apart by what is no letter and no digit, says who asks, beside Cookie and Authorization:
/// keys and tokens of programming interfaces, sessions, what a login before us found out. Nobody knows all such names. A name that is taken for
/// one by mistake costs only that what was asked for with it is stored where it says that others may have it.
const WORDS: [&str; 28] = [
    "token",
    "accesstoken",
    "apitoken",
    "authtoken",
    "jwt",
    "session",
    "sessionid",
    "auth",
    "authorization",
    "authenticated",
    "bearer",
    "oidc",
    "saml",
    "principal",
    "assertion",
    "secret",
    "password",
    "passwd",
    "credential",
    "credentials",
    "apikey",
    "key",
    "dpop",
    "login",
    "userid",
    "username",
    "userinfo",
    "nonce",
];

/// Names that have none of these words: certificates as a TLS terminator forwards them (RFC 9440 and its forerunners), and the user that a
/// login before us found out.
const OTHERS: [&str; 30] = [
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
    "Remote-User",
    "Remote-Name",
    "Remote-Email",
    "Remote-Groups",
    "X-Remote-User",
    "X-Forwarded-User",
    "X-Forwarded-Email",
    "X-Forwarded-Groups",
    "X-User",
    "X-User-Id",
    "X-User-Name",
    "X-User-Email",
    "X-Email",
    "X-Webauth-User",
    "X-Authentik-Email",
    "X-Pomerium-Claim-Email",
];

/// Well-known names that have one, for who can ask for names alone.
const OF_WORDS: [&str; 38] = [
    "X-Api-Key",
    "Api-Key",
    "X-Api-Token",
    "X-Auth-Token",
    "X-Access-Token",
    "X-Authorization",
    "X-Token",
    "Private-Token",
    "Job-Token",
    "DPoP",
    "X-Session-Token",
    "X-Session-Id",
    "X-JWT-Assertion",
    "X-Forwarded-Access-Token",
    "X-Forwarded-Preferred-Username",
    "X-Auth-Request-User",
    "X-Auth-Request-Email",
    "X-Auth-Request-Access-Token",
    "X-Authenticated-User",
    "X-Authentik-Username",
    "X-Consumer-Username",
    "X-Userinfo",
    "Cf-Access-Jwt-Assertion",
    "X-Goog-IAP-JWT-Assertion",
    "X-Goog-Authenticated-User-Email",
    "X-MS-CLIENT-PRINCIPAL",
    "X-Amzn-Oidc-Data",
    "X-Amzn-Oidc-Accesstoken",
    "Ocp-Apim-Subscription-Key",
    "X-Vault-Token",
    "X-Plex-Token",
    "X-Gitlab-Token",
    "X-Redmine-API-Key",
    "X-Shopify-Access-Token",
    "sw-context-token",
    "X-WP-Nonce",
    "Cart-Token",
    "Nonce",
];

/// Browsers say these of themselves, and caches of each other.
const OF_NOBODY: [&[u8]; 2] = [b"sec-", b"surrogate-"];

/// A certificate that its client has shown to us, or to a proxy before us (RFC 9440): as strong as a password.
const CERTIFICATE: [&str; 2] = ["Client-Cert", "Client-Cert-Chain"];

const WORD_SHAPES: NameShapes = NameShapes::of(&WORDS);
const OTHER_SHAPES: NameShapes = NameShapes::of(&OTHERS);
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

/// The names of fields of requests that say who asks: those that are known. [`is_credential`] finds others by their words.
pub fn names() -> impl Iterator<Item = &'static str> {
    ["Authorization", "Cookie"].into_iter().chain(CERTIFICATE).chain(OTHERS).chain(OF_WORDS)
}

/// Does this field of a request say who asks?
pub fn is_credential(field: &Field<'_>) -> bool {
    match field.name {
        FieldName::Authorization | FieldName::Cookie => true,
        FieldName::Other => has_word(field.name_text) || is_among_others(field.name_text) || is_certificate(field),
        _ => false,
    }
}

/// Asked of each field of many requests: a word is compared only where one of its length begins so.
fn has_word(name: &[u8]) -> bool {
    let is_one = |word: &[u8]| {
        WORD_SHAPES.may_hold(word) && WORDS.iter().any(|known| known.as_bytes().eq_ignore_ascii_case(word))
    };
    name.split(|byte| !byte.is_ascii_alphanumeric()).any(is_one) && !is_of_nobody(name)
}

fn is_of_nobody(name: &[u8]) -> bool {
    OF_NOBODY.iter().any(|begin| name.get(..begin.len()).is_some_and(|own| own.eq_ignore_ascii_case(begin)))
}

/// To CGI and its kin Remote_User is Remote-User.
fn is_among_others(name: &[u8]) -> bool {
    OTHER_SHAPES.may_hold(name) && OTHERS.iter().any(|known| reads_as(name, known))
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
        for name in OTHERS.into_iter().chain(OF_WORDS) {
            check(&format!("{name}: x"), Some(WhyNotStored::Credentials));
            check(&format!("{}: x", name.to_ascii_uppercase()), Some(WhyNotStored::Credentials));
            check(&format!("{}: x", name.replace('-', "_")), Some(WhyNotStored::Credentials));
        }
    }

    #[test]
    fn a_name_nobody_has_listed_is_known_by_its_words() {
        let unlisted = ["X-Acme-Session", "acme_api_key", "X.Token", "Tailscale-User-Login", "X-MS-TOKEN-AAD-ID-TOKEN"];
        let words = WORDS.iter().map(|word| format!("X-Acme-{word}-Of-Something"));
        for name in unlisted.into_iter().map(str::to_owned).chain(words) {
            check(&format!("{name}: x"), Some(WhyNotStored::Credentials));
        }
        assert!(OF_WORDS.iter().all(|name| has_word(name.as_bytes())));
        assert!(!OTHERS.iter().any(|name| has_word(name.as_bytes())));
    }

    /// What browsers, and the networks between them and us, send with each request.
    #[test]
    fn what_everybody_sends_names_nobody() {
        let of_browsers = "User-Agent Accept Accept-Language Accept-Encoding Referer Origin Range If-None-Match Cache-Control Pragma Connection \
            Upgrade-Insecure-Requests DNT Priority Save-Data Device-Memory Viewport-Width Downlink ECT RTT Purpose X-Requested-With \
            Sec-GPC Sec-Purpose Sec-Fetch-Site Sec-Fetch-Mode Sec-Fetch-Dest Sec-Fetch-User Sec-CH-UA Sec-CH-UA-Mobile Sec-WebSocket-Key \
            Sec-CH-UA-Platform Sec-Browsing-Topics Sec-Session-Id Service-Worker Last-Event-ID Access-Control-Request-Headers \
            Access-Control-Request-Method Available-Dictionary Dictionary-ID Early-Data Content-Type";
        let of_networks = "traceparent tracestate baggage X-Request-Id X-Correlation-Id X-Amzn-Trace-Id X-B3-TraceId X-B3-Sampled b3 \
            uber-trace-id X-Cloud-Trace-Context sentry-trace X-Forwarded-For X-Forwarded-Proto X-Forwarded-Host X-Real-IP Forwarded Via \
            CF-Ray CF-Connecting-IP CF-IPCountry CF-Visitor CDN-Loop True-Client-IP X-Amz-Cf-Id CloudFront-Viewer-Country Fastly-Client-IP \
            Surrogate-Capability Surrogate-Key Proxy-Authorization X-Device X-Varnish X-Country";
        for name in of_browsers.split_whitespace().chain(of_networks.split_whitespace()) {
            check(&format!("{name}: x"), None);
            check(&format!("{}: x", name.to_ascii_lowercase()), None);
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
