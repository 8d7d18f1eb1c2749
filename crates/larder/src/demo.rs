//! `larder demo`: a slow site of our own, larder in front of it, the difference it makes, and then live numbers.

mod before_after;
mod demo_site;
mod live_view;
mod slow_origin;

use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

use proxy::settings::{ListenAddress, ListenerSettings, OriginUrl};
use serde_json::json;
use tokio::sync::oneshot;

use crate::addresses::{AdminAddress, show_listen};
use crate::flags::DemoFlags;
use crate::limits;
use crate::plan::Plan;
use crate::quantities::counted;
use crate::running::{Forerunners, Running};
use crate::say::say;
use crate::signals::{Signals, Told};
use before_after::{Side, measure, table};
use live_view::{LiveView, ViewStyle};
use slow_origin::SlowOrigin;

/// Through larder so many times more requests are sent, or the measurement would be over before it began.
const AFTER_FACTOR: usize = 20;

/// Prints to standard output; a reader that has gone away ends nothing.
macro_rules! show {
    ($($word:tt)*) => {{ let _ = writeln!(std::io::stdout(), $($word)*); }};
}

pub fn demo(flags: &DemoFlags) -> ExitCode {
    let started = Signals::listen().map_err(|e| format!("cannot listen for signals: {e}")).and_then(|signals| {
        let origin = SlowOrigin::start().map_err(|e| format!("the demo's origin cannot start: {e}"))?;
        Ok((signals, Running::start(plan(flags, &origin), false, None, Forerunners::none())?, origin))
    });
    match started {
        Ok((mut signals, running, origin)) => run(flags, &mut signals, &running, &origin),
        Err(sentence) => {
            say!("error: {sentence}");
            ExitCode::FAILURE
        }
    }
}

fn plan(flags: &DemoFlags, origin: &SlowOrigin) -> Plan {
    let any_port = ListenAddress::Tcp((std::net::Ipv4Addr::LOCALHOST, 0).into());
    let mut plan = Plan::default();
    // Its origin is a part of the same process.
    plan.sandbox.is_on = false;
    plan.accelerate(vec![OriginUrl::Tcp { host: origin.address.ip().to_string(), port: origin.address.port() }]);
    let address = flags.listen.clone().unwrap_or_else(|| any_port.clone());
    plan.settings.listeners = vec![ListenerSettings::at(address)];
    plan.settings.memory_bytes_max = limits::DEMO_MEMORY_BYTES;
    plan.admin.address = flags.admin.clone().unwrap_or(AdminAddress::At(any_port));
    plan.admin.asked_for = true;
    plan
}

fn run(flags: &DemoFlags, signals: &mut Signals, running: &Running, origin: &SlowOrigin) -> ExitCode {
    let mut ended = running.ended();
    let Some((_, address)) = running.proxy.listen_addresses().into_iter().next() else {
        say!("error: the demo's larder listens on no address (--listen)");
        return ExitCode::FAILURE;
    };
    if !flags.json {
        introduce(running, origin, &address);
    }
    let paths = origin.stored_paths();
    let requests = flags.requests as usize;
    let count_origin = |side: fn(&ListenAddress, &[&'static str], usize) -> Side, address: &ListenAddress, n: usize| {
        let asked = origin.requests();
        let mut side = side(address, &paths, n);
        side.origin_requests = origin.requests() - asked;
        side
    };
    let before = count_origin(measure, &ListenAddress::Tcp(origin.address), requests);
    let after = count_origin(measure, &address, requests.saturating_mul(AFTER_FACTOR));
    let failed = before.failed + after.failed;
    if flags.json {
        show!("{}", json!({ "origin": before, "larder": after }));
    } else {
        show!("\n{} clients ask for {} pages in turn:\n", limits::DEMO_CLIENTS, paths.len());
        show!("{}", table(&before, &after));
    }
    if failed > 0 {
        say!("{} failed", counted(failed as u64, "request"));
    }
    if !flags.once {
        watch(signals, &mut ended, running, flags.json);
    }
    running.proxy.drain();
    while signals.wait(&mut ended, None) != Told::Ended {
        running.proxy.drain_now();
    }
    running.finish();
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn introduce(running: &Running, origin: &SlowOrigin, address: &ListenAddress) {
    let url = |address: &ListenAddress| match address {
        ListenAddress::Tcp(address) => format!("http://{address}/"),
        ListenAddress::Unix(_) => show_listen(address),
    };
    let think_ms = limits::DEMO_THINK_TIME.as_millis();
    show!("the site      http://{}/   ({think_ms} ms of thought for each answer)", origin.address);
    show!("larder        {}   (in front of it)", url(address));
    if let Some(admin) = &running.admin_address {
        show!("dashboard     {}", url(admin));
    }
}

/// Live numbers until a signal, and a word at the end.
fn watch(signals: &mut Signals, ended: &mut oneshot::Receiver<()>, running: &Running, quiet: bool) {
    if !quiet {
        show!("Open larder's address in a browser. Ctrl-C ends the demo.\n");
    }
    let mut view = LiveView::new(view_style(), running.admin.observe());
    loop {
        match signals.wait(ended, Some(Duration::from_secs(1))) {
            Told::Nothing if quiet => {}
            Told::Nothing => put(&view.second(running.admin.observe())),
            Told::Reload => {}
            Told::End | Told::Ended => break,
        }
    }
    if !quiet {
        put(&view.goodbye(&running.admin.observe()));
    }
}

/// A picture on a terminal that can draw one, in colours unless NO_COLOR says otherwise.
fn view_style() -> ViewStyle {
    let is_dumb = std::env::var_os("TERM").is_some_and(|name| name == "dumb");
    match std::io::stdout().is_terminal() && !is_dumb {
        true => ViewStyle::Picture { colours: std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()) },
        false => ViewStyle::Lines,
    }
}

/// Prints a text that has its line feeds; a reader that has gone away ends nothing.
fn put(text: &str) {
    let mut out = std::io::stdout();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
