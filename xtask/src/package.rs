//! The Debian package: what of it is made (pages of the manual, completions, a unit for /usr/bin), put together by cargo-deb, and held
//! against what it has to hold by Debian's own dpkg-deb. Beside it lies a list of what the program is made of, where cargo-cyclonedx is.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::project::Project;

/// Where in the target folder it is made.
const FOLDER: &str = "package";

/// A path of the package, and how `dpkg-deb --contents` shows its rights.
const CONTENTS: &[(&str, &str)] = &[
    ("./usr/bin/larder", "-rwxr-xr-x"),
    ("./etc/larder/larder.toml", "-rw-r-----"),
    ("./etc/logrotate.d/larder", "-rw-r--r--"),
    ("./usr/share/man/man1/larder.1.gz", "-rw-r--r--"),
    ("./usr/share/man/man1/larder-serve.1.gz", "-rw-r--r--"),
    ("./usr/share/man/man5/larder.toml.5.gz", "-rw-r--r--"),
    ("./usr/share/bash-completion/completions/larder", "-rw-r--r--"),
    ("./usr/share/zsh/vendor-completions/_larder", "-rw-r--r--"),
    ("./usr/share/fish/vendor_completions.d/larder.fish", "-rw-r--r--"),
    ("./usr/share/doc/larder/running.md", "-rw-r--r--"),
    ("./usr/share/doc/larder/examples/larder.toml", "-rw-r--r--"),
    ("./usr/share/doc/larder/copyright", "-rw-r--r--"),
];

/// How root is shown: by name, or where a package names nobody by number.
const OWNERS: &[&str] = &[" root/root ", " 0/0 "];

pub fn task(project: &Project) -> Result<(), String> {
    let folder = project.target.join(FOLDER);
    let _ = fs::remove_dir_all(&folder); // it may not be there
    fs::create_dir_all(&folder).map_err(|error| said(&folder, error))?;
    run(&mut project.cargo(&["build", "--release", "--locked", "--package", "larder"]))?;
    make_parts(project, &folder)?;
    let package = put_together(project, &folder)?;
    let contents = output(Command::new("dpkg-deb").arg("--contents").arg(&package))?;
    let control = folder.join("control");
    run(Command::new("dpkg-deb").arg("--control").arg(&package).arg(&control))?;
    let read = |name: &str| fs::read_to_string(control.join(name)).unwrap_or_default();
    let complaints = [
        complaints_of_contents(&contents),
        complaints_of_control(&read("control"), &read("conffiles"), &read("postinst")),
    ]
    .concat();
    list_parts(project, &folder)?;
    let size = fs::metadata(&package).map_err(|error| said(&package, error))?.len();
    let program = contents.lines().find(|line| line.ends_with(" ./usr/bin/larder"));
    let program = program.and_then(|line| line.split_whitespace().nth(2)).unwrap_or("?");
    println!("{}: {size} bytes, and of the stripped program {program}", package.display());
    if complaints.is_empty() { Ok(()) } else { Err(complaints.join("\n")) }
}

/// What is made of the program and of files in dist.
fn make_parts(project: &Project, folder: &Path) -> Result<(), String> {
    let larder = || Command::new(project.larder());
    let manual = folder.join("man");
    run(larder().args(["man", "--to"]).arg(&manual))?;
    for section in ["man1", "man5"] {
        let pages = fs::read_dir(manual.join(section)).map_err(|error| said(&manual, error))?;
        let pages: Vec<PathBuf> = pages.flatten().map(|page| page.path()).collect();
        // Without names and times within: the same pages are the same bytes.
        run(Command::new("gzip").args(["-9", "-n"]).args(&pages))?;
    }
    let completions = folder.join("completions");
    fs::create_dir_all(&completions).map_err(|error| said(&completions, error))?;
    for (shell, name) in [("bash", "larder.bash"), ("zsh", "_larder"), ("fish", "larder.fish")] {
        let script = output(larder().args(["completions", shell]))?;
        let file = completions.join(name);
        fs::write(&file, script).map_err(|error| said(&file, error))?;
    }
    let unit = project.root.join("dist/larder.service");
    let text = fs::read_to_string(&unit).map_err(|error| said(&unit, error))?;
    let file = folder.join("larder.service");
    fs::write(&file, text.replace("/usr/local/bin/", "/usr/bin/")).map_err(|error| said(&file, error))
}

fn put_together(project: &Project, folder: &Path) -> Result<PathBuf, String> {
    let package = folder.join("larder.deb");
    let words = ["deb", "--no-build", "--package", "larder", "--strip", "--no-separate-debug-symbols", "--output"];
    let done = project.cargo(&words).arg(&package).stdout(Stdio::null()).status();
    match done {
        Ok(done) if done.success() => Ok(package),
        _ => Err("cargo-deb has made no package; `cargo install --locked cargo-deb` installs it".to_owned()),
    }
}

/// A bill of materials of the program, as scanners for known faults read it. cargo-cyclonedx writes one beside the Cargo.toml of each crate.
fn list_parts(project: &Project, folder: &Path) -> Result<(), String> {
    const LIST: &str = "larder.cdx.json";
    let words = ["cyclonedx", "--manifest-path", "crates/larder/Cargo.toml", "--format", "json", "--quiet"];
    let words = [&words[..], &["--override-filename", "larder.cdx"]].concat();
    let done = project.cargo(&words).stderr(Stdio::null()).status();
    if !done.is_ok_and(|done| done.success()) {
        println!(
            "no list of what the program is made of: `cargo install --locked cargo-cyclonedx` installs what makes it"
        );
        return Ok(());
    }
    let list = folder.join(LIST);
    fs::copy(project.root.join("crates/larder").join(LIST), &list).map_err(|error| said(&list, error))?;
    let crates = fs::read_dir(project.root.join("crates")).map_err(|error| said(&project.root, error))?;
    for place in crates.flatten().map(|place| place.path()).chain([project.root.join("xtask")]) {
        let _ = fs::remove_file(place.join(LIST)); // not every folder has one
    }
    println!("{}: what the program is made of (CycloneDX)", list.display());
    Ok(())
}

fn complaints_of_contents(contents: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    for (path, rights) in CONTENTS {
        let ending = format!(" {path}");
        match contents.lines().find(|line| line.ends_with(&ending)) {
            None => complaints.push(format!("the package has no {path}")),
            Some(line) if !line.starts_with(rights) => complaints.push(format!("{path} is not {rights}: {line}")),
            Some(line) if !OWNERS.iter().any(|owner| line.contains(owner)) => {
                complaints.push(format!("{path} is not root's: {line}"))
            }
            Some(_) => {}
        }
    }
    let is_unit = |line: &&str| line.ends_with("/lib/systemd/system/larder.service");
    if !contents.lines().any(|line| is_unit(&line)) {
        complaints.push("the package has no larder.service".to_owned());
    }
    complaints
}

fn complaints_of_control(control: &str, conffiles: &str, postinst: &str) -> Vec<String> {
    let field = |name: &str| {
        let line = control.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.unwrap_or_default().trim().to_owned()
    };
    let mut complaints = Vec::new();
    for (name, part) in [("Package", "larder"), ("Depends", "libc6"), ("Depends", "adduser")] {
        if !field(name).contains(part) {
            complaints.push(format!("{name} of the package is {:?}, without {part}", field(name)));
        }
    }
    // What is not named there is written over by the next version.
    for file in ["/etc/larder/larder.toml", "/etc/logrotate.d/larder"] {
        if !conffiles.lines().any(|line| line == file) {
            complaints.push(format!("{file} is no conffile"));
        }
    }
    for part in ["adduser", "deb-systemd-invoke", "admin.token"] {
        if !postinst.contains(part) || postinst.contains("#DEBHELPER#") {
            complaints.push(format!("postinst has no {part}, or a part was not filled in"));
        }
    }
    complaints
}

fn run(command: &mut Command) -> Result<(), String> {
    let shown = format!("{command:?}");
    let done = command.status().map_err(|error| format!("{shown}: {error}"))?;
    if done.success() { Ok(()) } else { Err(format!("{shown} failed")) }
}

fn output(command: &mut Command) -> Result<String, String> {
    let shown = format!("{command:?}");
    let done = command.stderr(Stdio::inherit()).output().map_err(|error| format!("{shown}: {error}"))?;
    if !done.status.success() {
        return Err(format!("{shown} failed"));
    }
    String::from_utf8(done.stdout).map_err(|error| format!("{shown}: {error}"))
}

fn said(path: &Path, error: std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole() -> String {
        let unit = ("./usr/lib/systemd/system/larder.service", "-rw-r--r--");
        let line = |(path, rights): &(&str, &str)| format!("{rights} root/root     10 2026-01-01 00:00 {path}\n");
        CONTENTS.iter().chain([&unit]).map(line).collect()
    }

    #[test]
    fn a_package_that_lacks_anything_is_refused() {
        assert_eq!(complaints_of_contents(&whole()), Vec::<String>::new());
        for (path, rights) in CONTENTS {
            let without: String =
                whole().lines().filter(|line| !line.ends_with(path)).map(|line| format!("{line}\n")).collect();
            assert_eq!(complaints_of_contents(&without), [format!("the package has no {path}")]);
            let open = whole().replace(
                &format!("{rights} root/root     10 2026-01-01 00:00 {path}\n"),
                &format!("-rwxrwxrwx root/root 1 {path}\n"),
            );
            assert_eq!(complaints_of_contents(&open).len(), 1, "{path}");
        }
        assert_eq!(complaints_of_contents(&whole().replace("root/root", "me/me")).len(), CONTENTS.len());
        assert_eq!(
            complaints_of_contents(&whole().replace(".service", ".socket")),
            ["the package has no larder.service"]
        );
    }

    #[test]
    fn its_control_files_are_held_against_what_must_be_in_them() {
        let control = "Package: larder\nDepends: libc6 (>= 2.34), adduser\n";
        let conffiles = "/etc/larder/larder.toml\n/etc/logrotate.d/larder\n";
        let postinst = "adduser larder; admin.token; deb-systemd-invoke\n";
        assert_eq!(complaints_of_control(control, conffiles, postinst), Vec::<String>::new());
        assert_eq!(complaints_of_control("Package: larder\n", conffiles, postinst).len(), 2);
        assert_eq!(complaints_of_control(control, "", postinst).len(), 2);
        assert_eq!(complaints_of_control(control, conffiles, "").len(), 3);
        assert_eq!(complaints_of_control(control, conffiles, &format!("{postinst}#DEBHELPER#")).len(), 3);
    }
}
