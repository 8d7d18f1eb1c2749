//! Who said the words of a route by which a request goes past the store, for an operator who asks why.

use std::fmt::{self, Display, Formatter};

/// Who said a word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WordSource {
    #[default]
    Route,
    /// The preset of this name.
    Preset(&'static str),
    /// `[policy]`, for all routes.
    Policy,
}

/// The same of each of those words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WordSources {
    pub cache: WordSource,
    pub cookies: WordSource,
    pub query: WordSource,
}

impl Display for WordSource {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            WordSource::Route => f.write_str("the route"),
            WordSource::Preset(name) => write!(f, "preset {name}"),
            WordSource::Policy => f.write_str("[policy]"),
        }
    }
}
