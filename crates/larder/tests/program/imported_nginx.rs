//! What `larder import` makes of an nginx configuration, beside the real nginx with that configuration: the same paths
//! have the same answers.

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeMap;
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpStream};
    use std::path::{Path, PathBuf};
    use std::process::Command;
    use std::time::Duration;

    use crate::lane::PATIENCE_MS;
    use crate::peer_process::free_address;
    use crate::told_origin;

    /// A site as they are written: types, a charset, pages for errors in a directory of their own, numbers, listings,
    /// an application with a fallback, lives by directory, and things that files alone do not make.
    const CONF: &str = r#"
daemon off; master_process off; pid logs/pid; error_log logs/error.log;
worker_processes 1;
events { worker_connections 256; use epoll; }
http {
    include mime.types;
    default_type application/octet-stream;
    sendfile on;
    tcp_nopush on;
    charset GBK;   # what the pages are written in
    keepalive_timeout 60;
    client_header_buffer_size 2k;
    large_client_header_buffers 4 4k;
    client_max_body_size 8m;
    open_file_cache max=102400 inactive=20s;
    access_log off;
    client_body_temp_path tmp; proxy_temp_path tmp; fastcgi_temp_path tmp; uwsgi_temp_path tmp; scgi_temp_path tmp;
    server {
        listen ADDRESS;
        root site;
        index index.html index.htm;
        error_page 404 405 /404.html;
        error_page 403 /403.html;
        error_page 500 502 503 504 /50x.html;
        location / { }
        location = /50x.html { root pages; }
        location = /404.html { root pages; }
        location /files/ { autoindex on; autoindex_format json; }
        location /app/ { try_files $uri $uri/ /app/start.html; charset utf-8; }
        location /static/ { expires 1h; gzip_static on; }
        location /media/ { alias other/media/; default_type text/plain; }
        location = /numbers { stub_status; allow 127.0.0.1; deny all; }
        location ~ \.php$ { fastcgi_pass 127.0.0.1:1; fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name; }
    }
    server {
        listen ADDRESS;
        server_name second.test .third.test;
        root second;
        charset off;
        types { text/plain html; }
    }
}
"#;

    pub(crate) fn folder(name: &str) -> PathBuf {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("nginx-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        for (name, text) in [
            ("logs/x", ""),
            ("tmp/x", ""),
            ("site/index.htm", "\u{fffd} the start"),
            ("site/a.html", "<p>a</p>"),
            ("site/a.css", "p {}"),
            ("site/a.js", "a()"),
            ("site/a.json", "{}"),
            ("site/a.xml", "<a/>"),
            ("site/a.txt", "plain"),
            ("site/a.md", "# a"),
            ("site/a.bmp", "BM"),
            ("site/README", "read me"),
            ("site/.hidden", "shown by nginx"),
            ("site/403.html", "not you"),
            ("site/dir/index.html", "an index"),
            ("site/empty/x", "x"),
            ("pages/404.html", "<h1>not here</h1>"),
            ("pages/50x.html", "later"),
            ("site/files/one.txt", "1"),
            ("site/files/two.txt", "22"),
            ("site/files/sub/x", "x"),
            ("site/app/start.html", "the application"),
            ("site/app/app.js", "app()"),
            ("site/static/s.js", "uncompressed, and a little longer"),
            ("other/media/m", "media"),
            ("second/index.html", "the second"),
            ("second/a.html", "another a"),
        ] {
            let path = path.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        std::fs::write(path.join("site/big.bin"), vec![b'x'; 200_000]).unwrap();
        std::fs::write(path.join("site/static/s.js.gz"), b"\x1f\x8b not looked into").unwrap();
        path
    }

    #[derive(Debug, Default)]
    pub(crate) struct Answer {
        pub(crate) status: u16,
        pub(crate) fields: BTreeMap<String, String>,
        pub(crate) body: Vec<u8>,
    }

    pub(crate) fn ask(address: SocketAddr, head: &str) -> Answer {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(PATIENCE_MS))).unwrap();
        stream.write_all(format!("{head}\r\nConnection: close\r\n\r\n").as_bytes()).unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").expect("a whole head");
        let text = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let mut lines = text.split("\r\n");
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let field = |line: &str| line.split_once(": ").map(|(name, value)| (name.to_lowercase(), value.to_owned()));
        let fields: BTreeMap<String, String> = lines.filter_map(field).collect();
        let mut body = bytes[end + 4..].to_vec();
        if fields.get("transfer-encoding").is_some_and(|coding| coding == "chunked") {
            body = dechunked(&body);
        }
        Answer { status, fields, body }
    }

    fn dechunked(mut bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        while let Some(line) = bytes.windows(2).position(|window| window == b"\r\n") {
            let length = usize::from_str_radix(std::str::from_utf8(&bytes[..line]).unwrap(), 16).unwrap();
            out.extend_from_slice(&bytes[line + 2..line + 2 + length]);
            bytes = &bytes[(line + 4 + length).min(bytes.len())..];
        }
        out
    }

    /// What must be the same, by what kind of answer it is.
    fn compared(answer: &Answer) -> Vec<(&'static str, String)> {
        let names: &[&str] = match answer.status {
            200 => &[
                "content-type",
                "content-length",
                "content-encoding",
                "etag",
                "last-modified",
                "accept-ranges",
                "cache-control",
            ],
            206 => &["content-type", "content-length", "content-range", "etag", "last-modified"],
            304 => &["etag"],
            301 => &["location"],
            416 => &["content-range"],
            _ => &["content-type", "content-length", "etag", "last-modified", "accept-ranges"],
        };
        let value = |name: &str| {
            let value = answer.fields.get(name).cloned().unwrap_or_default();
            // nginx says where it is, larder which path.
            match value.split_once("://").and_then(|(_, rest)| rest.split_once('/')) {
                Some((_, path)) if name == "location" => format!("/{path}"),
                _ => value,
            }
        };
        let mut all: Vec<_> = names.iter().map(|name| (*name, value(name))).collect();
        if !matches!(answer.status, 301 | 416) {
            all.push(("body", format!("{} bytes {:?}", answer.body.len(), &answer.body[..answer.body.len().min(80)])));
        }
        all
    }

    const REQUESTS: &[&str] = &[
        "GET / HTTP/1.1",
        "HEAD / HTTP/1.1",
        "GET /a.html HTTP/1.1",
        "GET /a.css HTTP/1.1",
        "GET /a.js HTTP/1.1",
        "GET /a.json HTTP/1.1",
        "GET /a.xml HTTP/1.1",
        "GET /a.txt HTTP/1.1",
        "GET /a.md HTTP/1.1",
        "GET /a.bmp HTTP/1.1",
        "GET /README HTTP/1.1",
        "GET /big.bin HTTP/1.1",
        "GET /big.bin HTTP/1.1\r\nRange: bytes=70000-70009",
        "GET /big.bin HTTP/1.1\r\nRange: bytes=-5",
        "GET /big.bin HTTP/1.1\r\nRange: bytes=200000-",
        "GET /a.txt HTTP/1.1\r\nIf-None-Match: *",
        "GET /a.txt HTTP/1.1\r\nIf-Modified-Since: Thu, 01 Jan 1970 00:00:00 GMT",
        "GET /dir HTTP/1.1",
        "GET /dir?a=b HTTP/1.1",
        "GET /dir/ HTTP/1.1",
        "GET /empty/ HTTP/1.1",
        "GET /none HTTP/1.1",
        "HEAD /none HTTP/1.1",
        "GET /none HTTP/1.1\r\nIf-None-Match: *",
        "GET /none HTTP/1.1\r\nRange: bytes=0-1",
        "POST /a.html HTTP/1.1\r\nContent-Length: 0",
        "GET /404.html HTTP/1.1",
        "GET /50x.html HTTP/1.1",
        "GET /app/ HTTP/1.1",
        "GET /app/some/page HTTP/1.1",
        "GET /app/app.js HTTP/1.1",
        "GET /static/s.js HTTP/1.1",
        "GET /static/none HTTP/1.1",
        "GET /media/m HTTP/1.1",
        "GET /../x HTTP/1.1",
    ];

    pub(crate) fn import(conf: &Path, output: &Path) -> (Option<i32>, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
        command.args(["import", "-o"]).arg(output).arg(conf);
        let done = command.output().unwrap();
        (done.status.code(), String::from_utf8_lossy(&done.stderr).into_owned())
    }

    #[test]
    fn an_imported_nginx_serves_what_nginx_serves() {
        let folder = folder("import");
        let (theirs, ours) = (free_address(), free_address());
        let conf = folder.join("nginx.conf");
        std::fs::write(&conf, CONF.replace("ADDRESS", &theirs.to_string())).unwrap();
        std::fs::copy("/etc/nginx/mime.types", folder.join("mime.types")).unwrap();

        let (code, said) = import(&conf, &folder.join("larder.toml"));
        // Of what is not files it says so, each thing with its line, and nothing else is missing.
        let left: Vec<&str> = said.lines().filter(|line| line.contains(": not carried over: ")).collect();
        assert_eq!((code, left.len()), (Some(1), 1), "{said}");
        assert!(left[0].contains("names that begin with a dot are hidden where programs run"), "{said}");

        let toml = folder.join("larder.toml");
        let _both = told_origin::nginx_and_larder(&folder, (&conf, theirs), (&toml, ours));

        let mut differences = Vec::new();
        let hosts = ["any.test", "second.test", "third.test", "www.third.test"];
        for (host, request) in hosts.iter().flat_map(|host| REQUESTS.iter().map(move |request| (host, request))) {
            let (line, more) = request.split_once("\r\n").unwrap_or((request, "X-None: 1"));
            let head = format!("{line}\r\nHost: {host}\r\n{more}");
            let (theirs, ours) = (ask(theirs, &head), ask(ours, &head));
            // The second server has no pages: what is said without one is each one's own.
            let has_page = *host == hosts[0] && theirs.status != 400 || theirs.status < 400;
            let same = theirs.status == ours.status && (!has_page || compared(&theirs) == compared(&ours));
            if !same {
                differences.push(format!(
                    "{head:?}\n  {} {:?}\n  {} {:?}",
                    theirs.status,
                    compared(&theirs),
                    ours.status,
                    compared(&ours)
                ));
            }
        }
        assert!(differences.is_empty(), "{} differ\n{}\n{said}", differences.len(), differences.join("\n"));

        // Compressed where it is accepted, in JSON what is in a directory, and numbers in one form.
        let accepts = "GET /static/s.js HTTP/1.1\r\nHost: any.test\r\nAccept-Encoding: gzip";
        let (of_nginx, of_larder) = (ask(theirs, accepts), ask(ours, accepts));
        assert_eq!((of_nginx.body, of_nginx.status), (of_larder.body, of_larder.status));
        assert_eq!(of_larder.fields["content-encoding"], "gzip");
        let list = |address| {
            serde_json::from_slice::<serde_json::Value>(&ask(address, "GET /files/ HTTP/1.1\r\nHost: any.test").body)
                .unwrap()
        };
        let (of_nginx, mut of_larder) = (list(theirs), list(ours));
        of_larder
            .as_array_mut()
            .unwrap()
            .iter_mut()
            .for_each(|entry| drop(entry.as_object_mut().unwrap().remove("href")));
        assert_eq!(of_nginx, of_larder);
        let numbers = |address| {
            let answer = ask(address, "GET /numbers HTTP/1.1\r\nHost: any.test");
            let form: String = String::from_utf8(answer.body)
                .unwrap()
                .split(|c: char| c.is_ascii_digit())
                .filter(|part| !part.is_empty())
                .collect::<Vec<_>>()
                .join("#");
            (answer.status, form)
        };
        assert_eq!(numbers(theirs), numbers(ours));
        let _ = std::fs::remove_dir_all(&folder);
    }

    /// Imports a server, and returns the exit code, what was said, and the text.
    pub(crate) fn imported(folder: &Path, inside: &str) -> (Option<i32>, String, String) {
        let conf = folder.join("nginx.conf");
        let _ = std::fs::remove_file(folder.join("out.toml"));
        std::fs::write(&conf, format!("http {{ server {{ root site; {inside} }} }}")).unwrap();
        let (code, said) = import(&conf, &folder.join("out.toml"));
        (code, said, std::fs::read_to_string(folder.join("out.toml")).unwrap_or_default())
    }

    /// Whatever keeps people out with nginx and has no words here keeps everybody out, and never becomes a plain file of the
    /// route around it.
    #[test]
    fn what_nginx_guards_is_not_shown() {
        let folder = folder("guards");
        std::fs::write(folder.join("md5"), "ann:$apr1$x$y\n").unwrap();
        for (inside, shut) in [
            ("location /members/ { auth_basic x; }", "path = \"/members/\""),
            ("location /members/ { auth_basic x; auth_basic_user_file md5; }", "path = \"/members/\""),
            ("location /any/ { satisfy any; allow 10.0.0.1; deny all; auth_basic x; }", "path = \"/any/\""),
            ("location /app/ { proxy_pass http://$host; }", "path = \"/app/\""),
            ("location /app/ { auth_request /a; proxy_pass http://127.0.0.1:1; }", "path = \"/app/\""),
            (
                "location = /a { internal; proxy_pass http://127.0.0.1:2; proxy_set_header X-Group admins; } location /app/ { auth_request /a; proxy_pass http://127.0.0.1:1; }",
                "path = \"/app/\"",
            ),
            (
                "location = /a { internal; proxy_pass http://127.0.0.1:2; proxy_set_header Authorization \"\"; } location /app/ { auth_request /a; proxy_pass http://127.0.0.1:1; }",
                "path = \"/app/\"",
            ),
            (
                "location = /a { internal; proxy_pass http://127.0.0.1:2; proxy_pass_request_headers off; } location /app/ { auth_request /a; proxy_pass http://127.0.0.1:1; }",
                "path = \"/app/\"",
            ),
            (
                "location = /a { internal; proxy_pass http://127.0.0.1:2; rewrite ^ /b break; } location /app/ { auth_request /a; proxy_pass http://127.0.0.1:1; }",
                "path = \"/app/\"",
            ),
            (
                "location = /a { internal; proxy_pass http://127.0.0.1:2; if ($arg_a) { return 200; } } location /app/ { auth_request /a; proxy_pass http://127.0.0.1:1; }",
                "path = \"/app/\"",
            ),
            (
                "location = /a { internal; proxy_pass http://127.0.0.1:2; proxy_intercept_errors on; } location /app/ { auth_request /a; proxy_pass http://127.0.0.1:1; }",
                "path = \"/app/\"",
            ),
            (
                "location = /a { internal; proxy_pass http://127.0.0.1:2; proxy_set_header X-Original-URI /public; } location /app/ { auth_request /a; proxy_pass http://127.0.0.1:1; }",
                "path = \"/app/\"",
            ),
            (
                "location = /a { internal; proxy_pass http://127.0.0.1:2; proxy_set_header Host $arg_host; } location /app/ { auth_request /a; proxy_pass http://127.0.0.1:1; }",
                "path = \"/app/\"",
            ),
            (
                "location = /a { proxy_pass http://127.0.0.1:2$request_uri; } location /app/ { auth_request /a; proxy_pass http://127.0.0.1:1; }",
                "path = \"/app/\"",
            ),
            (
                "location = /a { return 204; } location /app/ { auth_request /a; proxy_pass http://127.0.0.1:1; }",
                "path = \"/app/\"",
            ),
            (
                "set $s b; location = /a { proxy_pass http://127.0.0.1:2/$s; } location /app/ { set $s c; auth_request /a; proxy_pass http://127.0.0.1:1; }",
                "path = \"/app/\"",
            ),
            (
                "location = /a { proxy_pass http://127.0.0.1:2; } location /app/ { satisfy any; allow 10.0.0.1; deny all; auth_request /a; proxy_pass http://127.0.0.1:1; }",
                "path = \"/app/\"",
            ),
            (
                "rewrite ^/a /b last; location = /a { proxy_pass http://127.0.0.1:2; } location /app/ { auth_request /a; proxy_pass http://127.0.0.1:1; }",
                "path = \"/app/\"",
            ),
            (
                "location = /a { proxy_pass http://127.0.0.1:2; } location /app/ { auth_request /a?x=1; proxy_pass http://127.0.0.1:1; }",
                "path = \"/app/\"",
            ),
            ("location /up/ { uwsgi_pass 127.0.0.1:1; }", "path = \"/up/\""),
            ("location /sent/ { internal; }", "path = \"/sent/\""),
            ("location = /asked { internal; proxy_pass http://127.0.0.1:1; }", "path_pattern = '^/asked$'"),
            ("location = /m { internal; set $memc_key a; memc_pass 127.0.0.1:1; }", "path_pattern = '^/m$'"),
            ("location = /numbers { stub_status; internal; }", "path_pattern = '^/numbers$'"),
            ("location ~ ^/(a|b)/ { js_content x; }", "path_pattern = '^/(a|b)/'"),
            ("auth_request /x;", "path = \"/\""),
            ("if ($invalid_referer) { return 403; }", "path = \"/\""),
        ] {
            let (code, said, text) = imported(&folder, inside);
            assert!(code == Some(1) && text.contains(&format!("{shut}\nclosed = true")), "{inside}\n{said}\n{text}");
            assert_eq!(text.contains("root = "), shut != "path = \"/\"", "{text}");
        }
        let _ = std::fs::remove_dir_all(&folder);
    }

    /// What routes have words for is carried over, and nothing is listed.
    #[test]
    fn what_routes_can_say_is_carried_over() {
        let folder = folder("words");
        std::fs::write(folder.join("users"), "ann:$2y$05$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a\n")
            .unwrap();
        for (inside, lines) in [
            ("location /p/ { deny all; }", "path = \"/p/\"\nclosed = true"),
            ("location ~ /\\.ht { deny all; }", "path_pattern = '/\\.ht'\nclosed = true"),
            ("location /p/ { allow 10.0.0.0/8; deny all; }", "allow = [\"10.0.0.0/8\"]"),
            ("location /p/ { auth_basic x; auth_basic_user_file users; }", "users\", realm = \"x\" }"),
            ("location = /n { stub_status; auth_basic x; auth_basic_user_file users; }", "users\", realm = \"x\" }"),
            ("location /old/ { return 301 /; }", "path = \"/old/\"\nredirect = { to = \"/\", status = 301 }"),
            ("rewrite ^/old/(.*)$ /new/$1 permanent;", "path_pattern = '^/old/(.*)$'\nredirect = { to = \"/new/$1"),
            ("location /app/ { proxy_pass https://127.0.0.1:1; }", "path = \"/app/\"\norigin = \"127.0.0.1:1\""),
            (
                "location /a { proxy_pass http://127.0.0.1:1/b/; }",
                "path_pattern = '^/a(.*)$'\norigin = \"127.0.0.1:1\"\nrewrite = \"/b/$1\"",
            ),
            ("location /a/ { proxy_pass http://127.0.0.1:1/; }", "strip_prefix = \"/a\""),
            ("location /a/ { add_header X-A b always; }", "response_headers = { add = { \"X-A\" = \"b\" } }"),
        ] {
            let (code, said, text) = imported(&folder, inside);
            assert!(code == Some(0) && text.contains(lines), "{inside}\n{said}\n{text}");
        }
        let inner = "location /outer/ { location /outer/inner/ { deny all; } location /outer/open/ { expires 1d; } }";
        let (code, said, text) = imported(&folder, inner);
        let is_closed = text.contains("path = \"/outer/inner/\"\nclosed = true");
        assert!(code == Some(0) && is_closed && text.contains("path = \"/outer/open/\"\nroot = "), "{said}\n{text}");
        let _ = std::fs::remove_dir_all(&folder);
    }

    /// A script runs under its own path, and what stands behind it there only where nginx hands that to it.
    #[test]
    fn scripts_are_run_where_nginx_runs_them() {
        let folder = folder("scripts");
        let pass = "fastcgi_pass 127.0.0.1:1; fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name;";
        let run = "path_pattern = '\\.php$'\nroot = ";
        let behind = "(?i)[.]php/";
        let split = "fastcgi_split_path_info ^(.+\\.php)(/.+)$;";
        for (inside, hands_on) in [
            (format!("location ~ \\.php$ {{ {pass} }}"), false),
            (format!("location ~ \\.php$ {{ {split} {pass} }}"), true),
            (format!("location ~ \\.php$ {{ {split} try_files $uri =404; {pass} }}"), false),
            (format!("location ~ \\.php$ {{ {split} try_files $fastcgi_script_name =404; {pass} }}"), true),
        ] {
            let (_, said, text) = imported(&folder, &inside);
            let section = text.split("[[route]]").find(|section| section.contains(run));
            let section = section.unwrap_or_else(|| panic!("{inside}\n{said}\n{text}"));
            assert_eq!(section.contains(behind), !hands_on, "{inside}\n{text}");
            // The root's sources are shown by no other route.
            let files = text.split("[[route]]").find(|section| section.contains("path = \"/\"\n")).unwrap();
            assert!(files.contains("closed_paths") && files.contains("phtml"), "{text}");
        }
        let front =
            format!("index index.php; location / {{ try_files $uri /index.php; }} location ~ \\.php$ {{ {pass} }}");
        let (_, _, text) = imported(&folder, &front);
        // Directories are no files: their indexes are not looked for.
        assert!(
            text.contains("index = [\"not-in-nginx.html\"]") && text.contains("fallback = \"/index.php\""),
            "{text}"
        );
        let _ = std::fs::remove_dir_all(&folder);
    }

    /// Where one location answers in place of another, nginx asks both who may come in.
    #[test]
    fn guards_of_what_answers_in_place_of_another_hold() {
        let folder = folder("in-place");
        let run = "location ~ \\.php$ { allow 10.0.0.1; deny all; fastcgi_pass 127.0.0.1:1; fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name; }";
        let allowed = "allow = [\"10.0.0.1\"]";
        let of_route = |text: &str, path: &str| {
            let section = text.split("[[route]]").find(|section| section.contains(path)).map(str::to_owned);
            section.unwrap_or_else(|| panic!("{path}\n{text}"))
        };
        for (inside, path, unwanted) in [
            (format!("location / {{ try_files $uri /index.php; }} {run}"), "path = \"/\"\n", "\norigin = "),
            (format!("index index.php; {run}"), "path = \"/\"\n", "\norigin = "),
            (
                "location / { try_files $uri /in/a.html; } location /in/ { allow 10.0.0.1; deny all; }".to_owned(),
                "path = \"/\"\n",
                "in/a.html",
            ),
            (
                "error_page 404 /in/a.html; location /in/ { allow 10.0.0.1; deny all; }".to_owned(),
                "path = \"/\"\n",
                "in/a.html",
            ),
        ] {
            let (_, said, text) = imported(&folder, &inside);
            assert!(!of_route(&text, path).contains(unwanted), "{inside}\n{said}\n{text}");
        }
        let named = "location / { try_files $uri @app; } location @app { allow 10.0.0.1; deny all; proxy_pass http://127.0.0.1:1; }";
        let (_, said, text) = imported(&folder, named);
        assert!(of_route(&text, "path = \"/\"\norigin = ").contains(allowed), "{said}\n{text}");
        let rewritten = format!(
            "location /a/ {{ limit_rate 5; if ($request_method = GET) {{ rewrite ^ /index.php last; }} }} {run}"
        );
        let (_, said, text) = imported(&folder, &rewritten);
        assert!(of_route(&text, "method = [\"GET\"]").contains(allowed), "{said}\n{text}");
        let _ = std::fs::remove_dir_all(&folder);
    }

    /// Routes know no listeners: what nginx answers on an inner port alone is answered for nobody.
    #[test]
    fn a_server_that_listens_elsewhere_is_closed() {
        let folder = folder("listens");
        let conf = folder.join("nginx.conf");
        let outer = "server { listen 80; listen [::]:80; server_name a.test; root site; }";
        let check = |inner: &str, is_closed: bool| {
            std::fs::write(&conf, format!("http {{ {outer} {inner} }}")).unwrap();
            let (_, said) = import(&conf, &folder.join("out.toml"));
            let text = std::fs::read_to_string(folder.join("out.toml")).unwrap();
            assert_eq!(said.contains("it listens elsewhere"), is_closed, "{inner}\n{said}");
            assert_eq!(text.matches("root = ").count(), if is_closed { 1 } else { 2 }, "{inner}\n{text}");
            assert!(!text.contains("8081"), "{text}");
        };
        check("server { listen *:80; server_name b.test; root second; }", false);
        check("server { listen 127.0.0.1:8081; server_name b.test; root second; }", true);
        check("server { listen 127.0.0.1:8081 default_server; root second; }", true);
        check("server { listen 10.0.0.5:80; server_name b.test; root second; }", true);
        let _ = std::fs::remove_dir_all(&folder);
    }

    /// Routes to others have no names that they hide: a guard of such names closes them there.
    #[test]
    fn a_guard_of_dotfiles_holds_for_what_is_passed_on() {
        let folder = folder("dotfiles");
        let conf = folder.join("nginx.conf");
        let route = |path: &str, lines: &str| format!("path = \"{path}\"\n{lines}");
        for (pass, open) in [
            ("proxy_pass http://127.0.0.1:1;", "origin = "),
            ("set $memc_key $uri; memc_pass 127.0.0.1:1;", "memcached = "),
            ("set $memcached_key $uri; memcached_pass 127.0.0.1:1;", "memcached = "),
        ] {
            // By ^~ nginx asks no regex; what has files hides them itself.
            let others = format!("location /files/ {{ }} location ^~ /raw/ {{ {pass} }}");
            let guard = "location ~ /\\. { deny all; }";
            let text = format!("http {{ server {{ root site; {guard} location / {{ {pass} }} {others} }} }}");
            std::fs::write(&conf, text).unwrap();
            let (code, said) = import(&conf, &folder.join("out.toml"));
            let text = std::fs::read_to_string(folder.join("out.toml")).unwrap();
            assert!(code == Some(0) && text.contains(&route("/", open)), "{said}\n{text}");
            assert!(text.contains(&route("/files/", "root = ")), "{text}");
            // The first pattern that matches counts: what stands behind the guard is guarded.
            let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what}\n{text}"));
            let raw = at(&format!("path_pattern = '^/raw/'\n{open}"));
            let guard = at("path_pattern = '/\\.'\nclosed = true");
            assert!(raw < guard && guard < at(&route("/files/", "")) && guard < at(&route("/", "")), "{text}");
        }
        let _ = std::fs::remove_dir_all(&folder);
    }

    /// Imports a server: what the command ends with, and what its output has in it and has not.
    /// Returns what was said.
    pub(crate) fn check_server(
        folder: &Path,
        inside: &str,
        (code, wanted, unwanted): (i32, &[&str], &[&str]),
    ) -> String {
        let (found, said, text) = imported(folder, inside);
        let has = |part: &&&str| text.contains(**part);
        let missing: Vec<_> = wanted.iter().filter(|part| !has(part)).collect();
        let there: Vec<_> = unwanted.iter().filter(has).collect();
        assert!(missing.is_empty() && there.is_empty(), "{inside}\n{missing:?} {there:?}\n{said}\n{text}");
        assert_eq!(found, Some(code), "{inside}\n{said}");
        said
    }

    /// Many sites say by a regex how long scripts and pictures live, and ask the application for them as for the rest.
    #[test]
    fn what_a_regex_asks_of_an_origin_is_open_where_that_is_asked() {
        let folder = folder("same-origin");
        let check = |inside: &str, code, wanted: &[&str], unwanted: &[&str]| {
            check_server(&folder, inside, (code, wanted, unwanted));
        };
        let app = "proxy_pass http://127.0.0.1:1;";
        let scripts = "location ~* \\.(js|css)$";
        let asked = "path_pattern = '(?i)\\.(js|css)$'\norigin = \"127.0.0.1:1\"";
        let closed = "closed_paths = ['(?i)\\.(js|css)$']";
        let all = format!("location / {{ {app} }}");
        check(&format!("{all} {scripts} {{ {app} expires 30d; }}"), 0, &[asked], &["closed_paths"]);
        check(
            &format!("location / {{ {app} {scripts} {{ {app} expires 30d; }} }}"),
            0,
            &["max-age"],
            &["closed_paths"],
        );
        // Files, and another origin, are something else than what the regex asks, in whatever spelling.
        let files = "location /files/ { expires 1d; }";
        check(&format!("{all} {files} {scripts} {{ {app} }}"), 0, &["path = \"/files/\"\nroot = ", asked, closed], &[]);
        check(&format!("{all} {scripts} {{ proxy_pass http://127.0.0.1:2; }}"), 0, &[closed], &[]);
        // Who keeps people out does so.
        let shut = "path_pattern = '(?i)\\.(js|css)$'\nclosed = true";
        check(&format!("{all} {scripts} {{ {app} deny all; }}"), 0, &[shut], &[]);
        check(&format!("{all} {scripts} {{ {app} auth_basic x; }}"), 1, &[shut], &[]);
        let _ = std::fs::remove_dir_all(&folder);
    }

    #[test]
    fn files_beside_an_application_are_files_alone() {
        let folder = folder("beside");
        let check = |inside: &str, code, wanted: &[&str], unwanted: &[&str]| {
            check_server(&folder, inside, (code, wanted, unwanted));
        };
        let app = "proxy_pass http://127.0.0.1:1;";
        let assets = "path = \"/assets/\"\nroot = ";
        let by_regex = "location ~ ^/(assets|packs)/ { try_files $uri =404; }";
        let both: &[&str] = &["path_pattern = '^/(assets|packs)/'\nroot = ", "closed_paths = ['^/(assets|packs)/']"];
        check(&format!("location / {{ {app} }} {by_regex}"), 0, both, &[]);
        check(&format!("location / {{ {app} {by_regex} }}"), 0, both, &[]);
        let within = "location /assets/ { expires 1d; }";
        let of_path: &[&str] = &[assets, "closed_paths = ['^/assets/']"];
        check(&format!("location / {{ {app} {within} }}"), 0, of_path, &[]);
        check(&format!("location / {{ {app} }} {within}"), 0, of_path, &[]);
        // try_files is handed down to no location.
        let named = format!("try_files $uri @app; location @app {{ {app} }}");
        check(&format!("{named} {within}"), 1, of_path, &[]);
        let scripts: &[&str] = &["path_pattern = '\\.js$'\nroot = ", "closed_paths = ['\\.js$']"];
        check(&format!("location / {{ {app} }} location ~ \\.js$ {{ expires 1d; }}"), 0, scripts, &[]);
        // Where all are files, the route around it shows them.
        check("location ~ ^/assets/ { expires 1d; }", 0, &["path = \"/\"\nroot = "], &["closed_paths"]);
        let _ = std::fs::remove_dir_all(&folder);
    }

    /// A route's path is held against what is sent, where blanks and letters of other alphabets are escaped.
    #[test]
    fn a_path_that_no_route_has_is_closed() {
        let folder = folder("no-route");
        for (path, closed) in [
            ("\"/my files/\"", "'^/my files/'"),
            ("/café/", "'^/café/'"),
            ("= /a%20b", "'^/a%20b$'"),
            ("^~ \"/x y\"", "'^/x y'"),
        ] {
            let inside = format!("location {path} {{ deny all; }} location /open/ {{ }}");
            let said = check_server(
                &folder,
                &inside,
                (1, &[&format!("path_pattern = {closed}\nclosed = true"), "/open/"], &[]),
            );
            assert!(said.contains("the path of a route cannot be this"), "{path}\n{said}");
        }
        let _ = std::fs::remove_dir_all(&folder);
    }

    #[test]
    fn what_is_no_configuration_is_said() {
        let folder = folder("wrong");
        let conf = folder.join("nginx.conf");
        for (text, expect) in [
            ("http {\n  server { root site }\n}\n", "nginx.conf:2: a ; is missing before this }"),
            ("http { include none.conf; server { } }", "include none.conf: there is no such file"),
            ("http { server { listen 443 ssl; } }", "it has no certificate here: nobody listens for it by TLS"),
            ("http { server { location / { proxy_pass http://$a; } } }", "closed: an origin must be http"),
        ] {
            std::fs::write(&conf, text).unwrap();
            let (code, said) = import(&conf, &folder.join("out.toml"));
            assert!(code == Some(1) && said.contains(expect), "{text}: {code:?} {said}");
        }
        let _ = std::fs::remove_dir_all(&folder);
    }
}
