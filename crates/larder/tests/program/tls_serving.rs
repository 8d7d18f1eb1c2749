//! TLS to clients: who is served, how certificates change, and what becomes of those who do not speak it. curl, openssl and rustls's
//! own streams judge.

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::process::Command;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
    use std::time::Duration;

    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};
    use rustls::{ClientConfig, HandshakeKind, RootCertStore};

    use crate::peer_process::wait_for;
    use crate::tls_site::{NAME, TlsSite, answer, ask, connect, pattern, write_certificate};

    fn curl(site: &TlsSite, words: &[&str]) -> (String, bool) {
        let at = format!("{NAME}:{}:127.0.0.1", site.tls.port());
        let authority = site.directory.join("site.pem");
        let mut command = Command::new("curl");
        command.args(["-sS", "--max-time", "20", "--resolve", &at, "--cacert"]).arg(authority).args(words);
        let output = command.output().expect("curl is installed");
        let text = [output.stdout, output.stderr].concat();
        (String::from_utf8_lossy(&text).into_owned(), output.status.success())
    }

    #[test]
    fn curl_is_served_by_both_versions_and_from_the_store() {
        let site = TlsSite::start("", "");
        let url = format!("https://{NAME}:{}/bytes/6221", site.tls.port());
        let body = site.directory.join("body");
        for (version, status) in [("--tls-max=1.2", "fwd=uri-miss; stored"), ("--tlsv1.3", "hit; ttl=")] {
            let version: Vec<&str> = version.split('=').collect();
            let words = [&version[..], &["-o", body.to_str().unwrap(), "-D", "-", &url]].concat();
            let (head, is_good) = curl(&site, &words);
            assert!(is_good && head.contains(status), "{version:?}: {head}");
            assert!(std::fs::read(&body).unwrap() == pattern(6221), "{version:?}");
        }
        assert_eq!(site.metric("larder_tls_handshakes_total"), 2);
    }

    #[test]
    fn the_least_version_is_kept() {
        let site = TlsSite::start("min_version = \"1.3\"\nciphers = \"TLS_CHACHA20_POLY1305_SHA256\"", "");
        let url = format!("https://{NAME}:{}/bytes/1", site.tls.port());
        let (text, is_good) = curl(&site, &["--tls-max", "1.2", &url]);
        assert!(!is_good && text.contains("protocol version"), "{text}");
        let (text, is_good) = curl(&site, &["-v", "-o", "/dev/null", &url]);
        assert!(is_good && text.contains("TLS_CHACHA20_POLY1305_SHA256"), "{text}");
        assert_eq!(site.metric("larder_tls_failed_nothing_in_common_total"), 1);
    }

    /// OpenSSL names AES-256 first, whose keys cost most to make; a client that names ChaCha20 first has no instructions for AES.
    #[test]
    fn the_suite_is_the_cheapest_for_both_sides() {
        let site = TlsSite::start("", "");
        let url = format!("https://{NAME}:{}/bytes/1", site.tls.port());
        let (aes_256, aes_128, chacha20) =
            ("TLS_AES_256_GCM_SHA384", "TLS_AES_128_GCM_SHA256", "TLS_CHACHA20_POLY1305_SHA256");
        for (named, chosen) in [
            (&[aes_256, chacha20, aes_128][..], aes_128),
            (&[chacha20, aes_256, aes_128], chacha20),
            (&[aes_256, chacha20], aes_256),
        ] {
            let words = ["-v", "--tlsv1.3", "--tls13-ciphers", &named.join(":"), "-o", "/dev/null", &url];
            let (text, is_good) = curl(&site, &words);
            assert!(is_good && text.contains(&format!("TLSv1.3 / {chosen}")), "{named:?}: {text}");
        }
        let words = ["-v", "--tls-max", "1.2", "-o", "/dev/null", &url];
        let (text, is_good) = curl(&site, &words);
        assert!(is_good && text.contains("TLSv1.2 / ECDHE-ECDSA-AES128-GCM-SHA256"), "{text}");
    }

    #[test]
    fn a_crash_leaves_no_keys_on_a_disk_unless_the_operator_wants_it() {
        let of_cores = |limits: &str| {
            let line = limits.lines().find(|line| line.starts_with("Max core file size")).map(str::to_owned);
            line.expect("the kernel says it").split_whitespace().skip(4).map(str::to_owned).collect::<Vec<_>>()
        };
        let of_start = of_cores(&std::fs::read_to_string("/proc/self/limits").unwrap());
        let mut site = TlsSite::start("", "");
        let none = if of_start[1] == "0" { "0" } else { "1" };
        assert_eq!(of_cores(&site.kernel_says("limits"))[..2], [none, &of_start[1]]);
        site.rewrite(|config| format!("core_dumps = true\n{config}"));
        site.signal("HUP");
        wait_for("they are allowed", || of_cores(&site.kernel_says("limits")) == of_start);
        site.rewrite(|config| config.replace("core_dumps = true\n", ""));
        site.signal("HUP");
        wait_for("they are not", || of_cores(&site.kernel_says("limits"))[0] == none);
    }

    #[test]
    fn the_name_that_is_asked_for_chooses_the_certificate() {
        let other = "other.test";
        let site = TlsSite::start("", "");
        write_certificate(&site.directory, "other", other);
        let both = |end: &str| format!("[\"{0}/site.{end}\", \"{0}/other.{end}\"]", site.directory.display());
        let config = std::fs::read_to_string(site.directory.join("larder.toml")).unwrap();
        let lines = config.lines().map(|line| match line.split_once(" = ") {
            Some(("cert", _)) => format!("cert = {}\n", both("pem")),
            Some(("key", _)) => format!("key = {}\n", both("key")),
            _ => format!("{line}\n"),
        });
        std::fs::write(site.directory.join("larder.toml"), lines.collect::<String>()).unwrap();
        site.signal("HUP");
        site.wait_for_word("reloaded");
        for (asked, shown) in [(NAME, NAME), (other, other), ("third.test", NAME)] {
            let mut client = Command::new("openssl");
            client.args(["s_client", "-connect", &site.tls.to_string(), "-servername", asked]);
            let output = client.stdin(std::process::Stdio::null()).output().expect("openssl is installed");
            let file = if shown == NAME { "site.pem" } else { "other.pem" };
            let text = String::from_utf8_lossy(&output.stdout).replace("\r\n", "\n");
            let certificate = std::fs::read_to_string(site.directory.join(file)).unwrap().replace("\r\n", "\n");
            assert!(text.contains(certificate.trim()), "{asked}: {text}");
        }
    }

    #[test]
    fn long_bodies_arrive_whole_both_ways_whatever_the_pace() {
        let site = TlsSite::start("", "");
        let mut client = site.connect(&site.trusts("site.pem")).unwrap();
        for (length, times) in [(0, 2), (16_384, 2), (16_385, 2), (123_784, 3), (20 << 20, 2)] {
            for _ in 0..times {
                let (_, body) = ask(&mut client, &format!("/bytes/{length}")).unwrap();
                assert!(body == pattern(length), "{length}");
            }
        }
        let sent = pattern(3 << 20);
        write!(client, "POST /echo HTTP/1.1\r\nHost: {NAME}\r\nContent-Length: {}\r\n\r\n", sent.len()).unwrap();
        client.write_all(&sent).unwrap();
        assert!(answer(&mut client).unwrap().1 == sent);
        // A reader that takes a little at a time, of what is stored by now.
        write!(client, "GET /bytes/{} HTTP/1.1\r\nHost: {NAME}\r\n\r\n", 20 << 20).unwrap();
        std::thread::sleep(Duration::from_millis(300));
        assert!(answer(&mut client).unwrap().1 == pattern(20 << 20));
    }

    #[test]
    fn requests_in_one_record_are_answered_in_their_order() {
        let site = TlsSite::start("", "");
        let mut client = site.connect(&site.trusts("site.pem")).unwrap();
        let lengths = [1, 6221, 1, 300_000, 6221];
        for _ in 0..2 {
            let asked: String =
                lengths.iter().map(|length| format!("GET /bytes/{length} HTTP/1.1\r\nHost: {NAME}\r\n\r\n")).collect();
            client.write_all(asked.as_bytes()).unwrap();
            for length in lengths {
                assert!(answer(&mut client).unwrap().1 == pattern(length), "{length}");
            }
        }
    }

    /// RFC 8446 §6.1: who gets no close_notify has to take what came for a part.
    #[test]
    fn the_end_of_an_answer_is_said_and_that_of_a_part_is_not() {
        let site = TlsSite::start("", "");
        let config = site.trusts("site.pem");
        for (path, is_whole) in [("/bytes/5", true), ("/cut", false)] {
            let mut client = site.connect(&config).unwrap();
            write!(client, "GET {path} HTTP/1.0\r\nHost: {NAME}\r\n\r\n").unwrap();
            let mut text = Vec::new();
            let read = client.read_to_end(&mut text);
            assert_eq!(read.is_ok(), is_whole, "{path}: {read:?} {}", String::from_utf8_lossy(&text));
        }
    }

    #[test]
    fn who_speaks_http_is_told_so_and_nothing_else() {
        let site = TlsSite::start("", "");
        let mut client = TcpStream::connect(site.tls).unwrap();
        client.write_all(b"GET / HTTP/1.1\r\nHost: site.test\r\n\r\n").unwrap();
        let mut text = String::new();
        let _ = client.read_to_string(&mut text);
        assert!(text.starts_with("HTTP/1.1 400 ") && text.contains("https://"), "{text}");
        wait_for("it is counted", || site.metric("larder_tls_failed_not_tls_total") == 1);
    }

    #[test]
    fn that_a_certificate_ends_soon_is_said_wherever_an_operator_looks() {
        let site = TlsSite::start("", "");
        let until_s = proxy::wall_now_ms() / 1_000 + 3 * 86_400;
        let mut params = rcgen::CertificateParams::new(vec![NAME.to_owned()]).unwrap();
        params.not_after = rcgen::date_time_ymd(1970, 1, 1) + Duration::from_secs(until_s);
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap().pem();
        for (file, text) in [("site.key", key.serialize_pem()), ("site.pem", certificate)] {
            std::fs::write(site.directory.join("fresh"), text).unwrap();
            std::fs::rename(site.directory.join("fresh"), site.directory.join(file)).unwrap();
        }
        site.wait_for_word("warning: the certificate for site.test ends in 2 days (");
        let labels = format!("{{listener=\"{}\",name=\"{NAME}\"}}", site.tls);
        assert_eq!(site.metric(&format!("larder_tls_certificate_expires_timestamp_seconds{labels}")), until_s);
    }

    #[test]
    fn certificates_that_change_are_shown_without_a_failed_handshake_and_broken_ones_are_not() {
        // So many that the run of all tests stays short; by hand as many as are asked for.
        let rounds = std::env::var("LARDER_TEST_RELOADS").map_or(12, |rounds| rounds.parse().expect("a number"));
        let site = TlsSite::start("", "");
        let (is_over, handshakes) = (AtomicBool::new(false), AtomicU32::new(0));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while !is_over.load(Ordering::Relaxed) {
                        let mut client = connect(site.tls, &anybody()).expect("every handshake comes about");
                        assert!(ask(&mut client, "/bytes/6221").unwrap().1 == pattern(6221));
                        handshakes.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            for round in 0..rounds {
                write_certificate(&site.directory, "site", NAME);
                if round % 2 == 0 {
                    site.signal("HUP");
                }
                let renewed = site.trusts("site.pem");
                wait_for("the renewed certificate is shown", || site.connect(&renewed).is_ok());
            }
            is_over.store(true, Ordering::Relaxed);
        });
        assert!(handshakes.load(Ordering::Relaxed) > rounds);
        println!("{rounds} reloads, {handshakes:?} handshakes");

        let good = site.trusts("site.pem");
        std::fs::write(site.directory.join("site.key"), "no key").unwrap();
        site.wait_for_word("the old ones stay");
        site.signal("HUP");
        site.wait_for_word("the new config is refused");
        assert!(ask(&mut site.connect(&good).unwrap(), "/bytes/1").is_ok());
    }

    /// A client that takes any certificate, as no browser would.
    fn anybody() -> Arc<ClientConfig> {
        use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
        use rustls::crypto::aws_lc_rs::default_provider;
        use rustls::pki_types::{ServerName, UnixTime};
        use rustls::{DigitallySignedStruct, Error, SignatureScheme};

        #[derive(Debug)]
        struct Anybody;
        impl ServerCertVerifier for Anybody {
            fn verify_server_cert(
                &self,
                _: &CertificateDer<'_>,
                _: &[CertificateDer<'_>],
                _: &ServerName<'_>,
                _: &[u8],
                _: UnixTime,
            ) -> Result<ServerCertVerified, Error> {
                Ok(ServerCertVerified::assertion())
            }
            fn verify_tls12_signature(
                &self,
                _: &[u8],
                _: &CertificateDer<'_>,
                _: &DigitallySignedStruct,
            ) -> Result<HandshakeSignatureValid, Error> {
                Ok(HandshakeSignatureValid::assertion())
            }
            fn verify_tls13_signature(
                &self,
                _: &[u8],
                _: &CertificateDer<'_>,
                _: &DigitallySignedStruct,
            ) -> Result<HandshakeSignatureValid, Error> {
                Ok(HandshakeSignatureValid::assertion())
            }
            fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
                default_provider().signature_verification_algorithms.supported_schemes()
            }
        }
        let builder = ClientConfig::builder().dangerous().with_custom_certificate_verifier(Arc::new(Anybody));
        Arc::new(builder.with_no_client_auth())
    }

    #[test]
    fn sessions_are_resumed_across_workers_a_reload_a_restart_and_processes_with_one_secret() {
        const TIMES: u32 = 40;
        let secret = std::env::temp_dir().join(format!("larder-secret-{}", std::process::id()));
        std::fs::write(&secret, [7; 48]).unwrap();
        let mut site = TlsSite::start(&format!("ticket_secret = \"{}\"", secret.display()), "");
        let config = site.trusts("site.pem");
        let full = |site: &TlsSite| {
            let mut client = connect(site.tls, &config).unwrap();
            // The tickets come with the answer.
            ask(&mut client, "/bytes/1").unwrap();
            client.conn.handshake_kind() != Some(HandshakeKind::Resumed)
        };
        assert!(full(&site), "nobody knows the other yet");
        let mut anew: u32 = (0..TIMES).map(|_| u32::from(full(&site))).sum();
        site.signal("HUP");
        site.wait_for_word("reloaded");
        anew += (0..TIMES).map(|_| u32::from(full(&site))).sum::<u32>();
        assert_eq!(site.metric("larder_tls_resumed_total"), u64::from(2 * TIMES));
        site.run();
        let other = TlsSite::start(&format!("ticket_secret = \"{}\"", secret.display()), "");
        // To and fro between two processes, of which neither has seen the client begin.
        anew += (0..TIMES).map(|_| u32::from(full(&other)) + u32::from(full(&site))).sum::<u32>();
        assert_eq!(anew, 0, "of {}", 4 * TIMES);
        assert_eq!(site.metric("larder_tls_resumed_total"), u64::from(TIMES));
        assert_eq!(other.metric("larder_tls_resumed_total"), u64::from(TIMES));
        std::fs::remove_file(&secret).unwrap();
    }

    #[test]
    fn a_client_without_a_certificate_stays_outside_where_one_is_required() {
        let directory = std::env::temp_dir();
        let name = format!("larder-client-{}", std::process::id());
        write_certificate(&directory, &name, "client.test");
        let file = |end: &str| directory.join(format!("{name}.{end}"));
        let site = TlsSite::start(&format!("client_ca = \"{}\"", file("pem").display()), "");
        let nobody = site.connect(&site.trusts("site.pem")).and_then(|mut client| ask(&mut client, "/bytes/1"));
        assert!(nobody.is_err());
        wait_for("it is counted", || site.metric("larder_tls_failed_client_certificate_total") == 1);

        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(site.directory.join("site.pem")).unwrap()).unwrap();
        let chain = vec![CertificateDer::from_pem_file(file("pem")).unwrap()];
        let key = PrivateKeyDer::from_pem_file(file("key")).unwrap();
        let config = ClientConfig::builder().with_root_certificates(roots).with_client_auth_cert(chain, key).unwrap();
        let known = site.connect(&Arc::new(config)).and_then(|mut client| ask(&mut client, "/bytes/1"));
        assert!(known.is_ok(), "{known:?}");
        for end in ["pem", "key"] {
            std::fs::remove_file(file(end)).unwrap();
        }
    }

    #[test]
    fn clients_that_do_not_end_their_handshake_are_let_go_and_in_nobodys_way() {
        const SILENT: usize = 1_000;
        let site = TlsSite::start("", "[limits]\ntls_handshake_timeout = \"1s\"");
        let config = site.trusts("site.pem");
        // The head of a record that promises 500 bytes of a hello.
        let silent: Vec<TcpStream> = (0..SILENT)
            .map(|_| {
                let mut client = TcpStream::connect(site.tls).unwrap();
                client.write_all(b"\x16\x03\x01\x01\xf4\x01").unwrap();
                client
            })
            .collect();
        for _ in 0..20 {
            assert!(ask(&mut site.connect(&config).unwrap(), "/bytes/6221").unwrap().1 == pattern(6221));
        }
        wait_for("all are let go", || site.metric("larder_tls_failed_left_total") == SILENT as u64);
        for mut client in silent {
            let mut byte = [0];
            assert!(matches!(client.read(&mut byte), Ok(0) | Err(_)), "it is closed");
        }
    }
}
