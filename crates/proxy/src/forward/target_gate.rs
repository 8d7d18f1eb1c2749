//! Asked of every address that a target's name stands for, before it is connected to: what name servers say is never
//! believed further than the operator's rules allow (DNS rebinding).

use std::net::IpAddr;
use std::sync::Arc;

use crate::forward::destinations::judge_address;
use crate::forward::public_addresses::is_ours;
use crate::origin::AddressGate;
use crate::settings::ForwardSettings;

/// Of one target.
#[derive(Debug)]
pub(super) struct TargetGate {
    pub(super) settings: Arc<ForwardSettings>,
    pub(super) host: Box<[u8]>,
    pub(super) port: u16,
}

impl AddressGate for TargetGate {
    fn admits(&self, address: IpAddr) -> bool {
        judge_address(&self.settings, &self.host, self.port, address, is_ours).is_ok()
    }
}
