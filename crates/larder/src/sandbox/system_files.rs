//! What a larder that serves reads of the system, whatever its config says: names and addresses, authorities, its own figures in /proc.

use std::path::Path;

/// A place of the system, and whether it is written, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SystemPlace {
    Read(&'static str),
    /// The same, where links lead on: others put a file there anew.
    ReadThroughLinks(&'static str),
    Write(&'static str),
}

use SystemPlace::{Read, ReadThroughLinks, Write};

/// How names are looked up. These files are put anew in their folder, so whoever may read all of /etc, which is who is not root, has it whole.
pub const NAMES: &[SystemPlace] = &[
    ReadThroughLinks("/etc/resolv.conf"),
    ReadThroughLinks("/etc/hosts"),
    ReadThroughLinks("/etc/nsswitch.conf"),
    Read("/etc/host.conf"),
    Read("/etc/gai.conf"),
    Read("/etc/hostname"),
    Read("/etc/services"),
    Read("/etc/protocols"),
    Read("/etc/passwd"),
    Read("/etc/group"),
    Read("/etc/ld.so.cache"),
    ReadThroughLinks("/etc/localtime"),
];

/// Everything else.
pub const OTHERS: &[SystemPlace] = &[
    // Who signs certificates of servers: in Debian, then in others.
    Read("/etc/ssl/certs"),
    ReadThroughLinks("/etc/ssl/cert.pem"),
    ReadThroughLinks("/etc/ssl/ca-bundle.pem"),
    Read("/etc/pki/tls/certs"),
    Read("/etc/pki/ca-trust"),
    Read("/etc/ca-certificates"),
    Read("/usr/share/ca-certificates"),
    Read("/usr/local/share/ca-certificates"),
    // What resolv.conf usually leads to.
    Read("/run/systemd/resolve"),
    Read("/run/NetworkManager"),
    Read("/run/resolvconf"),
    // Where VCLs look for what they include, as in Varnish.
    Read("/etc/varnish"),
    Read("/usr/share/varnish/vcl"),
    // Modules of the C library by which names are looked up.
    Read("/lib"),
    Read("/lib64"),
    Read("/usr/lib"),
    Read("/usr/lib64"),
    Read("/usr/share/zoneinfo"),
    // This process alone of all.
    Read("/proc/self"),
    Read("/proc/meminfo"),
    Read("/proc/stat"),
    Read("/proc/locks"),
    Read("/proc/sys/net"),
    Read("/proc/sys/vm/overcommit_memory"),
    Read("/proc/sys/kernel/random/boot_id"),
    Read("/proc/sys/kernel/core_pattern"),
    Read("/sys/fs/cgroup"),
    Read("/sys/devices/system/cpu"),
    Read("/sys/devices/system/node"),
    Read("/sys/kernel/mm"),
    Read("/dev/urandom"),
    Read("/dev/random"),
    Read("/dev/zero"),
    Write("/dev/null"),
];

/// All of /etc, where nothing there is this user's alone.
pub fn of_names(is_root: bool) -> Vec<SystemPlace> {
    let whole = (!is_root).then_some(Read("/etc"));
    NAMES.iter().copied().chain(whole).collect()
}

/// Folders of the system itself: nothing is made in them, whatever the config says.
const OF_SYSTEM: &[&str] = &[
    "/",
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/lib",
    "/lib64",
    "/proc",
    "/sbin",
    "/sys",
    "/usr",
    "/usr/bin",
    "/usr/lib",
    "/usr/local",
    "/usr/sbin",
    "/usr/share",
];

/// Folders in which everybody has something, or one's own that is nobody else's business.
const OF_ALL: &[&str] = &["/home", "/opt", "/root", "/run", "/tmp", "/var", "/var/lib", "/var/tmp"];

pub fn is_of_system(folder: &Path) -> bool {
    OF_SYSTEM.iter().any(|own| folder == Path::new(own))
}

/// Folders that hold so much besides that no single file has them opened whole for reading.
pub fn is_shared_by_all(folder: &Path) -> bool {
    let is_home = folder.parent() == Some(Path::new("/home"));
    is_of_system(folder) || is_home || OF_ALL.iter().any(|shared| folder == Path::new(shared))
}

#[cfg(test)]
impl SystemPlace {
    fn path(self) -> &'static Path {
        match self {
            Read(path) | ReadThroughLinks(path) | Write(path) => Path::new(path),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_ones_own_is_no_shared_one() {
        let home = Path::new("/home");
        for shared in [Path::new("/"), Path::new("/etc"), Path::new("/tmp"), home, &home.join("ann")] {
            assert!(is_shared_by_all(shared), "{}", shared.display());
        }
        for own in ["/srv", "/etc/larder", "/tmp/larder.1", "/config", "/var/log", "/var/log/larder"] {
            assert!(!is_shared_by_all(Path::new(own)), "{own}");
        }
        assert!(!is_shared_by_all(&home.join("ann/site")));
    }

    #[test]
    fn root_has_no_folder_with_secrets_opened() {
        assert!(of_names(false).contains(&Read("/etc")));
        let all = of_names(true).into_iter().chain(OTHERS.iter().copied());
        assert!(all.into_iter().all(|place| place.path() != Path::new("/etc") && place.path() != Path::new("/proc")));
    }
}
