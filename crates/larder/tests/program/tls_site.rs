//! larder with TLS, before an origin that echoes; and clients that speak TLS by rustls's own streams, which larder does not use.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::peer_process::{Running, wait_for};
use crate::subject::get;

pub const NAME: &str = "site.test";

static SITES_COUNT: AtomicU32 = AtomicU32::new(0);

/// A running larder, its files, and where it is.
pub struct TlsSite {
    pub directory: PathBuf,
    config: String,
    child: Option<Running>,
    pub tls: SocketAddr,
    pub origin: SocketAddr,
    admin: SocketAddr,
}

impl TlsSite {
    /// With a certificate for [`NAME`] in `site.pem` and `site.key`, lines for `[listen.tls]`, and others for the end of the config.
    pub fn start(of_tls: &str, others: &str) -> TlsSite {
        let number = SITES_COUNT.fetch_add(1, Ordering::Relaxed);
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("tls-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("the target folder can be written");
        write_certificate(&directory, "site", NAME);
        let origin = echo();
        let config = format!(
            "[[listen]]\naddress = \"127.0.0.1:0\"\n[listen.tls]\ncert = \"{0}/site.pem\"\nkey = \"{0}/site.key\"\n{of_tls}\n\
             [origin.echo]\nurls = [\"http://{origin}\"]\n[admin]\naddress = \"127.0.0.1:0\"\n{others}\n",
            directory.display()
        );
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 1));
        let mut site = TlsSite { directory, config, child: None, tls: nowhere, origin, admin: nowhere };
        site.run();
        site
    }

    /// Starts it, or starts it again.
    pub fn run(&mut self) {
        self.child = None;
        let (config, ports) = (self.directory.join("larder.toml"), self.directory.join("ports"));
        std::fs::write(&config, &self.config).expect("the target folder can be written");
        let _ = std::fs::remove_file(&ports);
        let errors = std::fs::File::create(self.directory.join("stderr")).expect("the target folder can be written");
        let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
        command
            .args(["serve", "--no-supervisor"])
            .arg("--config")
            .arg(&config)
            .arg("--ports-file")
            .arg(&ports)
            .args(["--workers", "2"]);
        let child: Child =
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors).spawn().expect("larder can be started");
        self.child = Some(Running(child));
        let address = |text: &str, name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name} ")))?;
            line.trim().parse::<SocketAddr>().ok()
        };
        wait_for("larder names its ports", || {
            let text = std::fs::read_to_string(&ports).unwrap_or_default();
            let (Some(tls), Some(admin)) = (address(&text, "listen"), address(&text, "admin")) else { return false };
            (self.tls, self.admin) = (tls, admin);
            true
        });
    }

    /// Starts again with another config.
    pub fn change(&mut self, change: impl FnOnce(String) -> String) {
        self.config = change(std::mem::take(&mut self.config));
        self.run();
    }

    /// Where the second listener is, if there is one.
    pub fn second(&self) -> SocketAddr {
        let text = std::fs::read_to_string(self.directory.join("ports")).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("listen.1 ")).expect("there is a second listener");
        line.trim().parse().expect("it is an address")
    }

    pub fn signal(&self, name: &str) {
        let id = self.child.as_ref().expect("it runs").0.id().to_string();
        let sent = Command::new("kill").args([&format!("-{name}"), &id]).status().expect("kill can be called");
        assert!(sent.success());
    }

    /// What the kernel says of its process.
    pub fn kernel_says(&self, of: &str) -> String {
        let id = self.child.as_ref().expect("it runs").0.id();
        std::fs::read_to_string(format!("/proc/{id}/{of}")).expect("it runs")
    }

    /// The config from the next start or reload on.
    pub fn rewrite(&mut self, change: impl FnOnce(String) -> String) {
        self.config = change(std::mem::take(&mut self.config));
        std::fs::write(self.directory.join("larder.toml"), &self.config).expect("the target folder can be written");
    }

    /// A line of the log that says so much.
    pub fn wait_for_word(&self, word: &str) {
        let path = self.directory.join("stderr");
        wait_for(word, || std::fs::read_to_string(&path).unwrap_or_default().contains(word));
    }

    pub fn metric(&self, name: &str) -> u64 {
        let text = get(self.admin, "/metrics").expect("the admin answers");
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
        line.unwrap_or_else(|| panic!("no metric {name}")).trim().parse().expect("a metric is a number")
    }

    /// A client that trusts the certificate in this file.
    pub fn trusts(&self, file: &str) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        let certificate = CertificateDer::from_pem_file(self.directory.join(file)).expect("it was written");
        roots.add(certificate).expect("it is a certificate");
        Arc::new(ClientConfig::builder().with_root_certificates(roots).with_no_client_auth())
    }

    pub fn connect(&self, config: &Arc<ClientConfig>) -> std::io::Result<TlsClient> {
        connect(self.tls, config)
    }
}

pub type TlsClient = StreamOwned<ClientConnection, TcpStream>;

/// Connects and shakes hands.
pub fn connect(address: SocketAddr, config: &Arc<ClientConfig>) -> std::io::Result<TlsClient> {
    let stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(20)))?;
    let name = ServerName::try_from(NAME).expect("it is a name");
    let session = ClientConnection::new(Arc::clone(config), name).expect("the settings are good");
    let mut client = StreamOwned::new(session, stream);
    while client.conn.is_handshaking() {
        client.conn.complete_io(&mut client.sock)?;
    }
    Ok(client)
}

/// One answer with a Content-Length: its head and its body.
pub fn answer(client: &mut impl Read) -> std::io::Result<(String, Vec<u8>)> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        client.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).expect("it has a length");
    let mut body = vec![0; length.trim().parse().expect("a length is a number")];
    client.read_exact(&mut body)?;
    Ok((head, body))
}

pub fn ask(client: &mut TlsClient, path: &str) -> std::io::Result<(String, Vec<u8>)> {
    write!(client, "GET {path} HTTP/1.1\r\nHost: {NAME}\r\n\r\n")?;
    answer(client)
}

/// `NAME.pem` and `NAME.key`, the way a renewal writes them: beside, then renamed.
pub fn write_certificate(directory: &Path, name: &str, server: &str) {
    let made = rcgen::generate_simple_self_signed(vec![server.to_owned()]).expect("a certificate can be made");
    for (end, text) in [("key", made.signing_key.serialize_pem()), ("pem", made.cert.pem())] {
        let (fresh, path) = (directory.join("fresh"), directory.join(format!("{name}.{end}")));
        std::fs::write(&fresh, text).expect("the target folder can be written");
        std::fs::rename(&fresh, &path).expect("the target folder can be written");
    }
}

/// What the origin answers to `/bytes/N`, and N bytes of it.
pub fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at % 251) as u8).collect()
}

/// A body in chunks, and what stands behind the last.
fn chunks(reader: &mut impl BufRead) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|&read| read > 0)?;
        let length = usize::from_str_radix(line.trim(), 16).ok()?;
        if length == 0 {
            break;
        }
        let at = body.len();
        body.resize(at + length + 2, 0);
        reader.read_exact(&mut body[at..]).ok()?;
        body.truncate(at + length);
    }
    let mut line = String::new();
    while line != "\r\n" {
        line.clear();
        reader.read_line(&mut line).ok().filter(|&read| read > 0)?;
    }
    Some(body)
}

/// An origin: `/bytes/N` is so much, for a minute; `/fields` and what begins so is what was asked; `/sts` says
/// Strict-Transport-Security; `/cut` ends too early, of no known length; a POST comes back.
pub fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback port is free");
    let address = listener.local_addr().expect("a bound listener has an address");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || while answer_one(&stream).is_some() {});
        }
    });
    address
}

fn answer_one(stream: &TcpStream) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|&read| read > 0)?;
    let target = line.split(' ').nth(1)?.to_owned();
    let (mut length, mut is_chunked, mut fields) = (0, false, String::new());
    loop {
        let mut field = String::new();
        reader.read_line(&mut field).ok().filter(|&read| read > 0)?;
        if field == "\r\n" {
            break;
        }
        if let Some(value) = field.to_ascii_lowercase().strip_prefix("content-length: ") {
            length = value.trim().parse().ok()?;
        }
        is_chunked |= field.eq_ignore_ascii_case("transfer-encoding: chunked\r\n");
        fields.push_str(&field);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    if is_chunked {
        body = chunks(&mut reader)?;
    }
    let mut out = stream;
    if target == "/cut" {
        let chunk = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhalf \r\n";
        out.write_all(chunk.as_bytes()).ok()?;
        // Else all of it comes at once, and larder knows before it has begun to answer.
        std::thread::sleep(Duration::from_millis(300));
        return None;
    }
    if target.starts_with("/fields") {
        body = fields.into_bytes();
    }
    if let Some(length) = target.strip_prefix("/bytes/") {
        body = pattern(length.parse().ok()?);
    }
    let own = if target == "/sts" { "Strict-Transport-Security: max-age=1\r\n" } else { "" };
    let length = body.len();
    write!(out, "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n{own}Content-Length: {length}\r\n\r\n").ok()?;
    out.write_all(&body).ok()
}
