//! What a run of load shows: a screen, or our own lines, and our report; or the form of a tool that people know.
//!
//! `bench` calls it when the run begins, after each second, and when it is over. It knows what is printed where, and
//! nothing of how load is made.

use std::io::Write;
use std::time::Duration;

use lab::{LabUrl, Outcome, Printed, Progress, Second, Tool, ToolRun, Workload, times_of_this_process, use_of_tree};

use crate::load_tool::bench_flags::BenchFlags;
use crate::load_tool::bench_job::Job;
use crate::load_tool::bench_screen::{RunNumbers, Screen, ServerUse};
use crate::say::say;

pub struct Show {
    url: LabUrl,
    workload: Workload,
    how: How,
}

enum How {
    /// A line each second or a screen, a report at the end.
    Own {
        json: bool,
        watch: Box<Watch>,
    },
    Form(Form),
}

/// Our own view of a run while it lasts.
struct Watch {
    /// Nothing: a line each second.
    screen: Option<Screen>,
    numbers: RunNumbers,
    server_pid: Option<u32>,
    client_before: Duration,
    server_before: Duration,
}

struct Form {
    tool: Tool,
    progress: Progress,
    finished: u64,
    request_bytes_mean: f64,
    distribution: bool,
    cpu_before: (Duration, Duration),
}

impl Show {
    /// Or why it cannot be shown.
    pub fn begin(flags: &BenchFlags, job: &Job) -> Result<Show, String> {
        let how = match flags.tool {
            None => How::Own { json: flags.json, watch: Box::new(Watch::begin(flags, job)?) },
            Some(tool) => {
                print(&tool.opening(&job.url, &job.workload));
                How::Form(Form {
                    tool,
                    progress: Progress::new(tool, &job.workload),
                    finished: 0,
                    request_bytes_mean: job.catalogue.request_bytes_mean(),
                    distribution: flags.latency,
                    cpu_before: times_of_this_process(),
                })
            }
        };
        Ok(Show { url: job.url.clone(), workload: job.workload.clone(), how })
    }

    pub fn second(&mut self, index: usize, second: &Second) {
        match &mut self.how {
            How::Own { watch, .. } => watch.second(index, second),
            How::Form(form) => form.progress_to(form.finished + second.good + second.failed),
        }
    }

    pub fn end(&mut self, outcome: &Outcome) {
        let name = self.url.to_string();
        let out = match &mut self.how {
            How::Own { json: true, .. } => format!("{:#}\n", lab::json(&name, &self.workload, outcome)),
            How::Own { json: false, watch } => {
                // The terminal as it was, before the report is written on it.
                watch.screen = None;
                lab::text(&name, &self.workload, outcome)
            }
            How::Form(form) => {
                form.end(&self.url, &self.workload, outcome);
                return;
            }
        };
        print(&Printed { out, err: String::new() });
    }
}

impl Watch {
    fn begin(flags: &BenchFlags, job: &Job) -> Result<Watch, String> {
        let server = flags
            .server_pid
            .map(|pid| use_of_tree(pid).ok_or_else(|| format!("--server-pid {pid}: there is no such process")));
        let server = server.transpose()?;
        let numbers = RunNumbers::of_nothing_yet(job.url.to_string(), job.workload.threads);
        let mut watch = Watch {
            screen: if flags.json || flags.plain { None } else { Screen::open() },
            numbers,
            server_pid: flags.server_pid,
            client_before: own_cpu(),
            server_before: server.map_or(Duration::ZERO, |tree| tree.cpu),
        };
        watch.draw();
        Ok(watch)
    }

    fn second(&mut self, index: usize, second: &Second) {
        let client = own_cpu();
        self.numbers.client_busy_percent = client.saturating_sub(self.client_before).as_secs_f64() * 100.0;
        self.client_before = client;
        if let Some(pid) = self.server_pid {
            let tree = use_of_tree(pid).unwrap_or_default();
            let cpu_percent = tree.cpu.saturating_sub(self.server_before).as_secs_f64() * 100.0;
            self.server_before = tree.cpu;
            self.numbers.server = Some(ServerUse { cpu_percent, tree });
        }
        self.numbers.add(second);
        if self.screen.is_some() {
            self.draw();
            return;
        }
        let server = self.numbers.server.map_or_else(String::new, |server| {
            let memory = server.tree.resident_bytes as f64 / 1_048_576.0;
            format!("  server {:.0} % {memory:.1} MiB", server.cpu_percent)
        });
        let _ = writeln!(std::io::stderr(), "{}{server}", lab::second_line(index, second));
    }

    fn draw(&mut self) {
        if let Some(screen) = &mut self.screen {
            screen.draw(&self.numbers);
        }
    }
}

fn own_cpu() -> Duration {
    let (user, system) = times_of_this_process();
    user + system
}

impl Form {
    fn progress_to(&mut self, finished: u64) {
        print(&self.progress.add(finished.saturating_sub(self.finished)));
        self.finished = finished;
    }

    fn end(&mut self, url: &LabUrl, workload: &Workload, outcome: &Outcome) {
        self.progress_to(outcome.tally.finished);
        let (user, system) = times_of_this_process();
        let cpu = (user.saturating_sub(self.cpu_before.0), system.saturating_sub(self.cpu_before.1));
        let run = ToolRun {
            url,
            workload,
            outcome,
            request_bytes_mean: self.request_bytes_mean,
            cpu,
            distribution: self.distribution,
        };
        print(&self.tool.closing(&run));
        for sentence in lab::unsaid(self.tool, &run) {
            say!("note: {sentence}");
        }
    }
}

/// A reader that has gone away ends nothing.
fn print(printed: &Printed) {
    let _ = std::io::stderr().write_all(printed.err.as_bytes());
    let mut out = std::io::stdout();
    let _ = out.write_all(printed.out.as_bytes()).and_then(|()| out.flush());
}
