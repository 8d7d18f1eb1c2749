//! One larder at work: the proxy, its log and its admin address, started together from a plan and changed together
//! by a reload.
//!
//! It decides what a change means (taken over, refused, or only by a restart); signals are its caller's business.

use std::io::{self, IsTerminal};
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use cache::{Beneath, Disk, Successor};
use fleet::{Fleet, FleetSettings};
use parking_lot::Mutex;
use proxy::settings::{ListenAddress, RouteSettings, RouteTarget};
use proxy::{
    FleetStart, LogSink, NoKeeper, OtherNodes, Proxy, RecordSink, SocketKeeper, Start, StartError, VclProgram,
};
use proxy::{Moment, wall_now_ms};
use tls::Certificate;
use tokio::sync::{oneshot, watch};

use crate::acme_service::AcmeService;
use crate::addresses::{AdminAddress, show_listen};
use crate::admin::fleet_node::FleetNode;
use crate::admin::fleet_voice::FleetVoice;
use crate::admin::history::{AnnotationKind, HistorySampler};
use crate::admin::{Admin, AdminSocket, FleetDoor, Rights, SocketPath};
use crate::core_dumps;
use crate::disk_watch::DiskWatch;
use crate::edge_report;
use crate::expiry_watch::ExpiryWatch;
use crate::fit_connections;
use crate::fleet_plan::LogPlan;
use crate::handing_over::{Former, FormerVoice};
use crate::kernel_random;
use crate::limits;
use crate::log_writer::LogWriter;
use crate::machine_check::{self, MachineFinding};
use crate::memory_check;
use crate::name_check;
use crate::open_files::raise_limit;
use crate::own_files;
use crate::plan::{LogTarget, Plan};
use crate::process_memory::Process;
use crate::process_user;
use crate::sandbox;
use crate::say::say;
use crate::shared_plan;
use crate::tls_files::WatchedTls;
use crate::trace_export::TraceExporter;
use crate::vcl_loading::{self, Beside, Ready};
use crate::vcl_world::Machine;

pub struct Running {
    pub plan: Plan,
    pub proxy: Proxy,
    pub admin: Arc<Admin>,
    /// Where the admin answers, if it does.
    pub admin_address: Option<ListenAddress>,
    log: Option<Arc<LogWriter>>,
    machine: Arc<Machine>,
    /// Programs that came from the plan's file and are still loaded.
    from_file: Vec<String>,
    files_max: Option<u64>,
    watched_tls: Vec<(ListenAddress, WatchedTls)>,
    expiry: ExpiryWatch,
    disks: DiskWatch,
    outside: sandbox::OutsideWatch,
    /// Who orders certificates, once there were any to order.
    acme: Option<AcmeService>,
    /// Who sends spans to a collector, once there was one to send them to.
    traces: Option<TraceExporter>,
    /// Who keeps the dashboard's history, where there is an admin address.
    history: Option<HistorySampler>,
    admin_path: SocketPath,
    /// The one before this.
    pub former: FormerVoice,
}

/// What there was before this larder.
pub struct Forerunners {
    /// Who has listening sockets, and keeps ours.
    pub keeper: Arc<dyn SocketKeeper>,
    /// The one that serves still.
    pub former: Option<Former>,
    /// Others answer clients, and read from the same disks.
    pub beside: bool,
}

impl Forerunners {
    /// Nothing.
    pub fn none() -> Forerunners {
        Forerunners { keeper: Arc::new(NoKeeper), former: None, beside: false }
    }
}

fn watched(plan: &Plan) -> Vec<(ListenAddress, WatchedTls)> {
    plan.tls_files.iter().map(|(address, files)| (address.clone(), WatchedTls::new(files))).collect()
}

/// Their index comes back while the first requests are answered.
fn open_disks(plan: &Plan, beside: bool) -> Result<Option<Disk>, String> {
    if plan.disks.is_empty() {
        return Ok(None);
    }
    // Names on disks are those of the tier.
    let seed = plan.shared.as_ref().and(plan.fleet_secret.as_ref()).map(shared_plan::seed);
    let how = (seed, beside);
    Disk::open(&plan.disks, plan.disk_admission, plan.disk_leases_from, how, |told| say!("{told}")).map(Some)
}

/// All that lies beneath the memory.
fn open_beneath(plan: &Plan, forerunners: &Forerunners) -> Result<Beneath, String> {
    let disk = open_disks(plan, forerunners.beside)?;
    let shared = plan.shared.as_ref().zip(plan.fleet_secret.as_ref());
    let shared = shared.map(|(settings, secret)| shared_plan::start(settings, secret)).transpose()?;
    let seed = forerunners.former.as_ref().map(|former| former.secrets.key_seed);
    Ok(Beneath { disk, shared, seed })
}

/// Begins to hear what others purge, and to tell them.
fn join_fleet(plan: &Plan, proxy: &Proxy, voice: &FleetVoice) -> Result<Option<FleetDoor>, String> {
    let Some(log) = &plan.fleet_log else { return Ok(None) };
    if !log.place.has_password() && !log.url.starts_with("redis+unix:") {
        let what = if log.vcl { "purge and load VCLs" } else { "purge" };
        say!("warning: [fleet] log: {} asks for no password: whoever reaches it can {what}", log.url);
    }
    let settings = FleetSettings {
        name: log.name.clone().unwrap_or_else(|| proxy::server_hostname().to_owned()),
        run: kernel_random::text::<8>(),
        log: log.place.clone(),
        lease: log.lease,
        position_file: plan.fleet_position_file(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        replays: plan.shared.is_some(),
    };
    let takes_from_others = plan.shared.is_some() || plan.settings.fleet.is_some();
    let fleet = Fleet::start(settings, FleetNode::of(proxy, takes_from_others, log.vcl.then(|| plan.vcl_path.clone())))
        .map_err(|why| format!("cannot start the thread of [fleet] log: {why}"))?;
    let door = FleetDoor { fleet, acknowledge: log.acknowledge, carries_vcl: log.vcl };
    voice.join(door.clone());
    Ok(Some(door))
}

impl Running {
    /// Binds everything and starts the threads. What is wrong is a sentence for the operator. `may_log_later` keeps a
    /// log writer ready although nothing is logged now: a reload may switch it on. One that serves already lets go of its disks once all
    /// that may be wrong with the plan has been found out.
    pub fn start(
        mut plan: Plan,
        may_log_later: bool,
        records: Option<Arc<dyn RecordSink>>,
        forerunners: Forerunners,
    ) -> Result<Running, String> {
        refuse_absent_roots(&plan)?;
        let started = Moment::now();
        let files_max = raise_limit();
        fit_connections::fit(&mut plan, files_max).iter().for_each(|why| say!("warning: {why}"));
        plan_warnings(&plan).iter().for_each(|warning| say!("warning: {warning}"));
        let machine = Arc::new(Machine { records: records.clone(), ..Machine::default() });
        machine.hosts.lock().clone_from(&plan.settings.resolver.hosts);
        let vcl = load_file(&plan, FIRST_PROGRAM)?;
        let from_file = vcl.iter().map(|vcl| vcl.name.clone()).collect();
        let admin_socket = bind_admin(&plan, &*forerunners.keeper)?;
        let keeper = Arc::clone(&forerunners.keeper);
        let listeners = Proxy::bind(&plan.settings, plan.workers_count(), keeper).map_err(|e| e.to_string())?;
        let sockets = listeners.addresses().chain(admin_socket.iter().map(AdminSocket::address));
        become_user(&plan, sockets)?;
        core_dumps::allow(plan.core_dumps);
        // Both hold for threads that are started from here on.
        sandbox::enter(&plan);
        let log = match plan.log.is_some() || may_log_later {
            false => None,
            true => Some(start_log(plan.log.as_ref())?),
        };
        let sink = log.clone().map(|log| log as Arc<dyn LogSink>);
        if let Some(former) = &forerunners.former {
            former.retire()?;
        }
        let voice = Arc::new(FleetVoice::new(plan.fleet_log.as_ref().is_some_and(|log| log.unsafe_methods)));
        let fleet_start =
            |log: &LogPlan| FleetStart { lease: log.lease, others: Arc::clone(&voice) as Arc<dyn OtherNodes> };
        let start = Start {
            records,
            settings: plan.settings.clone(),
            workers: plan.workers_count(),
            log: sink,
            world: Arc::clone(&machine) as Arc<dyn vcl::World>,
            program: vcl,
            beneath: open_beneath(&plan, &forerunners)?,
            fleet: plan.fleet_log.as_ref().map(fleet_start),
            memory: Some(Arc::new(Process)),
        };
        let proxy = Proxy::start_on(start, listeners).map_err(|e| e.to_string())?;
        let failed = |why| format!("cannot start the thread that hears the former process: {why}");
        let former = forerunners.former.map(|former| former.follow(proxy.clone())).transpose().map_err(failed)?;
        if forerunners.beside && former.is_none() {
            proxy.stand_beside_unheard();
        }
        let fleet = join_fleet(&plan, &proxy, &voice)?;
        let admin = Arc::new(Admin {
            proxy: proxy.clone(),
            log: log.clone(),
            started,
            rights: Mutex::new(rights(&plan)),
            acme: Arc::default(),
            fleet: fleet.map_or_else(OnceLock::new, OnceLock::from),
            refresher: Arc::default(),
            history: Arc::default(),
            reloads: Arc::default(),
            upgrades: Arc::default(),
            closing: watch::Sender::new(false),
            config: Arc::default(),
        });
        let history = match admin_socket {
            Some(_) => Some(keep_history(&plan, &admin)?),
            None => None,
        };
        let admin_address = admin_socket.as_ref().map(|socket| socket.address().clone());
        if let Some(socket) = admin_socket {
            let failed =
                |e: io::Error| format!("cannot start the thread of the admin address: {e} (--admin off does without)");
            socket.serve(Arc::clone(&admin)).map_err(failed)?;
        }
        let admin_path = match &admin_address {
            Some(ListenAddress::Unix(path)) => SocketPath(Some(path.clone())),
            _ => SocketPath(None),
        };
        let watched_tls = watched(&plan);
        let mut running = Running {
            plan,
            proxy,
            admin,
            admin_address,
            log,
            machine,
            from_file,
            files_max,
            watched_tls,
            expiry: ExpiryWatch::default(),
            disks: DiskWatch::default(),
            outside: sandbox::OutsideWatch::default(),
            acme: None,
            traces: None,
            history,
            admin_path,
            former: former.unwrap_or_default(),
        };
        running.start_threads_of(&running.plan.clone())?;
        running.order_certificates();
        running.export_traces();
        Ok(running)
    }

    /// Starts the threads that a plan needs beside the proxy's. They have nothing to do before they are told, so a plan may still be
    /// refused behind this.
    fn start_threads_of(&mut self, plan: &Plan) -> Result<(), String> {
        if self.acme.is_none() && plan.acme.is_some() {
            let started = AcmeService::start(Arc::clone(&self.admin.acme), self.proxy.http_challenges());
            self.acme = Some(started.map_err(|e| format!("cannot start the thread that orders certificates: {e}"))?);
        }
        if self.traces.is_none() && plan.trace_collector.is_some() {
            let started = TraceExporter::start(self.proxy.export_queue());
            self.traces = Some(started.map_err(|e| format!("cannot start the thread that exports traces: {e}"))?);
        }
        Ok(())
    }

    /// Has spans and log records sent to where the plan wants them.
    fn export_traces(&self) {
        if let Some(traces) = &self.traces {
            traces.take_over(self.plan.trace_collector.clone());
        }
    }

    /// Has those ordered that the plan wants to be. The listeners are there, so an authority is answered.
    fn order_certificates(&self) {
        if let Some(acme) = &self.acme {
            acme.take_over(self.plan.acme.clone());
        }
        let listeners = self.proxy.listeners_tls().into_iter();
        for (address, _) in listeners.filter(|(_, tls)| tls.certificates().is_empty()) {
            say!(
                "https on {} begins when the first certificate has come; until then handshakes are refused",
                show_listen(&address)
            );
        }
    }

    /// Takes over a new plan, or refuses it whole. Open connections and the store stay as they are. Returns what is to
    /// be known of it.
    pub fn reload(&mut self, mut plan: Plan) -> Result<Vec<String>, String> {
        // What can fail comes before anything of the plan holds.
        sandbox::refuse_outside(&plan)?;
        refuse_absent_roots(&plan)?;
        self.start_threads_of(&plan)?;
        let mut told: Vec<String> = fit_connections::fit(&mut plan, self.files_max).into_iter().collect();
        // A program that is loaded looks names up by them; refused, they are what they were.
        let former_hosts = std::mem::replace(&mut *self.machine.hosts.lock(), plan.settings.resolver.hosts.clone());
        let reloaded = load_file(&plan, &self.free_name()).and_then(|vcl| {
            let name = vcl.as_ref().map(|vcl| vcl.name.clone());
            let refused = |error: StartError| self.refused_to_user(&error);
            let warnings = self.proxy.reload(plan.settings.clone(), vcl).map_err(refused)?;
            Ok((name, warnings))
        });
        if reloaded.is_err() {
            *self.machine.hosts.lock() = former_hosts;
        }
        let (name, warnings) = reloaded?;
        if plan.vcl_file.is_none() && self.plan.vcl_file.is_some() {
            told.push(
                "the config has no [policy] vcl any more; the VCL that is active stays until a restart".to_owned(),
            );
        }
        self.forget_former(name);
        told.extend(plan_warnings(&plan));
        told.extend(warnings);
        if plan.workers_count() != self.plan.workers_count() {
            told.push(format!("`workers` changes with a restart; there are still {}", self.plan.workers_count()));
        }
        if plan.process_user != self.plan.process_user {
            told.push("[process] user changes with a restart; larder stays who it is".to_owned());
        }
        if plan.sandbox != self.plan.sandbox {
            told.push("[process] sandbox changes with a restart; larder stays as fenced in as it is".to_owned());
        }
        told.extend(sandbox::core_outside(&plan));
        let of_disks = |plan: &Plan| (plan.disks.clone(), plan.disk_admission, plan.disk_leases_from);
        if of_disks(&plan) != of_disks(&self.plan) {
            told.push("[[disk]] and [store] change with a restart; those of the start stay".to_owned());
        }
        if plan.admin.history != self.plan.admin.history {
            told.push("[admin] history changes with a restart; the old one stays".to_owned());
        }
        let said = |plan: &Plan| plan.fleet_log.as_ref().map(|log| format!("{:?} {:?}", log.said(), log.authorities));
        if said(&plan) != said(&self.plan) {
            told.push("[fleet] changes with a restart; the old one stays".to_owned());
        }
        let of_shared = |plan: &Plan| plan.shared.clone().map(|shared| (shared, plan.fleet_secret.clone()));
        if of_shared(&plan) != of_shared(&self.plan) {
            told.push("[shared] changes with a restart; the old one stays".to_owned());
        }
        if plan.admin.address != self.plan.admin.address {
            told.push("[admin] address changes with a restart; the old one stays".to_owned());
        }
        core_dumps::allow(plan.core_dumps);
        *self.admin.rights.lock() = rights(&plan);
        self.reopen_log(&plan);
        // What only a restart changes is what the next reload compares with.
        plan.workers = Some(self.plan.workers_count());
        plan.process_user.clone_from(&self.plan.process_user);
        plan.sandbox.clone_from(&self.plan.sandbox);
        plan.admin.address = self.plan.admin.address.clone();
        plan.admin.history = self.plan.admin.history.clone();
        plan.disks.clone_from(&self.plan.disks);
        plan.fleet_log.clone_from(&self.plan.fleet_log);
        plan.shared.clone_from(&self.plan.shared);
        plan.fleet_secret.clone_from(&self.plan.fleet_secret);
        plan.disk_admission = self.plan.disk_admission;
        plan.disk_leases_from = self.plan.disk_leases_from;
        self.watched_tls = watched(&plan);
        self.plan = plan;
        self.admin.history.annotate(AnnotationKind::Reload, "configuration");
        self.order_certificates();
        self.export_traces();
        Ok(told)
    }

    /// A new address may need a right that was given up.
    fn refused_to_user(&self, error: &StartError) -> String {
        match (&self.plan.process_user, error) {
            (Some(user), StartError::Listen(why)) => format!(
                "{why}; larder has been {user} since its start ([process] user), and only a restart binds as root"
            ),
            _ => error.to_string(),
        }
    }

    /// Another process takes over: it has the disks and the addresses when this returns, and hears of what is invalidated here. False: it has
    /// not, and this one goes on.
    pub fn retire(&mut self, successor: Successor) -> bool {
        if !self.proxy.retire(successor) {
            return false;
        }
        self.admin.closing.send_replace(true);
        // Their paths are the other one's.
        self.admin_path.0 = None;
        self.acme.iter().for_each(|acme| acme.take_over(None));
        // What requests under way still invalidate, the other nodes hear of as before.
        self.admin.fleet.get().iter().for_each(|door| door.fleet.let_next_go_on());
        self.history.take().iter().for_each(HistorySampler::finish);
        true
    }

    pub fn watches_certificates(&self) -> bool {
        !self.watched_tls.is_empty()
    }

    /// How often there is something to look at.
    pub fn looks_every(&self) -> Option<Duration> {
        let of_fence = || sandbox::state().files.map(|_| limits::FENCE_LOOK_EVERY);
        let of_disks = (!self.plan.disks.is_empty()).then_some(limits::DISK_LOOK_EVERY);
        self.watches_certificates().then_some(limits::CERTIFICATE_LOOK_EVERY).or(of_disks).or_else(of_fence)
    }

    /// Takes certificates over that have changed on disk; what is broken is said once, and the old ones stay. Says of disks that have stalled.
    pub fn look_around(&mut self) {
        let now_s = wall_now_ms() / 1_000;
        for (address, watched) in &mut self.watched_tls {
            let shown = show_listen(address);
            match watched.look(now_s) {
                None => {}
                Some(Ok(tls)) => {
                    self.proxy.replace_tls(address, tls);
                    say!("the certificates of {shown} have changed, and are shown from now on");
                    watched.not_stapled().iter().for_each(|why| say!("warning: {why}"));
                }
                Some(Err(fault)) => {
                    say!("warning: the new certificates of {shown} are refused, the old ones stay: {fault}")
                }
            }
        }
        let shown = self.proxy.listeners_tls().into_iter().flat_map(|(_, tls)| tls.certificates());
        let shown: Vec<Certificate> = shown.collect();
        let sentences = self.expiry.look(shown.iter(), now_s);
        sentences.iter().for_each(|sentence| say!("warning: {sentence}"));
        let now = Moment::now();
        self.disks.look(&self.proxy.disks_status(), now.millis()).iter().for_each(|sentence| say!("{sentence}"));
        self.outside.look(&self.plan, now);
    }

    /// For the next program of the file: operators may have taken any name.
    fn free_name(&self) -> String {
        let taken: Vec<String> =
            self.proxy.vcls_status().into_iter().flat_map(|vcl| vcl.labels.into_iter().chain([vcl.name])).collect();
        let names = std::iter::once(FIRST_PROGRAM.to_owned()).chain((1..).map(|n: u64| format!("reload-{n}")));
        names.into_iter().find(|name| !taken.contains(name)).unwrap_or_default()
    }

    /// What the file said before is discarded, unless a label still stands for it.
    fn forget_former(&mut self, name: Option<String>) {
        let Some(name) = name else { return };
        self.from_file.retain(|former| self.proxy.discard_vcl(former).is_err());
        self.from_file.push(name);
    }

    /// After the file was moved away, or another one was named.
    pub fn reopen_log(&self, plan: &Plan) {
        match &self.log {
            Some(log) => {
                if let Err(error) = log.reopen(plan.log.as_ref()) {
                    say!(
                        "warning: the access log ([log] path) cannot be opened again: {error}; it goes on in the old file"
                    );
                }
            }
            None if plan.log.is_some() => {
                say!("warning: [log] is not used until a restart: larder was started without an access log")
            }
            None => {}
        }
    }

    /// `NAME ADDRESS` lines, there whole or not at all.
    pub fn write_ports_file(&self, path: &Path) -> Result<(), String> {
        let mut lines = String::new();
        for (index, (_, address)) in self.proxy.listen_addresses().iter().enumerate() {
            let name = if index == 0 { "listen".to_owned() } else { format!("listen.{index}") };
            lines.push_str(&format!("{name} {}\n", show_listen(address)));
        }
        if let Some(address) = &self.admin_address {
            lines.push_str(&format!("admin {}\n", show_listen(address)));
        }
        lab::write_whole(path, lines.as_bytes()).map_err(|error| format!("--ports-file: {error}"))
    }

    /// Told when all workers have ended.
    pub fn ended(&self) -> oneshot::Receiver<()> {
        let (tell, told) = oneshot::channel();
        let proxy = self.proxy.clone();
        std::thread::spawn(move || {
            proxy.join();
            // Nobody listens when the program ended otherwise.
            let _ = tell.send(());
        });
        told
    }

    /// After the workers: the last lines of the log.
    pub fn finish(&self) {
        edge_report::leave(&self.proxy, self.admin.started);
        self.admin.fleet.get().iter().for_each(|door| door.fleet.finish(limits::FLEET_GOOD_BYE));
        self.history.iter().for_each(HistorySampler::finish);
        if let Some(traces) = &self.traces {
            traces.finish(limits::COLLECTOR_FLUSH_TIMEOUT);
        }
        if let Some(log) = &self.log {
            log.finish(limits::LOG_FLUSH_TIMEOUT);
        }
    }
}

/// What the plan's file is called when it is loaded first, as in Varnish.
const FIRST_PROGRAM: &str = "boot";

/// Reads and checks the VCL of the plan, if it has one, and says in a line what it is.
fn load_file(plan: &Plan, name: &str) -> Result<Option<VclProgram>, String> {
    let Some(file) = &plan.vcl_file else { return Ok(None) };
    let colour = io::stderr().is_terminal();
    let loaded = {
        let origins = plan.settings.origins_for_programs();
        vcl_loading::from_file(name, file, Beside { vcl_path: &plan.vcl_path, origins: &origins }, colour)
    };
    let Ready { program, summary, warnings, .. } =
        loaded.map_err(|drawn| format!("the VCL {} is refused:\n{}", file.display(), drawn.trim_end()))?;
    let hint = if warnings.is_empty() { "" } else { " (larder check shows them)" };
    say!("VCL {name}: {}: {summary}{hint}", file.display());
    Ok(Some(program))
}

/// Root binds, and is root no longer. What is opened behind this is opened as that user. `sockets`: what was bound.
fn become_user<'a>(plan: &Plan, sockets: impl Iterator<Item = &'a ListenAddress>) -> Result<(), String> {
    let Some(word) = &plan.process_user else { return Ok(()) };
    let user = word.resolve().map_err(|why| format!("{why} ([process] user, --user)"))?;
    for address in sockets {
        if let ListenAddress::Unix(path) = address {
            user.give(path)?;
        }
    }
    user.become_it()?;
    // Root may read any of them.
    refuse_absent_roots(plan)?;
    let own = own_files::of(plan, None);
    for file in process_user::cannot_read(&own) {
        let (file, user) = (file.display(), user.shown());
        say!("warning: {user} ([process] user) may not read {file}: a reload needs it");
    }
    Ok(())
}

fn plan_warnings(plan: &Plan) -> Vec<String> {
    let mut warnings = plan.warnings();
    let leads_to_origin = |route: &RouteSettings| matches!(route.target, RouteTarget::Origin(_));
    if plan.vcl_file.is_some() && plan.settings.routes.iter().any(leads_to_origin) {
        let what = "a VCL decides whom it asks: --origin and [origin.NAME] are asked only where it names them";
        warnings.push(what.to_owned());
    }
    let of_roots = machine_check::roots(plan).into_iter().filter(|finding| !finding.is_fatal);
    warnings.extend(of_roots.map(|finding| finding.message));
    warnings.extend(memory_check::beyond_bounds(plan).into_iter().map(MachineFinding::in_a_line));
    warnings
}

/// A directory of files that cannot be read: every request for it would fail.
fn refuse_absent_roots(plan: &Plan) -> Result<(), String> {
    let fatal = machine_check::roots(plan).into_iter().filter(|finding| finding.is_fatal);
    let why: Vec<String> = fatal.map(|finding| finding.message).collect();
    if why.is_empty() { Ok(()) } else { Err(why.join("; ")) }
}

fn rights(plan: &Plan) -> Rights {
    Rights {
        server_name: plan.settings.server_name.clone(),
        token: plan.admin.token.clone(),
        debug: plan.settings.debug,
        vcl_path: plan.vcl_path.clone(),
    }
}

fn start_log(target: Option<&LogTarget>) -> Result<Arc<LogWriter>, String> {
    let started = LogWriter::start(target, limits::LOG_QUEUE_BYTES_MAX);
    started.map(|(log, _thread)| log).map_err(|e| format!("cannot open the access log (--log, [log] path): {e}"))
}

fn keep_history(plan: &Plan, admin: &Admin) -> Result<HistorySampler, String> {
    let file = plan.history_file();
    let started = HistorySampler::start(admin.proxy.clone(), Arc::clone(&admin.history), file.as_deref());
    started.map_err(|e| {
        format!("cannot start the thread that keeps the dashboard's history: {e} (--admin off does without)")
    })
}

fn bind_admin(plan: &Plan, keeper: &dyn SocketKeeper) -> Result<Option<AdminSocket>, String> {
    let AdminAddress::At(address) = &plan.admin.address else { return Ok(None) };
    match AdminSocket::bind(address, keeper) {
        Ok(socket) => Ok(Some(socket)),
        Err(error) => {
            let why = match error.kind() {
                io::ErrorKind::AddrInUse => "the address is in use".to_owned(),
                _ => error.to_string(),
            };
            let sentence = format!(
                "cannot listen on the admin address {} (--admin, [admin] address): {why}",
                show_listen(address)
            );
            if plan.admin.asked_for {
                return Err(sentence);
            }
            say!("warning: {sentence}; larder goes on without it");
            Ok(None)
        }
    }
}

/// Says which names of origins do not resolve, when that is known.
pub fn warn_of_names(plan: &Plan) {
    let plan = plan.clone();
    std::thread::spawn(move || name_check::unresolved(&plan).iter().for_each(|why| say!("warning: {why}")));
}
