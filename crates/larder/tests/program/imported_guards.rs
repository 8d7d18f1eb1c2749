//! What `larder import` makes of nginx's guards that ask somebody or count, `auth_request` and `limit_conn`, and of what a `map` decides,
//! beside the real nginx with the same configuration, the same service and the same applications.

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpStream};
    use std::path::{Path, PathBuf};
    use std::process::Command;
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use crate::lane::PATIENCE_MS;
    use crate::peer_process::{Running, free_address};
    use crate::told_origin;

    const AROUND: &str = "daemon off; master_process off; pid pid; error_log errors; events { }
        http { access_log off; client_body_temp_path t1; proxy_temp_path t2; fastcgi_temp_path t3; uwsgi_temp_path t4; scgi_temp_path t5;
        proxy_http_version 1.1; ";

    /// As oauth2-proxy's and Authelia's manuals have it.
    const GUARDED: &str = r#"
        server {
            listen ADDRESS;
            root site;
            location = /oauth2/auth {
                internal;
                proxy_pass http://SERVICE;
                proxy_set_header Host $host;
                proxy_set_header X-Real-IP $remote_addr;
                proxy_set_header X-Original-URI $request_uri;
                proxy_set_header X-Original-Method $request_method;
                proxy_set_header Content-Length "";
                proxy_pass_request_body off;
            }
            location /app/ {
                auth_request /oauth2/auth;
                auth_request_set $user $upstream_http_x_auth_request_user;
                proxy_set_header X-User $user;
                proxy_set_header Host $host;
                proxy_pass http://APP;
            }
            location /files/ { auth_request /oauth2/auth; }
            location /open/ { proxy_pass http://APP; proxy_set_header Host $host; }
            set $service http://SERVICE/verify?for=site;
            location /asked { internal; proxy_pass $service; proxy_pass_request_body off; proxy_set_header X-Original-URI $request_uri; }
            location /authelia/ { auth_request /asked; proxy_pass http://APP; proxy_set_header Host $host; }
        }
    }
"#;

    fn folder(name: &str) -> PathBuf {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("guards-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(folder.join("site/files")).unwrap();
        std::fs::write(folder.join("site/files/a.txt"), "a file of members").unwrap();
        folder
    }

    /// Lets in who has the cookie, but not to `/app/secret`; and nobody who says who it is by itself.
    fn service(asked: Arc<Mutex<Vec<String>>>) -> SocketAddr {
        told_origin::origin(move |told| {
            asked.lock().unwrap().push(told.line().to_owned());
            // One of the two questions says so in nginx; a client that says it itself is refused by both.
            let says_who_it_is =
                told.value("x-real-ip").map_or(told.line() == "GET /oauth2/auth", |ip| ip != "127.0.0.1");
            let is_secret = told.value("x-original-uri").is_none_or(|uri| uri.starts_with("/app/secret"));
            let has_cookie = told.value("cookie").is_some_and(|cookie| cookie.contains("sid=good"));
            let status = match (has_cookie, is_secret || says_who_it_is) {
                (_, true) => "403 Forbidden",
                (false, _) => "401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"s\"",
                (true, false) => "204 No Content\r\nX-Auth-Request-User: ann",
            };
            format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n")
        })
    }

    /// Says what it was asked, and who asks by all names that a program might read.
    fn app() -> SocketAddr {
        told_origin::origin(|told| {
            let users: Vec<&str> = told
                .head
                .split("\r\n")
                .filter(|line| line.to_lowercase().replace('_', "-").starts_with("x-user:"))
                .collect();
            told.answer("Cache-Control: max-age=60", &format!("{} by {users:?}", told.line()))
        })
    }

    /// Says its name, and what it was asked.
    fn named(name: &'static str) -> SocketAddr {
        told_origin::origin(move |told| told.answer("Cache-Control: no-store", &format!("{name} {}", told.line())))
    }

    /// Status and body.
    fn ask(address: SocketAddr, request: &str) -> (String, String) {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(PATIENCE_MS))).unwrap();
        let (line, fields) = request.split_once('|').unwrap_or((request, "X-None: 1"));
        let host = if fields.starts_with("Host: ") { "" } else { "Host: asked.test\r\n" };
        write!(stream, "{line} HTTP/1.1\r\n{host}{fields}\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").expect("a whole head");
        (head[9..12].to_owned(), body.to_owned())
    }

    /// Both servers with a configuration that is imported without a line that is left, and their addresses.
    fn start(folder: &Path, text: &str) -> (Running, Running, SocketAddr, SocketAddr) {
        let (said, nginx, larder, addresses) = start_imported(folder, text);
        assert!(!said.contains(": not carried over: "), "{said}");
        (nginx, larder, addresses[0], addresses[1])
    }

    /// The same, with what the import said.
    fn start_imported(folder: &Path, text: &str) -> (String, Running, Running, [SocketAddr; 2]) {
        let (theirs, ours) = (free_address(), free_address());
        let (conf, toml) = (folder.join("nginx.conf"), folder.join("larder.toml"));
        std::fs::write(&conf, format!("{AROUND}{}", text.replace("ADDRESS", &theirs.to_string()))).unwrap();
        let done =
            Command::new(env!("CARGO_BIN_EXE_larder")).args(["import", "-o"]).arg(&toml).arg(&conf).output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(toml.exists(), "{said}");
        let [nginx, larder] = told_origin::nginx_and_larder(folder, (&conf, theirs), (&toml, ours));
        (said, nginx, larder, [theirs, ours])
    }

    #[test]
    fn who_may_come_in_is_said_by_the_same_service() {
        let folder = folder("service");
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (service, app) = (service(asked.clone()), app());
        let text = GUARDED.replace("SERVICE", &service.to_string()).replace("APP", &app.to_string());
        let (_nginx, _larder, theirs, ours) = start(&folder, &text);
        for request in [
            "GET /app/a",
            "GET /app/a|Cookie: sid=good",
            "GET /app/a|Cookie: sid=bad",
            "GET /app/a|X-User: root",
            "GET /app/a|Cookie: sid=good\r\nX-User: root",
            "GET /app/a|Cookie: sid=good\r\nX-Real-IP: 10.0.0.1",
            "GET /app/secret|Cookie: sid=good",
            "GET /app/secret|Cookie: sid=good\r\nX-Original-URI: /app/a",
            "HEAD /app/a|Cookie: sid=good",
            "POST /app/a|Cookie: sid=good\r\nContent-Length: 0",
            "POST /app/a|Content-Length: 0",
            "GET /files/a.txt",
            "GET /files/a.txt|Cookie: sid=good",
            "GET /authelia/a",
            "GET /authelia/a|Cookie: sid=good",
            "GET /open/a",
            "GET /oauth2/auth",
            "GET /oauth2/auth|Cookie: sid=good",
            "GET /asked|Cookie: sid=good",
        ] {
            let (of_nginx, of_larder) = (ask(theirs, request), ask(ours, request));
            // What nginx alone may ask for is closed here.
            let is_closed = of_nginx.0 == "404" && of_larder.0 == "403";
            assert!(of_nginx.0 == of_larder.0 || is_closed, "{request}: {of_nginx:?} {of_larder:?}");
            // What is said of an error is each one's own.
            assert!(of_nginx.0 != "200" || of_nginx.1 == of_larder.1, "{request}: {of_nginx:?} {of_larder:?}");
        }
        // Other spellings let nobody in, and none that a program reads as the service's field goes on.
        for request in ["GET /%61pp/a", "GET //app/a", "GET /open/../app/a", "GET /app/%2e%2e/app/a"] {
            assert!(["401", "403"].contains(&&*ask(ours, request).0), "{request}: {:?}", ask(ours, request));
        }
        let spelled = ask(ours, "GET /app/b|Cookie: sid=good\r\nX_User: root");
        assert_eq!(spelled.1, "GET /app/b by [\"X-User: ann\"]");
        let asked = asked.lock().unwrap();
        for line in ["GET /oauth2/auth", "GET /verify?for=site"] {
            assert!(asked.iter().filter(|asked| *asked == line).count() >= 4, "{line}: {asked:?}");
        }
        let _ = std::fs::remove_dir_all(&folder);
    }

    /// While one request is under way the next is refused by both, and later ones are not.
    #[test]
    fn one_too_many_at_a_time_is_refused() {
        let folder = folder("connections");
        let (sender, receiver) = std::sync::mpsc::channel::<()>();
        let (arrived, receiver) = (Mutex::new(sender), Mutex::new(receiver));
        let (release, held) = std::sync::mpsc::channel::<()>();
        let held = Mutex::new(held);
        let app = told_origin::origin(move |told| {
            if told.line().contains("/held") {
                let _ = arrived.lock().unwrap().send(());
                let _ = held.lock().unwrap().recv_timeout(Duration::from_millis(PATIENCE_MS));
            }
            told.answer("Cache-Control: no-store", "")
        });
        let text = "limit_conn_zone $binary_remote_addr zone=each:1m; limit_conn_zone $server_name zone=all:1m;
            server { listen ADDRESS; server_name asked.test; limit_conn_status 429;
                location /one/ { limit_conn each 1; proxy_pass http://APP; }
                location /all/ { limit_conn all 1; limit_conn_status 503; proxy_pass http://APP; } } }";
        let (_nginx, _larder, theirs, ours) = start(&folder, &text.replace("APP", &app.to_string()));
        for address in [theirs, ours] {
            for (path, status) in [("/one", "429"), ("/all", "503")] {
                let line = format!("GET {path}/held");
                let first = std::thread::spawn(move || ask(address, &line));
                receiver.lock().unwrap().recv_timeout(Duration::from_millis(PATIENCE_MS)).expect("it is asked");
                assert_eq!(ask(address, &format!("GET {path}/b")).0, status, "{path}");
                release.send(()).unwrap();
                assert_eq!(first.join().unwrap().0, "200");
                // nginx has counted it as over once its log is written.
                let is_let_in = |_| ask(address, &format!("GET {path}/c")).0 == "200";
                assert!((0..100).any(is_let_in), "{path}");
            }
        }
        let _ = std::fs::remove_dir_all(&folder);
    }

    /// Hosts that lead to applications of their own, methods that are refused, paths that have moved, and a text.
    #[test]
    fn what_maps_decide_is_decided_by_routes() {
        let folder = folder("maps");
        let (one, two) = (named("one"), named("two"));
        let text = "
            map $host $app { default ONE; b.test TWO; elsewhere.test TWO; }
            map $request_method $refused { default 1; GET 0; HEAD 0; }
            map $uri $moved { /old /new; ~^/gone/ /here; }
            map $host $always { default ONE; }
            server { listen ADDRESS; server_name asked.test b.test;
                if ($moved) { return 301 $moved; }
                location / { proxy_pass http://$app; }
                location /read/ { if ($refused) { return 405; } proxy_pass http://$always; } }
            server { listen ADDRESS; server_name elsewhere.test; location / { return 204; } } }";
        let text = text.replace("ONE", &one.to_string()).replace("TWO", &two.to_string());
        let (_nginx, _larder, theirs, ours) = start(&folder, &text);
        for request in [
            "GET /a",
            "GET /a|Host: b.test",
            "GET /a|Host: B.TEST",
            "GET /a|Host: unknown.test",
            "GET /a|Host: elsewhere.test",
            "POST /a|Host: b.test\r\nContent-Length: 0",
            "GET /read/a",
            "HEAD /read/a",
            "GET /read/a|Host: b.test",
            "POST /read/a|Content-Length: 0",
            "DELETE /read/a|Host: b.test",
            "GET /old",
            "GET /OLD|Host: b.test",
            "GET /old/a",
            "GET /gone/a?b",
        ] {
            let (of_nginx, of_larder) = (ask(theirs, request), ask(ours, request));
            // A method that is refused is so by 403 in closed paths.
            let is_closed = of_nginx.0 == "405" && of_larder.0 == "403";
            assert!(of_nginx.0 == of_larder.0 || is_closed, "{request}: {of_nginx:?} {of_larder:?}");
            assert!(of_nginx.0 != "200" || of_nginx.1 == of_larder.1, "{request}: {of_nginx:?} {of_larder:?}");
        }
        let _ = std::fs::remove_dir_all(&folder);
    }

    /// Whatever nginx refuses by another level, another name or another map is refused here, and nobody is led to another application.
    #[test]
    fn nobody_comes_in_by_another_level_or_another_name() {
        let (one, two) = (named("one"), named("two"));
        let with_token = told_origin::origin(|told| {
            let status = if told.value("x-token").is_some() { "204 No Content" } else { "401 Unauthorized" };
            format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n")
        });
        for (nth, (text, requests)) in [
            (
                "server { listen ADDRESS default_server; server_name www.asked.test;
                    location / { proxy_pass http://ONE; } location /adm { deny all; } }
                 server { listen ADDRESS; server_name *.asked.test; location / { proxy_pass http://TWO; } }",
                &["GET /|Host: www.asked.test", "GET /adm|Host: www.asked.test", "GET /|Host: a.asked.test", "GET /|Host: b"][..],
            ),
            (
                "server { listen ADDRESS default_server; server_name www.x.test x.test ~^any;
                    if ($host = www.x.test) { return 301 http://x.test$request_uri; }
                    location / { proxy_pass http://ONE; } location /adm { deny all; } }
                 server { listen ADDRESS; server_name *.x.test; location / { proxy_pass http://TWO; } }
                 server { listen ADDRESS; server_name www.y.test y.test;
                    location / { if ($host = www.y.test) { return 301 http://y.test/; } proxy_pass http://TWO; }
                    location /adm { deny all; } }",
                &[
                    "GET /|Host: www.x.test", "GET /adm|Host: www.x.test", "GET /|Host: x.test", "GET /adm|Host: x.test",
                    "GET /|Host: a.x.test", "GET /|Host: other", "GET /|Host: www.y.test", "GET /adm|Host: www.y.test",
                    "GET /|Host: y.test", "GET /adm|Host: y.test",
                ],
            ),
            (
                "server { listen ADDRESS; deny all;
                    location /t/ { allow all; root site; try_files $uri @app; }
                    location @app { proxy_pass http://TWO; } }",
                &["GET /t/x", "GET /x"],
            ),
            (
                "map $host $app { default ONE; a.x.test TWO; }
                 server { listen ADDRESS default_server; server_name _; return 404; }
                 server { listen ADDRESS; server_name *.x.test; location / { proxy_pass http://$app; } }
                 server { listen ADDRESS; server_name a.x.test; location / { deny all; } location /p { proxy_pass http://ONE; } }",
                &["GET /|Host: a.x.test", "GET /p|Host: a.x.test", "GET /|Host: b.x.test"],
            ),
            (
                "map $host $app { default ONE; *.b.test TWO; }
                 server { listen ADDRESS; server_name _; location / { proxy_pass http://$app; } }",
                &["GET /|Host: x.b.test", "GET /|Host: c.test"],
            ),
            (
                "map $http_host $app { default ONE; c.test TWO; }
                 server { listen ADDRESS; server_name _; location / { proxy_pass http://$app; } }",
                &["GET /|Host: c.test:8080", "GET /|Host: c.test"],
            ),
            (
                "map $host $bad { hostnames; default 0; .bad.test 1; ok.bad.test 0; }
                 server { listen ADDRESS; server_name _; if ($bad) { return 200 two; } location / { proxy_pass http://ONE; } }",
                &["GET /|Host: ok.bad.test", "GET /|Host: x.bad.test"],
            ),
            (
                "server { listen ADDRESS; server_name o.test q.test;
                    location / { if ($host = q.test) { rewrite ^/(.*)$ /z break; } proxy_pass http://ONE; }
                    location /adm { deny all; } location /l/ { proxy_pass http://TWO; } }",
                &["GET /adm|Host: q.test", "GET /adm|Host: o.test", "GET /l/a|Host: q.test", "GET /|Host: o.test"],
            ),
            (
                "server { listen ADDRESS; proxy_pass_request_headers off;
                    location = /q { internal; proxy_pass http://TOKEN; }
                    location / { auth_request /q; proxy_pass http://ONE; } }",
                &["GET /|X-Token: good", "GET /"],
            ),
            (
                "server { listen ADDRESS; set_real_ip_from 127.0.0.0/8; real_ip_header X-Client;
                    location / { allow 127.0.0.1; deny all; proxy_pass http://ONE; } }",
                &["GET /|X-Client: 192.0.2.1"],
            ),
        ]
        .into_iter()
        .enumerate()
        {
            let folder = folder(&format!("levels-{nth}"));
            let text = format!("{text} }}").replace("ONE", &one.to_string()).replace("TWO", &two.to_string());
            let text = text.replace("TOKEN", &with_token.to_string());
            let (said, _nginx, _larder, addresses) = start_imported(&folder, &text);
            for request in requests {
                let [of_nginx, of_larder] = addresses.map(|address| ask(address, request));
                let is_the_same = of_nginx.0 == of_larder.0 && (of_nginx.0 != "200" || of_nginx.1 == of_larder.1);
                let is_closed = ["401", "403", "404"].contains(&&*of_larder.0);
                assert!(is_the_same || is_closed, "{text}\n{request}: {of_nginx:?} {of_larder:?}\n{said}");
            }
            let _ = std::fs::remove_dir_all(&folder);
        }
    }
}
