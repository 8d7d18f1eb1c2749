//! Apache with the event MPM: as a cache on disk, and as a server of files.

use crate::matrix::server_profile::{Launch, Profile, Role, Site, Speaks, is_root, words};

pub(super) const APACHE: Profile = Profile {
    name: "apache",
    binary: Some("apache2"),
    install: "apt-get install apache2",
    version_argument: "-v",
    role: Role::Cache,
    speaks: Speaks::HTTP1_IN_THE_CLEAR,
    codings: &[],
    behind: None,
    options: &[("threads", "1024"), ("extra", "")],
    keeps_children: false,
    launch: cache,
};

pub(super) const APACHE_STATIC: Profile =
    Profile { name: "apache-static", role: Role::Static, launch: files, ..APACHE };

/// Where Debian keeps its modules.
const ROOT: &str = "/usr/lib/apache2";

fn cache(site: &Site<'_>) -> Result<Launch, String> {
    let (origin, cache) = (site.origin, site.directory("cache")?);
    let own = format!(
        "CacheRoot {cache}
CacheQuickHandler on
CacheEnable disk /
ProxyPass / http://{origin}/ keepalive=On
"
    );
    apache(site, &["proxy", "proxy_http", "cache", "cache_disk"], &own)
}

fn files(site: &Site<'_>) -> Result<Launch, String> {
    let docroot = site.docroot.display();
    apache(site, &[], &format!("DocumentRoot {docroot}\n<Directory {docroot}>\n  Require all granted\n</Directory>\n"))
}

fn apache(site: &Site<'_>, modules: &[&str], own: &str) -> Result<Launch, String> {
    let load = |name: &str| format!("LoadModule {name}_module modules/mod_{name}.so\n");
    let all: String = ["mpm_event", "authz_core", "mime"].iter().chain(modules).map(|name| load(name)).collect();
    let user = if is_root() { "User www-data\nGroup www-data\n" } else { "" };
    let threads: usize = site.option("threads").parse().map_err(|_| "options.threads is no number".to_owned())?;
    let limit = threads.div_ceil(64).max(1);
    let config = format!(
        "ServerRoot {ROOT}
Listen 127.0.0.1:{port}
PidFile {pid}
ErrorLog {log}
{all}TypesConfig /etc/mime.types
ServerName localhost
{user}ThreadsPerChild 64
ServerLimit {limit}
MaxRequestWorkers {workers}
AsyncRequestWorkerFactor 64
KeepAliveTimeout 3600
MaxKeepAliveRequests 0
ListenBacklog 4096
{own}{extra}
",
        port = site.port,
        pid = site.path("apache.pid"),
        log = site.path("error.log"),
        workers = limit * 64,
        extra = site.option("extra"),
    );
    let arguments = words(["-DFOREGROUND", "-f", &site.path("apache.conf")]);
    let configs = vec![site.write("apache.conf", config)?];
    Ok(Launch { arguments, configs, logs: vec![site.dir.join("error.log")], before: Vec::new() })
}
