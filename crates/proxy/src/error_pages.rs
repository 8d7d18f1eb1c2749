//! The pages that an operator has for errors, by status. A route names them by paths, which are looked up as if they
//! had been asked for on the same host; the files are found by the step `transaction/error_page.rs`.

/// Paths of pages by what they are for. A status of its own goes before the class that it is in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorPages {
    by_status: Vec<(u16, String)>,
    /// For 4xx and for 5xx.
    by_class: [Option<String>; 2],
}

/// What a page is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorClass {
    Status(u16),
    Client,
    Server,
}

impl ErrorClass {
    /// `404`, `4xx` or `5xx`. No page answers for what is no error.
    pub fn parse(text: &str) -> Option<ErrorClass> {
        match text {
            "4xx" => Some(ErrorClass::Client),
            "5xx" => Some(ErrorClass::Server),
            digits => digits.parse().ok().filter(|status| (400..600).contains(status)).map(ErrorClass::Status),
        }
    }
}

impl ErrorPages {
    pub fn add(&mut self, class: ErrorClass, path: String) {
        match class {
            ErrorClass::Status(status) => self.by_status.push((status, path)),
            ErrorClass::Client => self.by_class[0] = Some(path),
            ErrorClass::Server => self.by_class[1] = Some(path),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.paths().next().is_none()
    }

    /// All of them, in no order that means anything.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.by_status.iter().map(|(_, path)| path).chain(self.by_class.iter().flatten()).map(String::as_str)
    }

    pub fn page(&self, status: u16) -> Option<&str> {
        let exact = self.by_status.iter().find(|(of, _)| *of == status).map(|(_, path)| path);
        let class = || match status / 100 {
            4 => self.by_class[0].as_ref(),
            5 => self.by_class[1].as_ref(),
            _ => None,
        };
        exact.or_else(class).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pages: &[(&str, &str)], status: u16, expect: Option<&str>) {
        let mut all = ErrorPages::default();
        for (class, path) in pages {
            all.add(ErrorClass::parse(class).unwrap(), (*path).to_owned());
        }
        assert_eq!(all.page(status), expect, "{status} of {pages:?}");
    }

    #[test]
    fn a_status_goes_before_its_class() {
        let pages = [("4xx", "/4"), ("404", "/404"), ("5xx", "/5")];
        check(&pages, 404, Some("/404"));
        check(&pages, 403, Some("/4"));
        check(&pages, 503, Some("/5"));
        check(&pages, 301, None);
        check(&pages[1..2], 403, None);
        check(&[], 404, None);
    }

    #[test]
    fn pages_are_for_errors_alone() {
        for text in ["200", "301", "399", "600", "6xx", "", "-404", "404x", "2xx"] {
            assert_eq!(ErrorClass::parse(text), None, "{text}");
        }
    }
}
