//! What all nodes of a fleet have, and nobody else.

use std::fmt;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::url_digest::DigestKey;

/// By what nodes know one another, and by what they agree upon owners.
#[derive(Clone, PartialEq, Eq)]
pub struct FleetSecret(Arc<[u8]>);

impl FleetSecret {
    pub fn new(secret: &[u8]) -> FleetSecret {
        FleetSecret(secret.into())
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Another one that follows from it: who learns owners from answers learns nothing for proofs.
    pub fn digest_key(&self) -> DigestKey {
        let mut key = [0; 16];
        key.copy_from_slice(&self.derived("larder owners 1")[..16]);
        DigestKey::new(key)
    }

    /// What follows from it for one purpose and says nothing of it.
    pub fn derived(&self, purpose: &str) -> [u8; 32] {
        Sha256::new().chain_update(purpose).chain_update(b"\n").chain_update(&self.0).finalize().into()
    }
}

impl fmt::Debug for FleetSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FleetSecret")
    }
}
