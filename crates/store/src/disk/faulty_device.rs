//! A device that does what it is told to do wrong: fail, fill up, write short, stall, lose writes or put them elsewhere.
//!
//! It wraps another. Tests of this crate and of those above it change what it does while it is in use.

use std::fs::File;
use std::io;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};

use super::device::{Device, Renewed};

/// What is wrong with it.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// Reads fail with this.
    pub reads: Option<io::ErrorKind>,
    /// Writes fail with this, after so many more that succeed.
    pub writes: Option<io::ErrorKind>,
    pub writes_good: u64,
    /// Syncs, and writes that sync, fail with this, after their bytes were taken.
    pub syncs: Option<io::ErrorKind>,
    /// Calls move at most so many bytes.
    pub bytes_max: Option<usize>,
    /// Every other call is interrupted first.
    pub interrupts: bool,
    /// The next write is taken and forgotten.
    pub loses_write: bool,
    /// The next write goes so many bytes too far.
    pub misdirects_write: Option<u64>,
    /// Nothing returns before this is false again.
    pub stalls: bool,
}

pub struct FaultyDevice {
    inner: Arc<dyn Device>,
    state: Mutex<FaultState>,
    changed: Condvar,
}

#[derive(Default)]
struct FaultState {
    faults: Faults,
    calls: u64,
    stalled: usize,
}

enum WriteFate {
    Goes,
    GoesBy(u64),
    IsLost,
}

impl FaultyDevice {
    pub fn new(inner: Arc<dyn Device>) -> FaultyDevice {
        FaultyDevice { inner, state: Mutex::default(), changed: Condvar::new() }
    }

    /// From now on this is wrong with it, and nothing else.
    pub fn set(&self, faults: Faults) {
        self.state.lock().faults = faults;
        self.changed.notify_all();
    }

    /// Waits until somebody hangs in a stall.
    pub fn wait_for_stalled(&self) {
        let mut state = self.state.lock();
        while state.stalled == 0 {
            self.changed.wait(&mut state);
        }
    }

    /// Lets a call in: says how many bytes it may move.
    fn enter(&self, fault: impl Fn(&Faults) -> Option<io::ErrorKind>) -> io::Result<usize> {
        let mut state = self.state.lock();
        while state.faults.stalls {
            state.stalled += 1;
            self.changed.notify_all();
            self.changed.wait(&mut state);
            state.stalled -= 1;
        }
        state.calls += 1;
        if let Some(kind) = fault(&state.faults) {
            return Err(kind.into());
        }
        if state.faults.interrupts && state.calls.is_multiple_of(2) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        Ok(state.faults.bytes_max.unwrap_or(usize::MAX))
    }

    fn enter_write(&self) -> io::Result<(usize, WriteFate)> {
        let bytes_max = self.enter(|faults| faults.writes.filter(|_| faults.writes_good == 0))?;
        let mut state = self.state.lock();
        state.faults.writes_good = state.faults.writes_good.saturating_sub(1);
        let fate = match (std::mem::take(&mut state.faults.loses_write), state.faults.misdirects_write.take()) {
            (true, _) => WriteFate::IsLost,
            (false, Some(by)) => WriteFate::GoesBy(by),
            (false, None) => WriteFate::Goes,
        };
        Ok((bytes_max, fate))
    }

    fn write_with(
        &self,
        bytes: &[u8],
        offset: u64,
        write: impl FnOnce(&[u8], u64) -> io::Result<usize>,
    ) -> io::Result<usize> {
        let (bytes_max, fate) = self.enter_write()?;
        let bytes = &bytes[..bytes.len().min(bytes_max)];
        match fate {
            WriteFate::Goes => write(bytes, offset),
            WriteFate::GoesBy(by) => write(bytes, offset + by),
            WriteFate::IsLost => Ok(bytes.len()),
        }
    }

    fn fail_sync(&self) -> io::Result<()> {
        match self.state.lock().faults.syncs {
            Some(kind) => Err(kind.into()),
            None => Ok(()),
        }
    }
}

impl Device for FaultyDevice {
    fn bytes(&self) -> io::Result<u64> {
        self.inner.bytes()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let bytes_max = self.enter(|faults| faults.reads)?;
        let len = buffer.len().min(bytes_max);
        self.inner.read_at(&mut buffer[..len], offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.write_with(bytes, offset, |bytes, offset| self.inner.write_at(bytes, offset))
    }

    fn write_synced_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let written = self.write_with(bytes, offset, |bytes, offset| self.inner.write_synced_at(bytes, offset))?;
        self.fail_sync().map(|()| written)
    }

    fn sync(&self) -> io::Result<()> {
        self.enter(|faults| faults.syncs)?;
        self.inner.sync()
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<()> {
        self.enter(|faults| faults.writes)?;
        self.inner.punch(offset, len)
    }

    fn forget(&self, offset: u64, len: u64) {
        self.inner.forget(offset, len);
    }

    fn check(&self) -> io::Result<()> {
        self.inner.check()
    }

    fn renew(&self) -> io::Result<Renewed> {
        self.inner.renew()
    }

    fn file(&self) -> Option<Arc<File>> {
        self.inner.file()
    }
}
