//! Tells when another process has nothing left to do: every one of its threads sleeps. This is what lets a test
//! say "nothing more will come" without a timed wait, and put a pause between two writes that is as long as needed
//! and no longer. It knows nothing of what the process does.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// Watches the threads of one process and of its children.
#[derive(Debug)]
pub struct Stillness {
    pids: Vec<u32>,
    /// `/proc/PID/task/TID/stat`, kept open: reading from the start renews the text.
    stats: Vec<File>,
}

impl Stillness {
    /// Watches these processes; threads that start later are found by [`Stillness::refresh`].
    pub fn of(pids: Vec<u32>) -> Stillness {
        let mut stillness = Stillness { pids, stats: Vec::new() };
        stillness.refresh();
        stillness
    }

    /// Watches a single thread of this process.
    pub fn of_thread(tid: i32) -> Stillness {
        let stat = File::open(format!("/proc/self/task/{tid}/stat")).expect("a thread of ours has a stat file");
        Stillness { pids: Vec::new(), stats: vec![stat] }
    }

    /// Looks for threads that started or ended.
    pub fn refresh(&mut self) {
        if self.pids.is_empty() {
            return;
        }
        self.stats.clear();
        for pid in &self.pids {
            let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else { continue };
            for task in tasks.flatten() {
                if let Ok(stat) = File::open(task.path().join("stat")) {
                    self.stats.push(stat);
                }
            }
        }
    }

    /// Does every thread sleep? Looked at twice, since a wake-up may be on its way between two threads.
    pub fn is_still(&mut self) -> bool {
        self.all_asleep() && {
            std::thread::yield_now();
            self.all_asleep()
        }
    }

    fn all_asleep(&mut self) -> bool {
        let mut gone = false;
        let asleep = self.stats.iter().all(|stat| {
            let mut text = [0u8; 64];
            match stat.read_at(&mut text, 0) {
                Ok(len) => is_asleep(&text[..len]),
                Err(_) => {
                    gone = true;
                    true
                }
            }
        });
        if gone {
            self.refresh();
        }
        asleep
    }
}

/// `TID (name) S …`; the name may hold anything, so the state stands behind the last parenthesis.
fn is_asleep(stat: &[u8]) -> bool {
    let name_end = stat.iter().rposition(|&byte| byte == b')');
    matches!(name_end.and_then(|at| stat.get(at + 2)), Some(b'S' | b'Z' | b'X'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_runs_is_not_still() {
        assert!(!Stillness::of(vec![std::process::id()]).is_still());
        assert!(is_asleep(b"12 (a) R) S 1 2"));
        assert!(!is_asleep(b"12 (a) S) R 1 2"));
    }
}
