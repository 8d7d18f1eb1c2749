//! larder itself, the null server that is the ceiling of the load, and the lab's own origin: one binary, ours.

use super::{Launch, Profile, Role, Site, words};

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
