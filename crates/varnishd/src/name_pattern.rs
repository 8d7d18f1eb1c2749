//! Names with `*`, `?` and `[…]` in them, as operators write them for several VCLs or backends.

/// What cannot stand in a name: it is a letter, then letters, digits, and `_ . -`.
pub(crate) fn illegal_in_name(name: &str) -> Option<char> {
    let is_good =
        |(at, c): (usize, char)| c.is_ascii_alphabetic() || at > 0 && (c.is_ascii_digit() || "_.-".contains(c));
    name.chars().enumerate().find(|at| !is_good(*at)).map(|(_, bad)| bad)
}

/// Does the whole name fit? After a failure behind a star, the star takes one byte more: no recursion.
pub(crate) fn fits(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        if pattern.get(p) == Some(&b'*') {
            star = Some((p, n));
            p += 1;
            continue;
        }
        match one(&pattern[p.min(pattern.len())..], name[n]) {
            Some(taken) => (p, n) = (p + taken, n + 1),
            None => match star {
                Some((at, from)) => {
                    star = Some((at, from + 1));
                    (p, n) = (at + 1, from + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

/// How many bytes of the pattern stand for this one of the name.
fn one(pattern: &[u8], byte: u8) -> Option<usize> {
    match pattern.first()? {
        b'?' => Some(1),
        b'[' => match set(&pattern[1..]) {
            Some((set, taken)) => {
                let (is_negated, set) = match set.split_first() {
                    Some((b'!' | b'^', rest)) => (true, rest),
                    _ => (false, set),
                };
                (holds(set, byte) != is_negated).then_some(taken + 1)
            }
            None => (byte == b'[').then_some(1),
        },
        b'\\' if pattern.len() > 1 => (pattern[1] == byte).then_some(2),
        other => (*other == byte).then_some(1),
    }
}

/// What stands before the `]`, which may be the first itself.
fn set(behind: &[u8]) -> Option<(&[u8], usize)> {
    let end = behind.iter().skip(1).position(|byte| *byte == b']')? + 1;
    Some((&behind[..end], end + 1))
}

fn holds(mut set: &[u8], byte: u8) -> bool {
    while let [first, rest @ ..] = set {
        if let [b'-', last, behind @ ..] = rest {
            if (*first..=*last).contains(&byte) {
                return true;
            }
            set = behind;
        } else if *first == byte {
            return true;
        } else {
            set = rest;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    fn check(pattern: &str, name: &str, expect: bool) {
        assert_eq!(super::fits(pattern.as_bytes(), name.as_bytes()), expect, "{pattern} {name}");
    }

    #[test]
    fn patterns_stand_for_names() {
        check("boot", "boot", true);
        check("boot", "boot2", false);
        check("", "", true);
        check("*", "", true);
        check("*.*", "boot.default", true);
        check("reload_*", "reload_1", true);
        check("a*b*c", "axxbyyc", true);
        check("a*b*c", "axxbyy", false);
        check("v?", "v1", true);
        check("v?", "v", false);
        check("v[0-4]", "v3", true);
        check("v[!0-4]", "v3", false);
        check("v[a]", "vb", false);
        check("v[", "v[", true);
        check(r"a\*", "a*", true);
        check(r"a\*", "ab", false);
        check("a", "", false);
    }
}
