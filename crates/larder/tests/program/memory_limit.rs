//! The memory limit of the whole process under a load that wants more: first the store gives, then connections are
//! refused, and larder goes on. What the kernel says of the process is held against the line.

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::TcpStream;

    use crate::bad_input::start_lane;
    use crate::lane::{Lane, now_ms};
    use crate::notation;
    use crate::raw_client::Client;
    use crate::recording_origin::Behaviour;
    use crate::subject::{Kind, Setup};

    const MIB: f64 = 1_048_576.0;
    /// Until the program has looked at its memory again, and again.
    const LOOKS_MS: u64 = 60_000;

    fn lane_of(memory: &'static str, answer: &str) -> Lane {
        let mut lane = start_lane(Kind::Larder, &Setup { memory: Some(memory), ..Setup::default() });
        let answers = vec![notation::read(answer, &lane.names).expect("an answer")];
        lane.origin.begin(Behaviour { answers, ..Behaviour::default() });
        lane
    }

    fn figure(lane: &Lane, name: &str) -> f64 {
        lane.subject.metric(&format!("larder_{name}")).expect("a metric")
    }

    /// What may never be crossed, and the most that was resident so far, without the file in memory.
    fn line_and_peak(lane: &Lane) -> (f64, f64) {
        let line = figure(lane, "memory_limit_bytes") + figure(lane, "memory_base_bytes");
        (line, lane.subject.process_number("VmHWM") as f64 * 1024.0)
    }

    #[test]
    fn what_connections_hold_the_store_gives_up() {
        let mut lane = lane_of("16MiB", "{H}Content-Length: 250000¶¶{a*250000}");
        for number in 0..80 {
            lane.ask(&mut Vec::new(), &format!("GET /page{number} HTTP/1.1¶Host: t.test¶¶"), 200);
        }
        let (objects, held) = (figure(&lane, "objects"), figure(&lane, "memory_used_bytes"));
        assert!(held > 12.0 * MIB && objects > 48.0, "{objects} objects and {held} bytes");
        // Heads without an end.
        let head = "GET / HTTP/1.1¶Host: t.test¶X-Long: {a*8000}¶X-Longer: {a*8000}¶X-More: {a*8000}";
        let mut clients: Vec<Client> = (0..140).map(|_| lane.connect(head)).collect();
        lane.expect(&mut clients, "room made for the heads", |lane, _| {
            figure(lane, "objects") < objects - 8.0 && figure(lane, "connections_reading") == 140.0
        });
        assert!(figure(&lane, "memory_used_bytes") <= 16.0 * MIB);
        assert_eq!(figure(&lane, "connections_refused_total"), 0.0);
        clients.iter_mut().for_each(Client::close);
        lane.ask(&mut Vec::new(), "GET /page79 HTTP/1.1¶Host: t.test¶¶", 200);
    }

    /// Clients that ask for something and take nothing of it, or send no more, until something happens.
    fn crowd(lane: &mut Lane, request: impl Fn(usize) -> String, most: usize, until: &str) -> Vec<TcpStream> {
        let mut crowd: Vec<TcpStream> = Vec::new();
        let deadline_ms = now_ms() + LOOKS_MS;
        while figure(lane, until) == 0.0 {
            assert!(now_ms() < deadline_ms && crowd.len() < most, "{} clients, and {until} is 0", crowd.len());
            for _ in 0..5 {
                let mut client = TcpStream::connect(lane.subject.address).expect("the program listens");
                // Who is refused may be closed already.
                let _ = client.write_all(request(crowd.len()).as_bytes());
                crowd.push(client);
            }
            lane.wait_until(&mut [], 50, |_, _| false);
        }
        println!("{} clients, {} MiB", crowd.len(), figure(lane, "memory_occupied_bytes") / MIB);
        let (line, peak) = line_and_peak(lane);
        assert!(peak < line, "{peak} bytes were resident, the line is {line}");
        crowd
    }

    #[test]
    fn at_its_limit_it_refuses_connections_and_lives() {
        let mut lane = lane_of("16MiB", "HTTP/1.1 200 OK¶Cache-Control: no-store¶Content-Length: 5¶¶early");
        let mut early = vec![lane.connect("GET /early HTTP/1.1¶Host: t.test¶¶")];
        lane.expect(&mut early, "the first answer", |_, early| early[0].received.ends_with(b"early"));
        // Nothing of them can be cut: their bodies are still to come.
        let request =
            |number| format!("POST /{number} HTTP/1.1\r\nHost: t.test\r\nContent-Length: 9\r\n\r\n{}", "a".repeat(8));
        let waiting = crowd(&mut lane, request, 2_000, "connections_refused_memory_total");
        assert_eq!(figure(&lane, "answers_cut_memory_total"), 0.0);
        lane.expect(&mut early, "a line that says so", |lane, _| {
            lane.subject.errors().contains("new connections are refused")
        });
        // Who waited for nothing made way.
        lane.expect(&mut early, "the end of the longest idle", |_, early| early[0].end.is_some());
        drop(waiting);
        lane.expect(&mut [], "room for connections", |lane, _| figure(lane, "memory_refuses") == 0.0);
        lane.ask(&mut Vec::new(), "GET /again HTTP/1.1¶Host: t.test¶¶", 200);
        let (line, peak) = line_and_peak(&lane);
        assert!(peak < line && lane.subject.is_alive(), "{peak} bytes were resident, the line is {line}");
    }

    #[test]
    fn answers_to_clients_that_take_nothing_are_cut_before_anybody_is_refused() {
        let setup = Setup { memory: Some("16MiB"), log_format: Some("combined"), ..Setup::default() };
        let mut lane = start_lane(Kind::Larder, &setup);
        let answer = "HTTP/1.1 200 OK¶Cache-Control: no-store¶Content-Length: 900000¶¶{a*900000}";
        let answers = vec![notation::read(answer, &lane.names).expect("an answer")];
        lane.origin.begin(Behaviour { answers, ..Behaviour::default() });
        // Each holds what larder has read ahead of it.
        let request = |number| format!("GET /deaf{number} HTTP/1.1\r\nHost: t.test\r\n\r\n");
        let deaf = crowd(&mut lane, request, 800, "answers_cut_memory_total");
        let more: Vec<TcpStream> = (0..40)
            .map(|number| {
                let mut client = TcpStream::connect(lane.subject.address).expect("the program listens");
                let _ = client.write_all(request(deaf.len() + number).as_bytes());
                client
            })
            .collect();
        lane.ask(&mut Vec::new(), "GET /taken HTTP/1.1¶Host: t.test¶¶", 200);
        assert_eq!((figure(&lane, "connections_refused_memory_total"), figure(&lane, "memory_refuses")), (0.0, 0.0));
        lane.expect(&mut [], "lines that say so", |lane, _| {
            let log = lane.subject.log.as_ref().and_then(|path| std::fs::read_to_string(path).ok());
            lane.subject.errors().contains("answers were cut") && log.is_some_and(|log| log.contains(" memory-cut"))
        });
        drop((deaf, more));
        let (line, peak) = line_and_peak(&lane);
        assert!(peak < line && lane.subject.is_alive(), "{peak} bytes were resident, the line is {line}");
    }
}
