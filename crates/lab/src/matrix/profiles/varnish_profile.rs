//! Varnish: its memory store, the default rules, thread pools for as many clients as the open files allow.

use crate::answer_coding::ContentCoding;
use crate::matrix::row_protocol::Spoken;
use crate::matrix::server_profile::{Launch, Profile, Role, Site, Speaks, words};

pub(super) const VARNISH: Profile = Profile {
    name: "varnish",
    binary: Some("varnishd"),
    install: "apt-get install varnish",
    version_argument: "-V",
    role: Role::Cache,
    speaks: Speaks {
        all: &[Spoken::CLEAR, Spoken::H2C],
        no_more: "ends no TLS by itself: hitch-varnish has hitch before it",
    },
    codings: &[ContentCoding::Gzip],
    behind: None,
    options: &[("storage", "malloc,512M"), ("vcl", ""), ("thread_pool_max", "5000")],
    // The manager starts a worker that has crashed again.
    keeps_children: true,
    launch: varnish,
};

/// With the origin as its backend, and the rules of the lab file.
pub(super) fn program(site: &Site<'_>) -> String {
    let (host, port) = (site.origin.ip(), site.origin.port());
    let gzip = match site.encoding {
        None => "",
        Some(_) => "sub vcl_backend_response { set beresp.do_gzip = true; }\n",
    };
    let rules = site.option("vcl");
    format!("vcl 4.1;\nbackend default {{ .host = \"{host}\"; .port = \"{port}\"; }}\n{gzip}{rules}\n")
}

fn varnish(site: &Site<'_>) -> Result<Launch, String> {
    let configs = vec![site.write("lab.vcl", program(site))?];
    let (listen, pools) = (site.address().to_string(), format!("thread_pools={}", site.workers));
    let (vcl, work) = (site.path("lab.vcl"), site.path("varnish"));
    let max = format!("thread_pool_max={}", site.option("thread_pool_max"));
    let front = ["-F", "-f", &vcl, "-a", &listen, "-s", site.option("storage"), "-n", &work];
    let mut arguments = words(front);
    arguments.extend(words(["-p", &pools, "-p", "thread_pool_min=100", "-p", &max, "-p", "timeout_idle=3600"]));
    if site.front.http2 {
        arguments.extend(words(["-p", "feature=+http2"]));
    }
    Ok(Launch { arguments, configs, ..Launch::default() })
}
