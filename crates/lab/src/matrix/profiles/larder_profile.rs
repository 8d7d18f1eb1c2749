//! larder itself, the null server that is the ceiling of the load, and the lab's own origin: one binary, ours.

use super::{GATEWAY_PATH, Launch, Profile, Role, Site, words};

pub(super) const LARDER: Profile = Profile {
    name: "larder",
    binary: None,
    install: "it is the program that runs the lab",
    version_argument: "--version",
    role: Role::Cache,
    options: &[("memory", "512MiB")],
    keeps_children: true,
    launch: larder,
};

/// The files themselves, without an origin.
pub(super) const LARDER_STATIC: Profile =
    Profile { name: "larder-static", role: Role::Static, options: &[], launch: files, ..LARDER };

/// Whichever origin a request names; on loopback, where nobody is led unless it is opened.
pub(super) const LARDER_FORWARD: Profile =
    Profile { name: "larder-forward", role: Role::Forward, launch: forward_proxy, ..LARDER };

/// `mode` is larder's own or `nginx-memc`, which answers as the module does.
pub(super) const LARDER_MEMC: Profile =
    Profile { name: "larder-memc", role: Role::Gateway, options: &[("mode", "clean")], launch: gateway, ..LARDER };

pub(super) const NULL: Profile = Profile {
    name: "null",
    binary: None,
    install: "it is the program that runs the lab",
    version_argument: "--version",
    role: Role::Null,
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
    options: &[],
    keeps_children: true,
    launch: origin,
};

fn larder(site: &Site<'_>) -> Result<Launch, String> {
    let (listen, origin) = (site.address().to_string(), format!("http://{}", site.origin));
    let workers = site.workers.to_string();
    let front = ["serve", "--listen", &listen, "--origin", &origin, "--memory", site.option("memory")];
    let mut arguments = words(front);
    arguments.extend(words(["--workers", &workers, "--admin", "off"]));
    Ok(Launch { arguments, ..Launch::default() })
}

fn files(site: &Site<'_>) -> Result<Launch, String> {
    let (listen, root) = (site.address().to_string(), site.docroot.display().to_string());
    let workers = site.workers.to_string();
    let arguments = ["serve", "--listen", &listen, "--root", &root, "--workers", &workers, "--admin", "off"];
    Ok(Launch { arguments: words(arguments), ..Launch::default() })
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
