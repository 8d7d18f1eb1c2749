//! What a route asks of a request beside its host and the beginning of its path.

use std::sync::Arc;

use message::{FieldName, Request};
use vcl::{Groups, Pattern};

use crate::route_rules::name_patterns::NamePattern;

/// A regular expression in the syntax of PCRE2 that a route holds against a path as it was sent, or against a field.
pub struct RoutePattern {
    written: Box<str>,
    pattern: Pattern,
}

impl std::fmt::Debug for RoutePattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.written)
    }
}

impl PartialEq for RoutePattern {
    fn eq(&self, other: &RoutePattern) -> bool {
        self.written == other.written
    }
}

impl Eq for RoutePattern {}

impl RoutePattern {
    /// The error says why it is none.
    pub fn new(written: &str) -> Result<RoutePattern, String> {
        let pattern = Pattern::checked(written.as_bytes())?;
        pattern.prepare();
        Ok(RoutePattern { written: written.into(), pattern })
    }

    pub fn text(&self) -> &str {
        &self.written
    }

    /// A path on which the expression reaches its limits is one of them: what guards it must hold.
    #[inline]
    pub fn is_match(&self, path: &[u8]) -> bool {
        self.is_match_or(path, true)
    }

    /// `undecided` is said of a text on which the expression reaches its limits.
    #[inline]
    fn is_match_or(&self, text: &[u8], undecided: bool) -> bool {
        self.pattern.is_match(text).unwrap_or(undecided)
    }

    /// Where its groups lie in the path.
    pub fn groups(&self, path: &[u8]) -> Option<Groups> {
        let mut groups = Groups::default();
        self.pattern.find(path, 0, false, true, &mut groups).unwrap_or(false).then_some(groups)
    }
}

/// What a route asks of one field of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldCondition {
    known: FieldName,
    name: Box<str>,
    asked: FieldAsked,
}

/// What a field has to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldAsked {
    /// It is there.
    Present,
    /// It is not there, or says nothing.
    Missing,
    /// One of its lines is this.
    Value(FieldText),
    /// It is there, and one of its lines is anything but this.
    OtherValue(FieldText),
}

/// What a line of a field may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldText {
    /// As it was written.
    Exactly(NamePattern),
    /// In letters of either case.
    InEitherCase(NamePattern),
    /// Whatever has a match in it.
    Matching(Arc<RoutePattern>),
}

/// Stands in front of a value whose letters count in either case.
const EITHER_CASE: &str = "(?i)";
/// And before that, of a value that it must not be.
const OTHERWISE: &str = "!";
/// Stands in front of a regular expression, as it does before a location of nginx.
const BY_PATTERN: &str = "~";

impl FieldCondition {
    /// The field is there.
    pub fn present(name: &str) -> FieldCondition {
        FieldCondition::asking(name, FieldAsked::Present)
    }

    /// The field is not there, or says nothing.
    pub fn missing(name: &str) -> FieldCondition {
        FieldCondition::asking(name, FieldAsked::Missing)
    }

    /// What it has to be as operators write it: a value in which a `*` stands for any text, `(?i)VALUE` in letters of either case, `~PATTERN`
    /// for a match of PCRE2, and `!` in front of each for anything else. The error says why a pattern is none.
    pub fn written(name: &str, written: &str) -> Result<FieldCondition, String> {
        let asked = match written.strip_prefix(OTHERWISE) {
            Some(value) => FieldAsked::OtherValue(FieldText::written(value)?),
            None => FieldAsked::Value(FieldText::written(written)?),
        };
        Ok(FieldCondition::asking(name, asked))
    }

    fn asking(name: &str, asked: FieldAsked) -> FieldCondition {
        FieldCondition { known: FieldName::classify(name.as_bytes()), name: name.into(), asked }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn asked(&self) -> &FieldAsked {
        &self.asked
    }

    /// Its name in lower case.
    pub(crate) fn key(&self) -> Box<str> {
        self.name.to_ascii_lowercase().into()
    }

    /// `undecided` is said where a pattern reaches its limits: a route that shuts out takes such a request, one that answers does not.
    pub(crate) fn fits(&self, request: &Request<'_>, undecided: bool) -> bool {
        let mut lines = request.fields.get_all_named(self.name.as_bytes());
        match &self.asked {
            FieldAsked::Present => request.fields.get_named(self.known, self.name.as_bytes()).is_some(),
            FieldAsked::Missing => lines.all(<[u8]>::is_empty),
            FieldAsked::Value(value) => lines.any(|line| value.is_match(line, undecided)),
            FieldAsked::OtherValue(value) => lines.any(|line| !value.is_match(line, !undecided)),
        }
    }
}

impl FieldText {
    fn written(written: &str) -> Result<FieldText, String> {
        if let Some(pattern) = written.strip_prefix(BY_PATTERN) {
            return Ok(FieldText::Matching(Arc::new(RoutePattern::new(pattern)?)));
        }
        Ok(match written.strip_prefix(EITHER_CASE) {
            Some(value) => FieldText::InEitherCase(NamePattern::new(value)),
            None => FieldText::Exactly(NamePattern::new(written)),
        })
    }

    fn is_match(&self, line: &[u8], undecided: bool) -> bool {
        match self {
            FieldText::Exactly(value) => value.is_match(line),
            FieldText::InEitherCase(value) => value.is_match_of_field(line),
            FieldText::Matching(pattern) => pattern.is_match_or(line, undecided),
        }
    }
}
