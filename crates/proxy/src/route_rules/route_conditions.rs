//! What a route asks of a request beside its host and the beginning of its path.

use message::{FieldName, Request};
use vcl::{Groups, Pattern};

use crate::route_rules::name_patterns::NamePattern;

/// Paths of a route, as a regular expression in the syntax of PCRE2. It is held against the path as it was sent.
pub struct PathPattern {
    written: Box<str>,
    pattern: Pattern,
}

impl std::fmt::Debug for PathPattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.written)
    }
}

impl PathPattern {
    /// The error says why it is none.
    pub fn new(written: &str) -> Result<PathPattern, String> {
        let pattern = Pattern::checked(written.as_bytes())?;
        pattern.prepare();
        Ok(PathPattern { written: written.into(), pattern })
    }

    pub fn text(&self) -> &str {
        &self.written
    }

    /// A path on which the expression reaches its limits is one of them: what guards it must hold.
    #[inline]
    pub fn is_match(&self, path: &[u8]) -> bool {
        self.pattern.is_match(path).unwrap_or(true)
    }

    /// Where its groups lie in the path.
    pub fn groups(&self, path: &[u8]) -> Option<Groups> {
        let mut groups = Groups::default();
        self.pattern.find(path, 0, false, true, &mut groups).unwrap_or(false).then_some(groups)
    }
}

/// A field that a request has to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldCondition {
    known: FieldName,
    name: Box<str>,
    /// What one of its lines has to be. `None`: anything.
    value: Option<NamePattern>,
    ignores_case: bool,
    /// One of its lines has to be anything else.
    is_otherwise: bool,
}

/// Stands in front of a value whose letters count in either case.
const EITHER_CASE: &str = "(?i)";
/// And before that, of a value that it must not be.
const OTHERWISE: &str = "!";

impl FieldCondition {
    pub fn new(name: &str, value: Option<&str>) -> FieldCondition {
        let known = FieldName::classify(name.as_bytes());
        let otherwise = value.and_then(|value| value.strip_prefix(OTHERWISE));
        let (is_otherwise, value) = (otherwise.is_some(), otherwise.or(value));
        let in_either_case = value.and_then(|value| value.strip_prefix(EITHER_CASE));
        let ignores_case = in_either_case.is_some();
        let value = in_either_case.or(value).map(NamePattern::new);
        FieldCondition { known, name: name.into(), value, ignores_case, is_otherwise }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// What one of its lines has to be. `None`: anything.
    pub fn value(&self) -> Option<&NamePattern> {
        self.value.as_ref()
    }

    /// Must one of its lines be anything but its value?
    pub fn is_otherwise(&self) -> bool {
        self.is_otherwise
    }

    /// Are letters of either case the same in its value?
    pub fn ignores_case(&self) -> bool {
        self.ignores_case
    }

    /// Its name in lower case.
    pub(crate) fn key(&self) -> Box<str> {
        self.name.to_ascii_lowercase().into()
    }

    pub(crate) fn fits(&self, request: &Request<'_>) -> bool {
        match &self.value {
            None => request.fields.get_named(self.known, self.name.as_bytes()).is_some(),
            Some(value) => {
                let is_match = |line| match self.ignores_case {
                    true => value.is_match_of_field(line),
                    false => value.is_match(line),
                };
                request.fields.get_all_named(self.name.as_bytes()).any(|line| is_match(line) != self.is_otherwise)
            }
        }
    }
}
