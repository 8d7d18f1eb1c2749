//! `larder check` by the real program: what of a good file would fail on this machine, with what, where, and which setting; and the
//! exit code that says so.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::peer_process::{Running, free_address, wait_until_it_listens};

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("machine-checks-{name}"));
    let _ = std::fs::remove_dir_all(&folder); // it may not be there
    std::fs::create_dir_all(&folder).expect("the target folder can be written");
    folder
}

/// `larder check` of this text with these words before its name, in the folder.
fn check(folder: &Path, words: &[&str], text: &str) -> (Option<i32>, String) {
    std::fs::write(folder.join("larder.toml"), text).expect("the target folder can be written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
    let output = command.arg("check").args(words).arg("larder.toml").current_dir(folder).output();
    said(output.expect("larder can be started"))
}

fn said(output: Output) -> (Option<i32>, String) {
    let text = [output.stderr, output.stdout].concat();
    (output.status.code(), String::from_utf8(text).expect("it is text"))
}

fn contains_all(said: &str, parts: &[&str]) {
    for part in parts {
        assert!(said.contains(part), "it does not say {part:?}:\n{said}");
    }
}

#[test]
fn what_would_fail_here_is_said_with_its_setting() {
    let folder = folder("all");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let taken = listener.local_addr().expect("it is bound");
    std::fs::write(folder.join("file"), "").expect("the target folder can be written");
    let place = folder.display();
    let text = format!(
        "[[listen]]\naddress = \"{taken}\"\n[[listen]]\naddress = \"192.0.2.1:8080\"\n[[listen]]\naddress = \"unix:/nowhere/l.sock\"\n\
         [origin.web]\nurls = \"http://no-such-host.invalid:81\"\n[[route]]\norigin = \"web\"\n\
         [[route]]\nhost = \"a.test\"\nroot = \"{place}/nothing\"\n[[route]]\nhost = \"b.test\"\nroot = \"{place}/file\"\n\
         [[disk]]\npath = \"/nowhere/disk\"\nsize = \"1GiB\"\n[[disk]]\npath = \"{place}\"\nsize = \"900TiB\"\n\
         [log]\npath = \"/nowhere/access.log\"\n[admin]\naddress = \"{taken}\"\n[forward]\npassword_file = \"users\"\n"
    );
    let (code, said) = check(&folder, &[], &text);
    assert_eq!(code, Some(3), "{said}");
    contains_all(
        &said,
        &[
            &format!("error: {taken} is in use by "),
            &format!(" (process {}) ([[listen]] address, --listen)", std::process::id()),
            "error: nobody can listen on 192.0.2.1:8080: it is no address of this machine ([[listen]] address, --listen)",
            "= help: *:8080 is every address",
            "error: nobody can listen on unix:/nowhere/l.sock: the folder /nowhere cannot be written (No such file",
            "warning: origin.web.urls: the name no-such-host.invalid does not resolve (",
            &format!("error: the root {place}/nothing of a.test/ cannot be read (No such file"),
            &format!("error: the root {place}/file of b.test/ is no directory ([[route]] root, --root)"),
            "error: the disk /nowhere/disk cannot be made: the folder /nowhere cannot be written (No such file",
            "are free there ([[disk]] size, --disk)",
            "error: the access log /nowhere/access.log cannot be made: the folder /nowhere cannot be written (No such file",
            "([admin] address, --admin)",
            "users: No such file or directory (os error 2) ([forward] password_file)",
            "larder.toml: the file is right, but larder would not start here: 3 listeners",
        ],
    );
    let (code, said) = check(&folder, &["--file-only"], &text);
    assert_eq!((code, said.contains("error")), (Some(0), false), "{said}");
    let (code, said) = check(&folder, &["--json"], &text);
    assert_eq!(code, Some(3));
    let row: serde_json::Value = serde_json::from_str(&said).expect(&said);
    let fatal =
        row["files"][0]["machine"].as_array().expect(&said).iter().filter(|finding| finding["is_fatal"] == true);
    assert_eq!(fatal.count(), 11, "{said}");
}

/// Before a reload the larder that runs has its own ports.
#[test]
fn the_ports_of_a_larder_that_runs_are_no_mistake() {
    let folder = folder("running");
    let (front, admin) = (free_address(), free_address());
    let text = format!(
        "[[listen]]\naddress = \"{front}\"\n[admin]\naddress = \"{admin}\"\ntoken = \"0123456789abcdef\"\n[[route]]\nroot = \".\"\n"
    );
    std::fs::write(folder.join("larder.toml"), &text).expect("the target folder can be written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
    let serve = command
        .args(["serve", "--no-supervisor", "--config", "larder.toml"])
        .current_dir(&folder)
        .stderr(Stdio::null());
    let running = Running(serve.spawn().expect("larder can be started"));
    wait_until_it_listens(front);
    wait_until_it_listens(admin);
    let (code, said) = check(&folder, &[], &text);
    assert_eq!(code, Some(0), "{said}");
    let process = running.0.id();
    contains_all(
        &said,
        &[&format!(
            "warning: {front} is in use by a larder that runs (process {process}) ([[listen]] address, --listen): if"
        )],
    );
    assert!(said.contains("larder reload") && !said.contains("error:"), "{said}");
    // A line for each address.
    assert_eq!(
        said.lines().filter(|line| line.contains(&front.to_string()) || line.contains(&admin.to_string())).count(),
        2,
        "{said}"
    );
    // What is another config's is not free for this one.
    let other = folder.join("other");
    std::fs::create_dir_all(&other).expect("the target folder can be written");
    let (code, said) = check(&other, &[], &text);
    assert_eq!(code, Some(3), "{said}");
    contains_all(
        &said,
        &[
            &format!("error: {front} is in use by a larder that runs by {}", folder.join("larder.toml").display()),
            "--file-only",
            "larder.toml: the file is right, but larder would not start here: 1 listener",
        ],
    );
}

/// What serve says when it starts, of files that have no mistake.
#[test]
fn what_another_larder_holds_and_odd_sizes_are_said() {
    let folder = folder("held");
    let (front, admin) = (free_address(), free_address());
    let rest = "[[route]]\nroot = \".\"\n[[disk]]\npath = \"disk\"\nsize = \"64MiB\"\n";
    let text = format!("[[listen]]\naddress = \"{front}\"\n[admin]\naddress = \"off\"\n{rest}");
    std::fs::write(folder.join("held.toml"), &text).expect("the target folder can be written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
    let serve =
        command.args(["serve", "--no-supervisor", "--config", "held.toml"]).current_dir(&folder).stderr(Stdio::null());
    let running = Running(serve.spawn().expect("larder can be started"));
    wait_until_it_listens(front);
    let free = free_address();
    let (code, said) = check(&folder, &[], &text.replace(&front.to_string(), &free.to_string()));
    let whom = format!(
        "error: the disk disk is in use by a larder that runs by {}/held.toml (process {})",
        folder.display(),
        running.0.id()
    );
    assert_eq!(code, Some(3), "{said}");
    contains_all(&said, &[&whom, "([[disk]] path, --disk)"]);
    drop(running);
    let small = format!(
        "[[listen]]\naddress = \"{free}\"\n[admin]\naddress = \"{admin}\"\n[memory]\nsize = \"1MiB\"\n[policy]\npurge_from = [\"0.0.0.0/0\"]\n{rest}"
    );
    let (code, said) = check(&folder, &[], &small);
    assert_eq!(code, Some(0), "{said}");
    contains_all(
        &said,
        &["warning: [memory] size is 1 MiB: hardly anything fits", "warning: purge_from are all addresses"],
    );
    let (code, said) =
        check(&folder, &[], &small.replace("1MiB", "900TiB").replace(&admin.to_string(), &free.to_string()));
    assert_eq!(code, Some(3), "{said}");
    contains_all(
        &said,
        &["warning: [memory] size is 921600 GiB, but the machine has", "give [admin] an address of its own"],
    );
}

#[test]
fn a_root_is_said_once_whatever_a_preset_makes_of_it() {
    let folder = folder("preset");
    let text = "[[listen]]\naddress = \"127.0.0.1:0\"\n[admin]\naddress = \"off\"\n[[route]]\nroot = \"nothing\"\npreset = \"static\"\n";
    let (code, said) = check(&folder, &[], text);
    assert_eq!((code, said.matches("nothing cannot be read").count()), (Some(3), 1), "{said}");
    let text = text.replace("preset = \"static\"", "[[route]]\nhost = \"a.test\"\nroot = \"nothing\"");
    let (code, said) = check(&folder, &[], &text);
    assert_eq!((code, said.matches("nothing").count()), (Some(3), 1), "{said}");
    // Nobody serves with it.
    let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
    let output = command.args(["serve", "--no-supervisor", "--config", "larder.toml"]).current_dir(&folder).output();
    let (code, said) = self::said(output.expect("larder can be started"));
    assert_eq!((code, said.matches("the root nothing cannot be read (No such file").count()), (Some(1), 1), "{said}");
}

#[test]
fn a_config_with_a_token_that_everybody_may_read_is_said() {
    let folder = folder("token");
    let text = "[[route]]\nroot = \".\"\n[[listen]]\naddress = \"127.0.0.1:0\"\n[admin]\naddress = \"127.0.0.1:0\"\ntoken = \"0123456789abcdef\"\n";
    for (mode, is_said) in [(0o644, true), (0o640, false), (0o600, false)] {
        std::fs::write(folder.join("larder.toml"), text).expect("the target folder can be written");
        let rights = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(folder.join("larder.toml"), rights).expect("it is ours");
        let (code, said) = check(&folder, &[], text);
        let warning = "warning: everybody on this machine may read larder.toml, and the token of [admin] is in it";
        assert_eq!((code, said.contains(warning)), (Some(0), is_said), "{mode:o}: {said}");
    }
}

/// What serve would refuse when it starts, and the file alone does not show.
#[test]
fn listeners_of_one_port_and_users_that_cannot_be_read_are_said() {
    let folder = folder("shared");
    let free = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("it has one").port();
    std::fs::write(folder.join("users"), "ann:{SHA}fEqNCco3Yq9h5ZUglD3CZJT4lBs=\n")
        .expect("the target folder can be written");
    let listen = |address: &str| format!("[[listen]]\naddress = \"{address}:{free}\"\n");
    let route = "[[route]]\nroot = \".\"\nbasic_auth = { file = \"users\" }\n[admin]\naddress = \"off\"\n";
    let (code, said) = check(&folder, &[], &format!("{}{}{route}", listen("127.0.0.1"), listen("*")));
    assert_eq!(code, Some(3), "{said}");
    contains_all(
        &said,
        &[
            &format!("error: 127.0.0.1:{free} and "),
            "are one port of the same address ([[listen]] address, --listen)",
            "users: line 1: not a bcrypt hash",
            "(basic_auth of a [[route]] or of [policy])",
        ],
    );
    std::fs::write(folder.join("users"), "").expect("the target folder can be written");
    let (code, said) = check(&folder, &[], &format!("{}{}{route}", listen("127.0.0.1"), listen("127.0.0.2")));
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn a_config_that_serves_is_good() {
    let folder = folder("good");
    std::fs::create_dir_all(folder.join("www")).expect("the target folder can be written");
    let text = "[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nroot = \"www\"\n[admin]\naddress = \"off\"\n[log]\npath = \"a.log\"\n";
    let (code, said) = check(&folder, &[], text);
    assert_eq!((code, said.as_str()), (Some(0), "larder.toml: ok: 1 listener, 1 route, 1 root, 256 MiB of memory\n"));
    assert!(!folder.join("a.log").exists(), "nothing is made");
    // Larder's own files, where files are shown.
    std::fs::write(folder.join("larder.old"), "").expect("the target folder can be written");
    let (code, said) = check(&folder, &[], &text.replace("\"www\"", "\".\""));
    assert_eq!(code, Some(0), "{said}");
    contains_all(&said, &["larder.toml lies beneath the root", "a.log lies beneath the root", "/etc/larder"]);
    contains_all(&said, &["nor its copies: ", "larder.old"]);
    // A disk in the root itself is one file of it, and one elsewhere is named by its folder alone.
    let disks = "[[disk]]\npath = \".\"\nsize = \"16MiB\"\n[[disk]]\npath = \"www\"\nsize = \"16MiB\"\n";
    let (code, said) = check(&folder, &[], &(text.replace("\"www\"", "\".\"") + disks));
    assert_eq!((code, said.matches("larder.store lies beneath").count()), (Some(0), 1), "{said}");
    contains_all(&said, &["www lies beneath the root"]);
    let (code, said) = check(&folder, &[], "[[route]]\nrot = \".\"\n");
    assert_eq!(code, Some(1), "{said}");
}

#[test]
fn a_vcl_that_a_config_names_is_checked_with_it() {
    let folder = folder("vcl");
    std::fs::write(
        folder.join("a.vcl"),
        "vcl 4.1;\nbackend default { .host = \"127.0.0.1\"; }\nsub vcl_recv { retrun (pass); }\n",
    )
    .expect("the target folder can be written");
    let text = "[[listen]]\naddress = \"127.0.0.1:0\"\n[policy]\nvcl = \"a.vcl\"\n[admin]\naddress = \"off\"\n";
    let (code, said) = check(&folder, &[], text);
    assert_eq!(code, Some(1), "{said}");
    contains_all(&said, &["a.vcl:3:16", "did you mean `return`?"]);
}

#[test]
fn certificates_and_their_keys_are_looked_at() {
    let folder = folder("certificates");
    let made = |name: &str, from: i32, until: i32| {
        let mut parameters = rcgen::CertificateParams::new(vec![name.to_owned()]).expect("a name");
        parameters.not_before = rcgen::date_time_ymd(from, 1, 1);
        parameters.not_after = rcgen::date_time_ymd(until, 1, 1);
        let key = rcgen::KeyPair::generate().expect("a key can be made");
        let file = folder.join(format!("{name}.pem"));
        let both = format!("{}{}", parameters.self_signed(&key).expect("it can be signed").pem(), key.serialize_pem());
        std::fs::write(&file, both).expect("the target folder can be written");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).expect("it is ours");
        file.display().to_string()
    };
    let files = [made("old.test", 2000, 2001), made("young.test", 2200, 2201), made("good.test", 2000, 2200)];
    std::fs::set_permissions(&files[2], std::fs::Permissions::from_mode(0o644)).expect("it is ours");
    let text = format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\ntls = {{ cert = {files:?} }}\n[[route]]\nroot = \".\"\n[admin]\naddress = \"off\"\n"
    );
    let (code, said) = check(&folder, &[], &text);
    assert_eq!(code, Some(0), "{said}");
    contains_all(
        &said,
        &[
            "the certificate for old.test has expired (Mon, 01 Jan 2001",
            "the certificate for young.test is not good before",
            "(cert of [listen.tls], --cert)",
            &format!("everybody on this machine may read {0}: chmod 600 {0}", files[2]),
        ],
    );
    assert!(!said.contains("good.test has") && !said.contains("good.test ends"), "{said}");
    let hosts = "host = [\"good.test\", \"www.good.test\", \"127.0.0.1\"]\n";
    let (code, warned) = check(&folder, &[], &text.replace("root = \".\"\n", &format!("root = \".\"\n{hosts}")));
    assert_eq!((code, warned.matches("no certificate is for ").count()), (Some(0), 1), "{warned}");
    contains_all(
        &warned,
        &["no certificate is for www.good.test, ", "shown one for good.test, old.test, young.test, and"],
    );
    let (code, said) = check(&folder, &[], &text.replace(&files[0], "/nowhere/a.pem"));
    assert_eq!(code, Some(1));
    contains_all(&said, &["larder.toml:3:17: error: /nowhere/a.pem: No such file"]);
}

/// As a user who may not listen below 1024, where the kernel has that rule.
#[test]
fn a_port_that_needs_a_right_comes_with_three_ways_to_have_it() {
    let first_free = std::fs::read_to_string("/proc/sys/net/ipv4/ip_unprivileged_port_start").unwrap_or_default();
    let has_rule = first_free.trim().parse::<u32>().is_ok_and(|first| first > 80);
    let is_root = Command::new("id").arg("-u").output().is_ok_and(|id| id.stdout == b"0\n");
    if !has_rule {
        return;
    }
    let folder = folder("low");
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    let text = "[[listen]]\naddress = \"127.0.0.1:80\"\n[[route]]\nroot = \"/\"\n[admin]\naddress = \"off\"\n";
    // Where another user can see it, too.
    let file = std::env::temp_dir().join(format!("larder-low-{}.toml", std::process::id()));
    let program = std::env::temp_dir().join(format!("larder-low-{}", std::process::id()));
    std::fs::write(&file, text).expect("the folder for temporary files can be written");
    std::fs::copy(env!("CARGO_BIN_EXE_larder"), &program).expect("the folder for temporary files can be written");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).expect("it is ours");
    let mut command = match is_root {
        true => {
            let mut command = Command::new("setpriv");
            command.args([
                "--reuid=65534",
                "--regid=65534",
                "--clear-groups",
                "--inh-caps=-all",
                "--bounding-set=-all",
            ]);
            command.arg(&program);
            command
        }
        false => Command::new(&program),
    };
    let (code, said) = said(command.arg("check").arg(&file).output().expect("the program can be started"));
    let _ = (std::fs::remove_file(&file), std::fs::remove_file(&program)); // what is left is temporary
    assert_eq!(code, Some(3), "{said}");
    contains_all(
        &said,
        &[
            "error: nobody can listen on 127.0.0.1:80: port 80 needs a right that this user has not ([[listen]] address, --listen)",
            "AmbientCapabilities=CAP_NET_BIND_SERVICE",
            "setcap cap_net_bind_service=+ep",
            "sysctl net.ipv4.ip_unprivileged_port_start=80",
        ],
    );
}
