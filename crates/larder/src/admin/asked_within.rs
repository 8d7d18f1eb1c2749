//! A GET that larder asks itself, and its answer, read to the end: whether it is whole is known by its framing.

use message::{FieldName, Method};
use proxy::Proxy;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use wire::{BodyDecoder, ChunkedLimits, Decoded, HeadLimits, read_response};

use super::purge_body::head_for;
use crate::limits::REFRESH_PATIENCE;

/// How it is asked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asking<'a> {
    /// Under a program nothing stored answers it.
    pub refreshes: bool,
    /// Fields, each with its CRLF.
    pub lines: &'a str,
    /// So much of the body is kept, and a longer one refused; 0: it is thrown away.
    pub body_bytes_max: usize,
}

/// A whole answer.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct WholeAnswer {
    pub status: u16,
    /// What larder says there.
    pub cache_status: Option<String>,
    pub body: Vec<u8>,
}

/// The error says why there is no whole answer.
pub async fn ask(proxy: &Proxy, url: &str, asking: Asking<'_>) -> Result<WholeAnswer, String> {
    let (scheme, head) = head_for(url)?;
    let end = head.len().saturating_sub(2);
    let request = [&head[..end], asking.lines.as_bytes(), b"User-Agent: larder\r\nConnection: close\r\n\r\n"].concat();
    let answer = async {
        let stream = proxy.connect_within(scheme, asking.refreshes).and_then(UnixStream::from_std);
        let mut stream = stream.map_err(|why| why.to_string())?;
        stream.write_all(&request).await.map_err(|why| why.to_string())?;
        read(&mut stream, asking.body_bytes_max).await
    };
    match tokio::time::timeout(REFRESH_PATIENCE, answer).await {
        Ok(answered) => answered,
        Err(_) => Err(format!("no end of the answer in {} s", REFRESH_PATIENCE.as_secs())),
    }
}

async fn read(stream: &mut UnixStream, body_bytes_max: usize) -> Result<WholeAnswer, String> {
    let (mut answered, mut decoder, mut received) = read_head(stream).await?;
    loop {
        let mut at = 0;
        while !decoder.is_end() && at < received.len() {
            at += match decoder.decode(&received[at..]).map_err(|refusal| malformed(refusal.token))? {
                Decoded::Data { from, to } if body_bytes_max > 0 => {
                    answered.body.extend_from_slice(&received[at + from..at + to]);
                    to
                }
                Decoded::Data { to, .. } => to,
                Decoded::End { consumed } => consumed,
                Decoded::More { consumed } => {
                    at += consumed;
                    break;
                }
            };
        }
        if answered.body.len() > body_bytes_max {
            return Err(format!("it has more than {} MiB", body_bytes_max >> 20));
        }
        received.drain(..at);
        if decoder.is_end() {
            return Ok(answered);
        }
        if !more(stream, &mut received).await? {
            let whole = decoder.end_of_input().map(|()| answered);
            return whole.map_err(|_| "the answer was cut off".to_owned());
        }
    }
}

/// Status and fields, the body's framing, and what has come of the body.
async fn read_head(stream: &mut UnixStream) -> Result<(WholeAnswer, BodyDecoder, Vec<u8>), String> {
    let mut received = Vec::new();
    loop {
        let mut spans = Vec::new();
        let head = read_response(&received, &mut spans, &HeadLimits::RESPONSE, Method::Get, false);
        let head = head.map_err(|refusal| malformed(refusal.token))?.map(|head| {
            let response = &head.response;
            let said = response.fields.get_all(FieldName::CacheStatus).last();
            let cache_status = said.map(|text| String::from_utf8_lossy(text).into_owned());
            let answered = WholeAnswer { status: response.status.0, cache_status, body: Vec::new() };
            (answered, BodyDecoder::for_response(head.body, &ChunkedLimits::DEFAULT), head.head_bytes)
        });
        match head {
            Some((answered, decoder, head_bytes)) => {
                received.drain(..head_bytes);
                if answered.status >= 200 {
                    return Ok((answered, decoder, received));
                }
            }
            None if more(stream, &mut received).await? => {}
            None => return Err("the connection ended before an answer".to_owned()),
        }
    }
}

/// False at the end.
async fn more(stream: &mut UnixStream, received: &mut Vec<u8>) -> Result<bool, String> {
    let mut bytes = [0; 16 << 10];
    let read = stream.read(&mut bytes).await.map_err(|why| why.to_string())?;
    received.extend_from_slice(&bytes[..read]);
    Ok(read > 0)
}

fn malformed(token: &str) -> String {
    format!("larder's own answer could not be read: {token}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(answer: &str, body_bytes_max: usize, expect: Result<(u16, &str), &str>) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let got = runtime.block_on(async {
            let (mut ours, mut theirs) = UnixStream::pair().unwrap();
            theirs.write_all(answer.as_bytes()).await.unwrap();
            drop(theirs);
            read(&mut ours, body_bytes_max).await
        });
        let got = got.map(|answered| (answered.status, String::from_utf8(answered.body).unwrap()));
        assert_eq!(got, expect.map(|(status, body)| (status, body.to_owned())).map_err(str::to_owned), "{answer}");
    }

    #[test]
    fn an_answer_is_whole_or_it_is_none() {
        check("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", 9, Ok((200, "abc")));
        check("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", 0, Ok((200, "")));
        check("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", 9, Ok((200, "abc")));
        check("HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n", 9, Ok((404, "")));
        check("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabc", 0, Err("the answer was cut off"));
        check("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", 9, Err("the answer was cut off"));
        check("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", 2, Err("it has more than 0 MiB"));
        check("HTTP/1.1 2", 9, Err("the connection ended before an answer"));
        check("", 9, Err("the connection ended before an answer"));
    }
}
