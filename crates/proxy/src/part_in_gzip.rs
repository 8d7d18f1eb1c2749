//! A part as it goes into a page in gzip: a gzip by its own blocks, anything else in blocks that are not compressed. Nothing is coded for
//! that. Where a stored gzip is cut stays with it, so that it is read for that once.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use cache::Object;
use coding::{CutBytes, GzipMarks, TextSum};

use crate::assembly::Assembly;
use crate::body::{Body, BodyEvent, Wanted};
use crate::filter_chain::{FilterChain, FilterKind};
use crate::filter_work::FilterWork;
use crate::filtered_source::FilteredSource;
use crate::included::{IncludedBody, PageForm};
use crate::page_in_gzip;
use crate::send_outcome::End;

/// The body of a part, in the form in which its page takes it.
pub(crate) fn of(body: Body, is_gzip: bool, form: &PageForm) -> Box<dyn IncludedBody> {
    let PageForm::Gzip(by) = form else { return Box::new(body) };
    if !is_gzip {
        return Box::new(UncodedPart { body, taken: VecDeque::new(), sum: TextSum::default() });
    }
    let body = match body.into_page_in_gzip() {
        Ok(page) => return Box::new(NestedPage(page)),
        Err(body) => body,
    };
    let object = body.all_of_object().cloned();
    if let Some(marks) = object.as_ref().and_then(|object| object.gzip_marks()) {
        return Box::new(MarkedPart { marks: *marks, body, taken: VecDeque::new(), at: 0 });
    }
    by.counters.gzips_cut.add(1);
    match FilterChain::new(&[FilterKind::Cut], coding::Bounds::USUAL, None) {
        Ok(chain) => {
            let source = FilteredSource::new(body, FilterWork::new(chain, &by.threads), None);
            Box::new(CutPart { source, object })
        }
        Err(_) => Box::new(Body::empty()),
    }
}

/// A stored gzip that was cut before.
struct MarkedPart {
    marks: GzipMarks,
    body: Body,
    taken: VecDeque<Bytes>,
    /// So much of it is behind us.
    at: u64,
}

impl IncludedBody for MarkedPart {
    fn poll_included(&mut self, queue: &mut VecDeque<Bytes>, cx: &mut Context<'_>) -> Poll<Option<End>> {
        let event = ready!(self.body.poll_bytes(&mut self.taken, cx, Wanted::Bytes));
        for bytes in self.taken.drain(..) {
            queue.extend(self.marks.cut(self.at, &bytes).into_iter().map(|cut| match cut {
                CutBytes::Kept(range) => bytes.slice(range),
                CutBytes::Changed(changed) => Bytes::from(changed),
            }));
            self.at += bytes.len() as u64;
        }
        Poll::Ready(end_of(&event))
    }

    fn sum(&self) -> TextSum {
        self.marks.sum
    }
}

/// A gzip that is read for the first time.
struct CutPart {
    source: FilteredSource,
    /// If it is stored, all of it.
    object: Option<Arc<Object>>,
}

impl IncludedBody for CutPart {
    fn poll_included(&mut self, queue: &mut VecDeque<Bytes>, cx: &mut Context<'_>) -> Poll<Option<End>> {
        let event = ready!(self.source.poll(queue, cx));
        if let (BodyEvent::End(_), Some(object), Some(marks)) = (&event, &self.object, self.source.gzip_marks()) {
            object.note_gzip_marks(marks);
        }
        Poll::Ready(end_of(&event))
    }

    fn sum(&self) -> TextSum {
        self.source.gzip_marks().map(|marks| marks.sum).unwrap_or_default()
    }
}

/// What is in no gzip.
struct UncodedPart {
    body: Body,
    taken: VecDeque<Bytes>,
    sum: TextSum,
}

impl IncludedBody for UncodedPart {
    fn poll_included(&mut self, queue: &mut VecDeque<Bytes>, cx: &mut Context<'_>) -> Poll<Option<End>> {
        let event = ready!(self.body.poll_bytes(&mut self.taken, cx, Wanted::Bytes));
        for bytes in self.taken.drain(..) {
            self.sum = self.sum.followed_by(TextSum::of(&bytes));
            page_in_gzip::push_stored(queue, &bytes);
        }
        Poll::Ready(end_of(&event))
    }

    fn sum(&self) -> TextSum {
        self.sum
    }
}

/// A page in gzip within another.
struct NestedPage(Box<Assembly>);

impl IncludedBody for NestedPage {
    fn poll_included(&mut self, queue: &mut VecDeque<Bytes>, cx: &mut Context<'_>) -> Poll<Option<End>> {
        let event = ready!(self.0.poll(queue, cx));
        Poll::Ready(end_of(&event))
    }

    fn sum(&self) -> TextSum {
        self.0.sum()
    }
}

fn end_of(event: &BodyEvent) -> Option<End> {
    match event {
        BodyEvent::More => None,
        BodyEvent::End(_) => Some(End::Sent),
        BodyEvent::Broken(end) => Some(*end),
        BodyEvent::Pages => unreachable!("bytes are asked for"),
    }
}
