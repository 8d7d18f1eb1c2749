//! How long larder takes to load the longest whole file of the corpus, by the admin address of a larder that runs, which
//! makes its sets of regexes and the engines of those that are in none.
//!
//! The limit is the task's own, of 58,000 bytes and in proportion above; Varnish needs a run of the C compiler.

use std::path::{Path, PathBuf};

use crate::judged_cache::{Judged, JudgedCache};
use crate::project::{Project, Stopwatch};

const BYTES: usize = 58_000;
const SECONDS_MAX: f64 = 0.050;
/// The quickest counts: others may be at work on the machine.
const RUNS: usize = 5;

/// Says how long it took; an error when that is too long.
pub fn measure(project: &Project, file: &Path, vcl_path: &[PathBuf]) -> Result<(), String> {
    let folder = project.scratch("vcl-load-time")?;
    let small = folder.join("small.vcl");
    std::fs::write(&small, "vcl 4.1;\nbackend none none;\n").map_err(|e| format!("{}: {e}", small.display()))?;
    let length = std::fs::read(file).map_err(|e| format!("{}: {e}", file.display()))?.len();
    let larder = JudgedCache::start(project, Judged::Larder, &small, vcl_path, &folder)?;
    let mut quickest = f64::MAX;
    for run in 0..RUNS {
        let watch = Stopwatch::start();
        larder.load(&format!("long-{run}"), file)?;
        quickest = quickest.min(watch.seconds());
    }
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    println!(
        "\nthe longest whole file that both accept, {name} with {length} bytes, is loaded within {:.1} ms, its command included",
        quickest * 1_000.0
    );
    let allowed = seconds_allowed(length);
    match quickest <= allowed {
        true => Ok(()),
        false => Err(format!("loading {length} bytes of VCL takes more than {allowed:.3} s")),
    }
}

fn seconds_allowed(length: usize) -> f64 {
    SECONDS_MAX * (length.max(BYTES) as f64 / BYTES as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longer_files_may_take_longer() {
        assert_eq!(seconds_allowed(1_000), 0.050);
        assert_eq!(seconds_allowed(116_000), 0.100);
    }
}
