//! Wait: behind a fetch, our own or somebody else's, until its head is known or it sets us free.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use cache::{Follower, Headed, Release};
use rules::freshness::{OriginFailure, may_serve_on_error};

use crate::access_log::CacheVerdict;
use crate::answer_head::AnswerHead;
use crate::downstream::Downstream;
use crate::fetch::failed;
use crate::fetch::notes::FetchNotes;
use crate::policy_steps;
use crate::transaction::deliver::Answer;
use crate::transaction::{Step, Transaction, hit};

/// What is waited for.
pub(crate) struct Wait {
    follower: Follower,
    /// Between our own fetch and us: interim responses, and what became of it.
    notes: Option<Rc<FetchNotes>>,
    stale: Option<std::sync::Arc<cache::Object>>,
}

impl Wait {
    /// Somebody else's fetch.
    pub(crate) fn behind(follower: Follower) -> Wait {
        let stale = follower.stale().cloned();
        Wait { follower, notes: None, stale }
    }

    /// Our own. `stale` may stand in when it fails.
    pub(crate) fn leading(
        follower: Follower,
        notes: Rc<FetchNotes>,
        stale: Option<std::sync::Arc<cache::Object>>,
    ) -> Wait {
        Wait { follower, notes: Some(notes), stale }
    }
}

/// What can happen meanwhile.
enum WaitEvent {
    Head(Result<Headed, Release>),
    Interim(AnswerHead),
    ClientLeft,
}

pub(crate) async fn run(tx: &mut Transaction, downstream: &mut Downstream<'_>, mut wait: Wait) -> Step {
    downstream.set_no_deadline();
    let mut is_counted = wait.notes.is_some();
    loop {
        let event = poll_fn(|cx| {
            if let Some(interim) = wait.notes.as_ref().and_then(|notes| notes.poll_interim(cx)) {
                return Poll::Ready(WaitEvent::Interim(interim));
            }
            if let Poll::Ready(head) = wait.follower.poll_head(cx) {
                return Poll::Ready(WaitEvent::Head(head));
            }
            if !std::mem::replace(&mut is_counted, true) {
                tx.core.counters.waited.add(1);
            }
            if downstream.has_left(cx) { Poll::Ready(WaitEvent::ClientLeft) } else { Poll::Pending }
        })
        .await;
        if let (WaitEvent::Head(_), Some(records)) = (&event, tx.policy.records()) {
            records.stamp(if wait.notes.is_some() { "Fetch" } else { "Waitinglist" });
        }
        if let (WaitEvent::Head(_), Some(notes)) = (&event, &wait.notes) {
            tx.tries.append(&mut notes.take_tries());
        }
        match event {
            WaitEvent::Interim(head) => {
                if !downstream.send_interim(tx.head.version, head).await {
                    return Step::client_left(downstream);
                }
            }
            WaitEvent::ClientLeft => return Step::client_left(downstream),
            WaitEvent::Head(Ok(headed)) => return headed_for(tx, wait, headed),
            WaitEvent::Head(Err(release)) => return released(tx, wait, release),
        }
    }
}

/// Was it fetched for this request, or for another?
fn brought_by(wait: &Wait) -> CacheVerdict {
    match wait.notes {
        Some(_) => CacheVerdict::Miss,
        None => CacheVerdict::Coalesced,
    }
}

fn why_hit(wait: &Wait) -> hit::Why {
    match wait.notes {
        Some(_) => hit::Why::Fetched,
        None => hit::Why::Collapsed,
    }
}

fn headed_for(tx: &mut Transaction, wait: Wait, headed: Headed) -> Step {
    if let Some(notes) = wait.notes.as_ref().filter(|notes| notes.was_refreshed())
        && let Some(object) = &headed.object
    {
        return confirmed(tx, notes, std::sync::Arc::clone(object));
    }
    if let Some(manifest) = headed.object.as_ref().filter(|object| object.sliced().is_some()) {
        tx.outcome.verdict = brought_by(&wait);
        return Step::Hit(std::sync::Arc::clone(manifest), why_hit(&wait));
    }
    if wait.notes.is_none()
        && let Some(elsewhere) = policy_steps::hit_followed(tx, &headed)
    {
        return elsewhere;
    }
    if let Some(notes) = &wait.notes {
        policy_steps::note_brought(tx, notes);
    }
    tx.outcome.verdict = brought_by(&wait);
    if let Some(why) = wait.notes.as_ref().and_then(|notes| notes.why()) {
        tx.outcome.why = why;
    }
    Step::Deliver(Box::new(Answer::Followed {
        head: headed.head,
        length: headed.length,
        follower: wait.follower,
        facts: headed.facts,
        received: headed.received,
        page: headed.esi,
    }))
}

/// Who fetched gets what the origin confirmed for it, with what the 304 said to it alone.
fn confirmed(tx: &mut Transaction, notes: &FetchNotes, object: std::sync::Arc<cache::Object>) -> Step {
    tx.own_fields = notes.take_own_fields();
    let why = match notes.why() {
        Some(why_not_stored) => {
            tx.outcome.why = why_not_stored;
            hit::Why::RevalidatedAlone
        }
        None => hit::Why::Revalidated,
    };
    Step::Hit(object, why)
}

fn released(tx: &mut Transaction, wait: Wait, release: Release) -> Step {
    match release {
        Release::OnDisk => match (wait.follower.landed(), &wait.notes) {
            (Some((object, _)), Some(notes)) => confirmed(tx, notes, object),
            (Some((object, _)), None) => {
                tx.outcome.verdict = CacheVerdict::Coalesced;
                Step::Hit(object, hit::Why::Collapsed)
            }
            (None, _) => Step::Lookup,
        },
        Release::Private | Release::VaryMismatch => Step::Lookup,
        Release::Failed(failure) => {
            let now = tx.core.now();
            let kind = if failure.token == failed::SERVER_ERROR {
                OriginFailure::ServerError
            } else {
                OriginFailure::Unreachable
            };
            // What was purged meanwhile must not stand in.
            if let Some(stale) = wait.stale.filter(|stale| stale.is_live())
                && tx.policy.serves_stale_on_error()
                && may_serve_on_error(&stale.facts(), stale.resident_ms(now), &tx.directives, kind)
            {
                tx.outcome.why = failure.token;
                let status = (kind == OriginFailure::ServerError).then_some(failure.status);
                return Step::Hit(stale, hit::Why::OriginFailed { status, is_collapsed: wait.notes.is_none() });
            }
            policy_steps::failed(tx, &failure)
        }
    }
}
