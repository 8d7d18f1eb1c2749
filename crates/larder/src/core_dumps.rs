//! Whether a crash leaves the process's memory on a disk. There are keys in it, and what visitors asked for: unless the operator wants it,
//! none is written.

use std::sync::OnceLock;

use rustix::process::{DumpableBehavior, Resource, Rlimit, getrlimit, set_dumpable_behavior, setrlimit};

use crate::say::say;

/// The kernel writes no file so short, and gives nothing to a program that collects dumps either; 0 would forbid the file alone.
const NONE: u64 = 1;

/// Allows what the system allowed when the process was started, or nothing.
pub fn allow(allowed: bool) {
    static OF_START: OnceLock<Rlimit> = OnceLock::new();
    let of_start = OF_START.get_or_init(|| getrlimit(Resource::Core));
    let Rlimit { current, maximum } = *of_start;
    // The hard limit stays: another word of the operator's may take this back.
    let none = Some(maximum.map_or(NONE, |maximum| maximum.min(NONE)));
    let limit = Rlimit { current: if allowed { current } else { none }, maximum };
    // A process that became another user writes none, whatever its limits.
    let dumpable = if allowed { set_dumpable_behavior(DumpableBehavior::Dumpable) } else { Ok(()) };
    if let Err(error) = dumpable.and_then(|()| setrlimit(Resource::Core, limit)) {
        say!(
            "warning: the system does not let larder say whether a crash leaves its memory on a disk (core_dumps): {error}"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_forbidden_may_be_allowed_again() {
        let of_start = getrlimit(Resource::Core);
        allow(false);
        assert_eq!(getrlimit(Resource::Core).current, Some(of_start.maximum.map_or(1, |maximum| maximum.min(1))));
        allow(true);
        assert_eq!(getrlimit(Resource::Core), of_start);
    }
}
