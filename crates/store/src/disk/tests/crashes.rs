//! The power goes at any moment; what is there afterwards is what was stored, and nothing that was invalidated.
//!
//! A seed decides what is done, when the power goes, and what of the unsynced writes arrives, in which order. Everything
//! that is found afterwards is compared with all that was ever stored under its name. `LARDER_CRASH_RUNS` and
//! `LARDER_CRASH_SEED` make longer runs.

use std::collections::BTreeMap;

use super::*;

/// All that was ever done, as who asked for it knows it.
#[derive(Default)]
struct Ledger {
    clock: u64,
    stored: BTreeMap<Digest, Vec<Version>>,
    /// When the last acknowledged invalidation of a name began.
    deleted: BTreeMap<Digest, u64>,
    bans: Vec<u64>,
    slots: BTreeMap<u32, u64>,
    number: u64,
    checked: u64,
    reinserted: u64,
    checkpoints: u64,
}

struct Version {
    at: u64,
    sequence: u64,
    heads: Vec<Vec<u8>>,
    body: Vec<u8>,
}

struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        recovery::mixed(self.0) % sides
    }
}

fn names() -> Vec<Digest> {
    (0..8).flat_map(|n| (0..2).map(move |member| Digest { family: digest(n).family, member })).collect()
}

impl Ledger {
    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    fn put(&mut self, stage: &mut Stage, dice: &mut Dice) {
        let name = names()[dice.roll(16) as usize];
        let size = [0, 10, 600, 5_000, 70_000, 200_000][dice.roll(6) as usize];
        let (at, number) = (self.tick(), self.number);
        let (head, bytes) = (format!("head {at}").into_bytes(), body(at, size));
        let facts = RecordFacts { expires: u64::MAX, number };
        // It may be there even if it was refused: what was written of it counts when the power goes.
        let sequence = stage.put(name, &head, &bytes, facts).unwrap_or(0);
        self.stored.entry(name).or_default().push(Version { at, sequence, heads: vec![head], body: bytes });
    }

    fn refresh(&mut self, stage: &mut Stage, dice: &mut Dice) {
        let name = names()[dice.roll(16) as usize];
        let at = self.tick();
        let Some(version) = self.stored.get_mut(&name).and_then(|versions| versions.last_mut()) else { return };
        let head = format!("head {at}").into_bytes();
        let facts = RecordFacts { expires: u64::MAX, number: self.number };
        let _ = stage.refresh(name, version.sequence, &head, facts);
        version.heads.push(head);
    }

    fn invalidate(&mut self, stage: &mut Stage, dice: &mut Dice) {
        let name = names()[dice.roll(16) as usize];
        let at = self.tick();
        self.number += 1;
        let number = self.number;
        let slot = dice.roll(20) as u32;
        let what = match dice.roll(12) {
            0..4 => Invalidation::Delete(name),
            4..8 => Invalidation::DeleteFamily(name.family),
            8 => Invalidation::Clear,
            9 => Invalidation::Slot { slot, number },
            10 => Invalidation::Ban { number, text: Bytes::from(format!("ban {number}")) },
            _ => Invalidation::Number(number),
        };
        let is_meant = |other: &Digest| match &what {
            Invalidation::Delete(name) => other == name,
            Invalidation::DeleteFamily(family) => other.family == *family,
            Invalidation::Clear => true,
            _ => false,
        };
        let meant: Vec<Digest> = names().into_iter().filter(is_meant).collect();
        if stage.invalidated(what.clone()).is_err() {
            return;
        }
        self.deleted.extend(meant.into_iter().map(|name| (name, at)));
        match what {
            Invalidation::Slot { slot, number } => self.slots.extend([(slot, number)]),
            Invalidation::Ban { number, .. } => self.bans.push(number),
            _ => {}
        }
    }

    /// Compares what is there with what was ever stored.
    fn check(&mut self, stage: &Stage) -> Result<(), String> {
        for name in names() {
            let stored = match stage.open_record(name) {
                Ok(stored) => stored,
                Err(_) => continue,
            };
            let Ok(bytes) = body_of(&stored) else { continue };
            let versions = self.stored.get(&name).map_or(&[][..], Vec::as_slice);
            let matches = |version: &&Version| {
                version.body == bytes && version.heads.iter().any(|head| head[..] == stored.head()[..])
            };
            let version = versions.iter().find(matches).ok_or_else(|| format!("wrong bytes under {name:?}"))?;
            if self.deleted.get(&name).is_some_and(|deleted| *deleted > version.at) {
                return Err(format!("{name:?} came back: stored at {}, invalidated later", version.at));
            }
            if stored.facts().number > stage.log.knowledge.number_max {
                return Err(format!("{name:?} has a greater number than was recovered"));
            }
            self.checked += 1;
        }
        let knowledge = &stage.log.knowledge;
        let bans: Vec<u64> = knowledge.bans().map(|ban| ban.number).collect();
        if let Some(lost) = self.bans.iter().find(|ban| !bans.contains(ban)) {
            return Err(format!("ban {lost} is lost"));
        }
        let slots: BTreeMap<u32, u64> = knowledge.slots().collect();
        match self.slots.iter().find(|(slot, number)| slots.get(slot).is_none_or(|there| there < number)) {
            Some((slot, _)) => Err(format!("slot {slot} is lost")),
            None => Ok(()),
        }
    }
}

/// How many objects were found and compared, how many reclaim wrote anew, and how many checkpoints there were; or what was
/// wrong.
fn run(seed: u64, acknowledges_early: bool) -> Result<[u64; 3], String> {
    let settings = small(7, 128 << 10);
    let (mut dice, mut ledger) = (Dice(seed), Ledger::default());
    let mut content = vec![0; settings.bytes as usize];
    for life in 0..4 {
        let device = Arc::new(SimulatedDevice::with_content(content, dice.roll(u64::MAX)));
        // The first calls of a life are those of its recovery.
        device.lose_power_after(1 + dice.roll(400) * (1 + life % 2));
        let mut stage = Stage::open(&settings, Arc::clone(&device) as Arc<dyn Device>, dice.roll(u64::MAX));
        stage.log.acknowledges_early = acknowledges_early;
        ledger.check(&stage)?;
        while !device.is_off() {
            match dice.roll(20) {
                0..9 => ledger.put(&mut stage, &mut dice),
                9..11 => ledger.refresh(&mut stage, &mut dice),
                11..14 => ledger.invalidate(&mut stage, &mut dice),
                14 => stage.log.commit_if_due(true),
                15 => ledger.check(&stage)?,
                16 => _ = stage.log.disk.index.ask(names()[dice.roll(16) as usize].short(), true, |_| ()),
                17 if stage.log.disk.is_up() && stage.log.checkpoint.is_none() => {
                    // As often as if the journal were a few hundred bytes long.
                    if let Err(error) = stage.log.begin_checkpoint() {
                        stage.log.disk.write_failed(&error);
                    }
                    stage.log.work();
                }
                _ => drop(stage.log.work()),
            }
        }
        ledger.checkpoints += stage.log.disk.counters.checkpoints.load(Relaxed);
        ledger.reinserted += stage.log.disk.counters.reinserted.load(Relaxed);
        // A process that dies leaves all that it wrote; a machine does not.
        content = if dice.roll(4) == 0 { device.content() } else { device.lose_power() };
    }
    let device = Arc::new(SimulatedDevice::with_content(content, 1));
    let stage = Stage::open(&settings, device, 1);
    ledger.check(&stage)?;
    let stage = stage.recovered();
    ledger.check(&stage)?;
    match stage.heard(|event| matches!(event, DiskEvent::Discarded { .. })) {
        true => Err("a store was discarded that only lost its power".to_owned()),
        false => Ok([ledger.checked, ledger.reinserted, ledger.checkpoints]),
    }
}

fn from_environment(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

#[test]
fn nothing_wrong_and_nothing_invalidated_is_there_after_the_power_went() {
    let (runs, seed) = (from_environment("LARDER_CRASH_RUNS", 100), from_environment("LARDER_CRASH_SEED", 20_26));
    let mut sums = [0; 3];
    for run_number in 0..runs {
        let seed = seed + run_number;
        let came_to = run(seed, false).unwrap_or_else(|wrong| panic!("with LARDER_CRASH_SEED={seed}: {wrong}"));
        sums.iter_mut().zip(came_to).for_each(|(sum, more)| *sum += more);
    }
    let [compared, reinserted, checkpoints] = sums;
    println!("{runs} runs of 4 losses of power each, seeds {seed} and on: {compared} objects compared, none wrong");
    assert!(checkpoints > runs, "next to no checkpoints: {checkpoints}");
    assert!(reinserted > runs / 10, "reclaim wrote next to nothing anew: {reinserted}");
    assert!(compared > runs * 10, "too few were there to mean anything: {compared}");
}

#[test]
fn an_acknowledgement_before_its_sync_is_noticed() {
    let wrong = (0..300).find_map(|seed| run(seed, true).err());
    assert!(wrong.as_ref().is_some_and(|wrong| wrong.contains("came back") || wrong.contains("lost")), "{wrong:?}");
}
