//! The real device: a preallocated file, or a raw partition, that one process has at a time.
//!
//! It knows no records, and keeps no copy of anything: the kernel's page cache does.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, IoSlice};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::RwLock;
use rustix::fs::{FallocateFlags, FlockOperation, SeekFrom, fallocate, flock};
use rustix::io::{Errno, ReadWriteFlags, pread, preadv2, pwrite, pwritev, pwritev2};
use rustix::param::page_size;

use super::device::{Device, Renewed};
use super::limits::{FOLIO_BYTES_MAX, LEASED_PAGE_BYTES_MAX};

/// The file in a directory that was given for a store.
pub const FILE_NAME: &str = "larder.store";

/// What POSIX calls IOV_MAX, on Linux.
const SLICES_MAX: usize = 1024;

pub struct FileDevice {
    path: PathBuf,
    bytes: u64,
    file: RwLock<Arc<File>>,
    /// What is punched out leaves its pages to who refers to them.
    detaches: bool,
}

/// Why a file cannot be had.
#[derive(Debug)]
pub enum FileRefusal {
    /// Another process has it.
    Locked,
    Io(io::Error),
}

impl FileDevice {
    /// Opens and locks the file, and makes it if there is none. Its room is reserved by [`reserve`](Device::reserve).
    pub fn open(path: &Path, bytes: u64) -> Result<FileDevice, FileRefusal> {
        let path = disk_file(path);
        let file = open_locked(&path)?;
        let detaches = detaches(&file, bytes);
        Ok(FileDevice { path, bytes, file: RwLock::new(Arc::new(file)), detaches })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    fn now(&self) -> Arc<File> {
        Arc::clone(&self.file.read())
    }
}

/// The file of a disk, which may be named by a folder that it is in.
pub fn disk_file(path: &Path) -> PathBuf {
    if path.is_dir() { path.join(FILE_NAME) } else { path.to_owned() }
}

fn open_locked(path: &Path) -> Result<File, FileRefusal> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    let file = options.open(path).map_err(FileRefusal::Io)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(Errno::WOULDBLOCK) => Err(FileRefusal::Locked),
        Err(errno) => Err(FileRefusal::Io(errno.into())),
    }
}

fn is_partition(metadata: &Metadata) -> bool {
    metadata.file_type().is_block_device()
}

/// Can ranges be punched out of it? Asked behind the end, where there is nothing to lose.
fn detaches(file: &File, bytes: u64) -> bool {
    let is_file = file.metadata().is_ok_and(|metadata| metadata.is_file());
    let end = bytes.next_multiple_of(FOLIO_BYTES_MAX);
    let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    is_file && page_size() <= LEASED_PAGE_BYTES_MAX && fallocate(file, hole, end, FOLIO_BYTES_MAX).is_ok()
}

fn reserve(file: &File, bytes: u64) -> io::Result<()> {
    let metadata = file.metadata()?;
    if is_partition(&metadata) {
        return match rustix::fs::seek(file, SeekFrom::End(0))? {
            size if size >= bytes => Ok(()),
            size => Err(io::Error::new(io::ErrorKind::StorageFull, format!("the partition has {size} bytes only"))),
        };
    }
    if metadata.len() > bytes {
        file.set_len(bytes)?;
    }
    let has = file.metadata()?.blocks() * 512;
    let system = rustix::fs::fstatvfs(file)?;
    let free = system.f_bfree.saturating_mul(system.f_frsize);
    let no_space = || {
        let text = format!("no space: {bytes} bytes are wanted, the file has {has}, and {free} are free beside it");
        io::Error::new(io::ErrorKind::StorageFull, text)
    };
    // Asked first: what cannot succeed would fill the file system before it fails.
    if bytes.saturating_sub(has) > free {
        return Err(no_space());
    }
    match fallocate(file, FallocateFlags::empty(), 0, bytes) {
        // Some file systems cannot reserve; then a write may find the disk full, and that is borne too.
        Err(Errno::OPNOTSUPP) => file.set_len(bytes),
        Err(errno) => {
            // What was taken on the way is given back.
            file.set_len(metadata.len().min(bytes))?;
            Err(if errno == Errno::NOSPC { no_space() } else { errno.into() })
        }
        Ok(()) => Ok(()),
    }
}

impl Device for FileDevice {
    fn bytes(&self) -> io::Result<u64> {
        let file = self.now();
        let metadata = file.metadata()?;
        if is_partition(&metadata) { Ok(rustix::fs::seek(&*file, SeekFrom::End(0))?) } else { Ok(metadata.len()) }
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        Ok(pread(&*self.now(), buffer, offset)?)
    }

    fn read_at_hand(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut buffers = [io::IoSliceMut::new(buffer)];
        Ok(preadv2(&*self.now(), &mut buffers, offset, ReadWriteFlags::NOWAIT)?)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        Ok(pwrite(&*self.now(), bytes, offset)?)
    }

    fn write_pieces_at(&self, pieces: &[IoSlice<'_>], offset: u64) -> io::Result<usize> {
        // Of more than a kernel takes at once the rest is another write.
        let most = pieces.len().min(SLICES_MAX);
        Ok(pwritev(&*self.now(), &pieces[..most], offset)?)
    }

    fn write_synced_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let file = self.now();
        // Only this range is made durable: an fdatasync would wait for all bodies that were written of late.
        match pwritev2(&*file, &[IoSlice::new(bytes)], offset, ReadWriteFlags::DSYNC) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
                let written = pwrite(&*file, bytes, offset)?;
                file.sync_data()?;
                Ok(written)
            }
            result => Ok(result?),
        }
    }

    fn sync(&self) -> io::Result<()> {
        self.now().sync_data()
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<()> {
        let file = self.now();
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        fallocate(&*file, hole, offset, len)?;
        match fallocate(&*file, FallocateFlags::KEEP_SIZE, offset, len) {
            Err(Errno::OPNOTSUPP) => Ok(()),
            result => Ok(result?),
        }
    }

    fn forget(&self, offset: u64, len: u64) {
        let file = self.now();
        // A partition would be written full of zeros.
        if file.metadata().is_ok_and(|metadata| metadata.is_file()) {
            // A hint: a file system that cannot do it reads the page in which a record ends before it writes there.
            let _ = fallocate(&*file, FallocateFlags::ZERO_RANGE | FallocateFlags::KEEP_SIZE, offset, len);
        }
    }

    fn check(&self) -> io::Result<()> {
        let (ours, there) = (self.now().metadata()?, std::fs::metadata(&self.path)?);
        if (ours.dev(), ours.ino()) != (there.dev(), there.ino()) {
            return Err(io::Error::new(io::ErrorKind::NotFound, "the file was replaced by another"));
        }
        if !is_partition(&ours) && ours.len() < self.bytes {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                format!("the file has {} bytes only", ours.len()),
            ));
        }
        Ok(())
    }

    fn reserve(&self) -> io::Result<()> {
        reserve(&self.now(), self.bytes)
    }

    fn release(&self) {
        // That it is locked all the same is seen by who opens it.
        let _ = flock(&*self.now(), FlockOperation::Unlock);
    }

    fn lock(&self) -> io::Result<()> {
        Ok(flock(&*self.now(), FlockOperation::NonBlockingLockExclusive)?)
    }

    fn renew(&self) -> io::Result<Renewed> {
        let ours = self.now().metadata()?;
        let is_the_same =
            std::fs::metadata(&self.path).is_ok_and(|it| (it.dev(), it.ino()) == (ours.dev(), ours.ino()));
        if is_the_same {
            self.reserve()?;
            return Ok(Renewed::TheSame);
        }
        let file = open_locked(&self.path).map_err(|refusal| match refusal {
            FileRefusal::Locked => io::Error::new(io::ErrorKind::ResourceBusy, "another process has the file"),
            FileRefusal::Io(error) => error,
        })?;
        // Somebody put it there, and something in it: that is not ours to write over.
        if file.metadata()?.len() > 0 {
            return Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                "another file with something in it is in its place",
            ));
        }
        reserve(&file, self.bytes)?;
        *self.file.write() = Arc::new(file);
        Ok(Renewed::Another)
    }

    fn file(&self) -> Option<Arc<File>> {
        self.detaches.then(|| self.now())
    }
}
