//! A command line of varnishd as a plan: what `larder serve` would be told, with Varnish's defaults in place of larder's.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};

use cache::DiskFile;
use proxy::settings::{ListenAddress, ListenerSettings, ListenerTls};
use varnishd::{CommandLine, ListenArgument, ListenPlace, ParameterBook, SocketOwner, StorageKind};

use crate::addresses::{AdminAddress, every_address, parse_admin};
use crate::config::is_server_name;
use crate::plan::{LogTarget, Plan, check_disk, check_memory};
use crate::quantities::{parse_size, show_size};
use crate::tls_files::{CertificateFiles, TlsFiles};
use crate::varnish_parameters;

/// What Varnish takes when no `-s` says otherwise.
const MEMORY_DEFAULT: &str = "100m";
/// Of the machine, where Varnish would take all there is.
const MEMORY_SHARE_PERCENT: u64 = 75;
/// The port of a `-b` that has none.
const BACKEND_PORT_DEFAULT: u16 = 80;

pub struct FrontPlan {
    pub plan: Plan,
    /// Names of listeners, and whose their sockets are to be.
    pub listen: Vec<FrontListener>,
    /// Name and kind.
    pub storages: Vec<(String, String)>,
    pub notes: Vec<String>,
}

#[derive(Clone, Debug)]
pub struct FrontListener {
    pub name: String,
    pub settings: ListenerSettings,
    pub owner: SocketOwner,
}

pub fn plan(line: &CommandLine, book: &ParameterBook) -> Result<FrontPlan, String> {
    let mut plan = Plan::default();
    // Its jail is -j.
    plan.sandbox.is_on = false;
    let mut notes = Vec::new();
    take_parameters(line, book, &mut plan, &mut notes)?;
    plan.settings.as_varnishd = true;
    plan.settings.limits.request_head.lenient = true;
    plan.settings.limits.response_head.lenient = true;
    let listen = listeners(line, &mut plan)?;
    plan.settings.listeners = listen.iter().map(|listener| listener.settings.clone()).collect();
    let storages = take_storages(line, &mut plan, &mut notes)?;
    plan.admin.address = AdminAddress::Off;
    if let Some(address) = &line.admin {
        plan.admin.address = parse_admin(address).map_err(|why| format!("--admin {address}: {why}"))?;
        plan.admin.asked_for = true;
    }
    plan.log = line.log.as_deref().map(LogTarget::parse);
    match &line.identity {
        Some(name) if is_server_name(name) => plan.settings.server_name.clone_from(name),
        Some(name) => notes.push(format!("-i {name}: it is no name for Via; `larder` stands there")),
        None => {}
    }
    Ok(FrontPlan { plan, listen, storages, notes })
}

fn take_parameters(
    line: &CommandLine,
    book: &ParameterBook,
    plan: &mut Plan,
    notes: &mut Vec<String>,
) -> Result<(), String> {
    let set = |plan: &mut Plan, name: &str, value: &str| {
        varnish_parameters::set(plan, name, value).map_err(|why| format!("-p {name}={value}: {why}"))
    };
    for (name, value) in book.plain_values() {
        set(plan, name, value)?;
    }
    // Only what somebody typed is worth a word.
    plan.warnings.clear();
    let is_of_ours = |name: &str| book.plain_values().any(|(known, _)| known == name);
    let mut idle: Vec<&str> = Vec::new();
    for (name, value) in &line.parameters {
        if varnish_parameters::note(name).is_some() {
            idle.push(name);
        } else if !is_of_ours(name) {
            set(plan, name, value)?;
        }
    }
    if !idle.is_empty() {
        let reason = "`param.show NAME` says why";
        notes.push(format!("these parameters change nothing in larder: {} ({reason})", idle.join(", ")));
    }
    Ok(())
}

fn listeners(line: &CommandLine, plan: &mut Plan) -> Result<Vec<FrontListener>, String> {
    let by_default = [ListenArgument::parse(":80", 0)?];
    let arguments = if line.listen.is_empty() { &by_default[..] } else { &line.listen };
    let mut listeners: Vec<FrontListener> = Vec::new();
    for argument in arguments {
        let (addresses, owner) = match &argument.place {
            ListenPlace::Path { path, owner } => (vec![ListenAddress::Unix(PathBuf::from(path))], owner.clone()),
            ListenPlace::Port { host, port } => (addresses(host.as_deref(), *port)?, SocketOwner::default()),
        };
        for address in addresses {
            let picks_a_port = matches!(address, ListenAddress::Tcp(address) if address.port() == 0);
            if let Some(other) = listeners.iter().find(|other| other.settings.address == address && !picks_a_port) {
                return Err(format!("-a arguments {} and {} have the same address", other.name, argument.name));
            }
            let mut settings = ListenerSettings::at(address);
            settings.proxy_protocol = argument.is_proxy_protocol;
            settings.name = Some(argument.name.as_str().into());
            if argument.is_tls {
                let files = certificates(line, plan).seen_now();
                let tls = files.load().map_err(|fault| format!("--cert, for -a {}: {fault}", argument.name))?;
                settings.tls = Some(ListenerTls::new(tls));
                plan.tls_files.push((settings.address.clone(), files));
            }
            listeners.push(FrontListener { name: argument.name.clone(), settings, owner: owner.clone() });
        }
    }
    Ok(listeners)
}

/// What every listener with TLS shows. Inside HTTP/2 is spoken where a client in the clear may speak it, too.
fn certificates(line: &CommandLine, plan: &Plan) -> TlsFiles {
    let keys = if line.keys.is_empty() { &line.certificates } else { &line.keys };
    let pair = |(certificate, key): (&String, &String)| CertificateFiles {
        certificate: certificate.into(),
        key: key.into(),
        ocsp: None,
    };
    TlsFiles {
        certificates: line.certificates.iter().zip(keys).map(pair).collect(),
        without_http2: !plan.settings.accepts_h2c,
        ..TlsFiles::default()
    }
}

fn addresses(host: Option<&str>, port: u16) -> Result<Vec<ListenAddress>, String> {
    Ok(resolve(host, port)?.into_iter().map(ListenAddress::Tcp).collect())
}

/// All addresses of a name; of this machine without one, where a socket of IPv6 takes those of IPv4 too.
pub fn resolve(host: Option<&str>, port: u16) -> Result<Vec<SocketAddr>, String> {
    let Some(host) = host else {
        return Ok(vec![SocketAddr::new(every_address(), port)]);
    };
    let found =
        (host, port).to_socket_addrs().map_err(|error| format!("Got no socket(s) for {host}:{port}: {error}"))?;
    let mut found: Vec<SocketAddr> = found.collect();
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

fn take_storages(
    line: &CommandLine,
    plan: &mut Plan,
    notes: &mut Vec<String>,
) -> Result<Vec<(String, String)>, String> {
    let mut memory: Option<u64> = None;
    let mut storages = Vec::new();
    for storage in &line.storages {
        let wrong = |why: String| format!("-s {}: {why}", storage.name);
        match &storage.kind {
            // Whatever it is: what is short-lived is nothing for a disk.
            _ if storage.name == "Transient" => {
                notes.push(
                    "-s Transient: larder has one store for all, which what is passed does not go through".to_owned(),
                );
            }
            StorageKind::Memory { size } => {
                let bytes = match size {
                    Some(size) => parse_size(size).map_err(wrong)?,
                    None => {
                        let bytes = installed_bytes() / 100 * MEMORY_SHARE_PERCENT;
                        notes.push(format!(
                            "-s {} has no size: larder takes {} at most",
                            storage.name,
                            show_size(bytes)
                        ));
                        bytes
                    }
                };
                memory = Some(memory.unwrap_or_default().saturating_add(bytes));
                storages.push((storage.name.clone(), "malloc".to_owned()));
            }
            StorageKind::File { path, size } => {
                let bytes = match size {
                    Some(size) => parse_size(size).map_err(wrong)?,
                    None => size_of(Path::new(path)).map_err(wrong)?,
                };
                plan.disks.push(DiskFile { path: PathBuf::from(path), bytes: check_disk(bytes).map_err(wrong)? });
                storages.push((storage.name.clone(), "file".to_owned()));
            }
        }
    }
    let memory = match memory {
        Some(bytes) => bytes,
        None => parse_size(MEMORY_DEFAULT)?,
    };
    plan.settings.memory_bytes_max = check_memory(memory).map_err(|why| format!("-s: {why}"))?;
    if storages.len() > 1 && storages.iter().all(|(_, kind)| kind == "malloc") {
        notes.push(format!("several -s malloc are one store in larder, of {}", show_size(memory)));
    }
    if storages.is_empty() {
        storages.push(("s0".to_owned(), "malloc".to_owned()));
    }
    storages.push(("Transient".to_owned(), "malloc".to_owned()));
    Ok(storages)
}

fn size_of(path: &Path) -> Result<u64, String> {
    let found = std::fs::metadata(path).ok().filter(|found| found.is_file() && found.len() > 0);
    found.map(|found| found.len()).ok_or_else(|| format!("the size of {} is missing: file,PATH,SIZE", path.display()))
}

fn installed_bytes() -> u64 {
    let sysinfo = rustix::system::sysinfo();
    (sysinfo.totalram as u64).saturating_mul(u64::from(sysinfo.mem_unit))
}

/// `-b` as a program: `none`, a path, or a host with a port.
pub fn vcl_of_backend(backend: &str) -> String {
    // Quotes cannot be written in a string; what is left of the name then says that it is none.
    let backend = backend.replace('"', "");
    if backend == "none" {
        return "vcl 4.1;\nbackend default none;\n".to_owned();
    }
    if backend.starts_with('/') {
        return format!("vcl 4.1;\nbackend default {{\n    .path = \"{backend}\";\n}}\n");
    }
    let is_ipv6_alone = backend.parse::<std::net::Ipv6Addr>().is_ok();
    let (host, port) = match backend.rsplit_once(':') {
        Some((host, port)) if !is_ipv6_alone && !port.ends_with(']') => (host.to_owned(), port.to_owned()),
        _ => (backend.clone(), BACKEND_PORT_DEFAULT.to_string()),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    format!("vcl 4.1;\nbackend default {{\n    .host = \"{host}\";\n    .port = \"{port}\";\n}}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan_of(typed: &str) -> Result<FrontPlan, String> {
        let line =
            CommandLine::parse(typed.split(' ').map(str::to_owned).collect()).map_err(|misused| misused.sentence)?;
        let book = ParameterBook::new(&line.parameters, &line.read_only)?;
        plan(&line, &book)
    }

    #[test]
    fn every_parameter_of_varnish_has_a_place() {
        let front = plan_of("-b none").unwrap();
        assert_eq!(front.plan.settings.vcl.default_ttl.as_secs(), 120);
        assert_eq!(front.plan.settings.limits.idle_timeout.as_secs(), 5);
        assert_eq!(front.plan.settings.memory_bytes_max, 100 << 20);
        assert!(front.plan.warnings.is_empty() && front.notes.is_empty());
    }

    #[test]
    fn flags_become_settings() {
        let front = plan_of(
            "-b none -a 127.0.0.1:0 -a p=127.0.0.1:0,PROXY -a /l.sock,mode=660 -s malloc,256m -s f=file,/c,1g -t 60 -p thread_pool_min=5",
        )
        .unwrap();
        let names: Vec<(&str, bool)> = front.listen.iter().map(|l| (&*l.name, l.settings.proxy_protocol)).collect();
        assert_eq!(names, [("a0", false), ("p", true), ("a2", false)]);
        assert_eq!(front.listen[2].owner.mode, Some(0o660));
        assert_eq!(front.plan.settings.memory_bytes_max, 256 << 20);
        assert_eq!(front.plan.disks[0].bytes, 1 << 30);
        assert_eq!(front.plan.settings.vcl.default_ttl.as_secs(), 60);
        assert_eq!(front.storages.len(), 3);
        assert!(front.notes[0].contains("thread_pool_min"), "{:?}", front.notes);
    }

    #[test]
    fn transient_is_no_store_and_no_disk() {
        for of in ["malloc,1m", "file,/nowhere,10m"] {
            let front = plan_of(&format!("-b none -s malloc,256m -s Transient={of}")).unwrap();
            assert!(
                front.plan.disks.is_empty() && front.notes[0].contains("-s Transient: "),
                "{of}: {:?}",
                front.notes
            );
            assert_eq!(front.plan.settings.memory_bytes_max, 256 << 20);
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let check = |typed: &str, part: &str| {
            let why = plan_of(typed).err().unwrap();
            assert!(why.contains(part), "{typed}: {why}");
        };
        check("-b none -s malloc,1", "too little memory");
        check("-b none -s malloc,12x", "no unit of size");
        check("-b none -s file,/nonexistent", "the size of");
        check("-b none -a 127.0.0.1:81 -a 127.0.0.1:81", "same address");
        check("-b none -p default_ttl=x", "Invalid number (x)");
        check("-b none -p nonesuch=x", "no parameter");
        check("-b none -a :0,HTTPS --cert /nonexistent.pem", "--cert, for -a a0: /nonexistent.pem");
        check("-b none -a :0,HTTPS", "needs a certificate");
        check("-b none -a :0,HTTPS --cert a --cert b --key c", "each --cert has a --key");
        check("-b none --admin nowhere", "--admin nowhere");
    }

    #[test]
    fn backends_become_programs() {
        let check = |backend: &str, part: &str| {
            let text = vcl_of_backend(backend);
            assert!(text.contains(part), "{backend}: {text}");
        };
        check("none", "backend default none;");
        check("127.0.0.1:8080", ".host = \"127.0.0.1\";\n    .port = \"8080\"");
        check("example.org", ".host = \"example.org\";\n    .port = \"80\"");
        check("[::1]:81", ".host = \"::1\";\n    .port = \"81\"");
        check("::1", ".host = \"::1\";\n    .port = \"80\"");
        check("/run/app.sock", ".path = \"/run/app.sock\"");
        check("a\"; }", ".host = \"a; }\"");
    }
}
