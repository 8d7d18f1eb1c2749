//! What another server asks of a path, as an expression that a `[[route]]` can have; and of beginnings, which are what most rules are
//! about, what two of them have in common.

use crate::import::nginx_order::escaped;

/// An expression, and the beginnings that it stands for where it stands for any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathTest {
    regex: String,
    starts: Option<Vec<PathStart>>,
}

/// How a path begins, or all of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathStart {
    pub text: String,
    pub is_whole: bool,
}

impl PathTest {
    pub fn matching(regex: &str) -> PathTest {
        PathTest { regex: regex.to_owned(), starts: None }
    }

    pub fn starting(starts: Vec<PathStart>) -> PathTest {
        let one = |start: &PathStart| format!("{}{}", escaped(&start.text), if start.is_whole { "$" } else { "" });
        let regex = match &starts[..] {
            [start] => format!("^{}", one(start)),
            several => format!("^(?:{})", several.iter().map(one).collect::<Vec<_>>().join("|")),
        };
        PathTest { regex, starts: Some(starts) }
    }

    pub fn beginning(text: &str) -> PathTest {
        PathTest::starting(vec![PathStart { text: text.to_owned(), is_whole: false }])
    }

    pub fn whole(text: &str) -> PathTest {
        PathTest::starting(vec![PathStart { text: text.to_owned(), is_whole: true }])
    }

    pub fn regex(&self) -> &str {
        &self.regex
    }

    /// Is there no path that both match?
    pub fn excludes(&self, other: &PathTest) -> bool {
        let (Some(own), Some(others)) = (&self.starts, &other.starts) else { return false };
        own.iter().all(|one| others.iter().all(|other| !one.is_within(other) && !other.is_within(one)))
    }

    /// Does the other match whatever this one does?
    pub fn is_within(&self, other: &PathTest) -> bool {
        match (&self.starts, &other.starts) {
            (Some(own), Some(others)) => own.iter().all(|one| others.iter().any(|other| one.is_within(other))),
            _ => self == other,
        }
    }
}

impl PathStart {
    fn is_within(&self, other: &PathStart) -> bool {
        match other.is_whole {
            true => self == other,
            false => self.text.starts_with(&other.text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beginnings_exclude_and_include_one_another() {
        let (api, api_x, whole, img) = (
            PathTest::beginning("/api"),
            PathTest::beginning("/api/x"),
            PathTest::whole("/api"),
            PathTest::beginning("/img"),
        );
        assert!(api.excludes(&img) && !api.excludes(&api_x) && !api_x.excludes(&api) && !whole.excludes(&api));
        assert!(whole.excludes(&api_x) && whole.excludes(&PathTest::whole("/a")));
        assert!(api_x.is_within(&api) && !api.is_within(&api_x) && whole.is_within(&api) && !api.is_within(&whole));
        let both = PathTest::starting(vec![
            PathStart { text: "/api".into(), is_whole: false },
            PathStart { text: "/b.c".into(), is_whole: true },
        ]);
        assert!(api.is_within(&both) && !both.is_within(&api) && both.excludes(&img) && !both.excludes(&whole));
        assert_eq!(both.regex(), r"^(?:/api|/b\.c$)");
        let regex = PathTest::matching("^/img");
        assert!(!regex.excludes(&img) && !regex.is_within(&img) && regex.is_within(&regex));
    }
}
