//! What a peer makes us do for nothing, counted by kind against a budget (CVE-2019-9511 to 9518, CVE-2023-44487,
//! CVE-2024-27316, CVE-2025-8671).
//!
//! Every kind is legal in small numbers. A budget holds for a period and is full again in the next; work that is of use
//! earns some of it back, so that a client that downloads much may send as many WINDOW_UPDATE frames as it needs. The time is an
//! argument.

use super::error_code::ConnectionError;
use crate::limits::FLOOD_PERIOD_MS;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FloodKind {
    /// A request that its client resets before it is answered: rapid reset.
    PeerReset,
    /// A reset that the peer's own mistake makes us send: MadeYouReset; streams over the limit among them.
    ForcedReset,
    /// Bytes of overhead of DATA frames that are small or empty.
    SmallData,
    Ping,
    Settings,
    Priority,
    WindowUpdate,
    /// Frames of unknown types, and frames on streams that are closed.
    Ignored,
    /// CONTINUATION frames.
    Continuation,
    /// Lines of heads that are over their limits: each is decoded, for the table must follow.
    LinesOver,
}

const KINDS_COUNT: usize = FloodKind::LinesOver as usize + 1;

impl FloodKind {
    /// How much of it a period may bring, and what the peer is told when it brings more.
    const fn budget(self) -> (u32, &'static str) {
        use crate::limits::*;
        match self {
            FloodKind::PeerReset => (FLOOD_PEER_RESETS_MAX, "flood-of-resets"),
            FloodKind::ForcedReset => (FLOOD_FORCED_RESETS_MAX, "flood-of-stream-errors"),
            FloodKind::SmallData => (FLOOD_SMALL_DATA_BYTES_MAX, "flood-of-small-data"),
            FloodKind::Ping => (FLOOD_PINGS_MAX, "flood-of-pings"),
            FloodKind::Settings => (FLOOD_SETTINGS_MAX, "flood-of-settings"),
            FloodKind::Priority => (FLOOD_PRIORITIES_MAX, "flood-of-priorities"),
            FloodKind::WindowUpdate => (FLOOD_WINDOW_UPDATES_MAX, "flood-of-window-updates"),
            FloodKind::Ignored => (FLOOD_IGNORED_MAX, "flood-of-ignored-frames"),
            FloodKind::Continuation => (FLOOD_CONTINUATIONS_MAX, "flood-of-continuations"),
            FloodKind::LinesOver => (FLOOD_LINES_OVER_MAX, "flood-of-header-lines"),
        }
    }
}

impl FloodKind {
    /// What the peer is told.
    pub(crate) const fn token(self) -> &'static str {
        self.budget().1
    }
}

/// What one connection has spent in this period.
#[derive(Clone, Debug, Default)]
pub struct FloodScore {
    spent: [u32; KINDS_COUNT],
    period_ends_ms: u64,
}

impl FloodScore {
    /// Spends some of a budget; what is over it ends the connection.
    #[inline]
    pub fn spend(&mut self, kind: FloodKind, amount: u32, now_ms: u64) -> Result<(), ConnectionError> {
        if now_ms >= self.period_ends_ms {
            *self = FloodScore { spent: [0; KINDS_COUNT], period_ends_ms: now_ms.saturating_add(FLOOD_PERIOD_MS) };
        }
        let spent = &mut self.spent[kind as usize];
        *spent = spent.saturating_add(amount);
        let (budget, token) = kind.budget();
        if *spent > budget { Err(ConnectionError::calm(token)) } else { Ok(()) }
    }

    /// Something of use was done.
    #[inline]
    pub fn earn(&mut self, kind: FloodKind, amount: u32) {
        let spent = &mut self.spent[kind as usize];
        *spent = spent.saturating_sub(amount);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::FLOOD_PINGS_MAX;

    #[test]
    fn a_budget_is_full_again_in_the_next_period() {
        let mut score = FloodScore::default();
        for _ in 0..FLOOD_PINGS_MAX {
            score.spend(FloodKind::Ping, 1, 5).expect("within the budget");
        }
        let error = score.spend(FloodKind::Ping, 1, 4 + FLOOD_PERIOD_MS).expect_err("over it");
        assert_eq!(error, ConnectionError::calm("flood-of-pings"));
        score.spend(FloodKind::Ping, 1, 5 + FLOOD_PERIOD_MS).expect("a new period");
    }

    #[test]
    fn each_kind_has_its_own_budget_and_work_earns_it_back() {
        let mut score = FloodScore::default();
        score.spend(FloodKind::Ping, FLOOD_PINGS_MAX, 0).expect("all of it");
        score.spend(FloodKind::Settings, 1, 0).expect("another");
        score.earn(FloodKind::Ping, 2);
        score.spend(FloodKind::Ping, 2, 0).expect("earned");
        score.spend(FloodKind::Ping, u32::MAX, 0).expect_err("over it");
    }
}
