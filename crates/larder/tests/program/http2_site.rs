//! larder before one origin that may speak HTTP/2, and a client of HTTP/1 that asks it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::peer_process::{Running, wait_for};
use crate::subject::get;

static COUNT: AtomicU32 = AtomicU32::new(0);

/// larder before one origin.
pub struct Site {
    pub address: SocketAddr,
    pub admin: SocketAddr,
    _child: Running,
}

impl Site {
    /// With one worker, so that what shares a connection is known. `lines`: more of `[origin.site]`; `others`: more sections.
    pub fn start(url: &str, lines: &str, others: &str) -> Site {
        Site::configured(url, ("", lines), "", others)
    }

    /// `admin`: more of `[admin]`.
    pub fn start_with_admin(url: &str, admin: &str, others: &str) -> Site {
        Site::configured(url, ("", ""), admin, others)
    }

    /// `top`: keys above all sections.
    pub fn start_beneath(url: &str, top: &str, others: &str) -> Site {
        Site::configured(url, (top, ""), "", others)
    }

    pub fn start_with_both(url: &str, top: &str, admin: &str, others: &str) -> Site {
        Site::configured(url, (top, ""), admin, others)
    }

    fn configured(url: &str, (top, lines): (&str, &str), admin: &str, others: &str) -> Site {
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let place = format!("http2-origin-{}-{number}", std::process::id());
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(place);
        std::fs::create_dir_all(&directory).unwrap();
        let (config, ports) = (directory.join("larder.toml"), directory.join("ports"));
        let text = format!(
            "{top}[[listen]]\naddress = \"127.0.0.1:0\"\n[origin.site]\nurls = [\"{url}\"]\n{lines}\n\
             [admin]\naddress = \"127.0.0.1:0\"\ndetails_to = [\"127.0.0.1\"]\n{admin}\n[resolver]\nhosts = {{ \"origin.test\" = \"127.0.0.1\" }}\n{others}\n"
        );
        std::fs::write(&config, text).unwrap();
        let errors = std::fs::File::create(directory.join("stderr")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
        command
            .args(["serve", "--no-supervisor", "--workers", "1", "--config"])
            .arg(&config)
            .arg("--ports-file")
            .arg(&ports);
        let child = Running(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors).spawn().unwrap());
        let (mut address, mut admin) = (None, None);
        wait_for("larder names its ports", || {
            let text = std::fs::read_to_string(&ports).unwrap_or_default();
            let of = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
            (address, admin) = (of("listen "), of("admin "));
            address.is_some() && admin.is_some()
        });
        Site { address: address.unwrap(), admin: admin.unwrap(), _child: child }
    }

    pub fn before(origin: SocketAddr, others: &str) -> Site {
        Site::start(&format!("h2://{origin}"), "", others)
    }

    pub fn metric(&self, name: &str) -> u64 {
        let text = get(self.admin, "/metrics").unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
        line.unwrap_or_else(|| panic!("no metric {name}")).trim().parse().unwrap()
    }

    pub fn get(&self, path: &str) -> (u16, String, Vec<u8>) {
        self.ask(&format!("GET {path} HTTP/1.1\r\nHost: site.test\r\n\r\n"))
    }

    pub fn post(&self, path: &str) -> (u16, String, Vec<u8>) {
        self.ask(&format!("POST {path} HTTP/1.1\r\nHost: site.test\r\nContent-Length: 0\r\n\r\n"))
    }

    pub fn connect(&self) -> TcpStream {
        let client = TcpStream::connect(self.address).unwrap();
        client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        client
    }

    pub fn ask(&self, text: &str) -> (u16, String, Vec<u8>) {
        let mut client = self.connect();
        client.write_all(text.as_bytes()).unwrap();
        answer(&mut BufReader::new(client), !text.starts_with("HEAD"))
    }
}

/// Status, head and body of the next answer that is no interim one. A body that breaks off has an end that says so.
pub fn answer(reader: &mut impl BufRead, has_body: bool) -> (u16, String, Vec<u8>) {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(reader.read_line(&mut head).unwrap() > 0, "no answer: {head}");
    }
    let status = head[9..12].parse().unwrap();
    let field = |name: &str| {
        let line = head.lines().find(|line| line.to_ascii_lowercase().starts_with(name))?;
        line.split_once(": ").map(|(_, value)| value.trim().to_owned())
    };
    let mut body = Vec::new();
    if !has_body || status < 200 || status == 204 || status == 304 {
    } else if let Some(length) = field("content-length:") {
        body.resize(length.parse().unwrap(), 0);
        reader.read_exact(&mut body).unwrap();
    } else {
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                body.extend_from_slice(b"<cut>");
                break;
            }
            let length = usize::from_str_radix(line.trim(), 16).unwrap();
            let at = body.len();
            body.resize(at + length, 0);
            if reader.read_exact(&mut body[at..]).is_err() {
                body.extend_from_slice(b"<cut>");
                break;
            }
            if length == 0 {
                while line != "\r\n" {
                    line.clear();
                    reader.read_line(&mut line).unwrap();
                    head += &line;
                }
                break;
            }
            reader.read_line(&mut String::new()).unwrap();
        }
    }
    (status, head, body)
}

pub fn open_websocket(site: &Site) -> (TcpStream, String) {
    let mut client = site.connect();
    write!(
        client,
        "GET /socket HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
    .unwrap();
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        client.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    (client, String::from_utf8(head).unwrap())
}

/// Leaves for good. Who only ends what he sends may still read.
pub fn leave(client: TcpStream) {
    socket2::SockRef::from(&client).set_linger(Some(Duration::ZERO)).unwrap();
}
