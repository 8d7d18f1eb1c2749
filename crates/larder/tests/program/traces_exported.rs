//! Spans and log records that reach a collector, which the test plays: their ids, parents, times and attributes, which exchanges have any, and
//! what a collector costs that is down or takes nothing.

#[cfg(test)]
mod tests {
    use proxy::{Moment, wall_now_ms};
    use serde_json::Value;
    use std::io::{BufReader, Write};
    use std::net::{SocketAddr, TcpListener};
    use std::sync::{Arc, Mutex};

    use crate::http2_site::{Site, answer};
    use crate::peer_process::wait_for;
    use crate::told_origin::{ToldRequest, origin};

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    /// Takes all that comes, and keeps it.
    #[derive(Clone, Default)]
    struct Collector {
        spans: Arc<Mutex<Vec<Value>>>,
        records: Arc<Mutex<Vec<Value>>>,
        heads: Arc<Mutex<Vec<String>>>,
    }

    impl Collector {
        fn start() -> (Collector, SocketAddr) {
            let collector = Collector::default();
            let kept = collector.clone();
            let address = origin(move |told: &ToldRequest| {
                kept.take(told);
                told.answer("Content-Type: application/json", "{\"partialSuccess\":{}}")
            });
            (collector, address)
        }

        fn take(&self, told: &ToldRequest) {
            let message: Value = serde_json::from_slice(&told.body).expect("it is JSON");
            let (resources, scopes, names, kept) = match told.line() {
                "POST /v1/logs" => ("resourceLogs", "scopeLogs", "logRecords", &self.records),
                _ => ("resourceSpans", "scopeSpans", "spans", &self.spans),
            };
            let of_resource = &message[resources][0];
            let service = &of_resource["resource"]["attributes"][0];
            assert_eq!((&service["key"], &service["value"]["stringValue"]), (&"service.name".into(), &"edge".into()));
            let told_of = of_resource[scopes][0][names].as_array().expect("there are some");
            kept.lock().unwrap().extend(told_of.iter().cloned());
            self.heads.lock().unwrap().push(told.head.clone());
        }

        /// Once there are so many.
        fn spans(&self, count: usize) -> Vec<Value> {
            wait_for("the spans have come", || self.spans.lock().unwrap().len() >= count);
            self.spans.lock().unwrap().clone()
        }
    }

    /// An origin that keeps what it is told of traces, and garbles its answer to `/broken`.
    fn told_origin(told: &Arc<Mutex<Vec<String>>>) -> SocketAddr {
        let told = Arc::clone(told);
        origin(move |asked| {
            told.lock().unwrap().push(asked.value("traceparent").unwrap_or_default().to_owned());
            match asked.line().split_once(' ') {
                Some((_, "/broken")) => "no answer of HTTP\r\n\r\n".to_owned(),
                Some((_, "/failing")) => "HTTP/1.1 503 Out\r\nContent-Length: 0\r\n\r\n".to_owned(),
                _ => asked.answer("Cache-Control: max-age=60", "hello"),
            }
        })
    }

    fn site(origin: SocketAddr, collector: SocketAddr, lines: &str) -> Site {
        let traces = format!("[traces]\nendpoint = \"http://{collector}\"\nservice_name = \"edge\"\n{lines}\n");
        Site::start_with_admin(&format!("http://{origin}"), "", &traces)
    }

    fn text<'a>(span: &'a Value, key: &str) -> &'a str {
        let all = span["attributes"].as_array().into_iter().flatten();
        let found = all.into_iter().find(|attribute| attribute["key"] == key);
        let value = found.map(|attribute| &attribute["value"]);
        value.and_then(|value| value["stringValue"].as_str().or_else(|| value["intValue"].as_str())).unwrap_or_default()
    }

    fn nanos(span: &Value, name: &str) -> u128 {
        span[name].as_str().expect("a number as text").parse().unwrap()
    }

    fn of_path<'a>(spans: &'a [Value], path: &str, kind: u64) -> Vec<&'a Value> {
        let is_of = |span: &&Value| {
            span["kind"] == kind && (text(span, "url.path") == path || text(span, "url.full").ends_with(path))
        };
        spans.iter().filter(is_of).collect()
    }

    #[test]
    fn an_exchange_and_its_tries_are_spans_that_hang_together() {
        let told = Arc::default();
        let origin = told_origin(&told);
        let (collector, address) = Collector::start();
        let site = site(origin, address, "sample = 1.0\nheaders = { Authorization = \"Bearer of-the-test\" }");
        let since_ms = u128::from(wall_now_ms());
        let line = format!("Traceparent: {PARENT}\r\nTracestate: a=1\r\n");
        site.ask(&format!("GET /page?sig=secret&b=1 HTTP/1.1\r\nHost: site.test\r\nUser-Agent: tester\r\n{line}\r\n"));
        site.get("/page?sig=secret&b=1");
        let (status, ..) = site.get("/broken");
        assert_eq!(status, 502);
        let spans = collector.spans(5);
        let heads = collector.heads.lock().unwrap().clone();
        assert!(heads.iter().all(|head| head.starts_with("POST /v1/traces HTTP/1.1\r\n")), "{heads:?}");
        assert!(heads.iter().all(|head| head.to_lowercase().contains("authorization: bearer of-the-test")));

        let servers = of_path(&spans, "/page", 2);
        let [miss, hit] = servers[..] else { panic!("{spans:?}") };
        let clients = of_path(&spans, "/page?sig=REDACTED&b=1", 3);
        let [client] = clients[..] else { panic!("{spans:?}") };
        assert_eq!((&miss["traceId"], &miss["parentSpanId"]), (&PARENT[3..35].into(), &PARENT[36..52].into()));
        assert_eq!((&client["traceId"], &client["parentSpanId"]), (&miss["traceId"], &miss["spanId"]));
        assert_eq!((&miss["traceState"], &miss["name"]), (&"a=1".into(), &"GET /".into()));
        assert!(hit["parentSpanId"].is_null() && hit["traceId"] != miss["traceId"], "{hit}");
        let told = told.lock().unwrap().clone();
        assert_eq!(told[0], format!("00-{}-{}-01", &PARENT[3..35], client["spanId"].as_str().unwrap()));
        for (span, key, expect) in [
            (miss, "larder.class", "miss"),
            (miss, "larder.forwarded", "uri-miss"),
            (miss, "http.request.method", "GET"),
            (miss, "url.query", "sig=REDACTED&b=1"),
            (miss, "url.scheme", "http"),
            (miss, "user_agent.original", "tester"),
            (miss, "client.address", "127.0.0.1"),
            (miss, "server.address", "site.test"),
            (miss, "http.response.status_code", "200"),
            (miss, "http.response.body.size", "5"),
            (hit, "larder.class", "hit"),
            (client, "larder.origin", "site"),
            (client, "server.port", &origin.port().to_string()),
            (client, "http.response.status_code", "200"),
        ] {
            assert_eq!(text(span, key), expect, "{key} of {span}");
        }
        // Clocks are read once a tick.
        let now_ms = u128::from(wall_now_ms());
        let (earliest, latest) = ((since_ms - 5) * 1_000_000, (now_ms + 5) * 1_000_000);
        let times = |span| (nanos(span, "startTimeUnixNano"), nanos(span, "endTimeUnixNano"));
        let ((begun, ended), (asked, answered)) = (times(miss), times(client));
        assert!(earliest <= begun && begun <= asked && asked < answered, "{earliest} {begun} {asked} {answered}");
        assert!(answered <= ended && ended <= latest, "{answered} {ended} {latest}");

        let broken = of_path(&spans, "/broken", 2);
        assert_eq!((broken.len(), &broken[0]["status"]["code"]), (1, &2.into()));
        assert_eq!(text(broken[0], "http.response.status_code"), "502");
        let tries = of_path(&spans, "/broken", 3);
        assert!(!tries.is_empty() && tries.iter().all(|span| span["parentSpanId"] == broken[0]["spanId"]), "{spans:?}");
        assert_eq!(text(tries[0], "error.type"), "version-invalid", "{}", tries[0]);
        wait_for("it is counted", || site.metric("larder_spans_sent_total") == spans.len() as u64);
        assert_eq!(site.metric("larder_spans_lost_total") + site.metric("larder_spans_failed_total"), 0);
        assert!(site.metric("larder_span_batches_sent_total") > 0);
    }

    #[test]
    fn an_exchange_has_a_log_record_in_its_span() {
        let (collector, address) = Collector::start();
        let site = site(told_origin(&Arc::default()), address, "sample = 1.0\nlogs = true");
        site.ask(&format!("GET /page?sig=secret HTTP/1.1\r\nHost: site.test\r\nTraceparent: {PARENT}\r\n\r\n"));
        let (status, ..) = site.get("/broken");
        assert_eq!(status, 502);
        wait_for("the records have come", || collector.records.lock().unwrap().len() >= 2);
        let (records, spans) = (collector.records.lock().unwrap().clone(), collector.spans(4));
        for (record, path, severity, line) in [
            (&records[0], "/page", 9, "GET site.test/page?sig=REDACTED 200 miss"),
            (&records[1], "/broken", 17, "GET site.test/broken 502 error version-invalid"),
        ] {
            let span = of_path(&spans, path, 2)[0];
            assert_eq!((&record["traceId"], &record["spanId"]), (&span["traceId"], &span["spanId"]));
            assert_eq!((&record["severityNumber"], &record["body"]["stringValue"]), (&severity.into(), &line.into()));
            assert_eq!(record["timeUnixNano"], span["endTimeUnixNano"]);
            assert_eq!(text(record, "http.response.status_code"), text(span, "http.response.status_code"));
        }
        assert_eq!(text(&records[1], "larder.id").len(), 16, "{}", records[1]);
        wait_for("it is counted", || site.metric("larder_log_records_sent_total") == 2);
        assert_eq!(site.metric("larder_log_records_made_total"), 2);
        assert_eq!(site.metric("larder_log_records_lost_total") + site.metric("larder_log_records_failed_total"), 0);
        assert_eq!(site.metric("larder_spans_sent_total"), spans.len() as u64);
    }

    /// Many collectors take traces alone.
    #[test]
    fn a_collector_that_knows_no_logs_gets_its_spans() {
        let kept: Arc<Mutex<Vec<String>>> = Arc::default();
        let told = Arc::clone(&kept);
        let address = origin(move |asked: &ToldRequest| {
            told.lock().unwrap().push(asked.line().to_owned());
            match asked.line() {
                "POST /v1/logs" => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned(),
                _ => asked.answer("Content-Type: application/json", "{}"),
            }
        });
        let site = site(told_origin(&Arc::default()), address, "sample = 1.0\nlogs = \"errors\"");
        site.get("/page");
        site.get("/failing");
        wait_for("both have come", || site.metric("larder_spans_sent_total") == 4);
        wait_for("it is given up", || site.metric("larder_log_records_failed_total") == 1);
        assert_eq!(site.metric("larder_log_batches_failed_total"), 1);
        assert_eq!(
            kept.lock().unwrap().iter().filter(|line| line.contains("/v1/logs")).count(),
            1,
            "nobody asks again"
        );
    }

    /// Asks for what is stored, so often, over one connection, with these lines.
    fn hits(site: &Site, count: usize, lines: &str) {
        let mut reader = BufReader::new(site.connect());
        for _ in 0..count {
            let request = format!("GET /stored HTTP/1.1\r\nHost: site.test\r\n{lines}\r\n");
            reader.get_mut().write_all(request.as_bytes()).unwrap();
            let (status, _, body) = answer(&mut reader, true);
            assert_eq!((status, &body[..]), (200, &b"hello"[..]));
        }
    }

    #[test]
    fn a_share_is_told_of_and_what_fails() {
        let (collector, address) = Collector::start();
        let site = site(told_origin(&Arc::default()), address, "sample = 0.1");
        hits(&site, 4_000, &format!("Traceparent: {PARENT}\r\n"));
        let all = collector.spans(200).len();
        site.get("/failing");
        wait_for("what failed has come", || !of_path(&collector.spans.lock().unwrap(), "/failing", 2).is_empty());
        let spans = collector.spans(all);
        let sampled = of_path(&spans, "/stored", 2).len();
        // 400 are expected; nine standard deviations are 170. The sender's flag is a stranger's.
        assert!((230..570).contains(&sampled), "{sampled}");
        assert_eq!(of_path(&spans, "/failing", 3).len(), 1);
    }

    #[test]
    fn a_trusted_proxy_says_what_is_told_of() {
        let (collector, address) = Collector::start();
        let traces = format!("[traces]\nendpoint = \"http://{address}\"\nservice_name = \"edge\"\nsample = 0.0\n");
        let top = "trusted_proxies = [\"127.0.0.1\"]\n";
        let site = Site::start_beneath(&format!("http://{}", told_origin(&Arc::default())), top, &traces);
        hits(&site, 20, &format!("Traceparent: {}\r\n", PARENT.replace("-01", "-00")));
        hits(&site, 7, &format!("Traceparent: {PARENT}\r\n"));
        assert_eq!(collector.spans(7).len(), 7);
    }

    /// Whoever asks is answered, and what is lost is counted.
    fn check_without_collector(address: SocketAddr) {
        let site = site(told_origin(&Arc::default()), address, "sample = 1.0");
        let began = Moment::now();
        hits(&site, 6_000, &format!("User-Agent: {}\r\n", "a".repeat(800)));
        let took_ms = began.micros_until(Moment::now()) / 1_000;
        wait_for("the queue is full", || site.metric("larder_spans_lost_total") > 0);
        assert_eq!(site.metric("larder_spans_sent_total"), 0);
        // Each of these is some 20 µs of work: one that waited for a collector would be seconds.
        assert!(took_ms < 20_000, "{took_ms} ms");
        let began = Moment::now();
        hits(&site, 100, "");
        let took_ms = began.micros_until(Moment::now()) / 1_000;
        assert!(took_ms < 2_000, "{took_ms} ms");
    }

    #[test]
    fn a_collector_that_stalls_costs_spans_alone() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let mut held = Vec::new();
            listener.incoming().flatten().for_each(|client| held.push(client));
        });
        check_without_collector(address);
    }

    #[test]
    fn a_collector_that_is_down_costs_spans_alone() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        check_without_collector(address);
    }
}
