//! `[shared]`: a tier that the nodes of a fleet share.

use std::ops::Range;
use std::time::Duration;

use proxy::limits::CERTIFICATES_BYTES_MAX;
use shared::TierUrl;

use super::complaint::Complaint;
use super::section::{Complaints, Node, Section, duration, file, size, text};
use crate::authority_files;
use crate::bounded_file;
use crate::limits::{SHARED_OBJECT_MAX, SHARED_QUEUE_MIN, SHARED_WAIT_LEAST, SHARED_WAIT_MOST};
use crate::plan::Plan;
use crate::shared_plan::by_default;

const NO_URL: &str = "[shared] says how a tier is used and not where it is: each node stores by itself";

/// Where the section stands, if there is a tier.
pub fn read(mut section: Section<'_>, plan: &mut Plan) -> Option<Range<usize>> {
    let url = section.read("url", |node| {
        TierUrl::all_of(text(node)?).map_err(|why| Complaint::new(node.span(), "this is no address of a tier", why))
    });
    let mut tier = by_default(url.unwrap_or_default());
    let usual = tier.clone();
    tier.authorities = engine_authorities(&mut section, "ca");
    if let Some(wait) = section.read("wait_max", wait) {
        tier.wait_max = wait;
    }
    if let Some(wait) = section.read("fetch_wait_max", wait) {
        tier.fetch_wait_max = wait;
    }
    if let Some(bytes) = section.read("object_max", object_max) {
        tier.body_bytes_max = bytes;
    }
    if let Some(bytes) = section.read("queue_max", queue_max) {
        tier.queue_bytes_max = bytes;
    }
    if let Some(bytes) = section.read("bandwidth", size) {
        tier.bandwidth = Some(bytes).filter(|&bytes| bytes > 0);
    }
    let (has_url, span) = (section.has("url"), section.span());
    section.end();
    let has_words = usual != shared::TierSettings { servers: usual.servers.clone(), ..tier.clone() };
    plan.warnings.extend((!has_url && has_words).then(|| NO_URL.to_owned()));
    // What is no address was complained of.
    let is_one = !tier.servers.is_empty();
    plan.shared = is_one.then_some(tier);
    is_one.then_some(span)
}

/// Who may sign the certificates of an engine: a file that a key names, in PEM.
pub fn engine_authorities(section: &mut Section<'_>, key: &'static str) -> Option<Vec<u8>> {
    let complaints = section.complaints();
    section.read(key, |node| {
        let path = file(node, complaints)?;
        let wrong = |why: String| Complaint::new(node.span(), why, "who may sign the engine's certificate, in PEM");
        authority_files::in_file(&path).map_err(wrong)?;
        bounded_file::read(&path, CERTIFICATES_BYTES_MAX).map_err(|why| wrong(why.to_string()))
    })
}

/// What it needs of `[fleet]`.
pub fn check(span: Option<Range<usize>>, plan: &Plan, complaints: &Complaints) {
    let Some(span) = span else { return };
    if plan.fleet_log.is_none() {
        let what = "a tier needs the log of a fleet: without it nobody knows whether what lies there was purged";
        let complaint = Complaint::new(span.clone(), what, "no purge would reach what is found there");
        complaints.add(complaint.suggest("write log = \"redis://HOST:PORT\" in [fleet], on a single node, too"));
    }
    if plan.fleet_secret_file.is_none() {
        let what = "a tier needs the secret of a fleet: by it records are known that a node wrote";
        let complaint = Complaint::new(span, what, "whoever reaches it could write pages there");
        complaints
            .add(complaint.suggest("write secret_file = \"fleet.secret\" in [fleet]: the same file on every node"));
    }
}

fn wait(node: Node<'_>) -> Result<Duration, Complaint> {
    let wait = duration(node)?;
    let is_fit = (SHARED_WAIT_LEAST..=SHARED_WAIT_MOST).contains(&wait);
    is_fit.then_some(wait).ok_or_else(|| Complaint::new(node.span(), "no request can wait so long", "1ms to 1m"))
}

fn object_max(node: Node<'_>) -> Result<u64, Complaint> {
    let bytes = size(node)?;
    let is_fit = (1..=SHARED_OBJECT_MAX).contains(&bytes);
    is_fit.then_some(bytes).ok_or_else(|| Complaint::new(node.span(), "no body of that size is shared", "1B to 256MiB"))
}

fn queue_max(node: Node<'_>) -> Result<usize, Complaint> {
    let bytes = usize::try_from(size(node)?).unwrap_or(usize::MAX);
    let is_fit = bytes >= SHARED_QUEUE_MIN;
    is_fit.then_some(bytes).ok_or_else(|| Complaint::new(node.span(), "nothing can be on its way", "1MiB or more is"))
}

#[cfg(test)]
mod tests {
    use super::super::read as read_config;
    use super::*;

    const FLEET: &str = "[fleet]\nlog = \"redis://a\"\nsecret_file = \"s\"\n";

    fn complaints(text: &str) -> Vec<String> {
        read_config(text).expect_err(text).iter().map(|complaint| complaint.what.clone()).collect()
    }

    #[test]
    fn a_tier_is_what_it_says_and_by_default_what_is_written_down() {
        let tier = read_config(&format!("{FLEET}[shared]\nurl = \"memcached://a,b:1\"\n")).unwrap().shared.unwrap();
        assert_eq!(tier, by_default(TierUrl::all_of("memcached://a,b:1").unwrap()));
        let words = "url = \"redis://a\"\nwait_max = \"20ms\"\nfetch_wait_max = \"5s\"\nobject_max = \"1MiB\"\nqueue_max = \"8MiB\"\nbandwidth = \"100MiB\"\n";
        let tier = read_config(&format!("{FLEET}[shared]\n{words}")).unwrap().shared.unwrap();
        assert_eq!((tier.wait_max, tier.fetch_wait_max), (Duration::from_millis(20), Duration::from_secs(5)));
        let expect = (1 << 20, 8 << 20, Some(100 << 20));
        assert_eq!((tier.body_bytes_max, tier.queue_bytes_max, tier.bandwidth), expect);
        assert!(read_config("").unwrap().shared.is_none());
    }

    #[test]
    fn it_needs_the_log_and_the_secret() {
        let tier = "[shared]\nurl = \"redis://a\"\n";
        for (fleet, expect) in [
            ("", &["needs the log", "needs the secret"][..]),
            ("[fleet]\nlog = \"redis://a\"\n", &["needs the secret"]),
        ] {
            let said = complaints(&format!("{fleet}{tier}"));
            let are_so = said.len() == expect.len() && said.iter().zip(expect).all(|(said, word)| said.contains(word));
            assert!(are_so, "{said:?}");
        }
        let plan = read_config(&format!("{FLEET}{tier}")).unwrap();
        assert_eq!(plan.warnings, [""; 0], "the secret is of use");
    }

    #[test]
    fn what_cannot_be_is_refused_and_what_does_nothing_is_said() {
        for (words, expect) in [
            ("url = \"http://a\"", "this is no address of a tier"),
            ("url = \"redis://a\"\nwait_max = \"0s\"", "no request can wait so long"),
            ("url = \"redis://a\"\nobject_max = \"1GiB\"", "no body of that size is shared"),
            ("url = \"redis://a\"\nqueue_max = \"1KiB\"", "nothing can be on its way"),
        ] {
            assert_eq!(complaints(&format!("{FLEET}[shared]\n{words}\n")), [expect], "{words}");
        }
        let warnings = |text: &str| read_config(text).unwrap().warnings;
        assert_eq!(warnings("[shared]\nobject_max = \"1MiB\"\n"), [NO_URL]);
        assert_eq!(warnings("[shared]\nobject_max = \"8MiB\"\n"), [""; 0], "as it is without that");
    }
}
