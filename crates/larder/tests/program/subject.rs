//! The program under test, started in front of a recording origin: larder itself, or, to see that the harness
//! finds what it should, another server (LARDER_BAD_INPUT_TARGET=nginx|haproxy) or a proxy that copies bytes blindly.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::lane::now_ms;
use crate::peer_process::{free_address, wait_until_it_listens};
use crate::site_folder;
use crate::stillness::Stillness;

/// Which program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Larder,
    Nginx,
    Haproxy,
    /// A thread of ours that forwards whatever comes.
    Copier,
}

impl Kind {
    /// What the environment asks for.
    pub fn from_environment() -> Kind {
        match std::env::var("LARDER_BAD_INPUT_TARGET").as_deref() {
            Err(_) | Ok("") | Ok("larder") => Kind::Larder,
            Ok("nginx") => Kind::Nginx,
            Ok("haproxy") => Kind::Haproxy,
            Ok("copier") => Kind::Copier,
            Ok(other) => panic!("LARDER_BAD_INPUT_TARGET={other}: larder, nginx, haproxy or copier"),
        }
    }
}

/// How larder is set up.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// Lines for `[limits]`.
    pub limits: String,
    /// Lines for `[policy]`.
    pub policy: String,
    /// Further sections of the configuration.
    pub extra: String,
    /// Keep a log, in this format.
    pub log_format: Option<&'static str>,
    pub workers: Option<u32>,
    /// `memory.size`, where it is not 64MiB.
    pub memory: Option<&'static str>,
    /// A shell command before the program, such as `ulimit -n 64;`.
    pub shell: String,
    /// Where the log goes instead of a file of its own.
    pub log_path: Option<String>,
    /// With the files and routes of `site_folder`.
    pub files: bool,
    /// A forward proxy, to which only this origin is open.
    pub forward: bool,
    /// Whom a forward proxy asks for names; nobody, unless it is said.
    pub name_server: Option<SocketAddr>,
    pub password_file: Option<PathBuf>,
    /// Another destination that is open.
    pub extra_destination: Option<SocketAddr>,
    /// Lines for `[forward]`.
    pub forward_lines: String,
}

#[derive(Debug)]
pub struct Subject {
    pub kind: Kind,
    pub address: SocketAddr,
    /// The listener that expects a PROXY header.
    pub proxied: Option<SocketAddr>,
    pub admin: Option<SocketAddr>,
    pub stillness: Stillness,
    pub directory: PathBuf,
    pub log: Option<PathBuf>,
    pub child: Option<Child>,
    pub config: PathBuf,
}

/// Of a program's standard error, the first lines tell what happened.
const ERROR_LINES_MAX: usize = 12;

static SUBJECTS_COUNT: AtomicU32 = AtomicU32::new(0);

impl Subject {
    /// Starts the program before this origin and waits until it listens.
    pub fn start(kind: Kind, origin: SocketAddr, setup: &Setup) -> Subject {
        let number = SUBJECTS_COUNT.fetch_add(1, Ordering::Relaxed);
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{number}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("the target folder can be written");
        match kind {
            Kind::Larder => Subject::larder(directory, origin, setup),
            Kind::Nginx => Subject::nginx(directory, origin),
            Kind::Haproxy => Subject::haproxy(directory, origin),
            Kind::Copier => Subject::copier(directory, origin),
        }
    }

    fn larder(directory: PathBuf, origin: SocketAddr, setup: &Setup) -> Subject {
        let config = directory.join("larder.toml");
        let ports = directory.join("ports");
        let log = setup.log_format.map(|_| directory.join("access.log"));
        let log_path = setup.log_path.clone().or(log.as_ref().map(|log| log.display().to_string()));
        if setup.files {
            site_folder::fill(&directory);
        }
        let text = larder_config(origin, setup, log_path.as_deref());
        std::fs::write(&config, text).expect("the target folder can be written");
        let program = std::env::var("LARDER_BAD_INPUT_BINARY").unwrap_or(env!("CARGO_BIN_EXE_larder").to_string());
        let mut words = vec![program, "serve".into(), "--no-supervisor".into()];
        let workers = setup.workers.unwrap_or(1).to_string();
        for (flag, value) in [
            ("--config", config.display().to_string()),
            ("--ports-file", ports.display().to_string()),
            ("--admin", "127.0.0.1:0".into()),
            ("--workers", workers),
        ] {
            words.extend([flag.to_string(), value]);
        }
        let errors = std::fs::File::create(directory.join("stderr")).expect("the target folder can be written");
        let mut command = match setup.shell.is_empty() {
            true => Command::new(&words[0]),
            false => {
                let mut shell = Command::new("sh");
                shell.args(["-c", &format!("{} exec \"$0\" \"$@\"", setup.shell), &words[0]]);
                shell
            }
        };
        command.args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors);
        let mut child = command.spawn().expect("larder can be started");
        let listed = wait_for_ports(&ports, &mut child, &directory);
        let address_of = |name: &str| listed.iter().find(|(listed, _)| listed == name).map(|(_, address)| *address);
        Subject {
            kind: Kind::Larder,
            address: address_of("listen").expect("the ports file names the first listener"),
            proxied: address_of("listen.1"),
            admin: address_of("admin"),
            stillness: Stillness::of(vec![child.id()]),
            directory,
            log,
            child: Some(child),
            config,
        }
    }

    fn nginx(directory: PathBuf, origin: SocketAddr) -> Subject {
        let address = free_address();
        let place = directory.display();
        let config = format!(
            "daemon off; master_process off; pid {place}/pid; error_log {place}/error.log;\n\
             events {{ worker_connections 4096; }}\n\
             http {{ access_log off; client_body_temp_path {place}/b; proxy_temp_path {place}/p;\n\
             fastcgi_temp_path {place}/f; uwsgi_temp_path {place}/u; scgi_temp_path {place}/s;\n\
             proxy_cache_path {place}/cache keys_zone=z:8m; large_client_header_buffers 4 32k;\n\
             upstream o {{ server {origin}; keepalive 8; }}\n\
             server {{ listen {address}; keepalive_requests 100000; proxy_cache z; proxy_http_version 1.1;\n\
             proxy_set_header Connection ''; proxy_set_header Host $host; client_max_body_size 0;\n\
             location / {{ proxy_pass http://o; }} }} }}\n"
        );
        let path = directory.join("nginx.conf");
        std::fs::write(&path, config).expect("the target folder can be written");
        let arguments = ["-c", path.to_str().expect("a plain path"), "-e", "/dev/null"];
        Subject::other(Kind::Nginx, directory, address, "nginx", &arguments)
    }

    fn haproxy(directory: PathBuf, origin: SocketAddr) -> Subject {
        let address = free_address();
        let config = format!(
            "global\n  maxconn 4096\n  nbthread 1\ndefaults\n  mode http\n  timeout connect 5s\n  timeout client 60s\n\
             \x20 timeout server 60s\ncache c\n  total-max-size 64\nfrontend f\n  bind {address}\n  default_backend b\n\
             backend b\n  http-request cache-use c\n  http-response cache-store c\n  server o {origin}\n"
        );
        let path = directory.join("haproxy.cfg");
        std::fs::write(&path, config).expect("the target folder can be written");
        let arguments = ["-db", "-f", path.to_str().expect("a plain path")];
        Subject::other(Kind::Haproxy, directory, address, "haproxy", &arguments)
    }

    fn other(kind: Kind, directory: PathBuf, address: SocketAddr, program: &str, arguments: &[&str]) -> Subject {
        let errors = std::fs::File::create(directory.join("stderr")).expect("the target folder can be written");
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors);
        let child = command.spawn().unwrap_or_else(|error| panic!("{program}: {error}"));
        wait_until_it_listens(address);
        let stillness = Stillness::of(vec![child.id()]);
        let config = directory.join("config");
        Subject {
            kind,
            address,
            proxied: None,
            admin: None,
            stillness,
            directory,
            log: None,
            child: Some(child),
            config,
        }
    }

    /// A proxy that forwards each connection's bytes as they are: everything that a strict one must not do.
    fn copier(directory: PathBuf, origin: SocketAddr) -> Subject {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a loopback port is free");
        let address = listener.local_addr().expect("a bound listener has an address");
        let (tell, told) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let _ = tell.send(rustix::thread::gettid().as_raw_nonzero().get());
            for client in listener.incoming().flatten() {
                let Ok(mut upstream) = TcpStream::connect(origin) else { return };
                let (mut from, mut back) = (
                    upstream.try_clone().expect("a socket can be cloned"),
                    client.try_clone().expect("a socket can be cloned"),
                );
                let answers = std::thread::spawn(move || std::io::copy(&mut from, &mut back));
                let _ = std::io::copy(&mut &client, &mut upstream);
                let _ = upstream.shutdown(std::net::Shutdown::Write);
                let _ = answers.join();
            }
        });
        let stillness = Stillness::of_thread(told.recv().expect("the thread has started"));
        let config = directory.join("config");
        let kind = Kind::Copier;
        Subject { kind, address, proxied: None, admin: None, stillness, directory, log: None, child: None, config }
    }

    /// Where another listener of larder's is, by its name in the ports file.
    pub fn listener(&self, name: &str) -> Option<SocketAddr> {
        let text = std::fs::read_to_string(self.directory.join("ports")).ok()?;
        text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
    }

    pub fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// Is it the process that was started?
    pub fn is_alive(&mut self) -> bool {
        self.child.as_mut().is_none_or(|child| matches!(child.try_wait(), Ok(None)))
    }

    /// How it ended, if it has.
    pub fn exit_code(&mut self) -> Option<i32> {
        self.child.as_mut()?.try_wait().ok()??.code()
    }

    /// One value of `/metrics`, summed over its labels; `None` without an admin address or such a name.
    pub fn metric(&self, name: &str) -> Option<f64> {
        let text = get(self.admin?, "/metrics").ok()?;
        let values = text.lines().filter_map(|line| {
            let (series, value) = line.rsplit_once(' ')?;
            (series.split('{').next() == Some(name)).then(|| value.parse::<f64>().ok())?
        });
        let values: Vec<f64> = values.collect();
        (!values.is_empty()).then(|| values.iter().sum())
    }

    /// All of `/metrics`.
    pub fn metrics(&self) -> String {
        self.admin.and_then(|admin| get(admin, "/metrics").ok()).unwrap_or_default()
    }

    /// A number of `/proc/PID/status`, in KiB where it is a size.
    pub fn process_number(&self, name: &str) -> u64 {
        let Some(pid) = self.pid() else { return 0 };
        let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
    }

    pub fn open_files_count(&self) -> usize {
        let Some(pid) = self.pid() else { return 0 };
        std::fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count)
    }

    /// What it wrote to its standard error.
    pub fn errors(&self) -> String {
        let text = std::fs::read_to_string(self.directory.join("stderr")).unwrap_or_default();
        text.lines().take(ERROR_LINES_MAX).collect::<Vec<_>>().join("\n")
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = self.pid().and_then(|pid| rustix::process::Pid::from_raw(pid as i32)).expect("it is a process");
        rustix::process::kill_process(pid, signal).expect("it is our child");
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
        if std::env::var_os("LARDER_BAD_INPUT_KEEP").is_none() {
            let _ = std::fs::remove_dir_all(&self.directory);
        }
    }
}

/// The configuration of larder: a plain listener, one for PROXY headers, routes to an origin and to a memcached that
/// are not there, and no ejection of the origin, which fails on purpose all the time.
pub fn larder_config(origin: SocketAddr, setup: &Setup, log: Option<&str>) -> String {
    let Setup { limits, policy, extra, .. } = setup;
    let files = if setup.files { site_folder::ROUTES } else { "" };
    let (mode, extra) = match setup.forward {
        false => ("accelerate", extra.clone()),
        true => ("forward", format!("{}{extra}", forward_sections(origin, setup))),
    };
    let format = setup.log_format.unwrap_or("combined");
    let memory = setup.memory.unwrap_or("64MiB");
    let log = log.map(|path| format!("[log]\npath = \"{path}\"\nformat = \"{format}\"\n")).unwrap_or_default();
    format!(
        "server_name = \"badinput\"\n[[listen]]\naddress = \"127.0.0.1:0\"\nmode = \"{mode}\"\n\
         [[listen]]\naddress = \"127.0.0.2:0\"\nmode = \"{mode}\"\nproxy_protocol = true\n\
         {files}[[route]]\npath = \"/refused\"\norigin = \"refused\"\n[[route]]\norigin = \"main\"\n\
         [[route]]\npath = \"/mc\"\nmemcached = \"127.0.0.1:1\"\n\
         [[route]]\npath = \"/mcw\"\nmemcached = \"127.0.0.1:1\"\nlong_keys = \"refuse\"\n\
         commands = [\"get\", \"set\", \"stats\"]\n\
         [[route]]\npath = \"/mcb\"\nmemcached = \"127.0.0.1:1\"\nbinary_keys = \"base64\"\n\
         [[route]]\npath = \"/memc\"\nmemcached = \"127.0.0.1:1\"\nmode = \"nginx-memc\"\n\
         [origin.main]\nurls = [\"http://{origin}\"]\nejection_failures = 1000000\n\
         [origin.refused]\nurls = [\"http://127.0.0.1:1\"]\nejection_failures = 1000000\n\
         [memory]\nsize = \"{memory}\"\n[policy]\npurge_from = [\"192.0.2.1\"]\n{policy}{log}[limits]\n{limits}\n{extra}\n"
    )
}

/// The origin is open by address and port; tunnels lead to every port, so that only what is open counts.
fn forward_sections(origin: SocketAddr, setup: &Setup) -> String {
    let name_server = setup.name_server.unwrap_or(SocketAddr::from(([127, 0, 0, 1], 9)));
    let other = setup.extra_destination.map(|other| format!(", \"{other}\"")).unwrap_or_default();
    let connect_ports = match setup.forward_lines.contains("connect_ports") {
        true => String::new(),
        false => format!("connect_ports = [443, {}]\n", origin.port()),
    };
    let users = setup.password_file.as_ref().map(|file| format!("password_file = {file:?}\n")).unwrap_or_default();
    format!(
        "[forward]\n{}allow_clients = [\"127.0.0.0/8\", \"203.0.113.9\"]\nallow_destinations = [\"{origin}\"{other}]\nports = \"1-65535\"\n{connect_ports}{users}\
         [resolver]\nservers = [\"{name_server}\"]\n[resolver.hosts]\n\
         \"both.test\" = [\"10.0.0.1\", \"127.0.0.1\"]\n\"inside.test\" = [\"10.0.0.1\", \"::1\"]\n",
        setup.forward_lines
    )
}

/// Waits for the file of `NAME ADDRESS` lines.
fn wait_for_ports(path: &Path, child: &mut Child, directory: &Path) -> Vec<(String, SocketAddr)> {
    let deadline_ms = now_ms() + 10_000;
    loop {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let listed: Vec<(String, SocketAddr)> = text
            .lines()
            .filter_map(|line| {
                let (name, address) = line.split_once(' ')?;
                Some((name.to_string(), address.trim().parse().ok()?))
            })
            .collect();
        if listed.iter().any(|(name, _)| name == "admin") {
            return listed;
        }
        let ended = child.try_wait().ok().flatten();
        if ended.is_some() || now_ms() > deadline_ms {
            let errors = std::fs::read_to_string(directory.join("stderr")).unwrap_or_default();
            panic!("larder did not start ({ended:?}, ports file {text:?}): {errors}");
        }
        std::thread::yield_now();
    }
}

/// A plain GET on a connection of its own; the whole answer.
pub fn get(address: SocketAddr, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(std::time::Duration::from_secs(10)))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}
