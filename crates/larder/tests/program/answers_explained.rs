//! `[admin] explain_header`: a request of a site that brings the token is told why it is answered as it is, over HTTP/1.1 and HTTP/2, and with the
//! token nothing else is done: no origin and no log sees it.

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::sync::{Arc, Mutex};

    use crate::http2_site::Site;
    use crate::peer_process::wait_for;
    use crate::told_origin::origin;

    const TOKEN: &str = "token-of-this-test";
    /// The listener that is asked.
    const HTTP2_TOO: &str = "[[listen]]\naddress = \"127.0.0.1:0\"\nh2c = true\n";
    const RIGHT: &str = "X-Why: token-of-this-test";

    fn explained(head: &str) -> Option<&str> {
        head.lines().find_map(|line| line.strip_prefix("larder-explain: "))
    }

    fn curl(site: &Site, path: &str, flags: &[&str]) -> String {
        let mut command = Command::new("curl");
        command.args(["-s", "-i", "--max-time", "20"]).args(flags).arg(format!("http://{}{path}", site.address));
        let output = command.output().expect("curl is installed");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).replace('\r', "")
    }

    #[test]
    fn the_token_asks_over_both_protocols_and_goes_nowhere() {
        let heads: Arc<Mutex<Vec<String>>> = Arc::default();
        let told = Arc::clone(&heads);
        let origin = origin(move |asked| {
            told.lock().unwrap().push(asked.head.clone());
            asked.answer("Cache-Control: max-age=60", "hello")
        });
        let log = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("asked-why-{}", std::process::id()));
        let admin = format!("token = \"{TOKEN}\"\nexplain_header = \"X-Why\"");
        let logs = format!("[log]\npath = \"{}\"\nformat = \"json\"\n", log.display());
        let site = Site::start_with_both(&format!("http://{origin}"), HTTP2_TOO, &admin, &logs);
        for (protocol, path) in [("--http1.1", "/one"), ("--http2-prior-knowledge", "/two")] {
            let miss = curl(&site, path, &[protocol, "-H", RIGHT]);
            let text = explained(&miss).unwrap_or_else(|| panic!("{protocol}: {miss}"));
            assert!(text.starts_with("class=miss, would-be=miss, route=\"/\", target=\"origin site\", key="), "{text}");
            let hit = curl(&site, path, &[protocol, "-H", RIGHT]);
            let text = explained(&hit).unwrap_or_else(|| panic!("{protocol}: {hit}"));
            assert!(text.starts_with("class=hit, would-be=hit") && text.contains("fresh-until="), "{text}");
            assert!(hit.ends_with("\nhello"), "{hit}");
            for flags in [&[protocol][..], &[protocol, "-H", "X-Why: token-of-this-tesT"], &[protocol, "-H", "X-Why;"]]
            {
                let answer = curl(&site, path, flags);
                assert!(explained(&answer).is_none() && answer.ends_with("\nhello"), "{flags:?}: {answer}");
            }
        }
        let heads = heads.lock().unwrap().clone();
        assert!(heads.len() == 2 && heads.iter().all(|head| !head.to_lowercase().contains("x-why")), "{heads:?}");
        wait_for("all is logged", || std::fs::read_to_string(&log).unwrap_or_default().lines().count() == 10);
        assert!(!std::fs::read_to_string(&log).unwrap().contains("token-of"), "no log has it");
        let shown = crate::subject::get(site.admin, "/status").unwrap();
        assert!(!shown.contains("token-of"));
    }
}
