//! Nodes that tell one another by a real redis-server: what an acknowledgement means, and what becomes of a node that missed something.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use fleet::{Acknowledge, Figures, Fleet, FleetSettings, LogPlace, Node, Ordered, Reached};
use parking_lot::Mutex;

const LEASE: Duration = Duration::from_millis(800);

/// A redis-server on a port of its own, in memory; it ends with the test.
struct Redis {
    child: Child,
    port: u16,
}

impl Redis {
    fn start() -> Redis {
        Redis::start_with(&["--appendonly", "no"])
    }

    fn start_with(words: &[&str]) -> Redis {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        Redis { child: Redis::on(port, words), port }
    }

    fn on(port: u16, words: &[&str]) -> Child {
        let child = Command::new("redis-server")
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""])
            .args(words)
            .stdout(Stdio::null())
            .spawn()
            .expect("redis-server is installed by ./setup");
        until("redis-server answers", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
        child
    }

    fn place(&self) -> LogPlace {
        LogPlace::new(&format!("redis://127.0.0.1:{}/0", self.port), "larder", None).unwrap()
    }

    fn says(&self, words: &[&str]) -> String {
        let said = Command::new("redis-cli").args(["-p", &self.port.to_string()]).args(words).output().unwrap();
        String::from_utf8(said.stdout).unwrap().trim().to_owned()
    }

    fn signal(&self, name: &str) {
        let done = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status().unwrap();
        assert!(done.success());
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A node that writes down what it is told.
#[derive(Default)]
struct Noting {
    applied: Mutex<Vec<String>>,
    /// What it had done before it was in the log.
    came_back: Mutex<Vec<String>>,
    condemned: AtomicU64,
    condemned_before: AtomicU64,
    heard_until_ms: AtomicU64,
    reached: AtomicU64,
    heard: AtomicU64,
    is_alone: AtomicBool,
    said: Mutex<Vec<String>>,
    complaint: Mutex<String>,
    /// Orders take so long.
    applies_for_ms: AtomicU64,
    understands_nothing: AtomicBool,
}

impl Noting {
    fn is_within_lease(&self) -> bool {
        self.now_ms() < self.heard_until_ms.load(SeqCst)
    }

    fn applied(&self) -> Vec<String> {
        self.applied.lock().clone()
    }
}

impl Node for Noting {
    fn now_ms(&self) -> u64 {
        let uptime = std::fs::read_to_string("/proc/uptime").unwrap();
        let (seconds, _) = uptime.split_once(' ').unwrap();
        (seconds.parse::<f64>().unwrap() * 1_000.0) as u64
    }

    fn apply(&self, order: &str, was_done: bool) -> Result<String, String> {
        assert!(self.reached.load(SeqCst) <= self.heard.load(SeqCst), "what is in force was heard of before");
        std::thread::sleep(Duration::from_millis(self.applies_for_ms.load(SeqCst)));
        if self.understands_nothing.load(SeqCst) {
            return Err("what is that?".to_owned());
        }
        if was_done {
            self.came_back.lock().push(order.to_owned());
            return Ok(String::new());
        }
        self.applied.lock().push(order.to_owned());
        Ok(format!("done: {order}"))
    }

    fn condemn(&self) -> u64 {
        self.condemned.fetch_add(1, SeqCst) + 1
    }

    fn condemned(&self, mark: u64) {
        self.condemned_before.store(mark, SeqCst);
    }

    fn hear(&self, position: u64) {
        self.heard.store(position, SeqCst);
    }

    fn stand_alone(&self, is_alone: bool) {
        self.is_alone.store(is_alone, SeqCst);
    }

    fn reach(&self, Reached { position, .. }: Reached) {
        let before = self.reached.swap(position, SeqCst);
        assert!(position == 0 || before <= position, "it grows");
    }

    fn extend_lease(&self, until_ms: u64) {
        self.heard_until_ms.fetch_max(until_ms, SeqCst);
    }

    fn settle(&self) -> Result<(), String> {
        Ok(())
    }

    fn complaint(&self) -> String {
        self.complaint.lock().clone()
    }

    fn figures(&self) -> Figures {
        Figures { requests: 10, hits: 9 }
    }

    fn say(&self, sentence: &str) {
        self.said.lock().push(sentence.to_owned());
    }
}

struct Member {
    node: Arc<Noting>,
    fleet: Fleet,
}

fn joined(redis: &Redis, name: &str, position_file: Option<PathBuf>) -> Member {
    let member = started(redis, name, position_file);
    until("the node has joined", || member.node.is_within_lease());
    member
}

fn started(redis: &Redis, name: &str, position_file: Option<PathBuf>) -> Member {
    static RUNS: AtomicU64 = AtomicU64::new(0);
    let settings = FleetSettings {
        name: name.to_owned(),
        run: format!("run-{}", RUNS.fetch_add(1, SeqCst)),
        log: redis.place(),
        lease: LEASE,
        position_file,
        version: "1".to_owned(),
        replays: false,
    };
    let node = Arc::new(Noting::default());
    let fleet = Fleet::start(settings, Arc::clone(&node) as Arc<dyn Node>).unwrap();
    Member { node, fleet }
}

impl Member {
    fn orders(&self, text: &str, acknowledge: Acknowledge) -> Ordered {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(self.fleet.order(text.to_owned(), acknowledge))
    }

    /// Everybody has been heard of by everybody.
    fn knows(&self, nodes: usize) {
        until("the nodes know one another", || self.fleet.status().nodes.len() == nodes);
    }
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..2_000 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("it never came to be that {what}");
}

fn acknowledged(ordered: &Ordered, as_asked: Acknowledge) {
    assert_eq!(ordered.acknowledged, as_asked, "{ordered:?}");
    assert_eq!(ordered.why_less, None);
}

#[test]
fn what_was_applied_has_been_carried_out_by_every_node() {
    let redis = Redis::start();
    let members = ["a", "b", "c"].map(|name| joined(&redis, name, None));
    members.iter().for_each(|member| member.knows(3));
    for at in 0..20 {
        let text = format!("order {at}");
        let ordered = members[at % 3].orders(&text, Acknowledge::Applied);
        acknowledged(&ordered, Acknowledge::Applied);
        assert_eq!(ordered.told, Ok(format!("done: {text}")));
        assert_eq!((ordered.number, ordered.lapsed.len()), (Some(at as u64 + 1), 0));
        for member in &members {
            assert_eq!(member.node.applied().last(), Some(&text), "and in the order of the log");
        }
    }
    let status = members[0].fleet.status();
    assert_eq!(status.counts.acknowledged, [0, 0, 7]);
    assert!(status.nodes.iter().all(|node| node.figures == Figures { requests: 10, hits: 9 }));
}

#[test]
fn a_node_that_was_stopped_is_waited_for_until_its_lease_is_over() {
    let redis = Redis::start();
    let (a, b) = (joined(&redis, "a", None), joined(&redis, "b", None));
    a.knows(2);
    b.knows(2);
    b.node.applies_for_ms.store(3_000, SeqCst);
    let ordered = a.orders("slow", Acknowledge::Applied);
    acknowledged(&ordered, Acknowledge::Applied);
    assert_eq!(ordered.lapsed, ["b"]);
    assert!(!b.node.is_within_lease(), "it has not applied it, and serves nothing older");
    assert_eq!(b.node.applied(), Vec::<String>::new());
    until("it comes to it", || b.node.is_within_lease());
    assert_eq!(b.node.applied(), ["slow"]);
}

#[test]
fn nobody_waits_for_a_node_that_has_said_good_bye() {
    let redis = Redis::start();
    let (a, b) = (joined(&redis, "a", None), joined(&redis, "b", None));
    a.knows(2);
    b.fleet.finish(Duration::from_secs(5));
    a.knows(1);
    let ordered = a.orders("alone", Acknowledge::Applied);
    acknowledged(&ordered, Acknowledge::Applied);
    assert_eq!(ordered.lapsed, Vec::<String>::new());
}

#[test]
fn without_the_log_an_order_holds_here_and_goes_to_the_others_later() {
    let folder = std::env::temp_dir().join(format!("larder-durable-log-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    // A log that comes back as it was.
    let durable = ["--appendonly", "yes", "--appendfsync", "always", "--dir", folder.to_str().unwrap()];
    let mut redis = Redis::start_with(&durable);
    let (a, b) = (joined(&redis, "a", None), joined(&redis, "b", None));
    redis.child.kill().unwrap();
    redis.child.wait().unwrap();
    for acknowledge in [Acknowledge::Logged, Acknowledge::Applied] {
        let ordered = a.orders(acknowledge.word(), acknowledge);
        assert_eq!(ordered.acknowledged, Acknowledge::Local);
        assert!(ordered.why_less.unwrap().starts_with("it is in force on this node alone"));
    }
    acknowledged(&a.orders("local", Acknowledge::Local), Acknowledge::Local);
    assert_eq!(a.node.applied(), ["logged", "applied", "local"]);
    assert!(a.node.is_alone.load(SeqCst), "nobody else has heard of it");
    until("the leases are over", || !a.node.is_within_lease() && !b.node.is_within_lease());
    assert!(a.fleet.status().trouble.is_some());
    redis.child = Redis::on(redis.port, &durable);
    until("the others have it", || b.node.applied() == ["logged", "applied", "local"]);
    until("all is heard again", || a.node.is_within_lease() && b.node.is_within_lease());
    assert_eq!(a.fleet.status().backlog, 0);
    until("its orders have come back", || !a.node.is_alone.load(SeqCst));
    assert_eq!(*a.node.came_back.lock(), ["logged", "applied", "local"]);
    assert_eq!(a.fleet.status().trouble, None);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn what_a_node_could_not_do_is_known_to_who_waited_for_it() {
    let redis = Redis::start();
    let (a, b) = (joined(&redis, "a", None), joined(&redis, "b", None));
    a.knows(2);
    "x".repeat(300).clone_into(&mut b.node.complaint.lock());
    acknowledged(&a.orders("impossible", Acknowledge::Applied), Acknowledge::Applied);
    let nodes = a.fleet.status().nodes;
    let said: Vec<usize> = nodes.iter().map(|node| node.complaint.len()).collect();
    assert_eq!(said, [0, fleet::limits::COMPLAINT_CHARS_MAX]);
}

#[test]
fn what_nobody_waits_for_reaches_the_others_in_its_order() {
    let redis = Redis::start();
    let (a, b) = (joined(&redis, "a", None), joined(&redis, "b", None));
    let told: Vec<String> = (0..500).map(|at| format!("told {at}")).collect();
    told.iter().for_each(|text| a.fleet.tell(text.clone()));
    until("all of it has come", || b.node.applied().len() == told.len());
    assert_eq!(b.node.applied(), told);
    until("all of it has come back", || !a.node.is_alone.load(SeqCst));
    assert!(a.node.applied().is_empty(), "it has done it before it said so");
    assert_eq!(*a.node.came_back.lock(), told);
    let status = a.fleet.status();
    assert_eq!((status.counts.told, status.counts.lost, status.backlog), (500, 0, 0));
}

#[test]
fn what_is_told_right_before_the_end_reaches_the_others() {
    let redis = Redis::start();
    let (a, b) = (joined(&redis, "a", None), joined(&redis, "b", None));
    a.knows(2);
    (0..200).for_each(|at| a.fleet.tell(at.to_string()));
    a.fleet.finish(Duration::from_secs(5));
    until("all of it has come", || b.node.applied().len() == 200);
}

#[test]
fn what_found_no_room_leaves_nothing_unconfirmed_at_the_others() {
    let mut redis = Redis::start();
    let (a, b) = (joined(&redis, "a", None), joined(&redis, "b", None));
    acknowledged(&a.orders("before", Acknowledge::Applied), Acknowledge::Applied);
    redis.signal("STOP");
    (0..fleet::limits::BACKLOG_MAX + 7).for_each(|at| a.fleet.tell(at.to_string()));
    until("it is counted", || a.fleet.status().counts.lost == 7);
    let ordered = a.orders("no room", Acknowledge::Local);
    assert!(ordered.why_less.unwrap().contains("have all that they hold confirmed"));
    let condemned = b.node.condemned.load(SeqCst);
    redis.signal("CONT");
    until("the other one has what found room", || b.node.applied().len() == fleet::limits::BACKLOG_MAX + 1);
    until("and knows that there was more", || b.node.condemned.load(SeqCst) > condemned);
    assert!(b.node.said.lock().iter().any(|said| said.contains("more was purged at a node")));
    acknowledged(&a.orders("after", Acknowledge::Applied), Acknowledge::Applied);
    assert_eq!(b.node.applied().last().map(String::as_str), Some("after"));
    redis.child.kill().unwrap();
}

#[test]
fn a_log_that_was_emptied_leaves_nothing_unconfirmed() {
    let redis = Redis::start();
    let (a, b) = (joined(&redis, "a", None), joined(&redis, "b", None));
    acknowledged(&a.orders("before", Acknowledge::Applied), Acknowledge::Applied);
    redis.says(&["FLUSHALL"]);
    until("both know", || [&a, &b].iter().all(|member| member.node.condemned.load(SeqCst) == 2));
    acknowledged(&b.orders("after", Acknowledge::Applied), Acknowledge::Applied);
    assert_eq!(a.node.applied(), ["before", "after"]);
    assert_eq!([&a, &b].map(|member| member.node.condemned.load(SeqCst)), [2, 2], "at the start, and now");
    assert!(a.node.said.lock().iter().any(|said| said.contains("may have missed purges")));
}

#[test]
fn a_node_that_comes_back_reads_on_from_where_it_was() {
    let folder = std::env::temp_dir().join(format!("larder-fleet-{}-on", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("position");
    let redis = Redis::start();
    let a = joined(&redis, "a", None);
    let b = joined(&redis, "b", Some(file.clone()));
    assert_eq!(
        b.node.condemned.load(SeqCst),
        2,
        "nothing is known of what its disks hold, nor of what was purged since the start"
    );
    acknowledged(&a.orders("one", Acknowledge::Applied), Acknowledge::Applied);
    until("it is written down", || std::fs::read_to_string(&file).is_ok_and(|text| text.contains("number 1")));
    b.fleet.finish(Duration::from_secs(5));
    for text in ["two", "three"] {
        acknowledged(&a.orders(text, Acknowledge::Logged), Acknowledge::Logged);
    }
    let b = joined(&redis, "b", Some(file.clone()));
    assert_eq!(b.node.applied(), ["two", "three"], "before anything is served");
    assert_eq!(b.node.condemned.load(SeqCst), 0);
    assert_eq!(b.node.condemned_before.load(SeqCst), 2, "what had to be confirmed still has to be");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_node_that_was_away_longer_than_the_log_remembers_has_all_confirmed() {
    let folder = std::env::temp_dir().join(format!("larder-fleet-{}-away", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("position");
    let redis = Redis::start();
    let a = joined(&redis, "a", None);
    let b = joined(&redis, "b", Some(file.clone()));
    until("it is written down", || file.exists());
    b.fleet.finish(Duration::from_secs(5));
    for text in ["one", "two", "three"] {
        acknowledged(&a.orders(text, Acknowledge::Logged), Acknowledge::Logged);
    }
    redis.says(&["XTRIM", "{larder}:orders", "MAXLEN", "1"]);
    let b = joined(&redis, "b", Some(file));
    assert_eq!(b.node.condemned.load(SeqCst), 1);
    assert_eq!(b.node.applied(), ["three"]);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn an_order_that_a_node_does_not_understand_has_all_confirmed_there() {
    let redis = Redis::start();
    let (a, b) = (joined(&redis, "a", None), joined(&redis, "b", None));
    b.node.understands_nothing.store(true, SeqCst);
    acknowledged(&a.orders("new", Acknowledge::Applied), Acknowledge::Applied);
    assert_eq!((a.node.condemned.load(SeqCst), b.node.condemned.load(SeqCst)), (1, 2), "at the start, and b now");
}

#[test]
fn a_log_that_stands_still_ends_leases_and_no_longer() {
    let redis = Redis::start();
    let a = joined(&redis, "a", None);
    redis.signal("STOP");
    until("the lease is over", || !a.node.is_within_lease());
    redis.signal("CONT");
    until("it is heard again", || a.node.is_within_lease());
    assert_eq!(a.node.condemned.load(SeqCst), 1, "at the start: nothing was missed since");
}

#[test]
fn entries_of_others_in_the_stream_are_no_orders() {
    let redis = Redis::start();
    let a = joined(&redis, "a", None);
    redis.says(&["XADD", "{larder}:orders", "*", "hello", "world"]);
    acknowledged(&a.orders("order", Acknowledge::Applied), Acknowledge::Applied);
    assert_eq!(a.node.applied(), ["order"]);
}
