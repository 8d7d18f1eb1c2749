//! Backends that a program makes while it runs (vmod dynamic): each becomes an origin with its health and probe when
//! somebody first asks for it, and stays as long as the program does.
//!
//! Which number stands for which backend is the program's to say.

use std::sync::Arc;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use vcl::typed_program::BackendId;
use vcl::{Loaded, LogKind, World};

use crate::backend_health::BackendHealth;
use crate::clock::wall_now_ms;
use crate::dry_runner::mocked_origins::Stage;
use crate::origin::Origins;
use crate::probe_window::ProbeWindow;
use crate::prober::{Prober, Probes, Probing};
use crate::settings::VclParameters;
use crate::vcl_backends;

pub(crate) struct MadeBackends {
    /// By their numbers, from the first behind the program's own; one that is no good is remembered as that. Replaced
    /// whole, so that asking takes no lock.
    all: ArcSwap<Vec<MadeSlot>>,
    making: Mutex<()>,
    base: Arc<Origins>,
    parameters: VclParameters,
    prober: Arc<Prober>,
    stage: Option<Arc<Stage>>,
}

#[derive(Clone, Default)]
enum MadeSlot {
    #[default]
    Unasked,
    Good(Arc<MadeBackend>),
    NoGood,
}

pub(crate) struct MadeBackend {
    pub(crate) name: String,
    /// Of one.
    pub(crate) origins: Arc<Origins>,
    pub(crate) health: Arc<BackendHealth>,
    pub(crate) probes: Probes,
}

impl MadeBackends {
    pub(crate) fn new(
        base: &Arc<Origins>,
        parameters: &VclParameters,
        prober: &Arc<Prober>,
        stage: Option<&Arc<Stage>>,
    ) -> MadeBackends {
        MadeBackends {
            all: ArcSwap::default(),
            making: Mutex::default(),
            base: Arc::clone(base),
            parameters: parameters.clone(),
            prober: Arc::clone(prober),
            stage: stage.cloned(),
        }
    }

    /// The one of this number; made now if it is the first time. `None` when the program has none, or it is no good.
    pub(crate) fn get(&self, of: BackendId, loaded: &Loaded, world: &dyn World) -> Option<Arc<MadeBackend>> {
        let number = of.index().checked_sub(loaded.backends().len())?;
        let known = || self.all.load().get(number).cloned().unwrap_or_default();
        match known() {
            MadeSlot::Good(made) => return Some(made),
            MadeSlot::NoGood => return None,
            MadeSlot::Unasked => {}
        }
        let _making = self.making.lock();
        match known() {
            MadeSlot::Good(made) => return Some(made),
            MadeSlot::NoGood => return None,
            MadeSlot::Unasked => {}
        }
        // The program makes no more than `vcl::limits::DYNAMIC_BACKENDS_MAX`, so the list is not longer than that.
        let backend = loaded.dynamic_backend(of)?.backend;
        let made = self.make(&backend, loaded, world).map(Arc::new);
        if let Err(why) = &made {
            world.log(LogKind::Error, format!("backend `{}`: {why}", backend.name).as_bytes());
        }
        let made = made.ok();
        let mut all = Vec::clone(&self.all.load());
        all.resize_with(all.len().max(number + 1), MadeSlot::default);
        all[number] = made.clone().map_or(MadeSlot::NoGood, MadeSlot::Good);
        self.all.store(Arc::new(all));
        made
    }

    fn make(
        &self,
        backend: &vcl::typed_program::Backend,
        loaded: &Loaded,
        world: &dyn World,
    ) -> Result<MadeBackend, String> {
        let mut settings = vcl_backends::origin_of(backend, loaded.backends(), &self.parameters, world)?;
        if let Some(stage) = &self.stage {
            stage.take_over(&mut settings);
        }
        let origins = self.base.of_backends(std::slice::from_ref(&settings), &[]);
        let probe = backend.endpoint.as_ref().and_then(|endpoint| loaded.probes().get(endpoint.probe?.index()));
        let health = Arc::new(match probe {
            // One that comes while requests do is well until a probe says otherwise, or the first of them would fail.
            Some(probe) => {
                BackendHealth::probed(ProbeWindow::new(probe.window, probe.threshold, probe.threshold), wall_now_ms())
            }
            None => BackendHealth::unprobed(true, wall_now_ms()),
        });
        let probe = probe.filter(|_| self.stage.is_none());
        let probing = probe.map(|probe| Probing::new(origins.get(0), &health, probe));
        let probes = self.prober.begin(probing.into_iter().collect())?;
        Ok(MadeBackend { name: backend.name.clone(), origins, health, probes })
    }

    /// Those that were made up to now.
    pub(crate) fn made(&self) -> Vec<Arc<MadeBackend>> {
        let all = self.all.load();
        all.iter()
            .filter_map(|slot| if let MadeSlot::Good(made) = slot { Some(Arc::clone(made)) } else { None })
            .collect()
    }
}
