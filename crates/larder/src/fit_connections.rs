//! Limits of connections and tunnels that the open files of the process do not allow: they would end in refused connections at the worst
//! moment, so they are made smaller before anything starts. What somebody has asked for and does not get is said; a default adapts silently.

use proxy::limits::Limits;
use proxy::memcached_gateway::connections_of_core_max;
use proxy::settings::ListenMode;

use crate::open_files::{connections_and_tunnels_that_fit, connections_that_fit, files_beside};
use crate::plan::Plan;

/// Fits them, and returns what is to be said of it.
pub fn fit(plan: &mut Plan, files_max: Option<u64>) -> Option<String> {
    let asked = plan.settings.limits.connections_max;
    let of_roots = if plan.settings.roots.is_empty() { 0 } else { plan.settings.limits.open_files_max };
    let of_memcached = connections_of_core_max(&plan.settings.memcached).saturating_mul(plan.workers_count());
    let kept_open_max = of_roots.saturating_add(of_memcached);
    let files_left = files_beside(kept_open_max, files_max);
    let files = files_max.unwrap_or_default();
    let limits = &mut plan.settings.limits;
    let by_default = Limits::default();
    // By the names of Varnish's parameters, too.
    let is_asked_for = plan.asks_for_connections
        || asked != by_default.connections_max
        || limits.tunnels_max != by_default.tunnels_max;
    let why = if plan.settings.listeners.iter().any(|listener| listener.mode == ListenMode::Forward) {
        let (fit, tunnels) = connections_and_tunnels_that_fit((asked, limits.tunnels_max), files_left);
        if (fit, tunnels) == (asked, limits.tunnels_max) {
            return None;
        }
        let tunnels_asked = std::mem::replace(&mut limits.tunnels_max, tunnels);
        limits.connections_max = fit;
        format!(
            "limits.connections_max is {asked} and limits.tunnels_max {tunnels_asked}, but only {files} files may be open at \
             once (ulimit -n), of which a tunnel holds two: {fit} connections are served, and {tunnels} of them may be tunnels"
        )
    } else {
        let fit = connections_that_fit(asked, files_left);
        if fit == asked {
            return None;
        }
        limits.connections_max = fit;
        format!(
            "limits.connections_max is {asked}, but only {files} files may be open at once (ulimit -n): {fit} connections are served"
        )
    };
    is_asked_for.then_some(why)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is served of what a config asks for where 1024 files may be open, and whether it is said.
    fn check(text: &str, (connections, tunnels): (usize, usize), expect: Option<&str>) {
        let mut plan = crate::config::read(text).unwrap();
        let said = fit(&mut plan, Some(1_024));
        assert_eq!(
            (plan.settings.limits.connections_max, plan.settings.limits.tunnels_max),
            (connections, tunnels),
            "{text}"
        );
        match (said, expect) {
            (Some(said), Some(part)) => assert!(said.contains(part), "{text}: {said}"),
            (said, expect) => assert_eq!(said.as_deref(), expect, "{text}"),
        }
    }

    #[test]
    fn only_what_somebody_asked_for_is_missed() {
        let tunnels = Plan::default().settings.limits.tunnels_max;
        const FORWARD: &str = "[[listen]]\naddress = \"127.0.0.1:3128\"\nmode = \"forward\"\n";
        check("", (973, tunnels), None);
        check("[limits]\nidle_timeout = \"1m\"", (973, tunnels), None);
        check("[limits]\nconnections_max = 500", (500, tunnels), None);
        check("[limits]\nconnections_max = 5000", (973, tunnels), Some("973 connections are served"));
        check("[limits]\nconnections_max = 19000", (973, tunnels), Some("limits.connections_max is 19000"));
        check(FORWARD, (487, 486), None);
        check(&format!("{FORWARD}[limits]\ntunnels_max = 800"), (487, 486), Some("486 of them may be tunnels"));
    }
}
