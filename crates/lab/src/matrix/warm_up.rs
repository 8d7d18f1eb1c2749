//! Until a server has settled: every page asked for once where it should hold them, then short windows of the row's
//! load until neither their rate has a slope nor the origin is asked any more.

use std::net::SocketAddr;
use std::time::Duration;

use crate::lab_clock::Nanos;
use crate::limits::{WARM_SLOPE_SHARE_MAX, WARM_WINDOWS};
use crate::matrix::cell_figures::wrong_bytes;
use crate::matrix::measuring::{Shot, Watched, errors_of};
use crate::matrix::planned_rows::Pages;
use crate::matrix::statistics::is_steady;

/// Did it settle within the time it was given? `origin_requests` counts from the beginning of the run.
pub(crate) fn warm_up(
    shot: &Shot<'_>,
    address: SocketAddr,
    watched: &Watched,
    (window, time_max): (Duration, Duration),
    origin_requests: &mut dyn FnMut() -> Option<u64>,
) -> Result<bool, String> {
    if let Pages::Many { .. } | Pages::Items { .. } = shot.row.pages {
        let filled = shot.fire(address, None, &mut |_, _| {})?;
        if let Some(what) = wrong_bytes(&errors_of(&filled)) {
            return Err(what);
        }
        if filled.tally.failed() > 0 || filled.tally.good < shot.row.used.urls {
            return Ok(false);
        }
    }
    let deadline = Nanos::now().after(time_max);
    let is_open = shot.row.used.rate_per_second.is_some();
    let mut windows = Vec::new();
    let mut asked = origin_requests();
    while Nanos::now() < deadline && !shot.stop.load(std::sync::atomic::Ordering::Relaxed) {
        let measured = shot.measure(address, window, watched)?;
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
        let stands_still = !shot.row.hot || asked == asked_now;
        asked = asked_now;
        let last = &windows[windows.len().saturating_sub(WARM_WINDOWS)..];
        if last.len() == WARM_WINDOWS && stands_still && is_steady(last, WARM_SLOPE_SHARE_MAX) {
            return Ok(true);
        }
    }
    Ok(false)
}
