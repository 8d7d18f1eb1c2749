//! A PHP site beside nginx with the same php-fpm and the same files: scripts are told the same, but for what docs/php.md lists, and what the one
//! shows the other shows, too.

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::net::SocketAddr;
    use std::path::{Path, PathBuf};
    use std::process::{Command, Stdio};
    use std::sync::atomic::{AtomicU32, Ordering};

    use crate::peer_process::{Running, free_address, wait_for, wait_until_it_listens};

    /// Prints what it is told.
    const TELL: &str = "<?php header('Cache-Control: no-store'); ksort($_SERVER); foreach ($_SERVER as $name => $value) { \
                        if (!is_array($value)) echo $name, '=', $value, \"\\n\"; }";

    /// What differs, by docs/php.md; `*`: whatever begins like it.
    const DIFFERS: &[&str] = &[
        "SERVER_SOFTWARE",
        "SERVER_PORT",
        "SERVER_NAME",
        "HTTP_HOST",
        "REMOTE_PORT",
        "REMOTE_USER",
        "PATH_INFO",
        "PATH_TRANSLATED",
        "HTTP_ACCEPT_ENCODING",
        "HTTP_CONTENT_TYPE",
        "HTTP_CONTENT_LENGTH",
        "HTTP_CONNECTION",
        "HTTP_X_HOP",
        "HTTP_X_FORWARDED_FOR",
        "HTTP_SURROGATE_CAPABILITY",
        "REQUEST_TIME*",
    ];

    static COUNT: AtomicU32 = AtomicU32::new(0);

    struct Beside {
        nginx: SocketAddr,
        larder: SocketAddr,
        running: [Running; 3],
    }

    fn folder() -> PathBuf {
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("php-beside-{}-{number}", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = std::fs::remove_dir_all(&path);
        for (name, text) in [
            ("www/index.php", TELL),
            ("www/tell.php", TELL),
            ("www/admin/index.php", TELL),
            ("www/a.css", "p {}"),
            ("www/plain/index.html", "plain"),
            ("www/uploads/photo.jpg", "<?php echo 'run';"),
        ] {
            let path = path.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        path
    }

    fn started(command: &mut Command, folder: &Path) -> Running {
        let command = command.current_dir(folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Running(command.spawn().expect("it is installed: ./setup all"))
    }

    /// Killed, php-fpm would leave its processes behind.
    impl Drop for Beside {
        fn drop(&mut self) {
            let php = &mut self.running[2].0;
            let _ = Command::new("kill").arg(php.id().to_string()).status();
            let _ = php.wait();
        }
    }

    impl Beside {
        fn start() -> Beside {
            let folder = folder();
            let at = folder.display().to_string();
            let fpm = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spec/php-fpm");
            let php = started(Command::new(fpm).arg("2"), &folder);
            wait_for("php-fpm listens", || folder.join("fpm.sock").exists());
            let (nginx, larder) = (free_address(), free_address());
            std::fs::copy("/etc/nginx/fastcgi.conf", folder.join("fastcgi.conf"))
                .expect("nginx is installed: ./setup all");
            let user = if rustix::process::geteuid().is_root() { "user root;" } else { "" };
            let config = format!(
                "{user} daemon off; master_process off; pid {at}/pid; error_log {at}/error.log;\nevents {{ }}\n\
                 http {{ types {{ text/css css; text/html html; image/jpeg jpg; }} access_log off; client_body_temp_path {at}/b;\n\
                 proxy_temp_path {at}/p; fastcgi_temp_path {at}/f; uwsgi_temp_path {at}/u; scgi_temp_path {at}/s;\n\
                 server {{ listen {nginx}; server_name localhost; root {at}/www; index index.php index.html;\n\
                 location / {{ try_files $uri $uri/ /index.php?$args; }}\n\
                 location ~ [^/]\\.php(/|$) {{ include /etc/nginx/snippets/fastcgi-php.conf; fastcgi_pass unix:{at}/fpm.sock; }} }} }}\n"
            );
            std::fs::write(folder.join("nginx.conf"), config).unwrap();
            let conf = folder.join("nginx.conf").display().to_string();
            let peer = started(Command::new("nginx").args(["-e", "/dev/null", "-c", &conf]), &folder);
            let config = format!(
                "[[listen]]\naddress = \"{larder}\"\n[admin]\naddress = \"off\"\n\
                 [origin.php]\nfastcgi = \"unix:{at}/fpm.sock\"\n[[route]]\nroot = \"www\"\norigin = \"php\"\n"
            );
            std::fs::write(folder.join("larder.toml"), config).unwrap();
            let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
            let own = started(command.args(["serve", "--no-supervisor", "--config", "larder.toml"]), &folder);
            wait_until_it_listens(nginx);
            wait_until_it_listens(larder);
            Beside { nginx, larder, running: [own, peer, php] }
        }

        /// Status and body of either.
        fn ask(&self, path: &str, options: &[&str]) -> [(String, String); 2] {
            [self.nginx, self.larder].map(|address| {
                let url = format!("http://{address}{path}");
                let mut asked = Command::new("curl");
                asked.args(["-s", "--path-as-is", "-w", "\n%{http_code}"]).args(options).arg(url);
                let output = asked.output().expect("curl is installed");
                let text = String::from_utf8_lossy(&output.stdout).into_owned();
                let (body, status) = text.rsplit_once('\n').expect("the status stands behind the body");
                (status.to_owned(), body.to_owned())
            })
        }
    }

    fn variables(body: &str) -> BTreeMap<&str, &str> {
        body.lines().filter_map(|line| line.split_once('=')).collect()
    }

    fn differs(name: &str) -> bool {
        DIFFERS.iter().any(|known| known.strip_suffix('*').map_or(*known == name, |start| name.starts_with(start)))
    }

    #[test]
    fn scripts_are_told_what_nginx_tells_them() {
        let beside = Beside::start();
        for (path, options) in [
            ("/tell.php?x=1&y=%20", &["-H", "Cookie: a=1", "-H", "X-A_B: 1", "-H", "X-Forwarded-For: 1.2.3.4"][..]),
            ("/tell.php/info/a%20b", &["-d", "a=b"]),
            ("/some/page?q", &["-A", "x", "-H", "Accept-Language: de"]),
            ("/admin/", &["-u", "me:pass"]),
            ("/", &["-H", "Connection: X-Hop", "-H", "X-Hop: 1"]),
            ("/tell.php?put", &["-X", "PUT", "-d", "x"]),
        ] {
            let [(_, theirs), (_, ours)] = beside.ask(path, options);
            let (theirs, ours) = (variables(&theirs), variables(&ours));
            let mut names: Vec<_> = theirs.keys().chain(ours.keys()).filter(|name| !differs(name)).collect();
            names.dedup();
            assert!(names.len() > 30, "{path}: {theirs:?}");
            for name in names {
                assert_eq!(ours.get(name), theirs.get(name), "{name} of {path}");
            }
        }
    }

    #[test]
    fn files_and_what_is_none_are_answered_alike() {
        let beside = Beside::start();
        for path in ["/a.css", "/plain/", "/uploads/photo.jpg", "/plain/index.html"] {
            let [theirs, ours] = beside.ask(path, &[]);
            assert_eq!(ours, theirs, "{path}");
        }
        for path in ["/admin", "/plain"] {
            let [theirs, ours] = beside.ask(path, &[]);
            assert_eq!((&*ours.0, &*theirs.0), ("301", "301"), "{path}");
        }
        // Neither runs what was uploaded. nginx says 404, and here the application answers.
        let [theirs, ours] = beside.ask("/uploads/photo.jpg/x.php", &[]);
        assert!(theirs.0 == "404" && variables(&ours.1)["SCRIPT_NAME"] == "/index.php", "{theirs:?} {ours:?}");
    }
}
