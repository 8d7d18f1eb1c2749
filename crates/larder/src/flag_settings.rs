//! What the flags of `larder serve` say, as keys of larder.toml: for `larder config show`, which tells of both in one form. A test of
//! that command holds this file against `ServeFlags::plan`.

use std::path::Path;

use proxy::settings::ListenAddress;

use crate::addresses::{AdminAddress, show_listen, show_origin};
use crate::config::{FlagWords, literal};
use crate::flags::{LogFormatFlag, SandboxFlag, ServeFlags};
use crate::plan::listener_by_default;

/// The keys and tables that these flags stand for.
pub fn of(flags: &ServeFlags) -> FlagWords {
    let mut said = FlagWords::default();
    listeners(flags, &mut said);
    answerers(flags, &mut said);
    store(flags, &mut said);
    if flags.no_compress {
        said.value("compress", "enabled", literal::switch(false), "--no-compress");
    }
    if let Some(hsts) = &flags.tls.hsts {
        said.value("", "hsts", literal::text(hsts), "--hsts");
    }
    if let Some(name) = &flags.server_name {
        said.value("", "server_name", literal::text(name), "--server-name");
    }
    if let Some(workers) = flags.workers {
        said.value("", "workers", literal::number(workers), "--workers");
    }
    if let Some(user) = &flags.user {
        said.value("process", "user", literal::text(&user.to_string()), "--user");
    }
    if let Some(sandbox) = flags.sandbox {
        let word = if sandbox == SandboxFlag::On { "on" } else { "off" };
        said.value("process", "sandbox", literal::text(word), "--sandbox");
    }
    match &flags.admin {
        Some(AdminAddress::Off) => said.value("admin", "address", literal::text("off"), "--admin"),
        Some(AdminAddress::At(address)) => said.value("admin", "address", listen(address), "--admin"),
        None => {}
    }
    if let Some(vcl) = &flags.vcl {
        said.value("policy", "vcl", path(vcl), "--vcl");
    }
    if !flags.vcl_path.is_empty() {
        said.value("policy", "vcl_path", paths(&flags.vcl_path), "--vcl-path");
    }
    for (name, value) in &flags.parameters {
        // As behind -p it is one text, which `vcl_path` of a file is not.
        let name = if name == "vcl_path" { "vcl_dir" } else { name };
        said.value("policy", name, literal::text(value), "-p");
    }
    said
}

/// They stand in place of all that the file says.
fn listeners(flags: &ServeFlags, said: &mut FlagWords) {
    let tls = &flags.tls;
    if flags.listen.is_empty() && tls.addresses.is_empty() && flags.forward.is_empty() {
        return;
    }
    said.replace(&["listen", "acme"]);
    let of_tls = [
        ("cert", (!tls.certificates.is_empty()).then(|| paths(&tls.certificates))),
        ("key", (!tls.keys.is_empty()).then(|| paths(&tls.keys))),
        ("acme", (!tls.acme.domains.is_empty()).then(|| literal::texts(tls.acme.domains.iter().map(String::as_str)))),
    ];
    let inline: Vec<String> =
        of_tls.into_iter().filter_map(|(key, value)| Some(format!("{key} = {}", value?))).collect();
    let inline = format!("{{ {} }}", inline.join(", "));
    if flags.listen.is_empty() && tls.addresses.is_empty() {
        said.joins_default_listener = true;
    }
    for address in &flags.listen {
        let h2c = flags.h2c.then(|| ("h2c", literal::switch(true)));
        said.table("listen", [("address", listen(address))].into_iter().chain(h2c), "--listen");
    }
    for address in &tls.addresses {
        said.table("listen", [("address", listen(address)), ("tls", inline.clone())], "--tls");
    }
    for address in &tls.redirect_http {
        said.table("listen", [("address", listen(address)), ("mode", literal::text("redirect"))], "--redirect-http");
    }
    for address in &flags.forward {
        said.table("listen", [("address", listen(address)), ("mode", literal::text("forward"))], "--forward");
    }
    let acme = &tls.acme;
    if !acme.domains.is_empty() {
        let keys = [
            ("terms_agreed", Some(literal::switch(acme.agree_terms))),
            ("email", acme.email.as_deref().map(literal::text)),
            ("directory", acme.directory.as_ref().map(|directory| literal::text(directory.url()))),
            ("ca", acme.ca.as_deref().map(path)),
            ("folder", acme.folder.as_deref().map(path)),
        ];
        let keys = keys.into_iter().filter_map(|(key, value)| Some((key, value?)));
        said.table("acme", keys, "--acme-…");
    }
}

/// Who answers: in place of the file's origins and routes.
fn answerers(flags: &ServeFlags, said: &mut FlagWords) {
    if !flags.origins.is_empty() {
        said.replace(&["origin", "route"]);
        let urls = flags.origins.iter().map(|url| literal::text(&show_origin(url)));
        said.table("origin.origin", [("urls", literal::list(urls))], "--origin");
    }
    if let Some(root) = &flags.root {
        said.replace(&["origin", "route"]);
        said.table("route", [("root", path(root))], "--root");
    }
}

fn store(flags: &ServeFlags, said: &mut FlagWords) {
    if let Some(bytes) = flags.memory {
        said.value("memory", "size", literal::size(bytes as u64), "--memory");
    }
    if !flags.disks.is_empty() {
        said.replace(&["disk"]);
        for disk in &flags.disks {
            said.table("disk", [("path", path(&disk.path)), ("size", literal::size(disk.bytes))], "--disk");
        }
    }
    match flags.log.as_deref() {
        Some("-") => said.value("log", "path", literal::text("-"), "--log"),
        Some(file) => said.value("log", "path", path(Path::new(file)), "--log"),
        None => {}
    }
    let format = match flags.log_format {
        Some(LogFormatFlag::Combined) => "combined",
        Some(LogFormatFlag::Json) => "json",
        None => return,
    };
    said.value("log", "format", literal::text(format), "--log-format");
}

/// The address that there is without any.
pub fn default_address() -> String {
    listen(&listener_by_default().address)
}

fn listen(address: &ListenAddress) -> String {
    literal::text(&show_listen(address))
}

/// Wherever the output is read again.
fn path(path: &Path) -> String {
    literal::text(&std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).to_string_lossy())
}

fn paths(all: &[std::path::PathBuf]) -> String {
    literal::list(all.iter().map(|file| path(file)))
}
