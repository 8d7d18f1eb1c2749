//! TLS to origins: nginx with certificates, behind larder.

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::path::{Path, PathBuf};
    use std::process::{Command, Stdio};
    use std::sync::atomic::{AtomicU32, Ordering};

    use rcgen::CertificateParams;

    use crate::configured_larder::ConfiguredLarder;
    use crate::peer_process::{Running, free_address, wait_for, wait_until_it_listens};
    use crate::subject::get;

    static COUNT: AtomicU32 = AtomicU32::new(0);

    /// nginx over TLS, its files, and what it logged.
    struct Origin {
        directory: PathBuf,
        address: SocketAddr,
        _child: Running,
    }

    impl Origin {
        /// With a certificate for `name`, which is its own authority: `origin.pem`. `lines`: more of its server.
        fn start(name: &str, change: impl FnOnce(&mut CertificateParams), lines: &str) -> Origin {
            let number = COUNT.fetch_add(1, Ordering::Relaxed);
            let place = format!("tls-origin-{}-{number}", std::process::id());
            let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(place);
            let www = directory.join("www");
            std::fs::create_dir_all(&www).unwrap();
            std::fs::write(www.join("small"), "a small file").unwrap();
            std::fs::write(www.join("large"), pattern()).unwrap();
            let key = rcgen::KeyPair::generate().unwrap();
            let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
            change(&mut params);
            std::fs::write(directory.join("origin.pem"), params.self_signed(&key).unwrap().pem()).unwrap();
            std::fs::write(directory.join("origin.key"), key.serialize_pem()).unwrap();
            let address = free_address();
            let (at, port) = (directory.display(), address.port());
            let config = format!(
                "daemon off; master_process off; pid {at}/pid; error_log {at}/error.log;\nevents {{ }}\n\
                 http {{ client_body_temp_path {at}/b; proxy_temp_path {at}/p; fastcgi_temp_path {at}/f;\n\
                 uwsgi_temp_path {at}/u; scgi_temp_path {at}/s;\n\
                 log_format x '$connection $ssl_server_name $ssl_session_reused $ssl_protocol $http_x_forwarded_proto $request';\n\
                 access_log {at}/log x; keepalive_requests 100000;\n\
                 server {{ listen 127.0.0.1:{port} ssl; ssl_certificate {at}/origin.pem; ssl_certificate_key {at}/origin.key;\n\
                 ssl_protocols TLSv1.2 TLSv1.3; root {at}/www; add_header Cache-Control max-age=60; {lines} }} }}\n"
            );
            let path = directory.join("nginx.conf");
            std::fs::write(&path, config).unwrap();
            let mut command = Command::new("nginx");
            command.args(["-e", "/dev/null", "-c"]).arg(&path);
            let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
            let child = Running(child.expect("nginx is installed"));
            wait_until_it_listens(address);
            Origin { directory, address, _child: child }
        }

        /// What it logged, once there are so many lines.
        fn log(&self, lines: usize) -> Vec<String> {
            let mut text = String::new();
            wait_for("the origin logs", || {
                text = std::fs::read_to_string(self.directory.join("log")).unwrap_or_default();
                text.lines().count() >= lines
            });
            text.lines().map(str::to_owned).collect()
        }
    }

    /// With the lines of `[origin.site]` behind its URL. `{}` in it is the origin's directory.
    fn larder(origin: &Origin, host: &str, lines: &str) -> ConfiguredLarder {
        let directory = &origin.directory;
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let lines = lines.replace("{}", &directory.display().to_string());
        let text = format!(
            "workers = 1\n[origin.site]\nurls = [\"https://{host}:{}\"]\n{lines}\n[resolver]\nhosts = {{ \"origin.test\" = \"127.0.0.1\" }}",
            origin.address.port()
        );
        ConfiguredLarder::start(directory, &number.to_string(), &text)
    }

    fn pattern() -> Vec<u8> {
        (0..3 << 20).map(|at: u32| b'a' + (at % 23) as u8).collect()
    }

    fn nothing(_: &mut CertificateParams) {}

    #[test]
    fn an_origin_that_is_who_it_should_be_answers_and_its_connection_is_used_again() {
        let origin = Origin::start("origin.test", nothing, "");
        let larder = larder(&origin, "origin.test", "tls = { ca = \"{}/origin.pem\" }");
        for n in 0..5 {
            let answer = get(larder.address, &format!("/small?{n}")).unwrap();
            assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("a small file"), "{answer}");
        }
        let answer = get(larder.address, "/large").unwrap();
        assert!(answer.as_bytes().ends_with(&pattern()), "a long body arrives whole");
        let log = origin.log(6);
        let connections: Vec<&str> = log.iter().map(|line| line.split(' ').next().unwrap()).collect();
        assert!(connections.iter().all(|one| *one == connections[0]), "{log:?}");
        assert!(log[0].contains(" origin.test . TLSv1.3 http GET /small"), "the name is asked for: {log:?}");
    }

    #[test]
    fn a_session_is_resumed_on_the_next_connection() {
        for lines in ["", "ssl_conf_command MaxProtocol TLSv1.2;"] {
            let lines = format!("keepalive_timeout 0; ssl_session_cache shared:x:1m; {lines}");
            let origin = Origin::start("origin.test", nothing, &lines);
            let larder = larder(&origin, "origin.test", "tls = { ca = \"{}/origin.pem\" }");
            (0..4).for_each(|n| assert!(get(larder.address, &format!("/small?{n}")).unwrap().contains("200 OK")));
            let log = origin.log(4);
            let resumed = log.iter().filter(|line| line.split(' ').nth(2) == Some("r")).count();
            assert_eq!(resumed, 3, "{log:?}");
        }
    }

    #[test]
    fn an_origin_that_is_not_who_it_should_be_is_not_asked() {
        let expired = |params: &mut CertificateParams| params.not_after = rcgen::date_time_ymd(2020, 1, 1);
        let good = Origin::start("origin.test", nothing, "");
        let old = Origin::start("origin.test", expired, "");
        let ca = "tls = { ca = \"{}/origin.pem\" }";
        for (origin, host, lines, says) in [
            (&good, "origin.test", "", "nobody of those signed its certificate who may (origin.site.tls.ca)"),
            (&good, "127.0.0.1", ca, "its certificate is for another name (origin.site.tls.name)"),
            (&old, "origin.test", ca, "its certificate has expired (origin.site.tls.ca)"),
        ] {
            let answer = get(larder(origin, host, lines).address, "/small").unwrap();
            assert!(answer.starts_with("HTTP/1.1 502 ") && answer.contains(says), "{says}: {answer}");
        }
        let log = |origin: &Origin| std::fs::read_to_string(origin.directory.join("log")).unwrap_or_default();
        assert_eq!((log(&good), log(&old)), (String::new(), String::new()), "no request left");
        for lines in ["tls = { verify = false }", "tls = { ca = \"{}/origin.pem\", name = \"origin.test\" }"] {
            let answer = get(larder(&good, "127.0.0.1", lines).address, "/small").unwrap();
            assert!(answer.ends_with("a small file"), "{lines}: {answer}");
        }
    }

    #[test]
    fn larder_shows_who_it_is_to_an_origin_that_asks() {
        let place = std::env::temp_dir();
        let name = format!("larder-us-{}", std::process::id());
        crate::tls_site::write_certificate(&place, &name, "us.test");
        let us = |end: &str| place.join(format!("{name}.{end}")).display().to_string();
        let lines = format!("ssl_client_certificate {}; ssl_verify_client on;", us("pem"));
        let origin = Origin::start("origin.test", nothing, &lines);
        let shows = format!("tls = {{ ca = \"{{}}/origin.pem\", cert = \"{}\", key = \"{}\" }}", us("pem"), us("key"));
        let answer = get(larder(&origin, "origin.test", &shows).address, "/small").unwrap();
        assert!(answer.ends_with("a small file"), "{answer}");
        let answer = get(larder(&origin, "origin.test", "tls = { ca = \"{}/origin.pem\" }").address, "/small").unwrap();
        assert!(answer.contains("400 "), "nginx says so itself: {answer}");
        for end in ["pem", "key"] {
            std::fs::remove_file(us(end)).unwrap();
        }
    }
}
