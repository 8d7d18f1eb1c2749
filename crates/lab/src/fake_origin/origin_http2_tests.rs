//! The fake origin over HTTP/2 and TLS, asked by the crate `h2`'s client and by rustls's.

use std::io::{Read, Write};
use std::net::TcpStream as StdStream;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use h2::Reason;
use h2::client::SendRequest;
use http::{Method, Request, Response};
use tokio::net::TcpStream;
use tokio::runtime::LocalRuntime;
use tokio::task::{JoinHandle, spawn_local};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::constructed_body::{append_constructed, body_rule};
use crate::fake_origin::{FakeOrigin, OriginHttp2Settings, OriginSettings, OriginTlsSettings, TlsFault};

const PATIENCE: Duration = Duration::from_secs(20);

fn start(tls: Option<OriginTlsSettings>) -> FakeOrigin {
    let settings = OriginSettings { tls, http2: Some(OriginHttp2Settings::default()), ..OriginSettings::default() };
    FakeOrigin::start("127.0.0.1:0".parse().unwrap(), settings).unwrap()
}

fn body(path: &str, to: u64) -> Vec<u8> {
    let mut out = Vec::new();
    append_constructed(&mut out, body_rule(path), 0, to);
    out
}

fn runtime() -> LocalRuntime {
    tokio::runtime::Builder::new_current_thread().enable_all().build_local(Default::default()).unwrap()
}

type Ended = JoinHandle<Result<(), h2::Error>>;

async fn connect(origin: &FakeOrigin) -> (SendRequest<Bytes>, Ended) {
    let stream = TcpStream::connect(origin.address).await.unwrap();
    let (sender, connection) = h2::client::handshake(stream).await.unwrap();
    (sender, spawn_local(connection))
}

fn request(method: &str, target: &str, field: Option<(&'static str, &str)>) -> Request<()> {
    let uri = format!("http://a.example{target}");
    let mut builder = Request::builder().method(Method::from_bytes(method.as_bytes()).unwrap()).uri(uri);
    if let Some((name, value)) = field {
        builder = builder.header(name, value);
    }
    builder.body(()).unwrap()
}

/// The head, what came of the body, and how that ended.
type Answered = (Response<()>, Vec<u8>, Result<(), h2::Error>);

async fn ask(sender: &mut SendRequest<Bytes>, request: Request<()>, body: &[u8]) -> Result<Answered, h2::Error> {
    let asking = async {
        let mut ready = sender.clone().ready().await?;
        let (response, mut stream) = ready.send_request(request, body.is_empty())?;
        if !body.is_empty() {
            stream.send_data(Bytes::copy_from_slice(body), true)?;
        }
        let (head, mut stream) = response.await?.into_parts();
        let (mut got, mut ended) = (Vec::new(), Ok(()));
        while let Some(data) = stream.data().await {
            match data {
                Ok(data) => {
                    stream.flow_control().release_capacity(data.len())?;
                    got.extend_from_slice(&data);
                }
                Err(error) => {
                    ended = Err(error);
                    break;
                }
            }
        }
        Ok((Response::from_parts(head, ()), got, ended))
    };
    timeout(PATIENCE, asking).await.expect("an answer within reason")
}

/// One request on a connection of its own.
fn ask_alone(origin: &FakeOrigin, request: Request<()>, body: &[u8]) -> Result<Answered, h2::Error> {
    runtime().block_on(async { ask(&mut connect(origin).await.0, request, body).await })
}

/// The head must have these fields, the body be this one.
#[track_caller]
fn check(origin: &FakeOrigin, request: Request<()>, sent: &[u8], status: u16, fields: &[(&str, &str)], body: &[u8]) {
    let uri = request.uri().clone();
    let (head, got, ended) = ask_alone(origin, request, sent).unwrap();
    assert_eq!(head.status(), status, "{uri}: {head:?}");
    for (name, value) in fields {
        let found = head.headers().get(*name).and_then(|value| value.to_str().ok());
        assert!(found.is_some_and(|found| found.contains(value)), "{uri}: no {name}: {value} in {head:?}");
    }
    assert!(got == body && ended.is_ok(), "{uri}: {} bytes, {ended:?}", got.len());
}

#[test]
fn answers_are_those_of_http_1() {
    let origin = start(None);
    let get = |target: &str| request("GET", target, None);
    let usual = [("content-length", "500"), ("cache-control", "max-age=3600"), ("etag", "\""), ("date", " GMT")];
    check(&origin, get("/f500.html"), b"", 200, &usual, &body("/f500.html", 500));
    check(&origin, request("HEAD", "/f500.html", None), b"", 200, &usual, b"");
    check(&origin, request("POST", "/f500.html", None), &[7; 300_000], 200, &usual, &body("/f500.html", 500));
    check(&origin, get("/x?r=404&s=3"), b"", 404, &[], &body("/x", 3));
    check(&origin, get("/x?r=204&s=3"), b"", 204, &[], b"");
    check(&origin, get("/x?s=3&vary=a&c=0"), b"", 200, &[("vary", "a"), ("cache-control", "no-store")], &body("/x", 3));
    let range = request("GET", "/f500.html", Some(("range", "bytes=0-9")));
    check(&origin, range, b"", 206, &[("content-range", "bytes 0-9/500")], &body("/f500.html", 10));
    check(&origin, request("GET", "/f500.html", Some(("if-none-match", "*"))), b"", 304, &[("etag", "\"")], b"");
    check(
        &origin,
        get("/f3000000.html"),
        b"",
        200,
        &[("content-length", "3000000")],
        &body("/f3000000.html", 3_000_000),
    );
    let (head, got, _) = ask_alone(&origin, get("/x?s=9&k=1"), b"").unwrap();
    assert!(head.headers().get("content-length").is_none() && got == body("/x", 9), "{head:?}");
    assert!(head.headers().get("transfer-encoding").is_none() && head.headers().get("connection").is_none());
    check(&origin, get("/x?s=oops"), b"", 400, &[], b"`s=oops`: no value for this word; s=20k is one\n");
    check(&origin, get("/lab-requests"), b"", 200, &[], b"11\n");
    assert_eq!(origin.requests(), 11);
    let mut flipped = body("/x", 100);
    flipped[50] ^= 1;
    check(&origin, get("/x?s=100&flip=50&drip=1000"), b"", 200, &[], &flipped);
}

/// A client that does not begin with the preface is answered over HTTP/1.
#[test]
fn both_protocols_are_spoken_at_one_address() {
    let origin = start(None);
    for (sent, rest) in [("G", "ET / HTTP/1.1\r\n"), ("PRI", "VATE / HTTP/1.1\r\n")] {
        let mut client = StdStream::connect(origin.address).unwrap();
        client.write_all(sent.as_bytes()).unwrap();
        std::thread::yield_now();
        client.write_all(format!("{rest}Host: a\r\nConnection: close\r\n\r\n").as_bytes()).unwrap();
        let mut got = Vec::new();
        client.read_to_end(&mut got).unwrap();
        assert!(got.starts_with(b"HTTP/1.1 200 OK\r\n"), "{}", String::from_utf8_lossy(&got));
    }
    check(&origin, request("GET", "/f10.html", None), b"", 200, &[], &body("/f10.html", 10));
}

fn reason(error: &h2::Error) -> Option<Reason> {
    error.is_remote().then(|| error.reason())?
}

#[test]
fn faults_of_streams_are_theirs_alone() {
    let origin = start(None);
    runtime().block_on(async {
        let (mut sender, ended) = connect(&origin).await;
        let get = |target: &str| request("GET", target, None);
        let refused = ask(&mut sender, get("/x?refuse=1"), b"").await.unwrap_err();
        assert_eq!((refused.is_reset(), reason(&refused)), (true, Some(Reason::REFUSED_STREAM)));
        let reset = ask(&mut sender, get("/x?rst=head"), b"").await.unwrap_err();
        assert_eq!((reset.is_reset(), reason(&reset)), (true, Some(Reason::INTERNAL_ERROR)));
        for (path, size, at) in [("/x", 1_000, 100), ("/f9000000.html", 9_000_000, 5_000_000)] {
            let (head, got, broken) = ask(&mut sender, get(&format!("{path}?s={size}&rst={at}")), b"").await.unwrap();
            let announced = head.headers()["content-length"].to_str().unwrap().to_owned();
            assert_eq!((&*announced, got), (&*size.to_string(), body(path, at)), "{path}");
            assert_eq!(reason(&broken.unwrap_err()), Some(Reason::INTERNAL_ERROR), "{path}");
        }
        for target in ["/x?s=1000&stop=100", "/x?stop=head"] {
            let silent = timeout(Duration::from_millis(100), ask(&mut sender, get(target), b""));
            assert!(silent.await.is_err(), "{target} was answered");
        }
        let (head, got, _) = ask(&mut sender, get("/f10.html"), b"").await.unwrap();
        assert_eq!((head.status().as_u16(), got), (200, body("/f10.html", 10)), "the connection goes on");
        assert!(!ended.is_finished());
    });
    assert_eq!(origin.requests(), 7);
}

#[test]
fn a_body_that_is_not_read_starves() {
    let origin = start(None);
    let bodiless = ask_alone(&origin, request("POST", "/x?starve=1", None), b"").unwrap();
    assert_eq!(bodiless.0.status(), 400, "there is nothing that it would not read");
    runtime().block_on(async {
        let (mut sender, _) = connect(&origin).await;
        let (response, mut stream) = sender.send_request(request("POST", "/x?starve=1", None), false).unwrap();
        stream.send_data(Bytes::from(vec![0; 65_535]), false).unwrap();
        stream.reserve_capacity(1);
        let more = std::future::poll_fn(|cx| stream.poll_capacity(cx));
        assert!(
            timeout(Duration::from_millis(200), more).await.is_err(),
            "there is a window of 65,535 bytes and no more"
        );
        stream.send_reset(Reason::CANCEL);
        assert!(response.await.is_err());
    });
    // The same body is taken where nothing is wrong.
    check(&origin, request("POST", "/f10.html", None), &[0; 200_000], 200, &[], &body("/f10.html", 10));
}

#[test]
fn a_goaway_says_what_was_done() {
    let origin = start(None);
    runtime().block_on(async {
        let get = |target: &str| request("GET", target, None);
        // What was under way before it is answered; the stream itself, and what comes after it, is left undone.
        let (mut sender, ended) = connect(&origin).await;
        let mut slow = sender.clone();
        let slow = spawn_local(async move { ask(&mut slow, request("GET", "/f10.html?t=200", None), b"").await });
        tokio::time::sleep(Duration::from_millis(20)).await;
        let undone = ask(&mut sender, get("/x?goaway=before"), b"").await.unwrap_err();
        assert!(undone.is_go_away() && reason(&undone) == Some(Reason::NO_ERROR), "{undone:?}");
        let (head, got, _) = slow.await.unwrap().unwrap();
        assert_eq!((head.status().as_u16(), got), (200, body("/f10.html", 10)));
        assert!(ended.await.unwrap().is_ok());

        for target in ["/f10.html?goaway=after", "/f10.html?C=1"] {
            let (mut sender, ended) = connect(&origin).await;
            let (head, got, end) = ask(&mut sender, get(target), b"").await.unwrap();
            assert_eq!((head.status().as_u16(), got), (200, body("/f10.html", 10)), "{target}");
            assert!(end.is_ok());
            timeout(PATIENCE, ended).await.expect("it ends by itself").unwrap().unwrap();
        }

        let (mut sender, ended) = connect(&origin).await;
        assert!(ask(&mut sender, get("/x?goaway=error"), b"").await.is_err());
        let angry = ended.await.unwrap().unwrap_err();
        assert!(angry.is_go_away() && reason(&angry) == Some(Reason::ENHANCE_YOUR_CALM), "{angry:?}");

        // With no word of HTTP/2.
        let (mut sender, _) = connect(&origin).await;
        let (_, got, cut) = ask(&mut sender, get("/x?s=1000&cut=100"), b"").await.unwrap();
        let cut = cut.unwrap_err();
        assert!(got == body("/x", 100) && !cut.is_go_away() && cut.is_io(), "{cut:?}");
    });
}

#[test]
fn a_fault_that_the_protocol_has_no_way_to_do_is_refused() {
    let origin = start(None);
    let (head, sentence, _) = ask_alone(&origin, request("GET", "/x?garble=line", None), b"").unwrap();
    assert_eq!(
        (head.status().as_u16(), &*sentence),
        (400, &b"`garble` and `extra` are faults of HTTP/1, and this is HTTP/2\n"[..])
    );
    let mut client = StdStream::connect(origin.address).unwrap();
    client.write_all(b"GET /x?goaway=after HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
    let mut got = String::new();
    client.read_to_string(&mut got).unwrap();
    assert!(got.starts_with("HTTP/1.1 400 ") && got.ends_with("are faults of HTTP/2, and this is HTTP/1\n"), "{got}");
}

#[test]
fn settings_are_as_they_were_set() {
    let http2 = Some(OriginHttp2Settings { streams_max: 3, window_bytes: 1_000 });
    let settings = OriginSettings { http2, ..OriginSettings::default() };
    let origin = FakeOrigin::start("127.0.0.1:0".parse().unwrap(), settings).unwrap();
    runtime().block_on(async {
        let (mut sender, _) = connect(&origin).await;
        ask(&mut sender, request("GET", "/", None), b"").await.unwrap().2.unwrap();
        assert_eq!(sender.current_max_send_streams(), 3);
        let (_, mut stream) = sender.send_request(request("POST", "/x?starve=1", None), false).unwrap();
        stream.reserve_capacity(50_000);
        let room = std::future::poll_fn(|cx| stream.poll_capacity(cx)).await.unwrap().unwrap();
        assert_eq!(room, 1_000);
    });
}

fn trusting(origin: &FakeOrigin, protocol: &str) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(origin.authority().unwrap().as_bytes()).unwrap()).unwrap();
    let mut config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
    Arc::new(config)
}

/// What comes back to a request over TLS and HTTP/1.1, or why nothing does.
fn over_tls(origin: &FakeOrigin, host: &str, target: &str) -> Result<String, String> {
    let name = ServerName::try_from(host.to_owned()).unwrap();
    let session = ClientConnection::new(trusting(origin, "http/1.1"), name).unwrap();
    let socket = StdStream::connect(origin.address).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let mut stream = StreamOwned::new(session, socket);
    let request = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).map_err(|error| error.to_string())?;
    let mut got = Vec::new();
    let ended = stream.read_to_end(&mut got);
    let got = String::from_utf8_lossy(&got).into_owned();
    match ended {
        Ok(_) => Ok(got),
        Err(error) => Err(format!("{error}, after {got}")),
    }
}

#[test]
fn a_host_that_asks_for_nothing_wrong_is_answered_over_tls() {
    let settings = OriginTlsSettings { names: vec!["site.example".to_owned()], fault: None };
    let origin = start(Some(settings));
    for host in ["localhost", "127.0.0.1", "site.example"] {
        let got = over_tls(&origin, host, "/f100.html").unwrap();
        let expect = String::from_utf8(body("/f100.html", 100)).unwrap();
        assert!(got.starts_with("HTTP/1.1 200 OK\r\n") && got.ends_with(&expect), "{host}: {got}");
    }
    let got = runtime().block_on(async {
        let stream = TcpStream::connect(origin.address).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let stream = TlsConnector::from(trusting(&origin, "h2")).connect(name, stream).await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
        let (mut sender, connection) = h2::client::handshake(stream).await.unwrap();
        spawn_local(connection);
        ask(&mut sender, request("GET", "/f300000.html", None), b"").await.unwrap()
    });
    assert_eq!(got.1, body("/f300000.html", 300_000));
    // The end of a body that is cut is not said by TLS, and that of a good one is.
    let cut = over_tls(&origin, "localhost", "/x?s=1000&cut=100").unwrap_err();
    assert!(cut.contains("close_notify"), "{cut}");
}

#[test]
fn each_host_gets_what_is_wrong_with_it() {
    let origin = start(Some(OriginTlsSettings::default()));
    for (host, part) in [
        ("expired.localhost", "invalid peer certificate: certificate expired"),
        ("other-name.localhost", "invalid peer certificate: certificate not valid for name"),
        ("self-signed.localhost", "invalid peer certificate: "),
        ("stall.localhost", "Resource temporarily unavailable"),
        ("hang-up.localhost", "unexpected end of file"),
        ("alert.localhost", "received fatal alert"),
        ("rubbish.localhost", "corrupt"),
    ] {
        let error = over_tls(&origin, host, "/").unwrap_err();
        assert!(error.contains(part), "{host}: {error}");
    }
    assert!(over_tls(&origin, "localhost", "/").is_ok());
    assert_eq!(origin.requests(), 1);
    let all = start(Some(OriginTlsSettings { fault: Some(TlsFault::Expired), ..OriginTlsSettings::default() }));
    assert!(over_tls(&all, "127.0.0.1", "/").unwrap_err().contains("certificate expired"));
}
