//! A file that could not be opened when larder started, because its file system takes no writes or fails: as a device that fails until it can
//! be opened. The disk is dropped meanwhile, like any that fails, and begun anew once the file can be had: what was invalidated meanwhile could
//! not be held against what is in it.

use std::fs::File;
use std::io::{self, IoSlice};
use std::sync::Arc;

use parking_lot::RwLock;
use rustix::io::Errno;

use super::device::{Device, Renewed};
use super::file_device::FileDevice;

pub struct LateDevice {
    open: Box<dyn Fn() -> io::Result<FileDevice> + Send + Sync>,
    opened: RwLock<Result<Arc<FileDevice>, io::Error>>,
}

/// Is this a fault that passes, and no mistake in what was asked for?
pub fn is_passing_fault(error: &io::Error) -> bool {
    use io::ErrorKind::{QuotaExceeded, ReadOnlyFilesystem, StaleNetworkFileHandle, StorageFull};
    matches!(error.kind(), ReadOnlyFilesystem | StorageFull | QuotaExceeded | StaleNetworkFileHandle)
        || error.raw_os_error() == Some(Errno::IO.raw_os_error())
}

impl LateDevice {
    /// `why`: what came of the first `open`.
    pub fn new(why: io::Error, open: impl Fn() -> io::Result<FileDevice> + Send + Sync + 'static) -> LateDevice {
        LateDevice { open: Box::new(open), opened: RwLock::new(Err(why)) }
    }

    fn now(&self) -> io::Result<Arc<FileDevice>> {
        match &*self.opened.read() {
            Ok(device) => Ok(Arc::clone(device)),
            Err(why) => Err(why.raw_os_error().map_or_else(|| why.kind().into(), io::Error::from_raw_os_error)),
        }
    }
}

impl Device for LateDevice {
    fn bytes(&self) -> io::Result<u64> {
        self.now()?.bytes()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.now()?.read_at(buffer, offset)
    }

    fn read_at_hand(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.now()?.read_at_hand(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.now()?.write_at(bytes, offset)
    }

    fn write_pieces_at(&self, pieces: &[IoSlice<'_>], offset: u64) -> io::Result<usize> {
        self.now()?.write_pieces_at(pieces, offset)
    }

    fn write_synced_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.now()?.write_synced_at(bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.now()?.sync()
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<()> {
        self.now()?.punch(offset, len)
    }

    fn forget(&self, offset: u64, len: u64) {
        if let Ok(device) = self.now() {
            device.forget(offset, len);
        }
    }

    fn check(&self) -> io::Result<()> {
        self.now()?.check()
    }

    fn reserve(&self) -> io::Result<()> {
        self.now()?.reserve()
    }

    fn release(&self) {
        if let Ok(device) = self.now() {
            device.release();
        }
    }

    /// Nobody else has what is not open; what is opened is locked then.
    fn lock(&self) -> io::Result<()> {
        self.now().map_or(Ok(()), |device| device.lock())
    }

    fn renew(&self) -> io::Result<Renewed> {
        if let Ok(device) = self.now() {
            return device.renew();
        }
        let device = (self.open)()?;
        device.reserve()?;
        *self.opened.write() = Ok(Arc::new(device));
        Ok(Renewed::Another)
    }

    fn file(&self) -> Option<Arc<File>> {
        self.now().ok()?.file()
    }
}
