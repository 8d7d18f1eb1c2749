//! Where relative paths begin: at the folder of the config, wherever larder was started. That holds for files, folders and UNIX sockets alike.
//!
//! What is read while the config is (certificates and their keys) is found by `section::file`; this is all the rest.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use proxy::settings::{ListenAddress, Login, MemcachedAddress, OriginUrl};

use crate::addresses::AdminAddress;
use crate::plan::{HistoryPlace, LogTarget, Plan};

/// Makes every path of a plan what it is beside a config in this folder.
pub fn apply(plan: &mut Plan, folder: &Path) {
    let beside = |file: &mut PathBuf| *file = folder.join(&*file);
    plan.vcl_file.iter_mut().chain(&mut plan.vcl_path).for_each(beside);
    plan.sandbox.reads.iter_mut().chain(&mut plan.sandbox.writes).for_each(beside);
    plan.disks.iter_mut().for_each(|disk| beside(&mut disk.path));
    plan.admin.token_file.iter_mut().for_each(beside);
    plan.fleet_secret_file.iter_mut().for_each(beside);
    if let HistoryPlace::At(file) = &mut plan.admin.history {
        beside(file);
    }
    if let Some(LogTarget::File(file)) = &mut plan.log {
        beside(file);
    }
    plan.settings.forward.password_file.iter_mut().for_each(beside);
    for parent in &mut plan.settings.forward.parents {
        parent.login_file.iter_mut().for_each(beside);
    }
    for route in &mut plan.settings.routes {
        if let Some(login) = &route.rules.access.login {
            let login = Login { file: folder.join(&login.file), ..login.clone() };
            Arc::make_mut(&mut route.rules).access.login = Some(login);
        }
    }
    for root in &mut plan.settings.roots {
        beside(&mut root.directory);
        // An application that runs its scripts knows no directory of ours.
        if root.scripts.is_some()
            && let Ok(absolute) = std::path::absolute(&root.directory)
        {
            root.directory = without_parents(absolute);
        }
    }
    sockets(plan, folder);
}

/// The same folder without `..`, which applications and what watches over them (open_basedir) read in ways of their own. Links behind the last of
/// them stay: they may be changed. What is not there stays as it is.
fn without_parents(folder: PathBuf) -> PathBuf {
    let parts: Vec<Component<'_>> = folder.components().collect();
    let Some(last) = parts.iter().rposition(|part| *part == Component::ParentDir) else { return folder };
    let (resolved, rest) = parts.split_at(last + 1);
    match resolved.iter().collect::<PathBuf>().canonicalize() {
        Ok(resolved) => rest.iter().fold(resolved, |path, part| path.join(part)),
        Err(_) => folder,
    }
}

fn sockets(plan: &mut Plan, folder: &Path) {
    let listens = |address: &mut ListenAddress| {
        if let ListenAddress::Unix(path) = address {
            *path = folder.join(&*path);
        }
    };
    plan.settings.listeners.iter_mut().for_each(|listener| listens(&mut listener.address));
    plan.tls_files.iter_mut().for_each(|(address, _)| listens(address));
    if let AdminAddress::At(address) = &mut plan.admin.address {
        listens(address);
    }
    let asks = |url: &mut OriginUrl| {
        if let OriginUrl::Unix(path) = url {
            *path = folder.join(&*path);
        }
    };
    plan.settings.origins.iter_mut().flat_map(|origin| &mut origin.urls).for_each(asks);
    plan.settings.forward.parents.iter_mut().for_each(|parent| asks(&mut parent.url));
    for server in plan.settings.memcached.iter_mut().flat_map(|memcached| &mut memcached.servers) {
        if let MemcachedAddress::Unix(path) = &mut server.address {
            *path = folder.join(&*path);
        }
    }
}

#[cfg(test)]
pub mod tests {
    use proxy::settings::RouteTarget;

    use super::super::definition::{PATH, ValueKind};
    use super::super::keys::SECTIONS;
    use super::super::load;
    use super::*;

    /// Every path that a config may have, all of them relative.
    pub const RELATIVE: &str = r#"
[process]
sandbox_reads = ["more"]
sandbox_writes = ["more/logs"]
[[listen]]
address = "unix:l.sock"
[[listen]]
address = "127.0.0.1:8443"
[listen.tls]
cert = "both.pem"
key = "both.pem"
ocsp = "both.ocsp"
client_ca = "both.pem"
ticket_secret = "secret"
[[listen]]
address = "127.0.0.1:8444"
[listen.tls]
acme = ["a.test"]
[acme]
terms_agreed = true
ca = "both.pem"
folder = "acme"
[origin.far]
urls = ["https://far.test"]
tls = { ca = "both.pem", cert = "both.pem", key = "both.pem" }
[origin.near]
urls = ["unix:near.sock"]
[origin.php]
fastcgi = "unix:php.sock"
document_root = "/srv"
[[route]]
origin = "near"
basic_auth = "users"
[[route]]
path = "/table"
origin = "far"
basic_auth = { file = "others" }
[[route]]
path = "/files"
root = "www"
[[route]]
path = "/items"
memcached = "unix:m.sock"
[[route]]
path = "/sealed"
memcached = "m.test"
tls = true
ca = "both.pem"
[policy]
vcl = "site.vcl"
vcl_path = ["vcls"]
[[disk]]
path = "disk"
size = "1GiB"
[forward]
password_file = "users"
[[forward.parent]]
address = "unix:parent.sock"
login_file = "login"
[log]
path = "access.log"
[admin]
address = "unix:a.sock"
token_file = "token"
[fleet]
peers = ["http://192.0.2.9"]
secret_file = "secret"
log = "rediss://192.0.2.9"
log_ca = "both.pem"
[shared]
url = "rediss://192.0.2.9"
ca = "both.pem"
"#;

    pub fn loaded(folder: &Path) -> Plan {
        let made = rcgen::generate_simple_self_signed(vec!["a.test".to_owned()]).expect("a certificate");
        let files = [
            ("both.pem", format!("{}{}", made.cert.pem(), made.signing_key.serialize_pem())),
            ("both.ocsp", String::new()),
            ("secret", "x".repeat(64)),
            ("login", "ann:secret".to_owned()),
            ("token", "0123456789abcdef".to_owned()),
            ("larder.toml", RELATIVE.to_owned()),
        ];
        std::fs::create_dir_all(folder).expect("a folder");
        files.iter().for_each(|(name, text)| std::fs::write(folder.join(name), text).expect("a file"));
        load(&folder.join("larder.toml")).unwrap_or_else(|error| panic!("{}", error.show(false)))
    }

    #[test]
    fn every_relative_path_begins_at_the_folder_of_the_config() {
        let folder = std::env::temp_dir().join(format!("larder-beside-{}", std::process::id()));
        // What is read at once is there alone, so it was found there.
        let plan = loaded(&folder);
        std::fs::remove_dir_all(&folder).expect("the folder");
        let (settings, tls) = (&plan.settings, &plan.tls_files[0].1);
        let certificate = &tls.certificates[0];
        let unix = |url: &OriginUrl| match url {
            OriginUrl::Unix(path) => path.clone(),
            other => panic!("{other:?}"),
        };
        let Some(LogTarget::File(log)) = &plan.log else { panic!("{:?}", plan.log) };
        let AdminAddress::At(ListenAddress::Unix(admin)) = &plan.admin.address else { panic!("no socket") };
        let ListenAddress::Unix(listen) = &settings.listeners[0].address else { panic!("no socket") };
        let MemcachedAddress::Unix(memcached) = &settings.memcached[0].servers[0].address else { panic!("no socket") };
        let logins: Vec<_> = settings.routes.iter().filter_map(|route| route.rules.access.login.as_ref()).collect();
        let acme = plan.acme.as_ref().expect("certificates are ordered");
        let found = [
            listen,
            &certificate.certificate,
            &certificate.key,
            certificate.ocsp.as_ref().expect("one"),
            &tls.clients.as_ref().expect("one").0,
            tls.ticket_secret.as_ref().expect("one"),
            &acme.settings.folder,
            &unix(&settings.origins[1].urls[0]),
            &unix(&settings.origins[2].urls[0]),
            &logins[0].file,
            &logins[1].file,
            &settings.roots[0].directory,
            memcached,
            plan.vcl_file.as_ref().expect("one"),
            &plan.vcl_path[0],
            &plan.disks[0].path,
            settings.forward.password_file.as_ref().expect("one"),
            &unix(&settings.forward.parents[0].url),
            settings.forward.parents[0].login_file.as_ref().expect("one"),
            log,
            admin,
            plan.admin.token_file.as_ref().expect("one"),
            plan.fleet_secret_file.as_ref().expect("one"),
            &plan.sandbox.reads[0],
            &plan.sandbox.writes[0],
        ];
        let names = [
            "l.sock",
            "both.pem",
            "both.pem",
            "both.ocsp",
            "both.pem",
            "secret",
            "acme",
            "near.sock",
            "php.sock",
            "users",
            "others",
            "www",
            "m.sock",
            "site.vcl",
            "vcls",
            "disk",
            "users",
            "parent.sock",
            "login",
            "access.log",
            "a.sock",
            "token",
            "secret",
            "more",
            "more/logs",
        ];
        for (path, name) in found.into_iter().zip(names) {
            assert_eq!(*path, folder.join(name));
        }
        assert!(matches!(settings.routes[0].target, RouteTarget::Origin(1)) && plan.tls_files.len() == 2);
    }

    /// A path that comes to be defined is one of those above.
    #[test]
    fn every_path_that_is_defined_is_tried() {
        let ValueKind::Text(form) = PATH else { panic!("a path is a text") };
        fn is_path(kind: &ValueKind, form: &str) -> bool {
            match kind {
                ValueKind::Text(text) => *text == form,
                ValueKind::List(inner) => is_path(inner, form),
                ValueKind::Either(kinds) => kinds.iter().any(|kind| is_path(kind, form)),
                _ => false,
            }
        }
        for section in SECTIONS {
            for key in section.keys().filter(|key| is_path(&key.kind, form)) {
                assert!(RELATIVE.contains(&format!("{} = ", key.name)), "{} of {}", key.name, section.path);
            }
        }
    }

    #[test]
    fn a_folder_has_no_parents_in_it_where_it_is_there() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR")).canonicalize().unwrap();
        let check =
            |written: PathBuf, expect: PathBuf| assert_eq!(without_parents(written.clone()), expect, "{written:?}");
        check(here.join("src/../src/config"), here.join("src/config"));
        check(here.join("src/config/../../none/x"), here.join("none/x"));
        check(here.join("none/../src"), here.join("none/../src"));
        check(here.clone(), here.clone());
    }
}
