//! Matching texts against the program's regexes, and addresses against its ACLs.
//!
//! `pattern` is one regex with the means to match it: by shape, in linear time, or by PCRE2 under limits. Which of them
//! mean the same is decided in `pattern_translation`. `pattern_sets` puts regexes that are asked about the same text
//! into one pass, by a `whole_automaton` if they are few; `substitution` is regsub, `acl_ranges` an ACL.

pub(crate) mod acl_ranges;
mod least_match;
pub(crate) mod pattern;
pub(crate) mod pattern_sets;
mod pattern_shape;
mod pattern_translation;
pub(crate) mod substitution;
mod whole_automaton;
