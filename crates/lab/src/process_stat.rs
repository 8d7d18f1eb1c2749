//! What processes use, as /proc says: processor time, memory, and who is whose child. It knows no load and no server.
//!
//! The clock ticks of `stat` are coarse: what a slice of a matrix costs is read from elsewhere (`matrix/process_tree`).

use std::collections::HashMap;
use std::fs;
use std::time::Duration;

/// In user and in system mode; nothing where /proc cannot be read.
pub fn times_of_this_process() -> (Duration, Duration) {
    fs::read_to_string("/proc/self/stat")
        .ok()
        .and_then(|text| Stat::parse(&text))
        .map(|stat| (stat.user, stat.system))
        .unwrap_or_default()
}

/// A process and all that it has started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TreeUse {
    pub processes: usize,
    pub cpu: Duration,
    pub resident_bytes: u64,
}

/// Nothing when there is no such process. What started and ended between two looks is not seen.
pub fn use_of_tree(root: u32) -> Option<TreeUse> {
    sum_of_tree(&all_processes(), root)
}

/// Those that live. One may end between the listing and the look at it.
fn all_processes() -> HashMap<u32, Stat> {
    let stat = |&id: &u32| Stat::of(id).filter(|stat| stat.state != 'Z');
    numbers_in("/proc").into_iter().filter_map(|id| Some((id, stat(&id)?))).collect()
}

/// The processes of `/proc`, the threads of `/proc/PID/task`, the files of `/proc/PID/fd`.
pub(crate) fn numbers_in(directory: &str) -> Vec<u32> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// `root` and its descendants, parents first; empty when it is gone.
pub(crate) fn tree_of(root: u32) -> Vec<u32> {
    tree_among(&all_processes(), root)
}

fn tree_among(all: &HashMap<u32, Stat>, root: u32) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    all.iter().for_each(|(&id, stat)| children.entry(stat.parent).or_default().push(id));
    let mut tree = if all.contains_key(&root) { vec![root] } else { Vec::new() };
    let mut at = 0;
    while at < tree.len() {
        // Taken away: ids are used again, so what looks like a tree may for a moment have a ring in it.
        tree.extend(children.remove(&tree[at]).unwrap_or_default());
        at += 1;
    }
    tree
}

fn sum_of_tree(all: &HashMap<u32, Stat>, root: u32) -> Option<TreeUse> {
    let tree = tree_among(all, root);
    let mut sum = TreeUse { processes: tree.len(), ..TreeUse::default() };
    for stat in tree.iter().filter_map(|id| all.get(id)) {
        sum.cpu += stat.user + stat.system;
        sum.resident_bytes += stat.resident_bytes;
    }
    (!tree.is_empty()).then_some(sum)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    state: char,
    parent: u32,
    pub(crate) user: Duration,
    pub(crate) system: Duration,
    resident_bytes: u64,
}

impl Stat {
    pub(crate) fn of(id: u32) -> Option<Stat> {
        Stat::parse(&fs::read_to_string(format!("/proc/{id}/stat")).ok()?)
    }

    /// A line of /proc/PID/stat. The name stands in parentheses and may hold anything, more of them too.
    fn parse(text: &str) -> Option<Stat> {
        let (_, rest) = text.rsplit_once(") ")?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
        let ticks = |index| {
            Some(Duration::from_secs_f64(number(index)? as f64 / rustix::param::clock_ticks_per_second() as f64))
        };
        Some(Stat {
            state: fields.first()?.chars().next()?,
            parent: u32::try_from(number(1)?).ok()?,
            user: ticks(11)?,
            system: ticks(12)?,
            resident_bytes: number(21)? * rustix::param::page_size() as u64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_whatever_the_name() {
        let line = "17 (a) b (c) S 4 17 17 0 -1 4194304 1 2 3 4 250 50 0 0 20 0 1 0 99 1000 3 18446744073709551615 1";
        let stat = Stat::parse(line).expect("a line as the system writes it");
        let ticks = rustix::param::clock_ticks_per_second() as f64;
        assert_eq!((stat.parent, stat.resident_bytes), (4, 3 * rustix::param::page_size() as u64));
        assert_eq!((stat.user.as_secs_f64() * ticks).round() as u64, 250);
        assert_eq!((stat.system.as_secs_f64() * ticks).round() as u64, 50);
        assert_eq!(Stat::parse("17 (a) S"), None);
    }

    #[test]
    fn a_tree_is_its_root_and_all_below() {
        let stat = |parent| Stat {
            state: 'S',
            parent,
            user: Duration::from_secs(1),
            system: Duration::ZERO,
            resident_bytes: 10,
        };
        let all = HashMap::from([(1, stat(0)), (5, stat(1)), (6, stat(5)), (7, stat(6)), (8, stat(1)), (9, stat(9))]);
        let expect = TreeUse { processes: 3, cpu: Duration::from_secs(3), resident_bytes: 30 };
        assert_eq!((sum_of_tree(&all, 5), sum_of_tree(&all, 4)), (Some(expect), None));
        assert!(use_of_tree(std::process::id()).is_some_and(|tree| tree.processes >= 1 && tree.resident_bytes > 0));
    }
}
