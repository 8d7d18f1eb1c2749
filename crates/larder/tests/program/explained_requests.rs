//! `larder explain` and `GET /explain` before an origin that is really asked: what is explained is what then happens, with the reason that the
//! answer gives, and explaining changes nothing. Hostile URLs and headers are refused in a sentence.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::Value;

use crate::answering_origin::{self, target_of};
use crate::peer_process::{Running, wait_for};

const PATIENCE: Duration = Duration::from_secs(20);
const TOKEN: &str = "0123456789abcdef";

/// What the origin answers to a path.
fn fields_of(path: &str) -> String {
    let (path, _) = path.split_once('?').unwrap_or((path, ""));
    let fields = match path {
        "/fresh" | "/cart" | "/mark" => "Cache-Control: max-age=600",
        "/shared" => "Cache-Control: s-maxage=60, max-age=5",
        "/expires" => "Expires: Thu, 01 Jan 2099 00:00:00 GMT",
        "/old" => "Last-Modified: Thu, 01 Jan 2026 00:00:00 GMT",
        "/private" => "Cache-Control: private",
        "/no-store" => "Cache-Control: no-store",
        "/no-cache" => "Cache-Control: no-cache\r\nETag: \"a\"",
        "/sets" => "Set-Cookie: session=1\r\nETag: \"a\"",
        "/agents" => "Cache-Control: max-age=600\r\nVary: User-Agent",
        "/window" => "Cache-Control: max-age=1, stale-while-revalidate=600",
        "/validated" => "Cache-Control: max-age=1\r\nETag: \"a\"",
        "/starred" => "Cache-Control: max-age=60\r\nVary: *",
        "/large" => "Cache-Control: max-age=600",
        _ => "ETag: \"a\"",
    };
    let body = if path == "/large" { "x".repeat(30_000) } else { "body".to_owned() };
    format!("HTTP/1.1 200 OK\r\n{fields}\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

/// An origin that counts what it is asked.
struct Origin {
    address: SocketAddr,
    asked: Arc<AtomicU64>,
}

impl Origin {
    fn start() -> Origin {
        let asked = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&asked);
        let address = answering_origin::start(move |head| {
            count.fetch_add(1, Ordering::SeqCst);
            let mut answer = fields_of(target_of(head));
            if head.starts_with("HEAD ") {
                answer.truncate(answer.find("\r\n\r\n").map_or(0, |at| at + 4));
            }
            Some(answer)
        });
        Origin { address, asked }
    }
}

/// larder before that origin, with an admin address.
struct Explained {
    origin: Origin,
    folder: PathBuf,
    address: SocketAddr,
    admin: SocketAddr,
    _child: Running,
}

const ROUTES: &str = r#"
[[route]]
origin = "app"

[[route]]
path = "/cart"
origin = "app"
cookies = { bypass = ["PHPSESSID"] }

[[route]]
path = "/off"
origin = "app"
cache = false

[[route]]
path = "/shut"
closed = true

[[route]]
path = "/granted"
origin = "app"
ttl = "1m"

[[route]]
path = "/mine"
origin = "app"
allow = ["192.0.2.0/24"]

[[route]]
path = "/few"
origin = "app"
rate_limit = "2/m"

[[route]]
path = "/sorted"
origin = "app"
query = { sort = true, ignore = ["ref"] }
ttl = "1m"
"#;

impl Explained {
    fn start(name: &str) -> Explained {
        Explained::start_with(name, ROUTES)
    }

    fn start_with(name: &str, routes: &str) -> Explained {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("explained").join(name);
        let _ = std::fs::remove_dir_all(&folder); // it may not be there
        std::fs::create_dir_all(&folder).expect("the folder can be made");
        let origin = Origin::start();
        let text = format!(
            "[[listen]]\naddress = \"127.0.0.1:0\"\n[admin]\naddress = \"127.0.0.1:0\"\ntoken = \"{TOKEN}\"\ndebug = true\n\
             [origin.app]\nurls = [\"http://{}\"]\n[limits]\nobject_bytes_max = \"10KiB\"\n{routes}\n",
            origin.address
        );
        let (config, ports) = (folder.join("larder.toml"), folder.join("ports"));
        std::fs::write(&config, text).unwrap();
        std::fs::write(folder.join("token"), TOKEN).unwrap();
        let errors = std::fs::File::create(folder.join("stderr")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
        command
            .args(["serve", "--no-supervisor", "--workers", "1", "--config"])
            .arg(&config)
            .arg("--ports-file")
            .arg(&ports);
        let child = Running(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors).spawn().unwrap());
        let mut listed = String::new();
        wait_for("larder names its ports", || {
            listed = std::fs::read_to_string(&ports).unwrap_or_default();
            listed.lines().any(|line| line.starts_with("admin "))
        });
        let address = |name: &str| {
            listed.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok()).expect("it is listed")
        };
        Explained { origin, folder, address: address("listen "), admin: address("admin "), _child: child }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The answer of the real thing.
    fn ask(&self, method: &str, path: &str, lines: &[&str]) -> String {
        let lines: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
        let address = self.address;
        exchange(address, &format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\n{lines}Connection: close\r\n\r\n"))
    }

    fn get(&self, path: &str) -> String {
        self.ask("GET", path, &[])
    }

    fn advance(&self, ms: u64) {
        let answer = self.admin("POST", &format!("/debug/advance?ms={ms}"));
        assert!(answer.contains("advanced"), "{answer}");
    }

    fn admin(&self, method: &str, target: &str) -> String {
        let line = format!("{method} {target} HTTP/1.1\r\nHost: localhost\r\n");
        exchange(self.admin, &format!("{line}Authorization: Bearer {TOKEN}\r\nContent-Length: 0\r\n\r\n"))
    }

    fn command(&self, url: &str, flags: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
        command.args(["explain", url, "--admin", &self.admin.to_string(), "--token-file"]);
        command.arg(self.folder.join("token")).args(flags).stdin(Stdio::null());
        command.output().expect("larder can be started")
    }

    /// What is explained of a path, as JSON.
    #[track_caller]
    fn explain_url(&self, url: &str) -> Value {
        let output = self.command(url, &["--json"]);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{url}: {errors}");
        serde_json::from_slice(&output.stdout).expect("it is JSON")
    }

    fn explain(&self, path: &str, flags: &[&str]) -> Value {
        let flags: Vec<&str> = flags.iter().copied().chain(["--json"]).collect();
        let output = self.command(&self.url(path), &flags);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{path} {flags:?}: {errors}");
        serde_json::from_slice(&output.stdout).expect("it is JSON")
    }

    /// Explained: where it would end, and the words of the reasons.
    #[track_caller]
    fn check(&self, path: &str, flags: &[&str], would_be: &str, words: &[&str]) -> Value {
        let explained = self.explain(path, flags);
        let reasons = explained["reasons"].as_array().into_iter().flatten();
        let said: Vec<&str> = reasons.filter_map(|reason| reason["word"].as_str()).collect();
        assert_eq!(
            (explained["would_be"].as_str(), &said[..]),
            (Some(would_be), words),
            "{path} {flags:?}: {explained}"
        );
        explained
    }

    /// The counts of /status, when what was asked before is over and they stay as they are; and what the origin was asked.
    fn figures(&self) -> (Value, u64) {
        let mut status = Value::Null;
        wait_for("nothing is under way", || {
            let answer = self.admin("GET", "/status");
            let (_, body) = answer.split_once("\r\n\r\n").expect("an answer");
            let mut now: Value = serde_json::from_str(body).expect("JSON");
            let is_busy = now["connections"]["active"] != 0;
            without_times(&mut now);
            std::mem::replace(&mut status, now) == status && !is_busy
        });
        (status, self.origin.asked.load(Ordering::SeqCst))
    }
}

/// What goes on by itself.
fn without_times(status: &mut Value) {
    match status {
        Value::Object(members) => {
            members.retain(|name, value| {
                let goes_on =
                    ["uptime", "process", "resident", "cpu", "idle", "_ms", "hit_ratio", "memory", "accounted"];
                // Of an origin those that are open: an idle one ends by itself. How many were opened is another count.
                let is_open = name == "connections" && value.is_number();
                !is_open && !goes_on.iter().any(|word| name.contains(word))
            });
            members.values_mut().for_each(without_times);
        }
        Value::Array(values) => values.iter_mut().for_each(without_times),
        _ => {}
    }
}

fn exchange(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

fn cache_status(answer: &str) -> &str {
    let line = answer.lines().find_map(|line| line.strip_prefix("Cache-Status: "));
    line.unwrap_or("nothing said")
}

#[test]
fn what_is_stored_is_explained_with_the_word_by_which_it_is_fresh() {
    let larder = Explained::start("stored");
    larder.check("/fresh", &[], "miss", &["uri-miss"]);
    for (path, by) in [
        ("/fresh", "Cache-Control: max-age=600"),
        ("/shared", "Cache-Control: s-maxage=60"),
        ("/expires", "Expires"),
        ("/granted", "ttl of the route: 60 s"),
    ] {
        let answer = larder.get(path);
        assert!(cache_status(&answer).contains("stored"), "{path}: {answer}");
        let explained = larder.check(path, &[], "hit", &[]);
        assert_eq!(explained["stored"][0]["fresh_by"].as_str(), Some(by), "{path}");
        assert_eq!(explained["chosen"]["number"], 1, "{path}");
        assert!(cache_status(&larder.get(path)).contains("; hit; ttl="), "{path}: as explained");
    }
    larder.get("/old");
    let explained = larder.check("/old", &[], "hit", &[]);
    assert!(explained["stored"][0]["fresh_by"].as_str().unwrap().contains("heuristic_percent"), "{explained}");
    // Later it is stale, and says since when.
    larder.check("/fresh", &["--as-if", "now+9m"], "hit", &[]);
    let explained = larder.check("/fresh", &["--as-if", "now+11m"], "miss", &["stale"]);
    assert_eq!(explained["stored"][0]["fresh"], false);
    larder.check("/fresh", &[], "hit", &[]);
    assert_eq!(explained["key"].as_str(), Some(&*larder.url("/fresh")));
    assert_eq!(explained["route"]["target"].as_str(), Some("origin app"));
}

#[test]
fn what_is_not_stored_is_explained_with_the_reason_that_the_answer_gave() {
    let larder = Explained::start("not-stored");
    for (path, word) in
        [("/private", "private"), ("/no-store", "no-store"), ("/sets", "cookie"), ("/starred", "vary-any")]
    {
        assert!(cache_status(&larder.get(path)).contains(&format!("detail={word}")), "{path}");
        let explained = larder.check(path, &[], "pass", &["hit-for-miss", word]);
        assert!(explained["reasons"][1]["way_out"].is_string(), "{path}: what to change");
        let answer = larder.get(path);
        assert!(cache_status(&answer).contains("fwd=bypass; detail="), "{path}: as explained: {answer}");
    }
    larder.get("/large");
    larder.check("/large", &[], "pass", &["hit-for-miss", "too-large"]);
}

#[test]
fn what_a_request_brings_is_explained() {
    let larder = Explained::start("brought");
    let session = &["-H", "Cookie: theme=dark; PHPSESSID=x"][..];
    larder.get("/cart");
    larder.check("/cart", &[], "hit", &[]);
    let explained = larder.check("/cart", session, "pass", &["cookie"]);
    assert_eq!(explained["reasons"][0]["about"].as_str(), Some("PHPSESSID"), "the one that matters, and no value");
    assert!(cache_status(&larder.ask("GET", "/cart", &[session[1]])).contains("fwd=bypass; detail=cookie"));
    let explained = larder.check("/cart", &["-H", "Cookie: theme=dark"], "hit", &[]);
    assert_eq!(explained["route"]["name"].as_str(), Some("/cart"));
    // Nothing has been said of who may have what lives by the operator's word.
    larder.get("/granted");
    let login = &["-H", "Authorization: Basic YTph"][..];
    let explained = larder.check("/granted", login, "pass", &["credentials"]);
    assert_eq!(explained["reasons"][0]["about"].as_str(), Some("Authorization"));
    let explained = larder.check("/never-seen", login, "miss", &["uri-miss"]);
    assert!(explained["notes"][0].as_str().unwrap().contains("the request has Authorization"), "{explained}");
    // What says nothing of others is not confirmed for a cookie, and asked for as a whole.
    larder.get("/tagged");
    larder.check("/tagged", &["-H", "Cookie: theme=dark"], "miss", &["stale"]);
    assert!(cache_status(&larder.ask("GET", "/tagged", &["Cookie: theme=dark"])).contains("fwd=stale"));
    let explained = larder.check("/never-seen", &["-H", "Cookie: SECRET; a=b"], "miss", &["uri-miss"]);
    assert!(!explained.to_string().contains("SECRET"), "a cookie without a name is a value: {explained}");
    larder.check("/never-seen", &["-H", "Cache-Control: no-store"], "miss", &["uri-miss", "request-no-store"]);
    larder.check("/cart", &["-X", "POST"], "pass", &["method"]);
    larder.check("/cart", &["-H", "Cache-Control: no-cache"], "miss", &["request"]);
    larder.check("/cart", &["-X", "HEAD"], "hit", &[]);
    larder.check("/never-seen", &["-X", "HEAD"], "pass", &["head"]);
    let explained =
        larder.check("/never-seen", &["-H", "Cache-Control: only-if-cached"], "answered", &["only-if-cached"]);
    assert_eq!(explained["answer"]["status"], 504);
}

#[test]
fn what_a_response_says_of_its_reuse_is_explained() {
    let larder = Explained::start("reuse");
    for path in ["/window", "/validated", "/no-cache", "/agents"] {
        larder.ask("GET", path, &["User-Agent: one"]);
    }
    larder.check("/agents", &["-H", "User-Agent: one"], "hit", &[]);
    let explained = larder.check("/agents", &["-H", "User-Agent: two"], "miss", &["vary-miss"]);
    assert_eq!(explained["reasons"][0]["about"].as_str(), Some("user-agent"));
    assert_eq!((explained["stored"].as_array().map(Vec::len), explained["chosen"].is_null()), (Some(1), true));
    assert!(cache_status(&larder.ask("GET", "/agents", &["User-Agent: two"])).contains("fwd=vary-miss"));
    let explained = larder.check("/agents", &["-H", "User-Agent: two"], "hit", &[]);
    assert_eq!(explained["stored"].as_array().map(Vec::len), Some(2));
    assert!(explained["chosen"]["because"].as_str().unwrap().contains("the same user-agent"), "{explained}");
    larder.check("/no-cache", &[], "revalidated", &["no-cache"]);
    larder.advance(5_000);
    larder.check("/validated", &[], "revalidated", &["stale"]);
    larder.check("/validated", &["-H", "Cookie: a=b"], "revalidated", &["stale"]);
    larder.check("/window", &[], "stale", &[]);
    assert!(cache_status(&larder.get("/window")).contains("; hit; ttl=-"), "stale, as explained");
}

#[test]
fn what_the_route_says_is_explained() {
    let larder = Explained::start("routes");
    let explained = larder.check("/off", &[], "pass", &["route"]);
    assert!(explained["reasons"][0]["way_out"].is_string());
    let explained = larder.check("/shut", &[], "answered", &[]);
    assert_eq!(explained["answer"]["status"], 403);
    assert_eq!(explained["notes"][0], "`closed = true` of the route /shut closes it");
    let explained = larder.check("/mine", &[], "answered", &[]);
    assert_eq!(explained["answer"]["status"], 403);
    assert!(explained["notes"][0].as_str().is_some_and(|note| note.contains("of the route /mine")), "{explained}");
    larder.check("/mine", &["--client", "192.0.2.7"], "miss", &["uri-miss"]);
    // The order of a query and what is ignored of it make no difference there.
    larder.get("/sorted?b=2&a=1&ref=x");
    let explained = larder.check("/sorted?ref=y&a=1&b=2", &[], "hit", &[]);
    assert_eq!(explained["key"].as_str(), Some(&*larder.url("/sorted?a=1&b=2")));
    larder.get("/fresh?b=2&a=1");
    larder.check("/fresh?a=1&b=2", &[], "miss", &["uri-miss"]);
    // Explaining counts no request: the limit is two.
    for _ in 0..5 {
        let explained = larder.check("/few", &[], "miss", &["uri-miss"]);
        assert!(explained["notes"][0].as_str().unwrap().contains("explaining counts none"), "{explained}");
    }
    assert!(larder.get("/few").starts_with("HTTP/1.1 200"));
}

#[test]
fn the_rule_that_holds_is_named_with_who_said_it() {
    let routes = "[policy]\nquery = { bypass = [\"draft\"] }\n[[route]]\norigin = \"app\"\n\
                  [[route]]\nhost = \"blog.test\"\norigin = \"app\"\npreset = \"wordpress\"\n\
                  [[route]]\npath = \"/own\"\norigin = \"app\"\ncache = false\n\
                  [[route]]\npath = \"/lived\"\norigin = \"app\"\nttl = \"1m\"\n";
    let larder = Explained::start_with("rules", routes);
    for (path, flags, word, means, way_out) in [
        (
            "/a",
            &["-H", "Host: blog.test", "-H", "Cookie: a=b; wordpress_logged_in_x=y"][..],
            "cookie",
            "`cookies = { bypass = […] }` of preset wordpress names wordpress_logged_in_x:",
            "Nothing: this is meant",
        ),
        (
            "/cart",
            &["-H", "Host: blog.test"],
            "route",
            "`cache = false` of preset wordpress:",
            "Nothing: this is meant",
        ),
        ("/a?preview=1", &["-H", "Host: blog.test"], "route", "of preset wordpress names preview:", "Nothing: this is"),
        ("/own", &[], "route", "`cache = false` of the route:", "cache = \"origin\""),
        ("/a?draft=1", &[], "route", "of [policy] names draft:", "take it out of `bypass`"),
        ("/lived", &["-H", "Cookie: a=b"], "cookie", "no word of which cookies matter", "`cookies = { keep = []"),
    ] {
        let explained = larder.check(path, flags, "pass", &[word]);
        let said = |key: &str| explained["reasons"][0][key].as_str().unwrap_or_default().to_owned();
        assert!(said("means").contains(means), "{path}: {explained}");
        assert!(said("way_out").contains(way_out) && !said("way_out").contains("strip"), "{path}: {explained}");
    }
}

#[test]
fn a_file_is_named_and_what_is_missing_is_404() {
    let site = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("explained").join("site");
    for (name, text) in [("a.css", "a{}"), ("index.php", "<?php"), ("sub/b.txt", "b"), ("empty/sub/c", "c")] {
        let file = site.join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }
    let routes = format!(
        "[origin.php]\nfastcgi = \"127.0.0.1:1\"\n[[route]]\norigin = \"app\"\n\
         [[route]]\nhost = \"php.test\"\norigin = \"php\"\nroot = {site:?}\n\
         [[route]]\nhost = \"files.test\"\nroot = {site:?}\nlisting = \"html\"\n\
         [[route]]\nhost = \"files.test\"\npath = \"/given.css\"\norigin = \"app\"\n\
         [[route]]\nhost = \"spa.test\"\nroot = {site:?}\nfallback = \"/a.css\"\n"
    );
    let larder = Explained::start_with("files", &routes);
    for (host, path, would_be, part) in [
        ("php.test", "/a.css", "file", "the file /"),
        ("php.test", "/", "miss", "the script /"),
        ("php.test", "/index.php/x", "miss", "index.php"),
        ("php.test", "/sub", "answered", "301"),
        ("php.test", "/../x", "answered", "400"),
        ("files.test", "/sub/b.txt", "file", "sub/b.txt answers"),
        ("files.test", "/gone.txt", "answered", "there is no file "),
        ("files.test", "/empty/", "file", "the listing of "),
        ("files.test", "/.hidden", "answered", "404"),
        ("files.test", "//given.css", "answered", "another spelling of"),
        ("spa.test", "/any/page", "file", "a.css answers"),
    ] {
        let explained = larder.explain(path, &["-H", &format!("Host: {host}")]);
        assert_eq!(explained["would_be"], would_be, "{host}{path}: {explained}");
        assert!(explained.to_string().contains(part), "{host}{path}: {explained}");
    }
    let explained = larder.explain("/a.css", &["-H", "Host: php.test", "-X", "POST"]);
    assert_eq!(explained["answer"]["status"], 405, "{explained}");
}

/// Each listener answers in its own way; and what is stored is stored with the port that clients ask for.
#[test]
fn the_port_of_a_url_says_which_listener_is_asked() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let routes = format!(
        "[[listen]]\naddress = \"127.0.0.1:{free}\"\nmode = \"redirect\"\nhttps_port = 8443\n[[route]]\nhost = \"127.0.0.1\"\norigin = \"app\"\n"
    );
    let larder = Explained::start_with("ports", &routes);
    let led = larder.explain_url(&format!("http://127.0.0.1:{free}/fresh"));
    assert_eq!((&led["would_be"], &led["answer"]["status"]), (&"answered".into(), &301.into()), "{led}");
    let strange = larder.explain_url(&format!("http://evil.test:{free}/fresh"));
    assert_eq!(strange["answer"]["status"], 404, "{strange}");
    larder.get("/fresh");
    let portless = larder.explain_url("http://127.0.0.1/fresh");
    let notes = portless["notes"].to_string();
    assert!(notes.contains(&larder.url("/fresh")) && notes.contains("stored with the port"), "{portless}");
    assert_eq!(larder.explain("/fresh", &[])["would_be"], "hit");
}

#[test]
fn nothing_is_other_than_before() {
    let larder = Explained::start("unchanged");
    for path in ["/fresh", "/private", "/validated", "/agents", "/large"] {
        larder.get(path);
    }
    larder.advance(5_000);
    let before = larder.figures();
    for path in ["/fresh", "/private", "/validated", "/agents", "/large", "/never-seen", "/few", "/shut"] {
        for flags in [&[][..], &["-X", "HEAD"], &["-X", "POST"], &["-X", "PURGE"], &["-H", "Range: bytes=0-1"]] {
            larder.explain(path, flags);
        }
    }
    assert_eq!(larder.figures(), before, "counts of /status, and what the origin was asked");
    assert!(cache_status(&larder.get("/fresh")).contains("; hit"), "a purge that is explained purges nothing");
}

#[test]
fn a_program_is_said_to_decide() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("explained");
    std::fs::create_dir_all(&folder).unwrap();
    let program = folder.join("decides.vcl");
    std::fs::write(&program, "vcl 4.1;\nimport std;\nbackend default none;\nsub vcl_recv { return (pass); }\n")
        .unwrap();
    let routes = format!(
        "[[route]]\norigin = \"app\"\n[[route]]\npath = \"/shut\"\nclosed = true\n[policy]\nvcl = {program:?}\n"
    );
    let larder = Explained::start_with("program", &routes);
    let explained = larder.check("/fresh", &[], "program", &[]);
    assert!(explained["notes"][0].as_str().unwrap().contains("larder vcl explain"), "{explained}");
    let explained = larder.check("/shut", &[], "answered", &[]);
    assert_eq!(explained["answer"]["status"], 403, "a route is around a program, too");
}

#[test]
fn it_is_told_in_words() {
    let larder = Explained::start("words");
    larder.get("/fresh");
    let output = larder.command(&larder.url("/fresh"), &["-H", "Accept: */*"]);
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    for line in [
        "would be: hit: answered from the store",
        "route: /, origin app",
        &format!("key: {}", larder.url("/fresh")),
        "stored: 1 response",
        " by Cache-Control: max-age=600; age ",
        "chosen: 1, because it is the only one",
    ] {
        assert!(told.contains(line), "{line:?} in:\n{told}");
    }
    let output = larder.command(&larder.url("/off"), &[]);
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(told.contains("no hit because: route: ") && told.contains("(docs/routes.md)"), "{told}");
}

#[test]
fn what_is_no_request_is_refused_in_a_sentence() {
    let larder = Explained::start("hostile");
    let long = format!("Cookie: {}", "x".repeat(100_000));
    let wide = format!("X-Long: {}", "x".repeat(5_000));
    let fresh = larder.url("/fresh");
    for (url, flags, word) in [
        ("ftp://a.test/", &[][..], "http:// or https://"),
        ("a.test", &[], "http:// or https://"),
        ("http://", &[], "names no host"),
        ("http://a.test/a b", &[], "%XX"),
        ("http://a.test/\r\nX: y", &[], "%XX"),
        ("http://a.test/ä", &[], "%XX"),
        ("http://user:pw@a.test/", &[], "in a header"),
        (&fresh, &["-H", "A: b\r\nEvil: c"], "one line"),
        (&fresh, &["-H", "no colon"], "a name and a colon"),
        (&fresh, &["-H", &long], "too long to be explained"),
        (&fresh, &["-H", "Bad Name: x"], "larder takes no such request: it answers 400"),
        (&fresh, &["-H", "Host: a\u{7f}b"], "larder takes no such request: it answers 400"),
        (&fresh, &["-H", "Host: a", "-H", "Host: b"], "larder takes no such request: it answers 400"),
        (&fresh, &["-X", "GET /x"], "a method is a word"),
    ] {
        let output = larder.command(url, flags);
        let errors = String::from_utf8_lossy(&output.stderr);
        let shown: String = errors.chars().take(300).collect();
        assert_eq!(output.status.code(), Some(1), "{url:?}: {shown}");
        assert!(
            errors.starts_with("larder: error: ") && errors.contains(word) && errors.len() < 600,
            "{url:?}: {shown}"
        );
    }
    larder.explain("/fresh", &["-H", &wide]);
    // NUL cannot be typed; who asks the admin address itself can send it.
    let answer = larder.admin("GET", "/explain?url=http://a.test/&header=A:%20b%00");
    assert!(answer.starts_with("HTTP/1.1 400") && answer.contains("one line"), "{answer}");
    let answer = larder.admin("GET", &format!("/explain?url=http://a.test/&header=A:%20{}", "x".repeat(100_000)));
    assert!(answer.starts_with("HTTP/1.1 431"), "{}", &answer[..answer.len().min(300)]);
}

#[test]
fn only_who_may_change_things_is_told() {
    let larder = Explained::start("rights");
    let address = larder.admin;
    let answer = exchange(address, "GET /explain?url=http://a.test/ HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 403") && answer.contains("token"), "{answer}");
    let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
    let output = command.args(["explain", "http://a.test/", "--admin", &address.to_string()]).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && errors.contains("the token of [admin]"), "{errors}");
}
