//! What ends a command from outside: TERM, INT and HUP, heard by a thread of its own.

use std::io;

use tokio::signal::unix::{SignalKind, signal};

/// Has `act` done when the first of them comes; it is told which. Later ones are heard by nobody.
pub fn on_first(act: impl FnOnce(i32) + Send + 'static) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let guard = runtime.enter();
    let [mut terminate, mut interrupt, mut hangup] =
        [signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?, signal(SignalKind::hangup())?];
    drop(guard);
    std::thread::Builder::new().name("larder-signals".to_owned()).spawn(move || {
        let kind = runtime.block_on(async {
            tokio::select! {
                _ = terminate.recv() => SignalKind::terminate(),
                _ = interrupt.recv() => SignalKind::interrupt(),
                _ = hangup.recv() => SignalKind::hangup(),
            }
        });
        act(kind.as_raw_value());
    })?;
    Ok(())
}
