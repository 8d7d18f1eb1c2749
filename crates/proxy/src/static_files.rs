//! Files beneath a directory, as a route's `root` offers them: which file a path means, opening it without ever leaving
//! the directory, and keeping what is asked for often.
//!
//! The step `transaction/files.rs` asks here, in a thread for blocking calls; `instant_file.rs` looks only into the
//! table of open files. Conditions, ranges and heads are deliver's, as for what is stored. This module knows no request.

use std::sync::Arc;

use crate::compress_settings::CompressSettings;
use crate::limits::{FILE_CODED_BYTES_MAX, Limits};
use crate::settings::RootSettings;

mod beneath;
mod directory_entries;
pub(crate) mod file_path;
pub mod file_types;
pub(crate) mod finding;
pub mod kept_back;
pub(crate) mod leading_link;
pub(crate) mod listing_page;
mod made_codings;
pub(crate) mod open_file;
pub(crate) mod open_file_table;
mod path_meaning;
pub(crate) mod script_path;
pub(crate) mod script_table;
pub mod shown_sources;

use finding::ListingBounds;
use open_file::CODINGS;
use open_file_table::OpenFileTable;
use script_table::ScriptTable;

/// The roots of one configuration, and the files of theirs that are open. A reload begins with none.
pub(crate) struct StaticFiles {
    pub(crate) roots: Vec<Arc<RootSettings>>,
    pub(crate) table: OpenFileTable,
    pub(crate) scripts: ScriptTable,
    /// Larger files are sent from where they lie.
    pub(crate) memory_bytes_max: u64,
    pub(crate) listing: ListingBounds,
    /// How files are compressed that have no compressed ones beside them. None where nothing of it could be kept: it would be made anew for
    /// everybody who asks.
    pub(crate) compress: Option<Arc<CompressSettings>>,
}

impl StaticFiles {
    pub(crate) fn new(roots: &[RootSettings], limits: &Limits, compress: &CompressSettings) -> StaticFiles {
        let table = OpenFileTable::new(limits);
        let memory_bytes_max = limits.file_in_memory_bytes_max.min(table.file_bytes_max());
        let listing = ListingBounds {
            entries_max: limits.listing_entries_max,
            // One that cannot be kept would be made anew for everybody who asks.
            bytes_max: if limits.open_files_max == 0 { usize::MAX } else { table.file_bytes_max() as usize },
        };
        let all_codings = FILE_CODED_BYTES_MAX * CODINGS.len() as u64;
        let keeps_them = table.keeps(1 + CODINGS.len(), memory_bytes_max + all_codings);
        let compress = keeps_them.then(|| Arc::new(compress.clone()));
        let check_interval_ms = limits.open_file_check_interval.as_millis() as u64;
        let scripts = ScriptTable::new(roots.len(), check_interval_ms);
        let roots = roots.iter().cloned().map(Arc::new).collect();
        StaticFiles { roots, table, scripts, memory_bytes_max, listing, compress }
    }
}
