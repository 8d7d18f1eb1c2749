//! Has a page been fetched again, or did what is stored stand in for an origin that failed? An answer says that in its Cache-Status (RFC 9211),
//! and its status alone does not.

/// How the origin comes to be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// It need not be: what is stored may answer.
    Warm,
    /// By the request's `no-cache`.
    NoCache,
    /// Under a program: nothing stored answers.
    Miss,
    /// What is stored was made stale.
    MadeStale,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Done,
    Failed(String),
    /// It is fetched behind what is served.
    StillStale,
}

pub fn judged(status: u16, cache_status: Option<&str>, way: Way) -> Verdict {
    match status {
        // What is no longer there is known.
        404 | 410 => {}
        400.. => return Verdict::Failed(format!("status {status}")),
        _ => {}
    }
    // Each cache on the way has a member; larder is the last.
    let Some(ours) = cache_status.and_then(|said| said.rsplit(", ").next()) else { return Verdict::Done };
    let value = |name: &str| ours.split("; ").find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    let is_hit = ours.split("; ").any(|word| word == "hit");
    let is_stale = value("ttl").and_then(|ttl| ttl.parse::<i64>().ok()).is_some_and(|ttl| ttl <= 0);
    let covered = |why: &str| Verdict::Failed(format!("{why}, and what is stored is served on"));
    match (value("fwd-status").and_then(|status| status.parse::<u16>().ok()), value("detail")) {
        (Some(of_origin @ 500..), _) => covered(&format!("its origin answered {of_origin}")),
        (None, Some(why)) if why.starts_with("origin-") => covered(why),
        _ if is_hit && is_stale && way == Way::MadeStale => Verdict::StillStale,
        _ if is_hit && way == Way::NoCache => covered("its origin was not asked"),
        _ => Verdict::Done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(status: u16, said: &str, way: Way, expect: &str) {
        let said = (!said.is_empty()).then_some(said);
        let got = match judged(status, said, way) {
            Verdict::Done => "done".to_owned(),
            Verdict::StillStale => "still stale".to_owned(),
            Verdict::Failed(why) => why,
        };
        assert_eq!(got, expect, "{status} {said:?}");
    }

    #[test]
    fn what_stood_in_for_an_origin_that_failed_is_no_success() {
        const ON: &str = ", and what is stored is served on";
        check(200, "larder; fwd=request; fwd-status=304", Way::NoCache, "done");
        check(200, "larder; fwd=request; stored", Way::NoCache, "done");
        check(200, "larder; fwd=request; fwd-status=503", Way::NoCache, &format!("its origin answered 503{ON}"));
        check(200, "larder; fwd=stale; detail=origin-connect", Way::NoCache, &format!("origin-connect{ON}"));
        check(200, "inner; fwd=miss; fwd-status=503, larder; fwd=request; stored", Way::NoCache, "done");
        check(200, "larder; fwd=bypass; detail=cookie", Way::NoCache, "done");
        check(200, "larder; hit; ttl=20", Way::NoCache, &format!("its origin was not asked{ON}"));
        check(200, "larder; hit; ttl=-20", Way::MadeStale, "still stale");
        check(200, "larder; hit; ttl=0", Way::MadeStale, "still stale");
        check(200, "larder; hit; ttl=600", Way::MadeStale, "done");
        check(200, "larder; hit; ttl=600", Way::Warm, "done");
        check(200, "", Way::Miss, "done");
        for (status, expect) in [(404, "done"), (410, "done"), (301, "done"), (403, "status 403"), (503, "status 503")]
        {
            check(status, "", Way::Warm, expect);
        }
    }
}
