//! Who uses the fleet in a round: visitors, each of one node, who ask for pages and write down what they got; and writers, each at one
//! node, who change pages at the origin and then order a purge of them. A node that is stopped holds its own clients alone.

use std::sync::atomic::Ordering::SeqCst;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::fleet_stage::FleetStage;
use super::judged_node::NodeClient;
use super::purge_history::{
    Acknowledgement, AnswerRecord, FailureRecord, Micros, PurgeHistory, PurgeOutcome, PurgeRecord,
};
use super::versioned_origin::{HOST, PurgedPages, drawn_url, path_of, version_in};
use crate::dice::Dice;
use crate::plain_exchange::Message;

pub const VISITORS_OF_A_NODE: usize = 3;
pub const WRITERS_AT_A_NODE: usize = 2;
pub const METHOD_WRITERS_AT_A_NODE: usize = 1;
const VISITOR_PAUSE_MS_MAX: u64 = 8;
pub const WRITER_PAUSE_MS: (u64, u64) = (20, 150);
/// Until a node is asked again that did not answer.
const AFTER_FAILURE: Duration = Duration::from_millis(10);

/// What an order is to mean.
pub struct PurgeIntent {
    pub pages: PurgedPages,
    pub kind: Acknowledgement,
    /// The order has no word for it, because the configuration has it.
    pub is_unsaid: bool,
    pub is_soft: bool,
}

/// A visitor of one node, until the round is over.
pub fn visit(stage: &FleetStage, node: usize, mut dice: Dice) -> PurgeHistory {
    let (mut seen, mut client) = (PurgeHistory::default(), stage.nodes[node].visitor());
    while !stage.is_over.load(SeqCst) {
        if !ask(stage, node, &mut client, drawn_url(&mut dice), &mut seen) {
            thread::sleep(AFTER_FAILURE);
        }
        thread::sleep(Duration::from_millis(dice.below(VISITOR_PAUSE_MS_MAX)));
    }
    seen
}

/// Asks for one page. False if that failed.
pub fn ask(stage: &FleetStage, node: usize, client: &mut NodeClient<'_>, url: usize, seen: &mut PurgeHistory) -> bool {
    version_at(stage, node, client, url, seen).is_some()
}

/// The version of a page that one node has.
pub fn version_at(
    stage: &FleetStage,
    node: usize,
    client: &mut NodeClient<'_>,
    url: usize,
    seen: &mut PurgeHistory,
) -> Option<u64> {
    let begun = stage.clock.now();
    let answer = client.ask(&format!("GET {} HTTP/1.1\r\nHost: {HOST}\r\n\r\n", path_of(url)));
    let ended = stage.clock.now();
    let version = match &answer {
        Ok(answer) if answer.second_word() == "200" => version_in(&answer.body, url).ok_or_else(|| told(answer)),
        Ok(answer) => Err(told(answer)),
        Err(error) => Err(error.to_string()),
    };
    let cache_status = answer.ok().and_then(|answer| answer.field("cache-status").map(str::to_owned));
    match version {
        Ok(version) => {
            let cache_status = cache_status.unwrap_or_default();
            seen.answers.push(AnswerRecord { node, url, version, begun, ended, cache_status });
            Some(version)
        }
        Err(why) => {
            let what = format!("GET {}: {why}", path_of(url));
            seen.failures.push(FailureRecord { node, what, begun, ended });
            None
        }
    }
}

/// Who changes pages, and tells one node so.
pub fn write(stage: &FleetStage, node: usize, mut dice: Dice) -> PurgeHistory {
    let mut seen = PurgeHistory::default();
    let (least, most) = WRITER_PAUSE_MS;
    while !stage.is_over.load(SeqCst) {
        thread::sleep(Duration::from_millis(least + dice.below(most - least)));
        let kind = Acknowledgement::ALL[dice.below(Acknowledgement::ALL.len() as u64) as usize];
        let is_unsaid = kind == Acknowledgement::Logged && dice.below(2) == 0;
        let intent = PurgeIntent { pages: PurgedPages::drawn(&mut dice), kind, is_unsaid, is_soft: dice.below(4) == 0 };
        purge(stage, node, &intent, &mut seen);
    }
    seen
}

/// Changes pages, then orders that they be purged. True if that was acknowledged.
pub fn purge(stage: &FleetStage, node: usize, intent: &PurgeIntent, seen: &mut PurgeHistory) -> bool {
    let (asked, kind) = stage.kinds(intent.kind);
    let (word, what) = intent.pages.selector();
    let mut order = json!({ word: what });
    if !(intent.is_unsaid && asked == Acknowledgement::Logged) {
        order["acknowledge"] = asked.word().into();
    }
    if intent.is_soft {
        order["soft"] = true.into();
    }
    let order = order.to_string();
    let least = stage.site.raise(intent.pages);
    let question = format!(
        "POST /purge HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{order}",
        order.len()
    );
    let ordered = stage.clock.now();
    let answer = stage.nodes[node].operator().ask(&question);
    let ended = stage.clock.now();
    let (outcome, failure) = match answer {
        Ok(answer) => outcome_of(&answer, asked),
        Err(error) => (PurgeOutcome::Unanswered, Some(error.to_string())),
    };
    seen.failures.extend(failure.map(|why| fails(node, &order, &why, (ordered, ended))));
    let purge = PurgeRecord { node, order, kind, least, ordered, ended, outcome };
    let is_acknowledged = purge.is_acknowledged();
    seen.purges.push(purge);
    is_acknowledged
}

fn fails(node: usize, order: &str, why: &str, (begun, ended): (Micros, Micros)) -> FailureRecord {
    FailureRecord { node, what: format!("POST /purge {order}: {why}"), begun, ended }
}

/// What an answer says of an order, and what is wrong with it.
fn outcome_of(answer: &Message, asked: Acknowledgement) -> (PurgeOutcome, Option<String>) {
    match answer.second_word() {
        "200" => {
            let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
            let is_as_asked = body["acknowledged"] == asked.word();
            (PurgeOutcome::Acknowledged, (!is_as_asked).then(|| format!("acknowledged otherwise: {}", told(answer))))
        }
        "503" => (PurgeOutcome::Refused(told(answer)), None),
        _ => (PurgeOutcome::Unanswered, Some(told(answer))),
    }
}

/// The answer in a line.
pub fn told(answer: &Message) -> String {
    format!("{}: {}", answer.start, String::from_utf8_lossy(&answer.body).trim_end().replace('\n', " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(status: &str, body: &str, is_acknowledged: bool, is_failure: bool) {
        let answer = Message { start: format!("HTTP/1.1 {status}"), fields: Vec::new(), body: body.into() };
        let (outcome, failure) = outcome_of(&answer, Acknowledgement::Applied);
        assert_eq!(outcome == PurgeOutcome::Acknowledged, is_acknowledged, "{status}");
        assert_eq!(failure.is_some(), is_failure, "{status}");
    }

    #[test]
    fn only_a_200_acknowledges_and_it_says_as_what() {
        check("200 OK", r#"{"acknowledged":"applied"}"#, true, false);
        check("200 OK", r#"{"acknowledged":"logged"}"#, true, true);
        check("200 OK", "{}", true, true);
        check("503 Service Unavailable", r#"{"acknowledged":"local"}"#, false, false);
        check("422 Unprocessable Content", "{}", false, true);
    }
}
