//! Faults of the process and the machine: few file descriptors, reloads under load, signals, a closed standard
//! output. Each test stands for one row of spec/bad-input/nx.toml.

#[cfg(test)]
mod tests {
    use rustix::process::Signal;

    use crate::bad_input::start_lane;
    use crate::lane::Lane;
    use crate::notation;
    use crate::raw_client::{Client, End};
    use crate::recording_origin::Behaviour;
    use crate::subject::{Kind, Setup, larder_config};

    const GOOD: &str = "GET /good HTTP/1.1¶Host: t.test¶¶";

    fn answers(lane: &mut Lane, text: &str) {
        let answer = notation::read(text, &lane.names).unwrap_or_else(|error| panic!("{error}"));
        lane.origin.begin(Behaviour { answers: vec![answer], ..Behaviour::default() });
    }

    fn is_done(client: &Client) -> bool {
        client.end.is_some() || client.received.ends_with(b"stored") || client.received.ends_with(b"GET /good\n")
    }

    /// X05: more clients than descriptors. Nobody spins, those inside are served, and all is well afterwards.
    #[test]
    fn few_file_descriptors_refuse_and_do_not_spin() {
        let setup = Setup { shell: "ulimit -n 64;".into(), ..Setup::default() };
        let mut lane = start_lane(Kind::Larder, &setup);
        answers(&mut lane, "{A}");
        let mut clients: Vec<_> = (0..120).map(|_| lane.connect("GET /hot HTTP/1.1¶Host: t.test¶¶")).collect();
        // To settle at all, it must not spin on an accept that fails.
        lane.expect(&mut clients, "answers for those inside", |_, clients| {
            clients.iter().filter(|client| is_done(client)).count() >= 10
        });
        for client in &clients {
            let text = String::from_utf8_lossy(&client.received);
            assert!(["", "HTTP/1.1 200", "HTTP/1.1 503"].iter().any(|start| text.starts_with(start)), "{text}");
        }
        let served = clients.iter().filter(|client| client.received.ends_with(b"stored")).count();
        println!("64 descriptors: {served} of 120 served at once");
        assert!(served >= 10, "{served} are served");
        clients.iter_mut().for_each(Client::close);
        lane.ask(&mut Vec::new(), GOOD, 200);
        assert!(lane.subject.is_alive());
        assert_eq!(lane.subject.metric("larder_panics_total"), Some(0.0));
    }

    /// X06: a hundred reloads, every second one broken, under a keep-alive connection and new ones.
    #[test]
    fn reloads_under_load_lose_no_request() {
        let mut lane = start_lane(Kind::Larder, &Setup::default());
        let mut steady = vec![lane.connect("")];
        for round in 0..100 {
            let setup = match round % 2 {
                0 => {
                    let extra = format!("[[route]]\npath = \"/round{round}\"\norigin = \"refused\"\n");
                    Setup { extra, ..Setup::default() }
                }
                _ => Setup { limits: "no_such_limit = 1\n".into(), ..Setup::default() },
            };
            let config = larder_config(lane.origin.address(), &setup, None);
            let config = config.replace("64MiB", &format!("{}MiB", 64 + round));
            std::fs::write(&lane.subject.config, config).expect("the configuration can be written");
            lane.subject.signal(Signal::HUP);
            steady[0].received.clear();
            steady[0].say(notation::read(GOOD, &lane.names).expect("a request"));
            lane.expect(&mut steady, "an answer on the steady connection", |_, clients| {
                assert_eq!(clients[0].end, None, "round {round}: the steady connection was closed");
                clients[0].received.ends_with(b"GET /good\n")
            });
            lane.ask(&mut steady, GOOD, 200);
        }
        // The last good one is in force, and the last broken one was refused with its place.
        let route = "GET /round98/x HTTP/1.1¶Host: t.test¶¶";
        let mut asked = Vec::new();
        lane.expect(&mut asked, "the last good configuration", |lane, _| {
            lane.origin.begin(Behaviour::default());
            let client = lane.connect(route);
            let mut clients = [client];
            lane.wait_until(&mut clients, 1_000, |_, clients| clients[0].received.ends_with(b"\n"));
            clients[0].received.starts_with(b"HTTP/1.1 502")
        });
        let said = std::fs::read_to_string(lane.subject.directory.join("stderr")).unwrap_or_default();
        assert!(said.contains("no_such_limit"), "nothing was said about the broken one: {said}");
        assert!(lane.subject.is_alive());
    }

    /// X10: what is in flight is finished after TERM; a second TERM ends at once; PIPE is nothing.
    #[test]
    fn signals_do_what_is_said() {
        let mut lane = start_lane(Kind::Larder, &Setup::default());
        lane.subject.signal(Signal::PIPE);
        lane.ask(&mut Vec::new(), GOOD, 200);

        answers(&mut lane, "{wait}{wait}{U}Content-Length: 1000000¶¶{a*500000}{wait}{a*500000}");
        let mut clients = vec![lane.connect("GET /slow HTTP/1.1¶Host: t.test¶¶")];
        lane.wait_until(&mut clients, 0, |_, _| true);
        lane.subject.signal(Signal::TERM);
        lane.expect(&mut clients, "the answer that was in flight", |_, clients| clients[0].end == Some(End::Fin));
        let read = crate::answer_stream::read(&clients[0].received, &[], clients[0].end).expect("an answer");
        assert!(read.answers.first().is_some_and(|a| a.complete && a.body.len() == 1_000_000), "the answer was cut");
        lane.expect(&mut [], "the end of the process", |lane, _| !lane.subject.is_alive());
        assert_eq!(lane.subject.exit_code(), Some(0));

        let mut lane = start_lane(Kind::Larder, &Setup::default());
        answers(&mut lane, "");
        let mut clients = vec![lane.connect("GET /never HTTP/1.1¶Host: t.test¶¶")];
        lane.expect(&mut clients, "the request at the origin", |lane, _| !lane.origin.seen.is_empty());
        lane.subject.signal(Signal::TERM);
        lane.expect(&mut clients, "the drain", |lane, _| {
            Client::connect(lane.subject.address, Default::default()).is_err()
        });
        assert!(lane.subject.is_alive(), "it did not wait for what is in flight");
        lane.subject.signal(Signal::TERM);
        lane.expect(&mut clients, "the end of the process", |lane, _| !lane.subject.is_alive());
    }

    /// An exchange that could not drain a body says so, and the report of a run has a name of its own.
    #[test]
    fn a_run_that_ends_leaves_what_it_did() {
        let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("edges-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("the target folder can be written");
        let shell = format!("export LARDER_EDGES_DIR='{}';", folder.display());
        let setup = Setup { shell, limits: "linger_timeout = \"1s\"\n".into(), ..Setup::default() };
        let mut lane = start_lane(Kind::Larder, &setup);
        let mut clients = vec![lane.connect("PURGE /x HTTP/1.1¶Host: t.test¶Content-Length: 10¶¶half{wait}")];
        lane.expect(&mut clients, "the end of the drain", |_, clients| clients[0].end.is_some());
        assert!(clients[0].received.starts_with(b"HTTP/1.1 403 "), "{}", notation::show(&clients[0].received, 200));
        let pid = lane.subject.pid().expect("it is a process");
        lane.subject.signal(Signal::TERM);
        lane.expect(&mut [], "the end of the process", |lane, _| !lane.subject.is_alive());
        let files: Vec<_> = std::fs::read_dir(&folder).expect("it is there").flatten().map(|it| it.path()).collect();
        let [file] = &files[..] else { panic!("{files:?}") };
        let name = file.file_stem().expect("it has a name").to_string_lossy().into_owned();
        let rest = name.strip_prefix(&format!("edges-{pid}-")).unwrap_or_else(|| panic!("{name}"));
        assert!(rest.parse::<u64>().is_ok(), "{name} has no time");
        let text = std::fs::read_to_string(file).expect("it was written");
        assert!(text.contains("exchange\tBody/Done CloseWanted\tBody/Done\t1\n"), "{text}");
        let _ = std::fs::remove_dir_all(&folder);
    }

    /// X10: nobody reads what it says.
    #[test]
    fn a_closed_standard_output_stops_nothing() {
        for shell in ["exec >&-;", "exec >&- 2>&-;", "exec <&-;"] {
            let setup = Setup { shell: shell.into(), log_path: Some("-".into()), ..Setup::default() };
            let mut lane = start_lane(Kind::Larder, &setup);
            for _ in 0..20 {
                lane.ask(&mut Vec::new(), GOOD, 200);
            }
            assert!(lane.subject.is_alive(), "{shell}");
        }
    }
}
