//! Large bodies as pages of a file that lives in memory, so that the kernel can send them without copying.
//!
//! The law (design §3): pages that were handed to `sendfile` stay referenced by sockets, and on one machine even by
//! the receiver's queue. So no offset is ever written twice: the file only grows, and what leaves is punched out,
//! which detaches the pages and leaves those that are under way as they are.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use bytes::Bytes;
use rustix::buffer::spare_capacity;
use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, memfd_create};
use rustix::io::{pread, pwrite};

use crate::sync::atomic::{AtomicU64, Ordering};

/// Extents begin at a multiple of this; a power of two no smaller than a page.
const ALIGNMENT: u64 = 4096;

/// The file. One for a store.
#[derive(Debug)]
pub struct PageFile {
    file: OwnedFd,
    /// Where the next extent begins. Never goes back.
    end: AtomicU64,
    /// Bytes of bodies that are on their way into it.
    under_way: AtomicU64,
}

/// A body on its way into the file: copied bit by bit, so that nobody waits while all of it is copied.
#[derive(Debug)]
pub struct ExtentWriter {
    extent: Extent,
    written: u64,
    _under_way: UnderWay,
}

/// What a writer counts for as long as it lasts.
#[derive(Debug)]
struct UnderWay(Arc<PageFile>, u64);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(self.1, Ordering::Relaxed);
    }
}

/// A body's place in the file; given back when it is dropped.
#[derive(Debug)]
pub struct Extent {
    pages: Arc<PageFile>,
    offset: u64,
    len: u64,
}

impl PageFile {
    /// Fails where the kernel offers no files in memory.
    pub fn create() -> io::Result<Arc<PageFile>> {
        let file = memfd_create("larder-store", MemfdFlags::CLOEXEC)?;
        Ok(Arc::new(PageFile { file, end: AtomicU64::new(0), under_way: AtomicU64::new(0) }))
    }

    /// Memory that its pages take. No mapping shows them, so the resident size of the process does not know them.
    pub fn memory_bytes(&self) -> u64 {
        // The unit of st_blocks is 512 bytes whatever the file system's own is (stat(3type)).
        rustix::fs::fstat(&self.file).map_or(0, |file| u64::try_from(file.st_blocks).unwrap_or(0) * 512)
    }

    /// Begins to copy a body of this length into the file. `None` while with it more than `under_way_max` bytes would be on
    /// their way; one goes whatever its length is.
    pub fn write_extent(self: &Arc<PageFile>, len: u64, under_way_max: u64) -> Option<ExtentWriter> {
        let others = self.under_way.fetch_add(len, Ordering::Relaxed);
        let under_way = UnderWay(Arc::clone(self), len);
        if others > 0 && others + len > under_way_max {
            return None;
        }
        let span = len.next_multiple_of(ALIGNMENT);
        let offset = self.end.fetch_add(span, Ordering::Relaxed);
        // From here on a failure leaves a hole, not a body: dropping the extent punches it out.
        Some(ExtentWriter {
            extent: Extent { pages: Arc::clone(self), offset, len },
            written: 0,
            _under_way: under_way,
        })
    }
}

impl ExtentWriter {
    /// How much of it is in the file.
    pub fn written(&self) -> u64 {
        self.written
    }

    pub fn append(&mut self, block: &[u8]) -> io::Result<()> {
        if self.written + block.len() as u64 > self.extent.len {
            return Err(another_length());
        }
        let mut rest = block;
        while !rest.is_empty() {
            let written = pwrite(&self.extent.pages.file, rest, self.extent.offset + self.written)?;
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            self.written += written as u64;
            rest = &rest[written..];
        }
        Ok(())
    }

    /// All of it is there.
    pub fn finish(self) -> io::Result<Extent> {
        if self.written == self.extent.len { Ok(self.extent) } else { Err(another_length()) }
    }
}

fn another_length() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "the body has another length than was said")
}

impl Extent {
    /// What `sendfile` reads from.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.pages.file.as_fd()
    }

    /// Where the body begins in it.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    pub fn len(&self) -> u64 {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Memory that it takes, with what describes it: whole pages.
    pub fn memory_bytes(&self) -> usize {
        Extent::memory_bytes_of(self.len)
    }

    /// The same for a body of this length.
    pub fn memory_bytes_of(len: u64) -> usize {
        len.next_multiple_of(ALIGNMENT) as usize + size_of::<Extent>()
    }

    /// A copy of `from..to`, for who cannot send it as it lies.
    pub fn copy(&self, from: u64, to: u64) -> Bytes {
        let (from, to) = (from.min(self.len), to.min(self.len));
        let wanted = to.saturating_sub(from) as usize;
        // Read into room that nobody has set to zero before.
        let mut copy = Vec::with_capacity(wanted);
        while copy.len() < wanted {
            let at = self.offset + from + copy.len() as u64;
            has_read(pread(&self.pages.file, spare_capacity(&mut copy), at));
        }
        copy.truncate(wanted);
        Bytes::from(copy)
    }

    /// The same into a buffer, from a position on that so much is behind.
    pub fn copy_into(&self, buffer: &mut [u8], from: u64) {
        assert!(from + buffer.len() as u64 <= self.len, "a body is copied within itself");
        let mut filled = 0;
        while filled < buffer.len() {
            let at = self.offset + from + filled as u64;
            filled += has_read(pread(&self.pages.file, &mut buffer[filled..], at));
        }
    }
}

fn has_read(read: rustix::io::Result<usize>) -> usize {
    match read {
        Ok(read) if read > 0 => read,
        // A file in memory that we hold cannot fail to be read; if it does, its bytes are not ours to invent.
        other => panic!("the store's page file cannot be read: {other:?}"),
    }
}

impl Drop for Extent {
    fn drop(&mut self) {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let span = self.len.next_multiple_of(ALIGNMENT);
        // If the kernel refuses, the pages stay until the process ends; nothing else can be done about it here.
        let _ = fallocate(&self.pages.file, flags, self.offset, span.max(ALIGNMENT));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(pages: &Arc<PageFile>, blocks: &[&[u8]], len: u64) -> io::Result<Extent> {
        let mut writer = pages.write_extent(len, u64::MAX).expect("few are on their way");
        blocks.iter().try_for_each(|block| writer.append(block))?;
        writer.finish()
    }

    #[test]
    fn what_is_written_is_read_and_leaves_nothing_behind() {
        let pages = PageFile::create().expect("a memory file");
        let body: Vec<u8> = (0..100_000u32).map(|n| (n % 251) as u8).collect();
        let first = write(&pages, &body.chunks(65_536).collect::<Vec<_>>(), body.len() as u64).expect("written");
        let second = write(&pages, &[b"tail"], 4).expect("written");
        assert_eq!(first.copy(99_990, u64::MAX), body[99_990..]);
        assert_eq!(second.copy(0, 4), &b"tail"[..]);
        assert_eq!(second.offset() % ALIGNMENT, 0);
        drop(first);
        assert_eq!(pages.memory_bytes(), ALIGNMENT);
        drop(second);
        assert_eq!(pages.memory_bytes(), 0);
    }

    #[test]
    fn pages_under_way_stay_what_they_were() {
        use std::io::Read;
        let pages = PageFile::create().expect("a memory file");
        let old = write(&pages, &[&[b'a'; 8192]], 8192).expect("written");
        let (sender, mut receiver) = std::os::unix::net::UnixStream::pair().expect("a pair");
        let mut offset = old.offset();
        let sent = rustix::fs::sendfile(&sender, old.file(), Some(&mut offset), 8192).expect("sent");
        drop(old);
        let _new = write(&pages, &[&[b'b'; 8192]], 8192).expect("written");
        let mut got = vec![0; sent];
        receiver.read_exact(&mut got).expect("received");
        assert!(got.iter().all(|&byte| byte == b'a'));
    }

    #[test]
    fn a_length_that_was_not_true_is_refused() {
        let pages = PageFile::create().expect("a memory file");
        assert!(write(&pages, &[b"abc"], 4).is_err());
        assert!(write(&pages, &[b"abc", b"de"], 4).is_err());
        assert_eq!(pages.memory_bytes(), 0);
    }

    #[test]
    fn only_so_many_are_on_their_way_at_once() {
        let pages = PageFile::create().expect("a memory file");
        let mut writers: Vec<ExtentWriter> = (0..3).map(|_| pages.write_extent(100, 300).expect("room")).collect();
        assert!(pages.write_extent(1, 300).is_none() && pages.write_extent(1, 300).is_none());
        drop(writers.pop());
        assert!(pages.write_extent(101, 300).is_none() && pages.write_extent(100, 300).is_some());
        writers.clear();
        assert!(pages.write_extent(400, 300).is_some());
    }
}
