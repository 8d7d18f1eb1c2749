//! Field names that somebody behind us may take for others. CGI and its kin make `_` of every character of a name that is no
//! letter and no digit: to them `X.Forwarded~For` is X-Forwarded-For, and the field has two meanings, ours and theirs.
//!
//! Of names that larder knows none of another spelling goes anywhere ([`is_lookalike`]). Which names an origin obeys nobody here knows: so
//! requests to it have plain names alone ([`is_plain_name`]), unless an operator wants it otherwise.

use crate::field_name::FieldName;

/// Does the name read as that of a field which larder reads or writes itself, or as one that begins with `X-Forwarded-`, and
/// is it spelled otherwise? `name` is a token (RFC 9110 §5.6.2).
///
/// A name reads as another when it has the same letters and digits in the same places, and any other characters between
/// them; those at its ends do not count.
#[inline]
pub fn is_lookalike(name: &[u8]) -> bool {
    KNOWN.may_hold(name) && !is_plain_name(name) && looks_like_known(name)
}

/// Has the name letters, digits, and dashes within, and nothing else? Whatever such a name reads as, it is spelled like that. Nearly all
/// names are plain. `name` is a token (RFC 9110 §5.6.2).
#[inline]
pub fn is_plain_name(name: &[u8]) -> bool {
    let [first, .., last] = name else { return name.iter().all(u8::is_ascii_alphanumeric) };
    let mut eights = name.chunks_exact(8);
    let mut odd = 0;
    for eight in &mut eights {
        odd |= odd_bytes(u64::from_ne_bytes(eight.try_into().expect("chunks of eight")));
    }
    // What is left is looked at with what stands before it, or, in a short name, with letters behind it.
    let rest = match name.last_chunk::<8>() {
        Some(last) => *last,
        None => {
            let mut filled = [b'a'; 8];
            filled[..name.len()].copy_from_slice(name);
            filled
        }
    };
    *first != b'-' && *last != b'-' && odd | odd_bytes(u64::from_ne_bytes(rest)) == 0
}

/// The highest bit of each byte that is neither a letter nor a digit nor a dash. All of them are bytes of a token: ASCII, and none of the
/// characters that stand between digits and capitals.
#[inline]
const fn odd_bytes(eight: u64) -> u64 {
    const fn each(byte: u8) -> u64 {
        u64::from_ne_bytes([byte; 8])
    }
    const HIGHEST: u64 = each(0x80);
    // A byte below 0x80 with this added has its highest bit if it was at least the one that is meant: no byte carries into the next.
    const fn at_least(eight: u64, byte: u8) -> u64 {
        eight + each(0x80 - byte)
    }
    let below_digits = !at_least(eight, b'0');
    let no_dash = at_least(eight ^ each(b'-'), 1);
    let between_letters = at_least(eight, b'^') & !at_least(eight, b'a');
    let behind_letters = at_least(eight, b'z' + 1);
    (below_digits & no_dash | between_letters | behind_letters) & HIGHEST
}

/// By length and first letter, what many names are like: whether another one may read as one of them is asked of this first.
#[derive(Clone, Copy, Debug)]
pub struct NameShapes {
    /// For each length the first letters of the names that have it, a bit each.
    beginnings: [u32; LONG + 1],
}

impl NameShapes {
    /// None of the names may be empty, or have 33 bytes or more.
    pub const fn of(names: &[&str]) -> NameShapes {
        let mut shapes = NameShapes { beginnings: [0; LONG + 1] };
        let mut at = 0;
        while at < names.len() {
            shapes = shapes.with(names[at].as_bytes());
            at += 1;
        }
        shapes
    }

    /// Those of two lists.
    pub const fn and(mut self, other: &NameShapes) -> NameShapes {
        let mut length = 0;
        while length < self.beginnings.len() {
            self.beginnings[length] |= other.beginnings[length];
            length += 1;
        }
        self
    }

    const fn with(mut self, name: &[u8]) -> NameShapes {
        assert!(name.len() < LONG);
        self.beginnings[name.len()] |= 1 << (name[0] & 0x1f);
        self
    }

    /// May this name read as one of them (see [`reads_as`])? False: it does not.
    #[inline]
    pub const fn may_hold(&self, name: &[u8]) -> bool {
        let [first, .., last] = name else { return !name.is_empty() };
        let length = if name.len() < LONG { name.len() } else { LONG };
        !first.is_ascii_alphanumeric()
            || !last.is_ascii_alphanumeric()
            || self.beginnings[length] & 1 << (*first & 0x1f) != 0
    }
}

/// Does a name read as this one, which it may also be?
pub fn reads_as(name: &[u8], known: &str) -> bool {
    let name = without_ends(name);
    name.len() == known.len() && begins_as(name, known)
}

/// Does the name begin with `X-Forwarded-`, or read as if it did?
pub fn is_forwarding_name(name: &[u8]) -> bool {
    begins_as(without_ends(name), FORWARDING)
}

const FORWARDING: &str = "x-forwarded-";

/// Names from this length on are looked at by their first letter alone.
const LONG: usize = 33;

/// The known names, and those that begin with `X-Forwarded-`.
const KNOWN: NameShapes = {
    let (mut shapes, mut at) = (NameShapes::of(&[]), 0);
    while at < FieldName::known().len() {
        shapes = shapes.with(FieldName::known()[at].canonical().as_bytes());
        at += 1;
    }
    let mut length = FORWARDING.len();
    while length <= LONG {
        shapes.beginnings[length] |= 1 << (b'x' & 0x1f);
        length += 1;
    }
    shapes
};

/// Of a name that is not plain.
#[cold]
fn looks_like_known(name: &[u8]) -> bool {
    FieldName::known().iter().any(|known| reads_as(name, known.canonical())) || is_forwarding_name(name)
}

fn without_ends(name: &[u8]) -> &[u8] {
    let Some(first) = name.iter().position(u8::is_ascii_alphanumeric) else { return &[] };
    let last = name.iter().rposition(u8::is_ascii_alphanumeric).unwrap_or(first);
    &name[first..=last]
}

/// Has the name the letters and digits of `known` in their places, and others where a dash stands there?
fn begins_as(name: &[u8], known: &str) -> bool {
    name.len() >= known.len()
        && name.iter().zip(known.as_bytes()).all(|(byte, known)| match known {
            b'-' => !byte.is_ascii_alphanumeric(),
            letter => byte.eq_ignore_ascii_case(letter),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a token has beside letters and digits (RFC 9110 §5.6.2).
    const ODD: &[u8] = b"!#$%&'*+-.^_`|~";

    fn check(name: &[u8], expect: bool) {
        assert_eq!(is_lookalike(name), expect, "{}", String::from_utf8_lossy(name));
    }

    /// Every known name, with every odd character in place of each of its dashes and of all of them, and at its ends.
    #[test]
    fn no_place_and_no_character_hides_a_known_name() {
        let more = ["X-Forwarded-Prefix", "X-Forwarded-Server", "X-Forwarded-A-Name-Of-More-Than-Thirty-Letters"];
        let known = FieldName::known().iter().map(|name| name.canonical());
        for known in known.chain(more) {
            let known = known.as_bytes();
            check(known, false);
            for &odd in ODD {
                let with = |at: &dyn Fn(usize) -> bool| -> Vec<u8> {
                    known.iter().enumerate().map(|(n, &b)| if b == b'-' && at(n) { odd } else { b }).collect()
                };
                for name in (0..known.len()).map(|place| with(&|n| n == place)).chain([with(&|_| true)]) {
                    check(&name, name != known);
                    check(&name.to_ascii_uppercase(), name != known);
                }
                for name in [[known, &[odd]].concat(), [&[odd], known].concat(), [&[odd, odd], known, &[odd]].concat()]
                {
                    check(&name, true);
                }
            }
        }
    }

    /// By every character of a token, at every place of names of every length up to three times eight.
    #[test]
    fn a_plain_name_has_letters_and_digits_and_dashes_within() {
        let of_token: Vec<u8> = (33..127).filter(|b: &u8| b.is_ascii_alphanumeric() || ODD.contains(b)).collect();
        for (length, &byte) in (1..=24).flat_map(|length| of_token.iter().map(move |byte| (length, byte))) {
            for place in 0..length {
                let mut name = vec![b'Q'; length];
                name[place] = byte;
                let is_within = place > 0 && place + 1 < length;
                let expect = byte.is_ascii_alphanumeric() || byte == b'-' && is_within;
                assert_eq!(is_plain_name(&name), expect, "{}", String::from_utf8_lossy(&name));
            }
        }
        assert!(!is_plain_name(b"-") && !is_plain_name(b"a-") && is_plain_name(b"a-b") && is_plain_name(b""));
    }

    #[test]
    fn the_shapes_of_two_lists_hold_what_either_does() {
        let (one, other) = (NameShapes::of(&["proxy", "x-a"]), NameShapes::of(&["client-ip"]));
        let both = one.and(&other);
        for name in ["proxy", "x-a", "client-ip", "client_ip"] {
            assert!(both.may_hold(name.as_bytes()), "{name}");
        }
        assert!(!one.may_hold(b"client-ip") && !both.may_hold(b"accept") && !both.may_hold(b"dproxy"));
    }

    #[test]
    fn names_of_their_own_are_left_alone() {
        let own =
            ["Sec-Fetch-Mode", "Sec-CH-UA", "DNT", "X_Trace", "x.request.id", "Hosts_", "Ho_st", "_", "X-Forward_For"];
        for name in own {
            check(name.as_bytes(), false);
        }
    }

    #[test]
    fn a_name_reads_as_one_of_the_same_letters_in_the_same_places() {
        assert!(reads_as(b"True_Client.IP", "true-client-ip") && reads_as(b"_proxy", "proxy"));
        assert!(!reads_as(b"TrueClientIP", "true-client-ip") && !reads_as(b"prox_y", "proxy"));
        assert!(is_forwarding_name(b"X-Forwarded-Ssl") && is_forwarding_name(b"x.forwarded_by"));
        assert!(!is_forwarding_name(b"X-Forwarded"));
    }
}
