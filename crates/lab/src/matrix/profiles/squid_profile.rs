//! Squid, one process, everything in memory: as an accelerator, and as the forward proxy that people know it for.

use crate::matrix::row_protocol::Spoken;
use crate::matrix::server_profile::{Launch, Profile, Role, Site, Speaks, words};

pub(super) const SQUID: Profile = Profile {
    name: "squid",
    binary: Some("squid"),
    install: "apt-get install squid",
    version_argument: "-v",
    role: Role::Cache,
    speaks: Speaks { all: &[Spoken::CLEAR], no_more: "is started without TLS, and speaks no HTTP/2" },
    codings: &[],
    behind: None,
    options: &[("cache_mem", "512 MB"), ("extra", "")],
    keeps_children: true,
    launch: accelerator,
};

pub(super) const SQUID_FORWARD: Profile =
    Profile { name: "squid-forward", role: Role::Forward, launch: forward_proxy, ..SQUID };

fn accelerator(site: &Site<'_>) -> Result<Launch, String> {
    let (host, origin_port, port) = (site.origin.ip(), site.origin.port(), site.port);
    let own = format!(
        "http_port 127.0.0.1:{port} accel defaultsite=localhost no-vhost
cache_peer {host} parent {origin_port} 0 no-query originserver name=o
"
    );
    squid(site, &own)
}

/// What it asks follows from the requests, so the origin stands nowhere in its configuration.
fn forward_proxy(site: &Site<'_>) -> Result<Launch, String> {
    squid(site, &format!("http_port 127.0.0.1:{}\n", site.port))
}

/// Without its pinger, which measures nothing here and puts itself where nobody who ends Squid finds it.
fn squid(site: &Site<'_>, own: &str) -> Result<Launch, String> {
    let files = site.open_files;
    let (log, pid, dir) = (site.path("cache.log"), site.path("squid.pid"), site.dir.display());
    let config = format!(
        "{own}acl everyone src all
http_access allow everyone
cache_mem {memory}
maximum_object_size_in_memory 2 MB
access_log none
cache_log {log}
pid_filename {pid}
coredump_dir {dir}
max_filedescriptors {files}
client_idle_pconn_timeout 1 hour
shutdown_lifetime 0 seconds
pinger_enable off
{extra}
",
        memory = site.option("cache_mem"),
        extra = site.option("extra"),
    );
    let arguments = words(["-N", "-f", &site.path("squid.conf")]);
    let configs = vec![site.write("squid.conf", config)?];
    Ok(Launch { arguments, configs, logs: vec![site.dir.join("cache.log")], before: Vec::new() })
}
