//! The tier over a real memcached and a real redis-server: what is kept comes back, who fetches for all, and what becomes of a server that is
//! slow, full, lying or dead.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use cache::{FetchRight, SecondTier, TierAnswer, TierFigures, TierName, TierRecord};
use shared::{TierService, TierSettings, TierUrl};
use store::Blocks;

const NAME: TierName = TierName { key: 0xabcd << 100, variant: 3 };
const LATER_S: u64 = 1_000_600;
const WAIT_MAX: Duration = Duration::from_millis(400);
const FETCH_WAIT_MAX: Duration = Duration::from_millis(700);

fn wall_s() -> u64 {
    1_000_000
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Memcached,
    Redis,
}

const BOTH: [Kind; 2] = [Kind::Memcached, Kind::Redis];

/// A server on a port of its own; it ends with the test.
struct Engine {
    kind: Kind,
    child: Child,
    port: u16,
}

impl Engine {
    fn start(kind: Kind) -> Engine {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        Engine { kind, child: Engine::on(kind, port, &[]), port }
    }

    fn on(kind: Kind, port: u16, words: &[&str]) -> Child {
        let port_text = port.to_string();
        let mut command = match kind {
            Kind::Memcached => {
                let mut command = Command::new("memcached");
                command.args(["-l", "127.0.0.1", "-u", "root", "-p", &port_text]);
                command
            }
            Kind::Redis => {
                let mut command = Command::new("redis-server");
                command.args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--port", &port_text]);
                command
            }
        };
        let child = command.args(words).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let child = child.expect("memcached and redis-server are installed by ./setup");
        until("it listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        child
    }

    fn url(&self) -> String {
        match self.kind {
            Kind::Memcached => format!("memcached://127.0.0.1:{}", self.port),
            Kind::Redis => format!("redis://127.0.0.1:{}", self.port),
        }
    }

    fn signal(&self, name: &str) {
        let done = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status().unwrap();
        assert!(done.success());
    }

    fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Begins anew, with nothing in it.
    fn begin(&mut self) {
        self.child = Engine::on(self.kind, self.port, &[]);
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A node's side of the tier.
struct Node {
    tier: Arc<TierService>,
    said: Arc<Mutex<Vec<String>>>,
}

static RUNS: AtomicU64 = AtomicU64::new(1);

impl Node {
    fn new(url: &str) -> Node {
        Node::with(url, 1, 4 << 20)
    }

    fn with(url: &str, key: u8, queue_bytes_max: usize) -> Node {
        let settings = TierSettings {
            servers: TierUrl::all_of(url).unwrap(),
            authorities: None,
            wait_max: WAIT_MAX,
            fetch_wait_max: FETCH_WAIT_MAX,
            body_bytes_max: 3 << 20,
            queue_bytes_max,
            bandwidth: None,
        };
        let said = Arc::<Mutex<Vec<String>>>::default();
        let heard = Arc::clone(&said);
        let run = RUNS.fetch_add(1, SeqCst) << 32;
        let told = move |sentence| heard.lock().unwrap().push(sentence);
        Node { tier: TierService::start(settings, (&[key; 32], run), told, wall_s).unwrap(), said }
    }

    fn ask(&self, name: TierName, wants_right: bool) -> TierAnswer {
        runtime().block_on(self.tier.ask(name, wants_right))
    }

    fn body(&self, name: TierName) -> Option<Vec<u8>> {
        match self.ask(name, false) {
            TierAnswer::Found(record) => Some(bytes_of(&record.body)),
            TierAnswer::Nothing(_) => None,
        }
    }

    /// And waits until it is there.
    fn keep(&self, name: TierName, body: &[u8]) {
        let before = self.figures();
        self.tier.keep(name, record(body), LATER_S);
        let is_over = |now: TierFigures| now.kept + now.not_kept > before.kept + before.not_kept;
        until("it is kept", || is_over(self.figures()));
        assert_eq!(self.figures().kept, before.kept + 1);
    }

    fn right(&self, name: TierName) -> FetchRight {
        let TierAnswer::Nothing(Some(right)) = self.ask(name, true) else { panic!("nobody fetches it") };
        right
    }

    fn figures(&self) -> TierFigures {
        self.tier.figures()
    }

    fn said(&self) -> Vec<String> {
        self.said.lock().unwrap().clone()
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

fn record(body: &[u8]) -> TierRecord {
    TierRecord { head: Bytes::from_static(b"a head"), body: Blocks::copy_of(body) }
}

fn bytes_of(body: &Blocks) -> Vec<u8> {
    body.slices(0, u64::MAX).collect::<Vec<_>>().concat()
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..2_000 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("{what}: not in ten seconds");
}

#[test]
fn what_one_node_keeps_another_finds_until_it_is_forgotten() {
    for kind in BOTH {
        let engine = Engine::start(kind);
        let (one, other) = (Node::new(&engine.url()), Node::new(&engine.url()));
        assert_eq!(other.body(NAME), None);
        for body_bytes in [0, 1, 70_000, 2_500_000] {
            let body: Vec<u8> = (0..body_bytes).map(|at: usize| (at % 253) as u8).collect();
            one.keep(NAME, &body);
            assert!(other.body(NAME).as_deref() == Some(&body[..]), "{kind:?} {body_bytes}");
        }
        assert_eq!(other.body(TierName { variant: 4, ..NAME }), None);
        other.tier.forget(NAME);
        until("it is forgotten", || one.body(NAME).is_none());
        assert_eq!((one.said(), other.figures().errors), (Vec::new(), 0));
    }
}

#[test]
fn one_node_fetches_for_all_and_the_others_find_what_it_brought() {
    for kind in BOTH {
        let engine = Engine::start(kind);
        let (winner, other) = (Node::new(&engine.url()), Node::new(&engine.url()));
        let right = winner.right(NAME);
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| other.ask(NAME, true));
            until("it waits", || other.figures().waited == 1);
            winner.keep(NAME, b"fetched once");
            drop(right);
            let TierAnswer::Found(found) = waits.join().unwrap() else { panic!("{kind:?}: it was fetched") };
            assert_eq!(bytes_of(&found.body), b"fetched once");
        });
        // And who comes later finds it, too.
        assert!(matches!(other.ask(NAME, true), TierAnswer::Found(_)));
    }
}

#[test]
fn a_right_that_is_given_back_is_the_next_ones() {
    for kind in BOTH {
        let engine = Engine::start(kind);
        let (one, other) = (Node::new(&engine.url()), Node::new(&engine.url()));
        drop(one.right(NAME));
        drop(other.right(NAME));
    }
}

#[test]
fn a_winner_that_dies_costs_the_others_one_wait_and_not_each_of_them_a_fetch_for_ever() {
    for kind in BOTH {
        let engine = Engine::start(kind);
        let (winner, other) = (Node::new(&engine.url()), Node::new(&engine.url()));
        // It is never given back.
        std::mem::forget(winner.right(NAME));
        let TierAnswer::Nothing(None) = other.ask(NAME, true) else { panic!("{kind:?}: it has nothing") };
        assert_eq!(other.figures().waited, 1);
        other.keep(NAME, b"fetched after all");
        assert_eq!(winner.body(NAME).as_deref(), Some(&b"fetched after all"[..]));
    }
}

#[test]
fn who_does_not_want_to_fetch_is_not_kept_waiting() {
    for kind in BOTH {
        let engine = Engine::start(kind);
        let (winner, other) = (Node::new(&engine.url()), Node::new(&engine.url()));
        let _right = winner.right(NAME);
        assert!(matches!(other.ask(NAME, false), TierAnswer::Nothing(None)));
        assert_eq!(other.figures().waited, 0);
    }
}

#[test]
fn a_stopped_server_costs_hits_and_is_taken_back_when_it_goes_on() {
    for kind in BOTH {
        let engine = Engine::start(kind);
        let node = Node::new(&engine.url());
        node.keep(NAME, b"a body");
        engine.signal("STOP");
        for _ in 0..5 {
            assert_eq!(node.body(NAME), None);
        }
        let figures = node.figures();
        assert!(figures.timeouts >= 3 && figures.skipped >= 1, "{kind:?}: {figures:?}");
        assert!(node.tier.servers()[0].trouble.is_some());
        assert!(node.said().iter().any(|said| said.contains("is left alone for a while")), "{:?}", node.said());
        engine.signal("CONT");
        until("it is taken back", || node.body(NAME).is_some());
        assert_eq!(node.tier.servers()[0].trouble, None);
    }
}

#[test]
fn a_server_that_is_killed_and_begun_anew_is_used_again() {
    for kind in BOTH {
        let mut engine = Engine::start(kind);
        let node = Node::new(&engine.url());
        node.keep(NAME, b"a body");
        engine.kill();
        for _ in 0..5 {
            assert_eq!(node.body(NAME), None);
        }
        engine.begin();
        until("it is used", || {
            node.tier.keep(NAME, record(b"another"), LATER_S);
            node.body(NAME).is_some()
        });
    }
}

#[test]
fn of_several_servers_each_has_its_names_and_one_that_is_dead_has_nothing() {
    let mut engines = [Engine::start(Kind::Memcached), Engine::start(Kind::Memcached), Engine::start(Kind::Memcached)];
    let places: Vec<String> = engines.iter().map(|engine| format!("127.0.0.1:{}", engine.port)).collect();
    let url = format!("memcached://{}", places.join(","));
    let (one, other) = (Node::new(&url), Node::new(&url));
    let name = |at: u128| TierName { key: at.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835), variant: 0 };
    (0..60).for_each(|at| one.keep(name(at), b"a body"));
    assert!((0..60).all(|at| other.body(name(at)).is_some()));
    engines[0].kill();
    let left = (0..60).filter(|&at| other.body(name(at)).is_some()).count();
    assert!((25..55).contains(&left), "{left} of 60");
}

#[test]
fn what_somebody_else_wrote_or_changed_is_refused() {
    for kind in BOTH {
        let engine = Engine::start(kind);
        let (node, stranger) = (Node::new(&engine.url()), Node::with(&engine.url(), 2, 4 << 20));
        stranger.keep(NAME, b"not ours");
        assert_eq!((node.body(NAME), node.figures().refused), (None, 1), "{kind:?}");
        // With any bytes at all.
        let key = format!("larder:{:032x}{:016x}", NAME.key, NAME.variant);
        for (value, is_refused) in [(&b"x"[..], true), (&[0; 300], true), (&[255; 64], true)] {
            write_raw(&engine, &key, value);
            let before = node.figures().refused;
            assert_eq!((node.body(NAME), node.figures().refused > before), (None, is_refused), "{kind:?} {value:?}");
        }
        assert_eq!(node.said().iter().filter(|said| said.contains("no node of this fleet")).count(), 1, "said once");
    }
}

/// As somebody does it who reaches the engine.
fn write_raw(engine: &Engine, key: &str, value: &[u8]) {
    let mut socket = TcpStream::connect(("127.0.0.1", engine.port)).unwrap();
    let head = match engine.kind {
        Kind::Memcached => format!("set {key} 0 0 {}\r\n", value.len()),
        Kind::Redis => format!("*3\r\n$3\r\nSET\r\n${}\r\n{key}\r\n${}\r\n", key.len(), value.len()),
    };
    socket.write_all(&[head.as_bytes(), value, b"\r\n"].concat()).unwrap();
    let mut said = [0; 5];
    socket.read_exact(&mut said).unwrap();
    assert!(&said == b"STORE" || &said == b"+OK\r\n", "{said:?}");
}

/// A server that says what no memcached says, or nothing behind a promise.
#[test]
fn a_lying_server_is_left_alone() {
    for lie in
        ["VA 5 f0 c1 t1 kother\r\nhello\r\n", "VA 999999999 f0 c1 t1\r\n", "nonsense\r\n", "\n", "HD\r\nHD\r\nHD\r\n"]
    {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for mut socket in listener.incoming().flatten() {
                std::thread::spawn(move || {
                    let mut asked = [0; 1_000];
                    while socket.read(&mut asked).is_ok_and(|read| read > 0) {
                        let _ = socket.write_all(lie.as_bytes());
                    }
                });
            }
        });
        let node = Node::new(&format!("memcached://127.0.0.1:{port}"));
        for _ in 0..6 {
            assert_eq!(node.body(NAME), None, "{lie:?}");
        }
        let figures = node.figures();
        assert!(figures.errors >= 3 && figures.skipped >= 1, "{lie:?}: {figures:?}");
    }
}

#[test]
fn what_is_too_much_at_once_is_not_kept() {
    let engine = Engine::start(Kind::Memcached);
    let node = Node::with(&engine.url(), 1, 1_000);
    node.tier.keep(NAME, record(&[0; 2_000]), LATER_S);
    assert_eq!((node.figures().kept, node.figures().not_kept), (0, 1));
    node.keep(NAME, &[0; 500]);
    // What is over already is not kept either.
    node.tier.keep(NAME, record(b"late"), wall_s());
    until("it was looked at", || node.figures().not_kept == 2);
    assert_eq!(node.body(NAME).map(|body| body.len()), Some(500));
}

#[test]
fn a_full_redis_keeps_nothing_and_fails_nobody() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let full = ["--maxmemory", "1mb", "--maxmemory-policy", "noeviction"];
    let engine = Engine { kind: Kind::Redis, child: Engine::on(Kind::Redis, port, &full), port };
    let node = Node::new(&engine.url());
    node.tier.keep(NAME, record(&[7; 900_000]), LATER_S);
    until("it was looked at", || node.figures().not_kept == 1);
    assert_eq!((node.body(NAME), node.figures().errors), (None, 0));
    assert_eq!(node.tier.servers()[0].trouble, None);
}
