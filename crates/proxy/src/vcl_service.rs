//! What the program may do with VCLs while the proxy runs: load, use, discard, label, look. Every verb is one change of
//! the shelf, and `use` one swap of the site, of which the cores are told as of a reload.

use std::sync::Arc;

use cache::BanEntry;

use crate::backend_health::{BackendHealth, HealthOrder, ProbeStatus};
use crate::clock::{Clock, Moment};
use crate::origin::OriginStatus;
use crate::service::Proxy;
use crate::site::Site;
use crate::vcl_shelf::{Changes, VclError};
use crate::vcl_site::{VclProgram, VclSite};
use crate::vcl_story::bans;

/// A loaded program at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct VclStatus {
    pub name: String,
    pub is_active: bool,
    /// Its backends are probed.
    pub is_warm: bool,
    pub labels: Vec<String>,
    /// Transactions and fetches that began on it and have not ended.
    pub under_way: usize,
    /// What it holds, in one line.
    pub summary: String,
    pub backends: Vec<BackendStatus>,
}

/// A backend at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct BackendStatus {
    pub origin: OriginStatus,
    pub healthy: bool,
    /// Since when, in milliseconds since 1970.
    pub changed_ms: u64,
    pub ordered: HealthOrder,
    /// Absent where nobody probes.
    pub probe: Option<ProbeStatus>,
}

/// A ban at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BanStatus {
    pub expression: String,
    pub age_ms: u64,
    /// It has a condition on the request, so it is tested only when somebody asks.
    pub needs_request: bool,
    /// It only makes stale.
    pub is_soft: bool,
    /// Stored and arriving responses that it was tested against, and how many of them went.
    pub tested: u64,
    pub matched: u64,
    /// Nothing that is stored is left to be tested.
    pub is_done: bool,
}

impl Proxy {
    /// Loads a checked program. It is used when somebody says so.
    pub fn load_vcl(&self, program: VclProgram) -> Result<(), VclError> {
        let shelf = &self.shared.shelf;
        let ready = shelf.prepare(program, &self.shared.site.load())?;
        shelf.put(&mut shelf.changes(), ready).map(|_| ())
    }

    /// Lets a loaded program decide from now on. Transactions under way end on the one they began with.
    pub fn use_vcl(&self, name: &str) -> Result<(), VclError> {
        let changes = self.shared.shelf.changes();
        let vcl = self.shared.shelf.find(&changes, name)?;
        vcl.set_warm(true);
        let site = Site::with_vcl(&self.shared.site.load(), Some(vcl));
        self.shared.set_site(site);
        Ok(())
    }

    /// Takes a program, or a label, off the shelf.
    pub fn discard_vcl(&self, name: &str) -> Result<(), VclError> {
        let shelf = &self.shared.shelf;
        let mut changes = shelf.changes();
        shelf.discard(&mut changes, name, self.shared.site.load().program.as_deref())
    }

    pub fn label_vcl(&self, label: &str, name: &str) -> Result<(), VclError> {
        let shelf = &self.shared.shelf;
        shelf.label(&mut shelf.changes(), label, name)
    }

    /// Lets a loaded program probe its backends, or leave them alone. One that is of no use cools by itself.
    pub fn warm_vcl(&self, name: &str, is_warm: bool) -> Result<(), VclError> {
        let changes = self.shared.shelf.changes();
        self.shared.shelf.find(&changes, name)?.set_warm(is_warm);
        Ok(())
    }

    /// What an operator decides about the backends of this name: `NAME` of the active program, or `VCL.NAME`.
    pub fn order_backend_health(&self, backend: &str, order: HealthOrder) -> Result<(), VclError> {
        let shelf = &self.shared.shelf;
        shelf.order_health(&shelf.changes(), backend, order, self.shared.site.load().program.as_ref())
    }

    /// Ready when every invalidation so far survives a crash.
    pub fn settled(&self) -> impl Future<Output = Result<(), String>> + Send + 'static {
        self.shared.cache.settled()
    }

    /// Bans what is stored, or under way, and meets the conditions. The error is about the expression.
    pub fn ban(&self, expression: &[u8]) -> Result<(), VclError> {
        let now = self.shared.now();
        bans::ban(&self.shared, expression, now).map_err(VclError::Refused)
    }

    /// The bans in force, newest first.
    pub fn bans_status(&self) -> Vec<BanStatus> {
        let now_ms = Clock::read().at(Moment::now()).mono_ms;
        let status = |ban: BanEntry| BanStatus {
            age_ms: now_ms.saturating_sub(ban.issued.mono_ms),
            expression: ban.text,
            needs_request: ban.needs_request,
            is_soft: ban.is_soft,
            tested: ban.tested,
            matched: ban.matched,
            is_done: ban.is_done,
        };
        self.shared.cache.bans().into_iter().map(status).collect()
    }

    /// All loaded programs, in the order in which they were loaded.
    pub fn vcls_status(&self) -> Vec<VclStatus> {
        let shelf = &self.shared.shelf;
        let changes = shelf.changes();
        let active = self.shared.site.load_full();
        let now_ms = Clock::read().at(Moment::now()).mono_ms;
        let status = |vcl: &Arc<VclSite>| VclStatus {
            name: vcl.name.to_string(),
            is_active: active.program.as_ref().is_some_and(|active| Arc::ptr_eq(active, vcl)),
            is_warm: vcl.is_warm(),
            labels: changes.labels_of(vcl).map(|label| label.name.clone()).collect(),
            under_way: self.under_way(vcl, &active, &changes),
            summary: vcl.loaded.program().summary(),
            backends: backends_status(vcl, now_ms),
        };
        shelf.programs().iter().map(status).collect()
    }

    fn under_way(&self, vcl: &Arc<VclSite>, active: &Arc<Site>, changes: &Changes) -> usize {
        let holders = vcl.holders();
        // The shelf, and each label.
        let directly = holders.directly.saturating_sub(1 + changes.labels_of(vcl).count());
        let is_active = active.program.as_ref().is_some_and(|active| Arc::ptr_eq(active, vcl));
        // The swap, every core, and our caller.
        let for_good = if is_active { self.shared.loads.len() + 2 } else { 0 };
        directly + holders.through_sites.saturating_sub(for_good)
    }
}

fn backends_status(vcl: &VclSite, now_ms: u64) -> Vec<BackendStatus> {
    let status = |(origin, health): (OriginStatus, Arc<BackendHealth>)| {
        let found = health.read();
        let probe = health.probe_status();
        BackendStatus { origin, healthy: found.healthy, changed_ms: found.changed_ms, ordered: health.ordered(), probe }
    };
    vcl.backends(now_ms).into_iter().map(status).collect()
}
