//! Roots beside a route that runs scripts: on the same host nobody is shown the source of one by another path.

use proxy::settings::{OriginSettings, RootSettings, RouteSettings, RouteTarget, ShownSources};

/// Has every root that runs nothing show no source where another route of its host runs some, unless its own route says so.
pub fn keep_back(routes: &[RouteSettings], roots: &mut [RootSettings], origins: &[OriginSettings]) {
    for route in routes {
        let RouteTarget::Root(at) = route.target else { continue };
        if roots[at].scripts.is_some() || roots[at].sources == ShownSources::All {
            continue;
        }
        let of_host = routes.iter().filter(|other| may_share_a_host(route.host.as_deref(), other.host.as_deref()));
        let running = of_host.filter_map(|other| run_by(other, roots, origins));
        let mut endings: Vec<String> = running.flatten().cloned().collect();
        endings.sort_unstable();
        endings.dedup();
        if !endings.is_empty() {
            roots[at].sources = ShownSources::Nothing { endings };
        }
    }
}

/// How the names of scripts end that a route runs.
fn run_by<'a>(
    route: &RouteSettings,
    roots: &'a [RootSettings],
    origins: &'a [OriginSettings],
) -> Option<&'a Vec<String>> {
    match route.target {
        RouteTarget::Root(at) => roots[at].scripts.as_ref().map(|scripts| &scripts.endings),
        RouteTarget::Origin(at) => origins[at].fastcgi.as_ref().map(|fastcgi| &fastcgi.endings),
        _ => None,
    }
}

/// May a request belong to either, by its host?
fn may_share_a_host(one: Option<&str>, other: Option<&str>) -> bool {
    let (Some(one), Some(other)) = (one, other) else { return true };
    let (one, other) = (one.to_ascii_lowercase(), other.to_ascii_lowercase());
    let below = |name: &str, all: &str| all.strip_prefix('*').is_some_and(|beneath| name.ends_with(beneath));
    one == other || below(&one, &other) || below(&other, &one)
}

#[cfg(test)]
mod tests {
    use super::super::read;
    use super::*;

    const PHP: &str = "[origin.php]\nfastcgi = \"unix:/run/php.sock\"\n[[route]]\nhost = \"*.a.test\"\norigin = \"php\"\nroot = \"/srv\"\n";

    /// What the root of such a route beside a site in PHP shows of sources.
    fn shown(route: &str) -> ShownSources {
        let text = format!("{PHP}[[route]]\npath = \"/files\"\nroot = \"/data\"\n{route}\n");
        read(&text).unwrap_or_else(|wrong| panic!("{text}: {wrong:?}")).settings.roots.remove(1).sources
    }

    #[test]
    fn beside_a_route_that_runs_scripts_no_source_is_shown() {
        let nothing = || ShownSources::Nothing { endings: vec![".php".to_owned()] };
        for host in ["", "host = \"www.A.test\"", "host = \"*.a.test\"", "host = \"*.b.a.test\""] {
            assert_eq!(shown(host), nothing(), "{host}");
        }
        for host in ["a.test", "www.b.test", "*.b.test"] {
            assert_eq!(shown(&format!("host = \"{host}\"")), ShownSources::NotOfPhp, "{host}");
        }
        assert_eq!(shown("sources = true"), ShownSources::All);
        assert_eq!(shown("sources = false"), nothing());
    }

    /// Where larder sees no script at all, what lies beside them may be a copy of one.
    #[test]
    fn so_it_is_where_one_script_answers() {
        let text = "[origin.php]\nfastcgi = \"unix:/php\"\ndocument_root = \"/app\"\n[[route]]\norigin = \"php\"\n\
                    [[route]]\npath = \"/files\"\nroot = \"/data\"\n";
        let root = read(text).unwrap().settings.roots.remove(0);
        assert_eq!(root.sources, ShownSources::Nothing { endings: vec![".php".to_owned()] });
    }

    #[test]
    fn who_runs_them_shows_none() {
        let wrong = read(&format!("{PHP}sources = true\n")).unwrap_err();
        assert!(wrong[0].what.contains("runs the scripts of this root"), "{wrong:?}");
    }
}
