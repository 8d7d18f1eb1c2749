//! The origins that belong together: those of a configuration, the backends of a VCL, the parents of a forward proxy. What
//! one reload leaves to the next is decided here. It connects to nobody.

use std::sync::Arc;

use tls::Authorities;

use super::origin_pool::IdleAccount;
use super::resolver::Resolver;
use super::servers::{Servers, ServersTerms};
use super::tls_clients::TlsClients;
use super::whereabouts::Whereabouts;
use super::{AddressGate, Declared, Origin, OriginStatus, Speaks};
use crate::clock::mono_now_ms;
#[cfg(test)]
use crate::limits::Limits;
#[cfg(test)]
use crate::settings::ResolverSettings;
use crate::settings::{OriginSettings, OriginUrl, Settings};

/// All origins of a configuration, or all backends of a VCL. A reload makes new ones; those with equal URLs keep
/// connections, health and queue.
#[derive(Debug)]
pub struct Origins {
    origins: Vec<Arc<Origin>>,
    account: Arc<IdleAccount>,
    resolver: Arc<Resolver>,
    /// Whom this system trusts to say who a server is.
    authorities: SystemAuthorities,
}

/// What origins have in common, whoever declared them.
type InCommon = (Arc<IdleAccount>, Arc<Resolver>, SystemAuthorities);

/// Asked when an origin needs them.
type SystemAuthorities = fn() -> Option<Arc<Authorities>>;

impl Origins {
    pub fn new(settings: &Settings, previous: Option<&Origins>) -> Arc<Origins> {
        let account = previous.map_or_else(|| Arc::new(IdleAccount::new()), |p| Arc::clone(&p.account));
        let idle_timeout_ms = settings.limits.origin_idle_timeout.as_millis().try_into().unwrap_or(u64::MAX);
        account.set_limits(settings.limits.origin_idle_connections_max, idle_timeout_ms);
        let resolver = Resolver::new(settings.resolver.clone());
        let inherited = previous.map_or_else(Vec::new, |p| p.origins.iter().collect());
        let shared = (account, Arc::new(resolver), settings.authorities);
        Origins::with(&settings.origins, Declared::InConfig, shared, inherited)
    }

    /// No origin at all, but the limits and the resolver that backends share.
    #[cfg(test)]
    pub fn without_any(limits: &Limits, resolver: &ResolverSettings) -> Arc<Origins> {
        let account = Arc::new(IdleAccount::new());
        account.set_limits(limits.origin_idle_connections_max, 1_000);
        let resolver = Arc::new(Resolver::new(resolver.clone()));
        Origins::with(&[], Declared::InConfig, (account, resolver, || None), Vec::new())
    }

    /// The backends of a VCL, in their order. They share our limits of idle connections and our resolver, and go on with
    /// the connections of those in `previous` that are the same.
    pub fn of_backends(&self, backends: &[OriginSettings], previous: &[Arc<Origins>]) -> Arc<Origins> {
        let inherited = previous.iter().flat_map(|origins| &origins.origins).filter(|former| {
            // Programs live side by side, so what is shared must be the same for both.
            backends.iter().any(|b| b.name == *former.name && b.connections_max == former.servers.slots.open_max())
        });
        Origins::with(backends, Declared::InVcl, self.shared(), inherited.collect())
    }

    /// An origin that nobody configured, for a target that somebody asks a proxy for. `gate` says which of its addresses
    /// may be connected to.
    pub fn of_target(&self, settings: &OriginSettings, gate: Arc<dyn AddressGate>) -> Arc<Origin> {
        let terms = ServersTerms::of(settings);
        let servers = Servers::new(settings.urls.clone(), terms, settings.connections_max, &self.account, Some(gate));
        let tls = TlsClients::new(settings, self.authorities);
        Arc::new(Origin::new(settings, Declared::AsTarget, tls, servers, Arc::clone(&self.resolver)))
    }

    /// Proxies that are asked in place of destinations. They go on with the connections of those in `previous` that are the
    /// same.
    pub fn of_parents(&self, parents: &[OriginSettings], previous: Option<&Origins>) -> Arc<Origins> {
        let inherited = previous.map_or_else(Vec::new, |p| p.origins.iter().collect());
        Origins::with(parents, Declared::AsParent, self.shared(), inherited)
    }

    /// Other nodes of a fleet. They go on in the same way.
    pub(crate) fn of_nodes(&self, nodes: &[OriginSettings], previous: Option<&Origins>) -> Arc<Origins> {
        let inherited = previous.map_or_else(Vec::new, |p| p.origins.iter().collect());
        Origins::with(nodes, Declared::AsNode, self.shared(), inherited)
    }

    /// Where a URL leads, for somebody who keeps connections of its own.
    pub(crate) fn whereabouts(&self, url: OriginUrl) -> Whereabouts {
        Whereabouts::new(url, &self.account, &self.resolver)
    }

    fn shared(&self) -> InCommon {
        (Arc::clone(&self.account), Arc::clone(&self.resolver), self.authorities)
    }

    fn with(
        settings: &[OriginSettings],
        declared: Declared,
        (account, resolver, authorities): InCommon,
        mut inherited: Vec<&Arc<Origin>>,
    ) -> Arc<Origins> {
        let origins = settings.iter().map(|origin| {
            // Programs live side by side: one that is only loaded must not change what another one has.
            let by_name_only = declared == Declared::InVcl;
            let terms = ServersTerms::of(origin);
            let servers = match inherit(&mut inherited, origin, by_name_only) {
                Some(servers) => {
                    servers.set_terms(terms, mono_now_ms());
                    servers
                }
                None => Servers::new(origin.urls.clone(), terms, origin.connections_max, &account, None),
            };
            servers.set_connections_max(origin.connections_max);
            if !origin.urls.iter().any(|url| matches!(url, OriginUrl::Mocked(_))) {
                servers.subject.is_called(format!("{} \"{}\"", declared.word(), origin.name));
            }
            let tls = TlsClients::new(origin, authorities);
            Arc::new(Origin::new(origin, declared, tls, servers, Arc::clone(&resolver)))
        });
        let origins = origins.collect();
        Arc::new(Origins { origins, account, resolver, authorities })
    }

    pub fn all(&self) -> &[Arc<Origin>] {
        &self.origins
    }

    #[inline]
    pub fn get(&self, index: usize) -> &Arc<Origin> {
        &self.origins[index]
    }

    pub fn named(&self, name: &str) -> Option<&Arc<Origin>> {
        self.origins.iter().find(|origin| *origin.name == *name)
    }

    /// For the tick of each core: closes its connections that lay idle for too long or were closed by the origin, and
    /// renews names.
    pub fn sweep(&self, core: usize, now_ms: u64) {
        self.origins.iter().for_each(|origin| origin.sweep(core, now_ms));
    }

    /// Idle connections to all origins, those of former configurations included.
    pub fn idle_connections(&self) -> usize {
        self.account.count()
    }

    pub fn status(&self, now_ms: u64) -> Vec<OriginStatus> {
        self.origins.iter().map(|origin| origin.status(now_ms)).collect()
    }
}

/// The servers of the same URLs in the former configuration, preferably under the same name; each is inherited once.
fn inherit(previous: &mut Vec<&Arc<Origin>>, origin: &OriginSettings, by_name_only: bool) -> Option<Arc<Servers>> {
    let same_urls = |former: &&Arc<Origin>| {
        let is_asked_alike = former.greeting == origin.greeting && former.speaks == Speaks::of(origin);
        is_asked_alike && former.servers.urls == origin.urls && former.tls_settings == origin.tls
    };
    let index = previous
        .iter()
        .position(|former| same_urls(former) && *former.name == *origin.name)
        .or_else(|| previous.iter().position(same_urls).filter(|_| !by_name_only))?;
    Some(Arc::clone(&previous.swap_remove(index).servers))
}
