//! What a URL says of where an engine is:
//!
//! * `redis://[USER:PASSWORD@]HOST[:PORT][/DB]`, the same with `rediss://` over TLS, or `redis+unix:///PATH`, as the crate `redis` reads them;
//! * `redis+sentinel://[USER:PASSWORD@]HOST[:PORT][,HOST[:PORT]…]/NAME[/DB]`, where NAME is what the sentinels call the one that leads; with
//!   `rediss+sentinel://` both they and the engine are spoken to over TLS. User and password are the engine's.

use crate::limits::SENTINELS_MAX;

const SENTINEL_PORT: &str = "26379";
const SCHEMES: [(&str, &str); 2] = [("redis+sentinel://", "redis"), ("rediss+sentinel://", "rediss")];

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum EngineUrl {
    /// As it is.
    One(String),
    Sentinels(SentinelUrl),
}

/// What is asked of sentinels, and how the one is reached that they name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SentinelUrl {
    scheme: &'static str,
    /// HOST:PORT
    sentinels: Vec<String>,
    pub name: String,
    /// `USER:PASSWORD@`, or nothing.
    login: String,
    database: String,
}

impl EngineUrl {
    /// An error is a sentence.
    pub fn of(text: &str) -> Result<EngineUrl, String> {
        let found = SCHEMES.iter().find_map(|(prefix, scheme)| Some((*scheme, text.strip_prefix(prefix)?)));
        match found {
            None => Ok(EngineUrl::One(text.to_owned())),
            Some((scheme, rest)) => SentinelUrl::of(scheme, rest).map(EngineUrl::Sentinels),
        }
    }
}

impl SentinelUrl {
    fn of(scheme: &'static str, rest: &str) -> Result<SentinelUrl, String> {
        let (login, rest) =
            rest.rsplit_once('@').map_or((String::new(), rest), |(login, rest)| (format!("{login}@"), rest));
        let (hosts, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (name, database) = path.split_once('/').unwrap_or((path, ""));
        let sentinels: Vec<String> = hosts.split(',').map(with_port).collect();
        let is_fit = |host: &String| !host.starts_with(':') && !host.contains(char::is_whitespace);
        if sentinels.len() > SENTINELS_MAX || !sentinels.iter().all(is_fit) {
            return Err(format!("sentinels are HOST:PORT, {SENTINELS_MAX} of them at most, with commas between them"));
        }
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(
                "behind the sentinels stands what they call the one that leads: redis+sentinel://a:26379,b:26379/NAME"
                    .to_owned(),
            );
        }
        if !database.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(format!("`{database}` is no number of a database"));
        }
        let (name, database) = (name.to_owned(), database.to_owned());
        Ok(SentinelUrl { scheme, sentinels, name, login, database })
    }

    pub fn sentinels(&self) -> impl Iterator<Item = String> {
        self.sentinels.iter().map(|host| format!("{}://{host}", self.scheme))
    }

    /// The one that they name.
    pub fn leader(&self, host: &str, port: u16) -> String {
        let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        format!("{}://{}{host}:{port}/{}", self.scheme, self.login, self.database)
    }
}

fn with_port(host: &str) -> String {
    let has_port = match host.rsplit_once(']') {
        Some((_, behind)) => behind.starts_with(':'),
        None => host.contains(':'),
    };
    if has_port { host.to_owned() } else { format!("{host}:{SENTINEL_PORT}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sentinels(text: &str) -> SentinelUrl {
        match EngineUrl::of(text) {
            Ok(EngineUrl::Sentinels(url)) => url,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn sentinels_and_what_they_name_stand_in_one_url() {
        let url = sentinels("redis+sentinel://u:s3cr@t@a:1,b,[::1]/shop/2");
        assert_eq!(url.sentinels().collect::<Vec<_>>(), ["redis://a:1", "redis://b:26379", "redis://[::1]:26379"]);
        assert_eq!(
            (url.name.as_str(), url.leader("10.0.0.7", 6379).as_str()),
            ("shop", "redis://u:s3cr@t@10.0.0.7:6379/2")
        );
        let url = sentinels("rediss+sentinel://a/shop");
        assert_eq!(url.sentinels().collect::<Vec<_>>(), ["rediss://a:26379"]);
        assert_eq!(url.leader("::2", 1), "rediss://[::2]:1/");
    }

    #[test]
    fn any_other_url_is_left_to_who_reads_it() {
        for url in ["redis://a", "rediss://u:p@a:1/2", "redis+unix:///run/redis.sock", "http://a"] {
            assert_eq!(EngineUrl::of(url), Ok(EngineUrl::One(url.to_owned())));
        }
    }

    #[test]
    fn what_cannot_be_is_said() {
        let many = format!("redis+sentinel://{}a/shop", "a,".repeat(SENTINELS_MAX));
        for (url, part) in [
            ("redis+sentinel://a", "what they call the one"),
            ("redis+sentinel://a/", "what they call the one"),
            ("redis+sentinel:///shop", "HOST:PORT"),
            ("redis+sentinel://a,,b/shop", "HOST:PORT"),
            ("redis+sentinel://a/shop/x", "no number"),
            (&many, "16 of them at most"),
        ] {
            let why = EngineUrl::of(url).expect_err(url);
            assert!(why.contains(part), "{url}: {why}");
        }
    }
}
