//! What `larder import` makes of nginx's locations that ask memcached, by both of its modules, beside the real nginx with
//! that configuration: the same requests have the same answers, and keys are with the same servers.

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpStream};
    use std::os::unix::net::UnixStream;
    use std::path::{Path, PathBuf};
    use std::process::{Command, Stdio};
    use std::time::Duration;

    use crate::lane::PATIENCE_MS;
    use crate::peer_process::{Running, free_address, wait_for};

    /// Where Debian's libnginx-mod-http-memc puts it.
    const MODULE: &str = "/usr/lib/nginx/modules/ngx_http_memc_module.so";

    const CONF: &str = r#"
load_module MODULE;
daemon off; master_process off; pid logs/pid; error_log logs/error.log;
events { worker_connections 64; }
http {
    access_log off;
    default_type application/octet-stream;
    types { text/html html; image/png png; text/css css; }
    client_body_temp_path tmp; proxy_temp_path tmp; fastcgi_temp_path tmp; uwsgi_temp_path tmp; scgi_temp_path tmp;
    memc_connect_timeout 2s;
    upstream one { server unix:SOCKET max_fails=3 fail_timeout=5s; keepalive 8; }
    upstream ring {
        server RING0;
        server RING1 weight=2;
        server RING2;
        hash $arg_key consistent;
    }
    server {
        listen ADDRESS;
        root site;
        set $ns pages;
        location /memc {
            set $memc_cmd $arg_cmd; set $memc_key $arg_key; set $memc_value $arg_val;
            set $memc_flags $arg_flags; set $memc_exptime $arg_exptime;
            memc_read_timeout 1m;
            memc_pass one;
        }
        location /some { set $memc_key "$ns:$arg_key"; memc_cmds_allowed get set; memc_pass unix:SOCKET; }
        location /pages/ {
            set $memcached_key "$uri?$args";
            memcached_gzip_flag 2;
            default_type text/html;
            memcached_pass one;
        }
        location /lm { set $memc_key $arg_key; set $memc_flags $arg_flags; memc_flags_to_last_modified on; memc_pass one; }
        location /ring { set $memc_key $arg_key; memc_pass ring; }
        location /closed { set $memc_key $remote_addr; memc_pass one; }
        location /guarded { set $memc_key $arg_key; deny all; memc_pass one; }
    }
}
"#;

    /// Method, target and a body.
    const CASES: &[(&str, &str, Option<&str>)] = &[
        ("GET", "/memc?key=a", None),
        ("PUT", "/memc?key=a&flags=5&val=zz", Some("not this")),
        ("GET", "/memc?key=a", None),
        ("HEAD", "/memc?key=a", None),
        ("GET", "/memc/x.html?key=a", None),
        ("GET", "/memc/x.css?key=a", None),
        ("GET", "/memc/x.unknown?key=a", None),
        ("POST", "/memc?key=a&val=other", Some("")),
        ("GET", "/memc?key=n&cmd=set&val=10", None),
        ("GET", "/memc?key=n&cmd=incr&val=5", None),
        ("GET", "/memc?key=n&cmd=append&val=7", None),
        ("DELETE", "/memc?key=n", None),
        ("DELETE", "/memc?key=n", None),
        ("GET", "/memc?cmd=version", None),
        ("GET", "/memc?key=a&cmd=nonsense", None),
        ("GET", "/memc", None),
        ("PUT", "/some?key=b", Some("in a name space")),
        ("GET", "/some?key=b", None),
        ("GET", "/memc?key=pages:b", None),
        ("DELETE", "/some?key=b", None),
        ("POST", "/some?key=b", Some("x")),
        ("GET", "/pages/a.html?", None),
        ("GET", "/pages/a.html", None),
        ("GET", "/pages/a.html?b=c", None),
        ("GET", "/pages/a%20b.png", None),
        ("GET", "/pages/plain", None),
        ("GET", "/pages/zipped.html", None),
        ("GET", "/pages/none", None),
        ("PUT", "/lm?key=t&flags=1400000000", Some("val")),
        ("GET", "/lm?key=t", None),
        ("GET", "/guarded?key=a", None),
    ];

    /// What lies in memcached before: key, flags, value.
    const ITEMS: &[(&str, u32, &str)] = &[
        ("/pages/a.html?", 0, "<p>a</p>"),
        ("/pages/a.html?b=c", 0, "<p>a of b</p>"),
        ("/pages/a%20b.png?", 0, "picture"),
        ("/pages/plain?", 0, "plain"),
        ("/pages/zipped.html?", 2, "\u{1f}zip"),
    ];

    fn run(command: &mut Command) -> Running {
        Running(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts"))
    }

    /// One that listens on a socket, with its items.
    fn memcached_at(socket: &Path) -> Running {
        let running = run(Command::new("memcached").args(["-u", "root", "-s"]).arg(socket));
        wait_for("memcached listens", || UnixStream::connect(socket).is_ok());
        let mut stream = UnixStream::connect(socket).expect("it listens");
        for (key, flags, value) in ITEMS {
            write!(stream, "set {key} {flags} 0 {}\r\n{value}\r\n", value.len()).expect("it reads");
            let mut stored = [0; 8];
            stream.read_exact(&mut stored).expect("it replies");
            assert_eq!(&stored, b"STORED\r\n");
        }
        running
    }

    fn memcached_on(address: SocketAddr) -> Running {
        let (ip, port) = (address.ip().to_string(), address.port().to_string());
        let running = run(Command::new("memcached").args(["-u", "root", "-U", "0", "-l", &ip, "-p", &port]));
        wait_for("memcached listens", || TcpStream::connect(address).is_ok());
        running
    }

    fn ask(address: SocketAddr, (method, target, body): (&str, &str, Option<&str>)) -> (String, Vec<u8>) {
        let mut stream = TcpStream::connect(address).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_millis(PATIENCE_MS))).expect("a timeout can be set");
        let length = body.map(|body| format!("Content-Length: {}\r\n", body.len())).unwrap_or_default();
        let head = format!("{method} {target} HTTP/1.1\r\nHost: t.test\r\nConnection: close\r\n{length}\r\n");
        stream.write_all([&head, body.unwrap_or_default()].concat().as_bytes()).expect("it reads");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("an answer in time");
        let at = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("an answer has a head");
        (String::from_utf8_lossy(&answer[..at]).into_owned(), answer[at + 4..].to_vec())
    }

    /// Status; and, but for pages of errors, which are each server's own, some fields and the body.
    fn said(address: SocketAddr, case: (&str, &str, Option<&str>)) -> Vec<String> {
        let (head, body) = ask(address, case);
        let status = head.split(' ').nth(1).unwrap_or_default().to_owned();
        let is_page = status.starts_with(['4', '5']) && !body.ends_with(b"\r\n") || body.ends_with(b"</html>\r\n");
        let mut all = vec![status];
        if !is_page {
            let names = ["Content-Length", "Content-Type", "Content-Encoding", "Last-Modified"];
            let field = |name: &str| head.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned();
            all.extend(names.map(field));
            all.push(String::from_utf8_lossy(&body).into_owned());
        }
        all
    }

    fn folder(name: &str) -> PathBuf {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("nginx-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        for part in ["logs", "tmp", "site"] {
            std::fs::create_dir_all(path.join(part)).expect("the target folder can be written");
        }
        path
    }

    fn import(conf: &Path, output: &Path) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
        let done = command.args(["import", "-o"]).arg(output).arg(conf).output().expect("larder starts");
        String::from_utf8_lossy(&done.stderr).into_owned()
    }

    fn larder(config: &Path, address: SocketAddr) -> Running {
        let mut larder = Command::new(env!("CARGO_BIN_EXE_larder"));
        larder.args([
            "serve",
            "--no-supervisor",
            "--admin",
            "off",
            "--workers",
            "1",
            "--listen",
            &address.to_string(),
            "--config",
        ]);
        let running = run(larder.arg(config));
        wait_for("larder listens", || TcpStream::connect(address).is_ok());
        running
    }

    #[test]
    fn imported_locations_ask_memcached_as_nginx_does() {
        assert!(Path::new(MODULE).exists(), "./setup installs libnginx-mod-http-memc");
        let folder = folder("memcached");
        let (theirs, ours) = (free_address(), free_address());
        let (their_socket, our_socket) = (folder.join("their.sock"), folder.join("our.sock"));
        let _memcacheds = [memcached_at(&their_socket), memcached_at(&our_socket)];
        let ring = [free_address(), free_address(), free_address()];
        let _ring = ring.map(memcached_on);
        let mut text = CONF.replace("MODULE", MODULE).replace("ADDRESS", &theirs.to_string());
        for (at, address) in ring.iter().enumerate() {
            text = text.replace(&format!("RING{at}"), &address.to_string());
        }
        let (conf, toml) = (folder.join("nginx.conf"), folder.join("larder.toml"));
        std::fs::write(&conf, text.replace("SOCKET", &their_socket.display().to_string())).expect("written");
        let said_of_it = import(&conf, &toml);
        let left: Vec<&str> = said_of_it.lines().filter(|line| line.contains(": not carried over: ")).collect();
        assert_eq!(left.len(), 1, "{said_of_it}");
        assert!(left[0].contains("memc_pass one: its key has a variable"), "{said_of_it}");
        let text = std::fs::read_to_string(&toml).expect("it was made");
        std::fs::write(&toml, text.replace("their.sock", "our.sock")).expect("written");
        let mut nginx = Command::new("nginx");
        let _nginx = run(nginx.args(["-e", "/dev/null", "-p"]).arg(&folder).arg("-c").arg(&conf));
        wait_for("nginx listens", || TcpStream::connect(theirs).is_ok());
        let _larder = larder(&toml, ours);
        let differences: Vec<String> = CASES
            .iter()
            .filter_map(|case| {
                let (of_nginx, of_larder) = (said(theirs, *case), said(ours, *case));
                (of_nginx != of_larder).then(|| format!("{case:?}\n  nginx  {of_nginx:?}\n  larder {of_larder:?}"))
            })
            .collect();
        assert!(differences.is_empty(), "{}\n{text}", differences.join("\n"));
        assert_eq!(said(ours, ("GET", "/closed", None))[0], "403", "what has no form here is shut");

        // Each finds with the same server what the other has stored.
        for number in 0..60 {
            let key = format!("key-{number}");
            let (storing, finding) = if number % 2 == 0 { (theirs, ours) } else { (ours, theirs) };
            let target = format!("/ring?key={key}");
            assert_eq!(said(storing, ("PUT", &target, Some(&key)))[0], "201", "{key}");
            assert_eq!(said(finding, ("GET", &target, None)).last(), Some(&key));
        }
        let _ = std::fs::remove_dir_all(&folder);
    }

    #[test]
    fn what_has_no_form_here_is_shut_or_said() {
        let folder = folder("memcached-left");
        let (conf, toml) = (folder.join("nginx.conf"), folder.join("larder.toml"));
        let shut = "closed = true";
        let two = "upstream u { server 127.0.0.1:1; server 127.0.0.1:2;";
        for (upstream, inside, expect, is_shut) in [
            ("", "set $memc_key $request_uri; memc_pass a:1;", "its key has a variable", true),
            ("", "set $memc_key k; memc_pass $arg_to;", "memcached cannot have a variable for its servers", true),
            ("", "set $memc_key k; set $memc_value \"a$arg_b\"; memc_pass a:1;", "more than one part", true),
            ("", "set $memcached_key $uri; memcached_pass a:1; auth_basic x;", "no file says who the users are", true),
            (
                &format!("{two} least_conn; }}"),
                "set $memc_key k; memc_pass u;",
                "servers that a hash cannot choose from",
                true,
            ),
            (&format!("{two} }}"), "set $memc_key k; memc_pass u;", "nginx asks by turns", false),
            (&format!("{two} hash k; }}"), "set $memc_key k; memc_pass u;", "most will be elsewhere", false),
            (
                &format!("{two} hash $uri consistent; }}"),
                "set $memc_key k; memc_pass u;",
                "the key alone decides",
                false,
            ),
            (&format!("{two} server a:1 backup; }}"), "set $memc_key k; memc_pass u;", "weight, max_fails", false),
            (
                "",
                "set $memc_key k; memc_next_upstream error http_500; memc_pass a:1;",
                "next_server cannot have this word",
                false,
            ),
        ] {
            let text = format!("http {{ {upstream} server {{ root site; location /m {{ {inside} }} }} }}");
            std::fs::write(&conf, text).expect("written");
            let said = import(&conf, &toml);
            let text = std::fs::read_to_string(&toml).unwrap_or_default();
            assert!(said.contains("not carried over") && said.contains(expect), "{inside}\n{said}");
            assert_eq!((text.contains(shut), text.contains("memcached = ")), (is_shut, !is_shut), "{inside}\n{text}");
        }
        let _ = std::fs::remove_dir_all(&folder);
    }

    /// max_fails=0 of nginx's: however often a server fails, it is asked.
    #[test]
    fn a_server_that_is_never_given_up_is_never_ejected() {
        let folder = folder("memcached-never");
        let (conf, toml) = (folder.join("nginx.conf"), folder.join("larder.toml"));
        let upstream = "upstream u { server a:1 max_fails=0; server a:2 max_fails=0; hash $uri consistent; }";
        let location = "location /m { set $memc_key $uri; memc_pass u; }";
        std::fs::write(&conf, format!("http {{ {upstream} server {{ {location} }} }}")).expect("written");
        let said = import(&conf, &toml);
        let text = std::fs::read_to_string(&toml).unwrap_or_default();
        assert!(said.contains(" 0 directives not carried over"), "{said}");
        assert!(text.contains(&format!("ejection_failures = {}\n", u32::MAX)), "{said}\n{text}");
        let _ = std::fs::remove_dir_all(&folder);
    }
}
