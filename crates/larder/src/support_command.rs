//! `larder support`: one file with all that is needed to find out what is wrong with a larder, for who was not there.
//!
//! What cannot be had is said in its place, and the rest is collected all the same: most of all it is wanted when something does not answer.

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::Args;
use proxy::settings::ListenAddress;
use proxy::wall_now_ms;
use rustix::fs::statvfs;
use rustix::system::uname;
use serde_json::Value;

use crate::admin_client::{self, AdminFlags, failed};
use crate::bounded_file;
use crate::build_identity::BuildIdentity;
use crate::config;
use crate::expiry_watch::show_date;
use crate::limits::{SUPPORT_PART_BYTES_MAX, SUPPORT_PATIENCE};
use crate::named_backtrace;
use crate::quantities::show_size;

#[derive(Clone, Debug, Args)]
pub struct SupportFlags {
    #[command(flatten)]
    larder: AdminFlags,

    /// The file to write, which must not be there yet; "-" is standard output [default: larder-support-SECONDS.txt here]
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
}

pub const SUPPORT_EXAMPLES: &str = "\
Examples:
  larder support --config /etc/larder/larder.toml
  larder support --config larder.toml --to - | less

The file has versions and limits of the machine and the process, the config that holds and what `larder check` says of it, /status, /metrics,
what happened last (reloads, purges, origins that failed), and crash reports, with the names of functions where this program is of the build
that wrote them. Passwords, tokens and keys are left out, and no request, client or cookie is in it. It has names of hosts, origins and files:
read it before you send it. A larder that does not answer is said so, and the rest is there.

Exit codes: 0 written; 1 not; 2 wrong flags.";

pub fn support(flags: &SupportFlags) -> ExitCode {
    let text = collected(&flags.larder);
    let now_s = wall_now_ms() / 1_000;
    let to = flags.to.clone().unwrap_or_else(|| format!("larder-support-{now_s}.txt").into());
    if to == Path::new("-") {
        // A closed pipe must not end it with a panic.
        let written = io::stdout().write_all(text.as_bytes());
        return if written.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    // Hosts and paths are the operator's alone to show.
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&to);
    match file.and_then(|mut file| file.write_all(text.as_bytes())) {
        Ok(()) => {
            let _ = writeln!(
                io::stdout(),
                "{} has {}: read it before you send it",
                to.display(),
                show_size(text.len() as u64)
            );
            ExitCode::SUCCESS
        }
        Err(error) => failed(&format!("{} cannot be written: {error} (--to names another)", to.display())),
    }
}

fn collected(larder: &AdminFlags) -> String {
    // Where its file does not say whom to ask, why is not to show what else stands there.
    let admin = larder.config_file().map(|file| config::load_admin(&file));
    let status = match admin {
        Some(Err(error)) => Err(error.place()),
        _ => asked(larder, "/status"),
    };
    let silence = status.as_ref().err().cloned();
    // One that does not answer is not waited for at each page.
    let asked = |target: &str| silence.clone().map_or_else(|| asked(larder, target), Err);
    let status = status.and_then(|text| parsed(&text));
    let here =
        status.as_ref().map_err(Clone::clone).and_then(|status| on_this_machine(larder, status).map(|()| status));
    let mut text = String::new();
    let mut part = |title: &str, content: Result<String, String>| {
        let content = content.unwrap_or_else(|why| format!("not to be had: {why}\n"));
        let end = content.floor_char_boundary(SUPPORT_PART_BYTES_MAX);
        let cut = if end < content.len() { "\n… (the rest is left out)\n" } else { "" };
        let _ = writeln!(text, "== {title} ==\n{}{cut}", &content[..end]);
    };
    part("larder", Ok(program(status.as_ref().ok())));
    part("machine", Ok(machine()));
    part("process that serves", here.clone().map(|status| process_of(&status["processes"]["process"])));
    let crashes = status.as_ref().map(reports).map_err(Clone::clone);
    part("crash reports", crashes);
    part("what happened", asked("/history?step=60").and_then(|text| happened(&text)));
    part("config that holds", asked("/config").and_then(|text| held(&text)));
    part("larder check", checked(larder));
    part("disks", here.map(disks));
    part("/status", status.map(|status| format!("{status:#}\n")));
    part("/metrics", asked("/metrics"));
    text
}

/// The body of a page of the admin address.
fn asked(larder: &AdminFlags, target: &str) -> Result<String, String> {
    let (status, body) = admin_client::exchange_within(SUPPORT_PATIENCE, larder, ("GET", target), b"")?;
    let text = String::from_utf8_lossy(&body).into_owned();
    if status == 200 { Ok(text) } else { Err(format!("{target} is answered {status}: {}", text.trim())) }
}

fn parsed(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("what was answered cannot be read: {error}"))
}

fn program(status: Option<&Value>) -> String {
    let identity = BuildIdentity::of_this_program();
    let running = status.and_then(|status| status["version"].as_str()).unwrap_or("none that answers");
    let (date, version) = (show_date(wall_now_ms() / 1_000), env!("CARGO_PKG_VERSION"));
    format!("collected {date}\nthis program: {version}, build {}\nthe larder that runs: {running}\n", identity.id)
}

fn machine() -> String {
    let (system, cores) = (uname(), std::thread::available_parallelism().map_or(0, usize::from));
    let mut text = format!(
        "{} {} {}\n{cores} cores for this process\n",
        system.sysname().to_string_lossy(),
        system.release().to_string_lossy(),
        system.machine().to_string_lossy(),
    );
    for path in ["/etc/os-release", "/proc/loadavg", "/proc/sys/fs/file-nr", "/proc/sys/net/core/somaxconn"] {
        text.push_str(&shown_file(path, |_| true));
    }
    text.push_str(&shown_file("/proc/meminfo", |line| {
        ["MemTotal", "MemAvailable", "SwapTotal", "SwapFree"].iter().any(|name| line.starts_with(name))
    }));
    text
}

/// The process that answers may be another machine's, or have another number here.
fn on_this_machine(larder: &AdminFlags, status: &Value) -> Result<(), String> {
    let is_near = match admin_client::address_of(larder) {
        Some(ListenAddress::Tcp(address)) => address.ip().is_loopback(),
        Some(ListenAddress::Unix(_)) => true,
        None => false,
    };
    let name = std::fs::read_to_string(format!("/proc/{}/comm", status["processes"]["process"]));
    match is_near && name.is_ok_and(|name| name.trim_end() == "larder") {
        true => Ok(()),
        false => Err("larder does not run on this machine, or its processes are not seen from here".to_owned()),
    }
}

/// Limits and figures of a process, as far as this user may see them.
fn process_of(process: &Value) -> String {
    let folder = format!("/proc/{process}");
    let told = [
        "State",
        "Uid",
        "VmPeak",
        "VmRSS",
        "RssAnon",
        "Threads",
        "NoNewPrivs",
        "Seccomp:",
        "voluntary",
        "nonvoluntary",
    ];
    let mut text = shown_file(&format!("{folder}/status"), |line| told.iter().any(|name| line.starts_with(name)));
    text.push_str(&shown_file(&format!("{folder}/limits"), |_| true));
    text.push_str(&shown_file(&format!("{folder}/cgroup"), |_| true));
    let open = std::fs::read_dir(format!("{folder}/fd")).map(Iterator::count);
    let open = open.map_or_else(|error| format!("not to be counted: {error}"), |count| count.to_string());
    text.push_str(&format!("open descriptors: {open}\n"));
    text
}

/// Lines of a file of the system, below its name.
fn shown_file(path: &str, is_told: impl Fn(&str) -> bool) -> String {
    match bounded_file::read_text(Path::new(path), SUPPORT_PART_BYTES_MAX as u64) {
        Ok(text) => {
            let lines: String = text.lines().filter(|line| is_told(line)).map(|line| format!("  {line}\n")).collect();
            format!("{path}\n{lines}")
        }
        Err(why) => format!("{path}: {why}\n"),
    }
}

fn reports(status: &Value) -> String {
    let lines = status["crash_reports"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let text: String = lines.map(named_backtrace::named).collect();
    if text.is_empty() { "none\n".to_owned() } else { text }
}

fn happened(history: &str) -> Result<String, String> {
    let history = parsed(history)?;
    let line = |it: &Value| {
        let word = |name: &str| it[name].as_str().unwrap_or_default().to_owned();
        let times = it["count"]
            .as_u64()
            .filter(|count| *count > 1)
            .map_or_else(String::new, |count| format!(" ({count} times)"));
        format!("{} {} {}{times}\n", show_date(it["at_s"].as_u64().unwrap_or_default()), word("kind"), word("text"))
    };
    let text: String = history["annotations"].as_array().into_iter().flatten().map(line).collect();
    Ok(if text.is_empty() { "nothing\n".to_owned() } else { text })
}

/// As `/config` tells it: without secrets.
fn held(answer: &str) -> Result<String, String> {
    let answer = parsed(answer)?;
    let config = answer["config"].as_str().ok_or("it is not in the answer")?;
    let file = answer["file"].as_str().unwrap_or("no file");
    Ok(format!("# from {file}; changed there by now: {}\n{config}", answer["changed"]))
}

/// What is wrong in the file, and where: no line of it, for a password may stand there. Of one that is good, what this very program warns of.
fn checked(larder: &AdminFlags) -> Result<String, String> {
    let file = larder.config_file().ok_or("no config is named (--config FILE)")?;
    if let Err(error) = config::load(&file) {
        return Ok(format!("it has mistakes: {}\n", error.place()));
    }
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let output = Command::new(program).args(["check", "--json"]).arg(&file).output();
    let answer = parsed(&String::from_utf8_lossy(&output.map_err(|error| error.to_string())?.stdout))?;
    let row = &answer["files"][0];
    let told = ["summary", "warnings", "machine", "notes"].map(|key| format!("{key}: {:#}\n", row[key]));
    let of_program = if row["vcl"]["ok"] == false { "its VCL has mistakes\n" } else { "" };
    Ok(told.concat() + of_program)
}

/// The room that file systems beneath disks have.
fn disks(status: &Value) -> String {
    // What is relative begins where the process runs.
    let from = std::fs::read_link(format!("/proc/{}/cwd", status["processes"]["process"])).unwrap_or_default();
    let room = |path: &str| match statvfs(from.join(path)) {
        Ok(found) => {
            let bytes = |blocks: u64| show_size(blocks.saturating_mul(found.f_frsize));
            format!("{path}: {} of {} free\n", bytes(found.f_bavail), bytes(found.f_blocks))
        }
        Err(error) => format!("{path}: {error}\n"),
    };
    let paths = status["disks"].as_array().into_iter().flatten().filter_map(|disk| disk["path"].as_str());
    let text: String = paths.map(room).collect();
    if text.is_empty() { "none\n".to_owned() } else { text }
}
