//! `larder import` by the real program: whose file it takes a file for, and that what comes of it serves at no address that the old file
//! does not name.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("import-{name}"));
    let _ = std::fs::remove_dir_all(&folder); // it may not be there
    std::fs::create_dir_all(&folder).expect("the target folder can be written");
    folder
}

fn larder(folder: &Path, words: &[&str]) -> (Option<i32>, String) {
    let output: Output =
        Command::new(env!("CARGO_BIN_EXE_larder")).args(words).current_dir(folder).output().expect("larder starts");
    let said = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
    (output.status.code(), String::from_utf8_lossy(&said).into_owned())
}

/// Without a listener larder would serve at 127.0.0.1:8080: to all who stand behind a proxy on that machine.
#[test]
fn what_names_no_listener_is_not_served() {
    let folder = folder("nowhere");
    for (name, text) in [
        (
            "nginx.conf",
            "http {\n server {\n listen 443 ssl;\n ssl_certificate none.pem;\n location / { return 200 shown; }\n }\n}\n",
        ),
        ("part.conf", "location / {\n proxy_pass http://127.0.0.1:9;\n}\n"),
        ("squid.conf", "http_port 80 intercept\ncache_peer 127.0.0.1 parent 9 0 no-query originserver\n"),
        ("haproxy.cfg", "defaults\n mode http\nlisten a\n bind :443 ssl crt none.pem\n server s 127.0.0.1:9\n"),
        ("Caddyfile", "https://a.test:8443 {\n tls none.pem none.key\n respond shown\n}\n"),
    ] {
        std::fs::write(folder.join(name), text).expect("the target folder can be written");
        let (code, said) = larder(&folder, &["import", name, "-o", "larder.toml"]);
        let line = format!("{name}:1: not carried over: addresses: nobody listens");
        assert!(code == Some(1) && said.contains(&line), "{name}: {said}");
        for words in
            [&["check", "--file-only", "larder.toml"][..], &["serve", "--no-supervisor", "--config", "larder.toml"]]
        {
            let (code, said) = larder(&folder, words);
            assert!(code == Some(1) && said.contains("`address` is missing"), "{name} {words:?}: {said}");
        }
        // Where it is named, that is all that was missing.
        let made = std::fs::read_to_string(folder.join("larder.toml")).expect("it was written");
        std::fs::write(folder.join("larder.toml"), made.replace("# address = ", "address = "))
            .expect("it can be written");
        let (code, said) = larder(&folder, &["check", "--file-only", "larder.toml"]);
        assert_eq!(code, Some(0), "{name}: {said}");
    }
}

const HASH: &str = "$2a$14$Zkx19XLiW6VYouLHR5NmfOFU0z2GTNmpkT/5qqR7hx4IjWJPDhjvG";

/// A file that nobody knows is printed to nobody, and of what is not understood no password is.
#[test]
fn no_file_is_taken_for_another_programs() {
    let folder = folder("kinds");
    let caddy = format!("{{\n http_port 8080\n}}\n:8080 {{\n basic_auth {{\n  ann {HASH}\n }}\n respond hi\n}}\n");
    std::fs::write(folder.join("site.conf"), caddy).expect("the target folder can be written");
    let (code, said) = larder(&folder, &["import", "site.conf", "-o", "larder.toml"]);
    assert!(code == Some(0) && !said.contains(HASH), "{said}");
    let nobodys = format!("auth-digest ann:{HASH}\nset-env DB_PASSWORD sesame\n");
    std::fs::write(folder.join("other.conf"), nobodys).expect("the target folder can be written");
    for (kind, expect) in [("", "--kind nginx, apache, haproxy, caddy, squid or vcl decides"), ("squid", "set-env …")]
    {
        let words = ["import", "other.conf", "--kind", kind];
        let (code, said) = larder(&folder, if kind.is_empty() { &words[..2] } else { &words });
        assert!(code == Some(1) && said.contains(expect), "{kind}: {said}");
        assert!(!said.contains("sesame") && !said.contains(HASH), "{kind}: {said}");
    }
}
