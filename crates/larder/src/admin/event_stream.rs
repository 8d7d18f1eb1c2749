//! `GET /log[?q=QUERY][&rate=N]`: the exchanges of all cores as they end, as lines of JSON, until one of both leaves.
//!
//! What the reader was too slow for, or did not ask to be told in one second, is counted in a line `{"v":1,"lost":N}`. While nothing
//! happens an empty line is sent now and then: who is gone is found out.

use std::io;

use message::Status;
use proxy::Proxy;
use proxy::events::{EVENT_VERSION, EventQuery, EventReader};
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use wire::head_of_endless_answer;

use super::vcl_requests::{VclReply, query_value};
use crate::limits::{ADMIN_EVENTS_PER_SECOND, ADMIN_EVENTS_PER_SECOND_MAX, ADMIN_QUIET_MAX, ADMIN_TIMEOUT};

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventsWanted {
    query: String,
    per_second_max: u32,
}

impl EventsWanted {
    /// By the query of the request's target.
    pub fn of(target_query: Option<&[u8]>) -> Result<EventsWanted, &'static str> {
        let query = given(target_query, "q")?.unwrap_or_default();
        let per_second_max = match given(target_query, "rate")? {
            None => ADMIN_EVENTS_PER_SECOND,
            Some(rate) => rate
                .parse()
                .ok()
                .filter(|rate| (1..=ADMIN_EVENTS_PER_SECOND_MAX).contains(rate))
                .ok_or("write ?rate=N, events a second from 1 to 1000000")?,
        };
        Ok(EventsWanted { query, per_second_max })
    }

    /// From now on they are gathered.
    pub fn begin(&self, proxy: &Proxy) -> Result<EventReader, VclReply> {
        let refused = |status, why: String| VclReply { status, body: format!("{}\n", json!({ "error": why })) };
        let query = EventQuery::parse(&self.query).map_err(|error| refused(400, format!("the query, {error}")))?;
        proxy
            .read_events(query, self.per_second_max)
            .map_err(|_| refused(503, format!("{} others read along already", proxy::limits::EVENT_READERS_MAX)))
    }
}

/// A value of the target's query. One that cannot be decoded is none that is absent.
fn given(target_query: Option<&[u8]>, key: &str) -> Result<Option<String>, &'static str> {
    let begin = format!("{key}=");
    let is_there = |query: &[u8]| query.split(|b| *b == b'&').any(|pair| pair.starts_with(begin.as_bytes()));
    match query_value(target_query, key) {
        None if target_query.is_some_and(is_there) => Err("q and rate are percent-encoded UTF-8"),
        value => Ok(value),
    }
}

/// Sends what comes.
pub async fn serve<S>(stream: &mut S, mut events: EventReader) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let fields = [
        ("Content-Type", "application/x-ndjson"),
        ("Cache-Control", "no-store"),
        ("X-Content-Type-Options", "nosniff"),
    ];
    send(stream, &head_of_endless_answer(Status::OK, &fields)).await?;
    let mut said = [0; 256];
    loop {
        let lines = tokio::select! {
            piece = events.next() => {
                let mut lines = piece.lines;
                if piece.lost > 0 {
                    lines.extend_from_slice(format!("{}\n", json!({ "v": EVENT_VERSION, "lost": piece.lost })).as_bytes());
                }
                lines
            }
            () = tokio::time::sleep(ADMIN_QUIET_MAX) => b"\n".to_vec(),
            // It has nothing more to say: what comes is its leaving.
            read = stream.read(&mut said) => match read? {
                0 => return Ok(()),
                _ => continue,
            },
        };
        send(stream, &lines).await?;
    }
}

async fn send<S: AsyncWrite + Unpin>(stream: &mut S, bytes: &[u8]) -> io::Result<()> {
    tokio::time::timeout(ADMIN_TIMEOUT, stream.write_all(bytes)).await?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(target_query: &str, expect: Result<(&str, u32), ()>) {
        let got = EventsWanted::of(Some(target_query.as_bytes()));
        let expect = expect.map(|(query, per_second_max)| EventsWanted { query: query.to_owned(), per_second_max });
        assert_eq!(got.map_err(drop), expect, "{target_query}");
    }

    #[test]
    fn a_request_says_which_events_and_how_many() {
        check("", Ok(("", ADMIN_EVENTS_PER_SECOND)));
        check("q=status+%3E%3D+500&rate=7", Ok(("status >= 500", 7)));
        for wrong in ["rate=0", "rate=x", "rate=-1", "rate=1000001", "q=status%zz", "q=%ff", "rate=%"] {
            check(wrong, Err(()));
        }
    }
}
