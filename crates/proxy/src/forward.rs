//! The forward proxy, as far as it is not the same story as everything else: who may use it, where it may lead, and the
//! origins that it makes for the targets that are asked for.
//!
//! `forward/admission.rs` is the receive step of a forward listener; CONNECT is `transaction/tunnel.rs`. From receive on a
//! request in absolute-form is looked up, fetched and stored like any other, under keys of its own. This module knows no
//! sockets.

use std::path::Path;
use std::sync::Arc;

use cache::Failure;
use message::Request;

use crate::limits::Limits;
use crate::origin::{Origin, Origins};
use crate::settings::ForwardSettings;
use crate::stderr_line::complain;

pub(crate) mod admission;
pub(crate) mod destinations;
pub(crate) mod forward_settings;
mod known_credentials;
pub(crate) mod parents;
pub(crate) mod password_file;
pub(crate) mod passwords;
mod public_addresses;
mod target_gate;
pub(crate) mod targets;

use self::parents::{Parents, Way, Ways};
use self::passwords::Passwords;
use self::targets::Targets;

/// The forward proxy of one configuration.
pub(crate) struct Forward {
    pub(crate) settings: Arc<ForwardSettings>,
    pub(crate) targets: Targets,
    pub(crate) parents: Parents,
    /// Of the users, where only users may come.
    pub(crate) passwords: Option<Arc<Passwords>>,
}

impl Forward {
    /// With the targets of the one before where it allows the same.
    pub(crate) fn new(
        settings: &ForwardSettings,
        limits: &Limits,
        origins: &Arc<Origins>,
        previous: Option<&Forward>,
    ) -> Forward {
        let settings = Arc::new(settings.clone());
        let former_users = || previous.and_then(|former| former.passwords.as_ref()).into_iter();
        let users = |path: &Path| users_of(path, former_users(), "forward.password_file");
        let passwords = settings.password_file.as_deref().and_then(users);
        let inherited = previous.filter(|former| former.settings == settings).map(|former| &former.targets);
        Forward {
            targets: Targets::new(&settings, limits, origins, inherited),
            parents: Parents::new(&settings, limits, origins, previous.map(|former| &former.parents)),
            passwords,
            settings,
        }
    }

    /// Where a request that was admitted goes: takes the next of its ways.
    pub(crate) fn take_way(&self, ways: &mut Ways, request: &Request<'_>, now_ms: u64) -> Result<Taken, Failure> {
        match ways.pop() {
            Some(Way::Parent(index)) => {
                Ok(Taken { origin: Arc::clone(self.parents.origin(index)), parent: Some(index) })
            }
            Some(Way::Direct) | None => {
                let origin = self.targets.of(&request.authority, request.scheme, now_ms)?;
                Ok(Taken { origin, parent: None })
            }
        }
    }

    /// For the tick of each core.
    pub(crate) fn sweep(&self, core: usize, now_ms: u64) {
        self.targets.sweep(core, now_ms);
        self.parents.origins.sweep(core, now_ms);
    }
}

/// Whom a request is sent to.
pub(crate) struct Taken {
    pub(crate) origin: Arc<Origin>,
    /// It is this parent: a proxy, which is asked for the whole URL.
    pub(crate) parent: Option<usize>,
}

/// The users of this file, who are the same ones across a reload. It was read a moment ago to see whether it can be; if it
/// cannot any more, nobody is a user. `setting`: which names the file.
pub(crate) fn users_of<'a>(
    path: &Path,
    mut former: impl Iterator<Item = &'a Arc<Passwords>>,
    setting: &str,
) -> Option<Arc<Passwords>> {
    former.find(|passwords| passwords.is_of(path)).cloned().or_else(|| match Passwords::open(path) {
        Ok(passwords) => Some(passwords),
        Err(why) => {
            complain(format_args!("{setting}: {why}; nobody is let in"));
            None
        }
    })
}
