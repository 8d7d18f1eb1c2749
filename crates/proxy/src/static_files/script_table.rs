//! Scripts that were there a moment ago: who asks for one again has none looked for on the disk. As a file that is open they are believed for
//! `limits.open_file_check_interval`.
//!
//! They are known by their own path alone. Whoever asks for a thousand names that nobody has fills no table.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::limits::{SCRIPT_PATH_BYTES_KEPT_MAX, SCRIPTS_KNOWN_MAX};
use crate::static_files::script_path::ScriptPath;

/// Of all roots, by the path in its one spelling.
pub(crate) struct ScriptTable {
    check_interval_ms: u64,
    roots: Vec<Mutex<HashMap<Vec<u8>, KnownScript>>>,
}

struct KnownScript {
    script: Arc<ScriptPath>,
    until_ms: u64,
}

impl ScriptTable {
    pub(super) fn new(roots: usize, check_interval_ms: u64) -> ScriptTable {
        ScriptTable { check_interval_ms, roots: (0..roots).map(|_| Mutex::default()).collect() }
    }

    /// The script that this path meant a moment ago.
    pub(crate) fn get(&self, root: usize, path: &[u8], now_ms: u64) -> Option<Arc<ScriptPath>> {
        let known = self.roots[root].lock();
        known.get(path).filter(|known| now_ms < known.until_ms).map(|known| Arc::clone(&known.script))
    }

    /// What the path means now.
    pub(crate) fn keep(&self, root: usize, path: &[u8], script: &Arc<ScriptPath>, now_ms: u64) {
        // What stands behind a script has no end of spellings.
        if !script.path_info.is_empty() || path.len() > SCRIPT_PATH_BYTES_KEPT_MAX {
            return;
        }
        let mut known = self.roots[root].lock();
        if known.len() >= SCRIPTS_KNOWN_MAX && !known.contains_key(path) {
            known.retain(|_, known| now_ms < known.until_ms);
            if known.len() >= SCRIPTS_KNOWN_MAX {
                return;
            }
        }
        let until_ms = now_ms.saturating_add(self.check_interval_ms);
        known.insert(path.to_vec(), KnownScript { script: Arc::clone(script), until_ms });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(relative: &str, path_info: &str) -> Arc<ScriptPath> {
        Arc::new(ScriptPath { relative: relative.as_bytes().to_vec(), path_info: path_info.as_bytes().to_vec() })
    }

    #[test]
    fn a_script_is_known_by_its_own_path_for_a_while() {
        let table = ScriptTable::new(2, 1_000);
        table.keep(0, b"/a.php", &script("a.php", ""), 10);
        table.keep(0, b"/a.php/x", &script("a.php", "/x"), 10);
        let is_known = |root, path: &str, now_ms| table.get(root, path.as_bytes(), now_ms).is_some();
        assert!(is_known(0, "/a.php", 10) && is_known(0, "/a.php", 1_009));
        assert!(!is_known(0, "/a.php", 1_010) && !is_known(1, "/a.php", 10) && !is_known(0, "/a.php/x", 10));
        let none = ScriptTable::new(1, 0);
        none.keep(0, b"/a.php", &script("a.php", ""), 10);
        assert!(none.get(0, b"/a.php", 10).is_none());
    }

    #[test]
    fn the_table_grows_no_further_than_its_limits() {
        let table = ScriptTable::new(1, 1_000);
        for n in 0..SCRIPTS_KNOWN_MAX + 5 {
            table.keep(0, format!("/{n}.php").as_bytes(), &script("x.php", ""), 0);
        }
        assert_eq!(table.roots[0].lock().len(), SCRIPTS_KNOWN_MAX);
        let long = format!("/{}.php", "x".repeat(SCRIPT_PATH_BYTES_KEPT_MAX));
        table.keep(0, long.as_bytes(), &script("x.php", ""), 2_000);
        assert!(table.get(0, long.as_bytes(), 2_000).is_none());
        // Those that are due make room.
        table.keep(0, b"/new.php", &script("x.php", ""), 2_000);
        assert_eq!(table.roots[0].lock().len(), 1);
    }
}
