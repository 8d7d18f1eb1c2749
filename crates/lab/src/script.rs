//! What a session does: bursts of requests, and the time to think between them.
//!
//! One template for all sessions (so many calls each), or several from a file, taken in turn. Plain values; `sessions`
//! plays them.

use std::time::Duration;

#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    pub(crate) templates: Vec<Template>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Template {
    pub(crate) bursts: Vec<Burst>,
    /// Numbers in the catalogue, burst after burst; none: what the order of the run gives.
    pub(crate) requests: Vec<u32>,
}

/// The first call alone; when it has been answered the rest at once; when all have been answered, time to think.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Burst {
    pub(crate) calls: u32,
    pub(crate) think: Duration,
}

impl Script {
    /// Sessions of so many calls in bursts of so many, the last one of what is left.
    pub fn alike(calls: u32, burst: u32, think: Duration) -> Script {
        let (calls, burst) = (calls.max(1), burst.max(1));
        let whole = (0..calls / burst).map(|_| Burst { calls: burst, think });
        let rest = Some(calls % burst).filter(|&calls| calls > 0).map(|calls| Burst { calls, think });
        Script { templates: vec![Template { bursts: whole.chain(rest).collect(), requests: Vec::new() }] }
    }

    pub fn templates_count(&self) -> usize {
        self.templates.len()
    }

    /// Of the longest session.
    pub fn calls_max(&self) -> u32 {
        self.templates.iter().map(Template::calls).max().unwrap_or(0)
    }

    /// Of the longest burst: so many requests are under way at once on a connection.
    pub fn burst_max(&self) -> u32 {
        self.templates.iter().flat_map(|template| &template.bursts).map(|burst| burst.calls).max().unwrap_or(1)
    }
}

impl Template {
    pub(crate) fn calls(&self) -> u32 {
        self.bursts.iter().map(|burst| burst.calls).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_cut_into_bursts() {
        let calls = |script: &Script| -> Vec<u32> { script.templates[0].bursts.iter().map(|b| b.calls).collect() };
        let check = |all, burst, expect: &[u32]| {
            let script = Script::alike(all, burst, Duration::ZERO);
            assert_eq!(calls(&script), expect);
            assert_eq!((script.calls_max(), script.burst_max()), (all, expect[0]));
        };
        check(10, 1, &[1; 10]);
        check(10, 4, &[4, 4, 2]);
        check(3, 5, &[3]);
    }
}
