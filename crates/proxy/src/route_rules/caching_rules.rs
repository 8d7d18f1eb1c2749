//! What a route says of storing, to the built-in policy.

use message::{FieldName, Fields};
use rules::{Grant, VarySpec};

/// What is stored of a route's responses, and for how long.
#[derive(Clone, Debug, Default)]
pub struct CachingRules {
    /// Nothing is stored, and nothing stored answers.
    pub is_off: bool,
    /// What counts beside the origin's words.
    pub grant: Grant,
    /// By what responses are selected beside what they say themselves, fields by names in lower case.
    pub selected_by: Vec<Selector>,
}

/// Something of a request for which there are different responses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selector {
    Field(Box<str>),
    /// Whether it is a telephone, a tablet, a computer or a robot, as far as User-Agent tells.
    Device,
}

/// In which requests have what they are, for origins and for what responses are selected by.
pub(crate) const DEVICE_FIELD: &str = "X-Device";
const DEVICE_NAME: &[u8] = b"x-device";

impl CachingRules {
    pub(crate) fn acts_on_requests(&self) -> bool {
        self.is_off || self.grant.gives_lifetimes() || self.selects_by_device()
    }

    pub(crate) fn selects_by_device(&self) -> bool {
        self.selected_by.contains(&Selector::Device)
    }

    /// The names by which a response is selected, in lower case, beside those that it says.
    pub(crate) fn widen(&self, spec: Option<VarySpec>, selects_by_cookies: bool) -> Option<VarySpec> {
        let cookies = selects_by_cookies.then_some(&b"cookie"[..]);
        let names = self.selected_by.iter().map(|selector| match selector {
            Selector::Field(name) => name.as_bytes(),
            Selector::Device => DEVICE_NAME,
        });
        names.chain(cookies).fold(spec, |spec, name| Some(VarySpec::with(spec.as_ref(), name)))
    }

    /// Says so in an answer, to whoever stores it behind us: by the field that the client has sent.
    pub(crate) fn say(&self, fields: &mut Fields, selects_by_cookies: bool) {
        let cookies = selects_by_cookies.then_some("Cookie");
        let names = self.selected_by.iter().map(|selector| match selector {
            Selector::Field(name) => &**name,
            Selector::Device => "User-Agent",
        });
        for name in names.chain(cookies) {
            if !fields.view().has_token(FieldName::Vary, name) {
                fields.push(FieldName::Vary, name);
            }
        }
    }
}

/// What a browser says that it runs on, as one of four words.
pub(crate) fn device(user_agent: &[u8]) -> &'static str {
    let has = |words: &[&str]| words.iter().any(|word| contains(user_agent, word.as_bytes()));
    if has(&["bot", "crawl", "spider", "slurp"]) {
        return "bot";
    }
    // Android tablets do not say "Mobile"; Windows machines with a pen say "Tablet PC".
    if has(&["ipad"]) || has(&["android"]) && !has(&["mobile"]) || has(&["tablet"]) && !has(&["tablet pc"]) {
        return "tablet";
    }
    if has(&["mobi", "iphone", "ipod", "android"]) { "mobile" } else { "desktop" }
}

fn contains(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len()).any(|window| window.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_browser_tells_what_it_runs_on() {
        for (user_agent, expect) in [
            ("Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/130.0 Safari/537.36", "desktop"),
            ("Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) Version/18.0 Mobile/15E148 Safari", "mobile"),
            ("Mozilla/5.0 (Linux; Android 14; Pixel 8) Chrome/130.0 Mobile Safari/537.36", "mobile"),
            ("Mozilla/5.0 (Linux; Android 14; SM-X910) Chrome/130.0 Safari/537.36", "tablet"),
            ("Mozilla/5.0 (iPad; CPU OS 12_5 like Mac OS X) Version/12.1 Mobile/15E148", "tablet"),
            ("Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)", "bot"),
            ("Mozilla/4.0 (compatible; MSIE 7.0; Windows NT 6.1; Tablet PC 2.0)", "desktop"),
            ("", "desktop"),
        ] {
            assert_eq!(device(user_agent.as_bytes()), expect, "{user_agent}");
        }
    }
}
