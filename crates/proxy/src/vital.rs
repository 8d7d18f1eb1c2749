//! Parts without which the process cannot serve: where one of them ends in a panic, the process ends, and who started it starts it again.
//!
//! A thread that is gone, or a task that a runtime has caught, would leave a larder that answers in part and says nothing about it: no
//! names looked up, no connections accepted, no memory watched. What serves one client alone is no such part: its panic costs that exchange.
//! What was said and counted of the panic is `larder`'s.

use std::io;
use std::thread::{self, JoinHandle};

use crate::stderr_line::complain;

/// As long as it lives, a panic that unwinds through it ends the process.
#[derive(Debug)]
pub struct Vital(&'static str);

impl Vital {
    /// `what`: as the operator reads it.
    pub fn part(what: &'static str) -> Vital {
        Vital(what)
    }
}

impl Drop for Vital {
    fn drop(&mut self) {
        if thread::panicking() {
            // The panic itself is said already.
            complain(format_args!("error: {} has ended in a panic; the process ends", self.0));
            std::process::abort();
        }
    }
}

/// A thread that is such a part.
pub fn vital_thread<T: Send + 'static>(
    name: impl Into<String>,
    what: &'static str,
    run: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    thread::Builder::new().name(name.into()).spawn(move || {
        let _vital = Vital::part(what);
        run()
    })
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn what_ends_well_is_joined() {
        let thread = vital_thread("seven", "what counts to seven", || 7).expect("a thread");
        assert_eq!(thread.join().expect("no panic"), 7);
    }

    /// Run by the test below, in a process of its own.
    #[test]
    #[ignore = "it ends its process"]
    fn a_vital_thread_panics() {
        let thread = vital_thread("lost", "what looks up names", || panic!("a defect")).expect("a thread");
        let _: Result<(), _> = thread.join();
        println!("the process lives");
    }

    /// A runtime catches the panic of a task.
    #[test]
    #[ignore = "it ends its process"]
    fn a_vital_task_panics() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let task = runtime.spawn(async {
            let _vital = Vital::part("what looks up names");
            panic!("a defect");
        });
        let _: Result<(), _> = runtime.block_on(task);
        println!("the process lives");
    }

    #[test]
    fn a_panic_in_one_ends_the_process_and_says_which() {
        for test in ["a_vital_thread_panics", "a_vital_task_panics"] {
            let mut command = Command::new(std::env::current_exe().expect("this program"));
            command.args(["--exact", &format!("vital::tests::{test}"), "--ignored", "--nocapture"]);
            let output = command.output().expect("it can be started");
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(said.contains("what looks up names has ended in a panic; the process ends"), "{test}: {said}");
            assert!(!String::from_utf8_lossy(&output.stdout).contains("the process lives"), "{test}");
            assert_eq!(output.status.code(), None, "a signal ends it");
        }
    }
}
