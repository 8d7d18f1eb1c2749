//! dist/larder.service: systemd takes it, what docs/running.md says of it is there, and its config is the one that the program reads.

use std::path::Path;
use std::process::Command;

fn read(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::read_to_string(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The values of a key in the section `[Service]`.
fn values<'a>(unit: &'a str, key: &str) -> Vec<&'a str> {
    let service = unit.split("[Service]").nth(1).and_then(|rest| rest.split("[Install]").next()).unwrap_or_default();
    service.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix('=')).collect()
}

#[test]
fn the_unit_says_what_its_page_says() {
    let (unit, page) = (read("dist/larder.service"), read("docs/running.md"));
    for (key, expect) in [
        ("ExecStart", "/usr/local/bin/larder serve --config /etc/larder/larder.toml"),
        ("User", "larder"),
        ("AmbientCapabilities", "CAP_NET_BIND_SERVICE"),
        ("CapabilityBoundingSet", "CAP_NET_BIND_SERVICE"),
        ("ProtectSystem", "strict"),
        ("Restart", "on-failure"),
    ] {
        assert_eq!(values(&unit, key), [expect], "{key}");
    }
    for (key, folder) in [
        ("ConfigurationDirectory", "/etc/larder"),
        ("StateDirectory", "/var/lib/larder"),
        ("CacheDirectory", "/var/cache/larder"),
        ("LogsDirectory", "/var/log/larder"),
        ("RuntimeDirectory", "/run/larder"),
    ] {
        assert_eq!(values(&unit, key), ["larder"], "{key}");
        assert!(page.contains(&format!("| `{folder}` |")), "docs/running.md does not say what {folder} is for");
    }
    assert_eq!(values(&unit, "ExecReload").last(), Some(&"/bin/kill -HUP $MAINPID"));
    assert!(values(&unit, "MemoryDenyWriteExecute").is_empty(), "regular expressions are compiled");
    let seconds = |text: &str| text.trim_end_matches('s').parse::<u64>().expect("a time in seconds");
    let grace = proxy::limits::Limits::default().drain_grace.as_secs();
    assert!(seconds(values(&unit, "TimeoutStopSec")[0]) > grace, "it would be killed while it finishes");
    let files: usize = values(&unit, "LimitNOFILE")[0].parse().expect("a number");
    assert!(files > 2 * proxy::limits::Limits::default().connections_max);
}

/// Where systemd is not installed its own opinion is left out.
#[test]
fn systemd_takes_the_unit() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("unit");
    std::fs::create_dir_all(&folder).expect("the target folder can be written");
    let file = folder.join("larder.service");
    // It looks whether the program is there.
    let unit = read("dist/larder.service").replace("/usr/local/bin/larder", env!("CARGO_BIN_EXE_larder"));
    std::fs::write(&file, unit).expect("the target folder can be written");
    let Ok(done) = Command::new("systemd-analyze").arg("verify").arg(&file).output() else { return };
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() && !said.contains("larder.service:"), "{said}");
}
