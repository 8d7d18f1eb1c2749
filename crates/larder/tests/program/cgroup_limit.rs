//! larder in a control group with less memory than `[memory] size`: `larder check` and the start say so, and where the kernel ends the
//! serving process for it, another one serves.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use crate::peer_process::wait_long;
use crate::supervised_larder::{HeldOrigin, SupervisedLarder};

/// A group for the memory of what is started in it. It goes with this.
struct Group(PathBuf);

impl Group {
    /// Of either hierarchy, whichever the machine has.
    fn with_mib(name: &str, mib: u64) -> Option<Group> {
        let places = [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")];
        let made = places.into_iter().find_map(|(place, file)| {
            let folder = Path::new(place).join(format!("larder-{name}-{}", std::process::id()));
            std::fs::create_dir(&folder).ok()?;
            let group = Group(folder);
            // A folder of any other file system would take the files as its own.
            let is_group = group.0.join("cgroup.procs").exists();
            let is_bounded = is_group && std::fs::write(group.0.join(file), format!("{}", mib << 20)).is_ok();
            // Else it would swap. Not every kernel counts that.
            let swaps = [("memory.swap.max", 0), ("memory.memsw.limit_in_bytes", mib << 20)];
            for (file, bytes) in swaps.into_iter().filter(|_| is_bounded) {
                let _ = std::fs::OpenOptions::new()
                    .write(true)
                    .open(group.0.join(file))
                    .and_then(|mut file| write!(file, "{bytes}"));
            }
            is_bounded.then_some(group)
        });
        if made.is_none() {
            println!("not run: no control group for memory can be made here");
        }
        made
    }

    /// A shell command by which it is entered.
    fn enter(&self) -> String {
        format!("echo $$ > {}/cgroup.procs;", self.0.display())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Busy as long as a process in it is not gone.
        let is_gone = (0..500).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            std::fs::remove_dir(&self.0).is_ok()
        });
        if !is_gone {
            println!("{} stays", self.0.display());
        }
    }
}

fn check(group: &Group, folder: &Path, text: &str) -> String {
    std::fs::write(folder.join("larder.toml"), text).expect("the target folder can be written");
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{} exec \"$0\" check larder.toml", group.enter()), env!("CARGO_BIN_EXE_larder")]);
    let Output { stdout, stderr, status } = shell.current_dir(folder).output().expect("larder can be started");
    assert!(status.success(), "a warning is no error");
    String::from_utf8([stderr, stdout].concat()).expect("it is text")
}

#[test]
fn a_size_beyond_the_control_group_is_said_with_what_fits() {
    let Some(group) = Group::with_mib("check", 128) else { return };
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cgroup-check");
    std::fs::create_dir_all(&folder).expect("the target folder can be written");
    let text =
        |size: &str| format!("workers = 1\n[[route]]\nrespond = {{ status = 200 }}\n[memory]\nsize = \"{size}\"\n");
    let said = check(&group, &folder, &text("256MiB"));
    let place = group.0.display();
    assert!(said.contains("warning: [memory] size is 256 MiB, with which larder takes up to 288 MiB, but its control group may have 128 MiB"), "{said}");
    assert!(said.contains(&format!("({place}/memory.")), "{said}");
    assert!(said.contains("= help: write size = \"85MiB\", or raise that limit (MemoryMax= of a unit"), "{said}");
    let said = check(&group, &folder, &text("85MiB"));
    assert!(!said.contains("control group"), "{said}");
}

#[test]
fn a_serving_process_that_the_kernel_ends_for_its_memory_is_replaced() {
    let Some(group) = Group::with_mib("oom", 56) else { return };
    let origin = HeldOrigin::start();
    let larder = SupervisedLarder::start_behind("oom", &origin, "", &group.enter());
    larder.get("/kept").expect("it serves");
    let said = larder.said();
    assert_eq!(said.matches("but its control group may have 56 MiB").count(), 1, "{said}");
    let first = larder.serving();
    let mut page = 0;
    wait_long("the kernel has ended the serving process", || {
        page += 1;
        // Nobody answers in the moment in which there is none.
        let _ = larder.get(&format!("/large{page}"));
        !larder.serving().is_empty() && larder.serving() != first
    });
    wait_long("another one serves", || larder.get("/kept").is_ok_and(|answer| answer.starts_with("HTTP/1.1 200 ")));
    println!("{page} pages of 100 kB; {}", larder.said());
    let said = larder.said();
    assert!(said.contains("was ended by signal 9"), "{said}");
    let mut curl = Command::new("curl");
    curl.args(["-s", "--unix-socket"]).arg(larder.folder.join("admin.sock")).arg("http://localhost/metrics");
    let metrics = String::from_utf8(curl.output().expect("curl is there").stdout).expect("it is text");
    assert!(metrics.contains("\nlarder_serving_process_deaths_total 1\n"), "{metrics}");
    assert_eq!(larder.end(), Some(0));
}
