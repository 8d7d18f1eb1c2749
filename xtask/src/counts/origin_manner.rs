//! How the origin answers, by the first segment of the path: what may be stored and for how long, how a body is framed, and what goes wrong.
//!
//! It makes bytes; who sends them, and counts them, is `counted_origin.rs`.

use std::time::Duration;

use crate::dice::Dice;

const TEXT_BYTES: u64 = 6_000;
/// More than a socket takes at once.
const LARGE_BYTES: u64 = 400_000;
const PAUSE: Duration = Duration::from_millis(4);
const CHUNK_BYTES: usize = 1_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OriginManner {
    Fresh,
    /// Has to be confirmed each time, by a tag that changes now and then.
    Confirmed,
    /// Served stale while it is fetched anew.
    Stale,
    /// Fails now and then, and what was stored may be served then.
    Unsteady,
    Private,
    Unstored,
    Varying,
    Cookie,
    Chunked,
    Trailers,
    Unframed,
    Slow,
    Trickling,
    Large,
    Text,
    Interim,
    ServerError,
    Overloaded,
    Absent,
    Moved,
    Empty,
    /// Breaks off: a body with a length, one of chunks, a head, before a head.
    CutBody,
    CutChunks,
    CutHead,
    CutAtOnce,
    /// Is no HTTP: a head, a chunk.
    NoHead,
    NoChunk,
    /// Never says anything.
    Silent,
}

use OriginManner as M;

/// With how many of a hundred requests or so ask for it.
pub const MANNERS: [(OriginManner, &str, u64); 27] = [
    (M::Fresh, "fresh", 22),
    (M::Confirmed, "confirmed", 8),
    (M::Stale, "stale", 8),
    (M::Unsteady, "unsteady", 6),
    (M::Private, "private", 5),
    (M::Unstored, "unstored", 4),
    (M::Varying, "varying", 4),
    (M::Cookie, "cookie", 3),
    (M::Chunked, "chunked", 4),
    (M::Trailers, "trailers", 2),
    (M::Unframed, "unframed", 3),
    (M::Slow, "slow", 5),
    (M::Trickling, "trickling", 3),
    (M::Large, "large", 2),
    (M::Text, "text", 5),
    (M::Interim, "interim", 2),
    (M::ServerError, "server-error", 2),
    (M::Overloaded, "overloaded", 2),
    (M::Absent, "absent", 2),
    (M::Moved, "moved", 2),
    (M::Empty, "empty", 2),
    (M::CutBody, "cut-body", 2),
    (M::CutChunks, "cut-chunks", 2),
    (M::CutHead, "cut-head", 1),
    (M::CutAtOnce, "cut-at-once", 2),
    (M::NoHead, "no-head", 1),
    (M::NoChunk, "no-chunk", 1),
];

/// What is sent, in order, and what becomes of the connection.
pub struct MannerOfAnswer {
    pub pieces: Vec<AnswerPiece>,
    pub keeps_connection: bool,
    /// What is wrong with it, in the words of `larder_origin_faults_total`.
    pub fault: Option<&'static str>,
}

impl MannerOfAnswer {
    fn whole(pieces: Vec<AnswerPiece>) -> MannerOfAnswer {
        MannerOfAnswer { pieces, keeps_connection: true, fault: None }
    }

    fn broken(pieces: Vec<AnswerPiece>, fault: &'static str) -> MannerOfAnswer {
        MannerOfAnswer { pieces, keeps_connection: false, fault: Some(fault) }
    }
}

pub enum AnswerPiece {
    Bytes(Vec<u8>),
    Pause(Duration),
}

impl OriginManner {
    /// By what the path begins with. `None`: it is none of ours.
    pub fn of_path(path: &str) -> Option<OriginManner> {
        let word = path.split('/').nth(1).unwrap_or_default();
        let word = word.split('?').next().unwrap_or_default();
        MANNERS.iter().find(|(_, known, _)| *known == word).map(|(manner, ..)| *manner)
    }

    /// A word for a path, the likely ones more often.
    pub fn drawn(dice: &mut Dice) -> &'static str {
        let all: u64 = MANNERS.iter().map(|(.., share)| share).sum();
        let mut at = dice.below(all);
        for (_, word, share) in MANNERS {
            if at < share {
                return word;
            }
            at -= share;
        }
        unreachable!("the shares make up the sum")
    }

    fn fields(self, dice: &mut Dice) -> String {
        match self {
            M::Confirmed => {
                format!("Cache-Control: max-age=0, must-revalidate\r\nETag: \"{}\"\r\n", dice.often_small(3))
            }
            M::Stale => "Cache-Control: max-age=0, stale-while-revalidate=600\r\nETag: \"0\"\r\n".to_owned(),
            M::Unsteady => "Cache-Control: max-age=0, stale-if-error=600\r\nETag: \"0\"\r\n".to_owned(),
            M::Private => "Cache-Control: private\r\n".to_owned(),
            M::Unstored => "Cache-Control: no-store\r\n".to_owned(),
            M::Varying => "Cache-Control: max-age=600\r\nVary: X-Kind\r\n".to_owned(),
            M::Cookie => "Cache-Control: max-age=600\r\nSet-Cookie: a=b\r\n".to_owned(),
            M::Interim => "Link: </a.css>; rel=preload\r\nCache-Control: max-age=600\r\n".to_owned(),
            M::Moved => "Location: /fresh/1\r\nCache-Control: max-age=600\r\n".to_owned(),
            M::Absent => "Cache-Control: max-age=1\r\n".to_owned(),
            M::ServerError | M::Overloaded => String::new(),
            _ => "Cache-Control: max-age=600\r\nETag: \"0\"\r\n".to_owned(),
        }
    }

    fn status(self, dice: &mut Dice) -> &'static str {
        match self {
            M::ServerError => "500 Internal Server Error",
            M::Overloaded => "503 Service Unavailable",
            M::Unsteady if dice.below(3) == 0 => "500 Internal Server Error",
            M::Absent => "404 Not Found",
            M::Moved => "301 Moved Permanently",
            M::Empty => "204 No Content",
            _ => "200 OK",
        }
    }

    fn body(self, dice: &mut Dice) -> Vec<u8> {
        let bytes = match self {
            M::Empty => 0,
            M::Large => LARGE_BYTES,
            M::Text => TEXT_BYTES,
            _ => dice.below(2_000),
        };
        (0..bytes).map(|at| b'a' + (at / 7 % 26) as u8).collect()
    }

    /// The whole answer to one request. `tag`: what its If-None-Match says.
    pub fn answer(self, dice: &mut Dice, method: &str, tag: Option<&str>) -> MannerOfAnswer {
        let (status, fields, body) = (self.status(dice), self.fields(dice), self.body(dice));
        let confirms = self != M::Silent
            && status.starts_with("200")
            && tag.is_some_and(|tag| fields.contains(&format!("ETag: {tag}\r\n")));
        if confirms && matches!(method, "GET" | "HEAD") {
            let head = format!("HTTP/1.1 304 Not Modified\r\n{fields}\r\n");
            return MannerOfAnswer::whole(vec![AnswerPiece::Bytes(head.into_bytes())]);
        }
        let kind = if self == M::Text { "text/html" } else { "application/octet-stream" };
        let head = format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\n{fields}");
        let has_body = method != "HEAD" && self != M::Empty;
        let mut pieces = Vec::new();
        match self {
            M::Slow => pieces.push(AnswerPiece::Pause(PAUSE)),
            M::Interim => {
                let interim = b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n";
                pieces.push(AnswerPiece::Bytes(interim.to_vec()));
            }
            M::CutAtOnce | M::Silent => return MannerOfAnswer::broken(pieces, "first-byte"),
            M::CutHead => {
                pieces.push(AnswerPiece::Bytes(head.into_bytes()));
                return MannerOfAnswer::broken(pieces, "truncated");
            }
            M::NoHead => {
                pieces.push(AnswerPiece::Bytes(b"it is no answer\r\n\r\n".to_vec()));
                return MannerOfAnswer::broken(pieces, "protocol");
            }
            _ => {}
        }
        pieces.extend(self.framed(head, body, has_body));
        match self {
            M::CutBody | M::CutChunks if has_body => MannerOfAnswer::broken(pieces, "truncated"),
            M::NoChunk if has_body => MannerOfAnswer::broken(pieces, "protocol"),
            _ => MannerOfAnswer { keeps_connection: self != M::Unframed, ..MannerOfAnswer::whole(pieces) },
        }
    }

    /// Head and body as they are framed.
    fn framed(self, mut head: String, body: Vec<u8>, has_body: bool) -> Vec<AnswerPiece> {
        let (rest, late) = match self {
            M::Empty => (Vec::new(), Vec::new()),
            M::Chunked | M::Trailers | M::CutChunks | M::NoChunk => {
                head.push_str("Transfer-Encoding: chunked\r\n");
                let mut text = chunks(&body);
                match self {
                    M::CutChunks => text.extend_from_slice(b"40\r\nit breaks off"),
                    M::NoChunk => text.extend_from_slice(b"no chunk\r\n"),
                    M::Trailers => text.extend_from_slice(b"0\r\nX-Sum: 1\r\n\r\n"),
                    _ => text.extend_from_slice(b"0\r\n\r\n"),
                }
                (text, Vec::new())
            }
            M::Unframed => (body, Vec::new()),
            M::CutBody => {
                head.push_str(&format!("Content-Length: {}\r\n", body.len() + 1));
                (body, Vec::new())
            }
            M::Trickling => {
                head.push_str(&format!("Content-Length: {}\r\n", body.len()));
                let (first, late) = body.split_at(body.len() / 2);
                (first.to_vec(), late.to_vec())
            }
            _ => {
                head.push_str(&format!("Content-Length: {}\r\n", body.len()));
                (body, Vec::new())
            }
        };
        head.push_str("\r\n");
        let mut first = head.into_bytes();
        if !has_body {
            return vec![AnswerPiece::Bytes(first)];
        }
        first.extend_from_slice(&rest);
        if late.is_empty() {
            return vec![AnswerPiece::Bytes(first)];
        }
        vec![AnswerPiece::Bytes(first), AnswerPiece::Pause(PAUSE), AnswerPiece::Bytes(late)]
    }
}

/// Without the last.
fn chunks(body: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    for piece in body.chunks(CHUNK_BYTES) {
        text.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
        text.extend_from_slice(piece);
        text.extend_from_slice(b"\r\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_one_manner_and_can_be_drawn() {
        let mut dice = Dice::of(1);
        let drawn: std::collections::BTreeSet<_> = (0..10_000).map(|_| OriginManner::drawn(&mut dice)).collect();
        assert_eq!(drawn.len(), MANNERS.len());
        for (manner, word, _) in MANNERS {
            assert_eq!(OriginManner::of_path(&format!("/{word}/7?a=b")), Some(manner));
        }
        assert_eq!(OriginManner::of_path("/"), None);
    }

    #[test]
    fn what_breaks_off_ends_its_connection_and_says_more_than_it_sends() {
        let mut dice = Dice::of(1);
        let whole = |manner: OriginManner, dice: &mut Dice| {
            let answer = manner.answer(dice, "GET", None);
            let bytes = answer.pieces.into_iter().flat_map(|piece| match piece {
                AnswerPiece::Bytes(bytes) => bytes,
                AnswerPiece::Pause(_) => Vec::new(),
            });
            (String::from_utf8(bytes.collect()).expect("it is text"), answer.keeps_connection)
        };
        let (text, keeps) = whole(M::CutChunks, &mut dice);
        assert!(text.ends_with("40\r\nit breaks off") && !keeps, "{text}");
        assert_eq!(whole(M::CutAtOnce, &mut dice), (String::new(), false));
        let (text, keeps) = whole(M::Trailers, &mut dice);
        assert!(text.ends_with("0\r\nX-Sum: 1\r\n\r\n") && keeps, "{text}");
    }

    #[test]
    fn what_is_known_by_its_tag_is_confirmed() {
        let answer = M::Fresh.answer(&mut Dice::of(1), "GET", Some("\"0\""));
        let [AnswerPiece::Bytes(head)] = &answer.pieces[..] else { panic!("a head alone") };
        assert!(head.starts_with(b"HTTP/1.1 304 "));
    }
}
