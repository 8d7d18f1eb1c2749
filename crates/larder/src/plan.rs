//! What one run of larder is to do: the defaults, then larder.toml, then the flags, each over the one before.
//!
//! A plan is complete and checked; `serve` carries it out. It is made anew at every reload.

use std::path::PathBuf;

use acme::NameSet;
use cache::{Admission, DiskFile};
use proxy::limits::Limits;
use proxy::settings::{
    BalanceSettings, CompressSettings, EsiSettings, EvictionChoice, FleetSecret, ForwardSettings, Greeting,
    ListenAddress, ListenMode, ListenerSettings, LogFormat, Network, OriginSettings, OriginTimeouts, OriginTls,
    OriginUrl, PolicySettings, ResolverSettings, RetrySettings, RootSettings, RouteSettings, RouteTarget, Settings,
    VclParameters,
};

use shared::TierSettings;

use crate::acme_plan::{AcmePlan, AcmeSettings};
use crate::addresses::{AdminAddress, show_listen};
use crate::authority_files;
use crate::fleet_plan::LogPlan;
use crate::limits;
use crate::process_user::UserWord;
use crate::quantities::show_size;
use crate::tls_files::TlsFiles;
use crate::trace_collector::TraceCollector;
use crate::varnish_parameters;

#[derive(Clone, Debug)]
pub struct Plan {
    pub settings: Settings,
    /// `None`: one for each core.
    pub workers: Option<usize>,
    /// Whom root becomes.
    pub process_user: Option<UserWord>,
    /// What the process gives up once it is bound.
    pub sandbox: SandboxPlan,
    /// A crash may leave the memory on a disk, as the system's limits have it.
    pub core_dumps: bool,
    pub admin: AdminPlan,
    pub log: Option<LogTarget>,
    /// Files beneath the memory, which outlive the process.
    pub disks: Vec<DiskFile>,
    pub disk_admission: Admission,
    /// Bodies from this size on are sent from the disk's file.
    pub disk_leases_from: Option<u64>,
    /// The VCL that decides in place of the built-in policy.
    pub vcl_file: Option<PathBuf>,
    /// Where VCLs look for what they include; empty: where Varnish does.
    pub vcl_path: Vec<PathBuf>,
    /// In place of varnishd: a program with something that nothing uses is not loaded.
    pub refuses_unused: bool,
    /// The file says how many connections there may be, or tunnels.
    pub asks_for_connections: bool,
    /// What the operator should know before anything starts.
    pub warnings: Vec<String>,
    /// The files of listeners that speak TLS.
    pub tls_files: Vec<(ListenAddress, TlsFiles)>,
    /// The log of purges that this node shares with others.
    pub fleet_log: Option<LogPlan>,
    /// Where spans of traces go.
    pub trace_collector: Option<TraceCollector>,
    /// The certificates that are ordered from an authority.
    pub acme: Option<AcmePlan>,
    /// Parameters that were set and that only a VCL reads.
    pub of_programs: Vec<&'static str>,
    /// By what is in it the nodes of the fleet know one another.
    pub fleet_secret_file: Option<PathBuf>,
    /// What was read from there.
    pub fleet_secret: Option<FleetSecret>,
    /// What the nodes keep for one another.
    pub shared: Option<TierSettings>,
    /// Files that were read with the config: certificates, keys.
    pub files_read: Vec<PathBuf>,
}

/// Whether larder fences itself in, and which files it keeps that the rest of the plan does not name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxPlan {
    pub is_on: bool,
    /// Files and folders that are read besides.
    pub reads: Vec<PathBuf>,
    /// Folders that are written in besides.
    pub writes: Vec<PathBuf>,
    /// The file that the plan is of, which every reload reads.
    pub config: Option<PathBuf>,
    /// Where the addresses are told, anew after every reload.
    pub ports_file: Option<PathBuf>,
}

impl Default for SandboxPlan {
    fn default() -> SandboxPlan {
        SandboxPlan { is_on: true, reads: Vec::new(), writes: Vec::new(), config: None, ports_file: None }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdminPlan {
    /// The field by which a request with the token asks why it is answered as it is.
    pub explain_header: Option<String>,
    pub address: AdminAddress,
    /// An address that was asked for and is taken is an error, the default one a warning.
    pub asked_for: bool,
    /// What a client must present to change anything over TCP; without one only the UNIX socket may.
    pub token: Option<String>,
    /// Where that is read from.
    pub token_file: Option<PathBuf>,
    pub history: HistoryPlace,
}

/// Where the dashboard's history is kept over a restart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum HistoryPlace {
    /// Beside the first disk, if there is one.
    #[default]
    BesideDisk,
    At(PathBuf),
    /// In memory alone.
    Off,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogTarget {
    Stdout,
    File(PathBuf),
}

impl LogTarget {
    pub fn parse(text: &str) -> LogTarget {
        match text {
            "-" => LogTarget::Stdout,
            path => LogTarget::File(PathBuf::from(path)),
        }
    }
}

pub const LISTEN_DEFAULT: ([u8; 4], u16) = ([127, 0, 0, 1], 8080);
pub const ADMIN_DEFAULT: ([u8; 4], u16) = ([127, 0, 0, 1], 9180);

impl Default for Plan {
    fn default() -> Plan {
        Plan {
            settings: Settings {
                listeners: vec![listener_by_default()],
                routes: Vec::new(),
                origins: Vec::new(),
                roots: Vec::new(),
                status_pages: Vec::new(),
                forward: ForwardSettings::default(),
                memcached: Vec::new(),
                policy: PolicySettings::default(),
                compress: CompressSettings::default(),
                esi: EsiSettings::default(),
                vcl: VclParameters::default(),
                limits: Limits::default(),
                resolver: ResolverSettings::default(),
                authorities: || authority_files::of_system().ok(),
                memory_bytes_max: limits::MEMORY_BYTES_DEFAULT as usize,
                eviction: EvictionChoice::S3Fifo,
                server_name: "larder".to_owned(),
                trusted_proxies: Vec::new(),
                odd_field_names: false,
                details_to: Network::LOOPBACK.to_vec(),
                explain_field: None,
                fleet: None,
                log_format: LogFormat::Combined,
                debug: false,
                as_varnishd: false,
                accepts_h2c: false,
                http2_short_frames: false,
                hsts: None,
                traces: None,
            },
            workers: None,
            process_user: None,
            sandbox: SandboxPlan::default(),
            core_dumps: false,
            admin: AdminPlan {
                address: AdminAddress::At(ListenAddress::Tcp(ADMIN_DEFAULT.into())),
                asked_for: false,
                token: None,
                token_file: None,
                explain_header: None,
                history: HistoryPlace::default(),
            },
            log: None,
            disks: Vec::new(),
            disk_admission: Admission::All,
            disk_leases_from: None,
            vcl_file: None,
            vcl_path: Vec::new(),
            refuses_unused: false,
            asks_for_connections: false,
            warnings: Vec::new(),
            tls_files: Vec::new(),
            fleet_log: None,
            trace_collector: None,
            acme: None,
            of_programs: Vec::new(),
            fleet_secret_file: None,
            fleet_secret: None,
            shared: None,
            files_read: Vec::new(),
        }
    }
}

impl Plan {
    /// The file of the dashboard's history, if it has one.
    pub fn history_file(&self) -> Option<PathBuf> {
        match &self.admin.history {
            HistoryPlace::Off => None,
            HistoryPlace::At(path) => Some(path.clone()),
            HistoryPlace::BesideDisk => {
                let disk = &self.disks.first()?.path;
                if disk.is_dir() {
                    return Some(disk.join("larder.history"));
                }
                let mut beside = disk.clone().into_os_string();
                beside.push(".history");
                Some(beside.into())
            }
        }
    }

    /// Everything goes to one origin: what `--origin` asks for.
    pub fn accelerate(&mut self, urls: Vec<OriginUrl>) {
        self.settings.origins = vec![origin_with_defaults("origin".to_owned(), urls)];
        self.settings.roots = Vec::new();
        self.settings.status_pages = Vec::new();
        self.settings.memcached = Vec::new();
        self.settings.routes = vec![everything(RouteTarget::Origin(0))];
    }

    /// Files of one directory answer everything: what `--root` asks for.
    pub fn serve_files(&mut self, directory: PathBuf) {
        self.settings.origins = Vec::new();
        self.settings.roots = vec![RootSettings::of(directory)];
        self.settings.status_pages = Vec::new();
        self.settings.memcached = Vec::new();
        self.settings.routes = vec![everything(RouteTarget::Root(0))];
    }

    /// Certificates for these names come from an authority. The listeners are known by now.
    pub fn order(&mut self, settings: Option<AcmeSettings>, sets: Vec<NameSet>) {
        let Some(settings) = settings else { return };
        if sets.is_empty() {
            let why = "[acme] is not used: no [listen.tls] says acme = [\"NAME\"]";
            return self.warnings.push(why.to_owned());
        }
        let is_plain = |listener: &ListenerSettings| listener.tls.is_none() && listener.mode != ListenMode::Forward;
        let listens_plain = self.settings.listeners.iter().any(is_plain);
        let mut plan = AcmePlan { settings, sets };
        self.warnings.extend(plan.fit(listens_plain));
        self.acme = Some(plan);
    }

    /// Is there anybody to answer?
    pub fn serves_something(&self) -> bool {
        self.accelerates_something() || self.settings.listeners.iter().any(|l| l.mode != ListenMode::Accelerate)
    }

    /// Is there anything that a listener could stand in front of?
    pub fn accelerates_something(&self) -> bool {
        let settings = &self.settings;
        let answers = !settings.origins.is_empty() || !settings.roots.is_empty() || !settings.memcached.is_empty();
        // A route without any of these answers by itself: it leads elsewhere, says a text, or is closed.
        answers || !settings.routes.is_empty() || self.vcl_file.is_some()
    }

    /// The warnings, and what was set and changes nothing.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = self.warnings.clone();
        warnings.extend(
            self.tls_files.iter().flat_map(|(_, files)| [files.open_to_others(), files.not_stapled()].concat()),
        );
        if self.settings.hsts.is_some() && !self.settings.listeners.iter().any(|listener| listener.tls.is_some()) {
            let why = "hsts changes nothing: it is said over TLS of ours alone, and no listener speaks that (tls of [[listen]], --tls)";
            warnings.push(why.to_owned());
        }
        warnings.extend(self.open_admin());
        if self.settings.trusted_proxies.iter().any(|network| network.prefix_bits == 0) {
            let why = "trusted_proxies are all addresses there are: whoever asks says who he is, and `allow`, `deny` and rate limits believe it";
            warnings.push(why.to_owned());
        }
        let all = |networks: &[Network]| networks.iter().any(|network| network.prefix_bits == 0);
        let of_routes = self.settings.routes.iter().any(|route| route.purge_from.as_deref().is_some_and(all));
        if of_routes || all(&self.settings.policy.purge_from) {
            let why = "purge_from are all addresses there are: whoever reaches larder may empty the cache, URL by URL, and have the origin asked anew";
            warnings.push(why.to_owned());
        }
        if self.vcl_file.is_none() {
            let is_idle = |name: &&str| {
                let why = "only a VCL reads it, and none decides here ([policy] vcl, --vcl)";
                let instead = varnish_parameters::without_program(name).map(|write| format!("; {write}"));
                format!("the parameter {name} changes nothing: {why}{}", instead.unwrap_or_default())
            };
            warnings.extend(self.of_programs.iter().map(is_idle));
        }
        warnings
    }

    /// Anybody who reaches the admin address reads all of it.
    fn open_admin(&self) -> Option<String> {
        let AdminAddress::At(address) = &self.admin.address else { return None };
        let is_for_others = matches!(address, ListenAddress::Tcp(at) if !at.ip().to_canonical().is_loopback());
        let shown = show_listen(address);
        is_for_others.then(|| format!("other machines can read the admin address {shown} (--admin, [admin] address)"))
    }

    /// What can never come to be used, and was surely meant to be.
    pub fn contradiction(&self) -> Option<&'static str> {
        let accelerates = self.settings.listeners.iter().any(|listener| listener.mode == ListenMode::Accelerate);
        (self.vcl_file.is_some() && !accelerates).then_some(
            "a VCL decides for the servers behind larder, and all listeners are forward proxies, which go by [forward], or \
             redirect: add a [[listen]] or --listen that accelerates, or leave the VCL out",
        )
    }

    pub fn workers_count(&self) -> usize {
        self.workers.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
    }
}

/// Where https:// is spoken, for those who are sent there.
pub fn https_port_of(listeners: &[ListenerSettings]) -> u16 {
    let port = |listener: &ListenerSettings| match listener.address {
        ListenAddress::Tcp(address) if listener.tls.is_some() => Some(address.port()),
        _ => None,
    };
    listeners.iter().find_map(port).unwrap_or(443)
}

pub fn listener_by_default() -> ListenerSettings {
    ListenerSettings::at(ListenAddress::Tcp(LISTEN_DEFAULT.into()))
}

pub fn everything(target: RouteTarget) -> RouteSettings {
    RouteSettings::to(target)
}

pub fn origin_with_defaults(name: String, urls: Vec<OriginUrl>) -> OriginSettings {
    OriginSettings {
        name,
        urls,
        connections_max: limits::ORIGIN_CONNECTIONS_MAX_DEFAULT,
        queue_max: limits::ORIGIN_QUEUE_MAX_DEFAULT,
        queue_timeout: limits::ORIGIN_QUEUE_TIMEOUT_DEFAULT,
        ejection_failures: limits::ORIGIN_EJECTION_FAILURES_DEFAULT,
        ejection_time: limits::ORIGIN_EJECTION_TIME_DEFAULT,
        balance: BalanceSettings::default(),
        probe: None,
        retries: RetrySettings::default(),
        host: None,
        timeouts: OriginTimeouts::default(),
        greeting: Greeting::default(),
        tls: OriginTls::default(),
        http2: false,
        fastcgi: None,
    }
}

/// The bytes of a disk.
pub fn check_disk(bytes: u64) -> Result<u64, String> {
    let least = DiskFile::BYTES_MIN;
    if bytes < least {
        return Err(format!("{} is too little for a disk: at least {}", show_size(bytes), show_size(least)));
    }
    Ok(bytes)
}

pub fn check_memory(bytes: u64) -> Result<usize, String> {
    if bytes < limits::MEMORY_BYTES_MIN {
        let least = crate::quantities::show_size(limits::MEMORY_BYTES_MIN);
        return Err(format!("{} is too little memory: at least {least}", crate::quantities::show_size(bytes)));
    }
    usize::try_from(bytes).map_err(|_| "more than this machine can address".to_owned())
}
