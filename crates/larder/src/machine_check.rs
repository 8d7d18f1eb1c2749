//! What would fail when a plan is carried out on this machine, by this user: addresses, files, folders, certificates, names. `larder
//! check` says it before `larder serve` does. Nothing is made or changed, and no request is sent anywhere: origins on this machine are
//! connected to, others are not.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use proxy::settings::{KeptBack, ListenAddress, RootSettings, RouteSettings, RouteTarget, ShownSources};
use proxy::wall_now_ms;
use rustix::fs::{Access, AtFlags, CWD, accessat, statvfs};
use rustix::io::Errno;
use serde::Serialize;
use socket2::{Domain, Socket, Type};

use crate::addresses::{AdminAddress, show_listen};
use crate::expiry_watch::{ExpiryWatch, show_date};
use crate::lock_holder;
use crate::memory_check;
use crate::name_check;
use crate::origin_check;
use crate::own_files;
use crate::plan::{LogTarget, Plan};
use crate::port_holder::{self, PortHolder, StartedWith};
use crate::quantities::show_size;
use crate::root_contents;

/// One thing that this machine has not, or has otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MachineFinding {
    /// `larder serve` would not start.
    pub is_fatal: bool,
    /// What, where, and which setting.
    pub message: String,
    /// What to do about it.
    pub advice: Option<String>,
}

impl MachineFinding {
    fn fatal(message: String) -> MachineFinding {
        MachineFinding { is_fatal: true, message, advice: None }
    }

    pub fn warning(message: String) -> MachineFinding {
        MachineFinding { is_fatal: false, message, advice: None }
    }

    pub fn advise(self, advice: String) -> MachineFinding {
        MachineFinding { advice: Some(advice), ..self }
    }

    /// As a larder that starts says it.
    pub fn in_a_line(self) -> String {
        let MachineFinding { message, advice, .. } = self;
        advice.map_or_else(|| message.clone(), |advice| format!("{message}: {advice}"))
    }

    /// As `larder check` prints it.
    pub fn show(&self) -> String {
        let severity = if self.is_fatal { "error" } else { "warning" };
        let advice = self.advice.as_ref().map_or_else(String::new, |advice| format!("   = help: {advice}\n"));
        format!("{severity}: {}\n{advice}", self.message)
    }
}

/// All of them, in the order of a configuration, which is in this file.
pub fn findings(file: &Path, plan: &Plan) -> Vec<MachineFinding> {
    let mut found = Vec::new();
    for listener in &plan.settings.listeners {
        found.extend(address(file, &listener.address, ("[[listen]] address, --listen", true)));
    }
    found.extend(shared_ports(plan));
    if let AdminAddress::At(at) = &plan.admin.address {
        found.extend(address(file, at, ("[admin] address, --admin", plan.admin.asked_for)));
    }
    found.extend(process_user(plan));
    found.extend(memory_check::findings(plan));
    found.extend(certificates(plan));
    found.extend(uncovered_hosts(plan));
    found.extend(roots(plan));
    found.extend(root_contents::findings(plan));
    found.extend(plan.disks.iter().filter_map(|disk| self::disk(file, &disk.path, disk.bytes)));
    if let Some(LogTarget::File(path)) = &plan.log {
        let why = writable_file(path);
        found.extend(why.map(|why| {
            let message = format!("the access log {} {why} ([log] path, --log)", path.display());
            MachineFinding { is_fatal: path.is_dir() || !is_read_only(path), message, advice: None }
        }));
    }
    found.extend(users_files(plan));
    if let Some(acme) = &plan.acme {
        let folder = &acme.settings.folder;
        let why = writable_folder(folder);
        found.extend(why.map(|why| {
            MachineFinding::fatal(format!("the folder {} {why} ([acme] folder, --acme-folder)", folder.display()))
        }));
    }
    found.extend(name_check::unresolved(plan).into_iter().map(MachineFinding::warning));
    found.extend(origin_check::unanswered(plan).into_iter().map(MachineFinding::warning));
    found
}

/// The file itself, which holds what lets somebody change everything.
pub fn config_file(file: &Path, plan: &Plan) -> Option<MachineFinding> {
    const READ_BY_OTHERS: u32 = 0o004;
    let has_token = plan.admin.token.is_some() && plan.admin.token_file.is_none();
    let rights = std::fs::metadata(file).ok()?.permissions().mode();
    (has_token && rights & READ_BY_OTHERS != 0).then(|| {
        let file = file.display();
        let message = format!("everybody on this machine may read {file}, and the token of [admin] is in it");
        MachineFinding::warning(message)
            .advise(format!("chmod o-r {file}; or write token_file in place of token, and the token into that file"))
    })
}

/// Larder's own files that lie where files are shown.
pub fn own_files(file: &Path, plan: &Plan) -> Vec<MachineFinding> {
    let mut folders: Vec<&Path> = plan.settings.roots.iter().map(|root| &*root.directory).collect();
    folders.sort_unstable();
    folders.dedup();
    let own = own_files::of(plan, Some(file));
    let pairs = folders.into_iter().flat_map(|folder| own.iter().map(move |own| (folder, own)));
    let is_in_another = |file: &PathBuf| own.iter().any(|other| other != file && file.starts_with(other));
    let beneath = pairs.filter(|(folder, own)| KeptBack::holds_path(folder, own));
    // What is in a folder of larder's is named by that, if it is beneath the root itself.
    let beneath = beneath.filter(|(folder, own)| {
        let is_named = own.ancestors().skip(1).any(|above| above != *folder && KeptBack::holds_path(folder, above));
        !is_named || !is_in_another(own)
    });
    let finding = |(folder, own): (&Path, &PathBuf)| {
        let beside = copies_beside(own);
        let (folder, own) = (folder.display(), own.display());
        let message = format!(
            "{own} lies beneath the root {folder}, where files are shown: larder itself shows it to nobody{beside}"
        );
        MachineFinding::warning(message).advise("put it where no server shows files, such as /etc/larder".to_owned())
    };
    beneath.map(finding).collect()
}

/// Copies that lie beside it, some by name.
fn copies_beside(own: &Path) -> String {
    const NAMED: usize = 3;
    let copies = KeptBack::copies_of(own);
    let named: Vec<String> = copies.iter().take(NAMED).map(|copy| copy.display().to_string()).collect();
    match copies.len() {
        0 => String::new(),
        count if count <= NAMED => format!(", nor its copies: {}", named.join(", ")),
        count => format!(", nor its copies: {}, and {} more", named.join(", "), count - NAMED),
    }
}

/// Nobody can become a user who is not there.
fn process_user(plan: &Plan) -> Option<MachineFinding> {
    let why = plan.process_user.as_ref()?.resolve().err()?;
    Some(MachineFinding::fatal(format!("{why} ([process] user, --user)")))
}

/// Two listeners of one port, of which one takes all addresses, or the admin address is one.
fn shared_ports(plan: &Plan) -> Vec<MachineFinding> {
    let tcp = |address: &ListenAddress| if let ListenAddress::Tcp(at) = address { Some(*at) } else { None };
    const LISTEN: &str = "[[listen]] address, --listen";
    let listeners = plan.settings.listeners.iter().filter_map(|listener| Some((tcp(&listener.address)?, LISTEN)));
    let admin = match &plan.admin.address {
        AdminAddress::At(at) if plan.admin.asked_for => tcp(at).map(|at| (at, "[admin] address, --admin")),
        _ => None,
    };
    let all: Vec<(SocketAddr, &str)> = listeners.chain(admin).collect();
    let takes = |one: &SocketAddr, other: &SocketAddr| {
        let is_all_of = one.ip().is_unspecified() && (one.is_ipv6() || other.is_ipv4());
        one.port() == other.port() && one.port() != 0 && (is_all_of || one == other)
    };
    let mut found = Vec::new();
    for (at, (one, _)) in all.iter().enumerate() {
        for (other, setting) in all[at + 1..].iter().filter(|(other, _)| takes(one, other) || takes(other, one)) {
            let settings = if *setting == LISTEN { LISTEN.to_owned() } else { format!("{LISTEN}; {setting}") };
            let message = format!("{one} and {other} are one port of the same address ({settings})");
            let advice = match *setting == LISTEN {
                true => "leave out the one that the other includes",
                false => {
                    "give [admin] an address of its own, such as 127.0.0.1:9180: commands and /metrics are asked there"
                }
            };
            found.push(MachineFinding::fatal(message).advise(advice.to_owned()));
        }
    }
    found
}

/// Users and their hashes, as the server reads them.
fn users_files(plan: &Plan) -> Vec<MachineFinding> {
    let settings = &plan.settings;
    let of_forward = settings.forward.password_file.iter().map(|file| (file, "[forward] password_file"));
    let logins = settings.routes.iter().filter_map(|route| route.rules.access.login.as_ref());
    let of_routes = logins.map(|login| (&login.file, "basic_auth of a [[route]] or of [policy]"));
    let mut all: Vec<(&PathBuf, &str)> = of_forward.chain(of_routes).collect();
    all.sort_unstable();
    all.dedup_by_key(|(file, _)| *file);
    let wrong = |(file, setting): (&PathBuf, &str)| {
        let why = proxy::check_password_file(file).err()?;
        Some(MachineFinding::fatal(format!("the users' file cannot be read: {why} ({setting})")))
    };
    all.into_iter().filter_map(wrong).collect()
}

/// Can anybody listen there? One that is taken may be taken by the larder that runs, which this is the next configuration of.
fn address(file: &Path, address: &ListenAddress, (setting, is_needed): (&str, bool)) -> Option<MachineFinding> {
    let shown = show_listen(address);
    let finding = |why: String| {
        let message = format!("nobody can listen on {shown}: {why} ({setting})");
        if is_needed { MachineFinding::fatal(message) } else { MachineFinding::warning(message) }
    };
    match address {
        ListenAddress::Tcp(at) => match bind(*at).err()? {
            error if error.kind() == ErrorKind::AddrInUse => Some(taken(file, *at, (setting, is_needed))),
            error if error.kind() == ErrorKind::PermissionDenied => Some(
                finding(format!("port {} needs a right that this user has not", at.port()))
                    .advise(low_port_advice(at.port())),
            ),
            error if error.kind() == ErrorKind::AddrNotAvailable => Some(
                finding("it is no address of this machine".to_owned())
                    .advise(format!("*:{} is every address", at.port())),
            ),
            error => Some(finding(error.to_string())),
        },
        ListenAddress::Unix(path) if UnixStream::connect(path).is_ok() => Some(answered(&shown, setting)),
        ListenAddress::Unix(path) => {
            let folder = parent(path);
            writable_existing(folder).map(|why| finding(format!("the folder {} {why}", folder.display())))
        }
    }
}

/// A larder that runs by this file keeps its address when it reads it again; any other program keeps larder from starting.
fn taken(file: &Path, address: SocketAddr, (setting, is_needed): (&str, bool)) -> MachineFinding {
    let by = |whom: String| format!("{address} is in use by {whom} ({setting})");
    let (message, advice) = match port_holder::of(address) {
        PortHolder::Larder(process) => match process.and_then(|process| stranger(file, process)) {
            Some((whom, advice)) => (by(whom), advice),
            None => {
                let whom = process
                    .map_or("a larder that runs, or by a program that this user may not see".to_owned(), |id| {
                        format!("a larder that runs (process {id})")
                    });
                return MachineFinding::warning(format!("{}: {RELOAD_ADVICE}", by(whom)));
            }
        },
        PortHolder::Other { name, process } => {
            (by(format!("{name} (process {process})")), "end that program, or take another port".to_owned())
        }
        PortHolder::Unseen => {
            let whom = "a program that this user may not see, and no larder runs".to_owned();
            (by(whom), "ss -lptn, as root, shows who it is".to_owned())
        }
    };
    let finding = if is_needed { MachineFinding::fatal(message) } else { MachineFinding::warning(message) };
    finding.advise(advice)
}

/// A larder that runs by another file, or by flags alone: this file is not its next config. With what to do.
fn stranger(file: &Path, process: u32) -> Option<(String, String)> {
    let of_another = match port_holder::started_with(process)? {
        StartedWith::FlagsAlone => "without a config".to_owned(),
        StartedWith::Config(other) => {
            let is_this = same_file(file, &other)?;
            (!is_this).then(|| format!("by {}", other.display()))?
        }
    };
    let advice = "end that larder, or take another place; a copy that is to take the place of its config is checked by --file-only, or there";
    Some((format!("a larder that runs {of_another} (process {process})"), advice.to_owned()))
}

/// None where one of them is not there.
fn same_file(one: &Path, other: &Path) -> Option<bool> {
    Some(one.canonicalize().ok()? == other.canonicalize().ok()?)
}

const RELOAD_ADVICE: &str = "if this is its next config: larder reload, or kill -HUP, has it taken over";

/// Somebody answers at a UNIX socket: who it is nobody can look up.
fn answered(shown: &str, setting: &str) -> MachineFinding {
    let message = format!("{shown} is in use by another program, or by a larder that runs ({setting})");
    MachineFinding::warning(format!("{message}: {RELOAD_ADVICE}"))
}

fn bind(address: SocketAddr) -> io::Result<()> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())
}

/// Three ways to listen below 1024 without being root.
fn low_port_advice(port: u16) -> String {
    let program = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("/usr/bin/larder"));
    format!(
        "under systemd AmbientCapabilities=CAP_NET_BIND_SERVICE in [Service]; or once, as root: setcap cap_net_bind_service=+ep {}; \
         or for all programs: sysctl net.ipv4.ip_unprivileged_port_start={port}",
        program.display()
    )
}

/// Those that are near their end, past it, or not yet good. Whether they and their keys can be read was seen before.
fn certificates(plan: &Plan) -> Vec<MachineFinding> {
    let now_s = wall_now_ms() / 1_000;
    let shown = plan.settings.listeners.iter().filter_map(|listener| listener.tls.as_ref());
    let shown: Vec<_> = shown.flat_map(|tls| tls.certificates()).collect();
    let early = shown.iter().filter(|certificate| certificate.validity().from_s > now_s).map(|certificate| {
        let (names, date) = (certificate.names().join(", "), show_date(certificate.validity().from_s));
        format!("the certificate for {names} is not good before {date}: clients do not trust it yet")
    });
    let ends = ExpiryWatch::default().look(shown.iter(), now_s);
    early.chain(ends).map(|why| MachineFinding::warning(format!("{why} (cert of [listen.tls], --cert)"))).collect()
}

/// Hosts of routes that are asked for by https:// and that no certificate is for, nor will be.
pub fn uncovered_hosts(plan: &Plan) -> Vec<MachineFinding> {
    const HOSTS_NAMED: usize = 5;
    let shown = plan.settings.listeners.iter().filter_map(|listener| listener.tls.as_ref());
    let certificates: Vec<_> = shown.flat_map(|tls| tls.certificates()).collect();
    if certificates.is_empty() {
        return Vec::new();
    }
    let ordered: Vec<&str> =
        plan.acme.iter().flat_map(|acme| &acme.sets).flat_map(|set| set.names()).map(String::as_str).collect();
    let is_covered = |host: &str| certificates.iter().any(|one| one.covers(host)) || ordered.contains(&host);
    let is_name = |host: &&str| host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().is_err();
    let mut hosts: Vec<&str> = plan.settings.routes.iter().filter_map(|route| route.host.as_deref()).collect();
    hosts.sort_unstable();
    hosts.dedup();
    let mut names: Vec<&str> = certificates.iter().flat_map(|one| one.names()).map(String::as_str).collect();
    names.sort_unstable();
    names.dedup();
    let names = if names.is_empty() { "no name".to_owned() } else { names.join(", ") };
    let uncovered = hosts.into_iter().filter(is_name).filter(|host| !is_covered(host)).take(HOSTS_NAMED);
    let finding = |host: &str| {
        let message = format!(
            "no certificate is for {host}, the host of a [[route]]: browsers that ask for it by https:// are shown one for {names}, and refuse it \
             (cert of [listen.tls], --cert)"
        );
        MachineFinding::warning(message)
    };
    uncovered.map(finding).collect()
}

/// Directories of files that this user may not read or that are not there, with which nobody serves, each once; and those whose scripts would be
/// shown and not run.
pub fn roots(plan: &Plan) -> Vec<MachineFinding> {
    let settings = &plan.settings;
    let finding = |(at, root): (usize, &RootSettings)| {
        let is_its = |target: RouteTarget| matches!(target, RouteTarget::Root(root) if root == at);
        let route = settings.routes.iter().find(|route| is_its(route.target));
        let of_route = match route.map(|route| (route.host.as_deref(), &*route.path_prefix)) {
            None | Some((None, "/")) => String::new(),
            Some((host, path)) => format!(" of {}{path}", host.unwrap_or_default()),
        };
        let shown = format!("the root {}{of_route}", root.directory.display());
        if let Some(why) = readable_folder(&root.directory) {
            return Some(MachineFinding::fatal(format!("{shown} {why} ([[route]] root, --root)")));
        }
        let is_silent = root.scripts.is_some() || root.sources == ShownSources::All;
        let script = unrun_script(root, route).filter(|_| !is_silent)?;
        let message = format!("{shown} has an {script}, which is neither run nor shown ([[route]] root, --root)");
        Some(MachineFinding::warning(message).advise(SCRIPTS_ADVICE.to_owned()))
    };
    let mut found: Vec<(&Path, MachineFinding)> = Vec::new();
    for (at, root) in settings.roots.iter().enumerate() {
        let Some(one) = finding((at, root)) else { continue };
        // A preset has roots of its own for some paths of a route, in the same directory; and other routes may have it, too.
        let is_said =
            found.iter().any(|(directory, said)| *said == one || said.is_fatal && *directory == root.directory);
        if !is_said {
            found.push((&root.directory, one));
        }
    }
    found.into_iter().map(|(_, finding)| finding).collect()
}

const SCRIPTS_ADVICE: &str = "fastcgi in an [origin.NAME] and origin = \"NAME\" in the route have php-fpm run it (docs/php.md); \
                              closed_paths = ['[.]php'] closes it; sources = true shows it as it is";

/// The index of an application in PHP, at the top of a root or where its route begins, unless it is closed.
fn unrun_script(root: &RootSettings, route: Option<&RouteSettings>) -> Option<String> {
    let beginning = route.map_or("", |route| route.path_prefix.trim_matches('/'));
    let names = [String::new(), format!("{beginning}/")].map(|folder| format!("{folder}index.php"));
    let closed = route.and_then(|route| route.closed.as_ref());
    let is_open = |name: &String| closed.is_none_or(|closed| !closed.close(format!("/{name}").as_bytes()));
    let is_there = |name: &String| root.directory.join(name.trim_start_matches('/')).is_file();
    names.into_iter().find(|name| is_there(name) && is_open(name)).map(|name| name.trim_start_matches('/').to_owned())
}

/// A file, or a directory that one is made in, with room for it.
fn disk(file: &Path, path: &Path, bytes: u64) -> Option<MachineFinding> {
    const SETTING: &str = "([[disk]] path, --disk)";
    let shown = path.display();
    let why = if path.is_dir() { writable_existing(path) } else { writable_file(path) };
    if let Some(why) = why {
        let message = format!("the disk {shown} {why} {SETTING}");
        return Some(MachineFinding { is_fatal: !is_read_only(path), message, advice: None });
    }
    if let Some(finding) = locked(file, path) {
        return Some(finding);
    }
    let folder = if path.is_dir() { path } else { parent(path) };
    let held = held(path);
    let free = statvfs(folder).ok().map(|system| system.f_bavail.saturating_mul(system.f_frsize))?;
    (bytes > free.saturating_add(held)).then(|| {
        let (bytes, free) = (show_size(bytes), show_size(free));
        let message = format!("the disk {shown} is to have {bytes}, and {free} are free there ([[disk]] size, --disk)");
        MachineFinding::fatal(message)
    })
}

/// A disk that another process uses, unless that is the larder that this file is for.
fn locked(file: &Path, path: &Path) -> Option<MachineFinding> {
    let process = lock_holder::of(&cache::disk_file(path))?;
    let (whom, advice) = match port_holder::started_with(process) {
        Some(_) => stranger(file, process)?,
        None => {
            (format!("another process ({process})"), "stop that one, or give this one a disk of its own".to_owned())
        }
    };
    let message = format!("the disk {} is in use by {whom} ([[disk]] path, --disk)", path.display());
    Some(MachineFinding::fatal(message).advise(advice))
}

/// What lies there already: the disk of an earlier start is used again.
fn held(path: &Path) -> u64 {
    let length = |file: std::fs::DirEntry| file.metadata().map_or(0, |file| file.len());
    match std::fs::read_dir(path) {
        Ok(files) => files.filter_map(Result::ok).map(length).sum(),
        Err(_) => std::fs::metadata(path).map_or(0, |file| file.len()),
    }
}

fn parent(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn readable_folder(folder: &Path) -> Option<String> {
    match std::fs::metadata(folder) {
        Ok(found) if !found.is_dir() => Some("is no directory".to_owned()),
        Ok(_) => may(folder, Access::READ_OK | Access::EXEC_OK, "cannot be read"),
        Err(error) => Some(format!("cannot be read ({error})")),
    }
}

/// A file that is there, or one that can be made.
fn writable_file(file: &Path) -> Option<String> {
    match std::fs::metadata(file) {
        Ok(found) if found.is_dir() => Some("is a directory".to_owned()),
        Ok(_) => may(file, Access::WRITE_OK, "cannot be written"),
        Err(_) => {
            let folder = parent(file);
            writable_existing(folder).map(|why| format!("cannot be made: the folder {} {why}", folder.display()))
        }
    }
}

/// A folder that is there, or one that can be made with all above it.
fn writable_folder(folder: &Path) -> Option<String> {
    let there = folder.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("."));
    match writable_existing(there) {
        Some(why) if there == folder => Some(why),
        Some(why) => Some(format!("cannot be made: {} {why}", there.display())),
        None => None,
    }
}

fn writable_existing(folder: &Path) -> Option<String> {
    match std::fs::metadata(folder) {
        Ok(found) if !found.is_dir() => Some("is no directory".to_owned()),
        Ok(_) => may(folder, Access::WRITE_OK | Access::EXEC_OK, "cannot be written"),
        Err(error) => Some(format!("cannot be written ({error})")),
    }
}

/// It lies on a file system that takes no writes: a fault that passes, and with which larder starts.
fn is_read_only(path: &Path) -> bool {
    let there = if path.exists() { path } else { parent(path) };
    accessat(CWD, there, Access::WRITE_OK, AtFlags::EACCESS) == Err(Errno::ROFS)
}

/// What this process may not, as the user that it is.
fn may(path: &Path, access: Access, what: &str) -> Option<String> {
    let error = accessat(CWD, path, access, AtFlags::EACCESS).err()?;
    Some(format!("{what} ({})", io::Error::from(error)))
}
