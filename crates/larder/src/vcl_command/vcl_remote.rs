//! `larder vcl load|use|discard|label|list|backends|health|ban|bans`: asks the larder that runs, through its admin address.
//!
//! What may be done, and what comes of it, is decided there; here it is asked for and shown.

use std::io::Read;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use serde_json::Value;

use crate::admin_client::{RemoteFlags, ask, encoded, failed};
use crate::check_vcl::read_vcl;

#[derive(Clone, Debug, Args)]
pub struct LoadFlags {
    /// The name to load it under: a letter, then letters, digits and _ . -
    pub name: String,

    /// The VCL file, or - for standard input; the running larder searches for what it includes
    pub file: PathBuf,

    /// Make it the active VCL right away
    #[arg(long = "use")]
    pub and_use: bool,

    #[command(flatten)]
    pub remote: RemoteFlags,
}

#[derive(Clone, Debug, Args)]
pub struct NameFlags {
    /// A loaded VCL, or a label
    pub name: String,

    #[command(flatten)]
    pub remote: RemoteFlags,
}

#[derive(Clone, Debug, Args)]
pub struct LabelFlags {
    /// The label, as in return (vcl(LABEL))
    pub label: String,

    /// The loaded VCL that it stands for
    pub name: String,

    #[command(flatten)]
    pub remote: RemoteFlags,
}

#[derive(Clone, Debug, Args)]
pub struct HealthFlags {
    /// A backend of the VCL that decides, or VCL.BACKEND
    pub backend: String,

    /// The health to set; auto leaves it to the probes
    pub health: HealthWord,

    #[command(flatten)]
    pub remote: RemoteFlags,
}

#[derive(Clone, Debug, Args)]
pub struct BanFlags {
    /// FIELD OPERATOR VALUE [&& …]: fields obj.url, obj.host, obj.http.NAME, req.url, req.http.NAME, obj.status, obj.ttl, obj.age, …
    #[arg(required = true, value_name = "EXPRESSION")]
    pub words: Vec<String>,

    #[command(flatten)]
    pub remote: RemoteFlags,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum HealthWord {
    Auto,
    Healthy,
    Sick,
}

pub fn load(flags: &LoadFlags) -> ExitCode {
    let LoadFlags { name, file, and_use, remote } = flags;
    let text = match file.to_str() {
        Some("-") => {
            let mut text = Vec::new();
            std::io::stdin().read_to_end(&mut text).map(|_| text).map_err(|e| e.to_string())
        }
        _ => read_vcl(file),
    };
    let text = match text {
        Ok(text) => text,
        Err(why) => return failed(&format!("{}: {why}", file.display())),
    };
    let from = match std::path::absolute(file) {
        Ok(path) if file.as_os_str() != "-" => format!("?from={}", encoded(&path.display().to_string())),
        _ => String::new(),
    };
    let target = format!("/vcl/{}{from}", encoded(name));
    let loaded = ask(remote, "PUT", &target, &text, |answer| {
        let warnings = answer["warnings"].as_str().unwrap_or_default();
        format!("{warnings}loaded {name}: {}\n{}", answer["summary"].as_str().unwrap_or_default(), elsewhere(answer))
    });
    if loaded != ExitCode::SUCCESS || !and_use {
        return loaded;
    }
    decides(remote, name)
}

fn decides(remote: &RemoteFlags, name: &str) -> ExitCode {
    let target = format!("/vcl/{}/use", encoded(name));
    ask(remote, "POST", &target, b"", |answer| format!("{name} decides from now on\n{}", elsewhere(answer)))
}

/// Nodes of the fleet that could not do the same, a line each.
fn elsewhere(answer: &Value) -> String {
    let complaints = answer["complaints"].as_array().into_iter().flatten();
    complaints.map(|one| format!("{}: {}\n", word(&one["node"]), word(&one["complaint"]))).collect()
}

pub fn use_it(flags: &NameFlags) -> ExitCode {
    decides(&flags.remote, &flags.name)
}

pub fn discard(flags: &NameFlags) -> ExitCode {
    let NameFlags { name, remote } = flags;
    ask(remote, "DELETE", &format!("/vcl/{}", encoded(name)), b"", |_| format!("discarded {name}\n"))
}

pub fn label(flags: &LabelFlags) -> ExitCode {
    let LabelFlags { label, name, remote } = flags;
    let target = format!("/vcl-labels/{}?vcl={}", encoded(label), encoded(name));
    ask(remote, "PUT", &target, b"", |_| format!("{label} stands for {name}\n"))
}

pub fn list(remote: &RemoteFlags) -> ExitCode {
    ask(remote, "GET", "/vcl", b"", |answer| {
        let row = |vcl: &Value| {
            let labels: Vec<&str> = vcl["labels"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            [
                word(&vcl["name"]),
                if vcl["active"] == true { "active" } else { "available" }.to_owned(),
                if vcl["warm"] == true { "warm" } else { "cold" }.to_owned(),
                word(&vcl["under_way"]),
                labels.join(","),
                word(&vcl["summary"]),
            ]
        };
        let rows = answer["vcls"].as_array().into_iter().flatten().map(row);
        table(["VCL", "STATE", "PROBES", "UNDER WAY", "LABELS", "HOLDS"], rows.collect())
    })
}

pub fn backends(remote: &RemoteFlags) -> ExitCode {
    ask(remote, "GET", "/backends", b"", |answer| {
        let row = |backend: &Value| {
            let probe = &backend["probe"];
            let probed = match probe.is_null() {
                true => "none".to_owned(),
                false => format!("{}/{}", probe["good"], probe["window"]),
            };
            [
                format!("{}.{}", word(&backend["vcl"]), word(&backend["name"])),
                word(&backend["ordered"]),
                if backend["healthy"] == true { "healthy" } else { "sick" }.to_owned(),
                probed,
                word(&probe["last"]),
            ]
        };
        let rows = answer["backends"].as_array().into_iter().flatten().map(row);
        table(["BACKEND", "ORDERED", "HEALTH", "PROBES", "THE LAST"], rows.collect())
    })
}

pub fn ban(flags: &BanFlags) -> ExitCode {
    let expression = flags.words.join(" ");
    ask(&flags.remote, "POST", "/ban", expression.as_bytes(), |_| format!("banned: {expression}\n"))
}

pub fn bans(remote: &RemoteFlags) -> ExitCode {
    ask(remote, "GET", "/bans", b"", |answer| {
        let row = |ban: &Value| {
            let age = std::time::Duration::from_millis(ban["age_ms"].as_u64().unwrap_or(0));
            let state = match (ban["done"] == true, ban["needs_request"] == true) {
                (true, _) if ban["soft"] == true => "done, soft",
                (true, _) => "done",
                (false, true) => "on request",
                (false, false) => "in force",
            };
            [
                format!("{} s", age.as_secs()),
                state.to_owned(),
                word(&ban["tested"]),
                word(&ban["matched"]),
                word(&ban["expression"]),
            ]
        };
        let rows = answer["bans"].as_array().into_iter().flatten().map(row);
        table(["AGE", "STATE", "TESTED", "WENT", "BAN"], rows.collect())
    })
}

pub fn health(flags: &HealthFlags) -> ExitCode {
    let word = match flags.health {
        HealthWord::Auto => "auto",
        HealthWord::Healthy => "healthy",
        HealthWord::Sick => "sick",
    };
    let target = format!("/backends/{}/health?set={word}", encoded(&flags.backend));
    ask(&flags.remote, "POST", &target, b"", |_| format!("{}: {word}\n", flags.backend))
}

fn word(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// Columns as wide as what stands in them.
fn table<const N: usize>(heads: [&str; N], rows: Vec<[String; N]>) -> String {
    let rows: Vec<[String; N]> = std::iter::once(heads.map(str::to_owned)).chain(rows).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..N).map(width).collect();
    let line = |row: &[String; N]| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_under_their_heads() {
        let rows = vec![["boot".to_owned(), "active".to_owned()], ["reload-10".to_owned(), String::new()]];
        assert_eq!(table(["VCL", "STATE"], rows), "VCL        STATE\nboot       active\nreload-10\n");
    }
}
