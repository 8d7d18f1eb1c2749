//! What of a plan differs from the one before, in the words of larder.toml: what an operator is told after a reload.
//!
//! Parts are compared as they are printed for people who debug: patterns and templates have no other comparison, and print what they were read from.

use std::fmt::Debug;

use proxy::settings::{RouteSettings, RouteTarget};

use crate::addresses::show_listen;
use crate::config::shown_route;
use crate::fleet_plan::LogPlan;
use crate::plan::Plan;
use crate::trace_collector::TraceCollector;

/// The parts that differ, by section.
pub fn between(before: &Plan, after: &Plan) -> Vec<String> {
    let mut changed = Vec::new();
    for (section, named) in
        [("[[listen]]", listeners as fn(&Plan) -> NamedParts), ("[origin]", origins), ("[[route]]", routes)]
    {
        note_named(&mut changed, section, &named(before), &named(after));
    }
    let others = others(before).into_iter().zip(others(after));
    changed.extend(others.filter(|((_, was), (_, is))| was != is).map(|((section, _), _)| section.to_owned()));
    changed
}

/// As many of them as a line has room for.
const SHOWN_IN_A_LINE: usize = 8;

/// What differs, for a line of the journal.
pub fn in_a_line(changed: &[String]) -> String {
    let shown = changed.iter().take(SHOWN_IN_A_LINE).map(String::as_str).collect::<Vec<_>>().join(", ");
    match changed.len() {
        0 => "nothing that larder.toml says is new".to_owned(),
        1..=SHOWN_IN_A_LINE => format!("new: {shown}"),
        all => format!("new: {shown} and {} more", all - SHOWN_IN_A_LINE),
    }
}

/// Parts with names, each name once, with all that is said by it.
type NamedParts = Vec<(String, String)>;

fn named(all: impl Iterator<Item = (String, String)>) -> NamedParts {
    let mut named: NamedParts = Vec::new();
    for (name, text) in all {
        match named.iter_mut().find(|(known, _)| *known == name) {
            Some((_, said)) => said.push_str(&text),
            None => named.push((name, text)),
        }
    }
    named
}

fn listeners(plan: &Plan) -> NamedParts {
    named(plan.settings.listeners.iter().map(|it| {
        let files = plan.tls_files.iter().filter(|(address, _)| *address == it.address).map(|(_, files)| files);
        let text = format!("{:?}", (&it.mode, it.proxy_protocol, it.h2c, files.collect::<Vec<_>>()));
        (show_listen(&it.address), text)
    }))
}

fn origins(plan: &Plan) -> NamedParts {
    named(plan.settings.origins.iter().map(|origin| (origin.name.to_string(), format!("{origin:?}"))))
}

/// What a preset says of single paths changes with its site.
fn routes(plan: &Plan) -> NamedParts {
    let settings = &plan.settings;
    let written = settings.routes.iter().filter(|route| !route.yields_to_paths);
    named(written.map(|route| {
        // By a number, which is another one as soon as somebody stands before it.
        let target = match route.target {
            RouteTarget::Origin(at) => settings.origins[at].name.to_string(),
            RouteTarget::Root(at) => {
                let root = &settings.roots[at];
                let runs_in = root.scripts.as_ref().map(|scripts| &settings.origins[scripts.origin].name);
                format!(
                    "{:?}",
                    (&root.directory, &root.index, &root.fallback, &root.cache_control, root.listing, runs_in)
                )
            }
            RouteTarget::Memcached(at) => format!("{:?}", settings.memcached[at]),
            RouteTarget::StatusPage(at) => format!("{:?}", settings.status_pages[at]),
            other @ (RouteTarget::Closed | RouteTarget::Itself) => format!("{other:?}"),
        };
        let route_alone = RouteSettings { target: RouteTarget::Itself, ..route.clone() };
        (shown_route(route), format!("{route_alone:?} {target}"))
    }))
}

/// The sections of which there is one, and what they say.
fn others(plan: &Plan) -> Vec<(&'static str, String)> {
    let settings = &plan.settings;
    let said = |section, what: &dyn Debug| (section, format!("{what:?}"));
    vec![
        said("[policy]", &(&settings.policy, &settings.vcl, &plan.vcl_file, &plan.vcl_path)),
        said("[memory]", &(settings.memory_bytes_max, &settings.eviction)),
        said("[compress]", &settings.compress),
        said("[esi]", &settings.esi),
        said("[limits]", &settings.limits),
        said("[forward]", &settings.forward),
        said("[log]", &(&plan.log, &settings.log_format)),
        said("[traces]", &(&settings.traces, plan.trace_collector.as_ref().map(all_of_collector))),
        said("[fleet]", &plan.fleet_log.as_ref().map(LogPlan::said)),
        said("[shared]", &plan.shared),
        said("[acme]", &plan.acme),
        said("[admin]", &(&plan.admin.token, &plan.admin.explain_header, &settings.details_to, settings.debug)),
        said("[resolver]", &settings.resolver),
        said("server_name", &settings.server_name),
        said("trusted_proxies", &settings.trusted_proxies),
        said("odd_field_names", &settings.odd_field_names),
        said("hsts", &settings.hsts),
    ]
}

/// With the values of its headers, which print themselves as secrets.
fn all_of_collector(collector: &TraceCollector) -> impl Debug + use<'_> {
    let headers: Vec<_> = collector.headers.iter().map(|(name, value)| (name, value.as_bytes())).collect();
    (&collector.traces, &collector.logs, headers, &collector.service_name)
}

/// Of parts with names which came, which are others, and which went.
fn note_named(changed: &mut Vec<String>, section: &str, before: &NamedParts, after: &NamedParts) {
    let find = |all: &NamedParts, name: &str| all.iter().position(|(known, _)| known == name);
    for (name, text) in after {
        match find(before, name) {
            None => changed.push(format!("{section} {name} is new")),
            Some(at) if before[at].1 != *text => changed.push(format!("{section} {name}")),
            Some(_) => {}
        }
    }
    let gone = before.iter().filter(|(name, _)| find(after, name).is_none());
    changed.extend(gone.map(|(name, _)| format!("{section} {name} is gone")));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;

    const BEFORE: &str = "[[listen]]\naddress = \"127.0.0.1:8080\"\n[origin.a]\nurls = \"http://a\"\n\
                          [origin.b]\nurls = \"http://b\"\n[[route]]\norigin = \"b\"\n[[route]]\npath = \"/x\"\norigin = \"a\"\n";

    fn check(from: &str, to: &str, expect: &[&str]) {
        let plan = |text: &str| config::read(text).unwrap_or_else(|wrong| panic!("{text}: {wrong:?}"));
        assert_eq!(between(&plan(BEFORE), &plan(&BEFORE.replace(from, to))), expect, "{from:?} becomes {to:?}");
    }

    #[test]
    fn a_line_has_room_for_a_few_changes() {
        let changed: Vec<String> = (0..10).map(|n| format!("[origin] o{n}")).collect();
        assert_eq!(in_a_line(&[]), "nothing that larder.toml says is new");
        assert_eq!(in_a_line(&changed[..2]), "new: [origin] o0, [origin] o1");
        assert!(in_a_line(&changed).ends_with("[origin] o7 and 2 more"));
    }

    /// Values of headers print themselves as secrets.
    #[test]
    fn another_token_for_the_collector_is_seen() {
        let plan = |token: &str| {
            let traces = format!(
                "[traces]\nendpoint = \"http://127.0.0.1:4318\"\nheaders = {{ Authorization = \"{token}\" }}\n"
            );
            config::read(&format!("{BEFORE}{traces}")).unwrap_or_else(|wrong| panic!("{wrong:?}"))
        };
        assert_eq!(between(&plan("a"), &plan("b")), ["[traces]"]);
        assert!(between(&plan("a"), &plan("a")).is_empty());
    }

    #[test]
    fn what_changes_is_named_as_the_file_has_it() {
        check("http://a", "http://a", &[]);
        check("http://a", "http://c", &["[origin] a"]);
        check(":8080", ":8081", &["[[listen]] 127.0.0.1:8081 is new", "[[listen]] 127.0.0.1:8080 is gone"]);
        check("\"/x\"\n", "\"/x\"\nttl = \"1m\"\n", &["[[route]] any host and /x"]);
        check("\"/x\"\norigin = \"a\"", "\"/x\"\norigin = \"b\"", &["[[route]] any host and /x"]);
        check(
            "path = \"/x\"",
            "path = \"/y\"",
            &["[[route]] any host and /y is new", "[[route]] any host and /x is gone"],
        );
        check(
            "[[listen]]",
            "server_name = \"edge\"\n[limits]\nidle_timeout = \"9s\"\n[[listen]]",
            &["[limits]", "server_name"],
        );
        // Whoever stands before another one changes nothing of it.
        check("[origin.a]", "[origin.\"0\"]\nurls = \"http://z\"\n[origin.a]", &["[origin] 0 is new"]);
    }
}
