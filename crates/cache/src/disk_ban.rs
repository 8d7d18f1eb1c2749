//! A ban as a disk keeps it: when it was issued, and its text. What the text says is for those who issue bans.

use bytes::Bytes;

use crate::ban_test::BanTest;
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
        Some(RecoveredBan { number, text, issued: Now { wall_ms, mono_ms, confirmed_from: 0 } })
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
        let issued = Now { wall_ms: 9_000, mono_ms: 500, confirmed_from: 0 };
        let text = text_of(&Words("obj.age > 5m"), issued);
        let check = |now: Now, mono_ms: u64| {
            let expect = RecoveredBan {
                number: 7,
                text: "obj.age > 5m".to_owned(),
                issued: Now { wall_ms: 9_000, mono_ms, confirmed_from: 0 },
            };
            assert_eq!(RecoveredBan::read(7, &text, now), Some(expect));
        };
        check(Now { wall_ms: 9_100, mono_ms: 300, confirmed_from: 0 }, 200);
        check(Now { wall_ms: 8_000, mono_ms: 300, confirmed_from: 0 }, 300);
        check(Now { wall_ms: 19_000, mono_ms: 300, confirmed_from: 0 }, 0);
        assert_eq!(RecoveredBan::read(7, b"short", issued), None);
    }
}
