//! Three larders before one origin that share a tier, in a real memcached and in a real redis-server: the origin is asked once, what is purged is
//! served by none, and an engine that is slow, dead or written to by strangers costs hits alone.

use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Arc;

use serde_json::{Value, json};

use crate::peer_process::{Running, free_address, wait_for, wait_until_it_listens};
use crate::purging_larder::{PurgingLarder, VersionedOrigin, exchange};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Engine {
    Memcached,
    Redis,
}

const BOTH: [Engine; 2] = [Engine::Memcached, Engine::Redis];

fn started(engine: Engine, address: SocketAddr) -> Running {
    let port = address.port().to_string();
    let mut command = match engine {
        Engine::Memcached => {
            let mut command = Command::new("memcached");
            command.args(["-l", "127.0.0.1", "-u", "root", "-p", &port]);
            command
        }
        Engine::Redis => {
            let mut command = Command::new("redis-server");
            command.args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--port", &port]);
            command
        }
    };
    let process = Running(command.stdout(Stdio::null()).spawn().expect("it is installed by ./setup"));
    wait_until_it_listens(address);
    process
}

struct Fleet {
    engine: Engine,
    origin: Arc<VersionedOrigin>,
    nodes: Vec<PurgingLarder>,
    tier: (SocketAddr, Option<Running>),
    _log: Running,
}

impl Fleet {
    fn start(test: &str, engine: Engine) -> Fleet {
        let (log, at) = (free_address(), free_address());
        let (log_process, tier) = (started(Engine::Redis, log), started(engine, at));
        let scheme = if engine == Engine::Redis { "redis" } else { "memcached" };
        let origin = Arc::new(VersionedOrigin::start());
        let secret = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("secret-{test}-{scheme}"));
        std::fs::write(&secret, "0123456789abcdef0123456789abcdef\n").unwrap();
        let node = |name: &str| {
            let section = format!(
                "[fleet]\nname = \"{name}\"\nlog = \"redis://{log}\"\nlease = \"2s\"\nsecret_file = \"{}\"\n\
                 [shared]\nurl = \"{scheme}://{at}\"\nwait_max = \"1s\"\n",
                secret.display()
            );
            PurgingLarder::of_fleet(&origin, &format!("shared-{test}-{scheme}-{name}"), (false, None), section)
        };
        let nodes: Vec<PurgingLarder> = ["a", "b", "c"].into_iter().map(node).collect();
        let fleet = Fleet { engine, origin, nodes, tier: (at, Some(tier)), _log: log_process };
        for node in &fleet.nodes {
            wait_for("the nodes know one another", || {
                node.order("GET /fleet", "").1["nodes"].as_array().is_some_and(|nodes| nodes.len() == 3)
            });
        }
        fleet
    }

    fn ask(&self, node: usize, path: &str) -> String {
        let head = format!("GET {path} HTTP/1.1\r\nHost: shop.test\r\nConnection: close\r\n\r\n");
        let answer = exchange(self.nodes[node].address, &head);
        let (head, body) = answer.split_once("\r\n\r\n").expect("an answer");
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        body.to_owned()
    }

    /// What each of them serves.
    fn versions(&self, path: &str) -> [String; 3] {
        [0, 1, 2].map(|node| self.ask(node, path))
    }

    /// What it has fetched lies in the tier.
    fn has_kept(&self, node: usize, count: u64) {
        wait_for("it is kept", || self.figure(node, "larder_shared_kept_total") == count);
    }

    fn figure(&self, node: usize, name: &str) -> u64 {
        let head = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer 0123456789abcdef\r\nConnection: close\r\n\r\n";
        let text = exchange(self.nodes[node].admin, head);
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        value.unwrap_or_else(|| panic!("{name} is not in {text}"))
    }

    fn purge(&self, node: usize, order: &Value) {
        let told = self.nodes[node].purge(order);
        assert_eq!(told["acknowledged"], json!("applied"), "{told}");
    }
}

#[test]
fn the_origin_is_asked_once_and_not_once_a_node() {
    for engine in BOTH {
        let fleet = Fleet::start("once", engine);
        for at in 0..30 {
            let path = format!("/page/{at}");
            let (first, second) = (at % 3, (at + 1) % 3);
            assert_eq!(fleet.ask(first, &path), "1");
            fleet.has_kept(first, (at / 3 + 1) as u64);
            assert_eq!([fleet.ask(second, &path), fleet.ask((at + 2) % 3, &path)], ["1", "1"]);
        }
        assert_eq!(fleet.origin.asked(), 30, "{engine:?}");
    }
}

#[test]
fn clients_of_all_nodes_that_ask_for_one_cold_url_at_once_cause_one_fetch() {
    for engine in BOTH {
        let fleet = Fleet::start("cold", engine);
        std::thread::scope(|scope| {
            for client in 0..60 {
                let fleet = &fleet;
                scope.spawn(move || assert_eq!(fleet.ask(client % 3, "/cold"), "1"));
            }
        });
        assert_eq!(fleet.origin.asked(), 1, "{engine:?}");
    }
}

#[test]
fn what_is_purged_at_one_node_comes_back_from_nowhere() {
    for engine in BOTH {
        let fleet = Fleet::start("purged", engine);
        for (round, order) in [
            json!({ "url": "http://shop.test/tagged/1" }),
            json!({ "tags": ["Menu"] }),
            json!({ "prefix": "shop.test/tag" }),
            json!({ "regex": "^shop.test/tagged", "soft": true }),
            json!({ "url": "http://shop.test/tagged/1", "soft": true }),
            json!({ "all": true }),
        ]
        .into_iter()
        .enumerate()
        {
            let version = fleet.origin.version.load(std::sync::atomic::Ordering::SeqCst).to_string();
            assert_eq!(fleet.versions("/tagged/1"), [&*version; 3], "{engine:?} {order}");
            let renewed = fleet.origin.renew().to_string();
            let mut order = order;
            order["acknowledge"] = "applied".into();
            fleet.purge(round % 3, &order);
            assert_eq!(fleet.versions("/tagged/1"), [&*renewed; 3], "{engine:?} {order}");
        }
        assert!(fleet.origin.asked() <= 3 * 7, "{}", fleet.origin.asked());
    }
}

#[test]
fn a_node_that_begins_anew_finds_what_the_others_have() {
    for engine in BOTH {
        let mut fleet = Fleet::start("anew", engine);
        fleet.versions("/kept");
        fleet.has_kept(0, 1);
        // Purges from before its start are known to it: what is purged is fetched, and what is not is found.
        fleet.purge(1, &json!({ "url": "http://shop.test/other", "acknowledge": "applied" }));
        fleet.versions("/later");
        let (asked, node) = (fleet.origin.asked(), &mut fleet.nodes[2]);
        node.crash();
        node.begin();
        wait_for("it has heard the log", || fleet.figure(2, "larder_fleet_lease_lapsed") == 0);
        assert_eq!([fleet.ask(2, "/kept"), fleet.ask(2, "/later")], ["1", "1"]);
        assert_eq!(fleet.origin.asked(), asked, "{engine:?}");
    }
}

#[test]
fn an_engine_that_is_stopped_killed_and_begun_anew_fails_no_request() {
    for engine in BOTH {
        let mut fleet = Fleet::start("killed", engine);
        fleet.versions("/before");
        let pid = fleet.tier.1.as_ref().expect("it runs").0.id().to_string();
        let signal = |name: &str| assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
        signal("-STOP");
        (0..12).for_each(|at| drop(fleet.ask(at % 3, &format!("/stopped/{at}"))));
        assert!(
            (0..3).map(|node| fleet.figure(node, "larder_shared_answers_total{result=\"timeout\"}")).sum::<u64>() > 0
        );
        signal("-CONT");
        fleet.tier.1 = None;
        wait_for("it is gone", || TcpStream::connect(fleet.tier.0).is_err());
        (0..30).for_each(|at| drop(fleet.ask(at % 3, &format!("/killed/{at}"))));
        fleet.tier.1 = Some(started(fleet.engine, fleet.tier.0));
        let mut at = 0;
        wait_for("it is used again", || {
            at += 1;
            fleet.versions(&format!("/again/{at}"));
            fleet.figure(1, "larder_shared_answers_total{result=\"found\"}") > 0
        });
    }
}
