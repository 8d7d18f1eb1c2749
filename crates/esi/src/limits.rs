//! What a text with ESI may ask of us.

/// How long an ESI tag may be; what is longer is left out of the text, and complained of.
pub const TAG_BYTES_MAX: usize = 8 << 10;

/// How many pieces a text may fall into. What follows is text.
pub const PIECES_MAX: usize = 10_000;

/// How deep `<esi:try>` and `<esi:choose>` may lie in one another.
pub const NESTED_MAX: usize = 8;

/// How long `$(NAME{key}|default)` may be in a text; what is longer is text.
pub const VARIABLE_BYTES_MAX: usize = 512;

/// How deep a test of `<esi:when>` may be, and how many terms it may have.
pub const TEST_DEPTH_MAX: usize = 16;
pub const TEST_TERMS_MAX: usize = 64;

/// How much of what is wrong with a text is told.
pub const COMPLAINTS_MAX: usize = 32;
