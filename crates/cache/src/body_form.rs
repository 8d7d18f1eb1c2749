//! How a stored body is kept: whole, as a part of its representation, or in slices of its own.

use crate::slice_layout::Sliced;

/// Which bytes of the whole representation a stored 206 holds (RFC 9110 §14.4): `from..to` of `complete`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    pub from: u64,
    pub to: u64,
    pub complete: Option<u64>,
}

/// How the body is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum BodyForm {
    #[default]
    Whole,
    Part(Part),
    /// Elsewhere: this is the manifest.
    Sliced(Sliced),
}
