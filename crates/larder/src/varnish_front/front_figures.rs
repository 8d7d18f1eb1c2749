//! Shows larder's figures in Varnish's shared memory, for `varnishstat` and what graphs its numbers; and the log beside them,
//! in which there is that serving began.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

use vsm::{CounterSegment, Meaning, SegmentSet};

use super::fetch_tally::{TALLIED_OF_BACKENDS, TALLIED_OF_STORAGES};
use super::front_counters::{MAIN, MGT, POOL, SMA, SMF, VBE, class_of, figures_of};
use super::front_log::{FrontLog, Writing};
use super::log_tally::TALLIED;
use crate::admin::observation::Observation;

/// Where it is shown.
#[derive(Clone, Debug)]
pub struct SharedSets {
    pub management: SegmentSet,
    pub work: SegmentSet,
}

/// What is shown, as long as this lives.
pub struct Figures {
    management: CounterSegment,
    main: CounterSegment,
    memory: CounterSegment,
    /// What passes by the store: nothing of it is kept.
    transient: CounterSegment,
    disks: Vec<CounterSegment>,
    /// Of each worker: its sessions and its requests.
    pools: Vec<[CounterSegment; 2]>,
    backend: Meaning,
    /// By `PROGRAM.BACKEND`.
    backends: BTreeMap<String, CounterSegment>,
    work: SegmentSet,
    log: Arc<FrontLog>,
    _writing: Writing,
}

impl Figures {
    /// `storages`: name and kind, as they were given.
    pub fn publish(
        sets: &SharedSets,
        storages: &[(String, String)],
        (log, log_bytes): &(Arc<FrontLog>, u64),
        workers: usize,
    ) -> io::Result<Figures> {
        let (management, work) = (&sets.management, &sets.work);
        let of_kind =
            |kind: &'static str| storages.iter().filter(move |storage| storage.1 == kind).map(|storage| &storage.0);
        // The first one stands for all memory.
        let memory = of_kind("malloc").next().map_or("s0", String::as_str);
        let process = Meaning::publish(management, &class_of("mgt", "The process", 0, MGT), 1)?;
        let mut served = class_of("main", "What is served", 10, MAIN);
        served.counters.extend(TALLIED);
        let mut of_backends = class_of("vbe", "A backend", 50, VBE);
        of_backends.counters.extend(TALLIED_OF_BACKENDS);
        let main = Meaning::publish(work, &served, 2)?;
        let mut of_memories = class_of("sma", "The memory", 40, SMA);
        of_memories.counters.extend(TALLIED_OF_STORAGES);
        let memories = Meaning::publish(work, &of_memories, 3)?;
        let files = Meaning::publish(work, &class_of("smf", "A disk", 42, SMF), 4)?;
        let pool = Meaning::publish(work, &class_of("mempool", "What a worker has in use", 80, POOL), 6)?;
        let pool_of = |of: &str, worker: usize| pool.counters(work, &format!("MEMPOOL.{of}{worker}"));
        let pools = (0..workers).map(|worker| Ok([pool_of("sess", worker)?, pool_of("req", worker)?]));
        let disks = of_kind("file").map(|name| files.counters(work, &format!("SMF.{name}")));
        Ok(Figures {
            management: process.counters(management, "MGT")?,
            main: main.counters(work, "MAIN")?,
            transient: memories.counters(work, "SMA.Transient")?,
            memory: memories.counters(work, &format!("SMA.{memory}"))?,
            disks: disks.collect::<io::Result<_>>()?,
            pools: pools.collect::<io::Result<_>>()?,
            backend: Meaning::publish(work, &of_backends, 5)?,
            backends: BTreeMap::new(),
            work: work.clone(),
            log: Arc::clone(log),
            _writing: begun_log(log, work, *log_bytes)?,
        })
    }

    /// The figures of a moment; backends come and go.
    pub fn show(&mut self, now: &Observation) -> io::Result<()> {
        self.management.show(&figures_of(MGT, now))?;
        let served: Vec<u64> = figures_of(MAIN, now).into_iter().chain(self.log.tally().values()).collect();
        self.main.show(&served)?;
        let storages = self.log.tally().of_storages();
        self.memory.show(&figures_of(SMA, now).into_iter().chain(storages.store).collect::<Vec<_>>())?;
        self.transient.show(&SMA.iter().map(|_| 0).chain(storages.transient).collect::<Vec<_>>())?;
        for (shown, disk) in self.disks.iter().zip(&now.disks) {
            shown.show(&figures_of(SMF, disk))?;
        }
        for ([sessions, requests], load) in self.pools.iter().zip(&now.loads) {
            sessions.show(&figures_of(POOL, &load.connections))?;
            requests.show(&figures_of(POOL, &load.requests))?;
        }
        let mut seen = BTreeSet::new();
        // As in Varnish, a program that is cold has no counters.
        let warm = now.vcls.iter().filter(|vcl| vcl.is_warm);
        for (vcl, backend) in warm.flat_map(|vcl| vcl.backends.iter().map(move |backend| (vcl, backend))) {
            let name = format!("{}.{}", vcl.name, backend.origin.name);
            if !self.backends.contains_key(&name) {
                self.backends.insert(name.clone(), self.backend.counters(&self.work, &format!("VBE.{name}"))?);
            }
            let tallied = self.log.tally().of_backend(&name);
            self.backends[&name].show(&figures_of(VBE, backend).into_iter().chain(tallied).collect::<Vec<_>>())?;
            seen.insert(name);
        }
        self.backends.retain(|name, _| {
            let stays = seen.contains(name);
            if !stays {
                self.log.tally().forget_backend(name);
            }
            stays
        });
        Ok(())
    }
}

/// Readers wait for a first record.
fn begun_log(log: &Arc<FrontLog>, work: &SegmentSet, bytes: u64) -> io::Result<Writing> {
    let writing = Writing::begin(Arc::clone(log), work, bytes)?;
    for said in ["Rd start", "Wr 200 0 "] {
        log.note("CLI", said.as_bytes());
    }
    Ok(writing)
}
