//! Pebble, Let's Encrypt's authority for tests, and the name server that comes with it: real processes that `./setup all` builds.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

use crate::peer_process::{Running, free_address, wait_for, wait_until_it_listens};
use crate::secure_site::TestAuthority;

static STARTED: AtomicU32 = AtomicU32::new(0);

/// An authority that looks for everybody at this machine, at the ports of [`Pebble::plain`] and [`Pebble::secure`].
pub struct Pebble {
    directory: PathBuf,
    address: SocketAddr,
    management: SocketAddr,
    /// Where it asks by HTTP-01 and by TLS-ALPN-01.
    pub plain: SocketAddr,
    pub secure: SocketAddr,
    dns: SocketAddr,
    running: Vec<Running>,
}

/// Where `./setup all` puts what it builds. `None`: it could not, and that was said. Said again here, past the test's own output.
fn tools() -> Option<PathBuf> {
    let tools = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../tools");
    if tools.join("bin/pebble").exists() {
        return Some(tools.join("bin"));
    }
    assert!(tools.join("go-is-missing").exists(), "Pebble is not there: ./setup all builds it");
    use std::io::Write;
    let said = "NOT RUN: a test of ACME needs Pebble, which ./setup could not build for want of Go\n";
    std::io::stderr().write_all(said.as_bytes()).expect("standard error can be written");
    None
}

impl Pebble {
    /// Its certificates are good for so long. `None`: it is not there, and that has been said.
    pub fn start(life_s: u64) -> Option<Pebble> {
        let mut pebble = Pebble::prepare(life_s)?;
        pebble.run(&[]);
        Some(pebble)
    }

    /// Not running yet.
    pub fn prepare(life_s: u64) -> Option<Pebble> {
        tools()?;
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let place = format!("pebble-{}-{number}", std::process::id());
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(place);
        std::fs::create_dir_all(&directory).expect("the target folder can be written");
        let [address, management, plain, secure, dns] = [(); 5].map(|()| free_address());
        let authority = TestAuthority::new();
        let own = authority.certificate("127.0.0.1", 2099);
        let write = |name: &str, text: &str| {
            std::fs::write(directory.join(name), text).expect("the target folder can be written");
            directory.join(name).display().to_string()
        };
        write("ca.pem", &authority.pem);
        let (chain, key) = (write("own.pem", &own.chain), write("own.key", &own.key));
        let config = format!(
            r#"{{"pebble": {{"listenAddress": "{address}", "managementListenAddress": "{management}",
                "certificate": "{chain}", "privateKey": "{key}", "httpPort": {}, "tlsPort": {},
                "retryAfter": {{"authz": 1, "order": 1}}, "keyAlgorithm": "ecdsa", "domainBlocklist": ["blocked.test"],
                "profiles": {{"default": {{"description": "of a test", "validityPeriod": {life_s}}}}}}}}}"#,
            plain.port(),
            secure.port()
        );
        write("pebble.json", &config);
        Some(Pebble { directory, address, management, plain, secure, dns, running: Vec::new() })
    }

    /// Starts it; what it knew before it was stopped is gone.
    pub fn run(&mut self, environment: &[(&str, &str)]) {
        // The one before has the addresses until it has ended.
        self.stop();
        let tools = tools().expect("it was there");
        let log = |name: &str| {
            let file = std::fs::File::create(self.directory.join(name)).expect("the target folder can be written");
            Stdio::from(file)
        };
        let mut names = Command::new(tools.join("pebble-challtestsrv"));
        names.args(["-http01", "", "-https01", "", "-tlsalpn01", "", "-doh", "", "-defaultIPv6", ""]);
        names.args(["-dnsserver", &self.dns.to_string(), "-management", &free_address().to_string()]);
        let names = names.stdout(log("names.log")).stderr(log("names.err")).stdin(Stdio::null()).spawn();
        let mut pebble = Command::new(tools.join("pebble"));
        pebble.arg("-config").arg(self.directory.join("pebble.json")).args(["-dnsserver", &self.dns.to_string()]);
        pebble.env("PEBBLE_VA_NOSLEEP", "1").env("PEBBLE_WFE_NONCEREJECT", "0").envs(environment.iter().copied());
        let pebble = pebble.stdout(log("pebble.log")).stderr(log("pebble.err")).stdin(Stdio::null()).spawn();
        self.running = [names, pebble].map(|child| Running(child.expect("it can be started"))).into();
        for address in [self.address, self.management] {
            wait_until_it_listens(address);
        }
        // It begins to listen over TCP and over UDP at two times, and is asked over UDP.
        wait_for("names are looked up", || answers_names(self.dns));
    }

    pub fn stop(&mut self) {
        self.running.clear();
    }

    pub fn url(&self) -> String {
        format!("https://{}/dir", self.address)
    }

    /// Who has signed its own certificate.
    pub fn ca(&self) -> String {
        self.directory.join("ca.pem").display().to_string()
    }

    /// curl's answer from its management address.
    fn manage(&self, path: &str, words: &[&str]) -> String {
        let mut curl = Command::new("curl");
        curl.args(["-sSf", "--max-time", "20", "--cacert", &self.ca()]).args(words);
        let output = curl.arg(format!("https://{}{path}", self.management)).output().expect("curl is installed");
        assert!(output.status.success(), "{path}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("it is text")
    }

    /// A client that believes whom this authority has signed since it was started.
    pub fn believer(&self) -> Arc<ClientConfig> {
        let root = self.manage("/roots/0", &[]);
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(root.as_bytes()).expect("it is a certificate")).expect("it is one");
        Arc::new(ClientConfig::builder().with_root_certificates(roots).with_no_client_auth())
    }

    /// From now on it wants this certificate renewed at once, and explains why.
    pub fn wants_renewed(&self, chain: &str) {
        let certificate = &chain[..chain.find("-----END CERTIFICATE-----\n").expect("it is a chain") + 26];
        let window = r#"{"suggestedWindow": {"start": "2020-01-01T00:00:00Z", "end": "2020-01-02T00:00:00Z"},
            "explanationURL": "https://ca.test/why"}"#;
        let body = serde_json::json!({ "Certificate": certificate, "ARIResponse": window }).to_string();
        self.manage("/set-renewal-info/", &["--data-binary", &body]);
    }
}

/// Is a question answered over UDP (RFC 1035 §4.1): the address of `a.test`?
fn answers_names(server: SocketAddr) -> bool {
    const QUESTION: &[u8] = b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01a\x04test\x00\x00\x01\x00\x01";
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
    socket.set_read_timeout(Some(Duration::from_millis(200))).expect("it has a timeout");
    let mut answer = [0; 512];
    let asked = socket.connect(server).and_then(|()| socket.send(QUESTION));
    asked.and_then(|_| socket.recv(&mut answer)).is_ok_and(|bytes| bytes > 12 && answer.starts_with(b"\x12\x34"))
}
