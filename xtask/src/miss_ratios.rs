//! `cargo xtask miss-ratios`: the claim that S3-FIFO misses less than LRU, on three made traces of a million requests and at
//! sizes of memory from 0.1 to 30 % of what everything takes. Its mean must be below LRU's on each, and at no size may it be
//! more than a point worse. Writes the table and the pictures of docs/simulate.md; with `--seed` it only judges.
//!
//! `larder`'s unit tests hold the same with fewer requests, against a strict LRU too.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::project::Project;

const KINDS: [&str; 3] = ["zipf", "scan", "site"];
const PERCENTS: [&str; 12] = ["0.1", "0.2", "0.3", "0.5", "1", "2", "3", "5", "10", "15", "20", "30"];
const REQUESTS: &str = "1000000";
const OBJECTS: &str = "100000";
const SEED_OF_THE_PAGE: u64 = 1;

/// In points of the miss ratio.
const WORSE_MAX: f64 = 1.0;

const PAGE: &str = "docs/simulate.md";
const BEGINS: &str = "<!-- written by cargo xtask miss-ratios -->\n";
const ENDS: &str = "<!-- until here -->\n";

/// A policy's misses in per cent, of the requests and of the bytes, one pair for each size.
#[derive(Debug)]
struct Curve {
    policy: String,
    misses: Vec<(f64, f64)>,
}

impl Curve {
    fn mean(&self) -> (f64, f64) {
        let count = self.misses.len() as f64;
        let sum = self.misses.iter().fold((0.0, 0.0), |sum, misses| (sum.0 + misses.0, sum.1 + misses.1));
        (sum.0 / count, sum.1 / count)
    }
}

pub fn task(project: &Project, options: &[&str]) -> Result<(), String> {
    let seed = match options {
        [] => SEED_OF_THE_PAGE,
        ["--seed", number] => number.parse().map_err(|_| format!("'{number}' is no seed"))?,
        _ => return Err("options of miss-ratios: --seed N".to_owned()),
    };
    let built = project.cargo(&["build", "--release", "--quiet", "--package", "larder"]).status();
    if !built.is_ok_and(|status| status.success()) {
        return Err("larder was not built".to_owned());
    }
    let mut written = String::new();
    let mut complaints = Vec::new();
    for kind in KINDS {
        let picture = format!("docs/images/miss-ratio-{kind}.svg");
        let plot = (seed == SEED_OF_THE_PAGE).then(|| project.root.join(&picture));
        let told = simulate(project, kind, seed, plot.as_deref())?;
        let curves = curves(&told).ok_or("larder's JSON is not as docs/simulate.md shows it")?;
        complaints.extend(judge(kind, &curves));
        written += &section(kind, &told, &curves);
    }
    print!("{written}");
    if seed == SEED_OF_THE_PAGE {
        let page = replaced(&project.read(PAGE)?, &written)?;
        std::fs::write(project.root.join(PAGE), page).map_err(|error| format!("{PAGE}: {error}"))?;
    }
    if complaints.is_empty() { Ok(()) } else { Err(complaints.join("\n")) }
}

fn simulate(project: &Project, kind: &str, seed: u64, plot: Option<&Path>) -> Result<Value, String> {
    let memory = PERCENTS.map(|percent| format!("{percent}%")).join(",");
    let mut command = Command::new(project.larder());
    command.args(["lab", "simulate", "--json", "--generate", kind, "--seed", &seed.to_string()]);
    command.args(["--requests", REQUESTS, "--objects", OBJECTS, "--memory", &memory]);
    if let Some(path) = plot {
        command.arg("--plot").arg(path);
    }
    let output = command.output().map_err(|error| format!("larder: {error}"))?;
    match output.status.success() {
        true => serde_json::from_slice(&output.stdout).map_err(|error| format!("larder's JSON: {error}")),
        false => Err(format!("larder lab simulate: {}", String::from_utf8_lossy(&output.stderr))),
    }
}

fn curves(told: &Value) -> Option<Vec<Curve>> {
    let percent = |point: &Value, name: &str| Some(point[name].as_f64()? * 100.0);
    let curve = |curve: &Value| {
        let misses = |point| Some((percent(point, "miss_ratio")?, percent(point, "byte_miss_ratio")?));
        let misses: Option<Vec<(f64, f64)>> = curve["points"].as_array()?.iter().map(misses).collect();
        let misses = misses.filter(|misses| misses.len() == PERCENTS.len())?;
        Some(Curve { policy: curve["policy"].as_str()?.to_owned(), misses })
    };
    told["curves"].as_array()?.iter().map(curve).collect()
}

/// What does not hold.
fn judge(kind: &str, curves: &[Curve]) -> Vec<String> {
    let named = |name: &str| curves.iter().find(|curve| curve.policy == name);
    let (Some(ours), Some(lru)) = (named("s3-fifo"), named("lru")) else {
        return vec![format!("{kind}: s3-fifo or lru is missing")];
    };
    let mut complaints = Vec::new();
    let (mean, lru_mean) = (ours.mean().0, lru.mean().0);
    if mean >= lru_mean {
        complaints.push(format!("{kind}: s3-fifo misses {mean:.2} % in the mean, lru {lru_mean:.2} %"));
    }
    for (percent, (ours, lru)) in PERCENTS.iter().zip(ours.misses.iter().zip(&lru.misses)) {
        if ours.0 > lru.0 + WORSE_MAX {
            complaints.push(format!("{kind} at {percent} %: s3-fifo misses {:.2} %, lru {:.2} %", ours.0, lru.0));
        }
    }
    complaints
}

fn section(kind: &str, told: &Value, curves: &[Curve]) -> String {
    let number = |name: &str| told[name].as_u64().unwrap_or(0);
    let gibibytes = number("whole_bytes") as f64 / f64::from(1 << 30);
    let mut out = format!(
        "\n`{kind}`: {} requests for {} objects, which take {gibibytes:.1} GiB\n\n| memory |",
        number("requests"),
        number("objects"),
    );
    curves.iter().for_each(|curve| out += &format!(" {} |", curve.policy));
    out += &format!("\n|---|{}\n", "---|".repeat(curves.len()));
    let cell = |(ratio, by_bytes): (f64, f64)| format!(" {ratio:.1} % ({by_bytes:.1} %) |");
    for (at, percent) in PERCENTS.iter().enumerate() {
        out += &format!("| {percent} % |");
        curves.iter().for_each(|curve| out += &cell(curve.misses[at]));
        out.push('\n');
    }
    out += "| mean |";
    curves.iter().for_each(|curve| out += &cell(curve.mean()));
    out + &format!("\n\n![Miss ratios of {kind}](images/miss-ratio-{kind}.svg)\n")
}

fn replaced(page: &str, written: &str) -> Result<String, String> {
    let parts = page.split_once(BEGINS).and_then(|(before, rest)| Some((before, rest.split_once(ENDS)?.1)));
    let (before, after) = parts.ok_or_else(|| format!("{PAGE} has no {BEGINS:?} and {ENDS:?}"))?;
    Ok(format!("{before}{BEGINS}{written}\n{ENDS}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(ours: &[f64], lru: &[f64], complaints_count: usize) {
        let curve = |policy: &str, misses: &[f64]| Curve {
            policy: policy.to_owned(),
            misses: misses.iter().map(|ratio| (*ratio, 50.0)).collect(),
        };
        let complaints = judge("zipf", &[curve("s3-fifo", ours), curve("lru", lru)]);
        assert_eq!(complaints.len(), complaints_count, "{complaints:?}");
    }

    #[test]
    fn the_mean_must_be_below_and_no_size_more_than_a_point_above() {
        check(&[50.0, 30.0], &[60.0, 29.1], 0);
        check(&[50.0, 30.0], &[60.0, 28.9], 1);
        check(&[50.0, 30.0], &[50.0, 30.0], 1);
        check(&[50.0, 32.0], &[50.0, 30.0], 2);
    }

    #[test]
    fn only_what_is_between_the_marks_is_written_anew() {
        let page = format!("a\n{BEGINS}old\n{ENDS}b\n");
        assert_eq!(replaced(&page, "new\n").unwrap(), format!("a\n{BEGINS}new\n\n{ENDS}b\n"));
        assert!(replaced("a\n", "new\n").is_err());
    }
}
