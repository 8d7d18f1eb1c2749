//! A dry run: requests through a program with nobody there. What `larder vcl explain` shows and `larder vcl test`
//! judges.
//!
//! It is the story itself, on one core of its own: transaction, fetch, store and log are those of a served
//! request. Only the ends are mocked: the client is in memory (`downstream/dry_run.rs`); the backends are
//! `mocked_origins`; the clock stands still until it is moved (`DryRunner::advance`); names are not looked up
//! (`mocked_world`). `watch` hears what the programs do.

pub(crate) mod heard;
pub(crate) mod mocked_exchange;
pub(crate) mod mocked_origins;
mod mocked_world;
pub(crate) mod watch;
#[cfg(test)]
pub(crate) mod wire_answer;

use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use vcl::{Loaded, World};

use crate::backend_health::HealthOrder;
use crate::clock::Clock;
use crate::core::Core;
use crate::downstream::dry_run::{DryAnswer, DryRun};
use crate::dry_exchange;
pub use crate::dry_runner::heard::{Closed, Event, GivenLife, Ran};
pub use crate::dry_runner::mocked_exchange::{AnswerParts, MockedAnswer, RanHead, Sent};
use crate::dry_runner::mocked_origins::Stage;
use crate::dry_runner::mocked_world::MockedWorld;
use crate::dry_runner::watch::Watch;
use crate::limits::DRY_RUN_TIME_MAX;
use crate::log_sink::LogSink;
use crate::service::{Start, StartError, share};
use crate::settings::Settings;
use crate::site::Site;
use crate::vcl_site::VclProgram;

/// Noon of the first day of 2026: when every dry run begins.
const BEGINS_WALL_MS: u64 = 1_767_268_800_000;
/// Any moment long after a boot.
const BEGINS_MONO_MS: u64 = 1_000_000_000;

/// What the client got.
#[derive(Clone, Debug, PartialEq)]
pub struct Got {
    pub head: RanHead,
    pub reason: String,
    pub body: Vec<u8>,
}

/// One request, and who is there for it.
#[derive(Clone, Debug)]
pub struct Scene {
    pub client: IpAddr,
    /// Head and body, as they go over the wire.
    pub request: Vec<u8>,
    /// One after another; the last one again. None: 200 without fields.
    pub answers: Vec<MockedAnswer>,
}

/// A request that is over.
#[derive(Debug)]
pub struct DryRunOutcome {
    pub ran: Vec<Ran>,
    pub settled: Vec<GivenLife>,
    pub sent: Vec<Sent>,
    /// `None`: the connection was closed without an answer.
    pub got: Option<Got>,
    pub closed: Option<Closed>,
}

/// A place for dry runs: a program, an empty store, and time that stands still.
pub struct DryRunner {
    runtime: tokio::runtime::LocalRuntime,
    core: Rc<Core>,
    watch: Rc<Watch>,
    stage: Arc<Stage>,
    world: Arc<MockedWorld>,
    advanced_ms: u64,
}

/// What a dry run starts with.
pub struct DryRunnerStart {
    pub settings: Settings,
    pub machine: Arc<dyn World>,
    pub program: VclProgram,
    /// Where `return (vcl(LABEL))` leads.
    pub labels: Vec<(String, VclProgram)>,
}

/// Lines are made, because that is what runs; the watch hears them before.
struct Unread;

impl LogSink for Unread {
    fn write(&self, _: Vec<u8>, _: u64) -> Result<(), Vec<u8>> {
        Ok(())
    }
}

impl DryRunner {
    pub fn start(start: DryRunnerStart) -> Result<DryRunner, StartError> {
        let DryRunnerStart { mut settings, machine, program, labels } = start;
        settings.listeners = Vec::new();
        let wall_ms = AtomicU64::new(BEGINS_WALL_MS);
        let world = Arc::new(MockedWorld { machine, wall_ms });
        let stage = Arc::new(Stage::default());
        let empty = Start {
            records: None,
            settings: settings.clone(),
            workers: 1,
            log: Some(Arc::new(Unread)),
            world: Arc::clone(&world) as Arc<dyn World>,
            program: None,
            beneath: cache::Beneath::default(),
            fleet: None,
            memory: None,
        };
        let instance: Arc<str> = "dry-run".into();
        let shared = share(empty, &instance, Some(Arc::clone(&stage)))?;
        let mut site = Site::new(settings, &instance, Some(&shared.site.load_full()));
        let shelf = &shared.shelf;
        for (label, program) in labels {
            let name = program.name.clone();
            let ready = shelf.prepare(program, &site).map_err(StartError::Vcl)?;
            let mut changes = shelf.changes();
            shelf.put(&mut changes, ready).map_err(StartError::Vcl)?;
            shelf.label(&mut changes, &label, &name).map_err(StartError::Vcl)?;
        }
        let ready = shelf.prepare(program, &site).map_err(StartError::Vcl)?;
        let vcl = shelf.put(&mut shelf.changes(), ready).map_err(StartError::Vcl)?;
        // Probes are not mocked: who is sick is the scene's to say.
        for backend in vcl.loaded.backends() {
            vcl.order_health(&backend.name, HealthOrder::Healthy);
        }
        site.program = Some(vcl);
        shared.set_site(site);
        let watch = Rc::new(Watch::default());
        let core = Rc::new(Core::watched(shared, Rc::clone(&watch), clock_after(0)));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build_local(Default::default());
        let runtime = runtime.map_err(StartError::Thread)?;
        Ok(DryRunner { runtime, core, watch, stage, world, advanced_ms: 0 })
    }

    /// The program as it is loaded.
    pub fn loaded(&self) -> Arc<Loaded> {
        let site = self.core.site();
        Arc::clone(&site.program.as_ref().expect("a dry run has a program").loaded)
    }

    /// From here on the backend is sick, or well. False when there is none of that name.
    pub fn set_health(&self, backend: &str, healthy: bool) -> bool {
        let order = if healthy { HealthOrder::Healthy } else { HealthOrder::Sick };
        self.core.site().program.as_ref().is_some_and(|vcl| vcl.order_health(backend, order))
    }

    /// Time goes by.
    pub fn advance(&mut self, ms: u64) {
        self.advanced_ms = self.advanced_ms.saturating_add(ms);
        self.world.wall_ms.store(BEGINS_WALL_MS + self.advanced_ms, Ordering::Relaxed);
        self.core.set_clock(clock_after(self.advanced_ms));
    }

    /// Runs one request to its end, and to that of the refresh that it leaves behind. The error is for people.
    pub fn ask(&mut self, scene: &Scene) -> Result<DryRunOutcome, String> {
        self.stage.begin(scene.answers.clone());
        let (core, watch) = (Rc::clone(&self.core), Rc::clone(&self.watch));
        let outcome = self.runtime.block_on(async {
            let whole = async {
                let run = dry_exchange::ask(&core, scene.client, &scene.request).await;
                while watch.has_fetches() {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                got(run)
            };
            tokio::time::timeout(DRY_RUN_TIME_MAX, whole).await
        });
        let (ran, settled, closed) = self.watch.take();
        let got = match outcome {
            Ok(got) => got,
            Err(_) => {
                let seconds = DRY_RUN_TIME_MAX.as_secs();
                return Err(format!("the dry run did not end within {seconds} s (DRY_RUN_TIME_MAX)"));
            }
        };
        Ok(DryRunOutcome { ran, settled, sent: self.stage.take_sent(), got, closed })
    }
}

fn clock_after(ms: u64) -> Clock {
    Clock::standing(BEGINS_MONO_MS + ms, BEGINS_WALL_MS + ms)
}

/// What the client got. `None` when it got nothing.
fn got(run: DryRun) -> Option<Got> {
    let switched = run.interims.into_iter().find(|interim| interim.status == 101);
    let DryAnswer { status, reason, fields, body, .. } = run.answer.or(switched)?;
    Some(Got { head: RanHead { status, fields, ..RanHead::default() }, reason, body })
}
