//! Of `[fleet]`: nodes that tell one another what was purged.

use fleet::{Acknowledge, LogPlace};

use super::complaint::Complaint;
use super::section::{Node, Section, choice, duration, switch, text};
use super::shared_section::engine_authorities;
use crate::fleet_plan::{LOG_KEY, LogPlan};
use crate::limits::{FLEET_LEASE_MAX, FLEET_LEASE_MIN};
use crate::plan::Plan;

const NO_LOG: &str =
    "[fleet] says how its log of purges is used and not where that is: a purge is carried out where it is ordered";

pub fn read(section: &mut Section<'_>, plan: &mut Plan) {
    let name = section.read("name", |node| word(node, "name"));
    let key = section.read("log_key", |node| word(node, "key")).unwrap_or_else(|| LOG_KEY.to_owned());
    let lease = section.read("lease", |node| {
        let lease = duration(node)?;
        let is_fit = (FLEET_LEASE_MIN..=FLEET_LEASE_MAX).contains(&lease);
        is_fit.then_some(lease).ok_or_else(|| {
            let why = "a lease is 500ms to 1h: 5s asks an origin little, and nothing is older than that";
            Complaint::new(node.span(), "no node can keep such a lease", why)
        })
    });
    let acknowledge = section.read("acknowledge", |node| choice(node, &Acknowledge::ALL.map(|at| (at.word(), at))));
    let unsafe_methods = section.read("unsafe_methods", switch).unwrap_or(false);
    let vcl = section.read("vcl", switch).unwrap_or(false);
    let authorities = engine_authorities(section, "log_ca");
    let log = section.read("log", |node| {
        let url = text(node)?;
        let place = LogPlace::new(url, &key, authorities.clone())
            .map_err(|why| Complaint::new(node.span(), "this is no address of a Redis or Valkey", why))?;
        Ok((place, url.to_owned()))
    });
    let differs = key != LOG_KEY
        || lease.is_some_and(|lease| lease != LogPlan::LEASE)
        || unsafe_methods
        || vcl
        || authorities.is_some()
        || acknowledge.is_some_and(|wanted| wanted != Acknowledge::default());
    plan.warnings.extend((!section.has("log") && differs).then(|| NO_LOG.to_owned()));
    plan.fleet_log = log.map(|(place, url)| LogPlan {
        place,
        url,
        key,
        name,
        lease: lease.unwrap_or(LogPlan::LEASE),
        acknowledge: acknowledge.unwrap_or_default(),
        unsafe_methods,
        vcl,
        authorities,
    });
}

/// What may be a part of a key, and be shown in a line.
fn word(node: Node<'_>, what: &str) -> Result<String, Complaint> {
    let written = text(node)?;
    let is_fit = !written.is_empty()
        && written.len() <= 64
        && written.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte));
    is_fit.then(|| written.to_owned()).ok_or_else(|| {
        let why = "letters, digits and - _ . : are, up to 64 of them";
        Complaint::new(node.span(), format!("`{written}` is no {what} of a fleet"), why)
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::read as read_config;
    use super::*;

    fn plan(text: &str) -> Option<LogPlan> {
        read_config(text).unwrap_or_else(|wrong| panic!("{wrong:?}")).fleet_log
    }

    #[test]
    fn a_fleet_has_a_log_where_one_is_named() {
        assert!(plan("").is_none());
        let log = plan("[fleet]\nlog = \"redis://10.0.0.5\"\n").unwrap();
        assert_eq!(log.said(), ("redis://10.0.0.5", "larder", None, Duration::from_secs(5), "logged", false, false));
        let log = plan(
            "[fleet]\nname = \"edge-1\"\nlog = \"redis://u:p@a:1/2\"\nlog_key = \"shop\"\nlease = \"2s\"\nacknowledge = \"applied\"\nunsafe_methods = true\nvcl = true\n",
        );
        for url in
            ["rediss://u:p@a:1", "redis+sentinel://u:p@a,b/shop", "rediss+sentinel://a/shop/1", "redis+unix:///r.sock"]
        {
            assert!(plan(&format!("[fleet]\nlog = \"{url}\"\n")).is_some(), "{url}");
        }
        let expect = ("redis://u:p@a:1/2", "shop", Some("edge-1"), Duration::from_secs(2), "applied", true, true);
        assert_eq!(log.unwrap().said(), expect);
    }

    fn check(lines: &str, expect: &str) {
        let wrong = read_config(&format!("[fleet]\n{lines}\n")).expect_err(lines);
        assert_eq!(wrong.iter().map(|complaint| complaint.what.as_str()).collect::<Vec<_>>(), [expect], "{lines}");
    }

    #[test]
    fn what_cannot_be_is_refused() {
        check("log = \"http://a\"", "this is no address of a Redis or Valkey");
        check("log = \"redis+sentinel://a\"", "this is no address of a Redis or Valkey");
        check("log = \"rediss://a\"\nlog_ca = \"/dev/null\"", "/dev/null: there is no certificate in it");
        check("log = \"redis://a\"\nlease = \"100ms\"", "no node can keep such a lease");
        check("log = \"redis://a\"\nlease = \"2h\"", "no node can keep such a lease");
        check("log = \"redis://a\"\nname = \"a b\"", "`a b` is no name of a fleet");
        check("log = \"redis://a\"\nlog_key = \"\"", "`` is no key of a fleet");
    }

    #[test]
    fn words_without_a_log_are_said_to_do_nothing() {
        let warnings = |text: &str| read_config(text).unwrap().warnings;
        assert_eq!(warnings("[fleet]\nlease = \"2s\"\n"), [NO_LOG]);
        assert_eq!(warnings("[fleet]\nlease = \"5s\"\nacknowledge = \"logged\"\n"), [""; 0], "as it is without them");
    }
}
