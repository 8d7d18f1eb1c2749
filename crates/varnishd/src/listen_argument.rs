//! What stands behind `-a`: `[NAME=]ADDRESS[:PORT][,PROTOCOL]`, or a path with who may connect to it.

/// One `-a`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenArgument {
    /// In order, `a0`, `a1` …, unless it was named.
    pub name: String,
    pub place: ListenPlace,
    pub is_proxy_protocol: bool,
    /// As in Varnish 9.
    pub is_tls: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenPlace {
    /// `None`: all addresses of this machine. A name may stand for several addresses.
    Port {
        host: Option<String>,
        port: u16,
    },
    Path {
        path: String,
        owner: SocketOwner,
    },
}

/// Whose a UNIX socket is, and who may connect; what is absent stays as the system makes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SocketOwner {
    pub user: Option<String>,
    pub group: Option<String>,
    pub mode: Option<u32>,
}

const PORT_DEFAULT: u16 = 80;

impl ListenArgument {
    pub fn parse(written: &str, index: usize) -> Result<ListenArgument, String> {
        let wrong = |why: &str| format!("-a {written}: {why}");
        let mut parts = written.split(',');
        let first = parts.next().unwrap_or_default();
        let (name, place) = match first.split_once('=') {
            Some((name, place)) if is_name(name) => (name.to_owned(), place),
            Some(_) => return Err(wrong("a name is a letter, then letters, digits and _")),
            None => (format!("a{index}"), first),
        };
        let (mut is_proxy_protocol, mut is_tls) = (false, false);
        let mut owner = SocketOwner::default();
        for part in parts {
            match part.split_once('=') {
                None if part.eq_ignore_ascii_case("PROXY") => is_proxy_protocol = true,
                None if part.eq_ignore_ascii_case("HTTPS") => is_tls = true,
                None if part.eq_ignore_ascii_case("HTTP") || part == "HTTP/1" => {}
                None => return Err(wrong(&format!("`{part}` is no protocol: HTTP, HTTPS or PROXY"))),
                Some(_) if !place.starts_with(['/', '@']) => {
                    return Err(wrong("user, group and mode are for UNIX sockets, whose path begins with /"));
                }
                Some(("user", user)) => owner.user = Some(user.to_owned()),
                Some(("group", group)) => owner.group = Some(group.to_owned()),
                Some(("mode", mode)) => {
                    let bits = u32::from_str_radix(mode, 8).ok().filter(|bits| *bits <= 0o777);
                    owner.mode = Some(bits.ok_or_else(|| wrong("a mode is three octal digits, such as 660"))?);
                }
                Some((word, _)) => return Err(wrong(&format!("there is no `{word}`"))),
            }
        }
        let place = match place.as_bytes().first() {
            None => return Err(wrong("an address or a port is missing")),
            Some(b'@') => return Err(wrong("larder listens on no abstract socket: give it a path")),
            Some(b'/') => ListenPlace::Path { path: place.to_owned(), owner },
            Some(_) => {
                let (host, port) = host_and_port(place, Some(PORT_DEFAULT)).map_err(|why| wrong(&why))?;
                ListenPlace::Port { host, port }
            }
        };
        Ok(ListenArgument { name, place, is_proxy_protocol, is_tls })
    }
}

fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// `HOST:PORT`, `HOST PORT`, `HOST`, `:PORT`, `[IPv6]:PORT`.
pub(crate) fn host_and_port(written: &str, default: Option<u16>) -> Result<(Option<String>, u16), String> {
    let (host, port) = match written.strip_prefix('[') {
        Some(rest) => {
            let (host, behind) = rest.split_once(']').ok_or("the ] is missing")?;
            match behind {
                "" => (host, None),
                behind => (host, Some(behind.strip_prefix([':', ' ']).ok_or("a port follows a `:`")?)),
            }
        }
        None => match written.split_once([':', ' ']) {
            // An address of IPv6 alone.
            Some((_, port)) if port.contains(':') => match written.parse::<std::net::Ipv6Addr>() {
                Ok(_) => (written, None),
                Err(_) => return Err("an IPv6 address stands in [ ], and a port behind it".to_owned()),
            },
            Some((host, port)) => (host, Some(port)),
            None => (written, None),
        },
    };
    let port = match port {
        Some("http") => PORT_DEFAULT,
        Some(port) => port.parse().map_err(|_| format!("`{port}` is no port"))?,
        None => default.ok_or("the port is missing")?,
    };
    let host = host.trim();
    Ok(((!host.is_empty()).then(|| host.to_owned()), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(written: &str, expect: Result<(&str, Option<&str>, u16, bool), &str>) {
        match (ListenArgument::parse(written, 3), expect) {
            (Ok(got), Ok((name, host, port, proxy))) => {
                let place = ListenPlace::Port { host: host.map(str::to_owned), port };
                assert_eq!((&*got.name, got.place, got.is_proxy_protocol), (name, place, proxy), "{written}");
            }
            (Err(why), Err(part)) => assert!(why.contains(part), "{written}: {why}"),
            (got, expect) => panic!("{written}: {got:?} instead of {expect:?}"),
        }
    }

    #[test]
    fn addresses_are_those_of_unit_files() {
        check(":6081", Ok(("a3", None, 6081, false)));
        check("127.0.0.1:0", Ok(("a3", Some("127.0.0.1"), 0, false)));
        check("localhost", Ok(("a3", Some("localhost"), 80, false)));
        check("tls=127.0.0.1:8443,PROXY", Ok(("tls", Some("127.0.0.1"), 8443, true)));
        check("[::1]:81,HTTP", Ok(("a3", Some("::1"), 81, false)));
        check("::1", Ok(("a3", Some("::1"), 80, false)));
        check("[::1]", Ok(("a3", Some("::1"), 80, false)));
        check("10.0.0.1 81", Ok(("a3", Some("10.0.0.1"), 81, false)));
        check("", Err("is missing"));
        check("a:b:c", Err("stands in [ ]"));
        check("a:99999", Err("no port"));
        check(":80,HTTP/3", Err("no protocol"));
        check(":80,mode=660", Err("for UNIX sockets"));
        check("9=:80", Err("a name is a letter"));
        check("@abstract", Err("abstract"));
    }

    #[test]
    fn tls_may_stand_behind_an_address_and_behind_a_path() {
        for written in [":443,https", ":443,HTTPS", "/run/l.sock,PROXY,HTTPS"] {
            assert!(ListenArgument::parse(written, 0).unwrap().is_tls, "{written}");
        }
        assert!(!ListenArgument::parse(":80,HTTP", 0).unwrap().is_tls);
    }

    #[test]
    fn paths_may_be_somebodys() {
        let got = ListenArgument::parse("/run/l.sock,PROXY,user=a,group=b,mode=660", 0).unwrap();
        let owner = SocketOwner { user: Some("a".into()), group: Some("b".into()), mode: Some(0o660) };
        assert_eq!((got.place, got.is_proxy_protocol), (ListenPlace::Path { path: "/run/l.sock".into(), owner }, true));
        assert!(ListenArgument::parse("/a,mode=999", 0).unwrap_err().contains("octal"));
        assert!(ListenArgument::parse("/a,colour=red", 0).unwrap_err().contains("no `colour`"));
    }
}
