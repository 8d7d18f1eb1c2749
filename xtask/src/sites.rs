//! `cargo xtask sites`: larder in front of sites that people run. By command, and not part of the tests: what it needs is large.
//!
//! They are about what is private, and about what a preset promises: an application is set up in `php_site.rs`, larder is started in
//! front of it, and `private_judge.rs` plays two users and a stranger. Paths of published files are `import_corpus.rs`'s.

use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::project::Project;
use crate::seeded_run;
use crate::sites::php_site::PhpSite;
use crate::sites::private_judge::Site;
use crate::sites::site_play::{Application, Play};
use crate::sites::site_policy::Policy;
use crate::sites::site_report::Report;
use crate::started_larder;
use crate::step_tally::Tally;

mod mediawiki;
mod nginx_program;
mod php_site;
mod private_judge;
mod site_play;
mod site_policy;
pub mod site_processes;
mod site_promise;
mod site_report;
mod visitor;
mod wordpress;

const HELP: &str = "sites wordpress|mediawiki [--steps N] [--seed S] [--vcl | --preset] [--expect-leaks]";
const STEPS: u64 = 500;
/// Options that say who decides.
const POLICIES: [&str; 3] = ["--vcl", "--preset", "--expect-leaks"];

const APPLICATIONS: [&Application; 2] = [&wordpress::APPLICATION, &mediawiki::APPLICATION];

pub fn task(project: &Project, options: &[&str]) -> Result<(), String> {
    match options {
        [name, options @ ..] => {
            let application = APPLICATIONS.into_iter().find(|application| application.name == *name);
            judge(project, application.ok_or(HELP)?, options)
        }
        [] => Err(HELP.to_string()),
    }
}

struct Run<'a> {
    project: &'a Project,
    application: &'a Application,
    policy: Policy,
    steps: u64,
    seed: u64,
}

/// Reads the options of one of the applications, and has it judged.
fn judge(project: &Project, application: &Application, options: &[&str]) -> Result<(), String> {
    let (said, others): (Vec<&str>, Vec<&str>) = options.iter().partition(|option| POLICIES.contains(*option));
    let has = |option| said.contains(&option);
    let policy = match (has("--vcl"), has("--preset"), has("--expect-leaks")) {
        (false, false, false) => Policy::Builtin,
        (true, false, false) => Policy::Usual,
        (false, false, true) => Policy::Everything,
        (false, true, false) => Policy::Preset,
        (false, true, true) => Policy::CutPreset,
        (true, _, _) => return Err(HELP.to_string()),
    };
    seeded_run::task(&format!("sites {}", application.name), ("--steps", STEPS), &others, |steps, seed| {
        let run = Run { project, application, policy, steps, seed };
        run.verdict(&run.plays()?)
    })
}

impl Run<'_> {
    /// Plays all that belongs to the policy.
    fn plays(&self) -> Result<Vec<Report>, String> {
        let (mut php, mut site) = (self.application.set_up)()?;
        let plays = match self.policy {
            Policy::Preset => self.application.preset_plays,
            Policy::CutPreset => &self.application.preset_plays[..1],
            _ => self.application.plays,
        };
        plays.iter().map(|play| self.play(&mut php, &mut *site, play)).collect()
    }

    /// Puts larder in front of a site and has it judged. Prints what came of it.
    fn play(&self, php: &mut PhpSite, site: &mut dyn Site, play: &Play) -> Result<Report, String> {
        (play.prepare)(php)?;
        let folder = php.processes.folder.clone();
        let words = (play.reached, play.on_top);
        self.policy.write(&self.project.larder(), php, &self.application.words, words)?;
        let mut program = Command::new(self.project.larder());
        program.process_group(0);
        let purged_at = format!("127.0.0.1:{}", php.purge_port);
        let wanted = ["--workers", "2", "--listen", &purged_at, "--config", "larder.toml"];
        let larder = started_larder::start_program(program, &folder, &wanted)?;
        let id = larder.id();
        php.processes.keep(larder)?;
        let before = php.requests_count();
        let mut report = private_judge::run(site, &folder, play.promise, (self.steps, self.seed));
        report.php_requests = php.requests_count() - before;
        println!("{}, seed {}: {}", play.what, self.seed, report.lines().join("\n"));
        if !php.processes.is_up() {
            return Err(format!("a program ended on its way: {}", php.processes.last_words("larder")));
        }
        php.processes.end(id);
        Ok(report)
    }

    /// What the reports say has been printed; here is whether they may say it.
    fn verdict(&self, reports: &[Report]) -> Result<Tally, String> {
        let failed: usize = reports.iter().map(|report| report.violations.len()).sum();
        let passed = reports.iter().map(|report| report.answers).sum::<usize>() - failed;
        if !reports.iter().all(Report::is_worth_something) {
            return Err(
                "too many requests had no answer, or no user a page of their own: nothing was tested".to_string()
            );
        }
        match (self.policy.leaks(), failed) {
            (true, 0) => return Err("everybody gets what is stored, and nobody noticed".to_string()),
            (true, _) => return Ok(Tally { passed, ..Tally::default() }),
            (false, _) => {}
        }
        let shortfalls: Vec<String> = match self.policy {
            Policy::Preset => Report::shortfalls_of(reports),
            _ => Vec::new(),
        };
        match shortfalls.is_empty() {
            true => Ok(Tally { passed, failed, ..Tally::default() }),
            false => Err(format!("{failed} answers should not have been given; {}", shortfalls.join("; "))),
        }
    }
}
