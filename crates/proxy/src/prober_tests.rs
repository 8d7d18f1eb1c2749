//! Probes against real sockets on the loopback. Nothing here waits for time to pass but where a timeout is the behaviour.

use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::limits::Limits;
use crate::origin::{AddressState, Origins};
use crate::probe_window::ProbeWindow;
use crate::settings::{OriginUrl, ResolverSettings};

/// The first backend of this text, probed as it says.
fn probing(attributes: &str, listener: &TcpListener) -> Probing {
    let port = listener.local_addr().unwrap().port();
    let text = format!("vcl 4.1; backend b {{ .host = \"127.0.0.1\"; .port = \"{port}\"; {attributes} }}");
    let checked = vcl::check(vcl::Included { name: String::new(), bytes: text.into_bytes() }, &vcl::NoIncludes);
    let program = checked.program.unwrap_or_else(|| panic!("{:?}", checked.diagnostics));
    let backends = crate::vcl_backends::origins_of(&program, &Default::default(), &vcl::NoWorld).unwrap();
    let base = Origins::without_any(&Limits::default(), &ResolverSettings::default());
    let origins = base.of_backends(&backends, &[]);
    let health = Arc::new(BackendHealth::probed(ProbeWindow::new(1, 1, 0), 0));
    Probing::new(origins.get(0), &health, &program.probes[0])
}

/// One probe of its only address: good or not, and how it ended.
async fn outcome(probing: &Probing) -> (bool, String) {
    let addresses = probing.origin.look_up_for_probe(0, 0, probing.timeout).await.unwrap();
    probing.judge(probing.probe(&addresses[0]).await)
}

/// Runs one probe against a server that takes the request and answers so, and closes or not. What the server got, and
/// how the probe ended.
async fn check(attributes: &str, answer: &str, closes: bool, expect: (&str, bool, &str)) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let probing = probing(attributes, &listener);
    let serve = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = vec![0; expect.0.len()];
        stream.read_exact(&mut request).await.unwrap();
        stream.write_all(answer.as_bytes()).await.unwrap();
        let kept: Option<TcpStream> = (!closes).then_some(stream);
        (String::from_utf8(request).unwrap(), kept)
    };
    let ((request, _kept), (good, last)) = tokio::join!(serve, outcome(&probing));
    assert_eq!((request.as_str(), good, last.as_str()), expect, "{attributes} {answer:?}");
}

fn run(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test);
}

const ASKS: &str = "GET /x HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n";

#[test]
fn a_probe_asks_and_looks_at_the_status() {
    run(async {
        let url = ".probe = { .url = \"/x\"; .timeout = 60s; }";
        check(url, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", true, (ASKS, true, "200")).await;
        check(url, "HTTP/1.1 200\r\n\r\n", true, (ASKS, true, "200")).await;
        check(url, "HTTP/1.1 503 No\r\n\r\n", true, (ASKS, false, "503 instead of 200")).await;
        check(url, "HTTP/1.1 2000 No\r\n\r\n", true, (ASKS, false, "the answer has no status line")).await;
        check(url, "ok\r\n", true, (ASKS, false, "the answer has no status line")).await;
        check(url, "", true, (ASKS, false, "the connection ended without an answer")).await;
        let other = ".host_header = \"h\"; .probe = { .url = \"/\"; .expected_response = 404; .timeout = 60s; }";
        let asks = "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
        check(other, "HTTP/1.0 404 Not here\r\n\r\n", true, (asks, true, "404")).await;
        let lines = ".proxy_header = 2; .probe = { .request = \"OPTIONS * HTTP/1.0\" \"A: b\"; .timeout = 60s; }";
        let asks = "\r\n\r\n\0\r\nQUIT\n\x20\0\0\0OPTIONS * HTTP/1.0\r\nA: b\r\n\r\n";
        check(lines, "HTTP/1.0 200 OK\r\n\r\n", true, (asks, true, "200")).await;
    });
}

#[test]
fn whoever_is_expected_to_close_and_does_not_is_not_well() {
    run(async {
        let answer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
        let closing = ".probe = { .url = \"/x\"; .timeout = 20ms; }";
        let why = "no end of the answer within 20 ms (.timeout, .expect_close)";
        check(closing, answer, false, (ASKS, false, why)).await;
        let open = ".probe = { .url = \"/x\"; .expect_close = false; .timeout = 60s; }";
        check(open, answer, false, (ASKS, true, "200")).await;
        let slow = ".probe = { .url = \"/x\"; .expect_close = false; .timeout = 20ms; }";
        check(slow, "HTTP/1.1 200 OK\r\n", false, (ASKS, false, "no answer within 20 ms (.timeout)")).await;
    });
}

#[test]
fn nobody_there_is_not_well() {
    run(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let probing = probing(".probe = { .url = \"/x\"; .timeout = 60s; }", &listener);
        drop(listener);
        let (good, last) = outcome(&probing).await;
        assert!(!good && last.contains("connect failed"), "{last}");
    });
}

#[test]
fn probes_run_from_the_beginning_and_stop_with_their_program() {
    run(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let probing = probing(".probe = { .url = \"/x\"; .interval = 1ms; .timeout = 60s; }", &listener);
        let ProbeScope::Whole(health, _) = &probing.probed else { panic!("a backend is probed as a whole") };
        let health = Arc::clone(health);
        let prober = Prober::default();
        let probes = prober.begin(vec![probing]).unwrap();
        let answer = async || {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.read_exact(&mut [0; ASKS.len()]).await.unwrap();
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
        };
        // The second is only asked when the first was noted.
        answer().await;
        answer().await;
        assert!(health.read().healthy);
        drop(probes);
        // What was under way may still come; once the health is only ours, nobody probes.
        while Arc::strong_count(&health) > 1 {
            tokio::task::yield_now().await;
        }
    });
}

/// Two addresses, of which one answers what is expected.
#[test]
fn each_address_of_an_origin_is_probed_for_itself() {
    run(async {
        let (well, sick) =
            (TcpListener::bind("127.0.0.1:0").await.unwrap(), TcpListener::bind("127.0.0.1:0").await.unwrap());
        let url = |listener: &TcpListener| OriginUrl::Tcp {
            host: "127.0.0.1".to_owned(),
            port: listener.local_addr().unwrap().port(),
        };
        let probe = ProbeSettings {
            path: "/health?x".to_owned(),
            host: "a.test".to_owned(),
            interval: Duration::from_secs(60),
            timeout: Duration::from_secs(60),
            window: 3,
            threshold: 2,
            initial: 1,
            expected: vec![200, 204],
        };
        let mut settings = crate::origin::tests::origin("shop", vec![url(&well), url(&sick)]);
        settings.probe = Some(probe);
        let origins = Origins::new(&crate::origin::tests::settings(vec![settings]), None);
        let probing = Probing::of_addresses(origins.get(0)).unwrap();
        let states = || origins.status(0)[0].addresses.iter().map(|address| address.state).collect::<Vec<_>>();
        assert_eq!(states(), [AddressState::Up; 2], "nothing is known yet");
        let answer = async |listener: &TcpListener, answer: &[u8]| {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = vec![0; b"GET /health?x HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n".len()];
            stream.read_exact(&mut request).await.unwrap();
            assert!(request.starts_with(b"GET /health?x HTTP/1.1\r\nHost: a.test\r\n"));
            stream.write_all(answer).await.unwrap();
        };
        let at_once = Semaphore::new(1);
        let (good, bad) = (b"HTTP/1.1 204 No\r\n\r\n", b"HTTP/1.1 500 No\r\n\r\n");
        tokio::join!(probing.round(0, &at_once), answer(&well, good), answer(&sick, bad));
        assert_eq!(states(), [AddressState::Up, AddressState::DownByProbe]);
        let found = origins.status(0)[0].addresses[1].probe.clone().unwrap();
        assert_eq!((found.good, found.window, found.probes_count), (1, 3, 1));
        assert_eq!(found.last, "500 instead of 200 or 204");
    });
}
