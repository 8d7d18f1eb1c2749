//! nginx: as a cache, as a server of files, as a gateway to a memcached, and as the origin.

use std::path::Path;

use crate::answer_coding::ContentCoding;
use crate::matrix::planned_rows::GATEWAY_PATH;
use crate::matrix::server_profile::{Launch, Profile, Role, Site, Speaks, is_root, words};

pub(super) const NGINX_CACHE: Profile = Profile {
    name: "nginx-cache",
    binary: Some("nginx"),
    install: "apt-get install nginx",
    version_argument: "-v",
    role: Role::Cache,
    speaks: Speaks::EVERYTHING,
    codings: &[ContentCoding::Gzip],
    behind: None,
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
    speaks: Speaks::EVERYTHING,
    codings: &[ContentCoding::Gzip],
    behind: None,
    options: &[("extra", "")],
    keeps_children: true,
    launch: files,
};

/// With agentzh's module, as Debian packages it.
pub(super) const NGINX_MEMC: Profile = Profile {
    name: "nginx-memc",
    install: "apt-get install nginx libnginx-mod-http-memc memcached",
    role: Role::Gateway,
    speaks: Speaks::HTTP1_IN_THE_CLEAR,
    options: &[("module", "/usr/lib/nginx/modules/ngx_http_memc_module.so"), ("keepalive", "2048"), ("extra", "")],
    codings: &[],
    launch: gateway,
    ..NGINX_STATIC
};

/// Not to be measured: what stands behind those that are.
pub(crate) const NGINX_ORIGIN: Profile =
    Profile { name: "origin", speaks: Speaks::HTTP1_IN_THE_CLEAR, codings: &[], launch: origin, ..NGINX_STATIC };

fn cache(site: &Site<'_>) -> Result<Launch, String> {
    let (lock, gzip) = (if site.passes { "off" } else { "on" }, gzip(site));
    let server = format!(
        "    proxy_cache_path {cache} levels=1:2 keys_zone=z:50m max_size={max_size} inactive=24h use_temp_path=off;
    upstream o {{ server {origin}; keepalive 256; }}
    server {{
        {listen}
        {gzip}{extra}
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
        listen = listen(site),
        extra = site.option("extra"),
    );
    nginx(site, "", &server)
}

fn gateway(site: &Site<'_>) -> Result<Launch, String> {
    let module = site.option("module");
    if !Path::new(module).exists() {
        return Err(format!("no {module}: apt-get install libnginx-mod-http-memc"));
    }
    let server = format!(
        "    upstream m {{ server {memcached}; keepalive {keepalive}; }}
    server {{
        listen 127.0.0.1:{port} backlog=4096;
        {extra}
        location {GATEWAY_PATH} {{
            set $memc_key $arg_key;
            memc_cmds_allowed get;
            memc_pass m;
        }}
    }}
",
        memcached = site.origin,
        keepalive = site.option("keepalive"),
        port = site.port,
        extra = site.option("extra"),
    );
    nginx(site, &format!("load_module {module};\n"), &server)
}

fn files(site: &Site<'_>) -> Result<Launch, String> {
    let (listen, docroot, gzip, extra) = (listen(site), site.docroot.display(), gzip(site), site.option("extra"));
    let server = format!("    server {{\n        {listen}\n        root {docroot};\n        {gzip}{extra}\n    }}\n");
    nginx(site, "", &server)
}

/// Each answer anew, as its module does it; texts are among its types without a word.
fn gzip(site: &Site<'_>) -> &'static str {
    match site.encoding {
        None => "",
        Some(_) => "gzip on; gzip_comp_level 5; gzip_proxied any; gzip_vary on;\n        ",
    }
}

/// Where a server meets its clients; a listener for HTTP/2 in the clear understands nothing else before nginx 1.25.
fn listen(site: &Site<'_>) -> String {
    let (port, http2) = (site.port, if site.front.http2 { " http2" } else { "" });
    match site.front.tls {
        None => format!("listen 127.0.0.1:{port} backlog=4096{http2};"),
        Some(files) => format!(
            "listen 127.0.0.1:{port} backlog=4096 ssl{http2};
        ssl_certificate {};
        ssl_certificate_key {};
        ssl_protocols TLSv1.2 TLSv1.3;
        ssl_session_cache shared:s:10m;
        ssl_session_timeout 1h;",
            files.chain.display(),
            files.key.display(),
        ),
    }
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
    nginx(site, "", &server)
}

fn nginx(site: &Site<'_>, modules: &str, http: &str) -> Result<Launch, String> {
    let temporary = site.directory("temporary")?;
    let (error_log, pid) = (site.path("error.log"), site.path("nginx.pid"));
    let (files, connections) = (site.open_files, site.open_files.saturating_sub(site.open_files / 10).max(64));
    let user = if is_root() { "user root;\n" } else { "" };
    let config = format!(
        "daemon off;
{modules}{user}worker_processes {workers};
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
