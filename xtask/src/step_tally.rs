//! What a step of a run did, and the small things that every step needs to say so. It knows no step.

use std::path::Path;

/// What a step did: how many things it looked at, and what was wrong with which.
#[derive(Debug, Default)]
pub struct Tally {
    pub passed: usize,
    pub failed: usize,
    /// One line each, shown under the step.
    pub remarks: Vec<String>,
}

impl Tally {
    pub fn of(complaints: Vec<String>) -> Tally {
        Tally { passed: usize::from(complaints.is_empty()), failed: complaints.len(), remarks: complaints }
    }

    pub fn add(&mut self, other: Tally) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.remarks.extend(other.remarks);
    }

    pub fn broken(why: String) -> Tally {
        Tally { passed: 0, failed: 1, remarks: vec![why] }
    }
}

pub fn make_folder(path: &Path) -> Result<&Path, String> {
    std::fs::create_dir_all(path).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(path)
}

pub fn tail(output: &str, lines_max: usize) -> Vec<String> {
    let lines: Vec<&str> = output.lines().collect();
    lines[lines.len().saturating_sub(lines_max)..].iter().map(|line| line.to_string()).collect()
}
