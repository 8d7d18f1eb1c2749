//! Which address is chosen: shares by weight, who is left out and who stands in, and what stays where it was.

use super::*;
use crate::origin::address::Ejection;
use crate::origin::address_order::AddressOrder;
use crate::origin::dial::DialAddress;
use crate::origin::{AddressFault, OriginFailure};
use crate::probe_window::ProbeWindow;
use crate::settings::HashKey;

const EJECTION: Ejection = Ejection { failures_max: 3, time_ms: 10_000 };
const SILENT: AddressFault<'static> = AddressFault::Answer(OriginFailure::FirstByte);

/// Addresses of these weights, a `b` behind one that is a backup.
fn weighed(kind: BalanceKind, weights: &[&str]) -> Book {
    of_terms(BookTerms { kind, ..BookTerms::default() }, weights)
}

fn of_terms(terms: BookTerms, weights: &[&str]) -> Book {
    let member = |(n, written): (usize, &&str)| {
        let weight = written.trim_end_matches('b').parse().unwrap();
        let place = DialAddress::Tcp(([10, 0, 0, 1], n as u16).into());
        (Arc::new(Address::new(place, 1, Arc::default())), UrlShare { weight, is_backup: written.ends_with('b') })
    };
    Book::new(weights.iter().enumerate().map(member).collect(), terms, (0, 0))
}

fn book(count: usize) -> Book {
    weighed(BalanceKind::RoundRobin, &vec!["1"; count])
}

fn turn(number: usize) -> RequestTurn {
    RequestTurn { number, affinity: Affinity::default() }
}

fn keyed(key: u64) -> RequestTurn {
    RequestTurn { number: 0, affinity: Affinity { key: Some(mix(key)), sticks_to: None } }
}

/// Which of them it is.
fn at(book: &Book, turn: RequestTurn, now_ms: u64) -> Option<usize> {
    let picked = book.pick(turn, now_ms, &[])?;
    book.addresses.iter().position(|address| Arc::ptr_eq(address, picked))
}

/// The addresses picked in turns 0, 1, 2 …
fn check(book: &Book, now_ms: u64, expect: &[usize]) {
    let picked: Vec<usize> = (0..expect.len()).map(|number| at(book, turn(number), now_ms).unwrap()).collect();
    assert_eq!(picked, expect, "at {now_ms} ms");
}

fn eject(book: &Book, which: usize, now_ms: u64) {
    (0..3).for_each(|_| _ = book.addresses[which].failed(EJECTION, now_ms, SILENT));
}

/// Of so many turns, how many each had.
fn counts(book: &Book, turns: impl Iterator<Item = RequestTurn>, now_ms: u64) -> Vec<usize> {
    let mut counts = vec![0; book.addresses.len()];
    turns.for_each(|turn| counts[at(book, turn, now_ms).unwrap()] += 1);
    counts
}

#[test]
fn turns_go_round() {
    check(&book(3), 0, &[0, 1, 2, 0, 1]);
    check(&book(1), 0, &[0, 0]);
    assert!(book(0).pick(turn(5), 0, &[]).is_none());
}

#[test]
fn failures_in_a_row_eject_for_a_time() {
    let book = book(3);
    let ejected: Vec<bool> = (0..4).map(|_| book.addresses[1].failed(EJECTION, 5, SILENT)).collect();
    assert_eq!(ejected, [false, false, true, false]);
    check(&book, 10_004, &[0, 2, 2, 0, 2]);
    check(&book, 10_005, &[0, 1, 2]);
    assert!(book.addresses[1].failed(EJECTION, 10_005, SILENT), "after its time one failure is enough");
    book.addresses[1].succeeded(|| 10_006);
    check(&book, 10_006, &[0, 1, 2]);
    assert!(!book.addresses[1].failed(EJECTION, 10_006, SILENT), "an answer forgives");
}

#[test]
fn all_ejected_means_all_used_unless_the_circuit_breaks() {
    let book = book(2);
    (0..2).for_each(|which| eject(&book, which, 0));
    check(&book, 1, &[0, 1, 0]);
    let breaking = of_terms(BookTerms { breaks_circuit: true, ..BookTerms::default() }, &["1", "1"]);
    (0..2).for_each(|which| eject(&breaking, which, 0));
    assert_eq!((at(&breaking, turn(0), 9_999), at(&breaking, turn(0), 10_000)), (None, Some(0)));
}

#[test]
fn what_was_tried_is_not_picked_again() {
    let book = book(2);
    let first = Arc::clone(book.pick(turn(0), 0, &[]).unwrap());
    let second = Arc::clone(book.pick(turn(0), 0, std::slice::from_ref(&first)).unwrap());
    assert!(!Arc::ptr_eq(&first, &second));
    assert!(book.serves_beside(std::slice::from_ref(&first), 0));
    assert!(!book.serves_beside(&[Arc::clone(&first), Arc::clone(&second)], 0));
    eject(&book, book.addresses.iter().position(|address| Arc::ptr_eq(address, &second)).unwrap(), 0);
    assert!(!book.serves_beside(std::slice::from_ref(&first), 1), "one that is left out is no help");
    assert!(book.pick(turn(0), 0, &[first, second]).is_none());
}

#[test]
fn each_gets_what_it_weighs() {
    check(&weighed(BalanceKind::RoundRobin, &["3", "1", "0"]), 0, &[0, 0, 1, 0, 0]);
    for kind in [BalanceKind::TwoChoices, BalanceKind::Hash(HashKey::Url)] {
        let book = weighed(kind.clone(), &["1", "2", "5", "0"]);
        let turns = (0..8_000).map(|n| RequestTurn { number: n, affinity: keyed(n as u64).affinity });
        let counts = counts(&book, turns, 0);
        let expected = match kind {
            // Nothing is under way: of two the one that weighs more is the better one.
            BalanceKind::TwoChoices => [0..500, 500..2_400, 5_600..8_000, 0..1],
            _ => [850..1_150, 1_850..2_150, 4_800..5_200, 0..1],
        };
        assert!(counts.iter().zip(&expected).all(|(count, range)| range.contains(count)), "{kind:?}: {counts:?}");
    }
}

#[test]
fn backups_are_asked_when_all_others_are_out() {
    let book = weighed(BalanceKind::RoundRobin, &["1", "1b", "1"]);
    check(&book, 0, &[0, 2, 0, 2]);
    eject(&book, 0, 0);
    check(&book, 1, &[2, 2]);
    book.addresses[2].order(AddressOrder::Down, 1);
    check(&book, 1, &[1, 1]);
    eject(&book, 1, 1);
    check(&book, 2, &[0, 0]);
    book.addresses[0].order(AddressOrder::Drain, 1);
    check(&book, 2, &[1, 1]);
    book.addresses[1].order(AddressOrder::Down, 1);
    assert!(at(&book, turn(0), 2).is_none(), "whom an operator took out is never asked");
    check(&weighed(BalanceKind::RoundRobin, &["1b"]), 0, &[0]);
}

#[test]
fn one_that_a_probe_found_down_is_asked_last_of_all() {
    let book = weighed(BalanceKind::RoundRobin, &["1", "1", "1b"]);
    let window = ProbeWindow::new(1, 1, 1);
    book.addresses.iter().for_each(|address| address.set_probed(Some(&window), false, 0, 0));
    book.addresses[0].note_probe(false, String::new(), 0, 1, 1);
    check(&book, 1, &[1, 1, 1]);
    book.addresses[1].note_probe(false, String::new(), 0, 1, 1);
    check(&book, 1, &[2, 2]);
    book.addresses[2].note_probe(false, String::new(), 0, 1, 1);
    check(&book, 1, &[0, 1, 0]);
}

#[test]
fn the_least_loaded_one_is_asked_by_its_weight() {
    let book = weighed(BalanceKind::LeastConn, &["1", "1", "3"]);
    let busy = |which: usize, n| book.addresses[which].in_use.store(n, Ordering::Relaxed);
    [(0, 2), (1, 1), (2, 5)].into_iter().for_each(|(which, n)| busy(which, n));
    assert_eq!(at(&book, turn(0), 0), Some(1));
    busy(2, 4);
    assert_eq!(at(&book, turn(0), 0), Some(2), "five among three are fewer than two for one");
    [(0, 0), (1, 0), (2, 2)].into_iter().for_each(|(which, n)| busy(which, n));
    assert_eq!(counts(&book, (0..6).map(turn), 0), [2, 2, 2], "of equals each has its turn");
}

#[test]
fn of_two_that_are_drawn_the_less_loaded_is_asked() {
    let book = weighed(BalanceKind::TwoChoices, &["1", "1", "1"]);
    book.addresses[1].in_use.store(9, Ordering::Relaxed);
    let counts = counts(&book, (0..6_000).map(turn), 0);
    assert!(counts[1] == 0 && counts[0].abs_diff(counts[2]) < 300, "{counts:?}");
    eject(&book, 0, 0);
    assert_eq!(self::counts(&book, (0..100).map(turn), 1), [0, 0, 100]);
    book.addresses[2].order(AddressOrder::Down, 1);
    assert_eq!(self::counts(&book, (0..100).map(turn), 1), [0, 100, 0], "one is enough");
}

#[test]
fn a_key_stays_where_it_was_as_long_as_that_is_there() {
    let (three, four) = (["1", "1", "1"], ["1", "1", "1", "1"]);
    let [three, four] = [&three[..], &four[..]].map(|weights| weighed(BalanceKind::Hash(HashKey::Url), weights));
    let mut moved = 0;
    for key in 0..4_000 {
        let (before, after) = (at(&three, keyed(key), 0), at(&four, keyed(key), 0));
        moved += usize::from(before != after);
        assert!(before == after || after == Some(3), "{key} moves to whom it does not have to");
    }
    assert!((850..1_150).contains(&moved), "{moved} of 4,000 moved to the fourth");
    eject(&four, 3, 0);
    assert!((0..4_000).all(|key| at(&three, keyed(key), 1) == at(&four, keyed(key), 1)), "its keys go back");
    let without_key = counts(&three, (0..30).map(turn), 0);
    assert_eq!(without_key, [10, 10, 10], "what has no key belongs to nobody");
}

#[test]
fn the_first_that_is_there_gets_everything() {
    let book = weighed(BalanceKind::First, &["1", "5", "1b"]);
    check(&book, 0, &[0, 0, 0]);
    eject(&book, 0, 0);
    check(&book, 1, &[1, 1, 1]);
    eject(&book, 1, 0);
    check(&book, 1, &[2, 2]);
}

#[test]
fn who_comes_back_slowly_has_a_growing_share() {
    for kind in [BalanceKind::RoundRobin, BalanceKind::TwoChoices, BalanceKind::Hash(HashKey::Url)] {
        let terms = BookTerms { kind: kind.clone(), slow_ms: 1_000, ..BookTerms::default() };
        let book = of_terms(terms, &["1", "1"]);
        eject(&book, 1, 0);
        let share = |now_ms| {
            let turns = (0..4_000).map(|n| RequestTurn { number: n, affinity: keyed(n as u64).affinity });
            counts(&book, turns, now_ms)[1]
        };
        let shares = [9_999, 10_000, 10_250, 10_500, 11_000].map(|now_ms| {
            if now_ms == 10_000 {
                book.addresses[1].succeeded(|| now_ms);
            }
            share(now_ms)
        });
        // Half of the turns are its own when it has come back: of these a twentieth at first, a quarter, half, all.
        let expected = [0..1, 50..170, 400..720, 850..1_150, 1_850..2_150];
        assert!(shares.iter().zip(&expected).all(|(share, range)| range.contains(share)), "{kind:?}: {shares:?}");
    }
    let book = of_terms(BookTerms { slow_ms: 1_000, ..BookTerms::default() }, &["1"]);
    eject(&book, 0, 0);
    book.addresses[0].succeeded(|| 10_000);
    check(&book, 10_000, &[0, 0, 0]);
}

#[test]
fn keys_that_come_back_slowly_stay() {
    let terms = BookTerms { kind: BalanceKind::Hash(HashKey::Url), slow_ms: 1_000, ..BookTerms::default() };
    let book = of_terms(terms, &["1", "1"]);
    eject(&book, 1, 0);
    book.addresses[1].succeeded(|| 10_000);
    for key in 0..2_000 {
        let over_time: Vec<_> = (0..=10).map(|tenth| at(&book, keyed(key), 10_000 + tenth * 100).unwrap()).collect();
        assert!(over_time.is_sorted(), "{key} goes to and fro: {over_time:?}");
    }
}

#[test]
fn who_was_answered_by_an_address_comes_back_to_it() {
    let cookie = StickyCookie { name: "route".to_owned(), secret: "of the shop".to_owned() };
    let terms = BookTerms { sticky: Some(cookie.clone()), ..BookTerms::default() };
    let book = of_terms(terms, &["1", "1", "1"]);
    let stuck = |number, which: usize| RequestTurn {
        number,
        affinity: Affinity { key: None, sticks_to: Some(token_of(&cookie, &book.addresses[which].label)) },
    };
    assert!((0..9).all(|number| at(&book, stuck(number, 1), 0) == Some(1)));
    book.addresses[1].order(AddressOrder::Drain, 0);
    assert_eq!(counts(&book, (0..4).map(turn), 0), [2, 0, 2]);
    assert_eq!(at(&book, stuck(0, 1), 0), Some(1), "drained, it still serves its own");
    eject(&book, 1, 0);
    assert_eq!(at(&book, stuck(0, 1), 1), Some(0));
    book.addresses[2].order(AddressOrder::Down, 0);
    assert_eq!(at(&book, stuck(2, 2), 0), Some(0));
    let unknown = RequestTurn { number: 1, affinity: Affinity { key: None, sticks_to: Some(7) } };
    assert_eq!(at(&book, unknown, 20_000), Some(0));
}
