//! The machines' edges as the program reports them. A larder that ends in good order appends to a file in the
//! folder that `LARDER_EDGES_DIR` names: a line for every legal edge, `machine TAB from TAB to TAB times taken`.
//! A test run that never took a legal edge fails; the same lines are what docs/machines.md is drawn from.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;

use crate::project::Project;
use crate::step_tally::{Tally, make_folder};
use crate::{ports, process_signal};

/// Tells the program where to leave its counts.
pub const FOLDER_VARIABLE: &str = "LARDER_EDGES_DIR";
const DRAWING: &str = "docs/machines.md";

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Edge {
    machine: String,
    from: String,
    to: String,
}

/// How often each legal edge was taken over all reports. In the order in which the program names them.
struct Counts {
    order: Vec<Edge>,
    taken: BTreeMap<Edge, u64>,
}

pub fn run(project: &Project) -> Result<Tally, String> {
    let counts = Counts::read(&project.edges_folder())?;
    let never: Vec<&Edge> = counts.order.iter().filter(|edge| counts.taken[edge] == 0).collect();
    let mut tally = Tally { passed: counts.order.len() - never.len(), failed: never.len(), remarks: Vec::new() };
    for edge in never {
        tally.remarks.push(format!("{}: {} → {} was never taken", edge.machine, edge.from, edge.to));
    }
    if project.read(DRAWING).unwrap_or_default() != counts.draw() {
        tally.failed += 1;
        tally.remarks.push(format!("{DRAWING} does not show the machines as they are: cargo xtask machines"));
    }
    Ok(tally)
}

/// Asks the program for its tables by starting and ending it, and draws them.
pub fn redraw(project: &Project) -> Result<(), String> {
    project.build_larder()?;
    let folder = project.scratch("machines")?;
    for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
        let _ = std::fs::remove_file(entry.path());
    }
    let port = ports::free()?;
    let mut child = std::process::Command::new(project.larder())
        .args(["serve", "--no-supervisor", "--origin", "http://127.0.0.1:9", "--admin", "off", "--listen"])
        .arg(format!("127.0.0.1:{port}"))
        .env(FOLDER_VARIABLE, make_folder(&folder)?)
        .stdin(Stdio::null())
        .spawn()
        .map_err(|e| format!("{}: {e}", project.larder().display()))?;
    ports::wait(port, 10.0, || matches!(child.try_wait(), Ok(None)))?;
    terminate(child.id());
    child.wait().map_err(|e| e.to_string())?;
    let path = project.root.join(DRAWING);
    std::fs::write(&path, Counts::read(&folder)?.draw()).map_err(|e| format!("{}: {e}", path.display()))
}

/// Asks a process to end in good order.
pub fn terminate(pid: u32) {
    process_signal::send("TERM", &pid.to_string());
}

impl Counts {
    fn read(folder: &Path) -> Result<Counts, String> {
        let mut counts = Counts { order: Vec::new(), taken: BTreeMap::new() };
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let text = std::fs::read_to_string(entry.path()).map_err(|e| format!("{}: {e}", entry.path().display()))?;
            for line in text.lines() {
                counts.add(line).ok_or(format!("{}: no edge: {line:?}", entry.path().display()))?;
            }
        }
        match counts.order.is_empty() {
            true => Err(format!("no larder reported its edges in {}", folder.display())),
            false => Ok(counts),
        }
    }

    fn add(&mut self, line: &str) -> Option<()> {
        let mut cells = line.split('\t');
        let mut next = || cells.next().map(str::to_string);
        let edge = Edge { machine: next()?, from: next()?, to: next()? };
        let taken: u64 = next()?.parse().ok()?;
        if !self.taken.contains_key(&edge) {
            self.order.push(edge.clone());
        }
        *self.taken.entry(edge).or_insert(0) += taken;
        Some(())
    }

    /// A page with a picture of each machine, in Mermaid's notation.
    fn draw(&self) -> String {
        let mut machines: Vec<&str> = Vec::new();
        for edge in &self.order {
            if !machines.contains(&edge.machine.as_str()) {
                machines.push(&edge.machine);
            }
        }
        machines.sort_unstable();
        let mut page = String::from(
            "# The machines\n\nDrawn by `cargo xtask machines` from the tables that the program checks every change of \
             state against.\n`cargo xtask test` fails when this page is out of date, or when its run never took one of \
             these edges.\n",
        );
        for machine in machines {
            page.push_str(&format!("\n## {machine}\n\n```mermaid\nstateDiagram-v2\n"));
            let edges = self.order.iter().filter(|edge| edge.machine == machine);
            let mut lines: Vec<String> = edges.map(Edge::draw).collect();
            lines.sort();
            page.extend(lines);
            page.push_str("```\n");
        }
        page
    }
}

impl Edge {
    /// Where a state has several ways out to the same one, the event stands behind a space in `from`.
    fn draw(&self) -> String {
        let (from, event) = self.from.split_once(' ').unwrap_or((&self.from, ""));
        let label = if event.is_empty() { String::new() } else { format!(": {event}") };
        format!("    {} --> {}{label}\n", node(from), node(&self.to))
    }
}

/// A state's name as Mermaid takes it: no spaces or signs.
fn node(state: &str) -> String {
    state.chars().map(|c| if c.is_alphanumeric() { c } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_add_up_and_are_drawn() {
        let mut counts = Counts { order: Vec::new(), taken: BTreeMap::new() };
        for line in ["flight\tReserved\tDescribed\t3", "flight\tReserved\tFailed\t0", "flight\tReserved\tFailed\t2"] {
            assert_eq!(counts.add(line), Some(()), "{line}");
        }
        assert_eq!(counts.add("flight\tReserved"), None);
        counts.add("exchange\tDone/Waiting AnswerBegun\tDone/Answer\t1");
        let taken: Vec<u64> = counts.order.iter().map(|edge| counts.taken[edge]).collect();
        assert_eq!(taken, [3, 2, 1]);
        assert!(counts.draw().contains("    Done_Waiting --> Done_Answer: AnswerBegun\n"));
        assert!(counts.draw().contains(
            "## flight\n\n```mermaid\nstateDiagram-v2\n    Reserved --> Described\n    Reserved --> Failed\n```\n"
        ));
    }
}
