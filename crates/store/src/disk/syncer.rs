//! A thread that syncs what was written while the log writes on: a disk that waits for the processor, and a processor that
//! waits for the disk, would each be idle half of the time.
//!
//! One sync at a time. Its error is nobody's success: the log hears it before it begins the next, and before a checkpoint
//! counts.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;

use super::device::{Device, sync_whole};

pub struct Syncer {
    wishes: Sender<()>,
    results: Receiver<io::Result<()>>,
    is_under_way: bool,
}

impl Syncer {
    /// Its thread ends with it.
    pub fn start(device: Arc<dyn Device>) -> io::Result<(Syncer, JoinHandle<()>)> {
        let ((wishes, wished), (given, results)) = (channel(), channel());
        let run = move || {
            while let Ok(()) = wished.recv() {
                if given.send(sync_whole(&*device)).is_err() {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("disk-sync".into()).spawn(run)?;
        Ok((Syncer { wishes, results, is_under_way: false }, thread))
    }

    /// Begins to sync; waits for the sync before, if that is under way still.
    pub fn begin(&mut self) -> io::Result<()> {
        self.wait()?;
        self.is_under_way = self.wishes.send(()).is_ok();
        if self.is_under_way { Ok(()) } else { Err(ended()) }
    }

    /// What came of the last one.
    pub fn wait(&mut self) -> io::Result<()> {
        match std::mem::take(&mut self.is_under_way) {
            true => self.results.recv().unwrap_or_else(|_| Err(ended())),
            false => Ok(()),
        }
    }

    /// The same, if it is over.
    pub fn look(&mut self) -> io::Result<()> {
        match self.results.try_recv() {
            Ok(result) => {
                self.is_under_way = false;
                result
            }
            Err(TryRecvError::Empty) => Ok(()),
            Err(TryRecvError::Disconnected) => Err(ended()),
        }
    }
}

fn ended() -> io::Error {
    io::Error::other("the thread that syncs has ended")
}
