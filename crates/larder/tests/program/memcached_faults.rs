//! The gateway before a memcached that answers badly, late or not at all, and a thousand clients that want one key.
//! Each test stands for a row of spec/bad-input/m.toml, but the last four, which are about load, and about routes that
//! share a memcached.

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpStream};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::time::Duration;

    use crate::fake_memcached::{Deed, FakeMemcached};

    use crate::peer_process::wait_for;
    use crate::recording_origin::RecordingOrigin;
    use crate::subject::{Kind, Setup, Subject};

    const PATIENCE_MS: u64 = 10_000;

    /// larder before this memcached; further lines for its route.
    fn start(memcached: SocketAddr, lines: &str) -> Subject {
        start_with(memcached, lines, None)
    }

    fn start_with(memcached: SocketAddr, lines: &str, workers: Option<u32>) -> Subject {
        let extra = format!(
            "[[route]]\npath = \"/fake\"\nmemcached = \"{memcached}\"\ncommands = [\"get\", \"set\"]\n{lines}\n"
        );
        let origin = RecordingOrigin::start();
        Subject::start(Kind::Larder, origin.address(), &Setup { extra, workers, ..Setup::default() })
    }

    /// Head and body of the answer to a request on a connection of its own.
    fn ask(address: SocketAddr, method: &str, path: &str, body: &[u8]) -> (String, Vec<u8>) {
        let mut stream = TcpStream::connect(address).expect("larder listens");
        stream.set_read_timeout(Some(Duration::from_millis(PATIENCE_MS))).expect("a timeout can be set");
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: t.test\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n"
        );
        stream.write_all(&[head.as_bytes(), body].concat()).expect("larder reads");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("an answer in time");
        let at = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("an answer has a head");
        (String::from_utf8_lossy(&answer[..at]).into_owned(), answer[at + 4..].to_vec())
    }

    fn status(head: &str) -> u16 {
        head.split(' ').nth(1).and_then(|digits| digits.parse().ok()).unwrap_or(0)
    }

    /// What answers `mg fake f c t v k` and is no reply to it.
    const BAD_REPLIES: [&str; 20] = [
        // Longer and shorter than announced, without an end, of another key, twice.
        "VA 3 f0 c1 t-1 kKEY\r\nabcd\r\n",
        "VA 3 f0 c1 t-1 kKEY\r\nab\r\nEN\r\n",
        "VA 3 f0 c1 t-1 kKEY\r\nabcEN\r\n",
        "VA 3 f0 c1 t-1 kother\r\nabc\r\n",
        "VA 3 f0 c1 t-1\r\nabc\r\n",
        "EN kother\r\n",
        // Numbers that are none.
        "VA 99999999999999999999 f0 c1 t-1 kKEY\r\n",
        "VA 18446744073709551615 f0 c1 t-1 kKEY\r\n",
        "VA 2000000 f0 c1 t-1 kKEY\r\n",
        "VA -1 f0 c1 t-1 kKEY\r\n",
        "VA 3 f-1 c1 t-1 kKEY\r\nabc\r\n",
        "VA 3 f4294967296 c1 t-1 kKEY\r\nabc\r\n",
        "VA 3 f0 cx t-1 kKEY\r\nabc\r\n",
        "VA 3 f0 c1 t-1 kKEY f0\r\nabc\r\n",
        // Replies to something else, and no replies at all.
        "VALUE KEY 0 3\r\nabc\r\nEND\r\n",
        "STORED\r\n",
        "EN\n",
        "\r\n",
        "HTTP/1.1 400 Bad Request\r\n\r\n",
        "\u{1}\u{2}\u{3}\r\n",
    ];

    /// M04 to M06, with each reply cut at every byte.
    #[test]
    fn what_is_no_reply_is_a_502_and_ends_its_connection() {
        let fake = FakeMemcached::start(|line| {
            let key = line.split(' ').nth(1).unwrap_or_default();
            let (which, cut) = key.split_once('-').unwrap_or(("0", "0"));
            let (which, cut): (usize, usize) = (which.parse().unwrap_or(0), cut.parse().unwrap_or(0));
            let text = BAD_REPLIES[which].replace("KEY", key).into_bytes();
            let (first, second) = text.split_at(cut.min(text.len()));
            Deed::SayLast(vec![first.to_vec(), second.to_vec()])
        });
        let mut subject = start(fake.address, "ejection_failures = 1000000\nnext_server = \"off\"\n");
        let mut asked = 0;
        for (which, text) in BAD_REPLIES.iter().enumerate() {
            for cut in 0..text.len() {
                let (head, _) = ask(subject.address, "GET", &format!("/fake/{which}-{cut}"), b"");
                assert_eq!(status(&head), 502, "{text:?} cut at {cut}: {head}");
                asked += 1;
            }
        }
        wait_for("all connections ended", || fake.ended_count() == asked);
        assert_eq!(fake.connections_count(), asked, "no connection was used again");
        assert!(subject.is_alive());
    }

    /// M07
    #[test]
    fn a_late_reply_is_nobodys() {
        let may_speak = Arc::new(AtomicBool::new(false));
        let tongue = Arc::clone(&may_speak);
        let fake = FakeMemcached::start(move |line| match line.starts_with("mg slow ") {
            true => {
                wait_for("the client was told", || tongue.load(Ordering::SeqCst));
                Deed::SayLast(vec![b"VA 4 f0 c1 t-1 kquick\r\nlate\r\n".to_vec()])
            }
            false => Deed::Say(vec![b"VA 4 f0 c1 t-1 kquick\r\ntrue\r\n".to_vec()]),
        });
        let lines = "ejection_failures = 1000000\nreply_timeout = \"100ms\"\n";
        let subject = start(fake.address, lines);
        let (head, _) = ask(subject.address, "GET", "/fake/slow", b"");
        assert_eq!(status(&head), 504, "{head}");
        may_speak.store(true, Ordering::SeqCst);
        for _ in 0..100 {
            let (head, body) = ask(subject.address, "GET", "/fake/quick", b"");
            assert_eq!((status(&head), &body[..]), (200, &b"true"[..]));
        }
        assert_eq!(fake.lines().iter().filter(|line| line.starts_with("mg slow")).count(), 1);
    }

    /// M08
    #[test]
    fn a_forged_head_is_a_body() {
        const FORGED: &[u8] = b"HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\nContent-Length: 0\r\n\r\nHTTP/1.1 403 No\r\n\r\n";
        let fake = FakeMemcached::start(|_| {
            let line = format!("VA {} f0 c1 t-1 kk\r\n", FORGED.len());
            Deed::Say(vec![[line.as_bytes(), FORGED, b"\r\n"].concat()])
        });
        let subject = start(fake.address, "");
        let (head, body) = ask(subject.address, "GET", "/fake/k", b"");
        assert_eq!((status(&head), &body[..]), (200, FORGED));
        assert!(!head.contains("Set-Cookie"), "{head}");
    }

    /// M09
    #[test]
    fn a_value_that_is_too_large_is_neither_taken_nor_reserved() {
        let fake = FakeMemcached::start(|_| Deed::SayLast(vec![b"VA 1048577 f0 c1 t-1 kk\r\n".to_vec()]));
        let mut subject = start(fake.address, "ejection_failures = 1000000\n");
        let before_kib = subject.process_number("VmRSS");
        for _ in 0..50 {
            let (head, _) = ask(subject.address, "GET", "/fake/k", b"");
            assert_eq!(status(&head), 502, "{head}");
        }
        let asked_before = fake.lines().len();
        let (head, _) = ask(subject.address, "PUT", "/fake/k", &vec![b'x'; (1 << 20) + 1]);
        assert_eq!(status(&head), 413, "{head}");
        assert_eq!(fake.lines().len(), asked_before, "it was not offered to memcached");
        let grown_kib = subject.process_number("VmRSS").saturating_sub(before_kib);
        assert!(grown_kib < 32 << 10, "{grown_kib} KiB for values that never came");
        assert!(subject.is_alive());
    }

    /// M09, in chunks: manifests that lie, and chunks that are not theirs. Nothing is reserved for what is only said.
    #[test]
    fn a_manifest_that_lies_is_no_value() {
        const CHUNK: &str = "VA 28 f0 c1 t-1 kKEY\r\n0123456789abcdef\0\0\0\0....four\r\n";
        let manifest = |value_bytes: u64, count: u32, chunk_bytes: u32| {
            format!("larder:chunks:1 {:032x} {value_bytes:016x} {count:08x} {chunk_bytes:08x} 00000000\n", 7)
        };
        // Name, manifest, what answers for a chunk, the status.
        let cases: [(&str, String, &str, u16); 6] = [
            ("huge", manifest(1 << 32, 256, 1 << 24), CHUNK, 502),
            ("absent", manifest(2_000, 2, 1_024), "EN\r\n", 404),
            ("another", manifest(4, 1, 1_024), CHUNK, 404),
            ("larger", manifest(4, 1, 1_024), "VA 9000000 f0 c1 t-1 kKEY\r\n", 502),
            ("endless", manifest(60 << 20, 8, 8 << 20), "VA 99999999999999999999 f0 c1 t-1 kKEY\r\n", 502),
            ("unnamed", manifest(4, 1, 1_024), "VA 28 f0 c1 t-1 kother\r\n", 502),
        ];
        let known = cases.clone();
        let asked_for = parking_lot::Mutex::new("");
        let fake = FakeMemcached::start(move |line| {
            let key = line.split(' ').nth(1).unwrap_or_default();
            if let Some((name, manifest, ..)) = known.iter().find(|(name, ..)| *name == key) {
                *asked_for.lock() = name;
                let text = format!("VA {} f0 c1 t-1 k{key}\r\n{manifest}\r\n", manifest.len());
                return Deed::Say(vec![text.into_bytes()]);
            }
            let case = known.iter().find(|(name, ..)| name == &*asked_for.lock()).expect("a manifest came before");
            Deed::Say(vec![case.2.replace("KEY", key).into_bytes()])
        });
        let lines = "ejection_failures = 1000000\nchunk_bytes = \"500KiB\"\nnext_server = \"off\"\n";
        let mut subject = start(fake.address, lines);
        let before_kib = subject.process_number("VmRSS");
        for (name, _, _, expect) in &cases {
            for _ in 0..10 {
                let (head, body) = ask(subject.address, "GET", &format!("/fake/{name}"), b"");
                let said = String::from_utf8_lossy(&body);
                assert_eq!(status(&head), *expect, "{name}: {head}");
                assert_eq!(said.contains("(chunk_bytes of the [[route]])"), *name == "larger", "{name}: {said}");
            }
        }
        let grown_kib = subject.process_number("VmRSS").saturating_sub(before_kib);
        assert!(grown_kib < 32 << 10, "{grown_kib} KiB for values that never came");
        assert!(subject.is_alive());
    }

    /// M06 for TLS: what answers a greeting with anything else is not spoken to, and nothing of a request was said to it.
    #[test]
    fn what_speaks_no_tls_is_told_nothing() {
        let fake = FakeMemcached::start(|_| Deed::SayLast(vec![b"VA 1 f0 c1 t-1 kk\r\nv\r\n".to_vec()]));
        let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
        let ca = folder.join(format!("ca-{}.pem", std::process::id()));
        let made = std::process::Command::new("openssl")
            .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"])
            .args(["-subj", "/CN=ca", "-keyout", "/dev/null", "-out"])
            .arg(&ca)
            .output()
            .expect("./setup installs openssl");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let subject =
            start(fake.address, &format!("tls = true\nca = \"{}\"\nconnect_timeout = \"2s\"\n", ca.display()));
        let (head, body) = ask(subject.address, "GET", "/fake/k", b"");
        let said = String::from_utf8_lossy(&body).into_owned();
        assert!(matches!(status(&head), 502 | 504) && !said.contains("v\n"), "{head} {said}");
        assert!(fake.lines().iter().all(|line| !line.contains("mg")), "{:?}", fake.lines());
        let _ = std::fs::remove_file(&ca);
    }

    /// M10: of many requests few try to connect, and the first that may finds that it is back.
    #[test]
    fn a_dead_memcached_is_left_alone() {
        let fake = FakeMemcached::start(|line| match line.starts_with("mg dead") {
            true => Deed::SayLast(vec![b"no reply\r\n".to_vec()]),
            false => Deed::Say(vec![b"VA 1 f0 c1 t-1 kk\r\nv\r\n".to_vec()]),
        });
        let subject = start(fake.address, "ejection_failures = 3\nejection_time = \"200ms\"\n");
        let tokens = |count: usize| {
            (0..count)
                .filter(|_| ask(subject.address, "GET", "/fake/dead", b"").0.contains("memcached-ejected"))
                .count()
        };
        assert!(tokens(100) >= 90, "it was asked all along");
        assert!(fake.connections_count() < 10, "{} connections", fake.connections_count());
        wait_for("it is asked again", || status(&ask(subject.address, "GET", "/fake/k", b"").0) == 200);
        assert_eq!(status(&ask(subject.address, "GET", "/fake/k", b"").0), 200);
    }

    /// A thousand clients want one key while its value is on its way: one command on the wire.
    #[test]
    fn a_thousand_gets_of_one_key_are_one_command() {
        const CLIENTS_COUNT: usize = 1_000;
        let may_speak = Arc::new(AtomicBool::new(false));
        let tongue = Arc::clone(&may_speak);
        let fake = FakeMemcached::start(move |_| {
            wait_for("all clients wait", || tongue.load(Ordering::SeqCst));
            Deed::Say(vec![b"VA 5 f0 c1 t-1 khot\r\nvalue\r\n".to_vec()])
        });
        let subject = start(fake.address, "reply_timeout = \"30s\"\n");
        let request = "GET /fake/hot HTTP/1.1\r\nHost: t.test\r\nConnection: close\r\n\r\n";
        let mut clients: Vec<TcpStream> = Vec::new();
        for _ in 0..CLIENTS_COUNT {
            let mut client = TcpStream::connect(subject.address).expect("larder listens");
            client.write_all(request.as_bytes()).expect("larder reads");
            clients.push(client);
        }
        let joined = || subject.metric("larder_memcached_coalesced_total").unwrap_or(0.0);
        wait_for("all of them wait", || joined() >= (CLIENTS_COUNT - 1) as f64);
        may_speak.store(true, Ordering::SeqCst);
        for mut client in clients {
            client.set_read_timeout(Some(Duration::from_millis(PATIENCE_MS))).expect("a timeout can be set");
            let mut answer = String::new();
            client.read_to_string(&mut answer).expect("an answer in time");
            assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("\r\n\r\nvalue"), "{answer}");
        }
        assert_eq!(fake.lines(), ["mg hot f c t v k"]);
    }

    /// A get is on its way on one connection when a change on another is answered: a get after that is asked anew.
    #[test]
    fn a_get_after_an_answered_change_is_not_given_what_was_read_before() {
        let may_speak = Arc::new(AtomicBool::new(false));
        let tongue = Arc::clone(&may_speak);
        let gets_count = AtomicUsize::new(0);
        let fake = FakeMemcached::start(move |line| {
            let value = |value: &str| Deed::Say(vec![format!("VA 3 f0 c1 t-1 kk\r\n{value}\r\n").into_bytes()]);
            match (line.starts_with("mg k "), gets_count.load(Ordering::SeqCst)) {
                (true, 0) => {
                    gets_count.store(1, Ordering::SeqCst);
                    wait_for("the second get was answered", || tongue.load(Ordering::SeqCst));
                    value("old")
                }
                (true, _) => value("new"),
                (false, _) => Deed::Say(vec![b"HD c2\r\n".to_vec()]),
            }
        });
        let lines = "value_bytes_max = \"8MiB\"\nreply_timeout = \"30s\"\n";
        let subject = start_with(fake.address, lines, Some(1));
        let address = subject.address;
        let reaches = |name: &str, count: f64| {
            wait_for("the command was begun", || subject.metric(name).unwrap_or(0.0) >= count);
        };
        std::thread::scope(|scope| {
            let first = scope.spawn(move || ask(address, "GET", "/fake/k", b""));
            reaches("larder_memcached_requests_total", 1.0);
            // So much waits to be sent on the first connection that the next command is given one of its own.
            let large = scope.spawn(move || ask(address, "PUT", "/fake/large", &vec![b'x'; 7 << 20]));
            reaches("larder_bytes_in_total", f64::from(7 << 20));
            assert_eq!(status(&ask(address, "PUT", "/fake/k", b"new").0), 204);
            assert_eq!(ask(address, "GET", "/fake/k", b"").1, b"new");
            assert_eq!(fake.connections_count(), 2);
            may_speak.store(true, Ordering::SeqCst);
            assert_eq!(first.join().expect("an answer").1, b"old");
            assert_eq!(status(&large.join().expect("an answer").0), 204);
        });
    }

    /// Two routes share a connection, on which a command waits behind another's value. It may go out later, whatever its
    /// client was told by then, so that no other server is asked to do the same.
    #[test]
    fn what_was_not_sent_in_time_is_done_nowhere_else() {
        let may_read = Arc::new(AtomicBool::new(false));
        let eyes = Arc::clone(&may_read);
        let say = |line: &str, name: &str| {
            let key = line.split(' ').nth(1).unwrap_or_default();
            let text = match line.split(' ').next() {
                Some("mg") => format!("VA {} f0 c1 t-1 k{key}\r\n{name}\r\n", name.len()),
                Some("ma") => "VA 1 c2\r\n2\r\n".to_owned(),
                _ => "HD c2\r\n".to_owned(),
            };
            Deed::Say(vec![text.into_bytes()])
        };
        let first = FakeMemcached::start(move |line| {
            if line.starts_with("ms large ") {
                wait_for("the hasty client was told", || eyes.load(Ordering::SeqCst));
            }
            say(line, "first")
        });
        let second = FakeMemcached::start(move |line| say(line, "second"));
        let terms = "max_connections = 1\nejection_failures = 1000000\n";
        let lines = format!(
            "{terms}reply_timeout = \"30s\"\nvalue_bytes_max = \"8MiB\"\n\
             [[route]]\npath = \"/hasty\"\nmemcached = [\"{}\", \"{}\"]\ncommands = [\"get\", \"incr\"]\n\
             {terms}reply_timeout = \"300ms\"\n",
            first.address, second.address
        );
        let subject = start_with(first.address, &lines, Some(1));
        let address = subject.address;
        let key = (0..1_000)
            .map(|number| format!("/hasty/{number}"))
            .find(|path| ask(address, "GET", path, b"").1 == b"first")
            .expect("each of two servers has keys");
        std::thread::scope(|scope| {
            // More than the kernel takes of it.
            let large = scope.spawn(move || ask(address, "PUT", "/fake/large", &vec![b'x'; 7 << 20]));
            let is_there = || first.lines().iter().any(|line| line.starts_with("ms large "));
            wait_for("the large value is on its way", is_there);
            let (head, _) = ask(address, "GET", &format!("{key}?cmd=incr"), b"");
            may_read.store(true, Ordering::SeqCst);
            assert_eq!(status(&head), 504, "{head}");
            wait_for("it went out later", || first.lines().iter().any(|line| line.starts_with("ma ")));
            assert!(!second.lines().iter().any(|line| line.starts_with("ma ")), "{:?}", second.lines());
            assert_eq!(status(&large.join().expect("an answer").0), 204);
        });
    }

    /// Two routes ask one memcached for one key at the same time: `/fake` with these lines, and a patient one that takes
    /// much. What the first is answered must be this, and the other gets the value.
    fn check_two_routes(lines: &str, paths: [&'static str; 2], expect: u16) {
        let may_speak = Arc::new(AtomicBool::new(false));
        let tongue = Arc::clone(&may_speak);
        let fake = FakeMemcached::start(move |_| {
            wait_for("both clients wait", || tongue.load(Ordering::SeqCst));
            let value = "v".repeat(2_000);
            Deed::Say(vec![format!("VA 2000 f0 c1 t-1 kk\r\n{value}\r\n").into_bytes()])
        });
        let lines = format!(
            "{lines}\n[[route]]\npath = \"/patient\"\nmemcached = \"{}\"\nreply_timeout = \"30s\"\n",
            fake.address
        );
        let subject = start_with(fake.address, &lines, Some(1));
        let address = subject.address;
        std::thread::scope(|scope| {
            let mut asked = Vec::new();
            for (path, count) in paths.into_iter().zip([1.0, 2.0]) {
                asked.push((path, scope.spawn(move || ask(address, "GET", path, b""))));
                let begun = || subject.metric("larder_memcached_requests_total").unwrap_or(0.0) >= count;
                wait_for("the get was begun", begun);
            }
            let at = asked.iter().position(|(path, _)| *path == "/fake/k").expect("one of the two");
            let (_, hasty) = asked.remove(at);
            // Who waits too long is told before anything is said.
            wait_for("the hasty client was told", || expect != 504 || hasty.is_finished());
            may_speak.store(true, Ordering::SeqCst);
            let (head, _) = hasty.join().expect("an answer");
            assert_eq!(status(&head), expect, "{paths:?}: {head}");
            let (_, patient) = asked.remove(0);
            let (head, body) = patient.join().expect("an answer");
            assert_eq!((status(&head), body.len()), (200, 2_000), "{paths:?}: {head}");
        });
        assert_eq!(subject.metric("larder_memcached_coalesced_total"), Some(0.0));
    }

    #[test]
    fn a_get_waits_as_long_and_takes_as_much_as_its_own_route_says() {
        check_two_routes("reply_timeout = \"300ms\"", ["/fake/k", "/patient/k"], 504);
        check_two_routes("reply_timeout = \"300ms\"", ["/patient/k", "/fake/k"], 504);
        check_two_routes("reply_timeout = \"30s\"\nvalue_bytes_max = 1000", ["/fake/k", "/patient/k"], 502);
    }
}
