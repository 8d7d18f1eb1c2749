//! From what was typed to a dry run that can be asked: the program and those of its labels are read and loaded, backends
//! made sick, and what the cache holds is brought there by asking.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use proxy::dry_runner::{DryRunOutcome, DryRunner, DryRunnerStart, MockedAnswer, Scene};
use proxy::policy_columns::Kept;
use proxy::settings::ListenerSettings;

use crate::config::nearest;
use crate::limits::DRY_RUN_MEMORY_BYTES;
use crate::plan::Plan;
use crate::quantities::parse_duration;
use crate::varnish_parameters;
use crate::vcl_command::dry_run_heads::Asked;
use crate::vcl_loading::{self, Beside};
use crate::vcl_world::Machine;

/// Who asks, unless somebody else is said to: an address for examples (RFC 5737).
pub const CLIENT_DEFAULT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));

/// What every dry run of one program is made of.
#[derive(Clone, Debug, Default)]
pub struct Company {
    pub vcl: PathBuf,
    pub vcl_path: Vec<PathBuf>,
    pub labels: Vec<(String, PathBuf)>,
    /// By Varnish's names.
    pub parameters: Vec<(String, String)>,
    /// Backends that are so when the request comes, not before.
    pub sick: Vec<String>,
}

/// What is in the cache when the request comes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Cached {
    #[default]
    Miss,
    /// What the same request, asked a moment before, left there.
    Hit,
    /// The same, when its ttl is over and its grace is not.
    Stale,
    /// The same, asked so long ago.
    Ago(Duration),
}

impl Cached {
    pub fn parse(text: &str) -> Result<Cached, String> {
        match text {
            "miss" => Ok(Cached::Miss),
            "hit" => Ok(Cached::Hit),
            "stale" => Ok(Cached::Stale),
            time => match parse_duration(time) {
                Ok(time) => Ok(Cached::Ago(time)),
                Err(_) => Err(format!("`{time}` is none of miss, hit, stale and a time such as 90s")),
            },
        }
    }
}

impl Company {
    /// A place with nothing in its store. The error is for people, and ends with a line's end.
    pub fn runner(&self) -> Result<DryRunner, String> {
        let in_file = |why: String| format!("{}: error: {why}\n", self.vcl.display());
        let mut plan = Plan::default();
        for (name, value) in &self.parameters {
            varnish_parameters::set(&mut plan, name, value).map_err(in_file)?;
        }
        plan.settings.memory_bytes_max = DRY_RUN_MEMORY_BYTES;
        plan.settings.listeners = Vec::<ListenerSettings>::new();
        let colour = std::io::IsTerminal::is_terminal(&std::io::stderr());
        let load = |name: &str, path: &Path| vcl_loading::from_file(name, path, Beside::alone(&self.vcl_path), colour);
        let program = load("dry-run", &self.vcl)?.program;
        let labels =
            self.labels.iter().map(|(label, path)| Ok((label.clone(), load(&format!("of-{label}"), path)?.program)));
        let labels = labels.collect::<Result<Vec<_>, String>>()?;
        for label in &program.program.labels {
            if !labels.iter().any(|(known, _)| known == label) {
                let what = format!(
                    "it hands requests to vcl({label}): say which file that is (--label {label}=FILE, or `labels` in a file of tests)"
                );
                return Err(in_file(what));
            }
        }
        let start = DryRunnerStart { settings: plan.settings, machine: Arc::new(Machine::default()), program, labels };
        let runner = DryRunner::start(start).map_err(|why| in_file(why.to_string()))?;
        let loaded = runner.loaded();
        let names: Vec<&str> = loaded.backends().iter().map(|backend| backend.name.as_str()).collect();
        if let Some(name) = self.sick.iter().find(|name| !names.contains(&name.as_str())) {
            return Err(in_file(format!("there is no backend `{name}` to be sick{}", meant(name, &names))));
        }
        Ok(runner)
    }
}

/// `: did you mean …`, or what there is.
pub fn meant(word: &str, known: &[&str]) -> String {
    match nearest(word, known.iter().copied()) {
        Some(near) => format!(": did you mean `{near}`?"),
        None if known.is_empty() => String::new(),
        None => format!(": there is {}", known.join(", ")),
    }
}

/// A request with all that it meets.
pub fn scene(asked: &Asked, client: IpAddr, answers: &[MockedAnswer]) -> Scene {
    Scene { client, request: asked.bytes(), answers: answers.to_vec() }
}

/// The request, in a store that holds what it is to hold. Behind it stands a note where that could not be brought about.
pub fn play(
    runner: &mut DryRunner,
    scene: &Scene,
    cached: Cached,
    sick: &[String],
) -> Result<(DryRunOutcome, Option<String>), String> {
    let note = if cached == Cached::Miss { None } else { warm(runner, scene, cached)? };
    for name in sick {
        runner.set_health(name, false);
    }
    Ok((runner.ask(scene)?, note))
}

/// Brings into the store what the same request leaves there. Says so where that is not what was wished for.
fn warm(runner: &mut DryRunner, scene: &Scene, cached: Cached) -> Result<Option<String>, String> {
    let before = runner.ask(scene)?;
    let life = before.settled.last().map(|settled| &settled.life);
    let note = match life {
        Some(life) if life.kept == Kept::Stored => None,
        Some(life) => Some(format!("the same request asked before left {} in the cache", life.kept.token())),
        None => Some("the same request asked before fetched nothing that could be in the cache".to_owned()),
    };
    match (cached, life) {
        (Cached::Ago(time), _) => runner.advance(time.as_millis() as u64),
        (Cached::Stale, Some(life)) => {
            // Into the middle of a short grace, a second into a long one.
            runner.advance(life.ttl_ms.max(0) as u64 + (life.grace_ms / 2).min(1_000));
        }
        _ => {}
    }
    Ok(note)
}
