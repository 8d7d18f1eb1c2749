//! The notation of spec/bad-input: readable text in, the exact bytes and pauses of one side of a connection out.
//!
//! `¶` CR LF, `·` space, `→` tab, `\r \n \0 \t \\ \" \' \{ \} \xNN` single bytes, `{text*N}` repetition (nestable; `{i}`
//! inside it counts from 0), `{n}` the run's six digits, `{#S}` the length of macro S, `{#xS}` in hex, `{wait}` until everything is at
//! rest, `{o}` the origin of a forward proxy, `{eof}` half-close, `{rst}` reset, and the macros below. Frames of HTTP/2 and the lines
//! of a header block are written as `frame_notation` says. It knows nothing of what the bytes mean.

use std::collections::VecDeque;

use crate::frame_notation;

/// What one side of a connection does, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    Bytes(Vec<u8>),
    /// Until the program under test has read everything and is at rest.
    Wait,
    /// Half-close.
    Eof,
    /// Close with a RST.
    Reset,
}

pub type Script = VecDeque<Step>;

/// Text that `{NAME}` stands for; may use the notation itself.
const MACROS: &[(&str, &str)] = &[
    ("G", "GET /g{n} HTTP/1.1¶Host: t.test¶"),
    ("P", "POST /p{n} HTTP/1.1¶Host: t.test¶"),
    ("T", "POST /p{n} HTTP/1.1¶Host: t.test¶Transfer-Encoding: chunked¶¶"),
    ("M", "GET /marker{n} HTTP/1.1¶Host: t.test¶¶"),
    ("S", "GET /smuggled{n} HTTP/1.1¶Host: t.test¶¶"),
    ("good", "GET /good{n} HTTP/1.1¶Host: t.test¶¶"),
    // HTTP/2: what a connection begins with, and the lines of requests.
    ("preface", "PRI * HTTP/2.0¶¶SM¶¶{SETTINGS - 0|}"),
    ("to", "{= :method|GET}{= :scheme|http}{= :authority|t.test}"),
    ("get", "{to}{= :path|/r{n}}"),
    ("post", "{= :method|POST}{= :scheme|http}{= :authority|t.test}{= :path|/p{n}}"),
    // Answers of the origin: one that may be stored, and one that may not.
    ("H", "HTTP/1.1 200 OK¶Cache-Control: max-age=600¶"),
    ("U", "HTTP/1.1 200 OK¶Cache-Control: no-store¶"),
    ("A", "HTTP/1.1 200 OK¶Cache-Control: max-age=600¶Content-Length: 6¶¶stored"),
];

/// What the names that change from run to run stand for.
#[derive(Clone, Debug, Default)]
pub struct Names {
    pub run: u32,
    /// The `Via` member that the program under test adds.
    pub via: String,
    /// Host and port of the origin, where the program under test is a forward proxy: then the macros ask for whole URLs.
    pub forwarded_to: Option<String>,
}

/// Reads the notation; an error names the place.
pub fn read(text: &str, names: &Names) -> Result<Script, String> {
    let mut script = Script::new();
    let mut reader = Reader { names, counters: Vec::new(), depth: 0 };
    reader.read(text, &mut script)?;
    Ok(script)
}

/// Reads text that must be bytes only.
pub fn read_bytes(text: &str, names: &Names) -> Result<Vec<u8>, String> {
    let mut script = read(text, names)?;
    match (script.pop_front(), script.pop_front()) {
        (None, _) => Ok(Vec::new()),
        (Some(Step::Bytes(bytes)), None) => Ok(bytes),
        _ => Err(format!("{text:?} pauses, but only bytes can stand here")),
    }
}

/// Writes bytes back in the notation, cut after `bytes_max`.
pub fn show(bytes: &[u8], bytes_max: usize) -> String {
    let mut out = String::new();
    let mut at = 0;
    while at < bytes.len().min(bytes_max) {
        match bytes[at] {
            b'\r' if bytes.get(at + 1) == Some(&b'\n') => {
                out.push('¶');
                at += 1;
            }
            b'\r' => out.push_str("\\r"),
            b'\n' => out.push_str("\\n"),
            b'\t' => out.push('→'),
            b'\\' => out.push_str("\\\\"),
            byte @ b' '..=b'~' => out.push(char::from(byte)),
            byte => out.push_str(&format!("\\x{byte:02x}")),
        }
        at += 1;
    }
    if bytes.len() > bytes_max {
        out.push_str(&format!("… ({} bytes)", bytes.len()));
    }
    out
}

/// Writes a script back in the notation.
pub fn show_script(script: &Script, bytes_max: usize) -> String {
    script
        .iter()
        .map(|step| match step {
            Step::Bytes(bytes) => show(bytes, bytes_max),
            Step::Wait => "{wait}".into(),
            Step::Eof => "{eof}".into(),
            Step::Reset => "{rst}".into(),
        })
        .collect()
}

/// Bytes of all steps together.
pub fn script_bytes(script: &Script) -> usize {
    script.iter().map(|step| if let Step::Bytes(bytes) = step { bytes.len() } else { 0 }).sum()
}

/// Appends bytes to a script's last bytes, or as a new step.
pub fn push_bytes(script: &mut Script, more: &[u8]) {
    match script.back_mut() {
        Some(Step::Bytes(bytes)) => bytes.extend_from_slice(more),
        _ => script.push_back(Step::Bytes(more.to_vec())),
    }
}

struct Reader<'a> {
    names: &'a Names,
    /// The iteration of each repetition around us, innermost last.
    counters: Vec<usize>,
    depth: usize,
}

/// Macros may hold macros, not themselves.
const DEPTH_MAX: usize = 8;

impl Reader<'_> {
    fn read(&mut self, text: &str, out: &mut Script) -> Result<(), String> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(format!("nested too deeply at {text:?}"));
        }
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            rest = &rest[c.len_utf8()..];
            match c {
                '¶' => push_bytes(out, b"\r\n"),
                '·' => push_bytes(out, b" "),
                '→' => push_bytes(out, b"\t"),
                '\\' => rest = read_escape(rest, out)?,
                '{' => {
                    let end = closing_brace(rest).ok_or_else(|| format!("no }} after {{{rest:?}"))?;
                    self.read_braces(&rest[..end], out)?;
                    rest = &rest[end + 1..];
                }
                '}' => return Err(format!("stray }} before {rest:?}")),
                c if c.is_ascii() => push_bytes(out, &[c as u8]),
                c => return Err(format!("{c:?} is not in the notation: write its bytes as \\xNN")),
            }
        }
        self.depth -= 1;
        Ok(())
    }

    fn read_braces(&mut self, inner: &str, out: &mut Script) -> Result<(), String> {
        match inner {
            "wait" => out.push_back(Step::Wait),
            "eof" => out.push_back(Step::Eof),
            "rst" => out.push_back(Step::Reset),
            "n" => push_bytes(out, format!("{:06}", self.names.run).as_bytes()),
            "o" => push_bytes(out, self.names.forwarded_to.as_deref().unwrap_or("o.test").as_bytes()),
            "via" => push_bytes(out, self.names.via.as_bytes()),
            "i" => {
                let count = self.counters.last().ok_or("{i} outside of a repetition")?;
                push_bytes(out, count.to_string().as_bytes());
            }
            _ => {
                if let Some(name) = inner.strip_prefix("#x") {
                    let bytes = read_bytes(&format!("{{{name}}}"), self.names)?;
                    push_bytes(out, format!("{:x}", bytes.len()).as_bytes());
                } else if let Some(name) = inner.strip_prefix('#') {
                    let bytes = read_bytes(&format!("{{{name}}}"), self.names)?;
                    push_bytes(out, bytes.len().to_string().as_bytes());
                } else if let Some((_, text)) = MACROS.iter().find(|(name, _)| *name == inner) {
                    let target = self.names.forwarded_to.as_ref().map(|origin| format!(" http://{origin}/"));
                    match target.filter(|_| text.starts_with("GET /") || text.starts_with("POST /")) {
                        Some(target) => self.read(&text.replacen(" /", &target, 1), out)?,
                        None => self.read(text, out)?,
                    }
                } else if let Some((head, payload)) = frame_notation::split(inner) {
                    let payload = self.read_plain(payload)?;
                    push_bytes(out, &frame_notation::frame(head, &payload, self.counters.last().copied())?);
                } else if let Some((form, name, value)) = frame_notation::split_line(inner) {
                    let (name, value) = (self.read_plain(name)?, self.read_plain(value)?);
                    push_bytes(out, &frame_notation::line(form, &name, &value));
                } else if let Some(number) = inner.strip_prefix("u32 ") {
                    let number: u32 = number.parse().map_err(|_| format!("{number:?} has no 32 bits"))?;
                    push_bytes(out, &number.to_be_bytes());
                } else if let Some((text, count)) = inner.rsplit_once('*') {
                    self.repeat(text, count, out)?;
                } else {
                    return Err(format!("{{{inner}}} is neither a macro nor a repetition"));
                }
            }
        }
        Ok(())
    }

    /// Text that must be bytes only.
    fn read_plain(&mut self, text: &str) -> Result<Vec<u8>, String> {
        let mut script = Script::new();
        self.read(text, &mut script)?;
        match (script.pop_front(), script.pop_front()) {
            (None, _) => Ok(Vec::new()),
            (Some(Step::Bytes(bytes)), None) => Ok(bytes),
            _ => Err(format!("{text:?} pauses, but only bytes can stand here")),
        }
    }

    fn repeat(&mut self, text: &str, count: &str, out: &mut Script) -> Result<(), String> {
        let count: usize = count.parse().map_err(|_| format!("{count:?} is no number of repetitions"))?;
        if !["{i}", "{wait}", "+i"].iter().any(|changes| text.contains(changes)) {
            let mut once = Script::new();
            self.read(text, &mut once)?;
            let Some(Step::Bytes(bytes)) = once.front() else { return Err(format!("nothing to repeat in {text:?}")) };
            push_bytes(out, &bytes.repeat(count));
            return Ok(());
        }
        for i in 0..count {
            self.counters.push(i);
            self.read(text, out)?;
            self.counters.pop();
        }
        Ok(())
    }
}

/// Reads what follows a backslash; returns the rest.
fn read_escape<'t>(rest: &'t str, out: &mut Script) -> Result<&'t str, String> {
    let c = rest.chars().next().ok_or("a backslash at the end")?;
    let byte = match c {
        'r' => b'\r',
        'n' => b'\n',
        't' => b'\t',
        '0' => 0,
        '\\' | '"' | '\'' | '{' | '}' => c as u8,
        'x' => {
            let hex = rest.get(1..3).ok_or("\\x needs two digits")?;
            push_bytes(out, &[u8::from_str_radix(hex, 16).map_err(|_| format!("\\x{hex} is not hexadecimal"))?]);
            return Ok(&rest[3..]);
        }
        _ => return Err(format!("\\{c} is not in the notation")),
    };
    push_bytes(out, &[byte]);
    Ok(&rest[c.len_utf8()..])
}

/// Where the brace that is open at the start is closed.
fn closing_brace(text: &str) -> Option<usize> {
    let mut depth = 1;
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: &[u8]) {
        let names = Names { run: 7, via: "1.1 me".into(), forwarded_to: None };
        assert_eq!(read_bytes(text, &names).as_deref(), Ok(expect), "{text}");
    }

    #[test]
    fn text_stands_for_bytes() {
        check("a¶·→b", b"a\r\n \tb");
        check(r"\r\n\0\t\\\{\}\xff\x0B", b"\r\n\0\t\\{}\xff\x0b");
        check("{ab*3}c{d*0}", b"abababc");
        check("{{a*2}¶*2}", b"aa\r\naa\r\n");
        check("{x{i};*3}", b"x0;x1;x2;");
        check("/g{n} {via}", b"/g000007 1.1 me");
        check("{#S}{#xS}", b"462e");
        check("{M}", b"GET /marker000007 HTTP/1.1\r\nHost: t.test\r\n\r\n");
    }

    #[test]
    fn pauses_are_steps() {
        let script = read("a{wait}b{eof}", &Names::default());
        let expect = [Step::Bytes(b"a".into()), Step::Wait, Step::Bytes(b"b".into()), Step::Eof];
        assert_eq!(script, Ok(Script::from(expect)));
    }

    #[test]
    fn what_is_not_the_notation_is_an_error() {
        for text in ["é", r"\q", "{Q}", "{a*x}", "a}", "{a", r"\xg0", "{i}"] {
            assert!(read(text, &Names::default()).is_err(), "{text}");
        }
    }

    #[test]
    fn bytes_are_shown_as_they_are_written() {
        assert_eq!(show(b"a \r\n\r\n\0\xff\t", 99), r"a ¶¶\x00\xff→");
        assert_eq!(show(b"abc", 2), "ab… (3 bytes)");
    }
}
