//! What goes wrong in a round: which faults, when and for how long follows from its seed. Each is carried out by a thread of its own, so
//! that two may overlap; what it has broken is whole again when it ends.

use std::fmt;
use std::thread;
use std::time::Duration;

use super::broken_link::LinkCondition;
use super::fleet_stage::{FleetStage, LEASE, NAMES, NODES};
use super::purge_history::{AbsenceRecord, Micros};
use crate::dice::Dice;

const DELAY_MS: (u64, u64) = (50, 300);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// kill -9 of a node, and its restart.
    NodeKilled,
    /// The same, and its link is cut until long after the restart.
    NodeStartedAlone,
    /// SIGSTOP and SIGCONT.
    NodeStopped,
    LinkCut,
    LinkFrozen {
        to_log: bool,
        from_log: bool,
    },
    LinkDelayed(Duration),
    RedisKilled,
    RedisStopped,
    /// FLUSHALL while the node's link is cut.
    RedisFlushed,
    /// The node's link is cut, FLUSHALL, and the next node is killed and restarted: it has heard of the others after that alone.
    NodeForgotten,
    /// XTRIM of the log to one entry while the node's link is cut.
    LogTrimmed,
    /// SCRIPT FLUSH.
    ScriptsFlushed,
}

#[derive(Clone, Copy, Debug)]
pub struct DrawnFault {
    pub kind: FaultKind,
    /// Whom it hits, where it is a fault of a node or its link.
    pub node: usize,
    /// Since the round began.
    pub begins: Duration,
    pub lasts: Duration,
}

/// What a fault did, by the clock of the round.
#[derive(Default)]
pub struct FaultDone {
    pub absences: Vec<AbsenceRecord>,
    /// What could not be done.
    pub errors: Vec<String>,
}

/// How many kinds there are.
pub const KINDS: u64 = 14;

/// One or two. The first one's kind is the seed's turn, so that a run of as many rounds as there are kinds has them all.
pub fn drawn(seed: u64, dice: &mut Dice, with_disk: &[usize]) -> Vec<DrawnFault> {
    let mut faults = vec![fault(seed, LEASE.mul_f64(0.5), dice, with_disk)];
    if dice.below(2) == 0 {
        // It begins while the first one lasts, or soon after.
        let begins = LEASE.mul_f64(0.5 + dice.below(200) as f64 / 100.0);
        faults.push(fault(dice.next(), begins, dice, with_disk));
    }
    faults
}

fn fault(turn: u64, begins: Duration, dice: &mut Dice, with_disk: &[usize]) -> DrawnFault {
    let leases =
        |dice: &mut Dice, least: u64, most: u64| LEASE.mul_f64((least + dice.below(most - least)) as f64 / 100.0);
    let begins = begins + leases(dice, 0, 50);
    let node = dice.below(NODES as u64) as usize;
    let (kind, lasts) = match turn % KINDS {
        0 | 1 => (FaultKind::NodeKilled, leases(dice, 5, 200)),
        2 => (FaultKind::NodeStopped, leases(dice, 100, 300)),
        3 => (FaultKind::LinkCut, leases(dice, 100, 300)),
        4 | 5 => {
            let (to_log, from_log) = [(true, true), (true, false), (false, true)][dice.below(3) as usize];
            (FaultKind::LinkFrozen { to_log, from_log }, leases(dice, 100, 300))
        }
        6 => {
            let (least, most) = DELAY_MS;
            let delay = Duration::from_millis(least + dice.below(most - least));
            (FaultKind::LinkDelayed(delay), leases(dice, 100, 300))
        }
        7 => (FaultKind::RedisKilled, leases(dice, 5, 150)),
        8 => (FaultKind::RedisStopped, leases(dice, 50, 300)),
        9 => (FaultKind::RedisFlushed, leases(dice, 10, 250)),
        10 => (FaultKind::LogTrimmed, leases(dice, 10, 250)),
        11 => (FaultKind::NodeStartedAlone, leases(dice, 60, 300)),
        12 => (FaultKind::NodeForgotten, leases(dice, 60, 250)),
        _ => (FaultKind::ScriptsFlushed, Duration::ZERO),
    };
    // Who comes back with old objects is of more interest than who comes back with none.
    let comes_back = matches!(kind, FaultKind::NodeKilled | FaultKind::NodeStartedAlone) && dice.below(4) > 0;
    let node = if comes_back { with_disk[dice.below(with_disk.len() as u64) as usize] } else { node };
    DrawnFault { kind, node, begins, lasts }
}

impl DrawnFault {
    pub fn ends(&self) -> Duration {
        self.begins + self.lasts
    }

    /// Waits for its beginning, and returns at its end.
    pub fn carry_out(&self, stage: &FleetStage) -> FaultDone {
        let mut done = FaultDone::default();
        self.wait_until(stage, self.begins);
        let from = stage.clock.now();
        self.begin(stage, from, &mut done);
        self.wait_until(stage, self.ends());
        self.end(stage, from, &mut done);
        done
    }

    fn wait_until(&self, stage: &FleetStage, moment: Duration) {
        let left = (moment.as_micros() as Micros).saturating_sub(stage.clock.now());
        thread::sleep(Duration::from_micros(left));
    }

    fn begin(&self, stage: &FleetStage, from: Micros, done: &mut FaultDone) {
        let node = &stage.nodes[self.node];
        match self.kind {
            FaultKind::NodeKilled => node.kill(),
            FaultKind::NodeStartedAlone => {
                node.kill();
                node.link.set(LinkCondition::Cut);
                done.start(stage, self.node, from);
            }
            FaultKind::NodeStopped => node.signal("STOP"),
            FaultKind::LinkCut => node.link.set(LinkCondition::Cut),
            FaultKind::LinkFrozen { to_log, from_log } => node.link.set(LinkCondition::Frozen { to_log, from_log }),
            FaultKind::LinkDelayed(time) => node.link.set(LinkCondition::Delayed(time)),
            FaultKind::RedisKilled => stage.redis.kill(),
            FaultKind::RedisStopped => stage.redis.signal("STOP"),
            FaultKind::RedisFlushed => {
                node.link.set(LinkCondition::Cut);
                self.wait_until(stage, self.begins + self.lasts / 2);
                done.note(stage.redis.tell(&["FLUSHALL"]));
            }
            FaultKind::NodeForgotten => {
                node.link.set(LinkCondition::Cut);
                let next = (self.node + 1) % NODES;
                stage.nodes[next].kill();
                done.note(stage.redis.tell(&["FLUSHALL"]));
                done.start(stage, next, from);
            }
            FaultKind::LogTrimmed => {
                node.link.set(LinkCondition::Cut);
                self.wait_until(stage, self.begins + self.lasts * 9 / 10);
                trim(stage, done);
            }
            FaultKind::ScriptsFlushed => done.note(stage.redis.tell(&["SCRIPT", "FLUSH"])),
        }
    }

    fn end(&self, stage: &FleetStage, from: Micros, done: &mut FaultDone) {
        let node = &stage.nodes[self.node];
        match self.kind {
            FaultKind::NodeKilled => done.start(stage, self.node, from),
            FaultKind::NodeStopped => node.signal("CONT"),
            FaultKind::RedisKilled => done.note(stage.redis.restart()),
            FaultKind::RedisStopped => stage.redis.signal("CONT"),
            FaultKind::ScriptsFlushed => {}
            _ => node.link.set(LinkCondition::Open),
        }
    }
}

/// Of whatever is a stream there, all but the last entry goes.
fn trim(stage: &FleetStage, done: &mut FaultDone) {
    match stage.redis.tell(&["--scan", "--type", "stream"]) {
        Ok(streams) => {
            for stream in streams.iter().filter(|name| !name.is_empty()) {
                done.note(stage.redis.tell(&["XTRIM", stream, "MAXLEN", "1"]));
            }
        }
        Err(why) => done.errors.push(why),
    }
}

impl FaultDone {
    /// A node that was killed then.
    fn start(&mut self, stage: &FleetStage, node: usize, killed: Micros) {
        self.note(stage.nodes[node].start());
        self.absences.push(AbsenceRecord { node, from: killed, to: stage.clock.now() });
    }

    fn note<T>(&mut self, result: Result<T, String>) {
        self.errors.extend(result.err());
    }
}

impl fmt::Display for DrawnFault {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let node = NAMES[self.node];
        match self.kind {
            FaultKind::NodeKilled => write!(to, "{node} is killed")?,
            FaultKind::NodeStartedAlone => write!(to, "{node} is killed, and started while its link is cut")?,
            FaultKind::NodeForgotten => {
                let next = NAMES[(self.node + 1) % NODES];
                write!(to, "{node}'s link is cut, FLUSHALL, and {next} is killed and started")?;
            }
            FaultKind::NodeStopped => write!(to, "{node} is stopped")?,
            FaultKind::LinkCut => write!(to, "{node}'s link is cut")?,
            FaultKind::LinkFrozen { to_log: true, from_log: true } => write!(to, "{node}'s link is frozen")?,
            FaultKind::LinkFrozen { to_log: true, .. } => write!(to, "{node}'s link is frozen towards the log")?,
            FaultKind::LinkFrozen { .. } => write!(to, "{node}'s link is frozen from the log")?,
            FaultKind::LinkDelayed(time) => write!(to, "{node}'s link takes {} ms longer", time.as_millis())?,
            FaultKind::RedisKilled => write!(to, "Redis is killed")?,
            FaultKind::RedisStopped => write!(to, "Redis is stopped")?,
            FaultKind::RedisFlushed => write!(to, "{node}'s link is cut, and halfway FLUSHALL")?,
            FaultKind::LogTrimmed => write!(to, "{node}'s link is cut, and at the end the log trimmed")?,
            FaultKind::ScriptsFlushed => write!(to, "SCRIPT FLUSH")?,
        }
        write!(to, ", {:.2} to {:.2} s", self.begins.as_secs_f64(), self.ends().as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_kind_has_its_turn_and_no_fault_lasts_for_ever() {
        let mut kinds = BTreeSet::new();
        for seed in 100..114 {
            let faults = drawn(seed, &mut Dice::of(seed), &[1]);
            assert!((1..=2).contains(&faults.len()));
            for fault in &faults {
                assert!(fault.ends() <= LEASE * 6, "{fault}");
            }
            kinds.insert(format!("{:?}", std::mem::discriminant(&faults[0].kind)));
        }
        assert_eq!(kinds.len(), 12);
    }
}
