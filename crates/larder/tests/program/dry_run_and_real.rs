//! The same requests under the same programs, run dry by `larder vcl explain` and served by a real larder over loopback:
//! what the client gets, what the origin is asked and what the log says must be the same.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

/// One program and one request.
struct Row {
    name: &'static str,
    /// Behind `vcl 4.1; import std; backend web …`.
    program: &'static str,
    /// As in `--request`.
    request: &'static str,
    answers: &'static [&'static str],
    /// Asked twice; the second time counts.
    is_second: bool,
}

const fn row(
    name: &'static str,
    program: &'static str,
    request: &'static str,
    answers: &'static [&'static str],
    is_second: bool,
) -> Row {
    Row { name, program, request, answers, is_second }
}

const LIVES: &str = "sub vcl_backend_response { if (bereq.url ~ \"png\") { set beresp.ttl = 1d; } set beresp.grace = 1h; \
     set beresp.keep = 90s; std.log(\"from \" + beresp.backend.name); } \
     sub vcl_deliver { std.log(\"hits \" + obj.hits); set resp.http.X-Hits = obj.hits; }";
const AGAIN: &str =
    "sub vcl_recv { if (req.restarts == 0 && req.url == \"/a\") { set req.url = \"/b\"; return (restart); } }";
const RETRY: &str =
    "sub vcl_backend_response { if (beresp.status == 503) { set bereq.url = \"/spare\"; return (retry); } }";
const SORRY: &str = "sub vcl_backend_error { set beresp.status = 502; set beresp.body = \"sorry\"; return (deliver); }";
const OUT: &str = "sub vcl_recv { return (synth(403, \"Out\")); } sub vcl_synth { set resp.http.X-Why = resp.reason; }";
const PURGE: &str = "sub vcl_recv { if (req.method == \"PURGE\") { return (purge); } }";
const PIPE: &str = "sub vcl_recv { return (pipe); } sub vcl_pipe { set bereq.http.X-Piped = \"yes\"; }";
const FAILS: &str = "sub vcl_deliver { return (fail(\"on purpose\")); }";
const KEY: &str = "sub vcl_hash { hash_data(req.url); hash_data(req.http.X-Language); return (lookup); }";

const ROWS: [Row; 16] = [
    row("miss", "", "GET /x?b=1 Host: a.test Accept: text/html", &["200 Cache-Control: max-age=60 X-Own: y"], false),
    row("hit", LIVES, "GET /x Host: a.test", &["200 Cache-Control: s-maxage=30, max-age=60"], true),
    row("life", LIVES, "GET /x.png Host: a.test", &["200 Expires: never Set-Cookie: a=b"], false),
    row("pass by cookie", LIVES, "GET /x Host: a.test Cookie: id=7", &["200 Vary: Cookie"], false),
    row("set-cookie", "", "GET /x Host: a.test", &["200 Set-Cookie: a=b"], false),
    row("hit-for-miss", "", "GET /x Host: a.test", &["200 Cache-Control: private"], true),
    row("restart", AGAIN, "GET /a Host: a.test", &["200"], false),
    row("retry", RETRY, "GET /a Host: a.test", &["503", "200 X-Try: two"], false),
    row("no origin", SORRY, "GET /a Host: a.test", &["fails"], false),
    row("synth", OUT, "GET /a Host: a.test", &[], false),
    row("purge", PURGE, "PURGE /a Host: a.test", &["200"], false),
    row("pipe", PIPE, "GET /a Host: a.test X-Up: 1", &["200 X-Own: y"], false),
    row("fail", FAILS, "GET /a Host: a.test", &["200"], false),
    row("head", KEY, "HEAD /a Host: a.test X-Language: de", &["200 ETag: \"1\""], false),
    row("conditional", KEY, "GET /a Host: a.test If-None-Match: \"1\"", &["200 ETag: \"1\""], true),
    row("range", LIVES, "GET /a Host: a.test Range: bytes=1-1", &["200"], true),
];

#[test]
fn a_dry_run_and_a_real_larder_say_the_same() {
    let mut different = String::new();
    for row in &ROWS {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("dry-run").join(row.name);
        let _ = std::fs::remove_dir_all(&folder); // it may not be there
        std::fs::create_dir_all(&folder).expect("the folder can be made");
        let origin = Origin::start(row.answers);
        let port = origin.address.port();
        let text = format!(
            "vcl 4.1; import std;\nbackend web {{ .host = \"127.0.0.1\"; .port = \"{port}\"; }}\n{}\n",
            row.program
        );
        std::fs::write(folder.join("p.vcl"), text).expect("a file can be written");
        let (real, run_dry) = (really(row, &folder, &origin), run_dry(row, &folder));
        if real != run_dry {
            let _ = writeln!(different, "{}: really {}\ndry run {}", row.name, show(&real), show(&run_dry));
        }
    }
    assert!(different.is_empty(), "{different}");
}

fn show(value: &Value) -> String {
    serde_json::to_string_pretty(value).expect("JSON")
}

/// In one form, without what is different every time.
fn seen(answer: Value, asked: Value, outcome: &Value, life: &Value) -> Value {
    let plain = |fields: &Value| {
        let lines = fields.as_array().into_iter().flatten();
        let lines = lines.map(|line| (line[0].as_str().unwrap_or_default(), line[1].as_str().unwrap_or_default()));
        let mut lines: Vec<String> = lines
            .filter(|(name, _)| !["date", "via"].contains(&name.to_lowercase().as_str()))
            .map(|(name, value)| format!("{}: {value}", name.to_lowercase()))
            .collect();
        lines.sort();
        lines
    };
    let asked: Vec<Value> = asked
        .as_array()
        .into_iter()
        .flatten()
        .map(|asked| json!([asked["method"], asked["url"], plain(&asked["fields"])]))
        .collect();
    json!({
        "status": answer["status"], "reason": answer["reason"], "fields": plain(&answer["fields"]),
        "body": answer["body"], "asked": asked, "outcome": outcome, "life": life,
    })
}

fn run_dry(row: &Row, folder: &Path) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
    command.args(["vcl", "explain", "p.vcl", "--json", "--client", "127.0.0.1", "--request", row.request]);
    for answer in row.answers {
        command.args(["--origin", answer]);
    }
    if row.is_second {
        command.args(["--cached", "hit"]);
    }
    let output = command.current_dir(folder).output().expect("larder can be run");
    assert!(output.status.success(), "{}: {}", row.name, String::from_utf8_lossy(&output.stderr));
    let said: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let mut life = said["lives"][0].clone();
    if let Some(life) = life.as_object_mut() {
        life.remove("background");
        life.retain(|_, value| !value.is_null());
    }
    // One that could not be connected to is seen by nobody in the real world.
    let asked: Vec<&Value> =
        said["asked"].as_array().into_iter().flatten().filter(|asked| !asked["url"].is_null()).collect();
    seen(said["answer"].clone(), json!(asked), &said["outcome"], &life)
}

fn really(row: &Row, folder: &Path, origin: &Origin) -> Value {
    let config = "[policy]\nvcl = \"p.vcl\"\n[log]\npath = \"access.log\"\nformat = \"json\"\n[admin]\naddress = \"127.0.0.1:0\"\n";
    std::fs::write(folder.join("larder.toml"), config).expect("a file can be written");
    let mut larder = Served::start(folder);
    let request = wire_form(row.request);
    let mut answer = larder.ask(&request);
    if row.is_second {
        origin.forget();
        answer = larder.ask(&request);
    }
    larder.stop();
    let log = std::fs::read_to_string(folder.join("access.log")).expect("there is a log");
    let line: Value = serde_json::from_str(log.lines().last().expect("a line for each request")).expect("JSON");
    let asked = Value::Array(origin.seen.lock().expect("nobody panicked").clone());
    seen(answer, asked, &line["verdict"], &line["life"])
}

/// `GET /x Host: a` as bytes. No value in the table has a word that ends with a colon.
fn wire_form(request: &str) -> String {
    let mut words = request.split(' ');
    let mut text = format!("{} {} HTTP/1.1", words.next().expect("a method"), words.next().expect("a URL"));
    for word in words {
        text.push_str(if word.ends_with(':') { "\r\n" } else { " " });
        text.push_str(word);
    }
    format!("{text}\r\n\r\n")
}

struct Served {
    child: Child,
    address: SocketAddr,
}

impl Served {
    fn start(folder: &Path) -> Served {
        let words = "serve --config larder.toml --listen 127.0.0.1:0 --ports-file ports --workers 1";
        let errors = std::fs::File::create(folder.join("stderr")).expect("a file can be made");
        let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
        command.args(words.split(' ')).current_dir(folder).stdout(Stdio::null()).stderr(errors);
        let mut child = command.spawn().expect("larder starts");
        while !folder.join("ports").exists() {
            let ended = child.try_wait().expect("a child can be asked");
            let why = || std::fs::read_to_string(folder.join("stderr")).unwrap_or_default();
            assert!(ended.is_none(), "larder ended: {}", why());
            std::thread::yield_now();
        }
        let ports = std::fs::read_to_string(folder.join("ports")).expect("it is there");
        let address =
            ports.lines().find_map(|line| line.strip_prefix("listen")?.trim_start_matches(['=', ' ']).parse().ok());
        Served { child, address: address.unwrap_or_else(|| panic!("{ports}")) }
    }

    fn ask(&self, request: &str) -> Value {
        let mut stream = TcpStream::connect(self.address).expect("larder listens");
        stream.write_all(request.as_bytes()).expect("it reads");
        stream.shutdown(std::net::Shutdown::Write).expect("our side can be ended");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("it answers");
        let text = String::from_utf8(answer).expect("text");
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text:?}"));
        let mut lines = head.lines();
        let mut status = lines.next().expect("a status line").splitn(3, ' ').skip(1);
        json!({
            "status": status.next().and_then(|status| status.parse::<u16>().ok()),
            "reason": status.next().unwrap_or_default(),
            "fields": fields(lines), "body": body,
        })
    }

    /// Its log is written to the end.
    fn stop(&mut self) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().expect("kill can be run").success());
        assert!(self.child.wait().expect("larder ends").success());
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It has ended, unless the test failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn fields<'t>(lines: impl Iterator<Item = &'t str>) -> Vec<[&'t str; 2]> {
    lines.filter_map(|line| line.split_once(": ").map(|(name, value)| [name, value])).collect()
}

/// Answers as the mocked one does, a connection each.
struct Origin {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<Value>>>,
}

impl Origin {
    fn start(answers: &'static [&'static str]) -> Origin {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let (address, seen) = (listener.local_addr().expect("it is bound"), Arc::<Mutex<Vec<Value>>>::default());
        let origin = Origin { address, seen: Arc::clone(&seen) };
        if answers == ["fails"] {
            // Nobody listens any more.
            return origin;
        }
        std::thread::spawn(move || {
            let mut answers = answers.iter().cycle();
            for stream in listener.incoming() {
                converse(stream.expect("a connection"), answers.next().unwrap_or(&"200"), &seen);
            }
        });
        origin
    }

    fn forget(&self) {
        self.seen.lock().expect("nobody panicked").clear();
    }
}

fn converse(mut stream: TcpStream, answer: &str, seen: &Mutex<Vec<Value>>) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte).unwrap_or(0) == 0 {
            return;
        }
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).expect("text");
    let mut lines = head.lines();
    let line: Vec<&str> = lines.next().expect("a request line").split(' ').collect();
    let asked = json!({ "method": line[0], "url": line[1], "fields": fields(lines) });
    seen.lock().expect("nobody panicked").push(asked);
    let (status, rest) = answer.split_at(3);
    let rest = wire_form(&format!("GET / {}", rest.trim_start()));
    let rest = rest.trim_start_matches("GET / HTTP/1.1").trim_end();
    let reason = if status == "503" { "Service Unavailable" } else { "OK" };
    let body = if line[0] == "HEAD" { "" } else { "ok\n" };
    let text = format!("HTTP/1.1 {status} {reason}{rest}\r\nContent-Length: 3\r\nConnection: close\r\n\r\n{body}");
    // Whoever asked notices what is missing.
    let _ = stream.write_all(text.as_bytes());
}
