//! What another server asks of a field's value by a regular expression, as values of a `[[route]]`'s `header`, in which a `*` stands for
//! any text. It knows no server's words.

/// More values than this make no list that a person could look through.
const VALUES_MAX: usize = 32;

/// The values that a regular expression stands for, all together. `None`: it asks for more than texts and any text between them.
pub fn of_regex(regex: &str) -> Option<Vec<String>> {
    let (alternatives, rest) = alternatives(regex)?;
    if !rest.is_empty() {
        return None;
    }
    let mut values = Vec::new();
    for alternative in alternatives {
        let (begins, behind) = alternative.strip_prefix('^').map_or((false, alternative), |behind| (true, behind));
        let ends = behind.ends_with('$') && !behind.ends_with("\\$");
        let inner = if ends { &behind[..behind.len() - 1] } else { behind };
        let (before, after) = (if begins { "" } else { "*" }, if ends { "" } else { "*" });
        values.extend(texts(inner)?.into_iter().map(|text| format!("{before}{text}{after}").replace("**", "*")));
    }
    let is_value = |value: &String| !value.trim_matches('*').is_empty();
    (values.len() <= VALUES_MAX && values.iter().all(is_value)).then_some(values)
}

/// What bars divide, up to the end or to the bracket that closes it, and what stands behind that.
fn alternatives(regex: &str) -> Option<(Vec<&str>, &str)> {
    let (mut all, mut start, mut depth, mut letters) = (Vec::new(), 0, 0_u32, regex.char_indices());
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => drop(letters.next()?),
            '(' => depth += 1,
            ')' if depth == 0 => {
                all.push(&regex[start..at]);
                return Some((all, &regex[at + 1..]));
            }
            ')' => depth -= 1,
            '|' if depth == 0 => {
                all.push(&regex[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    all.push(&regex[start..]);
    (depth == 0).then_some((all, ""))
}

/// The texts that an expression without anchors stands for.
fn texts(regex: &str) -> Option<Vec<String>> {
    let (mut texts, mut rest) = (vec![String::new()], regex);
    while let Some(letter) = rest.chars().next() {
        let behind = &rest[letter.len_utf8()..];
        let pieces: Vec<String>;
        (pieces, rest) = match letter {
            '.' => (vec!["*".to_owned()], behind.strip_prefix('*').filter(|behind| !behind.starts_with(['?', '+']))?),
            '\\' => {
                let meant = behind.chars().next().filter(char::is_ascii_punctuation)?;
                (vec![meant.to_string()], &behind[1..])
            }
            '(' => {
                let inside = behind.strip_prefix("?:").unwrap_or(behind);
                let (inside, rest) = alternatives(inside)?;
                let all: Option<Vec<Vec<String>>> = inside.into_iter().map(texts_of_group).collect();
                (all?.concat(), rest)
            }
            letter if letter.is_ascii_alphanumeric() || " -_/:;=@%&,<>'\"!~#".contains(letter) => {
                (vec![letter.to_string()], behind)
            }
            _ => return None,
        };
        // How often something stands there is asked of no value, nor is what comes behind a written star.
        if rest.starts_with(['*', '+', '?', '{']) || pieces.iter().any(|piece| piece.contains('*')) && letter == '\\' {
            return None;
        }
        texts = texts.iter().flat_map(|text| pieces.iter().map(move |piece| format!("{text}{piece}"))).collect();
        if texts.len() > VALUES_MAX {
            return None;
        }
    }
    Some(texts)
}

fn texts_of_group(regex: &str) -> Option<Vec<String>> {
    (!regex.contains(['^', '$'])).then(|| texts(regex)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_texts_with_any_text_between() {
        for (regex, expect) in [
            (r"^www\.", Some(&["www.*"][..])),
            ("bot|crawler", Some(&["*bot*", "*crawler*"])),
            (r"^(www|m)\.a\.test$", Some(&["www.a.test", "m.a.test"])),
            (r"^(?:a|b(c|d))x", Some(&["ax*", "bcx*", "bdx*"])),
            ("^/a.*b$", Some(&["/a*b"])),
            ("(a)|^b$", Some(&["*a*", "b"])),
            ("a.c", None),
            ("^a+$", None),
            ("a?b", None),
            ("(a)?b", None),
            ("[ab]c", None),
            (r"\d", None),
            (r"a\*b", None),
            (".*", None),
            ("(a|^b)", None),
            ("(a", None),
            ("a)b", None),
            ("", None),
        ] {
            let expect = expect.map(|values| values.iter().map(|&value| value.to_owned()).collect::<Vec<_>>());
            assert_eq!(of_regex(regex), expect, "{regex}");
        }
    }
}
