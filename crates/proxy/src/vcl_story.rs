//! The story under a program: what a VCL program sees and does at each step.
//!
//! ```text
//! client_state, backend_task  what a request and a fetch carry from step to step
//! head_edits, scope_heads     the messages while a subroutine runs: borrowed, with a list of edits
//! program_scope               one run of subroutines: the `vcl::Host` over these
//!   → scope_variables         what the variables are
//!   → stored_view             obj
//!   → bans, program_purge, program_log, log_notes
//! body_forecast               whether vcl_recv will want the request's body, before it runs
//! watched_scope               the same with somebody looking: every fetch, and dry runs
//! builtin_hit                 a hit under a program that leaves hits to builtin.vcl
//! hit_records                 what is recorded of a hit, and of what builtin.vcl does with one
//! program_request             a request under a program, before it is copied
//! program_at_once             vcl_recv and vcl_hash of most requests, and a hit in one scope, over the borrowed head
//! program_key                 by which key it would find a request that nobody sent
//! client_steps                what the program says at each step of a request; of a fetch: `fetch::program_steps`
//!   → receiving               the request's body, where vcl_recv is going to ask for it
//!   → delivered               the head of an answer, through vcl_deliver
//! ```
//!
//! The steps of `transaction` and `fetch` ask here what the program says, and do it. A program is captured with its
//! backends when a request is received, and kept to its end.

pub(crate) mod backend_task;
pub(crate) mod bans;
pub(crate) mod body_forecast;
pub(crate) mod builtin_hit;
pub(crate) mod client_state;
pub(crate) mod client_steps;
pub(crate) mod completed_fields;
pub(crate) mod completed_request;
pub(crate) mod delivered;
pub(crate) mod delivery_filters;
pub(crate) mod field_bits;
pub(crate) mod filter_names;
pub(crate) mod hashed_parts;
pub(crate) mod head_edits;
pub(crate) mod hit_records;
pub(crate) mod including;
pub(crate) mod listener_name;
pub(crate) mod log_notes;
pub(crate) mod program_at_once;
pub(crate) mod program_key;
pub(crate) mod program_log;
pub(crate) mod program_purge;
pub(crate) mod program_request;
pub(crate) mod program_scope;
pub(crate) mod program_waits;
pub(crate) mod receiving;
pub(crate) mod scope_heads;
mod scope_variables;
pub(crate) mod stored_view;
pub(crate) mod syslog_allowance;
pub(crate) mod watched_scope;
pub mod xids;
