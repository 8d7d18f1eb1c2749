//! Admit: the credentials of a client are being verified, in another thread: of the forward proxy's, or of a route's. What the request is to
//! come to is known already, and is not begun before they are right.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use message::Method;

use crate::access_log::CacheVerdict;
use crate::downstream::Downstream;
use crate::forward::passwords::Passwords;
use crate::receive::Verdict;
use crate::route_table::RouteAt;
use crate::site::Site;
use crate::transaction::synth::Synth;
use crate::transaction::{Step, Transaction};

/// A request whose client is not known yet.
#[derive(Clone)]
pub(crate) struct Unverified {
    /// The value of Proxy-Authorization, or of Authorization.
    pub(crate) credentials: Box<[u8]>,
    pub(crate) by: Door,
    /// Where it goes on.
    pub(crate) then: Verdict,
}

/// Who lets users in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Door {
    Forward,
    Route(RouteAt),
}

impl Door {
    fn passwords(self, site: &Site) -> Option<&Arc<Passwords>> {
        match self {
            Door::Forward => site.forward.passwords.as_ref(),
            Door::Route(route) => site.passwords_of(&site.routes.at(route).rules.access.login.as_ref()?.file),
        }
    }

    fn refusal(self, site: &Site) -> Synth {
        match self {
            Door::Forward => Synth::wants_credentials(),
            Door::Route(route) => {
                let login = site.routes.at(route).rules.access.login.as_ref();
                Synth::wants_login(login.map_or("", |login| &login.realm))
            }
        }
    }
}

impl Unverified {
    /// Whatever it comes to but a tunnel, nothing is read behind it.
    pub(crate) fn closing(mut self: Box<Self>) -> Box<Unverified> {
        if let Verdict::Synth(synth) = self.then {
            self.then = Verdict::Synth(synth.closing());
        }
        self
    }
}

pub(super) async fn run(tx: &mut Transaction, downstream: &mut Downstream<'_>, unverified: Unverified) -> Step {
    tx.outcome.verdict = CacheVerdict::Refused;
    let is_connect = tx.head.method == Method::Connect;
    let door = unverified.by;
    let passwords = door.passwords(&tx.site);
    let asked = passwords.and_then(|passwords| passwords.verify(&unverified.credentials).ok());
    let Some(answer) = asked else { return Step::Synth(Synth::verifier_busy()) };
    let mut answer = pin!(answer);
    let verified = poll_fn(|cx| {
        // Whoever has left is led nowhere, though the password may be known to be right by now.
        if downstream.has_left(cx) {
            return Poll::Ready(None);
        }
        answer.as_mut().poll(cx).map(|verified| Some(verified.unwrap_or(false)))
    })
    .await;
    match verified {
        Some(true) => {
            tx.client.is_user |= door == Door::Forward;
            if let Verdict::Pass(why) = unverified.then {
                tx.outcome.why = why.token();
            }
            unverified.then.into_step()
        }
        Some(false) => {
            if door == Door::Forward {
                tx.core.counters.forward_denied.add(1);
            }
            let synth = door.refusal(&tx.site);
            Step::Synth(if is_connect { synth.closing() } else { synth })
        }
        None => Step::client_left(downstream),
    }
}
