//! The names of origins, asked of the system beforehand: one that does not resolve is a warning at the start, and a 502 when somebody
//! asks.

use std::net::ToSocketAddrs;
use std::sync::mpsc;
use std::time::Duration;

use proxy::settings::{OriginSettings, OriginUrl};

use crate::limits::NAMES_ASKED_MAX;
use crate::plan::Plan;

/// When nothing has come for so long, what is still missing is not waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// The key of an origin that names it, the host, and the port.
type Named = (String, String, u16);

/// Why names do not resolve, a sentence each. It waits for the system, some seconds at most; none are asked when `[resolver]` decides
/// otherwise.
pub fn unresolved(plan: &Plan) -> Vec<String> {
    let names = names(plan);
    let (tell, told) = mpsc::channel();
    for (at, (_, host, port)) in names.iter().cloned().enumerate() {
        let tell = tell.clone();
        std::thread::spawn(move || {
            let failed = (host.as_str(), port).to_socket_addrs().err().map(|error| error.to_string());
            // Nobody listens any more when it took too long.
            let _ = tell.send((at, failed));
        });
    }
    drop(tell);
    let mut answers: Vec<Option<Option<String>>> = vec![None; names.len()];
    while let Ok((at, failed)) = told.recv_timeout(PATIENCE) {
        answers[at] = Some(failed);
    }
    let sentence = |((key, host, _), answer): (&Named, Option<Option<String>>)| {
        let why = match answer {
            Some(None) => return None,
            Some(Some(error)) => error,
            None => format!("no answer within {} s", PATIENCE.as_secs()),
        };
        Some(format!("{key}: the name {host} does not resolve ({why}); larder asks again later"))
    };
    names.iter().zip(answers).filter_map(sentence).collect()
}

/// Those that are asked for.
fn names(plan: &Plan) -> Vec<Named> {
    let resolver = &plan.settings.resolver;
    if !resolver.servers.is_empty() {
        return Vec::new();
    }
    let is_fixed = |host: &str| resolver.hosts.iter().any(|(name, _)| name == host);
    let origins = plan.settings.origins.iter();
    let key = |origin: &OriginSettings| {
        format!("origin.{}.{}", origin.name, if origin.fastcgi.is_some() { "fastcgi" } else { "urls" })
    };
    let urls = origins.flat_map(|origin| origin.urls.iter().map(move |url| (key(origin), url)));
    let named = urls.filter_map(|(key, url)| match url {
        OriginUrl::Tcp { host, port } | OriginUrl::Tls { host, port } | OriginUrl::Http2 { host, port }
            if !host.starts_with('[') && !is_fixed(host) =>
        {
            Some((key, host.clone(), *port))
        }
        _ => None,
    });
    named.take(NAMES_ASKED_MAX).collect()
}
