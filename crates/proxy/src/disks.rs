//! The disks beneath the cache, as the story begins with them: what was banned before is in force again before anything is
//! asked.

use std::sync::Arc;

use cache::{Cache, CacheSettings, Courier, Disk};

use crate::clock::{Clock, Moment};
use crate::service::complain;
use crate::vcl_story::bans::PolicyBan;

pub(crate) fn above(disk: Disk, settings: CacheSettings, courier: Arc<dyn Courier>) -> Arc<Cache> {
    let bans = bans_of(&disk);
    let cache = Cache::above(settings, courier, disk);
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

/// `None` if one of them cannot be read.
fn bans_of(disk: &Disk) -> Option<Vec<(u64, PolicyBan)>> {
    let bans = disk.bans(Clock::read().at(Moment::now()))?;
    let parsed = |text: &str| PolicyBan::parse(text.as_bytes()).ok();
    bans.iter().map(|ban| Some((ban.number, parsed(&ban.text)?.issued_at(ban.issued)))).collect()
}
