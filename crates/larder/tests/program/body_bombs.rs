//! Row N05 of the bad inputs: bodies that become many times what they are, or are not what they say, before a program that decodes them.
//! What comes of them ends at the limit, the log says why, and the process does not grow.

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::atomic::{AtomicU32, Ordering};

    use coding::{Coding, Encoder};

    use crate::lane::Lane;
    use crate::notation::{self, Script, Step};
    use crate::raw_client::Client;
    use crate::recording_origin::{Behaviour, RecordingOrigin};
    use crate::subject::{Kind, Setup, Subject};

    const MIB: usize = 1 << 20;
    /// What a text may become whatever its ratio (`coding::limits::DECODED_FREE_BYTES`), and what one step more is.
    const LET_BY_MAX: usize = 16 * MIB + (64 << 10);
    /// What a process may have grown by meanwhile, at its highest: the body so far, which is kept, as it comes and in blocks.
    const GROWTH_KIB_MAX: u64 = 48 << 10;

    const PROGRAM: &str = "vcl 4.1;
        backend origin { .host = \"127.0.0.1\"; .port = \"{port}\"; }
        sub vcl_backend_response {
            set beresp.ttl = 600s;
            if (bereq.url ~ \"^/in/\") { set beresp.do_gunzip = true; }
        }\n";

    /// Behind a program that decodes what comes beneath /in/; what else is gzip it keeps, and decodes for who does not take it.
    fn lane() -> Lane {
        static PROGRAMS_COUNT: AtomicU32 = AtomicU32::new(0);
        let origin = RecordingOrigin::start();
        let number = PROGRAMS_COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("bombs-{}-{number}.vcl", std::process::id());
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let port = origin.address().port().to_string();
        std::fs::write(&file, PROGRAM.replace("{port}", &port)).expect("the target folder can be written");
        let policy = format!("vcl = \"{}\"\n", file.display());
        let setup = Setup { policy, log_format: Some("json"), ..Setup::default() };
        let subject = Subject::start(Kind::Larder, origin.address(), &setup);
        std::fs::remove_file(file).expect("it was written");
        Lane::new(subject, origin)
    }

    /// The origin answers so from now on.
    fn answers(lane: &mut Lane, coding: &str, body: &[u8]) {
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Encoding: {coding}\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let answer = Script::from([Step::Bytes([head.as_bytes(), body].concat())]);
        lane.origin.begin(Behaviour { answers: vec![answer], ..Behaviour::default() });
    }

    fn coded(coding: Coding, text: &[u8]) -> Vec<u8> {
        let (mut encoder, mut out) = (Encoder::new(coding, 5).expect("there is memory"), Vec::new());
        encoder.encode(text, &mut out).expect("a text can be coded");
        encoder.finish(&mut out).expect("a text can be ended");
        out
    }

    /// So many MiB of zeros, from a MiB and what it is behind another.
    fn bomb(coding: Coding, mebibytes: usize) -> Vec<u8> {
        let (mut encoder, zeros) = (Encoder::new(coding, 9).expect("there is memory"), vec![0; MIB]);
        let mut parts = [Vec::new(), Vec::new()];
        for part in &mut parts {
            encoder.encode(&zeros, part).expect("a text can be coded");
            encoder.flush(part).expect("a text can be flushed");
        }
        let [first, further] = parts;
        [first, further.repeat(mebibytes - 1)].concat()
    }

    /// What of an answer came of a body that ended early: without its framing, and zeros for the most part.
    fn zeros_count(client: &Client) -> usize {
        client.received.iter().filter(|byte| **byte == 0).count()
    }

    fn is_cut(client: &Client) -> bool {
        client.end.is_some() && !client.received.ends_with(b"\r\n0\r\n\r\n")
    }

    fn log(lane: &Lane) -> String {
        let path = lane.subject.log.as_ref().expect("it keeps a log");
        std::fs::read_to_string(path).unwrap_or_default()
    }

    /// Asks, and waits until the connection has ended. What of memory was resident at most meanwhile is held against the bound.
    fn ask_for_a_bomb(lane: &mut Lane, path: &str, log_says: &str) -> Client {
        // What a first answer takes is taken.
        answers(lane, "gzip", &coded(Coding::Gzip, b"hello"));
        lane.ask(&mut Vec::new(), "GET /in/small HTTP/1.1¶Host: t.test¶¶", 200);
        let objects = lane.subject.metric("larder_objects");
        let before_kib = lane.subject.process_number("VmHWM");
        let is_kept = path == "/stored";
        let body = if is_kept { coded(Coding::Gzip, &vec![0; 128 * MIB]) } else { bomb(Coding::Gzip, 10 << 10) };
        println!("{} bytes of gzip", body.len());
        answers(lane, "gzip", &body);
        drop(body);
        let mut clients = vec![lane.connect(&format!("GET {path} HTTP/1.1¶Host: t.test¶¶"))];
        lane.expect(&mut clients, "the end of the bomb's answer", |_, clients| clients[0].end.is_some());
        lane.expect(&mut [], "a line that says why", |lane, _| log(lane).contains(log_says));
        let (peak_kib, after_kib) = (lane.subject.process_number("VmHWM"), lane.subject.process_number("VmRSS"));
        println!("resident: {before_kib} KiB before, {peak_kib} at most, {after_kib} after; {}", log(lane));
        assert!(peak_kib <= before_kib + GROWTH_KIB_MAX, "from {before_kib} to {peak_kib} KiB");
        if !is_kept {
            assert_eq!(lane.subject.metric("larder_objects"), objects, "nothing of it is kept");
        }
        assert_eq!(lane.subject.metric("larder_panics_total"), Some(0.0));
        clients.pop().expect("there is one")
    }

    #[test]
    fn a_bomb_is_cut_on_its_way_in() {
        let mut lane = lane();
        let client = ask_for_a_bomb(&mut lane, "/in/bomb", "origin-body-coding");
        let count = zeros_count(&client);
        assert!(is_cut(&client) && (MIB..=LET_BY_MAX).contains(&count), "{count} zeros, {:?}", client.end);
        answers(&mut lane, "gzip", &coded(Coding::Gzip, b"well"));
        let well = lane.ask(&mut Vec::new(), "GET /in/well HTTP/1.1¶Host: t.test¶¶", 200);
        assert_eq!(well.body, b"well");
    }

    #[test]
    fn a_bomb_is_cut_on_its_way_to_a_client() {
        let mut lane = lane();
        let client = ask_for_a_bomb(&mut lane, "/stored", "\"body-coding\"");
        let count = zeros_count(&client);
        assert!(is_cut(&client) && (MIB..=LET_BY_MAX).contains(&count), "{count} zeros, {:?}", client.end);
        // Who takes it in gzip gets what the origin sent.
        let mut clients = Vec::new();
        let kept = lane.ask(&mut clients, "GET /stored HTTP/1.1¶Host: t.test¶Accept-Encoding: gzip¶¶", 200);
        assert_eq!(kept.body, coded(Coding::Gzip, &vec![0; 128 * MIB]));
    }

    #[test]
    fn bombs_that_nobody_decodes_go_by_as_they_are() {
        let mut lane = lane();
        for (coding, mebibytes) in [(Coding::Brotli, 10 << 10), (Coding::Zstd, 1 << 10)] {
            let body = bomb(coding, mebibytes);
            let before_kib = lane.subject.process_number("VmHWM");
            answers(&mut lane, coding.name(), &body);
            let path = format!("GET /in/{} HTTP/1.1¶Host: t.test¶¶", coding.name());
            let answer = lane.ask(&mut Vec::new(), &path, 200);
            assert!(answer.body == body, "{coding:?}: {} of {} bytes", answer.body.len(), body.len());
            let peak_kib = lane.subject.process_number("VmHWM");
            assert!(peak_kib <= before_kib + GROWTH_KIB_MAX, "{coding:?}: from {before_kib} to {peak_kib} KiB");
        }
    }

    #[test]
    fn gzip_in_gzip_loses_one_layer() {
        let mut lane = lane();
        let inner = coded(Coding::Gzip, &vec![0; MIB]);
        answers(&mut lane, "gzip", &coded(Coding::Gzip, &inner));
        for path in ["/in/layers", "/layers"] {
            let answer = lane.ask(&mut Vec::new(), &format!("GET {path} HTTP/1.1¶Host: t.test¶¶"), 200);
            assert!(answer.body == inner, "{path}: {}", notation::show(&answer.body, 100));
        }
    }

    #[test]
    fn a_gzip_that_is_not_one_is_never_passed_off_as_whole() {
        let mut lane = lane();
        let well = coded(Coding::Gzip, &b"a page, and a page again. ".repeat(4_000));
        let mut bad_sum = well.clone();
        bad_sum[well.len() - 5] ^= 1;
        let junk = [&well[..], b"junk"].concat();
        let faults = [("truncated", &well[..well.len() - 9]), ("sum", &bad_sum), ("junk", &junk), ("none", b"<html>")];
        for (fault, body) in faults {
            for folder in ["/in", "/kept"] {
                let objects = lane.subject.metric("larder_objects");
                answers(&mut lane, "gzip", body);
                let mut clients = vec![lane.connect(&format!("GET {folder}/{fault} HTTP/1.1¶Host: t.test¶¶"))];
                lane.expect(&mut clients, fault, |_, clients| {
                    clients[0].end.is_some() || clients[0].received.starts_with(b"HTTP/1.1 503 ")
                });
                let answer = &clients[0].received;
                assert!(
                    is_cut(&clients[0]) || answer.starts_with(b"HTTP/1.1 503 "),
                    "{folder}/{fault}: {}",
                    notation::show(answer, 200)
                );
                assert_eq!(lane.subject.metric("larder_objects"), objects, "{folder}/{fault} is not kept");
            }
        }
        lane.expect(&mut [], "a line that says why", |lane, _| log(lane).contains("\"why\":\"origin-body-coding\""));
        answers(&mut lane, "gzip", b"");
        let empty = lane.ask(&mut Vec::new(), "GET /in/empty HTTP/1.1¶Host: t.test¶¶", 200);
        assert!(empty.body.is_empty());
    }
}
