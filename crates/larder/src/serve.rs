//! `larder serve`: start what the flags and the config say, then do what signals and other processes say.

use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::Arc;

use proxy::settings::{ListenAddress, ListenMode, OriginSettings, OriginUrl, RouteTarget};
use proxy::{Moment, Proxy, manager_now_us, route_name, vital_thread, wall_now_ms};
use tokio::sync::mpsc;

use crate::addresses::{show_fastcgi, show_listen, show_origin};
use crate::config_command;
use crate::flags::ServeFlags;
use crate::handing_over::{self, Heir};
use crate::held_config::ReadConfig;
use crate::limits::{
    ENDING_MARGIN, FORMER_LOOK_EVERY, SAME_ORDER, SUCCESSOR_GOOD_BYE, UPGRADE_ANSWER_TIME, UPGRADE_PATIENCE,
};
use crate::notify_socket::{NotifySocket, ServiceNotice};
use crate::plan::Plan;
use crate::plan_changes;
use crate::process_flags::ProcessRole;
use crate::process_user;
use crate::quantities::show_size;
use crate::reload_board::{ReloadOrder, ReloadOutcome};
use crate::running::{Running, warn_of_names};
use crate::say::say;
use crate::serving_place::{PlaceOrder, ServingPlace};
use crate::signals::{Heard, Signals, Told};
use crate::supervised;
use crate::upgrade_board::{NoUpgrade, UpgradeOutcome};

const FAILED: ExitCode = ExitCode::FAILURE;
/// As clap says it of flags that do not fit together.
const WRONG_FLAGS: u8 = 2;

pub fn serve(flags: ServeFlags) -> ExitCode {
    match flags.process.role() {
        ProcessRole::Supervisor => supervised::supervise(false),
        ProcessRole::Successor => supervised::supervise(true),
        role @ (ProcessRole::Supervised | ProcessRole::Alone) => serve_here(flags, role),
    }
}

fn serve_here(flags: ServeFlags, role: ProcessRole) -> ExitCode {
    let mut place = match ServingPlace::take(role) {
        Ok(place) => place,
        Err(sentence) => return fail(&sentence),
    };
    let mut signals = match Signals::listen() {
        Ok(signals) => signals,
        Err(error) => return fail(&format!("cannot listen for signals: {error}")),
    };
    let plan = match flags.plan_here() {
        Ok(plan) => plan,
        Err(error) => {
            use std::io::Write;
            let _ = write!(std::io::stderr(), "{}", error.show(std::io::stderr().is_terminal()));
            return FAILED;
        }
    };
    if !plan.serves_something() {
        say!("{}", NO_ORIGIN);
        return if flags.config.is_some() { FAILED } else { ExitCode::from(WRONG_FLAGS) };
    }
    let read = plan.clone();
    let running = match Running::start(plan, flags.config.is_some(), None, place.forerunners()) {
        Ok(running) => running,
        Err(sentence) => return fail(&sentence),
    };
    if running.plan.process_user.is_none() && process_user::is_root() {
        process_user::warn_of_root();
    }
    // Who sees the ports file may order one.
    let reloads = running.admin.reloads.hear();
    hold(&running, &flags, read);
    if let Some(Err(sentence)) = flags.ports_file.as_deref().map(|path| running.write_ports_file(path)) {
        return fail(&sentence);
    }
    introduce(&running);
    warn_of_names(&running.plan);
    if let Some(link) = &place.link {
        running.admin.upgrades.lead_to(Arc::clone(link), place.deaths);
    }
    if let Err(sentence) = place.serves() {
        return fail(&sentence);
    }
    let notify = place.notify_socket();
    if let Err(error) = say_that_it_lives(place.notify_socket(), running.proxy.clone()) {
        return fail(&format!("cannot start the thread that says that all go round: {error}"));
    }
    notify.tell(&ServiceNotice::Ready { status: describe(&running.plan) });
    Obedience { flags, running, place, notify, ends_asked: 0, end_asked_at: None, retired: None, is_succeeded: false }
        .obey(&mut signals, reloads)
}

/// Where somebody waits to hear that the workers go round. The main thread may be held up, such as by a file system that does not answer,
/// while everybody is served.
fn say_that_it_lives(mut notify: NotifySocket, proxy: Proxy) -> std::io::Result<()> {
    let Some(every) = notify.patience() else { return Ok(()) };
    let beat = move || {
        while !proxy.is_draining() {
            notify.beat(Moment::now(), || proxy.take_pulse());
            std::thread::sleep(every);
        }
    };
    vital_thread("larder-pulse", "what says that all go round", beat).map(drop)
}

const NO_ORIGIN: &str = "error: there is nothing to serve: give --origin http://HOST:PORT, --root DIR, \
                         --forward ADDRESS, a config with [origin.NAME] or a route's root, or --vcl FILE (larder serve --help)";

fn fail(sentence: &str) -> ExitCode {
    say!("error: {sentence}");
    FAILED
}

/// The main thread, between those who want something of it.
struct Obedience {
    flags: ServeFlags,
    running: Running,
    place: ServingPlace,
    notify: NotifySocket,
    ends_asked: u32,
    end_asked_at: Option<Moment>,
    /// The one that takes over from this process.
    retired: Option<Heir>,
    /// It serves.
    is_succeeded: bool,
}

/// What is wanted, besides signals.
enum MainOrder {
    Reload(Option<ReloadOrder>),
    OfPlace(PlaceOrder),
}

impl Obedience {
    /// Does what is wanted, until the workers have ended.
    fn obey(mut self, signals: &mut Signals, mut reloads: mpsc::Receiver<ReloadOrder>) -> ExitCode {
        let mut ended = self.running.ended();
        loop {
            let patience = self.running.looks_every();
            let wanted = async {
                tokio::select! {
                    order = reloads.recv() => MainOrder::Reload(order),
                    order = self.place.next_order() => MainOrder::OfPlace(order),
                }
            };
            match signals.wait_beside(&mut ended, patience, wanted) {
                Heard::Order(MainOrder::Reload(order)) => {
                    let outcome = if self.is_ending() { not_reloading() } else { self.reload() };
                    // Who has ordered it may be gone.
                    order.into_iter().for_each(|order| drop(order.send(outcome.clone())));
                }
                Heard::Order(MainOrder::OfPlace(order)) => self.take_place(order),
                Heard::Told(Told::End) => self.end(),
                Heard::Told(Told::Reload) if self.is_ending() => drop(not_reloading()),
                Heard::Told(Told::Reload) => drop(self.reload()),
                Heard::Upgrade => self.ask_for_upgrade(),
                Heard::Told(Told::Nothing) => self.running.look_around(),
                Heard::Told(Told::Ended) => return self.finish(signals),
            }
        }
    }

    /// Nobody new is let in any more.
    fn is_ending(&self) -> bool {
        self.ends_asked > 0 || self.retired.is_some()
    }

    fn end(&mut self) {
        let now = Moment::now();
        let is_same = |before: Moment| u128::from(before.micros_until(now)) < SAME_ORDER.as_micros();
        if self.end_asked_at.replace(now).is_some_and(is_same) && self.place.link.is_some() {
            // Whoever signals all processes named larder means one thing.
            return;
        }
        self.ends_asked += 1;
        if self.ends_asked > 1 {
            say!("ending at once");
            return self.running.proxy.drain_now();
        }
        let grace = self.running.plan.settings.limits.drain_grace;
        self.place.link.iter().for_each(|link| drop(link.alive(grace + ENDING_MARGIN)));
        let grace = grace.as_secs();
        say!("finishing the requests under way, for up to {grace} s (limits.drain_grace); another signal ends at once");
        tell_of_end(&self.notify, &self.running);
        self.running.proxy.drain();
    }

    /// USR2 of whoever does not know which process supervises.
    fn ask_for_upgrade(&self) {
        if self.is_ending() {
            return;
        }
        match self.running.admin.upgrades.begin() {
            Ok(()) => {}
            Err(NoUpgrade::Alone) => {
                say!("not upgraded: there is no supervisor that could start another process (--no-supervisor)");
            }
            Err(_) => say!("not upgraded: the supervisor is gone"),
        }
    }

    fn take_place(&mut self, order: PlaceOrder) {
        match order {
            PlaceOrder::Heir(end) => self.place.meet(end, self.running.proxy.key_seed()),
            PlaceOrder::Retire(heir) if self.is_ending() => heir.refuse("it is ending"),
            PlaceOrder::Retire(heir) => self.retire(heir),
            PlaceOrder::Succeeded { process } => self.succeeded(&UpgradeOutcome::Succeeded { process }),
            PlaceOrder::NotSucceeded(why) => self.succeeded(&UpgradeOutcome::Refused { why }),
            PlaceOrder::Alone => self.running.proxy.former_has_left(),
        }
    }

    fn retire(&mut self, heir: Heir) {
        let successor = match heir.successor() {
            Ok(successor) => successor,
            Err(error) => return heir.refuse(&format!("no thread can be started: {error}")),
        };
        // What came of an earlier one is not what comes of this one.
        self.is_succeeded = false;
        if !self.running.retire(successor) {
            return heir.refuse("a disk is not done with writing in time");
        }
        let grace = self.running.plan.settings.limits.upgrade_grace;
        let said = self.place.link.as_ref().map_or(Ok(()), |link| link.leaving(grace)).and_then(|()| heir.retired());
        let proxy = self.running.proxy.clone();
        std::thread::spawn(move || proxy.give_memory_back());
        if let Err(error) = said {
            say!("warning: the process that takes over is gone: {error}");
        }
        handing_over::say_retired(self.running.plan.settings.limits.upgrade_grace);
        self.retired = Some(heir);
    }

    /// Or not. Who waits for the answer has to get it before this process may end.
    fn succeeded(&mut self, outcome: &UpgradeOutcome) {
        self.is_succeeded = true;
        if self.running.admin.upgrades.settle(outcome) > 0 && self.retired.is_some() {
            std::thread::sleep(UPGRADE_ANSWER_TIME);
        }
    }

    /// All workers have ended.
    fn finish(mut self, signals: &mut Signals) -> ExitCode {
        if self.retired.is_some() && self.ends_asked == 0 {
            self.wait_for_outcome(signals);
        }
        self.pass_on_of_former(signals);
        self.running.finish();
        self.retired.iter().for_each(|heir| heir.finish(SUCCESSOR_GOOD_BYE));
        if self.is_ending() {
            return ExitCode::SUCCESS;
        }
        fail("all workers have ended, and nobody asked for it; the lines above may say why")
    }

    /// What the process before this one still invalidates goes through this one to the next.
    fn pass_on_of_former(&mut self, signals: &mut Signals) {
        let (_tell, mut never) = tokio::sync::oneshot::channel();
        while self.retired.is_some() && self.ends_asked == 0 && self.running.former.is_heard() {
            match signals.wait_beside(&mut never, Some(FORMER_LOOK_EVERY), self.place.next_order()) {
                Heard::Order(order) => self.take_place(order),
                Heard::Told(Told::End) => return,
                Heard::Upgrade | Heard::Told(_) => {}
            }
        }
    }

    /// Somebody may have asked what comes of the upgrade.
    fn wait_for_outcome(&mut self, signals: &mut Signals) {
        let (_tell, mut never) = tokio::sync::oneshot::channel();
        while !self.is_succeeded {
            match signals.wait_beside(&mut never, Some(UPGRADE_PATIENCE), self.place.next_order()) {
                Heard::Order(order) => self.take_place(order),
                Heard::Upgrade | Heard::Told(Told::Reload) => {}
                Heard::Told(Told::End | Told::Nothing | Told::Ended) => return,
            }
        }
    }

    /// A reload, between two words to the service manager. What is refused stands in its status until the next one is taken.
    fn reload(&mut self) -> ReloadOutcome {
        let (running, notify) = (&mut self.running, &self.notify);
        notify.tell(&ServiceNotice::Reloading { mono_us: manager_now_us() });
        let outcome = read_again(running, &self.flags);
        let status = match &outcome {
            ReloadOutcome::Taken { .. } => describe(&running.plan),
            ReloadOutcome::Refused { place, .. } => {
                format!("the last reload was refused: {place}; {}", describe(&running.plan))
            }
        };
        notify.tell(&ServiceNotice::Ready { status });
        outcome
    }
}

fn tell_of_end(notify: &NotifySocket, running: &Running) {
    let grace = running.plan.settings.limits.drain_grace;
    let status = format!("finishing the requests under way, for up to {} s (limits.drain_grace)", grace.as_secs());
    notify.tell(&ServiceNotice::Stopping { grace: grace + ENDING_MARGIN, status });
}

const REFUSED: &str = "the new config is refused, the old one stays";

fn not_reloading() -> ReloadOutcome {
    say!("not reloading: larder is ending");
    ReloadOutcome::refused("larder is ending".to_owned())
}

/// HUP, or an order over the admin address: the config anew, and the log's file anew. What comes of it is said here, and told to who asks later.
fn read_again(running: &mut Running, flags: &ServeFlags) -> ReloadOutcome {
    if flags.config.is_none() && flags.vcl.is_none() && flags.tls.addresses.is_empty() {
        running.reopen_log(&running.plan);
        let log = if running.plan.log.is_some() { "; the access log is opened anew" } else { "" };
        let why = format!("there is no --config, --vcl or --cert to reload{log}");
        say!("{why}");
        return ReloadOutcome::refused(why);
    }
    let outcome = match take_over(running, flags) {
        Ok((changed, warnings)) => {
            warnings.iter().for_each(|warning| say!("warning: {warning}"));
            say!("reloaded: {}; {}", plan_changes::in_a_line(&changed), describe(&running.plan));
            ReloadOutcome::Taken { changed, warnings }
        }
        Err(refused) => refused,
    };
    running.admin.reloads.note(wall_now_ms(), &outcome);
    outcome
}

/// What is new, and what is to be known of it; or why nothing is.
fn take_over(running: &mut Running, flags: &ServeFlags) -> Result<(Vec<String>, Vec<String>), ReloadOutcome> {
    let plan = flags.plan_here().map_err(|error| {
        let shown = error.show(std::io::stderr().is_terminal());
        say!("{REFUSED}:\n{}", shown.trim_end());
        ReloadOutcome::Refused { why: error.show(false).trim_end().to_owned(), place: error.place() }
    })?;
    let refused = |why: String| {
        say!("{REFUSED}: {why}");
        ReloadOutcome::refused(why)
    };
    if !plan.serves_something() {
        return Err(refused("it has no origin, no root and no forward proxy".to_owned()));
    }
    let (before, read) = (running.plan.clone(), plan.clone());
    let mut warnings = running.reload(plan).map_err(refused)?;
    hold(running, flags, read);
    if let Some(Err(sentence)) = flags.ports_file.as_deref().map(|path| running.write_ports_file(path)) {
        warnings.push(sentence);
    }
    Ok((plan_changes::between(&before, &running.plan), warnings))
}

/// Has the admin address tell what holds, and what the file says by now. `read`: what was made of flags and file.
fn hold(running: &Running, flags: &ServeFlags, read: Plan) {
    let Ok(text) = config_command::without_secrets(flags) else { return };
    let file = flags.config.as_ref().map(|file| std::path::absolute(file).unwrap_or_else(|_| file.clone()));
    let flags = flags.clone();
    let by_now = move || match flags.plan_here() {
        Ok(plan) => Ok(plan_changes::between(&read, &plan)),
        Err(error) => Err(error.place()),
    };
    running.admin.config.hold(ReadConfig { text, file, wall_ms: wall_now_ms(), by_now: Box::new(by_now) });
}

/// The lines an operator sees first: where it is, and what is behind it.
fn introduce(running: &Running) {
    for (settings, address) in running.proxy.listen_addresses() {
        let note = if settings.proxy_protocol { " (PROXY protocol)" } else { "" };
        let url = show_url(&address, settings.tls.is_some());
        match settings.mode {
            ListenMode::Accelerate | ListenMode::Within { .. } => say!("listening on {url}{note}"),
            ListenMode::Forward => say!("a forward proxy on {url}{note}"),
            ListenMode::Redirect { https_port } => say!("{url}{note} leads to https://, port {https_port}"),
        }
    }
    let settings = &running.plan.settings;
    // What a preset says of single paths has no line of its own.
    let written: Vec<_> = settings.routes.iter().filter(|route| !route.yields_to_paths).collect();
    for route in &written {
        // As metrics and explanations call it.
        let name = route_name(route);
        let is_all = written.len() == 1 && name == "/";
        match route.target {
            RouteTarget::Origin(at) => {
                let origin = &settings.origins[at];
                let urls = show_urls(origin);
                match is_all {
                    true => say!("in front of {urls}"),
                    false => say!("{name} goes to {} ({urls})", origin.name),
                }
            }
            RouteTarget::Closed => say!("{name} is closed"),
            RouteTarget::Itself => say!("{name} is answered by its route"),
            RouteTarget::StatusPage(_) => say!("{name} is answered with the server's numbers"),
            RouteTarget::Root(at) => {
                let root = &settings.roots[at];
                let directory = root.directory.display();
                let scripts = root.scripts.as_ref().map(|scripts| &settings.origins[scripts.origin]);
                let run_by =
                    scripts.map(|origin| format!(", whose scripts run in {} ({})", origin.name, show_urls(origin)));
                let run_by = run_by.unwrap_or_default();
                match is_all {
                    true => say!("serving the files of {directory}{run_by}"),
                    false => say!("{name} is served from the files of {directory}{run_by}"),
                }
            }
            RouteTarget::Memcached(at) => {
                let servers: Vec<String> =
                    settings.memcached[at].servers.iter().map(|s| s.address.to_string()).collect();
                say!("{name} is memcached's ({})", servers.join(", "));
            }
        }
    }
    let admin = match &running.admin_address {
        Some(address @ ListenAddress::Tcp(_)) => {
            format!("; dashboard, /status and /metrics on {}/", show_url(address, false))
        }
        Some(address) => format!("; /status and /metrics on {}", show_listen(address)),
        None => String::new(),
    };
    say!("version {}, {}{admin}", env!("CARGO_PKG_VERSION"), describe(&running.plan));
}

fn show_urls(origin: &OriginSettings) -> String {
    let (protocol, show) = match origin.fastcgi {
        Some(_) => ("FastCGI at ", show_fastcgi as fn(&OriginUrl) -> String),
        None => ("", show_origin as fn(&OriginUrl) -> String),
    };
    let urls: Vec<String> = origin.urls.iter().map(show).collect();
    format!("{protocol}{}", urls.join(", "))
}

fn describe(plan: &Plan) -> String {
    let workers = match plan.workers_count() {
        1 => "1 worker".to_owned(),
        n => format!("{n} workers"),
    };
    format!("{workers}, {} of memory", show_size(plan.settings.memory_bytes_max as u64))
}

fn show_url(address: &ListenAddress, speaks_tls: bool) -> String {
    match address {
        ListenAddress::Tcp(address) if speaks_tls => format!("https://{address}"),
        ListenAddress::Tcp(address) => format!("http://{address}"),
        ListenAddress::Unix(_) => show_listen(address),
    }
}
