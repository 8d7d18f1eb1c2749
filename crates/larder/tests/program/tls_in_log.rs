//! What the access log says of the TLS by which a request came, in both of its formats, of handshakes by curl and rustls.

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::path::{Path, PathBuf};
    use std::process::Command;

    use serde_json::{Value, json};

    use crate::peer_process::wait_for;
    use crate::subject::get;
    use crate::tls_site::{NAME, TlsSite, answer, ask, write_certificate};

    struct Logged {
        site: TlsSite,
        folder: PathBuf,
        log: PathBuf,
        /// Of the client whose certificate an authority has signed.
        known: String,
    }

    impl Logged {
        fn start(name: &str, format: &str) -> Logged {
            let own = format!("log-{name}-{}", std::process::id());
            let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(own);
            std::fs::create_dir_all(&folder).unwrap();
            write_certificate(&folder, "ann", "ann.test");
            let (known, log) = (folder.join("ann").display().to_string(), folder.join("access.log"));
            let of_tls = format!("client_ca = \"{known}.pem\"\nclient_cert = \"optional\"");
            let others = format!(
                "[log]\npath = \"{}\"\nformat = \"{format}\"\n[[listen]]\naddress = \"127.0.0.1:0\"",
                log.display()
            );
            Logged { site: TlsSite::start(&of_tls, &others), folder, log, known }
        }

        fn curl(&self, path: &str, words: &[&str]) {
            let url = format!("https://{NAME}:{}{path}", self.site.tls.port());
            let at = format!("{NAME}:{}:127.0.0.1", self.site.tls.port());
            let mut command = Command::new("curl");
            command.args(["-sSk", "--max-time", "20", "-o", "/dev/null", "--resolve", &at, &url]).args(words);
            assert!(command.status().expect("curl is installed").success(), "{words:?}");
        }

        /// The line of the request for this path.
        fn line(&self, path: &str) -> String {
            let mut found = None;
            wait_for(path, || {
                let text = std::fs::read_to_string(&self.log).unwrap_or_default();
                found = text.lines().find(|line| line.contains(path)).map(str::to_owned);
                found.is_some()
            });
            found.expect("it was waited for")
        }

        fn tls(&self, path: &str) -> Value {
            let line: Value = serde_json::from_str(&self.line(path)).expect("a line is an object");
            line.get("tls").cloned().unwrap_or(Value::Null)
        }
    }

    impl Drop for Logged {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }

    #[test]
    fn a_line_says_by_which_session_its_request_came() {
        let logged = Logged::start("json", "json");
        let (pem, key) = (format!("{}.pem", logged.known), format!("{}.key", logged.known));
        let suite = "TLS_AES_128_GCM_SHA256";
        let modern = ["--tls13-ciphers", suite];
        // A miss, and what is answered at once; by streams, too.
        for path in ["/fields/a", "/fields/b"] {
            logged.curl(path, &[&modern[..], &["--http2", "--cert", &pem, "--key", &key]].concat());
            let expect = json!({ "version": "TLSv1.3", "suite": suite, "resumed": false, "alpn": "h2", "sni": NAME,
                "client_cert": "rcgen self signed cert" });
            assert_eq!(logged.tls(&format!("{path}\"")), expect);
        }
        let old = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384";
        logged.curl("/fields/old", &["--http1.1", "--tls-max", "1.2", "--ciphers", "ECDHE-ECDSA-AES256-GCM-SHA384"]);
        let expect = json!({ "version": "TLSv1.2", "suite": old, "resumed": false, "alpn": "http/1.1", "sni": NAME });
        assert_eq!(logged.tls("/fields/old"), expect);

        let config = logged.site.trusts("site.pem");
        for (path, is_resumed) in [("/fields/first", false), ("/fields/again", true)] {
            let mut client = logged.site.connect(&config).unwrap();
            for round in 0..2 {
                let path = format!("{path}{round}");
                // The second time it is a hit.
                (0..2).for_each(|_| drop(ask(&mut client, &path).unwrap()));
                let tls = logged.tls(&path);
                assert_eq!(
                    (&tls["resumed"], &tls["sni"], tls.get("alpn")),
                    (&is_resumed.into(), &NAME.into(), None),
                    "{path}"
                );
            }
            assert_eq!(logged.tls("\"verdict\":\"hit\"")["version"], "TLSv1.3");
        }
        let mut client = logged.site.connect(&config).unwrap();
        write!(client, "GET /refused HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n").unwrap();
        assert!(answer(&mut client).unwrap().0.starts_with("HTTP/1.1 400 "));
        assert_eq!(logged.tls("\"why\":\"host-")["version"], "TLSv1.3", "who is refused is told of, too");

        get(logged.site.second(), "/fields/clear").unwrap();
        assert_eq!(logged.tls("/fields/clear"), Value::Null);
    }

    #[test]
    fn the_combined_format_has_named_columns_for_it() {
        let logged = Logged::start("combined", "combined");
        let (pem, key) = (format!("{}.pem", logged.known), format!("{}.key", logged.known));
        let suite = "TLS_CHACHA20_POLY1305_SHA256";
        logged.curl("/fields/known", &["--http2", "--tls13-ciphers", suite, "--cert", &pem, "--key", &key]);
        let line = logged.line("/fields/known");
        let expect = format!(
            " tls=TLSv1.3 suite={suite} alpn=h2 resumed=no sni=\"{NAME}\" client-cert=\"rcgen self signed cert\""
        );
        assert!(line.ends_with(&expect), "{line}");
        get(logged.site.second(), "/fields/clear").unwrap();
        let line = logged.line("/fields/clear");
        assert!(line.ends_with(" -") && !line.contains("tls="), "{line}");
    }
}
