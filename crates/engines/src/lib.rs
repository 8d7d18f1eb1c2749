//! How a Redis or Valkey is reached: at one address, in the clear or over TLS, or through the sentinels that know which of several leads.
//!
//! An [`EnginePlace`] is made of a URL once, and gives connections. What is said over them is for others.

mod engine_place;
mod engine_url;
pub mod limits;

pub use engine_place::{EnginePlace, sentence};
