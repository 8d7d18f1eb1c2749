//! A ban as a disk keeps it: when it was issued, and its text. What the text says is for those who issue bans.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use store::disk::Invalidation;

use crate::ban_test::BanTest;
use crate::cache::Cache;
use crate::moment::Now;

/// A ban that outlived the process that issued it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecoveredBan {
    pub number: u64,
    pub text: String,
    pub issued: Now,
}

/// Milliseconds of the wall clock, little-endian, and the text.
pub(crate) fn text_of(test: &dyn BanTest, issued: Now) -> Bytes {
    [&issued.wall_ms.to_le_bytes()[..], test.text().as_bytes()].concat().into()
}

impl RecoveredBan {
    /// `None`: no cache wrote this.
    pub fn read(number: u64, bytes: &[u8], now: Now) -> Option<RecoveredBan> {
        let (wall_ms, text) = bytes.split_first_chunk::<8>()?;
        let wall_ms = u64::from_le_bytes(*wall_ms);
        let mono_ms = now.mono_ms.saturating_sub(now.wall_ms.saturating_sub(wall_ms));
        let text = std::str::from_utf8(text).ok()?.to_owned();
        Some(RecoveredBan { number, text, issued: Now { wall_ms, mono_ms } })
    }
}

impl Cache {
    /// Has a ban of an earlier process in force again: what lies on a disk is tested against it. To be called in the order
    /// of their numbers, before anything is asked.
    pub fn restore_ban(&self, number: u64, test: Arc<dyn BanTest>, issued: Now) {
        self.watch_for_bans();
        self.bans.push(test, issued, &self.account, |_| number);
    }

    /// Drops all that lies on disks: of what they know a part could not be read.
    pub fn forget_disks(&self) {
        if let Some(disk) = &self.disk {
            drop(disk.tier.invalidate(Invalidation::Clear));
        }
    }

    /// Writes what is still to be written, and closes the files. False if that takes longer: then the last of it is missing
    /// after the next start.
    pub fn close_disks(&self, patience: Duration) -> bool {
        self.disk.as_ref().is_none_or(|disk| disk.tier.close(patience))
    }

    /// Ready when every invalidation so far survives a crash, at once where there is no disk. The error says which disk
    /// does not know of one, and why.
    pub fn settled(&self) -> impl Future<Output = Result<(), String>> + Send + 'static {
        let settled = self.disk.as_ref().map(|disk| disk.settled(self.began().0));
        async move {
            match settled {
                Some(settled) => settled.await.map_err(|why| why.0),
                None => Ok(()),
            }
        }
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;
    use crate::ban_test::BanSubject;

    struct Words(&'static str);

    impl BanTest for Words {
        fn text(&self) -> &str {
            self.0
        }

        fn needs_request(&self) -> bool {
            false
        }

        fn bans(&self, _: &BanSubject<'_>) -> bool {
            true
        }
    }

    #[test]
    fn a_ban_is_as_old_as_it_is() {
        let issued = Now { wall_ms: 9_000, mono_ms: 500 };
        let text = text_of(&Words("obj.age > 5m"), issued);
        let check = |now: Now, mono_ms: u64| {
            let expect =
                RecoveredBan { number: 7, text: "obj.age > 5m".to_owned(), issued: Now { wall_ms: 9_000, mono_ms } };
            assert_eq!(RecoveredBan::read(7, &text, now), Some(expect));
        };
        check(Now { wall_ms: 9_100, mono_ms: 300 }, 200);
        check(Now { wall_ms: 8_000, mono_ms: 300 }, 300);
        check(Now { wall_ms: 19_000, mono_ms: 300 }, 0);
        assert_eq!(RecoveredBan::read(7, b"short", issued), None);
    }
}
