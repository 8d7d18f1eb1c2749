//! Zstandard (RFC 8878, RFC 9659), by its authors' library.

use zstd::stream::raw::{CParameter, DParameter, Decoder, Encoder, Operation, OutBuffer};

use crate::codec_step::{CodecStep, Ending, Progress};
use crate::coder_memory::{zstd_table_logs, zstd_window_log};
use crate::flaw::Flaw;
use crate::limits::{STEP_BYTES, ZSTD_LEVEL_MAX, ZSTD_WINDOW_LOG_MAX};

pub(crate) struct ZstdDecoder(Decoder<'static>);

impl ZstdDecoder {
    pub(crate) fn new() -> Result<ZstdDecoder, Flaw> {
        let mut decoder = Decoder::new().map_err(|_| Flaw::Unready)?;
        decoder.set_parameter(DParameter::WindowLogMax(ZSTD_WINDOW_LOG_MAX)).map_err(|_| Flaw::Unready)?;
        Ok(ZstdDecoder(decoder))
    }

    pub(crate) fn decode(&mut self, input: &[u8], room: &mut [u8]) -> Result<CodecStep, Flaw> {
        let status = self.0.run_on_buffers(input, room).map_err(|_| Flaw::Corrupt)?;
        let (taken, made) = (status.bytes_read, status.bytes_written);
        // Nothing remains of a frame that is whole; of one that has not begun neither, and then nothing was done.
        let is_whole = status.remaining == 0 && (taken > 0 || made > 0);
        Ok(CodecStep { taken, made, progress: if is_whole { Progress::Ended } else { Progress::Going } })
    }
}

/// What an encoder is told. The length is not among it: a text that is cut would be an error of its own then.
pub(crate) fn parameters(level: u8, length: Option<u64>) -> [CParameter; 4] {
    let level = level.clamp(1, ZSTD_LEVEL_MAX);
    let window_log = zstd_window_log(level, length);
    let (chain_log, hash_log) = zstd_table_logs(level, window_log);
    [
        CParameter::CompressionLevel(i32::from(level)),
        CParameter::WindowLog(window_log),
        CParameter::ChainLog(chain_log),
        CParameter::HashLog(hash_log),
    ]
}

pub(crate) struct ZstdEncoder(Encoder<'static>);

impl ZstdEncoder {
    pub(crate) fn new(level: u8, length: Option<u64>) -> Result<ZstdEncoder, Flaw> {
        let mut encoder = Encoder::new(i32::from(level)).map_err(|_| Flaw::Unready)?;
        for parameter in parameters(level, length) {
            encoder.set_parameter(parameter).map_err(|_| Flaw::Unready)?;
        }
        Ok(ZstdEncoder(encoder))
    }

    /// For a reader who has this text already.
    pub(crate) fn with_dictionary(level: u8, window_log: u32, dictionary: &[u8]) -> Result<ZstdEncoder, Flaw> {
        let level = i32::from(level.clamp(1, ZSTD_LEVEL_MAX));
        let mut encoder = Encoder::with_dictionary(level, dictionary).map_err(|_| Flaw::Unready)?;
        encoder.set_parameter(CParameter::WindowLog(window_log)).map_err(|_| Flaw::Unready)?;
        Ok(ZstdEncoder(encoder))
    }

    pub(crate) fn run(&mut self, mut piece: &[u8], ending: Ending, out: &mut Vec<u8>) -> Result<(), Flaw> {
        loop {
            let begin = out.len();
            out.resize(begin + STEP_BYTES, 0);
            let (taken, made, left) = match ending {
                Ending::Open => {
                    let status = self.0.run_on_buffers(piece, &mut out[begin..]).map_err(|_| Flaw::Unready)?;
                    (status.bytes_read, status.bytes_written, 0)
                }
                Ending::Flushed | Ending::Apart | Ending::Finished => {
                    let mut room = OutBuffer::around(&mut out[begin..]);
                    let left = match ending {
                        Ending::Finished => self.0.finish(&mut room, false),
                        _ => self.0.flush(&mut room),
                    };
                    (0, room.pos(), left.map_err(|_| Flaw::Unready)?)
                }
            };
            out.truncate(begin + made);
            piece = &piece[taken..];
            if piece.is_empty() && left == 0 {
                return Ok(());
            }
        }
    }
}
