//! What `[shared]` says: a tier beneath memory and disks that the nodes of a fleet share.

use std::sync::Arc;
use std::time::Duration;

use cache::SharedTier;
use proxy::settings::FleetSecret;
use proxy::wall_now_ms;
use shared::{TierService, TierSettings, TierUrl};

use crate::kernel_random;
use crate::say::say;

/// How long a request waits for an answer: an engine in the same network has one in less than a millisecond, and an origin is seldom
/// quicker than this.
pub const WAIT_MAX: Duration = Duration::from_millis(100);
/// How long it waits for another node's fetch.
pub const FETCH_WAIT_MAX: Duration = Duration::from_secs(2);
pub const OBJECT_MAX: u64 = 8 << 20;
/// Of records on their way.
pub const QUEUE_MAX: usize = 64 << 20;

/// As it stands without a word.
pub fn by_default(servers: Vec<TierUrl>) -> TierSettings {
    TierSettings {
        servers,
        authorities: None,
        wait_max: WAIT_MAX,
        fetch_wait_max: FETCH_WAIT_MAX,
        body_bytes_max: OBJECT_MAX,
        queue_bytes_max: QUEUE_MAX,
        bandwidth: None,
    }
}

/// What follows from the secret of the fleet, and is the same on all nodes: what names are made by …
const NAMES_LABEL: &str = "larder shared names 1";
/// … and what records are sealed by.
const SEALS_LABEL: &str = "larder shared records 1";

/// What names are made by, of what lies on disks, too.
pub fn seed(secret: &FleetSecret) -> [u8; 16] {
    let derived = secret.derived(NAMES_LABEL);
    let mut seed = [0; 16];
    seed.copy_from_slice(&derived[..16]);
    seed
}

/// Begins to talk to the servers. The error is a sentence.
pub fn start(settings: &TierSettings, secret: &FleetSecret) -> Result<SharedTier, String> {
    let open: Vec<String> = settings.servers.iter().filter(|server| server.is_open()).map(TierUrl::shown).collect();
    if !open.is_empty() {
        say!(
            "warning: [shared] url: {} asks for no password: whoever reaches it can read what is stored there and delete it (what he writes there is refused)",
            open.join(", ")
        );
    }
    let run = u64::from_le_bytes(kernel_random::bytes::<8>());
    let key = secret.derived(SEALS_LABEL);
    let wall_s = || wall_now_ms() / 1_000;
    let service = TierService::start(settings.clone(), (&key, run), |sentence| say!("{sentence}"), wall_s)?;
    Ok(SharedTier { tier: service as Arc<dyn cache::SecondTier>, seed: seed(secret), run })
}
