//! `hsts` of larder.toml and `--hsts`: the value of Strict-Transport-Security, as its users know it from other servers.

use std::sync::Arc;

pub const HSTS_FORM: &str = "such as max-age=31536000, or max-age=31536000; includeSubDomains: seconds for which browsers ask this host by https:// alone";

/// RFC 6797 §6.1: one max-age in seconds, and words or pairs beside it, each once.
pub fn parse_hsts(written: &str) -> Option<Arc<str>> {
    let mut names = Vec::new();
    let mut has_age = false;
    for directive in written.split(';').map(str::trim).filter(|directive| !directive.is_empty()) {
        let (name, value) = directive.split_once('=').map_or((directive, None), |(name, value)| (name, Some(value)));
        let name = name.trim().to_ascii_lowercase();
        let is_word =
            |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        if !is_word(&name) || value.is_some_and(|value| !is_word(value.trim())) || names.contains(&name) {
            return None;
        }
        if name == "max-age" {
            value.and_then(|value| value.trim().parse::<u64>().ok())?;
            has_age = true;
        }
        names.push(name);
    }
    has_age.then(|| written.trim().into())
}

#[cfg(test)]
mod tests {
    use super::parse_hsts;

    #[test]
    fn a_max_age_is_said_once_and_other_words_beside_it() {
        for good in ["max-age=0", "max-age=31536000; includeSubDomains; preload", "includeSubDomains;max-age=5;"] {
            assert_eq!(parse_hsts(good).as_deref(), Some(good), "{good}");
        }
        for bad in ["", "1y", "max-age", "max-age=", "max-age=-1", "includeSubDomains", "max-age=1; max-age=2"] {
            assert_eq!(parse_hsts(bad), None, "{bad}");
        }
        assert_eq!(parse_hsts("max-age=1; a\r\nb"), None, "it is a field's value");
    }
}
