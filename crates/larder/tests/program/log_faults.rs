//! The log under attack: hostile bytes in it, a full disk below it, a file that is gone, a pipe that nobody reads.
//! Each test stands for one row of spec/bad-input/nx.toml.

#[cfg(test)]
mod tests {
    use std::os::unix::fs::OpenOptionsExt;

    use crate::bad_input::start_lane;
    use crate::lane::Lane;
    use crate::notation;
    use crate::recording_origin::Behaviour;
    use crate::subject::{Kind, Setup};

    const GOOD: &str = "GET /good HTTP/1.1¶Host: t.test¶¶";

    /// What a client can put into a request that is answered, and what is refused.
    const HOSTILE: &[(&str, u16)] = &[
        (r#"GET /a"b HTTP/1.1¶Host: t.test¶¶"#, 0),
        ("GET /%0d%0aHTTP/1.1%22%20200 HTTP/1.1¶Host: t.test¶¶", 200),
        (r#"GET /r HTTP/1.1¶Host: t.test¶User-Agent: " 200 0 "-" "x¶¶"#, 200),
        (r"GET /r HTTP/1.1¶Host: t.test¶User-Agent: \\¶¶", 200),
        (r"GET /r HTTP/1.1¶Host: t.test¶User-Agent: \xff\xc3\xed\xa0\x80\x85\x9b31m¶¶", 200),
        (r"GET /r HTTP/1.1¶Host: t.test¶Referer: →x→y\xe2\x80\xa8z¶¶", 200),
        ("GET /r HTTP/1.1¶Host: t.test¶User-Agent: {x*8000}¶¶", 200),
        ("GET /{x*15000} HTTP/1.1¶Host: t.test¶¶", 200),
        (r#"QUOTE' /r HTTP/1.1¶Host: t.test¶¶"#, 200),
        (r"GET /r HTTP/1.1¶Host: t.test¶User-Agent: \x1b[31m\x07¶¶", 400),
        (r"GET /\x1b[31m HTTP/1.1¶Host: t.test¶¶", 400),
        (r#"GET /r HTTP/1.1¶Host: <script>"\\¶¶"#, 400),
        (r#"G"T /r HTTP/1.1¶Host: t.test¶¶"#, 400),
        (r"GET /r HTTP/1.1¶Host: t.test¶Referer: a\0b¶¶", 400),
        (r"GET /r HTTP/1.1¶Host: t.test¶Referer: a\rb¶¶", 400),
        ("{A*65536} / HTTP/1.1¶Host: t.test¶¶", 0),
        (r"\x16\x03\x01\x02¶¶", 400),
    ];

    /// Longer lines would let one request fill a disk.
    const LINE_BYTES_MAX: usize = 12 << 10;

    fn lane_with_log(format: &'static str) -> Lane {
        start_lane(Kind::Larder, &Setup { log_format: Some(format), ..Setup::default() })
    }

    fn log_bytes(lane: &Lane) -> Vec<u8> {
        lane.subject.log.as_ref().and_then(|path| std::fs::read(path).ok()).unwrap_or_default()
    }

    /// N07
    #[test]
    fn hostile_bytes_stay_on_their_log_line() {
        for format in ["combined", "json"] {
            let mut lane = lane_with_log(format);
            for (text, status) in HOSTILE {
                let mut clients = [lane.connect(text)];
                lane.expect(&mut clients, "an answer", |_, clients| {
                    clients[0].end.is_some() || clients[0].received.ends_with(b"\n")
                });
                let wanted = format!("HTTP/1.1 {status} ");
                let fits = *status == 0 || clients[0].received.starts_with(wanted.as_bytes());
                assert!(fits, "{text} got {}", notation::show(&clients[0].received, 200));
            }
            // One line each, and one for the first good request.
            let lines_wanted = HOSTILE.len() + 1;
            lane.expect(&mut [], "all log lines", |lane, _| {
                log_bytes(lane).iter().filter(|&&byte| byte == b'\n').count() >= lines_wanted
            });
            let bytes = log_bytes(&lane);
            let text = String::from_utf8(bytes).expect("a log is UTF-8");
            assert_eq!(text.lines().count(), lines_wanted, "{text}");
            assert!(text.ends_with('\n'));
            for line in text.lines() {
                check_line(line, format);
            }
        }
    }

    fn check_line(line: &str, format: &str) {
        assert!(line.len() < LINE_BYTES_MAX, "{} bytes in a line", line.len());
        assert!(!line.chars().any(char::is_control), "a control character in {line}");
        match format {
            "json" => {
                let value: serde_json::Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
                assert!(value.get("status").is_some_and(serde_json::Value::is_u64), "{line}");
            }
            _ => {
                assert!(line.is_ascii(), "{line}");
                // Outside of escapes, quotes come in pairs: three quoted columns, and one more for what a stranger is not told.
                let plain = line.replace("\\\\", "").replace("\\\"", "");
                let columns = if plain.contains(" detail=") { 4 } else { 3 };
                assert_eq!(plain.matches('"').count(), 2 * columns, "{line}");
            }
        }
    }

    /// N08: a disk without room.
    #[test]
    fn a_full_disk_under_the_log_stops_nothing() {
        let setup = Setup { log_path: Some("/dev/full".into()), ..Setup::default() };
        let mut lane = start_lane(Kind::Larder, &setup);
        for _ in 0..50 {
            lane.ask(&mut Vec::new(), GOOD, 200);
        }
        lane.expect(&mut [], "lost lines that are counted", |lane, _| {
            lane.subject.metric("larder_log_lines_lost_total").is_some_and(|lost| lost >= 50.0)
        });
        assert!(lane.subject.is_alive());
    }

    /// N08: somebody removed the file; HUP opens a new one.
    #[test]
    fn a_removed_log_is_opened_anew_on_hup() {
        let mut lane = lane_with_log("combined");
        let log = lane.subject.log.clone().expect("it logs");
        lane.expect(&mut [], "the log", |lane, _| !log_bytes(lane).is_empty());
        std::fs::remove_file(&log).expect("the log is there");
        lane.ask(&mut Vec::new(), GOOD, 200);
        lane.subject.signal(rustix::process::Signal::HUP);
        lane.expect(&mut [], "a new file", |_, _| log.exists());
        lane.ask(&mut Vec::new(), GOOD, 200);
        lane.expect(&mut [], "a line in it", |lane, _| log_bytes(lane).ends_with(b"\n"));
    }

    /// N08: a reader that has stalled.
    #[test]
    fn a_stalled_log_pipe_stops_nothing() {
        let pipe = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("log-pipe-{}", std::process::id()));
        let _ = std::fs::remove_file(&pipe);
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.is_ok_and(|status| status.success()), "mkfifo");
        let mut open = std::fs::OpenOptions::new();
        let nonblocking = rustix::fs::OFlags::NONBLOCK.bits() as i32;
        let _reader = open.read(true).custom_flags(nonblocking).open(&pipe).expect("a pipe can be opened to read");
        let setup = Setup { log_path: Some(pipe.display().to_string()), ..Setup::default() };
        let mut lane = start_lane(Kind::Larder, &setup);
        let answer = notation::read("{A}", &lane.names).expect("a macro");
        lane.origin.begin(Behaviour { answers: vec![answer], ..Behaviour::default() });
        // Far more lines than a pipe and any sensible buffer hold.
        for _ in 0..8 {
            let mut clients = [lane.connect("{GET /hot HTTP/1.1¶Host: t.test¶User-Agent: {x*900}¶¶*4000}")];
            lane.expect(&mut clients, "4,000 answers", |_, clients| {
                clients[0].received.windows(10).filter(|window| window == b"\r\n\r\nstored").count() == 4_000
            });
        }
        lane.expect(&mut [], "lost lines that are counted", |lane, _| {
            lane.subject.metric("larder_log_lines_lost_total").is_some_and(|lost| lost > 0.0)
        });
        let _ = std::fs::remove_file(&pipe);
    }
}
