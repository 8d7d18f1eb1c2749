//! Work that looks through the store: on a thread of its own, which gives way to the cores.

/// The error is a status and a sentence.
pub async fn looking<T: Send + 'static>(look: impl FnOnce() -> T + Send + 'static) -> Result<T, (u16, String)> {
    looking_and_then(look, || ()).await
}

/// Work that nobody waits for.
pub fn behind(work: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().name("larder-looking".to_owned());
    // Without a thread the cores do it, a little at a time.
    drop(thread.spawn(move || {
        proxy::give_way_to_cores();
        work();
    }));
}

/// The same with work behind it that nobody waits for.
pub async fn looking_and_then<T: Send + 'static>(
    look: impl FnOnce() -> T + Send + 'static,
    behind: impl FnOnce() + Send + 'static,
) -> Result<T, (u16, String)> {
    let (tell, told) = tokio::sync::oneshot::channel();
    let thread = std::thread::Builder::new().name("larder-looking".to_owned());
    let spawned = thread.spawn(move || {
        proxy::give_way_to_cores();
        // Who asked may be gone.
        let _ = tell.send(look());
        behind();
    });
    spawned.map_err(|why| (503, format!("no thread to look through the store: {why}")))?;
    told.await.map_err(|_| (500, "looking through the store ended in a panic".to_owned()))
}
