//! `auth_request`: a service says of each request whether it may come in. Here is what it is asked, and what of its answer goes on with the
//! request; who asks it is `transaction/admit.rs`.
//!
//! It is asked by GET, without a body, with the fields of the request. What was asked for it reads in fields, by the names that services know:
//! those of nginx's manual and of Authelia (`X-Original-…`), and those of Traefik and Caddy (`X-Forwarded-…`).

use std::time::Duration;

use cache::{Cache, Key};
use message::{Field, FieldName, Fields, Method, Request, RequestHead, Status, TargetForm, Version, reads_as};
use rules::credentials;

use crate::client_identity::ClientIdentity;
use crate::limits::{AUTH_COPIED_BYTES_MAX, AUTH_KNOWN_FIELDS_BYTES_MAX};
use crate::route_rules::caching_rules::{CachingRules, Selector};
use crate::route_rules::field_template::{FieldTemplate, TemplateSource};
use crate::route_rules::nominated_fields::without_nominated;
use crate::subrequest_fields::{is_of_content, is_of_one_answer};

/// Who is asked, and what comes of the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthRequest {
    /// Index into `Settings::origins`.
    pub origin: usize,
    /// Path and query that it is asked for; begins with a slash.
    pub target: Box<str>,
    /// Fields of its answer that go on with the request, in place of the client's.
    pub copied: Vec<Box<str>>,
    /// Which of them is the name of the user, for the log.
    pub user: Option<Box<str>>,
    /// Where it leads by 302 whoever has to log in (401).
    pub login: Option<FieldTemplate>,
    /// From the question to the head of the answer.
    pub timeout: Duration,
    /// For so long nobody is asked again about who has shown the same credentials. 0: each time.
    pub known_for: Duration,
}

/// Path and query that were asked for …
pub(crate) const ORIGINAL_URI: &[u8] = b"X-Original-URI";
/// … by this method …
pub(crate) const ORIGINAL_METHOD: &[u8] = b"X-Original-Method";
/// … and the whole URL.
const ORIGINAL_URL: &[u8] = b"X-Original-URL";

/// What only we say to the service.
const SAID_BY_US: [&str; 5] =
    ["x-original-uri", "x-original-method", "x-original-url", "x-forwarded-uri", "x-forwarded-method"];

/// What the service says of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AuthAnswer {
    /// It may come in.
    Admitted,
    /// Its client is told what the service says: who it has to be, or where it becomes known.
    Refused,
    /// Nothing that can be understood: nobody comes in.
    Unclear,
}

impl AuthAnswer {
    pub(crate) fn of(status: Status) -> AuthAnswer {
        match status.0 {
            200..=299 => AuthAnswer::Admitted,
            401 | 403 | 301 | 302 | 303 | 307 | 308 => AuthAnswer::Refused,
            _ => AuthAnswer::Unclear,
        }
    }
}

impl AuthRequest {
    /// Is a field of this name the service's alone to say, in this or any other spelling that programs read as the same?
    pub fn copies(&self, name: &[u8]) -> bool {
        self.copied.iter().any(|copied| reads_as(name, copied) || name.eq_ignore_ascii_case(copied.as_bytes()))
    }

    /// May what is answered be another for each client, without that anybody is told? What is copied makes it so, but where the route's
    /// responses are selected by all of it.
    pub(crate) fn makes_personal(&self, caching: &CachingRules) -> bool {
        let selects = |name: &str| {
            let is_it =
                |selector: &Selector| matches!(selector, Selector::Field(own) if own.eq_ignore_ascii_case(name));
            caching.selected_by.iter().any(is_it)
        };
        !self.copied.iter().all(|name| selects(name))
    }

    /// The question about a request.
    pub(crate) fn question(&self, request: &Request<'_>) -> RequestHead {
        let is_ours = |field: &Field<'_>| SAID_BY_US.iter().any(|name| reads_as(field.name_text, name));
        let is_left_out = |field: &Field<'_>| {
            is_of_one_answer(field.name)
                || is_of_content(field)
                // Nothing is nominated: what is said of the request is said, whatever its client would leave out.
                || matches!(field.name, FieldName::Connection | FieldName::Upgrade)
                || is_ours(field)
                || self.copies(field.name_text)
        };
        let mut fields = Fields::default();
        request.fields.iter().filter(|field| !is_left_out(field)).for_each(|field| fields.push_field(&field));
        let mut uri = Vec::new();
        request.write_target(&mut uri);
        let mut url = [request.scheme.text().as_bytes(), b"://"].concat();
        request.authority.write_to(&mut url);
        url.extend_from_slice(&uri);
        fields.push_named(ORIGINAL_URI, &uri);
        fields.push_named(ORIGINAL_METHOD, request.method_text);
        fields.push_named(ORIGINAL_URL, &url);
        let (path, query) = match self.target.split_once('?') {
            Some((path, query)) => (path, Some(query.as_bytes())),
            None => (&*self.target, None),
        };
        let (method, method_text, version, form) = (Method::Get, &b"GET"[..], Version::Http11, TargetForm::Origin);
        let (path, authority) = (path.as_bytes(), request.authority.clone());
        Request { method, method_text, version, form, authority, path, query, fields: fields.view(), ..*request }
            .to_head()
    }

    /// What of the service's answer goes on with the request. `None`: it is more than is taken.
    pub(crate) fn copied_of(&self, answered: &Fields) -> Option<Fields> {
        let mut copied = Fields::default();
        let is_copied =
            |field: &Field<'_>| self.copied.iter().any(|name| field.name_text.eq_ignore_ascii_case(name.as_bytes()));
        answered.view().iter().filter(is_copied).for_each(|field| copied.push_field(&field));
        (copied.view().lines_bytes() <= AUTH_COPIED_BYTES_MAX).then_some(copied)
    }

    /// The page where its client logs in, if a service that answers so sends it there.
    pub(crate) fn login_page(&self, status: Status, source: &TemplateSource<'_>) -> Option<Vec<u8>> {
        let login = self.login.as_ref().filter(|_| status == Status(401))?;
        let mut location = Vec::new();
        login.write_login(source, &mut location);
        Some(location)
    }

    /// Who its client is, by what was copied.
    pub(crate) fn user_in<'a>(&self, copied: &'a Fields) -> Option<&'a [u8]> {
        copied.view().get_all_named(self.user.as_ref()?.as_bytes()).next()
    }

    /// The request as it goes on.
    pub(crate) fn admitted(&self, request: &Request<'_>, copied: &Fields) -> RequestHead {
        let mut fields = Fields::default();
        let left = without_nominated(request.fields);
        let left = left.as_ref().map_or(request.fields, Fields::view);
        let others = left.iter().filter(|field| !self.copies(field.name_text));
        others.for_each(|field| fields.push_field(&field));
        fields.append(copied);
        Request { fields: fields.view(), authority: request.authority.clone(), ..*request }.to_head()
    }

    /// By what an answer is known again: the credentials and whatever else a service may go by, who has shown them, and to which host and route
    /// of which service, which are named so that they are the same when the file has been read again. `None`: it is not kept.
    pub(crate) fn known_as(
        &self,
        (cache, origin): (&Cache, &str),
        route: impl FnOnce() -> Vec<u8>,
        request: &Request<'_>,
        client: &ClientIdentity,
    ) -> Option<Key> {
        if self.known_for.is_zero() {
            return None;
        }
        if !request.fields.iter().any(|field| credentials::is_credential(&field)) {
            return None;
        }
        let shown: Vec<_> = request.fields.iter().filter(may_decide).collect();
        let mut host = Vec::new();
        request.authority.write_to(&mut host);
        let (ip, copied) = (client.ip.to_string(), self.copied.join(","));
        let route = route();
        let service = [&b"auth"[..], origin.as_bytes(), &route, self.target.as_bytes(), copied.as_bytes()];
        let who = [ip.as_bytes(), &host];
        let shown = shown.iter().flat_map(|field| [field.name_text, field.value]);
        Some(cache.key(service.into_iter().chain(who).chain(shown)))
    }

    /// Is so much kept for who comes again?
    pub(crate) fn may_be_known(copied: &Fields) -> bool {
        copied.view().lines_bytes() <= AUTH_KNOWN_FIELDS_BYTES_MAX
    }
}

/// May a service decide by it? Whatever is a credential, or a name that nobody knows, but for what browsers and their networks say of
/// each request.
fn may_decide(field: &Field<'_>) -> bool {
    const OF_EACH_REQUEST: [&[u8]; 8] = [
        b"dnt",
        b"priority",
        b"upgrade-insecure-requests",
        b"origin",
        b"traceparent",
        b"tracestate",
        b"x-request-id",
        b"cf-ray",
    ];
    let is_of_each = || {
        let name = field.name_text;
        let is_browser_s = name.get(..4).is_some_and(|begin| begin.eq_ignore_ascii_case(b"sec-"));
        is_browser_s || OF_EACH_REQUEST.iter().any(|known| known.eq_ignore_ascii_case(name))
    };
    credentials::is_credential(field) || field.name == FieldName::Other && !is_of_each()
}

#[cfg(test)]
mod tests {
    use message::{Authority, Scheme};

    use super::*;

    fn service() -> AuthRequest {
        AuthRequest {
            origin: 0,
            target: "/verify?for=site".into(),
            copied: vec!["X-User".into(), "X-Forwarded-Groups".into()],
            user: Some("x-user".into()),
            login: None,
            timeout: Duration::from_secs(5),
            known_for: Duration::ZERO,
        }
    }

    fn fields(lines: &[(&str, &str)]) -> Fields {
        let mut fields = Fields::default();
        lines.iter().for_each(|(name, value)| fields.push_named(name.as_bytes(), value.as_bytes()));
        fields
    }

    fn asked(fields: &Fields) -> Request<'_> {
        Request {
            method: Method::Post,
            method_text: b"POST",
            version: Version::Http11,
            form: TargetForm::Origin,
            scheme: Scheme::Https,
            authority: Authority::parse(b"a.test", Scheme::Https).expect("a host"),
            path: b"/shop/x",
            query: Some(b"q=1"),
            fields: fields.view(),
        }
    }

    fn lines(head: &RequestHead) -> Vec<(String, String)> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        head.fields().iter().map(|field| (text(field.name_text), text(field.value))).collect()
    }

    #[test]
    fn a_question_has_the_fields_of_the_request_and_what_was_asked_for() {
        let sent = fields(&[
            ("Cookie", "sid=1"),
            ("Content-Type", "text/plain"),
            ("Content-Length", "3"),
            ("If-None-Match", "\"a\""),
            ("Range", "bytes=0-1"),
            ("X-Original-URI", "/public"),
            ("X_Forwarded-Uri", "/public"),
            ("X-User", "root"),
            ("X_User", "root"),
            ("Connection", "X-Original-URI, Cookie"),
            ("Accept", "*/*"),
        ]);
        let question = service().question(&asked(&sent));
        let request = question.request();
        assert_eq!(
            (request.method_text, request.path, request.query),
            (&b"GET"[..], &b"/verify"[..], Some(&b"for=site"[..]))
        );
        let expect = [
            ("Cookie", "sid=1"),
            ("Accept", "*/*"),
            ("X-Original-URI", "/shop/x?q=1"),
            ("X-Original-Method", "POST"),
            ("X-Original-URL", "https://a.test/shop/x?q=1"),
        ];
        assert_eq!(lines(&question), expect.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }

    #[test]
    fn what_a_client_says_of_itself_is_replaced_in_every_spelling() {
        let sent = fields(&[
            ("X-User", "root"),
            ("x_user", "root"),
            ("X-Forwarded_Groups", "admins"),
            ("X-Users", "a"),
            ("Connection", "X-User"),
        ]);
        let answered = fields(&[("X-User", "ann"), ("Set-Cookie", "a=b"), ("x-user", "Ann")]);
        let copied = service().copied_of(&answered).expect("little is copied");
        let head = service().admitted(&asked(&sent), &copied);
        let expect = [("X-Users", "a"), ("X-User", "ann"), ("x-user", "Ann")];
        assert_eq!(lines(&head), expect.map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert_eq!(head.request().path, b"/shop/x");
        assert_eq!(service().user_in(&copied), Some(&b"ann"[..]));
        // A service that says nothing leaves nobody's word in its place.
        let head = service().admitted(&asked(&sent), &Fields::default());
        assert_eq!(lines(&head).len(), 1);
    }

    #[test]
    fn more_than_is_taken_is_not_copied_in_part() {
        let long = "a".repeat(AUTH_COPIED_BYTES_MAX);
        assert!(service().copied_of(&fields(&[("X-User", &long)])).is_none());
        assert!(service().copied_of(&fields(&[("X-Other", &long)])).is_some());
    }

    #[test]
    fn what_is_copied_is_personal_unless_all_of_it_selects() {
        let selected = |names: &[&str]| CachingRules {
            selected_by: names.iter().map(|name| Selector::Field((*name).into())).collect(),
            ..CachingRules::default()
        };
        assert!(service().makes_personal(&selected(&[])));
        assert!(service().makes_personal(&selected(&["x-user"])));
        assert!(!service().makes_personal(&selected(&["x-user", "x-forwarded-groups"])));
        assert!(!AuthRequest { copied: Vec::new(), ..service() }.makes_personal(&selected(&[])));
    }

    #[test]
    fn only_a_success_lets_in_and_only_a_refusal_is_shown() {
        for (status, expect) in [
            (200, AuthAnswer::Admitted),
            (204, AuthAnswer::Admitted),
            (302, AuthAnswer::Refused),
            (401, AuthAnswer::Refused),
            (403, AuthAnswer::Refused),
            (304, AuthAnswer::Unclear),
            (404, AuthAnswer::Unclear),
            (429, AuthAnswer::Unclear),
            (500, AuthAnswer::Unclear),
        ] {
            assert_eq!(AuthAnswer::of(Status(status)), expect, "{status}");
        }
    }
}
