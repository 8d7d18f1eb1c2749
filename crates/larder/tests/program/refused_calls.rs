//! A larder that does all that it can, under the eyes of strace: the sandbox refuses none of its system calls and closes none of its files.

use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

use rustix::process::Signal;

use crate::fenced_larder::{FencedLarder, make_folder, spawn, write_config};
use crate::peer_process::wait_for;
use crate::tls_site::write_certificate;
use crate::told_origin;

const CONFIG: &str = r#"
[[listen]]
address = "127.0.0.1:0"
[listen.tls]
cert = "PLACE/etc/site.pem"
key = "PLACE/etc/site.key"
[[listen]]
address = "unix:PLACE/run/l.sock"
[[disk]]
path = "PLACE/disk"
size = "64MiB"
[store]
disk_sendfile = true
[origin.far]
urls = ["http://ORIGIN"]
[origin.named]
urls = ["http://localhost:PORT"]
[origin.near]
urls = ["unix:PLACE/run/o.sock"]
[[route]]
root = "PLACE/site/current"
path = "/files"
listing = "html"
[[route]]
origin = "near"
path = "/near"
[[route]]
origin = "named"
path = "/named"
[[route]]
origin = "far"
ttl = "1h"
"#;

/// What the kernel refused it: names of calls, as strace writes them.
fn refusals(trace: &str) -> Vec<String> {
    let behind = trace.rfind("SECCOMP_SET_MODE_FILTER").expect("it enters its sandbox");
    let is_refused =
        |line: &&str| ["= -1 EPERM", "= -1 ENOSYS", "= -1 EACCES"].iter().any(|refusal| line.contains(refusal));
    // The C library asks for a thread in another way then.
    let lines = trace[behind..].lines().filter(is_refused).filter(|line| !line.contains("clone3"));
    lines.map(str::to_owned).collect()
}

fn answer(size: usize, lines: &str) -> String {
    let text: String = (0..size / 10).map(|n| format!("line {n:04}\n")).collect();
    format!("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n{lines}\r\n{text}", text.len())
}

fn curl(words: &[&str]) -> Vec<u8> {
    let done = Command::new("curl")
        .args(["-s", "-k", "--max-time", "20", "--compressed"])
        .args(words)
        .output()
        .expect("curl is there");
    assert!(done.status.success(), "curl {words:?}: {}", String::from_utf8_lossy(&done.stderr));
    done.stdout
}

/// Of the same site for every kind of client.
fn ask_everything(larder: &FencedLarder) {
    let plain = larder.address(2);
    let secure = larder.address(0);
    for round in 0..2 {
        for path in
            ["/small", "/large", "/files/page.txt", "/files/", "/files/large.bin", "/near/x", "/named/x", "/none"]
        {
            let clear = format!("http://{plain}{path}");
            assert!(!curl(&[&clear]).is_empty(), "{round} {path}");
            curl(&["--http1.1", &format!("https://{secure}{path}")]);
            curl(&["--http2", &format!("https://{secure}{path}")]);
        }
    }
    curl(&["--no-compressed", "-r", "100-200", &format!("http://{plain}/large")]);
    curl(&["-X", "POST", "-d", "a=b", &format!("http://{plain}/post")]);
    let socket = larder.path("run/l.sock").display().to_string();
    curl(&["--unix-socket", &socket, "http://localhost/small"]);
}

/// What operators ask for.
fn operate(larder: &FencedLarder) {
    let socket = larder.path("run/a.sock").display().to_string();
    let admin = |words: &[&str]| {
        let done = Command::new(env!("CARGO_BIN_EXE_larder"))
            .args(words)
            .args(["--admin", &format!("unix:{socket}")])
            .output();
        let done = done.expect("larder can be started");
        assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
    };
    for page in ["status", "metrics", "healthz"] {
        curl(&["--unix-socket", &socket, &format!("http://localhost/{page}")]);
    }
    admin(&["explain", &format!("http://{}/small", larder.address(2))]);
    admin(&["purge", "--all", "--soft"]);
    admin(&["purge", "--all"]);
    std::fs::rename(larder.path("log/access.log"), larder.path("log/access.log.1")).expect("it is ours");
    std::fs::remove_file(larder.path("etc/site.key")).expect("it is ours");
    write_certificate(Path::new(&larder.path("etc")), "site", "site.test");
    admin(&["reload"]);
    larder.wait_for_word("reloaded: ");
}

fn near_origin(folder: &Path) {
    let listener = UnixListener::bind(folder.join("run/o.sock")).expect("it is ours");
    std::thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let _ = client.read(&mut [0; 4_096]);
            let _ = client.write_all(answer(100, "Connection: close\r\n").as_bytes());
        }
    });
}

#[test]
fn no_call_of_a_larder_at_work_is_refused() {
    if Command::new("strace").arg("-V").output().is_err() {
        println!("not run: strace is not installed");
        return;
    }
    let far = told_origin::origin(|told| match told.line() {
        "GET /large" => answer(600_000, "Cache-Control: max-age=1000\r\n"),
        _ => answer(3_000, "Cache-Control: max-age=1000\r\nX-Key: a\r\n"),
    });
    let folder = make_folder("traced");
    std::fs::create_dir(folder.join("site/1/files")).expect("it is ours");
    for (name, size) in [("page.txt", 100), ("large.bin", 700_000)] {
        std::fs::write(folder.join("site/1/files").join(name), vec![b'7'; size]).expect("it is ours");
    }
    write_certificate(&folder.join("etc"), "site", "site.test");
    near_origin(&folder);
    write_config(&folder, &CONFIG.replace("ORIGIN", &far.to_string()).replace("PORT", &far.port().to_string()));
    let trace = folder.join("trace");
    let mut command = Command::new("strace");
    // The child is larder itself, and strace its tracer.
    command.args(["-D", "-f", "-q", "-o"]).arg(&trace).args([env!("CARGO_BIN_EXE_larder"), "serve"]);
    let child = spawn(&folder, &mut command);
    let larder = FencedLarder::running(folder, child);
    ask_everything(&larder);
    operate(&larder);
    ask_everything(&larder);
    larder.signal(Signal::TERM);
    wait_for("larder ends", || !larder.path("run/a.sock").exists());
    let ended = || std::fs::read_to_string(&trace).is_ok_and(|trace| trace.contains("+++ exited with 0 +++"));
    wait_for("its last call is told", ended);
    let traced = String::from_utf8_lossy(&std::fs::read(&trace).expect("strace wrote it")).into_owned();
    let refused = refusals(&traced);
    assert!(refused.is_empty(), "{}\n{}", refused.join("\n"), larder.said());
    assert!(traced.contains("sendfile(") && traced.contains("pwrite64("), "it was asked for too little");
}
