//! Which of an origin's addresses is asked. Those that serve come first, by the rule of the balance; then the backups; then, unless the
//! circuit is to break, those that are believed not to answer, since a wrong guess about health must not make an outage. Whom an
//! operator has taken out is never asked. `now` is an argument.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use sha2::{Digest, Sha256};

use super::address::{Address, Standing};
use super::turn_schedule::TurnSchedule;
use crate::rendezvous::{self, mix};
use crate::settings::{BalanceKind, StickyCookie, UrlShare};

/// The addresses of an origin at one time. Never changed, only replaced.
#[derive(Debug, Default)]
pub struct Book {
    pub addresses: Vec<Arc<Address>>,
    /// What each of them gets.
    pub shares: Vec<UrlShare>,
    /// By which clients belong to each of them, where they do.
    tokens: Vec<u64>,
    primaries: TurnSchedule,
    backups: TurnSchedule,
    terms: BookTerms,
    /// The first moment at which a name in it has to be looked up again.
    pub fresh_until_ms: u64,
    /// From here on a lookup made ahead of need spares a request the wait.
    pub renew_from_ms: u64,
}

/// The rules by which one is chosen.
#[derive(Clone, Debug, Default)]
pub struct BookTerms {
    pub kind: BalanceKind,
    pub slow_ms: u64,
    pub breaks_circuit: bool,
    pub sticky: Option<StickyCookie>,
}

/// What a request brings along: to which address it belongs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Affinity {
    /// Where keys are shared out.
    pub key: Option<u64>,
    /// The token of the one that answered its client before: see [`token_of`].
    pub sticks_to: Option<u64>,
}

/// One request's turn.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestTurn {
    /// Which of all it is.
    pub number: usize,
    pub affinity: Affinity,
}

/// How little is asked of an address.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Demand {
    /// It serves, and if it came back a moment ago, this turn is one of its share.
    ItsTurn,
    Serves,
    /// Nobody took it out.
    Anything,
}

impl Book {
    pub fn new(members: Vec<(Arc<Address>, UrlShare)>, terms: BookTerms, fresh: (u64, u64)) -> Book {
        let (addresses, shares): (Vec<_>, Vec<UrlShare>) = members.into_iter().unzip();
        let schedule = |backups: bool| {
            let of_kind = shares.iter().enumerate().filter(|(_, share)| share.is_backup == backups);
            TurnSchedule::of(of_kind.map(|(at, share)| (at as u16, share.weight)))
        };
        let (primaries, backups) = (schedule(false), schedule(true));
        let token = |cookie| addresses.iter().map(|address| token_of(cookie, &address.label)).collect();
        let tokens = terms.sticky.as_ref().map(token).unwrap_or_default();
        Book { addresses, shares, tokens, primaries, backups, terms, fresh_until_ms: fresh.0, renew_from_ms: fresh.1 }
    }

    pub fn terms(&self) -> &BookTerms {
        &self.terms
    }

    /// Whom to ask, beside those that were tried. `None`: there is nobody, or nobody who may be asked.
    #[inline]
    pub fn pick(&self, turn: RequestTurn, now_ms: u64, tried: &[Arc<Address>]) -> Option<&Arc<Address>> {
        // The usual case: all take turns, and nothing is said against the one whose turn it is.
        if matches!(self.terms.kind, BalanceKind::RoundRobin)
            && turn.affinity.sticks_to.is_none()
            && tried.is_empty()
            && let Some(next) = self.primaries.at(turn.number).map(|at| &self.addresses[at])
            && next.is_unmarked()
        {
            return Some(next);
        }
        self.pick_at_length(turn, now_ms, tried)
    }

    fn pick_at_length(&self, turn: RequestTurn, now_ms: u64, tried: &[Arc<Address>]) -> Option<&Arc<Address>> {
        if let Some(own) = self.own_of(turn, now_ms).filter(|own| !was_tried(tried, own)) {
            return Some(own);
        }
        let passes = [
            (&self.primaries, Demand::ItsTurn),
            (&self.primaries, Demand::Serves),
            (&self.backups, Demand::Serves),
            (&self.primaries, Demand::Anything),
            (&self.backups, Demand::Anything),
        ];
        passes.into_iter().filter(|(_, demand)| *demand != Demand::Anything || !self.terms.breaks_circuit).find_map(
            |(schedule, demand)| {
                let accepts =
                    |at: usize| self.meets(demand, at, turn, now_ms) && !was_tried(tried, &self.addresses[at]);
                self.choose(schedule, turn, now_ms, accepts).map(|at| &self.addresses[at])
            },
        )
    }

    /// The one that answered its client before. One that is drained still serves its own.
    fn own_of(&self, turn: RequestTurn, now_ms: u64) -> Option<&Arc<Address>> {
        let token = turn.affinity.sticks_to?;
        let own = &self.addresses[self.tokens.iter().position(|known| *known == token)?];
        let serves = matches!(own.standing(now_ms, 0), Standing::Serves { .. });
        (serves || own.is_drained() && !own.is_down_by_probe() && !own.is_ejected(now_ms)).then_some(own)
    }

    /// Is it one that is asked while the others are well? A backup is not while anybody else serves, nor what weighs nothing, nor, where the
    /// first counts, one behind it.
    pub fn is_wanted(&self, address: &Arc<Address>, now_ms: u64) -> bool {
        let Some(at) = self.addresses.iter().position(|known| Arc::ptr_eq(known, address)) else { return false };
        let share = self.shares[at];
        let serves = |other: usize| matches!(self.addresses[other].standing(now_ms, 0), Standing::Serves { .. });
        let comes_before = |other: usize| {
            let theirs = self.shares[other];
            let is_first = self.terms.kind == BalanceKind::First && other < at && theirs.is_backup == share.is_backup;
            theirs.weight > 0 && (share.is_backup && !theirs.is_backup || is_first)
        };
        share.weight > 0 && !(0..self.addresses.len()).any(|other| comes_before(other) && serves(other))
    }

    /// Does anybody serve beside these?
    pub fn serves_beside(&self, tried: &[Arc<Address>], now_ms: u64) -> bool {
        let mut weighed = self.addresses.iter().zip(&self.shares).filter(|(_, share)| share.weight > 0);
        weighed.any(|(address, _)| {
            matches!(address.standing(now_ms, 0), Standing::Serves { .. }) && !was_tried(tried, address)
        })
    }

    /// All addresses, beginning with the one at this place.
    #[inline]
    pub fn in_turn(&self, turn: usize) -> impl Iterator<Item = &Arc<Address>> {
        let (before, from) = self.addresses.split_at(turn.checked_rem(self.addresses.len()).unwrap_or(0));
        from.iter().chain(before)
    }

    fn meets(&self, demand: Demand, at: usize, turn: RequestTurn, now_ms: u64) -> bool {
        let address = &self.addresses[at];
        match (address.standing(now_ms, self.terms.slow_ms), demand) {
            (Standing::Out, _) | (Standing::LastResort, Demand::ItsTurn | Demand::Serves) => false,
            (Standing::Serves { permille: 1_000 }, _) | (_, Demand::Serves | Demand::Anything) => true,
            // Its load is compared with what it may have.
            (Standing::Serves { .. }, Demand::ItsTurn) if self.terms.kind == BalanceKind::LeastConn => true,
            (Standing::Serves { permille }, Demand::ItsTurn) => {
                // The keys that it has while it is slow stay with it when it is not.
                let drawn = mix(turn.affinity.key.unwrap_or(turn.number as u64) ^ address.seed.rotate_left(32));
                drawn % 1_000 < u64::from(permille)
            }
        }
    }

    fn choose(
        &self,
        schedule: &TurnSchedule,
        turn: RequestTurn,
        now_ms: u64,
        accepts: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        match (&self.terms.kind, turn.affinity.key) {
            (BalanceKind::First, _) => schedule.members_from(0).map(|(at, _)| at).find(|&at| accepts(at)),
            (BalanceKind::LeastConn, _) => {
                let accepted = schedule.members_from(turn.number).filter(|&(at, _)| accepts(at));
                accepted.reduce(|best, other| self.less_loaded(best, other, now_ms)).map(|(at, _)| at)
            }
            (BalanceKind::TwoChoices, _) => {
                let drawn = mix(turn.number as u64);
                let (one, further) = ((drawn >> 32) as usize, drawn as u32 as usize);
                let first = schedule.round_from(one).find(|&at| accepts(at))?;
                // From any turn but that one, each as likely as the other.
                let other = one.wrapping_add(1 + further % schedule.turns_count().saturating_sub(1).max(1));
                let mut others = schedule.round_from(other);
                let Some(second) = others.find(|&at| at != first && accepts(at)) else { return Some(first) };
                let weighed = |at: usize| (at, self.shares[at].weight);
                Some(self.less_loaded(weighed(first), weighed(second), now_ms).0)
            }
            (BalanceKind::Hash(_), Some(key)) => {
                let accepted = schedule.members_from(0).filter(|&(at, _)| accepts(at));
                self.highest_draw(key, accepted)
            }
            // What has no key belongs to nobody.
            (BalanceKind::RoundRobin | BalanceKind::Hash(_), _) => {
                schedule.round_from(turn.number).find(|&at| accepts(at))
            }
        }
    }

    /// The one to which a key belongs.
    fn highest_draw(&self, key: u64, among: impl Iterator<Item = (usize, u32)>) -> Option<usize> {
        rendezvous::highest_draw(key, among.map(|(at, weight)| (at, self.addresses[at].seed, weight)))
    }

    /// To whom a key would belong if all of them served.
    pub fn first_by_key(&self, key: u64) -> Option<&Arc<Address>> {
        self.highest_draw(key, self.primaries.members_from(0)).map(|at| &self.addresses[at])
    }

    /// The first of both, unless the other one has less to do for what it weighs.
    fn less_loaded(&self, one: (usize, u32), other: (usize, u32), now_ms: u64) -> (usize, u32) {
        let load_and_share = |(at, weight): (usize, u32)| {
            let permille = match self.addresses[at].standing(now_ms, self.terms.slow_ms) {
                // Elsewhere it has fewer turns.
                Standing::Serves { permille } if self.terms.kind == BalanceKind::LeastConn => permille,
                Standing::Serves { .. } | Standing::LastResort | Standing::Out => 1_000,
            };
            let load = u64::from(self.addresses[at].in_use.load(Ordering::Relaxed)) + 1;
            (load, u64::from(weight) * u64::from(permille))
        };
        let ((load, share), (other_load, other_share)) = (load_and_share(one), load_and_share(other));
        if other_load * share < load * other_share { other } else { one }
    }
}

/// By which clients belong to an address: the same in every process that has the same secret.
pub fn token_of(cookie: &StickyCookie, label: &str) -> u64 {
    let digest = Sha256::new().chain_update(&cookie.secret).chain_update([0]).chain_update(label).finalize();
    digest.iter().take(8).fold(0, |token, byte| token << 8 | u64::from(*byte))
}

fn was_tried(tried: &[Arc<Address>], address: &Arc<Address>) -> bool {
    tried.iter().any(|t| Arc::ptr_eq(t, address))
}

#[cfg(test)]
#[path = "balance_tests.rs"]
mod tests;
