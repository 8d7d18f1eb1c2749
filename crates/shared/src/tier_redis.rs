//! One Redis or Valkey of the tier. The right to fetch is a key beside the name, which lives for a while.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bytes::Bytes;
use engines::{EnginePlace, sentence};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Cmd, Pipeline, RedisError, Script};
use tokio::sync::Mutex;

use crate::limits::{CONNECT_TIMEOUT, KEPT_WITHIN, RIGHT_LIFE};
use crate::looked::Looked;

/// KEYS: the right. ARGV: the token.
const GIVE_BACK: &str = "
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0
";

pub struct RedisLane {
    engine: EnginePlace,
    connection: Mutex<Option<MultiplexedConnection>>,
    give_back: Script,
    /// What the next token is made of, and what those of this process begin with.
    tokens: AtomicU64,
}

impl RedisLane {
    /// `run`: of this process, and of no other one.
    pub fn new(url: &str, authorities: Option<Vec<u8>>, run: u64) -> Result<RedisLane, String> {
        let engine = EnginePlace::new(url, authorities)?;
        let (connection, give_back) = (Mutex::new(None), Script::new(GIVE_BACK));
        Ok(RedisLane { engine, connection, give_back, tokens: AtomicU64::new(run) })
    }

    pub async fn look(&self, key: &str, wants_right: bool) -> Result<Looked, String> {
        let found: Option<Vec<u8>> = self.ask(Cmd::new().arg("GET").arg(key)).await?;
        match found {
            Some(value) => Ok(Looked::Value(Bytes::from(value))),
            None if wants_right => self.take_right(key).await,
            None => Ok(Looked::Nothing),
        }
    }

    /// Who had the right may have kept it and given that back since we looked.
    async fn take_right(&self, key: &str) -> Result<Looked, String> {
        let token = self.tokens.fetch_add(1, Relaxed);
        let mut both = Pipeline::new();
        both.cmd("SET").arg(right_of(key)).arg(token).arg("NX").arg("PX").arg(RIGHT_LIFE.as_millis() as u64);
        both.cmd("GET").arg(key);
        let mut connection = self.connection().await?;
        let came: Result<(Option<String>, Option<Vec<u8>>), RedisError> = both.query_async(&mut connection).await;
        let (won, found) = self.checked(came).await?;
        match (won, found) {
            (None, Some(value)) => Ok(Looked::Value(Bytes::from(value))),
            (Some(_), Some(value)) => {
                self.give_back(key, token).await?;
                Ok(Looked::Value(Bytes::from(value)))
            }
            (Some(_), None) => Ok(Looked::Right(token)),
            (None, None) => Ok(Looked::Taken),
        }
    }

    /// `false`: it would not have it.
    pub async fn put(&self, key: &str, value: &[u8], life_s: u64) -> Result<bool, String> {
        let mut connection = self.connection().await?;
        let mut set = Cmd::new();
        set.arg("SET").arg(key).arg(value).arg("EX").arg(life_s);
        let done: Result<(), RedisError> = set.query_async(&mut connection).await;
        match done {
            // Such as one without memory.
            Err(why) if why.code().is_some() => Ok(false),
            done => self.checked(done).await.map(|()| true),
        }
    }

    pub async fn delete(&self, key: &str) -> Result<(), String> {
        self.ask(Cmd::new().arg("DEL").arg(key)).await
    }

    pub async fn give_back(&self, key: &str, token: u64) -> Result<(), String> {
        let mut connection = self.connection().await?;
        let mut call = self.give_back.prepare_invoke();
        call.key(right_of(key)).arg(token);
        let done = call.invoke_async(&mut connection).await;
        self.checked(done).await
    }

    /// Who asks next makes a connection.
    pub async fn hang_up(&self) {
        *self.connection.lock().await = None;
    }

    async fn ask<T: redis::FromRedisValue>(&self, command: &Cmd) -> Result<T, String> {
        let mut connection = self.connection().await?;
        let came = command.query_async(&mut connection).await;
        self.checked(came).await
    }

    async fn connection(&self) -> Result<MultiplexedConnection, String> {
        let mut held = self.connection.lock().await;
        if let Some(connection) = &*held {
            return Ok(connection.clone());
        }
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT_TIMEOUT))
            .set_response_timeout(Some(KEPT_WITHIN));
        let made = self.engine.connection(&config).await?;
        *held = Some(made.clone());
        Ok(made)
    }

    /// A connection that broke is made anew by who asks next.
    async fn checked<T>(&self, came: Result<T, RedisError>) -> Result<T, String> {
        if came.as_ref().is_err_and(|why| why.code().is_none()) {
            self.hang_up().await;
        }
        came.map_err(|why| sentence(&why))
    }
}

fn right_of(key: &str) -> String {
    format!("{key}:right")
}
