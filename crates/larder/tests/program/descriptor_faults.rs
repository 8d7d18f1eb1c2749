//! A process whose descriptors run out while it serves: who is connected goes on, it is said once with the setting, and when there are more
//! everybody is let in, without a restart.

use rustix::process::{Pid, Resource, Rlimit, prlimit};

use crate::bad_input::start_lane;
use crate::subject::{Kind, Setup};

const GOOD: &str = "GET /good HTTP/1.1¶Host: t.test¶¶";
const AGAIN: &str = "GET /good HTTP/1.1¶Host: t.test¶Connection: close¶¶";

#[test]
fn descriptors_that_run_out_are_said_once_and_nobody_is_lost_for_good() {
    let mut lane = start_lane(Kind::Larder, &Setup::default());
    let mut steady = vec![lane.connect(GOOD)];
    lane.expect(&mut steady, "an answer", |_, steady| steady[0].received.ends_with(b"GET /good\n"));
    let pid = lane.subject.pid().and_then(|pid| Pid::from_raw(pid as i32));
    let before = prlimit(pid, Resource::Nofile, rustix::process::getrlimit(Resource::Nofile)).expect("it is ours");
    let open = lane.subject.open_files_count() as u64;
    prlimit(pid, Resource::Nofile, Rlimit { current: Some(open), maximum: before.maximum }).expect("it is ours");
    // More than the pauses between two attempts let in.
    let mut waiting: Vec<_> = (0..20).map(|_| lane.connect(AGAIN)).collect();
    lane.expect(&mut waiting, "it is said", |lane, _| lane.subject.errors().contains("Too many open files"));
    prlimit(pid, Resource::Nofile, before).expect("it is ours");
    lane.expect(&mut waiting, "an answer for everybody", |_, waiting| {
        waiting.iter().all(|client| client.received.ends_with(b"GET /good\n"))
    });
    let said = std::fs::read_to_string(lane.subject.directory.join("stderr")).expect("it is there");
    let line = "new connections wait, and the longest idle ones end for them: Too many open files (os error 24) \
                (LimitNOFILE= of a unit, ulimit -n, or a smaller limits.connections_max)";
    assert_eq!(said.matches(line).count(), 1, "{said}");
    assert!(lane.subject.metric("larder_connections_refused_total").is_some_and(|refused| refused > 0.0));
    assert!(lane.subject.is_alive());
}
