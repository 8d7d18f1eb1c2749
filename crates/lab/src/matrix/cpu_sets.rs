//! Which processors the load runs on and which the servers: a thread's own affinity, which its children inherit.

use std::io;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// From now on the calling thread, and all threads and processes that it starts, run only there.
pub(crate) fn pin_to(cpus: &[usize]) -> io::Result<()> {
    let mut set = CpuSet::new();
    cpus.iter().filter(|&&cpu| cpu < CpuSet::MAX_CPU).for_each(|&cpu| set.set(cpu));
    Ok(sched_setaffinity(None, &set)?)
}

/// Where this process may run at all.
pub(crate) fn allowed() -> Vec<usize> {
    let set = sched_getaffinity(None).unwrap_or_default();
    (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect()
}

/// (client, server) where nobody said: the servers get the first half. One processor is shared by both.
pub(crate) fn halves(allowed: &[usize]) -> (Vec<usize>, Vec<usize>) {
    match allowed {
        [] | [_] => (allowed.to_vec(), allowed.to_vec()),
        several => {
            let (servers, clients) = several.split_at(several.len() / 2);
            (clients.to_vec(), servers.to_vec())
        }
    }
}

/// Does something in a thread that is pinned, so that the calling one keeps its place.
pub(crate) fn on_cpus<T: Send>(cpus: &[usize], act: impl FnOnce() -> T + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let pinned = scope.spawn(|| pin_to(cpus).map(|()| act()));
        pinned.join().expect("nothing here panics")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_disjoint_where_they_can_be() {
        assert_eq!(halves(&[3]), (vec![3], vec![3]));
        assert_eq!(halves(&[0, 1]), (vec![1], vec![0]));
        assert_eq!(halves(&[0, 1, 2, 5, 6]), (vec![2, 5, 6], vec![0, 1]));
    }

    #[test]
    fn a_pinned_thread_leaves_the_others_alone() {
        let before = allowed();
        let one = vec![before[0]];
        assert_eq!(on_cpus(&one, allowed).unwrap(), one);
        assert_eq!(allowed(), before);
    }
}
