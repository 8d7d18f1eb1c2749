//! An application over FastCGI behind the story: what it is asked, and what becomes of its answers.

use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::sync::mpsc::{Receiver, channel};

use super::scripts_beneath_a_root::{site, with_scripts};
use super::*;
use crate::clock::Moment;
use crate::settings::FastCgiSettings;
use crate::static_files::finding::tests::TestFolder;

/// A listening application. Each connection is asked once, and what it was asked is told.
struct Application {
    folder: TestFolder,
    asked: Receiver<String>,
}

fn record(kind: u8, content: &[u8]) -> Vec<u8> {
    let length = (content.len() as u16).to_be_bytes();
    [&[1, kind, 0, 1, length[0], length[1], 0, 0], content].concat()
}

/// A whole answer with this output.
fn output(text: &str) -> Vec<u8> {
    [record(6, text.as_bytes()), record(3, &[0; 8])].concat()
}

/// Reads records until the body has ended. Returns variables and body as text.
fn read_request(stream: &mut impl Read) -> Option<String> {
    let mut asked = String::new();
    loop {
        let mut head = [0; 8];
        stream.read_exact(&mut head).ok()?;
        let mut content = vec![0; usize::from(u16::from_be_bytes([head[4], head[5]]))];
        stream.read_exact(&mut content).ok()?;
        match (head[1], content.is_empty()) {
            (5, true) => return Some(asked),
            (4 | 5, _) => asked += &String::from_utf8_lossy(&content),
            _ => {}
        }
    }
}

impl Application {
    fn start(name: &str, answers: Vec<Vec<u8>>) -> Application {
        let folder = TestFolder::new(name);
        let listener = UnixListener::bind(folder.path("app.sock")).unwrap();
        let (tell, asked) = channel();
        std::thread::spawn(move || {
            for answer in answers {
                let Ok((mut stream, _)) = listener.accept() else { return };
                if let Some(text) = read_request(&mut stream) {
                    let _ = tell.send(text);
                    let _ = stream.write_all(&answer);
                }
            }
        });
        Application { folder, asked }
    }

    fn origin(&self, settings: &mut Settings) {
        settings.origins[0].urls = vec![OriginUrl::Unix(self.folder.path("app.sock"))];
        settings.origins[0].fastcgi =
            Some(FastCgiSettings { document_root: Some("/app".to_owned()), ..FastCgiSettings::default() });
    }

    fn was_asked(&self) -> String {
        self.asked.recv_timeout(Duration::from_secs(10)).expect("it is asked")
    }
}

#[test]
fn what_it_answers_is_stored_and_a_script_is_named_by_its_root() {
    let app = Application::start("fastcgi-stored", vec![output("Cache-Control: max-age=60\r\n\r\nmade")]);
    let folder = site("fastcgi-site");
    let story = with_scripts(&folder, |settings| app.origin(settings));
    let first = story.get("/admin/run.php/x", &[]);
    assert_eq!((first.status(), first.body(), first.verdict().0), (200, "made", CacheVerdict::Miss));
    let asked = app.was_asked();
    assert!(asked.contains("SCRIPT_FILENAME/app/admin/run.php") && asked.contains("PATH_INFO/x"), "{asked:?}");
    let again = story.get("/admin/run.php/x", &[]);
    assert_eq!((again.body(), again.verdict().0), ("made", CacheVerdict::Hit));
}

#[test]
fn what_is_stale_is_refreshed_by_its_own_script_though_nobody_asks() {
    let answers = ["old", "new"]
        .map(|body| output(&format!("Cache-Control: max-age=1, stale-while-revalidate=60\r\n\r\n{body}")));
    let app = Application::start("fastcgi-refreshed", answers.to_vec());
    let folder = site("fastcgi-refreshed-site");
    let story = with_scripts(&folder, |settings| app.origin(settings));
    assert_eq!(story.get("/some/page", &[]).body(), "old");
    app.was_asked();
    story.pass_seconds(5);
    assert_eq!(story.get("/some/page", &[]).body(), "old");
    let asked = app.was_asked();
    assert!(asked.contains("SCRIPT_NAME/index.php") && asked.contains("REMOTE_ADDR0.0.0.0"), "{asked:?}");
    assert_eq!(story.get("/some/page", &[]).body(), "new");
}

#[test]
fn a_body_without_a_length_is_read_first_and_not_too_much_of_it() {
    let app = Application::start("fastcgi-chunked", vec![output("\r\nthanks")]);
    let story = Story::with(|settings| {
        app.origin(settings);
        settings.limits.fastcgi_chunked_body_bytes_max = 8;
    });
    let head = "POST /form HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n";
    let posted = story.send(format!("{head}3\r\nabc\r\n5\r\ndefgh\r\n0\r\n\r\n").as_bytes());
    assert_eq!((posted.status(), posted.body()), (200, "thanks"));
    let asked = app.was_asked();
    assert!(asked.contains("CONTENT_LENGTH8") && asked.ends_with("abcdefgh"), "{asked:?}");
    assert!(asked.contains("SCRIPT_FILENAME/app/index.php"), "{asked:?}");
    let refused = story.send(format!("{head}9\r\nabcdefghi\r\n0\r\n\r\n").as_bytes());
    assert_eq!((refused.status(), refused.verdict().1), (413, "cgi-body-too-large"));
}

#[test]
fn a_client_that_waits_for_100_gets_it_at_once() {
    let app = Application::start("fastcgi-expect", vec![output("\r\nthanks"), output("\r\nthanks")]);
    let story = Story::with(|settings| app.origin(settings));
    for framing in ["Content-Length: 3\r\n\r\nabc", "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"] {
        let began = Moment::now();
        let text = format!("POST / HTTP/1.1\r\nHost: a.test\r\nExpect: 100-continue\r\n{framing}");
        assert_eq!(story.send(text.as_bytes()).body(), "thanks");
        assert!(app.was_asked().ends_with("abc"));
        assert!(began.micros_until(Moment::now()) < 900_000, "a 100 of an origin's was waited for");
    }
}

#[test]
fn an_application_that_has_too_much_to_do_is_asked_once_more_and_one_that_says_nothing_fails() {
    let overloaded = || record(3, &[0, 0, 0, 0, 2, 0, 0, 0]);
    let app =
        Application::start("fastcgi-overloaded", vec![overloaded(), output("\r\nfine"), overloaded(), overloaded()]);
    let story = Story::with(|settings| app.origin(settings));
    assert_eq!(story.get("/a", &[]).body(), "fine");
    let failed = story.get("/b", &[]);
    assert_eq!((failed.status(), failed.verdict().1), (502, "origin-refused-stream"));
    for (answer, token) in [(record(3, &[0; 8]), "cgi-head-missing"), (Vec::new(), "origin-closed")] {
        let app = Application::start(&format!("fastcgi-{token}"), vec![answer]);
        let story = Story::with(|settings| app.origin(settings));
        let reply = story.get("/", &[]);
        assert_eq!((reply.status(), reply.verdict().1), (502, token));
    }
}

#[test]
fn what_is_cut_or_longer_than_it_says_is_not_stored_as_whole() {
    let head = "Cache-Control: max-age=60\r\n";
    let cut = record(6, format!("{head}\r\nhalf").as_bytes());
    let short = output(&format!("{head}Content-Length: 9\r\n\r\nhalf"));
    let much = [
        record(6, format!("{head}Content-Length: 4\r\n\r\nhalf").as_bytes()),
        record(6, &[b'x'; 60_000]).repeat(2),
        output(""),
    ]
    .concat();
    for (name, answer) in [("cut", cut), ("short", short), ("much", much)] {
        let whole = output(&format!("{head}\r\nwhole"));
        let app = Application::start(&format!("fastcgi-{name}"), vec![answer, whole]);
        let story = Story::with(|settings| app.origin(settings));
        let first = story.get("/", &[]);
        assert!(first.status() == 502 || first.end() != End::Sent, "{name}: {} {}", first.status(), first.body());
        story.pass_seconds(2);
        assert_eq!(story.get("/", &[]).body(), "whole", "{name}");
    }
    let more = output(&format!("{head}Content-Length: 4\r\n\r\nfour\r\n\r\n"));
    let app = Application::start("fastcgi-more", vec![more]);
    let story = Story::with(|settings| app.origin(settings));
    for verdict in [CacheVerdict::Miss, CacheVerdict::Hit] {
        let reply = story.get("/", &[]);
        assert_eq!((reply.body(), reply.verdict().0), ("four", verdict));
    }
}
