//! gzip (RFC 1952), by zlib-rs.

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

use crate::codec_step::{CodecStep, Ending, Progress};
use crate::coder_memory::gzip_window_log;
use crate::flaw::Flaw;
use crate::limits::{GZIP_WINDOW_LOG, STEP_BYTES};

pub(crate) struct GzipDecoder {
    inner: Decompress,
    /// Of what began behind the end of another, these first bytes were not seen yet: only gzip may stand there.
    magic_left: &'static [u8],
}

/// What a member begins with.
const MAGIC: &[u8] = &[0x1f, 0x8b];

impl GzipDecoder {
    pub(crate) fn new() -> GzipDecoder {
        GzipDecoder { inner: Decompress::new_gzip(GZIP_WINDOW_LOG), magic_left: &[] }
    }

    pub(crate) fn behind_another() -> GzipDecoder {
        GzipDecoder { magic_left: MAGIC, ..GzipDecoder::new() }
    }

    pub(crate) fn decode(&mut self, input: &[u8], room: &mut [u8]) -> Result<CodecStep, Flaw> {
        for &byte in input {
            let Some((first, rest)) = self.magic_left.split_first() else { break };
            if *first != byte {
                return Err(Flaw::JunkBehind);
            }
            self.magic_left = rest;
        }
        let before = (self.inner.total_in(), self.inner.total_out());
        let status = self.inner.decompress(input, room, FlushDecompress::None).map_err(|_| Flaw::Corrupt)?;
        Ok(CodecStep {
            taken: (self.inner.total_in() - before.0) as usize,
            made: (self.inner.total_out() - before.1) as usize,
            progress: if status == Status::StreamEnd { Progress::Ended } else { Progress::Going },
        })
    }
}

pub(crate) struct GzipEncoder(Compress);

impl GzipEncoder {
    pub(crate) fn new(level: u8, length: Option<u64>) -> GzipEncoder {
        GzipEncoder(Compress::new_gzip(Compression::new(u32::from(level.min(9))), gzip_window_log(length)))
    }

    pub(crate) fn run(&mut self, mut piece: &[u8], ending: Ending, out: &mut Vec<u8>) -> Result<(), Flaw> {
        let flush = match ending {
            Ending::Open => FlushCompress::None,
            Ending::Flushed => FlushCompress::Sync,
            Ending::Apart => FlushCompress::Full,
            Ending::Finished => FlushCompress::Finish,
        };
        loop {
            let begin = out.len();
            out.resize(begin + STEP_BYTES, 0);
            let before = (self.0.total_in(), self.0.total_out());
            let status = self.0.compress(piece, &mut out[begin..], flush);
            let (taken, made) = (self.0.total_in() - before.0, (self.0.total_out() - before.1) as usize);
            out.truncate(begin + made);
            piece = &piece[taken as usize..];
            match status.map_err(|_| Flaw::Unready)? {
                Status::StreamEnd => return Ok(()),
                // A full step may have left something behind, whatever was asked.
                _ if made == STEP_BYTES || !piece.is_empty() => {}
                _ if ending == Ending::Finished && made > 0 => {}
                _ if ending == Ending::Finished => return Err(Flaw::Unready),
                _ => return Ok(()),
            }
        }
    }
}
