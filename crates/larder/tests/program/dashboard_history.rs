//! The dashboard's files and its history over the admin address: who may read them, what stands in their heads, and what a restart keeps.

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Write};
    use std::net::{SocketAddr, TcpStream};
    use std::os::unix::net::UnixStream;
    use std::path::{Path, PathBuf};
    use std::process::{Child, Command, Stdio};

    use serde_json::Value;

    use crate::http2_site::answer;
    use crate::peer_process::wait_for;

    const TOKEN: &str = "0123456789abcdef";

    struct Started {
        child: Child,
        listen: SocketAddr,
        admin: String,
        folder: PathBuf,
    }

    fn folder(name: &str) -> PathBuf {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("dashboard-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder); // it may not be there
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// A larder that answers by itself. `admin`: of its section; `others`: more sections.
    fn start(folder: &Path, admin: &str, others: &str) -> Started {
        let text = format!(
            "[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nrespond = {{ status = 200, body = \"hello\" }}\n[admin]\ntoken = \"{TOKEN}\"\n{admin}\n{others}\n"
        );
        let (config, ports) = (folder.join("larder.toml"), folder.join("ports"));
        std::fs::write(&config, text).unwrap();
        let _ = std::fs::remove_file(&ports); // of a start before
        let errors = std::fs::File::create(folder.join("stderr")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
        command
            .args(["serve", "--no-supervisor", "--workers", "1", "--config"])
            .arg(&config)
            .arg("--ports-file")
            .arg(&ports);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors).spawn().unwrap();
        let mut listed = String::new();
        wait_for("larder names its ports", || {
            listed = std::fs::read_to_string(&ports).unwrap_or_default();
            listed.lines().any(|line| line.starts_with("admin "))
        });
        let of = |name: &str| listed.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().to_owned();
        Started { child, listen: of("listen ").parse().unwrap(), admin: of("admin "), folder: folder.to_owned() }
    }

    impl Started {
        fn ask(&self, head: &str) -> (u16, String, String) {
            let request = format!("{head}\r\nConnection: close\r\n\r\n");
            let (status, head, body) = match self.admin.strip_prefix("unix:") {
                Some(path) => {
                    let mut stream = UnixStream::connect(path).unwrap();
                    stream.write_all(request.as_bytes()).unwrap();
                    answer(&mut BufReader::new(stream), true)
                }
                None => {
                    let mut stream = TcpStream::connect(&self.admin).unwrap();
                    stream.write_all(request.as_bytes()).unwrap();
                    answer(&mut BufReader::new(stream), true)
                }
            };
            (status, head, String::from_utf8_lossy(&body).into_owned())
        }

        fn get(&self, path: &str) -> (u16, String, String) {
            self.ask(&format!("GET {path} HTTP/1.1\r\nHost: localhost"))
        }

        fn history(&self) -> Value {
            serde_json::from_str(&self.get("/history").2).unwrap()
        }

        /// The sum of a column over all rows.
        fn sum(&self, name: &str) -> u64 {
            let told = self.history();
            let column = told["columns"].as_array().unwrap().iter().position(|column| column == name).unwrap();
            told["rows"].as_array().unwrap().iter().map(|row| row[column].as_u64().unwrap()).sum()
        }

        fn visit(&self, times: u64) {
            for _ in 0..times {
                let mut client = TcpStream::connect(self.listen).unwrap();
                client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
                assert_eq!(answer(&mut BufReader::new(client), true).0, 200);
            }
        }

        fn signal(&self, name: &str) {
            let done = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status().unwrap();
            assert!(done.success());
        }

        /// What it has said when it has ended.
        fn end(mut self) -> String {
            self.signal("TERM");
            assert!(self.child.wait().unwrap().success());
            std::fs::read_to_string(self.folder.join("stderr")).unwrap()
        }
    }

    impl Drop for Started {
        fn drop(&mut self) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }

    /// Status and fields of what the page loads, and that nothing else is to be had.
    #[test]
    fn its_files_are_there_for_who_reaches_the_address_by_a_name_of_its_own() {
        let larder = start(&folder("files"), "address = \"127.0.0.1:0\"", "");
        for (path, content_type) in [
            ("/", "text/html; charset=utf-8"),
            ("/dashboard/dashboard.css", "text/css; charset=utf-8"),
            ("/dashboard/main.js", "text/javascript; charset=utf-8"),
            ("/history", "application/json"),
        ] {
            let (status, head, _) = larder.get(path);
            assert_eq!(status, 200, "{path}");
            for field in [
                &format!("Content-Type: {content_type}\r\n"),
                "Cache-Control: no-store\r\n",
                "X-Content-Type-Options: nosniff\r\n",
                "Cross-Origin-Resource-Policy: same-origin\r\n",
                "Referrer-Policy: no-referrer\r\n",
                "script-src 'self'",
                "frame-ancestors 'none'",
            ] {
                assert!(head.contains(field), "{path}: no {field}: {head}");
            }
            assert!(!head.contains("unsafe-inline") && !head.contains("unsafe-eval"), "{head}");
            for host in ["evil.test", "localhost.evil.test", "192.0.2.1"] {
                assert_eq!(larder.ask(&format!("GET {path} HTTP/1.1\r\nHost: {host}")).0, 403, "{path} at {host}");
            }
        }
        for path in [
            "/dashboard",
            "/dashboard/",
            "/dashboard/..%2fmain.js",
            "/dashboard/../status",
            "/dashboard/main.js/",
            "/Dashboard/main.js",
        ] {
            assert_eq!(larder.get(path).0, 404, "{path}");
        }
        assert_eq!(larder.ask("POST /history HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0").0, 405);
        assert_eq!(larder.get("/history?step=2").0, 400);
    }

    #[test]
    fn a_page_of_another_site_does_nothing_over_a_socket_that_is_carried_to_a_port() {
        let folder = folder("socket");
        let socket = std::env::temp_dir().join(format!("larder-dashboard-{}.sock", std::process::id()));
        let larder = start(&folder, &format!("address = \"unix:{}\"", socket.display()), "");
        let explain = |fields: &str| larder.ask(&format!("GET /explain?url=http://a/ HTTP/1.1\r\n{fields}")).0;
        assert_eq!(explain("Host: localhost:9180"), 200);
        assert_eq!(explain("Host: localhost:9180\r\nSec-Fetch-Site: same-origin"), 200);
        assert_eq!(explain("Host: localhost:9180\r\nSec-Fetch-Site: cross-site"), 403);
        assert_eq!(explain("Host: localhost:9180\r\nOrigin: http://evil.test"), 403);
        assert_eq!(explain("Host: evil.test:9180"), 403);
        assert_eq!(larder.ask("GET /history HTTP/1.1\r\nHost: evil.test:9180").0, 403);
        assert_eq!(
            larder.ask("GET / HTTP/1.1\r\nHost: localhost:9180\r\nSec-Fetch-Site: cross-site").0,
            200,
            "a link leads here"
        );
    }

    #[test]
    fn a_restart_keeps_the_history_and_damage_begins_it_anew() {
        let folder = folder("restart");
        let admin = "address = \"127.0.0.1:0\"\nhistory = \"kept/history\"";
        std::fs::create_dir_all(folder.join("kept")).unwrap();
        let larder = start(&folder, admin, "");
        larder.visit(7);
        wait_for("the history has the visits", || larder.sum("synths") == 7);
        larder.signal("HUP");
        wait_for("the reload is annotated", || larder.history()["annotations"].as_array().unwrap().len() == 2);
        let said = larder.end();
        assert!(!said.contains("history"), "{said}");
        let kept = folder.join("kept/history");
        let bytes = std::fs::metadata(&kept).unwrap().len();

        let larder = start(&folder, admin, "");
        assert_eq!(larder.sum("synths"), 7);
        let kinds: Vec<String> = larder.history()["annotations"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["kind"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(kinds, ["restart", "reload", "restart"]);
        // Another one that wants the same file goes without.
        let beside =
            start(&self::folder("beside"), &format!("address = \"127.0.0.1:0\"\nhistory = \"{}\"", kept.display()), "");
        assert_eq!(beside.sum("synths"), 0);
        let said = beside.end();
        assert!(
            said.contains("kept in memory alone") && said.contains("another process has it ([admin] history)"),
            "{said}"
        );
        larder.end();
        assert_eq!(std::fs::metadata(&kept).unwrap().len(), bytes, "the file has its size");

        std::fs::write(&kept, "larder history 0 of somebody's").unwrap();
        let larder = start(&folder, admin, "");
        assert_eq!(larder.sum("synths"), 0);
        let said = larder.end();
        assert!(said.contains("is begun anew: it has another size ([admin] history)"), "{said}");
        std::fs::write(&kept, "somebody's config").unwrap();
        let larder = start(&folder, admin, "");
        assert_eq!(larder.sum("synths"), 0);
        let said = larder.end();
        assert!(
            said.contains("no history of larder's, and stays as it is") && said.contains("[admin] history"),
            "{said}"
        );
        assert_eq!(std::fs::read_to_string(&kept).unwrap(), "somebody's config");
    }

    #[test]
    fn without_a_word_it_lies_beside_the_disk_and_off_keeps_it_in_memory() {
        let folder = folder("disk");
        let disk = "[[disk]]\npath = \"cache\"\nsize = \"64MiB\"";
        start(&folder, "address = \"127.0.0.1:0\"\nhistory = \"off\"", disk).end();
        assert!(!folder.join("cache.history").exists());
        start(&folder, "address = \"127.0.0.1:0\"", disk).end();
        assert!(folder.join("cache.history").is_file());
        std::fs::create_dir_all(folder.join("store")).unwrap();
        start(&folder, "address = \"127.0.0.1:0\"", &disk.replace("cache", "store")).end();
        assert!(folder.join("store/larder.history").is_file());
        // Where it cannot be written the site is served all the same.
        let larder = start(&folder, "address = \"127.0.0.1:0\"\nhistory = \"nowhere/history\"", "");
        larder.visit(1);
        let said = larder.end();
        assert!(
            said.contains("warning: the history is kept in memory alone") && said.contains("No such file"),
            "{said}"
        );
    }
}
