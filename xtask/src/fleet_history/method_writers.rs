//! Writers who say nothing to an operator's address: they change a page at the origin by a POST through one node, or purge it there by PURGE, as
//! clients of the site do.

use std::sync::atomic::Ordering::SeqCst;
use std::thread;
use std::time::Duration;

use super::fleet_clients::{WRITER_PAUSE_MS, told};
use super::fleet_stage::{FleetStage, NODES};
use super::judged_node::NodeClient;
use super::purge_history::{Acknowledgement, FailureRecord, PurgeHistory, PurgeOutcome, PurgeRecord};
use super::versioned_origin::{HOST, PurgedPages, drawn_url, path_of};
use crate::dice::Dice;
use crate::plain_exchange::Message;

/// What such a writer says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WritingMethod {
    /// The node is told of nothing: it sees that a page was changed (RFC 9111 §4.4), and the others hear of it without anybody's waiting for that.
    Post,
    /// It is answered when the fleet has acknowledged it as it is configured.
    Purge,
}

impl WritingMethod {
    fn word(self) -> &'static str {
        match self {
            WritingMethod::Post => "POST",
            WritingMethod::Purge => "PURGE",
        }
    }

    /// What its answer promises.
    fn promises(self) -> Acknowledgement {
        match self {
            WritingMethod::Post => Acknowledgement::Local,
            WritingMethod::Purge => Acknowledgement::Logged,
        }
    }
}

/// Who changes pages through one node, until the round is over.
pub fn write(stage: &FleetStage, node: usize, mut dice: Dice) -> PurgeHistory {
    let (mut seen, mut client) = (PurgeHistory::default(), stage.nodes[node].visitor());
    let (least, most) = WRITER_PAUSE_MS;
    while !stage.is_over.load(SeqCst) {
        thread::sleep(Duration::from_millis(least + dice.below(most - least)));
        let method = if dice.below(2) == 0 { WritingMethod::Post } else { WritingMethod::Purge };
        change(stage, node, (&mut client, method), drawn_url(&mut dice), &mut seen);
    }
    seen
}

/// Changes one page. The version that it has then, if the node says that all is well.
pub fn change(
    stage: &FleetStage,
    node: usize,
    (client, method): (&mut NodeClient<'_>, WritingMethod),
    url: usize,
    seen: &mut PurgeHistory,
) -> Option<u64> {
    let order = format!("{} {}", method.word(), path_of(url));
    let least = stage.site.raise(PurgedPages::Url(url));
    let ordered = stage.clock.now();
    let answer = client.ask(&format!("{order} HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: 0\r\n\r\n"));
    let ended = stage.clock.now();
    let (outcome, failure) = match &answer {
        Ok(answer) => outcome_of(method, answer),
        Err(error) => (PurgeOutcome::Unanswered, Some(error.to_string())),
    };
    let fails = |why| FailureRecord { node, what: format!("{order}: {why}"), begun: ordered, ended };
    seen.failures.extend(failure.map(fails));
    let version = least.first().map(|(_, version)| *version);
    let purge = PurgeRecord { node, order, kind: method.promises(), least, ordered, ended, outcome };
    let is_acknowledged = purge.is_acknowledged();
    seen.purges.push(purge);
    version.filter(|_| is_acknowledged)
}

/// What an answer says, and what is wrong with it.
fn outcome_of(method: WritingMethod, answer: &Message) -> (PurgeOutcome, Option<String>) {
    match (method, answer.second_word()) {
        (WritingMethod::Post, "204") | (WritingMethod::Purge, "200") => (PurgeOutcome::Acknowledged, None),
        (WritingMethod::Purge, "503") => (PurgeOutcome::Refused(told(answer)), None),
        _ => (PurgeOutcome::Unanswered, Some(told(answer))),
    }
}

/// The fleet is well again: what is posted through each node comes to all of them. What does not within that time is said.
pub fn post_at_all(stage: &FleetStage, within: Duration, seen: &mut PurgeHistory) -> Vec<String> {
    let mut wrong = Vec::new();
    for (node, url) in (0..NODES).zip([3, 4, 5]) {
        let mut client = stage.nodes[node].visitor();
        let Some(version) = change(stage, node, (&mut client, WritingMethod::Post), url, seen) else {
            wrong.push(format!("after the last fault {} did not take a POST", stage.nodes[node].name));
            continue;
        };
        let last_by = stage.clock.now() + within.as_micros() as u64;
        for (reached, asked) in stage.nodes.iter().enumerate() {
            let mut client = asked.visitor();
            while super::fleet_clients::version_at(stage, reached, &mut client, url, seen) < Some(version) {
                if stage.clock.now() > last_by {
                    wrong.push(format!(
                        "what was posted through {} did not come to {}",
                        stage.nodes[node].name, asked.name
                    ));
                    break;
                }
                thread::sleep(Duration::from_millis(5));
            }
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(method: WritingMethod, status: &str, is_acknowledged: bool, is_failure: bool) {
        let answer = Message { start: format!("HTTP/1.1 {status}"), fields: Vec::new(), body: Vec::new() };
        let (outcome, failure) = outcome_of(method, &answer);
        assert_eq!(
            (outcome == PurgeOutcome::Acknowledged, failure.is_some()),
            (is_acknowledged, is_failure),
            "{status}"
        );
    }

    #[test]
    fn each_method_has_one_answer_that_says_that_all_is_well() {
        check(WritingMethod::Post, "204 No Content", true, false);
        check(WritingMethod::Post, "503 Service Unavailable", false, true);
        check(WritingMethod::Purge, "200 OK", true, false);
        check(WritingMethod::Purge, "503 Service Unavailable", false, false);
        check(WritingMethod::Purge, "403 Forbidden", false, true);
    }
}
