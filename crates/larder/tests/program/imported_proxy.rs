//! What `larder import` makes of the proxied locations of an nginx configuration, beside the real nginx with that
//! configuration: the same requests come to the same origins with the same paths and Hosts, and what is shut stays shut.

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpStream};
    use std::path::Path;
    use std::process::Command;
    use std::time::Duration;

    use crate::lane::PATIENCE_MS;
    use crate::peer_process::free_address;
    use crate::told_origin;

    const CONF: &str = r#"
daemon off; master_process off; pid pid; error_log errors;
events { }
http {
    access_log off;
    client_body_temp_path t1; proxy_temp_path t2; fastcgi_temp_path t3; uwsgi_temp_path t4; scgi_temp_path t5;
    proxy_http_version 1.1;
    proxy_read_timeout 5s;
    upstream app { server ORIGIN; keepalive 8; }
    server {
        listen ADDRESS;
        root site;
        error_page 502 504 /50x.html;
        location / { }
        location /app/ { proxy_pass http://app; proxy_set_header Host $host; proxy_set_header Connection ""; }
        location /named/ { proxy_pass http://app; }
        location /direct/ { proxy_pass http://ORIGIN/direct/; }
        location /fixed/ { proxy_pass http://app; proxy_set_header Host fixed.test; }
        location /gone/ { proxy_pass http://127.0.0.1:1; }
        location /moved/ { proxy_pass http://app/elsewhere/; }
        location /chat/ {
            proxy_pass http://app;
            proxy_set_header Upgrade $http_upgrade;
            proxy_set_header Connection upgrade;
        }
        location /secret/ { proxy_pass http://app; deny all; }
    }
}
"#;

    /// Answers with what it was asked: method, target, Host and body. Never to be stored.
    fn echoing_origin() -> SocketAddr {
        told_origin::origin(|told| {
            let host = told.value("host").unwrap_or_default();
            let said = format!("{} for {host}: {}", told.line(), String::from_utf8_lossy(&told.body));
            told.answer("Cache-Control: no-store", &said)
        })
    }

    /// Status and body.
    fn ask(address: SocketAddr, line: &str, body: &str) -> (String, String) {
        ask_with(address, line, "Connection: close\r\n", body)
    }

    fn ask_with(address: SocketAddr, line: &str, fields: &str, body: &str) -> (String, String) {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(PATIENCE_MS))).unwrap();
        let length = if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
        write!(stream, "{line} HTTP/1.1\r\nHost: asked.test\r\n{length}{fields}\r\n{body}").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").expect("a whole head");
        (head[9..12].to_owned(), body.to_owned())
    }

    #[test]
    fn imported_locations_are_proxied_as_nginx_proxies_them() {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("nginx-proxied-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("site")).unwrap();
        std::fs::write(folder.join("site/index.html"), "a file").unwrap();
        std::fs::write(folder.join("site/50x.html"), "later").unwrap();
        let (origin, theirs) = (echoing_origin(), free_address());
        let (conf, toml) = (folder.join("nginx.conf"), folder.join("larder.toml"));
        let text = CONF.replace("ADDRESS", &theirs.to_string()).replace("ORIGIN", &origin.to_string());
        std::fs::write(&conf, text).unwrap();

        let mut import = Command::new(env!("CARGO_BIN_EXE_larder"));
        let done = import.args(["import", "-o"]).arg(&toml).arg(&conf).output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success() && !said.contains(": not carried over: "), "{said}");
        let ours = free_address();
        let _both = told_origin::nginx_and_larder(&folder, (&conf, theirs), (&toml, ours));

        for (line, body) in [
            ("GET /", ""),
            ("GET /app/", ""),
            ("GET /app/a/b?c=d&e=%2f", ""),
            ("GET /app/%7euser/..%2fx", ""),
            ("POST /app/form", "a=b"),
            ("PUT /app/thing", "up"),
            ("DELETE /app/thing", ""),
            ("GET /named/a", ""),
            ("GET /direct/a?b", ""),
            ("GET /fixed/a", ""),
            ("GET /gone/a", ""),
            ("GET /moved/a?b", ""),
            ("GET /none", ""),
        ] {
            let (of_nginx, of_larder) = (ask(theirs, line, body), ask(ours, line, body));
            assert_eq!(of_nginx.0, of_larder.0, "{line}");
            // What is said where there is no page is each one's own.
            assert!(of_nginx.0 == "404" || of_nginx.1 == of_larder.1, "{line}: {of_nginx:?} {of_larder:?}");
        }
        // nginx tells an origin of another protocol where a line says so. What clients offer beside a request hinders none.
        for (path, protocol, status) in [
            ("/app/", "websocket", "403"),
            ("/app/", "TLS/1.0", "403"),
            ("/app/", "h2c", "200"),
            ("/chat/", "websocket", "200"),
        ] {
            let (line, fields) =
                (format!("GET {path}"), format!("Connection: upgrade, close\r\nUpgrade: {protocol}\r\n"));
            assert_eq!(ask_with(theirs, &line, &fields, "").0, "200", "{path} {protocol}");
            assert_eq!(ask_with(ours, &line, &fields, "").0, status, "{path} {protocol}");
        }
        let large = "x".repeat((1 << 20) + 1);
        for address in [theirs, ours] {
            let mut stream = TcpStream::connect(address).unwrap();
            let length = large.len();
            write!(stream, "POST /app/ HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n").unwrap();
            let mut status = [0; 12];
            stream.read_exact(&mut status).unwrap();
            assert_eq!(&status[9..], b"413");
        }
        assert_eq!(
            (ask(theirs, "GET /secret/a", "").0, ask(ours, "GET /secret/a", "").0),
            ("403".into(), "403".into())
        );
        let _ = std::fs::remove_dir_all(&folder);
    }

    /// nginx drops names with a `_` unless it is told otherwise, and those with other characters always.
    #[test]
    fn names_with_underscores_reach_an_origin_as_they_do_from_nginx() {
        let names = ["x_odd", "x_forwarded_for", "_x-odd"];
        let origin = told_origin::origin(move |told| {
            let said = names.map(|name| told.value(name).map_or("no", |_| "yes"));
            told.answer("Cache-Control: no-store", &said.join(" "))
        });
        for (word, expect) in [("", "no no no"), ("underscores_in_headers on;", "yes no yes")] {
            let name = format!("nginx-names-{}-{}", word.len(), std::process::id());
            let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
            std::fs::create_dir_all(folder.join("site")).unwrap();
            let (theirs, ours) = (free_address(), free_address());
            let (conf, toml) = (folder.join("nginx.conf"), folder.join("larder.toml"));
            let text = CONF.replace("ADDRESS", &theirs.to_string()).replace("ORIGIN", &origin.to_string());
            std::fs::write(&conf, text.replace("http {", &format!("http {{ {word}"))).unwrap();
            let mut import = Command::new(env!("CARGO_BIN_EXE_larder"));
            assert!(import.args(["import", "-o"]).arg(&toml).arg(&conf).status().unwrap().success());
            let _both = told_origin::nginx_and_larder(&folder, (&conf, theirs), (&toml, ours));
            let fields = "Connection: close\r\nX_Odd: 1\r\nX_Forwarded_For: 1\r\n_X-Odd: 1\r\n";
            // A name that larder knows goes on in no other spelling.
            let of_nginx = ask_with(theirs, "GET /app/", fields, "").1.replacen("yes yes", "yes no", 1);
            assert_eq!([of_nginx, ask_with(ours, "GET /app/", fields, "").1], [expect; 2], "{word}");
            let _ = std::fs::remove_dir_all(&folder);
        }
    }
}
