//! `larder demo`: a slow site of our own, larder in front of it, the difference it makes, and then live numbers.

mod before_after;
mod demo_site;
mod slow_origin;

use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

use proxy::settings::{ListenAddress, ListenerSettings, OriginUrl};
use serde_json::json;
use tokio::sync::oneshot;

use crate::addresses::{AdminAddress, show_listen};
use crate::admin::observation::Observation;
use crate::flags::DemoFlags;
use crate::limits;
use crate::plan::Plan;
use crate::quantities::{show_micros, show_size};
use crate::running::Running;
use crate::say::say;
use crate::signals::{Signals, Told};
use before_after::{Side, measure, table};
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
        Ok((signals, Running::start(plan(flags, &origin), false, None)?, origin))
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
        say!("{failed} requests failed");
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

/// Live numbers until a signal: one line that is written again and again on a terminal, else a line for each second
/// in which somebody asked for something.
fn watch(signals: &mut Signals, ended: &mut oneshot::Receiver<()>, running: &Running, quiet: bool) {
    let terminal = std::io::stdout().is_terminal();
    if !quiet {
        show!("Open larder's address in a browser. Ctrl-C ends the demo.\n");
    }
    let mut last = running.admin.observe();
    loop {
        match signals.wait(ended, Some(Duration::from_secs(1))) {
            Told::Nothing if quiet => {}
            Told::Nothing => {
                let now = running.admin.observe();
                let line = live_line(&last, &now);
                if terminal {
                    let _ = write!(std::io::stdout(), "\r\x1b[K{line}").and_then(|()| std::io::stdout().flush());
                } else if now.counter("requests") != last.counter("requests") {
                    show!("{line}");
                }
                last = now;
            }
            Told::Reload => {}
            Told::End | Told::Ended => break,
        }
    }
    if terminal && !quiet {
        show!("");
    }
}

fn live_line(last: &Observation, now: &Observation) -> String {
    let grown = |name| now.counter(name).saturating_sub(last.counter(name));
    let requests = grown("requests");
    let hits = grown("hits") + grown("hits_stale");
    let share = match (hits * 100).checked_div(requests) {
        Some(percent) => format!("{percent} % from the store"),
        None => "nobody asks".to_owned(),
    };
    let median = |hits: bool| {
        let pick = |seen: &Observation| match hits {
            true => seen.exchanges.latency_hit(),
            false => seen.exchanges.latency_origin(),
        };
        pick(now).since(&pick(last)).percentile_micros(50.0).map_or("–".to_owned(), show_micros)
    };
    format!(
        "{requests} requests/s, {share}; median hit {}, from the origin {}; {} objects in {}; {} connections",
        median(true),
        median(false),
        now.cache.objects,
        show_size(now.cache.memory_bytes),
        now.counter("connections_active"),
    )
}

#[cfg(test)]
mod tests {
    use proxy::access_log::CacheVerdict;

    use super::*;
    use crate::admin::observation::tests::sample;

    #[test]
    fn the_live_line_tells_of_the_last_second() {
        let (last, mut now) = (sample(), sample());
        assert!(live_line(&last, &now).starts_with("0 requests/s, nobody asks; median hit –"));
        for (value, counter) in now.counters.iter_mut().zip(proxy::counters::COUNTERS) {
            match counter.name {
                "requests" => *value += 200,
                "hits" => *value += 150,
                _ => {}
            }
        }
        now.exchanges.whole[CacheVerdict::Hit as usize].buckets[10] += 150;
        let line = live_line(&last, &now);
        assert!(
            line.starts_with("200 requests/s, 75 % from the store; median hit 47 µs, from the origin –; 5 objects"),
            "{line}"
        );
    }
}
