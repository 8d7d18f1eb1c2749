//! One round: a fleet that clients and writers use while faults come and go, until it must be well again; then what they saw is judged.

use std::fs;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;
use std::time::Duration;

use super::fleet_clients::{self, METHOD_WRITERS_AT_A_NODE, PurgeIntent, VISITORS_OF_A_NODE, WRITERS_AT_A_NODE};
use super::fleet_faults::{self, DrawnFault, FaultDone};
use super::fleet_stage::{FleetStage, LEASE, NODES, Planted, lease};
use super::method_writers;
use super::purge_history::{Acknowledgement, Micros, PurgeHistory};
use super::purge_promises::{BrokenPromise, broken_promises};
use super::versioned_origin::{PurgedPages, URLS};
use crate::dice::Dice;
use crate::project::Project;

/// A round in which little goes wrong lasts so long before it must be well again.
/// How long a fleet that is well may take over a purge. A lease is what it should; the machine may have more to do.
const CLOSING_MAX: Duration = LEASE.saturating_mul(5);
const FAULTS_LEAST: Duration = LEASE.saturating_mul(3);

/// What is known of a round when it is over.
pub struct FleetRound {
    pub seed: u64,
    pub faults: Vec<DrawnFault>,
    pub history: PurgeHistory,
    pub broken: Vec<BrokenPromise>,
    /// What else is wrong, a sentence each.
    pub wrong: Vec<String>,
    /// What the origin was asked, and how often it confirmed.
    pub origin: (u64, u64),
}

/// Do its nodes share what they fetch? Of two rounds that begin with the same kind of fault one has it so.
pub fn has_tier(seed: u64) -> bool {
    (seed + seed / fleet_faults::KINDS).is_multiple_of(2)
}

impl FleetRound {
    /// What it leaves behind stays where something was wrong, and all that was seen beside it.
    pub fn play(project: &Project, seed: u64, planted: Option<Planted>) -> Result<FleetRound, String> {
        let mut dice = Dice::of(seed);
        let folder = project.scratch("fleet-history")?.join(format!("seed-{seed}"));
        let stage = FleetStage::start(project, &folder, &mut dice, (planted, has_tier(seed)))?;
        let with_disk: Vec<usize> = (0..NODES).filter(|&node| stage.nodes[node].has_disk).collect();
        let faults = fleet_faults::drawn(seed, &mut dice, &with_disk);
        let (mut history, mut wrong) = live(&stage, &faults, &mut dice)?;
        look_at_all(&stage, &mut history);
        let broken = broken_promises(&history, lease());
        wrong.extend(history.unexcused().map(|failure| {
            let (node, begun) = (&stage.nodes[failure.node].name, failure.begun as f64 / 1e6);
            format!("a request to {node} at {begun:.3} s failed: {}", failure.what)
        }));
        if planted.is_some() {
            // What follows from the plant, but from no promise of a purge.
            wrong.clear();
        }
        let origin = (stage.site.asked.load(SeqCst), stage.site.confirmed.load(SeqCst));
        drop(stage);
        if broken.is_empty() && wrong.is_empty() {
            let _ = fs::remove_dir_all(&folder);
        } else {
            let written = fs::write(folder.join("history.log"), history.text());
            written.map_err(|error| format!("{}: {error}", folder.display()))?;
        }
        Ok(FleetRound { seed, faults, history, broken, wrong, origin })
    }
}

/// Until the faults are over, a lease has passed, and each node has been told one purge more.
fn live(stage: &FleetStage, faults: &[DrawnFault], dice: &mut Dice) -> Result<(PurgeHistory, Vec<String>), String> {
    thread::scope(|scope| {
        let mut users = Vec::new();
        for node in 0..NODES {
            for _ in 0..VISITORS_OF_A_NODE {
                let dice = Dice::of(dice.next());
                users.push(scope.spawn(move || fleet_clients::visit(stage, node, dice)));
            }
            for _ in 0..WRITERS_AT_A_NODE {
                let dice = Dice::of(dice.next());
                users.push(scope.spawn(move || fleet_clients::write(stage, node, dice)));
            }
            for _ in 0..METHOD_WRITERS_AT_A_NODE {
                let dice = Dice::of(dice.next());
                users.push(scope.spawn(move || method_writers::write(stage, node, dice)));
            }
        }
        let faults: Vec<_> = faults.iter().map(|fault| scope.spawn(move || fault.carry_out(stage))).collect();
        let done: Vec<FaultDone> = faults.into_iter().map(|fault| fault.join().expect("no panic")).collect();
        let early = (FAULTS_LEAST.as_micros() as Micros).saturating_sub(stage.clock.now());
        thread::sleep(LEASE + Duration::from_micros(early));
        let (mut history, mut wrong) = purge_at_all(stage);
        wrong.extend(method_writers::post_at_all(stage, CLOSING_MAX, &mut history));
        stage.is_over.store(true, SeqCst);
        users.into_iter().for_each(|user| history.add(user.join().expect("no panic")));
        for FaultDone { absences, errors } in done {
            history.absences.extend(absences);
            wrong.extend(errors);
        }
        Ok((history, wrong))
    })
}

/// The fleet is well again: whoever is told a purge has it applied within a lease.
fn purge_at_all(stage: &FleetStage) -> (PurgeHistory, Vec<String>) {
    let (mut history, mut wrong) = (PurgeHistory::default(), Vec::new());
    for (node, url) in (0..NODES).zip([0, 1, 2]) {
        let intent = PurgeIntent {
            pages: PurgedPages::Url(url),
            kind: Acknowledgement::Applied,
            is_unsaid: false,
            is_soft: false,
        };
        let is_acknowledged = fleet_clients::purge(stage, node, &intent, &mut history);
        let last = history.purges.last().expect("it is written down");
        let took = Duration::from_micros(last.ended - last.ordered);
        if !is_acknowledged || took > CLOSING_MAX {
            wrong.push(format!(
                "a lease after the last fault {} was told at {:.3} s to purge, and after {:.3} s that was {:?}",
                stage.nodes[node].name,
                last.ordered as f64 / 1e6,
                took.as_secs_f64(),
                last.outcome
            ));
        }
    }
    (history, wrong)
}

/// When nobody writes any more, every page of every node.
fn look_at_all(stage: &FleetStage, history: &mut PurgeHistory) {
    for (node, asked) in stage.nodes.iter().enumerate() {
        let mut client = asked.visitor();
        for url in 0..URLS {
            fleet_clients::ask(stage, node, &mut client, url, history);
        }
    }
}
