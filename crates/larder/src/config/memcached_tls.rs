//! TLS of a `[[route]]` to memcached: whether it is spoken, and whose word counts for who the servers are. The files of
//! certificates are read here, so that what is wrong with one is a complaint about a line.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use proxy::limits::CERTIFICATES_BYTES_MAX;
use proxy::settings::{MemcachedServer, MemcachedTls};
use tls::{Authorities, is_server_name};

use super::complaint::Complaint;
use super::section::{Section, parsed, switch};
use super::sections::path;

/// `tls`, `ca` and `tls_name`.
pub fn read(section: &mut Section<'_>, servers: &[MemcachedServer]) -> Option<MemcachedTls> {
    let is_on = section.read("tls", switch).unwrap_or(false);
    let ca = section.read("ca", |node| parsed(node, "file of certificates", "a path", path));
    let name = section.read("tls_name", |node| {
        let form = "what the servers' certificates are for: a name or an address";
        parsed(node, "name of a server", form, |name| is_server_name(name).then(|| name.to_owned()))
    });
    if !is_on {
        for key in ["ca", "tls_name"] {
            if let Some(node) = section.get(key) {
                let complaint = Complaint::new(node.span(), format!("`{key}` needs tls = true"), "no TLS here");
                section.complaints().add(complaint);
            }
        }
        return None;
    }
    let span = section.get("tls")?.span();
    let nameless = servers.iter().find(|server| name.is_none() && !is_server_name(server.address.host()));
    if let Some(server) = nameless {
        let what = format!("no certificate can be for {}", server.address);
        let complaint = Complaint::new(span.clone(), what, "the name on its certificate is not known");
        section.complaints().add(complaint.suggest("add tls_name = \"NAME\", which its certificate is for"));
        return None;
    }
    let authorities = match &ca {
        Some(file) => authorities_in(file),
        None if section.get("ca").is_some() => return None,
        None => match Authorities::OF_SYSTEM.map(Path::new).into_iter().find(|file| file.exists()) {
            Some(file) => authorities_in(file),
            None => Err("this system has no file of certificate authorities where larder looks for one".to_owned()),
        },
    };
    match authorities {
        Ok(authorities) => Some(MemcachedTls { authorities: Arc::new(authorities), name }),
        Err(why) => {
            let span = section.get("ca").map_or(span, |node| node.span());
            let complaint = Complaint::new(span, why, "who may sign the servers' certificates");
            section.complaints().add(complaint.suggest("set ca = \"FILE\", certificates in PEM"));
            None
        }
    }
}

fn authorities_in(path: &Path) -> Result<Authorities, String> {
    let mut pem = Vec::new();
    let file = File::open(path).and_then(|file| file.take(CERTIFICATES_BYTES_MAX + 1).read_to_end(&mut pem));
    file.map_err(|why| format!("{} cannot be read: {why}", path.display()))?;
    // A part of a bundle would be other authorities than were meant.
    if pem.len() as u64 > CERTIFICATES_BYTES_MAX {
        return Err(format!("{}: it may have {CERTIFICATES_BYTES_MAX} bytes, and has more", path.display()));
    }
    Authorities::read(&pem).map_err(|why| format!("{}: {why}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::super::memcached_route::tests::check;
    use super::*;

    #[test]
    fn a_bundle_that_is_too_long_is_said() {
        let file = std::env::temp_dir().join(format!("larder-bundle-{}", std::process::id()));
        let is_among_what_is_said = |bytes: u64, expect: &str| {
            std::fs::write(&file, vec![b'\n'; bytes as usize]).unwrap();
            let path = file.display();
            check(&format!("memcached = \"a\"\ntls = true\nca = \"{path}\""), &format!("{path}: {expect}"));
        };
        is_among_what_is_said(CERTIFICATES_BYTES_MAX, "there is no certificate in it");
        is_among_what_is_said(CERTIFICATES_BYTES_MAX + 1, "it may have 4194304 bytes, and has more");
        std::fs::remove_file(&file).unwrap();
    }

    #[test]
    fn what_cannot_be_is_said() {
        check("memcached = \"a\"\nca = \"/x\"", "`ca` needs tls = true");
        check("memcached = \"a\"\ntls = true\ntls_name = \"a b\"", "`a b` is no name of a server");
        check(
            "memcached = \"a\"\ntls = true\nca = \"/nowhere/at/all\"",
            "/nowhere/at/all cannot be read: No such file or directory (os error 2)",
        );
        check("memcached = \"a\"\ntls = true\nca = \"/dev/null\"", "/dev/null: there is no certificate in it");
        check("memcached = \"unix:/m.sock\"\ntls = true", "no certificate can be for unix:/m.sock");
        check("root = \"/a\"\ntls = true", "`tls` is for routes to memcached");
    }
}
