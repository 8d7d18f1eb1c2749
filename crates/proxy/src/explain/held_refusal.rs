//! Of a request that a route refuses, which word of which route does: what closes its path, or who is let in.

use std::path::Path;

use message::Request;

use crate::client_identity::ClientIdentity;
use crate::closed_paths;
use crate::counted_routes::name_of;
use crate::network::Network;
use crate::route_table::RouteAt;
use crate::settings::{RouteSettings, RouteTarget};
use crate::site::Site;
use crate::transaction::synth::Synth;

/// A sentence for who asks why; none where the answer says it all.
pub(super) fn of(
    site: &Site,
    came: &Request<'_>,
    client: &ClientIdentity,
    (route, token): (Option<RouteAt>, &str),
) -> Option<String> {
    let asked = route.map(|at| site.routes.at(at));
    // The path as it was sent first, and what else it may mean.
    let meanings = || [came.path.to_vec()].into_iter().chain(closed_paths::meanings(came.path).into_iter().flatten());
    let meant = |path: &[u8]| site.routes.find_path(came, path).map(|at| site.routes.at(at));
    match token {
        "route-closed" => meanings().find_map(|path| {
            let routes = asked.into_iter().chain(meant(&path));
            routes.into_iter().find_map(|route| closing(site, route, &path))
        }),
        Synth::OTHER_SPELLING => {
            let access = asked.map(|asked| &asked.rules.access);
            let guarded = |path: Vec<u8>| meant(&path).filter(|route| !route.rules.access.is_met_by(access));
            let other = meanings().find_map(guarded)?;
            let asked = asked.map_or_else(|| "no route".to_owned(), name_of);
            Some(format!(
                "the path may mean one of the route {}, whose basic_auth or auth_request {asked} does not ask for",
                name_of(other)
            ))
        }
        "client-not-allowed" => {
            let routes = asked.into_iter().chain(meanings().filter_map(|path| meant(&path)));
            routes.into_iter().find_map(|route| refusing(route, client))
        }
        "wants-login" => users_of(asked),
        _ => None,
    }
}

/// Who is let in with a password.
pub(super) fn users_of(route: Option<&RouteSettings>) -> Option<String> {
    let route = route?;
    let file: &Path = &route.rules.access.login.as_ref()?.file;
    Some(format!(
        "who has no right name and password gets 401: the users are those of {} (basic_auth of the route {}, or of [policy])",
        file.display(),
        name_of(route)
    ))
}

fn closing(site: &Site, route: &RouteSettings, path: &[u8]) -> Option<String> {
    let name = name_of(route);
    if route.target == RouteTarget::Closed {
        return Some(format!("`closed = true` of the route {name} closes it"));
    }
    let closed = route.closed.as_ref()?;
    let by = |path: &[u8]| {
        let pattern = closed.closing(path)?.show();
        Some(format!(
            "`closed_paths` of the route {name} has `{pattern}`, which closes {}",
            String::from_utf8_lossy(path)
        ))
    };
    let RouteTarget::Root(root) = route.target else { return by(path) };
    let index = site.settings.roots[root].index.iter().filter(|_| path.ends_with(b"/"));
    by(path).or_else(|| index.map(|name| [path, name.as_bytes()].concat()).find_map(|file| by(&file)))
}

fn refusing(route: &RouteSettings, client: &ClientIdentity) -> Option<String> {
    let (name, access, ip) = (name_of(route), &route.rules.access, client.ip);
    if !access.denied.is_empty() && client.is_hidden() {
        return Some(format!(
            "`deny` of the route {name}, or of [policy]: who the client is nobody vouches for, so it may be one of those (trusted_proxies)"
        ));
    }
    if let Some(network) = access.denied.iter().find(|network| client.is_among(std::slice::from_ref(network))) {
        return Some(format!("`deny` of the route {name}, or of [policy], has {}, in which {ip} is", shown(network)));
    }
    let allowed = access.allowed.as_ref()?;
    (!client.is_among(allowed)).then(|| {
        let all: Vec<String> = allowed.iter().map(shown).collect();
        format!("`allow` of the route {name}, or of [policy], has {}, in which {ip} is not", all.join(", "))
    })
}

fn shown(network: &Network) -> String {
    format!("{}/{}", network.address, network.prefix_bits)
}
