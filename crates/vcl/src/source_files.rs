//! The files of one program: their names, their bytes, and places in them.
//!
//! The first file is the one that was asked for; the others came by `include`. Who reads a disk, and where an included
//! name is looked for, is the caller's affair: it hands in an `Includes`. VCL is bytes, not text; only what is shown
//! to people is made into text.

/// A file of the program, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(pub u16);

/// Bytes `start..end` of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Span {
    pub file: FileId,
    pub start: u32,
    pub end: u32,
}

impl Span {
    /// From the start of this to the end of the other; this alone when the other is in another file.
    pub fn to(self, end: Span) -> Span {
        if self.file == end.file && end.end >= self.start { Span { end: end.end, ..self } } else { self }
    }

    /// The place right after it.
    pub fn after(self) -> Span {
        Span { start: self.end, ..self }
    }
}

/// What an `include` statement asks for.
#[derive(Clone, Copy, Debug)]
pub struct IncludeRequest<'a> {
    /// The name as it is written.
    pub written: &'a str,
    /// The name of the file that includes, as the caller gave it.
    pub from: &'a str,
    /// `include +glob`: the name is a pattern, and any number of files is meant.
    pub glob: bool,
}

/// A file that was found.
#[derive(Clone, Debug)]
pub struct Included {
    /// The same for the same file, so that a circle of inclusions is noticed.
    pub name: String,
    pub bytes: Vec<u8>,
}

/// Finds included files.
pub trait Includes {
    /// The files meant, in order; or why there are none, with the places where they were looked for.
    fn find(&self, request: &IncludeRequest<'_>) -> Result<Vec<Included>, String>;
}

/// For texts that stand alone.
pub struct NoIncludes;

impl Includes for NoIncludes {
    fn find(&self, _: &IncludeRequest<'_>) -> Result<Vec<Included>, String> {
        Err("files cannot be included here".to_owned())
    }
}

/// One file of the program.
#[derive(Clone, Debug)]
pub struct SourceFile {
    pub name: String,
    pub bytes: Vec<u8>,
    line_starts: Vec<u32>,
}

/// All files of the program.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    files: Vec<SourceFile>,
}

/// A place as people count: lines and columns from 1, columns in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    pub line: usize,
    pub column: usize,
}

impl Sources {
    pub fn add(&mut self, name: impl Into<String>, bytes: Vec<u8>) -> FileId {
        let ends = bytes.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(at, _)| at as u32 + 1);
        let line_starts = std::iter::once(0).chain(ends).collect();
        self.files.push(SourceFile { name: name.into(), bytes, line_starts });
        FileId(self.files.len() as u16 - 1)
    }

    pub fn files(&self) -> &[SourceFile] {
        &self.files
    }

    pub fn file(&self, id: FileId) -> &SourceFile {
        &self.files[id.0 as usize]
    }

    pub fn bytes(&self, span: Span) -> &[u8] {
        &self.file(span.file).bytes[span.start as usize..span.end as usize]
    }

    pub fn text(&self, span: Span) -> String {
        String::from_utf8_lossy(self.bytes(span)).into_owned()
    }

    pub fn position(&self, span: Span) -> Position {
        let file = self.file(span.file);
        let line = file.line_starts.partition_point(|start| *start <= span.start);
        let before = &file.bytes[file.line_starts[line - 1] as usize..span.start as usize];
        #[cfg(test)]
        crate::effort::spend(before.len());
        Position { line, column: String::from_utf8_lossy(before).chars().count() + 1 }
    }

    /// `name:line:column`.
    pub fn show_place(&self, span: Span) -> String {
        let position = self.position(span);
        format!("{}:{}:{}", self.file(span.file).name, position.line, position.column)
    }

    /// Without the way through the line that `position` goes.
    pub fn begins_line(&self, span: Span) -> bool {
        self.file(span.file).line_starts.binary_search(&span.start).is_ok()
    }

    /// The line in which the span begins, without its end.
    pub fn line(&self, span: Span) -> Span {
        let file = self.file(span.file);
        let line = file.line_starts.partition_point(|start| *start <= span.start);
        let start = file.line_starts[line - 1];
        let mut end = file.line_starts.get(line).map_or(file.bytes.len() as u32, |next| next - 1);
        if end > start && file.bytes[end as usize - 1] == b'\r' {
            end -= 1;
        }
        Span { file: span.file, start, end: end.max(span.start.min(file.bytes.len() as u32)) }
    }

    /// Whether the two places are in one line of one file.
    pub fn same_line(&self, a: Span, b: Span) -> bool {
        a.file == b.file && !self.file(a.file).bytes[a.end.min(b.start) as usize..b.start as usize].contains(&b'\n')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_characters() {
        let mut sources = Sources::default();
        let file = sources.add("a.vcl", "one\r\n\u{e9}\u{e9} x\n".as_bytes().to_vec());
        let check = |start, line, column| {
            assert_eq!(sources.position(Span { file, start, end: start }), Position { line, column }, "{start}");
        };
        check(0, 1, 1);
        check(5, 2, 1);
        check(10, 2, 4);
        check(12, 3, 1);
        assert_eq!(sources.text(sources.line(Span { file, start: 1, end: 2 })), "one");
        assert_eq!(sources.text(sources.line(Span { file, start: 10, end: 11 })), "\u{e9}\u{e9} x");
    }
}
