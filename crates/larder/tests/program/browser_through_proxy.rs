//! A real browser through the forward proxy: Chromium, headless, over loopback. It loads a page of several parts from a
//! real nginx, once as whole URLs and once by CONNECT from a TLS listener whose certificate nobody signed.

#[cfg(test)]
mod tests {
    use std::net::{SocketAddr, TcpStream};
    use std::path::{Path, PathBuf};
    use std::process::{Command, Stdio};

    use crate::lane::{PATIENCE_MS, now_ms};
    use crate::peer_process::{Running, free_address};
    use crate::subject::{Kind, Setup, Subject, get};

    /// What the page is made of; its script says at last which of it has come.
    const PAGE: &str = r#"<!doctype html><html><head><meta charset="utf-8"><title>parts</title>
<link rel="stylesheet" href="/style.css"><script src="/script.js"></script></head>
<body><p id="styled">styled</p><img id="image" src="/image.svg" alt=""><iframe src="/frame.html" id="frame"></iframe>
<p id="said">nothing yet</p><script>
addEventListener("load", () => {
  const asked = new XMLHttpRequest();
  asked.open("POST", "/answer.json", false);
  asked.send("up");
  const parts = {
    style: getComputedStyle(document.getElementById("styled")).color,
    script: window.fromScript,
    image: document.getElementById("image").naturalWidth,
    frame: document.getElementById("frame").contentDocument.body.textContent.trim(),
    asked: asked.status + " " + asked.responseText.trim(),
  };
  document.getElementById("said").textContent = "parts: " + JSON.stringify(parts);
});
</script></body></html>
"#;
    const PARTS: &[(&str, &str)] = &[
        ("index.html", PAGE),
        ("style.css", "#styled { color: rgb(1, 2, 3) }\n"),
        ("script.js", "window.fromScript = 'ran';\n"),
        ("image.svg", "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"37\" height=\"5\"></svg>\n"),
        ("frame.html", "<!doctype html><p>framed</p>\n"),
    ];
    const SAID: &str =
        r#"parts: {"style":"rgb(1, 2, 3)","script":"ran","image":37,"frame":"framed","asked":"200 posted"}"#;

    fn run(command: &mut Command) -> String {
        let done = command.stdin(Stdio::null()).output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let errors = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{command:?}: {}\n{errors}", done.status);
        String::from_utf8_lossy(&done.stdout).into_owned()
    }

    /// nginx in front of the parts, in the clear and by TLS.
    fn start_site(folder: &Path, plain: SocketAddr, secure: SocketAddr) -> Running {
        std::fs::create_dir_all(folder.join("site")).expect("the target folder can be written");
        for (name, text) in PARTS {
            std::fs::write(folder.join("site").join(name), text).expect("the target folder can be written");
        }
        run(Command::new("openssl")
            .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"])
            .args(["-subj", "/CN=nobody.test", "-days", "2", "-keyout", "key.pem", "-out", "cert.pem"])
            .current_dir(folder));
        let conf = format!(
            "daemon off; master_process off; pid pid; error_log errors;\nevents {{ }}\n\
             http {{ types {{ text/html html; text/css css; text/javascript js; image/svg+xml svg; }}\n\
             log_format asked '$scheme $request_method $uri'; access_log asked.log asked;\n\
             client_body_temp_path t1; proxy_temp_path t2; fastcgi_temp_path t3; uwsgi_temp_path t4; scgi_temp_path t5;\n\
             server {{ listen {plain}; listen {secure} ssl; ssl_certificate cert.pem; ssl_certificate_key key.pem;\n\
             root site; add_header Cache-Control max-age=600;\n\
             location = /answer.json {{ default_type text/plain; return 200 posted; }} }} }}\n"
        );
        std::fs::write(folder.join("nginx.conf"), conf).expect("the target folder can be written");
        let mut nginx = Command::new("nginx");
        nginx.arg("-p").arg(folder).arg("-c").arg(folder.join("nginx.conf")).arg("-e").arg(folder.join("errors"));
        let nginx = Running(nginx.stdin(Stdio::null()).stderr(Stdio::null()).spawn().expect("nginx is installed"));
        let deadline_ms = now_ms() + PATIENCE_MS;
        while TcpStream::connect(plain).is_err() || TcpStream::connect(secure).is_err() {
            let errors = std::fs::read_to_string(folder.join("errors")).unwrap_or_default();
            assert!(now_ms() < deadline_ms, "nginx does not listen: {errors}");
            std::thread::yield_now();
        }
        nginx
    }

    /// What stands in the page when a browser that was never here before has loaded it through the proxy.
    fn browse(subject: &Subject, folder: &Path, visit: &str, url: &str) -> String {
        // It finds loopback too near for a proxy, unless it is told otherwise.
        let proxy = format!("--proxy-server=http://{}", subject.address);
        let profile = format!("--user-data-dir={}", folder.join(visit).display());
        run(Command::new("chromium")
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage"])
            .args(["--disable-background-networking", "--disable-component-update", "--ignore-certificate-errors"])
            .args([&proxy, "--proxy-bypass-list=<-loopback>", &profile, "--dump-dom", url])
            .env("HOME", folder))
    }

    /// The parts that nginx was asked for since it was looked at last.
    fn asked_since(log: &Path, seen_count: &mut usize) -> Vec<String> {
        let text = std::fs::read_to_string(log).unwrap_or_default();
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let new = lines[*seen_count..].iter().filter(|line| !line.ends_with("/favicon.ico")).cloned().collect();
        *seen_count = lines.len();
        new
    }

    #[test]
    fn chromium_loads_pages_by_whole_urls_and_through_tunnels() {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("browser-{}", std::process::id()));
        let [plain, secure] = [free_address(), free_address()];
        let _nginx = start_site(&folder, plain, secure);
        let forward_lines = format!("connect_ports = {}\n", secure.port());
        let extra_destination = Some(secure);
        let setup = Setup { forward: true, forward_lines, extra_destination, ..Setup::default() };
        let subject = Subject::start(Kind::Larder, plain, &setup);
        let log = folder.join("asked.log");
        let mut seen_count = 0;

        // Each part once by the proxy, and what is asked for by POST.
        let page = browse(&subject, &folder, "first", &format!("http://{plain}/"));
        assert!(page.contains(SAID), "{page}");
        let mut asked = asked_since(&log, &mut seen_count);
        asked.sort();
        let wanted = ["GET /frame.html", "GET /image.svg", "GET /index.html", "GET /script.js", "GET /style.css"];
        let mut wanted: Vec<String> = wanted.iter().map(|line| format!("http {line}")).collect();
        wanted.push("http POST /answer.json".to_owned());
        assert_eq!(asked, wanted);

        // Another browser: what may be stored is in larder.
        let page = browse(&subject, &folder, "second", &format!("http://{plain}/"));
        assert!(page.contains(SAID), "{page}");
        assert_eq!(asked_since(&log, &mut seen_count), ["http POST /answer.json"]);

        // By TLS every part comes through a tunnel, and none is known to larder.
        let page = browse(&subject, &folder, "third", &format!("https://{secure}/"));
        assert!(page.contains(SAID), "{page}");
        let mut asked = asked_since(&log, &mut seen_count);
        asked.sort();
        let wanted: Vec<String> = wanted.iter().map(|line| line.replacen("http ", "https ", 1)).collect();
        assert_eq!(asked, wanted);
        let status = get(subject.admin.expect("it has one"), "/status").expect("it answers");
        assert!(!status.contains("\"tunnels\":0,"), "{status}");
        let _ = std::fs::remove_dir_all(&folder);
    }
}
