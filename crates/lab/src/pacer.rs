//! The pacer of a thread: it sleeps until the next start is due or somebody has thought enough, and wakes a user.
//!
//! On a timer of the kernel's that epoll waits for, because tokio's own timers round up to a whole millisecond.

use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::client_thread::Desk;
use crate::lab_clock::Nanos;

/// As long as the run.
pub(crate) async fn pace(desk: Rc<Desk>, alarm: Alarm) {
    loop {
        let next = desk.agenda.borrow_mut().release(Nanos::now());
        let Some(due) = next else {
            desk.bell.notified().await;
            continue;
        };
        let failed = tokio::select! {
            waited = alarm.wait_until(due) => waited.is_err(),
            () = desk.bell.notified() => false,
        };
        if failed {
            // The timer was made and is valid; should it fail all the same, be late rather than silent.
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    }
}

#[derive(Debug)]
pub(crate) struct Alarm {
    timer: AsyncFd<OwnedFd>,
}

impl Alarm {
    pub(crate) fn new() -> io::Result<Alarm> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        // Deprecated because some types could close or swap their descriptor while it is registered; an `OwnedFd` that
        // nobody else sees cannot, and what replaces it is unsafe to call.
        #[allow(deprecated, reason = "sound for OwnedFd")]
        let timer = AsyncFd::with_interest(timer, Interest::READABLE)?;
        Ok(Alarm { timer })
    }

    async fn wait_until(&self, due: Nanos) -> io::Result<()> {
        let second = 1_000_000_000;
        let at = Timespec { tv_sec: (due.0 / second) as i64, tv_nsec: (due.0 % second) as i64 };
        let never = Timespec { tv_sec: 0, tv_nsec: 0 };
        let setting = Itimerspec { it_interval: never, it_value: at };
        timerfd_settime(self.timer.get_ref(), TimerfdTimerFlags::ABSTIME, &setting)?;
        // Setting the timer again forgets its expiry, so nothing has to be read from it.
        self.timer.readable().await?.clear_ready();
        Ok(())
    }
}
