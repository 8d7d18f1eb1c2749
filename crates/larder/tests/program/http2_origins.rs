//! HTTP/2 to origins: the server of the crate `h2`, and frames as a test scripts them.

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Read, Write};
    use std::sync::atomic::Ordering;

    use crate::http2_site::{Site, answer, leave, open_websocket};
    use crate::peer_process::wait_for;
    use crate::played_http2::{DATA, END_HEADERS, GOAWAY, Manner, PlayedHttp2, scripted};
    use crate::subject::get;
    use crate::tls_site::pattern;

    #[test]
    fn many_fetches_share_one_connection_and_what_comes_is_stored() {
        let origin = PlayedHttp2::start(Manner::default());
        let site = Site::before(origin.address, "");
        // The origin answers none of these before all have come.
        std::thread::scope(|scope| {
            let ask = |n: usize| site.get(&format!("/hold?{n}")).0;
            let asking: Vec<_> = (0..20).map(|n| scope.spawn(move || ask(n))).collect();
            asking.into_iter().for_each(|one| assert_eq!(one.join().unwrap(), 200));
        });
        assert_eq!((origin.count("GET /hold"), origin.connections()), (20, 1));
        for length in [0, 1, 6_221, 16_384, 123_784, 5 << 20] {
            for expect in ["fwd=uri-miss; stored", "hit; ttl="] {
                let (status, head, body) = site.get(&format!("/bytes/{length}"));
                assert!(status == 200 && head.contains(expect), "{length}: {head}");
                assert!(body == pattern(length), "{length}");
            }
            assert_eq!(origin.count(&format!("GET /bytes/{length}")), 1);
        }
        assert_eq!(origin.connections(), 1);
        assert_eq!(site.metric("larder_origin_http2_connections_total"), 1);
        let status = get(site.admin, "/status").unwrap().replace(' ', "");
        assert!(status.contains("\"http2_connections\":1,\"idle\":0"), "{status}");
    }

    #[test]
    fn a_backend_of_a_program_is_asked_over_http2_where_it_says_so() {
        let origin = PlayedHttp2::start(Manner::default());
        let program =
            std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("http2-{}.vcl", std::process::id()));
        let (host, port) = (origin.address.ip(), origin.address.port());
        let text = format!("vcl 4.1; backend b {{ .host = \"{host}\"; .port = \"{port}\"; .http2 = 1; }}\n");
        std::fs::write(&program, text).unwrap();
        let site = Site::start("http://127.0.0.1:1", "", &format!("[policy]\nvcl = {program:?}\n"));
        for length in [6_221, 123_784] {
            let (status, head, body) = site.get(&format!("/bytes/{length}"));
            assert!(status == 200 && body == pattern(length), "{length}: {head}");
        }
        assert_eq!((origin.count("GET /bytes"), origin.connections()), (2, 1));
        assert_eq!(site.metric("larder_origin_http2_connections_total"), 1);
    }

    #[test]
    fn a_request_is_said_as_http2_says_it_and_nothing_is_smuggled() {
        let origin = PlayedHttp2::start(Manner::default());
        let site = Site::before(origin.address, "");
        let (_, _, body) = site.ask(
            "POST /fields?a=b HTTP/1.1\r\nHost: Site.test:81\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\n\
             Transfer-Encoding: chunked\r\nTE: trailers\r\nUpgrade: h2c\r\nHTTP2-Settings: AAAA\r\nProxy-Connection: close\r\n\
             Cookie: a=b; c=d\r\nX-Kept: caf\u{e9}\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        );
        let said = String::from_utf8(body).unwrap();
        for line in [
            ":method POST",
            ":scheme http",
            ":authority site.test:81",
            ":path /fields?a=b",
            "te trailers",
            "cookie a=b; c=d",
            "x-kept caf\u{e9}",
            "x-forwarded-proto http",
        ] {
            assert!(said.lines().any(|known| known == line), "{line} in {said}");
        }
        for name in [
            "connection",
            "x-hop",
            "keep-alive",
            "transfer-encoding",
            "upgrade",
            "http2-settings",
            "host",
            "proxy-connection",
        ] {
            assert!(!said.lines().any(|line| line.split(' ').next() == Some(name)), "{name} in {said}");
        }
        let heard = origin.count("");
        for smuggled in [
            "GET /x HTTP/1.1\r\nHost: a\r\nX-A: b\rTransfer-Encoding: chunked\r\n\r\n",
            "GET /x HTTP/1.1\r\nHost: a\r\nX-A: b\n\rc: d\r\n\r\n",
            "GET /x HTTP/1.1\r\nHost: a\r\n folded: b\r\n\r\n",
            "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
            "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
            "GET /x HTTP/1.1\r\nHost: a\r\n:path: /y\r\n\r\n",
            "GET /x HTTP/1.1\r\nHost: a b\r\n\r\n",
            "GET /x\0y HTTP/1.1\r\nHost: a\r\n\r\n",
        ] {
            let status = site.ask(smuggled).0;
            assert!(status == 400 || status == 501, "{status}: {smuggled:?}");
        }
        assert_eq!(origin.count(""), heard, "none of them has left");
    }

    #[test]
    fn bodies_and_trailers_go_both_ways() {
        let origin = PlayedHttp2::start(Manner { window: 1_000, ..Manner::default() });
        let site = Site::before(origin.address, "");
        let sent = pattern(300_000);
        let mut client = site.connect();
        let mut other = client.try_clone().unwrap();
        let body = sent.clone();
        let sends = std::thread::spawn(move || {
            write!(client, "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n")
                .unwrap();
            for piece in body.chunks(10_000) {
                write!(client, "{:x}\r\n", piece.len()).unwrap();
                client.write_all(piece).unwrap();
                client.write_all(b"\r\n").unwrap();
            }
            client.write_all(b"0\r\nX-Sum: 7\r\n\r\n").unwrap();
        });
        let (status, head, back) = answer(&mut BufReader::new(&mut other), true);
        sends.join().unwrap();
        assert!(status == 200 && back == sent, "{head}");
        assert!(head.to_ascii_lowercase().contains("x-sum: 7"), "the trailers came back: {head}");
        let (status, head, back) =
            site.ask("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\nhello");
        assert_eq!((status, &*back), (200, &b"hello"[..]), "{head}");
    }

    #[test]
    fn a_client_that_waits_for_a_100_gets_it_and_hints_are_passed_on() {
        let origin = PlayedHttp2::start(Manner::default());
        let site = Site::before(origin.address, "");
        let mut client = site.connect();
        write!(client, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n").unwrap();
        let mut reader = BufReader::new(client.try_clone().unwrap());
        assert_eq!(answer(&mut reader, true).0, 100);
        client.write_all(b"hello").unwrap();
        assert_eq!(answer(&mut reader, true).2, b"hello");
        let mut client = site.connect();
        write!(client, "GET /hints HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        let mut reader = BufReader::new(client);
        let (status, head, _) = answer(&mut reader, true);
        assert!(status == 103 && head.to_ascii_lowercase().contains("link: </a.css>"), "{head}");
        assert_eq!(answer(&mut reader, true).0, 200);
    }

    #[test]
    fn what_has_no_body_has_none_and_what_is_stale_is_confirmed() {
        let origin = PlayedHttp2::start(Manner::default());
        let site = Site::before(origin.address, "");
        let (status, head, _) = site.ask("HEAD /bytes/5 HTTP/1.1\r\nHost: a\r\n\r\n");
        assert!(status == 200 && head.contains("Content-Length: 5"), "{head}");
        assert_eq!(site.get("/none").0, 204);
        for expect in ["fwd=uri-miss", "fwd=stale; fwd-status=304"] {
            let (status, head, body) = site.get("/stale");
            assert!(status == 200 && body == b"stale" && head.contains(expect), "{head}");
        }
        let (status, _, body) =
            site.ask("POST /early HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\nsome of it");
        assert_eq!((status, &*body), (200, &b"early"[..]));
        assert_eq!(site.get("/bytes/5").0, 200);
        assert_eq!(origin.connections(), 1);
    }

    #[test]
    fn what_the_origin_has_not_worked_on_is_asked_again_and_once() {
        let origin = PlayedHttp2::start(Manner::default());
        let site = Site::before(origin.address, "");
        assert_eq!(site.post("/refused-once").0, 200);
        assert_eq!(origin.count("POST /refused-once"), 2);
        let (status, _, body) = site.post("/refused");
        assert!(status == 502 && String::from_utf8_lossy(&body).contains("did not take the request"));
        assert_eq!(origin.count("POST /refused"), 2 + 2);
        for (path, says) in
            [("/reset", "ended the stream without an answer"), ("/http1", "wants this request over HTTP/1.1")]
        {
            let (status, _, body) = site.get(path);
            assert!(status == 502 && String::from_utf8_lossy(&body).contains(says), "{path}");
            assert_eq!(origin.count(&format!("GET {path}")), 1);
        }
        // An origin that takes leave answers what it has, and the next goes elsewhere.
        let origin = PlayedHttp2::start(Manner::default());
        let site = Site::before(origin.address, "");
        assert_eq!((site.get("/leave-once").0, site.get("/bytes/1").0), (200, 200));
        assert_eq!(origin.connections(), 2);
    }

    #[test]
    fn a_body_that_breaks_off_or_lies_is_never_whole_and_never_stored() {
        let origin = PlayedHttp2::start(Manner::default());
        let site = Site::before(origin.address, "");
        for path in ["/short", "/long", "/cut"] {
            for times in 1..=2 {
                let mut client = site.connect();
                write!(client, "GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
                let mut got = Vec::new();
                let _ = client.read_to_end(&mut got);
                let text = String::from_utf8_lossy(&got);
                let is_whole =
                    text.contains(" 200 ") && (text.ends_with("\r\n0\r\n\r\n") || text.ends_with("0123456789"));
                assert!(!is_whole && !text.contains("Cache-Status: larder; hit"), "{path}: {text}");
                wait_for("it was asked anew", || origin.count(&format!("GET {path}")) >= times);
            }
        }
        assert_eq!(site.get("/bytes/5").0, 200);
        assert_eq!(origin.connections(), 1, "they were mistakes of their streams");
    }

    #[test]
    fn who_leaves_ends_a_stream_and_no_connection() {
        let origin = PlayedHttp2::start(Manner::default());
        let site = Site::before(origin.address, "");
        for path in ["/silent", "/endless"] {
            let mut client = site.connect();
            write!(client, "POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n").unwrap();
            wait_for("it is asked", || origin.count(&format!("POST {path}")) == 1);
            leave(client);
            wait_for("the origin hears that nobody waits", || origin.count(&format!("given up {path}")) == 1);
        }
        assert_eq!(site.get("/bytes/5").0, 200);
        assert_eq!(origin.connections(), 1);
    }

    #[test]
    fn a_slow_client_holds_up_its_own_stream_alone() {
        let origin = PlayedHttp2::start(Manner::default());
        let site = Site::before(origin.address, "");
        let stalled: Vec<_> = (0..30)
            .map(|_| {
                let mut client = site.connect();
                write!(client, "POST /endless HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n").unwrap();
                client
            })
            .collect();
        wait_for("all of them are asked", || origin.count("POST /endless") == 30);
        for n in 0..20 {
            let (status, _, body) = site.get(&format!("/bytes/1000000?{n}"));
            assert!(status == 200 && body == pattern(1_000_000), "{n}");
        }
        for length in [500_000, 700_000] {
            assert!(site.get(&format!("/bytes/{length}")).2 == pattern(length));
        }
        assert_eq!(origin.connections(), 1);
        stalled.into_iter().for_each(leave);
        wait_for("their streams are ended", || origin.count("given up /endless") == 30);
    }

    #[test]
    fn an_origin_that_wants_one_stream_gets_one_at_a_time_on_each_connection() {
        let origin = PlayedHttp2::start(Manner { streams_max: 1, ..Manner::default() });
        let site = Site::before(origin.address, "");
        std::thread::scope(|scope| {
            let ask = |n: usize| site.get(&format!("/hold?{n}")).0;
            let asking: Vec<_> = (0..20).map(|n| scope.spawn(move || ask(n))).collect();
            asking.into_iter().for_each(|one| assert_eq!(one.join().unwrap(), 200));
        });
        assert_eq!((origin.count("GET /hold"), origin.connections()), (20, 20));
        assert_eq!(site.metric("larder_origin_retries_total"), 0, "nothing was sent in vain");
    }

    #[test]
    fn max_connections_counts_requests_and_the_others_wait() {
        let origin = PlayedHttp2::start(Manner::default());
        let limits = "max_connections = 2\nqueue_max = 1\nqueue_timeout = \"10s\"";
        let site = Site::start(&format!("h2://{}", origin.address), limits, "");
        let held: Vec<_> = (0..2)
            .map(|_| {
                let mut client = site.connect();
                write!(client, "POST /silent HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n").unwrap();
                client
            })
            .collect();
        wait_for("both are asked", || origin.count("POST /silent") == 2);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| site.get("/bytes/3").0);
            wait_for("one waits", || get(site.admin, "/status").unwrap().replace(' ', "").contains("\"queued\":1"));
            assert_eq!(site.get("/bytes/4").0, 503, "the queue is full");
            held.into_iter().for_each(leave);
            assert_eq!(waiting.join().unwrap(), 200);
        });
        assert_eq!(origin.connections(), 1);
    }

    #[test]
    fn an_origin_that_says_nothing_any_more_gets_no_further_request() {
        // The first connection hears, and says nothing more.
        let (address, connections) = scripted(&[], |number, mut frames| {
            while let Some(stream) = frames.request() {
                if number > 1 {
                    frames.answer(stream, b"well");
                }
            }
        });
        let site = Site::before(address, "[limits]\nfirst_byte_timeout = \"1s\"");
        let (status, _, body) = site.get("/a");
        assert!(status == 504 && String::from_utf8_lossy(&body).contains("no answer within 1 s"), "{status}");
        assert_eq!(site.get("/b").2, b"well");
        assert_eq!(connections.load(Ordering::SeqCst), 2);
    }

    /// As behind a firewall that has forgotten the connection: what is sent is taken, and nothing comes.
    #[test]
    fn an_origin_that_is_gone_is_asked_and_what_may_be_is_asked_again() {
        let (address, connections) = scripted(&[], |number, mut frames| {
            while let Some(stream) = frames.request() {
                frames.answer(stream, b"well");
                if number % 2 == 1 {
                    return while frames.hear().is_some() {};
                }
            }
        });
        let site = Site::before(address, "[limits]\norigin_ping_timeout = \"500ms\"");
        assert_eq!(site.get("/a").2, b"well");
        assert_eq!(site.get("/b").2, b"well", "a GET is asked again");
        assert_eq!((connections.load(Ordering::SeqCst), site.metric("larder_origin_http2_silent_total")), (2, 1));
        assert_eq!(site.metric("larder_origin_retries_total"), 1);
    }

    #[test]
    fn what_may_not_be_asked_again_fails_with_its_connection() {
        let (address, connections) = scripted(&[], |_, mut frames| {
            let Some(stream) = frames.request() else { return };
            frames.answer(stream, b"well");
            while frames.hear().is_some() {}
        });
        let site = Site::before(address, "[limits]\norigin_ping_timeout = \"500ms\"");
        assert_eq!(site.get("/a").2, b"well");
        let (status, _, body) = site.post("/b");
        assert!(status == 502, "{status}: {}", String::from_utf8_lossy(&body));
        assert_eq!((connections.load(Ordering::SeqCst), site.metric("larder_origin_http2_silent_total")), (1, 1));
    }

    #[test]
    fn an_origin_that_answers_when_it_is_asked_has_its_time() {
        const PING: u8 = 6;
        const ACK: u8 = 1;
        let (address, connections) = scripted(&[], |_, mut frames| {
            let Some(stream) = frames.request() else { return };
            for _ in 0..3 {
                loop {
                    let Some((kind, flags, _, payload)) = frames.hear() else { return };
                    if (kind, flags) == (PING, 0) {
                        frames.say((PING, ACK, 0, &payload));
                        break;
                    }
                }
            }
            frames.answer(stream, b"well");
            while frames.hear().is_some() {}
        });
        let site = Site::before(address, "[limits]\norigin_ping_timeout = \"300ms\"");
        assert_eq!(site.get("/a").2, b"well");
        assert_eq!((connections.load(Ordering::SeqCst), site.metric("larder_origin_http2_silent_total")), (1, 0));
    }

    #[test]
    fn a_connection_that_dies_takes_only_what_may_not_be_asked_again() {
        // Each connection answers one request, and dies under the next.
        let (address, connections) = scripted(&[], |_, mut frames| {
            let Some(stream) = frames.request() else { return };
            frames.answer(stream, b"well");
            if frames.request().is_some() {
                frames.close();
            }
        });
        let site = Site::before(address, "");
        assert_eq!(site.get("/a").2, b"well");
        assert_eq!(site.get("/b").2, b"well", "a GET is asked again");
        let (status, _, body) = site.post("/c");
        assert!(status == 502 && String::from_utf8_lossy(&body).contains("closed the connection without an answer"));
        assert_eq!(connections.load(Ordering::SeqCst), 2);
        // One that dies under its first request is at fault.
        let (address, connections) = scripted(&[], |_, mut frames| {
            if frames.request().is_some() {
                frames.close();
            }
        });
        let site = Site::before(address, "");
        assert_eq!((site.get("/a").0, connections.load(Ordering::SeqCst)), (502, 1));
    }

    #[test]
    fn streams_above_goaways_last_are_asked_again_whatever_they_are() {
        let (address, connections) = scripted(&[], |number, mut frames| {
            let Some(first) = frames.request() else { return };
            if number > 1 {
                frames.answer(first, b"second");
                return while frames.hear().is_some() {};
            }
            frames.answer(first, b"first");
            let Some(_) = frames.request() else { return };
            // It worked on the first, and no more.
            frames.say((GOAWAY, 0, 0, &[0, 0, 0, 1, 0, 0, 0, 0]));
            while frames.hear().is_some() {}
        });
        let site = Site::before(address, "");
        assert_eq!(site.get("/a").2, b"first");
        assert_eq!(site.post("/b").2, b"second", "a POST, too");
        assert_eq!(connections.load(Ordering::SeqCst), 2);
        assert_eq!(site.metric("larder_origin_retries_total"), 1);
    }

    #[test]
    fn an_origin_that_breaks_the_rules_is_told_which_and_answered_for_by_502() {
        for (settings, token) in [
            (&[0, 2, 0, 0, 0, 1][..], "setting enable push"),
            (&[0, 4, 0xff, 0xff, 0xff, 0xff], "setting initial window"),
        ] {
            let (address, _) = scripted(settings, |_, mut frames| while frames.hear().is_some() {});
            let (status, _, body) = Site::before(address, "").get("/a");
            assert!(
                status == 502 && String::from_utf8_lossy(&body).contains(token),
                "{}",
                String::from_utf8_lossy(&body)
            );
        }
        // A push, and data before any head.
        for (kind, payload, token) in [(5, &[0, 0, 0, 2][..], "push unasked"), (DATA, b"x", "data before response")] {
            let (address, _) = scripted(&[], move |_, mut frames| {
                let Some(stream) = frames.request() else { return };
                frames.say((kind, END_HEADERS, stream, payload));
                while frames.hear().is_some() {}
            });
            let (status, _, body) = Site::before(address, "").get("/a");
            assert!(
                status == 502 && String::from_utf8_lossy(&body).contains(token),
                "{}",
                String::from_utf8_lossy(&body)
            );
        }
        // A flood of PINGs.
        let (address, _) = scripted(&[], |_, mut frames| {
            if frames.request().is_some() {
                while frames.say((6, 0, 0, &[0; 8])).is_some() {}
            }
        });
        let site = Site::before(address, "");
        assert_eq!(site.get("/a").0, 502);
        assert_eq!(site.metric("larder_origin_http2_failed_total"), 1);
    }

    #[test]
    fn who_speaks_no_http2_there_is_no_origin() {
        let http1 = crate::tls_site::echo();
        let (status, _, body) = Site::before(http1, "[limits]\nfirst_byte_timeout = \"2s\"").get("/bytes/5");
        let text = String::from_utf8_lossy(&body);
        assert!((502..=504).contains(&status), "{status}: {text}");
    }

    #[test]
    fn an_idle_connection_is_kept_for_a_while_and_closed() {
        let origin = PlayedHttp2::start(Manner::default());
        let site = Site::before(origin.address, "[limits]\norigin_idle_timeout = \"1s\"");
        assert_eq!((site.get("/bytes/1").0, site.get("/bytes/2").0, origin.connections()), (200, 200, 1));
        let status = || get(site.admin, "/status").unwrap().replace(' ', "");
        wait_for("it is closed", || status().contains("\"http2_connections\":0,\"idle\":0"));
        assert_eq!((site.get("/bytes/3").0, origin.connections()), (200, 2));
        let kept = Site::before(origin.address, "[limits]\norigin_idle_connections_max = 0");
        assert_eq!((kept.get("/bytes/1").0, kept.get("/bytes/2").0), (200, 200));
        assert_eq!(origin.connections(), 4, "none is kept");
    }

    #[test]
    fn a_websocket_is_a_stream_where_the_origin_takes_it() {
        let origin = PlayedHttp2::start(Manner { websockets: true, ..Manner::default() });
        let site = Site::before(origin.address, "");
        let (mut client, head) = open_websocket(&site);
        assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
        // RFC 6455 §1.3: the proof of its own key.
        assert!(head.contains("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), "{head}");
        assert_eq!(origin.count("CONNECT /socket"), 1);
        let mut other = client.try_clone().unwrap();
        let sends = std::thread::spawn(move || {
            other.write_all(&vec![b'a'; 300_000]).unwrap();
            other.shutdown(std::net::Shutdown::Write).unwrap();
        });
        let mut back = Vec::new();
        client.read_to_end(&mut back).unwrap();
        sends.join().unwrap();
        assert!(back == vec![b'A'; 300_000], "{}", back.len());
        assert_eq!((site.get("/bytes/5").0, origin.connections()), (200, 1));
    }

    #[test]
    fn a_websocket_to_an_origin_that_takes_none_is_refused_with_a_reason() {
        let origin = PlayedHttp2::start(Manner::default());
        let site = Site::before(origin.address, "");
        let (_, head) = open_websocket(&site);
        assert!(head.starts_with("HTTP/1.1 502 "), "{head}");
        assert_eq!(origin.count("socket"), 0);
    }
}
