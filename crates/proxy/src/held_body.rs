//! A body that is there as a whole: in the store, or in a file beneath a root. What sends it asks here for slices of memory, for
//! pages of a file, or for its bytes wherever they lie, and knows no more of it.

use std::cell::OnceCell;
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use cache::{Blocks, Object};
use rustix::io::pread;
use smallvec::SmallVec;

use crate::access_log::CacheVerdict;
use crate::counters::CoreCounters;
use crate::disk_read::DiskRead;
use crate::limits::SLICES_MAX;
use crate::promotion_task;
use crate::static_files::open_file::{FileBody, OpenFile};
use crate::unsent::RestOfBody;

/// One piece of a file on disk that `sendfile` is asked for: a page that is not in memory holds the core up, and for no
/// more than this.
pub(crate) const DISK_PIECE_BYTES_MAX: u64 = 512 << 10;
/// What is read of a file at once by who needs its bytes.
const FILE_READ_BYTES_MAX: u64 = 64 << 10;
/// What of a first write is taken from memory.
const FIRST_WRITE_BYTES: u64 = 1 << 20;

/// A body that `sendfile` sends as it lies.
#[derive(Clone, Copy)]
pub(crate) struct Pages<'a> {
    pub(crate) file: BorrowedFd<'a>,
    /// Where the body begins in the file; modulo 2⁶⁴, since of a body on a disk only what is sent next need lie behind its beginning.
    pub(crate) offset: u64,
    /// At most so much at once.
    pub(crate) piece_bytes_max: u64,
}

/// A whole answer whose head is rendered: what is sent at once if the socket takes it.
pub(crate) trait Whole {
    const VERDICT: CacheVerdict;
    fn status(&self) -> u16;
    /// The head as it was rendered, as HTTP/1.1 text.
    fn rendered(&self) -> &[u8];
    fn length(&self) -> u64;
    fn pages(&self) -> Option<Pages<'_>>;
    /// The start of a body in memory, as much as one write takes. What has to be held for that is put into `hold`.
    fn slices<'a>(&'a self, hold: &'a OnceCell<Blocks>, out: &mut SmallVec<[IoSlice<'a>; SLICES_MAX]>);
    /// So much of it went out from what is held for that.
    fn note_sent(&self, bytes: u64);
    fn count(counters: &CoreCounters);
    /// Pins it.
    fn source(&self) -> HeldBody;
    /// Where it lies. Nobody else lies there while anybody remembers it.
    fn address(&self) -> *const ();
}

impl Whole for Arc<Object> {
    const VERDICT: CacheVerdict = CacheVerdict::Hit;

    #[inline]
    fn status(&self) -> u16 {
        Object::status(self).0
    }

    #[inline]
    fn rendered(&self) -> &[u8] {
        Object::rendered(self)
    }

    #[inline]
    fn length(&self) -> u64 {
        self.body().len()
    }

    #[inline]
    fn pages(&self) -> Option<Pages<'_>> {
        let extent = self.body().extent()?;
        Some(Pages { file: extent.file(), offset: extent.offset(), piece_bytes_max: u64::MAX })
    }

    #[inline]
    fn slices<'a>(&'a self, hold: &'a OnceCell<Blocks>, out: &mut SmallVec<[IoSlice<'a>; SLICES_MAX]>) {
        let body = self.body();
        match body.behind_head() {
            // On a disk it does not come here; in the page file it may have been promoted this moment, and is sent in the loop.
            [] => {
                let Some(blocks) = body.out_of_line().filter(|blocks| blocks.extent().is_none()) else { return };
                let blocks = hold.get_or_init(|| blocks);
                out.extend(blocks.slices(0, FIRST_WRITE_BYTES).map(IoSlice::new));
            }
            behind => out.push(IoSlice::new(behind)),
        }
    }

    #[inline]
    fn note_sent(&self, bytes: u64) {
        promotion_task::note_sent(self, bytes);
    }

    #[inline]
    fn count(counters: &CoreCounters) {
        counters.answered(CacheVerdict::Hit);
    }

    fn source(&self) -> HeldBody {
        HeldBody::Object(Arc::clone(self))
    }

    #[inline]
    fn address(&self) -> *const () {
        Arc::as_ptr(self).cast()
    }
}

impl Whole for Arc<OpenFile> {
    const VERDICT: CacheVerdict = CacheVerdict::File;

    #[inline]
    fn status(&self) -> u16 {
        200
    }

    #[inline]
    fn rendered(&self) -> &[u8] {
        OpenFile::rendered(self)
    }

    #[inline]
    fn length(&self) -> u64 {
        OpenFile::length(self)
    }

    #[inline]
    fn pages(&self) -> Option<Pages<'_>> {
        match self.body() {
            FileBody::Memory(_) => None,
            FileBody::Disk { file, .. } => {
                Some(Pages { file: file.as_fd(), offset: 0, piece_bytes_max: DISK_PIECE_BYTES_MAX })
            }
        }
    }

    #[inline]
    fn slices<'a>(&'a self, _: &'a OnceCell<Blocks>, out: &mut SmallVec<[IoSlice<'a>; SLICES_MAX]>) {
        if let FileBody::Memory(bytes) = self.body() {
            out.push(IoSlice::new(&bytes[..bytes.len().min(FIRST_WRITE_BYTES as usize)]));
        }
    }

    #[inline]
    fn note_sent(&self, _: u64) {}

    #[inline]
    fn count(counters: &CoreCounters) {
        counters.files.add(1);
    }

    fn source(&self) -> HeldBody {
        HeldBody::File(Arc::clone(self))
    }

    #[inline]
    fn address(&self) -> *const () {
        Arc::as_ptr(self).cast()
    }
}

/// A body that is held for as long as it is being sent.
#[derive(Clone)]
pub(crate) enum HeldBody {
    Object(Arc<Object>),
    File(Arc<OpenFile>),
    /// Borrowed from a disk.
    Leased(DiskRead),
}

impl HeldBody {
    /// A stored body, which has been borrowed if it lies on a disk.
    pub(crate) fn stored(object: &Arc<Object>, leased: Option<&DiskRead>) -> HeldBody {
        match object.body().on_disk() {
            None => HeldBody::Object(Arc::clone(object)),
            Some(body) => {
                let leased = leased.filter(|leased| leased.is_of(body));
                HeldBody::Leased(leased.expect("what lies on a disk is borrowed when it is hit").clone())
            }
        }
    }

    /// Is it sent as it lies in a file?
    pub(crate) fn is_in_file(&self) -> bool {
        self.pages_at(0).is_some()
    }

    /// Where it lies for as long as it is held.
    pub(crate) fn rest(&self) -> RestOfBody {
        match self {
            HeldBody::Object(object) => RestOfBody::of_object(object),
            HeldBody::File(_) | HeldBody::Leased(_) => RestOfBody::Queued,
        }
    }

    /// What is sent from a position on.
    pub(crate) fn pages_at(&self, from: u64) -> Option<Pages<'_>> {
        match self {
            HeldBody::Object(object) => object.pages(),
            HeldBody::File(file) => file.pages(),
            HeldBody::Leased(read) => Some(read.pages_at(from)),
        }
    }

    /// Ready when what is next can be sent without waiting for a disk; the error is a token.
    pub(crate) fn poll_at_hand(&mut self, cx: &mut Context<'_>, from: u64, to: u64) -> Poll<Result<(), &'static str>> {
        match self {
            HeldBody::Object(_) | HeldBody::File(_) => Poll::Ready(Ok(())),
            HeldBody::Leased(read) => read.poll_at_hand(cx, from, to),
        }
    }

    /// May a short part be copied, to go out with the head before it? Not from a disk, which may be slow.
    pub(crate) fn is_in_memory(&self) -> bool {
        match self {
            HeldBody::Object(_) => true,
            HeldBody::Leased(_) => false,
            HeldBody::File(file) => matches!(file.body(), FileBody::Memory(_)),
        }
    }

    /// Queues the start of `from..to`, wherever it lies: all of it up to `bytes_max` from memory, a piece from a file. Returns how
    /// much that is; nothing where the file has become shorter.
    pub(crate) fn put_bytes(&self, queue: &mut VecDeque<Bytes>, from: u64, to: u64, bytes_max: u64) -> io::Result<u64> {
        let end = to.min(from.saturating_add(bytes_max));
        match self {
            HeldBody::Object(object) => {
                let end = if object.body().extent().is_some() { end.min(from + FILE_READ_BYTES_MAX) } else { end };
                queue.extend(object.body().pieces(from, end));
                promotion_task::note_sent(object, end - from);
                Ok(end - from)
            }
            HeldBody::File(file) => match file.body() {
                FileBody::Memory(bytes) => {
                    queue.push_back(bytes.slice(from as usize..end as usize));
                    Ok(end - from)
                }
                FileBody::Disk { file, .. } => put_read(queue, file.as_fd(), from, end - from),
            },
            HeldBody::Leased(read) => {
                let pages = read.pages_at(from);
                let length = (end - from).min(pages.piece_bytes_max);
                put_read(queue, pages.file, pages.offset.wrapping_add(from), length)
            }
        }
    }
}

/// Reads up to so much of a file as one piece.
fn put_read(queue: &mut VecDeque<Bytes>, file: BorrowedFd<'_>, offset: u64, length: u64) -> io::Result<u64> {
    let mut bytes = vec![0; length.min(FILE_READ_BYTES_MAX) as usize];
    let read = pread(file, &mut bytes, offset)?;
    bytes.truncate(read);
    if read > 0 {
        queue.push_back(Bytes::from(bytes));
    }
    Ok(read as u64)
}
