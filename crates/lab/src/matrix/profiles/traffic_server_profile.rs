//! Apache Traffic Server: its process without the manager, in a layout of its own, with the memory cache in front of a
//! small volume on disk, without which it does not cache.

use crate::matrix::server_profile::{Launch, Profile, Role, Site, Speaks, is_root, words};

pub(super) const TRAFFIC_SERVER: Profile = Profile {
    name: "trafficserver",
    binary: Some("traffic_server"),
    install: "apt-get install trafficserver",
    version_argument: "--version",
    role: Role::Cache,
    speaks: Speaks::HTTP1_IN_THE_CLEAR,
    codings: &[],
    behind: None,
    options: &[("memory_bytes", "536870912"), ("disk", "1G")],
    keeps_children: true,
    launch: traffic_server,
};

/// Without this file it refuses to start.
const IP_ALLOW: &str = "ip_allow:
  - apply: in
    ip_addrs: 127.0.0.1
    action: allow
    methods: ALL
";

fn traffic_server(site: &Site<'_>) -> Result<Launch, String> {
    let root = site.directory("layout")?;
    let etc = site.directory("etc")?;
    let cache = site.directory("cache")?;
    let (log, run) = (site.directory("log")?, site.directory("run")?);
    let user = if is_root() { "CONFIG proxy.config.admin.user_id STRING #-1\n" } else { "" };
    let records = format!(
        "{user}CONFIG proxy.config.http.server_ports STRING {port}:ip-in=127.0.0.1
CONFIG proxy.config.exec_thread.autoconfig INT 0
CONFIG proxy.config.exec_thread.limit INT {workers}
CONFIG proxy.config.accept_threads INT 0
CONFIG proxy.config.cache.ram_cache.size INT {memory}
CONFIG proxy.config.cache.config_path STRING
CONFIG proxy.config.log.logging_enabled INT 0
CONFIG proxy.config.http.keep_alive_no_activity_timeout_in INT 3600
CONFIG proxy.config.net.connections_throttle INT {files}
CONFIG proxy.config.url_remap.pristine_host_hdr INT 1
CONFIG proxy.config.diags.output.error STRING E
",
        port = site.port,
        workers = site.workers,
        memory = site.option("memory_bytes"),
        files = site.open_files,
    );
    let configs = vec![
        site.write("etc/records.config", records)?,
        site.write("etc/ip_allow.yaml", IP_ALLOW.to_owned())?,
        site.write("etc/remap.config", format!("map / http://{}/\n", site.origin))?,
        site.write("etc/storage.config", format!("{cache} {}\n", site.option("disk")))?,
        site.write(
            "etc/runroot.yaml",
            format!("prefix: {root}\nsysconfdir: {etc}\nruntimedir: {run}\nlogdir: {log}\ncachedir: {cache}\n"),
        )?,
    ];
    let arguments = words([&format!("--run-root={etc}/runroot.yaml")]);
    Ok(Launch { arguments, configs, ..Launch::default() })
}
