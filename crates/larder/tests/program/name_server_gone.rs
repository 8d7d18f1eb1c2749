//! A name server that answers no more, or says that there is no such name, under the name of an origin: the addresses that are known are asked
//! on. One that is away at the start is asked again until it is there.

use crate::fenced_larder::FencedLarder;
use crate::lying_name_server::{LyingNameServer, Mood};
use crate::peer_process::wait_long;
use crate::supervised_larder::HeldOrigin;

fn larder(name: &str, origin: &HeldOrigin, names: &LyingNameServer) -> FencedLarder {
    let config = format!(
        "[origin.a]\nurls = [\"http://turn.test:{}\"]\n[resolver]\nservers = [\"{}\"]\n[[route]]\norigin = \"a\"\ncache = false\n\
         [limits]\nconnect_timeout = \"1s\"\n",
        origin.address.port(),
        names.address
    );
    FencedLarder::start(name, &config)
}

#[test]
fn an_origin_is_asked_on_while_nobody_knows_its_name() {
    let (origin, names) = (HeldOrigin::start(), LyingNameServer::start());
    let larder = larder("names-gone", &origin, &names);
    let is_answered = || larder.get("/a").starts_with("HTTP/1.1 200 ");
    assert!(is_answered());
    for mood in [Mood::Silent, Mood::KnowsNobody] {
        *names.mood.lock().unwrap() = mood;
        let asked = || names.asked.lock().unwrap().iter().filter(|name| *name == "turn.test").count();
        let before = asked();
        // Its time to live is a second, and so is the pause behind a failure; each question is about two kinds of address.
        wait_long("the name is asked for again and again", || {
            assert!(is_answered(), "{mood:?}: {}", larder.said());
            asked() >= before + 6
        });
    }
    assert!(!larder.said().contains("is down"), "{}", larder.said());
}

#[test]
fn a_name_server_that_is_away_at_the_start_is_asked_until_it_is_there() {
    let (origin, names) = (HeldOrigin::start(), LyingNameServer::start());
    *names.mood.lock().unwrap() = Mood::Silent;
    let larder = larder("names-late", &origin, &names);
    let answer = larder.get("/a");
    assert!(["HTTP/1.1 502 ", "HTTP/1.1 504 "].iter().any(|status| answer.starts_with(status)), "{answer}");
    larder.wait_for_word("origin \"a\" (turn.test:");
    larder.wait_for_word("is down: ");
    *names.mood.lock().unwrap() = Mood::Answers;
    wait_long("it is answered", || larder.get("/a").starts_with("HTTP/1.1 200 "));
    larder.wait_for_word("is back after ");
    assert_eq!(larder.said().matches("is down: ").count(), 1, "{}", larder.said());
}
