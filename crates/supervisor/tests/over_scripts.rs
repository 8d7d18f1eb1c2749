//! A supervisor above processes that say and do what a script of the test says: each word is one datagram on their standard input, which a
//! shell can write and read. Signals are the process's, so the tests take turns.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, getpid, kill_process};
use supervisor::{KeptSockets, Program, SERVING_FLAG, Surroundings};

static TURN: Mutex<()> = Mutex::new(());

/// What is said by a version that no supervisor becomes: the test's own process would be gone.
const READY: &str = "printf 'ready 2' >&0\n";
/// The first word that it is told, without what may stand before it.
const BEGIN: &str = "echo \"$n $(dd bs=8192 count=1 2>/dev/null)\" >>\"$dir/heard\"\n";
const STAY: &str = "exec sleep 60\n";

struct Stage {
    folder: PathBuf,
    said: Mutex<Vec<String>>,
    notified: Mutex<Vec<String>>,
    _turn: MutexGuard<'static, ()>,
}

impl Surroundings for Stage {
    fn now(&self) -> Duration {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
    }

    fn say(&self, sentence: &str) {
        self.said.lock().unwrap().push(sentence.to_owned());
    }

    fn date(&self) -> String {
        "2026-11-30".to_owned()
    }

    fn notify(&self, datagram: &str) {
        self.notified.lock().unwrap().push(datagram.to_owned());
    }

    fn beat(&self) {
        self.notify("beat");
    }
}

impl Stage {
    /// The first process that is started runs the first script, the second the second …
    fn new(name: &str, scripts: &[&str]) -> Stage {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("scripts-{name}"));
        let _ = std::fs::remove_dir_all(&folder); // it may not be there
        std::fs::create_dir_all(&folder).expect("the target folder can be written");
        for (at, script) in scripts.iter().enumerate() {
            std::fs::write(folder.join(format!("child.{}", at + 1)), script).expect("a script");
        }
        let dir = folder.display();
        let text = format!(
            "#!/bin/sh\ndir='{dir}'\nn=$(($(cat \"$dir/count\" 2>/dev/null || echo 0) + 1))\necho $n >\"$dir/count\"\n\
             echo $$ >\"$dir/pid.$n\"\n. \"$dir/child.$n\"\n"
        );
        let program = folder.join("program");
        std::fs::write(&program, text).expect("a script");
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).expect("it may be started");
        Stage { folder, said: Mutex::default(), notified: Mutex::default(), _turn: turn }
    }

    /// Supervises while `act` does something about it; TERM ends it.
    fn supervise(&self, act: impl FnOnce() + Send) -> u8 {
        let program = Program {
            path: self.folder.join("program"),
            running: self.folder.join("program"),
            arguments: vec![OsString::from("x")],
        };
        std::thread::scope(|scope| {
            scope.spawn(act);
            supervisor::supervise(&program, KeptSockets::default(), self).expect("it goes on")
        })
    }

    fn has_said(&self, part: &str) -> bool {
        self.said.lock().unwrap().iter().any(|sentence| sentence.contains(part))
    }

    fn wait_for(&self, what: &str, is_met: impl Fn() -> bool) {
        for _ in 0..4_000 {
            if is_met() {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("never: {what}: {:?}", self.said.lock().unwrap());
    }

    fn file(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.join(name)).unwrap_or_default()
    }

    fn process(&self, number: u32) -> Pid {
        self.wait_for("it is started", || self.file(&format!("pid.{number}")).ends_with('\n'));
        self.file(&format!("pid.{number}")).trim().parse().ok().and_then(Pid::from_raw).expect("a number")
    }

    fn end(&self) {
        kill_process(getpid(), Signal::TERM).expect("it is this process");
    }
}

#[test]
fn one_that_never_serves_ends_it_with_its_code() {
    let stage = Stage::new("never", &["echo \"$@\" >\"$dir/arguments\"\nexit 7\n"]);
    assert_eq!(stage.supervise(|| {}), 7);
    assert_eq!(stage.file("arguments"), format!("x {SERVING_FLAG}\n"));
}

#[test]
fn one_that_dies_is_started_again_and_told_so() {
    // Of so many words the last are still unheard when it is dead.
    let dies = format!(
        "{BEGIN}{READY}i=0; while [ $i -lt 200 ]; do printf 'alive 30' >&0; i=$((i+1)); done\nprintf 'report a defect' >&0\nexit 3\n"
    );
    let stays = format!("{BEGIN}{BEGIN}{BEGIN}{READY}printf 'alive 30' >&0\nprintf 'notify READY=1' >&0\n{STAY}");
    let stage = Stage::new("dies", &[&dies, &stays]);
    let code = stage.supervise(|| {
        stage.wait_for("the second one is heard", || stage.notified.lock().unwrap().contains(&"READY=1".to_owned()));
        stage.end();
    });
    assert_eq!(code, 128 + 15, "sleep knows no other end");
    let (heard, pid) = (stage.file("heard"), stage.process(1).as_raw_pid());
    let until = format!(
        "1 begin 1 0\n2 reported a defect\n2 reported 2026-11-30 the serving process {pid} ended with code 3 after "
    );
    assert!(heard.starts_with(&until) && heard.ends_with(" s\n2 begin 1 1\n"), "{heard}");
    assert!(stage.has_said("ended with code 3; another one is started"));
    let notified = stage.notified.lock().unwrap();
    assert_eq!((notified.first(), notified.last()), (Some(&"beat".to_owned()), Some(&"READY=1".to_owned())));
}

#[test]
fn an_upgrade_whose_process_dies_changes_nothing() {
    let serves = format!("{BEGIN}{READY}printf upgrade >&0\n{BEGIN}{BEGIN}{STAY}");
    let stage = Stage::new("verdict", &[&serves, &format!("{BEGIN}exit 4\n")]);
    stage.supervise(|| {
        stage.wait_for("the first one hears of it", || stage.file("heard").contains("1 verdict"));
        stage.end();
    });
    assert!(stage.file("heard").contains("1 heir") && stage.file("heard").contains("2 begin 1 0 beside"));
    assert!(stage.has_said("ended with code 4 before it served; the one that serves goes on"));
    assert_eq!(stage.file("count").trim(), "2", "nobody else was started");
}

#[test]
fn the_next_one_serves_and_the_former_is_told() {
    let former = format!("{BEGIN}{READY}printf upgrade >&0\n{BEGIN}printf 'leaving 30' >&0\n{BEGIN}exit 0\n");
    let next = format!("{BEGIN}sleep 0.2\n{READY}{BEGIN}{STAY}");
    let stage = Stage::new("next", &[&former, &next]);
    stage.supervise(|| {
        stage.wait_for("the next one is alone", || stage.file("heard").contains("2 alone"));
        stage.end();
    });
    let process = stage.process(2).as_raw_pid();
    assert!(stage.file("heard").contains(&format!("1 succeeded {process}")), "{}", stage.file("heard"));
    assert_eq!(stage.file("count").trim(), "2");
}

/// The former one has let go of everything already, and lives on for those who are still with it.
#[test]
fn somebody_serves_where_the_next_one_dies_behind_the_hand_over() {
    let former = format!("{BEGIN}{READY}printf upgrade >&0\n{BEGIN}printf 'leaving 30' >&0\n{STAY}");
    let dies = format!("{BEGIN}sleep 0.5\nexit 5\n");
    let stage = Stage::new("gap", &[&former, &dies, &format!("{BEGIN}{READY}{STAY}")]);
    stage.supervise(|| {
        stage.wait_for("a third one is told to begin", || stage.file("heard").contains("3 begin 1 0 beside"));
        stage.end();
    });
    assert!(stage.has_said("the former version is started again"));
}

/// It says that it lets go only when the next one is dead: nobody is left, and somebody has to be.
#[test]
fn somebody_serves_where_the_former_lets_go_too_late() {
    let former = format!("{BEGIN}{READY}printf upgrade >&0\n{BEGIN}{BEGIN}printf 'leaving 30' >&0\n{STAY}");
    let stage = Stage::new("late", &[&former, &format!("{BEGIN}exit 5\n"), &format!("{BEGIN}{READY}{STAY}")]);
    stage.supervise(|| {
        stage.wait_for("a third one is told to begin", || stage.file("heard").contains("3 begin"));
        stage.end();
    });
}

#[test]
fn the_next_one_takes_the_place_of_a_former_that_is_killed() {
    let former = format!("{BEGIN}{READY}printf upgrade >&0\n{STAY}");
    let next = format!("{BEGIN}sleep 0.5\n{READY}printf 'notify READY=1' >&0\n{STAY}");
    let stage = Stage::new("killed", &[&former, &next]);
    stage.supervise(|| {
        stage.process(2);
        kill_process(stage.process(1), Signal::KILL).expect("it runs");
        stage.wait_for("it serves", || stage.notified.lock().unwrap().contains(&"READY=1".to_owned()));
        stage.end();
    });
    assert!(stage.has_said("the next one takes its place"));
    assert_eq!(stage.file("count").trim(), "2", "one is enough");
}

#[test]
fn one_that_goes_round_no_more_is_ended_and_another_one_started() {
    let hangs = format!("{BEGIN}{READY}printf 'alive 0' >&0\n{STAY}");
    let stage = Stage::new("hangs", &[&hangs, &format!("{BEGIN}{READY}printf 'notify READY=1' >&0\n{STAY}")]);
    stage.supervise(|| {
        stage.wait_for("another one serves", || stage.notified.lock().unwrap().contains(&"READY=1".to_owned()));
        stage.end();
    });
    assert!(stage.has_said("does not go round any more, and is ended"));
    assert!(stage.has_said("was ended by signal 6"));
}
