//! A gzip that was made by anybody, as a piece for a page in gzip: without its head and its end, its last block no longer marked as the
//! last, and filled up to a byte. Nothing is decoded for that; the codes are read, to find where the last block begins and ends.
//!
//! What was found of a gzip that is kept is [`GzipMarks`]: by them it is cut the next time without being read.

use crate::deflate_codes::{PrefixCode, SYMBOLS_MAX};
use crate::flaw::Flaw;
use crate::gzip_marks::{BLOCK_HEAD_BITS, GzipMarks, filled_up};
use crate::text_sum::TextSum;

/// In the head of a block: it is the last.
const LAST_BIT: u64 = 1;

/// Cuts one gzip, as it comes.
pub struct GzipCutter {
    state: CutState,
    /// What came and was not read yet.
    held: Vec<u8>,
    /// Bytes before that.
    behind: u64,
    /// Bits of it that were read.
    read_bits: u64,
    head_bytes: u64,
    last_bit: Option<u64>,
    end_bit: u64,
    /// How long the text is so far.
    length: u64,
    crc: u32,
}

/// What is read next.
enum CutState {
    Head,
    /// A text that ends with a zero, and what is left then of the flags.
    HeadText(u8),
    /// So many bytes, and what is left then of the flags.
    HeadSkip(u64, u8),
    BlockHead,
    StoredHead,
    Stored(u64),
    CodeCounts,
    Lengths(Box<CodeLengths>),
    Codes(Box<BlockCodes>),
    End,
    Over,
}

struct CodeLengths {
    literals: usize,
    distances: usize,
    /// Of the codes that say the lengths.
    order: usize,
    order_count: usize,
    order_lengths: [u8; 19],
    code: Option<PrefixCode>,
    lengths: [u8; 320],
    count: usize,
}

struct BlockCodes {
    literals: PrefixCode,
    distances: PrefixCode,
}

const ORDER: [usize; 19] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
const LENGTH_BASES: [u16; 29] =
    [3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258];
const LENGTH_EXTRA: [u8; 29] = [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0];
const DISTANCE_BASES: [u16; 30] = [
    1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145,
    8193, 12289, 16385, 24577,
];
const DISTANCE_EXTRA: [u8; 30] =
    [0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13];

const FLAG_CRC: u8 = 2;
const FLAG_EXTRA: u8 = 4;
const FLAG_NAME: u8 = 8;
const FLAG_COMMENT: u8 = 16;
const END_OF_BLOCK: u16 = 256;

/// The next bits of what is held, the lowest first.
#[derive(Clone, Copy)]
struct Bits {
    bits: u64,
    count: u32,
}

impl Bits {
    /// These, if there are so many.
    fn take(&mut self, count: u32) -> Option<u64> {
        if count > self.count {
            return None;
        }
        let taken = self.bits & ((1 << count) - 1);
        self.bits >>= count;
        self.count -= count;
        Some(taken)
    }

    /// The next symbol. `None`: there are too few bits; the error: it is none, of as many as there may be.
    fn symbol(&mut self, code: &PrefixCode) -> Result<Option<u16>, Flaw> {
        match code.symbol(self.bits) {
            Some((symbol, length)) if length <= self.count => {
                self.bits >>= length;
                self.count -= length;
                Ok(Some(symbol))
            }
            None if self.count >= 15 => Err(Flaw::Corrupt),
            _ => Ok(None),
        }
    }
}

impl Default for GzipCutter {
    fn default() -> GzipCutter {
        GzipCutter {
            state: CutState::Head,
            held: Vec::new(),
            behind: 0,
            read_bits: 0,
            head_bytes: 0,
            last_bit: None,
            end_bit: 0,
            length: 0,
            crc: 0,
        }
    }
}

impl GzipCutter {
    /// Takes all of these bytes, and appends what of them belongs to the piece.
    pub fn cut(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<(), Flaw> {
        self.held.extend_from_slice(input);
        while self.step()? {}
        self.move_on(out);
        if matches!(self.state, CutState::Over) && !self.held.is_empty() {
            return Err(Flaw::JunkBehind);
        }
        Ok(())
    }

    /// All has come: where it was cut, and what is to be added to a page's text. `None`: nothing at all has come, which is an empty text.
    pub fn finish(&self) -> Result<Option<GzipMarks>, Flaw> {
        match (&self.state, self.last_bit) {
            (CutState::Over, Some(last_bit)) => {
                let (head_bytes, end_bit) = (self.head_bytes, self.end_bit);
                Ok(Some(GzipMarks { head_bytes, last_bit, end_bit, sum: TextSum::new(self.crc, self.length) }))
            }
            (CutState::Head, _) if self.behind == 0 && self.held.is_empty() => Ok(None),
            _ => Err(Flaw::Truncated),
        }
    }

    /// Whole bytes that were read go out, or are dropped.
    fn move_on(&mut self, out: &mut Vec<u8>) {
        let read = (self.read_bits / 8) as usize;
        if read == 0 {
            return;
        }
        let (from, to) = (self.behind, self.behind + read as u64);
        // Blocks lie between the head and the byte in which the last ends.
        let begin = self.head_bytes.clamp(from, to) - from;
        let blocks_end = match self.state {
            CutState::End | CutState::Over => (self.end_bit / 8).clamp(from, to) - from,
            _ if self.head_bytes == 0 => begin,
            _ => read as u64,
        };
        out.extend_from_slice(&self.held[begin as usize..blocks_end as usize]);
        if self.end_bit & 7 != 0 && (from..to).contains(&(self.end_bit / 8)) {
            out.extend_from_slice(&filled_up(self.held[(self.end_bit / 8 - from) as usize], self.end_bit));
        }
        self.held.drain(..read);
        self.behind = to;
        self.read_bits -= 8 * read as u64;
    }

    /// Where we are, in bits from the beginning.
    fn at(&self) -> u64 {
        8 * self.behind + self.read_bits
    }

    fn bits(&self) -> Bits {
        let (at, shift) = ((self.read_bits / 8) as usize, (self.read_bits % 8) as u32);
        let held = &self.held[at.min(self.held.len())..];
        let (bits, bytes) = match held.first_chunk::<8>() {
            Some(bytes) => (u64::from_le_bytes(*bytes), 8),
            None => (held.iter().rev().fold(0, |bits, byte| (bits << 8) | u64::from(*byte)), held.len() as u32),
        };
        Bits { bits: bits >> shift, count: (8 * bytes).saturating_sub(shift) }
    }

    /// Of those that there were, so many are left.
    fn used(&mut self, before: Bits, left: Bits) {
        self.read_bits += u64::from(before.count - left.count);
    }

    /// Reads what is next. False: more has to come first.
    fn step(&mut self) -> Result<bool, Flaw> {
        match &mut self.state {
            CutState::Head => self.head(),
            CutState::HeadText(_) | CutState::HeadSkip(..) => Ok(self.head_fields()),
            CutState::BlockHead => self.block_head(),
            CutState::StoredHead => self.stored_head(),
            CutState::Stored(_) => Ok(self.stored()),
            CutState::CodeCounts => self.code_counts(),
            CutState::Lengths(_) => self.code_lengths(),
            CutState::Codes(_) => self.symbols(),
            CutState::End => self.end(),
            CutState::Over => Ok(false),
        }
    }

    fn head(&mut self) -> Result<bool, Flaw> {
        let Some(head) = self.held.first_chunk::<10>() else {
            let known = &[0x1f, 0x8b, 8][..self.held.len().min(3)];
            return if self.held.starts_with(known) { Ok(false) } else { Err(Flaw::Corrupt) };
        };
        let flags = head[3];
        if head[..3] != [0x1f, 0x8b, 8] || flags & 0xe0 != 0 {
            return Err(Flaw::Corrupt);
        }
        self.read_bits = 80;
        self.state = self.behind_flags(flags);
        Ok(true)
    }

    /// What comes next in a head of which these flags are left.
    fn behind_flags(&mut self, flags: u8) -> CutState {
        if flags & FLAG_EXTRA != 0 {
            return CutState::HeadSkip(u64::MAX, flags & !FLAG_EXTRA);
        }
        if flags & FLAG_NAME != 0 {
            return CutState::HeadText(flags & !FLAG_NAME);
        }
        if flags & FLAG_COMMENT != 0 {
            return CutState::HeadText(flags & !FLAG_COMMENT);
        }
        if flags & FLAG_CRC != 0 {
            return CutState::HeadSkip(2, flags & !FLAG_CRC);
        }
        self.head_bytes = self.at() / 8;
        CutState::BlockHead
    }

    fn head_fields(&mut self) -> bool {
        let before = self.bits();
        let mut bits = before;
        self.state = match self.state {
            CutState::HeadText(flags) => {
                let Some(byte) = bits.take(8) else { return false };
                self.used(before, bits);
                if byte != 0 { CutState::HeadText(flags) } else { self.behind_flags(flags) }
            }
            // The length of the extra field comes before it.
            CutState::HeadSkip(u64::MAX, flags) => {
                let Some(length) = bits.take(16) else { return false };
                self.used(before, bits);
                CutState::HeadSkip(length, flags)
            }
            CutState::HeadSkip(left, flags) => {
                let here = (self.held.len() as u64 - self.read_bits / 8).min(left);
                self.read_bits += 8 * here;
                if here < left {
                    self.state = CutState::HeadSkip(left - here, flags);
                    return false;
                }
                self.behind_flags(flags)
            }
            _ => return false,
        };
        true
    }

    fn block_head(&mut self) -> Result<bool, Flaw> {
        let before = self.bits();
        let mut bits = before;
        let Some(head) = bits.take(BLOCK_HEAD_BITS as u32) else { return Ok(false) };
        if head & LAST_BIT != 0 {
            self.last_bit = Some(self.at());
            let at = (self.read_bits / 8) as usize;
            self.held[at] &= !(1 << (self.read_bits & 7));
        }
        self.used(before, bits);
        self.state = match head >> 1 {
            0 => CutState::StoredHead,
            1 => CutState::Codes(Box::new(BlockCodes::fixed()?)),
            2 => CutState::CodeCounts,
            _ => return Err(Flaw::Corrupt),
        };
        Ok(true)
    }

    fn stored_head(&mut self) -> Result<bool, Flaw> {
        let (before, fill) = (self.bits(), (8 - (self.read_bits & 7)) & 7);
        let mut bits = before;
        if bits.take(fill as u32).is_none() {
            return Ok(false);
        }
        let Some(lengths) = bits.take(32) else { return Ok(false) };
        let (length, check) = (lengths & 0xffff, lengths >> 16);
        if length != !check & 0xffff {
            return Err(Flaw::Corrupt);
        }
        self.used(before, bits);
        self.length += length;
        self.state = CutState::Stored(length);
        Ok(true)
    }

    fn stored(&mut self) -> bool {
        let CutState::Stored(left) = self.state else { return false };
        let here = (self.held.len() as u64 - self.read_bits / 8).min(left);
        self.read_bits += 8 * here;
        self.state = CutState::Stored(left - here);
        let is_over = here == left;
        if is_over {
            self.end_block();
        }
        is_over
    }

    fn code_counts(&mut self) -> Result<bool, Flaw> {
        let before = self.bits();
        let mut bits = before;
        let Some(counts) = bits.take(14) else { return Ok(false) };
        self.used(before, bits);
        let (literals, distances) = (257 + (counts & 31) as usize, 1 + (counts >> 5 & 31) as usize);
        if literals > 286 || distances > 30 {
            return Err(Flaw::Corrupt);
        }
        self.state = CutState::Lengths(Box::new(CodeLengths {
            literals,
            distances,
            order: 0,
            order_count: 4 + (counts >> 10) as usize,
            order_lengths: [0; 19],
            code: None,
            lengths: [0; 320],
            count: 0,
        }));
        Ok(true)
    }

    fn code_lengths(&mut self) -> Result<bool, Flaw> {
        let before = self.bits();
        let mut bits = before;
        let CutState::Lengths(lengths) = &mut self.state else { return Ok(false) };
        let went_on = lengths.read(&mut bits)?;
        let codes = match lengths.count == lengths.literals + lengths.distances {
            true => Some(lengths.codes()?),
            false => None,
        };
        if went_on {
            self.used(before, bits);
        }
        if let Some(codes) = codes {
            self.state = CutState::Codes(Box::new(codes));
        }
        Ok(went_on)
    }

    /// Symbols of a block, as many as there are.
    fn symbols(&mut self) -> Result<bool, Flaw> {
        loop {
            let before = self.bits();
            let mut bits = before;
            let CutState::Codes(codes) = &self.state else { return Ok(false) };
            let Some(symbol) = bits.symbol(&codes.literals)? else { return Ok(false) };
            let said = match symbol {
                0..END_OF_BLOCK => Some(1),
                END_OF_BLOCK => Some(0),
                _ => codes.match_length(symbol, &mut bits, self.length)?,
            };
            let Some(said) = said else { return Ok(false) };
            self.length += said;
            self.used(before, bits);
            if symbol == END_OF_BLOCK {
                self.end_block();
                return Ok(true);
            }
        }
    }

    fn end_block(&mut self) {
        self.state = CutState::BlockHead;
        if self.last_bit.is_some() {
            self.end_bit = self.at();
            self.state = CutState::End;
        }
    }

    /// The checksum and the length behind the blocks.
    fn end(&mut self) -> Result<bool, Flaw> {
        let at = self.read_bits.div_ceil(8) as usize;
        let Some(end) = self.held.get(at..).and_then(|held| held.first_chunk::<8>()) else { return Ok(false) };
        let number = |from: usize| u32::from_le_bytes([end[from], end[from + 1], end[from + 2], end[from + 3]]);
        self.crc = number(0);
        if number(4) != self.length as u32 {
            return Err(Flaw::Corrupt);
        }
        self.read_bits = 8 * (at as u64 + 8);
        self.state = CutState::Over;
        Ok(true)
    }
}

impl CodeLengths {
    /// Reads one more. False: there are too few bits.
    fn read(&mut self, bits: &mut Bits) -> Result<bool, Flaw> {
        let Some(code) = &self.code else {
            let Some(length) = bits.take(3) else { return Ok(false) };
            self.order_lengths[ORDER[self.order]] = length as u8;
            self.order += 1;
            if self.order == self.order_count {
                self.code = Some(PrefixCode::new(&self.order_lengths, false)?);
            }
            return Ok(true);
        };
        let Some(symbol) = bits.symbol(code)? else { return Ok(false) };
        let (extra, base) = match symbol {
            0..16 => (0, 1),
            16 => (2, 3),
            17 => (3, 3),
            _ => (7, 11),
        };
        let Some(more) = bits.take(extra) else { return Ok(false) };
        let (length, repeat) = match symbol {
            0..16 => (symbol as u8, 1),
            16 => (*self.count.checked_sub(1).and_then(|at| self.lengths.get(at)).ok_or(Flaw::Corrupt)?, base + more),
            _ => (0, base + more),
        };
        let to = self.count + repeat as usize;
        if to > self.literals + self.distances {
            return Err(Flaw::Corrupt);
        }
        self.lengths[self.count..to].fill(length);
        self.count = to;
        Ok(true)
    }

    fn codes(&self) -> Result<BlockCodes, Flaw> {
        let (literals, distances) = self.lengths[..self.count].split_at(self.literals);
        if literals[usize::from(END_OF_BLOCK)] == 0 {
            return Err(Flaw::Corrupt);
        }
        Ok(BlockCodes { literals: PrefixCode::new(literals, true)?, distances: PrefixCode::new(distances, true)? })
    }
}

impl BlockCodes {
    /// RFC 1951 §3.2.6.
    fn fixed() -> Result<BlockCodes, Flaw> {
        let mut literals = [8; SYMBOLS_MAX];
        literals[144..256].fill(9);
        literals[256..280].fill(7);
        Ok(BlockCodes { literals: PrefixCode::new(&literals, false)?, distances: PrefixCode::new(&[5; 32], false)? })
    }

    /// How much of the text is said again. `None`: there are too few bits. `behind`: so much of it there is.
    fn match_length(&self, symbol: u16, bits: &mut Bits, behind: u64) -> Result<Option<u64>, Flaw> {
        let nth = usize::from(symbol - END_OF_BLOCK - 1);
        let base = LENGTH_BASES.get(nth).ok_or(Flaw::Corrupt)?;
        let Some(more) = bits.take(u32::from(LENGTH_EXTRA[nth])) else { return Ok(None) };
        let Some(symbol) = bits.symbol(&self.distances)? else { return Ok(None) };
        let nth = usize::from(symbol);
        let far = DISTANCE_BASES.get(nth).ok_or(Flaw::Corrupt)?;
        let Some(farther) = bits.take(u32::from(DISTANCE_EXTRA[nth])) else { return Ok(None) };
        if u64::from(*far) + farther > behind {
            return Err(Flaw::Corrupt);
        }
        Ok(Some(u64::from(*base) + more))
    }
}

#[cfg(test)]
#[path = "gzip_cutter_tests.rs"]
mod tests;
