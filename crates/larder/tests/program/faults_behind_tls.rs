//! What `larder lab origin` does wrong over TLS and HTTP/2: larder in front of it over `https://`, and curl, which has code of
//! its own for both, where larder does not speak the protocol to origins.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

use crate::bench_command::bench;
use crate::origin_process::OriginProcess;
use crate::peer_process::{Running, wait_for};
use crate::subject::get;

static COUNT: AtomicU32 = AtomicU32::new(0);

/// An origin over TLS, and who signs its certificates.
struct TlsOrigin {
    process: OriginProcess,
    authority: AuthorityFile,
}

struct AuthorityFile(PathBuf);

impl TlsOrigin {
    fn start(flags: &str) -> TlsOrigin {
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("authority-{}-{number}.pem", std::process::id());
        let authority = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let process = OriginProcess::start(&format!("--tls --authority {} {flags}", authority.display()));
        TlsOrigin { process, authority: AuthorityFile(authority) }
    }

    /// What curl says of one URL: its exit code, and status, protocol, and bytes of the body.
    fn curl(&self, host: &str, path: &str, more: &[&str]) -> (i32, String) {
        let mut command = Command::new("curl");
        command.args(["--silent", "--max-time", "2", "--output", "/dev/null", "--cacert"]).arg(&self.authority.0);
        command.args(["--write-out", "%{http_code} HTTP/%{http_version} %{size_download}"]).args(more);
        let url = format!("https://{host}:{}{path}", self.process.address.port());
        let output = command.arg(url).stdin(Stdio::null()).output().expect("curl is installed");
        (output.status.code().expect("it ends by itself"), String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

impl Drop for AuthorityFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

struct Larder {
    address: SocketAddr,
    place: PathBuf,
    _child: Running,
}

/// larder in front of a host of it. `limits`: lines of that section.
fn larder(origin: &TlsOrigin, host: &str, limits: &str) -> Larder {
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("behind-tls-{}-{number}", std::process::id()));
    std::fs::create_dir_all(&place).expect("the target folder can be written");
    let (config, ports) = (place.join("larder.toml"), place.join("ports"));
    let (port, ca) = (origin.process.address.port(), origin.authority.0.display());
    let text = format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[origin.site]\nurls = [\"https://{host}:{port}\"]\ntls = {{ ca = \"{ca}\" }}\n\
         [limits]\n{limits}\n[admin]\naddress = \"off\"\n[resolver]\nhosts = {{ \"{host}\" = \"127.0.0.1\" }}\n"
    );
    std::fs::write(&config, text).expect("the target folder can be written");
    let errors = std::fs::File::create(place.join("stderr")).expect("the target folder can be written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
    command
        .args(["serve", "--no-supervisor", "--workers", "1", "--config"])
        .arg(&config)
        .arg("--ports-file")
        .arg(&ports);
    let child =
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors).spawn().expect("larder can be started");
    let child = Running(child);
    let mut address = None;
    wait_for("larder names its port", || {
        let text = std::fs::read_to_string(&ports).unwrap_or_default();
        address = text.lines().find_map(|line| line.strip_prefix("listen ")?.trim().parse().ok());
        address.is_some()
    });
    Larder { address: address.expect("it was waited for"), place, _child: child }
}

impl Drop for Larder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.place);
    }
}

#[test]
fn a_handshake_that_goes_wrong_is_named_and_nothing_is_asked() {
    let origin = TlsOrigin::start("");
    for (host, status, says) in [
        ("expired.localhost", 502, "its certificate has expired"),
        ("other-name.localhost", 502, "its certificate is for another name"),
        ("self-signed.localhost", 502, "nobody of those signed its certificate who may"),
        ("stall.localhost", 504, "limits.connect_timeout"),
        ("hang-up.localhost", 502, "it ended the connection in the handshake of TLS"),
        ("alert.localhost", 502, "it ended the handshake of TLS: handshake_failure"),
        ("rubbish.localhost", 502, "it does not speak TLS"),
    ] {
        let limits = if status == 504 { "connect_timeout = \"300ms\"" } else { "" };
        let answer = get(larder(&origin, host, limits).address, "/f10.html").expect("an answer");
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")) && answer.contains(says), "{host}: {answer}");
    }
    let good = larder(&origin, "localhost", "");
    let answer = get(good.address, "/f10.html").expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("Content-Length: 10\r\n"), "{answer}");
    let lines = origin.process.record();
    assert_eq!(lines.len(), 1, "{lines:?}");
}

#[test]
fn a_body_that_breaks_off_under_tls_is_cut_for_the_client_and_never_stored() {
    let origin = TlsOrigin::start("");
    let larder = larder(&origin, "localhost", "");
    for target in ["/f10000.html?cut=1000", "/f10000.html?rst=1000", "/f10000.html?k=1&cut=1000"] {
        for _ in 0..2 {
            let answer = get(larder.address, target);
            let whole = answer.as_ref().is_ok_and(|answer| answer.ends_with("0\r\n\r\n") || answer.len() >= 10_000);
            assert!(!whole, "{target}: {answer:?}");
        }
    }
    let answer = get(larder.address, "/f10000.html").expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.len() > 10_000);
}

#[test]
fn curl_meets_what_goes_wrong_in_a_handshake() {
    let origin = TlsOrigin::start("--h2 --name site.example");
    assert_eq!(origin.curl("localhost", "/f6221.html", &["--http2"]), (0, "200 HTTP/2 6221".to_owned()));
    assert_eq!(origin.curl("127.0.0.1", "/f6221.html", &["--http1.1"]), (0, "200 HTTP/1.1 6221".to_owned()));
    let port = origin.process.address.port();
    let resolved = format!("site.example:{port}:127.0.0.1");
    assert_eq!(origin.curl("site.example", "/f9.html", &["--resolve", &resolved]).1, "200 HTTP/2 9");
    // curl's numbers: 60 is a certificate that is not believed, 28 a timeout, 35 a handshake that fails.
    for (host, code) in [
        ("expired", 60),
        ("other-name", 60),
        ("self-signed", 60),
        ("stall", 28),
        ("hang-up", 35),
        ("alert", 35),
        ("rubbish", 35),
    ] {
        assert_eq!(origin.curl(&format!("{host}.localhost"), "/", &[]).0, code, "{host}");
    }
    // All but the certificate is right.
    for host in ["expired", "other-name", "self-signed"] {
        let got = origin.curl(&format!("{host}.localhost"), "/f9.html", &["--insecure"]);
        assert_eq!(got, (0, "200 HTTP/2 9".to_owned()), "{host}");
    }
    let all = TlsOrigin::start("--tls-fault hang-up");
    assert_eq!(all.curl("127.0.0.1", "/", &[]).0, 35);
}

#[test]
fn curl_meets_what_goes_wrong_over_http_2() {
    let origin = TlsOrigin::start("--h2");
    // More than the window that the origin gives, and no more than an argument may have.
    let body = "x".repeat(100_000);
    // 92: a stream was not closed as it should be; 16: the connection ended with an error; 28: a timeout.
    for (target, more, code, said) in [
        ("/f1000.html?rst=100", &[][..], 92, "200 HTTP/2 100"),
        ("/f1000.html?rst=head", &[], 92, "000 HTTP/2 0"),
        ("/f1000.html?stop=100", &[], 28, "200 HTTP/2 100"),
        ("/f1000.html?goaway=after", &[], 0, "200 HTTP/2 1000"),
        ("/f1000.html?C=1", &[], 0, "200 HTTP/2 1000"),
        ("/f1000.html", &["--data", &body], 0, "200 HTTP/2 1000"),
        ("/f1000.html?starve=1", &["--data", &body], 28, "000 HTTP/2 0"),
        ("/f1000.html?starve=1", &[], 0, "400 HTTP/2 52"),
        ("/f1000.html?extra=1", &[], 0, "400 HTTP/2 62"),
    ] {
        let got = origin.curl("localhost", target, more);
        assert_eq!((got.0, got.1.replace("HTTP/0", "HTTP/2")), (code, said.to_owned()), "{target}");
    }
    let (code, said) = origin.curl("localhost", "/f1000.html?cut=100", &[]);
    assert!(code != 0 && said == "200 HTTP/2 100", "{code} {said}");
    assert_ne!(origin.curl("localhost", "/f1000.html?goaway=error", &[]).0, 0);
    assert_ne!(origin.curl("localhost", "/f1000.html?goaway=before", &[]).0, 0);
    // curl asks again for what was refused.
    let origin = TlsOrigin::start("--h2");
    for _ in 0..3 {
        let got = origin.curl("localhost", "/f1000.html?refuse=1&every=2", &[]);
        assert_eq!(got, (0, "200 HTTP/2 1000".to_owned()));
    }
    let endings: Vec<String> = origin.process.record().into_iter().map(|line| line.ending).collect();
    assert_eq!(endings, ["whole", "undone", "whole", "undone", "whole"]);
}

/// The load's client asks again for what a GOAWAY leaves undone, and for nothing else.
#[test]
fn what_a_goaway_leaves_undone_is_asked_again() {
    for (fault, undone) in [("before", 22), ("after", 0)] {
        let origin = TlsOrigin::start("--h2");
        let (authority, port) = (origin.authority.0.display().to_string(), origin.process.address.port());
        let url = format!("https://localhost:{port}/f1000.html?goaway={fault}&every=10");
        let output = bench(&["--h2", "-n", "200", "-c", "2", "--json", "--cacert", &authority, &url]);
        let json: Value = serde_json::from_slice(&output.stdout).expect("a report");
        assert_eq!((&json["good"], &json["failed"]), (&200.into(), &0.into()), "{fault}: {json:#}");
        let endings: Vec<String> = origin.process.record().into_iter().map(|line| line.ending).collect();
        assert_eq!(endings.iter().filter(|ending| *ending == "whole").count(), 200, "{fault}");
        assert_eq!(endings.iter().filter(|ending| *ending == "undone").count(), undone, "{fault}");
    }
}

#[test]
fn an_origin_of_few_streams_is_asked_with_few() {
    let origin = TlsOrigin::start("--h2 --h2-streams 3");
    let (authority, port) = (origin.authority.0.display().to_string(), origin.process.address.port());
    let url = format!("https://localhost:{port}/f1000.html?t=1");
    let output = bench(&["--h2", "--streams", "20", "-n", "300", "-c", "1", "--json", "--cacert", &authority, &url]);
    let json: Value = serde_json::from_slice(&output.stdout).expect("a report");
    assert_eq!((&json["good"], &json["failed"]), (&300.into(), &0.into()), "{json:#}");
    assert!(json["warnings"].to_string().contains("the server allows 3 streams at once"), "{json:#}");
}
