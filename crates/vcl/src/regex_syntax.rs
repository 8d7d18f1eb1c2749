//! Whether a regular expression is one, by the library whose language VCL means: PCRE2.

use pcre2::bytes::RegexBuilder;

/// Why it does not compile, and at which byte.
pub fn check(pattern: &[u8]) -> Result<(), (String, Option<usize>)> {
    // Patterns are bytes; the library's front takes text. A byte that is none is a byte like any other to a regex.
    let text: String = match std::str::from_utf8(pattern) {
        Ok(text) => text.to_owned(),
        Err(_) => pattern.iter().map(|b| if b.is_ascii() { char::from(*b) } else { '\u{fffd}' }).collect(),
    };
    match RegexBuilder::new().build(&text) {
        Ok(_) => Ok(()),
        Err(error) => {
            let shown = error.to_string();
            let why = shown.rsplit_once(": ").map_or(shown.as_str(), |(_, why)| why).to_owned();
            Err((why, error.offset()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_those_of_pcre2() {
        let check = |pattern: &str, good| assert_eq!(check(pattern.as_bytes()).is_ok(), good, "{pattern}");
        check("^/a(?i)b+$", true);
        check("(?<!x)y\\1?(a)", true);
        check("\\Qa.b\\E\\R", true);
        check("(a", false);
        check("*a", false);
        check("[z-a]", false);
    }

    #[test]
    fn a_place_is_given() {
        let (why, at) = super::check(b"ab(c").expect_err("a parenthesis is open");
        assert!(why.contains("parenthesis") && at == Some(4), "{why} {at:?}");
    }
}
