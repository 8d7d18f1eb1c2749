//! A renewer before an authority that is played, by a clock that is moved: years pass in milliseconds.

use std::cell::{Cell, RefCell};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rcgen::{CertificateParams, KeyPair};
use tokio::sync::Semaphore;

use crate::certificate_authority::{Authority, Issued, RenewalInfo, Replaced};
use crate::limits::{LOCK_LOOK_EVERY, ORDERS_MAX};
use crate::names::NameSet;
use crate::order_failure::Failure;
use crate::renewal_note::RenewalNote;
use crate::renewer::{News, Renewer, Surroundings, Turn};
use crate::schedule::Window;
use crate::state_folder::tests::Room;
use crate::state_folder::{self, StateFolder};

const DAY_S: u64 = 86_400;
const HOUR_S: u64 = 3_600;
/// Some day of 2026.
const START_S: u64 = 1_790_000_000;

/// What the authority does, and what it was asked.
struct Played {
    now_s: Cell<u64>,
    luck: Cell<f64>,
    /// How long what it signs is good.
    life_s: Cell<u64>,
    fails: RefCell<Option<Failure>>,
    suggests: RefCell<Option<RenewalInfo>>,
    name: RefCell<String>,
    orders: RefCell<Vec<(u64, bool)>>,
    news: RefCell<Vec<News>>,
}

impl Default for Played {
    fn default() -> Played {
        Played {
            now_s: Cell::new(START_S),
            luck: Cell::new(0.5),
            life_s: Cell::new(90 * DAY_S),
            fails: RefCell::default(),
            suggests: RefCell::default(),
            name: RefCell::new("a.example".to_owned()),
            orders: RefCell::default(),
            news: RefCell::default(),
        }
    }
}

fn signed(name: &str, from_s: u64, life_s: u64) -> Issued {
    let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    let since_1970 = |seconds: u64| rcgen::date_time_ymd(1970, 1, 1) + Duration::from_secs(seconds);
    (params.not_before, params.not_after) = (since_1970(from_s), since_1970(from_s + life_s));
    let key = KeyPair::generate().unwrap();
    Issued { chain: params.self_signed(&key).unwrap().pem(), key: key.serialize_pem() }
}

impl Authority for &Played {
    async fn renewal_info(&self, _: &str) -> Result<Option<RenewalInfo>, Failure> {
        Ok(self.suggests.borrow().clone())
    }

    async fn issue(&self, _: &NameSet, replaced: Option<Replaced<'_>>, _: u32, now_s: u64) -> Result<Issued, Failure> {
        self.orders.borrow_mut().push((now_s, replaced.is_some()));
        match &*self.fails.borrow() {
            Some(failure) => Err(failure.clone()),
            None => Ok(signed(&self.name.borrow(), now_s, self.life_s.get())),
        }
    }
}

impl Played {
    fn renewer(&self, folder: &StateFolder) -> Renewer<&Played> {
        let names = NameSet::new(["a.example"]).unwrap();
        Renewer::new(names, folder.clone(), self, Duration::from_secs(300), Arc::new(Semaphore::new(ORDERS_MAX)))
    }

    fn turn(&self, renewer: &mut Renewer<&Played>) -> Turn {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let around = Surroundings {
            now_s: &|| self.now_s.get(),
            luck: &|| self.luck.get(),
            tell: &|news| self.news.borrow_mut().push(news),
        };
        runtime.block_on(renewer.turn(&around))
    }

    /// As whoever runs it does, for so long.
    fn runs(&self, renewer: &mut Renewer<&Played>, for_s: u64) -> Turn {
        let end_s = self.now_s.get() + for_s;
        loop {
            let turn = self.turn(renewer);
            assert!(turn.next >= Duration::from_secs(1), "a tight loop");
            // A day in looks of half a minute is long: nothing of what is looked at changes by itself.
            let until_s = self.now_s.get() + turn.next.as_secs().max(self.quiet_s(renewer));
            if until_s > end_s {
                self.now_s.set(end_s);
                return turn;
            }
            self.now_s.set(until_s);
        }
    }

    /// How long it would look and do nothing.
    fn quiet_s(&self, renewer: &mut Renewer<&Played>) -> u64 {
        let (now_s, orders) = (self.now_s.get(), self.orders.borrow().len());
        let note = self.note(renewer);
        let next_s = [note.renew_at_s.max(note.rest_until_s), note.ask_at_s, note.try_at_s];
        assert_eq!(orders, self.orders.borrow().len());
        next_s.into_iter().filter(|at_s| *at_s > now_s).min().map_or(0, |at_s| at_s - now_s)
    }

    fn note(&self, renewer: &Renewer<&Played>) -> RenewalNote {
        RenewalNote::read(&renewer.files().note).0
    }

    /// When the orders were, in hours after the start.
    fn order_hours(&self) -> Vec<u64> {
        self.orders.borrow().iter().map(|(at_s, _)| (at_s - START_S) / HOUR_S).collect()
    }

    fn news_of(&self, is_it: impl Fn(&News) -> bool) -> usize {
        self.news.borrow().iter().filter(|news| is_it(news)).count()
    }
}

fn text(path: &Path) -> String {
    String::from_utf8(state_folder::read(path).unwrap().unwrap_or_default()).unwrap()
}

#[test]
fn a_year_takes_six_orders_and_each_replaces_the_one_before() {
    let (room, played) = (Room::new("year"), Played::default());
    *played.suggests.borrow_mut() = None;
    let mut renewer = played.renewer(&room.folder());
    let turn = played.runs(&mut renewer, 370 * DAY_S);
    let days: Vec<u64> = played.order_hours().iter().map(|hours| hours / 24).collect();
    // Two thirds of ninety days, and half of what the dice may add.
    assert_eq!(days, [0, 61, 123, 185, 247, 309]);
    assert_eq!((turn.failures, turn.last_failure), (0, None));
    assert!(turn.until_s.unwrap() > played.now_s.get() + 25 * DAY_S);
    assert_eq!(played.news_of(|news| matches!(news, News::Stored { .. })), 6);
}

#[test]
fn a_clock_that_went_ahead_holds_nothing_up_once_it_is_set_back() {
    let (room, played) = (Room::new("set-back"), Played::default());
    let mut renewer = played.renewer(&room.folder());
    // It starts with a clock of years to come, and the authority does not answer.
    played.now_s.set(START_S + 1_500 * DAY_S);
    *played.fails.borrow_mut() = Some(Failure::new("no route to host"));
    played.runs(&mut renewer, HOUR_S);
    let failed = played.orders.borrow().len();
    assert!(failed > 1);
    played.now_s.set(START_S);
    *played.fails.borrow_mut() = None;
    played.runs(&mut renewer, HOUR_S);
    assert_eq!(played.orders.borrow().len(), failed + 1, "it is ordered at once, and once");
}

#[test]
fn the_dice_spread_the_moment() {
    let second_order = |luck: f64| {
        let (room, played) = (Room::new(&format!("dice-{luck}")), Played::default());
        played.luck.set(luck);
        played.runs(&mut played.renewer(&room.folder()), 80 * DAY_S);
        played.order_hours()[1]
    };
    let [early, late] = [0.0, 0.999].map(second_order);
    assert!(early == 60 * 24 && late > 63 * 24 && late < 64 * 24, "{early} {late}");
}

#[test]
fn what_the_authority_suggests_counts_and_it_is_told_what_is_replaced() {
    let (room, played) = (Room::new("ari"), Played::default());
    let mut renewer = played.renewer(&room.folder());
    played.runs(&mut renewer, 10 * DAY_S);
    let window = |day: u64| Window { start_s: START_S + day * DAY_S, end_s: START_S + (day + 2) * DAY_S };
    let info = |day, url: &str| RenewalInfo { window: window(day), explanation: Some(url.to_owned()), again_s: HOUR_S };
    *played.suggests.borrow_mut() = Some(info(40, "https://ca.example/usual"));
    let turn = played.runs(&mut renewer, 10 * DAY_S);
    assert_eq!(turn.renew_at_s, Some(START_S + 41 * DAY_S));
    // It has signed something that it should not have.
    *played.suggests.borrow_mut() = Some(info(20, "https://ca.example/mistake"));
    played.runs(&mut renewer, DAY_S + HOUR_S);
    let orders = played.orders.borrow();
    assert_eq!(orders.len(), 2);
    assert_eq!(((orders[1].0 - START_S) / DAY_S, orders[1].1), (21, true));
    assert_eq!(
        played.news_of(|news| *news == News::Explained("https://ca.example/mistake".to_owned())),
        2,
        "once for each window"
    );
}

#[test]
fn an_authority_that_always_wants_it_at_once_is_not_asked_without_end() {
    let (room, played) = (Room::new("at-once"), Played::default());
    let window = Window { start_s: START_S - DAY_S, end_s: START_S - HOUR_S };
    *played.suggests.borrow_mut() = Some(RenewalInfo { window, explanation: None, again_s: 1_800 });
    played.runs(&mut played.renewer(&room.folder()), DAY_S);
    assert_eq!(played.order_hours(), [0, 6, 12, 18, 24]);
}

#[test]
fn a_failing_authority_is_tried_ever_more_seldom_and_what_is_stored_stays() {
    let (room, played) = (Room::new("failing"), Played::default());
    let mut renewer = played.renewer(&room.folder());
    played.runs(&mut renewer, DAY_S);
    let before = text(&renewer.files().certificate);
    *played.fails.borrow_mut() = Some(Failure::new("connection refused"));
    let turn = played.runs(&mut renewer, 65 * DAY_S);
    let first_hours: Vec<u64> = played.order_hours().into_iter().skip(1).map(|hour| hour - 1485).take(9).collect();
    assert_eq!(first_hours, [0, 0, 0, 0, 1, 2, 5, 10, 16], "doubling, then every six hours");
    let orders = played.orders.borrow().len();
    assert!(orders < 35, "{orders}");
    assert_eq!(turn.last_failure.as_deref(), Some("connection refused"));
    assert_eq!(text(&renewer.files().certificate), before);
    assert!(!played.orders.borrow()[2].1, "after a failure the one that is replaced is not named");
    *played.fails.borrow_mut() = None;
    let turn = played.runs(&mut renewer, DAY_S);
    assert_eq!((turn.failures, turn.last_failure), (0, None));
    assert_ne!(text(&renewer.files().certificate), before);
}

#[test]
fn a_restart_does_not_forget_that_the_authority_put_us_off() {
    let (room, played) = (Room::new("put-off"), Played::default());
    let folder = room.folder();
    let until_s = START_S + 3 * DAY_S;
    *played.fails.borrow_mut() = Some(Failure::new("too many").not_before(Some(until_s)));
    for _ in 0..100 {
        let turn = played.turn(&mut played.renewer(&folder));
        assert_eq!((turn.failures, turn.until_s), (1, None));
        played.now_s.set(played.now_s.get() + 60);
    }
    *played.fails.borrow_mut() = None;
    played.runs(&mut played.renewer(&folder), 4 * DAY_S);
    assert_eq!(played.order_hours(), [0, 72]);
}

#[test]
fn one_that_starts_again_and_again_asks_no_more_than_every_five_minutes() {
    let (room, played) = (Room::new("crashes"), Played::default());
    *played.fails.borrow_mut() = Some(Failure::new("no route to host"));
    for _ in 0..1_200 {
        played.turn(&mut played.renewer(&room.folder()));
        played.now_s.set(played.now_s.get() + 3);
    }
    assert_eq!(played.orders.borrow().len(), 12, "in an hour");
}

#[test]
fn a_restart_uses_what_is_stored() {
    let (room, played) = (Room::new("restart"), Played::default());
    played.runs(&mut played.renewer(&room.folder()), DAY_S);
    for _ in 0..20 {
        played.runs(&mut played.renewer(&room.folder()), DAY_S);
    }
    assert_eq!(played.order_hours(), [0]);
}

#[test]
fn who_finds_the_lock_taken_waits_and_then_finds_the_certificate() {
    let (room, played) = (Room::new("two"), Played::default());
    let folder = room.folder();
    folder.make().unwrap();
    let mut one = played.renewer(&folder);
    let held = state_folder::lock(&one.files().lock, START_S).unwrap().unwrap();
    for _ in 0..3 {
        assert_eq!(played.turn(&mut one).next, LOCK_LOOK_EVERY);
    }
    assert_eq!(played.news_of(|news| matches!(news, News::Waiting { .. })), 1, "it is said once");
    // Its holder has crashed.
    drop(held);
    played.turn(&mut one);
    let mut two = played.renewer(&folder);
    assert!(played.turn(&mut two).until_s.is_some());
    assert_eq!(played.order_hours(), [0]);
}

#[test]
fn what_is_broken_is_said_and_kept_aside() {
    let (room, played) = (Room::new("broken"), Played::default());
    let folder = room.folder();
    folder.make().unwrap();
    let mut renewer = played.renewer(&folder);
    let files = renewer.files().clone();
    state_folder::write(&files.certificate, b"half of a").unwrap();
    state_folder::write(&files.note, b"{").unwrap();
    assert!(played.turn(&mut renewer).until_s.is_some());
    assert_eq!(played.news_of(|news| matches!(news, News::Broken(_))), 2);
    assert_eq!(text(&files.certificate.with_extension(format!("broken-{START_S}"))), "half of a");
    assert!(text(&files.certificate).contains("PRIVATE KEY"));
}

#[test]
fn a_folder_that_cannot_be_used_is_a_failure_and_no_order() {
    let (room, played) = (Room::new("unusable"), Played::default());
    std::fs::write(&room.0, "no folder").unwrap();
    let turn = played.turn(&mut played.renewer(&room.folder()));
    assert_eq!((turn.failures, turn.next), (1, Duration::from_secs(300)));
    let why = turn.last_failure.unwrap();
    assert!(why.contains("larder-acme-") && played.orders.borrow().is_empty(), "{why}");
    std::fs::remove_file(&room.0).unwrap();
}

#[test]
fn what_is_signed_for_another_name_is_not_stored() {
    let (room, played) = (Room::new("other-name"), Played::default());
    *played.name.borrow_mut() = "b.example".to_owned();
    let mut renewer = played.renewer(&room.folder());
    let turn = played.turn(&mut renewer);
    assert!(turn.last_failure.unwrap().contains("it is not for a.example"));
    assert_eq!(text(&renewer.files().certificate), "");
}
