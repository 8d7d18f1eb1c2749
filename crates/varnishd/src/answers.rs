//! Answers of the management protocol: a status, a text, and both as bytes. JSON has a head of its own, with the command
//! that was asked and when.

use serde_json::Value;

use crate::served::Refusal;

/// The statuses that programs look at.
pub(crate) mod status {
    pub(crate) const SYNTAX: u16 = 100;
    pub(crate) const UNKNOWN: u16 = 101;
    pub(crate) const TOO_FEW: u16 = 104;
    pub(crate) const TOO_MANY: u16 = 105;
    pub(crate) const PARAMETER: u16 = 106;
    pub(crate) const AUTHENTICATION: u16 = 107;
    pub(crate) const OK: u16 = 200;
    pub(crate) const CANNOT: u16 = 300;
    pub(crate) const CLOSE: u16 = 500;
}

/// One answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub body: Vec<u8>,
}

impl Answer {
    pub(crate) fn new(status: u16, body: impl Into<Vec<u8>>) -> Answer {
        Answer { status, body: body.into() }
    }

    pub(crate) fn ok(body: impl Into<Vec<u8>>) -> Answer {
        Answer::new(status::OK, body)
    }

    pub(crate) fn wrong(body: impl Into<Vec<u8>>) -> Answer {
        Answer::new(status::PARAMETER, body)
    }

    /// What a change came to; it says nothing when it was made.
    pub(crate) fn of(done: Result<(), Refusal>) -> Answer {
        match done {
            Ok(()) => Answer::ok(""),
            Err(refusal) => refusal.into(),
        }
    }

    pub fn is_good(&self) -> bool {
        self.status == status::OK
    }

    /// Status in three places, length in eight, the text, and a line's end behind it.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = format!("{:<3} {:<8}\n", self.status, self.body.len()).into_bytes();
        bytes.extend_from_slice(&self.body);
        bytes.push(b'\n');
        bytes
    }
}

impl From<Refusal> for Answer {
    fn from(refusal: Refusal) -> Answer {
        match refusal {
            Refusal::Wrong(why) => Answer::wrong(why),
            Refusal::Cannot(why) => Answer::new(status::CANNOT, why),
        }
    }
}

/// `[ VERSION, [WORD …], TIME,` and the members that follow, if there are any.
pub(crate) fn json(version: u32, words: &[Vec<u8>], now_s: f64, members: &str) -> Answer {
    let words: Vec<String> = words.iter().map(|word| quoted(&String::from_utf8_lossy(word))).collect();
    let comma = if members.trim().is_empty() { "" } else { "," };
    Answer::ok(format!("[ {version}, [{}], {now_s:.3}{comma}{members}\n]\n", words.join(", ")))
}

/// Objects as the members of a list.
pub(crate) fn objects(rows: &[String]) -> String {
    format!("\n{}", rows.join(",\n"))
}

/// A string as JSON has it.
pub(crate) fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_have_a_head_of_thirteen_bytes() {
        let check = |answer: Answer, expect: &str| assert_eq!(String::from_utf8(answer.bytes()).unwrap(), expect);
        check(Answer::ok("PONG 1 1.0"), "200 10      \nPONG 1 1.0\n");
        check(Answer::ok(""), "200 0       \n\n");
        check(Answer::wrong("a".repeat(12)), "106 12      \naaaaaaaaaaaa\n");
    }

    #[test]
    fn json_is_json() {
        let words = [b"vcl.list".to_vec(), b"-j\"".to_vec()];
        let answer = json(2, &words, 1.5, &objects(&["{\"a\": 1}".to_owned(), "{}".to_owned()]));
        let read: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(read[1][1], "-j\"");
        assert_eq!(read[3]["a"], 1);
        let read: Value = serde_json::from_slice(&json(2, &words, 1.5, &objects(&[])).body).unwrap();
        assert_eq!(read.as_array().unwrap().len(), 3, "a list of nothing");
    }
}
