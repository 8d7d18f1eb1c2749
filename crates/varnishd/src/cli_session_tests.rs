//! Conversations with the front over a mocked larder: what is said, what is refused, what is closed.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;
use crate::limits::STRANGER_LINE_BYTES_MAX;
use crate::parameter_book::ParameterBook;
use crate::served::*;

/// A larder that notes what it was asked to do.
#[derive(Default)]
struct MockedLarder {
    done: Arc<Mutex<Vec<String>>>,
}

impl MockedLarder {
    fn note(&self, what: String) -> Result<(), Refusal> {
        self.done.lock().push(what);
        Ok(())
    }
}

fn row(name: &str, is_active: bool) -> VclRow {
    VclRow {
        name: name.to_owned(),
        is_active,
        state: VclState::Auto,
        temperature: Temperature::Warm,
        busy: Some(0),
        labels: Vec::new(),
        label_of: None,
        hands_to: Vec::new(),
    }
}

impl Served for MockedLarder {
    fn now_s(&self) -> f64 {
        1_795_385_947.631
    }
    fn pids(&self) -> (u32, Option<u32>) {
        (7, Some(7))
    }
    fn platform(&self) -> String {
        "MockedLarder".to_owned()
    }
    fn is_running(&self) -> bool {
        true
    }
    fn start(&self) -> Result<(), Refusal> {
        self.note("start".to_owned())
    }
    fn stop(&self) -> Result<(), Refusal> {
        self.note("stop".to_owned())
    }
    fn load(&self, name: &str, text: VclText<'_>, state: VclState) -> Result<String, Refusal> {
        if name == "bad" {
            return Err(Refusal::Wrong("it is bad".to_owned()));
        }
        let text = match text {
            VclText::File(path) => path.to_owned(),
            VclText::Inline(text) => String::from_utf8_lossy(text).into_owned(),
        };
        self.note(format!("load {name} {text:?} {state:?}")).map(|()| String::new())
    }
    fn use_vcl(&self, name: &str) -> Result<(), Refusal> {
        self.note(format!("use {name}"))
    }
    fn discard(&self, name: &str) -> Result<(), Refusal> {
        self.note(format!("discard {name}"))
    }
    fn label(&self, label: &str, name: &str) -> Result<(), Refusal> {
        self.note(format!("label {label} {name}"))
    }
    fn set_state(&self, name: &str, state: VclState) -> Result<(), Refusal> {
        self.note(format!("state {name} {state:?}"))
    }
    fn vcls(&self) -> Vec<VclRow> {
        let labelled = VclRow { labels: vec!["lab".to_owned()], ..row("v1", false) };
        let label = VclRow { label_of: Some("v1".to_owned()), ..row("lab", false) };
        vec![row("boot", true), labelled, label, VclRow { hands_to: vec!["lab".to_owned()], ..row("v3", false) }]
    }
    fn sources(&self, name: &str) -> Option<Vec<SourceRow>> {
        let source = |name: &str, text: &str| SourceRow { name: name.to_owned(), text: text.as_bytes().to_vec() };
        (name == "boot").then(|| vec![source("/a.vcl", "vcl 4.1;\n"), source("<builtin>", "vcl 4.0;\n")])
    }
    fn ban(&self, expression: &[u8]) -> Result<(), Refusal> {
        self.note(format!("ban {}", String::from_utf8_lossy(expression)))
    }
    fn bans(&self) -> Vec<BanRow> {
        vec![BanRow { at_s: 1_795_385_959.816643, is_done: false, expression: "req.url ~ /foo".to_owned() }]
    }
    fn backends(&self) -> Vec<BackendRow> {
        let probe = ProbeRow { good: 0, threshold: 3, window: 8, last: "refused".to_owned() };
        let backend = |name: &str, probe: Option<ProbeRow>| BackendRow {
            vcl: "boot".to_owned(),
            name: name.to_owned(),
            is_of_active: true,
            ordered: Order::Auto,
            is_healthy: probe.is_none(),
            changed_s: 1_795_385_940.981,
            probe,
        };
        vec![backend("default", None), backend("b2", Some(probe))]
    }
    fn order_health(&self, vcl: &str, backend: &str, order: Order) -> Result<(), Refusal> {
        self.note(format!("health {vcl} {backend} {order:?}"))
    }
    fn storages(&self) -> Vec<(String, String)> {
        vec![("s0".to_owned(), "malloc".to_owned())]
    }
    fn listeners(&self) -> Vec<ListenRow> {
        vec![ListenRow { name: "a0".to_owned(), host: "127.0.0.1".to_owned(), port: Some(7801) }]
    }
    fn set_xids(&self, _: u32, _: u32) {}

    fn set_parameter(&self, name: &str, value: &str) -> Result<(), Refusal> {
        self.note(format!("set {name} {value}"))
    }
    fn parameter_note(&self, _: &str) -> Option<&'static str> {
        None
    }
}

const CHALLENGE: &str = "abcdefghijklmnopqrstuvwxyzabcdef";

/// What is said to these bytes, and how it ends. Nobody who knows the secret is asked for it here.
fn say(bytes: &[u8], secret: Option<&str>) -> (String, Ended, Vec<String>) {
    let mocked = MockedLarder::default();
    let done = Arc::clone(&mocked.done);
    let front = Arc::new(Front::new(Arc::new(mocked), ParameterBook::new(&[], &[]).unwrap()));
    let secret = secret.map(|secret| (Secret::new(secret.into()), CHALLENGE.to_owned()));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (said, ended) = runtime.block_on(async {
        let (mut client, server) = tokio::io::duplex(1 << 20);
        let talk = tokio::spawn(converse(server, front, secret, || ()));
        // What is refused is closed while we still write.
        let _ = client.write_all(bytes).await;
        let _ = client.shutdown().await;
        let mut said = Vec::new();
        client.read_to_end(&mut said).await.unwrap();
        (String::from_utf8_lossy(&said).into_owned(), talk.await.unwrap())
    });
    let done = done.lock().clone();
    (said, ended.unwrap_or(Ended::Closed), done)
}

/// The last answer's status and body, and what was done.
fn answered(command: &str) -> (String, String, Vec<String>) {
    let (said, _, did) = say(format!("{command}\n").as_bytes(), None);
    let greeting = said[4..12].trim().parse::<usize>().unwrap() + 14;
    let answer = &said[greeting..];
    (answer[..3].to_owned(), answer[13..answer.len() - 1].to_owned(), did)
}

fn check(command: &str, status: u16, body: &str, done: &[&str]) {
    let (said, text, did) = answered(command);
    assert_eq!((&*said, &*text), (&*status.to_string(), body), "{command}");
    assert_eq!(did, done, "{command}");
}

#[test]
fn every_command_is_answered_as_varnish_answers() {
    check("ping", 200, "PONG 1795385947 1.0", &[]);
    check("ping -j", 200, "[ 2, [\"ping\", \"-j\"], 1795385947.631, \"PONG\"\n\n]\n", &[]);
    check("ping 1 2", 105, "Too many parameters\n", &[]);
    check("status", 200, "Child in state running", &[]);
    check("status -j", 200, "[ 2, [\"status\", \"-j\"], 1795385947.631, \"running\"\n]\n", &[]);
    check("pid", 200, "Master:          7\nWorker:          7\n", &[]);
    check("start", 300, "Child in state running", &[]);
    check("stop", 200, "", &["stop"]);
    check("quit", 500, "Closing CLI connection", &[]);
    check("panic.show", 300, "Child has not panicked or panic has been cleared", &[]);
    check("panic.clear", 300, "No panic to clear", &[]);
    check("panic.clear -z", 200, "", &[]);
    check("debug.listen_address", 200, "a0 127.0.0.1 7801\n", &[]);
    check("storage.list", 200, "Storage devices:\n\tstorage.s0 = malloc\n", &[]);
    check("nosuch", 101, "Unknown request.\nType 'help' for more info.\n", &[]);
    check("PING", 101, "Unknown request.\nType 'help' for more info.\nall commands are in lower-case.\n", &[]);
    check("ping \"a", 100, "Syntax Error: Missing '\"'\n", &[]);
    check("help -x", 101, "Unknown request.\nType 'help' for more info.\n", &[]);
    check(
        "help -d",
        200,
        "debug.fragfetch\ndebug.listen_address\ndebug.srandom\ndebug.xid [<xid> [<cachesize>]]\n",
        &[],
    );
    check("help ping", 200, "ping [-j] [<timestamp>]\nAsk whether somebody is there.\n", &[]);
}

#[test]
fn programs_are_loaded_used_labelled_and_discarded() {
    check("vcl.load a /x.vcl", 200, "", &["load a \"/x.vcl\" Auto"]);
    check("vcl.load a /x.vcl cold", 200, "", &["load a \"/x.vcl\" Cold"]);
    check("vcl.load a /x.vcl hot", 106, "State must be one of auto, cold or warm.", &[]);
    check("vcl.load 1bad /x.vcl", 106, "Illegal character in VCL name ('1')", &[]);
    check("vcl.load boot /x.vcl", 106, "Already a VCL named boot", &[]);
    check("vcl.load bad /x.vcl", 106, "Message from VCC-compiler:\nit is bad\n\nVCL compilation failed", &[]);
    check("vcl.load", 104, "Too few parameters\n", &[]);
    check("vcl.inline a << EOF\nvcl 4.1;\nEOF", 200, "", &["load a \"vcl 4.1;\\n\" Auto"]);
    check("vcl.use v1", 200, "VCL 'v1' now active", &["use v1"]);
    check("vcl.use boot", 200, "", &[]);
    check("vcl.use x", 106, "No VCL named x known\n", &[]);
    check("vcl.label l2 v1", 200, "", &["label l2 v1"]);
    check("vcl.label boot v1", 106, "boot is not a label", &[]);
    check("vcl.label l2 lab", 300, "VCL labels cannot point to labels", &[]);
    check("vcl.discard boot", 300, "Cannot discard active VCL program boot\n", &[]);
    check("vcl.discard v1", 300, "Cannot discard labeled VCL program v1:\n\tlab\n", &[]);
    check("vcl.discard lab", 300, "Cannot discard VCL label lab, other VCLs depend on it:\n\tv3\n", &[]);
    check("vcl.discard nosuch", 106, "No VCL name matches nosuch\n", &[]);
    check("vcl.discard v* lab v1", 200, "", &["discard v3", "discard lab", "discard v1"]);
    check("vcl.state v1 cold", 300, "A labeled VCL cannot be set cold", &[]);
    check("vcl.state v3 cold", 200, "", &["state v3 Cold"]);
    check("vcl.state lab cold", 106, "Labels are always warm", &[]);
    check("vcl.show", 200, "vcl 4.1;\n", &[]);
    check("vcl.show -x boot", 106, "Too many parameters\n", &[]);
    check("vcl.show x", 106, "No VCL named 'x'", &[]);
    let both = "// VCL.SHOW 0 9 /a.vcl\nvcl 4.1;\n\n// VCL.SHOW 1 9 <builtin>\nvcl 4.0;\n\n";
    check("vcl.show -v boot", 200, both, &[]);
    check("vcl.deps", 200, "boot\nv1\nlab    v1\nv3     lab\n", &[]);
    let list = "active      auto     warm         0    boot\n\
                available   auto     warm         0    v1      <-    (1 label)\n\
                available   label    warm         0    lab     ->    v1 (1 return(vcl))\n\
                available   auto     warm         0    v3\n";
    check("vcl.list", 200, list, &[]);
}

#[test]
fn bans_backends_and_parameters_are_translated() {
    check("ban req.url ~ /foo && obj.status == 200", 200, "", &["ban req.url ~ /foo && obj.status == 200"]);
    check("ban req.url", 104, "Too few parameters\n", &[]);
    check("ban req.url ~ a &&", 106, "Wrong number of arguments", &[]);
    check("ban.list", 200, "Present bans:\n1795385959.816643     0 -  req.url ~ /foo\n", &[]);
    let head = "Backend name   Admin      Probe    Health     Last change\n";
    let default = "boot.default   healthy    0/0      healthy    Sun, 22 Nov 2026 22:19:00 GMT\n";
    let b2 = "boot.b2        probe      0/8      sick       Sun, 22 Nov 2026 22:19:00 GMT\n";
    check("backend.list", 200, &format!("{head}{default}{b2}"), &[]);
    check("backend.list boot.d*", 200, &format!("{head}{default}"), &[]);
    check("backend.list nosuch", 200, "Backend name   Admin    Probe    Health    Last change\n", &[]);
    for flags in ["-pj", "-jp", "-p -j"] {
        let (status, text, _) = answered(&format!("backend.list {flags}"));
        assert!(status == "200" && text.contains("probe_details"), "{flags}: {text}");
    }
    check("backend.list -pq", 106, "Invalid flag q", &[]);
    check("backend.set_health b2 sick", 200, "", &["health boot b2 Sick"]);
    check("backend.set_health nosuch sick", 106, "No Backends matches", &[]);
    check("backend.set_health b2 foo", 106, "Invalid state foo", &[]);
    check("param.set default_ttl 77", 200, "", &["set default_ttl 77.000"]);
    check("param.set nosuch 1", 106, "Unknown parameter \"nosuch\".", &[]);
    let wrong = "Invalid number (xyz)\n\n(attempting to set param 'default_ttl' to 'xyz')";
    check("param.set default_ttl xyz", 106, wrong, &[]);
    check("param.show changed", 200, "", &[]);
    check("param.show nosuch", 106, "Unknown parameter \"nosuch\".", &[]);
}

#[test]
fn whoever_does_not_know_the_secret_is_told_nothing() {
    let (said, ended, done) = say(b"vcl.list\nstop\nauth abc\nstop\n", Some("foo\n"));
    assert!(said.starts_with(&format!("107 59      \n{CHALLENGE}\n\nAuthentication required.\n\n")), "{said}");
    assert_eq!(said.matches("101 44      \n").count(), 2, "{said}");
    assert!(said.ends_with("500 0       \n\n"), "{said}");
    assert_eq!((ended, done.len()), (Ended::Refused, 0));
}

#[test]
fn whoever_shows_it_may_ask() {
    let secret = Secret::new(b"foo\n".to_vec());
    // The right digest, found with the front's own arithmetic, which the manual's example holds to the truth.
    let right = secret.shown_for_tests(CHALLENGE);
    let (said, ended, done) = say(format!("auth {right}\nstop\nquit\n").as_bytes(), Some("foo\n"));
    assert!(said.ends_with("500 22      \nClosing CLI connection\n"), "{said}");
    assert_eq!((ended, done), (Ended::Closed, vec!["stop".to_owned()]));
}

#[test]
fn garbage_ends_where_the_limit_is() {
    let (said, ended, _) = say(&vec![b'a'; STRANGER_LINE_BYTES_MAX * 4], Some("foo\n"));
    assert!(said.contains("The line is longer than"), "{said}");
    assert_eq!(ended, Ended::Refused);
    let (said, ended, done) = say(b"\xff\xfe\n\xff\n", Some("foo\n"));
    assert_eq!(said.matches("101 44").count(), 2, "{said}");
    assert_eq!((ended, done.len()), (Ended::Closed, 0));
}

/// With `-S none` a ClientHello would be obeyed where its bytes make a line.
#[test]
fn tls_is_sent_away_before_a_line_of_it_is_obeyed() {
    for secret in [None, Some("foo\n")] {
        for bytes in [&b"\x16\x03\x01\x02\x00\nstop\n"[..], b"\x16", b"ping\x00\nstop\n"] {
            let (said, ended, done) = say(bytes, secret);
            assert!(said.contains("This port reads lines of text, and no TLS."), "{said}");
            assert_eq!((ended, done.len()), (Ended::Refused, 0));
        }
    }
}

#[test]
fn a_browser_is_sent_away_before_its_body_is_read() {
    for secret in [None, Some("foo\n")] {
        let (said, ended, done) = say(b"POST / HTTP/1.1\r\nHost: a\r\n\r\nstop\n", secret);
        assert!(said.ends_with("500 23      \nThis is no web server.\n\n"), "{said}");
        assert_eq!((ended, done.len()), (Ended::Refused, 0));
    }
}
