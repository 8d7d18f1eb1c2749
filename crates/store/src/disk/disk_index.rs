//! Where everything on a disk is: twenty bytes an object, found by digest without I/O.
//!
//! Sharded open addressing with linear probing; a shard grows by a quarter when it is seven eighths full, so an object
//! costs between 22.9 and 28.6 bytes. A member is known by its low 32 bits only, and 64 bits of its family: what is found
//! may be somebody else's once in 2^64, and the record itself says whose it is.
//!
//! It knows places, not what lies there.

use hashbrown::HashMap;

use super::disk_digest::{Digest, ShortName};
use super::disk_invalidation::Invalidation;
use super::encoding::{Decoder, Encode};
use super::limits::{FAMILY_MEMBERS_MAX, USES_MAX};
use super::refused::Refused;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// Where a record is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Spot {
    /// Of the device, in units.
    pub unit: u64,
    /// Units to be read at once: the record, and the body behind it if that is small.
    pub span: u16,
    /// Some of its body lies in another segment.
    pub split: bool,
}

#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Entry {
    family_low: u32,
    family_high: u32,
    member: u32,
    unit_low: u32,
    unit_high: u8,
    flags: u8,
    span: u16,
}

/// An entry in memory and in a checkpoint.
pub const ENTRY_BYTES: usize = 20;
const _: () = assert!(size_of::<Entry>() == ENTRY_BYTES);

const IS_TAKEN: u8 = 1;
const IS_SPLIT: u8 = 2;
const USES_SHIFT: u32 = 2;

impl Entry {
    const EMPTY: Entry =
        Entry { family_low: 0, family_high: 0, member: 0, unit_low: 0, unit_high: 0, flags: 0, span: 0 };

    fn new(name: ShortName, spot: Spot, uses: u8) -> Entry {
        assert!(spot.unit >> 40 == 0, "a place is beyond what an entry can say");
        Entry {
            family_low: name.family as u32,
            family_high: (name.family >> 32) as u32,
            member: name.member,
            unit_low: spot.unit as u32,
            unit_high: (spot.unit >> 32) as u8,
            flags: IS_TAKEN | if spot.split { IS_SPLIT } else { 0 } | uses << USES_SHIFT,
            span: spot.span,
        }
    }

    fn is_taken(&self) -> bool {
        self.flags & IS_TAKEN != 0
    }

    fn family(&self) -> u64 {
        u64::from(self.family_high) << 32 | u64::from(self.family_low)
    }

    fn name(&self) -> ShortName {
        ShortName { family: self.family(), member: self.member }
    }

    fn spot(&self) -> Spot {
        let unit = u64::from(self.unit_high) << 32 | u64::from(self.unit_low);
        Spot { unit, span: self.span, split: self.flags & IS_SPLIT != 0 }
    }

    fn uses(&self) -> u8 {
        self.flags >> USES_SHIFT
    }

    fn set_uses(&mut self, uses: u8) {
        self.flags = self.flags & (IS_TAKEN | IS_SPLIT) | uses << USES_SHIFT;
    }
}

/// A record as a checkpoint has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Kept {
    pub name: ShortName,
    pub spot: Spot,
    pub uses: u8,
}

impl Kept {
    pub fn encode(&self, out: &mut Vec<u8>) {
        let entry = Entry::new(self.name, self.spot, self.uses);
        out.put_u64(self.name.family);
        out.put_u32(entry.member);
        out.put_u32(entry.unit_low);
        out.put_u8(entry.unit_high);
        out.put_u8(entry.flags);
        out.put_u16(entry.span);
    }

    pub fn decode(decoder: &mut Decoder<'_>) -> Option<Kept> {
        let name = ShortName { family: decoder.u64()?, member: decoder.u32()? };
        let (low, high, flags) = (decoder.u32()?, decoder.u8()?, decoder.u8()?);
        let unit = u64::from(high) << 32 | u64::from(low);
        let spot = Spot { unit, span: decoder.u16()?, split: flags & IS_SPLIT != 0 };
        Some(Kept { name, spot, uses: (flags >> USES_SHIFT).min(USES_MAX) })
    }
}

/// When an entry may be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rule {
    /// It is the newest there is.
    Newest,
    /// Only where there is none: what recovery finds is older than what was stored meanwhile.
    IfAbsent,
    /// Only in the place of this one.
    IfAt(u64),
}

#[derive(Default)]
struct Shard {
    entries: Vec<Entry>,
    count: usize,
    /// Families whose deletion is on its way to the journal: whatever was stored before it must not come in now.
    deleting: HashMap<u64, u32, foldhash::fast::RandomState>,
}

pub struct DiskIndex {
    shards: Box<[Mutex<Shard>]>,
    objects_max: u64,
    count: AtomicU64,
    /// Clearings on their way to the journal.
    clearing: AtomicU64,
}

const CAPACITY_MIN: usize = 8;

impl DiskIndex {
    pub fn new(objects_max: u64) -> DiskIndex {
        // Small enough that growing one is no pause: some 30,000 entries each.
        let shards = (objects_max / 32_768).next_power_of_two().clamp(16, 4096);
        let shards = (0..shards).map(|_| Mutex::new(Shard::default())).collect();
        DiskIndex { shards, objects_max, count: AtomicU64::new(0), clearing: AtomicU64::new(0) }
    }

    pub fn count(&self) -> u64 {
        self.count.load(SeqCst)
    }

    pub fn shards_count(&self) -> usize {
        self.shards.len()
    }

    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        let entries: usize = self.shards.iter().map(|shard| shard.lock().entries.capacity()).sum();
        entries * ENTRY_BYTES + self.shards.len() * size_of::<Mutex<Shard>>()
    }

    fn shard(&self, family: u64) -> &Mutex<Shard> {
        // The low bits; where in a shard is said by others.
        &self.shards[family as usize & (self.shards.len() - 1)]
    }

    pub fn find(&self, name: ShortName) -> Option<Spot> {
        self.shard(name.family).lock().get(name).map(Entry::spot)
    }

    /// How often it was asked for of late, and where it is.
    pub fn uses(&self, name: ShortName) -> Option<(u8, Spot)> {
        self.shard(name.family).lock().get(name).map(|entry| (entry.uses(), entry.spot()))
    }

    /// All members of a family.
    pub fn family(&self, family: u64) -> Vec<ShortName> {
        let shard = self.shard(family).lock();
        shard.members(family).map(|at| shard.entries[at].name()).collect()
    }

    /// Lets somebody act while the entry cannot change. May count as a use.
    pub fn ask<R>(&self, name: ShortName, counts: bool, act: impl FnOnce(Spot) -> R) -> Option<R> {
        let mut shard = self.shard(name.family).lock();
        let at = shard.position(name)?;
        let entry = &mut shard.entries[at];
        if counts && entry.uses() < USES_MAX {
            entry.set_uses(entry.uses() + 1);
        }
        Some(act(entry.spot()))
    }

    pub fn insert(&self, kept: Kept, rule: Rule) -> Result<(), Refused> {
        let mut shard = self.shard(kept.name.family).lock();
        if self.clearing.load(SeqCst) > 0 || shard.deleting.contains_key(&kept.name.family) {
            return Err(Refused::Overtaken);
        }
        if let Some(at) = shard.position(kept.name) {
            let here = &mut shard.entries[at];
            match rule {
                Rule::IfAbsent => return Err(Refused::Overtaken),
                Rule::IfAt(unit) if here.spot().unit != unit => return Err(Refused::Overtaken),
                Rule::IfAt(_) | Rule::Newest => {}
            }
            *here = Entry::new(kept.name, kept.spot, kept.uses);
            return Ok(());
        }
        if matches!(rule, Rule::IfAt(_)) {
            return Err(Refused::NotThere);
        }
        if self.count() >= self.objects_max {
            return Err(Refused::Full);
        }
        if shard.members(kept.name.family).count() >= FAMILY_MEMBERS_MAX {
            return Err(Refused::FamilyFull);
        }
        shard.add(Entry::new(kept.name, kept.spot, kept.uses));
        self.count.fetch_add(1, SeqCst);
        Ok(())
    }

    /// Takes an entry out if it is still at this place.
    pub fn remove_at(&self, name: ShortName, unit: u64) -> bool {
        self.remove_if(name, |spot| spot.unit == unit)
    }

    fn remove_if(&self, name: ShortName, is_meant: impl FnOnce(Spot) -> bool) -> bool {
        let mut shard = self.shard(name.family).lock();
        let Some(at) = shard.position(name).filter(|at| is_meant(shard.entries[*at].spot())) else { return false };
        shard.take(at);
        self.count.fetch_sub(1, SeqCst);
        true
    }

    /// Takes a member out, or all of a family. What is on its way comes in only after [`deleted`](DiskIndex::deleted).
    pub fn delete(&self, family: u64, member: Option<u64>) -> usize {
        let mut shard = self.shard(family).lock();
        *shard.deleting.entry(family).or_insert(0) += 1;
        drop(shard);
        self.take_out(family, member)
    }

    /// The same without the promise: for what is replayed.
    pub fn take_out(&self, family: u64, member: Option<u64>) -> usize {
        let mut shard = self.shard(family).lock();
        let mut gone = 0;
        loop {
            let meant = |at: &usize| member.is_none_or(|member| shard.entries[*at].member == member as u32);
            let Some(at) = shard.members(family).find(meant) else { break };
            shard.take(at);
            gone += 1;
        }
        self.count.fetch_sub(gone as u64, SeqCst);
        gone
    }

    /// A deletion has reached the place among all changes that it was given.
    pub fn deleted(&self, family: u64) {
        let mut shard = self.shard(family).lock();
        let left = shard.deleting.get_mut(&family).expect("what was deleted was being deleted");
        *left -= 1;
        if *left == 0 {
            shard.deleting.remove(&family);
        }
    }

    /// An invalidation will never have its turn.
    pub fn waits_no_more(&self, what: &Invalidation) {
        match what {
            Invalidation::Delete(Digest { family, .. }) | Invalidation::DeleteFamily(family) => self.deleted(*family),
            Invalidation::Clear => self.cleared(),
            _ => {}
        }
    }

    /// Takes everything out. What is on its way comes in only after [`cleared`](DiskIndex::cleared).
    pub fn clear(&self) {
        self.clearing.fetch_add(1, SeqCst);
        self.empty();
    }

    pub fn cleared(&self) {
        self.clearing.fetch_sub(1, SeqCst);
    }

    pub fn empty(&self) {
        for shard in &self.shards {
            let mut shard = shard.lock();
            self.count.fetch_sub(shard.count as u64, SeqCst);
            (shard.entries, shard.count) = (Vec::new(), 0);
        }
    }

    /// The records of one shard, in an order that has nothing to do with where they stand: put into a smaller table in the
    /// order of their places they would crowd its beginning, and each walk there would be as long as all that came before.
    pub fn shard_kept(&self, shard: usize) -> Vec<Kept> {
        let shard = self.shards[shard].lock();
        let len = shard.entries.len();
        let stride = (len * 5 / 8..).find(|stride| coprime(*stride, len)).unwrap_or(1);
        let scattered = (0..len).map(|at| &shard.entries[at * stride % len]);
        let taken = scattered.filter(|entry| entry.is_taken());
        taken.map(|entry| Kept { name: entry.name(), spot: entry.spot(), uses: entry.uses() }).collect()
    }

    /// Makes room for so many, as one step instead of many.
    pub fn reserve(&self, count: u64) {
        let each = count / self.shards.len() as u64;
        // A little over the mean: shards are not equal.
        let each = each as usize * 5 / 4 + each as usize / 40;
        for shard in self.shards.iter().filter(|_| each > CAPACITY_MIN) {
            let mut shard = shard.lock();
            if shard.entries.len() < each {
                shard.grow_to(each);
            }
        }
    }
}

fn coprime(one: usize, other: usize) -> bool {
    let (mut one, mut other) = (one, other);
    while other != 0 {
        (one, other) = (other, one % other);
    }
    one <= 1
}

impl Shard {
    fn home(&self, family: u64) -> usize {
        let mixed = family.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        ((u128::from(mixed) * self.entries.len() as u128) >> 64) as usize
    }

    fn next(&self, at: usize) -> usize {
        if at + 1 == self.entries.len() { 0 } else { at + 1 }
    }

    /// Where members of a family are, in the order of the walk.
    fn members(&self, family: u64) -> impl Iterator<Item = usize> + '_ {
        let mut at = if self.entries.is_empty() { 0 } else { self.home(family) };
        let walk = std::iter::from_fn(move || {
            let here = at;
            let entry = self.entries.get(here).filter(|entry| entry.is_taken())?;
            at = self.next(here);
            Some((here, entry.family()))
        });
        walk.filter(move |(_, of)| *of == family).map(|(at, _)| at)
    }

    fn position(&self, name: ShortName) -> Option<usize> {
        self.members(name.family).find(|at| self.entries[*at].member == name.member)
    }

    fn get(&self, name: ShortName) -> Option<&Entry> {
        self.position(name).map(|at| &self.entries[at])
    }

    fn add(&mut self, entry: Entry) {
        // One place at least stays empty, or a walk would not end.
        if (self.count + 1) * 8 > self.entries.len() * 7 {
            self.grow_to((self.entries.len() * 5).div_ceil(4).max(CAPACITY_MIN));
        }
        self.place(entry);
        self.count += 1;
    }

    fn place(&mut self, entry: Entry) {
        let mut at = self.home(entry.family());
        while self.entries[at].is_taken() {
            at = self.next(at);
        }
        self.entries[at] = entry;
    }

    fn grow_to(&mut self, capacity: usize) {
        let before = std::mem::replace(&mut self.entries, vec![Entry::EMPTY; capacity]);
        before.into_iter().filter(Entry::is_taken).for_each(|entry| self.place(entry));
    }

    /// Takes one out and moves those behind it up, so that no walk ends too early.
    fn take(&mut self, at: usize) {
        let (mut hole, mut next) = (at, self.next(at));
        let len = self.entries.len();
        while self.entries[next].is_taken() {
            let home = self.home(self.entries[next].family());
            // May it stand in the hole? Only if its home is not behind it.
            if (next + len - home) % len >= (next + len - hole) % len {
                self.entries[hole] = self.entries[next];
                hole = next;
            }
            next = self.next(next);
        }
        self.entries[hole] = Entry::EMPTY;
        self.count -= 1;
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn kept(family: u64, member: u32, unit: u64) -> Kept {
        Kept { name: ShortName { family, member }, spot: Spot { unit, span: 3, split: false }, uses: 0 }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Insert(u64, u32, u64),
        Remove(u64, u32, u64),
        Delete(u64, Option<u64>),
    }

    fn step() -> impl Strategy<Value = Step> {
        // Families that share shards and homes.
        let family = (0u64..40).prop_map(|n| n * 16);
        prop_oneof![
            6 => (family.clone(), 0u32..3, 1u64..9).prop_map(|(f, m, u)| Step::Insert(f, m, u)),
            2 => (family.clone(), 0u32..3, 1u64..9).prop_map(|(f, m, u)| Step::Remove(f, m, u)),
            1 => (family, prop::option::of(0u64..3)).prop_map(|(f, m)| Step::Delete(f, m)),
        ]
    }

    proptest! {
        #[test]
        fn it_holds_what_a_map_would(steps in prop::collection::vec(step(), 1..200)) {
            let (index, mut model) = (DiskIndex::new(1000), BTreeMap::new());
            for step in steps {
                match step {
                    Step::Insert(family, member, unit) => {
                        index.insert(kept(family, member, unit), Rule::Newest).expect("there is room");
                        model.insert(ShortName { family, member }, unit);
                    }
                    Step::Remove(family, member, unit) => {
                        let name = ShortName { family, member };
                        let was_there = model.get(&name) == Some(&unit);
                        prop_assert_eq!(index.remove_at(name, unit), was_there);
                        model.retain(|other, at| !(*other == name && *at == unit));
                    }
                    Step::Delete(family, member) => {
                        let before = model.len();
                        model.retain(|name, _| {
                            name.family != family || member.is_some_and(|member| name.member != member as u32)
                        });
                        prop_assert_eq!(index.delete(family, member), before - model.len());
                        index.deleted(family);
                    }
                }
                prop_assert_eq!(index.count(), model.len() as u64);
                let mut all: Vec<_> =
                    (0..index.shards_count()).flat_map(|shard| index.shard_kept(shard)).map(|it| (it.name, it.spot.unit)).collect();
                all.sort_unstable();
                prop_assert_eq!(all, model.iter().map(|(name, unit)| (*name, *unit)).collect::<Vec<_>>());
                for (name, unit) in &model {
                    prop_assert_eq!(index.find(*name).map(|spot| spot.unit), Some(*unit));
                }
            }
        }
    }

    /// A keyed digest looks like this.
    fn scattered(n: u64) -> u64 {
        let mixed = (n ^ n >> 31).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed ^ mixed >> 29
    }

    #[test]
    fn an_object_costs_at_most_32_bytes() {
        let index = DiskIndex::new(2_000_000);
        let mut worst = 0.0_f64;
        for n in 1..=1_000_000u64 {
            index.insert(kept(scattered(n), n as u32, n), Rule::Newest).expect("there is room");
            if n >= 100_000 && n % 10_000 == 0 {
                worst = worst.max(index.heap_bytes() as f64 / n as f64);
            }
        }
        let family = index.family(scattered(77));
        assert_eq!(family, [ShortName { family: scattered(77), member: 77 }]);
        println!("at most {worst:.1} bytes an object");
        assert!(worst <= 32.0, "{worst}");
    }

    #[test]
    fn records_come_in_no_order_of_their_places_and_each_once() {
        let index = DiskIndex::new(100_000);
        for n in 1..=60_000 {
            index.insert(kept(scattered(n), n as u32, n), Rule::Newest).expect("there is room");
        }
        let mut all = Vec::new();
        for shard in 0..index.shards_count() {
            let records = index.shard_kept(shard);
            let home = |kept: &Kept| index.shards[shard].lock().home(kept.name.family);
            let early: Vec<usize> = records[..records.len() / 20].iter().map(home).collect();
            let len = index.shards[shard].lock().entries.len();
            let spread = early.iter().max().zip(early.iter().min()).expect("there are some");
            assert!(*spread.0 > len * 9 / 10 && *spread.1 < len / 10, "{spread:?} of {len}");
            all.extend(records.iter().map(|kept| kept.name.member));
        }
        all.sort_unstable();
        assert!(all.into_iter().eq(1..=60_000));
    }

    #[test]
    fn what_was_on_its_way_before_a_deletion_does_not_come_in() {
        let index = DiskIndex::new(100);
        index.insert(kept(5, 1, 1), Rule::Newest).expect("there is room");
        assert_eq!(index.delete(5, None), 1);
        assert_eq!(index.insert(kept(5, 1, 2), Rule::Newest), Err(Refused::Overtaken));
        index.deleted(5);
        assert_eq!(index.insert(kept(5, 1, 3), Rule::Newest), Ok(()));
        index.clear();
        assert_eq!(index.insert(kept(6, 1, 4), Rule::Newest), Err(Refused::Overtaken));
        index.cleared();
        assert_eq!((index.insert(kept(6, 1, 4), Rule::Newest), index.count()), (Ok(()), 1));
    }

    #[test]
    fn bounds_and_rules_are_kept() {
        let index = DiskIndex::new(FAMILY_MEMBERS_MAX as u64 + 1);
        for member in 0..FAMILY_MEMBERS_MAX as u32 {
            index.insert(kept(5, member, 1), Rule::Newest).expect("there is room");
        }
        assert_eq!(index.insert(kept(5, 999, 1), Rule::Newest), Err(Refused::FamilyFull));
        assert_eq!(index.insert(kept(5, 0, 9), Rule::IfAbsent), Err(Refused::Overtaken));
        assert_eq!(index.insert(kept(5, 0, 9), Rule::IfAt(2)), Err(Refused::Overtaken));
        assert_eq!(index.insert(kept(5, 0, 9), Rule::IfAt(1)), Ok(()));
        assert_eq!(index.insert(kept(6, 0, 9), Rule::IfAt(1)), Err(Refused::NotThere));
        assert_eq!(index.insert(kept(6, 0, 9), Rule::Newest), Ok(()));
        assert_eq!(index.insert(kept(7, 0, 9), Rule::Newest), Err(Refused::Full));
    }
}
