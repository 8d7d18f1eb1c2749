//! The backends of a VCL, as origins: each definition becomes the settings that `origin` works by.
//!
//! Names are looked up again and again and all their addresses are used, as for any origin. A backend behind another one (`.via`) is an
//! origin at that one's address, whose connections begin with where they are to be led; they are its own, so that none is ever used for
//! another destination. What cannot be is refused here, when the program is loaded, and never left out in silence.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use vcl::World;
use vcl::typed_program::{Address, Backend, Endpoint, Program};
use wire::write_way_header;

use crate::limits::{BACKEND_CONNECTIONS_MAX_DEFAULT, BACKEND_QUEUE_MAX_DEFAULT, BACKEND_QUEUE_TIMEOUT_DEFAULT};
use crate::limits::{EJECTION_FAILURES_DEFAULT, EJECTION_TIME_DEFAULT};
use crate::settings::{
    BalanceSettings, Greeting, OriginSettings, OriginTimeouts, OriginTls, OriginUrl, ProxyVersion, RetrySettings,
    VclParameters, Verification,
};

/// The settings of all backends, in the order of their ids; or everything that keeps them from being used.
pub(crate) fn origins_of(
    program: &Program,
    parameters: &VclParameters,
    world: &dyn World,
) -> Result<Vec<OriginSettings>, Vec<String>> {
    let mut refusals = Vec::new();
    let mut origins = Vec::new();
    for backend in &program.backends {
        match origin_of(backend, &program.backends, parameters, world) {
            Ok(origin) => origins.push(origin),
            Err(why) => refusals.push(format!("backend `{}`: {why}", backend.name)),
        }
    }
    if refusals.is_empty() { Ok(origins) } else { Err(refusals) }
}

pub(crate) fn origin_of(
    backend: &Backend,
    all: &[Backend],
    parameters: &VclParameters,
    world: &dyn World,
) -> Result<OriginSettings, String> {
    let nowhere = Endpoint::default();
    let endpoint = backend.endpoint.as_ref().unwrap_or(&nowhere);
    // Where connections go to: to itself, or to the one that leads to it.
    let (there, mut preamble) = match through(endpoint, all)? {
        None => (endpoint, Vec::new()),
        Some(via) => (via, way_to(endpoint, world)?),
    };
    preamble.extend_from_slice(endpoint.preamble.as_deref().unwrap_or_default());
    let urls = match backend.endpoint {
        Some(_) => vec![url_of(there, world)?],
        None => Vec::new(),
    };
    // Varnish lets nobody wait for a backend that is full unless it is told to. Without a limit of its own there is
    // ours, which has a queue.
    let (connections_max, queue_max, queue_timeout) = match endpoint.connections_max.filter(|&max| max > 0) {
        None => (BACKEND_CONNECTIONS_MAX_DEFAULT, BACKEND_QUEUE_MAX_DEFAULT, BACKEND_QUEUE_TIMEOUT_DEFAULT),
        Some(max) => (
            count(max),
            count(endpoint.waiting_max.unwrap_or(parameters.backend_wait_limit.into())),
            duration(endpoint.wait_timeout_s).unwrap_or(parameters.backend_wait_timeout),
        ),
    };
    let (queue_max, queue_timeout) = match queue_timeout.is_zero() {
        true => (0, Duration::ZERO),
        false => (queue_max, queue_timeout),
    };
    Ok(OriginSettings {
        name: backend.name.clone(),
        urls,
        connections_max,
        queue_max,
        queue_timeout,
        ejection_failures: EJECTION_FAILURES_DEFAULT,
        ejection_time: EJECTION_TIME_DEFAULT,
        balance: BalanceSettings::default(),
        // A program's probes are about the backend, whatever its addresses.
        probe: None,
        retries: RetrySettings::default(),
        host: Some(host_header(endpoint)),
        timeouts: OriginTimeouts {
            connect: duration(endpoint.connect_timeout_s.or(there.connect_timeout_s)),
            first_byte: duration(endpoint.first_byte_timeout_s.or(there.first_byte_timeout_s)),
            between_bytes: duration(endpoint.between_bytes_timeout_s.or(there.between_bytes_timeout_s)),
        },
        greeting: Greeting {
            preamble,
            proxy_header: match endpoint.proxy_header {
                Some(1) => Some(ProxyVersion::One),
                Some(_) => Some(ProxyVersion::Two),
                None => None,
            },
        },
        tls: tls_of(there),
        http2: endpoint.http2,
        fastcgi: None,
    })
}

/// The backend that leads to this one, if one does.
fn through<'p>(endpoint: &Endpoint, all: &'p [Backend]) -> Result<Option<&'p Endpoint>, String> {
    let Some(id) = endpoint.via else {
        let is_told = endpoint.authority.is_some();
        return if is_told {
            Err(".authority is told to another backend: name it as .via".to_owned())
        } else {
            Ok(None)
        };
    };
    let via = all.get(id.index()).and_then(|via| via.endpoint.as_ref());
    let via = via.ok_or("`.via` leads to a backend that is `none`")?;
    if endpoint.tls.on {
        return Err("`.via` leaves TLS to the other backend: take out .ssl".to_owned());
    }
    if via.proxy_header.is_some() || via.preamble.is_some() {
        return Err("`.via` leads to a backend that has a .proxy_header or a .preamble of its own".to_owned());
    }
    Ok(Some(via))
}

/// What the other backend is told first: the address of this one, looked up once, and its name.
fn way_to(endpoint: &Endpoint, world: &dyn World) -> Result<Vec<u8>, String> {
    let OriginUrl::Tcp { host, port } = url_of(endpoint, world)? else {
        return Err("`.via` leads to a host, and to no socket".to_owned());
    };
    let address = match host.parse::<IpAddr>() {
        Ok(address) => address,
        Err(_) => {
            let all = world.addresses(&host)?;
            let first = all.iter().find(|address| address.is_ipv4()).or(all.first());
            *first.ok_or_else(|| format!("`{host}` has no address, which `.via` has to tell"))?
        }
    };
    let name = match &endpoint.authority {
        Some(name) => name.as_str(),
        None => split_port(endpoint.host_header.as_ref().unwrap_or(&host)).0,
    };
    if name.len() > 255 {
        return Err("the name that `.via` tells the other backend has more than 255 characters".to_owned());
    }
    let mut words = Vec::new();
    write_way_header(SocketAddr::new(address, port), Some(name).filter(|name| !name.is_empty()), &mut words);
    Ok(words)
}

/// What a request without Host gets, and every probe: the host as it is written, a socket's is a fixed one.
fn host_header(endpoint: &Endpoint) -> String {
    match (&endpoint.host_header, &endpoint.address) {
        (Some(written), _) => written.clone(),
        (None, Address::Host { host, .. }) => host.clone(),
        (None, Address::Path(_)) => "0.0.0.0".to_owned(),
    }
}

/// What `.ssl` and its like say. The certificate is for the host that the backend is asked for.
fn tls_of(endpoint: &Endpoint) -> OriginTls {
    OriginTls {
        verification: if endpoint.tls.without_verification { Verification::Off } else { Verification::System },
        name: endpoint.host_header.as_deref().map(|host| split_port(host).0.to_owned()),
        without_sni: endpoint.tls.without_sni,
        certificate: None,
    }
}

fn url_of(endpoint: &Endpoint, world: &dyn World) -> Result<OriginUrl, String> {
    let (written, port) = match &endpoint.address {
        // A socket without a file; the kernel knows it by a zero byte where `@` stands.
        Address::Path(path) => {
            return Ok(OriginUrl::Unix(match path.strip_prefix('@') {
                Some(name) => PathBuf::from(format!("\0{name}")),
                None => PathBuf::from(path),
            }));
        }
        Address::Host { host, port } => (host, port),
    };
    let (host, own_port) = split_port(written);
    let port = match own_port.or(port.as_deref()) {
        None => {
            if endpoint.tls.on {
                443
            } else {
                80
            }
        }
        Some(text) => (text.parse().ok().or_else(|| world.service_port(text)))
            .ok_or_else(|| format!("the port `{text}` is no number and no service that this machine knows"))?,
    };
    let host = host.to_owned();
    Ok(match (endpoint.tls.on, endpoint.http2) {
        (true, _) => OriginUrl::Tls { host, port },
        (false, true) => OriginUrl::Http2 { host, port },
        (false, false) => OriginUrl::Tcp { host, port },
    })
}

/// `name`, `name:port`, `name port`, `[v6]`, `[v6]:port` or `v6`: the host, and the port if there is one.
fn split_port(written: &str) -> (&str, Option<&str>) {
    if let Some((host, after)) = written.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return (host, after.strip_prefix(':'));
    }
    match written.split_once([':', ' ']) {
        Some((host, port)) if !port.contains(':') => (host, Some(port)),
        _ => (written, None),
    }
}

fn count(n: u64) -> usize {
    n.try_into().unwrap_or(usize::MAX)
}

/// Nothing and zero both mean: as for everybody.
fn duration(seconds: Option<f64>) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds?).ok().filter(|time| !time.is_zero())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Services;

    impl World for Services {
        fn now_s(&self) -> f64 {
            0.0
        }

        /// Names of backends are looked up when they are used, but for those that another one is told.
        fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, String> {
            match host {
                "via.test" => Ok(vec!["2001:db8::1".parse().unwrap(), "192.0.2.9".parse().unwrap()]),
                _ => Err(format!("`{host}` is not known")),
            }
        }

        fn service_port(&self, name: &str) -> Option<u16> {
            (name == "http-alt").then_some(8080)
        }

        fn log(&self, _: vcl::LogKind, _: &[u8]) {}
    }

    fn checked(text: &str) -> Program {
        let text = format!("vcl 4.1; {text}").into_bytes();
        let checked = vcl::check(vcl::Included { name: "t.vcl".to_owned(), bytes: text }, &vcl::NoIncludes);
        checked.program.unwrap_or_else(|| panic!("{:?}", checked.diagnostics))
    }

    fn origin(attributes: &str) -> Result<OriginSettings, String> {
        let program = checked(&format!("backend b {attributes}"));
        origin_of(&program.backends[0], &program.backends, &VclParameters::default(), &Services)
    }

    fn check_url(attributes: &str, expect: &str) {
        let got = origin(&format!("{{ {attributes} }}")).map(|origin| match &origin.urls[..] {
            [OriginUrl::Tcp { host, port }] => format!("{host} {port}"),
            [OriginUrl::Unix(path)] => format!("{path:?}"),
            other => format!("{other:?}"),
        });
        assert_eq!(got.unwrap_or_else(|why| why), expect, "{attributes}");
    }

    #[test]
    fn addresses_are_read_in_all_their_forms() {
        check_url(r#".host = "a.test";"#, "a.test 80");
        check_url(r#".host = "a.test"; .port = "8080";"#, "a.test 8080");
        check_url(r#".host = "a.test:81";"#, "a.test 81");
        check_url(r#".host = "a.test 81"; .port = "82";"#, "a.test 81");
        check_url(r#".host = "10.0.0.1"; .port = "http-alt";"#, "10.0.0.1 8080");
        let why = "the port `gopher` is no number and no service that this machine knows";
        check_url(r#".host = "10.0.0.1"; .port = "gopher";"#, why);
        check_url(r#".host = "::1"; .port = "82";"#, "::1 82");
        check_url(r#".host = "[::1]:83";"#, "::1 83");
        check_url(r#".path = "/run/app.sock";"#, r#""/run/app.sock""#);
        check_url(r#".path = "@app";"#, r#""\0app""#);
    }

    #[test]
    fn a_full_backend_refuses_unless_it_lets_wait() {
        let limits = |attributes: &str| {
            let origin = origin(&format!(r#"{{ .host = "a"; {attributes} }}"#)).unwrap();
            (origin.connections_max, origin.queue_max, origin.queue_timeout.as_millis())
        };
        assert_eq!(limits(".max_connections = 3;"), (3, 0, 0));
        assert_eq!(limits(".max_connections = 3; .wait_limit = 5; .wait_timeout = 0.5s;"), (3, 5, 500));
        assert_eq!(limits(".max_connections = 3; .wait_limit = 5;"), (3, 0, 0), "nobody waits for no time");
        let ours = (BACKEND_CONNECTIONS_MAX_DEFAULT, BACKEND_QUEUE_MAX_DEFAULT);
        assert_eq!((limits("").0, limits("").1), ours);
        assert_eq!(limits(".max_connections = 0;").0, ours.0, "none is no limit");
    }

    #[test]
    fn times_and_greetings_are_its_own() {
        let origin = origin(
            r#"{ .host = "a.test:81"; .connect_timeout = 1.5s; .first_byte_timeout = 0s; .proxy_header = 2;
                 .preamble = :SGVsbG8=:; }"#,
        )
        .unwrap();
        assert_eq!(origin.timeouts.connect, Some(Duration::from_millis(1500)));
        assert_eq!((origin.timeouts.first_byte, origin.timeouts.between_bytes), (None, None));
        assert_eq!(origin.greeting, Greeting { preamble: b"Hello".to_vec(), proxy_header: Some(ProxyVersion::Two) });
        assert_eq!(origin.host.as_deref(), Some("a.test:81"));
    }

    #[test]
    fn a_backend_that_is_none_has_no_address() {
        assert!(origin("none;").unwrap().urls.is_empty());
    }

    #[test]
    fn ssl_is_spoken_to_the_server_that_the_backend_names() {
        let check = |attributes: &str, expect: OriginTls| {
            let origin = origin(&format!("{{ .host = \"a.test\"; .ssl = 1; {attributes} }}")).unwrap();
            assert_eq!(origin.urls, [OriginUrl::Tls { host: "a.test".to_owned(), port: 443 }], "{attributes}");
            assert_eq!(origin.tls, expect, "{attributes}");
        };
        check("", OriginTls::default());
        let name = Some("b.test".to_owned());
        check(r#".host_header = "b.test:8443";"#, OriginTls { name, ..OriginTls::default() });
        check(".ssl_noverify = 1;", OriginTls { verification: Verification::Off, ..OriginTls::default() });
        check(".ssl_sni = 0;", OriginTls { without_sni: true, ..OriginTls::default() });
    }

    #[test]
    fn http2_is_spoken_by_prior_knowledge_or_as_the_server_agrees() {
        let check = |attributes: &str, url: OriginUrl, http2: bool| {
            let origin = origin(&format!("{{ .host = \"a.test\"; {attributes} }}")).unwrap();
            assert_eq!((origin.urls, origin.http2), (vec![url], http2), "{attributes}");
        };
        let host = "a.test".to_owned();
        check(".http2 = 1;", OriginUrl::Http2 { host: host.clone(), port: 80 }, true);
        check(".http2 = 1; .ssl = 1;", OriginUrl::Tls { host: host.clone(), port: 443 }, true);
        check(".http2 = 0;", OriginUrl::Tcp { host, port: 80 }, false);
    }

    #[test]
    fn a_way_through_another_backend_is_told_to_it() {
        let via = "backend c { .host = \"c.test\"; .port = \"8443\"; .ssl = 1; .connect_timeout = 2s; }";
        let origin = |attributes: &str| origin(&format!("{{ .via = c; {attributes} }} {via}"));
        let check = |attributes: &str, destination: &str, name: Option<&str>| {
            let got = origin(attributes).unwrap();
            let mut expect = Vec::new();
            write_way_header(destination.parse().unwrap(), name, &mut expect);
            assert_eq!(got.greeting, Greeting { preamble: expect, proxy_header: None }, "{attributes}");
            assert_eq!(got.urls, [OriginUrl::Tls { host: "c.test".to_owned(), port: 8443 }], "{attributes}");
            assert_eq!(got.timeouts.connect, Some(Duration::from_secs(2)), "{attributes}");
        };
        check(r#".host = "via.test";"#, "192.0.2.9:80", Some("via.test"));
        check(r#".host = "via.test:81"; .host_header = "b.test:82";"#, "192.0.2.9:81", Some("b.test"));
        check(r#".host = "10.0.0.1"; .port = "443"; .authority = "b.test";"#, "10.0.0.1:443", Some("b.test"));
        check(r#".host = "2001:db8::7"; .authority = "";"#, "[2001:db8::7]:80", None);
        for (attributes, why) in [
            (r#".host = "x.test";"#, "`x.test` is not known"),
            (r#".host = "via.test"; .ssl = 1;"#, "`.via` leaves TLS to the other backend: take out .ssl"),
        ] {
            assert_eq!(origin(attributes).unwrap_err(), why);
        }
        let program = checked(
            r#"backend a { .host = "a"; } backend b { .host = "via.test"; .via = c; }
               backend c { .host = "c"; .proxy_header = 2; } backend d { .host = "d"; .authority = "d"; }
               sub vcl_recv { set req.backend_hint = a; set req.backend_hint = b; set req.backend_hint = d; }"#,
        );
        let refusals = origins_of(&program, &VclParameters::default(), &Services).unwrap_err();
        assert_eq!(refusals.len(), 2, "{refusals:?}");
        assert!(
            refusals[0].starts_with("backend `b`: `.via` leads to a backend that has a .proxy_header"),
            "{refusals:?}"
        );
        assert!(refusals[1].starts_with("backend `d`: .authority is told to another backend"), "{refusals:?}");
    }
}
