//! `larder log` beside a running larder: what it shows is what the access log has, in all its forms, live, recorded and read again.

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::{SocketAddr, TcpStream};
    use std::path::{Path, PathBuf};
    use std::process::{Child, Command, Output, Stdio};
    use std::sync::mpsc::{Receiver, channel};
    use std::time::Duration;

    use crate::answering_origin::{self, target_of};
    use crate::http2_site::Site;
    use crate::peer_process::{Running, wait_for};
    use crate::subject::get;

    /// Answers `/stored` for a minute and everything else for nobody; `/broken` not at all.
    fn origin() -> SocketAddr {
        answering_origin::start(|head| {
            let target = target_of(head);
            let life = if target.starts_with("/stored") { "max-age=60" } else { "no-store" };
            (target != "/broken").then(|| {
                format!(
                    "HTTP/1.1 200 OK\r\nCache-Control: {life}\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"
                )
            })
        })
    }

    struct WatchedLarder {
        site: Site,
        folder: PathBuf,
        token: PathBuf,
    }

    fn folder(name: &str) -> PathBuf {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("log-command-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// A larder whose admin address has a token.
    fn start(name: &str) -> WatchedLarder {
        let folder = folder(name);
        let token = folder.join("token");
        std::fs::write(&token, "secret-of-the-test\n").unwrap();
        let admin = format!("token_file = \"{}\"", token.display());
        let log = format!("[log]\npath = \"{}\"\nformat = \"json\"\n", folder.join("access.log").display());
        let site = Site::start_with_admin(&format!("http://{}", origin()), &admin, &log);
        WatchedLarder { site, folder, token }
    }

    impl WatchedLarder {
        fn command(&self, flags: &[&str]) -> Command {
            let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
            command.arg("log").args(flags).arg("--admin").arg(self.site.admin.to_string());
            command.arg("--token-file").arg(&self.token).stdin(Stdio::null());
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            command
        }

        /// Reads along; there is an answer to its request when this returns.
        fn reading(&self, flags: &[&str]) -> Child {
            let before = self.readers();
            let child = self.command(flags).spawn().unwrap();
            wait_for("somebody reads along", || self.readers() > before);
            child
        }

        fn readers(&self) -> u64 {
            self.site.metric("larder_event_readers")
        }

        fn output(&self, flags: &[&str]) -> Output {
            self.command(flags).output().unwrap()
        }
    }

    fn text(bytes: &[u8]) -> String {
        String::from_utf8_lossy(bytes).into_owned()
    }

    #[test]
    fn what_it_shows_is_what_the_access_log_has() {
        let it = start("same");
        let child = it.reading(&["--format", "json", "-n", "6"]);
        for path in ["/stored", "/stored", "/x?a=1", "/broken"] {
            it.site.get(path);
        }
        it.site.post("/y");
        it.site.ask("no request at all\r\n\r\n");
        let output = child.wait_with_output().unwrap();
        let told: Vec<serde_json::Value> =
            text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let log = it.folder.join("access.log");
        wait_for("the log has its lines", || std::fs::read_to_string(&log).unwrap_or_default().lines().count() == 6);
        let logged: Vec<serde_json::Value> =
            std::fs::read_to_string(&log).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(told.len(), 6);
        for (told, logged) in told.iter().zip(&logged) {
            for (name, in_log) in [
                ("time", "time"),
                ("client", "client"),
                ("method", "method"),
                ("status", "status"),
                ("bytes", "bytes"),
                ("class", "verdict"),
                ("time.whole", "micros"),
                ("why", "why"),
                ("host", "host"),
                ("id", "id"),
            ] {
                assert_eq!(told[name], logged[in_log], "{name}: {told} beside {logged}");
            }
        }
        let classes: Vec<&str> = told.iter().map(|event| event["class"].as_str().unwrap()).collect();
        assert_eq!(classes, ["miss", "hit", "miss", "error", "pass", "refused"]);
        assert_eq!((told[0]["origin"].as_str(), told[1]["origin"].as_str()), (Some("site"), None));
        assert_eq!(told[3]["origin.error"], "origin-closed");
        assert!(told[3]["id"].is_string(), "{}", told[3]);
    }

    #[test]
    fn a_query_is_asked_of_the_running_larder_and_of_its_record_alike() {
        let it = start("record");
        let record = it.folder.join("events");
        let child = it.reading(&["--record", record.to_str().unwrap(), "-n", "4"]);
        let live = it.reading(&["-q", "class == error and origin == site", "-n", "1", "--color", "never"]);
        for path in ["/stored", "/stored", "/stored", "/broken"] {
            it.site.get(path);
        }
        assert!(child.wait_with_output().unwrap().status.success());
        let live = text(&live.wait_with_output().unwrap().stdout);
        assert!(live.contains(" 502 error ") && live.contains("site.test/broken"), "{live}");
        let record = record.to_str().unwrap();
        let again = it.output(&["--from", record, "-q", "class == error and origin == site"]);
        assert_eq!(text(&again.stdout), live);
        let groups = text(&it.output(&["--from", record, "--group-by", "class"]).stdout);
        let rows: Vec<Vec<&str>> = groups.lines().skip(1).map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(
            rows.iter().map(|row| (row[0], *row.last().unwrap())).collect::<Vec<_>>(),
            [("2", "hit"), ("1", "error"), ("1", "miss")]
        );
        let combined = text(&it.output(&["--from", record, "--format", "combined", "-q", "class == hit"]).stdout);
        assert!(
            combined.starts_with("127.0.0.1 - - [")
                && combined.contains("] \"GET /stored HTTP/1.1\" 200 5 \"-\" \"-\" hit "),
            "{combined}"
        );
    }

    #[test]
    fn mistakes_are_said_and_end_it() {
        let it = start("mistakes");
        let check = |flags: &[&str], says: &str| {
            let output = it.output(flags);
            assert!(!output.status.success() && text(&output.stderr).contains(says), "{flags:?}: {output:?}");
        };
        check(&["-q", "stauts == 500"], "no field is called `stauts`");
        check(&["-q", "time.whole > 5"], "write 250us, 20ms");
        check(&["--group-by", "colour"], "larder log --fields");
        check(&["--from", "/nowhere/at/all"], "/nowhere/at/all: No such file");
        check(&["--from", "/etc/passwd"], "/etc/passwd: no record of `larder log --record`");
        let mut stranger = Command::new(env!("CARGO_BIN_EXE_larder"));
        let output = stranger.args(["log", "--admin", &it.site.admin.to_string()]).output().unwrap();
        assert!(text(&output.stderr).contains("send the token of [admin]"), "{output:?}");
        let fields = text(&it.output(&["--fields"]).stdout);
        assert!(fields.contains("time.first_byte") && fields.contains("origin.error"), "{fields}");
    }

    /// Nobody else has the socket, or a page of a stranger in a browser the address.
    #[test]
    fn who_may_not_change_anything_is_told_nothing() {
        let it = start("closed");
        let answer = get(it.site.admin, "/log").unwrap();
        assert!(answer.starts_with("HTTP/1.1 403 ") && answer.contains("to read along, send the token"), "{answer}");
    }

    #[test]
    fn a_reader_that_takes_nothing_loses_and_holds_up_nobody() {
        let it = start("slow");
        let mut child = it.command(&["--format", "json", "--rate", "1000000"]).spawn().unwrap();
        wait_for("somebody reads along", || it.readers() == 1);
        // Nobody reads its output: first its pipe fills, then the connection, then its room here.
        let (agent, more) = ("a".repeat(900), "m".repeat(900));
        for number in 0..6_000 {
            let (status, ..) = it.site.ask(&format!(
                "GET /stored?{number}{more} HTTP/1.1\r\nHost: site.test\r\nUser-Agent: {agent}\r\nReferer: {agent}\r\n\r\n"
            ));
            assert_eq!(status, 200);
        }
        wait_for("who takes nothing for a while is cut off", || it.readers() == 0);
        let other = it.reading(&["-n", "1"]);
        it.site.get("/stored");
        assert!(text(&other.wait_with_output().unwrap().stdout).contains("site.test/stored"));
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Who has nothing to ask gives way to who comes, and not who reads along.
    #[test]
    fn idle_connections_of_others_end_no_reader() {
        let it = start("idle");
        let child = it.reading(&["-n", "1"]);
        let _idle: Vec<TcpStream> = (0..80).map(|_| TcpStream::connect(it.site.admin).unwrap()).collect();
        assert_eq!(it.readers(), 1);
        it.site.get("/stored");
        let output = child.wait_with_output().unwrap();
        assert!(text(&output.stdout).contains("site.test/stored") && output.stderr.is_empty(), "{output:?}");
    }

    #[test]
    fn a_restart_is_waited_for() {
        let folder = folder("restart");
        let (socket, ports, config) = (folder.join("a.sock"), folder.join("ports"), folder.join("larder.toml"));
        std::fs::write(
            &config,
            format!(
                "[[listen]]\naddress = \"127.0.0.1:0\"\n[origin.o]\nurls = [\"http://{}\"]\n[admin]\naddress = \"unix:{}\"\n",
                origin(),
                socket.display()
            ),
        )
        .unwrap();
        let serve = || {
            let _ = std::fs::remove_file(&ports);
            let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
            command.args(["serve", "--no-supervisor", "--config"]).arg(&config).arg("--ports-file").arg(&ports);
            let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            let mut address = None;
            wait_for("larder names its port", || {
                let text = std::fs::read_to_string(&ports).unwrap_or_default();
                address = text.lines().find_map(|line| line.strip_prefix("listen ")?.trim().parse::<SocketAddr>().ok());
                address.is_some()
            });
            (Running(child), address.unwrap())
        };
        let ask = |address: SocketAddr, path: &str| {
            let mut client = TcpStream::connect(address).unwrap();
            client
                .write_all(format!("GET {path} HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n").as_bytes())
                .unwrap();
            client.read_to_end(&mut Vec::new()).unwrap();
        };
        let (first, address) = serve();
        let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
        command.args(["log", "--config"]).arg(&config).stdin(Stdio::null());
        let mut child = Running(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
        let lines = said_by(child.0.stdout.take().unwrap());
        let remarks = said_by(child.0.stderr.take().unwrap());
        let hear = |what: &str, address: SocketAddr| {
            wait_for(what, || {
                ask(address, what);
                lines.try_iter().any(|line| line.contains(what))
            });
        };
        hear("/before", address);
        drop(first);
        assert!(remarks.recv_timeout(PATIENCE).unwrap().contains("until it is back nothing is told"));
        let (_second, address) = serve();
        assert!(remarks.recv_timeout(PATIENCE).unwrap().contains("larder is back"));
        hear("/after", address);
    }

    const PATIENCE: Duration = Duration::from_secs(20);

    /// The lines of a pipe, as they come.
    fn said_by(pipe: impl Read + Send + 'static) -> Receiver<String> {
        let (to, from) = channel();
        std::thread::spawn(move || {
            BufReader::new(pipe).lines().map_while(Result::ok).try_for_each(|line| to.send(line))
        });
        from
    }
}
