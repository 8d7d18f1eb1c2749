//! Certificates that larder orders by itself, from a real authority: Pebble looks for it by both challenges and signs.

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpStream};
    use std::os::unix::fs::PermissionsExt;
    use std::path::{Path, PathBuf};
    use std::process::{Command, Stdio};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
    use std::time::Duration;

    use rustls::ClientConfig;

    use crate::lane::now_ms;
    use crate::pebble::Pebble;
    use crate::peer_process::{Running, free_address};
    use crate::subject::get;
    use crate::tls_site::{NAME, ask, connect, echo, pattern};

    /// For an order on a machine that has much else to do.
    const ORDER_PATIENCE_MS: u64 = 90_000;
    const YEAR_S: u64 = 365 * 86_400;

    static SITES_COUNT: AtomicU32 = AtomicU32::new(0);

    fn wait_long(what: &str, mut is_met: impl FnMut() -> bool) {
        let deadline_ms = now_ms() + ORDER_PATIENCE_MS;
        while !is_met() {
            assert!(now_ms() < deadline_ms, "never: {what}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// A larder that has its certificate from an authority, and its folder of state.
    struct Site {
        directory: PathBuf,
        state: PathBuf,
        /// Of the listener in the clear.
        of_plain: &'static str,
        child: Option<Running>,
        plain: SocketAddr,
        tls: SocketAddr,
        admin: SocketAddr,
        origin: SocketAddr,
    }

    impl Site {
        /// Where the authority looks, with a state of its own.
        fn new(pebble: &Pebble) -> Site {
            let number = SITES_COUNT.fetch_add(1, Ordering::Relaxed);
            let directory =
                Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("acme-{}-{number}", std::process::id()));
            let _ = std::fs::remove_dir_all(&directory);
            std::fs::create_dir_all(&directory).unwrap();
            let state = directory.join("state");
            let (plain, tls, admin) = (pebble.plain, pebble.secure, free_address());
            Site { directory, state, of_plain: "", child: None, plain, tls, admin, origin: echo() }
        }

        /// With lines for `[acme]`, and others for the end of the config.
        fn config(&self, pebble: &Pebble, of_acme: &str, others: &str) -> Vec<String> {
            let config = format!(
                "[[listen]]\naddress = \"{}\"\n{}\n[[listen]]\naddress = \"{}\"\n[listen.tls]\nacme = [\"{NAME}\", \"www.{NAME}\"]\n\
                 [acme]\nterms_agreed = true\nemail = \"admin@{NAME}\"\ndirectory = \"{}\"\nca = \"{}\"\nfolder = \"{}\"\n\
                 retry = \"1s\"\n{of_acme}\n[origin.echo]\nurls = [\"http://{}\"]\n{others}\n",
                self.plain,
                self.of_plain,
                self.tls,
                pebble.url(),
                pebble.ca(),
                self.state.display(),
                self.origin
            );
            let path = self.directory.join("larder.toml");
            std::fs::write(&path, config).unwrap();
            vec!["--config".to_owned(), path.display().to_string()]
        }

        /// Starts it, or starts it again; what it said before is gone.
        fn run(&mut self, words: &[String]) {
            self.child = None;
            let errors = std::fs::File::create(self.directory.join("stderr")).unwrap();
            let ports = self.directory.join("ports");
            let _ = std::fs::remove_file(&ports);
            let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
            command.args(["serve", "--no-supervisor"]).args(words).args([
                "--workers",
                "2",
                "--admin",
                &self.admin.to_string(),
            ]);
            command.arg("--ports-file").arg(&ports);
            let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors).spawn();
            self.child = Some(Running(child.expect("larder can be started")));
            wait_long("larder listens", || ports.exists());
        }

        fn said(&self) -> String {
            std::fs::read_to_string(self.directory.join("stderr")).unwrap_or_default()
        }

        fn wait_for_word(&self, word: &str) {
            wait_long(&format!("{word} in {}", self.directory.display()), || self.said().contains(word));
        }

        fn metric(&self, name: &str) -> f64 {
            let text = get(self.admin, "/metrics").expect("the admin answers");
            let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
            line.unwrap_or_else(|| panic!("no metric {name}")).trim().parse().expect("a metric is a number")
        }

        fn status(&self) -> serde_json::Value {
            let text = get(self.admin, "/status").expect("the admin answers");
            serde_json::from_str(&text[text.find('{').expect("it is JSON")..]).expect("it is JSON")
        }

        /// Where the certificate is, once there is one.
        fn certificate(&self) -> Option<PathBuf> {
            let folder = std::fs::read_dir(&self.state).ok()?.flatten().next()?.path();
            let files = std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
            files.into_iter().find(|path| path.extension().is_some_and(|ending| ending == "pem"))
        }

        fn is_served(&self, believer: &Arc<ClientConfig>) -> bool {
            let Ok(mut client) = connect(self.tls, believer) else { return false };
            ask(&mut client, "/bytes/6221").unwrap().1 == pattern(6_221)
        }
    }

    /// The status and the body.
    fn ask_plain(address: SocketAddr, path: &str) -> (u16, String) {
        let mut client = TcpStream::connect(address).unwrap();
        client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        write!(client, "GET {path} HTTP/1.1\r\nHost: {NAME}\r\nConnection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        client.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn by_http_it_is_answered_before_any_policy_and_what_comes_is_the_owners_alone() {
        let Some(pebble) = Pebble::start(YEAR_S) else { return };
        let mut site = Site::new(&pebble);
        let vcl = site.directory.join("closed.vcl");
        let text = "vcl 4.1; backend default none; sub vcl_recv { return (synth(403)); } \
                    sub vcl_synth { set resp.status = 418; return (deliver); }";
        std::fs::write(&vcl, text).unwrap();
        let others = format!("[policy]\nvcl = \"{}\"", vcl.display());
        let words = site.config(&pebble, "challenge = \"http-01\"", &others);
        site.run(&words);
        site.wait_for_word("begins when the first certificate has come; until then handshakes are refused");
        let believer = pebble.believer();
        wait_long("a certificate is shown", || connect(site.tls, &believer).is_ok());
        assert!(site.metric("larder_acme_challenges_http_total") >= 2.0, "one for each name");
        assert_eq!(site.metric("larder_acme_challenges_tls_total"), 0.0);
        // What is no token of ours is the policy's.
        assert_eq!(ask_plain(site.plain, "/.well-known/acme-challenge/none-of-ours").0, 418);
        let certificate = site.certificate().unwrap();
        let folder = certificate.parent().unwrap();
        for (path, expect) in [
            (&*site.state, 0o700),
            (folder, 0o700),
            (&folder.join("challenges"), 0o700),
            (&certificate, 0o600),
            (&folder.join("account.json"), 0o600),
            (&certificate.with_extension("json"), 0o600),
        ] {
            assert_eq!(mode(path), expect, "{}", path.display());
        }
        assert_eq!(std::fs::read_dir(folder.join("challenges")).unwrap().count(), 0, "nothing is left of the order");
        let status = site.status();
        // In the order in which the authority wrote them.
        let mut names = status["certificates"][0]["names"].as_array().unwrap().clone();
        names.sort_by_key(|name| name.to_string());
        assert_eq!(names, [NAME, &format!("www.{NAME}")]);
        let left_s = status["certificates"][0]["expires_in_seconds"].as_u64().unwrap();
        assert!((YEAR_S - 200..=YEAR_S).contains(&left_s), "{left_s}");
        assert_eq!(
            (&status["acme"][0]["failures"], &status["acme"][0]["directory"]),
            (&0.into(), &pebble.url().into())
        );
    }

    #[test]
    fn by_tls_with_flags_alone_and_a_restart_uses_what_is_stored() {
        let Some(mut pebble) = Pebble::start(YEAR_S) else { return };
        let mut site = Site::new(&pebble);
        let (origin, tls) = (format!("http://{}", site.origin), site.tls.to_string());
        let state = site.state.display().to_string();
        let mut words = vec!["--origin", &origin, "--tls", &tls, "--acme-domain", NAME];
        let (url, ca) = (pebble.url(), pebble.ca());
        words.extend(["--acme-agree-terms", "--acme-directory", &url, "--acme-ca", &ca, "--acme-folder", &state]);
        let words: Vec<String> = words.into_iter().map(str::to_owned).collect();
        site.run(&words);
        let believer = pebble.believer();
        // Who comes before is refused, and that is no fault of his.
        assert!(connect(site.tls, &believer).unwrap_err().to_string().contains("AccessDenied"));
        wait_long("it is counted", || site.metric("larder_tls_failed_no_certificate_total") == 1.0);
        wait_long("a page is served", || site.is_served(&believer));
        assert!(site.metric("larder_acme_challenges_tls_total") >= 1.0);
        assert_eq!(site.metric("larder_acme_orders_total"), 1.0);
        // RFC 8737 §3: nobody is shown anything for this protocol when nobody was asked to.
        let mut asks = Command::new("openssl");
        asks.args(["s_client", "-connect", &tls, "-servername", NAME, "-alpn", "acme-tls/1"]).stdin(Stdio::null());
        let output = asks.output().expect("openssl is installed");
        let text = [output.stdout, output.stderr].concat();
        assert!(String::from_utf8_lossy(&text).contains("no application protocol"));

        pebble.stop();
        site.run(&words);
        assert!(site.is_served(&believer), "at once: {}", site.said());
        assert_eq!(site.metric("larder_acme_orders_total"), 0.0);
    }

    #[test]
    fn it_is_renewed_when_the_authority_says_so_without_a_failed_handshake() {
        let Some(pebble) = Pebble::start(300) else { return };
        let mut site = Site::new(&pebble);
        let words = site.config(&pebble, "", "");
        site.run(&words);
        let believer = pebble.believer();
        wait_long("a page is served", || site.is_served(&believer));
        let path = site.certificate().unwrap();
        let first = std::fs::read_to_string(&path).unwrap();
        pebble.wants_renewed(&first);
        let (is_over, handshakes) = (AtomicBool::new(false), AtomicU32::new(0));
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !is_over.load(Ordering::Relaxed) {
                        assert!(site.is_served(&believer), "{}", site.said());
                        handshakes.fetch_add(1, Ordering::Relaxed);
                        std::thread::sleep(Duration::from_millis(5));
                    }
                });
            }
            let renewed = std::panic::catch_unwind(|| {
                wait_long("another certificate", || std::fs::read_to_string(&path).unwrap() != first);
                wait_long("it is shown", || site.said().matches("have changed, and are shown").count() >= 2);
            });
            is_over.store(true, Ordering::Relaxed);
            assert!(renewed.is_ok(), "{}", site.said());
        });
        assert!(site.said().contains("says when to renew") && site.said().contains("https://ca.test/why"));
        assert!(handshakes.load(Ordering::Relaxed) > 20);
        assert_eq!(site.metric("larder_acme_orders_failed_total"), 0.0, "{}", site.said());
    }

    #[test]
    fn two_that_share_a_folder_make_one_order_and_both_answer_for_it() {
        let Some(pebble) = Pebble::start(YEAR_S) else { return };
        let mut sites = [Site::new(&pebble), Site::new(&pebble)];
        // The authority comes to the first alone, whichever of them has ordered.
        (sites[1].plain, sites[1].tls) = (free_address(), free_address());
        sites[1].state = sites[0].state.clone();
        let words = [0, 1].map(|at| sites[at].config(&pebble, "challenge = \"http-01\"", ""));
        sites[1].run(&words[1]);
        sites[0].run(&words[0]);
        let believer = pebble.believer();
        for site in &sites {
            wait_long("a page is served", || site.is_served(&believer));
        }
        let orders = sites.each_ref().map(|site| site.metric("larder_acme_orders_total"));
        assert_eq!(orders[0] + orders[1], 1.0, "{} {}", sites[0].said(), sites[1].said());
        assert!(sites[0].metric("larder_acme_challenges_http_total") >= 2.0);
    }

    #[test]
    fn an_authority_that_is_down_is_said_once_and_asked_again() {
        let Some(mut pebble) = Pebble::prepare(YEAR_S) else { return };
        let mut site = Site::new(&pebble);
        let words = site.config(&pebble, "", "");
        site.run(&words);
        wait_long("it was tried twice", || site.metric("larder_acme_orders_failed_total") >= 2.0);
        let said = site.said();
        assert_eq!(said.matches("no certificate for").count(), 1, "{said}");
        assert!(said.contains("onnection refused") && said.contains(&pebble.url()), "{said}");
        let failures = format!("larder_acme_failures_in_a_row{{name=\"{NAME}\"}}");
        assert!(site.metric(&failures) >= 2.0);
        let status = site.status();
        assert!(status["acme"][0]["last_failure"].as_str().unwrap().contains("onnection refused"), "{status}");
        // It comes back, and refuses every fifth request for its nonce.
        pebble.run(&[("PEBBLE_WFE_NONCEREJECT", "20")]);
        let believer = pebble.believer();
        wait_long("a page is served", || site.is_served(&believer));
        assert_eq!(site.metric(&failures), 0.0);
        let before = std::fs::read_to_string(site.certificate().unwrap()).unwrap();

        // It has lost what it knew, us included; the operator wants a new certificate all the same.
        pebble.run(&[]);
        std::fs::remove_file(site.certificate().unwrap()).unwrap();
        wait_long("another certificate", || {
            let path = site.certificate();
            path.and_then(|path| std::fs::read_to_string(path).ok()).is_some_and(|text| text != before)
        });
    }

    #[test]
    fn who_is_not_found_is_told_how_he_was_looked_for_and_the_other_way_is_tried() {
        let Some(pebble) = Pebble::start(YEAR_S) else { return };
        let mut site = Site::new(&pebble);
        // The authority looks for TLS where nobody listens; and who comes in the clear is sent on, but for itself.
        site.tls = free_address();
        site.of_plain = "mode = \"redirect\"";
        let words = site.config(&pebble, "", "");
        site.run(&words);
        let believer = pebble.believer();
        wait_long("a page is served", || site.is_served(&believer));
        let said = site.said();
        assert!(said.contains("did not find us at ") && said.contains(", asked by tls-alpn-01: "), "{said}");
        assert_eq!(site.metric("larder_acme_orders_failed_total"), 1.0);
        assert!(site.metric("larder_acme_challenges_http_total") >= 2.0);
        assert_eq!(ask_plain(site.plain, "/.well-known/acme-challenge/none-of-ours").0, 301);
    }
}
