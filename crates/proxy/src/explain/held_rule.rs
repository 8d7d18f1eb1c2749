//! Of a reason that many rules may give, the one rule that holds for a request: what it says, who said it, and whether anything is to be done.

use message::Request;

use crate::policy::WhyPassed;
use crate::route_rules::RouteRules;
use crate::route_rules::word_sources::WordSource;

/// The rule that holds, in place of what is said of its reason in general.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldRule {
    pub means: String,
    pub way_out: String,
    /// Names, never a value.
    about: Option<String>,
}

impl HeldRule {
    /// Names of cookies or parameters that it is about.
    pub(super) fn take_about(&mut self) -> Option<String> {
        self.about.take()
    }
}

/// Why a request goes past the store, where a word of its route says so. `came`: as the client sent it.
pub(super) fn of(rules: &RouteRules, came: &Request<'_>, why: WhyPassed) -> Option<HeldRule> {
    match why {
        WhyPassed::Cookie => Some(of_cookies(rules, came)),
        WhyPassed::Route if rules.caching.is_off => Some(of_no_cache(rules.sources.cache)),
        WhyPassed::Route => {
            let parameters = rules.query.bypassing(came.query?);
            let names = shown(&parameters);
            (!parameters.is_empty()).then(|| HeldRule {
                means: format!(
                    "`query = {{ bypass = […] }}` of {} names {names}: what is asked for with it is answered by the origin alone.",
                    rules.sources.query
                ),
                way_out: way_out(rules.sources.query, "take it out of `bypass`, if the answer is the same for everybody"),
                about: Some(names),
            })
        }
        _ => None,
    }
}

fn of_cookies(rules: &RouteRules, came: &Request<'_>) -> HeldRule {
    let cookies = rules.cookies.bypassing(came.fields);
    if cookies.is_empty() {
        return HeldRule {
            means: "The route has a `ttl`, and no word of which cookies matter: whoever brings one that nobody has named is answered by the origin alone.".to_owned(),
            way_out: "`cookies = { keep = [], bypass = [\"NAME\"] }` with the cookies of who is logged in, has a cart or the like as NAME: all others are left out then, and what is stored is for everybody without those.".to_owned(),
            about: None,
        };
    }
    let (names, source) = (shown(&cookies), rules.sources.cookies);
    HeldRule {
        means: format!(
            "`cookies = {{ bypass = […] }}` of {source} names {names}: who brings it is answered by the origin alone, and what comes is stored for nobody."
        ),
        way_out: way_out(source, "take it out of `bypass`, if it makes no difference to any page"),
        about: Some(names),
    }
}

fn of_no_cache(source: WordSource) -> HeldRule {
    HeldRule {
        means: format!("`cache = false` of {source}: nothing is stored of it, and nothing stored answers."),
        way_out: way_out(source, "write `cache = \"origin\"`, to store what the origin allows"),
        about: None,
    }
}

/// What somebody said on purpose is no mistake.
fn way_out(source: WordSource, otherwise: &str) -> String {
    match source {
        WordSource::Preset(name) => format!(
            "Nothing: this is meant, so that nobody is given another's page. `larder config preset {name}` shows the rule; words of your own [[route]] stand above it, and lists of `cookies` and `query` beside it."
        ),
        WordSource::Route | WordSource::Policy => format!("Nothing, if it is meant so; or {otherwise}."),
    }
}

fn shown(names: &[&[u8]]) -> String {
    let names: Vec<_> = names.iter().map(|name| String::from_utf8_lossy(name)).collect();
    names.join(", ")
}
