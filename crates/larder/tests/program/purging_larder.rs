//! larder before an origin whose pages say which version they are of, with an admin address that takes orders; and, if a test wants it, with a
//! disk over which it can be started again.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use serde_json::Value;

use crate::answering_origin::{self, target_of};
use crate::peer_process::{Running, wait_for};

const PATIENCE: Duration = Duration::from_secs(20);
const TOKEN: &str = "0123456789abcdef";

/// Whose pages have the version of the moment as their body.
pub struct VersionedOrigin {
    pub address: SocketAddr,
    pub version: Arc<AtomicU64>,
    pub asked: Arc<AtomicU64>,
    /// It answers with 503.
    pub is_down: Arc<AtomicBool>,
}

impl VersionedOrigin {
    pub fn start() -> VersionedOrigin {
        let (version, asked, is_down) =
            (Arc::new(AtomicU64::new(1)), Arc::<AtomicU64>::default(), Arc::<AtomicBool>::default());
        let (of_now, count, down) = (version.clone(), asked.clone(), is_down.clone());
        let address = answering_origin::start_with(move |stream, head| {
            count.fetch_add(1, Ordering::SeqCst);
            let text = answer_to(head, of_now.load(Ordering::SeqCst), down.load(Ordering::SeqCst));
            stream.write_all(text.as_bytes()).is_ok() && !target_of(head).starts_with("/cut")
        });
        VersionedOrigin { address, version, asked, is_down }
    }

    pub fn renew(&self) -> u64 {
        self.version.fetch_add(1, Ordering::SeqCst) + 1
    }

    pub fn asked(&self) -> u64 {
        self.asked.load(Ordering::SeqCst)
    }
}

/// What a path is answered with besides its version.
fn fields_of(path: &str) -> &'static str {
    match path.split('?').next().unwrap_or_default() {
        "/tagged/1" => "Surrogate-Key: product-1 Menu\r\n",
        "/tagged/2" => "Cache-Tag: Product-2,Menu\r\n",
        "/grouped/others" => "Cache-Groups: \"others\"\r\n",
        "/grouped" => "Cache-Groups: \"news\"\r\n",
        "/regroup" => "Cache-Group-Invalidation: \"news\"\r\n",
        "/create" => "Location: /created\r\nContent-Location: /created\r\n",
        "/picture" => "Content-Type: image/png\r\n",
        "/agents" => "Vary: X-Agent\r\n",
        "/hammered" => "Surrogate-Key: hammer\r\nCache-Groups: \"hammer\"\r\n",
        _ => "",
    }
}

fn answer_to(head: &str, version: u64, is_down: bool) -> String {
    let path = target_of(head);
    let body = sitemap_at(path, host_of(head)).unwrap_or_else(|| version.to_string());
    let status = match path {
        _ if is_down => "503 Down",
        "/forbidden" => "403 Forbidden",
        "/gone" => "404 Not Found",
        _ => "200 OK",
    };
    let lifetimes = match path {
        path if path.starts_with("/soft") => "max-age=600, stale-while-revalidate=600, stale-if-error=600",
        path if path.starts_with("/covered") => "max-age=600, stale-if-error=600",
        _ => "max-age=600",
    };
    let (fields, bytes) = (fields_of(path), body.len());
    let framing = match path {
        "/cut" => "Content-Length: 1000\r\nConnection: close\r\n".to_owned(),
        "/cut/chunked" => "Transfer-Encoding: chunked\r\nConnection: close\r\n".to_owned(),
        _ => format!("Content-Length: {bytes}\r\n"),
    };
    let body = if path == "/cut/chunked" { format!("40\r\n{body}") } else { body };
    format!("HTTP/1.1 {status}\r\nCache-Control: {lifetimes}\r\n{fields}{framing}\r\n{body}")
}

/// A site's lists of its pages, and lists of such lists.
fn sitemap_at(path: &str, host: &str) -> Option<String> {
    let urls = |paths: Vec<String>| {
        let locations: String = paths.iter().map(|path| format!("<url><loc>http://{host}{path}</loc></url>")).collect();
        format!("<urlset>{locations}</urlset>")
    };
    let index = |paths: Vec<String>| urls(paths).replace("urlset", "sitemapindex").replace("url>", "sitemap>");
    let numbered = |path: &str, count: usize| (1..=count).map(|number| format!("{path}{number}")).collect::<Vec<_>>();
    Some(match path {
        "/sitemap.xml" => urls(numbered("/warm/", 2)),
        "/sitemap-index.xml" => index(vec!["/sitemap-index.xml".into(), "/sitemap.xml".into(), "/sitemap.xml".into()]),
        "/sitemap-many.xml" => index(numbered("/sitemap-of-many/", 60)),
        "/sitemap-slow.xml" => index(numbered("/sitemap-slow/", 40)),
        path if path.starts_with("/sitemap-slow/") => {
            std::thread::sleep(Duration::from_millis(100));
            urls(numbered("/warm/", 2))
        }
        path if path.starts_with("/sitemap-of-many/") => urls(numbered("/warm/", 1)),
        "/sitemap-large.xml" => urls(vec!["/large".into()]) + &" ".repeat(17 << 20),
        _ => return None,
    })
}

fn host_of(head: &str) -> &str {
    head.lines().find_map(|line| line.strip_prefix("Host: ")).unwrap_or_default()
}

pub struct PurgingLarder {
    pub origin: Arc<VersionedOrigin>,
    pub folder: PathBuf,
    has_disk: bool,
    vcl: Option<&'static str>,
    /// What else its config says.
    sections: String,
    pub address: SocketAddr,
    pub admin: SocketAddr,
    child: Option<Running>,
}

impl PurgingLarder {
    pub fn start(name: &str, has_disk: bool) -> PurgingLarder {
        PurgingLarder::start_with(name, has_disk, None, String::new(), Arc::new(VersionedOrigin::start()))
    }

    /// Under a program, whose backend is the origin.
    pub fn under(name: &str, vcl: &'static str) -> PurgingLarder {
        PurgingLarder::start_with(name, false, Some(vcl), String::new(), Arc::new(VersionedOrigin::start()))
    }

    /// A node of a fleet before an origin, under a program if there is one.
    pub fn of_fleet(
        origin: &Arc<VersionedOrigin>,
        name: &str,
        (has_disk, vcl): (bool, Option<&'static str>),
        sections: String,
    ) -> PurgingLarder {
        PurgingLarder::start_with(name, has_disk, vcl, sections, Arc::clone(origin))
    }

    fn start_with(
        name: &str,
        has_disk: bool,
        vcl: Option<&'static str>,
        sections: String,
        origin: Arc<VersionedOrigin>,
    ) -> PurgingLarder {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("purging").join(name);
        let _ = std::fs::remove_dir_all(&folder); // it may not be there
        std::fs::create_dir_all(&folder).expect("the folder can be made");
        std::fs::write(folder.join("token"), TOKEN).unwrap();
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut larder =
            PurgingLarder { origin, folder, has_disk, vcl, sections, address: nowhere, admin: nowhere, child: None };
        larder.begin();
        larder
    }

    /// A new process, at the same address from the second on.
    pub fn begin(&mut self) {
        let disk = match self.has_disk {
            true => format!("[[disk]]\npath = \"{}\"\nsize = \"32MiB\"\n", self.folder.join("disk").display()),
            false => String::new(),
        };
        let origin = match self.vcl {
            None => format!("[origin.app]\nurls = [\"http://{}\"]\n[[route]]\norigin = \"app\"\n", self.origin.address),
            Some(_) => String::new(),
        };
        let text = format!(
            "[[listen]]\naddress = \"{}\"\n[admin]\naddress = \"127.0.0.1:0\"\ntoken = \"{TOKEN}\"\n\
             {origin}{disk}{}",
            self.address, self.sections
        );
        if let Some(vcl) = self.vcl {
            let SocketAddr::V4(origin) = self.origin.address else { panic!("it is at 127.0.0.1") };
            let backend = format!("backend app {{ .host = \"{}\"; .port = \"{}\"; }}", origin.ip(), origin.port());
            std::fs::write(self.folder.join("site.vcl"), format!("vcl 4.1;\n{backend}\n{vcl}\n")).unwrap();
        }
        let (config, ports) = (self.folder.join("larder.toml"), self.folder.join("ports"));
        std::fs::write(&config, text).unwrap();
        let _ = std::fs::remove_file(&ports); // there is none before the first start
        let errors = std::fs::OpenOptions::new().create(true).append(true).open(self.folder.join("stderr")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
        if self.vcl.is_some() {
            command.args(["serve", "--no-supervisor", "--vcl"]).arg(self.folder.join("site.vcl"));
        } else {
            command.args(["serve", "--no-supervisor"]);
        }
        command.args(["--workers", "2", "--config"]).arg(&config).arg("--ports-file").arg(&ports);
        self.child = Some(Running(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors).spawn().unwrap()));
        let mut listed = String::new();
        wait_for("larder names its ports", || {
            listed = std::fs::read_to_string(&ports).unwrap_or_default();
            listed.lines().any(|line| line.starts_with("admin "))
        });
        let address = |name: &str| {
            listed.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok()).expect("it is listed")
        };
        (self.address, self.admin) = (address("listen "), address("admin "));
    }

    /// What it reads at the next reload.
    pub fn rewrite_config(&self, change: impl FnOnce(String) -> String) {
        let file = self.folder.join("larder.toml");
        let text = std::fs::read_to_string(&file).expect("it was started with it");
        std::fs::write(&file, change(text)).expect("the folder can be written");
    }

    /// As a crash ends it.
    pub fn crash(&mut self) {
        drop(self.child.take());
    }

    pub fn signal(&self, name: &str) {
        let child = self.child.as_ref().expect("it runs");
        let sent = Command::new("kill").args([name, &child.0.id().to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()));
    }

    /// As an operator ends it.
    pub fn end(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        let sent = Command::new("kill").args(["-TERM", &child.0.id().to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()));
        child.0.wait().expect("it ends");
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Status and body.
    pub fn ask(&self, path: &str, lines: &[&str]) -> (u16, String) {
        let lines: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
        let address = self.address;
        let head = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n{lines}Connection: close\r\n\r\n");
        parted(&exchange(address, &head))
    }

    /// The version that is served.
    pub fn version_of(&self, path: &str) -> u64 {
        let (status, body) = self.ask(path, &[]);
        assert_eq!(status, 200, "{path}");
        body.parse().unwrap_or_else(|_| panic!("{path}: {body}"))
    }

    pub fn is_stored(&self, path: &str) -> bool {
        self.ask(path, &["Cache-Control: only-if-cached"]).0 == 200
    }

    /// An order at the admin address.
    pub fn order(&self, line: &str, body: &str) -> (u16, Value) {
        let fields = format!("Authorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n");
        let length = body.len();
        let head = format!("{line} HTTP/1.1\r\nHost: localhost\r\n{fields}Content-Length: {length}\r\n\r\n{body}");
        let (status, body) = parted(&exchange(self.admin, &head));
        (status, serde_json::from_str(&body).unwrap_or(Value::String(body)))
    }

    /// A purge that is carried out.
    #[track_caller]
    pub fn purge(&self, order: &Value) -> Value {
        let (status, answer) = self.order("POST /purge", &order.to_string());
        assert_eq!(status, 200, "{order}: {answer}");
        answer
    }

    pub fn command(&self, words: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
        command.args(words).args(["--admin", &self.admin.to_string(), "--token-file"]).arg(self.folder.join("token"));
        command.stdin(Stdio::null()).output().expect("larder can be started")
    }

    /// What it prints when all goes well.
    #[track_caller]
    pub fn said(&self, words: &[&str]) -> String {
        let output = self.command(words);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words:?}: {errors}{}", String::from_utf8_lossy(&output.stdout));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

pub fn exchange(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

fn parted(answer: &str) -> (u16, String) {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {answer:?}"));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    (status.unwrap_or_else(|| panic!("no status: {head}")), body.to_owned())
}
