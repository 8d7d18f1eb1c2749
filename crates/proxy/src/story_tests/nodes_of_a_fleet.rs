//! What nodes of a fleet ask one another, and what they are answered.

use message::{Authority, FieldName, Fields, FieldsView, Method, Request, TargetForm, Version};

use super::*;
use crate::fleet::node_proof::{NODE_FIELD, NodeClaim, NodeWord, Proof};
use crate::settings::{
    AnswerFields, BalanceKind, FieldLine, FieldTemplate, FleetSecret, FleetSettings, HashKey, OwnAddress,
};
use crate::site::Routed;

const SECRET: &[u8] = b"0123456789abcdef0123456789abcdef";
const NOW_S: u64 = BEGINS_WALL_MS / 1_000;

/// A node whose only other one is mocked as its origin is.
fn node() -> Story {
    node_with(|_| {})
}

fn node_with(change: impl FnOnce(&mut Settings)) -> Story {
    Story::with(|settings| {
        let secret = FleetSecret::new(SECRET);
        let mut nodes = settings.origins[0].clone();
        nodes.name = "fleet".to_owned();
        nodes.balance.kind = BalanceKind::Hash(HashKey::Stored(secret.digest_key()));
        nodes.balance.breaks_circuit = true;
        let own = OwnAddress::At(([192, 0, 2, 9], 80).into());
        settings.fleet = Some(Arc::new(FleetSettings { nodes, secret, own, load_max_permille: 1_250 }));
        change(settings);
    })
}

fn request<'a>(path: &'a str, fields: FieldsView<'a>) -> Request<'a> {
    Request {
        method: Method::Get,
        method_text: b"GET",
        version: Version::Http11,
        form: TargetForm::Origin,
        scheme: message::Scheme::Http,
        authority: Authority::parse(b"a.test", message::Scheme::Http).unwrap(),
        path: path.as_bytes(),
        query: None,
        fields,
    }
}

/// What another node says of a request for a client of its own.
fn claim_of(story: &Story, path: &str) -> NodeClaim {
    let (site, fields) = (story.core.site(), Fields::default());
    let route = site.routes.find(&request(path, fields.view()));
    let routed = Routed { route, ..Routed::default() };
    NodeClaim { sent_s: NOW_S, position: 0, route: site.route_digest(routed) }
}

/// Asks as that node, with lines of its own; what it is told is read by the proof that it sent.
fn ask_as(story: &Story, (path, claim): (&str, NodeClaim), secret: &[u8], lines: &[&str]) -> (Reply, Option<NodeWord>) {
    let mut forwarding = Fields::default();
    forwarding.push(FieldName::XForwardedFor, "198.51.100.7");
    let secret = FleetSecret::new(secret);
    let proof: Proof = claim.proof(&secret, &request(path, forwarding.view()), forwarding.view());
    let said = format!("Larder-Node: {}", claim.said(&proof));
    let lines: Vec<&str> = [said.as_str(), "X-Forwarded-For: 198.51.100.7"].iter().chain(lines).copied().collect();
    let reply = story.get(path, &lines);
    let word = NodeWord::read(reply.field(NODE_FIELD).as_bytes(), &secret, &proof);
    (reply, word)
}

fn asked(story: &Story, path: &str) -> (Reply, Option<NodeWord>) {
    ask_as(story, (path, claim_of(story, path)), SECRET, &[])
}

#[test]
fn an_owner_answers_another_node_for_the_origin() {
    let story = node();
    story.origin([answer(200, &["Cache-Control: max-age=60", "Larder-Node: answer", "ETag: \"a\""], "page")]);
    let (miss, word) = asked(&story, "/");
    assert_eq!((miss.status(), miss.body(), word), (200, "page", Some(NodeWord::Answer)));
    assert_eq!(
        (miss.asked(), miss.asked_with(NODE_FIELD)),
        (vec!["GET /".to_owned()], None),
        "the origin, and no node"
    );
    assert_eq!(miss.asked_with("x-forwarded-for"), Some("198.51.100.7"), "the node is no hop of its own");
    story.pass_seconds(10);
    let claim = NodeClaim { sent_s: NOW_S + 10, ..claim_of(&story, "/") };
    let (hit, word) = ask_as(&story, ("/", claim), SECRET, &[]);
    assert_eq!((hit.field("age").as_str(), word, hit.asked().len()), ("10", Some(NodeWord::Answer), 0));
    let (confirmed, word) = ask_as(&story, ("/", claim), SECRET, &["If-None-Match: \"a\""]);
    assert_eq!((confirmed.status(), word), (304, Some(NodeWord::Answer)));
    assert_eq!(story.core.counters.fleet_answers.get(), 3);
    let client = story.get("/", &[]);
    assert!(client.body() == "page" && !client.field(NODE_FIELD).contains("proof"), "nobody else is told a word");
}

#[test]
fn who_does_not_prove_to_be_a_node_is_refused_and_nobody_is_asked() {
    let story = node();
    story.origin([fresh(60, "page")]);
    let right = claim_of(&story, "/");
    let late = NodeClaim { sent_s: NOW_S - 31, ..right };
    for (claim, secret) in [(right, &b"0123456789abcdef0123456789abcdeg"[..]), (late, SECRET)] {
        let (reply, word) = ask_as(&story, ("/", claim), secret, &[]);
        assert_eq!((reply.status(), reply.verdict().1, word), (403, "node-unproven", None));
        assert!(reply.asked().is_empty());
    }
    let junk = story.get("/", &["Larder-Node: answer"]);
    assert_eq!((junk.status(), junk.asked().len()), (403, 0));
    // A proof is of one request, and of one that only reads.
    let proof = right.proof(&FleetSecret::new(SECRET), &request("/", FieldsView::default()), FieldsView::default());
    let said = format!("Larder-Node: {}", right.said(&proof));
    for line in ["GET /other", "POST /", "HEAD /", "PURGE /"] {
        let reply = story.ask(line, &[&said], "");
        assert_eq!((reply.status(), reply.asked().len()), (403, 0), "{line}");
    }
    assert_eq!(story.ask("GET /", &[&said, "X-Forwarded-For: 127.0.0.1"], "").status(), 403);
    assert_eq!(story.core.counters.fleet_proofs_refused.get(), 8);
    assert_eq!(story.ask("GET /", &[&said], "").status(), 200);
}

#[test]
fn what_a_route_says_was_done_by_the_node_that_the_client_reached() {
    let story = node_with(|settings| {
        let line = FieldLine::new("X-Edited", FieldTemplate::of_text("yes"));
        let removed = vec![NamePattern::new("cache-control")];
        let answer_fields = AnswerFields { added: vec![line], removed, ..AnswerFields::default() };
        settings.routes[0].rules = Arc::new(RouteRules { answer_fields, ..RouteRules::default() });
    });
    story.origin([fresh(60, "page")]);
    let (reply, word) = asked(&story, "/");
    let told = |reply: &Reply| (reply.field("x-edited"), reply.field("cache-control"));
    assert_eq!((told(&reply), word), ((String::new(), "max-age=60".to_owned()), Some(NodeWord::Answer)));
    assert_eq!(told(&asked(&story, "/").0).1, "max-age=60", "of what is stored, too");
    assert_eq!(told(&story.get("/", &[])), ("yes".to_owned(), String::new()));
}

#[test]
fn a_node_that_is_behind_says_so_after_a_moment() {
    let story = node();
    story.origin([fresh(60, "page")]);
    let ahead = NodeClaim { position: 5, ..claim_of(&story, "/") };
    let (reply, word) = ask_as(&story, ("/", ahead), SECRET, &[]);
    assert_eq!((reply.status(), word, reply.asked().len()), (503, Some(NodeWord::Behind), 0));
    story.core.shared.log_position.reach(5);
    let (reply, word) = ask_as(&story, ("/", ahead), SECRET, &[]);
    assert_eq!((reply.status(), word), (200, Some(NodeWord::Answer)));
}

#[test]
fn two_nodes_that_take_each_other_for_the_owner_do_not_wait_for_one_another() {
    let story = node();
    story.origin([fresh(60, "page")]);
    let fleet = story.core.site().fleet.clone().unwrap();
    let key = fleet.key_of(&request("/", FieldsView::default()));
    let asks = fleet.crossings.ask(key);
    assert_eq!(asked(&story, "/").1, Some(NodeWord::Crossed));
    drop(asks);
    assert_eq!(asked(&story, "/").1, Some(NodeWord::Answer));
}

#[test]
fn errors_of_its_own_a_node_does_not_pass_off_as_the_origins() {
    let story = node();
    story.origin([MockedAnswer::Refused]);
    let (reply, word) = asked(&story, "/");
    assert_eq!((reply.status(), word), (502, Some(NodeWord::Failed)));
    story.origin([answer(500, &[], "broken")]);
    let (reply, word) = asked(&story, "/other");
    assert_eq!((reply.status(), word), (500, Some(NodeWord::Answer)), "this one is the origin's");
    let elsewhere = NodeClaim { route: 7, ..claim_of(&story, "/") };
    let (reply, word) = ask_as(&story, ("/third", elsewhere), SECRET, &[]);
    assert_eq!((reply.status(), word, reply.asked().len()), (503, Some(NodeWord::Unable), 0), "it has other routes");
    let via = format!("Via: 1.1 {}", story.core.site().pseudonym);
    let (reply, word) = ask_as(&story, ("/third", claim_of(&story, "/third")), SECRET, &[&via]);
    assert_eq!((reply.status(), word, reply.asked().len()), (508, Some(NodeWord::Unable), 0), "it has asked itself");
}

#[test]
fn an_owner_that_gives_no_word_is_none_and_the_origin_is_asked() {
    let story = node();
    story.origin([fresh(60, "a stranger's"), fresh(60, "the origin's")]);
    let reply = story.get("/", &[]);
    assert_eq!((reply.body(), reply.asked().len()), ("the origin's", 2));
    let with_field = |sent: &Sent| sent.request.as_ref().unwrap().field(NODE_FIELD).is_some();
    assert_eq!(reply.asked.iter().map(with_field).collect::<Vec<_>>(), [true, false]);
    let counters = &story.core.counters;
    assert_eq!((counters.fleet_fetches.get(), counters.fleet_owners_unable.get()), (1, 1));
    assert_eq!(counters.origin_requests.get(), 1);
    assert_eq!(story.get("/", &[]).body(), "the origin's", "what was stored is the origin's");
}

#[test]
fn an_owner_that_is_not_there_costs_no_client_its_answer() {
    let story = node();
    story.origin([MockedAnswer::Refused, fresh(60, "page")]);
    let reply = story.get("/", &[]);
    assert_eq!((reply.status(), reply.body(), reply.verdict()), (200, "page", (CacheVerdict::Miss, "")));
    assert_eq!(story.core.counters.fleet_owners_down.get(), 1);
}

#[test]
fn only_what_may_be_stored_goes_to_an_owner() {
    let story = node();
    story.origin([answer(200, &["Cache-Control: no-store"], "page")]);
    let asks_node =
        |reply: &Reply| reply.asked.iter().any(|sent| sent.request.as_ref().unwrap().field(NODE_FIELD).is_some());
    for line in ["POST /", "HEAD /", "DELETE /"] {
        assert!(!asks_node(&story.ask(line, &[], "")), "{line}");
    }
    assert!(asks_node(&story.get("/", &[])));
    // It is known by now that it is not stored.
    assert!(!asks_node(&story.get("/", &[])));
}
