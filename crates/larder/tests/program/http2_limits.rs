//! The limits of HTTP/2 and of TLS, each reached: streams, requests and paces of a connection, windows, what is charged for
//! a connection, and that HTTP/2 can be switched off. Frames are written by the tables' own notation.

/// A listener by prior knowledge, beside those that every subject has, and its name in the ports file.
pub const H2C: &str = "[[listen]]\naddress = \"127.0.0.1:0\"\nh2c = true\n";
pub const H2C_NAME: &str = "listen.2";

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::sync::Arc;

    use rustls::ClientConfig;

    use super::{H2C, H2C_NAME};
    use crate::bad_input::start_lane;
    use crate::http2_answers::{code_name, frames, goaway, of_stream};
    use crate::lane::{Lane, PATIENCE_MS, Waited, now_ms};
    use crate::notation::{self, Script};
    use crate::raw_client::Client;
    use crate::recording_origin::Behaviour;
    use crate::strict_head::find;
    use crate::subject::{Kind, Setup};
    use crate::tls_site::TlsSite;

    fn lane_with(limits: &str) -> Lane {
        start_lane(Kind::Larder, &Setup { limits: limits.into(), extra: H2C.into(), ..Setup::default() })
    }

    fn script(lane: &Lane, text: &str) -> Script {
        notation::read(text, &lane.names).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    /// A connection by prior knowledge that has said its preface, and this.
    fn connect(lane: &Lane, text: &str) -> Client {
        let address = lane.subject.listener(H2C_NAME).expect("there is such a listener");
        Client::connect(address, script(lane, &format!("{{preface}}{text}"))).expect("it listens")
    }

    fn answers(lane: &mut Lane, text: &str) {
        let answers = vec![script(lane, text)];
        lane.origin.begin(Behaviour { answers, ..Behaviour::default() });
    }

    fn status(client: &Client, stream: u32) -> Option<u16> {
        let answer = of_stream(&frames(&client.received), stream);
        answer.status.filter(|_| answer.is_whole)
    }

    fn reset(client: &Client, stream: u32) -> Option<String> {
        of_stream(&frames(&client.received), stream).reset.map(code_name)
    }

    fn body_bytes(client: &Client, stream: u32) -> usize {
        of_stream(&frames(&client.received), stream).body.len()
    }

    /// Plays until the condition holds, with a stroke of the dripper every 50 ms.
    fn drip_until(
        lane: &mut Lane,
        clients: &mut [Client],
        drip: &str,
        mut is_met: impl FnMut(&mut Lane, &mut [Client]) -> bool,
    ) -> bool {
        let deadline_ms = now_ms() + PATIENCE_MS;
        while now_ms() < deadline_ms {
            if lane.wait_until(clients, 50, &mut is_met) == Waited::Met {
                return true;
            }
            clients[0].say(script(lane, drip));
        }
        false
    }

    #[test]
    fn streams_over_the_limit_are_refused_and_may_come_again() {
        let mut lane = lane_with("http2_streams_max = 3\n");
        let mut clients = [connect(&lane, "{{HEADERS H 1+i|{post}}*3}{HEADERS EH 7|{get}}")];
        lane.expect(&mut clients, "a refusal", |_, clients| reset(&clients[0], 7).is_some());
        assert_eq!(reset(&clients[0], 7).as_deref(), Some("REFUSED_STREAM"));
        let seen = frames(&clients[0].received);
        let announced = seen.iter().find(|frame| frame.number == 4).expect("SETTINGS come first");
        assert!(find(&announced.payload, b"\0\x03\0\0\0\x03").is_some(), "{:?}", announced.payload);
        clients[0].say(script(&lane, "{DATA E 1|a}"));
        lane.expect(&mut clients, "the answer of one that ended", |_, clients| status(&clients[0], 1) == Some(200));
        clients[0].say(script(&lane, "{HEADERS EH 9|{get}}"));
        lane.expect(&mut clients, "an answer in its place", |_, clients| status(&clients[0], 9) == Some(200));
        assert!(clients[0].end.is_none());
    }

    /// More than one turn works off: the rest of what was read waits for the next ones, and nothing of it is lost.
    #[test]
    fn what_stands_behind_many_requests_that_were_taken_back_is_answered() {
        let mut lane = lane_with("");
        let mut clients =
            [connect(&lane, "{{HEADERS H 1+i|{post}}{RST_STREAM - 1+i|{u32 8}}*100}{HEADERS EH 201|{get}}")];
        lane.expect(&mut clients, "the answer of the last", |_, clients| status(&clients[0], 201) == Some(200));
        assert!(clients[0].end.is_none(), "a hundred are no flood");
    }

    #[test]
    fn a_connection_that_has_asked_often_enough_is_left_in_two_steps() {
        let mut lane = lane_with("requests_per_connection_max = 3\n");
        let mut clients = [connect(&lane, "{{HEADERS EH 1+i|{get}}*4}")];
        lane.expect(&mut clients, "its end", |_, clients| clients[0].end.is_some());
        let seen = frames(&clients[0].received);
        let left: Vec<_> = seen.iter().filter(|frame| frame.number == 7).map(|frame| &frame.payload[..8]).collect();
        assert_eq!(left, [b"\x7f\xff\xff\xff\0\0\0\0", b"\0\0\0\x07\0\0\0\0"]);
        for stream in [1, 3, 5, 7] {
            assert_eq!(status(&clients[0], stream), Some(200), "what came meanwhile is answered: {stream}");
        }
    }

    /// I03 over HTTP/2: a byte now and then, each in time, and never the end.
    #[test]
    fn a_stream_that_is_read_byte_by_byte_is_cut_and_a_steady_one_is_not() {
        let mut lane = lane_with("send_timeout = \"1s\"\nsend_rate_min = \"1K\"\n");
        answers(&mut lane, "{H}Content-Length: 1000000¶¶{a*1000000}");
        let asked =
            "{SETTINGS - 0|\\0\\x04{u32 1}}{WINDOW_UPDATE - 0|{u32 2000000}}{{HEADERS EH 1+i|{to}{= :path|/large}}*2}";
        let mut clients = [connect(&lane, asked)];
        let drip = "{WINDOW_UPDATE - 1|{u32 1}}{WINDOW_UPDATE - 3|{u32 4000}}";
        let is_cut = drip_until(&mut lane, &mut clients, drip, |_, clients| reset(&clients[0], 1).is_some());
        assert!(is_cut, "{} bytes were taken one by one", body_bytes(&clients[0], 1));
        assert!(reset(&clients[0], 3).is_none() && body_bytes(&clients[0], 3) > 20_000, "the steady one goes on");
        clients[0].say(script(&lane, "{WINDOW_UPDATE - 3|{u32 1000000}}"));
        lane.expect(&mut clients, "the rest of the steady one", |_, clients| status(&clients[0], 3) == Some(200));
        assert_eq!(body_bytes(&clients[0], 3), 1_000_000);
    }

    /// I02 over HTTP/2.
    #[test]
    fn a_body_that_drips_is_refused_and_a_steady_one_is_not() {
        let mut lane = lane_with("request_body_timeout = \"1s\"\nrequest_body_rate_min = \"1K\"\n");
        let mut clients =
            [connect(&lane, "{{HEADERS H 1+i|{= :method|POST}{= :scheme|http}{= :authority|t.test}{= :path|/{i}}}*2}")];
        let drip = "{DATA - 1|a}{DATA - 3|{a*1000}}";
        let is_refused = drip_until(&mut lane, &mut clients, drip, |_, clients| status(&clients[0], 1).is_some());
        assert!(is_refused && status(&clients[0], 1) == Some(408), "{:?}", status(&clients[0], 1));
        let connection = lane.origin.seen.iter().find(|seen| seen.target == "/0").expect("it was begun").connection;
        lane.expect(&mut clients, "the end of the origin's connection", |lane, _| lane.origin.is_closed(connection));
        clients[0].say(script(&lane, "{DATA E 3|b}"));
        lane.expect(&mut clients, "the steady one's answer", |_, clients| status(&clients[0], 3) == Some(200));
        assert!(clients[0].end.is_none(), "the connection goes on");
    }

    /// G38, RFC 9113 §6.9.2: 10,000 of 40,000 bytes are sent when the window shrinks to nothing.
    #[test]
    fn a_window_that_is_made_negative_is_waited_for() {
        let mut lane = lane_with("");
        answers(&mut lane, "{H}Content-Length: 40000¶¶{a*40000}");
        let window = |bytes: u32| format!("{{SETTINGS - 0|\\0\\x04{{u32 {bytes}}}}}");
        let mut clients = [connect(&lane, &(window(10_000) + "{HEADERS EH 1|{get}}"))];
        lane.expect(&mut clients, "as much as the window takes", |_, clients| body_bytes(&clients[0], 1) == 10_000);
        clients[0].say(script(&lane, &(window(0) + "{WINDOW_UPDATE - 1|{u32 9999}}{WINDOW_UPDATE - 1|{u32 1}}")));
        lane.settle(&mut clients);
        assert_eq!(body_bytes(&clients[0], 1), 10_000, "the window is 0 again");
        clients[0].say(script(&lane, &window(20_000)));
        lane.expect(&mut clients, "what the window is now", |_, clients| body_bytes(&clients[0], 1) == 30_000);
        clients[0].say(script(&lane, &(window(0) + &window(50_000) + &window(30_000))));
        lane.expect(&mut clients, "the rest", |_, clients| status(&clients[0], 1) == Some(200));
        assert_eq!(body_bytes(&clients[0], 1), 40_000);
    }

    /// Each holds what larder has read ahead of it. RFC 9113 §7: ENHANCE_YOUR_CALM.
    #[test]
    fn streams_that_open_no_window_are_cut_before_anybody_is_refused() {
        let setup =
            Setup { memory: Some("16MiB"), log_format: Some("combined"), extra: H2C.into(), ..Setup::default() };
        let mut lane = start_lane(Kind::Larder, &setup);
        answers(&mut lane, "HTTP/1.1 200 OK¶Cache-Control: no-store¶Content-Length: 900000¶¶{a*900000}");
        let figure = |lane: &Lane, name: &str| lane.subject.metric(&format!("larder_{name}")).expect("a metric");
        let streams = "{SETTINGS - 0|\\0\\x04{u32 0}}{{HEADERS EH 1+i|{to}{= :path|/deaf{i}}}*60}";
        let (mut clients, deadline_ms) = (Vec::new(), now_ms() + 60_000);
        while figure(&lane, "answers_cut_memory_total") == 0.0 {
            assert!(now_ms() < deadline_ms && clients.len() < 40, "{} connections, and nothing is cut", clients.len());
            clients.push(connect(&lane, streams));
            lane.wait_until(&mut clients, 200, |_, _| false);
        }
        println!("{} connections of 60 streams", clients.len());
        lane.expect(&mut clients, "a stream that is told", |_, clients| {
            let mut all =
                clients.iter().flat_map(|client| (1..120).step_by(2).map(move |stream| reset(client, stream)));
            all.any(|code| code.as_deref() == Some("ENHANCE_YOUR_CALM"))
        });
        assert!(clients.iter().all(|client| client.end.is_none()), "their connections go on");
        lane.ask(&mut Vec::new(), "GET /taken HTTP/1.1¶Host: t.test¶¶", 200);
        assert_eq!(figure(&lane, "connections_refused_memory_total"), 0.0);
        lane.expect(&mut [], "a line of the log", |lane, _| {
            let log = lane.subject.log.as_ref().and_then(|path| std::fs::read_to_string(path).ok());
            log.is_some_and(|log| log.contains(" memory-cut"))
        });
    }

    /// A head that is too long to keep as a block is made for each answer.
    #[test]
    fn a_hit_whose_head_is_long_is_answered_as_the_others_are() {
        let mut lane = lane_with("");
        let fields = "X-{i}: {~*1000}¶";
        answers(&mut lane, &format!("{{H}}Content-Length: 6¶{{{fields}*6}}¶stored"));
        let mut clients = [connect(&lane, "{HEADERS EH 1|{to}{= :path|/long}}")];
        lane.expect(&mut clients, "the miss", |_, clients| status(&clients[0], 1) == Some(200));
        clients[0].say(script(&lane, "{{HEADERS EH 3+i|{to}{= :path|/long}}*3}"));
        lane.expect(&mut clients, "the hits", |_, clients| status(&clients[0], 7) == Some(200));
        assert_eq!(lane.origin.seen.len(), 1, "they are hits");
        for stream in [1, 3, 5, 7] {
            let seen = frames(&clients[0].received);
            let of_head = seen.iter().filter(|frame| frame.stream == stream && matches!(frame.number, 1 | 9));
            let block: Vec<u8> = of_head.flat_map(|frame| frame.payload.iter().copied()).collect();
            let whole = block.split(|byte| *byte != b'~').filter(|run| run.len() == 1_000).count();
            assert_eq!((whole, body_bytes(&clients[0], stream)), (6, 6), "{stream}");
        }
    }

    #[test]
    fn what_a_connection_of_http2_costs_is_charged() {
        const COUNT: usize = 100;
        let mut lane = lane_with("");
        let used = |lane: &Lane| lane.subject.metric("larder_memory_used_bytes").expect("a metric");
        let before = used(&lane);
        let active = |lane: &Lane| lane.subject.metric("larder_connections_active").expect("a metric") as usize;
        let mut plain: Vec<_> = (0..COUNT).map(|_| lane.connect("GET /good HTTP/1.1¶Host: t.test¶¶")).collect();
        lane.expect(&mut plain, "their answers", |_, clients| {
            clients.iter().all(|it| it.received.ends_with(b"/good\n"))
        });
        let of_plain = used(&lane) - before;
        plain.iter_mut().for_each(Client::close);
        lane.expect(&mut plain, "their end", |lane, _| active(lane) == 0);
        let between = used(&lane);
        let mut clients: Vec<_> = (0..COUNT).map(|_| connect(&lane, "{HEADERS EH 1|{to}{= :path|/good}}")).collect();
        lane.expect(&mut clients, "their answers", |_, clients| clients.iter().all(|it| status(it, 1) == Some(200)));
        let of_http2 = used(&lane) - between;
        assert!(of_http2 - of_plain >= (COUNT * 1_000) as f64, "{COUNT} connections: {of_http2} beside {of_plain}");
        clients.iter_mut().for_each(Client::close);
        lane.expect(&mut clients, "the account as it was", |lane, _| used(lane) <= between);
    }

    #[test]
    fn what_a_connection_of_tls_costs_is_charged() {
        const COUNT: u64 = 50;
        let site = TlsSite::start("", "");
        let client = site.trusts("site.pem");
        let before = site.metric("larder_memory_used_bytes");
        let clients: Vec<_> = (0..COUNT).map(|_| site.connect(&client).expect("it shakes hands")).collect();
        let used = site.metric("larder_memory_used_bytes") - before;
        assert!(used >= COUNT * (4 << 10), "{COUNT} connections are charged {used}");
        drop(clients);
        crate::peer_process::wait_for("the account is as it was", || site.metric("larder_memory_used_bytes") <= before);
    }

    fn offering(site: &TlsSite, protocols: &[&[u8]]) -> Arc<ClientConfig> {
        let mut config = ClientConfig::clone(&site.trusts("site.pem"));
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        Arc::new(config)
    }

    #[test]
    fn without_http2_a_listener_offers_http1_alone_and_knows_no_preface() {
        let site = TlsSite::start("http2 = false", "");
        let both = offering(&site, &[b"h2", b"http/1.1"]);
        let mut client = site.connect(&both).expect("it shakes hands");
        assert_eq!(client.conn.alpn_protocol(), Some(b"http/1.1".as_slice()));
        client.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").expect("it is written");
        let mut answer = Vec::new();
        let _ = client.read_to_end(&mut answer);
        let text = String::from_utf8_lossy(&answer);
        assert!(text.starts_with("HTTP/1.1 505 ") || text.starts_with("HTTP/1.1 400 "), "{text}");
        assert_eq!(site.metric("larder_http2_connections_total"), 0);
        let refused = site.connect(&offering(&site, &[b"h2"]));
        assert!(refused.is_err_and(|why| why.to_string().contains("NoApplicationProtocol")));
    }

    #[test]
    fn what_both_sides_agreed_upon_is_what_is_spoken() {
        let site = TlsSite::start("", "");
        let mut client = site.connect(&offering(&site, &[b"h2", b"http/1.1"])).expect("it shakes hands");
        assert_eq!(client.conn.alpn_protocol(), Some(b"h2".as_slice()));
        client.write_all(b"GET /bytes/5 HTTP/1.1\r\nHost: site.test\r\n\r\n").expect("it is written");
        let mut answer = Vec::new();
        let _ = client.read_to_end(&mut answer);
        let left = goaway(&frames(&answer)).expect("it is told in frames");
        assert_eq!((&*code_name(left.code), &*left.words), ("PROTOCOL_ERROR", "preface-invalid"));
        let mut client = site.connect(&site.trusts("site.pem")).expect("it shakes hands");
        client.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").expect("it is written");
        let mut answer = Vec::new();
        let _ = client.read_to_end(&mut answer);
        assert!(answer.starts_with(b"HTTP/1.1 "), "who has agreed upon nothing speaks HTTP/1");
    }

    /// I04 over HTTP/2.
    #[test]
    fn idle_connections_of_http2_are_held_and_a_burst_is_served() {
        const COUNT: usize = 500;
        let mut lane = lane_with("");
        answers(&mut lane, "{A}");
        let ask = "{HEADERS EH {stream}|{to}{= :path|/hot}}";
        let rss_before_kib = lane.subject.process_number("VmRSS");
        let mut clients: Vec<_> = (0..COUNT).map(|_| connect(&lane, &ask.replace("{stream}", "1"))).collect();
        lane.expect(&mut clients, "the first answers", |_, clients| {
            clients.iter().all(|it| status(it, 1) == Some(200))
        });
        let growth_kib = lane.subject.process_number("VmRSS").saturating_sub(rss_before_kib);
        println!("{COUNT} idle connections of HTTP/2: {} bytes each", growth_kib * 1024 / COUNT as u64);
        assert!(growth_kib < 16 << 10, "the process grew by {growth_kib} KiB");
        for client in &mut clients {
            client.say(script(&lane, &ask.replace("{stream}", "3")));
        }
        lane.expect(&mut clients, "the burst's answers", |_, clients| {
            clients.iter().all(|it| status(it, 3) == Some(200))
        });
        assert_eq!(lane.origin.seen.len(), 1, "all are of one fetch");
        assert!(clients.iter().all(|client| client.end.is_none()), "a connection was closed");
    }
}
