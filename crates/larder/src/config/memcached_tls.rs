//! TLS of a `[[route]]` to memcached: whether it is spoken, and whose word counts for who the servers are. The files of
//! certificates are read here, so that what is wrong with one is a complaint about a line.

use proxy::settings::{MemcachedServer, MemcachedTls};
use tls::is_server_name;

use super::complaint::Complaint;
use super::section::{Section, file, parsed, switch};
use crate::authority_files;

/// `tls`, `ca` and `tls_name`.
pub fn read(section: &mut Section<'_>, servers: &[MemcachedServer]) -> Option<MemcachedTls> {
    let is_on = section.read("tls", switch).unwrap_or(false);
    let complaints = section.complaints();
    let ca = section.read("ca", |node| file(node, complaints));
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
        Some(file) => authority_files::in_file(file),
        None if section.get("ca").is_some() => return None,
        None => authority_files::of_system(),
    };
    match authorities {
        Ok(authorities) => Some(MemcachedTls { authorities, name }),
        Err(why) => {
            let span = section.get("ca").map_or(span, |node| node.span());
            let complaint = Complaint::new(span, why, "who may sign the servers' certificates");
            section.complaints().add(complaint.suggest("set ca = \"FILE\", certificates in PEM"));
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use proxy::limits::CERTIFICATES_BYTES_MAX;

    use super::super::memcached_route::tests::check;

    #[test]
    fn a_bundle_that_is_too_long_is_said() {
        let file = std::env::temp_dir().join(format!("larder-bundle-{}", std::process::id()));
        let is_among_what_is_said = |bytes: u64, expect: &str| {
            std::fs::write(&file, vec![b'\n'; bytes as usize]).unwrap();
            let path = file.display();
            check(&format!("memcached = \"a\"\ntls = true\nca = \"{path}\""), &format!("{path}: {expect}"));
        };
        is_among_what_is_said(CERTIFICATES_BYTES_MAX, "there is no certificate in it");
        is_among_what_is_said(
            CERTIFICATES_BYTES_MAX + 1,
            "more than 4194304 bytes, which is all that such a file may have",
        );
        std::fs::remove_file(&file).unwrap();
    }

    #[test]
    fn what_cannot_be_is_said() {
        check("memcached = \"a\"\nca = \"/x\"", "`ca` needs tls = true");
        check("memcached = \"a\"\ntls = true\ntls_name = \"a b\"", "`a b` is no name of a server");
        check(
            "memcached = \"a\"\ntls = true\nca = \"/nowhere/at/all\"",
            "/nowhere/at/all: No such file or directory (os error 2)",
        );
        check("memcached = \"a\"\ntls = true\nca = \"/dev/null\"", "/dev/null: there is no certificate in it");
        check("memcached = \"unix:/m.sock\"\ntls = true", "no certificate can be for unix:/m.sock");
        check("root = \"/a\"\ntls = true", "`tls` is for routes to memcached");
    }
}
