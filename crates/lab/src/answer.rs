//! An answer as users and judges know it, whichever protocol it came in; or what is wrong instead.
//!
//! This is the seam between users and protocols: `user` knows requests only as bytes to send, and answers only as
//! what is defined here. Nothing of a body is kept, unless whoever judges it wants its bytes.

use crate::answer_coding::SaidCoding;
use crate::error_kind::ErrorKind;

/// A whole answer. Its body is still where it was received, if all of it came at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answer<'i> {
    pub(crate) status: u16,
    /// Of the body, without its framing.
    pub(crate) length: u64,
    pub(crate) body: BodySeen<'i>,
    /// May the connection be used again?
    pub(crate) persistent: bool,
    /// What it says that its body is in.
    pub(crate) coding: SaidCoding,
    /// Of the head, its empty line included, and of all that is neither head nor body: sizes of chunks, trailers.
    pub(crate) head_bytes: u64,
    pub(crate) framing_bytes: u64,
}

/// What there is to tell a body by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodySeen<'i> {
    Whole(&'i [u8]),
    /// It came in parts: its CRC-32, or nothing when nobody wants to know.
    Summed(u32),
}

/// What a reader is told of the answer that comes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading<'a> {
    /// The request, as it was sent.
    pub(crate) asked: &'a [u8],
    /// Is a checksum of any use?
    pub(crate) sums: bool,
    /// Are its bytes wanted, also when they come in parts?
    pub(crate) keeps: bool,
}

/// Why there will be no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) kind: ErrorKind,
    pub(crate) text: String,
}

impl<'i> Answer<'i> {
    /// With the bytes of its body, if these are all of them.
    pub(crate) fn with_bytes(self, kept: &'i [u8]) -> Answer<'i> {
        match kept.len() as u64 == self.length {
            true => Answer { body: BodySeen::Whole(kept), ..self },
            false => self,
        }
    }
}

impl BodySeen<'_> {
    pub(crate) fn checksum(&self) -> u32 {
        match self {
            BodySeen::Whole(bytes) => crc32fast::hash(bytes),
            BodySeen::Summed(sum) => *sum,
        }
    }
}

impl Fault {
    /// `near` is the part of the answer that shows it.
    #[cold]
    pub(crate) fn protocol(what: &str, near: &[u8]) -> Fault {
        let text = match near {
            [] => what.to_owned(),
            _ => format!("{what}: `{}`", near[..near.len().min(NEAR_BYTES_MAX)].escape_ascii()),
        };
        Fault { kind: ErrorKind::ProtocolError, text }
    }
}

const NEAR_BYTES_MAX: usize = 80;
