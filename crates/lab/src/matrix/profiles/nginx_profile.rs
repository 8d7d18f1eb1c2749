//! nginx: as a cache, as a server of files, and as the origin.

use super::{Launch, Profile, Role, Site, words};

pub(super) const NGINX_CACHE: Profile = Profile {
    name: "nginx-cache",
    binary: Some("nginx"),
    install: "apt-get install nginx",
    version_argument: "-v",
    role: Role::Cache,
    options: &[("max_size", "4g"), ("extra", "")],
    // Its cache loader ends by itself.
    keeps_children: false,
    launch: cache,
};

pub(super) const NGINX_STATIC: Profile = Profile {
    name: "nginx-static",
    binary: Some("nginx"),
    install: "apt-get install nginx",
    version_argument: "-v",
    role: Role::Static,
    options: &[("extra", "")],
    keeps_children: true,
    launch: files,
};

/// Not to be measured: what stands behind those that are.
pub(crate) const NGINX_ORIGIN: Profile = Profile { name: "origin", launch: origin, ..NGINX_STATIC };

fn cache(site: &Site<'_>) -> Result<Launch, String> {
    let lock = if site.passes { "off" } else { "on" };
    let server = format!(
        "    proxy_cache_path {cache} levels=1:2 keys_zone=z:50m max_size={max_size} inactive=24h use_temp_path=off;
    upstream o {{ server {origin}; keepalive 256; }}
    server {{
        listen 127.0.0.1:{port} backlog=4096;
        {extra}
        location / {{
            proxy_pass http://o;
            proxy_http_version 1.1;
            proxy_set_header Connection \"\";
            proxy_cache z;
            proxy_cache_lock {lock};
        }}
    }}
",
        cache = site.directory("cache")?,
        max_size = site.option("max_size"),
        origin = site.origin,
        port = site.port,
        extra = site.option("extra"),
    );
    nginx(site, &server)
}

fn files(site: &Site<'_>) -> Result<Launch, String> {
    let (port, docroot, extra) = (site.port, site.docroot.display(), site.option("extra"));
    nginx(
        site,
        &format!(
            "    server {{\n        listen 127.0.0.1:{port} backlog=4096;\n        root {docroot};\n        {extra}\n    }}\n"
        ),
    )
}

fn origin(site: &Site<'_>) -> Result<Launch, String> {
    let (port, docroot) = (site.port, site.docroot.display());
    let server = format!(
        "    map $arg_c $may_be_stored {{ default max-age=3600; 0 no-store; }}
    server {{
        listen 127.0.0.1:{port} backlog=4096;
        root {docroot};
        location / {{ add_header Cache-Control $may_be_stored; }}
        location = /lab-requests {{ stub_status; }}
    }}
"
    );
    nginx(site, &server)
}

fn nginx(site: &Site<'_>, http: &str) -> Result<Launch, String> {
    let temporary = site.directory("temporary")?;
    let (error_log, pid) = (site.path("error.log"), site.path("nginx.pid"));
    let (files, connections) = (site.open_files, site.open_files.saturating_sub(site.open_files / 10).max(64));
    let user = if rustix::process::geteuid().is_root() { "user root;\n" } else { "" };
    let config = format!(
        "daemon off;
{user}worker_processes {workers};
worker_rlimit_nofile {files};
error_log {error_log};
pid {pid};
events {{ worker_connections {connections}; use epoll; }}
http {{
    access_log off;
    sendfile on;
    keepalive_timeout 3600;
    keepalive_requests 100000000;
    open_file_cache max={cached_files} inactive=60s;
    default_type application/octet-stream;
    types {{ text/html html; }}
    client_body_temp_path {temporary}/body;
    proxy_temp_path {temporary}/proxy;
    fastcgi_temp_path {temporary}/fastcgi;
    uwsgi_temp_path {temporary}/uwsgi;
    scgi_temp_path {temporary}/scgi;
{http}}}
",
        workers = site.workers,
        // Each holds a descriptor, and connections need theirs: a large site must not leave it with none.
        cached_files = site.open_files / 20,
    );
    let arguments = words(["-c", &site.path("nginx.conf")]);
    let configs = vec![site.write("nginx.conf", config)?];
    Ok(Launch { arguments, configs, logs: vec![site.dir.join("error.log")], before: Vec::new() })
}
