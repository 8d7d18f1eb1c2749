//! Origins given by name: fixed answers, a name server with a TTL, one that fails, and addresses that are dead.

use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::*;

fn by_name(host: &str, port: u16) -> OriginUrl {
    OriginUrl::Tcp { host: host.into(), port }
}

/// A name server of ours: it answers every A question with its addresses of the moment, AAAA with none, and SRV with its records.
struct NameServer {
    address: SocketAddr,
    state: Arc<NameServerState>,
}

struct NameServerState {
    addresses: Mutex<Vec<Ipv4Addr>>,
    /// Priority, weight, port and the first label of the target.
    services: Mutex<Vec<(u16, u16, u16, &'static str)>>,
    ttl_s: AtomicUsize,
    /// Answer SERVFAIL (2), NXDOMAIN (3) or properly (0).
    code: AtomicUsize,
    questions: AtomicUsize,
    ended: AtomicBool,
}

impl NameServer {
    fn start(addresses: &[[u8; 4]], ttl_s: usize) -> NameServer {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        let state = Arc::new(NameServerState {
            addresses: Mutex::new(addresses.iter().copied().map(Ipv4Addr::from).collect()),
            services: Mutex::default(),
            ttl_s: AtomicUsize::new(ttl_s),
            code: AtomicUsize::new(0),
            questions: AtomicUsize::new(0),
            ended: AtomicBool::new(false),
        });
        let server = NameServer { address, state: Arc::clone(&state) };
        std::thread::spawn(move || {
            let mut question = [0; 512];
            while let Ok((length, asker)) = socket.recv_from(&mut question) {
                if state.ended.load(Ordering::Relaxed) {
                    return;
                }
                socket.send_to(&state.answer(&question[..length]), asker).unwrap();
            }
        });
        server
    }

    fn set(&self, addresses: &[[u8; 4]]) {
        *self.state.addresses.lock() = addresses.iter().copied().map(Ipv4Addr::from).collect();
    }

    fn set_code(&self, code: usize) {
        self.state.code.store(code, Ordering::Relaxed);
    }

    fn questions(&self) -> usize {
        self.state.questions.load(Ordering::Relaxed)
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        self.state.ended.store(true, Ordering::Relaxed);
        let _ = UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.send_to(b"", self.address));
    }
}

impl NameServerState {
    /// RFC 1035 §4: header, the question again, and the records. Counts A questions.
    fn answer(&self, question: &[u8]) -> Vec<u8> {
        let name_length = question[12..].iter().position(|&b| b == 0).unwrap() + 1;
        let question_end = 12 + name_length + 4;
        let is_a = question[12 + name_length..][..2] == [0, 1];
        if question[12 + name_length..][..2] == [0, 33] {
            return self.answer_service(question, question_end);
        }
        let code = self.code.load(Ordering::Relaxed) as u8;
        self.questions.fetch_add(usize::from(is_a), Ordering::Relaxed);
        let addresses = if is_a && code == 0 { self.addresses.lock().clone() } else { Vec::new() };
        let mut answer = question[..2].to_vec();
        answer.extend([0x81, 0x80 | code, 0, 1, 0, addresses.len() as u8, 0, 0, 0, 0]);
        answer.extend(&question[12..question_end]);
        for address in addresses {
            answer.extend([0xc0, 12, 0, 1, 0, 1]);
            answer.extend((self.ttl_s.load(Ordering::Relaxed) as u32).to_be_bytes());
            answer.extend([0, 4]);
            answer.extend(address.octets());
        }
        answer
    }
}

impl NameServerState {
    /// RFC 2782: each target is LABEL.test.
    fn answer_service(&self, question: &[u8], question_end: usize) -> Vec<u8> {
        let services = self.services.lock().clone();
        let mut answer = question[..2].to_vec();
        answer.extend([0x81, 0x80, 0, 1, 0, services.len() as u8, 0, 0, 0, 0]);
        answer.extend(&question[12..question_end]);
        for (priority, weight, port, label) in services {
            answer.extend([0xc0, 12, 0, 33, 0, 1]);
            answer.extend((self.ttl_s.load(Ordering::Relaxed) as u32).to_be_bytes());
            answer.extend((6 + label.len() as u16 + 7).to_be_bytes());
            [priority, weight, port].map(u16::to_be_bytes).iter().for_each(|number| answer.extend(number));
            answer.push(label.len() as u8);
            answer.extend(label.as_bytes());
            answer.extend(b"\x04test\0");
        }
        answer
    }
}

/// Listeners at 127.0.0.2 and 127.0.0.3 on the same port.
async fn two_listeners() -> (TcpListener, TcpListener, u16) {
    loop {
        let first = TcpListener::bind("127.0.0.2:0").await.unwrap();
        let port = first.local_addr().unwrap().port();
        if let Ok(second) = TcpListener::bind(("127.0.0.3", port)).await {
            return (first, second, port);
        }
    }
}

fn asking(server: &NameServer, port: u16) -> Rig {
    let mut settings = settings(vec![origin("shop", vec![by_name("shop.test", port)])]);
    settings.resolver.servers = vec![server.address];
    Rig::new(settings)
}

/// Connects, gives back, and says where to.
async fn visit(rig: &Rig) -> String {
    let connection = rig.connect().await;
    connection.succeeded(|| rig.now_ms.get());
    let label = connection.label().to_string();
    rig.give_back(connection);
    label
}

#[test]
fn fixed_answers_come_from_the_settings() {
    run(async {
        let listener = listener().await;
        let port = listener.local_addr().unwrap().port();
        let mut settings = settings(vec![origin("shop", vec![by_name("shop.test", port)])]);
        settings.resolver.hosts = vec![("shop.test".into(), vec![IpAddr::V4(Ipv4Addr::LOCALHOST)])];
        let rig = Rig::new(settings);
        assert_eq!(visit(&rig).await, format!("127.0.0.1:{port}"));
    });
}

#[test]
fn localhost_needs_no_name_server() {
    run(async {
        let listener = listener().await;
        let port = listener.local_addr().unwrap().port();
        let rig = Rig::new(settings(vec![origin("shop", vec![by_name("localhost", port)])]));
        for _ in 0..4 {
            assert_eq!(visit(&rig).await, format!("127.0.0.1:{port}"));
        }
    });
}

#[test]
fn of_two_addresses_a_dead_one_fails_nobody_and_is_ejected() {
    run(async {
        let (first, second, port) = two_listeners().await;
        drop(second);
        let server = NameServer::start(&[[127, 0, 0, 2], [127, 0, 0, 3]], 60);
        let mut rig = asking(&server, port);
        rig.settings.limits.origin_idle_connections_max = 0;
        rig.reload();
        for _ in 0..12 {
            assert_eq!(visit(&rig).await, format!("127.0.0.2:{port}"));
        }
        assert_eq!((rig.counters.origin_errors_connect.get(), rig.counters.origin_ejections.get()), (3, 1));
        assert_eq!(rig.counters.origin_retries.get(), 3, "each went to the other address");
        let status = rig.origins.status(rig.now_ms.get()).swap_remove(0);
        assert_eq!(status.addresses[1].state, AddressState::Ejected { for_ms: 10_000 });
        drop(first);
    });
}

/// Who asks what would be done is told whom an order keeps requests from.
#[test]
fn addresses_that_are_ordered_out_are_told_of() {
    run(async {
        let (_first, _second, port) = two_listeners().await;
        let server = NameServer::start(&[[127, 0, 0, 2], [127, 0, 0, 3]], 60);
        let rig = asking(&server, port);
        visit(&rig).await;
        let order = |address: &str, order: AddressOrder| {
            let change = AddressChange { order: Some(order), weight: None };
            rig.origins
                .order("shop", Some(&format!("{address}:{port}")), change, rig.now_ms.get())
                .expect("it is known");
            rig.origins.get(0).what_is_down(rig.now_ms.get())
        };
        assert_eq!(rig.origins.get(0).what_is_down(rig.now_ms.get()), Vec::<String>::new());
        let one = order("127.0.0.2", AddressOrder::Drain);
        assert!(one.len() == 1 && one[0].contains(&format!("(127.0.0.2:{port}) is drained by an order")), "{one:?}");
        let all = order("127.0.0.3", AddressOrder::Down);
        assert!(all[1].contains("was taken out by an order") && all[2].starts_with("no address of "), "{all:?}");
        let back = order("127.0.0.3", AddressOrder::Auto);
        assert_eq!(back.len(), 1, "{back:?}");
    });
}

#[test]
fn a_name_is_looked_up_again_when_its_time_to_live_ends() {
    run(async {
        let (_first, _second, port) = two_listeners().await;
        let server = NameServer::start(&[[127, 0, 0, 2]], 2);
        let rig = asking(&server, port);
        assert_eq!(visit(&rig).await, format!("127.0.0.2:{port}"));
        server.set(&[[127, 0, 0, 3]]);
        rig.advance(1_500);
        assert_eq!((visit(&rig).await, server.questions()), (format!("127.0.0.2:{port}"), 1));
        rig.advance(1_500);
        assert_eq!((visit(&rig).await, server.questions()), (format!("127.0.0.3:{port}"), 2));
        assert_eq!(rig.counts(0), (1, 0, vec![(0, 1)]), "what was idle to the old address is closed");
    });
}

#[test]
fn a_name_in_use_is_renewed_before_anybody_has_to_wait() {
    run(async {
        let (_first, _second, port) = two_listeners().await;
        let server = NameServer::start(&[[127, 0, 0, 2]], 8);
        let rig = asking(&server, port);
        visit(&rig).await;
        server.set(&[[127, 0, 0, 2], [127, 0, 0, 3]]);
        rig.advance(7_500);
        let servers = &rig.origins.get(0).servers;
        let heard = servers.heard();
        rig.sweep();
        heard.await;
        assert_eq!((rig.origins.status(0)[0].addresses.len(), server.questions()), (2, 2));
        // Nobody used it since, so the next sweep leaves it alone: the answer of the visit after it still holds then.
        rig.advance(7_500);
        rig.sweep();
        rig.advance(1_000);
        visit(&rig).await;
        rig.advance(7_500);
        visit(&rig).await;
        assert_eq!(server.questions(), 3);
    });
}

#[test]
fn old_addresses_are_used_while_the_name_server_fails() {
    run(async {
        let (_first, _second, port) = two_listeners().await;
        let server = NameServer::start(&[[127, 0, 0, 2]], 2);
        let rig = asking(&server, port);
        visit(&rig).await;
        server.set(&[[127, 0, 0, 3]]);
        for code in [2, 3, 0] {
            server.set_code(code);
            let heard = rig.origins.get(0).servers.heard();
            rig.advance(100_000);
            let visited = visit(&rig).await;
            // Nobody waits for a server that failed last time: the proper answer may come before or after the visit.
            assert!(code == 0 || visited == format!("127.0.0.2:{port}"), "code {code}: {visited}");
            heard.await;
        }
        assert_eq!(visit(&rig).await, format!("127.0.0.3:{port}"), "and heals");
    });
}

#[test]
fn a_name_that_does_not_exist_is_an_error_for_a_while() {
    run(async {
        let server = NameServer::start(&[], 2);
        server.set_code(3);
        let rig = asking(&server, 80);
        let expect = "origin \"shop\" (shop.test): name did not resolve: no such name (resolver)";
        for _ in 0..3 {
            let error = rig.refusal().await;
            assert_eq!((error.status(), error.to_string().as_str()), (502, expect));
        }
        assert_eq!((server.questions(), rig.counters.origin_errors_resolve.get()), (1, 3));
    });
}

#[test]
fn a_silent_name_server_is_a_timeout_that_names_its_limit() {
    run(async {
        let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut settings = settings(vec![origin("shop", vec![by_name("shop.test", 80)])]);
        settings.resolver.servers = vec![silent.local_addr().unwrap()];
        settings.limits.connect_timeout = Duration::from_millis(30);
        let rig = Rig::new(settings);
        let error = rig.refusal().await;
        assert!(error.to_string().ends_with("no answer within 30 ms (limits.connect_timeout) (resolver)"), "{error}");
    });
}

#[test]
fn a_service_is_its_records_with_their_ports_weights_and_priorities() {
    run(async {
        let (first, second, backup) = (listener().await, listener().await, listener().await);
        let ports = [&first, &second, &backup].map(|listener| listener.local_addr().unwrap().port());
        let server = NameServer::start(&[[127, 0, 0, 1]], 8);
        *server.state.services.lock() = vec![(20, 0, ports[2], "c"), (10, 3, ports[0], "a"), (10, 1, ports[1], "b")];
        let mut settings = settings(vec![origin("shop", vec![by_name("_http._tcp.shop.test", 80)])]);
        settings.resolver.servers = vec![server.address];
        let rig = Rig::new(settings);
        let label = |at: usize| format!("127.0.0.1:{}", ports[at]);
        let mut counts = [0; 3];
        for _ in 0..8 {
            let visited = visit(&rig).await;
            counts[(0..3).position(|at| label(at) == visited).unwrap()] += 1;
        }
        assert_eq!(counts, [6, 2, 0]);
        let change = AddressChange { order: Some(AddressOrder::Down), weight: None };
        for at in 0..2 {
            rig.origins.order("shop", Some(&label(at)), change, rig.now_ms.get()).unwrap();
        }
        assert_eq!(visit(&rig).await, label(2));
        let unknown = rig.origins.order("shop", Some("10.0.0.1:1"), change, 0).unwrap_err();
        assert!(unknown.0.contains(&label(0)), "{unknown:?}");
    });
}

#[test]
fn a_service_that_is_not_there_has_no_server() {
    run(async {
        let server = NameServer::start(&[[127, 0, 0, 1]], 8);
        let mut settings = settings(vec![origin("shop", vec![by_name("_http._tcp.shop.test", 80)])]);
        settings.resolver.servers = vec![server.address];
        let refusal = Rig::new(settings).refusal().await;
        assert_eq!(refusal.token(), "origin-resolve");
    });
}
