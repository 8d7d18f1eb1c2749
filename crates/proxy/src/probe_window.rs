//! The last probes of a backend, good or bad, and what follows from them: it is healthy while enough of them were good.
//! Pure arithmetic; who probes, and when, is not known here.

/// Up to 64 results, the newest in the lowest bit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeWindow {
    results: u64,
    size: u32,
    threshold: u32,
}

impl ProbeWindow {
    /// `initial` probes are taken to have been good. `size` is at most 64.
    pub(crate) fn new(size: u32, threshold: u32, initial: u32) -> ProbeWindow {
        assert!(size <= u64::BITS, "the checker lets no larger window through");
        ProbeWindow { results: lowest(initial.min(threshold)), size, threshold }
    }

    pub(crate) fn add(&mut self, good: bool) {
        self.results = self.results << 1 | u64::from(good);
    }

    pub(crate) fn good_count(&self) -> u32 {
        (self.results & lowest(self.size)).count_ones()
    }

    pub(crate) fn is_healthy(&self) -> bool {
        self.good_count() >= self.threshold
    }

    /// Do both count so many probes, and want so many good ones?
    pub(crate) fn is_alike(&self, other: &ProbeWindow) -> bool {
        (self.size, self.threshold) == (other.size, other.threshold)
    }

    pub(crate) fn size(&self) -> u32 {
        self.size
    }

    pub(crate) fn threshold(&self) -> u32 {
        self.threshold
    }
}

/// So many bits from the bottom.
fn lowest(bits: u32) -> u64 {
    u64::MAX.checked_shr(u64::BITS - bits.min(u64::BITS)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After each result (`+` good, `-` bad): is it healthy (`H`) or not (`s`)? The first letter is the start.
    fn check(window: (u32, u32, u32), results: &str, expect: &str) {
        let mut probes = ProbeWindow::new(window.0, window.1, window.2);
        let letter = |probes: &ProbeWindow| if probes.is_healthy() { 'H' } else { 's' };
        let mut seen = String::from(letter(&probes));
        for result in results.chars() {
            probes.add(result == '+');
            seen.push(letter(&probes));
        }
        assert_eq!(seen, expect, "{window:?} {results}");
    }

    #[test]
    fn a_backend_is_healthy_while_enough_of_the_last_probes_were_good() {
        check((8, 3, 2), "+-------", "sHHHHHHss");
        check((8, 3, 3), "-----", "HHHHHH");
        check((8, 3, 3), "--------", "HHHHHHsss");
        check((8, 3, 0), "+++", "sssH");
        check((2, 1, 0), "+--", "sHHs");
        check((1, 1, 1), "-+-", "HsHs");
        check((64, 64, 64), "-", "Hs");
        check((4, 0, 0), "----", "HHHHH");
    }

    #[test]
    fn nobody_starts_with_more_than_the_threshold() {
        assert_eq!(ProbeWindow::new(8, 3, 8).good_count(), 3);
    }
}
