//! The servers that the lab knows: which binary, what it can do, and how it is told to serve one site.
//!
//! A profile writes a configuration of ours, tuned as the server's own manual says and the same in what matters for
//! all: no access log, no compression but in rows that ask for it, connections kept without end, memory for everything that a row asks for, so
//! many workers as there are processors for servers. It starts nothing itself. All of it lands in the results.

mod apache_profile;
mod caddy_profile;
mod haproxy_profile;
mod hitch_profile;
mod larder_profile;
mod nginx_profile;
mod squid_profile;
mod static_profiles;
mod traffic_server_profile;
mod varnish_profile;

pub(crate) use larder_profile::LAB_ORIGIN;
pub(crate) use nginx_profile::NGINX_ORIGIN;

use crate::matrix::server_profile::Profile;

pub(crate) const PROFILES: &[&Profile] = &[
    &larder_profile::LARDER,
    &larder_profile::LARDER_STATIC,
    &larder_profile::LARDER_FORWARD,
    &larder_profile::LARDER_VCL,
    &larder_profile::LARDER_MEMC,
    &larder_profile::NULL,
    &nginx_profile::NGINX_CACHE,
    &nginx_profile::NGINX_STATIC,
    &nginx_profile::NGINX_MEMC,
    &varnish_profile::VARNISH,
    &squid_profile::SQUID,
    &squid_profile::SQUID_FORWARD,
    &hitch_profile::HITCH_VARNISH,
    &haproxy_profile::HAPROXY,
    &apache_profile::APACHE,
    &apache_profile::APACHE_STATIC,
    &static_profiles::H2O,
    &caddy_profile::CADDY,
    &static_profiles::LIGHTTPD,
    &traffic_server_profile::TRAFFIC_SERVER,
    &static_profiles::MEMCACHED,
];

pub(crate) fn profile(name: &str) -> Option<&'static Profile> {
    PROFILES.iter().copied().find(|profile| profile.name == name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;
    use std::path::PathBuf;

    use super::*;
    use crate::matrix::lab_file::tests::source;
    use crate::matrix::planned_rows::planned_rows;
    use crate::matrix::run_certificate::CertificateFiles;
    use crate::matrix::server_profile::{Frontend, Role, Site, open_directory};

    #[test]
    fn profiles_are_named_once_and_say_how_to_get_them() {
        for (n, profile) in PROFILES.iter().enumerate() {
            assert!(!PROFILES[..n].iter().any(|other| other.name == profile.name), "{}", profile.name);
            assert_eq!(profile.binary.is_some(), profile.install.contains("apt-get install"), "{}", profile.name);
        }
    }

    #[test]
    fn a_row_is_asked_of_those_who_can_answer_it() {
        let text = "title = \"t\"\nreference = \"a\"\n[[row]]\nname = \"r\"\nconnections = 1\n";
        let check = |row: &str, name: &str, expect: Option<&str>| {
            let text = format!("{text}{row}\n");
            let source = source(&text);
            let row = &planned_rows(&source.read().unwrap().row, &[], &source).unwrap()[0];
            let refusal = profile(name).unwrap().refusal(row);
            match expect {
                None => assert_eq!(refusal, None, "{name}"),
                Some(part) => assert!(refusal.as_ref().is_some_and(|why| why.contains(part)), "{name}: {refusal:?}"),
            }
        };
        let page = "size = 1000";
        let gets = "items = { keys = 10, key_bytes = 8, value_bytes = 8 }";
        let sets = "items = { keys = 10, key_bytes = 8, value_bytes = 8, set_share = 0.1 }";
        check(gets, "larder-memc", None);
        check(gets, "memcached", None);
        check(sets, "memcached", None);
        check(sets, "nginx-memc", Some("set_share = 0"));
        check(page, "nginx-memc", Some("stands before a memcached"));
        check(gets, "larder", Some("speaks HTTP"));
        check(page, "memcached", Some("speaks memcached's protocol"));
        check(page, "larder-forward", Some("forward = true"));
        check("size = 1000\nforward = true", "larder-forward", None);
        check("size = 1000\nforward = true", "larder", Some("forwards to none"));
        let (tls, h2c, h2) = ("size = 1\ntls = true", "size = 1\nhttp2 = true", "size = 1\ntls = true\nhttp2 = true");
        for name in ["larder", "larder-static", "nginx-cache", "nginx-static", "haproxy", "h2o", "caddy"] {
            [tls, h2c, h2].iter().for_each(|row| check(row, name, None));
        }
        check(tls, "varnish", Some("hitch-varnish has hitch before it"));
        check(h2c, "varnish", None);
        check(h2, "hitch-varnish", None);
        check(page, "hitch-varnish", Some("asked of varnish"));
        check(h2c, "squid", Some("speaks no HTTP/2"));
        check(tls, "null", Some("null speaks neither TLS nor HTTP/2"));
        let gzip = "size = 1000\nencoding = \"gzip\"";
        for name in ["larder", "larder-vcl", "nginx-cache", "varnish", "haproxy", "h2o", "caddy"] {
            check(gzip, name, None);
        }
        check(gzip, "squid", Some("without that coding"));
        check("size = 1000\nencoding = \"br\"", "nginx-cache", Some("without that coding"));
        for row in ["size = 1000\nkind = \"miss\"", "parts = { count = 3, bytes = 100 }"] {
            check(row, "larder", None);
            check(row, "h2o", Some("serves files"));
            check(row, "null", Some("fetches nothing"));
        }
        check(tls, "trafficserver", Some("in the clear and for HTTP/1.1 alone"));
    }

    #[test]
    fn every_profile_writes_what_it_starts_with() {
        let dir = std::env::temp_dir().join(format!("larder-lab-profiles-{}", std::process::id()));
        let path = |name: &str| PathBuf::from(format!("/the/{name}"));
        let mut written = std::collections::HashMap::new();
        let files = CertificateFiles { chain: path("chain"), key: path("key"), both: path("both") };
        for profile in PROFILES.iter().chain(&[&NGINX_ORIGIN, &LAB_ORIGIN]) {
            let codings = [None].into_iter().chain(profile.codings.iter().copied().map(Some));
            for (spoken, encoding) in codings.flat_map(|coding| profile.speaks.all.iter().map(move |it| (it, coding))) {
                open_directory(&dir).unwrap();
                // A module need not be installed for its name to be written down.
                let options = BTreeMap::from([("module".to_owned(), "/dev/null".to_owned())]);
                let site = Site {
                    dir: &dir,
                    docroot: &dir,
                    port: 12345,
                    origin: "127.0.0.1:23456".parse().unwrap(),
                    front: Frontend { tls: spoken.tls.then_some(&files), http2: spoken.http2 },
                    workers: 1,
                    open_files: 20_000,
                    passes: false,
                    size_bytes: Some(10),
                    encoding,
                    options: &options,
                    defaults: profile.options,
                };
                let launch = (profile.launch)(&site).unwrap_or_else(|error| panic!("{}: {error}", profile.name));
                let texts: String = launch.configs.iter().map(|config| config.text.as_str()).collect();
                let all = format!("{texts} {:?}", launch.arguments);
                assert!(all.contains("12345"), "{}: {all}", profile.name);
                let asks = matches!(profile.role, Role::Cache | Role::Gateway);
                assert_eq!(all.contains("23456"), asks, "{}: {all}", profile.name);
                let shows = all.contains("/the/both") || (all.contains("/the/chain") && all.contains("/the/key"));
                assert_eq!(shows, spoken.tls, "{} {spoken:?}: {all}", profile.name);
                assert!(fs::remove_dir_all(&dir).is_ok());
                written.insert((profile.name, encoding, spoken.tls, spoken.http2), all);
            }
        }
        for ((name, encoding, tls, http2), all) in &written {
            let by_itself = name.starts_with("larder") && *name != "larder-vcl" || *name == "hitch-varnish";
            let plain = &written[&(*name, None, *tls, *http2)];
            assert!(encoding.is_none() || by_itself || all != plain, "{name} is not told of {encoding:?}");
        }
    }
}
