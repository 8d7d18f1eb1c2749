//! How many files the process may open, and how many client connections fit into that.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::limits::{FILES_RESERVED_MAX, FILES_RESERVED_MIN};

/// Raises the soft limit to the hard one. What may be open at once; `None`: no limit.
pub fn raise_limit() -> Option<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    // Refused only where the limits are managed from outside; then the soft limit stands.
    match setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        Ok(()) => maximum,
        Err(_) => current,
    }
}

/// How many of the client connections that were asked for have room. The rest of the files is for listeners, origins
/// and the log; a miss that finds none is answered 503.
pub fn connections_that_fit(asked: usize, files_max: Option<u64>) -> usize {
    let Some(files) = files_max else { return asked };
    let reserved = (files / 20).clamp(FILES_RESERVED_MIN, FILES_RESERVED_MAX);
    asked.min(files.saturating_sub(reserved).max(1) as usize)
}

/// The same where some of the connections become tunnels, each of which holds another file for its far end: how many
/// connections and how many tunnels. A load of tunnels alone has as many far ends as near ones.
pub fn connections_and_tunnels_that_fit(asked: (usize, usize), files_max: Option<u64>) -> (usize, usize) {
    let (connections, tunnels) = (asked.0, asked.1.min(asked.0));
    let room = connections_that_fit(usize::MAX, files_max);
    if room >= connections.saturating_add(tunnels) {
        return asked;
    }
    let tunnels = tunnels.min(room / 2).max(1);
    (connections.min(room - tunnels.min(room - 1)), tunnels)
}

/// What is left of the files when so many are kept open for longer, as those beneath the roots of routes are.
pub fn files_beside(kept_open_max: usize, files_max: Option<u64>) -> Option<u64> {
    files_max.map(|files| files.saturating_sub(kept_open_max as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_files_beneath_roots_leave_room_for_connections_to_ask_for_them() {
        let fit = |kept_open, files| connections_that_fit(19_000, files_beside(kept_open, files));
        assert_eq!(fit(512, None), 19_000);
        assert_eq!(fit(512, Some(20_000)), 18_514);
        assert_eq!(fit(512, Some(1024)), 487);
        assert_eq!(fit(512, Some(64)), 1);
    }

    #[test]
    fn tunnels_have_files_for_both_their_ends() {
        for (asked, files, fit) in [
            ((19_000, 8_192), None, (19_000, 8_192)),
            ((19_000, 8_192), Some(1 << 20), (19_000, 8_192)),
            // No more tunnels than connections are to be had at all.
            ((100, 8_192), Some(1 << 20), (100, 8_192)),
            ((19_000, 8_192), Some(20_000), (10_808, 8_192)),
            ((19_000, 8_192), Some(1_024), (487, 486)),
            ((19_000, 10), Some(1_024), (963, 10)),
            ((500, 8_192), Some(1_024), (487, 486)),
            ((10, 8_192), Some(64), (10, 8_192)),
            ((19_000, 8_192), Some(3), (1, 1)),
        ] {
            assert_eq!(connections_and_tunnels_that_fit(asked, files), fit, "{asked:?} of {files:?}");
        }
    }

    #[test]
    fn connections_leave_files_for_everything_else() {
        for (asked, files, fit) in [
            (19_000, None, 19_000),
            (19_000, Some(1 << 20), 19_000),
            (19_000, Some(20_000), 19_000),
            (19_000, Some(1024), 973),
            (19_000, Some(64), 48),
            (10, Some(64), 10),
            (19_000, Some(3), 1),
        ] {
            assert_eq!(connections_that_fit(asked, files), fit, "{asked} of {files:?}");
        }
    }
}
