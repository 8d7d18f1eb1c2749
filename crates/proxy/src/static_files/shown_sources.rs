//! Which sources of programs a root shows that runs none of them. A root that does (`scripts`) shows none, by rules of its own.

use crate::static_files::{file_types, script_path};

/// What an operator has said of them, and what holds where nothing is said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ShownSources {
    /// None of PHP's, nor copies of them; what is published under such a name is shown (`index.php.html`).
    #[default]
    NotOfPhp,
    /// None at all: another route of the host runs scripts whose names end so.
    Nothing { endings: Vec<String> },
    /// They are files like others.
    All,
}

impl ShownSources {
    /// Is it the name of one that nobody is shown?
    pub(super) fn keep_back(&self, name: &[u8]) -> bool {
        match self {
            ShownSources::NotOfPhp => script_path::is_of_php(name) && !file_types::is_page_or_part(name),
            ShownSources::Nothing { endings } => script_path::is_source(name, endings),
            ShownSources::All => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(shown: &ShownSources, names: &[&str], keep_back: bool) {
        for name in names {
            assert_eq!(shown.keep_back(name.as_bytes()), keep_back, "{shown:?} {name}");
        }
    }

    #[test]
    fn sources_are_kept_back_unless_they_are_published_or_an_operator_says_so() {
        let sources = ["a.php", "b/A.PHP", "wp-config.php.bak", "a.php~", "a.phtml", "a.phar", "a.php.txt", "a.php.gz"];
        check(&ShownSources::default(), &sources, true);
        // A mirror of a site has pages that are called after its scripts, and others than PHP call files `.inc`.
        check(&ShownSources::default(), &["index.php.html", "a.php.css.gz", "a.inc", "learn-php.html", "a.run"], false);
        let beside = ShownSources::Nothing { endings: vec![".run".to_owned()] };
        check(&beside, &sources, true);
        check(&beside, &["index.php.html", "a.inc", "a.run", "a.run.bak"], true);
        check(&beside, &["a.css", "learn-php.html"], false);
        check(&ShownSources::All, &sources, false);
    }
}
