//! The disks beneath the cache, as the story begins with them: what was banned before is in force again before anything is
//! asked, and what is purged is not called so before the disks know of it.

use std::sync::Arc;

use cache::{Beneath, Cache, CacheSettings, Disk, Notifier};

use crate::clock::{Clock, Moment};
use crate::core::Shared;
use crate::limits::DISK_SETTLE_MAX;
use crate::stderr_line::complain;
use crate::vcl_story::bans::ProgramBan;

pub(crate) fn above(beneath: Beneath, settings: CacheSettings, notifier: Arc<dyn Notifier>) -> Arc<Cache> {
    let bans = beneath.disk.as_ref().map_or_else(|| Some(Vec::new()), bans_of);
    let cache = Cache::above(settings, notifier, beneath);
    match bans {
        Some(bans) => {
            for (number, ban) in bans {
                let issued = ban.issued();
                cache.restore_ban(number, Arc::new(ban), issued);
            }
        }
        None => {
            let why = "a ban that was issued before cannot be read";
            complain(format_args!("{why}: what lies on the disks is dropped, for it may be banned"));
            cache.forget_disks();
        }
    }
    cache
}

/// Waits until what was invalidated survives a crash. False if it may not, which the log then says: it is in force as long
/// as this process lives.
pub(crate) async fn settled(shared: &Shared) -> bool {
    let why = match tokio::time::timeout(DISK_SETTLE_MAX, shared.cache.settled()).await {
        Ok(Ok(())) => return true,
        Ok(Err(why)) => why,
        Err(_) => format!("no disk answered in {} s", DISK_SETTLE_MAX.as_secs()),
    };
    if shared.unsettled_notice.lock().take(Moment::now().millis()) {
        complain(format_args!("a crash may undo what was purged or banned: {why} ([[disk]] path)"));
    }
    false
}

/// `None` if one of them cannot be read.
fn bans_of(disk: &Disk) -> Option<Vec<(u64, ProgramBan)>> {
    let bans = disk.bans(Clock::read().at(Moment::now()).into())?;
    let parsed = |text: &str| ProgramBan::parse(text.as_bytes()).ok();
    bans.iter().map(|ban| Some((ban.number, parsed(&ban.text)?.issued_at(ban.issued)))).collect()
}
