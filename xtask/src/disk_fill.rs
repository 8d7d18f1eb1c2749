//! `cargo xtask fill`: what a disk costs while it is written. Bodies of 1 MiB are fetched once each, with a disk beneath them and
//! without one, beside what fio writes to the same file system one after the other; and pages in memory are asked for at a
//! fixed rate while nothing else happens, while such bodies pass through, and while they are stored.
//!
//! Load and origin are larder's own (`larder bench`, `larder lab origin`). It compares and prints; what must hold is said in
//! docs/performance.md, and is no test: it depends on the machine.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::memory_load::ask_admin;
use crate::project::{Project, Stopwatch};

const MIB: u64 = 1 << 20;
const PATIENCE_SECONDS: f64 = 60.0;
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// Connections over which bodies come, and over which pages are asked for.
const BODY_CONNECTIONS: &str = "8";
const HIT_CONNECTIONS: &str = "16";
const HITS_PER_SECOND: &str = "2000";
/// What the kernel counts processor time in, for programs: USER_HZ is 100.
const MS_A_TICK: f64 = 10.0;
const PAGE: &str = "/f6221.html";
/// The disk holds so many rounds of bodies: none of it is written anew within one.
const DISK_ROUNDS: u64 = 4;

struct Asked {
    mib: u64,
    blocks: usize,
    seconds: u64,
}

/// A program that ends with this.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill().and_then(|()| self.0.wait());
    }
}

impl Running {
    /// What its threads have taken: those of disks, and the others.
    fn cpu_ms(&self) -> Result<[f64; 2], String> {
        let mut sums = [0.0; 2];
        let tasks = PathBuf::from(format!("/proc/{}/task", self.0.id()));
        for task in fs::read_dir(&tasks).map_err(|error| format!("{}: {error}", tasks.display()))?.flatten() {
            let line = fs::read_to_string(task.path().join("stat")).unwrap_or_default();
            let Some((name, rest)) = line.rsplit_once(')') else { continue };
            let ticks = rest.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok());
            let is_other = !name.contains("(disk-");
            sums[usize::from(is_other)] += ticks.sum::<f64>() * MS_A_TICK;
        }
        Ok(sums)
    }
}

/// One block, in MiB a second and in microseconds.
#[derive(Default)]
struct Block {
    fio: f64,
    pass: f64,
    fill: f64,
    stored_share: f64,
    /// Processor time of larder's for a MiB, in milliseconds: passed; and filled, of the disk's threads and of all others.
    pass_cpu: f64,
    fill_cpu: [f64; 2],
    at_rest: [f64; 3],
    passing: [f64; 3],
    filling: [f64; 3],
}

struct Stage<'a> {
    larder: PathBuf,
    folder: PathBuf,
    origin: SocketAddr,
    asked: &'a Asked,
}

pub fn task(project: &Project, options: &[&str]) -> Result<(), String> {
    let asked = read_options(options)?;
    let folder = project.scratch("fill")?;
    let ports = folder.join("origin.up");
    let _ = fs::remove_file(&ports);
    let mut origin = Command::new(project.larder());
    origin.args(["lab", "origin", "--listen", "127.0.0.1:0", "--threads", "1", "--ports-file"]).arg(&ports);
    let _origin = spawn(&mut origin)?;
    let stage = Stage { larder: project.larder(), folder, origin: address_in(&ports)?, asked: &asked };
    let mut blocks = Vec::new();
    for number in 0..asked.blocks {
        let block = stage.block(number)?;
        println!(
            "block {}: MiB/s fio {:.0}, pass {:.0}, fill {:.0} ({:.0} % stored); ms of CPU a MiB: pass {:.2}, fill {:.2}, the disk's \
             {:.2} more; hits' mean, p50, p90 in us: at rest {}, passing {}, filling {}",
            number + 1,
            block.fio,
            block.pass,
            block.fill,
            block.stored_share * 100.0,
            block.pass_cpu,
            block.fill_cpu[1],
            block.fill_cpu[0],
            three(block.at_rest),
            three(block.passing),
            three(block.filling)
        );
        blocks.push(block);
    }
    let median = |of: &dyn Fn(&Block) -> f64| spread(blocks.iter().map(of).collect());
    println!("fill / the lower of fio and pass   {}", median(&|it| it.fill / it.fio.min(it.pass)));
    println!("fill / pass                        {}", median(&|it| it.fill / it.pass));
    println!("share of what came that was stored {}", median(&|it| it.stored_share));
    println!("CPU of larder's, fill / pass       {}", median(&|it| it.fill_cpu.iter().sum::<f64>() / it.pass_cpu));
    for (at, name) in ["mean", "p50 ", "p90 "].iter().enumerate() {
        println!("a hit's {name} filling / at rest     {}", median(&|it| it.filling[at] / it.at_rest[at]));
        println!("a hit's {name} filling / passing     {}", median(&|it| it.filling[at] / it.passing[at]));
    }
    Ok(())
}

fn read_options(options: &[&str]) -> Result<Asked, String> {
    let mut asked = Asked { mib: 512, blocks: 5, seconds: 4 };
    let mut options = options.iter();
    while let Some(option) = options.next() {
        let number = options.next().and_then(|text| text.parse::<u64>().ok()).filter(|&number| number > 0);
        let number = number.ok_or(format!("{option} needs a number"))?;
        match *option {
            "--mib" => asked.mib = number,
            "--blocks" => asked.blocks = number as usize,
            "--seconds" => asked.seconds = number,
            _ => return Err(format!("'{option}' is no option of fill: --mib N, --blocks N, --seconds N")),
        }
    }
    Ok(asked)
}

impl Stage<'_> {
    fn block(&self, number: usize) -> Result<Block, String> {
        let (pass, fill) = (self.list("c=0", number)?, self.list("c=1", number)?);
        self.settle()?;
        let mut block = Block { fio: self.fio()?, ..Block::default() };
        let (larder, address) = self.serve(false)?;
        self.settle()?;
        let all = self.asked.mib.to_string();
        let begun = Stopwatch::start();
        self.bench(address, &["-n", &all, "-c", BODY_CONNECTIONS, "--urls"], Some(&pass))?;
        block.pass = self.asked.mib as f64 / begun.seconds();
        block.pass_cpu = larder.cpu_ms()?[1] / self.asked.mib as f64;
        drop(larder);
        let (larder, address) = self.serve(true)?;
        self.settle()?;
        let begun = Stopwatch::start();
        self.bench(address, &["-n", &all, "-c", BODY_CONNECTIONS, "--urls"], Some(&fill))?;
        while self.metric("larder_disk_queued_bytes")? > 0.0 {
            thread::sleep(LOOK_EVERY);
        }
        // As fio does it: what was written counts when it would survive a loss of power.
        run(Command::new("sync").arg("--data").arg(self.folder.join("store")))?;
        block.fill = self.asked.mib as f64 / begun.seconds();
        block.fill_cpu = larder.cpu_ms()?.map(|ms| ms / self.asked.mib as f64);
        block.stored_share = self.metric("larder_disk_objects")? / self.asked.mib as f64;
        drop(larder);
        let rate = (block.fill.min(block.pass) / 3.0).max(1.0) as u64;
        let (_larder, address) = self.serve(true)?;
        self.settle()?;
        self.bench(address, &["-n", "100"], None)?;
        block.at_rest = self.hits(address)?;
        block.passing = self.hits_beside(address, &pass, rate)?;
        block.filling = self.hits_beside(address, &fill, rate)?;
        Ok(block)
    }

    /// Bodies of 1 MiB under URLs of their own: what comes is one body under many names, so that the origin costs little.
    fn list(&self, word: &str, block: usize) -> Result<PathBuf, String> {
        let path = self.folder.join(format!("urls-{word}"));
        let line = |number: u64| format!("/f{MIB}.html?{word}&n={block}.{number}\n");
        fs::write(&path, (0..self.asked.mib).map(line).collect::<String>()).map_err(|error| error.to_string())?;
        Ok(path)
    }

    /// What was written before, and the room of what was removed, are no part of what is measured next.
    fn settle(&self) -> Result<(), String> {
        run(Command::new("sync").arg("--file-system").arg(&self.folder)).map(drop)
    }

    fn fio(&self) -> Result<f64, String> {
        let file = self.folder.join("fio.data");
        let mut fio = Command::new("fio");
        fio.args(["--name=fill", "--rw=write", "--bs=1M", "--ioengine=psync", "--end_fsync=1", "--output-format=json"]);
        fio.arg(format!("--size={}M", self.asked.mib)).arg(format!("--filename={}", file.display()));
        let said = run(&mut fio).map_err(|why| format!("{why} (fio is not among what ./setup installs)"))?;
        let _ = fs::remove_file(file);
        let report: Value = serde_json::from_str(&said).map_err(|error| format!("fio: {error}"))?;
        let bytes = report["jobs"][0]["write"]["bw_bytes"].as_f64().ok_or("fio says no bandwidth")?;
        Ok(bytes / MIB as f64)
    }

    fn serve(&self, with_disk: bool) -> Result<(Running, SocketAddr), String> {
        for name in ["store", "a.sock", "up"] {
            let _ = fs::remove_file(self.folder.join(name));
        }
        let mut larder = Command::new(&self.larder);
        larder.current_dir(&self.folder).args([
            "serve",
            "--no-supervisor",
            "--workers",
            "1",
            "--listen",
            "127.0.0.1:0",
            "--memory",
            "256MiB",
        ]);
        larder.args(["--admin", "unix:a.sock", "--ports-file", "up", "--origin", &format!("http://{}", self.origin)]);
        if with_disk {
            larder.args(["--disk", &format!("store:{}MiB", self.asked.mib * DISK_ROUNDS + 64)]);
        }
        let larder = spawn(&mut larder)?;
        Ok((larder, address_in(&self.folder.join("up"))?))
    }

    fn bench(&self, address: SocketAddr, options: &[&str], urls: Option<&Path>) -> Result<Value, String> {
        let mut bench = self.bench_command(address, options, urls);
        let report: Value =
            serde_json::from_str(&run(&mut bench)?).map_err(|error| format!("larder bench: {error}"))?;
        match report["failed"].as_u64() {
            Some(0) => Ok(report),
            failed => Err(format!("{failed:?} answers were not right")),
        }
    }

    fn bench_command(&self, address: SocketAddr, options: &[&str], urls: Option<&Path>) -> Command {
        let mut bench = Command::new(&self.larder);
        bench.args(["bench", "--json", "--plain", "--check", "length", "--threads", "1"]).args(options).args(urls);
        bench.arg(format!("http://{address}{PAGE}"));
        bench
    }

    fn hits(&self, address: SocketAddr) -> Result<[f64; 3], String> {
        let seconds = self.asked.seconds.to_string();
        let asked = ["-c", HIT_CONNECTIONS, "--rate", HITS_PER_SECOND, "-t", &seconds];
        let latency = &self.bench(address, &asked, None)?["latency_micros"]["from_send"];
        let number = |name: &str| latency[name].as_f64().ok_or(format!("larder bench says no {name}"));
        Ok([number("mean")?, number("p50")?, number("p90")?])
    }

    /// While so many bodies a second are fetched.
    fn hits_beside(&self, address: SocketAddr, urls: &Path, rate: u64) -> Result<[f64; 3], String> {
        let (rate, seconds) = (rate.to_string(), (self.asked.seconds + 2).to_string());
        let options = ["-c", BODY_CONNECTIONS, "--rate", &rate, "-t", &seconds, "--urls"];
        let _bodies = spawn(&mut self.bench_command(address, &options, Some(urls)))?;
        thread::sleep(Duration::from_secs(1));
        self.hits(address)
    }

    fn metric(&self, name: &str) -> Result<f64, String> {
        let text = ask_admin(&self.folder.join("a.sock"), "/metrics").map_err(|error| error.to_string())?;
        let line = text.lines().find(|line| line.starts_with(name)).ok_or(format!("there is no {name}"))?;
        line.rsplit(' ').next().and_then(|value| value.parse().ok()).ok_or(format!("{line} has no number"))
    }
}

fn spawn(command: &mut Command) -> Result<Running, String> {
    let name = command.get_program().display().to_string();
    let spawned = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    spawned.map(Running).map_err(|error| format!("{name}: {error}"))
}

fn run(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().display().to_string();
    let output = command.output().map_err(|error| format!("{name}: {error}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(format!("{name} failed: {}", String::from_utf8_lossy(&output.stderr))),
    }
}

/// Of a program that has just been started.
fn address_in(ports: &Path) -> Result<SocketAddr, String> {
    let begun = Stopwatch::start();
    while begun.seconds() < PATIENCE_SECONDS {
        let text = fs::read_to_string(ports).unwrap_or_default();
        let address = text.lines().find_map(|line| line.split_whitespace().last()?.parse().ok());
        if let Some(address) = address.filter(|_| text.ends_with('\n')) {
            return Ok(address);
        }
        thread::sleep(LOOK_EVERY);
    }
    Err(format!("{} names no address", ports.display()))
}

fn three(latencies: [f64; 3]) -> String {
    latencies.map(|micros| format!("{micros:.0}")).join(" ")
}

/// The median, the least and the greatest.
fn spread(mut values: Vec<f64>) -> String {
    values.sort_by(f64::total_cmp);
    match values.as_slice() {
        [] => "none".to_owned(),
        all => format!("{:.2} [{:.2}, {:.2}]", all[all.len() / 2], all[0], all[all.len() - 1]),
    }
}
