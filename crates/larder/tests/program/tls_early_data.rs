//! Requests before the handshake is over (0-RTT, RFC 8446 §2.3, RFC 8470): openssl and rustls send them. What is stored answers, everything
//! else waits, and what is sent again by somebody else is nothing.

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::process::{Command, Stdio};
    use std::sync::Arc;
    use std::time::Duration;

    use rustls::pki_types::ServerName;
    use rustls::{ClientConfig, ClientConnection};

    use crate::peer_process::wait_for;
    use crate::tls_site::{NAME, TlsSite, ask, pattern};

    const EARLY: &str = "early_data = true";

    fn get(path: &str) -> Vec<u8> {
        format!("GET {path} HTTP/1.1\r\nHost: {NAME}\r\n\r\n").into_bytes()
    }

    /// A client that has been here, and may send early data.
    fn known(site: &TlsSite, protocols: &[&str]) -> Arc<ClientConfig> {
        let mut config = ClientConfig::clone(&site.trusts("site.pem"));
        config.enable_early_data = true;
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        let config = Arc::new(config);
        let mut client = site.connect(&config).unwrap();
        match protocols {
            ["h2"] => {
                // Its settings and tickets come by themselves.
                client.write_all(&http2(&[])).unwrap();
                client.read_exact(&mut [0; 9]).unwrap();
            }
            _ => drop(ask(&mut client, "/bytes/9").unwrap()),
        }
        config
    }

    /// The beginning of a connection of HTTP/2, and a GET for each path.
    fn http2(paths: &[&str]) -> Vec<u8> {
        let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec();
        for (at, path) in paths.iter().enumerate() {
            // GET, https, and two literals without indexing (RFC 7541 §6.2.2): :authority and :path.
            let mut block = vec![0x82, 0x87, 0x01, NAME.len() as u8];
            block.extend_from_slice(NAME.as_bytes());
            block.extend_from_slice(&[0x04, path.len() as u8]);
            block.extend_from_slice(path.as_bytes());
            bytes.extend_from_slice(&[0, 0, block.len() as u8, 1, 5, 0, 0, 0, 2 * at as u8 + 1]);
            bytes.extend_from_slice(&block);
        }
        bytes
    }

    /// A client that has sent its first flight with this text, and says nothing more until it is told to.
    struct Early {
        session: ClientConnection,
        stream: TcpStream,
        flight: Vec<u8>,
        text: Vec<u8>,
    }

    impl Early {
        fn sends(site: &TlsSite, config: &Arc<ClientConfig>, text: &[u8]) -> Early {
            let name = ServerName::try_from(NAME).unwrap();
            let mut session = ClientConnection::new(Arc::clone(config), name).unwrap();
            session.early_data().expect("it has a session").write_all(text).unwrap();
            let (mut flight, mut stream) = (Vec::new(), TcpStream::connect(site.tls).unwrap());
            while session.wants_write() {
                session.write_tls(&mut flight).unwrap();
            }
            stream.write_all(&flight).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            Early { session, stream, flight, text: Vec::new() }
        }

        /// Reads until this has come; it answers nothing.
        fn hears(&mut self, end: &[u8]) {
            while !self.text.windows(end.len()).any(|part| part == end) {
                self.hear();
            }
        }

        fn hear(&mut self) {
            assert!(self.session.read_tls(&mut self.stream).unwrap() > 0, "it is closed: {:?}", self.said());
            let state = self.session.process_new_packets().unwrap();
            let at = self.text.len();
            self.text.resize(at + state.plaintext_bytes_to_read(), 0);
            self.session.reader().read_exact(&mut self.text[at..]).unwrap();
        }

        fn hears_flight(&mut self) {
            while self.session.is_handshaking() {
                self.hear();
            }
        }

        /// Ends the handshake.
        fn ends(&mut self) {
            while self.session.wants_write() {
                self.session.write_tls(&mut self.stream).unwrap();
            }
        }

        fn said(&self) -> String {
            String::from_utf8_lossy(&self.text).into_owned()
        }
    }

    #[test]
    fn openssl_is_answered_by_what_is_stored() {
        let site = TlsSite::start(EARLY, "");
        let session = site.directory.join("session.pem").display().to_string();
        let request = site.directory.join("request");
        std::fs::write(&request, format!("GET /bytes/9 HTTP/1.1\r\nHost: {NAME}\r\nConnection: close\r\n\r\n"))
            .unwrap();
        let client = |words: &[&str]| {
            let mut command = Command::new("openssl");
            command.args(["s_client", "-connect", &site.tls.to_string(), "-servername", NAME, "-ign_eof"]).args(words);
            let asks = std::fs::File::open(&request).unwrap();
            let output = command.stdin(Stdio::from(asks)).stderr(Stdio::null()).output().expect("openssl is installed");
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        let first = client(&["-sess_out", &session]);
        assert!(first.contains("HTTP/1.1 200 OK") && first.contains("Max Early Data: 16384"), "{first}");
        let early = client(&["-sess_in", &session, "-early_data", request.to_str().unwrap()]);
        assert!(early.contains("Early data was accepted") && early.contains("; hit; ttl="), "{early}");
        assert_eq!(site.metric("larder_tls_early_total"), 1);
        // The same session again: it is gone.
        let again = client(&["-sess_in", &session, "-early_data", request.to_str().unwrap()]);
        assert!(again.contains("Early data was rejected") && again.contains("HTTP/1.1 200 OK"), "{again}");
        assert_eq!(site.metric("larder_tls_early_total"), 1);
    }

    #[test]
    fn who_does_not_allow_it_takes_none() {
        let site = TlsSite::start("", "");
        let name = ServerName::try_from(NAME).unwrap();
        let mut session = ClientConnection::new(known(&site, &[]), name).unwrap();
        assert!(session.early_data().is_none());
    }

    #[test]
    fn what_is_stored_answers_before_the_handshake_is_over_and_nothing_else_does() {
        let site = TlsSite::start(EARLY, "");
        let config = known(&site, &[]);
        let asked = || site.metric("larder_origin_requests_total");
        assert_eq!(asked(), 1);
        let mut hit = Early::sends(&site, &config, &get("/bytes/9"));
        hit.hears(&pattern(9));
        assert!(hit.session.is_early_data_accepted() && hit.said().contains("; hit; ttl="), "{}", hit.said());
        hit.ends();
        // Its connection goes on as any other.
        hit.session.writer().write_all(&get("/bytes/10")).unwrap();
        hit.ends();
        hit.hears(&pattern(10));

        let post = format!("POST /bytes/9 HTTP/1.1\r\nHost: {NAME}\r\nContent-Length: 1\r\n\r\na");
        let fresh = format!("GET /bytes/9 HTTP/1.1\r\nHost: {NAME}\r\nCache-Control: no-cache\r\n\r\n");
        for (text, asks_origin) in [
            (get("/bytes/11"), 1),
            (post.into_bytes(), 1),
            (fresh.into_bytes(), 1),
            (b"PURGE /bytes/9 HTTP/1.1\r\nHost: site.test\r\n\r\n".to_vec(), 0),
        ] {
            let (config, before) = (known(&site, &[]), asked());
            let mut client = Early::sends(&site, &config, &text);
            client.hears_flight();
            assert!(client.session.is_early_data_accepted());
            std::thread::sleep(Duration::from_millis(300));
            assert_eq!(asked(), before, "no origin hears of it: {}", String::from_utf8_lossy(&text));
            assert!(client.text.is_empty(), "{}", client.said());
            client.ends();
            client.hears(b"\r\n\r\n");
            assert!(client.said().starts_with("HTTP/1.1 200 ") && asked() == before + asks_origin, "{}", client.said());
        }
    }

    #[test]
    fn a_flight_that_is_sent_again_is_nothing() {
        let site = TlsSite::start(EARLY, "");
        for path in ["/bytes/9", "/bytes/12"] {
            let config = known(&site, &[]);
            let mut client = Early::sends(&site, &config, &get(path));
            client.hears_flight();
            client.ends();
            client.hears(&pattern(9)[..1]);
            let asked = site.metric("larder_origin_requests_total");
            let (requests, early) = (site.metric("larder_requests_total"), site.metric("larder_tls_early_total"));
            for _ in 0..3 {
                let mut thief = TcpStream::connect(site.tls).unwrap();
                thief.write_all(&client.flight).unwrap();
                thief.shutdown(std::net::Shutdown::Write).unwrap();
                let _ = thief.read_to_end(&mut Vec::new());
            }
            assert_eq!(site.metric("larder_tls_early_total"), early);
            assert_eq!(site.metric("larder_requests_total"), requests);
            assert_eq!(site.metric("larder_origin_requests_total"), asked);
        }
    }

    #[test]
    fn streams_are_answered_early_and_others_wait_beside_them() {
        let site = TlsSite::start(EARLY, "");
        drop(known(&site, &[]));
        let config = known(&site, &["h2"]);
        let asked = || site.metric("larder_origin_requests_total");
        let before = asked();
        let mut client = Early::sends(&site, &config, &http2(&["/bytes/13", "/bytes/9"]));
        client.hears(&pattern(9));
        std::thread::sleep(Duration::from_millis(300));
        assert_eq!(asked(), before, "the other one waits");
        client.ends();
        client.hears(&pattern(13));
        assert_eq!(asked(), before + 1);
    }

    #[test]
    fn under_a_program_everything_waits() {
        let vcl = std::env::temp_dir().join(format!("larder-early-{}.vcl", std::process::id()));
        let program = "vcl 4.1; backend default none; sub vcl_recv { return (synth(200)); } \
            sub vcl_synth { set resp.http.said = \"a\"; return (deliver); }";
        std::fs::write(&vcl, program).unwrap();
        let site = TlsSite::start(EARLY, &format!("[policy]\nvcl = \"{}\"", vcl.display()));
        let config = known(&site, &[]);
        let before = site.metric("larder_synths_total");
        let mut client = Early::sends(&site, &config, &get("/"));
        client.hears_flight();
        std::thread::sleep(Duration::from_millis(300));
        assert!(client.text.is_empty() && site.metric("larder_synths_total") == before, "{}", client.said());
        client.ends();
        client.hears(b"said: a\r\n");
        std::fs::remove_file(&vcl).unwrap();
    }

    #[test]
    fn who_never_ends_the_handshake_is_let_go() {
        let site = TlsSite::start(EARLY, "[limits]\ntls_handshake_timeout = \"1s\"");
        drop(known(&site, &[]));
        for (protocols, text) in [(&[][..], get("/bytes/14")), (&["h2"], http2(&["/bytes/14"]))] {
            let mut client = Early::sends(&site, &known(&site, protocols), &text);
            client.hears_flight();
            let mut rest = Vec::new();
            assert!(
                !matches!(client.stream.read_to_end(&mut rest), Err(why) if why.kind() == std::io::ErrorKind::WouldBlock)
            );
        }
        wait_for("all are gone", || site.metric("larder_connections_active") == 0);
        assert_eq!(site.metric("larder_origin_requests_total"), 1);
    }
}
