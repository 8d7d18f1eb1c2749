//! The dynamic table of HPACK (RFC 7541 §2.3.2): the lines that a peer had us remember, newest first.
//!
//! Each is charged by the RFC's size, which is more than it takes here. Nothing is allocated before the first line comes.
//! What a line means is unknown here; what was found out about it when it came is kept with it, so that nothing of it
//! has to be looked at again.

use std::collections::VecDeque;

use super::static_table::LineName;
use crate::limits::HPACK_LINE_OVERHEAD_BYTES;

/// What is known of a line, wherever its text lies.
#[derive(Clone, Copy, Debug)]
pub struct LineFacts {
    pub name: LineName,
    pub name_len: u16,
    pub value_len: u32,
    /// Which kinds of octets are in its name, and in its value.
    pub name_kinds: u8,
    pub value_kinds: u8,
}

impl LineFacts {
    /// Name and value.
    #[inline]
    pub fn text_bytes(&self) -> usize {
        usize::from(self.name_len) + self.value_len as usize
    }

    /// RFC 7541 §4.1.
    #[inline]
    pub fn size(&self) -> usize {
        self.text_bytes() + HPACK_LINE_OVERHEAD_BYTES
    }
}

#[derive(Clone, Copy, Debug)]
struct TableLine {
    /// Where its text begins, counted in all the bytes that ever were in the table; it wraps around.
    at: u32,
    facts: LineFacts,
}

#[derive(Debug)]
pub struct DynamicTable {
    /// The texts of the lines, oldest first, and before them what is no longer wanted.
    text: Vec<u8>,
    /// What [`TableLine::at`] is at the start of `text`.
    text_at: u32,
    /// Oldest first.
    lines: VecDeque<TableLine>,
    size: usize,
    size_max: usize,
}

impl DynamicTable {
    pub const fn new(size_max: usize) -> DynamicTable {
        DynamicTable { text: Vec::new(), text_at: 0, lines: VecDeque::new(), size: 0, size_max }
    }

    /// The newest line is 0. Its name and value lie one behind the other.
    #[inline]
    pub fn line(&self, index: usize) -> Option<(LineFacts, &[u8])> {
        let newest = self.lines.len().checked_sub(1)?;
        let line = self.lines.get(newest.checked_sub(index)?)?;
        let from = line.at.wrapping_sub(self.text_at) as usize;
        Some((line.facts, self.text.get(from..from + line.facts.text_bytes())?))
    }

    /// Adds a line as the newest, and drops as many of the oldest as must go (RFC 7541 §4.4).
    pub fn insert(&mut self, facts: LineFacts, text: &[u8]) {
        debug_assert_eq!(text.len(), facts.text_bytes());
        self.shrink_to(self.size_max.saturating_sub(facts.size()));
        if facts.size() > self.size_max {
            return;
        }
        self.drop_unwanted_text();
        let at = self.text_at.wrapping_add(self.text.len() as u32);
        self.text.extend_from_slice(text);
        self.lines.push_back(TableLine { at, facts });
        self.size += facts.size();
    }

    /// RFC 7541 §4.3.
    pub fn set_size_max(&mut self, size_max: usize) {
        self.size_max = size_max;
        self.shrink_to(size_max);
    }

    /// What is allocated.
    pub fn heap_bytes(&self) -> usize {
        self.text.capacity() + self.lines.capacity() * size_of::<TableLine>()
    }

    fn shrink_to(&mut self, size: usize) {
        while self.size > size {
            let Some(oldest) = self.lines.pop_front() else { break };
            self.size -= oldest.facts.size();
        }
    }

    /// Moves the texts to the front when at least half of the bytes are no longer wanted, so that each is moved once.
    fn drop_unwanted_text(&mut self) {
        let Some(oldest) = self.lines.front() else {
            self.text.clear();
            return;
        };
        let unwanted = oldest.at.wrapping_sub(self.text_at) as usize;
        if unwanted * 2 >= self.text.len() && unwanted >= self.size_max / 2 {
            self.text.drain(..unwanted);
            self.text_at = oldest.at;
        }
    }
}

#[cfg(test)]
mod tests {
    use message::FieldName;

    use super::*;

    fn insert(table: &mut DynamicTable, name: &str, value: &str) {
        let facts = LineFacts {
            name: LineName::Field(FieldName::Other),
            name_len: name.len() as u16,
            value_len: value.len() as u32,
            name_kinds: 0,
            value_kinds: 0,
        };
        table.insert(facts, format!("{name}{value}").as_bytes());
    }

    fn texts(table: &DynamicTable) -> Vec<String> {
        let texts = (0..).map_while(|index| Some(String::from_utf8_lossy(table.line(index)?.1).into_owned()));
        texts.collect()
    }

    #[test]
    fn the_newest_line_is_the_first_and_the_oldest_go() {
        let mut table = DynamicTable::new(3 * 34);
        for value in ["1", "2", "3", "4"] {
            insert(&mut table, "a", value);
        }
        assert_eq!(texts(&table), ["a4", "a3", "a2"]);
        table.set_size_max(34);
        assert_eq!(texts(&table), ["a4"]);
    }

    /// RFC 7541 §4.4: a line that is larger than the table empties it.
    #[test]
    fn what_is_too_large_leaves_nothing() {
        let mut table = DynamicTable::new(40);
        insert(&mut table, "a", "1");
        insert(&mut table, "long-name", "and value");
        assert_eq!(texts(&table), Vec::<String>::new());
        insert(&mut table, "b", "2");
        assert_eq!(texts(&table), ["b2"]);
    }

    #[test]
    fn memory_is_bounded_however_many_lines_pass() {
        let mut table = DynamicTable::new(4096);
        assert_eq!(table.heap_bytes(), 0);
        for n in 0..100_000 {
            insert(&mut table, "name", &format!("{n}{}", "v".repeat(n % 700)));
            assert_eq!(table.line(0).map(|it| it.1.len()), Some(4 + n.to_string().len() + n % 700));
        }
        assert!(table.heap_bytes() < 32 << 10, "{}", table.heap_bytes());
    }

    #[test]
    fn positions_wrap_around() {
        let mut table = DynamicTable::new(200);
        table.text_at = u32::MAX - 5;
        for value in ["1", "22", "333", "4444"] {
            insert(&mut table, "a", value);
        }
        assert_eq!(texts(&table), ["a4444", "a333", "a22", "a1"]);
    }
}
