//! Edge counts for the project's own test run: when the environment names a folder, a larder that ends in good
//! order leaves there how often it took each legal edge of its machines.
//!
//! `cargo xtask test` adds the files up and fails when an edge was never taken; nobody else sets the variable.

use std::fmt::Write;
use std::path::PathBuf;

use proxy::{Moment, Proxy};

const FOLDER_VARIABLE: &str = "LARDER_EDGES_DIR";

/// Where they are left, if anybody wants them.
pub fn folder() -> Option<PathBuf> {
    std::env::var_os(FOLDER_VARIABLE).map(PathBuf::from)
}

/// A line an edge: machine, from, to, times taken; separated by tabs. The time of the start is in the file's name,
/// because a process id is given again.
pub fn leave(proxy: &Proxy, started: Moment) {
    let Some(folder) = folder() else { return };
    let mut lines = String::new();
    for edge in proxy.edges() {
        // Writing to a String cannot fail.
        let _ = writeln!(lines, "{}\t{}\t{}\t{}", edge.machine, edge.from, edge.to, edge.taken);
    }
    let name = format!("edges-{}-{}.tsv", std::process::id(), started.nanos);
    let path = folder.join(name);
    // A test run without the file fails by itself.
    let _ = std::fs::write(path, lines);
}
