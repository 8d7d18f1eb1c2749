//! Three larders on this machine that are one fleet, before an origin that writes down what it is asked.

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpStream};
    use std::path::{Path, PathBuf};
    use std::process::{Command, Stdio};
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use crate::answering_origin::{self, target_of};
    use crate::peer_process::{Running, free_address, wait_until_it_listens};

    /// URLs, and how often they are asked for in all.
    const URLS: usize = 400;
    const ASKED: usize = 4_000;
    const CLIENTS_AT_ONCE: usize = 100;

    struct Fleet {
        nodes: Vec<(SocketAddr, Running)>,
        asked: Arc<Mutex<Vec<String>>>,
        folder: PathBuf,
        admins: Vec<PathBuf>,
    }

    /// The status of an answer, its fields in lower case, and its body.
    struct Reply {
        status: u16,
        head: String,
        body: String,
    }

    impl Fleet {
        /// `lists`: whom each node takes for its peers, by their numbers; none is given an address of its own.
        fn start(name: &str, lists: &[&[usize]]) -> Fleet {
            Fleet::start_with(name, lists, |_| String::new())
        }

        /// With more words in the config of each.
        fn start_with(name: &str, lists: &[&[usize]], words: impl Fn(usize) -> String) -> Fleet {
            let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("fleet-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("secret"), "0123456789abcdef0123456789abcdef\n").unwrap();
            let asked = Arc::new(Mutex::new(Vec::new()));
            let heads = Arc::clone(&asked);
            let origin = answering_origin::start(move |head| {
                heads.lock().unwrap().push(head.to_owned());
                Some(answer(target_of(head)))
            });
            let addresses: Vec<SocketAddr> = lists.iter().map(|_| free_address()).collect();
            let (mut nodes, mut admins) = (Vec::new(), Vec::new());
            for (at, list) in lists.iter().enumerate() {
                let peers: Vec<String> = list.iter().map(|peer| format!("\"http://{}\"", addresses[*peer])).collect();
                let admin = folder.join(format!("{at}.sock"));
                let text = format!(
                    "[[listen]]\naddress = \"{}\"\n[origin.web]\nurls = \"http://{origin}\"\n[fleet]\npeers = [{}]\n\
                     secret_file = \"secret\"\n{}\n[admin]\naddress = \"unix:{}\"\n",
                    addresses[at],
                    peers.join(", "),
                    words(at),
                    admin.display()
                );
                nodes.push((addresses[at], serve(&folder, at, &text)));
                admins.push(admin);
            }
            nodes.iter().for_each(|(address, _)| wait_until_it_listens(*address));
            Fleet { nodes, asked, folder, admins }
        }

        fn get(&self, node: usize, path: &str, lines: &str) -> Reply {
            ask(self.nodes[node].0, path, lines).unwrap_or_else(|why| panic!("{path} of node {node}: {why}"))
        }

        /// What the origin was asked for, in order.
        fn targets(&self) -> Vec<String> {
            self.asked.lock().unwrap().iter().map(|head| target_of(head).to_owned()).collect()
        }

        fn count(&self, node: usize, counter: &str) -> u64 {
            let mut admin = std::os::unix::net::UnixStream::connect(&self.admins[node]).expect("the admin socket");
            admin.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap();
            let mut text = String::new();
            admin.read_to_string(&mut text).unwrap();
            let value = text.lines().find_map(|line| line.strip_prefix(counter)?.trim().parse::<f64>().ok());
            value.unwrap_or_else(|| panic!("{counter} is not in /metrics")) as u64
        }

        fn sum(&self, counter: &str) -> u64 {
            (0..self.nodes.len()).map(|node| self.count(node, counter)).sum()
        }
    }

    impl Drop for Fleet {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }

    fn serve(folder: &Path, at: usize, text: &str) -> Running {
        let config = folder.join(format!("{at}.toml"));
        std::fs::write(&config, text).unwrap();
        let errors = std::fs::File::create(folder.join(format!("{at}.stderr"))).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
        command.args(["serve", "--no-supervisor", "--config"]).arg(&config);
        Running(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors).spawn().unwrap())
    }

    fn answer(target: &str) -> String {
        let (lines, body) = match target {
            target if target.starts_with("/private") => {
                ("Cache-Control: private, max-age=60\r\nSet-Cookie: a=1\r\n", target)
            }
            target if target.starts_with("/slow") => {
                std::thread::sleep(Duration::from_millis(300));
                ("Cache-Control: max-age=600\r\n", target)
            }
            "/broken" => return "HTTP/1.1 503 Broken\r\nContent-Length: 6\r\n\r\nbroken".to_owned(),
            target => ("Cache-Control: max-age=600\r\n", target),
        };
        format!("HTTP/1.1 200 OK\r\n{lines}Content-Length: {}\r\n\r\n{body}", body.len())
    }

    fn ask(at: SocketAddr, path: &str, lines: &str) -> std::io::Result<Reply> {
        let mut stream = TcpStream::connect(at)?;
        stream.set_read_timeout(Some(Duration::from_secs(20)))?;
        stream
            .write_all(format!("GET {path} HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n{lines}\r\n").as_bytes())?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        let (head, body) =
            text.split_once("\r\n\r\n").ok_or_else(|| std::io::Error::other(format!("no head: {text}")))?;
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        Ok(Reply { status, head: head.to_lowercase(), body: body.to_owned() })
    }

    /// The rank of the next URL, by Zipf's law (s = 1), from a generator that always says the same.
    fn zipf(state: &mut u64) -> usize {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let unit = (*state >> 11) as f64 / (1_u64 << 53) as f64;
        let total: f64 = (1..=URLS).map(|rank| 1.0 / rank as f64).sum();
        let mut left = unit * total;
        (1..=URLS)
            .find(|rank| {
                left -= 1.0 / *rank as f64;
                left <= 0.0
            })
            .unwrap_or(URLS)
    }

    const ALL: &[&[usize]] = &[&[0, 1, 2], &[0, 1, 2], &[0, 1, 2]];

    #[test]
    fn an_origin_sees_one_fetch_a_fleet() {
        let fleet = Fleet::start("zipf", ALL);
        let (mut state, mut wanted, mut trace) = (7, BTreeSet::new(), String::new());
        for n in 0..ASKED {
            let path = format!("/page/{}", zipf(&mut state));
            trace += &format!("{n},{path},{}\n", path.len());
            let reply = fleet.get(n % 3, &path, "");
            assert_eq!((reply.status, &reply.body), (200, &path));
            wanted.insert(path);
        }
        let asked = fleet.targets().len();
        println!("{ASKED} requests for {} URLs over three nodes: {asked} fetches", wanted.len());
        assert!(asked * 100 <= wanted.len() * 102, "{asked} fetches of {} URLs", wanted.len());
        let answered = (fleet.sum("larder_fleet_answers_total"), fleet.sum("larder_fleet_fetches_total"));
        assert!(answered.0 > 0 && answered.0 == answered.1, "{answered:?}");
        assert_eq!(
            (fleet.sum("larder_fleet_owners_unable_total"), fleet.sum("larder_fleet_owners_down_total")),
            (0, 0)
        );
        // The simulator comes to the same by the same requests, dealt in the same order. It has other addresses, and so other owners: of URLs
        // that not all nodes are asked for a few more or less have to be fetched from one.
        let simulated = simulate(&fleet.folder, &trace, &["--nodes", "3", "--owners", "--memory", "100%"]);
        assert_eq!(simulated["origin"]["requests"].as_u64(), Some(asked as u64), "{simulated}");
        let between = simulated["between_nodes"]["requests"].as_u64().unwrap();
        println!("the simulator: {between} requests between nodes, and really {}", answered.0);
        assert!(between.abs_diff(answered.0) * 10 <= answered.0, "{between} simulated, {} counted", answered.0);
    }

    /// What `larder lab simulate` says of these requests.
    fn simulate(folder: &Path, trace: &str, flags: &[&str]) -> serde_json::Value {
        std::fs::write(folder.join("trace.csv"), trace).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
        let done =
            command.args(["lab", "simulate", "trace.csv", "--json"]).args(flags).current_dir(folder).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let told: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
        told["fleets"][0].clone()
    }

    #[test]
    fn clients_that_ask_for_one_cold_url_at_once_cause_one_fetch() {
        let fleet = Fleet::start("flash", ALL);
        let addresses: Vec<SocketAddr> = fleet.nodes.iter().map(|(address, _)| *address).collect();
        let bodies: Vec<String> = std::thread::scope(|scope| {
            let asks = (0..CLIENTS_AT_ONCE).map(|n| {
                let at = addresses[n % addresses.len()];
                scope.spawn(move || ask(at, "/slow", "").map(|reply| reply.body).unwrap_or_default())
            });
            let asks: Vec<_> = asks.collect();
            asks.into_iter().map(|ask| ask.join().unwrap()).collect()
        });
        assert!(bodies.iter().all(|body| body == "/slow"), "{bodies:?}");
        assert_eq!(fleet.targets(), ["/slow"]);
    }

    #[test]
    fn an_owner_that_is_killed_costs_no_client_its_answer() {
        let mut fleet = Fleet::start("killed", ALL);
        for n in 0..60 {
            assert_eq!(fleet.get(n % 3, &format!("/before/{n}"), "").status, 200);
        }
        let killed = &mut fleet.nodes[1].1.0;
        killed.kill().unwrap();
        killed.wait().unwrap();
        for n in 0..200 {
            let path = format!("/after/{n}");
            let reply = fleet.get(if n % 2 == 0 { 0 } else { 2 }, &path, "");
            assert_eq!((reply.status, &reply.body), (200, &path));
        }
        assert!(fleet.count(0, "larder_fleet_owners_down_total") > 0);
        // Left out, its URLs have other owners, upon which both agree.
        let mut times = BTreeMap::new();
        for n in 0..100 {
            for node in [0, 2] {
                assert_eq!(fleet.get(node, &format!("/later/{n}"), "").status, 200);
            }
        }
        fleet
            .targets()
            .iter()
            .filter(|it| it.starts_with("/later/"))
            .for_each(|it| *times.entry(it.clone()).or_insert(0) += 1);
        assert_eq!((times.len(), times.values().sum::<i32>()), (100, 100), "{times:?}");
    }

    #[test]
    fn a_chain_of_caches_says_what_each_did_and_how_old_it_is() {
        let fleet = Fleet::start("chain", ALL);
        let path = (0..).map(|n| format!("/chain/{n}")).find(|path| {
            fleet.get(0, path, "");
            fleet.count(0, "larder_fleet_fetches_total") > 0
        });
        let path = path.unwrap();
        let owner = if fleet.count(1, "larder_fleet_answers_total") > 0 { 1 } else { 2 };
        let other = 3 - owner;
        std::thread::sleep(Duration::from_millis(1_100));
        let reply = fleet.get(other, &path, "");
        let line = |name: &str| {
            let lines = reply.head.lines().filter_map(|line| line.strip_prefix(name));
            lines.map(str::trim).collect::<Vec<_>>().join(", ")
        };
        let status = line("cache-status:");
        let (first, second) = status.split_once(", ").unwrap_or_else(|| panic!("{status}"));
        assert!(first.starts_with("larder; hit; ttl="), "{status}");
        assert_eq!(second, "larder; fwd=uri-miss; stored");
        assert!(line("age:").parse::<u64>().is_ok_and(|age| age >= 1), "{}", reply.head);
        assert_eq!(line("via:").split(", ").count(), 2, "{}", reply.head);
        assert!(!reply.head.contains("larder-node"), "{}", reply.head);
        assert_eq!(fleet.targets().iter().filter(|target| **target == path).count(), 1);
    }

    #[test]
    fn what_is_private_stays_its_clients_and_errors_are_nobodys_but_the_origins() {
        let fleet = Fleet::start("private", ALL);
        for node in [0, 1, 2, 0, 1, 2] {
            for n in 0..5 {
                let reply = fleet.get(node, &format!("/private/{n}"), "Cookie: who=me\r\n");
                assert!(reply.status == 200 && reply.head.contains("set-cookie: a=1"), "{}", reply.head);
                assert!(!reply.head.contains("; hit;"), "{}", reply.head);
            }
        }
        let private = fleet.targets().iter().filter(|target| target.starts_with("/private")).count();
        assert_eq!(private, 30, "each client's own");
        let before = fleet.targets().len();
        let broken = fleet.get(0, "/broken", "");
        assert_eq!((broken.status, broken.body.as_str()), (503, "broken"));
        assert_eq!(fleet.get(1, "/broken", "").body, "broken");
        assert_eq!(fleet.targets().len(), before + 2, "it is the origin's, and not stored");
    }

    #[test]
    fn a_stranger_with_the_field_of_nodes_is_refused() {
        let fleet = Fleet::start_with("stranger", ALL, |_| {
            "[[route]]\norigin = \"web\"\n[[route]]\npath = \"/admin\"\norigin = \"web\"\nallow = [\"192.0.2.1\"]\n"
                .to_owned()
        });
        let forged = "Larder-Node: sent=1790000000; at=0; route=0000000000000000; proof=00\r\n";
        for lines in [forged, "Larder-Node: answer\r\n"] {
            for path in ["/", "/admin"] {
                assert_eq!(fleet.get(0, path, lines).status, 403, "{path} {lines}");
            }
        }
        assert_eq!(fleet.count(0, "larder_fleet_proofs_refused_total"), 4);
        assert!(fleet.targets().is_empty());
        assert_eq!((fleet.get(0, "/admin", "").status, fleet.get(0, "/", "").status), (403, 200));
    }

    /// Each has a list on which only the other one stands.
    #[test]
    fn two_nodes_that_each_take_the_other_for_the_owner_come_to_an_end() {
        let fleet = Fleet::start("loop", &[&[1], &[0]]);
        for n in 0..10 {
            for node in [0, 1] {
                let path = format!("/loop/{n}");
                let reply = fleet.get(node, &path, "");
                assert_eq!((reply.status, &reply.body), (200, &path));
            }
        }
        // At once, too: each would answer from the fetch that asks the other.
        let addresses: Vec<SocketAddr> = fleet.nodes.iter().map(|(address, _)| *address).collect();
        for n in 0..5 {
            let path = &format!("/slow/{n}");
            std::thread::scope(|scope| {
                let asks: Vec<_> = (0..20)
                    .map(|n| {
                        scope.spawn({
                            let at = addresses[n % 2];
                            move || ask(at, path, "").map(|reply| reply.status).unwrap_or(0)
                        })
                    })
                    .collect();
                asks.into_iter().for_each(|ask| assert_eq!(ask.join().unwrap(), 200));
            });
        }
    }
}
