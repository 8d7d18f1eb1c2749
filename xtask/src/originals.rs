//! Other people's VCL files at work: each scenario of xtask/originals/ takes one public file, unmodified but for what its
//! maker's installer fills in, puts it to larder and to Varnish, each before a recording origin of its own, and walks both
//! through the same steps. What a scenario expects must hold for both, and both must have answered alike and asked their
//! origins alike, in what no scenario thought of as well.
//!
//! Only the scenarios are ours; the files lie in the folder that the task is given.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::judged_cache::{Judged, JudgedCache};
use crate::original_scenario::Scenario;
use crate::original_walk::{Seen, differences, walk};
use crate::project::Project;
use crate::scenario_origin::RecordingOrigin;
use crate::vcl_corpus::{ancestors, copy_tree, vcl_files};

const FOLDER: &str = "xtask/originals";

/// Most of the time they wait: for probes, and for what is stored to grow old.
const AT_A_TIME: usize = 6;

/// What came of a scenario.
enum Outcome {
    /// The folder does not have its file, which is published there.
    Absent(String),
    /// How many steps, and whether Varnish walked them too.
    Held(usize, bool),
    Failed(Vec<String>),
}

/// All scenarios, or those named.
pub fn task(project: &Project, folder: &str, named: &[&str]) -> Result<(), String> {
    project.build_larder()?;
    run(project, Path::new(folder), named)
}

/// The scenarios whose file is in the folder; the error counts those that failed.
pub fn run(project: &Project, folder: &Path, named: &[&str]) -> Result<(), String> {
    let folder = &folder.canonicalize().map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut files: Vec<PathBuf> = project.files()?;
    files.retain(|path| path.starts_with(FOLDER) && path.extension().is_some_and(|e| e == "toml"));
    files
        .retain(|path| named.is_empty() || path.file_stem().is_some_and(|stem| named.iter().any(|name| stem == *name)));
    let mut jobs = Vec::new();
    for path in &files {
        let scenario = Scenario::read(&project.read(path)?).map_err(|why| format!("{}: {why}", path.display()))?;
        let scenario = Arc::new(scenario);
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        jobs.extend((0..scenario.originals.len()).map(|which| Job {
            stem: stem.clone(),
            scenario: scenario.clone(),
            which,
        }));
    }
    let next = AtomicUsize::new(0);
    let outcomes = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let outcome = job.run(project, folder).unwrap_or_else(|why| Outcome::Failed(vec![why]));
                    outcomes.lock().expect("no thread panics with the lock").push((job.name(), outcome));
                }
            });
        }
    });
    let mut outcomes = outcomes.into_inner().expect("no thread panics with the lock");
    outcomes.sort_by(|one, other| one.0.cmp(&other.0));
    print(&outcomes)
}

fn print(outcomes: &[(String, Outcome)]) -> Result<(), String> {
    let (mut held, mut steps_count, mut failed) = (0, 0, 0);
    println!("\nwhole files at work, by the scenarios of {FOLDER}");
    for (name, outcome) in outcomes {
        match outcome {
            Outcome::Absent(from) => println!("  {name:<48} its file, of {from}, is not in the folder"),
            Outcome::Held(steps, both) => {
                let who = if *both { "by larder and Varnish, alike" } else { "by larder alone" };
                println!("  {name:<48} {steps:>3} steps as expected {who}");
                held += 1;
                steps_count += steps;
            }
            Outcome::Failed(complaints) => {
                println!("  {name:<48} FAILED");
                complaints.iter().for_each(|line| println!("      {line}"));
                failed += 1;
            }
        }
    }
    println!("{held} scenarios of {} held, {steps_count} steps", outcomes.len());
    if failed == 0 { Ok(()) } else { Err(format!("{failed} scenarios failed")) }
}

/// One scenario with one of its files.
struct Job {
    stem: String,
    scenario: Arc<Scenario>,
    which: usize,
}

impl Job {
    /// The scenario's, and the file's where there are several.
    fn name(&self) -> String {
        match self.scenario.originals.len() {
            1 => self.stem.clone(),
            _ => {
                format!("{}: {}", self.stem, self.scenario.originals[self.which].rsplit('/').next().unwrap_or_default())
            }
        }
    }

    fn run(&self, project: &Project, folder: &Path) -> Result<Outcome, String> {
        let scenario = &self.scenario;
        let Some(original) = find(folder, &scenario.originals[self.which])? else {
            return Ok(Outcome::Absent(scenario.from.clone()));
        };
        let scratch = project.scratch("originals")?.join(format!("{}-{}", self.stem, self.which));
        let one = |which| walk_one(project, scenario, &original, &scratch.join(Judged::name(which)), which);
        let both = scenario.without_varnish.is_none();
        let (of_larder, of_varnish) = std::thread::scope(|scope| {
            let varnish = both.then(|| scope.spawn(|| one(Judged::Varnish)));
            let larder = one(Judged::Larder);
            (larder, varnish.map(|thread| thread.join().map_err(|_| "the walk panicked".to_string()).flatten()))
        });
        let mut complaints = Vec::new();
        let mut take = |which: Judged, walked: Result<Walked, String>| {
            let (seen, wrong) = walked.unwrap_or_else(|why| (Vec::new(), vec![why]));
            complaints.extend(wrong.into_iter().map(|line| format!("{}: {line}", which.name())));
            seen
        };
        let of_larder = take(Judged::Larder, of_larder);
        if let Some(of_varnish) = of_varnish {
            let of_varnish = take(Judged::Varnish, of_varnish);
            complaints.extend(differences(scenario, &of_larder, &of_varnish));
        }
        Ok(if complaints.is_empty() { Outcome::Held(scenario.step.len(), both) } else { Outcome::Failed(complaints) })
    }
}

/// What was seen, and what was wrong with it.
type Walked = (Vec<Seen>, Vec<String>);

/// The file as it lies in the folder, and the folder of its repository.
struct Original {
    file: PathBuf,
    repository: PathBuf,
}

/// The one file whose path ends like that, from the beginning of a name on; a repository's name may stand behind its
/// owner's and a plus. Copies with the same text are one.
fn find(folder: &Path, ending: &str) -> Result<Option<Original>, String> {
    let mut files = Vec::new();
    vcl_files(folder, &mut files)?;
    let fits = |path: &PathBuf| {
        let path = path.to_string_lossy();
        path.strip_suffix(ending).is_some_and(|before| before.ends_with(['/', '+']))
    };
    files.retain(fits);
    files.sort();
    let Some(file) = files.first() else { return Ok(None) };
    let read = |path: &PathBuf| std::fs::read(path).map_err(|e| format!("{}: {e}", path.display()));
    let text = read(file)?;
    for other in &files[1..] {
        if read(other)? != text {
            return Err(format!("{} and {} are not the same", file.display(), other.display()));
        }
    }
    let depth = Path::new(ending).components().count();
    let repository = file.ancestors().nth(depth - 1).unwrap_or(folder).to_path_buf();
    Ok(Some(Original { file: file.clone(), repository }))
}

/// One of the programs with one scenario, before an origin of its own.
fn walk_one(
    project: &Project,
    scenario: &Scenario,
    original: &Original,
    scratch: &Path,
    which: Judged,
) -> Result<Walked, String> {
    if scratch.exists() {
        std::fs::remove_dir_all(scratch).map_err(|e| format!("{}: {e}", scratch.display()))?;
    }
    let copy = scratch.join("original");
    copy_tree(&original.repository, &copy)?;
    let vcl = copy.join(original.file.strip_prefix(&original.repository).map_err(|e| e.to_string())?);
    let beside = vcl.parent().unwrap_or(&copy).to_path_buf();
    let origin = RecordingOrigin::start(scenario.answer.clone())?;
    let fill = |text: &str| text.replace("{host}", "127.0.0.1").replace("{port}", &origin.port.to_string());
    for (name, text) in &scenario.beside {
        let path = beside.join(name);
        std::fs::write(&path, fill(text)).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    for put in scenario.put.iter().filter(|put| which == Judged::Varnish || !put.only_varnish) {
        let file = match &put.file {
            None => vcl.clone(),
            Some(ending) => find(&copy, ending)?.ok_or(format!("no file ends with {ending}"))?.file,
        };
        let text = std::fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
        if !text.contains(&put.this) {
            return Err(format!("'{}' is not in {}: is it another version of the file?", put.this, file.display()));
        }
        let text = text.replace(&put.this, &fill(&put.with));
        std::fs::write(&file, text).map_err(|e| format!("{}: {e}", file.display()))?;
    }
    let cache = JudgedCache::start(project, which, &vcl, &ancestors(&vcl, &copy), scratch)?;
    walk(scenario, &cache, &origin)
}
