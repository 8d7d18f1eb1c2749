//! Origins on this machine where nobody listens, or whose socket this user may not use: mostly a wrong port, a path that another version
//! of PHP has, or a group that is missing. They are connected to, and asked nothing.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use proxy::settings::{OriginSettings, OriginUrl};

use crate::addresses::{show_fastcgi, show_origin};
use crate::limits::NAMES_ASKED_MAX;
use crate::plan::Plan;

/// Of one address; this machine answers at once.
const PATIENCE: Duration = Duration::from_secs(1);

/// Why they would not answer, a sentence each.
pub fn unanswered(plan: &Plan) -> Vec<String> {
    let mut left = NAMES_ASKED_MAX;
    let asked = plan.settings.origins.iter().flat_map(|origin| {
        let urls = origin.urls.iter().take(left);
        left -= urls.len();
        of_origin(origin, urls)
    });
    asked.collect()
}

/// Where another address of the origin answers, nobody is told of the one that does not.
fn of_origin<'a>(origin: &OriginSettings, urls: impl Iterator<Item = &'a OriginUrl>) -> Vec<String> {
    let all: Vec<Option<String>> = urls.map(|url| why_not(origin, url)).collect();
    let others_may_answer = all.len() < origin.urls.len() || all.contains(&None);
    let until = match others_may_answer {
        true => "until that changes its other addresses answer, and have its share of the load",
        false => "until that changes requests are answered 502 or from the store",
    };
    all.into_iter().flatten().map(|why| format!("{why}; {until}")).collect()
}

fn why_not(origin: &OriginSettings, url: &OriginUrl) -> Option<String> {
    let error = connect(url)?.err()?;
    let (key, shown) = match origin.fastcgi {
        Some(_) => ("fastcgi", show_fastcgi(url)),
        None => ("urls", show_origin(url)),
    };
    let why = match (error.kind(), url) {
        (ErrorKind::NotFound, _) => format!("there is no socket at {shown}"),
        (ErrorKind::PermissionDenied, _) => format!("this user may not write to {shown}"),
        (ErrorKind::ConnectionRefused, _) => format!("nobody listens at {shown}"),
        _ => format!("{shown} cannot be connected to ({error})"),
    };
    Some(format!("origin.{}.{key}: {why}", origin.name))
}

/// `None`: it is not on this machine.
fn connect(url: &OriginUrl) -> Option<io::Result<()>> {
    match url {
        OriginUrl::Unix(path) => Some(UnixStream::connect(path).map(drop)),
        OriginUrl::Tcp { host, port } | OriginUrl::Tls { host, port } | OriginUrl::Http2 { host, port } => {
            let ip = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
            let ip = if host == "localhost" { Ipv4Addr::LOCALHOST.into() } else { ip.ok()? };
            ip.is_loopback().then(|| TcpStream::connect_timeout(&SocketAddr::new(ip, *port), PATIENCE).map(drop))
        }
        OriginUrl::Mocked(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use proxy::settings::FastCgiSettings;

    use super::*;
    use crate::addresses::parse_origin;
    use crate::plan::origin_with_defaults;

    fn said(url: &str, fastcgi: Option<FastCgiSettings>) -> Option<String> {
        let url = parse_origin(url).expect("a URL");
        let origin = OriginSettings { fastcgi, ..origin_with_defaults("web".to_owned(), vec![url]) };
        of_origin(&origin, origin.urls.iter()).pop()
    }

    #[test]
    fn who_does_not_listen_on_this_machine_is_named() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let port = listener.local_addr().expect("an address").port();
        assert_eq!(said(&format!("http://127.0.0.1:{port}"), None), None);
        assert_eq!(said(&format!("http://localhost:{port}"), None), None);
        drop(listener);
        let refused = said(&format!("http://127.0.0.1:{port}"), None).expect("nobody listens");
        assert!(
            refused.starts_with(&format!("origin.web.urls: nobody listens at http://127.0.0.1:{port}; ")),
            "{refused}"
        );
        let of_php = said("unix:/nowhere/php.sock", Some(FastCgiSettings::default())).expect("there is none");
        assert!(of_php.starts_with("origin.web.fastcgi: there is no socket at unix:/nowhere/php.sock; "), "{of_php}");
        // Whoever is elsewhere is left alone.
        assert_eq!(said("http://192.0.2.1:81", None), None);
    }

    #[test]
    fn one_dead_address_of_two_costs_nobody_an_answer() {
        let bound = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let url =
            |listener: &TcpListener| parse_origin(&format!("http://{}", listener.local_addr().expect("an address")));
        let (alive, dead) = (bound(), bound());
        let urls = vec![url(&alive).expect("a URL"), url(&dead).expect("a URL")];
        drop(dead);
        let origin = origin_with_defaults("web".to_owned(), urls);
        let said = || of_origin(&origin, origin.urls.iter());
        assert!(said().len() == 1 && said()[0].ends_with("its other addresses answer, and have its share of the load"));
        drop(alive);
        assert!(said().len() == 2 && said().iter().all(|said| said.ends_with("answered 502 or from the store")));
    }
}
