//! Pages to log in at that lie behind the very services which lead there: whoever is not let in is led to the page, is not let in there, and
//! is led there again.

use proxy::settings::{FieldTemplate, RouteSettings, TemplatePiece};

use super::route_match;

/// What is to be said of the services of these routes.
pub fn warnings(routes: &[RouteSettings]) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for route in routes {
        let Some(login) = route.rules.access.service.as_ref().and_then(|service| service.login.as_ref()) else {
            continue;
        };
        let Some((host, path)) = page(login, route.host.as_deref()) else { continue };
        let host = host.replace('*', "any");
        let Some(there) = RouteSettings::among(routes, host.as_bytes(), path.as_bytes()) else { continue };
        if there.rules.access.service.as_ref().is_none_or(|service| service.login.as_ref() != Some(login)) {
            continue;
        }
        let what = format!(
            "auth_request.login of {} leads to {path}, which asks the same service: whoever is not let in is led round in a circle, unless the \
             service lets everybody see that page. Add a [[route]] with path = \"{path}\" and auth_request = false",
            route_match::shown(route)
        );
        if !all.contains(&what) {
            all.push(what);
        }
    }
    all
}

/// Host and path of a page, where they are written there and it may be one of this site.
fn page(login: &FieldTemplate, own_host: Option<&str>) -> Option<(String, String)> {
    let written: String = login.pieces().map(shown).collect();
    let own = || own_host.unwrap_or_default().to_owned();
    let (host, rest) =
        match ["$scheme://", "https://", "http://"].iter().find_map(|scheme| written.strip_prefix(scheme)) {
            Some(rest) => {
                let (host, path) = rest.split_at(rest.find('/')?);
                (if host == "$host" { own() } else { host.to_owned() }, path)
            }
            None => (own(), written.as_str()),
        };
    let path = rest.split(['?', '#', '$']).next().filter(|path| path.starts_with('/'))?;
    // What is a variable may be any path.
    let is_whole = rest[path.len()..].chars().next().is_none_or(|next| next != '$');
    (is_whole && !host.contains('$')).then(|| (host, path.to_owned()))
}

/// A piece as it may have been written.
fn shown(piece: TemplatePiece<'_>) -> String {
    match piece {
        TemplatePiece::Text(text) => String::from_utf8_lossy(text).into_owned(),
        TemplatePiece::Variable(name) => format!("${name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::read;

    /// What is said of a site with this login and these further routes.
    fn check(login: &str, more: &str, expect: Option<&str>) {
        let text = format!(
            "[origin.a]\nurls = \"http://a\"\n[[route]]\nhost = \"a.test\"\norigin = \"a\"\n\
             auth_request = {{ origin = \"a\", path = \"/verify\", login = \"{login}\" }}\n{more}"
        );
        let said = read(&text).unwrap_or_else(|wrong| panic!("{text}: {wrong:?}")).warnings();
        assert_eq!(said.len(), usize::from(expect.is_some()), "{text}: {said:?}");
        assert!(said.iter().all(|said| said.contains(expect.unwrap_or_default())), "{said:?}");
    }

    #[test]
    fn a_page_to_log_in_at_must_not_ask_who_is_there() {
        const OPEN: &str = "[[route]]\nhost = \"a.test\"\norigin = \"a\"\npath = \"/login\"\nauth_request = false\n";
        let said = Some("auth_request.login of a.test and / leads to /login, which asks the same service");
        for login in ["/login?back=$request_uri", "$scheme://$host/login", "https://a.test/login"] {
            check(login, "", said);
            check(login, OPEN, None);
        }
        // Whoever is elsewhere, or anywhere, is not known here.
        for login in ["https://id.test/login?back=$request_uri", "/$arg_page", "https://$http_x_portal/login"] {
            check(login, "", None);
        }
        let other = "[[route]]\nhost = \"a.test\"\norigin = \"a\"\npath = \"/login\"\nauth_request = { origin = \"a\", path = \"/other\" }\n";
        check("/login", other, None);
    }
}
