//! What a whole answer is worth: held against what the first fetch taught, against the value that a rule says, or against the page
//! in a content coding.

use std::sync::Arc;

use crate::answer::{Answer, BodySeen};
use crate::answer_coding::SaidCoding;
use crate::catalogue::Catalogue;
use crate::coded_pages::CodedPages;
use crate::error_kind::ErrorKind;
use crate::learned::Learned;
use crate::workload::Checks;

/// What answers to this catalogue are judged by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measure<'d> {
    pub(crate) catalogue: &'d Catalogue,
    pub(crate) learned: &'d Learned,
    pub(crate) awaited: &'d Awaited,
    pub(crate) checks: &'d Checks,
}

/// In which content coding answers are awaited.
#[derive(Clone, Debug)]
pub(crate) enum Awaited {
    /// Whichever they come in: nobody has asked for one.
    Any,
    /// In none.
    Identity,
    Coded(Arc<CodedPages>),
}

impl Measure<'_> {
    #[inline]
    pub(crate) fn judge(&self, request: usize, answer: &Answer<'_>) -> Result<(), ErrorKind> {
        match (self.catalogue.is_of_memcached(), self.awaited) {
            (true, _) => judge_value(self.catalogue.value(request), answer, self.checks),
            (false, Awaited::Coded(pages)) => pages.judge(request, answer, self.checks),
            (false, Awaited::Identity) if answer.coding != SaidCoding::None => Err(ErrorKind::BadEncoding),
            (false, Awaited::Identity | Awaited::Any) => self.learned.judge(request, answer, self.checks),
        }
    }

    /// For messages, after [`Measure::judge`] found this.
    pub(crate) fn describe(&self, request: usize, answer: &Answer<'_>, kind: ErrorKind) -> String {
        let (name, length) = (self.catalogue.path(request), answer.length);
        let wanted = || match self.catalogue.value(request) {
            Some(value) => format!("{} were stored", value.len()),
            None => format!("the first had {}", self.learned.length(request)),
        };
        match (kind, answer.body) {
            (ErrorKind::BadStatus, BodySeen::Whole(line)) if self.catalogue.is_of_memcached() => {
                format!("{name}: {}", String::from_utf8_lossy(line))
            }
            (ErrorKind::BadStatus, _) => format!("{name}: status {}", answer.status),
            (ErrorKind::BadEncoding, _) => format!("{name}: {}", answer.coding.in_words()),
            (ErrorKind::BadDecoded, _) => match self.awaited {
                Awaited::Coded(pages) => format!("{name}: {}", pages.complaint(request, answer).unwrap_or_default()),
                Awaited::Identity | Awaited::Any => unreachable!("no coding was asked for"),
            },
            (ErrorKind::BadLength, _) => format!("{name}: {length} bytes, {}", wanted()),
            _ if self.catalogue.is_of_memcached() => format!("{name}: {length} bytes, not those that were stored"),
            _ => format!("{name}: {length} bytes, not those of the first fetch"),
        }
    }
}

/// `wanted`: of a `get`; the answer to a `set` has only a status.
fn judge_value(wanted: Option<&[u8]>, answer: &Answer<'_>, checks: &Checks) -> Result<(), ErrorKind> {
    if !checks.status.accepts(answer.status) {
        return Err(ErrorKind::BadStatus);
    }
    let Some(wanted) = wanted.filter(|_| answer.status == 200) else { return Ok(()) };
    if answer.length != wanted.len() as u64 {
        return if checks.length { Err(ErrorKind::BadLength) } else { Ok(()) };
    }
    let same = !checks.bytes
        || match answer.body {
            BodySeen::Whole(value) => value == wanted,
            BodySeen::Summed(sum) => sum == crc32fast::hash(wanted),
        };
    if same { Ok(()) } else { Err(ErrorKind::BadBytes) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::StatusWanted;

    #[test]
    fn a_value_is_the_one_that_was_stored() {
        let answer = |status, value: &'static [u8]| {
            let (length, body) = (value.len() as u64, BodySeen::Whole(value));
            Answer { status, length, body, persistent: true, coding: SaidCoding::None, head_bytes: 0, framing_bytes: 0 }
        };
        let misses_pass = Checks { status: StatusWanted::NonErrorOrMiss, ..Checks::ALL };
        let check = |wanted: Option<&[u8]>, answer: Answer<'_>, expect| {
            assert_eq!(judge_value(wanted, &answer, &misses_pass), expect, "{answer:?}");
        };
        check(Some(b"abc"), answer(200, b"abc"), Ok(()));
        check(Some(b"abc"), answer(200, b"abd"), Err(ErrorKind::BadBytes));
        check(Some(b"abc"), answer(200, b"ab"), Err(ErrorKind::BadLength));
        check(Some(b"abc"), answer(404, b""), Ok(()));
        check(Some(b"abc"), answer(500, b""), Err(ErrorKind::BadStatus));
        check(None, answer(201, b""), Ok(()));
        check(None, answer(409, b""), Err(ErrorKind::BadStatus));
        let parts = |of: &[u8]| Answer { body: BodySeen::Summed(crc32fast::hash(of)), ..answer(200, b"abc") };
        check(Some(b"abc"), parts(b"abc"), Ok(()));
        check(Some(b"abc"), parts(b"abd"), Err(ErrorKind::BadBytes));
        assert_eq!(judge_value(Some(b"abc"), &answer(404, b""), &Checks::ALL), Err(ErrorKind::BadStatus));
        let no_bytes = Checks { bytes: false, ..Checks::ALL };
        assert_eq!(judge_value(Some(b"abc"), &answer(200, b"abd"), &no_bytes), Ok(()));
    }
}
