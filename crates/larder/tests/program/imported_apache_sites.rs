//! Whole sites of Apache's beside the real Apache: scripts that a php-fpm runs, a site by TLS, rules that end beneath a folder, hosts without a
//! name, and what modules show that larder has not.

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::{Command, Stdio};

    use crate::apache_beside::{self, FILES, host};
    use crate::imported_beside::{Asked, Beside, Wanted};
    use crate::peer_process::{Running, wait_for};

    const MODULES: [&str; 20] = [
        "mpm_event",
        "authz_core",
        "authz_host",
        "alias",
        "dir",
        "mime",
        "headers",
        "rewrite",
        "proxy",
        "proxy_http",
        "proxy_fcgi",
        "proxy_wstunnel",
        "status",
        "info",
        "userdir",
        "dav",
        "dav_fs",
        "env",
        "setenvif",
        "ssl",
    ];

    const TELLS: &str = "<?php header('Cache-Control: no-store'); echo $_SERVER['SCRIPT_NAME'], ' ', $_SERVER['QUERY_STRING'], ' ', $_SERVER['REQUEST_METHOD'];";

    const SITE: [(&str, &str); 8] = [
        ("site/index.php", TELLS),
        ("site/tell.php", TELLS),
        ("site/a.txt", "a text"),
        ("site/static/b.txt", "another text"),
        ("site/upload/x.php.jpg", "<?php echo 'run';"),
        ("site/private/x.txt", "private"),
        ("site/public_html/x.txt", "of a user"),
        ("site/map.txt", "private yes\n"),
    ];

    /// `before`: what needs the folder.
    fn beside(name: &str, words: &str, before: impl FnOnce(&Beside)) -> Beside {
        apache_beside::start(&format!("apache-site-{name}"), (&MODULES, words), &SITE, before)
    }

    const FRONT: &str = "RewriteEngine On\nRewriteCond %{REQUEST_FILENAME} !-f\nRewriteCond %{REQUEST_FILENAME} !-d\nRewriteRule ^ index.php [L]";
    const SCRIPTS: &str = "<FilesMatch \\.php$>\nSetHandler \"proxy:unix:HERE/fpm.sock|fcgi://localhost\"\n</FilesMatch>\nDirectoryIndex index.php";

    /// Ends as php-fpm has to: killed, it would leave its processes behind.
    struct PhpFpm(Running);

    impl PhpFpm {
        fn start(folder: &Path) -> PhpFpm {
            let fpm = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spec/php-fpm");
            let mut command = Command::new(fpm);
            // Apache is another user.
            command.args(["2", "listen.mode = 0666"]).current_dir(folder).stdin(Stdio::null()).stdout(Stdio::null());
            let running = Running(command.stderr(Stdio::null()).spawn().expect("it is installed: ./setup all"));
            wait_for("php-fpm listens", || folder.join("fpm.sock").exists());
            PhpFpm(running)
        }
    }

    impl Drop for PhpFpm {
        fn drop(&mut self) {
            let _ = Command::new("kill").arg(self.0.0.id().to_string()).status();
            let _ = self.0.0.wait();
        }
    }

    #[test]
    fn scripts_run_as_apache_runs_them() {
        let mut fpm = None;
        let rules = format!(
            "DocumentRoot HERE/site\n<Directory HERE/site>\nRequire all granted\n{FRONT}\n</Directory>\n\
             <Directory HERE/site/static>\nRewriteEngine Off\n</Directory>\n\
             <Directory HERE/site/private>\nRequire all denied\n</Directory>\n{SCRIPTS}"
        );
        let beside = beside("php", &host(&rules), |beside| fpm = Some(PhpFpm::start(&beside.folder)));
        for path in ["/", "/?x=1", "/tell.php", "/tell.php?x=1&y=2", "/a.txt", "/static/b.txt", "/no/such/page?x=1"] {
            beside.check_as_it_is("A1", path, &[], Wanted::Same);
        }
        beside.check_as_it_is("A1", "/tell.php", &["-d", "a=b"], Wanted::Same);
        beside.check("A1", "/no/such/page", &[], Wanted::Same);
        // Beneath it the rules have ended: what is no file is nothing.
        for path in ["/static/none", "/static/none/x", "/private/x.txt"] {
            let [theirs, ours] = beside.ask(&Asked { at: "A1", path: path.to_owned(), options: Vec::new() });
            assert!(theirs.status >= 400 && ours.status >= 400, "{path}: {theirs:?} {ours:?}\n{}", beside.toml);
        }
        // A script under another name is text to Apache, and runs nowhere.
        let asked = Asked { at: "A1", path: "/upload/x.php.jpg".to_owned(), options: Vec::new() };
        assert!(beside.ask(&asked).iter().all(|outcome| outcome.body != "run"), "{}", beside.toml);
        drop(fpm);
    }

    #[test]
    fn a_site_by_tls_is_the_same_site() {
        let made = rcgen::generate_simple_self_signed(vec!["a.test".to_owned()]).unwrap();
        let tls = "SSLEngine on\nSSLCertificateFile HERE/a.pem\nSSLCertificateKeyFile HERE/a.key";
        let words = format!(
            "{tls}\n{FILES}<Location /private>\nRequire all denied\n</Location>\nProxyPass /app http://O-app/app"
        );
        let at = host(&words).replace("*:*", "A1");
        let beside = beside("tls", &at, |beside| {
            beside.file("a.pem", &made.cert.pem());
            beside.file("a.key", &made.signing_key.serialize_pem());
        });
        assert!(beside.toml.contains("tls = { cert = "), "{}\n{}", beside.said, beside.toml);
        for path in ["/a.txt", "/static/b.txt", "/app/x?y=1", "/none"] {
            beside.check("A1", path, &["--insecure"], Wanted::Same);
        }
        beside.check_refused("A1", "/private/x.txt", &["--insecure"]);
        // In the clear nothing is shown.
        let [_, ours] = beside.ask(&Asked { at: "A1", path: "/a.txt".to_owned(), options: Vec::new() });
        assert_ne!(ours.body, "a text", "{ours:?}");
    }

    /// Pages and folders of modules, and rules that look names up.
    #[test]
    fn what_modules_show_is_closed() {
        for (at, (word, path)) in [
            ("UserDir HERE/site/public_html", "/~ann/x.txt"),
            ("DavLockDB HERE/lock\n<Directory HERE/site/private>\nDav On\n</Directory>", "/private/x.txt"),
            ("<Location /server-status>\nSetHandler server-status\n</Location>", "/server-status"),
            ("<Location /server-info>\nSetHandler server-info\n</Location>", "/server-info"),
            ("RewriteEngine On\nRewriteMap m txt:HERE/site/map.txt\nRewriteRule ^/(private)/ - [F]", "/private/x.txt"),
        ]
        .into_iter()
        .enumerate()
        {
            let beside = beside(&format!("module-{at}"), &host(&format!("{FILES}{word}")), |_| {});
            let asked = Asked { at: "A1", path: path.to_owned(), options: Vec::new() };
            let [_, ours] = beside.ask(&asked);
            assert_eq!(ours.status, 403, "{word}: {ours:?}\n{}", beside.toml);
            let [_, ours] = beside.ask(&Asked { options: vec!["-X", "PROPFIND"], ..asked });
            assert!(ours.status >= 400, "{word}: {ours:?}");
            assert!(!beside.left().is_empty(), "{word}: closed without a word");
        }
    }

    /// Apache answers as if nobody had asked for another protocol; who is asked behind larder would get the question. What clients offer
    /// to everybody beside is answered as by Apache.
    #[test]
    fn no_other_protocol_is_spoken_where_apache_speaks_none() {
        let words = "ProxyPass /chat http://O-chat/chat upgrade=websocket\nProxyPass / http://O-all/";
        let beside = beside("upgrade", &host(words), |_| {});
        beside.check("A1", "/x", &[], Wanted::Same);
        let upgrade = ["-H", "Connection: Upgrade", "-H", "Upgrade: websocket"];
        let [_, ours] = beside.ask(&Asked { at: "A1", path: "/x".to_owned(), options: upgrade.to_vec() });
        assert_eq!(ours.status, 403, "{}", beside.toml);
        let [_, ours] = beside.ask(&Asked { at: "A1", path: "/chat".to_owned(), options: upgrade.to_vec() });
        assert_ne!(ours.status, 403, "{}", beside.toml);
        let offer =
            ["-H", "Connection: Upgrade, HTTP2-Settings", "-H", "Upgrade: h2c", "-H", "HTTP2-Settings: AAMAAABk"];
        beside.check("A1", "/x", &offer, Wanted::Same);
    }

    /// It has the machine's own name there, which another machine has not.
    #[test]
    fn a_host_without_a_name_behind_others_is_left_out_with_a_word() {
        let (beside, _) = Beside::new("apache-site-unnamed", "");
        let site = |name: &str, port: u16| {
            format!("<VirtualHost *:8080>\n{name}\nProxyPass / http://127.0.0.1:{port}/\n</VirtualHost>\n")
        };
        let conf =
            beside.file("unnamed.conf", &format!("Listen 8080\n{}{}", site("ServerName a.test", 1), site("", 2)));
        let done = Command::new(env!("CARGO_BIN_EXE_larder")).arg("import").arg(&conf).output().unwrap();
        let [made, said] = [done.stdout, done.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        assert!(!made.contains("127.0.0.1:2") && said.contains("without ServerName"), "{made}\n{said}");
    }
}
