//! The least memory that a control group leaves to this process: that of a container, of a unit of systemd, or of a slice above it. At it the
//! kernel ends a process, whatever the machine still has. Both hierarchies of the kernel are read, the unified one (cgroup v2) and the memory
//! controller's own (v1); they are not written.

use std::path::{Path, PathBuf};

/// A limit, and the file that it stands in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupLimit {
    pub bytes: u64,
    pub file: PathBuf,
}

/// The smallest along the way from this process's group up to where the hierarchy is mounted.
pub fn least() -> Option<GroupLimit> {
    let read = |file: &str| std::fs::read_to_string(file).ok();
    of_process(&read("/proc/self/cgroup")?, &read("/proc/self/mountinfo")?)
}

/// What bounds a group of a hierarchy.
const UNIFIED_FILES: &[&str] = &["memory.max"];
const OWN_FILES: &[&str] = &["memory.limit_in_bytes"];

/// Where a hierarchy can be seen: the folder, and which group that is.
struct Mount<'a> {
    folder: PathBuf,
    group: &'a Path,
    files: &'static [&'static str],
}

/// `groups`: cgroups(7), /proc/PID/cgroup. `mounts`: proc(5), /proc/PID/mountinfo.
fn of_process(groups: &str, mounts: &str) -> Option<GroupLimit> {
    let mounts: Vec<Mount<'_>> = mounts.lines().filter_map(mount).collect();
    let found = mounts.iter().flat_map(|mount| {
        let group = groups.lines().find_map(|line| group(line, mount.files));
        group.and_then(|group| Some(limits_from(mount, below(group, mount, &mounts)?))).unwrap_or_default()
    });
    found.min_by_key(|limit| limit.bytes)
}

/// The group of a line, if it is of the hierarchy that has these files.
fn group<'a>(line: &'a str, files: &[&str]) -> Option<&'a Path> {
    let mut words = line.splitn(3, ':').skip(1);
    let (controllers, group) = (words.next()?, words.next()?);
    let is_it = match files == UNIFIED_FILES {
        true => controllers.is_empty(),
        false => controllers.split(',').any(|name| name == "memory"),
    };
    is_it.then_some(Path::new(group))
}

/// Behind six words of a mount come optional ones, ` - `, and the kind of file system.
fn mount(line: &str) -> Option<Mount<'_>> {
    let (place, kind) = line.split_once(" - ")?;
    let mut place = place.split(' ').skip(3);
    let (group, folder) = (Path::new(place.next()?), place.next()?);
    let mut kind = kind.split(' ');
    let files = match (kind.next()?, kind.nth(1)?) {
        ("cgroup2", _) => UNIFIED_FILES,
        ("cgroup", options) if options.split(',').any(|option| option == "memory") => OWN_FILES,
        _ => return None,
    };
    Some(Mount { folder: PathBuf::from(folder.replace("\\040", " ")), group, files })
}

/// Where a group lies beneath a mount. `None`: somewhere else, which another mount of the hierarchy shows.
fn below<'a>(group: &'a Path, mount: &Mount<'_>, mounts: &[Mount<'_>]) -> Option<&'a Path> {
    let is_shown = |other: &Mount<'_>| other.files == mount.files && group.starts_with(other.group);
    match group.strip_prefix(mount.group) {
        Ok(below) => Some(below),
        // A container that sees its own group alone, as the root, may still be told the whole path.
        Err(_) => (!mounts.iter().any(is_shown)).then_some(Path::new("")),
    }
}

fn limits_from(mount: &Mount<'_>, below: &Path) -> Vec<GroupLimit> {
    let limit = |file: PathBuf| {
        // "max" is no number, and none of v1 is one that no machine has.
        let bytes = std::fs::read_to_string(&file).ok()?.trim().parse().ok()?;
        Some(GroupLimit { bytes, file })
    };
    let folders = below.ancestors().map(|below| mount.folder.join(below));
    let files = folders.flat_map(|folder| mount.files.iter().map(move |file| folder.join(file)));
    files.filter_map(limit).filter(|limit| limit.bytes < NO_LIMIT_FROM).collect()
}

/// What v1 says where there is no limit is the largest number of pages.
const NO_LIMIT_FROM: u64 = 1 << 60;

#[cfg(test)]
mod tests {
    use super::*;

    /// A hierarchy in a folder of its own: groups, each with a file and what it says.
    fn hierarchy(name: &str, groups: &[(&str, &str, &str)]) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("larder-groups-{}-{name}", std::process::id()));
        for (group, file, says) in groups {
            let group = folder.join(group);
            std::fs::create_dir_all(&group).unwrap();
            std::fs::write(group.join(file), format!("{says}\n")).unwrap();
        }
        folder
    }

    fn check(folder: &Path, groups: &str, mount: &str, expect: Option<(u64, &str)>) {
        let mounts = format!(
            "22 1 0:21 / /proc rw,relatime shared:5 - proc proc rw\n{}\n",
            mount.replace("PLACE", folder.to_str().unwrap())
        );
        let expect = expect.map(|(bytes, file)| GroupLimit { bytes, file: folder.join(file) });
        assert_eq!(of_process(groups, &mounts), expect, "{groups} {mount}");
    }

    #[test]
    fn the_least_of_a_group_and_those_above_it_counts() {
        const MIB: u64 = 1 << 20;
        let unified = "30 22 0:26 / PLACE rw,nosuid - cgroup2 cgroup2 rw,nsdelegate";
        let folder = hierarchy(
            "unified",
            &[
                ("system.slice", "memory.max", "max"),
                ("system.slice/a.service", "memory.max", "536870912"),
                ("user.slice", "memory.max", "268435456"),
                ("user.slice/b.scope", "memory.max", "1073741824"),
                // It slows a process down, and ends none.
                ("user.slice/b.scope", "memory.high", "134217728"),
                ("c", "memory.max", "max"),
            ],
        );
        let of_unit = Some((512 * MIB, "system.slice/a.service/memory.max"));
        check(&folder, "0::/system.slice/a.service\n", unified, of_unit);
        // Processes of this node's other hierarchies have lines of their own.
        check(&folder, "1:name=systemd:/x\n0::/system.slice/a.service\n", unified, of_unit);
        check(&folder, "0::/user.slice/b.scope\n", unified, Some((256 * MIB, "user.slice/memory.max")));
        check(&folder, "0::/c\n", unified, None);
        check(&folder, "0::/gone\n", unified, None);
        check(&folder, "4:memory:/system.slice/a.service\n", unified, None);
        std::fs::remove_dir_all(folder).unwrap();

        let own = "36 33 0:31 ROOT PLACE rw,nosuid shared:15 - cgroup cgroup rw,memory";
        let folder = hierarchy(
            "own",
            &[
                ("", "memory.limit_in_bytes", "9223372036854771712"),
                ("docker", "memory.limit_in_bytes", "104857600"),
                ("docker/1", "memory.limit_in_bytes", "209715200"),
            ],
        );
        let groups = "5:devices:/docker/1\n4:cpu,memory:/docker/1\n0::/\n";
        check(&folder, groups, &own.replace("ROOT", "/"), Some((100 * MIB, "docker/memory.limit_in_bytes")));
        check(&folder, groups, &own.replace("rw,memory", "rw,cpu").replace("ROOT", "/"), None);
        std::fs::remove_dir_all(folder).unwrap();

        // A container sees its own group as the root of what is mounted, and is told all of its path.
        let folder = hierarchy("inside", &[("", "memory.limit_in_bytes", "209715200")]);
        check(&folder, groups, &own.replace("ROOT", "/docker/1"), Some((200 * MIB, "memory.limit_in_bytes")));
        std::fs::remove_dir_all(folder).unwrap();
    }
}
