//! The routes to memcached of one configuration: which servers each has, and which of them has a key.

use std::sync::Arc;

use crate::memcached_gateway::gateway_settings::MemcachedSettings;
use crate::memcached_gateway::memcached_server::{Server, ServerTerms};
use crate::memcached_gateway::server_ring::ServerRing;
use crate::origin::Origins;

/// All routes to memcached of one configuration.
#[derive(Debug, Default)]
pub(crate) struct Gateways {
    pub(crate) routes: Vec<Gateway>,
}

/// One route to memcached.
#[derive(Debug)]
pub(crate) struct Gateway {
    pub(crate) settings: MemcachedSettings,
    /// In the order of the settings.
    pub(crate) servers: Vec<Arc<Server>>,
    pub(crate) ring: ServerRing,
}

/// Connections that one core may have to all memcacheds of these routes.
pub fn connections_of_core_max(settings: &[MemcachedSettings]) -> usize {
    let mut terms: Vec<ServerTerms> = Vec::new();
    for route in settings {
        for server in &route.servers {
            let of_route = ServerTerms::of(route, &server.address);
            if !terms.contains(&of_route) {
                terms.push(of_route);
            }
        }
    }
    terms.iter().map(|terms| terms.connections_max).sum()
}

impl Gateways {
    /// Servers that `previous` knows under the same terms keep connections, gets and health. Names are looked up as
    /// those of `origins` are.
    pub(crate) fn new(settings: &[MemcachedSettings], origins: &Origins, previous: Option<&Gateways>) -> Gateways {
        let mut known: Vec<Arc<Server>> = previous
            .into_iter()
            .flat_map(|gateways| &gateways.routes)
            .flat_map(|route| &route.servers)
            .cloned()
            .collect();
        let mut server = |terms: ServerTerms| match known.iter().find(|server| server.terms == terms) {
            Some(server) => {
                server.whereabouts.store(Arc::new(origins.whereabouts(terms.address.url())));
                Arc::clone(server)
            }
            None => {
                let whereabouts = origins.whereabouts(terms.address.url());
                known.push(Arc::new(Server::new(terms, whereabouts)));
                Arc::clone(&known[known.len() - 1])
            }
        };
        let routes = settings.iter().map(|settings| Gateway {
            servers: settings.servers.iter().map(|at| server(ServerTerms::of(settings, &at.address))).collect(),
            ring: ServerRing::new(&settings.servers, settings.hash),
            settings: settings.clone(),
        });
        Gateways { routes: routes.collect() }
    }
}
