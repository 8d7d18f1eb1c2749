//! A bracket of a config that is not closed: the parser finds that out lines later, where nothing is wrong.

use super::complaint::Complaint;

/// The innermost bracket of a value that is still open at `at`, which is where a parser stumbled. That of a table's own name
/// is on the line that is complained of anyway.
pub fn bracket(text: &str, at: usize) -> Option<usize> {
    let mut open = Vec::new();
    let mut rest = Scan { bytes: text.as_bytes().get(..at)?, at: 0 };
    let mut begins_line = true;
    while let Some((place, byte)) = rest.next_plain() {
        match byte {
            b'[' | b'{' if !(begins_line && open.is_empty()) => open.push(place),
            b']' | b'}' => drop(open.pop()),
            _ => {}
        }
        begins_line = byte == b'\n' || (begins_line && byte.is_ascii_whitespace());
    }
    open.pop().filter(|&place| text[place..at].contains('\n'))
}

/// Where a text of several lines begins that goes on to the end of the file.
pub fn long_text(text: &str) -> Option<usize> {
    let mut rest = Scan { bytes: text.as_bytes(), at: 0 };
    while let Some((place, byte)) = rest.next_byte() {
        let is_long = text.as_bytes()[place..].starts_with(&[byte; 3]);
        if matches!(byte, b'"' | b'\'') {
            rest.skip_string(byte);
            let quotes = [byte; 3];
            if is_long
                && rest.at >= text.len()
                && (text.len() < place + 6 || !text.trim_end().as_bytes().ends_with(&quotes))
            {
                return Some(place);
            }
        }
    }
    None
}

/// What is said of it.
pub fn complaint(text: &str, at: usize) -> Complaint {
    let (what, closing) = match text.as_bytes()[at] {
        b'[' => ("this array is not closed", "]"),
        b'{' => ("this table is not closed", "}"),
        quote => {
            let complaint = Complaint::new(at..at + 3, "this text is not closed", "it goes on to the end of the file");
            let closing = char::from(quote).to_string().repeat(3);
            return complaint
                .suggest(format!("write {closing} behind it, or one quote on each side for a text on one line"));
        }
    };
    Complaint::new(at..at + 1, what, format!("there is no `{closing}` for it before what cannot belong to it"))
        .suggest(format!("write `{closing}` behind its last value"))
}

/// Goes through a text past its strings and comments.
struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Scan<'_> {
    /// The next byte that is neither, and its place.
    fn next_plain(&mut self) -> Option<(usize, u8)> {
        loop {
            match self.next_byte()? {
                (_, quote @ (b'"' | b'\'')) => self.skip_string(quote),
                plain => return Some(plain),
            }
        }
    }

    /// The next byte that is in no comment, be it the quote that a string begins with.
    fn next_byte(&mut self) -> Option<(usize, u8)> {
        loop {
            let place = self.at;
            let byte = *self.bytes.get(place)?;
            self.at += 1;
            match byte {
                b'#' => self.at = place + self.bytes[place..].iter().position(|&b| b == b'\n')?,
                _ => return Some((place, byte)),
            }
        }
    }

    /// Behind the opening quote of a string. One of a single line ends with that line at the latest.
    fn skip_string(&mut self, quote: u8) {
        let is_long = self.bytes[self.at..].starts_with(&[quote, quote]);
        let ending: &[u8] = if is_long { &[quote; 3] } else { &[quote] };
        self.at += if is_long { 2 } else { 0 };
        while let Some(&byte) = self.bytes.get(self.at) {
            if self.bytes[self.at..].starts_with(ending) {
                self.at += ending.len();
                return;
            }
            if byte == b'\n' && !is_long {
                return;
            }
            self.at += if byte == b'\\' && quote == b'"' { 2 } else { 1 };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `^` marks the bracket that is looked for, `|` where the parser stumbled.
    fn check(marked: &str) {
        let stumbled = marked.replace('^', "").find('|').expect("a place");
        let text = marked.replace(['^', '|'], "");
        assert_eq!(bracket(&text, stumbled), marked.find('^'), "{marked}");
    }

    #[test]
    fn the_bracket_that_was_left_open_is_found() {
        check("a = ^[\"x\"\n|b = 1\n");
        check("a = [[\"x\"], ^[\"y\"\n|b = 1\n");
        check("a = ^{ x = 1, y = [2]\n|b = 1\n");
        check("[t]\na = ^[ # ]\n \"]\", ']', \"\"\"\n]\"\"\"\n|[u]\n");
        check("[[t]]\na = ^[\"\\\"]\"\n|b\n");
    }

    #[test]
    fn what_stands_on_the_line_itself_is_the_parsers_to_say() {
        check("[listen|\na = 1\n");
        check("a = [1, |= 2]\n");
        check("a = [1]\nb = |x\n");
        check("a = \"x|\nb = 1\n");
    }
}
