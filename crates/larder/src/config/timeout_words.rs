//! `timeouts` of an origin and of a route.

use std::time::Duration;

use proxy::settings::{OriginTimeouts, RouteTimeouts};

use super::complaint::Complaint;
use super::section::{Node, Section, duration};

/// `timeouts = { connect, first_byte, between_bytes }` of an origin.
pub fn of_origin(section: &mut Section<'_>) -> OriginTimeouts {
    let Some(mut table) = section.section("timeouts") else { return OriginTimeouts::default() };
    let timeouts = read(&mut table);
    table.end();
    timeouts
}

/// The same of a route, with `whole`.
pub fn of_route(section: &mut Section<'_>) -> RouteTimeouts {
    let Some(mut table) = section.section("timeouts") else { return RouteTimeouts::default() };
    let timeouts = RouteTimeouts { of_origin: read(&mut table), whole: table.read("whole", time) };
    table.end();
    timeouts
}

fn read(table: &mut Section<'_>) -> OriginTimeouts {
    OriginTimeouts {
        connect: table.read("connect", time),
        first_byte: table.read("first_byte", time),
        between_bytes: table.read("between_bytes", time),
    }
}

/// Longer than nothing.
pub fn time(node: Node<'_>) -> Result<Duration, Complaint> {
    match duration(node)? {
        Duration::ZERO => Err(Complaint::new(node.span(), "0 is out of range", "must be longer than nothing")),
        time => Ok(time),
    }
}

/// What is said over what was said before.
pub fn over(said: &RouteTimeouts, before: &RouteTimeouts) -> RouteTimeouts {
    let (own, other) = (&said.of_origin, &before.of_origin);
    RouteTimeouts {
        of_origin: OriginTimeouts {
            connect: own.connect.or(other.connect),
            first_byte: own.first_byte.or(other.first_byte),
            between_bytes: own.between_bytes.or(other.between_bytes),
        },
        whole: said.whole.or(before.whole),
    }
}

#[cfg(test)]
mod tests {
    use super::super::read as read_config;
    use super::*;

    const SITE: &str = "[origin.web]\nurls = \"http://a\"\ntimeouts = { connect = \"1s\", first_byte = \"2s\" }\n";

    #[test]
    fn a_route_says_what_it_says_over_all_routes_and_an_origin_says_its_own() {
        let text = format!(
            "[policy]\ntimeouts = {{ first_byte = \"5s\", whole = \"1m\" }}\n{SITE}[[route]]\ntimeouts = {{ first_byte = \"9s\", between_bytes = \"3s\" }}\n"
        );
        let settings = read_config(&text).unwrap().settings;
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        let own = OriginTimeouts { connect: seconds(1), first_byte: seconds(2), between_bytes: None };
        assert_eq!(settings.origins[0].timeouts, own);
        let of_origin = OriginTimeouts { connect: None, first_byte: seconds(9), between_bytes: seconds(3) };
        assert_eq!(settings.routes[0].rules.timeouts, RouteTimeouts { of_origin, whole: seconds(60) });
    }

    fn check(word: &str, expect: &str) {
        let wrong = read_config(&format!("{SITE}{word}\n")).expect_err("it is taken for good");
        assert_eq!(wrong.iter().map(|complaint| complaint.what.as_str()).collect::<Vec<_>>(), [expect], "{word}");
    }

    #[test]
    fn what_cannot_be_is_refused() {
        check("[[route]]\ntimeouts = { whole = \"0s\" }", "0 is out of range");
        check("[[route]]\ntimeouts = { total = \"1s\" }", "unknown key `total` in [timeouts]");
        check("[[route]]\ntimeouts = \"1s\"", "[timeouts] must be a table, but this is a string");
        check(
            "[origin.b]\nurls = \"http://b\"\ntimeouts = { whole = \"1s\" }\n[[route]]\norigin = \"b\"",
            "unknown key `whole` in [timeouts]",
        );
    }
}
