//! The forward proxy as a process: what the tables of spec/bad-input cannot say in one line. Name servers that lie, tunnels
//! and their ends, what error pages tell.

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
    use std::time::Duration;

    use crate::lane::now_ms;
    use crate::lying_name_server::LyingNameServer;
    use crate::peer_process::free_address;
    use crate::subject::{Kind, Setup, Subject, get};

    const PATIENCE: Duration = Duration::from_secs(10);

    /// A larder that leads to `origin` alone.
    fn proxy(origin: SocketAddr, setup: Setup) -> Subject {
        Subject::start(Kind::Larder, origin, &Setup { forward: true, ..setup })
    }

    fn connect(subject: &Subject) -> TcpStream {
        let stream = TcpStream::connect(subject.address).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket takes a timeout");
        stream
    }

    /// The whole answer to a GET of this URL.
    fn ask(subject: &Subject, url: &str) -> String {
        let mut stream = connect(subject);
        write!(stream, "GET {url} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").expect("it reads");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("it answers in time");
        String::from_utf8_lossy(&answer).into_owned()
    }

    fn check(subject: &Subject, url: &str, statuses: &[u16]) -> String {
        let answer = ask(subject, url);
        let fits = statuses.iter().any(|status| answer.starts_with(&format!("HTTP/1.1 {status} ")));
        assert!(fits, "{url}: {answer}");
        answer
    }

    /// Answers every request on every connection with the bytes `yes`, uncacheable.
    fn plain_origin() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback port is free");
        let address = listener.local_addr().expect("a bound listener has an address");
        std::thread::spawn(move || {
            for mut client in listener.incoming().flatten() {
                std::thread::spawn(move || {
                    let mut head = [0; 4096];
                    while client.read(&mut head).is_ok_and(|read| read > 0) {
                        let answer = b"HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 3\r\n\r\nyes";
                        if client.write_all(answer).is_err() {
                            return;
                        }
                    }
                });
            }
        });
        address
    }

    fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
        let deadline_ms = now_ms() + PATIENCE.as_millis() as u64;
        while !is_so() {
            assert!(now_ms() < deadline_ms, "{what}");
            std::thread::yield_now();
        }
    }

    /// L04: the name is looked up again when its answer ends, and what it stands for then is judged again.
    #[test]
    fn a_name_that_changes_its_mind_leads_nowhere_new() {
        let origin = plain_origin();
        let names = LyingNameServer::start();
        let extra = "[admin]\ndebug = true\n".to_owned();
        let subject = proxy(origin, Setup { name_server: Some(names.address), extra, ..Setup::default() });
        let url = format!("http://turn.test:{}/", origin.port());
        check(&subject, &url, &[200]);
        // The same machine by an address that is not open: the origin listens on all of them, so it would answer.
        for inside in [Ipv4Addr::new(127, 0, 0, 2), Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::UNSPECIFIED] {
            *names.turn.lock().unwrap() = inside;
            wait_for("the name is asked for again", || {
                let asked = names.asked.lock().unwrap().len();
                let admin = subject.admin.expect("it has one");
                let mut stream = TcpStream::connect(admin).expect("it listens");
                write!(stream, "POST /debug/advance?ms=2000 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                    .expect("it reads");
                let mut answer = String::new();
                stream.read_to_string(&mut answer).expect("it answers");
                assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
                let _ = ask(&subject, &url);
                names.asked.lock().unwrap().len() > asked
            });
            wait_for("what is not open is refused", || ask(&subject, &url).starts_with("HTTP/1.1 403 "));
        }
    }

    /// L11.
    #[test]
    fn name_servers_that_fail_are_answered_for() {
        let origin = plain_origin();
        let names = LyingNameServer::start();
        let limits = "connect_timeout = \"1s\"\n".to_owned();
        let mut subject = proxy(origin, Setup { name_server: Some(names.address), limits, ..Setup::default() });
        for name in ["servfail", "silent", "circle", "forged", "label", "pointer", "cut", "nobody"] {
            let answer = check(&subject, &format!("http://{name}.test/"), &[502, 504]);
            assert!(!answer.contains(&names.address.to_string()), "{answer}");
        }
        let answer = check(&subject, "http://many.test/", &[403]);
        assert!(answer.contains("forward.allow_destinations"), "{answer}");
        let label = "a".repeat(64);
        check(&subject, &format!("http://{label}.test/"), &[502]);
        check(&subject, &format!("http://{origin}/"), &[200]);
        assert!(subject.is_alive());
        assert_eq!(subject.metric("larder_panics_total"), Some(0.0));
    }

    /// L09: who asks is told the name that it asked for, and nothing else.
    #[test]
    fn error_pages_tell_no_addresses_and_no_credentials() {
        // Nobody listens there.
        let closed = free_address();
        let names = LyingNameServer::start();
        let subject = proxy(closed, Setup { name_server: Some(names.address), ..Setup::default() });
        let mut stream = connect(&subject);
        let url = format!("http://turn.test:{}/a?password=hunter2", closed.port());
        write!(
            stream,
            "GET {url} HTTP/1.1\r\nHost: x\r\nProxy-Authorization: Basic YW5uOnNlY3JldA==\r\nCookie: c=crumbs\r\n\
             Authorization: Bearer token\r\nConnection: close\r\n\r\n"
        )
        .expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
        for secret in ["127.0.0.1", "YW5u", "secret", "hunter2", "crumbs", "Bearer", "larder.toml"] {
            assert!(!answer.contains(secret), "{secret} in {answer}");
        }
    }

    /// L08: by the first look, by the second, and by none; what is not base64, and what is as long as a field may be.
    #[test]
    fn only_who_is_in_the_password_file_may_use_the_proxy() {
        let origin = plain_origin();
        // `htpasswd -nbB -C 4 ann secret`
        let users = "ann:$2y$04$5NSSZIpLDFpBBYhR/Sbade1CozX8FF/a1rpjazVCxqeWISC5WrWKC\n";
        let file = std::env::temp_dir().join(format!("larder-users-{}", std::process::id()));
        std::fs::write(&file, users).expect("the folder for such files can be written");
        let password_file = Some(file.clone());
        let mut subject = proxy(origin, Setup { password_file, ..Setup::default() });
        let status = |authorization: &str| {
            let mut stream = connect(&subject);
            write!(stream, "GET http://{origin}/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{authorization}\r\n")
                .expect("it reads");
            let mut answer = Vec::new();
            let _ = stream.read_to_end(&mut answer);
            String::from_utf8_lossy(answer.get(9..12).unwrap_or_default()).into_owned()
        };
        for _ in 0..3 {
            assert_eq!(status("Proxy-Authorization: Basic YW5uOnNlY3JldA==\r\n"), "200");
            assert_eq!(status("proxy-authorization: bASIC YW5uOnNlY3JldA==\r\n"), "200");
            for wrong in
                ["", "Basic YW5uOndyb25n", "Basic YW5uOg==", "Basic Og==", "Basic YW5u", "Basic ann:secret", "Basic"]
            {
                let field = if wrong.is_empty() { String::new() } else { format!("Proxy-Authorization: {wrong}\r\n") };
                assert_eq!(status(&field), "407", "{wrong}");
            }
            // A site's credentials are not the proxy's.
            assert_eq!(status("Authorization: Basic YW5uOnNlY3JldA==\r\n"), "407");
            assert_eq!(status(&format!("Proxy-Authorization: Basic {}\r\n", "QUFB".repeat(2_000))), "407");
        }
        std::fs::remove_file(&file).expect("it was written");
        assert!(subject.is_alive());
    }

    /// C14.8.
    #[test]
    fn a_request_over_its_share_is_refused_and_its_body_never_parsed() {
        let origin = plain_origin();
        let forward_lines = "client_requests_per_second_max = 1\n".to_owned();
        let subject = proxy(origin, Setup { forward_lines, ..Setup::default() });
        let body = format!("GET http://{origin}/smuggled HTTP/1.1\r\nHost: x\r\n\r\n");
        let first = format!("GET http://{origin}/ HTTP/1.1\r\nHost: x\r\n\r\n");
        let second =
            format!("POST http://{origin}/ HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        let deadline_ms = now_ms() + PATIENCE.as_millis() as u64;
        // Where a second has passed between the two, the other one was within its share.
        loop {
            assert!(now_ms() < deadline_ms, "never over the share");
            let mut stream = connect(&subject);
            stream.write_all(format!("{first}{second}").as_bytes()).expect("it reads");
            stream.shutdown(Shutdown::Write).expect("it is open");
            let mut answers = String::new();
            stream.read_to_string(&mut answers).expect("it answers");
            let statuses: Vec<&str> = answers.split("HTTP/1.1 ").skip(1).map(|answer| &answer[..3]).collect();
            if statuses.contains(&"429") {
                assert_eq!(statuses.len(), 2, "{answers}");
            }
            if statuses.last() == Some(&"429") {
                return;
            }
        }
    }

    /// A tunnel through the proxy, and its other end.
    fn tunnel(subject: &Subject, to: &TcpListener) -> (TcpStream, TcpStream) {
        let mut near = connect(subject);
        let address = to.local_addr().expect("it is bound");
        write!(near, "CONNECT {address} HTTP/1.1\r\nHost: {address}\r\n\r\n").expect("it reads");
        let (far, _) = to.accept().expect("it is connected to");
        far.set_read_timeout(Some(PATIENCE)).expect("a socket takes a timeout");
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            near.read_exact(&mut byte).expect("it answers");
            head.push(byte[0]);
        }
        assert!(head.starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(&head));
        (near, far)
    }

    /// L10: each side may end first, in good order or not, and both are freed; hundreds at once, each with its own bytes.
    #[test]
    fn tunnels_end_on_both_sides() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback port is free");
        let subject = proxy(listener.local_addr().expect("it is bound"), Setup::default());
        // The client has said all, and still gets its answer.
        let (mut near, mut far) = tunnel(&subject, &listener);
        near.write_all(b"question").expect("it reads");
        near.shutdown(Shutdown::Write).expect("it is open");
        let mut heard = String::new();
        far.read_to_string(&mut heard).expect("the end comes through");
        far.write_all(b"answer").expect("the other way is open");
        drop(far);
        let mut answer = String::new();
        near.read_to_string(&mut answer).expect("the end comes back");
        assert_eq!((heard.as_str(), answer.as_str()), ("question", "answer"));
        // The far side resets.
        let (mut near, far) = tunnel(&subject, &listener);
        let linger = socket2::SockRef::from(&far).set_linger(Some(Duration::ZERO));
        linger.expect("a socket can be told to reset");
        drop(far);
        let _ = near.read_to_end(&mut Vec::new());
        // Many.
        let mut tunnels: Vec<_> = (0..300).map(|_| tunnel(&subject, &listener)).collect();
        for (number, (near, _)) in tunnels.iter_mut().enumerate() {
            write!(near, "{number:06}").expect("it reads");
        }
        for (number, (_, far)) in tunnels.iter_mut().enumerate() {
            let mut heard = [0; 6];
            far.read_exact(&mut heard).expect("it comes through");
            assert_eq!(heard, format!("{number:06}").as_bytes());
        }
        // Counted now, when every worker has what it keeps: at the start one may still be making it.
        let at_most = subject.open_files_count();
        drop(tunnels);
        drop(near);
        wait_for("all files are closed", || subject.open_files_count() + 2 * 300 <= at_most + 2);
        let status = get(subject.admin.expect("it has one"), "/status").expect("it answers");
        assert!(status.contains("\"tunnels\":302,"), "{status}");
    }
}
