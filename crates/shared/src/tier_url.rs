//! Where the servers of the tier are: `memcached://HOST:PORT,HOST:PORT` or `redis://[USER:PASSWORD@]HOST:PORT[/DB],…`, the same with `rediss://`
//! over TLS, or one that is found through its sentinels.

use engines::EnginePlace;

const MEMCACHED: &str = "memcached://";
const MEMCACHED_PORT: &str = "11211";
const REDIS: &str = "redis://";
const REDIS_TLS: &str = "rediss://";
const SENTINELS: [&str; 2] = ["redis+sentinel://", "rediss+sentinel://"];

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
        if SENTINELS.iter().any(|scheme| text.starts_with(scheme)) {
            return TierUrl::through_sentinels(text).map(|server| vec![server]);
        }
        let found =
            [MEMCACHED, REDIS, REDIS_TLS].into_iter().find_map(|scheme| Some((scheme, text.strip_prefix(scheme)?)));
        let (scheme, rest) = found.ok_or(
            "memcached://HOST:PORT, redis://HOST:PORT or rediss://HOST:PORT is, several with commas between them, or redis+sentinel://HOST:PORT,…/NAME",
        )?;
        rest.split(',').map(|server| TierUrl::of(scheme, server)).collect()
    }

    /// All of it is one server, whichever that is.
    fn through_sentinels(text: &str) -> Result<TierUrl, String> {
        EnginePlace::new(text, None)
            .map(|place| TierUrl::Redis { url: text.to_owned(), has_password: place.has_password() })
    }

    fn of(scheme: &str, server: &str) -> Result<TierUrl, String> {
        let place = server.rsplit_once('@').map_or(server, |(_, place)| place);
        let (address, path) = place.split_once('/').unwrap_or((place, ""));
        let is_fit = !address.is_empty() && !address.starts_with(':') && !server.contains(char::is_whitespace);
        if !is_fit {
            return Err(format!("`{address}` is no HOST:PORT"));
        }
        if scheme != MEMCACHED {
            return Ok(TierUrl::Redis { url: format!("{scheme}{server}"), has_password: place != server });
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
                let (scheme, rest) = url.split_once("://").unwrap_or(("redis", url));
                format!("{scheme}://{}", rest.rsplit_once('@').map_or(rest, |(_, place)| place))
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
        assert_eq!(shown("rediss://u:s3cret@a:1,b").unwrap(), ["rediss://a:1", "rediss://b"]);
        let through = TierUrl::all_of("redis+sentinel://u:s3cret@a:1,b/shop/2").unwrap();
        assert_eq!((through[0].shown().as_str(), through.len()), ("redis+sentinel://a:1,b/shop/2", 1));
        assert!(!through[0].is_open() && TierUrl::all_of("redis+sentinel://a/shop").unwrap()[0].is_open());
        for wrong in [
            "http://a",
            "a:1",
            "memcached://",
            "memcached://a,",
            "memcached://a:0",
            "memcached://a:x",
            "memcached://u@a",
            "memcached://a/1",
            "redis+sentinel://a,b",
            "rediss://:1",
            "redis://:1",
            "redis://a b",
        ] {
            assert!(shown(wrong).is_err(), "{wrong}");
        }
    }
}
