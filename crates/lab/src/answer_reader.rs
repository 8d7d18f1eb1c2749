//! The reader of a connection's answers, in the protocol of what is asked for.

use crate::answer::{Answer, Fault, Reading};
use crate::catalogue::Catalogue;
use crate::http_answer::HttpAnswerReader;
use crate::memcached_answer::MemcachedAnswerReader;
use crate::received_head::HeadMemo;

#[derive(Debug)]
pub(crate) enum AnswerReader {
    Http(HttpAnswerReader),
    Memcached(MemcachedAnswerReader),
}

impl AnswerReader {
    pub(crate) fn of(catalogue: &Catalogue) -> AnswerReader {
        match catalogue.is_of_memcached() {
            false => AnswerReader::Http(HttpAnswerReader::default()),
            true => AnswerReader::Memcached(MemcachedAnswerReader::default()),
        }
    }

    /// Reads on, and takes what it read from the front of `input`: all of it, or as far as an answer ends.
    #[inline]
    pub(crate) fn read<'a, 'i: 'a>(
        &'a mut self,
        input: &mut &'i [u8],
        memo: &mut HeadMemo,
        reading: Reading<'_>,
    ) -> Result<Option<Answer<'a>>, Fault> {
        match self {
            AnswerReader::Http(reader) => reader.read(input, memo, reading),
            AnswerReader::Memcached(reader) => reader.read(input, reading),
        }
    }

    /// The server has closed: was that the end of the answer?
    pub(crate) fn end_of_input(&mut self) -> Result<Answer<'_>, Fault> {
        match self {
            AnswerReader::Http(reader) => reader.end_of_input(),
            AnswerReader::Memcached(reader) => Err(reader.end_of_input()),
        }
    }

    /// Has anything of the answer come?
    pub(crate) fn has_begun(&self) -> bool {
        match self {
            AnswerReader::Http(reader) => reader.has_begun(),
            AnswerReader::Memcached(reader) => reader.has_begun(),
        }
    }
}
