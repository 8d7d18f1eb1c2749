//! A location of nginx as it was found: where it stands, who may come in, who answers, and whether another one would answer alike.

use std::borrow::Cow;

use crate::import::nginx_level::Level;
use crate::import::nginx_order::{Matcher, Spot};
use crate::import::nginx_rulings::Rulings;
use crate::import::nginx_substitute::Substitute;
use crate::import::nginx_upstream::HandedUpgrades;

/// A location, and what became of it.
pub struct FoundLocation<'a> {
    pub spot: Spot<'a>,
    pub level: Level,
    pub rulings: Rulings,
    pub answer: AnsweredBy,
    /// Lines of its route: who may ask, and what else holds beside who answers.
    pub access: Vec<String>,
    pub words: Vec<String>,
    /// nginx alone asks for it.
    pub is_internal: bool,
    /// Which protocols the origin hears of that clients ask for; of others it is asked for a page. `None`: there is none over HTTP.
    pub upgrades: Option<HandedUpgrades>,
}

impl FoundLocation<'_> {
    /// Is what is no file here 404?
    pub fn shows_files_alone(&self) -> bool {
        let has_fallback =
            self.level.fallback.is_some() || self.level.named.is_some() || self.rulings.fallback.is_some();
        self.answer == AnsweredBy::Files && !has_fallback
    }

    /// Would another location make the same of a path that fits both: the same files, or the same origin, asked for the same path?
    pub fn answers_like(&self, other: &FoundLocation<'_>) -> bool {
        let paths = [self.spot.path.as_deref(), other.spot.path.as_deref()];
        let path = paths.into_iter().flatten().max_by_key(|path| path.len()).unwrap_or("/");
        self.answer.key() == other.answer.key() && self.asked_for(path) == other.asked_for(path)
    }

    /// Is it about files, and does something else answer than there where there is none?
    pub fn falls_back_unlike(&self, other: &FoundLocation<'_>) -> bool {
        let (mine, its) = (&self.level, &other.level);
        let is_same =
            mine.fallback == its.fallback && mine.named == its.named && self.rulings.fallback == other.rulings.fallback;
        self.answer == AnsweredBy::Files && !is_same
    }

    /// Is a folder's path led to it with a slash, before nginx looks at who may come in? That is what asks somebody else.
    pub fn is_led_to_its_slash(&self) -> bool {
        let children = self.spot.blocks.last().map_or(&[][..], |block| block.children());
        children.iter().any(|child| child.name.ends_with("_pass"))
            && !children.iter().any(|child| child.name == "internal")
    }

    /// And for the same people, with the same rules of its own?
    pub fn treats_alike(&self, other: &FoundLocation<'_>) -> bool {
        self.answers_like(other) && self.access == other.access && self.rulings == other.rulings
    }

    /// The path that an origin hears in place of this one.
    fn asked_for(&self, path: &str) -> String {
        match (&self.answer, &self.spot.path) {
            (AnsweredBy::AsksElsewhere(uri, _), Some(own)) => {
                format!("{uri}{}", path.strip_prefix(own).unwrap_or(path))
            }
            _ => path.to_owned(),
        }
    }

    /// Is its own path, at its origin, the root of all? Such a route stays one of a path, and its beginning is cut off.
    pub fn strips_its_path(&self) -> Option<&str> {
        let path = self.spot.path.as_deref().filter(|path| path.len() > 1)?;
        let is_root = matches!(&self.answer, AnsweredBy::AsksElsewhere(uri, _) if uri == "/");
        (is_root && self.spot.matcher == Matcher::Path(path.to_owned())).then(|| path.trim_end_matches('/'))
    }
}

/// Who answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnsweredBy {
    /// Nobody: nginx keeps people out, or answers in a way that was not carried over.
    Closed,
    /// An origin, memcached or larder itself: the keys of the route.
    Asks(Vec<String>),
    /// The path at the origin is another one: what stands in place of the location's own, and the keys.
    AsksElsewhere(String, Vec<String>),
    /// Who is led to TLS, by this line.
    ToTls(String),
    /// This script, whatever is asked for.
    Script(Substitute),
    Files,
    /// The scripts of its root, which this origin runs.
    Scripts(String),
}

impl AnsweredBy {
    /// What tells the answers of two routes apart.
    fn key(&self) -> Cow<'_, str> {
        match self {
            AnsweredBy::Closed => "closed".into(),
            AnsweredBy::Asks(lines) | AnsweredBy::AsksElsewhere(_, lines) => lines.join("\n").into(),
            AnsweredBy::ToTls(line) => line.as_str().into(),
            AnsweredBy::Script(script) => script.path.as_str().into(),
            AnsweredBy::Files | AnsweredBy::Scripts(_) => "files".into(),
        }
    }

    /// Does it give something to all who come here, by whatever spelling of a path? A redirect is about its own path.
    pub fn is_for_all_spellings(&self) -> bool {
        let responds = |lines: &[String]| lines.first().is_some_and(|line| line.starts_with("respond"));
        self.asks_others() || matches!(self, AnsweredBy::Asks(lines) if responds(lines))
    }

    /// Is somebody asked who takes a path as it was sent?
    pub fn asks_others(&self) -> bool {
        let is_origin = |lines: &[String]| lines.first().is_some_and(|line| !line.starts_with("re"));
        match self {
            AnsweredBy::Asks(lines) | AnsweredBy::AsksElsewhere(_, lines) => is_origin(lines),
            AnsweredBy::Script(_) => true,
            _ => false,
        }
    }
}
