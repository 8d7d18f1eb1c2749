//! A scenario file as it is written: whose VCL file it is about, what its maker's installer would fill in, how the
//! origin answers, and what is asked and expected in turn.
//!
//! It only reads and checks its own form; it knows neither larder nor Varnish, and opens no socket.

use std::collections::BTreeMap;

use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// How the paths of the files end, from the name of their repository on: each is walked through all steps.
    pub originals: Vec<String>,
    /// Where the file is published.
    pub from: String,
    #[serde(default)]
    pub put: Vec<Put>,
    /// Files that every user of the original writes himself, by name; they lie beside it.
    #[serde(default)]
    pub beside: BTreeMap<String, String>,
    /// Why Varnish cannot be asked: then larder runs alone.
    pub without_varnish: Option<String>,
    /// Headers of answers that are known to differ, each with the reason.
    #[serde(default)]
    pub differ: BTreeMap<String, String>,
    #[serde(default)]
    pub answer: Vec<Answer>,
    pub step: Vec<Step>,
}

/// One text in place of another: what an installer fills in, or what somebody must write before the file is of use.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Put {
    pub this: String,
    /// `{host}` and `{port}` are the recording origin's.
    #[serde(rename = "as")]
    pub with: String,
    /// How the path of the file ends; the original itself when nothing is said.
    #[serde(rename = "in")]
    pub file: Option<String>,
    /// Only Varnish needs it, which is then given another text than larder.
    #[serde(default)]
    pub only_varnish: bool,
}

/// How the origin answers; the first one that fits counts.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// The whole target, or its beginning and a star.
    pub target: Option<String>,
    /// Only while the origin is in this mode.
    pub mode: Option<String>,
    /// Headers that the request must have, each with these words in its value.
    #[serde(default)]
    pub when: BTreeMap<String, String>,
    #[serde(default = "ok")]
    pub status: u16,
    #[serde(default = "said")]
    pub reason: String,
    #[serde(default)]
    pub headers: Vec<String>,
    /// Method, target and how often that was asked for, unless something is said.
    pub body: Option<String>,
    /// Probes: not recorded.
    #[serde(default)]
    pub unrecorded: bool,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// What is shown here.
    pub say: String,
    /// Seconds to wait first: until what is stored grew old.
    #[serde(default)]
    pub after: f64,
    /// The origin changes its ways before the step, and stays so.
    pub mode: Option<String>,
    /// Waits until the cache itself takes its backend for `sick` or `healthy`.
    pub health: Option<String>,
    /// `GET /target`; a step may have none.
    pub request: Option<String>,
    #[serde(default)]
    pub headers: Vec<String>,
    pub send: Option<String>,
    /// The client's address, which the PROXY protocol tells.
    pub client: Option<String>,
    pub status: Option<u16>,
    pub reason: Option<String>,
    pub body: Option<String>,
    #[serde(default)]
    pub has: BTreeMap<String, String>,
    #[serde(default)]
    pub lacks: Vec<String>,
    /// What came to the origin because of the step, in turn: `GET /target`.
    #[serde(default)]
    pub reached: Vec<String>,
    /// Headers of the last of these; an empty text stands for a header that is not there.
    #[serde(default)]
    pub asked: BTreeMap<String, String>,
    /// After a 101: what is sent through the tunnel, and comes back in capitals.
    pub tunnel: Option<String>,
}

impl Default for Answer {
    /// To what no rule fits.
    fn default() -> Answer {
        Answer {
            target: None,
            mode: None,
            when: BTreeMap::new(),
            status: ok(),
            reason: said(),
            headers: Vec::new(),
            body: None,
            unrecorded: false,
        }
    }
}

/// None that a program would say of itself.
fn said() -> String {
    "Said".to_string()
}

fn ok() -> u16 {
    200
}

impl Scenario {
    pub fn read(text: &str) -> Result<Scenario, String> {
        let scenario: Scenario = toml::from_str(text).map_err(|e| e.to_string())?;
        for step in &scenario.step {
            step.check().map_err(|why| format!("step '{}': {why}", step.say))?;
        }
        match scenario.step.is_empty() || scenario.originals.is_empty() {
            true => Err("it has no steps, or no file".to_string()),
            false => Ok(scenario),
        }
    }
}

impl Step {
    /// A step that asks and expects nothing could not fail.
    fn check(&self) -> Result<(), String> {
        let expects = self.status.is_some() || self.body.is_some() || !self.has.is_empty();
        match &self.request {
            Some(request) if request.split_once(' ').is_none() => Err(format!("'{request}' is no METHOD and target")),
            Some(_) if !expects => Err("it expects nothing of the answer".to_string()),
            Some(_) if !self.asked.is_empty() && self.reached.is_empty() => {
                Err("what was asked of an origin that nothing reached?".to_string())
            }
            None if expects => Err("it expects an answer and asks nothing".to_string()),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The complaint holds these words; there is none when they are empty.
    fn check(step: &str, complaint: &str) {
        let text = format!("originals = ['a/b.vcl']\nfrom = 'c'\n[[step]]\nsay = 's'\n{step}\n");
        let said = Scenario::read(&text).err().unwrap_or_default();
        assert!(said.contains(complaint) && said.is_empty() == complaint.is_empty(), "{step}: {said}");
    }

    #[test]
    fn a_step_that_cannot_fail_is_refused() {
        check("request = 'GET /'\nstatus = 200", "");
        check("mode = 'sick'", "");
        check("request = 'GET /'", "expects nothing");
        check("request = 'GET'\nstatus = 200", "no METHOD");
        check("status = 200", "asks nothing");
        check("request = 'GET /'\nstatus = 200\nasked = { Cookie = '' }", "nothing reached");
        check("request = 'GET /'\nstatus = 200\nstatsu = 1", "unknown field");
    }
}
