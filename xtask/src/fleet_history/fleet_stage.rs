//! All that a round has on stage: the clock, the origin's site, Redis and the nodes; started together, ended together.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::broken_link::BrokenLink;
use super::judged_node::{FleetPlan, JudgedNode};
use super::judged_redis::JudgedRedis;
use super::purge_history::{Acknowledgement, HistoryClock, Micros};
use super::versioned_origin::VersionedSite;
use crate::dice::Dice;
use crate::project::Project;

pub const LEASE: Duration = Duration::from_secs(2);
pub const NODES: usize = 3;
pub const NAMES: [&str; NODES] = ["a", "b", "c"];

/// What is wrong on purpose, so that the judge can be seen to notice it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    /// What is ordered as `local` is judged as `applied`.
    LocalAsApplied,
    /// The nodes believe the log for many leases, and are judged by one.
    NoLease,
}

pub struct FleetStage {
    pub clock: HistoryClock,
    pub site: Arc<VersionedSite>,
    pub redis: JudgedRedis,
    pub nodes: Vec<JudgedNode>,
    pub planted: Option<Planted>,
    /// Clients and writers end.
    pub is_over: AtomicBool,
}

impl Planted {
    pub fn named(word: &str) -> Option<Planted> {
        match word {
            "local-as-applied" => Some(Planted::LocalAsApplied),
            "no-lease" => Some(Planted::NoLease),
            _ => None,
        }
    }
}

impl FleetStage {
    /// In an empty folder. Who of the nodes has a disk is drawn; one has. `has_tier`: they share what they fetch.
    pub fn start(
        project: &Project,
        folder: &Path,
        dice: &mut Dice,
        (planted, has_tier): (Option<Planted>, bool),
    ) -> Result<FleetStage, String> {
        let _ = fs::remove_dir_all(folder);
        fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        // Some answers of the origin take longer than a lease.
        let served = VersionedSite::serve(dice.next(), LEASE.mul_f64(1.1));
        let (site, origin_port) = served.map_err(|error| format!("the origin: {error}"))?;
        let redis = JudgedRedis::start(folder)?;
        let lease = match planted {
            Some(Planted::NoLease) => "15s".to_owned(),
            _ => format!("{}ms", LEASE.as_millis()),
        };
        let plan = FleetPlan { program: project.larder(), origin_port, lease, has_tier };
        let with_disk = dice.below(NODES as u64) as usize;
        let nodes = NAMES.iter().enumerate().map(|(number, name)| {
            let has_disk = number == with_disk || dice.below(2) == 0;
            let node = JudgedNode::new(&plan, folder, name, has_disk, BrokenLink::start(redis.port)?)?;
            node.start().map(|()| node)
        });
        let nodes = nodes.collect::<Result<_, _>>()?;
        let is_over = AtomicBool::new(false);
        Ok(FleetStage { clock: HistoryClock::start(), site, redis, nodes, planted, is_over })
    }

    /// As what an order is written, and as what it is judged.
    pub fn kinds(&self, drawn: Acknowledgement) -> (Acknowledgement, Acknowledgement) {
        match self.planted {
            Some(Planted::LocalAsApplied) => (Acknowledgement::Local, Acknowledgement::Applied),
            _ => (drawn, drawn),
        }
    }
}

pub fn lease() -> Micros {
    LEASE.as_micros() as Micros
}
