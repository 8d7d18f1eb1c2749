//! One configuration, made ready to be asked: routes in the order in which they are tried, origins, and the texts
//! that every message carries. A reload makes a new one; transactions keep the one they began with.

use std::sync::Arc;

use cache::Failure;
use message::Request;

use crate::closed_paths::{self, WhyNot};
use crate::dictionary_paths::DictionaryPaths;
use crate::forward::parents::Ways;
use crate::forward::{Forward, Taken};
use crate::memcached_gateway::gateway_routes::Gateways;
use crate::origin::Origins;
use crate::settings::{
    CompressSettings, EsiPages, ListenerSettings, ListenerTls, RouteCompression, RouteSettings, RouteTarget, Settings,
};
use crate::static_files::StaticFiles;
use crate::vcl_site::VclSite;

/// From whom an answer is fetched that is not ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Backend {
    /// Index into the site's origins.
    Origin(usize),
    /// Whoever the request names.
    Forward,
}

/// How the answers of a route are compressed.
#[derive(Clone, Copy)]
pub(crate) struct Compression<'a> {
    pub(crate) settings: &'a CompressSettings,
    /// Also what is made for one client alone.
    pub(crate) is_always: bool,
    /// Whose responses are dictionaries for one another.
    pub(crate) dictionary_paths: &'a [DictionaryPaths],
}

pub(crate) struct Site {
    pub(crate) settings: Settings,
    pub(crate) origins: Arc<Origins>,
    pub(crate) files: Arc<StaticFiles>,
    pub(crate) forward: Arc<Forward>,
    pub(crate) memcached: Arc<Gateways>,
    /// Who decides in place of the built-in policy, origins and routes.
    pub(crate) vcl: Option<Arc<VclSite>>,
    /// Our received-by in `Via`: the server's name and an instance id, so that we know ourselves again.
    pub(crate) pseudonym: String,
    /// What we say in `Via` of what came by HTTP/1.1.
    pub(crate) via: String,
    /// `NAME; hit; ttl=`, the start of what a hit says in Cache-Status.
    pub(crate) hit_status: String,
    /// The Accept-Encoding of what is fetched for many.
    pub(crate) codings_asked: String,
    routes: Vec<RouteSettings>,
    /// Some route is closed, or some of its paths are.
    closes_paths: bool,
    /// Somewhere on it pages may have parts: Surrogate-Control is said to us, and to nobody behind us.
    pub(crate) is_esi_surrogate: bool,
    /// Some listener asks its clients for certificates.
    pub(crate) asks_for_client_certificates: bool,
}

impl Site {
    pub(crate) fn new(settings: Settings, instance: &str, previous: Option<&Site>) -> Site {
        let origins = Origins::new(&settings, previous.map(|site| &*site.origins));
        let former = previous.map(|site| &*site.forward);
        let forward = Forward::new(&settings.forward, &settings.limits, &origins, former);
        let memcached = Gateways::new(&settings.memcached, &origins, previous.map(|site| &*site.memcached));
        let mut routes = settings.routes.clone();
        routes.sort_by_key(|route| std::cmp::Reverse(rank(route)));
        let pseudonym = format!("{}-{instance}", settings.server_name);
        Site {
            via: format!("{} {pseudonym}", message::Version::Http11.number()),
            pseudonym,
            hit_status: format!("{}; hit; ttl=", settings.server_name),
            codings_asked: settings.compress.asked(),
            forward: Arc::new(forward),
            origins,
            files: Arc::new(StaticFiles::new(&settings.roots, &settings.limits, &settings.compress)),
            memcached: Arc::new(memcached),
            vcl: previous.and_then(|site| site.vcl.clone()),
            closes_paths: routes.iter().any(RouteSettings::closes_paths),
            is_esi_surrogate: has_parts(settings.esi.pages)
                || routes.iter().filter_map(|route| route.esi).any(has_parts),
            asks_for_client_certificates: asks_for_client_certificates(&settings.listeners),
            routes,
            settings,
        }
    }

    /// The same configuration with another program.
    pub(crate) fn with_vcl(site: &Site, vcl: Option<Arc<VclSite>>) -> Site {
        Site {
            settings: site.settings.clone(),
            origins: Arc::clone(&site.origins),
            files: Arc::clone(&site.files),
            forward: Arc::clone(&site.forward),
            memcached: Arc::clone(&site.memcached),
            vcl,
            pseudonym: site.pseudonym.clone(),
            via: site.via.clone(),
            hit_status: site.hit_status.clone(),
            codings_asked: site.codings_asked.clone(),
            routes: site.routes.clone(),
            closes_paths: site.closes_paths,
            is_esi_surrogate: site.is_esi_surrogate,
            asks_for_client_certificates: site.asks_for_client_certificates,
        }
    }

    /// Whom to fetch from, and in `ways` whom else when that one is not there.
    pub(crate) fn origin(
        &self,
        backend: Backend,
        request: &Request<'_>,
        now_ms: u64,
        ways: &mut Ways,
    ) -> Result<Taken, Failure> {
        match backend {
            Backend::Origin(index) => Ok(Taken { origin: Arc::clone(self.origins.get(index)), parent: None }),
            Backend::Forward => {
                *ways = self.forward.parents.ways(request, now_ms);
                self.forward.take_way(ways, request, now_ms)
            }
        }
    }

    /// What is compressed of answers that come from there, if anything is: a program has words of its own for that, and a forward
    /// proxy hands on what it is given.
    #[inline]
    pub(crate) fn compress(&self, backend: Option<Backend>) -> Option<&CompressSettings> {
        let compress = &self.settings.compress;
        (compress.is_on && self.vcl.is_none() && backend != Some(Backend::Forward)).then_some(compress)
    }

    /// The same with what the request's route says of it.
    pub(crate) fn compression_of(&self, request: &Request<'_>, backend: Option<Backend>) -> Option<Compression<'_>> {
        let settings = self.compress(backend)?;
        let route = self.route(request);
        let dictionary_paths = route.map_or(&[][..], |route| &route.dictionary_paths);
        match route.map(|route| route.compression).unwrap_or_default() {
            RouteCompression::Off => None,
            said => Some(Compression { settings, is_always: said == RouteCompression::Always, dictionary_paths }),
        }
    }

    /// Who answers this request: the most exact host, then the longest path.
    #[inline]
    pub(crate) fn route(&self, request: &Request<'_>) -> Option<&RouteSettings> {
        self.route_at(&request.authority.host, request.path)
    }

    fn route_at(&self, host: &[u8], path: &[u8]) -> Option<&RouteSettings> {
        self.routes.iter().find(|route| matches(route, host, path))
    }

    /// Which answers to requests like this are looked through for parts, where no program decides.
    pub(crate) fn esi_pages(&self, request: &Request<'_>) -> EsiPages {
        if !self.is_esi_surrogate || self.vcl.is_some() {
            return EsiPages::None;
        }
        self.route(request).and_then(|route| route.esi).unwrap_or(self.settings.esi.pages)
    }

    /// Why nobody is answered for this path, in any of the meanings that it may have to who is asked. `None` if it is open.
    #[inline]
    pub(crate) fn why_closed(&self, request: &Request<'_>) -> Option<WhyNot> {
        if self.closes_paths { self.why_closed_here(&request.authority.host, request.path) } else { None }
    }

    fn why_closed_here(&self, host: &[u8], path: &[u8]) -> Option<WhyNot> {
        if !self.routes.iter().any(|route| host_fits(route, host) && route.closes_paths()) {
            return None;
        }
        let Some(meanings) = closed_paths::meanings(path) else { return Some(WhyNot::Meaningless) };
        let asked = self.route_at(host, path).and_then(|route| route.closed.as_ref());
        let is_closed = |meaning: &Vec<u8>| {
            // What belongs to another route is nothing for the one that would answer.
            asked.is_some_and(|closed| closed.match_as_it_is(meaning)) || self.is_closed(host, meaning)
        };
        meanings.iter().any(is_closed).then_some(WhyNot::Closed)
    }

    /// Is nobody answered for this path, which means one thing alone?
    pub(crate) fn closes(&self, host: &[u8], path: &[u8]) -> bool {
        self.closes_paths && self.is_closed(host, path)
    }

    /// A directory is closed with any file that may answer for it.
    fn is_closed(&self, host: &[u8], path: &[u8]) -> bool {
        let Some(route) = self.route_at(host, path) else { return false };
        let Some(closed) = &route.closed else { return route.target == RouteTarget::Closed };
        let is_index_closed = || match route.target {
            RouteTarget::Root(root) if path.ends_with(b"/") => {
                let index = &self.settings.roots[root].index;
                index.iter().any(|name| closed.match_as_it_is(&[path, name.as_bytes()].concat()))
            }
            _ => false,
        };
        route.target == RouteTarget::Closed || closed.match_as_it_is(path) || is_index_closed()
    }
}

fn has_parts(pages: EsiPages) -> bool {
    pages != EsiPages::None
}

impl RouteSettings {
    fn closes_paths(&self) -> bool {
        self.closed.is_some() || self.target == RouteTarget::Closed
    }

    /// Which of these routes answers for a path on a host, which is in lower case.
    pub fn among<'a>(routes: &'a [RouteSettings], host: &[u8], path: &[u8]) -> Option<&'a RouteSettings> {
        routes.iter().filter(|route| matches(route, host, path)).max_by_key(|route| rank(route))
    }
}

/// Exact hosts before wildcards before any; longer before shorter.
fn rank(route: &RouteSettings) -> (u8, usize, usize) {
    let (class, host) = match &route.host {
        Some(host) if host.starts_with("*.") => (1, host.len()),
        Some(host) => (2, host.len()),
        None => (0, 0),
    };
    (class, host, route.path_prefix.len())
}

#[inline]
fn matches(route: &RouteSettings, host: &[u8], path: &[u8]) -> bool {
    host_fits(route, host) && path_fits(route.path_prefix.as_bytes(), path)
}

#[inline]
fn host_fits(route: &RouteSettings, host: &[u8]) -> bool {
    match route.host.as_deref() {
        None => true,
        Some(pattern) => match pattern.strip_prefix('*') {
            Some(suffix) => host.len() > suffix.len() && host.ends_with(suffix.as_bytes()),
            None => host == pattern.as_bytes(),
        },
    }
}

fn path_fits(prefix: &[u8], path: &[u8]) -> bool {
    if prefix == b"/" {
        return true;
    }
    match path.strip_prefix(prefix) {
        Some(rest) => prefix.ends_with(b"/") || matches!(rest.first(), None | Some(b'/')),
        None => false,
    }
}

fn asks_for_client_certificates(listeners: &[ListenerSettings]) -> bool {
    listeners.iter().filter_map(|listener| listener.tls.as_ref()).any(ListenerTls::asks_clients)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::RouteTarget;

    fn route(host: Option<&str>, path: &str, origin: usize) -> RouteSettings {
        RouteSettings {
            host: host.map(str::to_owned),
            path_prefix: path.to_owned(),
            target: RouteTarget::Origin(origin),
            closed: None,
            error_pages: None,
            compression: RouteCompression::Usual,
            dictionary_paths: Arc::default(),
            esi: None,
        }
    }

    fn check(host: &str, path: &str, expect: Option<usize>) {
        let mut routes = [
            route(None, "/shared", 1),
            route(Some("*.b.test"), "/", 2),
            route(Some("a.test"), "/", 3),
            route(Some("a.test"), "/img/", 4),
            route(Some("x.b.test"), "/", 5),
        ];
        routes.sort_by_key(|route| std::cmp::Reverse(rank(route)));
        let found = routes.iter().find(|r| matches(r, host.as_bytes(), path.as_bytes())).map(|r| r.target);
        assert_eq!(found, expect.map(RouteTarget::Origin), "{host}{path}");
    }

    #[test]
    fn the_most_exact_route_wins() {
        check("a.test", "/", Some(3));
        check("a.test", "/img/x.png", Some(4));
        check("a.test", "/images", Some(3));
        check("x.b.test", "/", Some(5));
        check("y.z.b.test", "/", Some(2));
        check("b.test", "/", None);
        check("c.test", "/shared", Some(1));
        check("c.test", "/shared/a", Some(1));
        check("c.test", "/sharedx", None);
    }
}
