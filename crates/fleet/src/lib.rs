//! How nodes of a fleet tell one another what was purged: a log that each of them appends to and carries out in one order.
//!
//! The log lies in Redis or Valkey (`redis_log`, alone in knowing the crate `redis`). A [`Fleet`] belongs to one node: it puts orders
//! into the log, listens, has the [`Node`] carry out what comes, and says a word of itself several times a lease. From those words
//! everybody knows who belongs to the fleet and what each has applied (`roll`). Nothing else is agreed on: no leader, no list of members.
//!
//! What holds, however badly the log or a node fares:
//!
//! * An order that was acknowledged as *applied* is in force on every node, or that node's lease is over.
//! * A lease counts from before the node asked how far the log goes, and begins once it has applied all of that.
//! * Whoever cannot know what it missed has everything confirmed by the origin that it holds: after a gap in the numbers, in
//!   another epoch, or behind a log that ends before what was heard already.

mod backlog;
mod fleet_status;
mod hearing;
pub mod limits;
mod member;
mod node;
mod order;
mod ordering;
mod position;
mod redis_log;
mod roll;
mod saving;
mod saying;
mod shared_state;

pub use fleet_status::{FleetStatus, NodeStatus};
pub use member::Fleet;
pub use node::{Figures, Node, Reached};
pub use order::{Acknowledge, OrderCounts, Ordered};
pub use redis_log::LogPlace;
pub use shared_state::FleetSettings;
