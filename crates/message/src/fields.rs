//! The ordered fields of a message: one block of bytes and a list of ranges into it.
//!
//! Fields of our own lie in it as they are written on the wire, `Name: value` and a line end, so that many of them are
//! written by one copy. Reading never allocates. Editing appends to the block and changes the list; what was in the block stays
//! where it is, so a view of a received head and an edited copy of it have the same shape.

use crate::FieldName;
use crate::field_marks::{FieldMark, is_named, may_be_as_long, name_of, span_of};
use crate::plain_text::{DIGITS_MAX, decimal};

/// Where one field lies in its block.
#[derive(Clone, Copy, Debug)]
pub struct FieldSpan {
    pub name: FieldName,
    pub name_len: u16,
    pub name_at: u32,
    pub value_at: u32,
    pub value_len: u32,
}

/// One field: its name as sent, and its value without surrounding whitespace.
#[derive(Clone, Copy, Debug)]
pub struct Field<'a> {
    pub name: FieldName,
    pub name_text: &'a [u8],
    pub value: &'a [u8],
}

/// A field of which the name is known and the texts are looked up when they are asked for.
#[derive(Clone, Copy, Debug)]
pub struct FieldAt<'a, 'v> {
    pub name: FieldName,
    view: &'v FieldsView<'a>,
    span: FieldSpan,
}

impl<'a> FieldAt<'a, '_> {
    #[inline]
    pub fn field(self) -> Field<'a> {
        self.view.field(&self.span)
    }
}

/// Fields that somebody else owns.
#[derive(Clone, Copy, Debug, Default)]
pub struct FieldsView<'a> {
    block: &'a [u8],
    places: Places<'a>,
}

/// Where the fields lie in their block.
#[derive(Clone, Copy, Debug)]
enum Places<'a> {
    Anywhere(&'a [FieldSpan]),
    /// Each as a line: its name, a colon and a blank, its value, CR and LF.
    Lines(&'a [FieldSpan]),
    /// The same.
    Marked(&'a [FieldMark]),
}

/// One after the other.
#[derive(Clone, Debug)]
enum Spans<'a> {
    Plain(std::slice::Iter<'a, FieldSpan>),
    Marked(std::slice::Iter<'a, FieldMark>, &'a [u8]),
}

impl Iterator for Spans<'_> {
    type Item = FieldSpan;

    #[inline]
    fn next(&mut self) -> Option<FieldSpan> {
        match self {
            Spans::Plain(spans) => spans.next().copied(),
            Spans::Marked(marks, text) => marks.next().map(|mark| span_of(mark, text)),
        }
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        let len = match self {
            Spans::Plain(spans) => spans.len(),
            Spans::Marked(marks, _) => marks.len(),
        };
        (len, Some(len))
    }

    #[inline]
    fn fold<B, F: FnMut(B, FieldSpan) -> B>(self, start: B, mut add: F) -> B {
        match self {
            Spans::Plain(spans) => spans.fold(start, |sum, span| add(sum, *span)),
            Spans::Marked(marks, text) => marks.fold(start, |sum, mark| add(sum, span_of(mark, text))),
        }
    }
}

impl ExactSizeIterator for Spans<'_> {}

impl Default for Places<'_> {
    fn default() -> Self {
        Places::Anywhere(&[])
    }
}

/// Between name and value, and behind the value, where a field lies in its block as a line.
const LINE_PARTS: (&[u8], &[u8]) = (b": ", b"\r\n");

impl<'a> FieldsView<'a> {
    /// `spans` must have been made for `block`; a range outside it panics when it is read.
    pub fn new(block: &'a [u8], spans: &'a [FieldSpan]) -> FieldsView<'a> {
        FieldsView { block, places: Places::Anywhere(spans) }
    }

    /// The same, of a block in which each field lies as a line, by the marks that were made for it.
    #[inline]
    pub fn marked(block: &'a [u8], marks: &'a [FieldMark]) -> FieldsView<'a> {
        FieldsView { block, places: Places::Marked(marks) }
    }

    #[inline]
    fn spans(&self) -> Spans<'a> {
        match self.places {
            Places::Anywhere(spans) | Places::Lines(spans) => Spans::Plain(spans.iter()),
            Places::Marked(marks) => Spans::Marked(marks.iter(), self.block),
        }
    }

    #[inline]
    fn field(&self, span: &FieldSpan) -> Field<'a> {
        let at = |from: u32, len: u32| &self.block[from as usize..from as usize + len as usize];
        Field {
            name: span.name,
            name_text: at(span.name_at, u32::from(span.name_len)),
            value: at(span.value_at, span.value_len),
        }
    }

    /// In the order in which they arrived.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = Field<'a>> + Clone + use<'a> {
        let view = *self;
        self.spans().map(move |span| view.field(&span))
    }

    /// Writes the fields that are wanted as lines: `Name: value`, CR and LF.
    #[inline]
    pub fn write_lines(&self, out: &mut Vec<u8>, mut wants: impl FnMut(FieldAt<'a, '_>) -> bool) {
        let (colon, end) = LINE_PARTS;
        // Lines that lie behind one another go out together.
        let mut run = 0..0;
        let is_lines = !matches!(self.places, Places::Anywhere(_));
        for span in self.spans() {
            if !wants(FieldAt { name: span.name, view: self, span }) {
                continue;
            }
            if !is_lines {
                let field = self.field(&span);
                [field.name_text, colon, field.value, end].iter().for_each(|part| out.extend_from_slice(part));
                continue;
            }
            let line = span.name_at as usize..(span.value_at + span.value_len) as usize + end.len();
            if line.start != run.end {
                out.extend_from_slice(&self.block[run]);
                run = line.start..line.start;
            }
            run.end = line.end;
        }
        out.extend_from_slice(&self.block[run]);
    }

    /// The names alone, in the same order: for questions that need no text.
    #[inline]
    pub fn names(&self) -> impl Iterator<Item = FieldName> + use<'a> {
        let (spans, marks): (&[FieldSpan], &[FieldMark]) = match self.places {
            Places::Anywhere(spans) | Places::Lines(spans) => (spans, &[]),
            Places::Marked(marks) => (&[], marks),
        };
        spans.iter().map(|span| span.name).chain(marks.iter().map(name_of))
    }

    pub fn count(&self) -> usize {
        self.spans().len()
    }

    /// The first value of a known field.
    #[inline]
    pub fn get(&self, name: FieldName) -> Option<&'a [u8]> {
        let span = match self.places {
            Places::Anywhere(spans) | Places::Lines(spans) => *spans.iter().find(|span| span.name == name)?,
            Places::Marked(marks) => span_of(marks.iter().find(|mark| is_named(mark, name))?, self.block),
        };
        Some(self.field(&span).value)
    }

    /// The first value of the field with this name, which is classified already.
    #[inline]
    pub fn get_named(&self, known: FieldName, text: &[u8]) -> Option<&'a [u8]> {
        if known != FieldName::Other {
            return self.get(known);
        }
        let is_it = |span: &FieldSpan| {
            let name_text = self.field(span).name_text;
            name_text == text || name_text.eq_ignore_ascii_case(text)
        };
        let is_other = |span: &&FieldSpan| span.name == FieldName::Other && usize::from(span.name_len) == text.len();
        let span = match self.places {
            Places::Anywhere(spans) | Places::Lines(spans) => {
                *spans.iter().filter(is_other).find(|span| is_it(span))?
            }
            Places::Marked(marks) => {
                let others = marks.iter().filter(|mark| is_named(mark, known) && may_be_as_long(mark, text.len()));
                others.map(|mark| span_of(mark, self.block)).find(is_it)?
            }
        };
        Some(self.field(&span).value)
    }

    /// Every value of a known field.
    #[inline]
    pub fn get_all(&self, name: FieldName) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let view = *self;
        self.spans().filter(move |span| span.name == name).map(move |span| view.field(&span).value)
    }

    #[inline]
    pub fn contains(&self, name: FieldName) -> bool {
        match self.places {
            Places::Anywhere(spans) | Places::Lines(spans) => spans.iter().any(|span| span.name == name),
            Places::Marked(marks) => marks.iter().any(|mark| is_named(mark, name)),
        }
    }

    /// Every value of the field with this name, known or not; without case.
    pub fn get_all_named<'n>(&self, name: &'n [u8]) -> impl Iterator<Item = &'a [u8]> + Clone + use<'a, 'n> {
        self.iter().filter(move |field| field.name_text.eq_ignore_ascii_case(name)).map(|field| field.value)
    }

    /// The members of a list-valued field over all its lines (RFC 9110 §5.6.1): split at commas outside quoted
    /// strings, trimmed, empty ones left out.
    pub fn members(&self, name: FieldName) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.get_all(name).flat_map(list_members)
    }

    /// Is the token among the members? Without case.
    pub fn has_token(&self, name: FieldName, token: &str) -> bool {
        self.members(name).any(|member| member.eq_ignore_ascii_case(token.as_bytes()))
    }

    /// How many bytes its fields have as lines.
    pub fn lines_bytes(&self) -> usize {
        let around = LINE_PARTS.0.len() + LINE_PARTS.1.len();
        self.spans().map(|span| usize::from(span.name_len) + span.value_len as usize + around).sum()
    }

    pub fn to_fields(&self) -> Fields {
        self.to_fields_with_room(1, 0)
    }

    /// The same, with room for so many more lines of so many bytes.
    pub fn to_fields_with_room(&self, more_lines: usize, more_bytes: usize) -> Fields {
        // One allocation each for block and ranges: heads are copied for every miss and pass.
        let mut fields = Fields::with_room(self.count() + more_lines, self.lines_bytes() + more_bytes);
        for field in self.iter() {
            fields.push_bytes(field.name, field.name_text, field.value);
        }
        fields
    }
}

/// The members of one list value.
pub fn list_members(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(value);
    std::iter::from_fn(move || {
        loop {
            let text = rest?;
            let end = member_end(text);
            rest = text.get(end + 1..);
            let member = text[..end].trim_ascii();
            if !member.is_empty() {
                return Some(member);
            }
        }
    })
}

/// The place of the first comma outside a quoted string, or the end.
fn member_end(text: &[u8]) -> usize {
    let (mut quoted, mut escaped) = (false, false);
    for (at, &byte) in text.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b',' if !quoted => return at,
            _ => {}
        }
    }
    text.len()
}

/// Fields that we own and may edit.
#[derive(Clone, Debug, Default)]
pub struct Fields {
    block: Vec<u8>,
    spans: Vec<FieldSpan>,
}

impl Fields {
    /// None yet, with room for so many lines that have so many bytes together ([`FieldsView::lines_bytes`]).
    pub fn with_room(lines: usize, bytes: usize) -> Fields {
        Fields { block: Vec::with_capacity(bytes), spans: Vec::with_capacity(lines) }
    }

    /// Appends copies of all fields of another head.
    pub fn append(&mut self, others: &Fields) {
        let shift = u32::try_from(self.block.len()).expect("a head is limited far below 4 GiB");
        self.block.extend_from_slice(&others.block);
        let moved =
            |span: &FieldSpan| FieldSpan { name_at: span.name_at + shift, value_at: span.value_at + shift, ..*span };
        self.spans.extend(others.spans.iter().map(moved));
    }

    #[inline]
    pub fn view(&self) -> FieldsView<'_> {
        FieldsView { block: &self.block, places: Places::Lines(&self.spans) }
    }

    /// Appends a known field. The caller vouches for the value: no CR, LF or NUL.
    pub fn push(&mut self, name: FieldName, value: impl AsRef<[u8]>) {
        self.push_bytes(name, name.canonical().as_bytes(), value.as_ref());
    }

    /// Appends a known field whose value comes in parts, under the same terms.
    pub fn push_joined(&mut self, name: FieldName, parts: &[&[u8]]) {
        let text = name.canonical().as_bytes();
        let (name_at, value_at) = (self.block.len(), self.block.len() + text.len() + LINE_PARTS.0.len());
        self.block.extend_from_slice(text);
        self.block.extend_from_slice(LINE_PARTS.0);
        parts.iter().for_each(|part| self.block.extend_from_slice(part));
        let value_len = self.block.len() - value_at;
        self.block.extend_from_slice(LINE_PARTS.1);
        self.note_line(name, text.len(), [name_at, value_at, value_len]);
    }

    /// Appends a known field whose value is a number.
    pub fn push_number(&mut self, name: FieldName, value: u64) {
        self.push_joined(name, &[decimal(&mut [0; DIGITS_MAX], value)]);
    }

    /// Appends a field whose name need not be a known one.
    pub fn push_named(&mut self, name: &[u8], value: &[u8]) {
        self.push_bytes(FieldName::classify(name), name, value);
    }

    /// Appends a copy of somebody else's field.
    #[inline]
    pub fn push_field(&mut self, field: &Field<'_>) {
        self.push_bytes(field.name, field.name_text, field.value);
    }

    fn push_bytes(&mut self, name: FieldName, text: &[u8], value: &[u8]) {
        debug_assert!(!text.is_empty() && !value.iter().any(|b| matches!(b, b'\r' | b'\n' | 0)));
        let name_at = self.block.len();
        self.block.extend_from_slice(text);
        self.block.extend_from_slice(LINE_PARTS.0);
        let value_at = self.block.len();
        self.block.extend_from_slice(value);
        self.block.extend_from_slice(LINE_PARTS.1);
        self.note_line(name, text.len(), [name_at, value_at, value.len()]);
    }

    #[inline]
    fn note_line(&mut self, name: FieldName, name_len: usize, [name_at, value_at, value_len]: [usize; 3]) {
        let small = |n: usize| u32::try_from(n).expect("a head is limited far below 4 GiB");
        self.spans.push(FieldSpan {
            name,
            name_len: u16::try_from(name_len).expect("a field name is limited below 64 KiB"),
            name_at: small(name_at),
            value_at: small(value_at),
            value_len: small(value_len),
        });
    }

    /// Removes every field of that name, then appends this one.
    pub fn set(&mut self, name: FieldName, value: impl AsRef<[u8]>) {
        self.remove(name);
        self.push(name, value);
    }

    /// Removes all, and keeps the room.
    pub fn clear(&mut self) {
        self.block.clear();
        self.spans.clear();
    }

    pub fn remove(&mut self, name: FieldName) {
        self.spans.retain(|span| span.name != name);
    }

    /// Keeps the fields the predicate says yes to.
    pub fn retain(&mut self, mut keep: impl FnMut(Field<'_>) -> bool) {
        let block = std::mem::take(&mut self.block);
        self.spans.retain(|span| keep(FieldsView { block: &block, ..FieldsView::default() }.field(span)));
        self.block = block;
    }

    /// Keeps the fields whose names the predicate says yes to.
    pub fn retain_names(&mut self, mut keep: impl FnMut(FieldName) -> bool) {
        self.spans.retain(|span| keep(span.name));
    }

    /// Bytes on the heap, for the store's account.
    pub fn heap_bytes(&self) -> usize {
        self.block.capacity() + self.spans.capacity() * size_of::<FieldSpan>()
    }

    /// Gives back what the edits left unused.
    pub fn shrink(&mut self) {
        *self = self.view().to_fields();
        self.block.shrink_to_fit();
        self.spans.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Fields {
        let mut fields = Fields::default();
        fields.push_named(b"vary", b"Accept, \"a,b\" ,, X");
        fields.push(FieldName::Vary, "Y");
        fields.push_named(b"X-Own", b"\xa0v");
        fields
    }

    #[test]
    fn lists_run_over_lines_and_keep_quoted_commas() {
        let fields = sample();
        let members: Vec<_> = fields.view().members(FieldName::Vary).collect();
        assert_eq!(members, [&b"Accept"[..], b"\"a,b\"", b"X", b"Y"]);
        assert!(fields.view().has_token(FieldName::Vary, "x"));
    }

    #[test]
    fn editing_keeps_order_and_bytes() {
        let mut fields = sample();
        fields.set(FieldName::Vary, "Z");
        fields.shrink();
        let all: Vec<_> = fields.view().iter().map(|f| (f.name_text.to_vec(), f.value.to_vec())).collect();
        assert_eq!(all, [(b"X-Own".to_vec(), b"\xa0v".to_vec()), (b"Vary".to_vec(), b"Z".to_vec())]);
        assert_eq!(fields.view().get_all_named(b"x-OWN").count(), 1);
    }

    #[test]
    fn a_value_may_come_in_parts_or_be_a_number() {
        let mut fields = Fields::default();
        fields.push_joined(FieldName::Via, &[b"1.1", b" ", b"larder"]);
        fields.push_number(FieldName::Age, 70);
        assert_eq!(
            (fields.view().get(FieldName::Via), fields.view().get(FieldName::Age)),
            (Some(&b"1.1 larder"[..]), Some(&b"70"[..]))
        );
        let mut out = Vec::new();
        fields.view().write_lines(&mut out, |_| true);
        assert_eq!(out, b"Via: 1.1 larder\r\nAge: 70\r\n");
    }

    #[test]
    fn fields_are_appended_behind_those_that_are_there() {
        let (mut fields, others) = (Fields::with_room(1, 8), sample());
        fields.push_named(b"X-First", b"1");
        fields.append(&others);
        let line = |field: Field<'_>| (field.name, field.name_text.to_vec(), field.value.to_vec());
        let expect: Vec<_> = [(FieldName::Other, b"X-First".to_vec(), b"1".to_vec())]
            .into_iter()
            .chain(others.view().iter().map(line))
            .collect();
        assert_eq!(fields.view().iter().map(line).collect::<Vec<_>>(), expect);
        assert_eq!(others.view().lines_bytes(), others.block.len());
    }

    #[test]
    fn lines_are_written_one_or_many_at_a_time() {
        let owned = sample();
        // As they may be received: other blanks between.
        let block = b"vary:Accept, \"a,b\" ,, X  Vary:\t Y X-Own:\xa0v";
        let at = |text: &[u8]| block.windows(text.len()).position(|part| part == text).expect("it is there") as u32;
        let span = |field: Field<'_>| FieldSpan {
            name: field.name,
            name_len: field.name_text.len() as u16,
            name_at: at(field.name_text),
            value_at: at(field.value),
            value_len: field.value.len() as u32,
        };
        let spans: Vec<FieldSpan> = owned.view().iter().map(span).collect();
        let lines = ["vary: Accept, \"a,b\" ,, X\r\n", "Vary: Y\r\n", "X-Own: \u{fffd}v\r\n"];
        for (view, wanted) in
            (0..8).flat_map(|wanted| [owned.view(), FieldsView::new(block, &spans)].map(|v| (v, wanted)))
        {
            let is_wanted = |at: usize| wanted >> at & 1 == 1;
            let (mut out, mut at) = (Vec::new(), 0);
            view.write_lines(&mut out, |_| (is_wanted(at), at += 1).0);
            let expect: String = (0..3).filter(|&at| is_wanted(at)).map(|at| lines[at]).collect();
            assert_eq!(String::from_utf8_lossy(&out), expect, "{wanted:b}");
        }
    }
}
