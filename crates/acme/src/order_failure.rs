//! Why an order came to nothing, as a sentence for the operator.

use std::fmt;

use crate::limits::REASON_CHARS_MAX;

/// What failed, and when the authority wants to be asked again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    why: String,
    /// The type of the problem (RFC 8555 §6.7), behind `urn:ietf:params:acme:error:`.
    kind: Option<String>,
    /// In seconds since 1970.
    not_before_s: Option<u64>,
}

impl Failure {
    pub fn new(why: impl Into<String>) -> Failure {
        Failure { why: plain(&why.into()), kind: None, not_before_s: None }
    }

    pub fn not_before(self, not_before_s: Option<u64>) -> Failure {
        Failure { not_before_s, ..self }
    }

    /// With what was being done.
    pub(crate) fn during(self, what: &str) -> Failure {
        Failure { why: plain(&format!("{what}: {}", self.why)), ..self }
    }

    pub(crate) fn of(error: &instant_acme::Error) -> Failure {
        use instant_acme::Error;
        let Error::Api(problem) = error else { return Failure::new(with_causes(error)) };
        let kind = problem.r#type.as_deref().map(|kind| kind.rsplit(':').next().unwrap_or(kind).to_owned());
        let mut why = problem.detail.clone().unwrap_or_else(|| "it did not say why".to_owned());
        for part in &problem.subproblems {
            why.push_str(&format!("; {part}"));
        }
        if let Some(kind) = &kind {
            why.push_str(&format!(" ({kind})"));
        }
        Failure { kind, ..Failure::new(why) }
    }

    pub(crate) fn is(&self, kind: &str) -> bool {
        self.kind.as_deref() == Some(kind)
    }

    pub fn not_before_s(&self) -> Option<u64> {
        self.not_before_s
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

/// An error with those beneath it, of which the last says most: `connection refused`.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut beneath = error.source();
    while let Some(cause) = beneath {
        let said = cause.to_string();
        if !text.contains(&said) {
            text.push_str(&format!(": {said}"));
        }
        beneath = cause.source();
    }
    text
}

/// One line, however an authority writes.
fn plain(text: &str) -> String {
    let one_line = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let mut short: String = one_line.clone().take(REASON_CHARS_MAX).collect();
    if one_line.count() > REASON_CHARS_MAX {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_authority_says_is_one_short_line() {
        let failure = Failure::new(format!("no\n\x1b[31m{}", "x".repeat(5_000)));
        let text = failure.to_string();
        assert!(text.starts_with("no  [31mx") && text.chars().count() == REASON_CHARS_MAX + 1, "{text}");
    }
}
