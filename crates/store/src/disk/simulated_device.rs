//! A device in memory whose power can go: what was not synced is then there, or not, or in part, as a seed decides.
//!
//! It keeps every unsynced write by itself. At a loss of power each is dropped, kept, or torn at a sector, and they are
//! laid down in any order. It stands where a file stands, for the tests of this crate and of those above it.

use std::io;

use super::device::Device;
use super::limits::UNIT_BYTES;
use super::recovery::mixed;
use crate::sync::Mutex;

pub struct SimulatedDevice {
    inner: Mutex<Memory>,
}

#[derive(Default)]
struct Memory {
    /// What would be there after a loss of power, for certain.
    durable: Vec<u8>,
    /// What is read.
    now: Vec<u8>,
    /// Written and not synced, oldest first.
    unsynced: Vec<(u64, Vec<u8>)>,
    /// The power went: nothing works any more.
    is_off: bool,
    /// Calls that write or sync, until the power goes.
    calls_left: Option<u64>,
    seed: u64,
}

impl SimulatedDevice {
    pub fn new(bytes: u64, seed: u64) -> SimulatedDevice {
        SimulatedDevice::with_content(vec![0; bytes as usize], seed)
    }

    pub fn with_content(content: Vec<u8>, seed: u64) -> SimulatedDevice {
        let memory = Memory { durable: content.clone(), now: content, seed, ..Memory::default() };
        SimulatedDevice { inner: Mutex::new(memory) }
    }

    /// The power goes before the call after so many that write or sync; that one is done in part.
    pub fn lose_power_after(&self, calls: u64) {
        self.inner.lock().calls_left = Some(calls);
    }

    pub fn is_off(&self) -> bool {
        self.inner.lock().is_off
    }

    /// The power goes now, if it has not yet. Returns what is there when it comes back.
    pub fn lose_power(&self) -> Vec<u8> {
        let mut memory = self.inner.lock();
        memory.is_off = true;
        let mut content = memory.durable.clone();
        let mut unsynced = std::mem::take(&mut memory.unsynced);
        while !unsynced.is_empty() {
            let (pick, fate, cut) = (memory.draw(), memory.draw(), memory.draw());
            // In order more often than not: disks write in order more often than not.
            let at = if pick % 4 == 0 { (pick / 4 % unsynced.len() as u64) as usize } else { 0 };
            let (offset, bytes) = unsynced.remove(at);
            match fate % 4 {
                0 => {}
                1 => lay_torn(&mut content, offset, &bytes, cut),
                _ => lay(&mut content, offset, &bytes),
            }
        }
        content
    }

    /// What would be read by a process that begins now: nothing was lost but the process.
    pub fn content(&self) -> Vec<u8> {
        self.inner.lock().now.clone()
    }
}

fn lay(content: &mut [u8], offset: u64, bytes: &[u8]) {
    let from = offset as usize;
    content[from..from + bytes.len()].copy_from_slice(bytes);
}

/// Only some of its sectors arrive: the first, the last, or every other one.
fn lay_torn(content: &mut [u8], offset: u64, bytes: &[u8], cut: u64) {
    let sectors: Vec<(u64, &[u8])> = sectors(offset, bytes);
    let at = (cut / 4) as usize % (sectors.len() + 1);
    for (index, (offset, part)) in sectors.iter().enumerate() {
        let arrives = match cut % 3 {
            0 => index < at,
            1 => index >= at,
            _ => (index ^ at).is_multiple_of(2),
        };
        if arrives {
            lay(content, *offset, part);
        }
    }
}

/// A write, cut at the boundaries of sectors.
pub fn sectors(offset: u64, bytes: &[u8]) -> Vec<(u64, &[u8])> {
    let (mut out, mut at, mut rest) = (Vec::new(), offset, bytes);
    while !rest.is_empty() {
        let take = ((UNIT_BYTES - at % UNIT_BYTES) as usize).min(rest.len());
        let (part, behind) = rest.split_at(take);
        out.push((at, part));
        (at, rest) = (at + take as u64, behind);
    }
    out
}

fn no_power() -> io::Error {
    io::Error::other("the power went")
}

impl Memory {
    fn draw(&mut self) -> u64 {
        self.seed = self.seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mixed(self.seed)
    }

    /// Counts a call. False when the power goes with it.
    fn call(&mut self) -> io::Result<bool> {
        if self.is_off {
            return Err(no_power());
        }
        match &mut self.calls_left {
            Some(0) => {
                self.is_off = true;
                Ok(false)
            }
            Some(left) => {
                *left -= 1;
                Ok(true)
            }
            None => Ok(true),
        }
    }

    fn write(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        if offset as usize + bytes.len() > self.now.len() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        lay(&mut self.now, offset, bytes);
        Ok(())
    }
}

impl Device for SimulatedDevice {
    fn bytes(&self) -> io::Result<u64> {
        Ok(self.inner.lock().now.len() as u64)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let memory = self.inner.lock();
        if memory.is_off {
            return Err(no_power());
        }
        let from = (offset as usize).min(memory.now.len());
        let len = buffer.len().min(memory.now.len() - from);
        buffer[..len].copy_from_slice(&memory.now[from..from + len]);
        Ok(len)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let mut memory = self.inner.lock();
        let goes_on = memory.call()?;
        memory.write(bytes, offset)?;
        memory.unsynced.push((offset, bytes.to_vec()));
        if goes_on { Ok(bytes.len()) } else { Err(no_power()) }
    }

    fn write_synced_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let mut memory = self.inner.lock();
        let goes_on = memory.call()?;
        memory.write(bytes, offset)?;
        if !goes_on {
            memory.unsynced.push((offset, bytes.to_vec()));
            return Err(no_power());
        }
        // What else waits to be laid down must not cover it: an older write to the same bytes is done by now.
        let end = offset + bytes.len() as u64;
        let is_apart = |(at, older): &(u64, Vec<u8>)| *at >= end || at + older.len() as u64 <= offset;
        let (apart, covered) = std::mem::take(&mut memory.unsynced).into_iter().partition(is_apart);
        memory.unsynced = apart;
        let covered: Vec<(u64, Vec<u8>)> = covered;
        covered.iter().for_each(|(at, older)| lay(&mut memory.durable, *at, older));
        lay(&mut memory.durable, offset, bytes);
        Ok(bytes.len())
    }

    fn sync(&self) -> io::Result<()> {
        let mut memory = self.inner.lock();
        if !memory.call()? {
            return Err(no_power());
        }
        let unsynced = std::mem::take(&mut memory.unsynced);
        for (offset, bytes) in unsynced {
            lay(&mut memory.durable, offset, &bytes);
        }
        Ok(())
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<()> {
        self.write_at(&vec![0; len as usize], offset).map(drop)
    }
}
