//! What dist has for a service: systemd takes the unit, what docs/running.md says of it is there, the first larder.toml is right, and
//! all that the package is said to hold is there.

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
        ("Type", "notify"),
        ("NotifyAccess", "main"),
        ("WatchdogSec", "30s"),
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
    let Ok(done) = Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&file).output() else { return };
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() && !said.contains("larder.service:"), "{said}");
}

/// As the package lays it, but for the token that its installation makes.
#[test]
fn the_first_config_is_right() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("first-config");
    std::fs::create_dir_all(&folder).expect("the target folder can be written");
    let token = folder.join("admin.token");
    std::fs::write(&token, "0123456789abcdef0123456789abcdef").expect("the target folder can be written");
    let first = read("dist/larder.toml");
    let with_origin = first
        .replace("#[origin.site]\n#urls", "[origin.site]\nurls")
        .replace("#[[disk]]\n#path", "[[disk]]\npath")
        .replace("#size", "size");
    let with_origin = with_origin.split("[[route]]").map(str::to_owned).collect::<Vec<_>>();
    let rest = with_origin[1].split_once("\n\n").expect("a route ends").1;
    for text in [first, format!("{}{rest}", with_origin[0])] {
        let file = folder.join("larder.toml");
        let text = text.replace("/etc/larder/admin.token", &token.display().to_string());
        std::fs::write(&file, &text).expect("the target folder can be written");
        let done = Command::new(env!("CARGO_BIN_EXE_larder")).args(["check", "--file-only"]).arg(&file).output();
        let done = done.expect("larder can be started");
        let said = String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned();
        assert!(done.status.success() && !said.contains("warning"), "{said}\n{text}");
    }
}

#[test]
fn what_the_package_is_made_of_is_there() {
    let manifest: toml::Table = read("crates/larder/Cargo.toml").parse().expect("cargo reads it");
    let deb = &manifest["package"]["metadata"]["deb"];
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let rows = deb["assets"].as_array().expect("a list");
    let text = |value: &toml::Value| value.as_str().expect("a text").to_owned();
    let assets: Vec<(String, String)> = rows.iter().map(|row| (text(&row[0]), text(&row[1]))).collect();
    for (from, _) in assets.iter().filter(|(from, _)| !from.contains("target/")) {
        let (place, has_star) = (from.split('*').next().expect("a path"), from.contains('*'));
        let there = folder.join(place);
        assert!(if has_star { there.is_dir() } else { there.is_file() }, "{from}");
    }
    for file in deb["conf-files"].as_array().expect("a list") {
        let file = text(file);
        assert!(assets.iter().any(|(_, to)| format!("/{to}") == file), "{file}");
    }
    let scripts = folder.join(text(&deb["maintainer-scripts"]));
    for name in ["postinst", "postrm"] {
        let script = std::fs::read_to_string(scripts.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(script.starts_with("#!/bin/sh\nset -e\n") && script.contains("\n#DEBHELPER#\n"), "{name}");
        let done = Command::new("sh").arg("-n").arg(scripts.join(name)).status();
        assert!(done.is_ok_and(|done| done.success()), "{name}");
    }
}
