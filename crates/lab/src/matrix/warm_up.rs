//! Until a server has settled: every page asked for once where it should hold them, then short windows of the row's
//! load until neither their rate has a slope nor the origin is asked any more.

use std::net::SocketAddr;
use std::time::Duration;

use crate::lab_clock::Nanos;
use crate::limits::{BLOCKS_MAX, WARM_SLOPE_SHARE_MAX, WARM_WINDOWS};
use crate::matrix::cell_figures::wrong_bytes;
use crate::matrix::measuring::{Measurement, Watched, errors_of};
use crate::matrix::planned_rows::Pages;
use crate::matrix::statistics::is_steady;

/// What windows draw is not what the slices after them draw, which are numbered by their blocks.
const WARM_DRAWS: u64 = BLOCKS_MAX as u64;

/// Did it settle within the time it was given? `origin_requests` counts from the beginning of the run.
pub(crate) fn warm_up(
    measurement: &Measurement<'_>,
    address: SocketAddr,
    watched: &Watched,
    (window, time_max): (Duration, Duration),
    origin_requests: &mut dyn FnMut() -> Option<u64>,
) -> Result<bool, String> {
    if let Pages::Many { .. } | Pages::Items { .. } = measurement.row.pages {
        let filled = measurement.load(address, None, &mut |_, _| {})?;
        if let Some(what) = wrong_bytes(&errors_of(&filled)) {
            return Err(what);
        }
        if filled.tally.failed() > 0 || filled.tally.good < measurement.row.used.urls {
            return Ok(false);
        }
    }
    let deadline = Nanos::now().after(time_max);
    let is_open = measurement.row.used.rate_per_second.is_some();
    let mut windows = Vec::new();
    let mut asked = origin_requests();
    while Nanos::now() < deadline && !measurement.stop.load(std::sync::atomic::Ordering::Relaxed) {
        let drawn = measurement.drawn_anew(WARM_DRAWS + windows.len() as u64);
        let measured = drawn.measure(address, window, watched)?;
        if let Some(what) = wrong_bytes(&measured.errors) {
            return Err(what);
        }
        let block = &measured.block;
        // At a fixed rate it is the cost that settles.
        windows.push(match is_open {
            true => block.server.cpu_seconds * 1e6 / block.good.max(1) as f64,
            false => block.good as f64 / block.elapsed_seconds.max(1e-9),
        });
        let asked_now = origin_requests();
        let stands_still = !measurement.row.hot || asked == asked_now;
        asked = asked_now;
        let last = &windows[windows.len().saturating_sub(WARM_WINDOWS)..];
        if last.len() == WARM_WINDOWS && stands_still && is_steady(last, WARM_SLOPE_SHARE_MAX) {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::fake_origin::{FakeOrigin, OriginSettings};
    use crate::matrix::lab_file::tests::source;
    use crate::matrix::planned_rows::planned_rows;
    use crate::matrix::site_pages::{known_bodies, url_list};

    const WINDOW: Duration = Duration::from_millis(50);

    /// Warms up an origin with a row; what came of it, and what was asked: (connection, path), in order.
    fn warmed(
        name: &str,
        row: &str,
        known: impl FnOnce(&mut [(u64, u32)]),
    ) -> (Result<bool, String>, Vec<(u64, String)>) {
        let text = format!("title = \"t\"\nreference = \"a\"\n[[row]]\nname = \"r\"\nconnections = 1\n{row}\n");
        let source = source(&text);
        let row = &planned_rows(&source.read().unwrap().row, &[], &source).unwrap()[0];
        let log = std::env::temp_dir().join(format!("larder-warm-up-{name}-{}", std::process::id()));
        let mean_bytes = row.mean_bytes().unwrap_or(1_000);
        let settings = OriginSettings { mean_bytes, log: Some(log.clone()), ..OriginSettings::default() };
        let origin = FakeOrigin::start(SocketAddr::from(([127, 0, 0, 1], 0)), settings).unwrap();
        let mut bodies = known_bodies(row).to_vec();
        known(&mut bodies);
        let (list, bodies, stop) = (url_list(row), bodies.into(), Arc::new(AtomicBool::new(false)));
        let (known, cpus) = (Some(&bodies), &[][..]);
        let measurement = Measurement {
            row,
            list: &list,
            known,
            speaks_memcached: false,
            tls: None,
            is_warm_up: true,
            cpus,
            threads: 1,
            origin: None,
            seed: 1,
            draw: 0,
            stop: &stop,
        };
        let watched = Watched { roots: vec![std::process::id() as i32], cpus: 1 };
        let came = warm_up(&measurement, origin.address, &watched, (WINDOW, 4 * WINDOW), &mut || None);
        drop(origin);
        let text = std::fs::read_to_string(&log).unwrap();
        std::fs::remove_file(&log).unwrap();
        let asked = text.lines().skip(1).map(|line| {
            let columns: Vec<&str> = line.split('\t').collect();
            (columns[2].parse().unwrap(), columns[4].to_owned())
        });
        (came, asked.collect())
    }

    #[test]
    fn wrong_bytes_end_a_warm_up() {
        let check = |name: &str, row: &str| {
            let (came, _) = warmed(name, row, |bodies| bodies[0].1 ^= 1);
            let error = came.expect_err("the origin's bytes are not those that were to come");
            assert!(error.starts_with("wrong bytes came (bad-bytes)"), "{error}");
        };
        check("one", "size = 1000");
        // In the round that asks for every page.
        check("many", "urls = { count = 20, mean_bytes = 1000, order = \"random\" }");
        let (came, asked) = warmed("right", "size = 1000", |_| {});
        assert!(came.is_ok() && !asked.is_empty(), "{came:?}");
    }

    #[test]
    fn every_window_draws_anew() {
        let row = "urls = { count = 500, mean_bytes = 100, order = \"random\" }";
        let (came, asked) = warmed("draws", row, |_| {});
        came.expect("all bytes are right");
        // Each window has a connection of its own.
        let mut windows: Vec<Vec<&str>> = Vec::new();
        let mut last = None;
        for (connection, path) in &asked {
            if last.replace(connection) != Some(connection) {
                windows.push(Vec::new());
            }
            windows.last_mut().unwrap().push(path);
        }
        windows.retain(|window| window.len() > 10);
        assert!(windows.len() > 2, "the round of all pages and two windows: {}", windows.len());
        assert_ne!(windows[1][..10], windows[2][..10]);
    }
}
