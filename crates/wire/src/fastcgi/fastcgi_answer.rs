//! The records of one answer: where its output lies in the bytes that arrive, what is said on the error stream beside it, and where
//! the answer ends.
//!
//! It keeps no data and copies none: it points into the caller's input. What the output says is not known here.

use crate::fastcgi::record_head::{END_BYTES, RECORD_HEAD_BYTES, ReceivedRecord, RecordType, read_record_head};
use crate::limits::FASTCGI_RECORDS_WITHOUT_OUTPUT_MAX;
use crate::{Refusal, refusals};

/// The reading end of one answer.
#[derive(Clone, Debug)]
pub struct AnswerReader {
    stage: Stage,
    /// As much of a record's head as has come.
    head: [u8; RECORD_HEAD_BYTES],
    head_bytes: usize,
    record: ReceivedRecord,
    /// As much of the content of END_REQUEST as has come.
    end: [u8; END_BYTES],
    /// An empty record has ended the stream.
    output_has_ended: bool,
    errors_have_ended: bool,
    records_without_output: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Head,
    Content,
    Padding,
    Ended,
}

/// What the front of the input is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerPart {
    /// `input[from..to]` is output, and `to` bytes are consumed. Never empty.
    Output { from: usize, to: usize },
    /// The same of the error stream.
    Errors { from: usize, to: usize },
    /// All of the input is consumed and more is needed.
    More,
    /// The answer is complete. What follows `consumed` belongs to nobody.
    End { consumed: usize, status: EndStatus },
}

/// How the application ended the request (FastCGI 1.0 §5.5). What the program returned says nothing of its output, and is not looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndStatus {
    Complete,
    /// It works on one request at a time, and has not looked at this one.
    CannotMultiplex,
    /// It has too much to do, and has not looked at this one.
    Overloaded,
    /// It is no responder.
    UnknownRole,
}

impl Default for AnswerReader {
    fn default() -> AnswerReader {
        AnswerReader {
            stage: Stage::Head,
            head: [0; RECORD_HEAD_BYTES],
            head_bytes: 0,
            record: ReceivedRecord { kind: RecordType::Stdout, content_bytes: 0, padding_bytes: 0 },
            end: [0; END_BYTES],
            output_has_ended: false,
            errors_have_ended: false,
            records_without_output: 0,
        }
    }
}

impl AnswerReader {
    /// Has the whole answer been read?
    pub fn has_ended(&self) -> bool {
        self.stage == Stage::Ended
    }

    /// Reads the front of the input. After an error it must not be asked again.
    pub fn read(&mut self, input: &[u8]) -> Result<AnswerPart, Refusal> {
        let mut at = 0;
        loop {
            let rest = &input[at..];
            match self.stage {
                Stage::Ended if rest.is_empty() => return Ok(AnswerPart::More),
                Stage::Ended => return Err(refusals::FASTCGI_BEHIND_END),
                Stage::Head => {
                    let taken = rest.len().min(RECORD_HEAD_BYTES - self.head_bytes);
                    self.head[self.head_bytes..][..taken].copy_from_slice(&rest[..taken]);
                    self.head_bytes += taken;
                    at += taken;
                    if self.head_bytes < RECORD_HEAD_BYTES {
                        return Ok(AnswerPart::More);
                    }
                    self.begin_record()?;
                }
                Stage::Content if self.record.content_bytes == 0 => self.stage = Stage::Padding,
                Stage::Content => {
                    let taken = rest.len().min(usize::from(self.record.content_bytes));
                    if taken == 0 {
                        return Ok(AnswerPart::More);
                    }
                    let (from, to) = (at, at + taken);
                    let end_at = END_BYTES.saturating_sub(usize::from(self.record.content_bytes));
                    self.record.content_bytes -= taken as u16;
                    match self.record.kind {
                        RecordType::Stdout => return Ok(AnswerPart::Output { from, to }),
                        RecordType::Stderr => return Ok(AnswerPart::Errors { from, to }),
                        _ => self.end[end_at..][..taken].copy_from_slice(&rest[..taken]),
                    }
                    at = to;
                }
                Stage::Padding => {
                    let taken = rest.len().min(usize::from(self.record.padding_bytes));
                    self.record.padding_bytes -= taken as u8;
                    at += taken;
                    if self.record.padding_bytes > 0 {
                        return Ok(AnswerPart::More);
                    }
                    (self.stage, self.head_bytes) = (Stage::Head, 0);
                    if self.record.kind == RecordType::EndRequest {
                        self.stage = Stage::Ended;
                        return Ok(AnswerPart::End { consumed: at, status: self.end_status()? });
                    }
                }
            }
        }
    }

    fn begin_record(&mut self) -> Result<(), Refusal> {
        self.record = read_record_head(self.head)?;
        self.stage = Stage::Content;
        let is_empty = self.record.content_bytes == 0;
        let has_ended = match self.record.kind {
            RecordType::Stdout => &mut self.output_has_ended,
            RecordType::Stderr => &mut self.errors_have_ended,
            _ => return Ok(()),
        };
        // A stream ends once (§3.3), and nothing of it comes behind that.
        if std::mem::replace(has_ended, is_empty) {
            return Err(refusals::FASTCGI_STREAM_GOES_ON);
        }
        if is_empty || self.record.kind == RecordType::Stderr {
            self.records_without_output += 1;
        }
        match self.records_without_output > FASTCGI_RECORDS_WITHOUT_OUTPUT_MAX {
            true => Err(refusals::FASTCGI_RECORDS_IDLE),
            false => Ok(()),
        }
    }

    fn end_status(&self) -> Result<EndStatus, Refusal> {
        match self.end[4] {
            0 => Ok(EndStatus::Complete),
            1 => Ok(EndStatus::CannotMultiplex),
            2 => Ok(EndStatus::Overloaded),
            3 => Ok(EndStatus::UnknownRole),
            _ => Err(refusals::FASTCGI_END_INVALID),
        }
    }
}

#[cfg(test)]
#[path = "fastcgi_answer_tests.rs"]
mod tests;
