//! Limits by `$remote_user` where nobody is known: they count nobody, and whoever wrote them relies on them.

use proxy::settings::{CountedBy, FieldTemplate, RouteSettings};

use super::route_match;

/// What is to be said of the limits of these routes.
pub fn warnings(routes: &[RouteSettings]) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for route in routes {
        let (rules, access) = (&route.rules, &route.rules.access);
        let rates = rules.rate_limits.iter().filter_map(|limit| limit.by.as_ref()).find(|by| by.has_user());
        let connections = rules.connection_limits.iter().find_map(|limit| match &limit.by {
            CountedBy::Key(by) if by.has_user() => Some(by),
            _ => None,
        });
        // Where the key has more than the name, that is left.
        let counts =
            |by: &FieldTemplate| if by.pieces().count() == 1 { "counts nobody" } else { "counts without a name" };
        let is_named = access.service.as_ref().is_some_and(|service| service.user.is_some());
        let shown = || route_match::shown(route);
        let mut say = |what: String| {
            if !all.contains(&what) {
                all.push(what);
            }
        };
        if let Some(by) = rates.filter(|_| access.login.is_none()) {
            say(format!(
                "rate_limit by $remote_user {} at {}: it is asked for no password there (basic_auth)",
                counts(by),
                shown()
            ));
        }
        if let Some(by) = connections.filter(|_| access.login.is_none() && !is_named) {
            say(format!(
                "connection_limit by $remote_user {} at {}: nobody has to say there who it is (basic_auth, or auth_request with user)",
                counts(by),
                shown()
            ));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::read;

    fn check(route: &str, expect: &[&str]) {
        const SITE: &str = "[origin.a]\nurls = \"http://a\"\n[[route]]\norigin = \"a\"\n";
        let plan = read(&format!("{SITE}{route}\n")).unwrap_or_else(|wrong| panic!("{wrong:?}"));
        let said = plan.warnings();
        assert_eq!(said.len(), expect.len(), "{route}: {said:?}");
        assert!(said.iter().zip(expect).all(|(said, part)| said.contains(part)), "{route}: {said:?}");
    }

    #[test]
    fn a_limit_by_name_needs_somebody_who_asks_for_names() {
        const RATE: &str = "rate_limit = { requests = 1, key = \"$remote_user\" }";
        const CONNECTIONS: &str = "connection_limit = { requests = 1, key = \"$remote_addr$remote_user\" }";
        const LOGIN: &str = "basic_auth = \"users\"";
        const SERVICE: &str = "auth_request = { origin = \"a\", copy = [\"X-User\"], user = \"X-User\" }";
        check(RATE, &["rate_limit by $remote_user counts nobody at"]);
        check(CONNECTIONS, &["connection_limit by $remote_user counts without a name at"]);
        check(&format!("{RATE}\n{CONNECTIONS}\n{LOGIN}"), &[]);
        check(&format!("{CONNECTIONS}\n{SERVICE}"), &[]);
        // How often is looked at before the service is asked.
        check(&format!("{RATE}\n{SERVICE}"), &["rate_limit"]);
        check(&format!("{CONNECTIONS}\nauth_request = {{ origin = \"a\" }}"), &["connection_limit"]);
        check("rate_limit = \"1/s\"\nconnection_limit = 3", &[]);
    }
}
