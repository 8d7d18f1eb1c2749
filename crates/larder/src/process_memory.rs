//! The memory of this process: what the kernel says of it, and what the allocator can be asked to give back. For the warden
//! of `proxy`, which knows neither.

use proxy::ProcessMemory;
use tikv_jemalloc_ctl::{Access, AsName, arenas, background_thread};

/// Memory that was freed is kept for so long before the kernel gets it back, as jemalloc itself does it.
const DIRTY_DECAY_MS: isize = 10_000;

/// What of the program's file is resident at most while it serves, and more.
const CODE_BYTES_MAX: u64 = 16 << 20;

pub struct Process;

impl ProcessMemory for Process {
    fn resident_bytes(&self) -> Option<u64> {
        resident_bytes()
    }

    /// jemalloc gives back at once what it keeps for later when it is told to keep nothing. Its own verb for it takes no
    /// value, and there is no safe way to call it. What an arena refuses, it goes on keeping.
    fn release(&self) {
        let arenas: u32 = arenas::narenas::read().unwrap_or(0);
        for arena in 0..arenas {
            let name = format!("arena.{arena}.dirty_decay_ms\0");
            let key = name.as_bytes().name();
            let _ = Access::<isize>::write(key, 0);
            let _ = Access::<isize>::write(key, DIRTY_DECAY_MS);
        }
    }
}

/// Does something while the allocator has no threads of its own: they begin anew behind it, and get what the calling thread has by then.
pub fn without_allocators_threads<T>(work: impl FnOnce() -> T) -> T {
    // Under another allocator there are none.
    let had_threads = background_thread::read().unwrap_or(false) && background_thread::write(false).is_ok();
    let done = work();
    if had_threads {
        let _ = background_thread::write(true);
    }
    done
}

/// What the kernel says we occupy (proc(5), statm).
pub fn resident_bytes() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    occupied(&statm, rustix::param::page_size() as u64)
}

/// Pages of files count up to what the program's own code takes. What is more of them is clean, and the kernel drops it when
/// it needs the room: debug info that a backtrace was read from, for one.
fn occupied(statm: &str, page_bytes: u64) -> Option<u64> {
    let mut pages = statm.split(' ').skip(1).map_while(|figure| figure.parse::<u64>().ok());
    let (resident, of_files) = (pages.next()?, pages.next()?);
    Some(resident.saturating_sub(of_files) * page_bytes + (of_files * page_bytes).min(CODE_BYTES_MAX))
}

#[cfg(all(test, not(feature = "system-allocator")))]
mod tests {
    use super::*;
    use tikv_jemalloc_ctl::opt;

    #[test]
    fn pages_of_files_count_as_far_as_they_are_code() {
        // total, resident, of files, text, lib, data, dirty.
        assert_eq!(occupied("90000 20000 3000 1500 0 30000 0\n", 4096), Some(20_000 * 4096));
        assert_eq!(occupied("90000 40000 23000 1500 0 30000 0\n", 4096), Some(17_000 * 4096 + CODE_BYTES_MAX));
        assert_eq!((occupied("90000", 4096), occupied("", 4096)), (None, None));
    }

    #[test]
    fn four_processors_share_an_arena() {
        // Said in .cargo/config.toml: a build that does not read it has four arenas for each.
        let processors = rustix::thread::sched_getaffinity(None).expect("Linux says it").count() as usize;
        let arenas = opt::narenas::read().expect("jemalloc says it") as usize;
        assert!(arenas <= processors.div_ceil(4).max(1), "{arenas} arenas for {processors} processors");
    }

    /// Of memory that was used and freed, is more than half given back?
    fn gives_back() -> Result<(), String> {
        const BYTES: usize = 64 << 20;
        let kept: Vec<Vec<u8>> = (0..BYTES >> 14).map(|n| vec![n as u8; 16 << 10]).collect();
        let full = resident_bytes().expect("Linux says it");
        drop(kept);
        Process.release();
        let empty = resident_bytes().expect("Linux says it");
        let is_back = full.saturating_sub(empty) > BYTES as u64 / 2;
        if is_back { Ok(()) } else { Err(format!("{full} before and {empty} after")) }
    }

    #[test]
    fn what_was_freed_is_given_back_when_it_is_asked_for() {
        // What is resident is everybody's: a test beside this one may take as much in the same moment, and ends soon.
        let mut last = gives_back();
        for _ in 0..40 {
            if last.is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
            last = gives_back();
        }
        last.expect("jemalloc gives back");
    }
}
