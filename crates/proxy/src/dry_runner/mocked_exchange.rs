//! What is asked of a mocked backend, and what it answers.

use message::{FieldsView, Request};

#[cfg(test)]
use crate::dry_runner::wire_answer::WireAnswer;

/// A head at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RanHead {
    /// Empty in a response, as is the URL.
    pub method: String,
    pub url: String,
    /// 0 in a request.
    pub status: u16,
    pub fields: Vec<(String, String)>,
}

/// What a backend was asked.
#[derive(Clone, Debug)]
pub struct Sent {
    pub backend: String,
    /// `None` when it was mocked as one that refuses connections.
    pub request: Option<RanHead>,
    pub body: Vec<u8>,
}

/// What a backend answers.
#[derive(Clone, Debug, PartialEq)]
pub enum MockedAnswer {
    /// Nobody listens there.
    Refused,
    Given(AnswerParts),
    /// What the parts of an answer cannot say.
    #[cfg(test)]
    Wire(WireAnswer),
}

/// A response. With a Content-Length of its own it has a body of that length.
#[derive(Clone, Debug, PartialEq)]
pub struct AnswerParts {
    pub status: u16,
    pub reason: String,
    pub fields: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Default for AnswerParts {
    fn default() -> AnswerParts {
        AnswerParts { status: 200, reason: "OK".to_owned(), fields: Vec::new(), body: b"ok\n".to_vec() }
    }
}

impl Default for MockedAnswer {
    fn default() -> MockedAnswer {
        MockedAnswer::Given(AnswerParts::default())
    }
}

impl RanHead {
    pub(crate) fn of_request(request: &Request<'_>) -> RanHead {
        let mut url = Vec::new();
        request.write_target(&mut url);
        RanHead { method: lossy(request.method_text), url: lossy(&url), status: 0, fields: lines(request.fields) }
    }

    /// The first line of a name.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

fn lines(fields: FieldsView<'_>) -> Vec<(String, String)> {
    fields.iter().map(|field| (lossy(field.name_text), lossy(field.value))).collect()
}

pub(crate) fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
