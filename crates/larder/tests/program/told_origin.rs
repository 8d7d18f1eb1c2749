//! An origin that answers each request with what a test makes of it; and nginx beside larder, each with its own file of the same site.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use crate::peer_process::{Running, wait_until_it_listens};

/// What the origin was told.
pub struct ToldRequest {
    pub head: String,
    pub body: Vec<u8>,
}

impl ToldRequest {
    fn read(mut client: &TcpStream) -> Option<ToldRequest> {
        let mut bytes = Vec::new();
        while !bytes.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            client.read_exact(&mut byte).ok()?;
            bytes.push(byte[0]);
        }
        let mut told = ToldRequest { head: String::from_utf8_lossy(&bytes).into_owned(), body: Vec::new() };
        told.body = vec![0; told.value("content-length").and_then(|length| length.parse().ok()).unwrap_or(0)];
        client.read_exact(&mut told.body).ok()?;
        Some(told)
    }

    /// Method and target.
    pub fn line(&self) -> &str {
        self.head.split(" HTTP/").next().unwrap_or_default()
    }

    /// Names in lower case, and values.
    pub fn fields(&self) -> impl Iterator<Item = (String, &str)> {
        let field = |line: &'_ str| line.split_once(": ").map(|(name, _)| name.to_lowercase());
        self.head.split("\r\n").filter_map(move |line| Some((field(line)?, line.split_once(": ")?.1)))
    }

    pub fn value(&self, name: &str) -> Option<&str> {
        self.fields().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// 200 with these lines and this text, which HEAD goes without.
    pub fn answer(&self, lines: &str, text: &str) -> String {
        let body = if self.line().starts_with("HEAD ") { "" } else { text };
        format!("HTTP/1.1 200 OK\r\n{lines}\r\nContent-Length: {}\r\n\r\n{body}", text.len())
    }
}

pub fn origin(say: impl Fn(&ToldRequest) -> String + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, say) = (listener.local_addr().unwrap(), Arc::new(say));
    std::thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let say = say.clone();
            std::thread::spawn(move || {
                while let Some(told) = ToldRequest::read(&client) {
                    if client.write_all(say(&told).as_bytes()).is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

/// Both, once they listen: nginx where its file says, larder at `ours`.
pub fn nginx_and_larder(
    folder: &Path,
    (conf, theirs): (&Path, SocketAddr),
    (toml, ours): (&Path, SocketAddr),
) -> [Running; 2] {
    let mut nginx = Command::new("nginx");
    nginx.arg("-p").arg(folder).arg("-c").arg(conf).stdin(Stdio::null()).stderr(Stdio::null());
    let nginx = Running(nginx.spawn().expect("nginx is installed"));
    let mut larder = Command::new(env!("CARGO_BIN_EXE_larder"));
    larder.args([
        "serve",
        "--no-supervisor",
        "--admin",
        "off",
        "--workers",
        "1",
        "--listen",
        &ours.to_string(),
        "--config",
    ]);
    let larder = Running(larder.arg(toml).stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    wait_until_it_listens(theirs);
    wait_until_it_listens(ours);
    [nginx, larder]
}
