//! A file of tests for `larder vcl test`, as it is written. A key that does not exist is an error with the near one.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;

use serde::Deserialize;

use crate::config::nearest;
use crate::vcl_command::vcl_expect::Expect;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suite {
    /// The program, beside the file.
    pub vcl: Option<PathBuf>,
    #[serde(default)]
    pub vcl_path: Vec<PathBuf>,
    /// Where `return (vcl(NAME))` leads.
    #[serde(default)]
    pub labels: BTreeMap<String, PathBuf>,
    /// By Varnish's names.
    #[serde(default)]
    pub parameters: BTreeMap<String, String>,
    pub case: Vec<Case>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    pub name: String,
    pub request: String,
    /// More fields of the request.
    #[serde(default)]
    pub fields: BTreeMap<String, String>,
    pub body: Option<String>,
    pub client: Option<IpAddr>,
    /// What the backend answers, one after another.
    pub origin: Option<OneOrMany>,
    pub origin_body: Option<String>,
    /// `miss`, `hit`, `stale` or a time.
    pub cached: Option<String>,
    /// Requests that were asked before.
    #[serde(default)]
    pub before: Vec<Before>,
    #[serde(default)]
    pub sick: Vec<String>,
    #[serde(default)]
    pub expect: Expect,
}

#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "an answer such as \"200 Cache-Control: max-age=60\", or a list of them")]
pub enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "a request such as \"GET /x Host: a\", or { request, origin, client, then_wait }")]
pub enum Before {
    Request(String),
    Table(BeforeTable),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BeforeTable {
    pub request: String,
    pub origin: Option<OneOrMany>,
    pub client: Option<IpAddr>,
    /// How long it is until what comes next.
    pub then_wait: Option<String>,
}

/// The error is for people: where, what, and the near word if one is.
pub fn read_suite(text: &str) -> Result<Suite, String> {
    toml::from_str(text).map_err(|error| {
        let shown = error.to_string();
        let near = near_key(error.message());
        format!(
            "{}{}",
            shown.trim_end(),
            near.map(|near| format!("\n  help: did you mean `{near}`?")).unwrap_or_default()
        )
    })
}

/// Of "unknown field `a`, expected one of `b`, `c`".
fn near_key(message: &str) -> Option<&str> {
    let (unknown, known) = message.strip_prefix("unknown field `")?.split_once("`, expected ")?;
    nearest(unknown, known.split('`').skip(1).step_by(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_key_is_an_error_with_the_near_one() {
        let check = |text: &str, expect: &str| {
            let why = read_suite(text).map(|_| String::new()).unwrap_or_else(|why| why);
            assert!(why.contains(expect), "{text}: {why}");
        };
        let case = "[[case]]\nname = \"a\"\nrequest = \"/\"\n";
        check(&format!("{case}expect = {{ statsu = 1 }}"), "did you mean `status`?");
        check(&format!("{case}cachd = \"hit\""), "did you mean `cached`?");
        check(&format!("vlc = \"a\"\n{case}"), "did you mean `vcl`?");
        check(&format!("{case}expect = {{ resp = {{ A = 1 }} }}"), "a text, true, false, or { matches");
        check(&format!("{case}origin = 200"), "an answer such as");
        check("", "missing field `case`");
        check(&format!("{case}expect.ttl = \"1d\""), "");
    }
}
