//! What a coder takes of memory while it works: told before it is made, so that who makes many can say no.
//!
//! An encoder remembers of its text as far as its window reaches, and has tables to find in it what comes again. Of a text whose length is known
//! it needs no more than that. The figures are upper bounds, held against what the codecs take by the tests below.

use crate::known_codings::Coding;
use crate::limits::{
    BROTLI_QUICK_WINDOW_LOG, BROTLI_WINDOW_LOG, GZIP_WINDOW_LOG, ZSTD_UNKNOWN_WINDOW_LOG, ZSTD_WINDOW_LOG_MAX,
};

/// What every coder takes that was not asked for by name.
const REST_BYTES: usize = 64 << 10;

/// Windows are no smaller than these, in powers of two.
const GZIP_WINDOW_LOG_MIN: u8 = 9;
const BROTLI_WINDOW_LOG_MIN: u32 = 10;
/// Below this the library keeps banks of 32 MiB at the levels from 5 to 9, however short the text is.
const BROTLI_BANKLESS_WINDOW_LOG_MIN: u32 = 17;
const ZSTD_WINDOW_LOG_MIN: u32 = 10;

/// The window that all of a text of this many bytes lies in, in powers of two.
fn window_log(length: u64) -> u32 {
    length.max(1).checked_next_power_of_two().map_or(u64::BITS, u64::trailing_zeros)
}

/// Of an encoder for a text of this many bytes, or of any.
pub(crate) fn gzip_window_log(length: Option<u64>) -> u8 {
    // One more: zlib keeps a distance from the end of its window.
    let needed = length.map_or(GZIP_WINDOW_LOG, |length| (window_log(length) + 1).min(15) as u8);
    needed.clamp(GZIP_WINDOW_LOG_MIN, GZIP_WINDOW_LOG)
}

/// Of an encoder for a text of this many bytes, or of any.
pub(crate) fn brotli_window_log(level: u8, length: Option<u64>) -> u32 {
    let most = if level <= 4 { BROTLI_QUICK_WINDOW_LOG } else { BROTLI_WINDOW_LOG };
    // One more: brotli keeps 16 bytes of its window for itself.
    let needed = length.map_or(most, |length| window_log(length) + 1);
    let least = if (5..=9).contains(&level) { BROTLI_BANKLESS_WINDOW_LOG_MIN } else { BROTLI_WINDOW_LOG_MIN };
    needed.clamp(least, most)
}

/// Of an encoder for a text of this many bytes, or of any.
pub(crate) fn zstd_window_log(level: u8, length: Option<u64>) -> u32 {
    let most = match level {
        ..=1 => 19,
        2 => 20,
        3..=8 => 21,
        9..=16 => 22,
        _ => ZSTD_WINDOW_LOG_MAX,
    };
    length.map_or(ZSTD_UNKNOWN_WINDOW_LOG, window_log).clamp(ZSTD_WINDOW_LOG_MIN, most)
}

/// At most so many bytes does an encoder take that is made by these.
pub fn encoder_bytes(coding: Coding, level: u8, length: Option<u64>) -> usize {
    REST_BYTES
        + match coding {
            Coding::Gzip => gzip_bytes(gzip_window_log(length)),
            Coding::Brotli => brotli_bytes(level, brotli_window_log(level, length)),
            Coding::Zstd => zstd_bytes(level, zstd_window_log(level, length)),
        }
}

/// So many bytes does a decoder take of a text as pages are. One of another window may take 8 MiB (zstd) or 16 MiB (brotli).
pub fn decoder_bytes(coding: Coding) -> usize {
    REST_BYTES
        + match coding {
            Coding::Gzip => 0,
            Coding::Brotli | Coding::Zstd => 1 << 20,
        }
}

/// The window twice, the chains in it, 16 bits each, and the buffers and heads of lists, which are of one size.
fn gzip_bytes(window_log: u8) -> usize {
    (4 << window_log) + (256 << 10)
}

/// The window, twice in a ring, and what it is looked through by.
fn brotli_bytes(level: u8, window_log: u32) -> usize {
    let window = 1_usize << window_log;
    match level {
        ..=4 => 4 * window + (3 << 19) + if window_log >= BROTLI_QUICK_WINDOW_LOG { 9 << 19 } else { 0 },
        // Lists of so many places each, of which there are more with each level.
        5..=9 => 4 * window + (2 << 20) + (1 << (16 + usize::from(level))),
        // A tree of all that is in the window, and the ways through a block that were thought of.
        _ => 12 * window + (24 * window).clamp(3 << 19, 17 << 20),
    }
}

/// The tables of a zstd encoder, which are no larger than what is in its window asks for: of its chains and of its hashes, in powers of
/// two. The library has them so by level, and makes them smaller by itself only where it is told a length that has to be the true one.
pub(crate) fn zstd_table_logs(level: u8, window_log: u32) -> (u32, u32) {
    let (chain_log, hash_log) = match level {
        ..=1 => (13, 14),
        2 => (15, 16),
        3 => (16, 17),
        4 => (18, 18),
        5 | 6 => (18, 19),
        7 | 8 => (19, 20),
        9 => (20, 21),
        10 | 11 => (21, 22),
        12 | 14 => (22, 23),
        13 | 16 => (22, 22),
        15 => (23, 23),
        17 | 18 => (23, 22),
        _ => (24, 22),
    };
    (chain_log.min(window_log), hash_log.min(window_log + 1))
}

/// The window, the tables, and two blocks.
fn zstd_bytes(level: u8, window_log: u32) -> usize {
    let (chain_log, hash_log) = zstd_table_logs(level, window_log);
    let tables = (4_usize << chain_log) + (4 << hash_log);
    let searched = if level > 12 { 1 << 19 } else { 0 };
    let blocks = (1_usize << window_log.min(17)) * 8;
    (1 << window_log) + tables + searched + blocks + (128 << 10)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use brotli::enc::encode::{BrotliEncoderOperation, BrotliEncoderStateStruct};
    use brotli::enc::{BrotliAlloc, StandardAlloc};
    use brotli::{Allocator, SliceWrapper};
    use zstd::zstd_safe::{CCtx, InBuffer, OutBuffer, zstd_sys::ZSTD_EndDirective};

    use super::*;

    fn text(bytes: usize) -> Vec<u8> {
        (0..bytes / 8).flat_map(|at| format!("{:07x} ", at * at % 9_973).into_bytes()).collect()
    }

    /// Is the bound one, and not of another size?
    #[track_caller]
    fn check(coding: Coding, level: u8, length: Option<u64>, taken: usize) {
        let bound = encoder_bytes(coding, level, length);
        assert!(taken <= bound && bound <= 2 * taken + (3 << 20), "{coding:?} {level} {length:?}: {taken} of {bound}");
    }

    #[test]
    fn zstd_takes_no_more_than_is_said() {
        for level in [1, 3, 5, 9, 19] {
            for length in [Some(900), Some(9_000), Some(75_000), Some(1 << 20), Some(9 << 20), None] {
                let mut context = CCtx::create();
                for parameter in crate::zstd_stream::parameters(level, length) {
                    context.set_parameter(parameter).unwrap();
                }
                let (text, mut out) = (text(20_000), vec![0; 40_000]);
                let (mut input, mut room) = (InBuffer::around(&text), OutBuffer::around(&mut out[..]));
                let go_on = ZSTD_EndDirective::ZSTD_e_continue;
                context.compress_stream2(&mut room, &mut input, go_on).unwrap();
                check(Coding::Zstd, level, length, context.sizeof());
            }
        }
    }

    /// Memory as the library takes it, and how much of it there was at a time.
    #[derive(Clone, Default)]
    struct Counted {
        now: Rc<Cell<usize>>,
        most: Rc<Cell<usize>>,
    }

    impl<T: Clone + Default> Allocator<T> for Counted {
        type AllocatedMemory = <StandardAlloc as Allocator<T>>::AllocatedMemory;

        fn alloc_cell(&mut self, count: usize) -> Self::AllocatedMemory {
            self.now.set(self.now.get() + count * size_of::<T>());
            self.most.set(self.most.get().max(self.now.get()));
            StandardAlloc::default().alloc_cell(count)
        }

        fn free_cell(&mut self, cell: Self::AllocatedMemory) {
            self.now.set(self.now.get() - size_of_val(cell.slice()));
        }
    }

    impl BrotliAlloc for Counted {}

    #[test]
    fn brotli_takes_no_more_than_is_said() {
        for level in [4, 5, 6, 7, 8, 9, 11] {
            for length in [Some(900), Some(9_000), Some(75_000), Some(1 << 20), None] {
                let counted = Counted::default();
                let mut state = BrotliEncoderStateStruct::new(counted.clone());
                crate::brotli_stream::set_up(&mut state, level, length);
                let text = text(length.unwrap_or(3 << 20) as usize);
                let (mut left, mut taken, mut out) = (text.len(), 0, vec![0; 4 << 20]);
                let (mut room, mut made) = (out.len(), 0);
                let finish = BrotliEncoderOperation::BROTLI_OPERATION_FINISH;
                let text = &text[..];
                let is_well = state.compress_stream(
                    finish,
                    &mut left,
                    text,
                    &mut taken,
                    &mut room,
                    &mut out,
                    &mut made,
                    &mut None,
                    &mut |_, _, _, _| (),
                );
                assert!(is_well && left == 0);
                check(Coding::Brotli, level, length, counted.most.get());
            }
        }
    }

    #[test]
    fn a_short_text_takes_little_and_a_window_is_never_larger_than_the_format_has() {
        assert!(encoder_bytes(Coding::Zstd, 3, Some(6_000)) < 400 << 10);
        assert!(encoder_bytes(Coding::Zstd, 3, Some(75_000)) < 5 << 19);
        assert!(encoder_bytes(Coding::Zstd, 19, Some(75_000)) < 4 << 20);
        for length in [Some(0), Some(1), Some(1 << 15), Some(1 << 40), Some(u64::MAX), None] {
            assert!((9..=15).contains(&gzip_window_log(length)), "{length:?}");
            for level in [0, 1, 4, 9, 11, 19, 22] {
                assert!((10..=BROTLI_WINDOW_LOG).contains(&brotli_window_log(level, length)), "{level} {length:?}");
                assert!((10..=ZSTD_WINDOW_LOG_MAX).contains(&zstd_window_log(level, length)), "{level} {length:?}");
            }
        }
    }
}
