//! What a program that is a test waits for: time that passes, or others who come to a barrier (vmod vtc).
//!
//! Where several requests share a thread, one that waits must not hold up those that it waits for. So what runs the program may wait when the
//! subroutine has ended, before anything comes of it: nobody outside can tell that from waiting in the middle.

/// One of these.
#[derive(Clone, Debug, PartialEq)]
pub enum TestWait {
    Seconds(f64),
    Barrier { address: Vec<u8>, timeout_s: f64 },
}
