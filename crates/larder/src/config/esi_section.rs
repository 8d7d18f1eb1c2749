//! `[esi]`: pages with parts, and `esi` of a `[[route]]`.

use proxy::settings::{EsiPages, EsiSettings};
use toml::de::DeValue;

use super::complaint::Complaint;
use super::routes::route_host;
use super::section::{Node, Section, choice, parsed, switch};

pub fn read(mut section: Section<'_>, esi: &mut EsiSettings) {
    if let Some(pages) = section.read("pages", pages) {
        esi.pages = pages;
    }
    if let Some(hosts) = section.read_list("hosts", |node| {
        parsed(node, "host", "a name without port, or *.NAME for every name below it", route_host)
    }) {
        esi.hosts = hosts;
    }
    if let Some(on) = section.read("variables", switch) {
        esi.has_variables = on;
    }
    let words = [("cookie", Passed::Cookie), ("authorization", Passed::Authorization)];
    for passed in section.read_list("pass", |node| choice(node, &words)).unwrap_or_default() {
        match passed {
            Passed::Cookie => esi.passes_cookies = true,
            Passed::Authorization => esi.passes_authorization = true,
        }
    }
    section.end();
}

/// What of the request for a page the requests for its parts have.
#[derive(Clone, Copy)]
enum Passed {
    Cookie,
    Authorization,
}

/// Which answers are looked through.
pub fn pages(node: Node<'_>) -> Result<EsiPages, Complaint> {
    match node.get_ref() {
        DeValue::Boolean(true) => Ok(EsiPages::All),
        DeValue::Boolean(false) => Ok(EsiPages::None),
        DeValue::String(word) if word == "surrogate" => Ok(EsiPages::Surrogate),
        _ => {
            let complaint = Complaint::new(node.span(), "this is not among the choices", "no such choice");
            Err(complaint.suggest("write \"surrogate\", true or false"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::read as read_config;
    use super::*;

    #[test]
    fn a_site_says_which_pages_have_parts_and_a_route_otherwise() {
        let text = "[esi]\npages = \"surrogate\"\nhosts = [\"Parts.test\", \"*.b.test\"]\npass = \"cookie\"\nvariables = true\n\
                    [[route]]\norigin = \"web\"\n[[route]]\npath = \"/shop\"\norigin = \"web\"\nesi = true\n\
                    [[route]]\npath = \"/raw\"\norigin = \"web\"\nesi = false\n[origin.web]\nurls = \"http://a\"\n";
        let settings = read_config(text).unwrap().settings;
        let expect = EsiSettings {
            pages: EsiPages::Surrogate,
            hosts: ["parts.test", "*.b.test"].map(str::to_owned).to_vec(),
            passes_cookies: true,
            passes_authorization: false,
            has_variables: true,
        };
        assert_eq!(settings.esi, expect);
        let routes: Vec<_> = settings.routes.iter().map(|route| route.esi).collect();
        assert_eq!(routes, [None, Some(EsiPages::All), Some(EsiPages::None)]);
        assert_eq!(read_config("").unwrap().settings.esi, EsiSettings::default());
    }

    #[test]
    fn what_it_cannot_be_is_said() {
        let check = |line: &str, expect: &str| {
            let wrong = read_config(&format!("[esi]\n{line}\n")).unwrap_err();
            let said: Vec<_> = wrong.iter().map(|complaint| complaint.what.as_str()).collect();
            assert_eq!(said, [expect], "{line}");
        };
        check("pages = \"all\"", "this is not among the choices");
        check("pages = 1", "this is not among the choices");
        check("hosts = \"http://a.test\"", "`http://a.test` is no host");
        check("hosts = \"a.test:8080\"", "`a.test:8080` is no host");
        check("pass = \"cookies\"", "`cookies` is not among the choices");
    }
}
