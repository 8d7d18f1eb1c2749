//! How long to wait before a serving process that died is started again: not at all after a long life, longer and longer after short ones.

use std::time::Duration;

use crate::limits::{FIRST_PAUSE, LAST_PAUSE, LIVED_WELL};

/// See the module.
#[derive(Debug, Default)]
pub struct RestartPause {
    /// Short lives in a row.
    short_lives: u32,
}

impl RestartPause {
    /// One has died after so long. `served`: it had been ready.
    pub fn after(&mut self, lived: Duration, served: bool) -> Duration {
        if served && lived >= LIVED_WELL {
            self.short_lives = 0;
            return Duration::ZERO;
        }
        self.short_lives = self.short_lives.saturating_add(1);
        // The first death may be an accident however soon it came.
        match self.short_lives {
            1 if served => Duration::ZERO,
            lives => FIRST_PAUSE.saturating_mul(1 << (lives - 1).min(16)).min(LAST_PAUSE),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_with_short_lives_and_end_with_a_long_one() {
        let mut pause = RestartPause::default();
        let short = Duration::from_millis(5);
        let ms = |pause: Duration| pause.as_millis();
        assert_eq!(ms(pause.after(LIVED_WELL, true)), 0);
        let after: Vec<u128> = (0..9).map(|_| ms(pause.after(short, true))).collect();
        assert_eq!(after, [0, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000]);
        assert_eq!(ms(pause.after(LIVED_WELL, true)), 0);
        assert_eq!(ms(pause.after(short, false)), 100);
        assert_eq!(ms(pause.after(LIVED_WELL, false)), 200);
    }
}
