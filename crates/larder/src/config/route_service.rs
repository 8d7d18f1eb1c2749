//! `auth_request`: the service that says who may come in.

use std::time::Duration;

use proxy::settings::{AuthRequest, FieldTemplate, OriginSettings};

use super::complaint::Complaint;
use super::origins_by_name;
use super::route_fields;
use super::section::{Node, Section, as_switch, duration, parsed, text};
use super::timeout_words;

pub const TARGET: &str = "/";
pub const TIMEOUT: Duration = Duration::from_secs(5);
/// For longer than this nobody could be shut out.
const KNOWN_FOR_MAX: Duration = Duration::from_secs(3_600);

/// `auth_request = { origin, path, copy, timeout, cache }`. `false`: nobody is asked, whatever holds for all routes.
pub fn read(section: &mut Section<'_>, origins: &[OriginSettings]) -> Option<Option<AuthRequest>> {
    let node = section.get("auth_request")?;
    if as_switch(node) == Some(false) {
        return Some(None);
    }
    let mut table = section.section("auth_request")?;
    table.require("origin", "write origin = \"NAME\", where [origin.NAME] says where the service is");
    let origin = table.read("origin", |node| origins_by_name::asked_over_http(node, origins));
    let target = table.read("path", target);
    let copied: Option<Vec<Box<str>>> =
        table.read_list("copy", |node| route_fields::name_for_requests(node).map(Into::into));
    let user = table.read("user", text);
    if let (Some(user), Some(node)) = (user, table.get("user"))
        && !copied.iter().flatten().any(|name| name.eq_ignore_ascii_case(user))
    {
        let what = format!("`{user}` is not among the fields of `copy`");
        table.complaints().add(Complaint::new(node.span(), what, "nobody would know it").following_from(&["copy"]));
    }
    let login = table.read("login", login);
    let timeout = table.read("timeout", timeout_words::time);
    let known_for = table.read("cache", |node| match duration(node)? {
        time if time > KNOWN_FOR_MAX => {
            Err(Complaint::new(node.span(), "nobody could be shut out for so long", "must be at most 1h"))
        }
        time => Ok(time),
    });
    table.end();
    Some(Some(AuthRequest {
        origin: origin?,
        target: target.unwrap_or_else(|| TARGET.into()),
        copied: copied.unwrap_or_default(),
        user: user.map(Into::into),
        login,
        timeout: timeout.unwrap_or(TIMEOUT),
        known_for: known_for.unwrap_or_default(),
    }))
}

/// Nobody has shown who he is, and no pattern of a path has a part in it.
fn login(node: Node<'_>) -> Result<FieldTemplate, Complaint> {
    let template = route_fields::location(node)?;
    match template.has_groups() || template.has_user() {
        true => Err(Complaint::new(node.span(), "$0 to $9 and $remote_user mean nothing here", "nobody is known yet")),
        false => Ok(template),
    }
}

fn target(node: Node<'_>) -> Result<Box<str>, Complaint> {
    parsed(node, "path", "it begins with a slash, and has no space", |path| {
        let is_one = path.starts_with('/') && path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#');
        is_one.then(|| path.into())
    })
}

#[cfg(test)]
mod tests {
    use super::super::read as read_config;
    use super::*;

    const SITE: &str =
        "[origin.web]\nurls = \"http://a\"\n[origin.auth]\nurls = \"http://b\"\n[[route]]\norigin = \"web\"\n";

    fn service(word: &str) -> Option<AuthRequest> {
        let plan = read_config(&format!("{SITE}{word}\n")).unwrap_or_else(|wrong| panic!("{wrong:?}"));
        plan.settings.routes[0].rules.access.service.clone()
    }

    #[test]
    fn a_service_has_an_origin_and_the_rest_is_usual() {
        let usual = AuthRequest {
            origin: 1,
            target: "/".into(),
            copied: Vec::new(),
            user: None,
            login: None,
            timeout: TIMEOUT,
            known_for: Duration::ZERO,
        };
        assert_eq!(service("auth_request = { origin = \"auth\" }"), Some(usual));
        let all = "auth_request = { origin = \"auth\", path = \"/v?a=b\", copy = [\"X-User\", \"X-Forwarded-Groups\"], \
                   user = \"X-User\", login = \"/login?back=$request_uri\", timeout = \"1s\", cache = \"10s\" }";
        let expect = AuthRequest {
            origin: 1,
            target: "/v?a=b".into(),
            copied: vec!["X-User".into(), "X-Forwarded-Groups".into()],
            user: Some("X-User".into()),
            login: FieldTemplate::parse("/login?back=$request_uri").ok(),
            timeout: Duration::from_secs(1),
            known_for: Duration::from_secs(10),
        };
        assert_eq!(service(all), Some(expect));
        assert_eq!(service("auth_request = false"), None);
    }

    #[test]
    fn what_holds_for_all_routes_holds_unless_one_says_otherwise() {
        let policy = "[policy]\nauth_request = { origin = \"auth\" }\n";
        assert!(service(policy).is_some());
        assert!(service(&format!("auth_request = false\n{policy}")).is_none());
    }

    fn check(word: &str, expect: &str) {
        let wrong = read_config(&format!("{SITE}{word}\n")).expect_err("it is taken for good");
        let found: Vec<_> = wrong.iter().map(|complaint| complaint.what.as_str()).collect();
        assert_eq!(found, [expect], "{word}");
    }

    #[test]
    fn what_cannot_be_is_refused() {
        check("auth_request = { path = \"/v\" }", "`origin` is missing");
        check("auth_request = { origin = \"auht\" }", "there is no origin `auht`");
        check("auth_request = { origin = \"auth\", path = \"v\" }", "`v` is no path");
        check(
            "auth_request = { origin = \"auth\", copy = [\"Host\"] }",
            "the Host that an origin gets is `host` of its [origin.NAME]",
        );
        check("auth_request = { origin = \"auth\", user = \"X-User\" }", "`X-User` is not among the fields of `copy`");
        check("auth_request = { origin = \"auth\", login = \"login\" }", "`login` is no URL");
        let known = "auth_request = { origin = \"auth\", login = \"/login?who=$remote_user\" }";
        check(known, "$0 to $9 and $remote_user mean nothing here");
        check("auth_request = { origin = \"auth\", timeout = \"0s\" }", "0 is out of range");
        check("auth_request = { origin = \"auth\", cache = \"1d\" }", "nobody could be shut out for so long");
        check("auth_request = true", "[auth_request] must be a table, but this is a boolean");
        let php = "auth_request = { origin = \"php\" }\n[origin.php]\nfastcgi = \"unix:/run/php.sock\"\ndocument_root = \"/srv\"";
        check(php, "the origin `php` speaks FastCGI, and is asked for scripts alone");
    }

    #[test]
    fn no_route_is_told_apart_by_what_the_service_says() {
        let routes = "auth_request = { origin = \"auth\", copy = [\"X-User\"] }\n[[route]]\norigin = \"web\"\nheader = { X-User = \"ann\" }";
        check(routes, "routes are told apart by `X-User`, which is changed before a stored response is looked up");
    }
}
