//! The files that rows about static serving ask for: a root with everything in it that must not be shown, and outside of
//! it what must never be reached. Made anew for each program under test.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, Mode, Timespec, Timestamps, mkfifoat, mknodat, utimensat};

/// What no answer may ever hold.
pub const SECRET: &str = "root:x:0:0";

/// Entries of the directory that is too long to be listed.
pub const ENTRIES_MANY: usize = 50;

/// The routes of the files, for a configuration that lies beside `www`.
pub const ROUTES: &str = "[[route]]\nhost = [\"files.test\", \"evil.test\"]\nroot = \"www\"\nprecompressed = true\n\
     [[route]]\nhost = \"files.test\"\npath = \"/img\"\nroot = \"www\"\n\
     [[route]]\nhost = \"files.test\"\npath = \"/listed\"\nroot = \"www\"\nlisting = \"negotiated\"\n\
     [[route]]\nhost = \"pages.test\"\nroot = \"www\"\nerror_pages = { 4xx = \"/page.html\" }\n";

/// Fills the directory: `www` is the root, `secret` lies beside it.
pub fn fill(directory: &Path) {
    let www = directory.join("www");
    let write = |name: &str, text: &str| {
        let path = www.join(name);
        fs::create_dir_all(path.parent().expect("it is beneath the root")).expect("the target folder can be written");
        fs::write(path, text).expect("the target folder can be written");
    };
    fs::create_dir_all(&www).expect("the target folder can be written");
    fs::write(directory.join("secret"), SECRET).expect("the target folder can be written");
    for (name, text) in [
        ("index.html", "the index"),
        ("file.txt", "0123456789"),
        ("page.html", "the page"),
        ("img/a.png", "a picture"),
        ("dir/x", "x"),
        ("evil.test/x", "x"),
        ("file.txt~", "a backup"),
        (".htpasswd", SECRET),
        (".git/config", SECRET),
        ("old.js", "new source"),
        ("old.js.gz", "stale"),
        ("fresh.js", "source"),
        ("fresh.js.gz", "compressed"),
        ("listed/a.txt", "12345"),
        ("listed/<script>alert(1)</script>.txt", "x"),
        ("listed/a\r\nX-Injected: 1", "x"),
        ("real/x", "inside"),
    ] {
        write(name, text);
    }
    (0..ENTRIES_MANY).for_each(|n| write(&format!("listed/many/{n}"), ""));
    for (name, to) in [
        ("out", "../secret"),
        ("passwd", "/etc/passwd"),
        ("environ", "/proc/self/environ"),
        ("inside", "file.txt"),
        ("swapped", "real"),
        ("loop", "loop"),
    ] {
        symlink(to, www.join(name)).expect("the target folder takes links");
    }
    fs::hard_link(www.join("file.txt"), www.join("hard")).expect("the target folder takes links");
    mkfifoat(CWD, www.join("fifo"), Mode::RUSR | Mode::WUSR).expect("the target folder takes FIFOs");
    drop(std::os::unix::net::UnixListener::bind(www.join("socket")).expect("the path is short enough"));
    // Only root may: elsewhere it is one more name that nobody has.
    let _ = mknodat(CWD, www.join("zero"), FileType::CharacterDevice, Mode::RUSR, rustix::fs::makedev(1, 5));
    set_seconds(&www.join("old.js.gz"), 1_000_000_000);
    set_seconds(&www.join("fresh.js"), 1_000_000_000);
}

/// Sets when a file was changed.
fn set_seconds(path: &Path, seconds: i64) {
    let at = Timespec { tv_sec: seconds, tv_nsec: 0 };
    let times = Timestamps { last_access: at, last_modification: at };
    utimensat(CWD, path, &times, AtFlags::empty()).expect("the file is ours");
}
