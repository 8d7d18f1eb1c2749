//! What a client got on one connection, read as a sequence of answers: strictly, and by the harness's own reader.
//! It knows which methods were asked, since the framing of an answer depends on it, and nothing else of the row.

use crate::raw_client::End;
use crate::strict_head::{self, Framing, Head};

/// One final answer with the interim ones before it.
#[derive(Clone, Debug)]
pub struct Answer {
    pub interim: Vec<u16>,
    pub status: u16,
    pub head: Head,
    pub framing: Framing,
    pub body: Vec<u8>,
    /// False when the connection ended, or stands still, inside the body.
    pub complete: bool,
}

/// Everything on a connection.
#[derive(Clone, Debug, Default)]
pub struct Answers {
    pub answers: Vec<Answer>,
    /// Bytes behind the last answer that are no answer to anything asked (yet), or a tunnel's.
    pub rest: Vec<u8>,
    /// The last answer was a 101.
    pub tunnel: bool,
}

/// Reads answers to requests of these methods; requests beyond the list count as GET.
pub fn read(bytes: &[u8], methods: &[String], end: Option<End>) -> Result<Answers, String> {
    let mut out = Answers::default();
    let mut at = 0;
    let mut interim = Vec::new();
    while at < bytes.len() {
        let Some(head) = strict_head::read_head(&bytes[at..])? else { break };
        let status = read_status_line(&head.start)?;
        at += head.bytes;
        if status == 101 {
            out.answers.push(Answer {
                interim,
                status,
                head,
                framing: Framing::None,
                body: Vec::new(),
                complete: true,
            });
            out.tunnel = true;
            break;
        }
        if status < 200 {
            interim.push(status);
            continue;
        }
        let method = methods.get(out.answers.len()).map_or("GET", |method| method);
        let framing = framing_of_answer(&head, status, method)?;
        let body = strict_head::read_body(&bytes[at..], framing, end == Some(End::Fin))?;
        at += body.consumed;
        let (body, complete) = (body.bytes, body.complete);
        out.answers.push(Answer { interim: std::mem::take(&mut interim), status, head, framing, body, complete });
        if !complete {
            at = bytes.len();
        }
    }
    out.rest = bytes[at..].to_vec();
    Ok(out)
}

/// `HTTP/1.1 200 OK`: three digits, a space even before an empty reason (RFC 9112 §4).
fn read_status_line(line: &str) -> Result<u16, String> {
    let bad = || format!("status line {line:?}");
    let rest = line.strip_prefix("HTTP/1.1 ").ok_or_else(bad)?;
    let (digits, rest) = rest.split_at_checked(3).ok_or_else(bad)?;
    let status: u16 = digits.parse().map_err(|_| bad())?;
    if !rest.starts_with(' ') || !(100..1000).contains(&status) || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(bad());
    }
    Ok(status)
}

/// RFC 9112 §6.3.
fn framing_of_answer(head: &Head, status: u16, method: &str) -> Result<Framing, String> {
    let announced = strict_head::read_framing(head)?;
    match (status, method, announced) {
        // RFC 9110 §9.3.6: what follows is the tunnel's.
        (200..=299, "CONNECT", Framing::None) => Ok(Framing::None),
        (200..=299, "CONNECT", _) => Err("a tunnel with framing fields".into()),
        (204, _, Framing::Length(_) | Framing::Chunked) => Err("a 204 with framing fields".into()),
        (304, _, Framing::Chunked) => Err("a 304 with Transfer-Encoding".into()),
        (204 | 304, _, _) | (_, "HEAD", _) => Ok(Framing::None),
        (_, _, Framing::None) => Ok(Framing::UntilClose),
        (_, _, framing) => Ok(framing),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, methods: &[&str], expect: Result<&str, ()>) {
        let methods: Vec<_> = methods.iter().map(|m| m.to_string()).collect();
        let got = read(text.replace('¶', "\r\n").as_bytes(), &methods, Some(End::Fin)).map(|answers| {
            let line = |a: &Answer| format!("{}{}:{}", a.status, if a.complete { "" } else { "!" }, a.body.len());
            let mut words: Vec<_> = answers.answers.iter().map(line).collect();
            words.extend((!answers.rest.is_empty()).then(|| format!("+{}", answers.rest.len())));
            words.join(" ")
        });
        assert_eq!(got.as_deref().map_err(|_| ()), expect, "{text}");
    }

    #[test]
    fn answers_follow_one_another() {
        let ok = "HTTP/1.1 200 OK¶Content-Length: 2¶¶ok";
        check(&[ok, ok].concat(), &[], Ok("200:2 200:2"));
        check("HTTP/1.1 100 Continue¶¶HTTP/1.1 204 ¶¶", &[], Ok("204:0"));
        check("HTTP/1.1 200 OK¶Content-Length: 2¶¶HTTP/1.1 204 x¶¶", &["HEAD", "GET"], Ok("200:0 204:0"));
        check("HTTP/1.1 200 OK¶¶all", &[], Ok("200:3"));
        check("HTTP/1.1 200 OK¶Content-Length: 5¶¶ok", &[], Ok("200!:2"));
        check("HTTP/1.1 200 OK¶Transfer-Encoding: chunked¶¶2¶ok¶", &[], Ok("200!:2"));
        check("HTTP/1.1 101 x¶¶raw", &[], Ok("101:0 +3"));
        check("HTTP/1.1 200 OK¶¶HTTP/1.1 204 x¶¶", &["CONNECT", "GET"], Ok("200:0 204:0"));
        check("HTTP/1.1 20", &[], Ok("+11"));
    }

    #[test]
    fn what_is_no_answer_is_refused() {
        for bad in ["HTTP/1.1 200¶¶", "HTTP/1.0 200 OK¶¶", "HTTP/1.1 2000 OK¶¶", "HTTP/1.1 204 x¶Content-Length: 0¶¶"]
        {
            check(bad, &[], Err(()));
        }
    }
}
