//! Paths whose responses are dictionaries for one another, as an operator names them: `/static/app.*.js`, where each version of a file has a
//! name of its own.

use rules::{PatternBase, PatternFlaw, UrlPattern};

/// One pattern of `dictionary_paths` of a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DictionaryPaths {
    written: String,
    pattern: UrlPattern,
}

impl DictionaryPaths {
    /// From the root of a site. The error says what is wrong with it.
    pub fn parse(written: &str) -> Result<DictionaryPaths, PatternFlaw> {
        if !written.starts_with('/') {
            return Err(PatternFlaw::NoPath);
        }
        let pattern = UrlPattern::parse(written.as_bytes(), PatternBase { origin: b"", path: b"/" })?;
        Ok(DictionaryPaths { written: written.to_owned(), pattern })
    }

    /// As Use-As-Dictionary says it.
    pub(crate) fn written(&self) -> &str {
        &self.written
    }

    pub(crate) fn have(&self, path: &[u8], query: Option<&[u8]>) -> bool {
        self.pattern.matches(path, query)
    }
}
