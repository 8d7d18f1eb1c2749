//! Traces that are made and not recorded, so that policies can be compared without anybody's log: the same seed makes the
//! same trace. Three kinds, each a step nearer to a site.
//!
//! What is known of sites and taken over: popularity falls by a power of the rank (Breslau et al., INFOCOM 1999); about 70 %
//! of the objects are asked for once (Mahanti, Williamson and Eager, IEEE Network 14(3), 2000); a part of a site is asked
//! for steadily over days while news is written anew (Padmanabhan and Qiu, SIGCOMM 2000). Lengths: `web_sizes.rs`.

use std::f64::consts::TAU;

use fastrand::Rng;
use lab::ZipfPick;
use store::Ask;

use crate::load_tool::simulation::trace_file::Trace;
use crate::load_tool::simulation::web_sizes::web_bytes;

/// The power by which popularity falls: proxies saw 0.64 to 0.83, servers of one site more.
const ALPHA: f64 = 0.9;

/// Of the requests of the trace with scans, so many belong to one …
const SCANNED_SHARE: f64 = 0.25;
/// … and while one is under way, so many of those that come. It asks for one object after the other,
const SCAN_DENSITY: f64 = 0.75;
/// through such a part of all, and the next one goes on there.
const SCAN_LENGTH: f64 = 0.25;

const DAY_S: u32 = 86_400;
const DAYS: u32 = 7;
/// The rate swings by so much to both sides: four times as many requests at nine in the evening as at nine in the morning.
const SWING: f64 = 0.6;
const PEAK_HOUR: f64 = 21.0;
/// An object that lasts has an hour of its own, and swings about it by so much.
const TASTE_SWING: f64 = 0.8;

/// What a site's objects are. The rest is asked for once.
const LASTING_SHARE: f64 = 0.08;
const NEWS_SHARE: f64 = 0.27;
/// Of the requests that are not for such one-hit wonders, so many are for what lasts. The rest is for news.
const LASTING_ASKED: f64 = 0.6;
/// What is written in one hour competes with one another, less steeply than what lasts.
const NEWS_ALPHA: f64 = 0.8;
/// News of two days are there when the trace begins.
const HOURS_BEFORE: u32 = 48;
/// The chance that somebody asks for news of `a` hours or older is (1 + a / 6) to the power of -1.5: half of it is gone
/// after three and a half hours, and some is asked for weeks later.
const FADING_HOURS: f64 = 6.0;
const FADING_POWER: f64 = 1.5;

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum MadeKind {
    /// By a Zipf law, always the same
    Zipf,
    /// The same, and now and then a crawler that asks for one object after the other
    Scan,
    /// A week of a site: day and night, news that come and fade, most objects asked for once
    Site,
}

impl MadeKind {
    pub const fn name(self) -> &'static str {
        match self {
            MadeKind::Zipf => "zipf",
            MadeKind::Scan => "scan",
            MadeKind::Site => "site",
        }
    }
}

/// What is to be made.
#[derive(Clone, Copy, Debug)]
pub struct Recipe {
    pub kind: MadeKind,
    pub requests: u64,
    /// How many objects there are. Some of them may never be asked for.
    pub objects: u32,
    pub seed: u64,
}

pub fn make(recipe: &Recipe) -> Trace {
    let mut dice = Rng::with_seed(recipe.seed);
    let lengths = (0..recipe.objects).map(|_| web_bytes(&mut dice)).collect();
    let mut making = Making { asks: Vec::new(), numbers: vec![None; recipe.objects as usize], lengths, count: 0 };
    match recipe.kind {
        MadeKind::Zipf => zipf(recipe, dice, &mut making),
        MadeKind::Scan => scan(recipe, dice, &mut making),
        MadeKind::Site => site(recipe, dice, &mut making),
    }
    Trace { asks: making.asks, objects: making.count, ..Trace::default() }
}

struct Making {
    asks: Vec<Ask>,
    /// What is asked for is numbered in the order in which it is asked for first, as in a trace that was read.
    numbers: Vec<Option<u32>>,
    lengths: Vec<u32>,
    count: u32,
}

impl Making {
    fn ask(&mut self, object: u32, at_s: u32) {
        let number = *self.numbers[object as usize].get_or_insert_with(|| {
            self.count += 1;
            self.count - 1
        });
        self.asks.push(Ask { object: number, bytes: self.lengths[object as usize], at_s });
    }
}

/// The second of each request where none is busier than another: a day in all.
fn steady(recipe: &Recipe) -> impl Iterator<Item = u32> + use<> {
    let requests = recipe.requests;
    (0..requests).map(move |at| (u128::from(at) * u128::from(DAY_S) / u128::from(requests)) as u32)
}

fn zipf(recipe: &Recipe, mut dice: Rng, making: &mut Making) {
    let mut popular = ZipfPick::new(recipe.objects as usize, ALPHA, dice.fork());
    steady(recipe).for_each(|at_s| making.ask(popular.next() as u32, at_s));
}

/// The popular are not beside one another where a crawler goes: its order has nothing to do with ranks.
fn scan(recipe: &Recipe, mut dice: Rng, making: &mut Making) {
    let mut popular = ZipfPick::new(recipe.objects as usize, ALPHA, dice.fork());
    let mut crawled: Vec<u32> = (0..recipe.objects).collect();
    dice.shuffle(&mut crawled);
    let mut crawler = crawled.into_iter().cycle();
    let length = (f64::from(recipe.objects) * SCAN_LENGTH).ceil();
    // From the end of one to the start of the next, in requests, so that all of them have their share.
    let pause = length / SCANNED_SHARE - length / SCAN_DENSITY;
    let (mut until_scan, mut left) = (pause / 2.0, 0.0);
    for at_s in steady(recipe) {
        if left <= 0.0 {
            until_scan -= 1.0;
            if until_scan <= 0.0 {
                (until_scan, left) = (pause, length);
            }
        }
        if left > 0.0 && dice.f64() < SCAN_DENSITY {
            left -= 1.0;
            making.ask(crawler.next().expect("there is an object"), at_s);
        } else {
            making.ask(popular.next() as u32, at_s);
        }
    }
}

/// The objects of a site by their numbers: first what lasts, then the news by the hour, then the wonders.
struct Site {
    lasting: ZipfPick,
    /// The hour of the day at which each of those that last is liked most.
    tastes: Vec<f64>,
    news: ZipfPick,
    news_hourly: u32,
    wonders: std::ops::Range<u32>,
}

impl Site {
    fn new(objects: u32, dice: &mut Rng) -> Site {
        let part = |share: f64| ((f64::from(objects) * share) as u32).max(1);
        let hours = HOURS_BEFORE + DAYS * 24;
        let (lasting, news_hourly) = (part(LASTING_SHARE), part(NEWS_SHARE / f64::from(hours)));
        Site {
            lasting: ZipfPick::new(lasting as usize, ALPHA, dice.fork()),
            tastes: (0..lasting).map(|_| dice.f64() * 24.0).collect(),
            news: ZipfPick::new(news_hourly as usize, NEWS_ALPHA, dice.fork()),
            news_hourly,
            wonders: (lasting + news_hourly * hours).min(objects)..objects,
        }
    }

    fn pick_lasting(&mut self, hour_of_day: f64, dice: &mut Rng) -> u32 {
        loop {
            let object = self.lasting.next();
            let liked = 1.0 + TASTE_SWING * (TAU * (hour_of_day - self.tastes[object]) / 24.0).cos();
            if dice.f64() * (1.0 + TASTE_SWING) < liked {
                return object as u32;
            }
        }
    }

    fn pick_news(&mut self, at_s: u32, dice: &mut Rng) -> u32 {
        let hour = at_s / 3_600 + HOURS_BEFORE;
        loop {
            let age_hours = FADING_HOURS * ((1.0 - dice.f64()).powf(-1.0 / FADING_POWER) - 1.0);
            // What was written before anything that the trace knows is not asked for.
            if age_hours <= f64::from(hour) {
                let written = hour - age_hours as u32;
                return self.tastes.len() as u32 + written * self.news_hourly + self.news.next() as u32;
            }
        }
    }
}

fn site(recipe: &Recipe, mut dice: Rng, making: &mut Making) {
    let mut site = Site::new(recipe.objects, &mut dice);
    let wonder_chance = site.wonders.len() as f64 / recipe.requests as f64;
    for at_s in by_day_and_night(recipe.requests) {
        let wonder = (dice.f64() < wonder_chance).then(|| site.wonders.next()).flatten();
        let object = match wonder {
            Some(wonder) => wonder,
            None if dice.f64() < LASTING_ASKED => site.pick_lasting(f64::from(at_s % DAY_S) / 3_600.0, &mut dice),
            None => site.pick_news(at_s, &mut dice),
        };
        making.ask(object, at_s);
    }
}

/// The seconds of a week's requests, many in the evening and few in the morning.
fn by_day_and_night(requests: u64) -> impl Iterator<Item = u32> {
    let days = f64::from(DAYS);
    // Days until `at` counted by what happens in them: the integral of 1 + SWING * cos(…).
    let phase = PEAK_HOUR / 24.0;
    let happened = move |at: f64| at + SWING / TAU * ((TAU * (at - phase)).sin() + (TAU * phase).sin());
    let mut second = 0;
    (0..requests).map(move |request| {
        let want = request as f64 / requests as f64 * days;
        while second + 1 < DAYS * DAY_S && happened(f64::from(second + 1) / f64::from(DAY_S)) <= want {
            second += 1;
        }
        second
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [MadeKind; 3] = [MadeKind::Zipf, MadeKind::Scan, MadeKind::Site];

    fn made(kind: MadeKind, seed: u64) -> Trace {
        make(&Recipe { kind, requests: 100_000, objects: 10_000, seed })
    }

    /// How often each object is asked for, the most popular first.
    fn counts(trace: &Trace) -> Vec<u32> {
        let mut counts = vec![0; trace.objects as usize];
        trace.asks.iter().for_each(|ask| counts[ask.object as usize] += 1);
        counts.sort_unstable_by(|a, b| b.cmp(a));
        counts
    }

    fn part(counts: &[u32], wanted: impl Fn(u32) -> bool) -> f64 {
        counts.iter().filter(|count| wanted(**count)).count() as f64 / counts.len() as f64
    }

    #[test]
    fn a_seed_makes_one_trace_whose_objects_are_numbered_as_they_come() {
        for kind in ALL {
            let trace = made(kind, 7);
            assert_eq!((trace.asks.len(), &trace.asks), (100_000, &made(kind, 7).asks), "{kind:?}");
            assert_ne!(trace.asks, made(kind, 8).asks, "{kind:?}");
            let mut known = 0;
            for pair in trace.asks.windows(2) {
                assert!(pair[0].object <= known && pair[0].at_s <= pair[1].at_s, "{kind:?} {pair:?}");
                known = known.max(pair[0].object + 1);
            }
        }
    }

    #[test]
    fn a_smallest_site_has_room_for_its_news() {
        for kind in ALL {
            let trace = make(&Recipe { kind, requests: 5_000, objects: 1_000, seed: 1 });
            assert_eq!(trace.asks.len(), 5_000);
        }
    }

    #[test]
    fn a_tenth_of_the_objects_gets_most_of_a_zipf_trace() {
        let counts = counts(&made(MadeKind::Zipf, 1));
        let tenth = counts[..1_000].iter().sum::<u32>();
        assert!((65_000..80_000).contains(&tenth), "{tenth}");
    }

    #[test]
    fn a_crawler_brings_a_quarter_of_the_trace_with_scans() {
        // Each object has its turn before one has its second: of 25,000 crawled ones, two or three a piece.
        let counts = counts(&made(MadeKind::Scan, 1));
        assert_eq!((counts.len(), part(&counts, |count| count < 2)), (10_000, 0.0));
        let tenth = counts[..1_000].iter().sum::<u32>();
        assert!((50_000..62_000).contains(&tenth), "{tenth}");
    }

    #[test]
    fn seven_in_ten_objects_of_a_site_are_asked_for_once() {
        let counts = counts(&made(MadeKind::Site, 1));
        let once = part(&counts, |count| count == 1);
        assert!((0.65..0.75).contains(&once), "{once}");
    }

    #[test]
    fn a_site_has_its_days_and_its_news_fade() {
        let trace = made(MadeKind::Site, 1);
        let hourly = |hour| trace.asks.iter().filter(|ask| ask.at_s % DAY_S / 3_600 == hour).count();
        let (evening, morning) = (hourly(20) + hourly(21), hourly(8) + hourly(9));
        assert!((3.5..4.5).contains(&(evening as f64 / morning as f64)), "{evening} {morning}");
        assert_eq!(trace.asks.last().map(|ask| ask.at_s / DAY_S), Some(DAYS - 1));
        // What is first asked for on the third day, more than once, has most of its requests before the fourth is over.
        let mut firsts = vec![None; trace.objects as usize];
        let mut days = [0u32; DAYS as usize];
        for ask in &trace.asks {
            let day = ask.at_s / DAY_S;
            match firsts[ask.object as usize] {
                None => firsts[ask.object as usize] = Some(day),
                Some(2) => days[day as usize] += 1,
                Some(_) => {}
            }
        }
        assert!(days[2] > 2 * days[3] && days[3] > 2 * days[6] && days[6] > 0, "{days:?}");
    }
}
