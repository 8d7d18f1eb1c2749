//! The exchange machine's table: what it allows, what it must never allow, and that all of it can happen.

use super::*;

const EVENTS: [Event; EVENTS_COUNT] = {
    use Event::*;
    [
        BodilessHeadRead,
        HeadRead,
        BodyRead,
        ReadBroken,
        InterimWritten,
        AnswerBegun,
        AnswerEnded,
        AnswerCut,
        Switched,
        Piped,
        CloseWanted,
        Reused,
    ]
};

/// Every exchange that can come about, and the edges on the way.
fn reachable() -> (Vec<Exchange>, Vec<usize>) {
    let (mut seen, mut edges) = (vec![Exchange::new()], Vec::new());
    let mut next = 0;
    while next < seen.len() {
        for event in EVENTS {
            let mut exchange = seen[next];
            if let Ok(edge) = exchange.step(event) {
                edges.push(edge);
                if !seen.contains(&exchange) {
                    seen.push(exchange);
                }
            }
        }
        next += 1;
    }
    (seen, edges)
}

/// Takes the steps; says what becomes of the connection, or which step was illegal.
fn check(events: &[Event], expect: Result<Afterwards, Event>) {
    let mut exchange = Exchange::new();
    let steps = events.iter().try_for_each(|event| exchange.step(*event).map(drop));
    assert_eq!(steps.map(|()| exchange.afterwards()).map_err(|illegal| illegal.event), expect, "{events:?}");
}

#[test]
fn every_edge_can_be_taken_and_every_exchange_can_end() {
    let (seen, edges) = reachable();
    for (n, edge) in EDGES.iter().enumerate() {
        assert!(edges.contains(&n), "{edge:?} is never taken");
    }
    for exchange in seen {
        let can_go_on = EVENTS.iter().any(|event| exchange.clone().step(*event).is_ok());
        assert!(can_go_on || exchange.afterwards() != Afterwards::NotYet, "{exchange:?} is a dead end");
    }
}

#[test]
fn a_step_is_what_the_table_says_or_nothing() {
    for exchange in reachable().0 {
        for event in EVENTS {
            let mut stepped = exchange;
            let fits = |edge: &&Edge| {
                edge.reading == exchange.reading
                    && edge.writing == exchange.writing
                    && edge.keep_alive.is_none_or(|wanted| wanted == exchange.keep_alive)
                    && edge.event == event
            };
            match (stepped.step(event), EDGES.iter().find(fits)) {
                (Ok(n), Some(edge)) => {
                    assert_eq!(EDGES[n], *edge);
                    assert_eq!((stepped.reading, stepped.writing), (edge.to_reading, edge.to_writing));
                }
                (Err(_), None) => assert_eq!(stepped, exchange),
                (step, edge) => panic!("{exchange:?} {event:?}: {step:?}, {edge:?}"),
            }
        }
    }
}

#[test]
fn nothing_follows_a_body_that_was_not_read() {
    for exchange in reachable().0 {
        let reusable = exchange.clone().step(Event::Reused).is_ok();
        assert_eq!(reusable, exchange.afterwards() == Afterwards::Reuse, "{exchange:?}");
        if reusable {
            assert_eq!((exchange.reading, exchange.writing), (Reading::Done, Writing::Done));
        }
        if exchange.reading == Reading::Broken {
            assert_eq!(exchange.keep_alive, KeepAlive::Refused, "{exchange:?}");
        }
        let switches = exchange.clone().step(Event::Switched).is_ok();
        assert!(!switches || exchange.reading == Reading::Done, "{exchange:?}");
    }
}

#[test]
fn exchanges() {
    use Event::*;
    check(&[BodilessHeadRead, AnswerBegun, AnswerEnded], Ok(Afterwards::Reuse));
    check(&[BodilessHeadRead, AnswerBegun, AnswerEnded, Reused], Ok(Afterwards::NotYet));
    check(&[BodilessHeadRead, AnswerBegun, AnswerEnded, CloseWanted], Ok(Afterwards::Close));
    check(&[BodilessHeadRead, AnswerBegun, AnswerEnded, CloseWanted, Reused], Err(Reused));
    // A hit on a request that has a body (C13): drain first, or linger.
    check(&[HeadRead, AnswerBegun, AnswerEnded], Ok(Afterwards::Drain));
    check(&[HeadRead, AnswerBegun, AnswerEnded, Reused], Err(Reused));
    check(&[HeadRead, AnswerBegun, AnswerEnded, BodyRead], Ok(Afterwards::Reuse));
    check(&[HeadRead, AnswerBegun, BodyRead], Err(BodyRead));
    check(&[HeadRead, AnswerBegun, AnswerEnded, CloseWanted], Ok(Afterwards::LingerClose));
    check(&[HeadRead, InterimWritten, BodyRead, InterimWritten, AnswerBegun, AnswerEnded], Ok(Afterwards::Reuse));
    // A refused head (V4).
    check(&[ReadBroken, AnswerBegun, AnswerEnded], Ok(Afterwards::LingerClose));
    check(&[ReadBroken, AnswerBegun, AnswerEnded, Reused], Err(Reused));
    check(&[ReadBroken, BodilessHeadRead], Err(BodilessHeadRead));
    // Half an answer (O-05).
    check(&[BodilessHeadRead, AnswerBegun, AnswerCut], Ok(Afterwards::Abort));
    check(&[BodilessHeadRead, AnswerCut, AnswerBegun], Err(AnswerBegun));
    // Tunnels (F10, F11, F17).
    check(&[BodilessHeadRead, Switched], Ok(Afterwards::Tunnel));
    check(&[HeadRead, Switched], Err(Switched));
    check(&[HeadRead, BodyRead, Switched], Ok(Afterwards::Tunnel));
    check(&[BodilessHeadRead, AnswerBegun, Switched], Err(Switched));
    check(&[BodilessHeadRead, Switched, Reused], Err(Reused));
    check(&[HeadRead, Piped], Ok(Afterwards::Tunnel));
    check(&[BodilessHeadRead, Piped, Reused], Err(Reused));
    check(&[HeadRead, ReadBroken, Piped], Err(Piped));
    // A body that is none, and no answer to it.
    check(&[HeadRead, ReadBroken, AnswerCut], Ok(Afterwards::Abort));
    check(&[HeadRead, ReadBroken, AnswerCut, Reused], Err(Reused));
    // Never two answers.
    check(&[BodilessHeadRead, AnswerBegun, AnswerBegun], Err(AnswerBegun));
    check(&[BodilessHeadRead, AnswerBegun, InterimWritten], Err(InterimWritten));
    check(&[AnswerBegun], Err(AnswerBegun));
}
