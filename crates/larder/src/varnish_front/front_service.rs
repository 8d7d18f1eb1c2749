//! The larder that the front speaks for: programs that are kept, a proxy while it serves, and the plan it is started with.
//!
//! What is asked of the proxy is asked by the same functions that the admin address calls.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use parking_lot::Mutex;
use proxy::settings::ListenAddress;
use proxy::{BackendStatus, HealthOrder, Proxy, RecordSink, VclError, VclProgram, VclStatus};
use tokio::sync::oneshot;
use varnishd::{
    BackendRow, BanRow, ListenRow, Order, ProbeRow, Refusal, Served, SocketOwner, SourceRow, Temperature, VclRow,
    VclState, VclText,
};

use super::front_log::FrontLog;
use super::front_plan::FrontListener;
use super::kept_vcls::{self, Kept, KeptKind};
use crate::admin::observation::Observation;
use crate::admin::vcl_requests;
use crate::plan::Plan;
use crate::running::{Forerunners, Running};
use crate::say::say;
use crate::varnish_parameters;
use crate::vcl_loading::Ready;

/// Told once, by whoever has a reason to end the process.
pub type Finisher = Arc<Mutex<Option<oneshot::Sender<()>>>>;

pub struct FrontService {
    state: Mutex<State>,
    listen: Vec<FrontListener>,
    storages: Vec<(String, String)>,
    finisher: Finisher,
    has_died: Arc<AtomicBool>,
    /// Absent where nobody could read it.
    log: Option<Arc<FrontLog>>,
}

struct State {
    plan: Plan,
    kept: Vec<Kept>,
    /// A program, or a label.
    active: Option<String>,
    life: Option<Life>,
}

/// From `start` to `stop`.
struct Life {
    running: Running,
    /// Told when all workers have ended.
    ended: mpsc::Receiver<()>,
    is_ending: Arc<AtomicBool>,
}

fn refusal(error: VclError) -> Refusal {
    match error {
        VclError::Unknown(why) | VclError::Refused(why) => Refusal::Wrong(why),
        VclError::Conflict(why) => Refusal::Cannot(why),
    }
}

fn cannot(why: &str) -> Refusal {
    Refusal::Cannot(why.to_owned())
}

impl FrontService {
    pub fn new(
        plan: Plan,
        listen: Vec<FrontListener>,
        storages: Vec<(String, String)>,
        finish: oneshot::Sender<()>,
        log: Option<Arc<FrontLog>>,
    ) -> FrontService {
        FrontService {
            state: Mutex::new(State { plan, kept: Vec::new(), active: None, life: None }),
            listen,
            storages,
            finisher: Arc::new(Mutex::new(Some(finish))),
            has_died: Arc::default(),
            log,
        }
    }

    pub fn finisher(&self) -> Finisher {
        Arc::clone(&self.finisher)
    }

    pub fn has_active(&self) -> bool {
        self.state.lock().active.is_some()
    }

    /// Serves, if there is a program to serve by. The error is a sentence.
    pub fn begin(&self) -> Result<(), String> {
        if !self.has_active() {
            return Ok(());
        }
        self.start().map_err(sentence)
    }

    /// What is going on, while anything is.
    pub fn observe(&self) -> Option<Observation> {
        let admin = self.state.lock().life.as_ref().map(|life| Arc::clone(&life.running.admin))?;
        Some(admin.observe())
    }

    /// The workers have ended, and nobody asked them to.
    pub fn has_died(&self) -> bool {
        self.has_died.load(Ordering::Relaxed)
    }

    pub fn reopen_log(&self) {
        if let Some(life) = &self.state.lock().life {
            life.running.reopen_log(&life.running.plan);
        }
    }

    pub fn looks_every(&self) -> Option<Duration> {
        self.state.lock().life.as_ref().and_then(|life| life.running.looks_every())
    }

    pub fn look_around(&self) {
        if let Some(life) = &mut self.state.lock().life {
            life.running.look_around();
        }
    }

    /// Finishes what is in flight. `None` if nothing is served.
    pub fn drain(&self) -> Option<oneshot::Receiver<()>> {
        let mut state = self.state.lock();
        let life = state.life.as_mut()?;
        life.is_ending.store(true, Ordering::Relaxed);
        life.running.proxy.drain();
        let (tell, told) = oneshot::channel();
        let (_, nobody) = mpsc::channel();
        let ended = std::mem::replace(&mut life.ended, nobody);
        std::thread::spawn(move || {
            // Either way there are no workers any more.
            let _ = ended.recv();
            let _ = tell.send(());
        });
        Some(told)
    }

    pub fn drain_now(&self) {
        if let Some(life) = &self.state.lock().life {
            life.running.proxy.drain_now();
        }
    }

    /// After the workers.
    pub fn finish(&self) {
        if let Some(life) = self.state.lock().life.take() {
            life.running.finish();
        }
    }

    fn live(&self, plan: &Plan) -> Result<Life, Refusal> {
        // Nobody is let in before all programs are there.
        let mut closed = plan.clone();
        closed.settings.listeners.clear();
        let running =
            Running::start(closed, false, self.log.clone().map(|log| log as Arc<dyn RecordSink>), Forerunners::none())
                .map_err(Refusal::Cannot)?;
        let is_ending = Arc::new(AtomicBool::new(false));
        let (tell, ended) = mpsc::channel();
        let died = running.ended();
        let (ending, finisher, has_died) = (Arc::clone(&is_ending), self.finisher(), Arc::clone(&self.has_died));
        std::thread::spawn(move || {
            // The sender is dropped only together with the workers.
            let _ = died.blocking_recv();
            if !ending.load(Ordering::Relaxed) {
                has_died.store(true, Ordering::Relaxed);
                finish(&finisher);
            }
            // Nobody may be waiting.
            let _ = tell.send(());
        });
        Ok(Life { running, ended, is_ending })
    }

    fn set_owners(&self) -> Result<(), Refusal> {
        for listener in &self.listen {
            if let ListenAddress::Unix(path) = &listener.settings.address {
                own(path, &listener.owner).map_err(|why| Refusal::Cannot(format!("{}: {why}", path.display())))?;
            }
        }
        Ok(())
    }
}

pub fn sentence(refusal: Refusal) -> String {
    match refusal {
        Refusal::Wrong(why) | Refusal::Cannot(why) => why,
    }
}

/// Ends the process in good order.
pub fn finish(finisher: &Finisher) {
    if let Some(finish) = finisher.lock().take() {
        // The main thread is on its way out already.
        let _ = finish.send(());
    }
}

/// Loads a program and tells the log of it, as Varnish's has what its child is told.
fn load_noted(proxy: &Proxy, program: VclProgram, log: Option<&FrontLog>) -> Result<(), Refusal> {
    let note = |text: String| {
        if let Some(log) = log {
            log.note("CLI", text.as_bytes());
        }
    };
    let name = program.name.clone();
    note(format!("Rd vcl.load {name}"));
    let loaded = proxy.load_vcl(program).map_err(refusal);
    let (status, said) = match &loaded {
        Ok(()) => (200, format!("Loaded \"{name}\"")),
        Err(Refusal::Wrong(why) | Refusal::Cannot(why)) => (106, why.clone()),
    };
    note(format!("Wr {status} {} {said}", said.len()));
    loaded
}

fn own(path: &Path, owner: &SocketOwner) -> Result<(), String> {
    let failed = |error: std::io::Error| error.to_string();
    let user = owner.user.as_deref().map(super::front_jail::user_number).transpose()?;
    let group = owner.group.as_deref().map(super::front_jail::group_number).transpose()?;
    if user.is_some() || group.is_some() {
        std::os::unix::fs::chown(path, user.map(|user| user.0), group).map_err(failed)?;
    }
    if let Some(mode) = owner.mode {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).map_err(failed)?;
    }
    Ok(())
}

impl State {
    fn proxy(&self) -> Option<&Proxy> {
        self.life.as_ref().map(|life| &life.running.proxy)
    }

    fn running_proxy(&self) -> Result<Proxy, Refusal> {
        self.proxy().cloned().ok_or_else(|| cannot("Child in state stopped"))
    }

    /// The program that a name stands for.
    fn program_of<'a>(&'a self, name: &'a str) -> &'a str {
        self.kept.iter().find(|kept| kept.name == name).and_then(Kept::label_of).unwrap_or(name)
    }

    fn statuses(&self) -> BTreeMap<String, VclStatus> {
        let statuses = self.proxy().map(Proxy::vcls_status).unwrap_or_default();
        statuses.into_iter().map(|status| (status.name.clone(), status)).collect()
    }

    /// Everything that is kept, into a proxy that has nothing.
    fn load_all(&self, proxy: &Proxy, log: Option<&FrontLog>) -> Result<(), Refusal> {
        for kept in &self.kept {
            match &kept.kind {
                KeptKind::Label { of } => proxy.label_vcl(&kept.name, of).map_err(refusal)?,
                KeptKind::Program { from, text, state, .. } => {
                    let Ready { program, .. } = kept_vcls::checked(&kept.name, from, text, &self.plan)?;
                    load_noted(proxy, program, log)?;
                    if *state == VclState::Cold {
                        proxy.warm_vcl(&kept.name, false).map_err(refusal)?;
                    }
                }
            }
        }
        let active = self.active.as_deref().ok_or_else(|| cannot("No VCL available\n"))?;
        proxy.use_vcl(self.program_of(active)).map_err(refusal)
    }

    fn row(&self, kept: &Kept, statuses: &BTreeMap<String, VclStatus>) -> VclRow {
        let status = statuses.get(kept.label_of().unwrap_or(&kept.name));
        let labels = self.kept.iter().filter(|label| label.label_of() == Some(&*kept.name));
        let (state, hands_to) = match &kept.kind {
            KeptKind::Label { .. } => (VclState::Auto, Vec::new()),
            KeptKind::Program { state, hands_to, .. } => (*state, hands_to.clone()),
        };
        let is_warm = status.map_or(state != VclState::Cold, |status| status.is_warm);
        VclRow {
            name: kept.name.clone(),
            is_active: self.active.as_deref() == Some(&kept.name),
            state,
            temperature: if is_warm { Temperature::Warm } else { Temperature::Cold },
            busy: status.map(|status| if kept.label_of().is_some() { 0 } else { status.under_way }),
            labels: labels.map(|label| label.name.clone()).collect(),
            label_of: kept.label_of().map(str::to_owned),
            hands_to,
        }
    }
}

impl Served for FrontService {
    fn now_s(&self) -> f64 {
        proxy::wall_now_ms() as f64 / 1000.0
    }

    fn pids(&self) -> (u32, Option<u32>) {
        let pid = std::process::id();
        (pid, self.is_running().then_some(pid))
    }

    fn platform(&self) -> String {
        let system = rustix::system::uname();
        let part = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
        let kinds: String = self.storages.iter().map(|(_, kind)| format!(",-s{kind}")).collect();
        format!("{},{},{}{kinds}", part(system.sysname()), part(system.release()), part(system.machine()))
    }

    fn is_running(&self) -> bool {
        self.state.lock().life.is_some()
    }

    fn start(&self) -> Result<(), Refusal> {
        let mut state = self.state.lock();
        if state.active.is_none() {
            return Err(cannot("No VCL available\n"));
        }
        if let Some(log) = &self.log {
            log.open();
        }
        let life = self.live(&state.plan)?;
        let opened = state.load_all(&life.running.proxy, self.log.as_deref()).and_then(|()| {
            // What only starting found out: how many connections the open files allow.
            let limits = &life.running.plan.settings.limits;
            state.plan.settings.limits.connections_max = limits.connections_max;
            let opened = life.running.proxy.reload(state.plan.settings.clone(), None);
            opened.map(drop).map_err(|error| Refusal::Cannot(error.to_string()))
        });
        if let Err(why) = opened.and_then(|()| self.set_owners()) {
            life.end();
            return Err(why);
        }
        state.life = Some(life);
        Ok(())
    }

    fn stop(&self) -> Result<(), Refusal> {
        let life = self.state.lock().life.take().ok_or_else(|| cannot("Child in state stopped"))?;
        life.end();
        Ok(())
    }

    fn load(&self, name: &str, text: VclText<'_>, state: VclState) -> Result<String, Refusal> {
        let plan = self.state.lock().plan.clone();
        let (kept, ready) = kept_vcls::prepare(name, text, state, &plan)?;
        let Ready { program, warnings, .. } = ready;
        let proxy = self.state.lock().proxy().cloned();
        // Names are looked up: nobody waits for it meanwhile.
        if let Some(proxy) = proxy {
            load_noted(&proxy, program, self.log.as_deref())?;
            if state == VclState::Cold {
                proxy.warm_vcl(name, false).map_err(refusal)?;
            }
        }
        self.state.lock().kept.push(kept);
        Ok(warnings)
    }

    fn use_vcl(&self, name: &str) -> Result<(), Refusal> {
        let mut state = self.state.lock();
        if let Some(proxy) = state.proxy() {
            proxy.use_vcl(state.program_of(name)).map_err(refusal)?;
        }
        state.active = Some(name.to_owned());
        Ok(())
    }

    fn discard(&self, name: &str) -> Result<(), Refusal> {
        let mut state = self.state.lock();
        if let Some(proxy) = state.proxy() {
            proxy.discard_vcl(name).map_err(refusal)?;
        }
        state.kept.retain(|kept| kept.name != name);
        Ok(())
    }

    fn label(&self, label: &str, name: &str) -> Result<(), Refusal> {
        let mut state = self.state.lock();
        if let Some(proxy) = state.proxy() {
            proxy.label_vcl(label, name).map_err(refusal)?;
            if state.active.as_deref() == Some(label) {
                proxy.use_vcl(name).map_err(refusal)?;
            }
        }
        let kind = KeptKind::Label { of: name.to_owned() };
        match state.kept.iter_mut().find(|kept| kept.name == label) {
            Some(kept) => kept.kind = kind,
            None => state.kept.push(Kept { name: label.to_owned(), kind }),
        }
        Ok(())
    }

    fn set_state(&self, name: &str, wanted: VclState) -> Result<(), Refusal> {
        let mut state = self.state.lock();
        if let Some(proxy) = state.proxy() {
            proxy.warm_vcl(name, wanted != VclState::Cold).map_err(refusal)?;
        }
        let kept = state.kept.iter_mut().find(|kept| kept.name == name);
        if let Some(Kept { kind: KeptKind::Program { state, .. }, .. }) = kept {
            *state = wanted;
        }
        Ok(())
    }

    fn vcls(&self) -> Vec<VclRow> {
        let state = self.state.lock();
        let statuses = state.statuses();
        state.kept.iter().map(|kept| state.row(kept, &statuses)).collect()
    }

    fn sources(&self, name: &str) -> Option<Vec<SourceRow>> {
        let state = self.state.lock();
        match &state.kept.iter().find(|kept| kept.name == name)?.kind {
            KeptKind::Program { sources, .. } => Some(sources.clone()),
            KeptKind::Label { .. } => None,
        }
    }

    fn ban(&self, expression: &[u8]) -> Result<(), Refusal> {
        let proxy = self.state.lock().running_proxy()?;
        vcl_requests::ban(&proxy, expression).map_err(refusal)
    }

    fn bans(&self) -> Vec<BanRow> {
        let Some(proxy) = self.state.lock().proxy().cloned() else { return Vec::new() };
        let now_s = self.now_s();
        let row = |ban: proxy::BanStatus| BanRow {
            at_s: now_s - ban.age_ms as f64 / 1000.0,
            is_done: ban.is_done,
            expression: ban.expression,
        };
        proxy.bans_status().into_iter().map(row).collect()
    }

    fn backends(&self) -> Vec<BackendRow> {
        let state = self.state.lock();
        let active = state.active.as_deref().map(|name| state.program_of(name).to_owned());
        let mut rows = Vec::new();
        for kept in &state.kept {
            let Some(status) = state.statuses().remove(&kept.name) else { continue };
            let is_of_active = active.as_deref() == Some(&*kept.name);
            rows.extend(status.backends.iter().map(|backend| backend_row(backend, &kept.name, is_of_active)));
        }
        rows
    }

    fn order_health(&self, vcl: &str, backend: &str, order: Order) -> Result<(), Refusal> {
        let order = match order {
            Order::Auto => HealthOrder::Auto,
            Order::Healthy => HealthOrder::Healthy,
            Order::Sick => HealthOrder::Sick,
        };
        let proxy = self.state.lock().running_proxy()?;
        proxy.order_backend_health(&format!("{vcl}.{backend}"), order).map_err(refusal)
    }

    fn storages(&self) -> Vec<(String, String)> {
        self.storages.clone()
    }

    fn listeners(&self) -> Vec<ListenRow> {
        let bound = self.state.lock().proxy().map(Proxy::listen_addresses).unwrap_or_default();
        let name = |at: usize| self.listen.get(at).map_or("a0", |listener| &*listener.name).to_owned();
        // They are bound in the order in which they were asked for.
        let row = |(at, (_, address)): (usize, (_, ListenAddress))| match address {
            ListenAddress::Tcp(address) => {
                ListenRow { name: name(at), host: address.ip().to_string(), port: Some(address.port()) }
            }
            ListenAddress::Unix(path) => ListenRow { name: name(at), host: path.display().to_string(), port: None },
        };
        bound.into_iter().enumerate().map(row).collect()
    }

    fn set_xids(&self, next: u32, block: u32) {
        proxy::set_xids(u64::from(next), u64::from(block));
    }

    fn set_parameter(&self, name: &str, value: &str) -> Result<(), Refusal> {
        if let Some(log) = &self.log
            && log.set_parameter(name, value).map_err(Refusal::Wrong)?
        {
            return Ok(());
        }
        let mut state = self.state.lock();
        let mut plan = state.plan.clone();
        varnish_parameters::set(&mut plan, name, value).map_err(Refusal::Wrong)?;
        plan.warnings.clear();
        if let Some(proxy) = state.proxy() {
            let warnings = proxy.reload(plan.settings.clone(), None);
            let warnings = warnings.map_err(|error| Refusal::Cannot(error.to_string()))?;
            warnings.iter().for_each(|warning| say!("warning: {warning}"));
        }
        state.plan = plan;
        Ok(())
    }

    fn parameter_note(&self, name: &str) -> Option<&'static str> {
        varnish_parameters::note(name)
    }
}

fn backend_row(status: &BackendStatus, vcl: &str, is_of_active: bool) -> BackendRow {
    let name = &*status.origin.name;
    BackendRow {
        vcl: vcl.to_owned(),
        name: name.strip_prefix(vcl).and_then(|rest| rest.strip_prefix('.')).unwrap_or(name).to_owned(),
        is_of_active,
        ordered: match status.ordered {
            HealthOrder::Auto => Order::Auto,
            HealthOrder::Healthy => Order::Healthy,
            HealthOrder::Sick => Order::Sick,
        },
        is_healthy: status.healthy,
        changed_s: status.changed_ms as f64 / 1000.0,
        probe: status.probe.as_ref().map(|probe| ProbeRow {
            good: probe.good,
            threshold: probe.threshold,
            window: probe.window,
            last: probe.last.clone(),
        }),
    }
}

impl Life {
    /// Ends at once and waits for it: connections are closed, what is in memory is gone.
    fn end(self) {
        self.is_ending.store(true, Ordering::Relaxed);
        self.running.proxy.drain_now();
        // An error means that the workers are gone already.
        let _ = self.ended.recv();
        self.running.finish();
    }
}
