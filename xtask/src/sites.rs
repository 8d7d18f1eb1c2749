//! `cargo xtask sites`: larder in front of sites that people run. By command, and not part of the tests: what it needs is large.
//!
//! `nginx` is about paths, in `nginx_configs.rs`. The others are about what is private: an application is set up in
//! `php_site.rs`, larder is started in front of it, and `private_judge.rs` plays two users and a stranger.

use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use crate::project::Project;
use crate::seeded_run;
use crate::sites::php_site::PhpSite;
use crate::sites::private_judge::{Report, Site};
use crate::started_larder;
use crate::step_tally::Tally;

mod mediawiki;
mod nginx_configs;
mod php_site;
mod private_judge;
mod published_conf;
pub mod site_processes;
mod spelled_paths;
mod visitor;
mod wordpress;

const HELP: &str = "sites nginx FOLDER, or sites wordpress|mediawiki [--steps N] [--seed S] [--vcl | --expect-leaks]";
const STEPS: u64 = 500;
const POLICIES: [&str; 2] = ["--vcl", "--expect-leaks"];
/// Caches everything for everybody.
const EVERYTHING: &str = include_str!("../sites/everything.vcl");

/// Who decides what is cached.
#[derive(Clone, Copy)]
enum Policy {
    /// larder without a VCL.
    Builtin,
    /// A VCL as such sites have it.
    Usual(&'static str),
    /// One that gives everything to everybody: the judge must notice.
    Everything,
}

struct Run {
    steps: u64,
    seed: u64,
    policy: Policy,
}

/// Reads the options of one of the applications, and has it judged.
fn judge(
    name: &str,
    usual: &'static str,
    options: &[&str],
    play: impl FnOnce(&Run) -> Result<[Report; 2], String>,
) -> Result<(), String> {
    let (policies, others): (Vec<&str>, Vec<&str>) = options.iter().partition(|option| POLICIES.contains(*option));
    let policy = match policies[..] {
        [] => Policy::Builtin,
        ["--vcl"] => Policy::Usual(usual),
        ["--expect-leaks"] => Policy::Everything,
        _ => return Err(HELP.to_string()),
    };
    seeded_run::task(name, ("--steps", STEPS), &others, |steps, seed| {
        let run = Run { steps, seed, policy };
        run.verdict(&play(&run)?)
    })
}

pub fn task(project: &Project, options: &[&str]) -> Result<(), String> {
    match options {
        ["nginx", folder] => nginx_configs::task(project, folder),
        ["wordpress", options @ ..] => of_wordpress(project, options),
        ["mediawiki", options @ ..] => of_mediawiki(project, options),
        _ => Err(HELP.to_string()),
    }
}

impl Run {
    /// Puts larder in front of a site and has it judged. Prints what came of it.
    fn play(&self, project: &Project, php: &mut PhpSite, site: &mut dyn Site, what: &str) -> Result<Report, String> {
        let folder = php.processes.folder.clone();
        let mut config = "[memory]\nsize = \"64MiB\"\n".to_owned();
        let vcl = match self.policy {
            Policy::Builtin => None,
            Policy::Usual(text) => Some(text),
            Policy::Everything => Some(EVERYTHING),
        };
        match vcl {
            Some(text) => {
                php.processes.write("site.vcl", &text.replace("PORT", &php.port.to_string()))?;
                config.push_str("[policy]\nvcl = \"site.vcl\"\n");
            }
            None => config.push_str(&format!("[origin.site]\nurls = [\"http://127.0.0.1:{}\"]\n", php.port)),
        }
        php.processes.write("larder.toml", &config)?;
        let mut program = Command::new(project.larder());
        program.process_group(0);
        let larder = started_larder::start_program(program, &folder, &["--workers", "2", "--config", "larder.toml"])?;
        let id = larder.id();
        php.processes.keep(larder)?;
        let report = private_judge::run(site, &folder, self.steps, self.seed);
        println!("{what}, seed {}: {}", self.seed, report.lines().join("\n"));
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
        match (self.policy, failed) {
            (Policy::Everything, 0) => Err("everything was cached for everybody, and nobody noticed".to_string()),
            (Policy::Everything, _) => Ok(Tally { passed, ..Tally::default() }),
            (_, failed) => Ok(Tally { passed, failed, ..Tally::default() }),
        }
    }
}

fn of_wordpress(project: &Project, options: &[&str]) -> Result<(), String> {
    judge("sites wordpress", include_str!("../sites/wordpress/site.vcl"), options, |run| {
        let (mut php, mut site) = wordpress::set_up()?;
        let as_installed = run.play(project, &mut php, &mut site, "WordPress as it is installed")?;
        wordpress::say_how_long(&php)?;
        let with_lives = run.play(project, &mut php, &mut site, "WordPress with lives for pages")?;
        Ok([as_installed, with_lives])
    })
}

fn of_mediawiki(project: &Project, options: &[&str]) -> Result<(), String> {
    judge("sites mediawiki", include_str!("../sites/mediawiki/site.vcl"), options, |run| {
        let (mut php, mut site) = mediawiki::set_up()?;
        let as_installed = run.play(project, &mut php, &mut site, "MediaWiki as it is installed")?;
        mediawiki::say_how_long(&php)?;
        let with_lives = run.play(project, &mut php, &mut site, "MediaWiki with lives for pages")?;
        Ok([as_installed, with_lives])
    })
}

/// A whole configuration of nginx that writes nowhere but into its own folder.
fn nginx_conf(inside: &str) -> String {
    let user = if is_root() { "user root;" } else { "" };
    format!(
        "daemon off; pid nginx.pid; error_log stderr; {user}\nevents {{}}\nhttp {{\n\
         access_log off; include mime.types; client_body_temp_path t1; proxy_temp_path t2; fastcgi_temp_path t3;\n\
         uwsgi_temp_path t4; scgi_temp_path t5;\n{inside}\n}}\n"
    )
}

fn nginx(folder: &Path) -> Command {
    let mut command = Command::new("nginx");
    command.arg("-p").arg(folder).arg("-c").arg(folder.join("nginx.conf"));
    command
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}
