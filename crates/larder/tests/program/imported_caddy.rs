//! What `larder import` makes of Caddyfiles, beside the real Caddy with the same files and the same origins: the same requests have the same
//! answers, or larder refuses them and has said why; in no spelling of a path larder shows what Caddy refuses.

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpListener, TcpStream};
    use std::path::{Path, PathBuf};
    use std::process::{Command, Stdio};
    use std::time::Duration;

    use crate::caddy_cases::{CASES, Case};
    use crate::lane::PATIENCE_MS;
    use crate::peer_process::{Running, free_address, wait_until_it_listens};

    /// `secret`, as `caddy hash-password` and `htpasswd -B -C 5` make it.
    const HASH: &str = "$2b$05$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a";
    const ANN: &str = "Authorization: Basic YW5uOnNlY3JldA==";

    fn folder(name: &str) -> PathBuf {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("caddy-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        for (name, text) in [
            ("site/index.html", "the start"),
            ("site/a.html", "<p>a</p>"),
            ("site/a.txt", "plain"),
            ("site/a.bak", "an old one"),
            ("site/a.key", "a key"),
            ("site/.hidden", "shown by Caddy"),
            ("site/private/x", "private"),
            ("site/admin/x", "for ann"),
            ("site/secret.txt", "a secret"),
            ("site/deep/a.key", "a deep key"),
            ("site/static/s.js", "s()"),
            ("site/sub/index.html", "below"),
            ("site/empty/x", "x"),
            ("site/four/x", "the last root's"),
        ] {
            let path = path.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        path
    }

    /// Fields by which an origin is told who asks.
    const OF_WHO_ASKS: [&str; 6] = ["x-site", "x-name", "x-role", "x-peer", "x-dn", "x-my-secret"];

    /// An origin that says its name and what it was asked for; one named `auth` lets in who has a cookie, or asks for what is open.
    fn origin(name: &'static str) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                std::thread::spawn(move || answer(name, &mut stream));
            }
        });
        address
    }

    fn answer(name: &str, stream: &mut TcpStream) -> Option<()> {
        let mut bytes = Vec::new();
        let mut buffer = [0; 4096];
        while !bytes.windows(4).any(|window| window == b"\r\n\r\n") {
            let count = stream.read(&mut buffer).ok().filter(|count| *count > 0)?;
            bytes.extend_from_slice(&buffer[..count]);
        }
        let head = String::from_utf8_lossy(&bytes).into_owned();
        let field = |name: &str| {
            let lines = head.split("\r\n").filter_map(|line| line.split_once(": "));
            lines
                .filter(|(known, _)| known.eq_ignore_ascii_case(name))
                .map(|(_, value)| value)
                .collect::<Vec<_>>()
                .join(",")
        };
        let mut words = head.split(' ');
        let (method, target) = (words.next()?, words.next()?);
        let is_let_in = field("cookie").contains("let=in")
            || field("x-forwarded-uri").starts_with("/open") && field("x-deny").is_empty();
        let (status, body) = match (name, is_let_in) {
            ("auth", false) => ("401 Unauthorized", "not in".to_owned()),
            _ => {
                let host = field("host");
                let host = if host.starts_with("127.") { "itself" } else { &host };
                let who = OF_WHO_ASKS.map(field).join(" ");
                ("200 OK", format!("{name} {method} {target} {host} {who}"))
            }
        };
        let fields =
            format!("X-Secret: inner\r\nX-User: ann\r\nCache-Control: no-store\r\nContent-Length: {}", body.len());
        write!(stream, "HTTP/1.1 {status}\r\n{fields}\r\nConnection: close\r\n\r\n{body}").ok()
    }

    #[derive(Debug, PartialEq)]
    struct Answer {
        status: u16,
        fields: BTreeMap<String, String>,
        body: String,
    }

    /// `None`: the connection ended without an answer.
    fn ask(address: SocketAddr, head: &str) -> Option<Answer> {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(PATIENCE_MS))).unwrap();
        stream.write_all(format!("{head}\r\nConnection: close\r\n\r\n").as_bytes()).unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).ok()?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let (head, body) = text.split_once("\r\n\r\n")?;
        let mut lines = head.split("\r\n");
        let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
        let field = |line: &str| line.split_once(": ").map(|(name, value)| (name.to_lowercase(), value.to_owned()));
        let fields: BTreeMap<String, String> = lines.filter_map(field).collect();
        let is_chunked = fields.get("transfer-encoding").is_some_and(|coding| coding == "chunked");
        let body = if is_chunked { dechunked(body) } else { body.to_owned() };
        Some(Answer { status, fields, body })
    }

    fn dechunked(mut text: &str) -> String {
        let mut out = String::new();
        while let Some((length, rest)) = text.split_once("\r\n") {
            let length = usize::from_str_radix(length, 16).unwrap();
            out.push_str(&rest[..length]);
            text = rest.get(length + 2..).unwrap_or_default();
        }
        out
    }

    const COMPARED: [&str; 5] = ["x-all", "x-common", "x-secret", "content-range", "content-encoding"];
    /// Those of pages, where Caddy says them.
    const OF_PAGES: [&str; 2] = ["cache-control", "x-frame-options"];

    /// What must be the same. A directory's redirect may have another status, and an error another text.
    fn is_same(theirs: &Answer, ours: &Answer) -> bool {
        let field = |answer: &Answer, name: &str| answer.fields.get(name).cloned();
        let location = |answer: &Answer| field(answer, "location");
        let status = |answer: &Answer| if answer.status == 308 { 301 } else { answer.status };
        let has_body = theirs.status < 400 && location(theirs).is_none();
        let is_said = |name: &&str| {
            theirs.status >= 400 || field(theirs, name).is_none() || field(theirs, name) == field(ours, name)
        };
        status(theirs) == status(ours)
            && location(theirs) == location(ours)
            && (!has_body || theirs.body == ours.body)
            && COMPARED.iter().all(|name| field(theirs, name) == field(ours, name))
            && OF_PAGES.iter().all(is_said)
    }

    /// `[METHOD ]PATH[ | FIELD: VALUE]` as a head.
    fn head(asked: &str) -> String {
        let (line, field) = asked.split_once(" | ").unwrap_or((asked, ""));
        let (method, path) = line.split_once(' ').unwrap_or(("GET", line));
        let host = field.strip_prefix("Host: ").unwrap_or("any.test");
        let body = if method == "POST" { "\r\nContent-Length: 0" } else { "" };
        let field = match field {
            "AUTH" => format!("\r\n{ANN}"),
            field if field.starts_with("AUTH\r\n") => format!("\r\n{ANN}{}", &field[4..]),
            _ if field.is_empty() || field.starts_with("Host: ") => String::new(),
            field => format!("\r\n{field}"),
        };
        format!("{method} {path} HTTP/1.1\r\nHost: {host}{field}{body}")
    }

    /// The directories that others of a case are asked for in.
    fn directories(asked: &[&str]) -> Vec<String> {
        let path = |asked: &&str| Some(asked.split(' ').find(|word| word.starts_with('/'))?.to_owned());
        let first = |path: String| Some(format!("/{}", path[1..].split_once('/')?.0));
        let mut all: Vec<String> = asked.iter().filter_map(path).filter_map(first).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The same path in other spellings, some of which begin in these directories.
    fn spellings(asked: &str, directories: &[String]) -> Vec<String> {
        let at = asked.find('/').unwrap();
        let (before, path) = asked.split_at(at);
        let rest = &path[1..];
        let mut all = vec![format!("{before}//{rest}"), format!("{before}/x/..{path}"), format!("{before}/./{rest}")];
        if let Some(first) = rest.bytes().next().filter(u8::is_ascii_alphabetic) {
            all.push(format!("{before}/%{first:02x}{}", &rest[1..]));
            all.push(format!("{before}/{}{}", char::from(first).to_ascii_uppercase(), &rest[1..]));
        }
        for directory in directories {
            all.extend(["..", "%2e%2e"].map(|up| format!("{before}{directory}/{up}{path}")));
        }
        // Caddy looks away from dots and blanks at the end.
        let end = path.find(['?', ' ']).unwrap_or(path.len());
        let (path, behind) = path.split_at(end);
        if !path.ends_with('/') {
            all.extend([".", "%20"].map(|more| format!("{before}{path}{more}{behind}")));
        }
        all
    }

    struct Served {
        theirs: SocketAddr,
        ours: SocketAddr,
        said: String,
        _running: [Running; 2],
    }

    /// Both servers with this configuration.
    fn serve(folder: &Path, conf: &str) -> Served {
        let (theirs, ours) = (free_address(), free_address());
        let origins = [("ORIGIN_AUTH", "auth"), ("ORIGIN_A", "one"), ("ORIGIN_B", "two")];
        let mut conf = conf.replace("FOLDER", &folder.display().to_string()).replace("HASH", HASH);
        conf = conf.replace("ELSEWHERE", &free_address().port().to_string());
        for (written, name) in origins.into_iter().filter(|(written, _)| conf.contains(written)).collect::<Vec<_>>() {
            conf = conf.replace(written, &origin(name).to_string());
        }
        let file = folder.join("Caddyfile");
        std::fs::write(&file, format!("{{\n admin off\n http_port {}\n}}\n{conf}\n", theirs.port())).unwrap();
        let output = folder.join("larder.toml");
        let done =
            Command::new(env!("CARGO_BIN_EXE_larder")).args(["import", "-o"]).arg(&output).arg(&file).output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(output.exists(), "{said}");
        let mut caddy = Command::new("caddy");
        caddy.args(["run", "--adapter", "caddyfile", "--config"]).arg(&file).env("HOME", folder).stdin(Stdio::null());
        let caddy = Running(
            caddy.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("caddy is installed: ./setup all"),
        );
        let mut larder = Command::new(env!("CARGO_BIN_EXE_larder"));
        larder
            .args([
                "serve",
                "--no-supervisor",
                "--admin",
                "off",
                "--workers",
                "1",
                "--listen",
                &ours.to_string(),
                "--config",
            ])
            .arg(&output);
        let larder = Running(larder.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        wait_until_it_listens(theirs);
        wait_until_it_listens(ours);
        Served { theirs, ours, said, _running: [caddy, larder] }
    }

    fn listed(said: &str) -> Vec<&str> {
        said.lines().filter(|line| line.contains(": not carried over: ")).collect()
    }

    fn check(case: &Case) -> Vec<String> {
        let folder = folder(case.name);
        let served = serve(&folder, case.conf);
        let directories = directories(case.asked);
        let mut wrong = Vec::new();
        let lines = listed(&served.said);
        let is_said = |expect: &&str| lines.iter().any(|line| line.contains(*expect));
        if !case.listed.iter().all(is_said) || case.listed.is_empty() != lines.is_empty() {
            wrong.push(format!("{}: listed otherwise:\n{}", case.name, served.said));
        }
        for asked in case.asked {
            let both = |asked: &str| (ask(served.theirs, &head(asked)), ask(served.ours, &head(asked)));
            let otherwise = case.otherwise.iter().find(|(known, _)| known == asked).map(|(_, status)| *status);
            let (theirs, ours) = both(asked);
            let is_forged =
                |answer: &Option<Answer>| answer.as_ref().is_some_and(|answer| answer.body.contains("forged"));
            let is_right = match (otherwise, &theirs, &ours) {
                _ if is_forged(&ours) && !is_forged(&theirs) => false,
                (Some(status), _, Some(ours)) => ours.status == status,
                (None, Some(theirs), Some(ours)) => is_same(theirs, ours),
                _ => false,
            };
            if !is_right {
                wrong.push(format!("{}: {asked}\n  theirs {theirs:?}\n  ours {ours:?}", case.name));
            }
            let is_shown_otherwise = otherwise.is_some_and(|status| status < 400);
            for spelling in spellings(asked, &directories).iter().filter(|_| !is_shown_otherwise) {
                let (theirs, ours) = both(spelling);
                let refuses = ours.as_ref().is_none_or(|answer| answer.status >= 400);
                let is_right = matches!((&theirs, &ours), (Some(theirs), Some(ours)) if is_same(theirs, ours));
                if !refuses && !is_right {
                    wrong.push(format!(
                        "{}: in another spelling: {spelling}\n  theirs {theirs:?}\n  ours {ours:?}",
                        case.name
                    ));
                }
            }
        }
        let _ = std::fs::remove_dir_all(&folder);
        wrong
    }

    #[test]
    fn an_imported_caddyfile_answers_as_caddy_does() {
        let wrong: Vec<String> = CASES.iter().flat_map(check).collect();
        assert!(wrong.is_empty(), "{} are wrong\n{}", wrong.len(), wrong.join("\n"));
    }

    /// Imports a Caddyfile, and returns the exit code, what was said, and the text.
    fn imported(folder: &Path, conf: &str) -> (Option<i32>, String, String) {
        let (file, output) = (folder.join("Caddyfile"), folder.join("out.toml"));
        let _ = std::fs::remove_file(&output);
        std::fs::write(&file, conf).unwrap();
        let done =
            Command::new(env!("CARGO_BIN_EXE_larder")).args(["import", "-o"]).arg(&output).arg(&file).output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        (done.status.code(), said, std::fs::read_to_string(&output).unwrap_or_default())
    }

    /// Whatever keeps people out, or is not known, and has no words here keeps everybody out of what it stands beside.
    #[test]
    fn what_caddy_guards_is_not_shown() {
        let folder = folder("closed");
        let all = "path = \"/\"";
        for (inside, shut) in [
            ("rate_limit {\n zone a\n}\n", all),
            ("authorize with policy\n", all),
            ("import none.conf\n", all),
            ("tls {\n client_auth {\n mode require_and_verify\n }\n}\n", all),
            ("handle /in/* {\n crowdsec\n file_server\n}\n", "path_pattern = '(?i)^/in/'"),
            ("basic_auth /in/* {\n ann {$UNSET_HASH}\n}\n", "path_pattern = '(?i)^/in/'"),
            ("basic_auth /in/* argon2id {\n ann $argon2id$x\n}\n", "path_pattern = '(?i)^/in/'"),
            ("forward_auth /in/* a:1 {\n uri /x?{query}\n}\n", "path_pattern = '(?i)^/in/'"),
            ("@k query key=1\nhandle /in/* {\n respond @k yes\n respond no 403\n}\n", "path_pattern = '(?i)^/in/'"),
            ("@g expression `{path} == '/x'`\nrespond @g 403\n", all),
            (
                "map {path} {who} {\n /a admin\n default guest\n}\n@g expression `{who} == 'admin'`\nrespond @g 403\n",
                all,
            ),
            ("@i {\n remote_ip forwarded 10.0.0.0/8\n}\nrespond @i 403\n", all),
            ("@n path_regexp ^/(?<n>a\nrespond @n 403\n", all),
            ("forward_auth /in/* a:1 {\n header_up X-Forwarded-Need admin\n}\n", "path_pattern = '(?i)^/in/'"),
            ("handle /in/* {\n root * site\n file_server\n}\n", "path_pattern = '(?i)^/in/'"),
            ("handle /in/* {\n file_server {\n hide {env.X}secret\n }\n}\n", "path_pattern = '(?i)^/in/'"),
            ("handle /in/* {\n request_header -*-Secret\n reverse_proxy a:1\n}\n", "path_pattern = '(?i)^/in/'"),
            ("reverse_proxy /in/* {env.APP}\n", "path_pattern = '(?i)^/in/'"),
            ("php_fastcgi /in/* a:1 {\n env A {host}\n}\n", "path_pattern = '(?i)^/in/'"),
            ("handle /in/* {\n limits x\n}\n", "path_pattern = '(?i)^/in/'"),
            ("plugin /in/* a\n", all),
            ("rewrite /in/* /a.html\n", "path_pattern = '(?i)^/in/'"),
        ] {
            let conf = format!("http:// {{\n root * {}/site\n {inside} file_server\n}}\n", folder.display());
            let (code, said, text) = imported(&folder, &conf);
            let section = text.split("[[route]]").find(|section| section.contains(shut)).unwrap_or_default();
            assert!(code == Some(1) && section.contains("closed = true"), "{inside}\n{said}\n{text}");
            assert_eq!(text.contains("root = "), shut != all, "{inside}\n{text}");
        }
        let order =
            format!("{{\n order respond before redir\n}}\n:80 {{\n root * {}\n file_server\n}}\n", folder.display());
        let (code, said, text) = imported(&folder, &order);
        assert!(code == Some(1) && text.contains("closed = true") && !text.contains("root = "), "{said}\n{text}");
        let _ = std::fs::remove_dir_all(&folder);
    }

    /// What routes have words for is carried over, and nothing is listed.
    #[test]
    fn what_has_words_is_carried_over() {
        let folder = folder("words");
        for (conf, expect) in [
            (":80\nreverse_proxy a:1 b:1 {\n lb_policy first\n}\n", "balance = \"first\""),
            (":80\nreverse_proxy h2c://a:1\n", "urls = [\"h2://a:1\"]"),
            (
                "{\n servers {\n trusted_proxies static 10.0.0.0/8\n }\n}\n:80\nrespond hi\n",
                "trusted_proxies = [\"10.0.0.0/8\"]",
            ),
            (":80 {\n log {\n output file /var/log/a.log\n }\n respond hi\n}\n", "path = \"/var/log/a.log\""),
            (":80\nrequest_body {\n max_size 1MB\n}\nreverse_proxy a:1\n", "request_body_bytes_max = 1000000"),
            (":80\nroot * /srv\nroute {\n file_server browse\n}\n", "listing = \"negotiated\""),
            ("{\n default_bind 127.0.0.1\n}\n:80\nrespond hi\n", "address = \"127.0.0.1:80\""),
            (":80\nreverse_proxy a:1 {\n header_down Cache-Control private\n}\n", "cache = false"),
            (":80\nheader Vary Cookie\nreverse_proxy a:1\n", "cache = false"),
            (":80\n@a not remote_ip 10.0.0.0/8\nrespond @a 403\nreverse_proxy a:1\n", "allow = [\"10.0.0.0/8\"]"),
        ] {
            let (code, said, text) = imported(&folder, conf);
            assert!(code == Some(0) && text.contains(expect), "{conf}\n{said}\n{text}");
            assert_eq!(text.contains("[origin."), text.contains("\nheuristic_percent = 0\n"), "{text}");
        }
        // By another name it has to be said that it is one; and users are for their owner alone.
        let (file, output) = (folder.join("site.conf"), folder.join("named.toml"));
        std::fs::write(&file, format!(":80\nbasic_auth {{\n ann {HASH}\n}}\nrespond hi\n")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
        assert!(
            command
                .args(["import", "--kind", "caddy", "-o"])
                .arg(&output)
                .arg(&file)
                .output()
                .unwrap()
                .status
                .success()
        );
        let users = folder.join("named.users-1");
        assert_eq!(std::fs::read_to_string(&users).unwrap(), format!("ann:{HASH}\n"));
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(std::fs::metadata(&users).unwrap().permissions().mode() & 0o777, 0o600);
        let _ = std::fs::remove_dir_all(&folder);
    }

    /// What a site that is not carried over guards is not shown by another; and what is not said of all is said of none.
    #[test]
    fn what_is_left_out_opens_nothing() {
        let folder = folder("left");
        for (conf, is_there, is_not) in [
            (
                "http://a.test:80/secret* {\n respond no 403\n}\n:80 {\n respond hi\n}\n",
                "host = [\"a.test\"]\nclosed = true",
                "\0",
            ),
            (
                "http://a.test.:80 {\n respond no 403\n}\n:80 {\n respond hi\n}\n",
                "host = [\"a.test\"]\nclosed = true",
                "\0",
            ),
            (
                "http://a.test {\n bind localhost\n respond hi\n}\n:80 {\n respond hi\n}\n",
                "host = [\"a.test\"]\nclosed = true",
                "\0",
            ),
            (
                ":80 {\n respond hi\n}\n:80 {\n bind 127.0.0.1\n respond secret\n}\n",
                "path = \"/\"\nclosed = true",
                "respond",
            ),
            (
                "{\n auto_https disable_redirects\n}\nhttps://a.test:443 {\n respond secret\n}\nhttp://b.test {\n respond plain\n}\n",
                "#address = \"*:443\"",
                "plain",
            ),
            ("http://a.test:8080, http://b.test:8081 {\n respond hi\n}\n", "closed = true", "respond"),
            (
                "{\n servers {\n trusted_proxies static 10.0.0.0/8\n }\n}\n:80\n@a not remote_ip 10.0.0.0/8\nrespond @a 403\nreverse_proxy a:1\n",
                "path = \"/\"\nclosed = true",
                "allow = ",
            ),
            (
                ":80\n@pub not header_regexp Cookie session\nheader @pub Cache-Control max-age=3600\nreverse_proxy a:1\n",
                "origin = ",
                "3600",
            ),
            (
                ":80\n@own header_regexp Cookie session\nheader @own Cache-Control private\nheader @own -X-Inner\nreverse_proxy a:1\n",
                "cache = false\nresponse_headers = { remove = [\"X-Inner\"] }",
                "private\"",
            ),
            (
                ":80 {\n handle /a/* {\n @in header X-Role ann\n route {\n reverse_proxy @in a:1\n respond hi\n }\n }\n handle {\n request_header -X-Role\n reverse_proxy b:1\n }\n}\n",
                "remove = [\"X-Role\"]",
                "header = {",
            ),
        ] {
            let (code, said, text) = imported(&folder, conf);
            assert!(code == Some(1) && text.contains(is_there) && !text.contains(is_not), "{conf}\n{said}\n{text}");
        }
        let conf = format!(":80\nroot * {}\nbasicauth {{\n ann {HASH}\n}}\nfile_server\n", folder.display());
        let (_, said, text) = imported(&folder, &conf);
        assert!(text.contains("'^/(?:out\\.toml|out\\.users-[0-9]+)(?:/|$)'"), "{said}\n{text}");
        let _ = std::fs::remove_dir_all(&folder);
    }

    /// No certificate is ordered, and nobody agrees to terms but the operator.
    #[test]
    fn no_certificate_is_ordered_unasked() {
        let folder = folder("ordered");
        let conf = "{\n email us@example.org\n}\nexample.org, www.example.org {\n reverse_proxy a:1\n}\n";
        let (code, said, text) = imported(&folder, conf);
        assert!(code == Some(1) && said.contains("not ordered unasked"), "{said}");
        let plan: String = text.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join("\n");
        assert!(plan.contains("mode = \"redirect\"") && !plan.contains("acme"), "{text}");
        assert!(text.contains("#terms_agreed = true\n#email = \"us@example.org\""), "{text}");
        let _ = std::fs::remove_dir_all(&folder);
    }
}
