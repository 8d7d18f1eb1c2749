//! What the cache does, told by behaviours, one file for each part of the story. Time is moved by hand; nobody
//! sleeps. Under the feature `shuttle` only `interleavings` runs.
#![cfg(not(feature = "shuttle"))]

mod any_order;
mod as_dictionaries;
mod asking;
mod banned;
mod belonging;
mod budget;
mod explaining;
mod following;
mod grouped;
mod hot_objects;
mod in_other_codings;
mod invalidating;
mod leased;
mod living_by_program;
mod marked;
mod object_head;
mod outlived;
mod personal;
mod promoted_bodies;
mod purged_behind;
mod regrouping;
mod sharing;
mod sliced;
mod softened;
mod softly_banned;
mod stage;
mod stored_parts;
mod tagged;
mod validating;
