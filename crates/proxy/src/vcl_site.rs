//! A loaded VCL with everything that belongs to it: the program, its backends as origins, their health and probes, and
//! the labels it may hand requests to. A transaction that has one has all of it, and keeps it to its end, whatever is
//! loaded, used or discarded meanwhile.
//!
//! The last one to let go runs vcl_fini. What the program says about a request is not known here.

use std::sync::{Arc, Weak};

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;
use vcl::subroutines::Method as Subroutine;
use vcl::typed_program::{BackendId, Program};
use vcl::{Loaded, Sources, World};

use crate::backend_health::{BackendHealth, HealthOrder};
use crate::clock::{Clock, Moment};
use crate::dry_runner::mocked_origins::Stage;
use crate::made_backends::MadeBackends;
use crate::origin::{Origin, OriginStatus, Origins};
use crate::probe_window::ProbeWindow;
use crate::prober::{Prober, Probes, Probing};
use crate::settings::VclParameters;
use crate::site::Site;
use crate::vcl_backends;

pub(crate) struct VclSite {
    pub(crate) name: Arc<str>,
    pub(crate) loaded: Arc<Loaded>,
    /// It says nothing of its own about hits.
    pub(crate) leaves_hits_to_builtin: bool,
    /// Some of its backends are origins of larder.toml.
    names_configured: bool,
    /// By the program's ids.
    pub(crate) origins: Arc<Origins>,
    health: Vec<Arc<BackendHealth>>,
    probes: Probes,
    made: MadeBackends,
    /// By the program's numbers of labels.
    labels: Vec<Arc<VclLabel>>,
    world: Arc<dyn World>,
    /// Configurations that were made with it, as long as somebody holds them.
    sites: Mutex<Vec<Weak<Site>>>,
}

/// A name that stands for a program, now for this one, now for that.
pub(crate) struct VclLabel {
    pub(crate) name: String,
    pub(crate) program: ArcSwapOption<VclSite>,
}

/// A checked program to be loaded.
pub struct VclProgram {
    /// How operators call it.
    pub name: String,
    pub program: Program,
    pub sources: Sources,
}

/// What a program is loaded into.
pub(crate) struct Surroundings<'a> {
    pub(crate) world: &'a Arc<dyn World>,
    pub(crate) parameters: &'a VclParameters,
    /// Whose limits and resolver the backends share.
    pub(crate) base: &'a Arc<Origins>,
    /// Other programs, whose equal backends go on with their connections and health.
    pub(crate) others: &'a [Arc<VclSite>],
    pub(crate) labels: Vec<Arc<VclLabel>>,
    pub(crate) prober: &'a Arc<Prober>,
    /// In a dry run: who answers for the backends. Nobody probes them then.
    pub(crate) stage: Option<&'a Arc<Stage>>,
}

impl VclSite {
    /// Compiles the program, runs vcl_init, and begins to probe. The error is for people, a line each.
    pub(crate) fn load(program: VclProgram, into: Surroundings<'_>) -> Result<VclSite, String> {
        let VclProgram { name, program, sources } = program;
        let settings = vcl_backends::origins_of(&program, into.parameters, &**into.world);
        let mut settings = settings.map_err(|refusals| refusals.join("\n"))?;
        if let Some(stage) = into.stage {
            settings.iter_mut().for_each(|backend| stage.take_over(backend));
        }
        let former: Vec<Arc<Origins>> = into.others.iter().map(|other| Arc::clone(&other.origins)).collect();
        let origins = into.base.of_backends(&settings, &former);
        let health = health_of(&program, &origins, into.others);
        let probed = program.backends.iter().zip(&health).enumerate().filter(|_| into.stage.is_none());
        let probings = probed.filter_map(|(index, (backend, health))| {
            let probe = &program.probes[backend.endpoint.as_ref()?.probe?.index()];
            Some(Probing::new(origins.get(index), health, probe))
        });
        // Before the program's own beginning: what it began would have to be ended if this failed.
        let probes = into.prober.begin(probings.collect())?;
        let loaded = Loaded::load(program, sources, &**into.world)?;
        Ok(VclSite {
            name: name.into(),
            leaves_hits_to_builtin: leaves_hits_to_builtin(&loaded),
            names_configured: loaded.backends().iter().any(|backend| backend.is_elsewhere),
            loaded,
            probes,
            made: MadeBackends::new(into.base, into.parameters, into.prober, into.stage),
            origins,
            health,
            labels: into.labels,
            world: Arc::clone(into.world),
            sites: Mutex::default(),
        })
    }

    pub(crate) fn world(&self) -> &dyn World {
        &*self.world
    }

    /// The origin behind a backend. `None` for a number that the program never had, and for an origin that `configured` has no more.
    #[inline]
    pub(crate) fn origin(&self, of: BackendId, configured: &Origins) -> Option<Arc<Origin>> {
        if of.index() < self.health.len() {
            if self.names_configured
                && let Some(name) = self.name_elsewhere(of)
            {
                return configured.named(name).cloned();
            }
            return Some(Arc::clone(self.origins.get(of.index())));
        }
        self.made.get(of, &self.loaded, &*self.world).map(|made| Arc::clone(made.origins.get(0)))
    }

    /// Two loads and no lock, for a backend that the program defines.
    #[inline]
    pub(crate) fn health(&self, of: BackendId, configured: &Origins) -> vcl::Health {
        let said = |health: &BackendHealth| {
            let health = health.read();
            vcl::Health { healthy: health.healthy, changed_s: health.changed_ms as f64 / 1000.0 }
        };
        match self.health.get(of.index()) {
            Some(health) if self.names_configured => {
                let mut said = said(health);
                if let Some(name) = self.name_elsewhere(of) {
                    let now_ms = Clock::read().at(Moment::now()).mono_ms;
                    said.healthy = configured.named(name).is_some_and(|origin| origin.serves_beside(&[], now_ms));
                }
                said
            }
            Some(health) => said(health),
            None => match self.made.get(of, &self.loaded, &*self.world) {
                Some(made) => said(&made.health),
                None => vcl::Health { healthy: false, changed_s: 0.0 },
            },
        }
    }

    /// Is a backend that was chosen asked? A sick one is not. An origin of larder.toml says itself whom it asks where nobody serves: a wrong guess about health must not make an outage.
    #[inline]
    pub(crate) fn may_be_asked(&self, of: BackendId, configured: &Origins) -> bool {
        match self.names_configured.then(|| self.name_elsewhere(of)).flatten() {
            Some(name) => configured.named(name).is_some(),
            None => self.health(of, configured).healthy,
        }
    }

    /// The name in larder.toml of what the program does not define itself.
    fn name_elsewhere(&self, of: BackendId) -> Option<&str> {
        self.loaded.backends().get(of.index()).filter(|backend| backend.is_elsewhere).map(|backend| &*backend.name)
    }

    /// For the tick of each core.
    pub(crate) fn sweep(&self, core: usize, now_ms: u64) {
        self.origins.sweep(core, now_ms);
        self.made.made().iter().for_each(|made| made.origins.sweep(core, now_ms));
    }

    /// Every backend at a moment: the defined ones, then the made ones.
    pub(crate) fn backends(&self, now_ms: u64) -> Vec<(OriginStatus, Arc<BackendHealth>)> {
        let mut all: Vec<_> = self.origins.status(now_ms).into_iter().zip(self.health.iter().cloned()).collect();
        for made in self.made.made() {
            all.extend(made.origins.status(now_ms).into_iter().map(|status| (status, Arc::clone(&made.health))));
        }
        all
    }

    /// The program that a label stands for now, for `return (vcl(NAME))`.
    pub(crate) fn labelled(&self, name: &str) -> Option<Arc<VclSite>> {
        self.labels.iter().find(|label| label.name == name)?.program.load_full()
    }

    pub(crate) fn labels(&self) -> &[Arc<VclLabel>] {
        &self.labels
    }

    pub(crate) fn refers_to(&self, label: &VclLabel) -> bool {
        self.labels.iter().any(|own| std::ptr::eq(&**own, label))
    }

    /// An operator's word about the backends of this name. False when there is none.
    pub(crate) fn order_health(&self, backend: &str, order: HealthOrder) -> bool {
        let now_ms = Clock::read().at(Moment::now()).wall_ms;
        let own = self.loaded.backends().iter().zip(&self.health).filter(|(own, _)| own.name == backend);
        let own = own.map(|(_, health)| health.order(order, now_ms)).count();
        let made = self.made.made();
        let made = made.iter().filter(|made| made.name == backend);
        own + made.map(|made| made.health.order(order, now_ms)).count() > 0
    }

    pub(crate) fn set_warm(&self, is_warm: bool) {
        self.probes.set_warm(is_warm);
        self.made.made().iter().for_each(|made| made.probes.set_warm(is_warm));
    }

    pub(crate) fn is_warm(&self) -> bool {
        self.probes.is_warm()
    }

    /// A configuration was made with it.
    pub(crate) fn note_site(&self, site: &Arc<Site>) {
        let mut sites = self.sites.lock();
        sites.retain(|site| site.strong_count() > 0);
        sites.push(Arc::downgrade(site));
    }

    /// How many hold it, directly or through a configuration, and how many configurations there are: what is left when
    /// those are taken off that do so for good are transactions.
    pub(crate) fn holders(self: &Arc<VclSite>) -> Holders {
        let sites: Vec<Arc<Site>> = self.sites.lock().iter().filter_map(Weak::upgrade).collect();
        // Each is held once more, by ourselves.
        let through_sites = sites.iter().map(|site| Arc::strong_count(site) - 1).sum();
        Holders { directly: Arc::strong_count(self).saturating_sub(sites.len()), through_sites }
    }
}

/// See [`VclSite::holders`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Holders {
    pub(crate) directly: usize,
    pub(crate) through_sites: usize,
}

impl Drop for VclSite {
    fn drop(&mut self) {
        self.loaded.discard(&*self.world);
    }
}

impl std::fmt::Debug for VclSite {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("VclSite").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A backend is as well as its twin in another program is known to be: a reload must not take every backend for sick
/// until it was probed again.
fn health_of(program: &Program, origins: &Origins, others: &[Arc<VclSite>]) -> Vec<Arc<BackendHealth>> {
    let now_ms = Clock::read().at(Moment::now()).wall_ms;
    let of = |(index, backend): (usize, &vcl::typed_program::Backend)| {
        let Some(endpoint) = &backend.endpoint else { return BackendHealth::unprobed(false, now_ms) };
        let Some(probe) = endpoint.probe.map(|id| &program.probes[id.index()]) else {
            return BackendHealth::unprobed(true, now_ms);
        };
        let twin = others.iter().rev().find_map(|other| {
            let (at, twin) = other.loaded.backends().iter().enumerate().find(|(_, twin)| twin.name == backend.name)?;
            let its_probe = &other.loaded.probes()[twin.endpoint.as_ref()?.probe?.index()];
            let same = its_probe == probe && other.origins.get(at).urls() == origins.get(index).urls();
            if same && other.is_warm() { other.health[at].twin() } else { None }
        });
        twin.unwrap_or_else(|| {
            BackendHealth::probed(ProbeWindow::new(probe.window, probe.threshold, probe.initial), now_ms)
        })
    };
    program.backends.iter().enumerate().map(of).map(Arc::new).collect()
}

/// Does the program leave every step of a hit to builtin.vcl?
fn leaves_hits_to_builtin(program: &Loaded) -> bool {
    [Subroutine::Recv, Subroutine::Hash, Subroutine::Hit, Subroutine::Deliver]
        .into_iter()
        .all(|method| program.is_builtin(method))
}
