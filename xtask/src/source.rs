//! A reader of Rust source that knows just enough to tell code from comments and strings, so that `tidy` finds
//! a forbidden word where it is code and not where somebody writes about it.

/// The code of a file: comments, strings and character literals are blanked out, line breaks stay.
pub fn code_of(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut code = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let length = skipped_length(&bytes[at..], code.last().copied());
        if length == 0 {
            code.push(bytes[at]);
            at += 1;
        } else {
            code.extend(bytes[at..at + length].iter().map(|&b| if b == b'\n' { b'\n' } else { b' ' }));
            at += length;
        }
    }
    String::from_utf8_lossy(&code).into_owned()
}

/// Does the word stand in the text, not as a part of a longer one?
pub fn lines_with_word<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let part_of_word = |c: char| c.is_alphanumeric() || c == '_';
    text.lines().enumerate().filter_map(move |(index, line)| {
        let found = line.match_indices(word).any(|(at, _)| {
            let before = line[..at].chars().next_back();
            let after = line[at + word.len()..].chars().next();
            let word_ends_open = word.ends_with(part_of_word);
            !(before.is_some_and(part_of_word) || word_ends_open && after.is_some_and(part_of_word))
        });
        found.then_some(index + 1)
    })
}

/// How many bytes from here are a comment or a literal; 0: this is code.
fn skipped_length(rest: &[u8], before: Option<u8>) -> usize {
    match rest[0] {
        b'/' if rest.starts_with(b"//") => rest.iter().position(|&b| b == b'\n').unwrap_or(rest.len()),
        b'/' if rest.starts_with(b"/*") => block_comment_length(rest),
        b'"' => string_length(rest, 1),
        b'r' | b'b' | b'c' if !before.is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_') => {
            prefixed_literal_length(rest)
        }
        b'\'' => char_length(rest),
        _ => 0,
    }
}

fn block_comment_length(rest: &[u8]) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        match &rest[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

/// A string with escapes whose opening quote ends at `from`.
fn string_length(rest: &[u8], from: usize) -> usize {
    let mut at = from;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// `r"…"`, `r#"…"#`, `b"…"`, `br#"…"#`, `c"…"`, `b'…'`.
fn prefixed_literal_length(rest: &[u8]) -> usize {
    let letters = rest.iter().take(2).take_while(|b| b"rbc".contains(b)).count();
    let raw = rest[..letters].contains(&b'r');
    let hashes = rest[letters..].iter().take_while(|&&b| b == b'#').count();
    match rest.get(letters + hashes) {
        Some(b'"') if raw => {
            let end: Vec<u8> = [b"\"".as_slice(), &vec![b'#'; hashes]].concat();
            let body = letters + hashes + 1;
            let length = rest[body..].windows(end.len()).position(|window| window == end);
            length.map_or(rest.len(), |length| body + length + end.len())
        }
        Some(b'"') if hashes == 0 => string_length(rest, letters + 1),
        Some(b'\'') if hashes == 0 && rest[0] == b'b' && letters == 1 => 1 + char_length(&rest[1..]),
        _ => 0,
    }
}

/// A character literal, told from a lifetime by its closing quote.
fn char_length(rest: &[u8]) -> usize {
    match rest {
        [_, b'\\', _, tail @ ..] => tail.iter().take(12).position(|&b| b == b'\'').map_or(0, |p| p + 4),
        _ => {
            let text = String::from_utf8_lossy(&rest[..rest.len().min(6)]).into_owned();
            let mut chars = text.char_indices().skip(2);
            chars.next().filter(|&(_, c)| c == '\'').map_or(0, |(at, _)| at + 1)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, code: &str) {
        let squeezed: Vec<String> = code_of(text).split_whitespace().map(str::to_string).collect();
        assert_eq!(squeezed.join(" "), code, "{text}");
    }

    #[test]
    fn comments_and_literals_are_not_code() {
        check("let a = 1; // unsafe", "let a = 1;");
        check("a /* b /* c */ d */ e", "a e");
        check(r#"f("unsafe \" still") + 1"#, "f( ) + 1");
        check(r##"f(r#"a " b"#) + 1"##, "f( ) + 1");
        check(r#"f(b"x", br"y", c"z")"#, "f( , , )");
        check(r"match c { '\'' => 1, 'x' => 2, '\u{1F600}' => 3, b'y' => 4 }", "match c { => 1, => 2, => 3, => 4 }");
        check("fn f<'a>(x: &'a str) -> &'a str { x }", "fn f<'a>(x: &'a str) -> &'a str { x }");
        check("let bar = var\"x\";", "let bar = var ;");
    }

    #[test]
    fn words_are_found_whole() {
        let lines = |text, word| lines_with_word(text, word).collect::<Vec<_>>();
        assert_eq!(lines("unsafe {\nis_unsafe()\nunsafe_code\n unsafe fn", "unsafe"), [1, 4]);
        assert_eq!(lines("dbg!(x)\nmy_dbg!(x)", "dbg!"), [1]);
    }
}
