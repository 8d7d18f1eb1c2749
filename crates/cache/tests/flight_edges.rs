//! Every legal edge of a flight, taken by the shortest story that takes it. The test fails when the table in
//! `flight_state.rs` has an edge that no story here takes. It is a binary of its own, because the counters are
//! those of the process.
#![cfg(not(feature = "shuttle"))]

#[path = "story/stage.rs"]
mod stage;

use std::sync::atomic::Ordering;

use bytes::Bytes;
use cache::FlightState::{self, *};
use cache::{CacheSettings, edges_taken};
use message::{ResponseHead, Status};
use stage::*;

type Edge = (FlightState, FlightState);

fn taken() -> Vec<(Edge, u64)> {
    edges_taken().iter().map(|(from, to, count)| ((*from, *to), count.load(Ordering::Relaxed))).collect()
}

/// Runs a story and compares the edges it took, each once.
fn check(name: &str, expect: &[Edge], story: impl FnOnce(&mut Stage)) -> Vec<Edge> {
    let before = taken();
    let settings = CacheSettings { object_bytes_max: 1_000, ..CacheSettings::default() };
    story(&mut Stage::with(settings));
    let after = taken();
    let mut got = Vec::new();
    for ((edge, was), (_, is)) in before.into_iter().zip(after) {
        got.extend((was..is).map(|_| edge));
    }
    let mut expect = expect.to_vec();
    let order = |edge: &Edge| edges_taken().iter().position(|(from, to, _)| (*from, *to) == *edge);
    expect.sort_by_key(order);
    assert_eq!(got, expect, "{name}");
    got
}

fn described(stage: &Stage, length: Option<u64>) -> cache::Draft {
    stage.describe(stage.miss("/"), Some(storable(MINUTE_MS)), length)
}

fn filling(stage: &Stage) -> cache::Draft {
    let mut draft = described(stage, None);
    draft.append(Bytes::from_static(b"x"));
    draft
}

fn purge(stage: &Stage) {
    stage.cache.purge(stage.key("/"));
}

fn before_the_head() -> Vec<Vec<Edge>> {
    vec![
        check("not storable", &[(Reserved, Private)], |stage| {
            stage.describe(stage.miss("/"), None, None).land(None);
        }),
        check("no head", &[(Reserved, Failed)], |stage| stage.miss("/").fail(failure(0), stage.now)),
        check("nobody fetches", &[(Reserved, Failed)], |stage| drop(stage.miss("/"))),
        check("validated", &[(Reserved, Described), (Described, Landed), (Reserved, Landed)], |stage| {
            described(stage, None).land(None);
            stage.advance_ms(2 * MINUTE_MS);
            let head = ResponseHead::new(Status::OK).into();
            stage.miss("/").refreshed((head, Bytes::new()), facts(MINUTE_MS), None, stage.now);
        }),
        check("purged", &[(Reserved, Condemned), (Condemned, Failed)], |stage| {
            let ticket = stage.miss("/");
            purge(stage);
            ticket.fail(failure(0), stage.now);
        }),
        check("purged, then not storable", &[(Reserved, Condemned), (Condemned, Private)], |stage| {
            let ticket = stage.miss("/");
            purge(stage);
            stage.describe(ticket, None, None).land(None);
        }),
        check("purged, then served", &[(Reserved, Condemned)], |stage| {
            let ticket = stage.miss("/");
            purge(stage);
            stage.describe(ticket, Some(storable(1)), None).land(None);
        }),
    ]
}

fn after_the_head() -> Vec<Vec<Edge>> {
    let head = (Reserved, Described);
    let body = (Described, Filling);
    vec![
        check("no body", &[head, (Described, Landed)], |stage| drop(described(stage, Some(0)).land(None))),
        check("a body", &[head, body, (Filling, Landed)], |stage| drop(filling(stage).land(None))),
        check("no body where one was said", &[head, (Described, Failed)], |stage| {
            assert!(described(stage, Some(5)).land(None).is_none());
        }),
        check("cut in the body", &[head, body, (Filling, Failed)], |stage| filling(stage).abort(failure(0), stage.now)),
        check("given up in the body", &[head, body, (Filling, Failed)], |stage| drop(filling(stage))),
        check("purged before the body", &[head, (Described, Condemned)], |stage| {
            let draft = described(stage, None);
            purge(stage);
            draft.land(None);
        }),
        check("purged in the body", &[head, body, (Filling, Condemned)], |stage| {
            let mut draft = filling(stage);
            purge(stage);
            draft.append(Bytes::from_static(b"y"));
            draft.abort(failure(0), stage.now);
        }),
        check("said to be too long", &[head, (Described, Overflowed)], |stage| {
            described(stage, Some(1_001)).abort(failure(0), stage.now);
        }),
        check("too long", &[head, body, (Filling, Overflowed)], |stage| {
            let mut draft = filling(stage);
            draft.append(Bytes::from(vec![1; 1_000]));
            draft.land(None);
        }),
        check("too long at once", &[head, (Described, Overflowed)], |stage| {
            let mut draft = described(stage, None);
            draft.append(Bytes::from(vec![1; 1_001]));
            draft.land(None);
        }),
    ]
}

#[test]
fn every_legal_edge_is_taken_and_no_other() {
    let mut got: Vec<Edge> = before_the_head().concat();
    got.extend(after_the_head().concat());
    for (from, to, _) in edges_taken() {
        assert!(got.contains(&(*from, *to)), "nobody takes {from:?} → {to:?}");
    }
}
