//! One configuration, made ready to be asked: routes in the order in which they are tried, origins, and the texts
//! that every message carries. A reload makes a new one; transactions keep the one they began with.

use std::path::Path;
use std::sync::Arc;

use cache::Failure;
use message::Request;

use crate::counted_routes::CountedRoutes;
use crate::dictionary_paths::DictionaryPaths;
use crate::fields_for_us::FieldsForUs;
use crate::fleet::Fleet;
use crate::forward::parents::Ways;
use crate::forward::passwords::Passwords;
use crate::forward::{Forward, Taken, users_of};
use crate::memcached_gateway::gateway_routes::Gateways;
use crate::origin::Origins;
use crate::rendezvous;
use crate::route_rules::RouteRules;
use crate::route_rules::answer_fields::AnswerFields;
use crate::route_table::{RouteAt, RouteTable};
use crate::settings::{
    CompressSettings, EsiPages, ListenerSettings, ListenerTls, RouteCompression, RouteSettings, Settings,
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

/// By which route a request is answered, and from whom what is not ours is fetched.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Routed {
    pub(crate) route: Option<RouteAt>,
    pub(crate) backend: Option<Backend>,
    /// What is answered is for this client alone, and nothing of it is stored.
    pub(crate) is_bypass: bool,
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
    /// The nodes that serve the same site, this one among them.
    pub(crate) fleet: Option<Arc<Fleet>>,
    pub(crate) fields_for_us: Option<Arc<FieldsForUs>>,
    /// Who decides in place of the built-in policy, origins and routes.
    pub(crate) program: Option<Arc<VclSite>>,
    /// Our received-by in `Via`: the server's name and an instance id, so that we know ourselves again.
    pub(crate) pseudonym: String,
    /// What we say in `Via` of what came by HTTP/1.1.
    pub(crate) via: String,
    /// `NAME; hit; ttl=`, the start of what a hit says in Cache-Status.
    pub(crate) hit_status: String,
    /// The Accept-Encoding of what is fetched for many.
    pub(crate) codings_asked: String,
    pub(crate) routes: RouteTable,
    pub(crate) counted_routes: CountedRoutes,
    /// Some route is not for everybody, or some of its paths are not.
    pub(crate) has_guards: bool,
    /// Some route has limits of its own for requests, or refuses them by an answer of its own.
    pub(crate) has_limits: bool,
    /// Some route has a service that says who may come in.
    pub(crate) has_services: bool,
    /// Of the users of routes, a file each.
    logins: Vec<Arc<Passwords>>,
    /// Somewhere on it pages may have parts: Surrogate-Control is said to us, and to nobody behind us.
    pub(crate) is_esi_surrogate: bool,
    /// Some listener asks its clients for certificates.
    pub(crate) asks_for_client_certificates: bool,
}

impl Site {
    /// Are spans made of exchanges that are over?
    pub(crate) fn makes_spans(&self) -> bool {
        self.settings.traces.as_ref().is_some_and(|traces| traces.exports)
    }

    pub(crate) fn new(settings: Settings, instance: &str, previous: Option<&Site>) -> Site {
        let origins = Origins::new(&settings, previous.map(|site| &*site.origins));
        let former = previous.map(|site| &*site.forward);
        let forward = Forward::new(&settings.forward, &settings.limits, &origins, former);
        let memcached = Gateways::new(&settings.memcached, &origins, previous.map(|site| &*site.memcached));
        let former = previous.and_then(|site| site.fleet.as_deref());
        let fleet = settings.fleet.as_ref().map(|fleet| Arc::new(Fleet::new(fleet, &origins, former)));
        let routes = RouteTable::new(settings.routes.clone());
        let former = previous.map_or(&[][..], |site| &site.logins);
        let (has_guards, logins) = (routes.iter().any(RouteSettings::guards), logins(&routes, former));
        let has_limits = routes.iter().any(|route| route.rules.limits_requests() || route.rules.answers_by_refusal());
        let has_services = routes.iter().any(|route| route.rules.access.service.is_some());
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
            fields_for_us: FieldsForUs::of(settings.explain_field.as_ref(), fleet.as_ref()),
            fleet,
            program: previous.and_then(|site| site.program.clone()),
            has_guards,
            has_limits,
            has_services,
            logins,
            is_esi_surrogate: has_parts(settings.esi.pages)
                || routes.iter().filter_map(|route| route.esi).any(has_parts),
            asks_for_client_certificates: asks_for_client_certificates(&settings.listeners),
            counted_routes: CountedRoutes::new(&routes, previous.map(|site| &site.counted_routes)),
            routes,
            settings,
        }
    }

    /// The same configuration with another program.
    pub(crate) fn with_vcl(site: &Site, program: Option<Arc<VclSite>>) -> Site {
        Site {
            settings: site.settings.clone(),
            origins: Arc::clone(&site.origins),
            files: Arc::clone(&site.files),
            forward: Arc::clone(&site.forward),
            memcached: Arc::clone(&site.memcached),
            fleet: site.fleet.clone(),
            fields_for_us: site.fields_for_us.clone(),
            program,
            pseudonym: site.pseudonym.clone(),
            via: site.via.clone(),
            hit_status: site.hit_status.clone(),
            codings_asked: site.codings_asked.clone(),
            routes: site.routes.clone(),
            counted_routes: site.counted_routes.clone(),
            has_guards: site.has_guards,
            has_limits: site.has_limits,
            has_services: site.has_services,
            logins: site.logins.clone(),
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
        (compress.is_on && self.program.is_none() && backend != Some(Backend::Forward)).then_some(compress)
    }

    /// The same with what the request's route says of it.
    pub(crate) fn compression_of(&self, routed: Routed) -> Option<Compression<'_>> {
        let settings = self.compress(routed.backend)?;
        let route = self.route_of(routed);
        let dictionary_paths = route.map_or(&[][..], |route| &route.dictionary_paths);
        match route.map(|route| route.compression).unwrap_or_default() {
            RouteCompression::Off => None,
            said => Some(Compression { settings, is_always: said == RouteCompression::Always, dictionary_paths }),
        }
    }

    #[inline]
    pub(crate) fn route_of(&self, routed: Routed) -> Option<&RouteSettings> {
        routed.route.map(|route| self.routes.at(route))
    }

    /// What stands for a route in every node of a fleet.
    pub(crate) fn route_digest(&self, routed: Routed) -> u64 {
        self.route_of(routed).map_or(0, |route| rendezvous::seed(&route.paths_text()))
    }

    /// What its operator says of a request beside who answers it.
    #[inline]
    pub(crate) fn rules_of(&self, routed: Routed) -> Option<&RouteRules> {
        self.route_of(routed).map(|route| &*route.rules)
    }

    /// Do parameters and cookies by which visits are counted make no difference? A program says that itself.
    #[inline]
    pub(crate) fn ignores_tracking(&self) -> bool {
        self.settings.policy.ignore_tracking.unwrap_or(self.program.is_none())
    }

    /// What becomes of the fields of answers, where anything does.
    #[inline]
    pub(crate) fn answer_fields_of(&self, routed: Routed) -> Option<&AnswerFields> {
        let route = routed.route.filter(|route| self.routes.heeds(*route).answers)?;
        Some(&self.routes.at(route).rules.answer_fields)
    }

    /// The users of a file. `None`: it cannot be read, and nobody is one.
    pub(crate) fn passwords_of(&self, file: &Path) -> Option<&Arc<Passwords>> {
        self.logins.iter().find(|passwords| passwords.is_of(file))
    }

    /// Does a service say who may come in?
    pub(crate) fn asks_service(&self, routed: Routed) -> bool {
        self.has_services && self.rules_of(routed).is_some_and(|rules| rules.access.service.is_some())
    }

    /// Which answers to requests like this are looked through for parts, where no program decides.
    pub(crate) fn esi_pages(&self, routed: Routed) -> EsiPages {
        if !self.is_esi_surrogate || self.program.is_some() {
            return EsiPages::None;
        }
        self.route_of(routed).and_then(|route| route.esi).unwrap_or(self.settings.esi.pages)
    }
}

fn has_parts(pages: EsiPages) -> bool {
    pages != EsiPages::None
}

/// The users of all routes; a file that is the same as before has the same ones.
fn logins(routes: &RouteTable, former: &[Arc<Passwords>]) -> Vec<Arc<Passwords>> {
    let mut all: Vec<Arc<Passwords>> = Vec::new();
    for login in routes.iter().filter_map(|route| route.rules.access.login.as_ref()) {
        if !all.iter().any(|known| known.is_of(&login.file)) {
            all.extend(users_of(&login.file, former.iter(), "basic_auth"));
        }
    }
    all
}

fn asks_for_client_certificates(listeners: &[ListenerSettings]) -> bool {
    listeners.iter().filter_map(|listener| listener.tls.as_ref()).any(ListenerTls::asks_clients)
}
