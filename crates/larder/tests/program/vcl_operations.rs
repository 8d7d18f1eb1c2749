//! VCLs in a larder that runs: started with one, given others by name, told to read its file again.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

/// A larder with a folder of its own, which is where its commands run too. Dropped, it is killed.
struct Operated {
    folder: PathBuf,
    child: Child,
}

impl Operated {
    fn start(name: &str, vcl: &str) -> Operated {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("vcl-operations").join(name);
        let _ = std::fs::remove_dir_all(&folder); // it may not be there
        std::fs::create_dir_all(&folder).expect("the folder can be made");
        std::fs::write(folder.join("default.vcl"), vcl).expect("a file can be written");
        let words =
            "serve --vcl default.vcl --listen 127.0.0.1:0 --admin unix:admin.sock --ports-file ports --workers 1";
        let errors = std::fs::File::create(folder.join("stderr")).expect("a file can be made");
        let mut child = command(&folder, words).stdout(Stdio::null()).stderr(errors).spawn().expect("larder starts");
        while !folder.join("ports").exists() {
            let ended = child.try_wait().expect("a child can be asked");
            assert!(ended.is_none(), "larder ended: {}", read(&folder, "stderr"));
            std::thread::yield_now();
        }
        Operated { folder, child }
    }

    fn vcl(&self, words: &str) -> Output {
        command(&self.folder, &format!("vcl {words} --admin unix:admin.sock")).output().expect("larder can be run")
    }

    /// Exit code, and a part of what is printed anywhere.
    #[track_caller]
    fn check(&self, words: &str, expect: (i32, &str)) {
        let output = self.vcl(words);
        let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(expect.0), "{words}: {text}");
        assert!(text.contains(expect.1), "{words}: {text}");
    }

    /// The names of what is loaded, with `*` at the active one.
    fn loaded(&self) -> String {
        let output = self.vcl("list --json");
        let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let show = |vcl: &Value| {
            let star = if vcl["active"] == true { "*" } else { "" };
            format!("{}{star}", vcl["name"].as_str().unwrap_or_default())
        };
        answer["vcls"].as_array().expect("a list").iter().map(show).collect::<Vec<_>>().join(" ")
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.folder.join(name), text).expect("a file can be written");
    }

    fn hang_up(&self) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-HUP", &id]).status().expect("kill can be run").success());
    }
}

impl Drop for Operated {
    fn drop(&mut self) {
        // It may have ended by itself, which the test has noticed then.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn command(folder: &Path, words: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
    command.args(words.split_whitespace()).current_dir(folder).stdin(Stdio::null());
    command
}

fn read(folder: &Path, name: &str) -> String {
    std::fs::read_to_string(folder.join(name)).unwrap_or_default()
}

const ONE: &str = "vcl 4.1; backend one { .host = \"127.0.0.1\"; .port = \"1\"; }";

#[test]
fn programs_are_loaded_used_and_discarded_by_command() {
    let larder = Operated::start("commands", ONE);
    assert_eq!(larder.loaded(), "boot*");
    larder.write("next.vcl", "vcl 4.1; include \"./more.vcl\";");
    larder.write("more.vcl", "backend two { .host = \"127.0.0.1\"; .port = \"2\"; }");
    larder.check("load next next.vcl", (0, "loaded next: "));
    larder.write("bad.vcl", "vcl 4.1; backend x { .host = \"127.0.0.1\"; } sub vcl_recv { st req.url = \"/\"; }");
    larder.check("load bad bad.vcl", (1, "bad.vcl:1:"));
    larder.write(
        "via.vcl",
        "vcl 4.1; backend x { .host = \"a\"; .via = y; .ssl = 1; } backend y { .host = \"127.0.0.1\"; } \
                             sub vcl_recv { set req.backend_hint = x; }",
    );
    larder.check("load via via.vcl", (1, "backend `x`: `.via` leaves TLS to the other backend: take out .ssl"));
    larder.check("load next next.vcl", (1, "is loaded already"));
    assert_eq!(larder.loaded(), "boot* next");
    larder.check("discard boot", (1, "VCL `boot` is active"));
    larder.check("label shop boot", (0, "shop stands for boot"));
    larder.check("use next", (0, "next decides from now on"));
    larder.check("list", (0, "next  active"));
    larder.check("discard boot", (1, "the label `shop` stands for VCL `boot`"));
    larder.check("discard shop", (0, ""));
    larder.check("discard boot", (0, "discarded boot"));
    larder.check("use boot", (1, "no VCL `boot` is loaded"));
    larder.check("health two sick", (0, "two: sick"));
    larder.check("backends", (0, "next.two  sick     sick"));
    larder.check("health next.three sick", (1, "there is no backend"));
    // One that looks at requests is not worked off in the background, and stays listed.
    larder.check("ban req.url == /x && obj.age > 1h", (0, "banned: req.url == /x && obj.age > 1h"));
    larder.check("bans", (0, "req.url == /x && obj.age > 1h"));
    larder.check("ban obj.colour == red", (1, "Unknown or unsupported field \"obj.colour\""));
    assert_eq!(larder.loaded(), "next*");
    larder.check("load again default.vcl --use", (0, "again decides from now on"));
    assert_eq!(larder.loaded(), "next again*");
}

#[test]
fn a_hang_up_loads_the_file_again_unless_it_is_no_good() {
    let larder = Operated::start("hang-up", ONE);
    larder.write("default.vcl", &ONE.replace("one", "other"));
    larder.hang_up();
    while larder.loaded() != "reload-1*" {
        std::thread::yield_now();
    }
    larder.write("default.vcl", "vcl 4.1; backend x {");
    larder.hang_up();
    while !read(&larder.folder, "stderr").contains("the old one stays") {
        std::thread::yield_now();
    }
    assert_eq!(larder.loaded(), "reload-1*");
    assert!(read(&larder.folder, "stderr").contains("default.vcl:1:"), "{}", read(&larder.folder, "stderr"));
}

#[test]
fn a_backend_is_probed_from_the_start() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = listener.local_addr().expect("it is bound").port();
    let server = std::thread::spawn(move || {
        for _ in 0..3 {
            let (mut stream, _) = listener.accept().expect("probes come");
            let mut request = [0; 64];
            let read = stream.read(&mut request).expect("a probe asks");
            assert!(request[..read].starts_with(b"GET /well HTTP/1.1\r\n"));
            stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n").expect("a probe listens");
        }
    });
    let probe = ".probe = { .url = \"/well\"; .interval = 20ms; .threshold = 3; .initial = 0; .timeout = 60s; }";
    let text = format!("vcl 4.1; backend app {{ .host = \"127.0.0.1\"; .port = \"{port}\"; {probe} }}");
    let larder = Operated::start("probes", &text);
    server.join().expect("three probes were answered");
    // The third is noted soon after it was answered; then nobody answers, and the window goes on.
    let status = || {
        let answer: Value = serde_json::from_slice(&larder.vcl("backends --json").stdout).expect("JSON");
        answer["backends"][0].clone()
    };
    while status()["probe"]["count"].as_u64() < Some(3) {
        std::thread::yield_now();
    }
    let backend = status();
    assert_eq!((&backend["name"], &backend["vcl"]), (&Value::from("app"), &Value::from("boot")));
    while status()["healthy"] == true {
        std::thread::yield_now();
    }
    let last = status()["probe"]["last"].clone();
    assert!(last.as_str().is_some_and(|last| last.contains("connect failed")), "{last}");
}
