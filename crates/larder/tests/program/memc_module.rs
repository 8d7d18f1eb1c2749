//! `mode = "nginx-memc"` beside the module it is named after: the same requests, each before a memcached of its own, and
//! the same statuses, bodies and types. What differs on purpose is in docs/memcached.md, and in no case here.

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpStream};
    use std::path::{Path, PathBuf};
    use std::process::{Command, Stdio};
    use std::time::Duration;

    use crate::peer_process::{Running, free_address, wait_for};
    use crate::recording_origin::RecordingOrigin;
    use crate::subject::{Kind, Setup, Subject};

    /// Where Debian's libnginx-mod-http-memc puts it.
    const MODULE: &str = "/usr/lib/nginx/modules/ngx_http_memc_module.so";
    const PATIENCE_MS: u64 = 10_000;

    /// Method, target, and a body where there is one. `/m` has its value in the body, `/v` in an argument.
    const CASES: &[(&str, &str, Option<&str>)] = &[
        ("GET", "/m?key=a", None),
        ("HEAD", "/m?key=a", None),
        ("PUT", "/m?key=a", Some("hello")),
        ("GET", "/m?key=a", None),
        ("HEAD", "/m?key=a", None),
        ("GET", "/m/x.html?key=a", None),
        ("POST", "/m?key=a", Some("other")),
        ("POST", "/m?key=b&flags=77&exptime=100", Some("new")),
        ("GET", "/m?key=b", None),
        ("DELETE", "/m?key=b", None),
        ("DELETE", "/m?key=b", None),
        ("OPTIONS", "/m?key=b", None),
        ("PATCH", "/m?key=b", Some("x")),
        ("GET", "/m", None),
        ("GET", "/m?key=", None),
        ("GET", "/m?key=a&cmd=bogus", None),
        ("GET", "/m?key=a&cmd=GET", None),
        ("GET", "/m?key=a&cmd=gets", None),
        ("GET", "/m?key=a&cmd=touch", None),
        ("GET", "/m?key=a&cmd=mget", None),
        ("GET", "/m?key=a&cmd=set", None),
        ("PUT", "/m?key=empty", Some("")),
        ("GET", "/m?key=empty", None),
        ("GET", "/v?key=a&cmd=set&val=zz", None),
        ("GET", "/m?key=a", None),
        ("GET", "/v?key=a&cmd=set&val=", None),
        ("GET", "/m?key=a", None),
        ("GET", "/v?key=n&cmd=add&val=10", None),
        ("GET", "/v?key=n&cmd=incr&val=5", None),
        ("GET", "/v?key=n&cmd=incr&val=007", None),
        ("GET", "/v?key=n&cmd=incr", None),
        ("GET", "/v?key=n&cmd=incr&val=", None),
        ("GET", "/v?key=n&cmd=incr&val=x", None),
        ("GET", "/v?key=n&cmd=incr&val=-1", None),
        ("GET", "/v?key=n&cmd=incr&val=99999999999999999999", None),
        ("GET", "/v?key=n&cmd=decr&val=3", None),
        ("GET", "/v?key=none&cmd=decr&val=3", None),
        ("GET", "/v?key=n&cmd=append&val=0", None),
        ("GET", "/v?key=n&cmd=prepend&val=9", None),
        ("GET", "/m?key=n", None),
        ("GET", "/v?key=none&cmd=append&val=0", None),
        ("GET", "/v?key=none&cmd=replace&val=0", None),
        ("GET", "/v?key=n&cmd=replace&val=abc", None),
        ("GET", "/v?key=n&cmd=incr&val=1", None),
        ("GET", "/m?key=n&cmd=delete&exptime=0", None),
        ("GET", "/m?key=n&cmd=delete&exptime=5", None),
        ("GET", "/m?key=n&cmd=delete&exptime=x", None),
        ("GET", "/v?key=f&cmd=set&val=x&flags=abc", None),
        ("GET", "/v?key=f&cmd=set&val=x&flags=4294967295", None),
        ("GET", "/v?key=f&cmd=set&val=x&flags=-1", None),
        ("GET", "/v?key=f&cmd=set&val=x&exptime=-1", None),
        ("GET", "/v?key=f&cmd=set&val=x&exptime=abc", None),
        ("GET", "/v?key=f&cmd=set&val=x&exptime=99999999999999999999", None),
        ("GET", "/m?key=f", None),
        ("GET", "/m?cmd=version", None),
        ("GET", "/m?cmd=flush_all&exptime=x", None),
        ("GET", "/allow?key=a&cmd=set", None),
        ("GET", "/allow?key=a", None),
        ("GET", "/allow?key=a&cmd=bogus", None),
        ("PUT", "/m?key=a%20b", Some("v")),
        ("GET", "/m?key=a%20b", None),
        ("PUT", "/m?key=a%0d%0aflush_all", Some("v")),
        ("GET", "/m?key=a%0d%0aflush_all", None),
        ("GET", "/m?key=a", None),
        ("PUT", "/lm?key=t&flags=1400000000", Some("val")),
        ("GET", "/lm?key=t", None),
        ("GET", "/m?cmd=flush_all", None),
        ("GET", "/m?key=a", None),
    ];

    fn run(program: &str, arguments: &[String]) -> Running {
        // Where Debian keeps it, which is in the PATH of administrators only.
        let places = [format!("/usr/sbin/{program}"), format!("/usr/bin/{program}")];
        let program = places.iter().find(|place| Path::new(place).exists()).expect("./setup installs it");
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Running(command.spawn().expect("it can be started"))
    }

    fn memcached(socket: &Path) -> Running {
        let arguments = ["-u".to_owned(), "root".to_owned(), "-s".to_owned(), socket.display().to_string()];
        let running = run("memcached", &arguments);
        wait_for("memcached listens", || std::os::unix::net::UnixStream::connect(socket).is_ok());
        running
    }

    fn nginx(directory: &Path, memcached: &Path) -> (Running, SocketAddr) {
        let address = free_address();
        let (place, socket) = (directory.display(), memcached.display());
        let numbers = "set $memc_flags $arg_flags; set $memc_exptime $arg_exptime;";
        let named = "set $memc_cmd $arg_cmd; set $memc_key $arg_key;";
        let config = format!(
            "load_module {MODULE}; user root; daemon off; master_process off; pid {place}/pid; error_log {place}/error.log;\n\
             events {{ worker_connections 64; }}\n\
             http {{ access_log off; default_type application/octet-stream; types {{ text/html html; }}\n\
             client_body_temp_path {place}/b; proxy_temp_path {place}/p;\n\
             fastcgi_temp_path {place}/f; uwsgi_temp_path {place}/u; scgi_temp_path {place}/s;\n\
             server {{ listen {address};\n\
             location /m {{ {named} {numbers} memc_pass unix:{socket}; }}\n\
             location /v {{ {named} {numbers} set $memc_value $arg_val; memc_pass unix:{socket}; }}\n\
             location /allow {{ {named} memc_cmds_allowed get; memc_pass unix:{socket}; }}\n\
             location /lm {{ {named} {numbers} memc_flags_to_last_modified on; memc_pass unix:{socket}; }} }} }}\n"
        );
        let path = directory.join("nginx.conf");
        std::fs::write(&path, config).expect("the target folder can be written");
        let arguments = ["-c".to_owned(), path.display().to_string(), "-e".to_owned(), "/dev/null".to_owned()];
        let running = run("nginx", &arguments);
        wait_for("nginx listens", || TcpStream::connect(address).is_ok());
        (running, address)
    }

    fn larder(memcached: &Path) -> Subject {
        let route = |path: &str, more: &str| {
            let socket = memcached.display();
            format!("[[route]]\npath = \"{path}\"\nmemcached = \"unix:{socket}\"\nmode = \"nginx-memc\"\n{more}\n")
        };
        let extra = [
            route("/m", "value = \"\""),
            route("/v", ""),
            route("/allow", "commands = \"get\""),
            route("/lm", "flags_to_last_modified = true"),
        ];
        let origin = RecordingOrigin::start();
        Subject::start(Kind::Larder, origin.address(), &Setup { extra: extra.concat(), ..Setup::default() })
    }

    /// What of an answer the module's manual and its tests speak of.
    #[derive(Debug, PartialEq, Eq)]
    struct Said {
        status: String,
        /// Not of pages of errors, which are each server's own.
        told: Option<Told>,
    }

    #[derive(Debug, PartialEq, Eq)]
    struct Told {
        body: Vec<u8>,
        /// Length, type and time of change.
        fields: [Option<String>; 3],
    }

    fn ask(address: SocketAddr, (method, target, body): (&str, &str, Option<&str>)) -> Said {
        let mut stream = TcpStream::connect(address).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_millis(PATIENCE_MS))).expect("a timeout can be set");
        let length = body.map(|body| format!("Content-Length: {}\r\n", body.len())).unwrap_or_default();
        let head = format!("{method} {target} HTTP/1.1\r\nHost: t.test\r\nConnection: close\r\n{length}\r\n");
        stream.write_all([&head, body.unwrap_or_default()].concat().as_bytes()).expect("it reads");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("an answer in time");
        let at = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("an answer has a head");
        let head = String::from_utf8_lossy(&answer[..at]).into_owned();
        let field = |name: &str| {
            let value = |line: &str| line.strip_prefix(name)?.strip_prefix(": ").map(str::to_owned);
            head.lines().find_map(value)
        };
        let body = answer[at + 4..].to_vec();
        let status = head.split(' ').nth(1).unwrap_or_default().to_owned();
        let is_page = status.starts_with(['4', '5']) && !body.ends_with(b"\r\n") || body.ends_with(b"</html>\r\n");
        let told = Told { body, fields: ["Content-Length", "Content-Type", "Last-Modified"].map(field) };
        Said { status, told: (!is_page).then_some(told) }
    }

    #[test]
    fn the_mode_answers_as_the_module_does() {
        assert!(Path::new(MODULE).exists(), "./setup installs libnginx-mod-http-memc");
        let directory: PathBuf = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("memc-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("the target folder can be written");
        let (theirs, ours) = (directory.join("their.sock"), directory.join("our.sock"));
        let _memcacheds = [memcached(&theirs), memcached(&ours)];
        let (_nginx, nginx) = nginx(&directory, &theirs);
        let larder = larder(&ours);
        let differences: Vec<String> = CASES
            .iter()
            .filter_map(|case| {
                let (theirs, ours) = (ask(nginx, *case), ask(larder.address, *case));
                (theirs != ours).then(|| format!("{case:?}\n  nginx  {theirs:?}\n  larder {ours:?}"))
            })
            .collect();
        assert!(differences.is_empty(), "{}", differences.join("\n"));
        let _ = std::fs::remove_dir_all(&directory);
    }
}
