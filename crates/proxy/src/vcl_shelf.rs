//! The shelf of loaded VCLs: programs by name, labels that stand for one of them, and which may be put on it and taken
//! off. Which program is active is the site's to say; every change here is an operator's, so one lock orders them all, and
//! no request ever takes it.

use std::sync::Arc;

use arc_swap::{ArcSwap, ArcSwapOption};
use parking_lot::{Mutex, MutexGuard};
use vcl::World;

use crate::backend_health::HealthOrder;
use crate::clock::deadline_now_ms;
use crate::dry_runner::mocked_origins::Stage;
use crate::limits::{VCL_LABELS_MAX, VCL_NAME_BYTES_MAX, VCL_PROGRAMS_MAX};
use crate::origin::Origin;
use crate::prober::{Prober, Probes, Probing};
use crate::site::Site;
use crate::vcl_site::{Surroundings, VclLabel, VclProgram, VclSite};

pub(crate) struct VclShelf {
    pub(crate) world: Arc<dyn World>,
    prober: Arc<Prober>,
    /// In a dry run: who answers for the backends.
    stage: Option<Arc<Stage>>,
    /// In the order in which they were loaded. Replaced whole, so that the cores' ticks need no lock.
    programs: ArcSwap<Vec<Arc<VclSite>>>,
    changes: Mutex<Changes>,
}

/// What is only touched in the course of a change.
#[derive(Default)]
pub(crate) struct Changes {
    pub(crate) labels: Vec<Arc<VclLabel>>,
    /// When a program began to be of no use: it cools from there.
    idle_since_ms: Vec<(Arc<str>, u64)>,
}

/// Why an operator's wish was not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VclError {
    /// There is nothing of that name.
    Unknown(String),
    /// It would break what is there.
    Conflict(String),
    /// The program, or the name, is no good.
    Refused(String),
}

impl std::fmt::Display for VclError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (VclError::Unknown(sentence) | VclError::Conflict(sentence) | VclError::Refused(sentence)) = self;
        f.write_str(sentence)
    }
}

impl std::error::Error for VclError {}

impl VclShelf {
    pub(crate) fn new(world: Arc<dyn World>, stage: Option<Arc<Stage>>) -> VclShelf {
        VclShelf { world, prober: Arc::default(), stage, programs: ArcSwap::default(), changes: Mutex::default() }
    }

    pub(crate) fn programs(&self) -> arc_swap::Guard<Arc<Vec<Arc<VclSite>>>> {
        self.programs.load()
    }

    /// Begins to probe the origins of a configuration. In a dry run nobody is asked anything.
    pub(crate) fn probe_origins<'a>(&self, origins: impl Iterator<Item = &'a Arc<Origin>>) -> Result<Probes, String> {
        let probed = origins.filter(|_| self.stage.is_none()).filter_map(Probing::of_addresses);
        self.prober.begin(probed.collect())
    }

    pub(crate) fn changes(&self) -> MutexGuard<'_, Changes> {
        self.changes.lock()
    }

    /// By its name, or by a label that stands for it.
    pub(crate) fn find(&self, changes: &Changes, name: &str) -> Result<Arc<VclSite>, VclError> {
        if let Some(found) = self.programs.load().iter().find(|program| *program.name == *name) {
            return Ok(Arc::clone(found));
        }
        let label = changes.labels.iter().find(|label| label.name == name);
        label.and_then(|label| label.program.load_full()).ok_or_else(|| self.unknown(name))
    }

    fn unknown(&self, name: &str) -> VclError {
        let names: Vec<String> = self.programs.load().iter().map(|program| format!("`{}`", program.name)).collect();
        let there = if names.is_empty() { "none is".to_owned() } else { format!("there are {}", names.join(", ")) };
        VclError::Unknown(format!("no VCL `{name}` is loaded: {there}"))
    }

    /// Makes a program ready to be put on the shelf. This takes its time, so nothing is locked meanwhile.
    pub(crate) fn prepare(&self, program: VclProgram, site: &Site) -> Result<VclSite, VclError> {
        check_name(&program.name)?;
        let labels = {
            let changes = self.changes.lock();
            self.check_free(&changes, &program.name)?;
            let label = |name: &String| {
                changes.labels.iter().find(|label| label.name == *name).cloned().ok_or_else(|| {
                    VclError::Refused(format!(
                        "the program hands requests to vcl({name}), and there is no such label: load that program and \
                         label it first"
                    ))
                })
            };
            program.program.labels.iter().map(label).collect::<Result<Vec<_>, _>>()?
        };
        let others = self.programs.load_full();
        let surroundings = Surroundings {
            world: &self.world,
            parameters: &site.settings.vcl,
            base: &site.origins,
            others: &others,
            labels,
            prober: &self.prober,
            stage: self.stage.as_ref(),
        };
        VclSite::load(program, surroundings).map_err(VclError::Refused)
    }

    /// Puts it there, unless somebody else was faster with the name.
    pub(crate) fn put(&self, changes: &mut Changes, program: VclSite) -> Result<Arc<VclSite>, VclError> {
        self.check_free(changes, &program.name)?;
        if let Some(gone) =
            program.labels().iter().find(|own| !changes.labels.iter().any(|label| Arc::ptr_eq(label, own)))
        {
            return Err(VclError::Conflict(format!("the label `{}` was removed meanwhile", gone.name)));
        }
        let mut programs = Vec::clone(&self.programs.load());
        if programs.len() >= VCL_PROGRAMS_MAX {
            return Err(VclError::Conflict(format!("{VCL_PROGRAMS_MAX} VCLs are loaded: discard one first")));
        }
        let program = Arc::new(program);
        programs.push(Arc::clone(&program));
        self.programs.store(Arc::new(programs));
        changes.idle_since_ms.push((Arc::clone(&program.name), deadline_now_ms()));
        Ok(program)
    }

    /// Takes a program off. Transactions that have it keep it.
    pub(crate) fn discard(&self, changes: &mut Changes, name: &str, active: Option<&VclSite>) -> Result<(), VclError> {
        let conflict = |why: String| Err(VclError::Conflict(why));
        if let Some(at) = changes.labels.iter().position(|label| label.name == name) {
            let label = Arc::clone(&changes.labels[at]);
            if let Some(user) = self.programs.load().iter().find(|program| program.refers_to(&label)) {
                return conflict(format!("VCL `{}` hands requests to the label `{name}`", user.name));
            }
            changes.labels.remove(at);
            return Ok(());
        }
        let mut programs = Vec::clone(&self.programs.load());
        let at = programs.iter().position(|program| *program.name == *name).ok_or_else(|| self.unknown(name))?;
        if active.is_some_and(|active| std::ptr::eq(active, &*programs[at])) {
            return conflict(format!("VCL `{name}` is active: use another one first"));
        }
        if let Some(label) = changes.label_of(&programs[at]) {
            return conflict(format!("the label `{}` stands for VCL `{name}`: move or discard it first", label.name));
        }
        programs.remove(at);
        self.programs.store(Arc::new(programs));
        changes.idle_since_ms.retain(|(idle, _)| **idle != *name);
        Ok(())
    }

    /// Lets a label stand for a program, from now on or again.
    pub(crate) fn label(&self, changes: &mut Changes, label: &str, name: &str) -> Result<(), VclError> {
        check_name(label)?;
        let programs = self.programs.load();
        if programs.iter().any(|program| *program.name == *label) {
            return Err(VclError::Conflict(format!(
                "`{label}` is the name of a program: a label needs one of its own"
            )));
        }
        let program = programs.iter().find(|program| *program.name == *name).ok_or_else(|| self.unknown(name))?;
        if !program.loaded.labels().is_empty() {
            let why = format!("VCL `{name}` hands requests to labels itself, and a label must not lead to another");
            return Err(VclError::Conflict(why));
        }
        program.set_warm(true);
        match changes.labels.iter().find(|known| known.name == label) {
            Some(known) => known.program.store(Some(Arc::clone(program))),
            None if changes.labels.len() >= VCL_LABELS_MAX => {
                return Err(VclError::Conflict(format!("there are {VCL_LABELS_MAX} labels: discard one first")));
            }
            None => changes.labels.push(Arc::new(VclLabel {
                name: label.to_owned(),
                program: ArcSwapOption::from(Some(Arc::clone(program))),
            })),
        }
        Ok(())
    }

    /// An operator's word about backends: `NAME`, of the active program, or `PROGRAM.NAME`.
    pub(crate) fn order_health(
        &self,
        changes: &Changes,
        written: &str,
        order: HealthOrder,
        active: Option<&Arc<VclSite>>,
    ) -> Result<(), VclError> {
        let none = || VclError::Unknown(format!("there is no backend `{written}`: write NAME or VCL.NAME"));
        if active.is_some_and(|active| active.order_health(written, order)) {
            return Ok(());
        }
        // A program's name may have dots, a backend's has none.
        let (program, backend) = written.rsplit_once('.').ok_or_else(none)?;
        if self.find(changes, program)?.order_health(backend, order) { Ok(()) } else { Err(none()) }
    }

    /// For one core's tick: programs that were of no use for `cooldown_ms` let their backends alone.
    pub(crate) fn cool(&self, active: Option<&Arc<VclSite>>, now_ms: u64, cooldown_ms: u64) {
        // Whoever changes something now has put right what we would.
        let Some(mut changes) = self.changes.try_lock() else { return };
        for program in &**self.programs.load() {
            let is_active = active.is_some_and(|active| Arc::ptr_eq(active, program));
            let is_used = is_active || changes.label_of(program).is_some();
            let Some((_, since_ms)) = changes.idle_since_ms.iter_mut().find(|(name, _)| *name == program.name) else {
                continue;
            };
            if is_used {
                *since_ms = now_ms;
                // Whoever made use of it made it warm; a core that did not know yet may have undone that.
                program.set_warm(true);
            }
            if now_ms.saturating_sub(*since_ms) > cooldown_ms {
                program.set_warm(false);
            }
        }
    }
}

impl Changes {
    pub(crate) fn label_of(&self, program: &Arc<VclSite>) -> Option<&Arc<VclLabel>> {
        self.labels_of(program).next()
    }

    pub(crate) fn labels_of(&self, program: &Arc<VclSite>) -> impl Iterator<Item = &Arc<VclLabel>> {
        self.labels.iter().filter(|label| label.program.load().as_ref().is_some_and(|of| Arc::ptr_eq(of, program)))
    }
}

impl VclShelf {
    fn check_free(&self, changes: &Changes, name: &str) -> Result<(), VclError> {
        if self.programs.load().iter().any(|program| *program.name == *name) {
            return Err(VclError::Conflict(format!(
                "a VCL `{name}` is loaded already: discard it or take another name"
            )));
        }
        if changes.labels.iter().any(|label| label.name == name) {
            return Err(VclError::Conflict(format!("`{name}` is a label: take another name")));
        }
        Ok(())
    }
}

/// As Varnish has it: a letter, then letters, digits, and `_ . -`.
fn check_name(name: &str) -> Result<(), VclError> {
    let mut bytes = name.bytes();
    let good = bytes.next().is_some_and(|b| b.is_ascii_alphabetic())
        && bytes.all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b))
        && name.len() <= VCL_NAME_BYTES_MAX;
    if good {
        return Ok(());
    }
    let why = format!(
        "`{name}` is no name for a VCL: a letter, then letters, digits and _ . -, at most {VCL_NAME_BYTES_MAX} bytes"
    );
    Err(VclError::Refused(why))
}

#[cfg(test)]
#[path = "vcl_shelf_tests.rs"]
mod tests;
