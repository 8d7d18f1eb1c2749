//! Where the servers of the tier are: `memcached://HOST:PORT,HOST:PORT` or `redis://[USER:PASSWORD@]HOST:PORT[/DB],…`.

const MEMCACHED: &str = "memcached://";
const MEMCACHED_PORT: &str = "11211";
const REDIS: &str = "redis://";

/// One server.
#[derive(Clone, PartialEq, Eq)]
pub enum TierUrl {
    /// HOST:PORT
    Memcached(String),
    Redis {
        url: String,
        has_password: bool,
    },
}

impl TierUrl {
    /// All that one setting names. An error is a sentence.
    pub fn all_of(text: &str) -> Result<Vec<TierUrl>, String> {
        let (scheme, rest) = match (text.strip_prefix(MEMCACHED), text.strip_prefix(REDIS)) {
            (Some(rest), _) => (MEMCACHED, rest),
            (_, Some(rest)) => (REDIS, rest),
            _ => {
                return Err(
                    "memcached://HOST:PORT or redis://HOST:PORT is, several with commas between them".to_owned()
                );
            }
        };
        rest.split(',').map(|server| TierUrl::of(scheme, server)).collect()
    }

    fn of(scheme: &str, server: &str) -> Result<TierUrl, String> {
        let place = server.rsplit_once('@').map_or(server, |(_, place)| place);
        let (address, path) = place.split_once('/').unwrap_or((place, ""));
        let is_fit = !address.is_empty() && !address.starts_with(':') && !server.contains(char::is_whitespace);
        if !is_fit {
            return Err(format!("`{address}` is no HOST:PORT"));
        }
        if scheme == REDIS {
            return Ok(TierUrl::Redis { url: format!("{REDIS}{server}"), has_password: place != server });
        }
        if place != server || !path.is_empty() {
            return Err("a memcached is HOST:PORT, without a user or a path".to_owned());
        }
        let has_port = match address.rsplit_once(']') {
            Some((_, behind)) => behind.starts_with(':'),
            None => address.contains(':'),
        };
        let address = if has_port { address.to_owned() } else { format!("{address}:{MEMCACHED_PORT}") };
        let port = address.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok()).filter(|&port| port > 0);
        port.map(|_| TierUrl::Memcached(address.clone())).ok_or_else(|| format!("`{address}` has no port that can be"))
    }

    /// Without a password.
    pub fn shown(&self) -> String {
        match self {
            TierUrl::Memcached(address) => format!("{MEMCACHED}{address}"),
            TierUrl::Redis { url, .. } => {
                let rest = &url[REDIS.len()..];
                format!("{REDIS}{}", rest.rsplit_once('@').map_or(rest, |(_, place)| place))
            }
        }
    }

    /// May anybody who reaches it read and write there?
    pub fn is_open(&self) -> bool {
        !matches!(self, TierUrl::Redis { has_password: true, .. })
    }
}

/// Without a password.
impl std::fmt::Debug for TierUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.shown())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_servers_stand_in_one_url() {
        let shown = |text: &str| TierUrl::all_of(text).map(|urls| urls.iter().map(TierUrl::shown).collect::<Vec<_>>());
        assert_eq!(
            shown("memcached://10.0.0.1,[::1]:7,cache.test:11212").unwrap(),
            ["memcached://10.0.0.1:11211", "memcached://[::1]:7", "memcached://cache.test:11212"]
        );
        assert_eq!(shown("redis://u:s3cret@a:1/2,b").unwrap(), ["redis://a:1/2", "redis://b"]);
        let open = TierUrl::all_of("redis://u:s3cret@a:1/2,b").unwrap();
        assert_eq!(open.iter().map(TierUrl::is_open).collect::<Vec<_>>(), [false, true]);
        assert!(!format!("{open:?}").contains("s3cret"));
        for wrong in [
            "http://a",
            "a:1",
            "memcached://",
            "memcached://a,",
            "memcached://a:0",
            "memcached://a:x",
            "memcached://u@a",
            "memcached://a/1",
            "redis://:1",
            "redis://a b",
        ] {
            assert!(shown(wrong).is_err(), "{wrong}");
        }
    }
}
