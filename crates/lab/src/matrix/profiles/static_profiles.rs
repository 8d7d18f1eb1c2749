//! Servers of files that need little: H2O and lighttpd; and memcached, which is started and stopped, no more.

use crate::answer_coding::ContentCoding;
use crate::matrix::row_protocol::Spoken;
use crate::matrix::server_profile::{Launch, Profile, Role, Site, Speaks, is_root, words};

pub(super) const H2O: Profile = Profile {
    name: "h2o",
    binary: Some("h2o"),
    install: "apt-get install h2o",
    version_argument: "--version",
    role: Role::Static,
    speaks: Speaks::EVERYTHING,
    codings: &[ContentCoding::Gzip, ContentCoding::Brotli],
    behind: None,
    options: &[("extra", "")],
    keeps_children: true,
    launch: h2o,
};

pub(super) const LIGHTTPD: Profile = Profile {
    name: "lighttpd",
    binary: Some("lighttpd"),
    install: "apt-get install lighttpd",
    version_argument: "-v",
    role: Role::Static,
    speaks: Speaks::HTTP1_IN_THE_CLEAR,
    codings: &[],
    behind: None,
    options: &[("extra", "")],
    keeps_children: true,
    launch: lighttpd,
};

pub(super) const MEMCACHED: Profile = Profile {
    name: "memcached",
    binary: Some("memcached"),
    install: "apt-get install memcached",
    version_argument: "--version",
    role: Role::Memcached,
    speaks: Speaks { all: &[Spoken::CLEAR], no_more: "speaks neither TLS nor HTTP/2" },
    codings: &[],
    behind: None,
    options: &[("megabytes", "512")],
    keeps_children: true,
    launch: memcached,
};

fn h2o(site: &Site<'_>) -> Result<Launch, String> {
    let user = if is_root() { "user: root\n" } else { "" };
    // It speaks HTTP/2 to whoever does, in the clear too. It would ask for OCSP by a process that ends.
    let tls = site.front.tls.map_or(String::new(), |files| {
        let (chain, key) = (files.chain.display(), files.key.display());
        format!(
            ", ssl: {{ certificate-file: {chain}, key-file: {key}, minimum-version: TLSv1.2, ocsp-update-interval: 0 }}"
        )
    });
    let coding = site.encoding.map_or(String::new(), |coding| format!("compress: [ {} ]\n", coding.name()));
    let config = format!(
        "listen: {{ host: 127.0.0.1, port: {port}{tls} }}
{user}num-threads: {workers}
max-connections: {connections}
http1-request-timeout: 3600
http2-idle-timeout: 3600
pid-file: {pid}
error-log: {log}
{coding}{extra}
hosts: {{ default: {{ paths: {{ \"/\": {{ file.dir: {docroot} }} }} }} }}
",
        port = site.port,
        workers = site.workers,
        connections = site.open_files.saturating_sub(site.open_files / 10),
        pid = site.path("h2o.pid"),
        log = site.path("error.log"),
        extra = site.option("extra"),
        docroot = site.docroot.display(),
    );
    let arguments = words(["-c", &site.path("h2o.conf")]);
    let configs = vec![site.write("h2o.conf", config)?];
    Ok(Launch { arguments, configs, logs: vec![site.dir.join("error.log")], before: Vec::new() })
}

fn lighttpd(site: &Site<'_>) -> Result<Launch, String> {
    let config = format!(
        "server.port = {port}
server.bind = \"127.0.0.1\"
server.document-root = \"{docroot}\"
server.errorlog = \"{log}\"
server.pid-file = \"{pid}\"
server.max-connections = {connections}
server.max-fds = {files}
server.max-keep-alive-requests = 100000000
server.max-keep-alive-idle = 3600
server.max-worker = {workers}
mimetype.assign = ( \".html\" => \"text/html\" )
{extra}
",
        port = site.port,
        docroot = site.docroot.display(),
        log = site.path("error.log"),
        pid = site.path("lighttpd.pid"),
        connections = site.open_files.saturating_sub(site.open_files / 10),
        files = site.open_files,
        // With no worker of its own it serves in its one process, which is what one worker means.
        workers = if site.workers == 1 { 0 } else { site.workers },
        extra = site.option("extra"),
    );
    let arguments = words(["-D", "-f", &site.path("lighttpd.conf")]);
    let configs = vec![site.write("lighttpd.conf", config)?];
    Ok(Launch { arguments, configs, logs: vec![site.dir.join("error.log")], before: Vec::new() })
}

fn memcached(site: &Site<'_>) -> Result<Launch, String> {
    let (port, threads) = (site.port.to_string(), site.workers.to_string());
    let connections = site.open_files.saturating_sub(site.open_files / 10).to_string();
    let mut arguments = words(["-l", "127.0.0.1", "-p", &port, "-m", site.option("megabytes")]);
    arguments.extend(words(["-t", &threads, "-c", &connections]));
    if is_root() {
        arguments.extend(words(["-u", "root"]));
    }
    Ok(Launch { arguments, ..Launch::default() })
}
