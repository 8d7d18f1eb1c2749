//! larder itself, the null server that is the ceiling of the load, and the lab's own origin: one binary, ours.

use super::varnish_profile;
use crate::answer_coding::ContentCoding;
use crate::matrix::planned_rows::GATEWAY_PATH;
use crate::matrix::row_protocol::Spoken;
use crate::matrix::server_profile::{Launch, Profile, Role, Site, Speaks, words};

pub(super) const LARDER: Profile = Profile {
    name: "larder",
    binary: None,
    install: "it is the program that runs the lab",
    version_argument: "--version",
    role: Role::Cache,
    speaks: Speaks::EVERYTHING,
    codings: &ContentCoding::ALL,
    behind: None,
    options: &[("memory", "512MiB")],
    keeps_children: true,
    launch: larder,
};

/// The files themselves, without an origin.
pub(super) const LARDER_STATIC: Profile =
    Profile { name: "larder-static", role: Role::Static, options: &[], launch: files, ..LARDER };

/// Whichever origin a request names; on loopback, where nobody is led unless it is opened.
pub(super) const LARDER_FORWARD: Profile = Profile {
    name: "larder-forward",
    role: Role::Forward,
    speaks: Speaks::HTTP1_IN_THE_CLEAR,
    launch: forward_proxy,
    ..LARDER
};

/// `mode` is larder's own or `nginx-memc`, which answers as the module does.
pub(super) const LARDER_MEMC: Profile = Profile {
    name: "larder-memc",
    role: Role::Gateway,
    speaks: Speaks::HTTP1_IN_THE_CLEAR,
    options: &[("mode", "clean")],
    launch: gateway,
    ..LARDER
};

/// Under a program, which says what is compressed and what has parts. It is the one that Varnish would be given.
pub(super) const LARDER_VCL: Profile = Profile {
    name: "larder-vcl",
    options: &[("memory", "512MiB"), ("vcl", "")],
    codings: &[ContentCoding::Gzip],
    launch: by_program,
    ..LARDER
};

pub(super) const NULL: Profile = Profile {
    name: "null",
    binary: None,
    install: "it is the program that runs the lab",
    version_argument: "--version",
    role: Role::Null,
    speaks: Speaks { all: &[Spoken::CLEAR], no_more: "speaks neither TLS nor HTTP/2" },
    codings: &[],
    behind: None,
    options: &[],
    keeps_children: true,
    launch: null,
};

/// Not to be measured: what stands behind those that are.
pub(crate) const LAB_ORIGIN: Profile = Profile {
    name: "origin",
    binary: None,
    install: "it is the program that runs the lab",
    version_argument: "--version",
    role: Role::Static,
    speaks: Speaks::HTTP1_IN_THE_CLEAR,
    codings: &[],
    behind: None,
    options: &[],
    keeps_children: true,
    launch: origin,
};

fn larder(site: &Site<'_>) -> Result<Launch, String> {
    let (origin, workers) = (format!("http://{}", site.origin), site.workers.to_string());
    let rest = ["--origin", &origin, "--memory", site.option("memory"), "--workers", &workers, "--admin", "off"];
    Ok(Launch { arguments: [front(site), words(rest)].concat(), ..Launch::default() })
}

fn by_program(site: &Site<'_>) -> Result<Launch, String> {
    let (program, workers) = (site.path("lab.vcl"), site.workers.to_string());
    let rest = ["--vcl", &program, "--memory", site.option("memory"), "--workers", &workers, "--admin", "off"];
    let configs = vec![site.write("lab.vcl", varnish_profile::program(site))?];
    Ok(Launch { arguments: [front(site), words(rest)].concat(), configs, ..Launch::default() })
}

fn files(site: &Site<'_>) -> Result<Launch, String> {
    let (root, workers) = (site.docroot.display().to_string(), site.workers.to_string());
    let rest = ["--root", &root, "--workers", &workers, "--admin", "off"];
    Ok(Launch { arguments: [front(site), words(rest)].concat(), ..Launch::default() })
}

/// The command, and where it meets clients.
fn front(site: &Site<'_>) -> Vec<String> {
    let address = site.address().to_string();
    match (site.front.tls, site.front.http2) {
        (None, false) => words(["serve", "--listen", &address]),
        (None, true) => words(["serve", "--listen", &address, "--h2c"]),
        // Clients agree on HTTP/2 by ALPN, if they want it.
        (Some(files), _) => {
            let [chain, key] = [&files.chain, &files.key].map(|path| path.display().to_string());
            words(["serve", "--tls", &address, "--cert", &chain, "--key", &key])
        }
    }
}

fn forward_proxy(site: &Site<'_>) -> Result<Launch, String> {
    let config = format!(
        "[[listen]]
address = \"{}\"
mode = \"forward\"

[forward]
allow_destinations = [\"127.0.0.0/8\"]

[memory]
size = \"{}\"
",
        site.address(),
        site.option("memory"),
    );
    by_config(site, config)
}

fn gateway(site: &Site<'_>) -> Result<Launch, String> {
    let config = format!(
        "[[listen]]
address = \"{}\"

[[route]]
path = \"{GATEWAY_PATH}\"
memcached = [\"{}\"]
key = \"$arg_key\"
mode = \"{}\"
",
        site.address(),
        site.origin,
        site.option("mode"),
    );
    by_config(site, config)
}

fn by_config(site: &Site<'_>, config: String) -> Result<Launch, String> {
    let (path, workers) = (site.path("larder.toml"), site.workers.to_string());
    let arguments = words(["serve", "--config", &path, "--workers", &workers, "--admin", "off"]);
    Ok(Launch { arguments, configs: vec![site.write("larder.toml", config)?], ..Launch::default() })
}

fn null(site: &Site<'_>) -> Result<Launch, String> {
    let (listen, threads) = (site.address().to_string(), site.workers.to_string());
    let size = site.size_bytes.unwrap_or(1_024).to_string();
    let arguments = words(["lab", "null", "--listen", &listen, "--size", &size, "--threads", &threads]);
    Ok(Launch { arguments, ..Launch::default() })
}

fn origin(site: &Site<'_>) -> Result<Launch, String> {
    let arguments = words(["lab", "origin", "--listen", &site.address().to_string()]);
    Ok(Launch { arguments, ..Launch::default() })
}
