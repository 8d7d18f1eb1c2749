//! A header block of HPACK (RFC 7541 §6), decoded line by line into text that the caller owns.
//!
//! Lines are counted, and their sizes summed, before anything of them is kept. When a list has become too large
//! the rest of its block is decoded all the same, and dropped: the dynamic table must follow the peer's. What a line means
//! is the business of the closure that it is given to.

use super::dynamic_table::{DynamicTable, LineFacts};
use super::static_table::{LineName, STATIC_LINES_COUNT, STATIC_TABLE};
use super::{field_octets, huffman, prefix_integer};
use crate::limits::{HPACK_SIZE_UPDATES_MAX, HPACK_TABLE_BYTES_MAX};

/// A line in the text: its name, and right behind it its value.
#[derive(Clone, Copy, Debug)]
pub struct HeaderLine {
    pub at: usize,
    pub facts: LineFacts,
}

impl HeaderLine {
    #[inline]
    pub fn value_at(&self) -> usize {
        self.at + usize::from(self.facts.name_len)
    }

    #[inline]
    pub fn end(&self) -> usize {
        self.at + self.facts.text_bytes()
    }
}

/// What a list may come to.
#[derive(Clone, Copy, Debug)]
pub struct ListLimits {
    /// As RFC 9113 §6.5.2 counts: name, value, and 32 for each line.
    pub list_bytes_max: usize,
    pub lines_max: usize,
}

/// The list is larger than its limits; not all of its lines were given out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Excess {
    ListBytes,
    Lines,
}

/// The block cannot be decoded, and so no later one can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompressionFault {
    pub token: &'static str,
}

const fn fault(token: &'static str) -> CompressionFault {
    CompressionFault { token }
}

const CUT_OFF: CompressionFault = fault("hpack-cut-off");
const INTEGER: CompressionFault = fault("hpack-integer-invalid");
const INDEX: CompressionFault = fault("hpack-index-unknown");
const CODE: CompressionFault = fault("hpack-code-invalid");
const SIZE_UPDATE: CompressionFault = fault("hpack-size-update-invalid");
const NAME_TOO_LONG: CompressionFault = fault("hpack-name-too-long");

/// One direction of a connection.
#[derive(Debug)]
pub struct BlockDecoder {
    table: DynamicTable,
    /// Lines that had no place within their limits, since they were taken last.
    lines_over: u32,
}

/// What of a block is still to be read.
struct Unread<'b>(&'b [u8]);

impl<'b> Unread<'b> {
    #[inline]
    fn integer(&mut self, prefix: u32) -> Result<usize, CompressionFault> {
        let (value, used) = prefix_integer::read(self.0, prefix).ok_or(INTEGER)?;
        self.0 = &self.0[used..];
        Ok(value)
    }

    /// Appends a string's octets to `text`; says how many and of which kinds they are.
    #[inline]
    fn string(&mut self, text: &mut Vec<u8>) -> Result<(usize, u8), CompressionFault> {
        let is_coded = self.0.first().ok_or(CUT_OFF)? & 0x80 != 0;
        let length = self.integer(7)?;
        let (octets, rest) = self.0.split_at_checked(length).ok_or(CUT_OFF)?;
        self.0 = rest;
        if !is_coded {
            text.extend_from_slice(octets);
            return Ok((length, field_octets::kinds_of(octets)));
        }
        let from = text.len();
        let kinds = huffman::decode(octets, text).map_err(|_| CODE)?;
        Ok((text.len() - from, kinds))
    }
}

/// The lists so far, against their limits.
struct Budget {
    bytes_left: usize,
    lines_left: usize,
    excess: Option<Excess>,
    lines_over: u32,
}

impl Budget {
    /// Is there room for a line of this size?
    #[inline]
    fn admits(&mut self, size: usize) -> bool {
        let is_admitted = self.excess.is_none() && self.takes(size);
        self.lines_over += u32::from(!is_admitted);
        is_admitted
    }

    #[inline]
    fn takes(&mut self, size: usize) -> bool {
        match (self.bytes_left.checked_sub(size), self.lines_left.checked_sub(1)) {
            (Some(bytes), Some(lines)) => {
                (self.bytes_left, self.lines_left) = (bytes, lines);
                true
            }
            (_, None) => {
                self.excess = Some(Excess::Lines);
                false
            }
            (None, _) => {
                self.excess = Some(Excess::ListBytes);
                false
            }
        }
    }
}

impl Default for BlockDecoder {
    fn default() -> BlockDecoder {
        BlockDecoder::new()
    }
}

impl BlockDecoder {
    pub const fn new() -> BlockDecoder {
        BlockDecoder { table: DynamicTable::new(HPACK_TABLE_BYTES_MAX), lines_over: 0 }
    }

    pub fn heap_bytes(&self) -> usize {
        self.table.heap_bytes()
    }

    /// How many lines were decoded for the table's sake alone. Each may have been a byte, and is some work.
    pub fn take_lines_over(&mut self) -> u32 {
        std::mem::take(&mut self.lines_over)
    }

    /// Decodes a whole block, and appends the lines to `text`. `take` is given each with all of the text, and says whether the
    /// line stays in it.
    #[inline]
    pub fn decode(
        &mut self,
        block: &[u8],
        limits: ListLimits,
        text: &mut Vec<u8>,
        mut take: impl FnMut(HeaderLine, &[u8]) -> bool,
    ) -> Result<Option<Excess>, CompressionFault> {
        let mut budget =
            Budget { bytes_left: limits.list_bytes_max, lines_left: limits.lines_max, excess: None, lines_over: 0 };
        let mut unread = Unread(block);
        self.read_size_updates(&mut unread)?;
        while let Some(&first) = unread.0.first() {
            let at = text.len();
            let admitted = if first & 0x80 != 0 {
                self.read_indexed(&mut unread, text, &mut budget)?
            } else {
                self.read_literal(first, &mut unread, text, &mut budget)?
            };
            let is_kept = admitted.is_some_and(|facts| take(HeaderLine { at, facts }, text));
            if !is_kept {
                text.truncate(at);
            }
        }
        self.lines_over = self.lines_over.saturating_add(budget.lines_over);
        Ok(budget.excess)
    }

    /// RFC 7541 §4.2: they stand at the start of a block only.
    fn read_size_updates(&mut self, unread: &mut Unread<'_>) -> Result<(), CompressionFault> {
        let mut count = 0;
        while unread.0.first().is_some_and(|first| first & 0xe0 == 0x20) {
            count += 1;
            let size = unread.integer(5)?;
            if size > HPACK_TABLE_BYTES_MAX || count > HPACK_SIZE_UPDATES_MAX {
                return Err(SIZE_UPDATE);
            }
            self.table.set_size_max(size);
        }
        Ok(())
    }

    /// RFC 7541 §6.1. What it refers to is copied only when there is room.
    #[inline]
    fn read_indexed(
        &self,
        unread: &mut Unread<'_>,
        text: &mut Vec<u8>,
        budget: &mut Budget,
    ) -> Result<Option<LineFacts>, CompressionFault> {
        let index = unread.integer(7)?;
        let (facts, line_text) = self.line(index)?;
        if !budget.admits(facts.size()) {
            return Ok(None);
        }
        text.extend_from_slice(line_text);
        Ok(Some(facts))
    }

    /// RFC 7541 §6.2, of all three kinds.
    #[inline]
    fn read_literal(
        &mut self,
        first: u8,
        unread: &mut Unread<'_>,
        text: &mut Vec<u8>,
        budget: &mut Budget,
    ) -> Result<Option<LineFacts>, CompressionFault> {
        let is_indexed = first & 0x40 != 0;
        if !is_indexed && first & 0x20 != 0 {
            return Err(SIZE_UPDATE);
        }
        let at = text.len();
        let index = unread.integer(if is_indexed { 6 } else { 4 })?;
        let (name, name_len, name_kinds) = match index {
            0 => {
                let (length, kinds) = unread.string(text)?;
                let length = u16::try_from(length).map_err(|_| NAME_TOO_LONG)?;
                (LineName::classify(&text[at..]), length, kinds)
            }
            _ => {
                let (facts, line_text) = self.line(index)?;
                text.extend_from_slice(&line_text[..usize::from(facts.name_len)]);
                (facts.name, facts.name_len, facts.name_kinds)
            }
        };
        let (value_len, value_kinds) = unread.string(text)?;
        let facts = LineFacts { name, name_len, value_len: value_len as u32, name_kinds, value_kinds };
        if is_indexed {
            self.table.insert(facts, &text[at..]);
        }
        Ok(budget.admits(facts.size()).then_some(facts))
    }

    /// RFC 7541 §2.3.3.
    #[inline]
    fn line(&self, index: usize) -> Result<(LineFacts, &[u8]), CompressionFault> {
        let place = index.checked_sub(1).ok_or(INDEX)?;
        if let Some(line) = STATIC_TABLE.get(place) {
            let value_len = line.text.len() as u32 - u32::from(line.name_len);
            let facts =
                LineFacts { name: line.name, name_len: line.name_len, value_len, name_kinds: 0, value_kinds: 0 };
            return Ok((facts, line.text.as_bytes()));
        }
        self.table.line(place - STATIC_LINES_COUNT).ok_or(INDEX)
    }
}

#[cfg(test)]
#[path = "block_decoder_tests.rs"]
mod tests;
