//! Texts of strangers on a terminal: what it might act on, or what would turn its reading direction, is shown as what it is.

/// A copy in which nothing moves a cursor, changes a colour or hides what stands beside it.
pub fn shown_safely(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match is_harmless(c) {
            true => shown.push(c),
            false => shown.extend(c.escape_unicode()),
        }
    }
    shown
}

fn is_harmless(c: char) -> bool {
    // Marks and overrides of direction, isolates, joiners without a width, the byte order mark, tags.
    let is_invisible = matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}');
    !c.is_control() && !is_invisible
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_reaches_the_terminal_that_it_acts_on() {
        assert_eq!(shown_safely("caf\u{e9} /a?b=1"), "caf\u{e9} /a?b=1");
        assert_eq!(shown_safely("\u{1b}[2J\r\n\u{9b}31m\u{7f}"), "\\u{1b}[2J\\u{d}\\u{a}\\u{9b}31m\\u{7f}");
        assert_eq!(shown_safely("a\u{202e}b\u{2066}c\u{feff}"), "a\\u{202e}b\\u{2066}c\\u{feff}");
    }
}
