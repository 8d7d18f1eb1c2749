//! The forward proxy, as far as it is not the same story as everything else: who may use it, where it may lead, and the
//! origins that it makes for the targets that are asked for.
//!
//! `forward/admission.rs` is the receive step of a forward listener; CONNECT is `transaction/tunnel.rs`. From receive on a
//! request in absolute-form is looked up, fetched and stored like any other, under keys of its own. This module knows no
//! sockets.

use std::sync::Arc;

use cache::Failure;
use message::Request;

use crate::limits::Limits;
use crate::origin::{Origin, Origins};
use crate::settings::ForwardSettings;

pub(crate) mod admission;
pub(crate) mod destinations;
pub(crate) mod forward_settings;
mod public_addresses;
mod target_gate;
pub(crate) mod targets;

use self::targets::Targets;

/// The forward proxy of one configuration.
pub(crate) struct Forward {
    pub(crate) settings: Arc<ForwardSettings>,
    pub(crate) targets: Targets,
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
        let inherited = previous.filter(|former| former.settings == settings).map(|former| &former.targets);
        Forward { targets: Targets::new(&settings, limits, origins, inherited), settings }
    }

    /// Where a request that was admitted goes.
    pub(crate) fn origin(&self, request: &Request<'_>, now_ms: u64) -> Result<Arc<Origin>, Failure> {
        self.targets.of(&request.authority, request.scheme, now_ms)
    }
}
