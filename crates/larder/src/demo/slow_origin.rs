//! The demo's origin: a small HTTP server that thinks before each answer, as a real one does over its database.
//!
//! A thread a connection: it is there to be slow.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use message::{FieldName, Method, Scheme, Status};
use wire::limits::HeadLimits;
use wire::{Persistence, read_request, whole_answer};

use super::demo_site::{Resource, resources};
use crate::limits;

pub struct SlowOrigin {
    pub address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    resources: Vec<Resource>,
    requests: AtomicU64,
    connections: AtomicUsize,
}

impl SlowOrigin {
    /// On a free port of this machine, until the process ends.
    pub fn start() -> io::Result<SlowOrigin> {
        let listener = TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0))?;
        let shared =
            Arc::new(Shared { resources: resources(), requests: AtomicU64::new(0), connections: AtomicUsize::new(0) });
        let origin = SlowOrigin { address: listener.local_addr()?, shared: Arc::clone(&shared) };
        std::thread::Builder::new().name("demo-origin".to_owned()).spawn(move || {
            for stream in listener.incoming().flatten() {
                serve_in_thread(stream, &shared);
            }
        })?;
        Ok(origin)
    }

    /// Requests it had to think about.
    pub fn requests(&self) -> u64 {
        self.shared.requests.load(Ordering::Relaxed)
    }

    /// The paths whose answers may be kept.
    pub fn stored_paths(&self) -> Vec<&'static str> {
        self.shared.resources.iter().filter(|resource| resource.is_stored()).map(|resource| resource.path).collect()
    }
}

fn serve_in_thread(stream: TcpStream, shared: &Arc<Shared>) {
    if shared.connections.fetch_add(1, Ordering::Relaxed) >= limits::DEMO_ORIGIN_CONNECTIONS_MAX {
        shared.connections.fetch_sub(1, Ordering::Relaxed);
        return;
    }
    let mine = Arc::clone(shared);
    let spawned = std::thread::Builder::new().name("demo-origin".to_owned()).spawn(move || {
        // The end of the connection, in whatever way, is all there is to know.
        let _ = serve(stream, &mine);
        mine.connections.fetch_sub(1, Ordering::Relaxed);
    });
    if spawned.is_err() {
        shared.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

fn serve(mut stream: TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let (mut received, mut spans) = (Vec::new(), Vec::new());
    let mut buffer = [0; 4096];
    loop {
        let (head_bytes, answer, persistent) = loop {
            match read_request(&received, &mut spans, &HeadLimits::REQUEST, Scheme::Http) {
                Ok(Some(request)) => {
                    shared.requests.fetch_add(1, Ordering::Relaxed);
                    let known = request.request.fields.get(FieldName::IfNoneMatch).unwrap_or_default();
                    let answer = answer(shared, request.request.method, request.request.path, known);
                    break (request.head_bytes, answer, request.persistent);
                }
                Ok(None) => {}
                Err(refusal) => return Err(io::Error::other(refusal.token)),
            }
            match stream.read(&mut buffer)? {
                0 => return Ok(()),
                n => received.extend_from_slice(&buffer[..n]),
            }
        };
        received.drain(..head_bytes);
        std::thread::sleep(limits::DEMO_THINK_TIME);
        stream.write_all(&answer)?;
        if !persistent {
            return Ok(());
        }
    }
}

/// The whole answer. `known` is what If-None-Match says.
fn answer(shared: &Shared, method: Method, path: &[u8], known: &[u8]) -> Vec<u8> {
    let answer = |status, fields: &[(&str, &str)], body: &str| {
        whole_answer(Status(status), fields, body.as_bytes(), method != Method::Head, Persistence::Implied)
    };
    if !matches!(method, Method::Get | Method::Head) {
        return answer(405, &[("Allow", "GET, HEAD")], "");
    }
    let Some(resource) = shared.resources.iter().find(|resource| resource.path.as_bytes() == path) else {
        return answer(404, &[("Content-Type", "text/plain")], "No such page.\n");
    };
    let body = resource.render();
    let mut hasher = DefaultHasher::new();
    body.hash(&mut hasher);
    let etag = format!("\"{:016x}\"", hasher.finish());
    let fields = [("Cache-Control", resource.cache_control), ("ETag", &etag)];
    if known == etag.as_bytes() {
        return answer(304, &fields, "");
    }
    answer(200, &[&[("Content-Type", resource.content_type)], &fields[..]].concat(), &body)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(method: Method, path: &str, known: &str, status: &str, body_contains: Option<&str>) {
        let shared = Shared { resources: resources(), requests: AtomicU64::new(0), connections: AtomicUsize::new(0) };
        let answer = String::from_utf8(answer(&shared, method, path.as_bytes(), known.as_bytes())).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{head}");
        match body_contains {
            Some(part) => assert!(body.contains(part) && head.contains(&format!("Content-Length: {}", body.len()))),
            None => assert_eq!(body, ""),
        }
    }

    #[test]
    fn the_site_answers() {
        check(Method::Get, "/", "", "200", Some("<h1>The larder</h1>"));
        check(Method::Get, "/shelf.svg", "", "200", Some("</svg>"));
        check(Method::Head, "/", "", "200", None);
        check(Method::Post, "/", "", "405", None);
        check(Method::Get, "/nothing", "", "404", Some("No such page"));
    }

    #[test]
    fn every_link_of_a_page_leads_somewhere() {
        let all = resources();
        for resource in &all {
            let text = resource.render();
            let links = text.match_indices("href=\"").chain(text.match_indices("src=\"")).map(|(at, found)| {
                let rest = &text[at + found.len()..];
                &rest[..rest.find('"').unwrap()]
            });
            for link in links {
                assert!(all.iter().any(|known| known.path == link), "{} links to {link}", resource.path);
            }
        }
    }
}
