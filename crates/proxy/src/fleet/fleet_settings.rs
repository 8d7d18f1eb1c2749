//! What an operator may decide about the fleet.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::url_digest::DigestKey;
use crate::settings::OriginSettings;

/// The nodes of a fleet, and what they have in common.
#[derive(Clone, Debug)]
pub struct FleetSettings {
    /// An origin whose addresses are the nodes, whose balance is by [`HashKey::Stored`](crate::settings::HashKey) of the secret.
    pub nodes: OriginSettings,
    pub secret: FleetSecret,
    pub own: OwnAddress,
    /// A node that works on more of our fetches than so many thousandths of its share is passed over.
    pub load_max_permille: u32,
}

/// Which of the nodes this one is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnAddress {
    At(SocketAddr),
    /// The one that is an address of this machine, with one of these ports.
    OnPorts(Vec<u16>),
}

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
        let digest = Sha256::new().chain_update(b"larder owners 1\n").chain_update(&self.0).finalize();
        let mut key = [0; 16];
        key.copy_from_slice(&digest[..16]);
        DigestKey::new(key)
    }
}

impl fmt::Debug for FleetSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FleetSecret")
    }
}
