//! Windows (RFC 9113 §5.2): how much may be sent, and how much the peer may send.
//!
//! The same two types serve a stream and the connection. What was received is given back late and in one piece, and a
//! window that its sender fills faster than we give back grows, up to a bound.

/// The peer let its window grow beyond 2^31 − 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowOverflow;

/// The peer sent more than it was allowed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowExceeded;

/// What we may send. It is below 0 when the peer has made its windows smaller (RFC 9113 §6.9.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendWindow(i32);

impl SendWindow {
    pub const fn new(bytes: i32) -> SendWindow {
        SendWindow(bytes)
    }

    #[inline]
    pub fn bytes(self) -> usize {
        usize::try_from(self.0).unwrap_or(0)
    }

    /// WINDOW_UPDATE, or a change of SETTINGS_INITIAL_WINDOW_SIZE by the difference.
    pub fn shift(&mut self, by: i64) -> Result<(), WindowOverflow> {
        self.0 = i32::try_from(i64::from(self.0) + by).map_err(|_| WindowOverflow)?;
        Ok(())
    }

    /// At most [`SendWindow::bytes`] of them.
    #[inline]
    pub fn spend(&mut self, bytes: usize) {
        let left = self.bytes().saturating_sub(bytes);
        if bytes > 0 {
            self.0 = left as i32;
        }
    }
}

/// What the peer may send us.
#[derive(Clone, Copy, Debug)]
pub struct ReceiveWindow {
    /// What it may send now.
    left: i32,
    /// What it may send when nothing is waiting to be given back.
    size: i32,
    size_max: i32,
    /// Taken, and not given back yet.
    owed: i32,
}

impl ReceiveWindow {
    pub const fn new(size: i32, size_max: i32) -> ReceiveWindow {
        ReceiveWindow { left: size, size, size_max, owed: 0 }
    }

    /// A frame of so many bytes has come, padding included.
    #[inline]
    pub fn spend(&mut self, bytes: usize) -> Result<(), WindowExceeded> {
        let bytes = i32::try_from(bytes).map_err(|_| WindowExceeded)?;
        if bytes > self.left {
            return Err(WindowExceeded);
        }
        self.left -= bytes;
        Ok(())
    }

    /// So many bytes are taken; `Some` is what WINDOW_UPDATE gives back now.
    pub fn release(&mut self, bytes: usize) -> Option<u32> {
        // No more than was spent can be given back.
        let outstanding = self.size.saturating_sub(self.left).saturating_sub(self.owed).max(0);
        self.owed += i32::try_from(bytes).unwrap_or(i32::MAX).min(outstanding);
        if self.owed == 0 || self.owed < self.size / 2 {
            return None;
        }
        let grown = self.grown_size();
        let given = self.owed + (grown - self.size);
        self.size = grown;
        self.left += given;
        self.owed = 0;
        u32::try_from(given).ok()
    }

    /// Twice as large when at most a quarter was left to send: then the sender waits for us and not we for it.
    fn grown_size(&self) -> i32 {
        let is_short = self.left <= self.size / 4;
        if is_short { self.size.saturating_mul(2).min(self.size_max).max(self.size) } else { self.size }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// bad-inputs G09, G38.
    #[test]
    fn a_window_may_be_negative_but_not_overflow() {
        let mut window = SendWindow::new(65_535);
        window.spend(60_000);
        window.shift(-65_535).expect("it becomes smaller");
        assert_eq!((window, window.bytes()), (SendWindow(-60_000), 0));
        window.spend(0);
        assert_eq!(window, SendWindow(-60_000));
        window.shift(65_535).expect("and larger again");
        assert_eq!(window.bytes(), 5_535);
        window.shift(i64::from(i32::MAX)).expect_err("beyond the ceiling");
        assert_eq!(window.bytes(), 5_535, "nothing has changed");
    }

    #[test]
    fn nothing_beyond_the_window_is_taken() {
        let mut window = ReceiveWindow::new(100, 100);
        assert_eq!(window.spend(101), Err(WindowExceeded));
        assert_eq!((window.spend(100), window.spend(0), window.spend(1)), (Ok(()), Ok(()), Err(WindowExceeded)));
    }

    #[test]
    fn what_is_taken_is_given_back_late_and_once() {
        let mut window = ReceiveWindow::new(100, 100);
        window.spend(60).expect("within the window");
        assert_eq!((window.release(30), window.release(19)), (None, None));
        assert_eq!(window.release(1), Some(50));
        assert_eq!(window.release(1000), None, "only ten are still out");
        assert_eq!(window.spend(91), Err(WindowExceeded));
        assert_eq!(window.spend(90), Ok(()));
    }

    #[test]
    fn a_window_grows_when_its_sender_waits_for_us() {
        let mut window = ReceiveWindow::new(100, 350);
        let mut given = Vec::new();
        for _ in 0..4 {
            let all = window.left as usize;
            window.spend(all).expect("all of it");
            given.extend(window.release(all));
        }
        assert_eq!(given, [200, 350, 350, 350]);
        let mut slow = ReceiveWindow::new(100, 350);
        slow.spend(50).expect("half of it");
        assert_eq!(slow.release(50), Some(50));
    }
}
