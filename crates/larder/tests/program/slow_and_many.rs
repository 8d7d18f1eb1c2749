//! Group I of the bad inputs and its kin in C, F, J and O: many clients at once, slow ones, idle ones. Each test
//! stands for one row and waits for events; what is slow here is the peer, never the test.

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr, SocketAddr};

    use crate::bad_input::{brief_setup, start_lane};
    use crate::lane::{Lane, PATIENCE_MS, Waited, now_ms};
    use crate::notation::{self, Script, Step};
    use crate::raw_client::{Client, End};
    use crate::recording_origin::Behaviour;
    use crate::strict_head::find;
    use crate::subject::{Kind, Setup};

    fn lane_with(limits: &str) -> Lane {
        raise_open_files_limit();
        start_lane(Kind::Larder, &Setup { limits: limits.into(), ..Setup::default() })
    }

    /// Two thousand sockets need more than the usual 1,024.
    fn raise_open_files_limit() {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let limit = getrlimit(Resource::Nofile);
        let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    }

    fn answers(lane: &mut Lane, texts: &[&str]) {
        let read = |text: &&str| notation::read(text, &lane.names).unwrap_or_else(|error| panic!("{text}: {error}"));
        let answers = texts.iter().map(read).collect();
        lane.origin.begin(Behaviour { answers, ..Behaviour::default() });
    }

    fn bytes(text: &[u8]) -> Script {
        Script::from([Step::Bytes(text.to_vec())])
    }

    fn all_ended(clients: &[Client]) -> bool {
        clients.iter().all(|client| client.end.is_some())
    }

    fn is_answered(client: &Client, last: &[u8]) -> bool {
        client.received.ends_with(last)
    }

    /// Plays until the condition holds, with a stroke of the dripper every 50 ms.
    fn drip_until(
        lane: &mut Lane,
        clients: &mut Vec<Client>,
        mut drip: impl FnMut(&mut Lane, &mut Vec<Client>),
        mut is_met: impl FnMut(&mut Lane, &mut [Client]) -> bool,
    ) -> bool {
        let deadline_ms = now_ms() + PATIENCE_MS;
        while now_ms() < deadline_ms {
            if lane.wait_until(clients, 50, &mut is_met) == Waited::Met {
                return true;
            }
            drip(lane, clients);
        }
        false
    }

    /// I01 and V6.
    #[test]
    fn slow_heads_are_closed_and_others_served() {
        let mut lane = lane_with("request_head_timeout = \"1s\"\n");
        let mut clients: Vec<_> = (0..500).map(|_| lane.connect("GET /slow HTTP/1.1¶Host: t.test¶X-Slow: a")).collect();
        let drip = |lane: &mut Lane, clients: &mut Vec<Client>| {
            clients.iter_mut().filter(|client| client.end.is_none()).for_each(|client| client.say(bytes(b"a")));
            lane.ask(clients, "GET /good HTTP/1.1¶Host: t.test¶¶", 200);
        };
        let closed = drip_until(&mut lane, &mut clients, drip, |_, clients| all_ended(clients));
        assert!(closed, "{} heads are still open", clients.iter().filter(|client| client.end.is_none()).count());
        assert!(lane.origin.seen.iter().all(|seen| seen.target != "/slow"), "a slow head reached the origin");
        assert_eq!(lane.subject.metric("larder_panics_total"), Some(0.0));
    }

    /// I02: one byte, and then no more.
    #[test]
    fn a_slow_body_is_closed_and_the_origin_freed() {
        let mut lane = lane_with("request_body_timeout = \"1s\"\n");
        answers(&mut lane, &[]);
        let head = "POST /slow{i} HTTP/1.1¶Host: t.test¶Content-Length: 1000¶¶a";
        let connect = |i: usize| lane.connect(&head.replace("{i}", &i.to_string()));
        let mut clients: Vec<_> = (0..50).map(connect).collect();
        lane.expect(&mut clients, "the end of the slow bodies", |_, clients| all_ended(clients));
        for client in &clients {
            assert!(client.received.starts_with(b"HTTP/1.1 408 "), "{}", notation::show(&client.received, 200));
            assert_eq!(client.end, Some(End::Fin));
        }
        let connections: Vec<_> = lane.origin.seen.iter().map(|seen| seen.connection).collect();
        lane.expect(&mut [], "the end of the origin's connections", |lane, _| {
            connections.iter().all(|connection| lane.origin.is_closed(*connection))
        });
        assert!(lane.origin.seen.iter().all(|seen| !seen.complete), "a body was completed at the origin");
    }

    /// I02: a byte now and then, each in time, and never an end.
    #[test]
    fn a_dripped_body_is_closed_and_a_steady_one_is_not() {
        let mut lane = lane_with("request_body_timeout = \"1s\"\nrequest_body_rate_min = \"1K\"\n");
        let head = "POST /{name} HTTP/1.1¶Host: t.test¶Content-Length: 1000000¶¶a";
        let mut clients: Vec<_> = (0..20).map(|_| lane.connect(&head.replace("{name}", "dripped"))).collect();
        clients.push(lane.connect(&head.replace("{name}", "steady")));
        let drip = |_: &mut Lane, clients: &mut Vec<Client>| {
            let (steady, dripping) = clients.split_last_mut().expect("there are some");
            dripping.iter_mut().filter(|client| client.end.is_none()).for_each(|client| client.say(bytes(b"a")));
            steady.say(bytes(&[b'a'; 1_000]));
        };
        let closed = drip_until(&mut lane, &mut clients, drip, |_, clients| all_ended(&clients[..20]));
        assert!(closed, "{} bodies are still open", clients[..20].iter().filter(|it| it.end.is_none()).count());
        for client in &clients[..20] {
            assert!(client.received.starts_with(b"HTTP/1.1 408 "), "{}", notation::show(&client.received, 200));
            assert!(find(&client.received, b"request-body-too-slow").is_some());
            assert_eq!(client.end, Some(End::Fin));
        }
        let steady = &clients[20];
        assert!(steady.end.is_none() && steady.received.is_empty(), "{}", notation::show(&steady.received, 200));
        let dripped = lane.origin.seen.iter().filter(|seen| seen.target == "/dripped");
        let connections: Vec<_> = dripped.map(|seen| seen.connection).collect();
        assert_eq!(connections.len(), 20);
        lane.expect(&mut clients, "the end of the origin's connections", |lane, _| {
            connections.iter().all(|connection| lane.origin.is_closed(*connection))
        });
    }

    /// I03: the object is in memory once, and who takes nothing is cut off.
    #[test]
    fn slow_readers_share_one_copy_and_are_cut() {
        const OBJECT_BYTES: usize = 8 << 20;
        let mut lane = lane_with("send_timeout = \"1s\"\n");
        answers(&mut lane, &["{H}Content-Length: 8388608¶¶{a*8388608}"]);
        let stored = lane.ask(&mut Vec::new(), "GET /large HTTP/1.1¶Host: t.test¶¶", 200);
        assert_eq!(stored.body.len(), OBJECT_BYTES);
        let used_before = lane.subject.metric("larder_memory_used_bytes").expect("a metric");
        let rss_before_kib = lane.subject.process_number("VmRSS");
        let mut clients: Vec<_> = (0..30)
            .map(|_| {
                let mut client = lane.connect("GET /large HTTP/1.1¶Host: t.test¶¶");
                client.deaf = true;
                client
            })
            .collect();
        let active = |lane: &Lane| lane.subject.metric("larder_connections_active");
        let mut most_used: f64 = 0.0;
        lane.expect(&mut clients, "the end of the deaf readers", |lane, _| {
            most_used = most_used.max(lane.subject.metric("larder_memory_used_bytes").unwrap_or(f64::MAX));
            active(lane) == Some(0.0)
        });
        let growth_kib = lane.subject.process_number("VmRSS").saturating_sub(rss_before_kib);
        println!("30 deaf readers of 8 MiB: account grew by {}, RSS by {growth_kib} KiB", most_used - used_before);
        assert!(most_used - used_before < OBJECT_BYTES as f64, "the account grew by {}", most_used - used_before);
        assert!(growth_kib < 16 << 10, "the process grew by {growth_kib} KiB");
        assert_eq!(lane.origin.seen.len(), 1, "the origin was asked again");
    }

    /// I03 and K08: ranges go out from where the object lies, whichever they are.
    #[test]
    fn slow_readers_of_ranges_share_one_copy_and_are_cut() {
        let mut lane = lane_with("send_timeout = \"1s\"\n");
        let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nContent-Length: 2000000\r\n\r\n";
        let body = (0..2_000_000).map(|at| b'a' + (at % 23) as u8);
        let answer = head.bytes().chain(body).collect::<Vec<_>>();
        lane.origin.begin(Behaviour { answers: vec![bytes(&answer)], ..Behaviour::default() });
        let stored = lane.ask(&mut Vec::new(), "GET /large HTTP/1.1¶Host: t.test¶¶", 200).body;
        let parts = |ranges: &str| format!("GET /large HTTP/1.1¶Host: t.test¶Range: bytes={ranges}¶¶");
        let read = lane.ask(&mut Vec::new(), &parts("0-9,100000-899999,999990-1999999"), 206).body;
        for range in [0..10, 100_000..900_000, 999_990..2_000_000] {
            let head = format!("Content-Range: bytes {}-{}/2000000\r\n\r\n", range.start, range.end - 1);
            let at = find(&read, head.as_bytes()).expect("every part has its head") + head.len();
            assert!(read[at..].starts_with(&stored[range.clone()]), "{range:?}");
            assert!(read[at + range.len()..].starts_with(b"\r\n--"), "{range:?}");
        }
        let rss_before_kib = lane.subject.process_number("VmRSS");
        let mut clients: Vec<_> = (0..30)
            .map(|_| {
                let mut client = lane.connect(&parts("0-899999,1000000-1999999"));
                client.deaf = true;
                client
            })
            .collect();
        let active = |lane: &Lane| lane.subject.metric("larder_connections_active");
        lane.expect(&mut clients, "the deaf readers", |lane, _| active(lane) == Some(30.0));
        let mut most_kib = 0;
        lane.expect(&mut clients, "the end of the deaf readers", |lane, _| {
            most_kib = most_kib.max(lane.subject.process_number("VmRSS"));
            active(lane) == Some(0.0)
        });
        let growth_kib = most_kib.saturating_sub(rss_before_kib);
        println!("30 deaf readers of 1.9 MB in two parts: RSS grew by {growth_kib} KiB");
        assert!(growth_kib < 16 << 10, "the process grew by {growth_kib} KiB");
    }

    /// I04
    #[test]
    fn idle_connections_are_held_and_a_burst_is_served() {
        const COUNT: usize = 2_000;
        let mut lane = lane_with("");
        answers(&mut lane, &["{A}"]);
        lane.ask(&mut Vec::new(), "GET /hot HTTP/1.1¶Host: t.test¶¶", 200);
        let rss_before_kib = lane.subject.process_number("VmRSS");
        let request = "GET /hot HTTP/1.1¶Host: t.test¶¶";
        let mut clients: Vec<_> = (0..COUNT).map(|_| lane.connect(request)).collect();
        lane.expect(&mut clients, "the first answers", |_, clients| {
            clients.iter().all(|client| is_answered(client, b"stored"))
        });
        let growth_kib = lane.subject.process_number("VmRSS").saturating_sub(rss_before_kib);
        println!("{COUNT} idle connections: {} bytes each", growth_kib * 1024 / COUNT as u64);
        assert!(growth_kib < 16 << 10, "the process grew by {growth_kib} KiB");
        for client in &mut clients {
            client.received.clear();
            client.say(notation::read(request, &lane.names).expect("a request"));
        }
        lane.expect(&mut clients, "the burst's answers", |_, clients| {
            clients.iter().all(|client| is_answered(client, b"stored"))
        });
        assert!(clients.iter().all(|client| client.end.is_none()), "a connection was closed");
    }

    /// I05
    #[test]
    fn connects_and_resets_leak_nothing() {
        let mut lane = lane_with("");
        let files_before = lane.subject.open_files_count();
        for text in ["{rst}", "GET / HTTP/1.1¶{rst}", "{wait}{rst}", ""] {
            let mut clients: Vec<_> = (0..500).map(|_| lane.connect(text)).collect();
            lane.settle(&mut clients);
            clients.iter_mut().for_each(Client::close);
        }
        lane.expect(&mut [], "the baseline", |lane, _| {
            lane.subject.metric("larder_connections_active") == Some(0.0)
                && lane.subject.open_files_count() <= files_before + 1
        });
        lane.ask(&mut Vec::new(), "GET /good HTTP/1.1¶Host: t.test¶¶", 200);
    }

    /// I06 and I11: those over the limit wait in the backlog; the program rests meanwhile.
    #[test]
    fn connections_over_the_limit_wait_without_a_spin() {
        const LIMIT: usize = 50;
        let mut lane = lane_with("connections_max = 50\n");
        answers(&mut lane, &["{A}"]);
        let connect = |_| lane.connect("GET /hot HTTP/1.1¶Host: t.test¶¶");
        let mut clients: Vec<_> = (0..80).map(connect).collect();
        let served = |clients: &[Client]| clients.iter().filter(|client| is_answered(client, b"stored")).count();
        // That it settles at all says that nothing spins.
        lane.expect(&mut clients, "as many answers as connections are allowed", |_, clients| {
            served(clients) >= LIMIT - 1
        });
        assert!(served(&clients) <= LIMIT, "{} are served at once", served(&clients));
        for client in clients.iter_mut().filter(|client| !client.received.is_empty()) {
            client.close();
        }
        lane.expect(&mut clients, "the others' answers", |_, clients| served(clients) == 80);
    }

    /// I07
    #[test]
    fn one_client_cannot_take_all_connections() {
        let mut lane = lane_with("connections_per_client_max = 10\n");
        answers(&mut lane, &["{A}"]);
        let connect = |_| lane.connect("GET /hot HTTP/1.1¶Host: t.test¶¶");
        let mut clients: Vec<_> = (0..20).map(connect).collect();
        let served = |clients: &[Client]| clients.iter().filter(|client| is_answered(client, b"stored")).count();
        lane.expect(&mut clients, "ten answers, ten refusals", |_, clients| {
            served(clients) == 10 && clients.iter().filter(|client| client.end.is_some()).count() == 10
        });
        let other = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(127, 0, 0, 9)), 0);
        let script = notation::read("GET /hot HTTP/1.1¶Host: t.test¶¶", &lane.names).expect("a request");
        clients.push(Client::connect_from(other, lane.subject.address, script).expect("a loopback address"));
        lane.expect(&mut clients, "the other client's answer", |_, clients| {
            clients.last().is_some_and(|client| is_answered(client, b"stored"))
        });
    }

    /// X11: whoever holds connections to the admin address, before a request, in the middle of one or after the answer.
    #[test]
    fn the_admin_address_answers_however_many_hold_connections_to_it() {
        let mut lane = lane_with("");
        let admin = lane.subject.admin.expect("larder has one");
        for text in ["", "GET /metrics HTTP/1.1¶", "GET /metrics HTTP/1.1¶Host: localhost¶¶"] {
            let script = notation::read(text, &lane.names).expect("a script");
            let connect = |_| Client::connect(admin, script.clone()).expect("the admin address listens");
            let mut clients: Vec<_> = (0..100).map(connect).collect();
            lane.settle(&mut clients);
            assert!(lane.subject.metric("larder_panics_total").is_some(), "no answer beside {text:?}");
            lane.ask(&mut clients, "GET /good HTTP/1.1¶Host: t.test¶¶", 200);
        }
    }

    /// I10: a header line now and then is no answer.
    #[test]
    fn an_origin_that_dribbles_is_given_up() {
        let mut lane = start_lane(Kind::Larder, &brief_setup());
        answers(&mut lane, &["HTTP/1.1 200 OK¶"]);
        let mut clients = vec![lane.connect("GET /slow HTTP/1.1¶Host: t.test¶¶")];
        let drip = |lane: &mut Lane, _: &mut Vec<Client>| {
            if let Some(connection) = lane.origin.seen.first().map(|seen| seen.connection) {
                lane.origin.say(connection, b"X: y\r\n");
            }
        };
        let given_up =
            drip_until(&mut lane, &mut clients, drip, |_, clients| clients[0].received.starts_with(b"HTTP/1.1 504 "));
        assert!(given_up, "the client got {}", notation::show(&clients[0].received, 200));
    }

    /// F18: who has left is given up though bytes of it lie unread; who only half-closed gets its answers.
    #[test]
    fn a_client_that_left_is_told_from_one_that_half_closed() {
        let mut lane = lane_with("");
        answers(&mut lane, &[""]);
        let next = "¶Host: t.test¶¶{wait}GET /good HTTP/1.1¶Host: t.test¶¶{wait}";
        let mut clients: Vec<_> = ["DELETE /left HTTP/1.1{next}{rst}", "DELETE /stayed HTTP/1.1{next}{eof}"]
            .map(|text| lane.connect(&text.replace("{next}", next)))
            .into();
        let connection_of = |lane: &Lane, target: &str| {
            let seen = lane.origin.seen.iter().find(|seen| seen.target == target);
            seen.expect("both were passed on").connection
        };
        lane.expect(&mut clients, "the reset", |_, clients| clients[0].end == Some(End::Ours));
        lane.expect(&mut clients, "the end of what the one who left asked for", |lane, _| {
            lane.origin.is_closed(connection_of(lane, "/left"))
        });
        let stayed = connection_of(&lane, "/stayed");
        assert!(!lane.origin.is_closed(stayed) && clients[1].end.is_none());
        lane.origin.say(stayed, b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlate");
        lane.expect(&mut clients, "both answers", |_, clients| {
            find(&clients[1].received, b"late").is_some() && is_answered(&clients[1], b"GET /good\n")
        });
        assert_ne!(clients[1].end, Some(End::Reset));
    }

    /// F20: whoever writes while the other side closes gets a whole answer or none, and the origin is not asked in vain.
    #[test]
    fn requests_race_the_idle_close() {
        let mut lane = lane_with("idle_timeout = \"1s\"\n");
        let request = "GET /r HTTP/1.1¶Host: t.test¶¶";
        let mut clients: Vec<_> = (0..64).map(|_| lane.connect(request)).collect();
        lane.expect(&mut clients, "the first answers", |_, clients| {
            clients.iter().all(|client| is_answered(client, b"GET /r\n"))
        });
        lane.origin.begin(Behaviour::default());
        clients.iter_mut().for_each(|client| client.received.clear());
        // The first close says that the others' moment has come.
        lane.expect(&mut clients, "the first idle close", |_, clients| {
            clients.iter().any(|client| client.end.is_some())
        });
        for client in clients.iter_mut().filter(|client| client.end.is_none()) {
            client.say(notation::read(request, &lane.names).expect("a request"));
        }
        lane.expect(&mut clients, "an answer or an end for each", |_, clients| {
            clients.iter().all(|client| client.end.is_some() || is_answered(client, b"GET /r\n"))
        });
        let answered = clients.iter().filter(|client| is_answered(client, b"GET /r\n")).count();
        let halves = clients.iter().filter(|client| !client.received.is_empty()).count() - answered;
        assert_eq!(halves, 0, "half answers");
        println!("{answered} of 64 won the race against the idle close");
        assert!(lane.origin.seen.len() >= answered, "more answers than requests at the origin");
    }

    /// F21 and V6: request collapsing.
    #[test]
    fn waiters_outlive_the_client_that_came_first() {
        let mut lane = lane_with("");
        answers(&mut lane, &["{wait}{wait}{A}"]);
        let mut clients = vec![lane.connect("GET /cold HTTP/1.1¶Host: t.test¶¶{wait}{rst}")];
        clients.extend((0..200).map(|_| lane.connect("GET /cold HTTP/1.1¶Host: t.test¶¶")));
        lane.expect(&mut clients[..], "the waiters' answers", |_, clients| {
            clients[1..].iter().all(|client| is_answered(client, b"stored"))
        });
        assert_eq!(lane.origin.seen.len(), 1, "the origin was asked {} times", lane.origin.seen.len());
    }

    /// O-01, O-05, O-08 and O-14: what fails for one fails for all who come in the same moment.
    #[test]
    fn a_failure_answers_all_alike_from_two_fetches_at_most() {
        for (answer, requests_count) in [
            // What fails before a head is asked for by a second fetch, and nobody else asks after that. The connection of the first
            // is one that was used before, so its request is made once more (RFC 9112 §9.3.1).
            ("{eof}", 3),
            ("HTTP/1.1 2OO OK¶¶", 2),
            ("HTTP/1.1 200 OK¶Con{eof}", 2),
            ("{H}Content-Length: 100¶¶short{eof}", 1),
            ("{H}Transfer-Encoding: chunked¶¶5¶short¶zzz¶", 1),
        ] {
            let mut lane = lane_with("");
            answers(&mut lane, &[answer]);
            let mut clients: Vec<_> = (0..20).map(|_| lane.connect("GET /bad HTTP/1.1¶Host: t.test¶¶")).collect();
            let is_over = |client: &Client| client.end.is_some() || find(&client.received, b"\r\n\r\n502").is_some();
            lane.expect(&mut clients, "the end of all", |_, clients| clients.iter().all(is_over));
            // Who comes a moment later is answered alike, and at once.
            for _ in 0..2 {
                lane.ask(&mut clients, "GET /bad HTTP/1.1¶Host: t.test¶¶", 502);
            }
            let asked = lane.origin.seen.iter().filter(|seen| seen.target == "/bad").count();
            assert_eq!(asked, requests_count, "20 clients of {answer}");
        }
    }

    /// J13: an answer that ends too soon looks like it to everyone who reads.
    #[test]
    fn readers_of_a_truncated_answer_are_cut() {
        for answer in [
            "{H}Content-Length: 100¶¶short{wait}{wait}{eof}",
            "{H}Transfer-Encoding: chunked¶¶5¶short¶{wait}{wait}{eof}",
        ] {
            let mut lane = lane_with("");
            answers(&mut lane, &[answer, "{A}"]);
            let mut clients: Vec<_> = (0..50).map(|_| lane.connect("GET /cut HTTP/1.1¶Host: t.test¶¶")).collect();
            lane.expect(&mut clients, "the end of all", |_, clients| {
                clients.iter().all(|client| client.end.is_some() || find(&client.received, b"\r\n\r\n502").is_some())
            });
            for client in clients.iter().filter(|client| client.received.starts_with(b"HTTP/1.1 200 ")) {
                let read = crate::answer_stream::read(&client.received, &[], client.end).expect("an answer");
                let whole = read.answers.iter().any(|answer| answer.complete && answer.body != b"stored");
                assert!(!whole, "looks whole: {}", notation::show(&client.received, 300));
            }
        }
    }

    /// J10: variants of one key.
    #[test]
    fn variants_of_one_key_are_bounded() {
        const LIMIT: f64 = 64.0;
        let mut lane = lane_with("variants_max = 64\n");
        answers(&mut lane, &["{H}Vary: X-Kind¶Content-Length: 6¶¶stored"]);
        let mut clients = vec![lane.connect("{GET /many HTTP/1.1¶Host: t.test¶X-Kind: {i}¶¶*2000}")];
        lane.expect(&mut clients, "2,000 answers", |lane, clients| {
            lane.origin.seen.len() == 2_000 && is_answered(&clients[0], b"stored")
        });
        let objects = lane.subject.metric("larder_objects").expect("a metric");
        assert!(objects <= LIMIT, "{objects} variants are stored");
    }

    /// J16: as many URLs as the time allows; the account and the process stay in their bounds.
    #[test]
    fn random_urls_do_not_grow_the_process() {
        const LIMIT_BYTES: f64 = (64 << 20) as f64;
        let mut lane = lane_with("");
        answers(&mut lane, &["{H}Content-Length: 65536¶¶{a*65536}"]);
        let hot = "GET /hot HTTP/1.1¶Host: t.test¶¶";
        lane.ask(&mut Vec::new(), hot, 200);
        lane.ask(&mut Vec::new(), hot, 200);
        for batch in 0..4 {
            let text = format!("{{GET /random-{batch}-{{i}} HTTP/1.1¶Host: t.test¶¶*600}}");
            let wanted = 600 * (65536 + 100);
            let mut clients = vec![lane.connect(&text)];
            lane.expect(&mut clients, "600 answers", |_, clients| clients[0].received.len() > wanted);
            lane.ask(&mut Vec::new(), hot, 200);
        }
        let used = lane.subject.metric("larder_memory_used_bytes").expect("a metric");
        let rss_kib = lane.subject.process_number("VmRSS");
        println!("2,400 URLs of 64 KiB: {used} bytes accounted, {rss_kib} KiB resident");
        assert!(used <= LIMIT_BYTES, "{used} bytes are accounted for");
        assert!(rss_kib < 160 << 10, "{rss_kib} KiB are resident");
        let asked = lane.origin.seen.iter().filter(|seen| seen.target == "/hot").count();
        assert_eq!(asked, 1, "what is asked for all the time was lost to what is asked for once");
    }

    /// O-15: larger than an object may be.
    #[test]
    fn a_body_without_end_is_streamed_and_not_stored() {
        let mut lane = lane_with("object_bytes_max = \"1MiB\"\n");
        answers(&mut lane, &["{H}¶{a*4000000}{eof}"]);
        for _ in 0..2 {
            let answer = lane.ask(&mut Vec::new(), "GET /endless HTTP/1.1¶Host: t.test¶¶", 200);
            assert_eq!(answer.body.len(), 4_000_000);
        }
        assert_eq!(lane.origin.seen.len(), 2, "the second was answered from the store");
        let used = lane.subject.metric("larder_memory_used_bytes").expect("a metric");
        assert!(used < 2.0 * 1024.0 * 1024.0, "{used} bytes are accounted for");
    }

    /// C14: 413.
    #[test]
    fn a_body_over_the_limit_is_refused_and_never_parsed() {
        let mut lane = lane_with("request_body_bytes_max = \"10\"\n");
        for body in ["Content-Length: {#S}¶¶{S}{M}", "Transfer-Encoding: chunked¶¶2e¶{S}¶0¶¶{M}"] {
            let mut clients = vec![lane.connect(&format!("{{P}}{body}"))];
            lane.expect(&mut clients, "the refusal", |_, clients| clients[0].end.is_some());
            let received = &clients[0].received;
            assert!(received.starts_with(b"HTTP/1.1 413 "), "{}", notation::show(received, 200));
            assert_eq!(received.windows(9).filter(|window| window == b"HTTP/1.1 ").count(), 1);
            assert_eq!(clients[0].end, Some(End::Fin));
            assert!(lane.origin.seen.iter().all(|seen| seen.target.starts_with("/good") || !seen.complete));
        }
    }
}
