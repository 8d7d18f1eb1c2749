//! What a run of load shows: our own lines and report, or the form of a tool that people know.
//!
//! `bench` calls it when the run begins, after each second, and when it is over. It knows what is printed where, and
//! nothing of how load is made.

use std::io::Write;
use std::time::Duration;

use lab::{LabUrl, Outcome, Printed, Progress, Second, Tool, ToolRun, Workload};

use crate::bench_flags::BenchFlags;
use crate::bench_job::Job;
use crate::process_times;
use crate::say::say;

pub struct Show {
    url: LabUrl,
    workload: Workload,
    how: How,
}

enum How {
    /// A line each second, a report at the end.
    Lines {
        json: bool,
    },
    Form(Form),
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
    pub fn begin(flags: &BenchFlags, job: &Job) -> Show {
        let how = match flags.tool {
            None => How::Lines { json: flags.json },
            Some(tool) => {
                print(&tool.opening(&job.url, &job.workload));
                How::Form(Form {
                    tool,
                    progress: Progress::new(tool, &job.workload),
                    finished: 0,
                    request_bytes_mean: job.catalogue.request_bytes_mean(),
                    distribution: flags.latency,
                    cpu_before: process_times::of_this_process(),
                })
            }
        };
        Show { url: job.url.clone(), workload: job.workload.clone(), how }
    }

    pub fn second(&mut self, index: usize, second: &Second) {
        match &mut self.how {
            How::Lines { .. } => {
                let _ = writeln!(std::io::stderr(), "{}", lab::second_line(index, second));
            }
            How::Form(form) => form.progress_to(form.finished + second.good + second.failed),
        }
    }

    pub fn end(&mut self, outcome: &Outcome) {
        let name = format!("http://{}{}", self.url.authority, self.url.path);
        let out = match &mut self.how {
            How::Lines { json: true } => format!("{:#}\n", lab::json(&name, &self.workload, outcome)),
            How::Lines { json: false } => lab::text(&name, &self.workload, outcome),
            How::Form(form) => {
                form.end(&self.url, &self.workload, outcome);
                return;
            }
        };
        print(&Printed { out, err: String::new() });
    }
}

impl Form {
    fn progress_to(&mut self, finished: u64) {
        print(&self.progress.add(finished.saturating_sub(self.finished)));
        self.finished = finished;
    }

    fn end(&mut self, url: &LabUrl, workload: &Workload, outcome: &Outcome) {
        self.progress_to(outcome.tally.finished);
        let (user, system) = process_times::of_this_process();
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
