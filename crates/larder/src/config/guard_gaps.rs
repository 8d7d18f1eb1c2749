//! Guards of some methods alone, where a GET is guarded and whatever method else somebody thinks of is not: applications answer those as they
//! answer a GET.

use proxy::settings::RouteSettings;

use super::route_match;

/// What is to be said of the guards of these routes.
pub fn warnings(routes: &[RouteSettings]) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for route in routes {
        let Some(guard) = guard(route).filter(|_| route.methods.iter().any(|method| &**method == "GET")) else {
            continue;
        };
        let says_the_rest = |other: &&RouteSettings| {
            let whole = RouteSettings { methods: Vec::new(), ..route.clone() };
            !other.yields_to_paths && route_match::ask_for_the_same(other, &whole)
        };
        if routes.iter().any(|other| says_the_rest(&other)) {
            continue;
        }
        let methods: Vec<&str> = route.methods.iter().map(|method| &**method).collect();
        let named = match &methods[..] {
            [one] => (*one).to_owned(),
            [first @ .., last] => format!("{} and {last}", first.join(", ")),
            [] => continue,
        };
        let what = format!(
            "of {} other methods than {named} come to another route, without its {guard}: leave `method` out, or add a [[route]] for the same path \
             with closed = true",
            route_match::shown(route)
        );
        if !all.contains(&what) {
            all.push(what);
        }
    }
    all
}

/// The word by which a route lets in some and not others.
fn guard(route: &RouteSettings) -> Option<&'static str> {
    let access = &route.rules.access;
    let words = [
        (access.allowed.is_some(), "allow"),
        (!access.denied.is_empty(), "deny"),
        (access.login.is_some(), "basic_auth"),
        (access.service.is_some(), "auth_request"),
    ];
    words.into_iter().find(|(is_said, _)| *is_said).map(|(_, word)| word)
}

#[cfg(test)]
mod tests {
    use super::super::read;

    fn said(routes: &str) -> usize {
        let text = format!("[origin.a]\nurls = \"http://a\"\n{routes}");
        let warnings = read(&text).unwrap_or_else(|wrong| panic!("{text}: {wrong:?}")).warnings;
        warnings.iter().filter(|warning| warning.contains("other methods")).count()
    }

    #[test]
    fn a_guard_of_some_methods_is_said_to_be_none_of_others() {
        let guarded =
            "[[route]]\npath = \"/a\"\nmethod = [\"GET\", \"HEAD\"]\nallow = [\"192.0.2.0/24\"]\norigin = \"a\"\n";
        assert_eq!(said(guarded), 1);
        assert_eq!(said(&format!("{guarded}[[route]]\npath = \"/a\"\nclosed = true\n")), 0);
        // Who guards what is written alone lets everybody read.
        assert_eq!(said(&guarded.replace("\"GET\", \"HEAD\"", "\"POST\", \"PUT\"")), 0);
        assert_eq!(said(&guarded.replace("allow = [\"192.0.2.0/24\"]", "ttl = \"1s\"")), 0);
    }
}
