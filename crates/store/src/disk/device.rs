//! What a store lies on: bytes at positions, that may fail in every way in which disks fail.
//!
//! The trait is here, and not above, so that tests can put in a device that tears, flips, loses and stalls, or one whose
//! power goes. It knows no records.

use std::fs::File;
use std::io::{self, IoSlice};
use std::sync::Arc;

/// Positioned I/O. All calls may come from several threads at once. Reads and writes may be short.
pub trait Device: Send + Sync + 'static {
    fn bytes(&self) -> io::Result<u64>;

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// The same without waiting: `WouldBlock` if the bytes are not in memory.
    fn read_at_hand(&self, _buffer: &mut [u8], _offset: u64) -> io::Result<usize> {
        Err(io::ErrorKind::WouldBlock.into())
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize>;

    /// Writes pieces one behind the other, in one go where it can.
    fn write_pieces_at(&self, pieces: &[IoSlice<'_>], offset: u64) -> io::Result<usize> {
        let joined: Vec<u8> = pieces.iter().flat_map(|piece| piece.iter().copied()).collect();
        self.write_at(&joined, offset)
    }

    /// Writes, and returns when these bytes would survive a loss of power. Nothing is said of others.
    fn write_synced_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize>;

    /// Returns when everything written before would survive a loss of power.
    fn sync(&self) -> io::Result<()>;

    /// Gives a range up: its pages are detached from whoever still refers to them, and it reads as zeros or as before.
    fn punch(&self, offset: u64, len: u64) -> io::Result<()>;

    /// A range is about to be written from its beginning to its end, and nothing in it counts any more: so no part of it needs to be
    /// read before what is beside it is written.
    fn forget(&self, _offset: u64, _len: u64) {}

    /// Is it still there, the same, and as large as it was?
    fn check(&self) -> io::Result<()> {
        Ok(())
    }

    /// Reserves the room for all of it, so that no write fails for want of any. Where there is not so much nothing is taken.
    fn reserve(&self) -> io::Result<()> {
        Ok(())
    }

    /// Another process may open it from now on. Here it can still be read.
    fn release(&self) {}

    /// No other process may from now on.
    fn lock(&self) -> io::Result<()> {
        Ok(())
    }

    /// Opens it anew after it failed. Says whether it is still the same: else nothing of what was in it is left.
    fn renew(&self) -> io::Result<Renewed> {
        Ok(Renewed::TheSame)
    }

    /// The file, for who sends from it without copying: only where `punch` detaches what was sent.
    fn file(&self) -> Option<Arc<File>> {
        None
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewed {
    TheSame,
    Another,
}

/// Fills the buffer. An end before that is an error.
pub fn read_whole(device: &dyn Device, buffer: &mut [u8], offset: u64) -> io::Result<()> {
    let mut filled = 0;
    while filled < buffer.len() {
        match device.read_at(&mut buffer[filled..], offset + filled as u64) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The same without waiting; false if some of it is not in memory.
pub fn read_whole_at_hand(device: &dyn Device, buffer: &mut [u8], offset: u64) -> bool {
    let mut filled = 0;
    while filled < buffer.len() {
        match device.read_at_hand(&mut buffer[filled..], offset + filled as u64) {
            Ok(read) if read > 0 => filled += read,
            _ => return false,
        }
    }
    true
}

pub fn write_whole(device: &dyn Device, bytes: &[u8], offset: u64) -> io::Result<()> {
    write_by(bytes, |rest, at| device.write_at(rest, offset + at))
}

pub fn write_whole_pieces(device: &dyn Device, mut pieces: &mut [IoSlice<'_>], mut offset: u64) -> io::Result<()> {
    while !pieces.is_empty() {
        match device.write_pieces_at(pieces, offset) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => {
                offset += count as u64;
                IoSlice::advance_slices(&mut pieces, count);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

pub fn write_whole_synced(device: &dyn Device, bytes: &[u8], offset: u64) -> io::Result<()> {
    write_by(bytes, |rest, at| device.write_synced_at(rest, offset + at))
}

/// Syncs, however often it is interrupted. Any other error is one: asking again may find that all is well when it is not.
pub fn sync_whole(device: &dyn Device) -> io::Result<()> {
    loop {
        match device.sync() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

fn write_by(bytes: &[u8], write: impl Fn(&[u8], u64) -> io::Result<usize>) -> io::Result<()> {
    let mut written = 0;
    while written < bytes.len() {
        match write(&bytes[written..], written as u64) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => written += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
