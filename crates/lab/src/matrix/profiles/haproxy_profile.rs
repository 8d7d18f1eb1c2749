//! HAProxy with its small-object cache.

use crate::answer_coding::ContentCoding;
use crate::matrix::server_profile::{Launch, Profile, Role, Site, Speaks, words};

pub(super) const HAPROXY: Profile = Profile {
    name: "haproxy",
    binary: Some("haproxy"),
    install: "apt-get install haproxy",
    version_argument: "-v",
    role: Role::Cache,
    speaks: Speaks::EVERYTHING,
    codings: &[ContentCoding::Gzip],
    behind: None,
    options: &[("cache_megabytes", "512"), ("extra", "")],
    keeps_children: true,
    launch: haproxy,
};

fn haproxy(site: &Site<'_>) -> Result<Launch, String> {
    // A connection may need a second file, to the origin.
    let connections = (site.open_files / 2).saturating_sub(100).max(100);
    let front = match (site.front.tls, site.front.http2) {
        (None, false) => String::new(),
        (None, true) => " proto h2".to_owned(),
        (Some(files), false) => format!(" ssl crt {} alpn http/1.1", files.both.display()),
        (Some(files), true) => format!(" ssl crt {} alpn h2,http/1.1", files.both.display()),
    };
    // What is stored is what the origin sent; each answer is compressed anew.
    let compression = match site.encoding {
        None => "",
        Some(_) => "  filter cache c\n  filter compression\n  compression algo gzip\n  compression type text/html\n",
    };
    let config = format!(
        "global
  nbthread {workers}
  maxconn {connections}
  tune.ssl.default-dh-param 2048
{extra}
defaults
  mode http
  timeout client 1h
  timeout http-keep-alive 1h
  timeout server 30s
  timeout connect 5s
cache c
  total-max-size {megabytes}
  max-object-size 2000000
  max-age 3600
frontend f
  bind 127.0.0.1:{port}{front}
{compression}  http-request cache-use c
  http-response cache-store c
  default_backend b
backend b
  http-reuse always
  server o {origin}
",
        workers = site.workers,
        extra = site.option("extra"),
        megabytes = site.option("cache_megabytes"),
        port = site.port,
        origin = site.origin,
    );
    let arguments = words(["-db", "-f", &site.path("haproxy.cfg")]);
    Ok(Launch { arguments, configs: vec![site.write("haproxy.cfg", config)?], ..Launch::default() })
}
