//! What the admin shows of an origin.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Origin;
use super::address::{Address, Standing};
use super::address_order::AddressOrder;
use super::origin_faults::OriginFault;
use crate::backend_health::ProbeStatus;
use crate::settings::UrlShare;

/// One origin at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OriginStatus {
    pub name: Arc<str>,
    /// By which rule its addresses are chosen.
    pub balance: &'static str,
    pub addresses: Vec<AddressStatus>,
    /// Open or being opened, to addresses that are gone too.
    pub connections: usize,
    pub connections_max: usize,
    pub queued: usize,
    /// Requests that were sent to it since it was first configured.
    pub asked: u64,
    /// Bytes read from it and written to it, since then.
    pub received_bytes: u64,
    pub sent_bytes: u64,
    /// Requests and connections that failed by its doing, or that it was too busy for, since it was first configured: by their kinds,
    /// in the order of [`OriginFault::ALL`].
    pub faults: [u64; OriginFault::ALL.len()],
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressStatus {
    pub label: Arc<str>,
    pub state: AddressState,
    /// What it weighs beside the others, and whether it stands in for them.
    pub share: UrlShare,
    /// How many thousandths of that it gets: fewer than 1,000 while it begins slowly, none while it is out.
    pub permille: u32,
    pub ordered: AddressOrder,
    /// An operator's weight is in place of the configuration's.
    pub weight_is_ordered: bool,
    /// Absent where nobody probes.
    pub probe: Option<ProbeStatus>,
    /// Connections, or requests over HTTP/2.
    pub in_use: usize,
    pub idle: usize,
    /// Over which HTTP/2 is spoken, in use or idle.
    pub http2_connections: usize,
    pub failures: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressState {
    /// It answered the last time, or was not asked yet.
    Up,
    /// It failed the last time, and is asked again.
    Failing,
    /// Left out after failures, for so long still.
    Ejected { for_ms: u64 },
    /// Its probes fail.
    DownByProbe,
    /// By an operator.
    Down,
    /// By an operator; what is under way goes on.
    Drained,
}

impl AddressState {
    fn of(address: &Address, now_ms: u64) -> AddressState {
        match address.ordered() {
            AddressOrder::Down => AddressState::Down,
            AddressOrder::Drain => AddressState::Drained,
            AddressOrder::Up => AddressState::Up,
            AddressOrder::Auto if address.is_down_by_probe() => AddressState::DownByProbe,
            AddressOrder::Auto => match address.ejected_for_ms(now_ms) {
                Some(for_ms) => AddressState::Ejected { for_ms },
                None if address.failures() > 0 => AddressState::Failing,
                None => AddressState::Up,
            },
        }
    }

    pub fn word(self) -> &'static str {
        match self {
            AddressState::Up => "up",
            AddressState::Failing => "failing",
            AddressState::Ejected { .. } => "ejected",
            AddressState::DownByProbe => "down-by-probe",
            AddressState::Down => "down",
            AddressState::Drained => "drained",
        }
    }
}

impl OriginStatus {
    /// Failures of whatever kind.
    pub fn errors(&self) -> u64 {
        self.faults.iter().sum()
    }
}

impl Origin {
    pub(super) fn status(&self, now_ms: u64) -> OriginStatus {
        let book = self.servers.book();
        let slow_ms = book.terms().slow_ms;
        let address = |(address, share): (&Arc<Address>, &UrlShare)| {
            let idle = address.shelves.len();
            AddressStatus {
                label: Arc::clone(&address.label),
                state: AddressState::of(address, now_ms),
                share: *share,
                permille: match address.standing(now_ms, slow_ms) {
                    Standing::Serves { permille } => permille,
                    Standing::LastResort | Standing::Out => 0,
                },
                ordered: address.ordered(),
                weight_is_ordered: address.ordered_weight().is_some(),
                probe: address.probe_status(),
                in_use: address.connections.load(Ordering::Relaxed).saturating_sub(idle),
                idle,
                http2_connections: address.http2_connections.load(Ordering::Relaxed),
                failures: address.failures(),
            }
        };
        let (received_bytes, sent_bytes) = self.servers.carried.read();
        OriginStatus {
            name: Arc::clone(&self.name),
            balance: book.terms().kind.word(),
            addresses: book.addresses.iter().zip(&book.shares).map(address).collect(),
            connections: self.servers.slots.open(),
            connections_max: self.servers.slots.open_max(),
            queued: self.servers.slots.waiting(),
            asked: self.servers.asked.load(Ordering::Relaxed),
            received_bytes,
            sent_bytes,
            faults: self.servers.faults.read(),
        }
    }
}
