//! Three larders before one origin, with a real redis-server between them.

use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::sync::Arc;

use serde_json::Value;

use crate::peer_process::{Running, free_address, wait_for, wait_until_it_listens};
use crate::purging_larder::{PurgingLarder, VersionedOrigin, exchange};

pub struct Redis {
    pub address: SocketAddr,
    pub process: Running,
}

impl Redis {
    pub fn start() -> Redis {
        let address = free_address();
        Redis { address, process: Redis::on(address) }
    }

    pub fn on(address: SocketAddr) -> Running {
        let words = ["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--port"];
        let mut command = Command::new("redis-server");
        command.args(words).arg(address.port().to_string()).stdout(Stdio::null());
        let process = Running(command.spawn().expect("redis-server is installed by ./setup"));
        wait_until_it_listens(address);
        process
    }

    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([name, &self.process.0.id().to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()));
    }
}

/// How its nodes are configured.
#[derive(Clone, Copy, Default)]
pub struct FleetOptions {
    pub has_disk: bool,
    pub vcl: Option<&'static str>,
    /// More lines of `[fleet]`, and sections behind it; `NODE` is the node's name.
    pub words: &'static str,
}

pub struct FleetOfThree {
    pub origin: Arc<VersionedOrigin>,
    pub redis: Redis,
    pub nodes: Vec<PurgingLarder>,
}

impl FleetOfThree {
    pub fn start(test: &str, lease: &str, options: FleetOptions) -> FleetOfThree {
        let (origin, redis) = (Arc::new(VersionedOrigin::start()), Redis::start());
        let FleetOptions { has_disk, vcl, words } = options;
        let node = |name: &str| {
            let words = words.replace("NODE", name);
            let section = format!(
                "[fleet]\nname = \"{name}\"\nlog = \"redis://{}\"\nlease = \"{lease}\"\n{words}\n",
                redis.address
            );
            PurgingLarder::of_fleet(&origin, &format!("fleet-{test}-{name}"), (has_disk, vcl), section)
        };
        let nodes: Vec<PurgingLarder> = ["a", "b", "c"].into_iter().map(node).collect();
        let fleet = FleetOfThree { origin, redis, nodes };
        fleet.nodes.iter().for_each(knows_three);
        fleet
    }

    /// What each of them serves.
    pub fn versions(&self, path: &str) -> Vec<u64> {
        self.nodes.iter().map(|node| version_of(node, path, "")).collect()
    }
}

/// All are the same site: the Host is no node's.
const HOST: &str = "Host: shop.test";

pub fn version_of(node: &PurgingLarder, path: &str, lines: &str) -> u64 {
    let answer = say(node, &format!("GET {path}"), lines);
    let (head, body) = answer.split_once("\r\n\r\n").expect("an answer");
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    body.parse().unwrap_or_else(|_| panic!("{body}"))
}

/// A request without a body. `lines`: more fields, each with its end.
pub fn say(node: &PurgingLarder, line: &str, lines: &str) -> String {
    exchange(
        node.address,
        &format!("{line} HTTP/1.1\r\n{HOST}\r\nContent-Length: 0\r\n{lines}Connection: close\r\n\r\n"),
    )
}

pub fn status(node: &PurgingLarder) -> Value {
    node.order("GET /fleet", "").1
}

pub fn knows_three(node: &PurgingLarder) {
    wait_for("the nodes know one another", || status(node)["nodes"].as_array().is_some_and(|nodes| nodes.len() == 3));
}
