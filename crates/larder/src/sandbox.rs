//! What a larder that serves gives up once its addresses are bound: all files that its plan does not need (landlock), all system calls that
//! serving does not (seccomp), and for good. Whoever got hold of the process has what is left, and no more.
//!
//! It is done once, by the only thread that there is: both hold for the calling thread and those that it starts. What the kernel lacks is
//! said, and larder serves without.

mod call_filters;
mod call_table;
#[cfg(test)]
mod escape_tests;
pub mod fence;
mod file_needs;
mod file_rules;
#[cfg(test)]
mod filter_tests;
mod link_walk;
mod system_files;

use std::os::unix::fs::FileTypeExt;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, LandlockStatus, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetStatus, Scope,
};

use parking_lot::Mutex;
use proxy::Moment;

use self::fence::Place;
use self::file_needs::FileNeed;
use self::file_rules::FileRule;
use crate::limits::FENCE_LOOK_EVERY;
use crate::plan::Plan;
use crate::process_memory;
use crate::process_user;
use crate::say::say;

/// What holds of this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SandboxState {
    /// The version of landlock's interface by which files are fenced in.
    pub files: Option<u8>,
    /// System calls are those of the table.
    pub calls: bool,
}

static STATE: OnceLock<SandboxState> = OnceLock::new();

/// What holds; nothing where no sandbox was entered.
pub fn state() -> SandboxState {
    STATE.get().copied().unwrap_or_default()
}

/// Places of /proc: an open descriptor keeps the kernel from making them anew under another number, which no rule would know.
static KEPT_OPEN: OnceLock<Vec<PathFd>> = OnceLock::new();

/// Gives up all that this plan does not need. It is the calling thread's business, and of no use once there are others.
pub fn enter(plan: &Plan) {
    if plan.sandbox.is_on {
        process_memory::without_allocators_threads(|| enter_with(&file_needs::of(plan)));
    }
}

fn enter_with(needs: &[FileNeed]) {
    let threads = std::fs::read_dir("/proc/self/task").map_or(1, Iterator::count);
    if threads > 1 {
        say!("warning: {} threads began before the sandbox, and are not in it ([process] sandbox)", threads - 1);
    }
    // The kernel wants it of who has no rights of root's, and it holds where the kernel has nothing else.
    if let Err(error) = rustix::thread::set_no_new_privs(true) {
        say!("warning: larder cannot give up new rights: {error} ([process] sandbox)");
    }
    let file_rules::FileRules { rules, told } = file_rules::of(needs, process_user::is_root());
    told.iter().for_each(|told| say!("warning: [process] sandbox: {told}"));
    let files = match fence_in(&rules) {
        Ok(version) => {
            fence::close(rules.iter().filter_map(|rule| Place::at(&rule.path, rule.reach)).collect());
            Some(version)
        }
        Err(why) => {
            say!("{why}: files are not fenced in ([process] sandbox)");
            None
        }
    };
    let calls = match filter_calls() {
        Ok(()) => true,
        Err(why) => {
            say!("{why}: system calls are not filtered ([process] sandbox)");
            false
        }
    };
    // Only the first sandbox of a process is told of.
    let _ = STATE.set(SandboxState { files, calls });
}

const NO_LANDLOCK: &str = "the kernel has no landlock, or none for larder";

/// Files. The version of the interface, or what this kernel lacks.
fn fence_in(rules: &[FileRule]) -> Result<u8, String> {
    const KNOWN: ABI = ABI::V6;
    let failed = |what: &str, error: &dyn std::fmt::Display| format!("landlock cannot be used ({what}: {error})");
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::BestEffort);
    let ruleset = ruleset.handle_access(AccessFs::from_all(KNOWN)).map_err(|error| failed("rights", &error))?;
    let ruleset = ruleset.scope(Scope::Signal).map_err(|error| failed("signals", &error))?;
    let mut created = ruleset.create().map_err(|error| failed("rules", &error))?;
    let mut kept_open = Vec::new();
    for rule in rules {
        let Ok(place) = PathFd::new(&rule.path) else { continue }; // it is gone since
        let added = (&mut created).add_rule(PathBeneath::new(&place, rule.rights)).map(drop);
        // A pipe without a name has no rule, and needs none.
        let is_pipe = || std::fs::metadata(&rule.path).is_ok_and(|found| found.file_type().is_fifo());
        if let Err(error) = added
            && !is_pipe()
        {
            say!("warning: [process] sandbox: {} stays closed: {error}", rule.path.display());
        }
        if rule.path.starts_with("/proc") {
            kept_open.push(place);
        }
    }
    let done = created.restrict_self().map_err(|error| failed("restricting", &error))?;
    // Only the first sandbox of a process needs them.
    let _ = KEPT_OPEN.set(kept_open);
    match (done.ruleset, done.landlock) {
        (RulesetStatus::NotEnforced, _) => Err(NO_LANDLOCK.to_owned()),
        (_, LandlockStatus::Available { effective_abi, .. }) => Ok(effective_abi as u8),
        _ => Err(NO_LANDLOCK.to_owned()),
    }
}

/// System calls. The error says what this kernel lacks.
fn filter_calls() -> Result<(), String> {
    let filters = call_filters::filters(std::process::id())?;
    filters.iter().try_for_each(|filter| {
        seccompiler::apply_filter(filter)
            .map_err(|error| format!("the kernel takes no filter of system calls ({error})"))
    })
}

/// Looks whether others have put a file or folder anew where the fence leaves none open, and says so once of each. Nobody would notice
/// otherwise but by what fails.
#[derive(Debug, Default)]
pub struct OutsideWatch {
    said: Arc<Mutex<Vec<PathBuf>>>,
    last: Option<Moment>,
}

impl OutsideWatch {
    /// Looks once in a while, in a thread of its own, one at a time: a file system that does not answer holds up nobody else.
    pub fn look(&mut self, plan: &Plan, now: Moment) {
        let is_due = |last: Moment| u128::from(last.micros_until(now)) >= FENCE_LOOK_EVERY.as_micros();
        if state().files.is_none() || !self.last.is_none_or(is_due) || Arc::strong_count(&self.said) > 1 {
            return;
        }
        self.last = Some(now);
        let (said, needs) = (Arc::clone(&self.said), file_needs::that_reloads_change(plan));
        let look = std::thread::Builder::new().name("larder-fence".to_owned());
        // Without a thread it is looked at later.
        let _ = look.spawn(move || say_what_is_outside(&needs, &mut said.lock()));
    }
}

fn say_what_is_outside(needs: &[FileNeed], said: &mut Vec<PathBuf>) {
    let outside = |need: &&FileNeed| need.path.exists() && fence::is_outside(&need.path, need.usage.reach());
    let outside: Vec<&FileNeed> = needs.iter().filter(outside).collect();
    for need in outside.iter().filter(|need| !said.contains(&need.path)) {
        let reason = fence::sentence(need.usage.reach());
        say!("warning: {} was put anew since the start ({}): {reason}", need.path.display(), need.setting);
    }
    *said = outside.iter().map(|need| need.path.clone()).collect();
}

/// What is to be known of a plan that wants cores, and that a reload takes over nevertheless.
pub fn core_outside(plan: &Plan) -> Option<String> {
    let folder = file_needs::core_folder(plan).filter(|folder| fence::is_outside(folder, fence::Reach::Write))?;
    Some(format!(
        "a crash leaves no core before a restart: {} lies outside of what larder may write since its start (core_dumps, [process] sandbox)",
        folder.display()
    ))
}

/// Refuses a plan that a reload would take over and that needs files outside of the fence. The sentence names them.
pub fn refuse_outside(plan: &Plan) -> Result<(), String> {
    let resolver = FileNeed {
        path: "/etc/resolv.conf".into(),
        usage: file_needs::FileUse::ReadAgain,
        setting: "it is put anew since, and larder runs as root",
    };
    let needs = file_needs::that_reloads_change(plan).into_iter().chain(resolver.path.exists().then_some(resolver));
    let outside: Vec<FileNeed> = needs.filter(|need| fence::is_outside(&need.path, need.usage.reach())).collect();
    let Some(first) = outside.first() else { return Ok(()) };
    let named: Vec<String> = outside.iter().map(|need| format!("{} ({})", need.path.display(), need.setting)).collect();
    Err(format!("{}: {}", named.join(", "), fence::sentence(first.usage.reach())))
}
