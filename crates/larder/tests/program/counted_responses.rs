//! What `/metrics` says of responses beside the access log, line for line: by class, by protocol and by route, with the bytes of bodies.

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpListener};
    use std::path::{Path, PathBuf};

    use crate::http2_site::Site;
    use crate::peer_process::wait_for;
    use crate::subject::get;

    /// Answers `/stored/…` for a minute, `/fresh/…` for nobody else, and no request for `/broken`.
    fn origin() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for mut client in listener.incoming().flatten() {
                std::thread::spawn(move || {
                    let (mut head, mut byte) = (Vec::new(), [0]);
                    while !head.ends_with(b"\r\n\r\n") && matches!(client.read(&mut byte), Ok(1)) {
                        head.push(byte[0]);
                    }
                    let target = String::from_utf8_lossy(&head).split(' ').nth(1).unwrap_or_default().to_owned();
                    let life = if target.starts_with("/stored") { "max-age=60" } else { "no-store" };
                    if target != "/broken" {
                        let answer = format!(
                            "HTTP/1.1 200 OK\r\nCache-Control: {life}\r\nETag: \"1\"\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"
                        );
                        let _ = client.write_all(answer.as_bytes());
                    }
                });
            }
        });
        address
    }

    type Counts = BTreeMap<[String; 2], (u64, u64)>;

    /// By class and protocol, of the log's lines. What is no request has no protocol there, and came by HTTP/1.
    fn counts_of_log(text: &str) -> Counts {
        let mut counts = Counts::new();
        for line in text.lines() {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            let protocol = match line["version"].as_str() {
                Some("1.0") => "http/1.0",
                Some("2.0") => "h2",
                _ => "http/1.1",
            };
            let key = [line["verdict"].as_str().unwrap(), protocol].map(str::to_owned);
            let sum = counts.entry(key).or_default();
            *sum = (sum.0 + 1, sum.1 + line["bytes"].as_u64().unwrap());
        }
        counts
    }

    /// A series' labels and its value.
    fn series(text: &str, name: &str) -> Vec<(Vec<String>, u64)> {
        let of_line = |line: &str| {
            let (labels, value) = line.strip_prefix(name)?.strip_prefix('{')?.rsplit_once("} ")?;
            let values = labels.split("\",").filter_map(|label| label.split_once("=\""));
            Some((values.map(|(_, value)| value.trim_end_matches('"').to_owned()).collect(), value.parse().ok()?))
        };
        text.lines().filter_map(of_line).collect()
    }

    fn counts_of_metrics(text: &str, of: &str) -> Counts {
        let requests = series(text, &format!("larder{of}_responses_total"));
        let bytes = series(text, &format!("larder{of}_response_body_bytes_total"));
        let pairs = requests.into_iter().zip(bytes).filter(|((_, count), _)| *count > 0);
        pairs
            .map(|((labels, count), (same, bytes))| {
                assert_eq!(labels, same);
                (labels.try_into().unwrap(), (count, bytes))
            })
            .collect()
    }

    fn folder() -> PathBuf {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("counted-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn metrics_count_what_the_log_has() {
        let log = folder().join("access.log");
        let others = format!(
            "[log]\npath = \"{}\"\nformat = \"json\"\n[[route]]\npath = \"/\"\norigin = \"site\"\n\
             [[route]]\npath = \"/stored\"\norigin = \"site\"\n[[route]]\npath = \"/private\"\nclosed = true\n",
            log.display()
        );
        let site = Site::start(&format!("http://{}", origin()), "", &others);
        for path in ["/stored/a", "/stored/a", "/stored/a", "/fresh/a", "/fresh/a", "/broken", "/private/a"] {
            site.get(path);
        }
        site.post("/stored/a");
        site.get("/stored/a");
        site.ask("HEAD /stored/a HTTP/1.1\r\nHost: site.test\r\n\r\n");
        site.ask("GET /stored/a HTTP/1.1\r\nHost: site.test\r\nIf-None-Match: \"1\"\r\n\r\n");
        site.ask("GET /stored/a HTTP/1.0\r\nHost: site.test\r\n\r\n");
        site.ask("no request at all\r\n\r\n");
        let text = || std::fs::read_to_string(&log).unwrap_or_default();
        wait_for("the log has 13 lines", || text().lines().count() == 13);
        let metrics = get(site.admin, "/metrics").unwrap();
        let (logged, counted) = (counts_of_log(&text()), counts_of_metrics(&metrics, ""));
        assert_eq!(counted, logged);
        for class in ["hit", "miss", "pass", "error", "refused"] {
            assert!(logged.contains_key(&[class, "http/1.1"].map(str::to_owned)), "{class}: {logged:?}");
        }
        let by_route = counts_of_metrics(&metrics, "_route");
        let of = |route: &str, class: &str| by_route.get(&[route, class].map(str::to_owned)).copied();
        // Two hits before the POST, which drops what is stored, and three after the miss that follows, of which one has a body.
        assert_eq!(of("/stored", "hit"), Some((5, 15)), "{by_route:?}");
        assert_eq!(of("/stored", "miss"), Some((2, 10)), "{by_route:?}");
        assert_eq!(of("/", "error").map(|(count, _)| count), Some(1), "{by_route:?}");
        assert_eq!(of("none", "refused").map(|(count, _)| count), Some(1), "{by_route:?}");
        let all: u64 = by_route.values().map(|(count, _)| count).sum();
        assert_eq!(all, 13);
        let times = series(&metrics, "larder_response_seconds_count");
        // Of what is no request it is not known when it began.
        assert_eq!(times.iter().map(|(_, count)| count).sum::<u64>(), 12);
    }

    /// The names of what a larder answers.
    #[test]
    fn what_is_inside_is_under_debug() {
        let site = Site::start("http://127.0.0.1:9", "", "");
        site.get("/");
        assert!(!get(site.admin, "/metrics").unwrap().contains("larder_edge_total"));
        assert!(
            get(site.admin, "/debug").unwrap().contains("larder_edge_total{machine=\"transaction\",from=\"Receive\",")
        );
    }
}
