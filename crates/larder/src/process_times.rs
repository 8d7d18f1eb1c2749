//! What processes use, as /proc says. It knows no load and no server.

use std::fs;
use std::time::Duration;

/// In user and in system mode; nothing where /proc cannot be read.
pub fn of_this_process() -> (Duration, Duration) {
    fs::read_to_string("/proc/self/stat").ok().and_then(|text| of_line(&text)).unwrap_or_default()
}

/// A line of /proc/PID/stat. The name stands in parentheses and may hold anything, more of them too.
fn of_line(text: &str) -> Option<(Duration, Duration)> {
    let (_, rest) = text.rsplit_once(") ")?;
    let mut ticks = rest.split_ascii_whitespace().skip(11).map(str::parse::<u64>);
    let mut time = || {
        let seconds = ticks.next()?.ok()? as f64 / rustix::param::clock_ticks_per_second() as f64;
        Some(Duration::from_secs_f64(seconds))
    };
    Some((time()?, time()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_whatever_the_name() {
        let line = "17 (a) b (c) S 4 17 17 0 -1 4194304 1 2 3 4 250 50 0 0 20 0 1 0 99 1000 3 18446744073709551615 1";
        let (user, system) = of_line(line).expect("a line as the system writes it");
        let ticks = rustix::param::clock_ticks_per_second() as f64;
        assert_eq!((user.as_secs_f64() * ticks).round() as u64, 250);
        assert_eq!((system.as_secs_f64() * ticks).round() as u64, 50);
        assert_eq!(of_line("17 (a) S"), None);
    }
}
