//! `larder serve`: start what the flags and the config say, then do what signals say.

use std::io::IsTerminal;
use std::process::ExitCode;

use proxy::settings::{ListenAddress, ListenMode, OriginSettings, OriginUrl, RouteTarget};
use proxy::{Moment, manager_now_us, route_name, wall_now_ms};

use crate::addresses::{show_fastcgi, show_listen, show_origin};
use crate::config_command;
use crate::flags::ServeFlags;
use crate::held_config::ReadConfig;
use crate::limits::{CERTIFICATE_LOOK_EVERY, ENDING_MARGIN};
use crate::notify_socket::{NotifySocket, ServiceNotice};
use crate::plan::Plan;
use crate::plan_changes;
use crate::process_user;
use crate::quantities::show_size;
use crate::reload_board::ReloadOutcome;
use crate::running::{Running, warn_of_names};
use crate::say::say;
use crate::signals::{Heard, Signals, Told};

const FAILED: ExitCode = ExitCode::FAILURE;
/// As clap says it of flags that do not fit together.
const WRONG_FLAGS: u8 = 2;

pub fn serve(flags: ServeFlags) -> ExitCode {
    let mut notify = NotifySocket::of_environment();
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
    let mut running = match Running::start(plan, flags.config.is_some(), None) {
        Ok(running) => running,
        Err(sentence) => return fail(&sentence),
    };
    if running.plan.process_user.is_none() && process_user::is_root() {
        process_user::warn_of_root();
    }
    hold(&running, &flags, read);
    if let Some(Err(sentence)) = flags.ports_file.as_deref().map(|path| running.write_ports_file(path)) {
        return fail(&sentence);
    }
    introduce(&running);
    warn_of_names(&running.plan);
    notify.tell(&ServiceNotice::Ready { status: describe(&running.plan) });
    obey(&mut signals, &mut running, &flags, &mut notify)
}

const NO_ORIGIN: &str = "error: there is nothing to serve: give --origin http://HOST:PORT, --root DIR, \
                         --forward ADDRESS, a config with [origin.NAME] or a route's root, or --vcl FILE (larder serve --help)";

fn fail(sentence: &str) -> ExitCode {
    say!("error: {sentence}");
    FAILED
}

/// What signals ask for, until the workers have ended.
fn obey(signals: &mut Signals, running: &mut Running, flags: &ServeFlags, notify: &mut NotifySocket) -> ExitCode {
    let mut ended = running.ended();
    let mut orders = running.admin.reloads.hear();
    let mut ends_asked = 0;
    loop {
        if ends_asked == 0 {
            notify.beat(Moment::now(), || running.proxy.take_pulse());
        }
        let looks = running.watches_certificates().then_some(CERTIFICATE_LOOK_EVERY);
        let patience = looks.into_iter().chain(notify.patience()).min();
        let told = match signals.wait_beside(&mut ended, patience, orders.recv()) {
            Heard::Order(order) => {
                let outcome = if ends_asked > 0 { not_reloading() } else { reload(running, flags, notify) };
                // Who has ordered it may be gone.
                order.into_iter().for_each(|order| drop(order.send(outcome.clone())));
                continue;
            }
            Heard::Told(told) => told,
        };
        match told {
            Told::End if ends_asked == 0 => {
                ends_asked += 1;
                let grace = running.plan.settings.limits.drain_grace.as_secs();
                say!(
                    "finishing the requests under way, for up to {grace} s (limits.drain_grace); another signal ends at once"
                );
                tell_of_end(notify, running);
                running.proxy.drain();
            }
            Told::End => {
                ends_asked += 1;
                say!("ending at once");
                running.proxy.drain_now();
            }
            Told::Reload if ends_asked > 0 => drop(not_reloading()),
            Told::Reload => drop(reload(running, flags, notify)),
            Told::Nothing => running.look_at_certificates(),
            Told::Ended => {
                running.finish();
                return if ends_asked > 0 {
                    ExitCode::SUCCESS
                } else {
                    fail("all workers have ended, and nobody asked for it; the lines above may say why")
                };
            }
        }
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

/// A reload, between two words to the service manager. What is refused stands in its status until the next one is taken.
fn reload(running: &mut Running, flags: &ServeFlags, notify: &NotifySocket) -> ReloadOutcome {
    notify.tell(&ServiceNotice::Reloading { mono_us: manager_now_us() });
    let outcome = read_again(running, flags);
    let status = match &outcome {
        ReloadOutcome::Taken { .. } => describe(&running.plan),
        ReloadOutcome::Refused { place, .. } => {
            format!("the last reload was refused: {place}; {}", describe(&running.plan))
        }
    };
    notify.tell(&ServiceNotice::Ready { status });
    outcome
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
