//! Debian's own varnishstat reads what is written here. Varnish is among what `./setup` installs.

use std::path::PathBuf;
use std::process::Command;

use vsm::{Counter, CounterClass, Meaning, VsmFolder};

fn main_class() -> CounterClass {
    CounterClass {
        name: "main",
        meaning: "What the server does",
        order: 10,
        counters: vec![
            Counter::total("uptime", "Seconds since the start").seconds(),
            Counter::total("client_req", "Requests read"),
            Counter::gauge("n_object", "Objects that are stored"),
            Counter::total("s_resp_bodybytes", "Bytes of bodies sent").bytes(),
            Counter::total("busy_sleep", "Requests that waited for somebody else's fetch").diag(),
        ],
    }
}

fn vbe_class() -> CounterClass {
    CounterClass {
        name: "vbe",
        meaning: "A backend",
        order: 50,
        counters: vec![Counter::gauge("conn", "Connections open"), Counter::total("req", "Requests sent")],
    }
}

fn stat(folder: &PathBuf, more: &[&str]) -> String {
    let out = Command::new("varnishstat").arg("-n").arg(folder).args(more).output().expect("varnishstat is installed");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

/// Name and value of each line of `varnishstat -1`.
fn figures(folder: &PathBuf) -> Vec<(String, u64)> {
    let one = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        (words.next().unwrap().to_string(), words.next().unwrap().parse().unwrap())
    };
    stat(folder, &["-1"]).lines().map(one).collect()
}

#[test]
fn varnishstat_shows_what_was_written_and_what_it_means() {
    let path = std::env::temp_dir().join(format!("larder-varnishstat-{}", std::process::id()));
    let folder = VsmFolder::take(&path, 1_700_000_000).unwrap();
    // Readers look no further than a management without anything.
    let told = folder.management.add("Arg", "-T", b"127.0.0.1 6082\n\0").unwrap();
    let main = Meaning::publish(&folder.work, &main_class(), 1).unwrap();
    let vbe = Meaning::publish(&folder.work, &vbe_class(), 2).unwrap();
    // It does not quote what it shows as JSON.
    let quoting = CounterClass { meaning: "What is \"said\"", ..main_class() };
    assert!(Meaning::publish(&folder.work, &quoting, 3).is_err());
    let main = main.counters(&folder.work, "MAIN").unwrap();
    let backends = ["one", "two"].map(|name| vbe.counters(&folder.work, &format!("VBE.boot.{name}")).unwrap());
    main.show(&[61, 1_000_000_007, 12, u64::MAX >> 1, 3]).unwrap();
    backends[0].show(&[4, 5]).unwrap();
    let expect =
        |lines: &[(&str, u64)]| lines.iter().map(|(name, value)| (name.to_string(), *value)).collect::<Vec<_>>();
    let of_main = [
        ("MAIN.uptime", 61),
        ("MAIN.client_req", 1_000_000_007),
        ("MAIN.n_object", 12),
        ("MAIN.s_resp_bodybytes", u64::MAX >> 1),
        ("MAIN.busy_sleep", 3),
    ];
    let [one, two] =
        [[("VBE.boot.one.conn", 4), ("VBE.boot.one.req", 5)], [("VBE.boot.two.conn", 0), ("VBE.boot.two.req", 0)]];
    assert_eq!(figures(&path), expect(&[&of_main[..], &one, &two].concat()));
    let json = stat(&path, &["-j", "-f", "MAIN.n_object"]);
    for part in
        ["\"description\": \"Objects that are stored\"", "\"flag\": \"g\"", "\"format\": \"i\"", "\"value\": 12"]
    {
        assert!(json.contains(part), "{part} in {json}");
    }
    // A backend goes, figures change.
    let [one, two] = backends;
    drop(one);
    two.show(&[9, 9]).unwrap();
    main.show(&[62, 0, 0, 0, 0]).unwrap();
    let now = figures(&path);
    assert_eq!(now.first(), Some(&("MAIN.uptime".to_string(), 62)));
    assert_eq!(now[5..], expect(&[("VBE.boot.two.conn", 9), ("VBE.boot.two.req", 9)]));
    drop((main, two, told, folder));
    std::fs::remove_dir_all(&path).unwrap();
}
