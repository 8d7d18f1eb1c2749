//! How this node tells the others of its fleet what was invalidated here by itself: through the log, in the order in which it was said.
//!
//! The proxy answers before the node has joined: what it says until then is kept, and goes first.

use parking_lot::Mutex;
use proxy::{Acknowledged, OtherNodes, ToldInvalidation};

use super::fleet_door::FleetDoor;
use super::told_order::text_of;
use crate::limits::TOLD_BEFORE_JOINING_MAX;

pub struct FleetVoice {
    hear_of_unsafe_methods: bool,
    membership: Mutex<Membership>,
}

enum Membership {
    /// What is to be told, and whether there was more.
    Joining {
        told: Vec<String>,
        is_lost: bool,
    },
    Joined(FleetDoor),
}

impl FleetVoice {
    pub fn new(hear_of_unsafe_methods: bool) -> FleetVoice {
        FleetVoice {
            hear_of_unsafe_methods,
            membership: Mutex::new(Membership::Joining { told: Vec::new(), is_lost: false }),
        }
    }

    /// From now on the log is there.
    pub fn join(&self, door: FleetDoor) {
        let mut membership = self.membership.lock();
        if let Membership::Joining { told, is_lost } = &mut *membership {
            told.drain(..).for_each(|text| door.fleet.tell(text));
            if *is_lost {
                door.fleet.tell_of_loss();
            }
        }
        *membership = Membership::Joined(door);
    }
}

impl OtherNodes for FleetVoice {
    fn hear_of_unsafe_methods(&self) -> bool {
        self.hear_of_unsafe_methods
    }

    fn tell(&self, what: &ToldInvalidation) {
        let text = text_of(what);
        match &mut *self.membership.lock() {
            Membership::Joined(door) => door.fleet.tell(text),
            Membership::Joining { told, .. } if told.len() < TOLD_BEFORE_JOINING_MAX => told.push(text),
            Membership::Joining { is_lost, .. } => *is_lost = true,
        }
    }

    fn order(&self, what: &ToldInvalidation) -> Acknowledged {
        let door = match &*self.membership.lock() {
            Membership::Joined(door) => Some(door.clone()),
            Membership::Joining { .. } => None,
        };
        let text = text_of(what);
        if door.is_none() {
            self.tell(what);
        }
        Box::pin(async move {
            match door {
                Some(door) => door.ordered(text).await,
                None => Err("this node has only begun to listen to [fleet] log; the others will hear of it".to_owned()),
            }
        })
    }
}
