//! A file or script that nginx has answer in place of what was asked for: what `try_files` ends with, and what a rewriting leads to.

/// What answers, by its own path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Substitute {
    pub path: String,
    /// The path goes on behind it, as with `/index.php$uri`: nginx asks the location of the whole, which need not be the script's.
    pub is_followed: bool,
}

impl Substitute {
    /// The script that the replacement of a `rewrite` names, whatever is handed to it.
    pub fn script(target: &str) -> Option<Substitute> {
        let found = Substitute::cut(target);
        (found.is_script() && found.path.starts_with('/') && !found.path.contains("/.")).then_some(found)
    }

    /// The last word of `try_files`.
    pub fn last_tried(written: &str) -> Option<Substitute> {
        let found = Substitute::cut(written);
        let path = &found.path;
        let is_path = path.len() > 1 && !path.contains(['%', '#']) && !path.contains("/.") && !path.contains("//");
        let is_whole = written.split('?').next() == Some(path);
        (is_path && (found.is_script() || is_whole)).then_some(found)
    }

    /// This path and nothing behind it.
    pub fn whole(path: String) -> Substitute {
        Substitute { path, is_followed: false }
    }

    pub fn is_script(&self) -> bool {
        self.path.ends_with(".php")
    }

    /// Up to its query or the first variable.
    fn cut(written: &str) -> Substitute {
        let path = written.split(['?', '$']).next().unwrap_or(written);
        let behind = &written[path.len()..];
        let is_query = behind.is_empty() || behind.starts_with('?') || behind.starts_with("$is_args");
        Substitute { path: path.trim_end_matches('/').to_owned(), is_followed: !is_query || path.ends_with('/') }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(found: Option<Substitute>, expect: Option<(&str, bool)>) {
        assert_eq!(found.as_ref().map(|found| (found.path.as_str(), found.is_followed)), expect);
    }

    #[test]
    fn what_answers_where_there_is_no_file_is_a_path() {
        let tried = |written: &str, expect| check(Substitute::last_tried(written), expect);
        tried("/index.html", Some(("/index.html", false)));
        tried("/index.php?$args", Some(("/index.php", false)));
        tried("/index.php$is_args$args", Some(("/index.php", false)));
        tried("/index.php$request_uri", Some(("/index.php", true)));
        tried("/app/index.php?q=$uri&$args", Some(("/app/index.php", false)));
        tried("/index.php/", Some(("/index.php", true)));
        ["/$uri.html", "/a$uri", "/", "/.hidden.php", "/a/"].iter().for_each(|written| tried(written, None));
    }

    #[test]
    fn a_rewriting_leads_to_a_script() {
        let led = |target: &str, expect| check(Substitute::script(target), expect);
        led("/index.php", Some(("/index.php", false)));
        led("/index.php?q=$1", Some(("/index.php", false)));
        led("/index.php/$1", Some(("/index.php", true)));
        led("/index.php$1", Some(("/index.php", true)));
        ["/a.html", "/$1.php", "index.php", "/.x.php"].iter().for_each(|target| led(target, None));
    }
}
