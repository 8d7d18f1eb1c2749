//! Who listens on a port of this machine, as far as /proc tells this user: a larder, which a new config is for, or a program in the way.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

/// Who it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortHolder {
    /// A larder runs, and it is that or may be that.
    Larder(Option<u32>),
    /// A program that is none.
    Other { name: String, process: u32 },
    /// Whose program that is this user may not see, and no larder runs.
    Unseen,
}

/// A socket that listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Listening {
    address: SocketAddr,
    inode: u64,
}

/// A process, by its number.
struct SeenProcess {
    id: u32,
    name: String,
}

/// How the names begin that the kernel has of larders: a version may follow.
const LARDER: &str = "larder";

/// Who holds a TCP address that is taken.
pub fn of(taken: SocketAddr) -> PortHolder {
    let tables = ["tcp", "tcp6"].map(|table| std::fs::read_to_string(format!("/proc/net/{table}")).unwrap_or_default());
    let inodes: Vec<u64> = tables
        .iter()
        .flat_map(|table| listening(table))
        .filter(|it| meets(it.address, taken))
        .map(|it| it.inode)
        .collect();
    let holders: Vec<SeenProcess> = processes().filter(|process| has_one_of(process.id, &inodes)).collect();
    // Several where a process has handed the socket to others.
    if let Some(larder) = holders.iter().find(|holder| holder.name.starts_with(LARDER)) {
        return PortHolder::Larder(Some(larder.id));
    }
    let is_other_larder = |process: SeenProcess| process.name.starts_with(LARDER) && process.id != std::process::id();
    match holders.into_iter().next() {
        Some(other) => PortHolder::Other { name: other.name, process: other.id },
        None if processes().any(is_other_larder) => PortHolder::Larder(None),
        None => PortHolder::Unseen,
    }
}

/// Which larder.toml a larder was started with; none where this user may not see that.
pub enum StartedWith {
    Config(PathBuf),
    FlagsAlone,
}

pub fn started_with(process: u32) -> Option<StartedWith> {
    let of_process = Path::new("/proc").join(process.to_string());
    let words = std::fs::read(of_process.join("cmdline")).ok().filter(|words| !words.is_empty())?;
    let words: Vec<String> = words.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into()).collect();
    let Some(config) = config_among(&words) else { return Some(StartedWith::FlagsAlone) };
    let folder = std::fs::read_link(of_process.join("cwd")).ok()?;
    Some(StartedWith::Config(folder.join(config)))
}

fn config_among(words: &[String]) -> Option<&str> {
    let behind = words.iter().position(|word| word == "--config").and_then(|at| words.get(at + 1));
    behind.map(String::as_str).or_else(|| words.iter().find_map(|word| word.strip_prefix("--config=")))
}

/// Does a socket that listens there keep others from the address?
fn meets(listening: SocketAddr, wanted: SocketAddr) -> bool {
    let (held, asked) = (listening.ip().to_canonical(), wanted.ip().to_canonical());
    listening.port() == wanted.port() && (held == asked || held.is_unspecified() || asked.is_unspecified())
}

/// The rows of /proc/net/tcp and tcp6 in the state LISTEN.
fn listening(table: &str) -> impl Iterator<Item = Listening> {
    const LISTEN: &str = "0A";
    table.lines().filter_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let (local, state, inode) = (words.nth(1)?, words.nth(1)?, words.nth(5)?);
        let (address, port) = local.split_once(':')?;
        let address = SocketAddr::new(address_of(address)?, u16::from_str_radix(port, 16).ok()?);
        (state == LISTEN).then_some(Listening { address, inode: inode.parse().ok()? })
    })
}

/// Words of 32 bits, each as this machine has it in memory.
fn address_of(hex: &str) -> Option<IpAddr> {
    let word = |at: usize| Some(u32::from_str_radix(hex.get(at * 8..at * 8 + 8)?, 16).ok()?.to_ne_bytes());
    match hex.len() {
        8 => Some(Ipv4Addr::from(word(0)?).into()),
        32 => {
            let words = [word(0)?, word(1)?, word(2)?, word(3)?];
            let mut bytes = [0; 16];
            bytes.iter_mut().zip(words.as_flattened()).for_each(|(to, from)| *to = *from);
            Some(Ipv6Addr::from(bytes).into())
        }
        _ => None,
    }
}

fn processes() -> impl Iterator<Item = SeenProcess> {
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    all.filter_map(|entry| {
        let id = entry.file_name().to_str()?.parse().ok()?;
        let name = std::fs::read_to_string(entry.path().join("comm")).ok()?;
        Some(SeenProcess { id, name: name.trim_end().to_owned() })
    })
}

/// Has a process one of these sockets open, as far as this user may see that?
fn has_one_of(process: u32, inodes: &[u64]) -> bool {
    let files = std::fs::read_dir(Path::new("/proc").join(process.to_string()).join("fd"));
    let targets = files.into_iter().flatten().flatten().filter_map(|file| std::fs::read_link(file.path()).ok());
    let is_one = |target: &Path| {
        let number = target.to_str().and_then(|text| text.strip_prefix("socket:[")?.strip_suffix(']'));
        number.and_then(|number| number.parse().ok()).is_some_and(|number| inodes.contains(&number))
    };
    targets.into_iter().any(|target| is_one(&target))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_of_the_kernel_are_read() {
        let v4 = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
                  0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0\n   \
                  1: 0100007F:1F90 0100007F:CCCC 01 00000000:00000000 00:00000000 00000000     0        0 4712 1 0\n";
        let found: Vec<_> = listening(v4).collect();
        assert_eq!(found, [Listening { address: "127.0.0.1:8080".parse().unwrap(), inode: 4711 }]);
        let v6 = "   0: 00000000000000000000000001000000:0050 00000000000000000000000000000000:0000 0A \
                  00000000:00000000 00:00000000 00000000     0        0 9 1 0\n";
        let found: Vec<_> = listening(v6).collect();
        assert_eq!(found, [Listening { address: "[::1]:80".parse().unwrap(), inode: 9 }]);
    }

    #[test]
    fn an_address_is_kept_by_whoever_has_all_of_them() {
        for (held, asked, expect) in [
            ("127.0.0.1:80", "127.0.0.1:80", true),
            ("127.0.0.2:80", "127.0.0.1:80", false),
            ("127.0.0.1:80", "127.0.0.1:81", false),
            ("0.0.0.0:80", "127.0.0.1:80", true),
            ("[::]:80", "127.0.0.1:80", true),
            ("127.0.0.1:80", "0.0.0.0:80", true),
            ("[::ffff:127.0.0.1]:80", "127.0.0.1:80", true),
        ] {
            assert_eq!(meets(held.parse().unwrap(), asked.parse().unwrap()), expect, "{held} {asked}");
        }
    }

    #[test]
    fn the_config_of_a_command_line_is_found() {
        let of = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            config_among(&words).map(str::to_owned)
        };
        assert_eq!(of("larder serve --workers 1 --config a.toml").as_deref(), Some("a.toml"));
        assert_eq!(of("larder serve --config=/etc/a.toml").as_deref(), Some("/etc/a.toml"));
        assert_eq!((of("larder serve --origin http://a"), of("larder serve --config")), (None, None));
    }

    #[test]
    fn who_listens_here_is_found() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let found = of(listener.local_addr().unwrap());
        // The tests of a program called larder are called by its name, too.
        assert_eq!(found, PortHolder::Larder(Some(std::process::id())));
    }
}
