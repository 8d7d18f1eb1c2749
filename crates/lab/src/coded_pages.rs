//! The pages behind a run that asks for a content coding: what their texts are, and in which forms they have come.
//!
//! A server may code a page anew each time, or in a better way when it finds time for that, so there is no one right form. A
//! form that is new is undone and compared with the page; from then on it is known by its length and its CRC-32, as
//! far as there is room. Pages of the same text share their forms. All threads share one of these, without a lock.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::answer::{Answer, BodySeen};
use crate::answer_coding::{ContentCoding, SaidCoding};
use crate::coded_body::decode;
use crate::error_kind::ErrorKind;
use crate::learned::{LENGTH_BITS, word_of};
use crate::limits::CODED_FORMS_MAX;
use crate::workload::Checks;

#[derive(Debug)]
pub(crate) struct CodedPages {
    pub(crate) coding: ContentCoding,
    pages: Box<[CodedPage]>,
    /// Of each request.
    page_of: Box<[u32]>,
    /// Bodies that were undone and compared.
    decoded: AtomicU64,
}

#[derive(Debug)]
struct CodedPage {
    /// Of the text.
    length: u64,
    checksum: u32,
    /// The words of forms that are known to be right; the first that is 0 is free.
    forms: [AtomicU64; CODED_FORMS_MAX],
}

/// What of it a report says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FormsSeen {
    pub coding: ContentCoding,
    /// Different forms of pages that were found right, as far as they are remembered.
    pub forms: u64,
    pub decoded: u64,
}

impl CodedPages {
    /// `texts`: length and CRC-32 of what stands behind each request.
    pub(crate) fn new(coding: ContentCoding, texts: &[(u64, u32)]) -> CodedPages {
        let (mut pages, mut known) = (Vec::new(), HashMap::new());
        let page_of = texts.iter().map(|&(length, checksum)| {
            *known.entry((length, checksum)).or_insert_with(|| {
                pages.push(CodedPage { length, checksum, forms: Default::default() });
                pages.len() as u32 - 1
            })
        });
        let page_of = page_of.collect();
        CodedPages { coding, pages: pages.into(), page_of, decoded: AtomicU64::new(0) }
    }

    /// Is this the page, in the coding that was asked for?
    #[inline]
    pub(crate) fn judge(&self, request: usize, answer: &Answer<'_>, checks: &Checks) -> Result<(), ErrorKind> {
        if !checks.status.accepts(answer.status) {
            return Err(ErrorKind::BadStatus);
        }
        if answer.coding != SaidCoding::One(self.coding) {
            return Err(ErrorKind::BadEncoding);
        }
        if !checks.bytes {
            return Ok(());
        }
        let page = self.page(request);
        let word = word_of(answer.length, answer.body.checksum());
        if page.forms.iter().map(|form| form.load(Ordering::Relaxed)).any(|form| form == word) {
            return Ok(());
        }
        self.complaint(request, answer).map_or_else(
            || {
                page.remember(word);
                Ok(())
            },
            |_| Err(ErrorKind::BadDecoded),
        )
    }

    /// What is wrong with a body, if anything is. It takes as long as undoing it does.
    #[cold]
    pub(crate) fn complaint(&self, request: usize, answer: &Answer<'_>) -> Option<String> {
        let page = self.page(request);
        let BodySeen::Whole(coded) = answer.body else {
            return Some("it is too long to be undone".to_owned());
        };
        self.decoded.fetch_add(1, Ordering::Relaxed);
        match decode(self.coding, coded, page.length) {
            Err(what) => Some(what),
            Ok(text) if text.len() as u64 != page.length => {
                Some(format!("{} bytes come out of it, and the page has {}", text.len(), page.length))
            }
            Ok(text) => (crc32fast::hash(&text) != page.checksum)
                .then(|| "the bytes that come out of it are not those of the page".to_owned()),
        }
    }

    /// Of the text behind a request.
    pub(crate) fn text_bytes(&self, request: usize) -> u64 {
        self.page(request).length & LENGTH_BITS
    }

    pub(crate) fn seen(&self) -> FormsSeen {
        let known =
            |page: &CodedPage| page.forms.iter().filter(|form| form.load(Ordering::Relaxed) != 0).count() as u64;
        let forms = self.pages.iter().map(known).sum();
        FormsSeen { coding: self.coding, forms, decoded: self.decoded.load(Ordering::Relaxed) }
    }

    fn page(&self, request: usize) -> &CodedPage {
        &self.pages[self.page_of[request] as usize]
    }
}

impl CodedPage {
    /// Without room for it, it is undone again when it comes again.
    fn remember(&self, word: u64) {
        for form in &self.forms {
            match form.compare_exchange(0, word, Ordering::Relaxed, Ordering::Relaxed) {
                Err(other) if other != word => {}
                _ => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coded_body::tests::encode;

    const TEXT: &[u8] = b"one page and another page and the same page again";

    fn pages() -> CodedPages {
        let known = (TEXT.len() as u64, crc32fast::hash(TEXT));
        CodedPages::new(ContentCoding::Gzip, &[known, (3, crc32fast::hash(b"abc")), known])
    }

    fn answer(coding: SaidCoding, body: &[u8]) -> Answer<'_> {
        let (length, body) = (body.len() as u64, BodySeen::Whole(body));
        Answer { status: 200, length, body, persistent: true, coding, head_bytes: 0, framing_bytes: 0 }
    }

    #[test]
    fn a_form_is_undone_once_and_known_from_then_on() {
        let (pages, gzip) = (pages(), SaidCoding::One(ContentCoding::Gzip));
        let judge = |request, answer: &Answer<'_>| pages.judge(request, answer, &Checks::ALL);
        let forms: Vec<Vec<u8>> = (1..3).map(|level| encode(ContentCoding::Gzip, TEXT, level * 4)).collect();
        for form in [&forms[0], &forms[0], &forms[1], &forms[0]] {
            assert_eq!(judge(0, &answer(gzip, form)), Ok(()));
        }
        // The same text under another URL.
        assert_eq!(judge(2, &answer(gzip, &forms[0])), Ok(()));
        let expect = if forms[0] == forms[1] { 1 } else { 2 };
        assert_eq!((pages.seen().forms, pages.seen().decoded), (expect, expect));
        let in_parts = Answer { body: BodySeen::Summed(crc32fast::hash(&forms[0])), ..answer(gzip, &forms[0]) };
        assert_eq!(judge(0, &in_parts), Ok(()), "a form that is known needs no bytes");
    }

    #[test]
    fn lies_are_told_apart() {
        let (pages, gzip) = (pages(), SaidCoding::One(ContentCoding::Gzip));
        let check = |request, answer: Answer<'_>, expect| {
            assert_eq!(pages.judge(request, &answer, &Checks::ALL), Err(expect), "{answer:?}");
        };
        let good = encode(ContentCoding::Gzip, TEXT, 6);
        check(0, answer(SaidCoding::None, TEXT), ErrorKind::BadEncoding);
        check(0, answer(SaidCoding::One(ContentCoding::Zstd), &good), ErrorKind::BadEncoding);
        check(0, answer(gzip, TEXT), ErrorKind::BadDecoded);
        check(0, answer(gzip, &good[..good.len() - 2]), ErrorKind::BadDecoded);
        check(1, answer(gzip, &good), ErrorKind::BadDecoded);
        check(0, Answer { status: 503, ..answer(gzip, &good) }, ErrorKind::BadStatus);
        let mut other = TEXT.to_vec();
        other[3] ^= 1;
        check(0, answer(gzip, &encode(ContentCoding::Gzip, &other, 6)), ErrorKind::BadDecoded);
        assert_eq!(pages.seen().forms, 0, "nothing wrong is remembered");
    }

    #[test]
    fn forms_beyond_the_limit_are_undone_each_time() {
        let (pages, gzip) = (pages(), SaidCoding::One(ContentCoding::Gzip));
        let stored = |mtime: u8| {
            let mut form = encode(ContentCoding::Gzip, TEXT, 6);
            form[4] = mtime;
            form
        };
        let all = CODED_FORMS_MAX as u8 + 1;
        for round in 1..3 {
            for mtime in 0..all {
                assert_eq!(pages.judge(0, &answer(gzip, &stored(mtime)), &Checks::ALL), Ok(()));
            }
            let seen = pages.seen();
            assert_eq!((seen.forms, seen.decoded), (CODED_FORMS_MAX as u64, u64::from(all) + round - 1));
        }
    }
}
