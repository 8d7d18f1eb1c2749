//! Brotli (RFC 7932), by the crate of that name.

use brotli::enc::encode::{BrotliEncoderOperation, BrotliEncoderParameter, BrotliEncoderStateStruct};
use brotli::enc::{BrotliAlloc, StandardAlloc};
use brotli::{BrotliDecompressStream, BrotliResult, BrotliState};

use crate::codec_step::{CodecStep, Ending, Progress};
use crate::coder_memory::brotli_window_log;
use crate::flaw::Flaw;
use crate::limits::{BROTLI_DELTA_LEVEL_MIN, STEP_BYTES};

pub(crate) struct BrotliDecoder(BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>);

impl BrotliDecoder {
    /// Without the large windows that the RFC does not have: 16 MiB is the most.
    pub(crate) fn new() -> BrotliDecoder {
        let alloc = StandardAlloc::default;
        BrotliDecoder(BrotliState::new_strict(alloc(), alloc(), alloc()))
    }

    pub(crate) fn decode(&mut self, input: &[u8], room: &mut [u8]) -> Result<CodecStep, Flaw> {
        let (mut input_left, mut taken) = (input.len(), 0);
        let (mut room_left, mut made, mut total) = (room.len(), 0, 0);
        let result = BrotliDecompressStream(
            &mut input_left,
            &mut taken,
            input,
            &mut room_left,
            &mut made,
            room,
            &mut total,
            &mut self.0,
        );
        let progress = match result {
            BrotliResult::ResultSuccess => Progress::Ended,
            BrotliResult::NeedsMoreInput | BrotliResult::NeedsMoreOutput => Progress::Going,
            BrotliResult::ResultFailure => return Err(Flaw::Corrupt),
        };
        Ok(CodecStep { taken, made, progress })
    }
}

pub(crate) fn set_up<A: BrotliAlloc>(state: &mut BrotliEncoderStateStruct<A>, level: u8, length: Option<u64>) {
    state.set_parameter(BrotliEncoderParameter::BROTLI_PARAM_QUALITY, u32::from(level.min(11)));
    state.set_parameter(BrotliEncoderParameter::BROTLI_PARAM_LGWIN, brotli_window_log(level, length));
}

pub(crate) struct BrotliEncoder(BrotliEncoderStateStruct<StandardAlloc>);

impl BrotliEncoder {
    pub(crate) fn new(level: u8, length: Option<u64>) -> BrotliEncoder {
        let mut state = BrotliEncoderStateStruct::new(StandardAlloc::default());
        set_up(&mut state, level, length);
        BrotliEncoder(state)
    }

    /// For a reader who has this text already.
    pub(crate) fn with_dictionary(level: u8, window_log: u32, dictionary: &[u8]) -> BrotliEncoder {
        let BrotliEncoder(mut state) = BrotliEncoder::new(level.max(BROTLI_DELTA_LEVEL_MIN), None);
        state.set_parameter(BrotliEncoderParameter::BROTLI_PARAM_LGWIN, window_log);
        state.set_custom_dictionary(dictionary.len(), dictionary);
        BrotliEncoder(state)
    }

    pub(crate) fn run(&mut self, piece: &[u8], ending: Ending, out: &mut Vec<u8>) -> Result<(), Flaw> {
        let operation = match ending {
            Ending::Open => BrotliEncoderOperation::BROTLI_OPERATION_PROCESS,
            Ending::Flushed | Ending::Apart => BrotliEncoderOperation::BROTLI_OPERATION_FLUSH,
            Ending::Finished => BrotliEncoderOperation::BROTLI_OPERATION_FINISH,
        };
        let (mut input_left, mut taken) = (piece.len(), 0);
        loop {
            let begin = out.len();
            out.resize(begin + STEP_BYTES, 0);
            let (mut room_left, mut made) = (STEP_BYTES, 0);
            let is_well = self.0.compress_stream(
                operation,
                &mut input_left,
                piece,
                &mut taken,
                &mut room_left,
                &mut out[begin..],
                &mut made,
                &mut None,
                &mut |_, _, _, _| (),
            );
            out.truncate(begin + made);
            if !is_well {
                return Err(Flaw::Unready);
            }
            let is_done = match ending {
                Ending::Finished => self.0.is_finished(),
                Ending::Open | Ending::Flushed | Ending::Apart => input_left == 0 && !self.0.has_more_output(),
            };
            if is_done {
                return Ok(());
            }
        }
    }
}
