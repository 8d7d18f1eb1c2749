//! Connections to an engine. Where sentinels know which one leads they are asked anew for each connection: who was demoted closes those that
//! it has.

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, RedisError, TlsCertificates, Value};

use crate::engine_url::{EngineUrl, SentinelUrl};

/// Where an engine is.
#[derive(Clone)]
pub struct EnginePlace {
    reached: Reached,
    authorities: Option<Vec<u8>>,
    has_password: bool,
}

#[derive(Clone)]
enum Reached {
    /// Boxed, for a client is large.
    At(Box<Client>),
    Through(SentinelUrl),
}

impl EnginePlace {
    /// `url` as `redis://…`, `rediss://…`, `redis+unix://…`, `redis+sentinel://…` or `rediss+sentinel://…`. `authorities`: who may sign the
    /// certificates of the engine and its sentinels, in PEM; without, whom this system trusts. The error is a sentence.
    pub fn new(url: &str, authorities: Option<Vec<u8>>) -> Result<EnginePlace, String> {
        let reached = match EngineUrl::of(url)? {
            EngineUrl::One(url) => Reached::At(Box::new(client(&url, authorities.as_deref())?)),
            EngineUrl::Sentinels(url) => {
                url.sentinels().try_for_each(|sentinel| client(&sentinel, authorities.as_deref()).map(drop))?;
                Reached::Through(url)
            }
        };
        let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
        Ok(EnginePlace { reached, authorities, has_password: rest.contains('@') })
    }

    /// Without one whoever reaches it can read and write there.
    pub fn has_password(&self) -> bool {
        self.has_password
    }

    pub async fn connection(&self, config: &AsyncConnectionConfig) -> Result<MultiplexedConnection, String> {
        match &self.reached {
            Reached::At(client) => connected(client, config).await,
            Reached::Through(url) => self.to_leader(url, config).await,
        }
    }

    /// The first sentinel that knows of one that leads is believed, if that says the same of itself.
    async fn to_leader(
        &self,
        url: &SentinelUrl,
        config: &AsyncConnectionConfig,
    ) -> Result<MultiplexedConnection, String> {
        let mut why = String::new();
        for sentinel in url.sentinels() {
            match self.by(&sentinel, url, config).await {
                Ok(connection) => return Ok(connection),
                Err(wrong) => why = format!("{sentinel}: {wrong}"),
            }
        }
        Err(format!("no sentinel leads to {}; the last one said: {why}", url.name))
    }

    async fn by(
        &self,
        sentinel: &str,
        url: &SentinelUrl,
        config: &AsyncConnectionConfig,
    ) -> Result<MultiplexedConnection, String> {
        let authorities = self.authorities.as_deref();
        let mut asked = connected(&client(sentinel, authorities)?, config).await?;
        let mut question = Cmd::new();
        question.arg("SENTINEL").arg("GET-MASTER-ADDR-BY-NAME").arg(&url.name);
        let place: Option<(String, u16)> = question.query_async(&mut asked).await.map_err(|why| sentence(&why))?;
        let (host, port) = place.ok_or_else(|| format!("it knows of no {}", url.name))?;
        let mut leader = connected(&client(&url.leader(&host, port), authorities)?, config).await?;
        let role: Value = Cmd::new().arg("ROLE").query_async(&mut leader).await.map_err(|why| sentence(&why))?;
        match leads(&role) {
            true => Ok(leader),
            false => Err(format!("it names {host}:{port}, which does not lead")),
        }
    }
}

fn leads(role: &Value) -> bool {
    let Value::Array(words) = role else { return false };
    matches!(words.first(), Some(Value::BulkString(word)) if word == b"master")
}

fn client(url: &str, authorities: Option<&[u8]>) -> Result<Client, String> {
    let made = match url.starts_with("rediss") {
        true => {
            // Who has set one before has set the same.
            let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
            let root_cert = authorities.map(<[u8]>::to_vec);
            Client::build_with_tls(url, TlsCertificates { client_tls: None, root_cert })
        }
        false => Client::open(url),
    };
    made.map_err(|why| sentence(&why))
}

async fn connected(client: &Client, config: &AsyncConnectionConfig) -> Result<MultiplexedConnection, String> {
    client.get_multiplexed_async_connection_with_config(config).await.map_err(|why| sentence(&why))
}

/// What went wrong, without what was sent: that may hold a password.
pub fn sentence(why: &RedisError) -> String {
    match why.detail() {
        Some(detail) => format!("{}: {detail}", why.category()),
        None => why.to_string(),
    }
}
