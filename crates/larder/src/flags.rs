//! What a person types: the commands and their flags, with an example each.
//!
//! Flags are read here and laid over the config's plan in [`ServeFlags::plan`]; nothing else reads argv.

use std::path::PathBuf;

use cache::DiskFile;
use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use proxy::settings::{ListenAddress, ListenMode, ListenerSettings, LogFormat, OriginUrl};

use crate::addresses::{AdminAddress, parse_admin, parse_listen, parse_origin};
use crate::admin_client::RemoteFlags;
use crate::command_examples::{
    BENCH_EXAMPLES, CHECK_EXAMPLES, DEMO_EXAMPLES, EXPLAIN_EXAMPLES, IMPORT_EXAMPLES, INIT_EXAMPLES, LAB_EXAMPLES,
    NOTE_EXAMPLES, RELOAD_EXAMPLES, RUNNING_EXAMPLES, SCHEMA_EXAMPLES, SERVE_EXAMPLES, SHOW_EXAMPLES, TOP_EXAMPLES,
};
use crate::completions::{COMPLETIONS_EXAMPLES, CompletionsFlags};
use crate::config::presets;
use crate::config::{self, ConfigError, SERVER_NAME_FORM, is_server_name};
use crate::explain_command::ExplainUrlFlags;
use crate::fleet_command::FleetCommand;
use crate::import::ImportFlags;
use crate::init_flags::InitFlags;
use crate::limits;
use crate::live_command::{HIST_EXAMPLES, HistFlags, STAT_EXAMPLES, StatFlags, TOP_COMMAND_EXAMPLES, TopFlags};
use crate::load_tool::{BenchFlags, LabCommand};
use crate::log_command::{LOG_EXAMPLES, LogFlags};
use crate::man_pages::{MAN_EXAMPLES, ManFlags};
use crate::note_command::NoteFlags;
use crate::own_files;
use crate::plan::{LogTarget, Plan, check_disk, check_memory, listener_by_default};
use crate::process_flags::ProcessFlags;
use crate::process_user::UserWord;
use crate::purge_command::{
    PURGE_EXAMPLES, PurgeFlags, REFRESH_EXAMPLES, RefreshFlags, TAGS_EXAMPLES, TagsFlags, WARM_EXAMPLES, WarmFlags,
};
use crate::quantities::parse_size;
use crate::reload_command::ReloadFlags;
use crate::support_command::{SUPPORT_EXAMPLES, SupportFlags};
use crate::tls_flags::TlsFlags;
use crate::upgrade_command::{UPGRADE_EXAMPLES, UpgradeFlags};
use crate::varnish_parameters;
use crate::vcl_command::{BAN_EXAMPLES, BanFlags, VclCommand};

/// An HTTP accelerator: it caches the responses of web servers in memory and on disk, and serves them from there.
#[derive(Debug, Parser)]
#[command(name = "larder", version, arg_required_else_help = true, max_term_width = 100, after_help = TOP_EXAMPLES)]
pub struct Flags {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the accelerator
    #[command(after_help = SERVE_EXAMPLES)]
    Serve(Box<ServeFlags>),
    /// Show larder at work: a slow site, larder in front of it, before and after
    #[command(after_help = DEMO_EXAMPLES)]
    Demo(DemoFlags),
    /// Write a short larder.toml: asks three questions, or takes flags
    #[command(after_help = INIT_EXAMPLES)]
    Init(InitFlags),
    /// Check a config or a VCL file without using it; report every mistake with its place
    #[command(after_help = CHECK_EXAMPLES)]
    Check(CheckFlags),
    /// Have the running larder read its config again, and say what is new, or why it is refused
    #[command(after_help = RELOAD_EXAMPLES)]
    Reload(ReloadFlags),
    /// Have the program as it lies on the disk now take over from the running larder, without a connection refused
    #[command(after_help = UPGRADE_EXAMPLES)]
    Upgrade(UpgradeFlags),
    /// Collect what is needed to find out what is wrong into one file: versions, limits, the config without secrets, figures, crash reports
    #[command(after_help = SUPPORT_EXAMPLES)]
    Support(SupportFlags),
    /// Write a line into the history of the running larder, such as the deploy of an application: the dashboard draws it
    #[command(after_help = NOTE_EXAMPLES)]
    Note(NoteFlags),
    /// Look at the fleet that the running larder belongs to
    Fleet {
        #[command(subcommand)]
        command: FleetCommand,
    },
    /// Ask the running larder what it would do with a request: which route and key, what is stored, and why it is no hit
    #[command(after_help = EXPLAIN_EXAMPLES)]
    Explain(ExplainUrlFlags),
    /// Drop stored responses, or make them stale: by URL, prefix, host, pattern, conditions, tag, group, or all of them
    #[command(after_help = PURGE_EXAMPLES)]
    Purge(Box<PurgeFlags>),
    /// Ban stored responses by conditions, as ban() in VCL does
    #[command(after_help = BAN_EXAMPLES)]
    Ban(BanFlags),
    /// Fetch again what is stored, so many a second, and serve it on meanwhile
    #[command(after_help = REFRESH_EXAMPLES)]
    Refresh(Box<RefreshFlags>),
    /// Fetch a list of URLs, or a sitemap, before anybody asks
    #[command(after_help = WARM_EXAMPLES)]
    Warm(Box<WarmFlags>),
    /// List the tags of what is stored, and how many responses carry each
    #[command(after_help = TAGS_EXAMPLES)]
    Tags(Box<TagsFlags>),
    /// Show what may stand in a larder.toml, and what holds
    Config {
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// Translate a config of nginx, Apache, HAProxy, Caddy or Squid to larder.toml, or VCL of Varnish 1 to 3 to VCL 4.1
    #[command(after_help = IMPORT_EXAMPLES)]
    Import(ImportFlags),
    /// Show every figure of a running larder, and how fast it grows
    #[command(after_help = STAT_EXAMPLES)]
    Stat(Box<StatFlags>),
    /// Show which URLs, clients, hosts, origins, … ask most, or cost most
    #[command(after_help = TOP_COMMAND_EXAMPLES)]
    Top(Box<TopFlags>),
    /// Show how long answers take, hits beside the others
    #[command(after_help = HIST_EXAMPLES)]
    Hist(Box<HistFlags>),
    /// Tell which exchanges are over in a running larder, and why each went as it did; record them; group them
    #[command(after_help = LOG_EXAMPLES)]
    Log(Box<LogFlags>),
    /// Load one server, check every answer, and report throughput, latency and errors
    #[command(after_help = BENCH_EXAMPLES)]
    Bench(Box<BenchFlags>),
    /// Compare servers, size a cache from a log, run servers for tests
    #[command(after_help = LAB_EXAMPLES)]
    Lab {
        #[command(subcommand)]
        command: LabCommand,
    },
    /// Format, explain and test VCL files; load them into a running larder
    Vcl {
        #[command(subcommand)]
        command: VclCommand,
    },
    /// Print what has bash, zsh or fish complete commands, flags, files and queries
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions(CompletionsFlags),
    /// Print a page of the manual, or write all of them
    #[command(after_help = MAN_EXAMPLES)]
    Man(ManFlags),
}

/// Flags win over the config file.
#[derive(Clone, Debug, Default, Args)]
pub struct ServeFlags {
    /// The web server to stand in front of: http://HOST[:PORT], https:// or unix:/PATH; several share the load
    #[arg(long = "origin", value_name = "URL", value_parser = parse_origin)]
    pub origins: Vec<OriginUrl>,

    /// Serve the files of this directory; nothing above it is ever shown
    #[arg(long, value_name = "DIR", conflicts_with = "origins")]
    pub root: Option<PathBuf>,

    /// Where to listen: IP:PORT (port 0 picks one), *:PORT or unix:PATH; repeatable [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS", value_parser = parse_listen)]
    pub listen: Vec<ListenAddress>,

    /// Where to listen as a caching forward proxy, for this machine alone unless [forward] says otherwise; repeatable
    #[arg(long, value_name = "ADDRESS", value_parser = parse_listen)]
    pub forward: Vec<ListenAddress>,

    #[command(flatten)]
    pub tls: TlsFlags,

    /// Let clients of --listen speak HTTP/2 without TLS, if they begin with it (prior knowledge)
    #[arg(long)]
    pub h2c: bool,

    /// Send bodies as origins send them: without this, texts go out in the shortest coding that a client takes
    #[arg(long, conflicts_with = "vcl")]
    pub no_compress: bool,

    /// The memory limit of the process, beside a base of 32 MiB [default: 256MiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_memory)]
    pub memory: Option<usize>,

    /// Keep the cache over a restart in this file, or in a file made in this directory; repeatable
    #[arg(long = "disk", value_name = "PATH:SIZE", value_parser = parse_disk)]
    pub disks: Vec<DiskFile>,

    /// Worker threads [default: one for each core]
    #[arg(long, value_name = "N", value_parser = parse_workers)]
    pub workers: Option<usize>,

    /// Become this user once all addresses are bound: NAME or NAME:GROUP, each also as a number; for root alone
    #[arg(long, value_name = "USER", value_parser = UserWord::parse, value_hint = ValueHint::Username)]
    pub user: Option<UserWord>,

    #[command(flatten)]
    pub process: ProcessFlags,

    /// Give up what serving does not need: all other files, and system calls; on or off [default: on, where the kernel can]
    #[arg(long, value_name = "on|off")]
    pub sandbox: Option<SandboxFlag>,

    /// Where to serve /metrics, /status and the dashboard: IP:PORT, unix:PATH or off [default: 127.0.0.1:9180]
    #[arg(long, value_name = "ADDRESS|off", value_parser = parse_admin)]
    pub admin: Option<AdminAddress>,

    /// Write an access log to a file, or to standard output [default: off]
    #[arg(long, value_name = "PATH|-", value_hint = ValueHint::AnyPath)]
    pub log: Option<String>,

    /// The access log's format [default: combined]
    #[arg(long, value_name = "FORMAT")]
    pub log_format: Option<LogFormatFlag>,

    /// Write a line `NAME ADDRESS` for each bound address (listen, listen.1, …, admin) to this file once all are bound
    #[arg(long, value_name = "PATH")]
    pub ports_file: Option<PathBuf>,

    /// Read this larder.toml; flags win over it (docs/larder.toml has every setting)
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Run this VCL file, as Varnish would; its backends take the place of --origin
    #[arg(long, value_name = "FILE")]
    pub vcl: Option<PathBuf>,

    /// Search this directory for included VCL files; repeatable [default: /etc/varnish and /usr/share/varnish/vcl]
    #[arg(long, value_name = "DIR")]
    pub vcl_path: Vec<PathBuf>,

    /// Set a parameter by the name that Varnish has for it, such as default_ttl=1h; repeatable
    #[arg(short = 'p', value_name = "NAME=VALUE", value_parser = varnish_parameters::parse_flag)]
    pub parameters: Vec<(String, String)>,

    /// The name of this larder in Via and Cache-Status [default: larder]
    #[arg(long, value_name = "NAME", value_parser = parse_server_name)]
    pub server_name: Option<String>,
}

#[derive(Clone, Debug, Args)]
pub struct DemoFlags {
    /// End after the measurement
    #[arg(long)]
    pub once: bool,

    /// Where larder listens [default: a free port of this machine]
    #[arg(long, value_name = "ADDRESS", value_parser = parse_listen)]
    pub listen: Option<ListenAddress>,

    /// Where the dashboard is: an address or off [default: a free port of this machine]
    #[arg(long, value_name = "ADDRESS|off", value_parser = parse_admin)]
    pub admin: Option<AdminAddress>,

    /// Requests in each half of the measurement
    #[arg(long, value_name = "N", default_value_t = 400, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub requests: u32,

    /// Print the measurement as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Clone, Debug, Args)]
pub struct CheckFlags {
    /// Configs and VCL files to check; a name that ends in .vcl, or a file that begins with `vcl `, is VCL
    #[arg(required_unless_present = "configs", value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// The same, as `larder serve` has it
    #[arg(long = "config", value_name = "FILE")]
    pub configs: Vec<PathBuf>,

    /// Search this directory for included VCL files; repeatable [default: /etc/varnish and /usr/share/varnish/vcl]
    #[arg(long, value_name = "DIR")]
    pub vcl_path: Vec<PathBuf>,

    /// Look at the files alone, and not whether this machine could serve by them: addresses, folders, certificates, names
    #[arg(long)]
    pub file_only: bool,

    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

impl CheckFlags {
    /// However they are named.
    pub fn all_files(&self) -> impl Iterator<Item = &PathBuf> {
        self.configs.iter().chain(&self.files)
    }
}

#[derive(Clone, Debug, Subcommand)]
pub enum ConfigCommand {
    /// Show every setting that holds with these flags, and where it comes from, as a larder.toml that says the same
    #[command(after_help = SHOW_EXAMPLES)]
    Show(Box<ShowFlags>),
    /// Show the config that the running larder holds, and whether its file says the same by now
    #[command(after_help = RUNNING_EXAMPLES)]
    Running(RemoteFlags),
    /// Print a JSON schema of larder.toml, for editors
    #[command(after_help = SCHEMA_EXAMPLES)]
    Schema,
    /// Print a larder.toml with every key, its default, and what it does, all switched off
    Sample,
    /// Print a preset: the words of routes that sites of a kind need
    Preset {
        #[arg(value_name = "NAME", value_parser = clap::builder::PossibleValuesParser::new(presets::names()))]
        name: String,
    },
    /// Print a page with every key, its type, its default and an example, in Markdown
    Reference,
}

#[derive(Clone, Debug, Args)]
pub struct ShowFlags {
    /// Leave out what is a default
    #[arg(long)]
    pub changed: bool,

    /// Print tokens and passwords as they are; else "(secret)" stands in their place
    #[arg(long)]
    pub secrets: bool,

    /// Print the routes as a program in VCL, and name what of them has none
    #[arg(long, conflicts_with = "changed")]
    pub as_vcl: bool,

    #[command(flatten)]
    pub serve: ServeFlags,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SandboxFlag {
    On,
    Off,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum LogFormatFlag {
    Combined,
    Json,
}

impl ServeFlags {
    fn listeners(&self, with_tls: Vec<ListenerSettings>) -> Vec<ListenerSettings> {
        let at = |address: &ListenAddress| ListenerSettings { h2c: self.h2c, ..ListenerSettings::at(address.clone()) };
        let accelerates = self.listen.iter().map(at);
        let forwards = self
            .forward
            .iter()
            .map(|address| ListenerSettings { mode: ListenMode::Forward, ..ListenerSettings::at(address.clone()) });
        accelerates.chain(with_tls).chain(forwards).collect()
    }

    /// The config's plan, or the default one, with these flags on top.
    pub fn plan(&self) -> Result<Plan, ConfigError> {
        let mut plan = self.config.as_deref().map_or_else(|| Ok(Plan::default()), config::load)?;
        let wrong = |why: String| ConfigError::Unreadable(format!("error: {why}"));
        let acme = self.tls.acme.read().map_err(wrong)?;
        let ordered = acme.as_ref().map(|(settings, names)| settings.certificate_path(names));
        let tls_files = self.tls.files_of_each(ordered.as_deref());
        let with_tls = self.tls.load(ordered.as_deref()).map_err(wrong)?;
        if !self.listen.is_empty() || !with_tls.is_empty() || !self.forward.is_empty() {
            plan.settings.listeners = self.listeners(with_tls);
            plan.tls_files = tls_files;
            // The listeners of the config are gone, and with them what was ordered for them.
            plan.acme = None;
            let (settings, names) = acme.unzip();
            plan.order(settings, names.into_iter().collect());
        }
        if self.no_compress {
            plan.settings.compress.is_on = false;
        }
        if self.tls.hsts.is_some() {
            plan.settings.hsts.clone_from(&self.tls.hsts);
        }
        if let Some(bytes) = self.memory {
            plan.settings.memory_bytes_max = bytes;
        }
        if !self.disks.is_empty() {
            plan.disks.clone_from(&self.disks);
        }
        let settings = &mut plan.settings;
        if let Some(name) = &self.server_name {
            settings.server_name.clone_from(name);
        }
        match self.log_format {
            Some(LogFormatFlag::Combined) => settings.log_format = LogFormat::Combined,
            Some(LogFormatFlag::Json) => settings.log_format = LogFormat::Json,
            None => {}
        }
        if !self.origins.is_empty() {
            plan.accelerate(self.origins.clone());
        }
        if let Some(directory) = &self.root {
            plan.serve_files(directory.clone());
        }
        plan.vcl_file = self.vcl.clone().or(plan.vcl_file);
        // --forward alone adds to nothing, unless there is something to stand in front of.
        if self.listen.is_empty()
            && self.tls.addresses.is_empty()
            && !self.forward.is_empty()
            && plan.accelerates_something()
        {
            plan.settings.listeners.insert(0, listener_by_default());
        }
        plan.workers = self.workers.or(plan.workers);
        plan.process_user = self.user.clone().or(plan.process_user);
        if let Some(sandbox) = self.sandbox {
            plan.sandbox.is_on = sandbox == SandboxFlag::On;
        }
        plan.files_read.extend(self.tls.acme.ca.clone());
        if let Some(address) = &self.admin {
            plan.admin.address = address.clone();
            plan.admin.asked_for = true;
        }
        if let Some(target) = &self.log {
            plan.log = Some(LogTarget::parse(target));
        }
        if !self.vcl_path.is_empty() {
            plan.vcl_path.clone_from(&self.vcl_path);
        }
        for (name, value) in &self.parameters {
            let wrong = |why: String| ConfigError::Unreadable(format!("error: -p {name}: {why}"));
            varnish_parameters::set(&mut plan, name, value).map_err(wrong)?;
        }
        if let Some(why) = plan.contradiction() {
            return Err(ConfigError::Unreadable(format!("error: {why}")));
        }
        Ok(plan)
    }

    /// The same, to be carried out on this machine: no root shows the files that it names.
    pub fn plan_here(&self) -> Result<Plan, ConfigError> {
        let mut plan = self.plan()?;
        own_files::keep_back(&mut plan, self.config.as_deref());
        plan.sandbox.config.clone_from(&self.config);
        plan.sandbox.ports_file.clone_from(&self.ports_file);
        Ok(plan)
    }
}

fn parse_memory(text: &str) -> Result<usize, String> {
    check_memory(parse_size(text)?)
}

fn parse_disk(text: &str) -> Result<DiskFile, String> {
    let (path, size) = text.rsplit_once(':').ok_or("needs a size: PATH:SIZE, such as /var/cache/larder:10GiB")?;
    if path.is_empty() {
        return Err("a disk needs a path: a file, or a directory that it is made in".to_owned());
    }
    Ok(DiskFile { path: PathBuf::from(path), bytes: check_disk(parse_size(size)?)? })
}

fn parse_workers(text: &str) -> Result<usize, String> {
    let max = limits::WORKERS_MAX;
    text.parse().ok().filter(|n| (1..=max).contains(n)).ok_or_else(|| format!("must be 1 to {max}"))
}

fn parse_server_name(text: &str) -> Result<String, String> {
    if is_server_name(text) { Ok(text.to_owned()) } else { Err(SERVER_NAME_FORM.to_owned()) }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_commands_are_well_formed() {
        Flags::command().debug_assert();
    }

    /// Shells complete them.
    #[test]
    fn what_is_called_a_file_is_one() {
        fn see(command: &clap::Command, wrong: &mut Vec<String>) {
            for arg in command.get_arguments() {
                let names = arg.get_value_names().unwrap_or_default();
                let is_file =
                    |name: &str| ["FILE", "DIR", "PATH", "PATH|-", "TRACE"].contains(&name) || name.contains(".");
                if (arg.get_value_hint() == ValueHint::AnyPath) != names.iter().any(|name| is_file(name)) {
                    wrong.push(format!("{} {arg}", command.get_name()));
                }
            }
            command.get_subcommands().for_each(|command| see(command, wrong));
        }
        let (mut command, mut wrong) = (Flags::command(), Vec::new());
        command.build();
        see(&command, &mut wrong);
        assert!(wrong.is_empty(), "{wrong:?}");
    }

    fn check(args: &[&str], expect: Result<(), &str>) {
        let args = ["larder"].iter().chain(args);
        match (Flags::try_parse_from(args), expect) {
            (Ok(_), Ok(())) => {}
            (Err(error), Err(part)) => {
                assert_eq!(error.exit_code(), 2);
                assert!(error.to_string().contains(part), "{error}");
            }
            (got, expected) => panic!("{got:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn wrong_flags_are_refused_with_a_reason() {
        check(&["serve", "--origin", "http://127.0.0.1:3000", "--memory", "64M", "--admin", "off"], Ok(()));
        check(&["serve", "--listen", "unix:/tmp/x", "--log", "-", "--log-format", "json"], Ok(()));
        check(&["serve", "--root", "/srv/www"], Ok(()));
        check(&["check", "--config", "larder.toml"], Ok(()));
        check(&["check", "larder.toml", "--config", "other.toml"], Ok(()));
        check(&["check"], Err("required"));
        check(&["stat", "--json"], Ok(()));
        check(&["serve", "--root", "/srv/www", "--origin", "http://a"], Err("cannot be used with"));
        check(&["serve", "--origin", "https://a"], Ok(()));
        check(&["serve", "--memory", "1"], Err("at least 1 MiB"));
        check(&["serve", "--memory", "12X"], Err("no unit of size"));
        check(&["serve", "--origin", "http://127.0.0.1:1", "--disk", "/tmp/a:b:1GiB"], Ok(()));
        check(&["serve", "--disk", "/tmp/a"], Err("needs a size"));
        check(&["serve", "--disk", ":1GiB"], Err("a disk needs a path"));
        check(&["serve", "--disk", "/tmp/a:1KiB"], Err("too little for a disk"));
        check(&["serve", "--workers", "0"], Err("must be 1 to"));
        check(&["serve", "--listen", "8080"], Err("127.0.0.1:8080"));
        check(&["serve", "--lisen", "*:80"], Err("--listen"));
        check(&["serve", "--vcl", "a.vcl", "--vcl-path", "/a", "-p", "default_ttl=1h", "-p", "vsl_space=1G"], Ok(()));
        check(&["serve", "-p", "default_tll=1h"], Err("did you mean `default_ttl`?"));
        check(&["serve", "-p", "default_ttl"], Err("write NAME=VALUE"));
        check(&["serve", "-p", "max_retries=many"], Err("must be a number"));
        check(&["serve", "--tls", "*:443", "--cert", "a.pem", "--key", "a.key", "--tls", "[::]:443"], Ok(()));
        check(&["serve", "--tls", "*:443"], Err("--cert"));
        check(&["serve", "--tls", "*:443", "--acme-domain", "a.example", "--acme-agree-terms"], Ok(()));
        check(&["serve", "--acme-domain", "a.example"], Err("--tls"));
        check(&["serve", "--tls", "*:443", "--acme-email", "a@b.example"], Err("--acme-domain"));
        check(
            &["serve", "--tls", "*:443", "--acme-domain", "a.example", "--acme-email", "a"],
            Err("admin@example.org"),
        );
        check(&["serve", "--tls", "*:443", "--acme-domain", "a.example", "--acme-directory", "x"], Err("letsencrypt"));
        check(&["serve", "--cert", "a.pem"], Err("--tls"));
        check(&["serve", "--server-name", "a b"], Err("a letter, then"));
        check(&["check"], Err("FILE"));
        check(&["config", "show", "--config", "larder.toml", "--changed", "--memory", "1GiB"], Ok(()));
        check(&["config", "running", "--config", "larder.toml", "--json"], Ok(()));
        check(&["config"], Err("Usage"));
        check(
            &["init", "--root", "/srv", "--host", "a.test", "--acme-email", "a@a.test", "-o", "x", "--force"],
            Ok(()),
        );
        check(&["init", "--root", "/srv", "--acme-email", "a@a.test"], Err("--host"));
        check(&["init", "--root", "/srv", "--host", "a b"], Err("invalid value 'a b'"));
        check(&["check", "--file-only", "larder.toml"], Ok(()));
        check(&["bench", "-kc", "500", "-n", "10000", "http://a/"], Ok(()));
        check(&["bench", "-t", "60S", "-H", "A: b", "--rate", "100", "--poisson", "a:80/x"], Ok(()));
        check(&["bench", "--urls", "list", "--random", "--pipeline", "4"], Ok(()));
        check(&["bench"], Err("URL"));
        check(&["bench", "-t", "60S", "-n", "5", "http://a/"], Ok(()));
        check(&["bench", "-t", "0", "http://a/"], Err("longer than 0"));
        check(&["bench", "-t", "1y", "http://a/"], Err("such as 60S"));
        check(&["bench", "-n", "0", "http://a/"], Err("0 is not in"));
        check(&["bench", "-c", "0", "http://a/"], Err("must be 1 to"));
        check(&["bench", "-k", "--short", "http://a/"], Err("cannot be used with"));
        check(&["bench", "--poisson", "http://a/"], Err("--rate"));
        check(&["bench", "--random", "http://a/"], Err("--urls"));
        check(&["bench", "--rate", "-1", "http://a/"], Err("unexpected argument"));
        check(&["bench", "--rate", "nan", "http://a/"], Err("a number up to"));
        check(&["bench", "--rate", "1,0,2.5", "--step", "10S", "--jitter", "http://a/"], Ok(()));
        check(&["bench", "--step", "10S", "http://a/"], Err("--rate"));
        check(&["bench", "--rate", "1", "--jitter", "--poisson", "http://a/"], Err("cannot be used with"));
        check(&["bench", "--wsess", "20,10,2", "--rate", "300", "--burst-length", "5", "http://a/"], Ok(()));
        check(&["bench", "--wsess", "20,10", "http://a/"], Err("three numbers"));
        check(&["bench", "--wsess", "20,10,1", "-n", "5", "http://a/"], Err("cannot be used with"));
        check(&["bench", "--burst-length", "5", "http://a/"], Err("--wsess"));
        check(&["bench", "--wsesslog", "20,1,f", "http://a/"], Ok(()));
        check(&["bench", "--replay", "log", "--speed", "0.5", "http://a/"], Ok(()));
        check(&["bench", "--replay", "log", "--rate", "5", "http://a/"], Err("cannot be used with"));
        check(&["bench", "--speed", "2", "http://a/"], Err("--replay"));
        check(&["bench", "--replay", "log", "--speed", "-1", "http://a/"], Err("unexpected argument"));
        check(&["bench", "--ramp", "5S", "--think", "500ms", "http://a/"], Ok(()));
        check(&["bench", "--think", "5S", "--rate", "10", "http://a/"], Err("cannot be used with"));
        check(&["bench", "--urls", "list", "--proxy", "127.0.0.1:3128", "--method", "HEAD"], Ok(()));
        check(&["bench", "--method", "PUT", "http://a/"], Err("possible values: GET, HEAD, POST"));
        check(&["bench", "--urls", "list", "--zipf", "0.8"], Ok(()));
        check(&["bench", "--urls", "list", "--zipf", "x"], Err("must be 0 to"));
        check(&["bench", "--urls", "list", "--zipf", "1", "--random"], Err("cannot be used with"));
        check(&["bench", "--zipf", "1", "http://a/"], Err("--urls"));
        check(&["bench", "gopher://a/"], Err("not supported"));
        check(&["bench", "--tls-resume", "--tls-max", "1.2", "--tls-groups", "x25519", "https://a/"], Ok(()));
        check(&["bench", "--h2", "--streams", "10", "https://a/"], Ok(()));
        check(&["bench", "--streams", "10", "https://a/"], Err("--h2"));
        check(&["bench", "--h2", "--pipeline", "2", "https://a/"], Err("cannot be used with"));
        check(&["bench", "--h2", "--streams", "2", "--think", "1S", "https://a/"], Err("cannot be used with"));
        check(&["bench", "--tls-groups", "x", "https://a/"], Err("one of X25519"));
        check(&["bench", "--insecure", "--cacert", "f", "https://a/"], Err("cannot be used with"));
        check(&["lab", "origin", "--stall-every", "1s", "--stall-for", "200ms", "--log", "x"], Ok(()));
        check(&["lab", "origin", "--stall-every", "1s"], Err("--stall-for"));
        check(&["lab", "origin", "--mean-bytes", "0"], Err("must be 1 to"));
        check(&["lab", "origin", "--listen", "unix:/x"], Err("TCP ports"));
        check(&["lab", "null", "--size", "10k", "--threads", "2"], Ok(()));
        check(&["lab", "null", "--threads", "0"], Err("must be 1 to"));
        check(&["lab"], Err("Usage"));
        check(&["lab", "compare", "a.json", "b.json", "--threshold", "7.5%", "--json"], Ok(()));
        check(&["lab", "compare", "a.json"], Err("AFTER.json"));
        check(&["lab", "compare", "a.json", "b.json", "--threshold", "much"], Err("such as 5%"));
        check(&["lab", "report", "a.json", "--html", "a.html", "--csv", "a.csv"], Ok(()));
        check(&["lab", "report"], Err("RESULTS.json"));
        check(&["import", "old.vcl", "-o", "new.vcl", "--from", "2"], Ok(()));
        check(&["import", "old.vcl", "--from", "4"], Err("not in 1..=3"));
        check(&["import"], Err("FILE"));
        check(&["vcl", "fmt", "a.vcl", "-", "--indent", "tab"], Ok(()));
        check(&["vcl", "fmt", "--indent", "0", "a.vcl"], Err("must be 1 to 16"));
        check(&["vcl", "fmt", "--check", "--stdout", "a.vcl"], Err("cannot be used with"));
        check(&["vcl", "fmt"], Err("FILE"));
        check(&["vcl", "explain", "a.vcl", "--request", "GET /x Host: a", "-H", "A: b", "--origin", "200"], Ok(()));
        check(&["vcl", "explain", "a.vcl", "--request", "/", "--cached", "90s", "-p", "default_ttl=1h"], Ok(()));
        check(&["vcl", "explain", "a.vcl", "--request", "/", "--cached", "old"], Err("none of miss, hit, stale"));
        check(&["vcl", "explain", "a.vcl", "--request", "GET"], Err("METHOD URL and its fields"));
        check(&["vcl", "explain", "a.vcl"], Err("--request"));
        check(&["vcl", "explain", "a.vcl", "--request", "/", "--request-file", "-"], Err("cannot be used with"));
        check(&["vcl", "test", "a.toml", "--only", "x", "--brief"], Ok(()));
        check(&["vcl", "test"], Err("FILE.toml"));
        check(&["vcl", "load", "a", "a.vcl", "--use", "--admin", "unix:/run/a", "--json"], Ok(()));
        check(&["vcl", "load", "a"], Err("FILE"));
        check(&["vcl", "list", "--admin", "9180"], Err("127.0.0.1:9180"));
        check(&["vcl", "health", "a", "well"], Err("possible values: auto, healthy, sick"));
        check(&["purge", "http://a/", "http://b/", "--soft", "--grace", "1h"], Ok(()));
        check(&["purge", "--tag", "a", "--tag", "b", "--dry-run", "--samples", "5", "--json"], Ok(()));
        check(&["purge", "--group", "g", "--origin", "http://a"], Ok(()));
        check(&["purge"], Err("required"));
        check(&["purge", "--soft"], Err("required"));
        check(&["purge", "http://a/", "--all"], Err("cannot be used with"));
        check(&["purge", "--prefix", "a/", "--tag", "b"], Err("cannot be used with"));
        check(&["purge", "--group", "g"], Err("--origin"));
        check(&["purge", "--group", "g", "--origin", "http://a", "--soft"], Err("cannot be used with"));
        check(&["purge", "--all", "--grace", "1h"], Err("--soft"));
        check(&["purge", "--all", "--samples", "101"], Err("not in 0..=100"));
        check(&["ban", "obj.status", "!=", "200"], Ok(()));
        check(&["refresh", "--tag", "a", "--rate", "5", "--no-wait"], Ok(()));
        check(&["reload", "--config", "larder.toml", "--json"], Ok(()));
        check(&["reload", "larder.toml"], Err("unexpected argument"));
        check(&["note", "shop", "4.2", "--config", "larder.toml"], Ok(()));
        check(&["note"], Err("TEXT"));
        check(&["refresh"], Err("required"));
        check(&["refresh", "--tag", "a", "--rate", "0"], Err("not in 1..=1000"));
        check(&["warm", "--urls", "-", "--admin", "127.0.0.1:9180"], Ok(()));
        check(&["warm"], Err("required"));
        check(&["warm", "--urls", "f", "--sitemap", "http://a/s.xml"], Err("cannot be used with"));
        check(&["tags", "--prefix", "a", "--limit", "1001"], Err("not in 1..=1000"));
        check(&["completions", "bash"], Ok(()));
        check(&["completions", "csh"], Err("possible values: bash, zsh, fish"));
        check(&["sevre"], Err("serve"));
    }

    #[test]
    fn flags_win_over_the_defaults() {
        let flags = ServeFlags {
            origins: vec![parse_origin("http://a").unwrap(), parse_origin("http://b").unwrap()],
            listen: vec![parse_listen("127.0.0.1:0").unwrap()],
            admin: Some(AdminAddress::Off),
            log: Some("-".to_owned()),
            ..ServeFlags::default()
        };
        let plan = flags.plan().unwrap();
        assert_eq!(plan.settings.origins[0].urls.len(), 2);
        assert_eq!((plan.settings.routes.len(), plan.settings.listeners.len()), (1, 1));
        assert_eq!((plan.admin.address, plan.log), (AdminAddress::Off, Some(LogTarget::Stdout)));
    }
}
