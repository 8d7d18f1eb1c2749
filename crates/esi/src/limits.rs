//! What a text with ESI may ask of us.

/// How long an ESI tag may be; what is longer is left out of the text, and complained of.
pub const TAG_BYTES_MAX: usize = 8 << 10;

/// How many pieces a text may fall into. What follows is text.
pub const PIECES_MAX: usize = 10_000;

/// How deep `<esi:try>` may lie in `<esi:try>`.
pub const NESTED_MAX: usize = 8;

/// How much of what is wrong with a text is told.
pub const COMPLAINTS_MAX: usize = 32;
