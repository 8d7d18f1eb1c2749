//! HTTP/2 to nginx, by prior knowledge and over TLS.

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::SocketAddr;
    use std::path::{Path, PathBuf};
    use std::process::{Command, Stdio};
    use std::sync::atomic::{AtomicU32, Ordering};

    use crate::http2_site::{Site, open_websocket};
    use crate::peer_process::{Running, free_address, wait_for, wait_until_it_listens};
    use crate::tls_site::pattern;

    static COUNT: AtomicU32 = AtomicU32::new(0);

    /// nginx; `{}` in its server's lines is its folder.
    struct Nginx {
        directory: PathBuf,
        address: SocketAddr,
        _child: Running,
    }

    impl Nginx {
        fn start(listen: &str, lines: &str) -> Nginx {
            let number = COUNT.fetch_add(1, Ordering::Relaxed);
            let place = format!("http2-nginx-{}-{number}", std::process::id());
            let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(place);
            let www = directory.join("www");
            std::fs::create_dir_all(&www).unwrap();
            std::fs::write(www.join("large"), pattern(3 << 20)).unwrap();
            crate::tls_site::write_certificate(&directory, "origin", "origin.test");
            let address = free_address();
            let (at, port) = (directory.display(), address.port());
            let lines = lines.replace("{}", &at.to_string());
            let config = format!(
                "daemon off; master_process off; pid {at}/pid; error_log {at}/error.log;\nevents {{ }}\n\
                 http {{ client_body_temp_path {at}/b; proxy_temp_path {at}/p; fastcgi_temp_path {at}/f;\n\
                 uwsgi_temp_path {at}/u; scgi_temp_path {at}/s;\n\
                 log_format x '$connection $server_protocol $request_method $uri'; access_log {at}/log x;\n\
                 server {{ listen 127.0.0.1:{port} {listen}; root {at}/www; add_header Cache-Control max-age=60;\n\
                 location = /who {{ return 200 \"$server_protocol $host\"; }}\n{lines} }} }}\n"
            );
            let path = directory.join("nginx.conf");
            std::fs::write(&path, config).unwrap();
            let mut command = Command::new("nginx");
            command.args(["-e", "/dev/null", "-c"]).arg(&path);
            let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
            let child = Running(child.expect("nginx is installed"));
            wait_until_it_listens(address);
            Nginx { directory, address, _child: child }
        }

        fn log(&self) -> String {
            std::fs::read_to_string(self.directory.join("log")).unwrap_or_default()
        }
    }

    const CERTIFICATE: &str = "ssl_certificate {}/origin.pem; ssl_certificate_key {}/origin.key;";

    /// larder before it over TLS.
    fn over_tls(nginx: &Nginx, lines: &str) -> Site {
        let ca = format!("tls = {{ ca = \"{}/origin.pem\" }}\n{lines}", nginx.directory.display());
        Site::start(&format!("https://origin.test:{}", nginx.address.port()), &ca, "")
    }

    #[test]
    fn nginx_is_asked_over_http2_by_prior_knowledge() {
        let nginx = Nginx::start("http2", "");
        let site = Site::before(nginx.address, "");
        assert_eq!(site.get("/who").2, b"HTTP/2.0 site.test");
        assert!(site.get("/large").2 == pattern(3 << 20));
        std::thread::scope(|scope| {
            let ask = |n: usize| site.get(&format!("/large?{n}")).2;
            let asking: Vec<_> = (0..40).map(|n| scope.spawn(move || ask(n))).collect();
            asking.into_iter().for_each(|one| assert!(one.join().unwrap() == pattern(3 << 20)));
        });
        assert_eq!(site.metric("larder_origin_http2_connections_total"), 1, "{}", nginx.log());
    }

    #[test]
    fn over_tls_http2_is_spoken_where_the_settings_say_so_and_the_server_agrees() {
        let nginx = Nginx::start("ssl http2", CERTIFICATE);
        for (lines, expect) in [
            ("", "HTTP/1.1 site.test"),
            ("http2 = false", "HTTP/1.1 site.test"),
            ("http2 = true", "HTTP/2.0 site.test"),
        ] {
            let site = over_tls(&nginx, lines);
            assert_eq!(String::from_utf8_lossy(&site.get("/who").2), expect, "{lines}");
            assert!(site.get("/large").2 == pattern(3 << 20), "{lines}");
        }
        // Without `http2` nginx agrees to HTTP/1.1, whatever is offered.
        let nginx = Nginx::start("ssl", CERTIFICATE);
        let site = over_tls(&nginx, "http2 = true");
        std::thread::scope(|scope| {
            let ask = |n: usize| site.get(&format!("/who?{n}")).2;
            let asking: Vec<_> = (0..10).map(|n| scope.spawn(move || ask(n))).collect();
            asking.into_iter().for_each(|one| assert_eq!(one.join().unwrap(), b"HTTP/1.1 site.test"));
        });
        assert_eq!(site.metric("larder_origin_http2_connections_total"), 0);
    }

    #[test]
    fn a_421_is_asked_again_over_http1_and_once() {
        let misdirects = format!(
            "{CERTIFICATE} location /else {{ if ($server_protocol = HTTP/2.0) {{ return 421; }} return 200 found; }}\n\
             location /never {{ return 421; }}"
        );
        let nginx = Nginx::start("ssl http2", &misdirects);
        let site = over_tls(&nginx, "http2 = true");
        assert_eq!(site.get("/else").2, b"found");
        assert_eq!(site.get("/never").0, 421);
        wait_for("nginx logs", || nginx.log().lines().count() >= 4);
        let log = nginx.log();
        let asked: Vec<_> = log.lines().filter_map(|line| line.split_once(' ')).map(|(_, rest)| rest).collect();
        assert_eq!(asked, ["HTTP/2.0 GET /else", "HTTP/1.1 GET /else", "HTTP/2.0 GET /never", "HTTP/1.1 GET /never"]);
    }

    #[test]
    fn a_websocket_to_an_https_origin_without_rfc8441_goes_over_http1() {
        let behind = crate::played_http2::switching();
        let proxied = format!(
            "{CERTIFICATE} location /socket {{ proxy_pass http://{behind}; proxy_http_version 1.1; proxy_set_header Upgrade $http_upgrade;\n\
             proxy_set_header Connection upgrade; }}"
        );
        let nginx = Nginx::start("ssl http2", &proxied);
        let site = over_tls(&nginx, "http2 = true");
        let (mut client, head) = open_websocket(&site);
        assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
        client.write_all(b"hello.").unwrap();
        let mut back = [0; 6];
        client.read_exact(&mut back).unwrap();
        assert_eq!(&back, b"HELLO.");
        drop(client);
        assert_eq!(site.get("/who").2, b"HTTP/2.0 site.test", "the other requests go on over HTTP/2");
    }
}
