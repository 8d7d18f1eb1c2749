//! From the flags of `larder bench` to what `lab` runs: a target, a catalogue, a workload. Files are read here.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use lab::{
    Arrivals, AskMethod, Catalogue, CatalogueError, Checks, Connections, LabUrl, Length, Load, Order, RatePlan, Recipe,
    Scheme, Script, StatusWanted, TlsSettings, Tool, Workload, limits, read_replay_log, read_session_file,
};

use crate::bounded_file;
use crate::load_tool::bench_flags::{BenchFlags, CheckFlag, MethodFlag};
use crate::load_tool::bench_memcached;
use crate::load_tool::bench_sources::sources;
use crate::open_files;
use crate::say::say;

/// What is to be run.
pub struct Job {
    pub url: LabUrl,
    pub workload: Workload,
    pub catalogue: Catalogue,
}

pub fn job(flags: &BenchFlags) -> Result<Job, String> {
    let plan = rate_plan(flags)?;
    let recipe = recipe(flags)?;
    let list = flags.urls.as_deref().map(|path| Ok::<_, String>((path, read_text(path)?))).transpose()?;
    let url = match (&flags.url, &list) {
        (Some(url), _) => url.clone(),
        (None, Some((path, text))) => first_url(text).map_err(|what| format!("{}: {what}", path.display()))?,
        (None, None) => return Err("no URL was given: larder bench URL, or --urls FILE".to_owned()),
    };
    let (catalogue, load) = what_and_when(flags, &url, list, &recipe, plan)?;
    let address = match flags.unix {
        // The host is a name for the Host field, and asks no resolver.
        Some(_) => ([0, 0, 0, 0], 0).into(),
        None => resolve(flags.proxy.as_ref().unwrap_or(&url))?,
    };
    if flags.h2 && (flags.proxy.is_some() || url.scheme == Scheme::Memcached) {
        return Err("--h2 is for http:// and https:// targets, without a --proxy".to_owned());
    }
    if flags.encoding.is_some() && url.scheme == Scheme::Memcached {
        return Err("--encoding is for http:// and https:// targets".to_owned());
    }
    let sources = sources(flags)?;
    let users = users(flags, &load, sources.len())?;
    let mut workload = Workload { sources, tls: tls(flags, &url)?, ..workload(flags, address, load, users) };
    if url.scheme == Scheme::Memcached {
        workload.order = flags.memcached.order();
        workload.checks.status = bench_memcached::status_wanted(flags);
    }
    Ok(Job { url, workload, catalogue })
}

/// `None`: in the clear.
fn tls(flags: &BenchFlags, url: &LabUrl) -> Result<Option<TlsSettings>, String> {
    match (url.scheme, flags.tls.given()) {
        (Scheme::Https, _) if flags.proxy.is_some() => Err("https:// is not asked for through a --proxy".to_owned()),
        (Scheme::Https, _) => flags.tls.settings(url, flags.tool.is_some()).map(Some),
        (_, Some(name)) => Err(format!("{name} is for https:// targets")),
        (_, None) => Ok(None),
    }
}

/// What is asked for, and when.
fn what_and_when(
    flags: &BenchFlags,
    url: &LabUrl,
    list: Option<(&Path, String)>,
    recipe: &Recipe,
    plan: Option<RatePlan>,
) -> Result<(Catalogue, Load), String> {
    let in_file = |path: &Path, error: CatalogueError| format!("{}: {error}", path.display());
    if url.scheme == Scheme::Memcached {
        return Ok((bench_memcached::catalogue(flags)?, load(flags, plan)));
    }
    if let Some(name) = flags.memcached.given() {
        return Err(format!("{name} is for memcached:// targets"));
    }
    if let Some(path) = &flags.replay {
        let log = read_file(path)?;
        let (catalogue, replay, account) = read_replay_log(url, &log, recipe).map_err(|error| in_file(path, error))?;
        say!("{}: {account}", path.display());
        return Ok((catalogue, Load::Replay { log: Arc::new(replay), speed: flags.speed }));
    }
    if let Some(file) = &flags.wsesslog {
        let text = read_text(&file.path)?;
        let read = read_session_file(url, &text, file.think, recipe);
        let (catalogue, script) = read.map_err(|error| in_file(&file.path, error))?;
        let count = file.count.unwrap_or(script.templates_count() as u64);
        return Ok((catalogue, Load::Sessions { count, starts: plan, script: Arc::new(script) }));
    }
    let catalogue = match list {
        None => Catalogue::of_url(url, recipe).map_err(|error| error.to_string())?,
        Some((path, text)) => Catalogue::of_list(url, &text, recipe).map_err(|error| in_file(path, error))?,
    };
    Ok((catalogue, load(flags, plan)))
}

fn load(flags: &BenchFlags, plan: Option<RatePlan>) -> Load {
    match (flags.wsess, plan) {
        (Some(sessions), starts) => {
            let script = Arc::new(Script::alike(sessions.calls, flags.burst_length, sessions.think));
            Load::Sessions { count: sessions.count, starts, script }
        }
        (None, None) => Load::Closed,
        (None, Some(plan)) => match plan.per_second[..] {
            [per_second] => Load::Open { per_second, arrivals: plan.arrivals },
            _ => Load::Steps(plan),
        },
    }
}

fn rate_plan(flags: &BenchFlags) -> Result<Option<RatePlan>, String> {
    let arrivals = match (flags.poisson, flags.jitter) {
        (true, _) => Arrivals::Poisson,
        (_, true) => Arrivals::Jitter,
        _ => Arrivals::Constant,
    };
    let per_second = flags.rate.clone();
    match (per_second.last(), flags.step) {
        (None, _) => Ok(None),
        (Some(0.0), _) => Err("--rate: a rate of 0 is a pause, which may not be the last one".to_owned()),
        (Some(_), None) if per_second.len() > 1 => Err("--rate: several rates need --step TIME".to_owned()),
        _ if per_second.len() > limits::RATES_MAX => Err(format!("--rate: {} rates at most", limits::RATES_MAX)),
        (Some(_), step) => Ok(Some(RatePlan { per_second, step: step.unwrap_or(Duration::MAX), arrivals })),
    }
}

fn recipe(flags: &BenchFlags) -> Result<Recipe, String> {
    let method = match (flags.method, &flags.body) {
        (None, None) | (Some(MethodFlag::Get), None) => AskMethod::Get,
        (Some(MethodFlag::Head), None) => AskMethod::Head,
        (None | Some(MethodFlag::Post), _) => AskMethod::Post,
        (Some(_), Some(_)) => return Err("--body needs --method POST".to_owned()),
    };
    let body = flags.body.as_deref().map(read_body).transpose()?.unwrap_or_default();
    let (mut fields, proxied) = (flags.fields.clone(), flags.proxy.is_some());
    if let Some(coding) = flags.encoding {
        if fields.iter().any(|field| field.to_ascii_lowercase().starts_with("accept-encoding")) {
            return Err("--encoding says what Accept-Encoding has: no -H of that name".to_owned());
        }
        fields.push(coding.field());
    }
    Ok(Recipe { method, fields, short: flags.short, proxied, body })
}

/// How many users there are, which is how many connections there may be.
fn users(flags: &BenchFlags, load: &Load, sources: usize) -> Result<usize, String> {
    let files = open_files::raise_limit();
    let users = match (flags.connections, load) {
        (Some(asked), _) => asked,
        // As httperf: one session after another.
        (None, Load::Sessions { starts: None, .. }) => 1,
        (None, Load::Sessions { count, .. }) => {
            let wanted = usize::try_from(*count).unwrap_or(usize::MAX).min(limits::CONNECTIONS_MAX);
            open_files::connections_that_fit(wanted.min(lab::connections_offered(sources)), files)
        }
        (None, _) => CONNECTIONS_DEFAULT,
    };
    match files {
        Some(files) if open_files::connections_that_fit(users, Some(files)) < users => {
            Err(format!("{users} connections do not fit into {files} open files (ulimit -n)"))
        }
        _ => Ok(users),
    }
}

const CONNECTIONS_DEFAULT: usize = 10;
const TIME_DEFAULT: Duration = Duration::from_secs(10);

fn workload(flags: &BenchFlags, address: SocketAddr, load: Load, users: usize) -> Workload {
    let status = match (flags.status, flags.check) {
        (Some(status), _) => StatusWanted::Exactly(status),
        (None, CheckFlag::None) => StatusWanted::Any,
        (None, _) => flags.tool.map_or(Checks::ALL, |_| Tool::CHECKS).status,
    };
    let bytes = flags.check == CheckFlag::Bytes;
    Workload {
        length: length(flags, &load),
        load,
        users,
        threads: flags.threads.unwrap_or_else(|| threads_default(flags.cpus.len())).min(users),
        cpus: flags.cpus.clone(),
        connections: match flags.short {
            true => Connections::Short,
            false => Connections::Kept { depth: flags.streams.unwrap_or(flags.pipeline) },
        },
        order: match flags.zipf {
            Some(alpha) => Order::Zipf { alpha },
            None if flags.random => Order::Random,
            None => Order::InTurn,
        },
        checks: Checks { status, length: bytes || flags.check == CheckFlag::Length, bytes },
        timeout: flags.timeout,
        ramp: flags.ramp.unwrap_or_default(),
        think: flags.think.unwrap_or_default(),
        seed: flags.seed,
        unix: flags.unix.clone(),
        http2: flags.h2,
        encoding: flags.encoding,
        ..Workload::new(address)
    }
}

/// What has an end of its own runs to it, unless a time was said.
fn length(flags: &BenchFlags, load: &Load) -> Length {
    match (flags.time, flags.requests, load) {
        (Some(time), Some(requests), _) => Length::RequestsWithin(requests, time),
        (Some(time), None, _) => Length::Time(time),
        (None, Some(requests), _) => Length::Requests(requests),
        (None, None, Load::Closed | Load::Open { .. }) => Length::Time(TIME_DEFAULT),
        (None, None, Load::Steps(plan)) => {
            let steps = u32::try_from(plan.per_second.len()).unwrap_or(u32::MAX);
            Length::Time(plan.step.saturating_mul(steps).min(limits::DURATION_MAX))
        }
        (None, None, Load::Sessions { count, script, .. }) => {
            Length::Requests(count.saturating_mul(u64::from(script.calls_max())))
        }
        (None, None, Load::Replay { log, .. }) => Length::Requests(log.len() as u64),
    }
}

/// One for each processor that was named. Otherwise the other half of the machine is the server's, when it is here too.
fn threads_default(cpus_named: usize) -> usize {
    if cpus_named > 0 {
        return cpus_named.min(limits::THREADS_MAX);
    }
    std::thread::available_parallelism().map_or(1, |cores| (cores.get() / 2).max(1)).min(limits::THREADS_MAX)
}

fn resolve(url: &LabUrl) -> Result<SocketAddr, String> {
    let address = (url.host.as_str(), url.port).to_socket_addrs().map_err(|error| error.to_string());
    let address = address.and_then(|mut all| all.next().ok_or_else(|| "it has no address".to_owned()));
    address.map_err(|error| format!("cannot resolve {}: {error}", url.host))
}

fn read_text(path: &Path) -> Result<String, String> {
    String::from_utf8(read_file(path)?).map_err(|_| format!("{}: not UTF-8 text", path.display()))
}

fn read_body(path: &Path) -> Result<Vec<u8>, String> {
    let body = read_file(path)?;
    match body.len() > limits::REQUEST_BODY_BYTES_MAX {
        true => Err(format!("--body {}: larger than {} bytes", path.display(), limits::REQUEST_BODY_BYTES_MAX)),
        false => Ok(body),
    }
}

fn read_file(path: &Path) -> Result<Vec<u8>, String> {
    bounded_file::read(path, limits::URL_LIST_BYTES_MAX).map_err(|why| format!("{}: {why}", path.display()))
}

/// Without a URL among the flags, the first one of the list names the target.
fn first_url(text: &str) -> Result<LabUrl, String> {
    let mut lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    match lines.find(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
        None => Err("holds no URL".to_owned()),
        Some((number, line)) if line.starts_with('/') => {
            Err(format!("line {number} is a path: give a URL too, whose host is asked"))
        }
        Some((number, line)) => LabUrl::parse(line).map_err(|what| format!("line {number}: {what}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_alone_names_its_target() {
        assert_eq!(first_url("# x\n\nhttp://a:81/b\n/c").unwrap().port, 81);
        assert!(first_url("/c\n").unwrap_err().contains("line 1 is a path"));
        assert!(first_url("#\n").unwrap_err().contains("no URL"));
    }
}
